/* runtime_faults FOLDER CACHE [all]: opens the bundle in FOLDER, runs and verifies it repeatedly, each time with
 * another failing call. After every fault, either the status reports it with a message or every result is right;
 * nothing stays allocated, open or alive on the device; the cache of compiled kernels in CACHE holds only whole
 * files; and without a fault everything works again. Prints the number of failed calls and the problems; the exit
 * code is 1 if there were any. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/runtime/hoist_runtime.h"
#include "tests/faults/faults.h"

enum { most_bytes = 1 << 20, most_complaints = 20, usual_stride = 16 };

/* The result of a scenario. */
typedef struct outcome {
  hoist_status status;
  const char* stage;
  char message[1200];
  int failed_findings;
  size_t bytes; /* bytes of all outputs, concatenated */
  unsigned char* outputs;
} outcome;

static unsigned char expected_bytes[most_bytes], found_bytes[most_bytes];
static double step_seconds[1024];
static long complaints, struck_calls, refused, absorbed;
static int whole_files; /* in the cache folder after a use without faults */

static void note_finding(void* user, const hoist_finding* finding) {
  if (!finding->passed) ++*(int*)user;
}

/* String inputs: only one plan has some. */
static hoist_status set_inputs(hoist_bundle* b, int in_place) {
  static const hoist_string words[] = {{"monday", 6}, {"", 0}, {"a\0b", 3}};
  hoist_status status = hoist_seed_inputs(b, 3);
  hoist_array array;
  void* memory;
  if (!status) status = hoist_input(b, 0, &array);
  if (!status && strcmp(array.scalar, "string") == 0)
    return hoist_set_input_strings(b, 0, words, sizeof words / sizeof *words);
  if (!status && in_place) status = hoist_input_memory(b, 0, &memory);
  return status;
}

static hoist_status read_strings(hoist_bundle* b, size_t index, size_t count, outcome* out) {
  hoist_string strings[16];
  if (count > sizeof strings / sizeof *strings) return HOIST_BAD_ARGUMENT;
  const hoist_status status = hoist_get_output_strings(b, index, strings, count);
  for (size_t i = 0; i < count && !status; ++i) {
    if (out->bytes + strings[i].length + 1 > most_bytes) return HOIST_BAD_ARGUMENT;
    memcpy(out->outputs + out->bytes, strings[i].data, strings[i].length + 1);
    out->bytes += strings[i].length + 1;
  }
  return status;
}

static hoist_status read_outputs(hoist_bundle* b, outcome* out) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < hoist_output_count(b) && !status; ++i) {
    hoist_array array;
    status = hoist_output(b, i, &array);
    if (status) break;
    if (strcmp(array.scalar, "string") == 0) {
      status = read_strings(b, i, array.bytes / 8, out);
      continue;
    }
    if (out->bytes + array.bytes > most_bytes) return HOIST_BAD_ARGUMENT;
    status = hoist_get_output(b, i, out->outputs + out->bytes, array.bytes);
    out->bytes += array.bytes;
  }
  return status;
}

/* Saves the states of `b`, opens a session of it, loads them there and runs it. */
static void use_session(hoist_bundle* b, const char* states, outcome* out) {
  hoist_bundle* session = NULL;
  out->stage = "hoist_save_states";
  out->status = hoist_save_states(b, states);
  if (out->status) {
    snprintf(out->message, sizeof out->message, "%s", hoist_error_message(b));
    return;
  }
  out->stage = "hoist_open_session";
  out->status = hoist_open_session(b, 0, &session);
  if (!out->status) {
    out->stage = "hoist_load_states";
    out->status = hoist_load_states(session, states);
  }
  if (!out->status) {
    out->stage = "a session's run";
    out->status = set_inputs(session, 0);
    if (!out->status) out->status = hoist_run(session);
    if (!out->status) out->status = read_outputs(session, out);
  }
  if (out->status) snprintf(out->message, sizeof out->message, "%s", hoist_error_message(session));
  hoist_close(session);
}

