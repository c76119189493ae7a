/* The progress of a run through the items of a plan, with If and Loop. For the engines, and for opening a bundle. */
#ifndef HOIST_CONTROL_H
#define HOIST_CONTROL_H

#include "backends/runtime/bundle_handle.h"

#ifdef __cplusplus
extern "C" {
#endif

HOIST_INTERNAL hoist_status hoist_open_controls(hoist_bundle* bundle);
HOIST_INTERNAL void hoist_close_controls(hoist_bundle* bundle); /* also after an open that failed */
/* Prepares hoist_next_step: a run begins, or continues at a later step. */
HOIST_INTERNAL void hoist_begin_items(hoist_bundle* bundle, size_t first);
/* The next step below `end` that the run executes, which the caller then executes; the number of steps if there is
 * none. Reads conditions, so it waits for the steps that compute them. */
HOIST_INTERNAL hoist_status hoist_next_step(hoist_bundle* bundle, size_t end, size_t* step);

#ifdef __cplusplus
}
#endif

#endif
