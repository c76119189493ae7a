/* Sizes that a run chooses: the numbers of the plan that depend on them, read, checked and evaluated. The plan has the
 * numbers of the largest sizes, for which memory is allocated; no smaller size needs more. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include <string.h>

#include "backends/runtime/plan/plan_cursor.h"

/* Sizes are arguments of kernels as int32_t. */
HOIST_INTERNAL void hoist_check_open_size(hoist_cursor* c, hoist_plan_open_size* size) {
  if (size->least < 1 || size->most < size->least || size->most > INT32_MAX)
    hoist_bad_bytes(c, "the range of a size is invalid");
  for (const hoist_plan_open_size* other = c->plan->open_sizes; other < size && !hoist_has_failed(c); ++other) {
    hoist_count_comparisons(c, 1);
    if (strcmp(other->name, size->name) == 0) hoist_bad_bytes(c, "two sizes have the same name");
  }
  size->now = size->most;
}

static int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* Replaces a and b by the result in *a; false if there is none in 64 bits. */
static int apply_operation(int kind, int64_t* a, int64_t b) {
  switch (kind) {
    case HOIST_SIZE_ADD:
      return !__builtin_add_overflow(*a, b, a);
    case HOIST_SIZE_MULTIPLY:
      return !__builtin_mul_overflow(*a, b, a);
    case HOIST_SIZE_FLOOR_DIVISION:
      if (b > 0) *a = floor_quotient(*a, b);
      return b > 0;
    case HOIST_SIZE_REMAINDER:
      if (b > 0) *a -= b * floor_quotient(*a, b);
      return b > 0;
    case HOIST_SIZE_MINIMUM:
      if (b < *a) *a = b;
      return 1;
    default:
      if (b > *a) *a = b;
      return 1;
  }
}

/* False if the operations leave other than one value, or one of more than 64 bits. */
static int evaluate(const hoist_plan_open_number* number, const int64_t* sizes, size_t size_count, int64_t* value) {
  int64_t stack[HOIST_MOST_SIZE_VALUES];
  size_t count = 0;
  for (size_t i = 0; i < number->operation_count; ++i) {
    const hoist_plan_operation* operation = &number->value[i];
    if (operation->kind == HOIST_SIZE_CONSTANT || operation->kind == HOIST_SIZE_NAME) {
      const int is_name = operation->kind == HOIST_SIZE_NAME;
      if (count == HOIST_MOST_SIZE_VALUES) return 0;
      if (is_name && (operation->value < 0 || (uint64_t)operation->value >= size_count)) return 0;
      stack[count++] = is_name ? sizes[operation->value] : operation->value;
    } else {
      if (count < 2 || !apply_operation(operation->kind, &stack[count - 2], stack[count - 1])) return 0;
      --count;
    }
  }
  *value = stack[0];
  return count == 1;
}

/* The plan's own number, which is the one for the largest sizes. */
static int64_t number_in_plan(const hoist_plan* plan, const hoist_plan_open_number* number) {
  if (number->kind == HOIST_NUMBER_EXTENT) return plan->arrays[number->owner].shape[number->dimension];
  const hoist_plan_kernel* kernel = &plan->kernels[number->owner];
  return number->kind == HOIST_NUMBER_GLOBAL ? (int64_t)kernel->global[number->dimension] : kernel->operations;
}

HOIST_INTERNAL void hoist_check_open_number(hoist_cursor* c, hoist_plan_open_number* number) {
  const hoist_plan* plan = c->plan;
  const int is_extent = number->kind == HOIST_NUMBER_EXTENT;
  if (number->owner >= (is_extent ? plan->array_count : plan->kernel_count)) {
    hoist_bad_bytes(c, "a number belongs to a missing array or kernel");
    return;
  }
  const size_t dimensions = is_extent ? plan->arrays[number->owner].rank : number->kind == HOIST_NUMBER_GLOBAL ? 2 : 1;
  if (number->dimension >= dimensions) {
    hoist_bad_bytes(c, "a number belongs to a missing dimension");
    return;
  }
  if (is_extent && plan->arrays[number->owner].place == HOIST_PLACE_WEIGHTS)
    hoist_bad_bytes(c, "the shape of a weight depends on sizes");
  number->most = number_in_plan(plan, number);
  int64_t sizes[HOIST_MOST_OPEN_SIZES], value;
  for (size_t i = 0; i < plan->open_size_count; ++i) sizes[i] = plan->open_sizes[i].most;
  if (!evaluate(number, sizes, plan->open_size_count, &value) || value != number->most)
    hoist_bad_bytes(c, "a number differs from its value for the largest sizes");
}

