/* Greedy selection: boxes are visited in order of their scores until enough are chosen, and each is compared with the
 * boxes chosen so far. The arithmetic follows the operator's definition (ir/operators/movement/selection.cpp), with one
 * rounding per operation. */
#include "ir/host/host_boxes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct box {
  float low[2], high[2], area;
} box;

static float smaller(float a, float b) { return a < b ? a : b; }
static float larger(float a, float b) { return a > b ? a : b; }

static box box_of(const float* numbers, int centred) {
  box out;
  for (int axis = 0; axis < 2; ++axis) {
    const float one = numbers[centred ? 1 - axis : axis], other = numbers[centred ? 3 - axis : axis + 2];
    if (centred) {
      const float half = other * 0.5f;
      out.low[axis] = one - half;
      out.high[axis] = one + half;
    } else if (one != one || other != other) {
      out.low[axis] = out.high[axis] = one + other; /* NaN */
    } else {
      out.low[axis] = smaller(one, other);
      out.high[axis] = larger(one, other);
    }
  }
  const float height = out.high[0] - out.low[0], width = out.high[1] - out.low[1];
  out.area = height * width;
  return out;
}

/* A box with a NaN coordinate has area NaN and overlaps no box. */
static int overlap(const box* p, const box* q, float most) {
  const float height = smaller(p->high[0], q->high[0]) - larger(p->low[0], q->low[0]);
  const float width = smaller(p->high[1], q->high[1]) - larger(p->low[1], q->low[1]);
  if (!(height > 0 && width > 0 && p->area > 0 && q->area > 0)) return 0;
  const float shared = height * width, both = p->area + q->area, joined = both - shared;
  return joined > 0 && shared / joined > most;
}

/* A sort key in the order of the scores: NaN is below all numbers, and among equal scores the first box has the larger
 * key. */
static uint64_t ranked(float score, uint64_t place) {
  uint32_t bits = 0;
  const float positive = score == 0 ? 0.0f : score; /* -0 and 0 are equal */
  memcpy(&bits, &positive, sizeof bits);
  bits = score != score ? 1 : bits >> 31 ? ~bits : bits | 0x80000000u;
  return (uint64_t)bits << 32 | (0xffffffffu - (uint32_t)place);
}

/* Restores a binary max-heap below `at`: no parent is smaller than its children. */
static void sift(uint64_t* heap, size_t count, size_t at) {
  const uint64_t moving = heap[at];
  for (size_t below; (below = 2 * at + 1) < count; at = below) {
    if (below + 1 < count && heap[below + 1] > heap[below]) ++below;
    if (heap[below] <= moving) break;
    heap[at] = heap[below];
  }
  heap[at] = moving;
}

HOIST_INTERNAL int hoist_takes_boxes(const hoist_host_call* call) {
  const hoist_host_array *boxes = &call->inputs[0], *scores = &call->inputs[1], *output = call->output;
  for (size_t i = 0; i < call->input_count; ++i) {
    const int scalar = i == 2 || i == 5 ? HOIST_HOST_I64 : HOIST_HOST_F32;
    if (call->inputs[i].scalar != scalar || (i >= 2 && call->inputs[i].elements != (i == 5 ? 2 : 1))) return 0;
  }
  if (boxes->rank != 3 || scores->rank != 3 || boxes->shape[2] != 4 || boxes->shape[0] != scores->shape[0] ||
      boxes->shape[1] != scores->shape[2] || boxes->shape[1] > INT32_MAX)
    return 0;
  if (output->scalar != HOIST_HOST_I64 || output->rank != 2 || output->shape[1] != 3 || output->shape[0] < 1) return 0;
  const uint64_t rows = (uint64_t)scores->shape[0] *
                        (uint64_t)scores->shape[1]; /* at most the number of scores, unless there are no scores */
  const uint64_t room = (uint64_t)output->shape[0] - 1;
  return rows && scores->elements ? room % rows == 0 : room == 0;
}

HOIST_INTERNAL int hoist_choose_boxes(hoist_host_call* call) {
  const float* boxes = call->inputs[0].data;
  const float* scores = call->inputs[1].data;
  const int64_t wanted = *(const int64_t*)call->inputs[2].data, *settings = call->inputs[5].data;
  const float most_shared = *(const float*)call->inputs[3].data, least_score = *(const float*)call->inputs[4].data;
  const uint64_t images = (uint64_t)call->inputs[1].shape[0], classes = (uint64_t)call->inputs[1].shape[1],
                 n = (uint64_t)call->inputs[1].shape[2], room = (uint64_t)call->output->shape[0] - 1;
  const int centred = settings[0] != 0, every_score = settings[1] != 0;
  int64_t* found = call->output->data;
  memset(found, 0, (room + 1) * 3 * sizeof *found);
  if (!room || wanted <= 0) return HOIST_HOST_OK;
  const uint64_t of_class = room / (images * classes), most = (uint64_t)wanted < of_class ? (uint64_t)wanted : of_class;
  uint64_t* heap = malloc(n * sizeof *heap);
  box* taken = malloc(most * sizeof *taken);
  if (!heap || !taken) {
    free(heap);
    free(taken);
    snprintf(call->message, sizeof call->message, "no memory for %llu boxes", (unsigned long long)n);
    return HOIST_HOST_NO_MEMORY;
  }
  uint64_t all = 0;
  for (uint64_t row = 0; row < images * classes; ++row) {
    const float* of_row = scores + row * n;
    size_t count = 0;
    for (uint64_t i = 0; i < n; ++i) {
      if (every_score || of_row[i] > least_score) heap[count++] = ranked(of_row[i], i);
    }
    for (size_t i = count / 2; i-- > 0;) sift(heap, count, i);
    for (uint64_t number = 0; number < most && count > 0;) {
      const uint64_t place = 0xffffffffu - (uint32_t)heap[0];
      heap[0] = heap[--count];
      if (count) sift(heap, count, 0);
      const box one = box_of(boxes + (row / classes * n + place) * 4, centred);
      uint64_t other = 0;
      while (other < number && !overlap(&taken[other], &one, most_shared)) ++other;
      if (other < number) continue;
      taken[number++] = one;
      int64_t* triple = found + 3 * all++;
      triple[0] = (int64_t)(row / classes);
      triple[1] = (int64_t)(row % classes);
      triple[2] = (int64_t)place;
    }
  }
  found[3 * room + 2] = (int64_t)all;
  free(heap);
  free(taken);
  return HOIST_HOST_OK;
}