/* All uses of a bundle: compiles it and caches the result, runs, measures and verifies it; then, with a second
 * handle in the first one's context, runs the cached kernels; then, if it has states, a session of it. */
static void use_bundle(const char* folder, const hoist_options* options, outcome* out) {
  hoist_bundle *b = NULL, *first = NULL;
  hoist_options sharing = *options;
  hoist_device devices[4];
  out->stage = "hoist_devices";
  if (hoist_devices(devices, 4) == 0) {
    out->status = HOIST_NO_DEVICE; /* without a handle, no message can be stored */
    strcpy(out->message, "no device");
    return;
  }
  for (int round = 0; round < 2 && !out->status; ++round) {
    out->bytes = 0;
    out->stage = "hoist_open";
    sharing.context_of = first;
    out->status = hoist_open(folder, &sharing, &b);
    if (!out->status) {
      out->stage = "setting inputs";
      out->status = set_inputs(b, round);
    }
    if (!out->status) {
      out->stage = "hoist_run";
      out->status = hoist_run(b);
    }
    if (!out->status) {
      out->stage = "hoist_get_output";
      out->status = read_outputs(b, out);
    }
    if (!out->status && round == 0) {
      out->stage = "hoist_profile";
      if (hoist_step_count(b) <= sizeof step_seconds / sizeof *step_seconds)
        out->status = hoist_profile(b, step_seconds);
      if (!out->status) {
        out->stage = "hoist_verify";
        out->status = hoist_verify(b, note_finding, &out->failed_findings);
      }
    }
    if (out->status) snprintf(out->message, sizeof out->message, "%s", hoist_error_message(b));
    if (round) hoist_close(first);
    first = b;
  }
  if (!out->status && hoist_state_count(first) > 0) {
    char states[4096];
    snprintf(states, sizeof states, "%s/states.bin", options->cache_folder);
    use_session(first, states, out);
  }
  hoist_close(first);
  if (!out->status) {
    out->stage = "hoist_verify_files";
    out->status = hoist_verify_files(folder, NULL, NULL, out->message, sizeof out->message);
  }
}

/* Files of the cache folder, which holds the saved states too: whole ones end in ".bin". */
static int count_files(const char* folder, int whole) {
  int count = 0;
  DIR* open = opendir(folder);
  if (!open) return 0;
  for (struct dirent* found; (found = readdir(open));) {
    const size_t length = strlen(found->d_name);
    const int is_whole = length > 4 && strcmp(found->d_name + length - 4, ".bin") == 0;
    if (found->d_name[0] != '.' && is_whole == whole) ++count;
  }
  closedir(open);
  return count;
}

static void remove_files(const char* folder) {
  char path[4096];
  DIR* open = opendir(folder);
  if (!open) return;
  for (struct dirent* found; (found = readdir(open));) {
    if (found->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, found->d_name);
    unlink(path);
  }
  closedir(open);
  rmdir(folder);
}

typedef struct fault {
  fault_kind kind;
  int lasting;
  long n;
} fault;

static void complain(const fault* f, const char* function, const outcome* out, const char* what) {
  if (++complaints > most_complaints) return;
  printf("failed %s call %ld%s (%s): %s; status %s in %s, \"%s\"\n", fault_kind_name(f->kind), f->n,
         f->lasting ? " and all later ones" : "", function, what, hoist_status_name(out->status), out->stage,
         out->message);
}

static int is_right(const outcome* out, const outcome* expected) {
  return out->bytes == expected->bytes && memcmp(out->outputs, expected->outputs, out->bytes) == 0 &&
         out->failed_findings == 0;
}

