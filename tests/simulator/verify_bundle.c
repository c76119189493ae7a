/* verify_bundle kernels FOLDER: the bundle's self-check.
 * verify_bundle model FOLDER: runs the whole model twice in checking mode, with arrays that are full of NaN at first
 * and with others, and demands the same outputs. It needs the runtime alone, because a simulator brings a compiler of
 * its own, which should not share a process with another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/hoist_runtime.h"

enum { not_a_number = 255, tiny = 1 };

static void say(void* user, const hoist_finding* finding) {
  (void)user;
  if (!finding->passed) printf("failed %s: %s\n", finding->subject, finding->message);
}

static hoist_status open_in_checking_mode(const char* folder, int initial_byte, hoist_bundle** bundle) {
  const hoist_options options = {.separate_buffers = initial_byte, .no_cache = 1};
  return hoist_open(folder, &options, bundle);
}

static hoist_status verify_kernels(const char* folder, hoist_bundle** bundle) {
  hoist_status status = open_in_checking_mode(folder, not_a_number, bundle);
  if (!status) status = hoist_verify(*bundle, say, NULL);
  return status;
}

static hoist_status run_model(const char* folder, int initial_byte, hoist_bundle** bundle) {
  hoist_status status = open_in_checking_mode(folder, initial_byte, bundle);
  if (!status) status = hoist_seed_inputs(*bundle, 1);
  if (!status) status = hoist_run(*bundle);
  return status;
}

static int differs(hoist_bundle* a, hoist_bundle* b, size_t output) {
  hoist_array array;
  if (hoist_output(a, output, &array)) return 1;
  unsigned char *from_a = malloc(array.bytes + 1), *from_b = malloc(array.bytes + 1);
  const int different = !from_a || !from_b || hoist_get_output(a, output, from_a, array.bytes) ||
                        hoist_get_output(b, output, from_b, array.bytes) || memcmp(from_a, from_b, array.bytes) != 0;
  if (different) printf("failed output %s: depends on elements that nobody wrote\n", array.name);
  free(from_a);
  free(from_b);
  return different;
}

int main(int count, char** words) {
  if (count != 3) return 2;
  const int model = strcmp(words[1], "model") == 0;
  hoist_bundle *first = NULL, *second = NULL;
  hoist_status status = model ? run_model(words[2], not_a_number, &first) : verify_kernels(words[2], &first);
  if (!status && model) status = run_model(words[2], tiny, &second);
  int failed = status != HOIST_OK;
  if (failed) printf("failed: %s\n", hoist_error_message(second ? second : first));
  const size_t outputs = model && !failed ? hoist_output_count(first) : 0;
  for (size_t i = 0; i < outputs; ++i) failed |= differs(first, second, i);
  if (!failed) printf("passed %zu steps on %s\n", hoist_step_count(first), hoist_device_name(first));
  hoist_close(first);
  hoist_close(second);
  return failed;
}
