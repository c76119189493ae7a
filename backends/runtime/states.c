/* The values of a bundle that live between runs. A run reads a state in one array and writes its next value into
 * another; at the end of the run the two exchange their memory, or the value is copied if the written array is needed
 * elsewhere too. So a run that fails leaves every state as it was. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include "backends/runtime/states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t hoist_state_count(const hoist_bundle* b) { return b->plan.state_count; }

hoist_status hoist_state(hoist_bundle* b, size_t index, hoist_array* array) {
  if (hoist_in_range(b, "state", index, b->plan.state_count)) return b->error.status;
  return hoist_describe_array(b, b->plan.states[index].read, array);
}

int hoist_state_index(const hoist_bundle* b, const char* name) {
  for (size_t i = 0; i < b->plan.state_count; ++i) {
    if (strcmp(b->plan.arrays[b->plan.states[i].read].name, name) == 0) return (int)i;
  }
  return -1;
}

hoist_status hoist_get_state(hoist_bundle* b, size_t index, void* data, size_t bytes) {
  if (hoist_in_range(b, "state", index, b->plan.state_count)) return b->error.status;
  return hoist_read_array(b, b->plan.states[index].read, data, bytes);
}

hoist_status hoist_set_state(hoist_bundle* b, size_t index, const void* data, size_t bytes) {
  if (hoist_in_range(b, "state", index, b->plan.state_count)) return b->error.status;
  const uint32_t array = b->plan.states[index].read;
  if (hoist_right_size(b, &b->plan.arrays[array], data, bytes)) return b->error.status;
  return bytes ? b->engine->write(b, array, data, bytes) : HOIST_OK;
}

hoist_status hoist_reset_states(hoist_bundle* b) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.state_count && !status; ++i) {
    const hoist_plan_state* state = &b->plan.states[i];
    const size_t bytes = (size_t)b->plan.arrays[state->read].bytes;
    unsigned char* value = calloc(bytes + 1, 1);
    if (!value) return hoist_no_memory(&b->error, bytes);
    if (bytes && state->initial != HOIST_NO_ARRAY) status = b->engine->read(b, state->initial, value, bytes);
    if (bytes && !status) status = b->engine->write(b, state->read, value, bytes);
    free(value);
  }
  return status;
}

/* True if the run writes the array for this state alone. */
static int is_for_state_alone(const hoist_plan* plan, uint32_t array) {
  size_t uses = 0;
  for (size_t i = 0; i < plan->output_count; ++i) uses += plan->outputs[i] == array;
  return uses == 1 && plan->arrays[array].place == HOIST_PLACE_OUTPUT;
}

HOIST_INTERNAL hoist_status hoist_advance_states(hoist_bundle* b) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.state_count && !status; ++i) {
    const hoist_plan_state* state = &b->plan.states[i];
    const size_t bytes = (size_t)b->plan.arrays[state->read].bytes;
    if (!bytes) continue;
    if (b->engine->swap && is_for_state_alone(&b->plan, state->written)) {
      status = b->engine->swap(b, state->read, state->written);
      continue;
    }
    const unsigned char* held = b->engine->memory ? b->engine->memory(b, state->written) : NULL;
    status = held ? b->engine->write(b, state->read, held, bytes)
                  : b->engine->copy(b, state->written, state->read, 0, bytes);
  }
  return status;
}

/* ---- the self-check ---- */

/* Reads the values that the steps of a run have written for the next one, one after the other. */
static hoist_status read_written(hoist_bundle* b, unsigned char* data) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.state_count && !status; ++i) {
    const uint32_t written = b->plan.states[i].written;
    const size_t bytes = (size_t)b->plan.arrays[written].bytes;
    status = hoist_read_array(b, written, data, bytes);
    data += bytes;
  }
  return status;
}

static hoist_status read_states(hoist_bundle* b, unsigned char* data) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.state_count && !status; ++i) {
    const size_t bytes = (size_t)b->plan.arrays[b->plan.states[i].read].bytes;
    status = hoist_get_state(b, i, data, bytes);
    data += bytes;
  }
  return status;
}

/* Runs the sequence from the initial values. `*message` is set if a state is not the value that the steps wrote. */
static hoist_status run_sequence(hoist_bundle* b, uint64_t seed, size_t bytes, unsigned char* written,
                                 unsigned char* states, const char** message) {
  hoist_status status = hoist_reset_states(b);
  for (size_t run = 0; run < HOIST_CHECKED_RUNS && !status; ++run, states += bytes) {
    status = hoist_seed_inputs(b, seed + run);
    if (!status) status = hoist_run_steps(b, 0, b->plan.step_count);
    if (!status) status = read_written(b, written);
    if (!status) status = hoist_run(b);
    if (!status) status = read_states(b, states);
    if (!status && memcmp(written, states, bytes) != 0) *message = "a state differs from the value that the run wrote";
  }
  return status;
}

HOIST_INTERNAL hoist_status hoist_verify_states(hoist_bundle* b, uint64_t seed, hoist_report report, void* user,
                                                hoist_error* first) {
  hoist_finding finding = {.subject = "states", .message = NULL};
  uint64_t bytes = 0;
  for (size_t i = 0; i < b->plan.state_count; ++i) {
    const hoist_plan_array* array = &b->plan.arrays[b->plan.states[i].read];
    bytes = hoist_add(bytes, array->bytes);
    finding.compared += 2 * HOIST_CHECKED_RUNS * (array->bytes * 8 / (uint64_t)hoist_scalar_row(array->scalar)->bits);
  }
  const size_t all = (size_t)bytes * HOIST_CHECKED_RUNS;
  unsigned char* memory = bytes > HOIST_MOST_BYTES / 8 ? NULL : malloc((size_t)bytes + 2 * all + 1);
  if (!memory) return hoist_no_memory(&b->error, bytes);
  unsigned char *once = memory + bytes, *again = once + all;
  hoist_status status = run_sequence(b, seed, (size_t)bytes, memory, once, &finding.message);
  if (!status) status = run_sequence(b, seed, (size_t)bytes, memory, again, &finding.message);
  if (!status && !finding.message && memcmp(once, again, all) != 0)
    finding.message = "a sequence of runs gives other values after a reset";
  free(memory);
  /* Seeded data need not be text, or an image, or end a loop: then there is nothing to compare. */
  const int refused = status == HOIST_BAD_EXTENT || status == HOIST_BAD_VALUE || status == HOIST_TOO_MANY_ITERATIONS;
  if (!status || refused) status = hoist_reset_states(b);
  if (status || refused) return status;
  finding.passed = finding.message == NULL;
  if (!finding.passed && !first->status) hoist_fail(first, HOIST_MISMATCH, "states: %s", finding.message);
  if (!finding.message) finding.message = "";
  if (report) report(user, &finding);
  return HOIST_OK;
}
