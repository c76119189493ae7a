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

/* Gives the open sizes these values; a failure changes nothing. NULL: the largest ones. */
HOIST_INTERNAL hoist_status hoist_resize(hoist_bundle* bundle, const int64_t* sizes);
/* Adds a name to a list for a message, which is cut at its capacity. */
HOIST_INTERNAL void hoist_list_name(char* list, size_t capacity, const char* name);
/* As hoist_choose_size and hoist_choose_input_shape, for a bundle with open sizes. */
HOIST_INTERNAL hoist_status hoist_resize_by_name(hoist_bundle* bundle, const char* name, int64_t size);
HOIST_INTERNAL hoist_status hoist_resize_by_shape(hoist_bundle* bundle, size_t input, const int64_t* shape);

#ifdef __cplusplus
}
#endif

#endif
