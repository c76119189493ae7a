/* Host ops between kernels, and the strings whose handles arrays hold. A handle's table has the strings of the plan
 * permanently, and the strings of a run until the next one begins: each input of strings has a table of its own, from
 * which a run copies them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include "backends/runtime/host_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HOIST_INTERNAL hoist_status hoist_add_string(hoist_bundle* b, hoist_string_table* table, const char* owner,
                                             const char* data, size_t length, uint64_t* word) {
  switch (hoist_string_add(table, data, length, word)) {
    case HOIST_STRING_KNOWN:
      return HOIST_OK;
    case HOIST_STRING_NO_MEMORY:
      return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "%s: no memory for its strings", owner);
    case HOIST_STRING_TOO_LONG:
      return hoist_fail(&b->error, HOIST_BAD_VALUE, "%s: a string of %zu bytes, the longest has %zu", owner, length,
                        HOIST_LONGEST_STRING);
    default:
      return hoist_fail(&b->error, HOIST_BAD_VALUE,
                        "%s: \"%.60s\" has the same hash of 64 bits as another string (change one of them by a "
                        "character)",
                        owner, data);
  }
}

HOIST_INTERNAL hoist_status hoist_open_strings(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  for (size_t i = 0; i < plan->kernel_count; ++i) {
    const hoist_host_operator* host = plan->kernels[i].host;
    if (!host || !host->is_missing) continue;
    return hoist_fail(&b->error, HOIST_NO_DEVICE,
                      "%s: the host op needs %s, and this program was built without it (the bundle's Makefile "
                      "and CMakeLists.txt show how to build with it)",
                      plan->kernels[i].name, host->library);
  }
  for (size_t i = 0; i < plan->string_count; ++i) {
    uint64_t word;
    const hoist_status status =
        hoist_add_string(b, &b->io.strings, "plan.bin", plan->strings[i].data, plan->strings[i].length, &word);
    if (status) return status;
  }
  hoist_strings_keep(&b->io.strings);
  b->io.given = calloc(plan->input_count + 1, sizeof *b->io.given);
  return b->io.given ? HOIST_OK : hoist_no_memory(&b->error, plan->input_count);
}

HOIST_INTERNAL void hoist_close_strings(hoist_bundle* b) {
  for (size_t i = 0; b->io.given && i < b->plan.input_count; ++i) hoist_strings_free(&b->io.given[i]);
  free(b->io.given);
  hoist_strings_free(&b->io.strings);
}

HOIST_INTERNAL void hoist_seeded_strings(const hoist_bundle* b, uint64_t seed, uint32_t parameter, uint64_t elements,
                                         uint64_t* words) {
  const size_t known = b->io.strings.kept;
  hoist_seeded(hoist_scalar_named("u64"), seed, parameter, 0, (double)known, elements, words);
  for (uint64_t i = 0; i < elements; ++i) words[i] = words[i] < known ? b->io.strings.entries[words[i]]->word : 0;
}

static hoist_host_array host_array(const hoist_plan_parameter* parameter, void* data) {
  const hoist_host_array out = {parameter->scalar, parameter->rank, parameter->shape, parameter->elements, data};
  return out;
}

HOIST_INTERNAL hoist_status hoist_seed_for_host(hoist_bundle* b, uint32_t array, void* data) {
  for (size_t i = 0; i < b->plan.step_count; ++i) {
    const hoist_plan_step* step = &b->plan.steps[i];
    const hoist_plan_kernel* kernel = &b->plan.kernels[step->kernel];
    if (!kernel->host || !kernel->host->seed || step->arguments[0] != array) continue;
    const size_t count = kernel->parameter_count;
    hoist_host_array* arrays = calloc(count, sizeof *arrays);
    if (!arrays) return hoist_no_memory(&b->error, count * sizeof *arrays);
    for (size_t k = 0; k < count; ++k) arrays[k] = host_array(&kernel->parameters[k], k ? NULL : data);
    const hoist_host_call call = {arrays, count - 1, &arrays[count - 1], &b->io.strings, ""};
    kernel->host->seed(&call);
    free(arrays);
  }
  return HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_begin_strings(hoist_bundle* b) {
  hoist_strings_forget(&b->io.strings);
  for (size_t i = 0; i < b->plan.input_count; ++i) {
    const hoist_string_table* given = &b->io.given[i];
    for (size_t k = 0; k < given->count; ++k) {
      uint64_t word;
      const hoist_status status = hoist_add_string(b, &b->io.strings, b->plan.arrays[b->plan.inputs[i].array].name,
                                                   given->entries[k]->data, given->entries[k]->length, &word);
      if (status) return status;
    }
  }
  return HOIST_OK;
}

/* Calls the function of a kernel that the plan's reader has checked; `memory` holds one pointer per argument. */
static hoist_status call_on_host(hoist_bundle* b, const hoist_plan_kernel* kernel, hoist_host_array* arrays,
                                 void* const* memory) {
  const size_t count = kernel->parameter_count;
  for (size_t i = 0; i < count; ++i) arrays[i] = host_array(&kernel->parameters[i], memory[i]);
  hoist_host_call call = {arrays, count - 1, &arrays[count - 1], &b->io.strings, ""};
  const int code = kernel->host->evaluate(&call);
  if (code == HOIST_HOST_OK) return HOIST_OK;
  const hoist_status status = code == HOIST_HOST_NO_MEMORY ? HOIST_OUT_OF_MEMORY
                              : code == HOIST_HOST_NO_ROOM ? HOIST_BAD_EXTENT
                                                           : HOIST_BAD_VALUE;
  return hoist_fail(&b->error, status, "%s, %s: %s", kernel->name, kernel->host->name, call.message);
}

