/* The controls and the fused launches of plan.bin. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/plan/plan_cursor.h"

/* Reads the index of an array with one value of that type. `may_lack` allows none; `written` is set if the control
 * writes it. */
static uint32_t take_number_array(hoist_cursor* c, const hoist_plan* plan, const char* scalar, int may_lack,
                                  int written) {
  const uint32_t index = (uint32_t)hoist_take(c, 4);
  if (hoist_has_failed(c) || (index == HOIST_NO_ARRAY && may_lack)) return index;
  if (index >= plan->array_count) {
    hoist_bad_bytes(c, "a control names a missing array");
    return HOIST_NO_ARRAY;
  }
  const hoist_plan_array* array = &plan->arrays[index];
  const int type = hoist_scalar_named(scalar);
  if (array->scalar != type || array->bytes != (uint64_t)hoist_scalar_row(type)->bits / 8) {
    hoist_bad_bytes(c, "a control reads or writes a number of another type");
  } else if (written && (array->place == HOIST_PLACE_INPUT || array->place == HOIST_PLACE_WEIGHTS)) {
    hoist_bad_bytes(c, "a control writes an input or a weight");
  }
  return index;
}

static hoist_plan_move* take_moves(hoist_cursor* c, const hoist_plan* plan, uint64_t most, int may_be_rows,
                                   size_t* count) {
  hoist_plan_move* moves = hoist_take_array(c, count, 9, sizeof *moves);
  for (size_t i = 0; i < *count && !hoist_has_failed(c); ++i) {
    hoist_plan_move* move = &moves[i];
    move->from = (uint32_t)hoist_take(c, 4);
    move->to = (uint32_t)hoist_take(c, 4);
    move->is_row = hoist_take(c, 1) != 0;
    if (hoist_has_failed(c)) break;
    if (move->from >= plan->array_count || move->to >= plan->array_count) {
      hoist_bad_bytes(c, "a control names a missing array");
      break;
    }
    const hoist_plan_array *from = &plan->arrays[move->from], *to = &plan->arrays[move->to];
    const int fits = move->is_row ? !from->bytes || most <= to->bytes / from->bytes : from->bytes == to->bytes;
    if (from == to || hoist_share_memory(from, to)) {
      hoist_bad_bytes(c, "a control copies an array onto itself");
    } else if (from->scalar != to->scalar || !fits || (move->is_row && !may_be_rows)) {
      hoist_bad_bytes(c, "a control copies an array into one of another type or size");
    } else if (to->place == HOIST_PLACE_INPUT || to->place == HOIST_PLACE_WEIGHTS) {
      hoist_bad_bytes(c, "a control writes an input or a weight");
    }
  }
  return moves;
}

static void take_control_record(hoist_cursor* c, const hoist_plan* plan, hoist_plan_control* control) {
  control->name = hoist_take_text(c);
  control->layers = hoist_take_texts(c, &control->layer_count);
  const uint64_t is_loop = hoist_take(c, 1);
  if (is_loop > 1) hoist_bad_bytes(c, "an unknown kind of control");
  control->is_loop = (int)is_loop;
  control->fails = hoist_take(c, 1) != 0;
  control->most = hoist_take(c, 8);
  if (control->most > HOIST_MOST_ITERATIONS) hoist_bad_bytes(c, "a loop of too many iterations");
  control->condition = take_number_array(c, plan, "bool", control->is_loop, 0);
  control->trips = take_number_array(c, plan, "i64", 1, 0);
  control->number = take_number_array(c, plan, "i64", 1, 1);
  control->next = take_number_array(c, plan, "bool", 1, 0);
  control->count = take_number_array(c, plan, "i64", 1, 1);
  control->before = take_moves(c, plan, 0, 0, &control->before_count);
  control->after = take_moves(c, plan, control->most, control->is_loop, &control->after_count);
  control->otherwise = take_moves(c, plan, 0, 0, &control->otherwise_count);
  const int has_loop = control->before_count || control->trips != HOIST_NO_ARRAY || control->most ||
                       control->number != HOIST_NO_ARRAY || control->next != HOIST_NO_ARRAY ||
                       control->count != HOIST_NO_ARRAY || control->fails;
  if (!hoist_has_failed(c) && (control->is_loop ? control->otherwise_count != 0 : has_loop)) {
    hoist_bad_bytes(c, "a branch has parts of a loop, or a loop of a branch");
  }
}

