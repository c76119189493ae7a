/* Values that live between runs. Internal to the runtime: runs and the self-check. */
#ifndef HOIST_STATES_H
#define HOIST_STATES_H

#include "backends/runtime/bundle_handle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After a run with all steps: every state has the value that the run wrote. */
HOIST_INTERNAL hoist_status hoist_advance_states(hoist_bundle* bundle);
/* The part of the self-check that runs a sequence twice: each state has the value that the run before wrote, and a
 * reset brings the same values again. The states then have their initial values. */
HOIST_INTERNAL hoist_status hoist_verify_states(hoist_bundle* bundle, uint64_t seed, hoist_report report, void* user,
                                                hoist_error* first);

#ifdef __cplusplus
}
#endif

#endif
