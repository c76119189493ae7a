/* Native code: which targets this processor can run, the functions of a bundle's kernels, and the threads that share
 * their groups. Internal to the runtime. */
#ifndef HOIST_NATIVE_DEVICE_H
#define HOIST_NATIVE_DEVICE_H

#include "backends/runtime/plan/plan_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pointers to the first group (int32_t) and to the number of groups, then to a hoist_native_buffer an argument. */
typedef int (*hoist_native_function)(void** arguments);

/* Halide's halide_buffer_t; kernels know all shapes and read `host` alone, which is a multiple of 64. */
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

/* The bundle's target that needs most of those that this processor has. */
HOIST_INTERNAL hoist_status hoist_native_choose(const hoist_plan* plan, const char** target, hoist_error* error);
/* The functions of all kernels for the target, from the table or, where that is NULL, from the bundle's shared library,
 * whose bytes are checked before they are loaded. *library is to be closed with hoist_native_unload, also after a
 * failure. */
HOIST_INTERNAL hoist_status hoist_native_load(const hoist_plan* plan, const char* target,
                                              const hoist_linked_kernel* linked, void** library,
                                              hoist_native_function* functions, hoist_error* error);
HOIST_INTERNAL void hoist_native_unload(void* library);

typedef struct hoist_native hoist_native; /* native_engine.c */

/* Threads that wait for work: they look for it for a moment, then sleep. The caller is one of them. */
typedef struct hoist_workers hoist_workers;

/* `most_arguments` of any function, without the first two. NULL: out of memory. Fewer threads than asked for are no
 * failure. */
HOIST_INTERNAL hoist_workers* hoist_workers_make(unsigned threads, size_t most_arguments);
HOIST_INTERNAL void hoist_workers_free(hoist_workers* workers);
HOIST_INTERNAL unsigned hoist_workers_count(const hoist_workers* workers);
/* Fewer operations are no reason to wake a thread that sleeps. */
#define HOIST_WAKING_OPERATIONS 400000
/* Those that sleep get up, because steps follow that are worth it. */
HOIST_INTERNAL void hoist_workers_wake(hoist_workers* workers);
/* All groups of a kernel; returns when they are done. By the caller alone, or shared by all threads that are awake;
 * many operations wake the others. grid[0] groups, of which each thread has a part, follow on one another grid[1]
 * times. */
HOIST_INTERNAL void hoist_workers_run(hoist_workers* workers, hoist_native_function function,
                                      hoist_native_buffer* const* arguments, size_t argument_count,
                                      const uint64_t grid[2], int64_t operations, int shared);
/* Processors that this process may use, at least 1. */
HOIST_INTERNAL unsigned hoist_processors(void);
/* Of a clock that nobody sets. */
HOIST_INTERNAL uint64_t hoist_nanoseconds(void);

#ifdef __cplusplus
}
#endif

#endif