/* Sizes of native kernels without control flow, states and host ops, whose shapes the runtime does not follow yet. */
HOIST_INTERNAL void hoist_take_open_sizes(hoist_cursor* c, hoist_plan* r) {
  if (hoist_has_failed(c) || c->at == c->size) return;
  HOIST_TAKE_LIST(open_size, open_sizes, open_size_count)
  if (hoist_has_failed(c)) return;
  if (!r->open_size_count || r->open_size_count > HOIST_MOST_OPEN_SIZES) {
    hoist_bad_bytes(c, "an impossible number of open sizes");
    return;
  }
  HOIST_TAKE_LIST(open_number, open_numbers, open_number_count)
  int good = r->target_count && !r->control_count && !r->state_count && !r->launch_count && !r->specialisation_count;
  for (size_t i = 0; i < r->kernel_count && !hoist_has_failed(c); ++i) good &= !r->kernels[i].host;
  if (!good)
    hoist_bad_bytes(c, "open sizes need native kernels without control flow, states, host ops and lists of sizes");
}

static void set_open_number(hoist_plan* plan, const hoist_plan_open_number* number, int64_t value) {
  if (number->kind == HOIST_NUMBER_EXTENT) {
    plan->arrays[number->owner].shape[number->dimension] = value;
  } else if (number->kind == HOIST_NUMBER_GLOBAL) {
    plan->kernels[number->owner].global[number->dimension] = (uint64_t)value;
  } else {
    plan->kernels[number->owner].operations = value;
  }
}

HOIST_INTERNAL hoist_status hoist_plan_resize(hoist_plan* plan, const int64_t* sizes, hoist_error* error) {
  for (size_t i = 0; i < plan->open_size_count; ++i) {
    const hoist_plan_open_size* size = &plan->open_sizes[i];
    if (sizes[i] < size->least || sizes[i] > size->most) {
      return hoist_fail(error, HOIST_BAD_SIZE, "%s=%lld: the bundle takes %lld to %lld", size->name,
                        (long long)sizes[i], (long long)size->least, (long long)size->most);
    }
  }
  int64_t value = 0;
  for (size_t i = 0; i < plan->open_number_count; ++i) {
    const hoist_plan_open_number* number = &plan->open_numbers[i];
    /* A launch has a group; arrays may be empty. */
    const int64_t least = number->kind == HOIST_NUMBER_GLOBAL;
    if (!evaluate(number, sizes, plan->open_size_count, &value) || value < least || value > number->most) {
      return hoist_fail(
          error, HOIST_BAD_BUNDLE, "plan.bin: a number of %s is invalid for the sizes (compile again)",
          number->kind == HOIST_NUMBER_EXTENT ? plan->arrays[number->owner].name : plan->kernels[number->owner].name);
    }
  }
  for (size_t i = 0; i < plan->open_number_count; ++i) {
    if (evaluate(&plan->open_numbers[i], sizes, plan->open_size_count, &value))
      set_open_number(plan, &plan->open_numbers[i], value);
  }
  for (size_t i = 0; i < plan->open_number_count; ++i) {
    if (plan->open_numbers[i].kind != HOIST_NUMBER_EXTENT) continue;
    hoist_plan_array* array = &plan->arrays[plan->open_numbers[i].owner];
    uint64_t elements = 1;
    for (size_t d = 0; d < array->rank; ++d) elements *= (uint64_t)array->shape[d];
    array->bytes = (elements * (uint64_t)hoist_scalar_row(array->scalar)->bits + 7) / 8;
  }
  for (size_t i = 0; i < plan->open_size_count; ++i) plan->open_sizes[i].now = sizes[i];
  return HOIST_OK;
}

HOIST_INTERNAL void hoist_sizes_of_shape(const hoist_plan* plan, size_t array, const int64_t* shape, int64_t* sizes) {
  for (size_t i = 0; i < plan->open_number_count; ++i) {
    const hoist_plan_open_number* number = &plan->open_numbers[i];
    if (number->kind != HOIST_NUMBER_EXTENT || number->owner != array) continue;
    if (number->operation_count == 1 && number->value->kind == HOIST_SIZE_NAME)
      sizes[number->value->value] = shape[number->dimension];
  }
}
