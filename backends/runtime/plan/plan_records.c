/* The records of plan.bin by their rows in plan_fields.h, and the checks of files, arrays, kernels and steps. */
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

#define HOIST_TAKE_RECORD(kind, FIELDS)                                          \
  HOIST_INTERNAL void hoist_take_##kind(hoist_cursor* c, hoist_plan_##kind* r) { \
    FIELDS(HOIST_TAKE, HOIST_TAKE_LIST, HOIST_TAKE_OTHERS)                       \
  }
#define HOIST_TAKE_CHECKED(kind, FIELDS)                                         \
  HOIST_INTERNAL void hoist_take_##kind(hoist_cursor* c, hoist_plan_##kind* r) { \
    FIELDS(HOIST_TAKE, HOIST_TAKE_LIST, HOIST_TAKE_OTHERS)                       \
    if (!hoist_has_failed(c)) hoist_check_##kind(c, r);                          \
  }
HOIST_PLAN_RECORDS(HOIST_TAKE_CHECKED, HOIST_TAKE_RECORD)

HOIST_INTERNAL void hoist_check_tolerance(hoist_cursor* c, hoist_plan_tolerance* tolerance) {
  if (!(tolerance->relative >= 0 && tolerance->absolute >= 0)) hoist_bad_bytes(c, "a tolerance is negative");
}

/* Relative, without "..", in characters that mean the same on every system. */
HOIST_INTERNAL int hoist_is_inner_path(const char* path) {
  if (!*path || *path == '/' || strstr(path, "..")) return 0;
  for (const char* p = path; *p; ++p) {
    if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || strchr("._-/", *p))) {
      return 0;
    }
  }
  return 1;
}

HOIST_INTERNAL void hoist_check_listed_file(hoist_cursor* c, hoist_plan_listed_file* file) {
  if (!hoist_is_inner_path(file->path)) hoist_bad_bytes(c, "a file name leads out of the bundle");
}

HOIST_INTERNAL void hoist_check_array(hoist_cursor* c, hoist_plan_array* array) {
  uint64_t elements;
  hoist_measure_shape(c, array->scalar, array->rank, array->shape, &elements, &array->bytes);
  array->capacity = array->bytes;
  const int weights = array->place == HOIST_PLACE_WEIGHTS, arena = array->place == HOIST_PLACE_ARENA;
  const uint64_t room = weights ? c->plan->weights_bytes : arena ? c->plan->arena_bytes : UINT64_MAX;
  if (array->offset > room || array->bytes > room - array->offset)
    hoist_bad_bytes(c, "an array reaches beyond its buffer");
  if (weights && array->offset % 64) hoist_bad_bytes(c, "weights are not aligned to 64 bytes");
}

HOIST_INTERNAL void hoist_take_domain(hoist_cursor* c, hoist_plan_parameter* r) {
  hoist_take_number(c, &r->low);
  hoist_take_number(c, &r->high);
}

HOIST_INTERNAL void hoist_take_regions(hoist_cursor* c, hoist_plan_parameter* r) {
  /* At least one byte each, so that the count is bounded for arrays of rank 0 too. */
  const uint64_t count = hoist_take(c, 4), numbers = 2 * (uint64_t)r->rank;
  if (hoist_has_failed(c)) return;
  if (count > (c->size - c->at) / (numbers ? 8 * numbers : 1) || (r->written && count > 1)) {
    hoist_bad_bytes(c, "too many regions of an array");
    return;
  }
  r->regions = hoist_pool_alloc(c->pool, count * numbers, sizeof *r->regions);
  if (!r->regions) {
    hoist_no_memory(c->error, count * numbers * 8);
    return;
  }
  r->region_count = (size_t)count;
  for (uint64_t k = 0; k < count * numbers; ++k) hoist_take_integer(c, &r->regions[k]);
}

HOIST_INTERNAL void hoist_check_parameter(hoist_cursor* c, hoist_plan_parameter* parameter) {
  hoist_measure_shape(c, parameter->scalar, parameter->rank, parameter->shape, &parameter->elements, &parameter->bytes);
  hoist_check_domain(c, parameter->scalar, parameter->low, parameter->high);
  for (size_t k = 0; k < parameter->region_count && !hoist_has_failed(c); ++k) {
    const int64_t *before = parameter->regions + 2 * k * parameter->rank, *extent = before + parameter->rank;
    for (size_t d = 0; d < parameter->rank; ++d) {
      if (before[d] < 0 || extent[d] < 0 || before[d] > parameter->shape[d] ||
          extent[d] > parameter->shape[d] - before[d]) {
        hoist_bad_bytes(c, "a region reaches beyond its array");
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

HOIST_INTERNAL void hoist_check_kernel(hoist_cursor* c, hoist_plan_kernel* kernel) {
  if (!hoist_is_identifier(kernel->name)) hoist_bad_bytes(c, "a kernel's name is not an identifier");
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
  if (c->plan->target_count &&
      (work_items != groups || kernel->local_bytes || kernel->global[2] != 1 || groups > INT32_MAX)) {
    hoist_bad_bytes(c, "a native kernel has work-groups");
  }
  /* More pointers than drivers support; few enough that their elements can be summed. */
  if (kernel->parameter_count > 4096) hoist_bad_bytes(c, "a kernel has more than 4096 parameters");
  int written = 0;
  for (size_t i = 0; i < kernel->parameter_count; ++i) {
    const hoist_plan_parameter* parameter = &kernel->parameters[i];
    written |= parameter->written;
    if (parameter->written && parameter->elements > most_elements) most_elements = parameter->elements;
  }
  if (!written) hoist_bad_bytes(c, "a kernel writes nothing");
  if (!hoist_has_failed(c) && kernel->host) check_host_call(c, kernel);
  /* Every group has an element to write; more groups than elements would write outside. */
  if (groups > (most_elements ? most_elements : 1))
    hoist_bad_bytes(c, "a kernel has more groups than elements to write");
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

HOIST_INTERNAL void hoist_check_step(hoist_cursor* c, hoist_plan_step* step) {
  const hoist_plan* plan = c->plan;
  hoist_plan_kernel* kernel = &plan->kernels[step->kernel];
  kernel->is_launched = 1;
  if (step->argument_count != kernel->parameter_count) {
    hoist_bad_bytes(c, "a step has another number of arguments than its kernel has parameters");
    return;
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
