/* Transfers of inputs and outputs between the program and the device. Small arrays go through staging memory of the
 * handle; arrays in place are not transferred. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include "backends/runtime/transfers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/host_steps.h"

HOIST_INTERNAL hoist_transfer* hoist_transfer_of(hoist_bundle* b, size_t i) {
  return i < b->plan.input_count ? &b->io.inputs[i] : &b->io.outputs[i - b->plan.input_count];
}

/* True if transfer `i` is an input or an output of a state. */
static int is_of_state(const hoist_plan* plan, size_t i) {
  if (i < plan->input_count) return i >= hoist_model_inputs(plan);
  return i - plan->input_count >= plan->model_output_count && i - plan->input_count < hoist_first_extent(plan);
}

static hoist_status stage(hoist_bundle* b, hoist_transfer* transfer) {
  const hoist_plan_array* array = &b->plan.arrays[transfer->array];
  if (transfer->staged || !array->capacity) return HOIST_OK;
  if (!b->engine->stage(b, transfer, array->capacity)) {
    return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "%s: no memory for its data", array->name);
  }
  memset(transfer->staged, 0, array->capacity);
  return HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_make_transfers(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  b->io.inputs = calloc(plan->input_count + 1, sizeof *b->io.inputs);
  b->io.outputs = calloc(plan->output_count + 1, sizeof *b->io.outputs);
  b->io.in_place = calloc(plan->array_count + 1, sizeof *b->io.in_place);
  if (!b->io.inputs || !b->io.outputs || !b->io.in_place)
    return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for the inputs");
  for (size_t i = 0; i < plan->input_count + plan->output_count; ++i) {
    hoist_transfer* t = hoist_transfer_of(b, i);
    const int is_input = i < plan->input_count;
    t->array = is_input ? plan->inputs[i].array : plan->outputs[i - plan->input_count];
    if (is_of_state(plan, i)) { /* stays where it is */
      t->set = 1;
      continue;
    }
    const hoist_plan_array* array = &plan->arrays[t->array];
    t->in_place = b->target.is_cpu && !b->checking && array->bytes &&
                  array->place == (is_input ? HOIST_PLACE_INPUT : HOIST_PLACE_OUTPUT);
    for (size_t k = 0; k < i; ++k) t->in_place &= hoist_transfer_of(b, k)->array != t->array;
    if (!t->in_place && array->bytes > HOIST_STAGED_BYTES) continue;
    const hoist_status status = stage(b, t);
    if (status) return status;
    if (t->in_place) b->io.in_place[t->array] = t;
  }
  return HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_right_size(hoist_bundle* b, const hoist_plan_array* array, const void* data,
                                             size_t bytes) {
  if (bytes != array->bytes) {
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: %zu bytes given, and the array has %llu", array->name, bytes,
                      (unsigned long long)array->bytes);
  }
  if (!data && bytes) return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: no data given", array->name);
  return HOIST_OK;
}

/* Strings have functions of their own: only the runtime knows their handles. */
static hoist_status no_strings(hoist_bundle* b, const hoist_plan_array* array, const char* instead) {
  if (array->scalar != HOIST_HOST_STRING) return HOIST_OK;
  return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: holds strings (%s)", array->name, instead);
}

hoist_status hoist_set_input(hoist_bundle* b, size_t index, const void* data, size_t bytes) {
  if (hoist_in_range(b, "input", index, hoist_model_inputs(&b->plan))) return b->error.status;
  if (no_strings(b, &b->plan.arrays[b->plan.inputs[index].array], "use hoist_set_input_strings"))
    return b->error.status;
  return hoist_set_words(b, index, data, bytes);
}

HOIST_INTERNAL hoist_status hoist_set_words(hoist_bundle* b, size_t index, const void* data, size_t bytes) {
  if (hoist_in_range(b, "input", index, hoist_model_inputs(&b->plan))) return b->error.status;
  const uint32_t number = b->plan.inputs[index].array;
  hoist_transfer* input = &b->io.inputs[index];
  if (hoist_right_size(b, &b->plan.arrays[number], data, bytes)) return b->error.status;
  if (input->staged) {
    memcpy(input->staged, data, bytes);
    input->pending = !input->in_place;
  } else if (bytes) {
    const hoist_status status = b->engine->write(b, number, data, bytes);
    if (status) return status;
  }
  input->set = 1;
  return HOIST_OK;
}

