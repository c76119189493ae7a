/* The arrays, kernels and steps of plan.bin. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include <string.h>

#include "backends/runtime/plan/plan_cursor.h"

HOIST_INTERNAL int hoist_is_identifier(const char* text) {
  for (const char* p = text; *p; ++p) {
    const int letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
    if (!letter && !(p > text && *p >= '0' && *p <= '9')) return 0;
  }
  return *text != 0;
}

HOIST_INTERNAL void hoist_take_array_record(hoist_cursor* c, hoist_plan* plan, hoist_plan_array* array) {
  array->name = hoist_take_text(c);
  array->scalar = hoist_take_scalar(c);
  array->place = (int)hoist_take(c, 1);
  uint64_t elements;
  array->shape = hoist_take_shape(c, array->scalar, &array->rank, &elements, &array->bytes);
  array->offset = hoist_take(c, 8);
  array->fill = (int)hoist_take(c, 1);
  if (hoist_has_failed(c)) return;
  if (array->place > HOIST_PLACE_CLEARED) {
    hoist_bad_bytes(c, "unknown place of an array");
    return;
  }
  const int weights = array->place == HOIST_PLACE_WEIGHTS, arena = array->place == HOIST_PLACE_ARENA;
  const uint64_t room = weights ? plan->weights_bytes : arena ? plan->arena_bytes : UINT64_MAX;
  if (array->offset > room || array->bytes > room - array->offset)
    hoist_bad_bytes(c, "an array reaches beyond its buffer");
  if (weights && array->offset % 64) hoist_bad_bytes(c, "weights are not aligned to 64 bytes");
}

static void take_regions(hoist_cursor* c, hoist_plan_parameter* parameter) {
  /* At least one byte each, so that the count is bounded for arrays of rank 0 too. */
  const uint64_t count = hoist_take(c, 4), numbers = 2 * (uint64_t)parameter->rank;
  if (hoist_has_failed(c)) return;
  if (count > (c->size - c->at) / (numbers ? 8 * numbers : 1) || (parameter->written && count > 1)) {
    hoist_bad_bytes(c, "too many regions of an array");
    return;
  }
  parameter->regions = hoist_pool_alloc(c->pool, count * numbers, sizeof *parameter->regions);
  if (!parameter->regions) {
    hoist_no_memory(c->error, count * numbers * 8);
    return;
  }
  parameter->region_count = (size_t)count;
  for (uint64_t k = 0; k < count * numbers; ++k) parameter->regions[k] = (int64_t)hoist_take(c, 8);
  for (size_t k = 0; k < parameter->region_count; ++k) {
    const int64_t *before = parameter->regions + k * numbers, *extent = before + parameter->rank;
    for (size_t d = 0; d < parameter->rank; ++d) {
      if (before[d] < 0 || extent[d] < 0 || before[d] > parameter->shape[d] ||
          extent[d] > parameter->shape[d] - before[d]) {
        hoist_bad_bytes(c, "a region reaches beyond its array");
        return;
      }
    }
  }
}

/* Operands that are read whole, followed by one result, of the types that the function accepts. */
static void check_host_call(hoist_cursor* c, const hoist_plan_kernel* kernel) {
  const size_t count = kernel->parameter_count;
  hoist_host_array* arrays = hoist_pool_alloc(c->pool, count, sizeof *arrays);
  if (!arrays) {
    hoist_no_memory(c->error, count * sizeof *arrays);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const hoist_plan_parameter* parameter = &kernel->parameters[i];
    const hoist_host_array array = {parameter->scalar, parameter->rank, parameter->shape, parameter->elements, NULL};
    arrays[i] = array;
    if (parameter->written != (i + 1 == count) || parameter->region_count) {
      hoist_bad_bytes(c, "a host op writes an array other than its last one, or a part of it");
      return;
    }
  }
  const hoist_host_call call = {arrays, count - 1, &arrays[count - 1], NULL, ""};
  if (!hoist_host_takes(kernel->host, &call)) hoist_bad_bytes(c, "a host op has arrays of other types or sizes");
}

