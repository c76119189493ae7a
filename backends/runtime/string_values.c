/* Inputs and outputs of strings. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include <stdlib.h>

#include "backends/runtime/host_steps.h"
#include "backends/runtime/transfers.h"

static hoist_status holds_strings(hoist_bundle* b, const hoist_plan_array* array, size_t count) {
  if (array->scalar != HOIST_HOST_STRING) {
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: holds %s, not strings", array->name,
                      hoist_scalar_row(array->scalar)->name);
  }
  if (count == array->bytes / 8) return HOIST_OK;
  return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: %zu strings given, and the array has %llu", array->name, count,
                    (unsigned long long)(array->bytes / 8));
}

hoist_status hoist_set_input_strings(hoist_bundle* b, size_t index, const hoist_string* strings, size_t count) {
  if (hoist_in_range(b, "input", index, b->plan.input_count)) return b->error.status;
  const hoist_plan_array* array = &b->plan.arrays[b->plan.inputs[index].array];
  hoist_status status = holds_strings(b, array, count);
  if (status) return status;
  if (count && !strings) return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: no strings given", array->name);
  uint64_t* words = malloc((count + 1) * sizeof *words);
  if (!words) return hoist_no_memory(&b->error, count * sizeof *words);
  b->io.inputs[index].set = 0;
  hoist_strings_forget(&b->io.given[index]);
  for (size_t i = 0; i < count && !status; ++i) {
    status = hoist_add_string(b, &b->io.given[index], array->name, strings[i].data, strings[i].length, &words[i]);
  }
  if (!status) status = hoist_set_words(b, index, words, count * sizeof *words);
  free(words);
  return status;
}

static void look_up_strings(const hoist_bundle* b, const uint64_t* words, hoist_string* strings, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const hoist_string_entry* entry = hoist_string_find(&b->io.strings, words[i]);
    strings[i].data = entry ? entry->data : NULL;
    strings[i].length = entry ? entry->length : 0;
  }
}

hoist_status hoist_get_output_strings(hoist_bundle* b, size_t index, hoist_string* strings, size_t count) {
  if (hoist_in_range(b, "output", index, b->plan.model_output_count)) return b->error.status;
  const hoist_plan_array* array = &b->plan.arrays[b->plan.outputs[index]];
  hoist_status status = holds_strings(b, array, count);
  if (status) return status;
  if (count && !strings) return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: no room given", array->name);
  uint64_t* words = malloc((count + 1) * sizeof *words);
  if (!words) return hoist_no_memory(&b->error, count * sizeof *words);
  status = hoist_any_output(b, index, words, count * sizeof *words);
  if (!status) look_up_strings(b, words, strings, count);
  free(words);
  for (size_t i = 0; i < count && !status; ++i) {
    if (strings[i].data) continue;
    status = hoist_fail(&b->error, HOIST_BAD_VALUE, "output %s: element %zu holds no string", array->name, i);
  }
  return status;
}

hoist_status hoist_read_strings(hoist_bundle* b, size_t index, hoist_string* strings, size_t count) {
  if (hoist_in_range(b, "array", index, b->plan.array_count)) return b->error.status;
  hoist_status status = holds_strings(b, &b->plan.arrays[index], count);
  if (status) return status;
  uint64_t* words = malloc((count + 1) * sizeof *words);
  if (!words) return hoist_no_memory(&b->error, count * sizeof *words);
  status = hoist_read_array(b, index, words, count * sizeof *words);
  if (!status) look_up_strings(b, words, strings, count);
  free(words);
  return status;
}
