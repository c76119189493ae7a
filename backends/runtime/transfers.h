/* Inputs and outputs of a run, between the program and the device. For the engines, for values and for checks. */
#ifndef HOIST_TRANSFERS_H
#define HOIST_TRANSFERS_H

#include "backends/runtime/bundle_handle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs, then outputs. */
HOIST_INTERNAL hoist_transfer* hoist_transfer_of(hoist_bundle* bundle, size_t i);
HOIST_INTERNAL hoist_status hoist_make_transfers(hoist_bundle* bundle);
HOIST_INTERNAL hoist_status hoist_check_inputs(hoist_bundle* bundle);
#ifndef HOIST_WITHOUT_OPENCL
/* Queue transfers in the engine's queue, and do not wait: inputs that the device does not have yet, before the first
 * launch, and outputs with staging memory, after the last. The functions are called for arrays of at least one byte. */
typedef hoist_status hoist_send(hoist_bundle* bundle, void* queue, size_t array, const void* data, size_t bytes);
typedef hoist_status hoist_fetch(hoist_bundle* bundle, void* queue, size_t array, void* data, size_t bytes);
HOIST_INTERNAL hoist_status hoist_send_inputs(hoist_bundle* bundle, void* queue, hoist_send* send);
HOIST_INTERNAL hoist_status hoist_fetch_outputs(hoist_bundle* bundle, void* queue, hoist_fetch* fetch);
#endif
/* Like hoist_set_input, for an array of any type. */
HOIST_INTERNAL hoist_status hoist_set_words(hoist_bundle* bundle, size_t index, const void* data, size_t bytes);
/* Like hoist_get_output; `index` may also name a count, which is not an output of the model. */
HOIST_INTERNAL hoist_status hoist_any_output(hoist_bundle* bundle, size_t index, void* data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
