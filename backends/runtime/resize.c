/* Sizes that a run chooses: see plan/open_sizes.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include <string.h>

#include "backends/runtime/bundle.h"

size_t hoist_open_size_count(const hoist_bundle* b) { return b->plan.open_size_count; }

hoist_status hoist_describe_open_size(hoist_bundle* b, size_t index, hoist_open_size* size) {
  if (hoist_in_range(b, "size", index, b->plan.open_size_count)) return b->error.status;
  const hoist_plan_open_size* found = &b->plan.open_sizes[index];
  const hoist_open_size described = {found->name, found->least, found->most, found->now};
  *size = described;
  return HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_resize(hoist_bundle* b, const int64_t* sizes) {
  hoist_plan* plan = &b->plan;
  int64_t largest[HOIST_MOST_OPEN_SIZES];
  int changes = 0;
  for (size_t i = 0; i < plan->open_size_count; ++i) largest[i] = plan->open_sizes[i].most;
  if (!sizes) sizes = largest;
  for (size_t i = 0; i < plan->open_size_count; ++i) changes |= sizes[i] != plan->open_sizes[i].now;
  if (!changes) return HOIST_OK;
  if (hoist_plan_resize(plan, sizes, &b->error)) return b->error.status;
  b->engine->resize(b);
  for (size_t i = 0; i < plan->open_number_count; ++i) {
    const hoist_plan_open_number* number = &plan->open_numbers[i];
    for (size_t k = 0; number->kind == HOIST_NUMBER_EXTENT && k < plan->input_count; ++k) {
      hoist_transfer* input = &b->io.inputs[k];
      if (input->array == number->owner) input->set = input->shared, input->pending = 0;
    }
  }
  for (size_t i = 0; i < plan->output_count; ++i) b->io.outputs[i].fresh = 0;
  b->run.has_run = 0;
  return HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_resize_by_name(hoist_bundle* b, const char* name, int64_t size) {
  int64_t sizes[HOIST_MOST_OPEN_SIZES];
  const size_t count = b->plan.open_size_count;
  size_t found = 0;
  while (found < count && strcmp(b->plan.open_sizes[found].name, name) != 0) ++found;
  if (found == count) {
    char there[512] = "";
    for (size_t i = 0; i < count; ++i) hoist_list_name(there, sizeof there, b->plan.open_sizes[i].name);
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "no size is called %s (there are: %s)", name, there);
  }
  for (size_t i = 0; i < count; ++i) sizes[i] = i == found ? size : b->plan.open_sizes[i].now;
  return hoist_resize(b, sizes);
}

/* The shape is compared after the sizes have followed it: an extent may be fixed, or depend on a size that another
 * extent determines. */
HOIST_INTERNAL hoist_status hoist_resize_by_shape(hoist_bundle* b, size_t input, const int64_t* shape) {
  const uint32_t number = b->plan.inputs[input].array;
  const hoist_plan_array* array = &b->plan.arrays[number];
  int64_t before[HOIST_MOST_OPEN_SIZES], sizes[HOIST_MOST_OPEN_SIZES];
  for (size_t i = 0; i < b->plan.open_size_count; ++i) before[i] = sizes[i] = b->plan.open_sizes[i].now;
  hoist_sizes_of_shape(&b->plan, number, shape, sizes);
  if (hoist_plan_resize(&b->plan, sizes, &b->error)) return b->error.status;
  size_t same = 0;
  while (same < array->rank && shape[same] == array->shape[same]) ++same;
  const int64_t expected = same < array->rank ? array->shape[same] : 0;
  hoist_plan_resize(&b->plan, before, &b->error); /* they were valid */
  if (same == array->rank) return hoist_resize(b, sizes);
  return hoist_fail(&b->error, HOIST_BAD_SIZE, "input %s: extent %zu is %lld, and the bundle takes %lld there",
                    array->name, same, (long long)shape[same], (long long)expected);
}
