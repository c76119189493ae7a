/* Makes the constants of native kernels resident.
 *
 * Kernels load constants under masks, and a load without an active lane does not bring its page into memory. The
 * processor then takes hundreds of cycles, each time, to find that the missing page is not needed: 262,144 comparisons
 * that never hold took 2.2 ms instead of 0.02 ms on a Zen 4. So every page of the libraries that contain kernels is
 * read once, including libraries that an OpenCL driver for the CPU loads at the first launch. */
#ifndef HOIST_LOADED_CODE_H
#define HOIST_LOADED_CODE_H

#include <stdint.h>

#include "backends/runtime/plan/plan_file.h"

/* The number of libraries that this process has loaded so far; 0 if the system does not provide it. */
HOIST_INTERNAL uint64_t hoist_loaded_libraries(void);
/* Reads a byte of every page of the libraries loaded since the number was *known, and updates *known. Without a new
 * library it costs less than a system call. */
HOIST_INTERNAL void hoist_touch_libraries(uint64_t* known);
#ifndef HOIST_WITHOUT_OPENCL
/* Calls `visit` with the path of every library of this process, in load order; does nothing except on Linux. `visit`
 * must not load a library. */
HOIST_INTERNAL void hoist_visit_libraries(void (*visit)(const char* path, void* user), void* user);
#endif

#endif
