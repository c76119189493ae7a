/* Finds the next step of a run: goes through the items of the plan in order and does the work of If and Loop. It reads
 * conditions and iteration counts, and queues copies of carried states with the engine. A loop ends at its bound; if
 * the bound is not the model's own, exceeding it is an error. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "backends/runtime/control.h"

#include <stdlib.h>
#include <string.h>

HOIST_INTERNAL hoist_status hoist_open_controls(hoist_bundle* b) {
  b->run.iterations = calloc(b->plan.control_count + 1, sizeof *b->run.iterations);
  b->run.step_runs = calloc(b->plan.step_count + 1, sizeof *b->run.step_runs);
  if (b->run.iterations && b->run.step_runs) return HOIST_OK;
  return hoist_no_memory(&b->error, (b->plan.control_count + b->plan.step_count + 2) * 8);
}

HOIST_INTERNAL void hoist_close_controls(hoist_bundle* b) {
  free(b->run.iterations);
  free(b->run.step_runs);
}

HOIST_INTERNAL void hoist_begin_items(hoist_bundle* b, size_t first) {
  /* A plan in which every step runs once may run any steps. */
  if (first && b->plan.control_count) return;
  b->run.next_item = first;
  if (!first) memset(b->run.step_runs, 0, b->plan.step_count * sizeof *b->run.step_runs);
}

static hoist_status read_flag(hoist_bundle* b, uint32_t array, int* flag) {
  unsigned char value = 0;
  const hoist_status status = b->engine->read(b, array, &value, sizeof value);
  *flag = value != 0;
  return status;
}

static hoist_status make_moves(hoist_bundle* b, const hoist_plan_move* moves, size_t count, uint64_t iteration) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < count && !status; ++i) {
    const size_t bytes = (size_t)b->plan.arrays[moves[i].from].bytes;
    if (!bytes) continue;
    status = b->engine->copy(b, moves[i].from, moves[i].to, moves[i].is_row ? (size_t)iteration * bytes : 0, bytes);
  }
  return status;
}

/* Decides if the loop continues beyond its condition, and writes the number of the next iteration if it does. */
static hoist_status go_on(hoist_bundle* b, const hoist_plan_control* loop, uint64_t done, int* goes_on) {
  if (*goes_on && loop->trips != HOIST_NO_ARRAY) {
    int64_t trips = 0; /* no body writes it, but an untrusted plan may */
    const hoist_status status = b->engine->read(b, loop->trips, &trips, sizeof trips);
    if (status) return status;
    if (trips <= 0 || (uint64_t)trips <= done) *goes_on = 0;
  }
  if (*goes_on && done >= loop->most) {
    if (loop->fails) {
      return hoist_fail(
          &b->error, HOIST_TOO_MANY_ITERATIONS,
          "loop %s: does not end within %llu iterations, the most that it is compiled for (--bound loop-iterations)",
          loop->name, (unsigned long long)loop->most);
    }
    *goes_on = 0;
  }
  if (*goes_on && loop->number != HOIST_NO_ARRAY) return b->engine->set_number(b, loop->number, (int64_t)done);
  if (!*goes_on && loop->count != HOIST_NO_ARRAY) return b->engine->set_number(b, loop->count, (int64_t)done);
  return HOIST_OK;
}

static hoist_status enter(hoist_bundle* b, size_t index) {
  const hoist_plan_control* control = &b->plan.controls[index];
  int flag = 1;
  hoist_status status = control->condition == HOIST_NO_ARRAY ? HOIST_OK : read_flag(b, control->condition, &flag);
  if (status) return status;
  if (!control->is_loop) {
    if (!flag) b->run.next_item = control->middle + 1;
    return HOIST_OK;
  }
  b->run.iterations[index] = 0;
  status = make_moves(b, control->before, control->before_count, 0);
  if (!status) status = go_on(b, control, 0, &flag);
  if (!flag) b->run.next_item = control->leave + 1;
  return status;
}

static hoist_status leave(hoist_bundle* b, size_t index) {
  const hoist_plan_control* control = &b->plan.controls[index];
  if (!control->is_loop) return make_moves(b, control->otherwise, control->otherwise_count, 0);
  int flag = 1;
  /* The condition may be an input of the iteration, which the moves overwrite. */
  hoist_status status = control->next == HOIST_NO_ARRAY ? HOIST_OK : read_flag(b, control->next, &flag);
  if (!status) status = make_moves(b, control->after, control->after_count, b->run.iterations[index]);
  if (!status) status = go_on(b, control, ++b->run.iterations[index], &flag);
  if (flag) b->run.next_item = control->enter + 1;
  return status;
}

HOIST_INTERNAL hoist_status hoist_next_step(hoist_bundle* b, size_t end, size_t* step) {
  const hoist_plan* plan = &b->plan;
  *step = plan->step_count;
  while (b->run.next_item < plan->item_count) {
    const hoist_plan_item item = plan->items[b->run.next_item];
    hoist_status status = HOIST_OK;
    switch (item.kind) {
      case HOIST_ITEM_STEP:
        if (item.index >= end) return HOIST_OK;
        ++b->run.next_item;
        ++b->run.step_runs[item.index];
        *step = item.index;
        return HOIST_OK;
      case HOIST_ITEM_ENTER:
        ++b->run.next_item;
        status = enter(b, item.index);
        break;
      case HOIST_ITEM_OTHERWISE: /* the branch for true has run */
        b->run.next_item = plan->controls[item.index].leave + 1;
        status = make_moves(b, plan->controls[item.index].after, plan->controls[item.index].after_count, 0);
        break;
      default:
        ++b->run.next_item;
        status = leave(b, item.index);
    }
    if (status) return status;
  }
  return HOIST_OK;
}

uint64_t hoist_step_runs(const hoist_bundle* b, size_t index) {
  return index < b->plan.step_count ? b->run.step_runs[index] : 0;
}