HOIST_INTERNAL void hoist_take_kernel_record(hoist_cursor* c, const hoist_plan* plan, hoist_plan_kernel* kernel) {
  kernel->name = hoist_take_text(c);
  if (!hoist_has_failed(c) && !hoist_is_identifier(kernel->name))
    hoist_bad_bytes(c, "a kernel's name is not an identifier");
  const char* host = hoist_take_text(c);
  if (!hoist_has_failed(c) && *host && !(kernel->host = hoist_host_operator_named(host)))
    hoist_bad_bytes(c, "a host op that this runtime does not have");
  kernel->layers = hoist_take_texts(c, &kernel->layer_count);
  for (int i = 0; i < 3; ++i) kernel->global[i] = hoist_take(c, 8);
  for (int i = 0; i < 3; ++i) kernel->local[i] = hoist_take(c, 8);
  kernel->local_bytes = hoist_take(c, 8);
  uint64_t work_items = 1, groups = 1, most_elements = 0;
  for (int i = 0; i < 3 && !hoist_has_failed(c); ++i) {
    if (!kernel->local[i] || !kernel->global[i] || kernel->global[i] % kernel->local[i]) {
      hoist_bad_bytes(c, "launch sizes are zero or not a multiple of the group's");
    } else if (kernel->global[i] > ((uint64_t)1 << 48) / work_items || kernel->local[i] > 65536) {
      hoist_bad_bytes(c, "launch sizes are too large");
    } else {
      work_items *= kernel->global[i];
      groups *= kernel->global[i] / kernel->local[i];
    }
  }
  /* Native code is called with a range of groups, and its work-items are groups: the iterations of the loop that
   * threads divide and of the loops inside, and their repetitions. */
  if (plan->target_count &&
      (work_items != groups || kernel->local_bytes || kernel->global[2] != 1 || groups > INT32_MAX)) {
    hoist_bad_bytes(c, "a native kernel has work-groups");
  }
  kernel->parameters = hoist_take_array(c, &kernel->parameter_count, 31, sizeof *kernel->parameters);
  /* More pointers than drivers support; few enough that their elements can be summed. */
  if (kernel->parameter_count > 4096) hoist_bad_bytes(c, "a kernel has more than 4096 parameters");
  int written = 0;
  for (size_t i = 0; i < kernel->parameter_count && !hoist_has_failed(c); ++i) {
    hoist_plan_parameter* parameter = &kernel->parameters[i];
    parameter->name = hoist_take_text(c);
    parameter->scalar = hoist_take_scalar(c);
    parameter->written = hoist_take(c, 1) != 0;
    parameter->shape =
        hoist_take_shape(c, parameter->scalar, &parameter->rank, &parameter->elements, &parameter->bytes);
    hoist_take_domain(c, parameter->scalar, &parameter->low, &parameter->high);
    take_regions(c, parameter);
    written |= parameter->written;
    if (parameter->written && parameter->elements > most_elements) most_elements = parameter->elements;
  }
  if (!written) hoist_bad_bytes(c, "a kernel writes nothing");
  if (!hoist_has_failed(c) && kernel->host) check_host_call(c, kernel);
  /* Every group has an element to write; more groups than elements would write outside. */
  if (groups > (most_elements ? most_elements : 1))
    hoist_bad_bytes(c, "a kernel has more groups than elements to write");
  kernel->tolerance = hoist_take_tolerance(c);
  kernel->operations = (int64_t)hoist_take(c, 8);
}

HOIST_INTERNAL int hoist_share_memory(const hoist_plan_array* a, const hoist_plan_array* b) {
  return a->place == HOIST_PLACE_ARENA && b->place == HOIST_PLACE_ARENA && a->offset < b->offset + b->bytes &&
         b->offset < a->offset + a->bytes;
}

