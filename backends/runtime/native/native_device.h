/* Native code: the targets that this processor supports, the functions of a bundle's kernels, and the threads that
 * share their groups. Internal to the runtime. */
#ifndef HOIST_NATIVE_DEVICE_H
#define HOIST_NATIVE_DEVICE_H

#include "backends/runtime/plan/plan_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Receives pointers to the first group (int32_t) and to the number of groups, to each open size (int32_t), then a
 * hoist_native_buffer per argument. */
typedef int (*hoist_native_function)(void** arguments);

/* Halide's halide_buffer_t; kernels know all shapes and only use `host`, which is a multiple of 64. */
typedef struct hoist_native_buffer {
  uint64_t device;
  const void* device_interface;
  unsigned char* host;
  uint64_t flags;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int32_t dimensions;
  void* dimension;
  void* padding;
} hoist_native_buffer;

/* The most demanding target of the bundle that this processor supports. */
HOIST_INTERNAL hoist_status hoist_native_choose(const hoist_plan* plan, const char** target, hoist_error* error);
/* The functions of all kernels for the target, from the table or, if that is NULL, from the bundle's shared library,
 * whose bytes are checked before they are loaded. *library has to be closed with hoist_native_unload, also after a
 * failure. */
HOIST_INTERNAL hoist_status hoist_native_load(const hoist_plan* plan, const char* target,
                                              const hoist_linked_kernel* linked, void** library,
                                              hoist_native_function* functions, hoist_error* error);
HOIST_INTERNAL void hoist_native_unload(void* library);

typedef struct hoist_native hoist_native; /* native_engine.c */

/* Threads that run steps: they poll for work briefly, then sleep. The caller is one of them. */
typedef struct hoist_workers hoist_workers;

/* `most_arguments` is the maximum of all functions, without the first two arguments. NULL: out of memory. Fewer
 * threads than requested are not a failure. */
HOIST_INTERNAL hoist_workers* hoist_workers_make(unsigned threads, size_t most_arguments);
HOIST_INTERNAL void hoist_workers_free(hoist_workers* workers);
HOIST_INTERNAL unsigned hoist_workers_count(const hoist_workers* workers);
/* Fewer operations do not justify waking a thread. */
#define HOIST_WAKING_OPERATIONS 400000
/* Wakes sleeping threads, because large steps follow. */
HOIST_INTERNAL void hoist_workers_wake(hoist_workers* workers);
/* Runs all groups of a kernel and returns when they are done, in the calling thread alone or shared by all awake
 * threads; many operations wake the others. The grid is grid[1] repetitions of grid[0] groups, which the threads
 * divide. */
HOIST_INTERNAL void hoist_workers_run(hoist_workers* workers, hoist_native_function function, void* const* arguments,
                                      size_t argument_count, const uint64_t grid[2], int64_t operations, int shared);
/* Processors that this process may use, at least 1. */
HOIST_INTERNAL unsigned hoist_processors(void);
/* A monotonic clock. */
HOIST_INTERNAL uint64_t hoist_nanoseconds(void);

#ifdef __cplusplus
}
#endif

#endif
