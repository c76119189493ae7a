/* Few elements of a row: the best keys are in a heap with the worst of them first, so that most other keys are compared
 * once, O(n) for random keys and O(n log k) at most. Many elements: all keys are sorted by their bytes, without the
 * bytes that all share, O(n). */
#include "ir/host/host_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/host/host_calls.h"

typedef struct candidate {
  uint64_t key;
  uint32_t place;
} candidate;

static int comes_before(const candidate* a, const candidate* b) {
  return a->key > b->key || (a->key == b->key && a->place < b->place);
}

/* The root of a heap comes last in the order. */
static void settle(candidate* heap, size_t count, size_t at) {
  const candidate moving = heap[at];
  for (size_t below; (below = 2 * at + 1) < count; at = below) {
    if (below + 1 < count && comes_before(&heap[below], &heap[below + 1])) ++below;
    if (!comes_before(&moving, &heap[below])) break;
    heap[at] = heap[below];
  }
  heap[at] = moving;
}

HOIST_INTERNAL int hoist_takes_keys(const hoist_host_call* call) {
  const hoist_host_array *keys = &call->inputs[0], *places = call->output;
  return (keys->scalar == HOIST_HOST_U32 || keys->scalar == HOIST_HOST_U64) && places->scalar == HOIST_HOST_I32 &&
         keys->rank == 2 && places->rank == 2 && keys->shape[0] == places->shape[0] &&
         places->shape[1] <= keys->shape[1] && keys->shape[1] <= INT32_MAX;
}

static uint64_t key_at(const hoist_host_array* keys, size_t i) {
  return keys->scalar == HOIST_HOST_U32 ? ((const uint32_t*)keys->data)[i] : ((const uint64_t*)keys->data)[i];
}

/* The k largest of n keys, in order. */
static void choose_by_heap(const hoist_host_array* keys, size_t first, size_t n, size_t k, candidate* heap,
                           int32_t* places) {
  for (size_t i = 0; i < k; ++i) {
    heap[i].key = key_at(keys, first + i);
    heap[i].place = (uint32_t)i;
  }
  for (size_t i = k / 2; i-- > 0;) settle(heap, k, i);
  for (size_t i = k; i < n; ++i) {
    const uint64_t key = key_at(keys, first + i);
    if (key <= heap[0].key) continue; /* an equal key comes before it */
    heap[0].key = key;
    heap[0].place = (uint32_t)i;
    settle(heap, k, 0);
  }
  for (size_t count = k; count-- > 0;) {
    places[count] = (int32_t)heap[0].place;
    heap[0] = heap[count];
    if (count) settle(heap, count, 0);
  }
}

/* The same by a radix sort; `room` has capacity for 2 * n candidates. Each pass is stable. */
static void choose_by_bytes(const hoist_host_array* keys, size_t first, size_t n, size_t k, candidate* room,
                            int32_t* places) {
  candidate *from = room, *to = room + n;
  const unsigned bits = keys->scalar == HOIST_HOST_U32 ? 32 : 64;
  for (size_t i = 0; i < n; ++i) {
    from[i].key = key_at(keys, first + i);
    from[i].place = (uint32_t)i;
  }
  for (unsigned shift = 0; shift < bits; shift += 8) {
    size_t starts[257];
    memset(starts, 0, sizeof starts);
    for (size_t i = 0; i < n; ++i) ++starts[256 - (from[i].key >> shift & 255)]; /* larger bytes come first */
    if (starts[256 - (from[0].key >> shift & 255)] == n) continue;
    for (size_t byte = 1; byte < 257; ++byte) starts[byte] += starts[byte - 1];
    for (size_t i = 0; i < n; ++i) to[starts[255 - (from[i].key >> shift & 255)]++] = from[i];
    candidate* swapped = from;
    from = to;
    to = swapped;
  }
  for (size_t i = 0; i < k; ++i) places[i] = (int32_t)from[i].place;
}

HOIST_INTERNAL int hoist_choose_largest(hoist_host_call* call) {
  const hoist_host_array* keys = &call->inputs[0];
  const size_t rows = (size_t)keys->shape[0], n = (size_t)keys->shape[1], k = (size_t)call->output->shape[1];
  int32_t* places = call->output->data;
  if (!rows || !k) return HOIST_HOST_OK;
  const int are_many = k > n / 8 && n > 256;
  candidate* room = malloc((are_many ? 2 * n : k) * sizeof *room);
  if (!room) {
    snprintf(call->message, sizeof call->message, "no memory for the %zu largest of %zu elements", k, n);
    return HOIST_HOST_NO_MEMORY;
  }
  for (size_t row = 0; row < rows; ++row, places += k)
    (are_many ? choose_by_bytes : choose_by_heap)(keys, row * n, n, k, room, places);
  free(room);
  return HOIST_HOST_OK;
}

/* ---- strings ---- */

typedef struct ranked_string {
  const hoist_string_entry* entry;
  uint64_t place;
} ranked_string;

HOIST_INTERNAL int hoist_takes_ranks(const hoist_host_call* call) {
  return hoist_array_is(&call->inputs[0], HOIST_HOST_STRING, call->output->elements) &&
         hoist_array_is(call->output, HOIST_HOST_I64, call->output->elements);
}

static int compare_strings(const void* left, const void* right) {
  const hoist_string_entry *a = ((const ranked_string*)left)->entry, *b = ((const ranked_string*)right)->entry;
  const int way = memcmp(a->data, b->data, a->length < b->length ? a->length : b->length);
  return way ? way : (a->length > b->length) - (a->length < b->length);
}

HOIST_INTERNAL int hoist_rank_strings(hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  int64_t* ranks = call->output->data;
  if (!n) return HOIST_HOST_OK;
  ranked_string* strings = malloc((size_t)n * sizeof *strings);
  if (!strings) return hoist_host_no_memory(call);
  for (uint64_t i = 0; i < n; ++i) {
    strings[i].entry = hoist_string_at(call, 0, i);
    strings[i].place = i;
    if (!strings[i].entry) {
      free(strings);
      return HOIST_HOST_BAD_VALUE;
    }
  }
  qsort(strings, (size_t)n, sizeof *strings, compare_strings);
  int64_t rank = 0;
  for (uint64_t i = 0; i < n; ++i) {
    if (i && compare_strings(&strings[i - 1], &strings[i]) != 0) ++rank;
    ranks[strings[i].place] = rank;
  }
  free(strings);
  return HOIST_HOST_OK;
}