static int boxes_overlap(size_t rank, const int64_t* a, const int64_t* b) {
  for (size_t d = 0; d < rank; ++d) {
    if (a[d] + a[rank + d] <= b[d] || b[d] + b[rank + d] <= a[d]) return 0;
  }
  return 1;
}

HOIST_INTERNAL int hoist_parameters_overlap(const hoist_plan_parameter* a, const hoist_plan_parameter* b) {
  if (!a->elements || !b->elements) return 0;
  if (!a->region_count || !b->region_count || a->rank != b->rank) return 1;
  if (memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0) return 1;
  for (size_t i = 0; i < a->region_count; ++i) {
    for (size_t k = 0; k < b->region_count; ++k) {
      if (boxes_overlap(a->rank, a->regions + 2 * i * a->rank, b->regions + 2 * k * b->rank)) return 1;
    }
  }
  return 0;
}

/* As hoist_parameters_overlap, within the limit of comparisons. */
static int regions_overlap(hoist_cursor* c, const hoist_plan_parameter* a, const hoist_plan_parameter* b) {
  hoist_count_comparisons(c, (uint64_t)a->region_count * b->region_count);
  return !hoist_has_failed(c) && hoist_parameters_overlap(a, b);
}

HOIST_INTERNAL void hoist_take_step_record(hoist_cursor* c, hoist_plan* plan, hoist_plan_step* step) {
  step->kernel = (uint32_t)hoist_take(c, 4);
  step->layers = hoist_take_texts(c, &step->layer_count);
  step->arguments = hoist_take_array(c, &step->argument_count, 4, sizeof *step->arguments);
  for (size_t i = 0; i < step->argument_count; ++i) step->arguments[i] = (uint32_t)hoist_take(c, 4);
  if (hoist_has_failed(c)) return;
  if (step->kernel >= plan->kernel_count) {
    hoist_bad_bytes(c, "a step names a missing kernel");
    return;
  }
  hoist_plan_kernel* kernel = &plan->kernels[step->kernel];
  kernel->is_launched = 1;
  if (step->argument_count != kernel->parameter_count) {
    hoist_bad_bytes(c, "a step has another number of arguments than its kernel has parameters");
    return;
  }
  for (size_t i = 0; i < step->argument_count; ++i) {
    if (step->arguments[i] >= plan->array_count) {
      hoist_bad_bytes(c, "a step names a missing array");
      return;
    }
  }
  for (size_t i = 0; i < step->argument_count; ++i) {
    const hoist_plan_array* array = &plan->arrays[step->arguments[i]];
    const hoist_plan_parameter* parameter = &kernel->parameters[i];
    /* Packed arrays are written as bytes. */
    const int in_bytes = parameter->written && hoist_scalar_row(array->scalar)->bits < 8 &&
                         parameter->scalar == hoist_scalar_named("u8");
    if ((array->scalar != parameter->scalar && !in_bytes) || array->bytes != parameter->bytes) {
      hoist_bad_bytes(c, "an argument has another type or size than its parameter");
      return;
    }
    if (!parameter->written) continue;
    if (array->place == HOIST_PLACE_INPUT || array->place == HOIST_PLACE_WEIGHTS) {
      hoist_bad_bytes(c, "a step writes an input or a weight");
      return;
    }
    if (array->place == HOIST_PLACE_CLEARED) kernel->writes_cleared = 1;
    hoist_count_comparisons(c, step->argument_count);
    if (hoist_has_failed(c)) return;
    for (size_t k = 0; k < step->argument_count; ++k) {
      const hoist_plan_array* other = &plan->arrays[step->arguments[k]];
      if (k == i) continue;
      if (other == array && regions_overlap(c, parameter, &kernel->parameters[k])) {
        hoist_bad_bytes(c, "a step writes elements that it also reads or writes elsewhere");
        return;
      }
      if (other != array && hoist_share_memory(array, other)) {
        hoist_bad_bytes(c, "a step writes an array that shares memory with another of its arrays");
        return;
      }
    }
  }
}