hoist_status hoist_input_memory(hoist_bundle* b, size_t index, void** memory) {
  *memory = NULL;
  if (hoist_in_range(b, "input", index, hoist_model_inputs(&b->plan))) return b->error.status;
  hoist_transfer* input = &b->io.inputs[index];
  if (no_strings(b, &b->plan.arrays[input->array], "use hoist_set_input_strings")) return b->error.status;
  const hoist_status status = stage(b, input);
  if (status) return status;
  input->shared = input->set = 1;
  *memory = input->staged;
  return HOIST_OK;
}

hoist_status hoist_output_memory(hoist_bundle* b, size_t index, const void** memory) {
  *memory = NULL;
  if (hoist_in_range(b, "output", index, b->plan.model_output_count)) return b->error.status;
  hoist_transfer* output = &b->io.outputs[index];
  if (no_strings(b, &b->plan.arrays[output->array], "use hoist_get_output_strings")) return b->error.status;
  const hoist_status status = stage(b, output);
  if (status) return status;
  output->shared = 1;
  *memory = output->staged;
  return HOIST_OK;
}

static hoist_status unknown_name(hoist_bundle* b, const char* what, const char* name, int inputs) {
  char names[512] = "";
  const size_t count = inputs ? hoist_model_inputs(&b->plan) : b->plan.model_output_count;
  for (size_t i = 0; i < count; ++i) {
    const size_t used = strlen(names);
    const uint32_t number = inputs ? b->plan.inputs[i].array : b->plan.outputs[i];
    snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", b->plan.arrays[number].name);
  }
  return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "no %s is called %s (there are: %s)", what, name, names);
}

hoist_status hoist_set_input_named(hoist_bundle* b, const char* name, const void* data, size_t bytes) {
  const int index = hoist_input_index(b, name);
  if (index < 0) return unknown_name(b, "input", name, 1);
  return hoist_set_input(b, (size_t)index, data, bytes);
}

hoist_status hoist_seed_inputs(hoist_bundle* b, uint64_t seed) {
  for (size_t i = 0; i < hoist_model_inputs(&b->plan); ++i) {
    const hoist_plan_input* input = &b->plan.inputs[i];
    const hoist_plan_array* array = &b->plan.arrays[input->array];
    uint64_t elements = 1;
    for (size_t k = 0; k < array->rank; ++k) elements *= (uint64_t)array->shape[k];
    void* data = calloc(array->bytes + 1, 1);
    if (!data) return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "%s: no memory for its data", array->name);
    if (array->scalar == HOIST_HOST_STRING) {
      hoist_seeded_strings(b, seed, (uint32_t)i, elements, data);
    } else {
      hoist_seeded(array->scalar, seed, (uint32_t)i, input->low, input->high, elements, data);
    }
    hoist_status status = hoist_seed_for_host(b, input->array, data);
    if (!status) status = hoist_set_words(b, i, data, array->bytes);
    free(data);
    if (status) return status;
  }
  return HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_check_inputs(hoist_bundle* b) {
  for (size_t i = 0; i < b->plan.input_count; ++i) {
    if (b->io.inputs[i].set) continue;
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "input %s has not been set",
                      b->plan.arrays[b->plan.inputs[i].array].name);
  }
  return HOIST_OK;
}

#ifndef HOIST_WITHOUT_OPENCL /* native kernels access the memory of the handle */

HOIST_INTERNAL hoist_status hoist_send_inputs(hoist_bundle* b, void* queue, hoist_send* send) {
  hoist_status status = hoist_check_inputs(b);
  for (size_t i = 0; i < b->plan.input_count && !status; ++i) {
    hoist_transfer* input = &b->io.inputs[i];
    const uint64_t bytes = b->plan.arrays[input->array].bytes;
    if (!input->pending && (!input->shared || input->in_place)) continue;
    if (bytes) status = send(b, queue, input->array, input->staged, bytes);
    if (!status) input->pending = 0;
  }
  return status;
}

