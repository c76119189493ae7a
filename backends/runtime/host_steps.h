/* Host ops, and the strings of a plan and of a run. For the engines, transfers, and opening a bundle. */
#ifndef HOIST_HOST_STEPS_H
#define HOIST_HOST_STEPS_H

#include "backends/runtime/bundle_handle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fails if a host op is not available; registers the plan's strings. */
HOIST_INTERNAL hoist_status hoist_open_strings(hoist_bundle* bundle);
HOIST_INTERNAL void hoist_close_strings(hoist_bundle* bundle); /* also after an open that failed */
/* Fills `words` with handles of the plan's strings and of the empty string. */
HOIST_INTERNAL void hoist_seeded_strings(const hoist_bundle* bundle, uint64_t seed, uint32_t parameter,
                                         uint64_t elements, uint64_t* words);
/* Adds a string to a table; `owner` is named in messages. */
HOIST_INTERNAL hoist_status hoist_add_string(hoist_bundle* bundle, hoist_string_table* table, const char* owner,
                                             const char* data, size_t length, uint64_t* word);
/* Fills an input of a host op whose function does not accept arbitrary elements. */
HOIST_INTERNAL hoist_status hoist_seed_for_host(hoist_bundle* bundle, uint32_t array, void* data);
/* Drops the strings of the last run and adds the strings of the inputs. */
HOIST_INTERNAL hoist_status hoist_begin_strings(hoist_bundle* bundle);
/* Executes a host op. Waits for earlier steps if the device holds an operand, and queues the transfer of the result,
 * which may finish later. Arrays that the host holds are accessed in place. */
HOIST_INTERNAL hoist_status hoist_host_step(hoist_bundle* bundle, size_t index);
/* Releases the results of host ops; called when the device no longer reads them. */
HOIST_INTERNAL void hoist_forget_host_results(hoist_bundle* bundle);

#ifdef __cplusplus
}
#endif

#endif