/* Every step and every control begins once, in order, and controls are nested. `open` has the capacity of all
 * controls. */
static void take_items(hoist_cursor* c, hoist_plan* plan, uint32_t* open) {
  size_t depth = 0, steps = 0, controls = 0;
  for (size_t i = 0; i < plan->item_count && !hoist_has_failed(c); ++i) {
    hoist_plan_item* item = &plan->items[i];
    item->kind = (int)hoist_take(c, 1);
    item->index = (uint32_t)hoist_take(c, 4);
    if (hoist_has_failed(c)) return;
    hoist_plan_control* inner = depth ? &plan->controls[open[depth - 1]] : NULL;
    const int is_inner = depth && open[depth - 1] == item->index;
    if (item->kind == HOIST_ITEM_STEP && item->index == steps && steps < plan->step_count) {
      ++steps;
    } else if (item->kind == HOIST_ITEM_ENTER && item->index == controls && controls < plan->control_count) {
      plan->controls[controls].enter = i;
      open[depth++] = (uint32_t)controls++;
    } else if (item->kind == HOIST_ITEM_OTHERWISE && is_inner && !inner->is_loop && !inner->middle) {
      inner->middle = i;
    } else if (item->kind == HOIST_ITEM_LEAVE && is_inner && (inner->is_loop || inner->middle)) {
      inner->leave = i;
      --depth;
    } else {
      hoist_bad_bytes(c, "an item that no run executes");
    }
  }
  if (depth || steps != plan->step_count || controls != plan->control_count) {
    hoist_bad_bytes(c, "not every step and control is executed");
  }
}

HOIST_INTERNAL void hoist_take_controls(hoist_cursor* c, hoist_plan* plan) {
  plan->controls = hoist_take_array(c, &plan->control_count, 60, sizeof *plan->controls);
  for (size_t i = 0; i < plan->control_count && !hoist_has_failed(c); ++i)
    take_control_record(c, plan, &plan->controls[i]);
  if (hoist_has_failed(c)) return;
  if (plan->control_count) {
    uint32_t* open = hoist_pool_alloc(c->pool, plan->control_count, sizeof *open);
    if (!open) {
      hoist_no_memory(c->error, plan->control_count * sizeof *open);
      return;
    }
    plan->items = hoist_take_array(c, &plan->item_count, 5, sizeof *plan->items);
    take_items(c, plan, open);
    return;
  }
  plan->items = hoist_pool_alloc(c->pool, plan->step_count, sizeof *plan->items);
  if (!plan->items) {
    hoist_no_memory(c->error, plan->step_count * sizeof *plan->items);
    return;
  }
  plan->item_count = plan->step_count;
  for (size_t i = 0; i < plan->step_count; ++i) plan->items[i].index = (uint32_t)i;
}

HOIST_INTERNAL size_t hoist_launch_argument(const hoist_plan_launch* launch, const hoist_plan_step* step, size_t k) {
  const uint32_t array = step->arguments[k];
  size_t before = 0, i = 0;
  for (size_t other = 0; other < k; ++other) before += step->arguments[other] == array;
  for (; i < launch->kernel.parameter_count; ++i) {
    if (launch->arguments[i] == array && before-- == 0) break;
  }
  return i;
}

