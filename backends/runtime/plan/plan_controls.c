/* The controls and the fused launches of plan.bin. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/plan/plan_cursor.h"

/* The array with one value of that type, which the control writes if `written` is set. Without an array, `may_lack`
 * holds or the plan is refused. */
static void check_number_array(hoist_cursor* c, uint32_t index, const char* scalar, int may_lack, int written) {
  if (index == HOIST_NO_ARRAY) {
    if (!may_lack) hoist_bad_bytes(c, "a control names a missing array");
    return;
  }
  const hoist_plan_array* array = &c->plan->arrays[index];
  const int type = hoist_scalar_named(scalar);
  if (array->scalar != type || array->bytes != (uint64_t)hoist_scalar_row(type)->bits / 8) {
    hoist_bad_bytes(c, "a control reads or writes a number of another type");
  } else if (written && (array->place == HOIST_PLACE_INPUT || array->place == HOIST_PLACE_WEIGHTS)) {
    hoist_bad_bytes(c, "a control writes an input or a weight");
  }
}

static void check_moves(hoist_cursor* c, const hoist_plan_move* moves, size_t count, uint64_t most, int may_be_rows) {
  for (size_t i = 0; i < count && !hoist_has_failed(c); ++i) {
    const hoist_plan_move* move = &moves[i];
    const hoist_plan_array *from = &c->plan->arrays[move->from], *to = &c->plan->arrays[move->to];
    const int fits = move->is_row ? !from->bytes || most <= to->bytes / from->bytes : from->bytes == to->bytes;
    if (from == to || hoist_share_memory(from, to)) {
      hoist_bad_bytes(c, "a control copies an array onto itself");
    } else if (from->scalar != to->scalar || !fits || (move->is_row && !may_be_rows)) {
      hoist_bad_bytes(c, "a control copies an array into one of another type or size");
    } else if (to->place == HOIST_PLACE_INPUT || to->place == HOIST_PLACE_WEIGHTS) {
      hoist_bad_bytes(c, "a control writes an input or a weight");
    }
  }
}

HOIST_INTERNAL void hoist_check_control(hoist_cursor* c, hoist_plan_control* control) {
  check_number_array(c, control->condition, "bool", control->is_loop, 0);
  check_number_array(c, control->trips, "i64", 1, 0);
  check_number_array(c, control->number, "i64", 1, 1);
  check_number_array(c, control->next, "bool", 1, 0);
  check_number_array(c, control->count, "i64", 1, 1);
  check_moves(c, control->before, control->before_count, 0, 0);
  check_moves(c, control->after, control->after_count, control->most, control->is_loop);
  check_moves(c, control->otherwise, control->otherwise_count, 0, 0);
  const int has_loop = control->before_count || control->trips != HOIST_NO_ARRAY || control->most ||
                       control->number != HOIST_NO_ARRAY || control->next != HOIST_NO_ARRAY ||
                       control->count != HOIST_NO_ARRAY || control->fails;
  if (control->is_loop ? control->otherwise_count != 0 : has_loop) {
    hoist_bad_bytes(c, "a branch has fields of a loop, or a loop has fields of a branch");
  }
}

/* Every step and every control begins once, in order, and controls are nested. `open` has the capacity of all
 * controls. */
static void check_items(hoist_cursor* c, hoist_plan* plan, uint32_t* open) {
  size_t depth = 0, steps = 0, controls = 0;
  for (size_t i = 0; i < plan->item_count && !hoist_has_failed(c); ++i) {
    const hoist_plan_item* item = &plan->items[i];
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

HOIST_INTERNAL void hoist_take_items(hoist_cursor* c, hoist_plan* r) {
  if (hoist_has_failed(c)) return;
  if (r->control_count) {
    uint32_t* open = hoist_pool_alloc(c->pool, r->control_count, sizeof *open);
    if (!open) {
      hoist_no_memory(c->error, r->control_count * sizeof *open);
      return;
    }
    HOIST_TAKE_LIST(item, items, item_count)
    check_items(c, r, open);
    return;
  }
  r->items = hoist_pool_alloc(c->pool, r->step_count, sizeof *r->items);
  if (!r->items) {
    hoist_no_memory(c->error, r->step_count * sizeof *r->items);
    return;
  }
  r->item_count = r->step_count;
  for (size_t i = 0; i < r->step_count; ++i) r->items[i].index = (uint32_t)i;
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

HOIST_INTERNAL void hoist_check_launch(hoist_cursor* c, hoist_plan_launch* launch) {
  const hoist_plan* plan = c->plan;
  const size_t begin = launch == plan->launches ? 0 : (size_t)launch[-1].first + launch[-1].count;
  if (plan->target_count) hoist_bad_bytes(c, "fused launches in native code");
  if (!hoist_is_identifier(launch->name)) hoist_bad_bytes(c, "a launch's name is not an identifier");
  if (launch->count < 1 || launch->first < begin || launch->first > plan->step_count ||
      launch->count > plan->step_count - launch->first) {
    hoist_bad_bytes(c, "a launch without steps, with steps of another launch, or with missing steps");
    return;
  }
  launch->kernel.name = launch->name;
  for (int d = 0; d < 3; ++d) launch->kernel.global[d] = launch->kernel.local[d] = 1;
  for (size_t k = launch->first; k < (size_t)launch->first + launch->count; ++k) {
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

/* Conditions are evaluated between launches, never within one. */
HOIST_INTERNAL void hoist_refuse_control_within(hoist_cursor* c) {
  const hoist_plan* plan = c->plan;
  const hoist_plan_launch* last = NULL; /* launch of the previous item, if that is a step */
  for (size_t i = 0; i < plan->item_count; ++i) {
    const hoist_plan_step* step = plan->items[i].kind == HOIST_ITEM_STEP ? &plan->steps[plan->items[i].index] : NULL;
    const hoist_plan_launch* launch = step ? step->launch : NULL;
    if (launch && plan->items[i].index > launch->first && last != launch)
      hoist_bad_bytes(c, "a control begins or ends within a launch");
    last = launch;
  }
}