HOIST_INTERNAL hoist_status hoist_fetch_outputs(hoist_bundle* b, void* queue, hoist_fetch* fetch) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.output_count && !status; ++i) {
    hoist_transfer* output = &b->io.outputs[i];
    const hoist_plan_array* array = &b->plan.arrays[output->array];
    if (!output->staged || output->in_place) continue;
    const int is_there = array->place == HOIST_PLACE_WEIGHTS && output->fresh; /* a constant is transferred once */
    if (array->bytes && !is_there) status = fetch(b, queue, output->array, output->staged, array->bytes);
    output->fresh = 1;
  }
  return status;
}

#endif

hoist_status hoist_read_array(hoist_bundle* b, size_t index, void* data, size_t bytes) {
  if (hoist_in_range(b, "array", index, b->plan.array_count)) return b->error.status;
  if (hoist_right_size(b, &b->plan.arrays[index], data, bytes)) return b->error.status;
  if (!bytes) return HOIST_OK;
  /* A staged input that no run has transferred yet is the array's content. */
  for (size_t i = 0; i < b->plan.input_count; ++i) {
    const hoist_transfer* t = &b->io.inputs[i];
    if (t->array == index && t->pending) {
      memcpy(data, t->staged, bytes);
      return HOIST_OK;
    }
  }
  return b->engine->read(b, index, data, bytes);
}

HOIST_INTERNAL hoist_status hoist_any_output(hoist_bundle* b, size_t index, void* data, size_t bytes) {
  const uint32_t number = b->plan.outputs[index];
  if (!b->run.has_run) {
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "output %s: the bundle has not run yet",
                      b->plan.arrays[number].name);
  }
  if (!b->io.outputs[index].fresh) return hoist_read_array(b, number, data, bytes);
  if (hoist_right_size(b, &b->plan.arrays[number], data, bytes)) return b->error.status;
  memcpy(data, b->io.outputs[index].staged, bytes);
  return HOIST_OK;
}

hoist_status hoist_get_output(hoist_bundle* b, size_t index, void* data, size_t bytes) {
  if (hoist_in_range(b, "output", index, b->plan.model_output_count)) return b->error.status;
  if (no_strings(b, &b->plan.arrays[b->plan.outputs[index]], "use hoist_get_output_strings")) return b->error.status;
  return hoist_any_output(b, index, data, bytes);
}

hoist_status hoist_output_shape(hoist_bundle* b, size_t index, int64_t* shape, size_t rank) {
  if (hoist_in_range(b, "output", index, b->plan.model_output_count)) return b->error.status;
  const hoist_plan_array* array = &b->plan.arrays[b->plan.outputs[index]];
  if (rank != array->rank || (!shape && rank)) {
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "output %s: space for %zu extents given, and it has %zu",
                      array->name, rank, array->rank);
  }
  for (size_t k = 0; k < rank; ++k) shape[k] = array->shape[k];
  for (size_t i = 0; i < b->plan.extent_count; ++i) {
    const hoist_plan_extent* extent = &b->plan.extents[i];
    int64_t count = 0;
    if (extent->output != index) continue;
    const hoist_status status = hoist_any_output(b, extent->count, &count, sizeof count);
    if (status) return status;
    const int64_t most = array->shape[extent->dimension];
    if (count < 0 || count > most) {
      return hoist_fail(&b->error, HOIST_BAD_EXTENT,
                        "output %s: has %lld elements along dimension %u, and its capacity is %lld (a number "
                        "among the inputs, such as a number of elements, is too large or negative)",
                        array->name, (long long)count, (unsigned)extent->dimension, (long long)most);
    }
    shape[extent->dimension] = count;
  }
  return HOIST_OK;
}

hoist_status hoist_get_output_named(hoist_bundle* b, const char* name, void* data, size_t bytes) {
  const int index = hoist_output_index(b, name);
  if (index < 0) return unknown_name(b, "output", name, 0);
  return hoist_get_output(b, (size_t)index, data, bytes);
}
