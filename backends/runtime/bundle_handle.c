#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "backends/runtime/bundle_handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

HOIST_INTERNAL uint64_t hoist_add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

HOIST_INTERNAL hoist_status hoist_fits(hoist_bundle* b, const char* what, uint64_t bytes) {
  if (bytes <= b->target.global_memory) return HOIST_OK;
  return hoist_fail(&b->error, HOIST_DEVICE_ERROR, "%s: needs %llu bytes, %s has %llu", what, (unsigned long long)bytes,
                    b->target.name, (unsigned long long)b->target.global_memory);
}

/* Checks every array alone and all arrays together. */
HOIST_INTERNAL hoist_status hoist_check_memory(hoist_bundle* b, int has_weights) {
  const hoist_plan* plan = &b->plan;
  const int separate = b->checking || plan->arena_bytes > b->target.largest_allocation;
  uint64_t all = separate ? 0 : plan->arena_bytes;
  for (size_t i = 0; i < plan->array_count; ++i) {
    const hoist_plan_array* array = &plan->arrays[i];
    if (array->bytes > b->target.largest_allocation) {
      return hoist_fail(&b->error, HOIST_DEVICE_ERROR, "%s: needs %llu bytes, %s allocates at most %llu in one piece",
                        array->name, (unsigned long long)array->bytes, b->target.name,
                        (unsigned long long)b->target.largest_allocation);
    }
    if (array->place == HOIST_PLACE_WEIGHTS && has_weights) continue;
    if (separate || array->place != HOIST_PLACE_ARENA) all = hoist_add(all, array->bytes);
  }
  return hoist_fits(b, "the bundle", all);
}

HOIST_INTERNAL hoist_status hoist_read_weights(hoist_bundle* b, hoist_error* error) {
  if (b->weights.data) return HOIST_OK; /* another specialisation has read it */
  const hoist_status status = hoist_plan_map(&b->plan, "weights.bin", &b->weights, error);
  if (status || b->weights.bytes == b->plan.weights_bytes) return status;
  return hoist_fail(error, HOIST_BAD_BUNDLE, "weights.bin: has %zu bytes, the arrays in plan.bin need %llu",
                    b->weights.bytes, (unsigned long long)b->plan.weights_bytes);
}

/* Zeros for all arrays but weights, so that elements that no kernel writes are the same in every run. The border of a
 * cleared array has its own byte. When checking, arrays start with the requested byte, so that results which depend on
 * unwritten elements differ. */
HOIST_INTERNAL int hoist_first_byte(const hoist_bundle* b, const hoist_plan_array* array) {
  const int may_show = array->place == HOIST_PLACE_ARENA || array->place == HOIST_PLACE_OUTPUT;
  return may_show ? b->checking : array->fill;
}

/* ---- descriptions ---- */

const char* hoist_error_message(const hoist_bundle* b) { return b ? b->error.message : "out of memory"; }
const char* hoist_model_name(const hoist_bundle* b) { return b->plan.model_name ? b->plan.model_name : ""; }
const char* hoist_device_name(const hoist_bundle* b) { return b->target.name; }
const char* hoist_engine_name(const hoist_bundle* b) { return b->engine ? b->engine->name : ""; }
int hoist_device_index(const hoist_bundle* b) { return (int)b->target.index; }
const char* hoist_profile_name(const hoist_bundle* b) { return b->plan.made_for.name ? b->plan.made_for.name : ""; }
int hoist_profile_is_cpu(const hoist_bundle* b) { return b->plan.made_for.is_cpu; }
int hoist_fits_profile(const hoist_bundle* b) { return b->target.is_cpu == b->plan.made_for.is_cpu; }
int hoist_threads(const hoist_bundle* b) { return (int)b->target.compute_units; }
const char* hoist_cache_outcome(const hoist_bundle* b) { return b->cache_entry.outcome; }
size_t hoist_input_count(const hoist_bundle* b) { return hoist_model_inputs(&b->plan); }
size_t hoist_output_count(const hoist_bundle* b) { return b->plan.model_output_count; }
size_t hoist_step_count(const hoist_bundle* b) { return b->plan.step_count; }
size_t hoist_array_count(const hoist_bundle* b) { return b->plan.array_count; }

HOIST_INTERNAL hoist_status hoist_in_range(hoist_bundle* b, const char* what, size_t index, size_t count) {
  if (index < count) return HOIST_OK;
  return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s %zu: there are %zu, counted from 0", what, index, count);
}

hoist_status hoist_describe_array(hoist_bundle* b, size_t index, hoist_array* array) {
  if (hoist_in_range(b, "array", index, b->plan.array_count)) return b->error.status;
  const hoist_plan_array* found = &b->plan.arrays[index];
  array->name = found->name;
  array->scalar = hoist_scalar_row(found->scalar)->name;
  array->rank = found->rank;
  array->shape = found->shape;
  array->bytes = found->bytes;
  return HOIST_OK;
}

hoist_status hoist_input(hoist_bundle* b, size_t index, hoist_array* array) {
  if (hoist_in_range(b, "input", index, hoist_model_inputs(&b->plan))) return b->error.status;
  return hoist_describe_array(b, b->plan.inputs[index].array, array);
}

hoist_status hoist_output(hoist_bundle* b, size_t index, hoist_array* array) {
  if (hoist_in_range(b, "output", index, b->plan.model_output_count)) return b->error.status;
  return hoist_describe_array(b, b->plan.outputs[index], array);
}

int hoist_input_index(const hoist_bundle* b, const char* name) {
  for (size_t i = 0; i < hoist_model_inputs(&b->plan); ++i) {
    if (strcmp(b->plan.arrays[b->plan.inputs[i].array].name, name) == 0) return (int)i;
  }
  return -1;
}

int hoist_output_index(const hoist_bundle* b, const char* name) {
  for (size_t i = 0; i < b->plan.model_output_count; ++i) {
    if (strcmp(b->plan.arrays[b->plan.outputs[i]].name, name) == 0) return (int)i;
  }
  return -1;
}

hoist_status hoist_describe_step(hoist_bundle* b, size_t index, hoist_step* step) {
  if (hoist_in_range(b, "step", index, b->plan.step_count)) return b->error.status;
  const hoist_plan_step* found = &b->plan.steps[index];
  const hoist_plan_kernel* kernel = &b->plan.kernels[found->kernel];
  step->kernel = kernel->name;
  step->kernel_index = (int)found->kernel;
  step->layer_count = found->layer_count;
  step->layers = found->layers;
  step->argument_count = found->argument_count;
  step->arguments = found->arguments;
  step->operations = kernel->operations;
  step->on_host = kernel->host != NULL;
  return HOIST_OK;
}
