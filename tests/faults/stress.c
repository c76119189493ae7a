/* Stress tests of the C runtime: many threads and many runs. Every output is compared bit for bit with the output of
 * one thread.
 *   stress threads FOLDER N   eight threads, N runs each: with a handle each, then with handles that share a context;
 *                             each thread opens and closes its own
 *   stress runs FOLDER N      N runs of one handle, and between them another handle is opened and closed 400 times;
 * memory must not grow
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/runtime/hoist_runtime.h"

enum { thread_count = 8, most_bytes = 1 << 16, warm_up_handles = 40, most_handles = 400, allowed_growth = 1 << 20 };

typedef struct answer {
  size_t bytes;
  unsigned char data[most_bytes];
} answer;

static const char* folder;
static long run_count;

static hoist_status run_once(hoist_bundle* b, uint64_t seed, answer* out) {
  hoist_status status = hoist_seed_inputs(b, seed);
  if (!status) status = hoist_run(b);
  out->bytes = 0;
  for (size_t i = 0; i < hoist_output_count(b) && !status; ++i) {
    hoist_array array;
    status = hoist_output(b, i, &array);
    if (status || out->bytes + array.bytes > most_bytes) return status ? status : HOIST_BAD_ARGUMENT;
    status = hoist_get_output(b, i, out->data + out->bytes, array.bytes);
    out->bytes += array.bytes;
  }
  return status;
}

static int is_same(const answer* a, const answer* b) {
  return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

static int complain(const char* what, const hoist_bundle* b) {
  printf("failed %s: %s\n", what, hoist_error_message(b));
  return 1;
}

typedef struct job {
  uint64_t seed;
  const hoist_bundle* context_of;
  const answer* expected;
  int failed;
} job;

static void* run_job(void* argument) {
  job* work = argument;
  hoist_options options = {.context_of = work->context_of};
  hoist_bundle* b = NULL;
  answer* found = calloc(1, sizeof *found);
  work->failed = !found || (hoist_open(folder, &options, &b) && complain("to open", b));
  for (long i = 0; i < run_count && !work->failed; ++i) {
    if (run_once(b, work->seed, found)) work->failed = complain("to run", b);
    if (!is_same(found, work->expected)) work->failed = complain("to compute the same as one thread", b);
  }
  hoist_close(b);
  free(found);
  return NULL;
}

static int run_threads(const hoist_bundle* context_of, const answer* expected) {
  pthread_t threads[thread_count];
  job jobs[thread_count];
  int failed = 0, started = 0;
  for (; started < thread_count; ++started) {
    jobs[started] = (job){(uint64_t)started, context_of, &expected[started], 0};
    if (pthread_create(&threads[started], NULL, run_job, &jobs[started])) break;
  }
  for (int i = 0; i < started; ++i) {
    pthread_join(threads[i], NULL);
    failed |= jobs[i].failed;
  }
  return failed || started < thread_count;
}

/* Threads with a context each come first, since the first context also prepares the process for OpenCL. */
static int stress_threads(void) {
  static answer expected[thread_count], unknown[thread_count];
  hoist_bundle* b = NULL;
  const long runs = run_count;
  run_count = 0;
  int failed = run_threads(NULL, unknown);
  run_count = runs;
  if (hoist_open(folder, NULL, &b)) failed = complain("to open", b);
  for (int i = 0; i < thread_count && !failed; ++i) {
    if (run_once(b, (uint64_t)i, &expected[i])) failed = complain("to run", b);
  }
  if (!failed) failed = run_threads(NULL, expected);
  if (!failed) failed = run_threads(b, expected);
  hoist_close(b);
  if (!failed) printf("passed %d threads of %ld runs, with a context each and with one for all\n", thread_count, runs);
  return failed;
}

static long resident_bytes(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static int open_and_run(const answer* expected, answer* found) {
  hoist_bundle* b = NULL;
  int failed = hoist_open(folder, NULL, &b) && complain("to open", b);
  if (!failed && run_once(b, 0, found)) failed = complain("to run", b);
  if (!failed && expected && !is_same(found, expected)) failed = complain("to compute the same in another handle", b);
  hoist_close(b);
  return failed;
}

static int stress_runs(void) {
  static answer expected, found;
  hoist_bundle* b = NULL;
  int failed = open_and_run(NULL, &expected) || (hoist_open(folder, NULL, &b) && complain("to open", b));
  for (int i = 0; i < warm_up_handles && !failed; ++i) failed = open_and_run(&expected, &found);
  const long before = resident_bytes(), stride = run_count > most_handles ? run_count / most_handles : 1;
  for (long i = 0; i < run_count && !failed; ++i) {
    if (run_once(b, 0, &found)) failed = complain("to run", b);
    if (!failed && !is_same(&found, &expected)) failed = complain("to compute the same again", b);
    if (!failed && i % stride == 0) failed = open_and_run(&expected, &found);
  }
  hoist_close(b);
  const long growth = resident_bytes() - before;
  printf("%s %ld runs: %ld KiB at first, %ld KiB more at the end\n", failed ? "failed" : "passed", run_count,
         before / 1024, growth / 1024);
  if (growth <= allowed_growth) return failed;
  printf("failed: memory grows\n");
  return 1;
}

int main(int count, char** words) {
  if (count != 4) return 2;
  folder = words[2];
  run_count = atol(words[3]);
  if (strcmp(words[1], "threads") == 0) return stress_threads();
  if (strcmp(words[1], "runs") == 0) return stress_runs();
  return 2;
}
