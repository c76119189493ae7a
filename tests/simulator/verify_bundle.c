/* Verifies the bundle in the folder that is named, and runs it twice in checking mode, with arrays that are full of NaN
 * at first and with others: the outputs have to be the same bytes. It needs the runtime alone, because a
 * simulator brings a compiler of its own, which should not share a process with another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/hoist_runtime.h"

enum { not_a_number = 255, tiny = 1 };

static void say(void* user, const hoist_finding* finding) {
  (void)user;
  if (!finding->passed) printf("failed %s: %s\n", finding->subject, finding->message);
}

static hoist_status open_and_run(const char* folder, int initial_byte, hoist_bundle** bundle) {
  const hoist_options options = {NULL, 0, initial_byte, 1, NULL};
  hoist_status status = hoist_open(folder, &options, bundle);
  if (!status && initial_byte == not_a_number) status = hoist_verify(*bundle, say, NULL);
  if (!status) status = hoist_seed_inputs(*bundle, 1);
  if (!status) status = hoist_run(*bundle);
  if (status) printf("failed %s: %s\n", folder, hoist_error_message(*bundle));
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
  if (count != 2) return 2;
  hoist_bundle *first = NULL, *second = NULL;
  int failed = open_and_run(words[1], not_a_number, &first) || open_and_run(words[1], tiny, &second);
  const size_t outputs = failed ? 0 : hoist_output_count(first);
  for (size_t i = 0; i < outputs; ++i) failed |= differs(first, second, i);
  if (!failed) printf("passed %zu steps on %s\n", hoist_step_count(first), hoist_device_name(first));
  hoist_close(first);
  hoist_close(second);
  return failed;
}
