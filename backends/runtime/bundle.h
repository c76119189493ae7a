/* Opening and closing one specialisation of a bundle. */
#ifndef HOIST_BUNDLE_H
#define HOIST_BUNDLE_H

#include "backends/runtime/bundle_handle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the engine for a plan that has been read, without its other specialisations; hoist_close_parts closes it and
 * frees the handle. */
HOIST_INTERNAL hoist_status hoist_open_parts(hoist_bundle* bundle, const hoist_options* options);
HOIST_INTERNAL void hoist_close_parts(hoist_bundle* bundle);

#ifdef __cplusplus
}
#endif

#endif