static void list_arguments(hoist_cursor* c, const hoist_plan* plan, hoist_plan_launch* launch) {
  size_t most = 0;
  for (size_t i = 0; i < launch->count; ++i) most += plan->steps[launch->first + i].argument_count;
  if (most > HOIST_MOST_LAUNCH_ARGUMENTS) {
    hoist_bad_bytes(c, "a launch of steps with too many arguments");
    return;
  }
  launch->arguments = hoist_pool_alloc(c->pool, most, sizeof *launch->arguments);
  if (!launch->arguments) {
    hoist_no_memory(c->error, most * sizeof *launch->arguments);
    return;
  }
  for (size_t i = 0; i < launch->count; ++i) {
    const hoist_plan_step* step = &plan->steps[launch->first + i];
    for (size_t k = 0; k < step->argument_count; ++k) {
      if (hoist_launch_argument(launch, step, k) == launch->kernel.parameter_count)
        launch->arguments[launch->kernel.parameter_count++] = step->arguments[k];
    }
  }
}

/* Conditions are evaluated between launches, never within one. */
static void refuse_control_within(hoist_cursor* c, const hoist_plan* plan) {
  const hoist_plan_launch* last = NULL; /* of the previous item, if that is a step */
  for (size_t i = 0; i < plan->item_count; ++i) {
    const hoist_plan_step* step = plan->items[i].kind == HOIST_ITEM_STEP ? &plan->steps[plan->items[i].index] : NULL;
    const hoist_plan_launch* launch = step ? step->launch : NULL;
    if (launch && plan->items[i].index > launch->first && last != launch)
      hoist_bad_bytes(c, "a control begins or ends within a launch");
    last = launch;
  }
}

HOIST_INTERNAL void hoist_take_launches(hoist_cursor* c, hoist_plan* plan) {
  size_t end = 0;
  plan->launches = hoist_take_array(c, &plan->launch_count, 12, sizeof *plan->launches);
  if (plan->launch_count && plan->target_count) hoist_bad_bytes(c, "fused launches in native code");
  for (size_t i = 0; i < plan->launch_count && !hoist_has_failed(c); ++i) {
    hoist_plan_launch* launch = &plan->launches[i];
    launch->kernel.name = hoist_take_text(c);
    if (!hoist_has_failed(c) && !hoist_is_identifier(launch->kernel.name))
      hoist_bad_bytes(c, "a launch's name is not an identifier");
    launch->first = (size_t)hoist_take(c, 4);
    launch->count = (size_t)hoist_take(c, 4);
    for (int d = 0; d < 3; ++d) launch->kernel.global[d] = launch->kernel.local[d] = 1;
    if (hoist_has_failed(c)) return;
    if (launch->count < 1 || launch->first < end || launch->first > plan->step_count ||
        launch->count > plan->step_count - launch->first) {
      hoist_bad_bytes(c, "a launch without steps, with steps of another launch, or with missing steps");
      return;
    }
    end = launch->first + launch->count;
    for (size_t k = launch->first; k < end; ++k) {
      const hoist_plan_kernel* kernel = &plan->kernels[plan->steps[k].kernel];
      const uint64_t* const local = kernel->local;
      if (kernel->host || kernel->local_bytes || local[0] != 1 || local[1] != 1 || local[2] != 1)
        hoist_bad_bytes(c, "a launch of kernels whose groups have several work-items");
      if (kernel->global[0] * kernel->global[1] * kernel->global[2] > INT32_MAX / 2)
        hoist_bad_bytes(c, "a launch of kernels with too many groups");
      plan->steps[k].launch = launch;
    }
    if (!hoist_has_failed(c)) list_arguments(c, plan, launch);
  }
  if (!hoist_has_failed(c) && plan->control_count) refuse_control_within(c, plan);
  for (size_t i = 0; i < plan->step_count && !hoist_has_failed(c); ++i) {
    hoist_plan_kernel* kernel = &plan->kernels[plan->steps[i].kernel];
    kernel->step = (uint32_t)i;
    if (!plan->steps[i].launch) kernel->is_alone = 1;
  }
}