/* Runs with one fault and, if `again`, once more without. Returns true if the fault occurred. */
static int try_fault(const char* folder, const hoist_options* options, const fault* f, const outcome* expected,
                     int again) {
  outcome out = {.outputs = found_bytes, .stage = ""};
  const long blocks = fault_live_blocks(), files = fault_live_files(), objects = fault_live_objects();
  remove_files(options->cache_folder);
  fault_arm(f->kind, f->n, f->lasting);
  use_bundle(folder, options, &out);
  fault_disarm();
  const char* function = fault_struck();
  if (!function) return 0;
  ++struck_calls;
  if (out.status)
    ++refused;
  else
    ++absorbed;
  const int is_none = f->kind == FAULT_SHORT || f->kind == FAULT_INTERRUPT;
  if (out.status && is_none) complain(f, function, &out, "no failure, and refused");
  if (out.status && !out.message[0]) complain(f, function, &out, "no message");
  if (out.status == HOIST_MISMATCH) complain(f, function, &out, "called a mismatch");
  if (!out.status && !is_right(&out, expected)) complain(f, function, &out, "wrong numbers");
  if (fault_live_blocks() != blocks) complain(f, function, &out, "memory is not given back");
  if (fault_live_files() != files) complain(f, function, &out, "files stay open");
  if (fault_live_objects() != objects) complain(f, function, &out, "objects of OpenCL stay");
  const int could_remove = strcmp(function, "unlink") != 0 && !(f->kind == FAULT_FILE && f->lasting);
  if (could_remove && count_files(options->cache_folder, 0))
    complain(f, function, &out, "a part of a cache entry stays");
  if (!again) return 1;
  outcome after = {.outputs = found_bytes, .stage = ""};
  use_bundle(folder, options, &after);
  if (after.status || !is_right(&after, expected)) complain(f, function, &after, "a run without faults fails after it");
  if (count_files(options->cache_folder, 1) != whole_files)
    complain(f, function, &after, "the cache has no entry after it");
  return 1;
}

int main(int count, char** words) {
  static const struct {
    fault_kind kind;
    int lasting;
  } ways[] = {{FAULT_MEMORY, 0}, {FAULT_MEMORY, 1}, {FAULT_FILE, 0},      {FAULT_FILE, 1},   {FAULT_DISK, 0},
              {FAULT_DISK, 1},   {FAULT_SHORT, 0},  {FAULT_INTERRUPT, 0}, {FAULT_OPENCL, 0}, {FAULT_OPENCL, 1}};
  if (count != 3 && !(count == 4 && strcmp(words[3], "all") == 0)) return 2;
  /* All parts of the runtime: arrays in place and in an arena, and with a buffer for each array on a sub-device. */
  const hoist_options all_options[] = {{.cache_folder = words[2]},
                                       {.threads = 1, .separate_buffers = 255, .cache_folder = words[2]}};
  for (size_t o = 0; o < sizeof all_options / sizeof *all_options; ++o) {
    outcome expected = {.outputs = expected_bytes, .stage = ""};
    remove_files(words[2]);
    use_bundle(words[1], &all_options[o], &expected);
    if (expected.status || expected.failed_findings) {
      printf("failed without a fault in %s: %s\n", expected.stage, expected.message);
      return 1;
    }
    whole_files = count_files(words[2], 1);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w) {
      fault f = {ways[w].kind, ways[w].lasting, 1};
      const int leaves_files = f.kind == FAULT_FILE || f.kind == FAULT_DISK;
      const long before = struck_calls, stride = count == 3 && (o || f.lasting) ? usual_stride : 1;
      while (
          try_fault(words[1], &all_options[o], &f, &expected, leaves_files || count == 4 || f.n % usual_stride == 1)) {
        f.n += stride;
      }
      printf("%s%s, options %zu: %ld calls\n", fault_kind_name(f.kind), f.lasting ? " from there on" : "", o,
             struck_calls - before);
      fflush(stdout);
    }
  }
  printf("%ld faults: %ld refused, %ld without effect, %ld complaints\n", struck_calls, refused, absorbed, complaints);
  return complaints ? 1 : 0;
}
