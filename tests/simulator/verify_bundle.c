/* verify_bundle kernels FOLDER: the bundle's self-check.
 * verify_bundle model FOLDER: runs the whole model twice in checking mode, once with arrays that are initially full of
 * NaN, and expects the same outputs. It uses only the runtime, since a simulator brings a compiler of its own, which
 * must not share a process with another one. */
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

/* Elements beyond the run's actual extents are undefined, and loops do not write them; they become zeros. */
static int clear_beyond(hoist_bundle* bundle, size_t output, const hoist_array* array, char* content) {
  int64_t found[16];
  size_t elements = 1;
  if (array->rank > sizeof found / sizeof *found || hoist_output_shape(bundle, output, found, array->rank)) return -1;
  for (size_t d = 0; d < array->rank; ++d) elements *= (size_t)array->shape[d];
  for (size_t i = 0; i < elements; ++i) {
    size_t rest = i;
    int inside = 1;
    for (size_t d = array->rank; d-- > 0; rest /= (size_t)array->shape[d])
      inside &= (int64_t)(rest % (size_t)array->shape[d]) < found[d];
    if (!inside) memset(content + i * (array->bytes / elements), 0, array->bytes / elements);
  }
  return 0;
}

/* The bytes of an output; each string of a string output is preceded by its length. NULL if it cannot be read. */
static char* content_of(hoist_bundle* bundle, size_t output, size_t* bytes) {
  hoist_array array;
  if (hoist_output(bundle, output, &array)) return NULL;
  char* content = malloc(array.bytes + 1);
  *bytes = array.bytes;
  if (!content) return NULL;
  if (strcmp(array.scalar, "string") != 0) {
    const int unread = hoist_get_output(bundle, output, content, array.bytes) != HOIST_OK;
    if (!unread && !clear_beyond(bundle, output, &array, content)) return content;
    free(content);
    return NULL;
  }
  const size_t count = array.bytes / 8;
  hoist_string* strings = calloc(count + 1, sizeof *strings);
  const int unread = !strings || hoist_get_output_strings(bundle, output, strings, count);
  *bytes = 0;
  for (size_t i = 0; i < count && !unread; ++i) *bytes += sizeof strings[i].length + strings[i].length;
  free(content);
  content = unread ? NULL : malloc(*bytes + 1);
  char* end = content;
  for (size_t i = 0; i < count && content; ++i) {
    memcpy(end, &strings[i].length, sizeof strings[i].length);
    memcpy(end + sizeof strings[i].length, strings[i].data, strings[i].length);
    end += sizeof strings[i].length + strings[i].length;
  }
  free(strings);
  return content;
}

static int differs(hoist_bundle* a, hoist_bundle* b, size_t output) {
  size_t bytes_of_a = 0, bytes_of_b = 0;
  char *from_a = content_of(a, output, &bytes_of_a), *from_b = content_of(b, output, &bytes_of_b);
  hoist_array array;
  const char* name = hoist_output(a, output, &array) ? "?" : array.name;
  const int unread = !from_a || !from_b;
  const int different = unread || bytes_of_a != bytes_of_b || memcmp(from_a, from_b, bytes_of_a) != 0;
  if (unread) {
    printf("failed output %s: %s\n", name, hoist_error_message(from_a ? b : a));
  } else if (different) {
    printf("failed output %s: depends on elements that nobody wrote\n", name);
  }
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