static void* result_of(hoist_bundle* b, size_t step, size_t bytes) {
  if (!b->run.host_results) b->run.host_results = calloc(b->plan.step_count, sizeof *b->run.host_results);
  if (b->run.host_results && !b->run.host_results[step]) b->run.host_results[step] = malloc(bytes + 8);
  return b->run.host_results ? b->run.host_results[step] : NULL;
}

HOIST_INTERNAL void hoist_forget_host_results(hoist_bundle* b) {
  for (size_t i = 0; b->run.host_results && i < b->plan.step_count; ++i) free(b->run.host_results[i]);
  free(b->run.host_results);
  b->run.host_results = NULL;
}

/* The plan's reader has ensured that the result of a host op shares no memory with its operands. */
HOIST_INTERNAL hoist_status hoist_host_step(hoist_bundle* b, size_t i) {
  const hoist_plan_step* step = &b->plan.steps[i];
  const hoist_plan_kernel* kernel = &b->plan.kernels[step->kernel];
  const size_t count = kernel->parameter_count, last = count - 1;
  void** memory = calloc(count, sizeof *memory); /* memory of all arguments; the last one is the result */
  hoist_host_array* arrays = calloc(count, sizeof *arrays);
  /* The operands on the device, and copies of them. */
  uint32_t* on_device = calloc(count, sizeof *on_device);
  void** copies = calloc(count, sizeof *copies);
  size_t* bytes = calloc(count, sizeof *bytes);
  const int has_memory = memory && arrays && on_device && copies && bytes;
  hoist_status status = has_memory ? HOIST_OK : hoist_no_memory(&b->error, count * sizeof *arrays);
  size_t copied = 0;
  for (size_t k = 0; k < last && !status; ++k) {
    const size_t size = (size_t)kernel->parameters[k].bytes;
    memory[k] = b->engine->memory(b, step->arguments[k]);
    if (memory[k]) continue;
    memory[k] = copies[copied] = malloc(size + 8);
    if (!memory[k]) status = hoist_no_memory(&b->error, size);
    on_device[copied] = step->arguments[k];
    bytes[copied++] = size;
  }
  const size_t result_bytes = (size_t)kernel->parameters[last].bytes;
  void* held = status ? NULL : b->engine->memory(b, step->arguments[last]);
  if (!status) {
    /* A result for the device stays valid until it is transferred: the step's next run waits before it writes
     * another. */
    memory[last] = held ? held : result_of(b, i, result_bytes);
    if (!memory[last]) status = hoist_no_memory(&b->error, result_bytes);
  }
  if (!status && (copied || !held)) status = b->engine->read_all(b, copied, on_device, copies, bytes);
  if (!status) status = call_on_host(b, kernel, arrays, memory);
  if (!status && !held && result_bytes)
    status = b->engine->write_later(b, step->arguments[last], memory[last], result_bytes);
  for (size_t k = 0; copies && k < count; ++k) free(copies[k]);
  free(memory);
  free(arrays);
  free(on_device);
  free(copies);
  free(bytes);
  return status;
}
