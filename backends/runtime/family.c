#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include "backends/runtime/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HOIST_INTERNAL hoist_status hoist_family_make(hoist_bundle* b, const hoist_options* options) {
  const size_t count = b->plan.specialisation_count;
  if (!count) return HOIST_OK;
  hoist_family* family = b->family = calloc(1, sizeof *family);
  if (!family) return hoist_no_memory(&b->error, sizeof *family);
  family->count = count;
  family->options = *options;
  family->options.device = NULL;
  family->others = calloc(count, sizeof *family->others);
  const size_t bytes = options->cache_folder ? strlen(options->cache_folder) + 1 : 0;
  if (bytes) family->cache_folder = malloc(bytes);
  if (family->cache_folder) memcpy(family->cache_folder, options->cache_folder, bytes);
  family->options.cache_folder = family->cache_folder;
  if (!family->others || (options->cache_folder && !family->cache_folder)) return hoist_no_memory(&b->error, count);
  return HOIST_OK;
}

HOIST_INTERNAL void hoist_family_free(hoist_family* family) {
  if (!family) return;
  free(family->others);
  free(family->cache_folder);
  free(family->weights);
  free(family);
}

/* ---- weights on the device ---- */

#ifndef HOIST_WITHOUT_OPENCL

static int weights_order(const void* a, const void* b) {
  const hoist_shared_weights *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

HOIST_INTERNAL void* hoist_shared_buffer(const hoist_bundle* b, const hoist_plan_array* array) {
  if (!b->family || !b->family->weights_count) return NULL;
  const hoist_shared_weights wanted = {array->offset, array->bytes, NULL};
  const hoist_shared_weights* found =
      bsearch(&wanted, b->family->weights, b->family->weights_count, sizeof wanted, weights_order);
  return found ? found->buffer : NULL;
}

HOIST_INTERNAL hoist_status hoist_share_weights(hoist_bundle* b,
                                                void* (*buffer_of)(const hoist_bundle* bundle, size_t array)) {
  hoist_family* family = b->family;
  if (!family) return HOIST_OK;
  hoist_shared_weights* all = realloc(family->weights, (family->weights_count + b->plan.array_count + 1) * sizeof *all);
  if (!all) return hoist_no_memory(&b->error, b->plan.array_count * sizeof *all);
  family->weights = all;
  size_t count = family->weights_count;
  for (size_t i = 0; i < b->plan.array_count; ++i) {
    const hoist_plan_array* array = &b->plan.arrays[i];
    if (array->place != HOIST_PLACE_WEIGHTS || hoist_shared_buffer(b, array)) continue;
    const hoist_shared_weights one = {array->offset, array->bytes, buffer_of(b, i)};
    all[count++] = one;
  }
  family->weights_count = count;
  qsort(all, count, sizeof *all, weights_order);
  return HOIST_OK;
}

#endif

/* ---- sizes ---- */

HOIST_INTERNAL const hoist_plan* hoist_root_plan(const hoist_bundle* b) {
  return !b->family || b->family->in_use == 0 ? &b->plan : &b->family->others[0]->plan;
}

HOIST_INTERNAL void hoist_sizes_text(const hoist_bundle* b, char* text, size_t capacity) {
  const hoist_plan* root = hoist_root_plan(b);
  *text = 0;
  if (!b->family) return;
  const int64_t* sizes = root->specialisations[b->family->in_use].sizes;
  for (size_t i = 0; i < root->size_count; ++i) {
    const size_t used = strlen(text);
    snprintf(text + used, capacity - used, "%s%s=%lld", i ? ", " : "", root->size_names[i], (long long)sizes[i]);
  }
}
