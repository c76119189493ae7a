/* Makes the constants of native kernels resident.
 *
 * Kernels read constants under masks, and a read of which no lane is on brings no page into memory: processors find out
 * in hundreds of cycles, each time, that the page which is not there is not needed. 262,144 comparisons that never hold
 * took 2.2 ms instead of 0.02 on a Zen 4. So every page of the libraries that kernels come in is read once, those that
 * an OpenCL driver for the CPU loads at the first launch too. */
#ifndef HOIST_LOADED_CODE_H
#define HOIST_LOADED_CODE_H

#include <stdint.h>

#include "backends/runtime/plan/plan_file.h"

/* How many libraries this process has loaded so far; 0 where the system does not say. */
HOIST_INTERNAL uint64_t hoist_loaded_libraries(void);
/* Reads a byte of every page of the libraries that were loaded since the number was *known, which it brings up to date.
 * Without a new library it costs less than a system call. */
HOIST_INTERNAL void hoist_touch_libraries(uint64_t* known);
#ifndef HOIST_WITHOUT_OPENCL
/* Calls `visit` with the path of every library of this process, in the order in which they were loaded; nowhere else
 * than on Linux. `visit` must not load any. */
HOIST_INTERNAL void hoist_visit_libraries(void (*visit)(const char* path, void* user), void* user);
#endif

#endif
