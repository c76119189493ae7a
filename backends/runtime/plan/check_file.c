/* Reads check.bin: the expected values of the self-check. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/plan/plan_cursor.h"

static uint64_t value_bytes(int scalar) { return ((uint64_t)hoist_scalar_row(scalar)->bits + 7) / 8; }

/* Positions count through `parts` arrays in order. */
static void take_samples(hoist_cursor* c, hoist_samples* samples, size_t parts, const int* scalars,
                         const uint64_t* elements) {
  samples->count = hoist_take(c, 8);
  if (hoist_has_failed(c)) return;
  if (samples->count > (c->size - c->at) / 9) {
    hoist_bad_bytes(c, "a count is larger than the file");
    return;
  }
  samples->positions = hoist_pool_alloc(c->pool, samples->count, sizeof *samples->positions);
  samples->starts = hoist_pool_alloc(c->pool, samples->count, sizeof *samples->starts);
  if (!samples->positions || !samples->starts) {
    hoist_no_memory(c->error, samples->count * 16);
    return;
  }
  hoist_count_comparisons(c, samples->count * parts); /* at most a ninth of the file size times the written arrays of a
                                                       * kernel */
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < samples->count; ++i) {
    const uint64_t position = samples->positions[i] = hoist_take(c, 8);
    uint64_t before = 0;
    size_t part = 0;
    while (part < parts && position - before >= elements[part]) before += elements[part++];
    if (part == parts) {
      hoist_bad_bytes(c, "a position lies outside its array");
      return;
    }
    samples->starts[i] = bytes;
    bytes += value_bytes(scalars[part]);
  }
  if (hoist_has_failed(c)) return;
  if (bytes > c->size - c->at) {
    hoist_bad_bytes(c, "ends too early");
    return;
  }
  samples->bytes = bytes;
  samples->values = c->data + c->at;
  c->at += bytes;
}

static void take_kernel_samples(hoist_cursor* c, const hoist_plan_kernel* kernel, hoist_samples* samples) {
  samples->seed = hoist_take(c, 8);
  int* scalars = hoist_pool_alloc(c->pool, kernel->parameter_count, sizeof *scalars);
  uint64_t* elements = hoist_pool_alloc(c->pool, kernel->parameter_count, sizeof *elements);
  if (!scalars || !elements) {
    hoist_no_memory(c->error, kernel->parameter_count * 12);
    return;
  }
  size_t parts = 0;
  for (size_t i = 0; i < kernel->parameter_count; ++i) {
    if (!kernel->parameters[i].written) continue;
    scalars[parts] = kernel->parameters[i].scalar;
    elements[parts++] = kernel->parameters[i].elements;
  }
  take_samples(c, samples, parts, scalars, elements);
  samples->one_extreme_in = hoist_take(c, 8);
  samples->extremes = (unsigned)hoist_take(c, 1);
  if (hoist_has_failed(c) || !samples->one_extreme_in) return;
  if (samples->bytes > c->size - c->at) {
    hoist_bad_bytes(c, "ends too early");
    return;
  }
  samples->extreme_values = c->data + c->at;
  c->at += samples->bytes;
}

HOIST_INTERNAL hoist_status hoist_checks_read(const hoist_plan* plan, hoist_checks* checks, hoist_error* error) {
  memset(checks, 0, sizeof *checks);
  unsigned char* data = NULL;
  size_t bytes = 0;
  if (hoist_plan_file(plan, "check.bin", &data, &bytes, error)) return error->status;
  error->status = HOIST_OK;
  unsigned char* image = hoist_pool_alloc(&checks->pool, bytes + 1, 1);
  checks->kernels = hoist_pool_alloc(&checks->pool, plan->kernel_count, sizeof *checks->kernels);
  if (!image || !checks->kernels) {
    hoist_no_memory(error, bytes);
  } else {
    memcpy(image, data, bytes);
    hoist_cursor c = {image, bytes, 0, 0, "check.bin", &checks->pool, error, NULL};
    if (hoist_check_frame(&c, HOIST_CHECK_MAGIC) == HOIST_OK) {
      if (hoist_take(&c, 4) != plan->kernel_count) hoist_bad_bytes(&c, "belongs to another number of kernels");
      for (size_t i = 0; i < plan->kernel_count && !hoist_has_failed(&c); ++i) {
        take_kernel_samples(&c, &plan->kernels[i], &checks->kernels[i]);
      }
      checks->model_seed = hoist_take(&c, 8);
      hoist_take_tolerance(&c, &checks->model_tolerance);
      checks->outputs = hoist_take_list(&c, &checks->output_count, 12, sizeof *checks->outputs);
      checks->samples = hoist_pool_alloc(&checks->pool, checks->output_count, sizeof *checks->samples);
      checks->runs = hoist_pool_alloc(&checks->pool, checks->output_count, sizeof *checks->runs);
      if (!checks->samples || !checks->runs) hoist_no_memory(error, checks->output_count);
      for (size_t i = 0; i < checks->output_count && !hoist_has_failed(&c); ++i) {
        const uint64_t number = hoist_take(&c, 4);
        const uint64_t most = plan->output_count * (plan->state_count ? HOIST_CHECKED_RUNS : 1);
        if (number >= most || (i && number / plan->output_count < checks->runs[i - 1])) {
          hoist_bad_bytes(&c, "names a missing output");
          break;
        }
        checks->outputs[i] = (uint32_t)(number % plan->output_count);
        checks->runs[i] = (uint32_t)(number / plan->output_count);
        const hoist_plan_array* array = &plan->arrays[plan->outputs[checks->outputs[i]]];
        uint64_t elements = 1;
        for (size_t k = 0; k < array->rank; ++k) elements *= (uint64_t)array->shape[k];
        take_samples(&c, &checks->samples[i], 1, &array->scalar, &elements);
      }
      if (!hoist_has_failed(&c) && c.at != c.size) hoist_bad_bytes(&c, "has excess bytes at its end");
    }
  }
  free(data);
  if (error->status) hoist_pool_free(&checks->pool);
  return error->status;
}
