/* All specialisations of a bundle: the sizes that it is compiled for, the open handles, and the weights on the device,
 * which all share. The functions do nothing for a bundle with one specialisation. */
#ifndef HOIST_FAMILY_H
#define HOIST_FAMILY_H

#include "backends/runtime/bundle_handle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The buffer of the first specialisation with these bytes of the weights. */
typedef struct hoist_shared_weights {
  uint64_t offset, bytes;
  void* buffer;
} hoist_shared_weights;

struct hoist_family {
  size_t count, in_use;
  hoist_bundle** others;         /* one per specialisation: NULL for the one in use and for unopened ones */
  hoist_options options;         /* options of all specialisations opened later, in the context of the first */
  char* cache_folder;            /* the memory of options.cache_folder */
  hoist_shared_weights* weights; /* sorted */
  size_t weights_count;
};

HOIST_INTERNAL hoist_status hoist_family_make(hoist_bundle* bundle, const hoist_options* options);
HOIST_INTERNAL void hoist_family_free(hoist_family* family); /* without its handles */
#ifndef HOIST_WITHOUT_OPENCL
/* From now on other specialisations may share the weights of this one, `buffer_of` of its arrays. */
HOIST_INTERNAL hoist_status hoist_share_weights(hoist_bundle* bundle,
                                                void* (*buffer_of)(const hoist_bundle* bundle, size_t array));
/* The buffer of another specialisation for the same bytes, or NULL. */
HOIST_INTERNAL void* hoist_shared_buffer(const hoist_bundle* bundle, const hoist_plan_array* array);
#endif
/* The plan of the first specialisation, which lists all of them. */
HOIST_INTERNAL const hoist_plan* hoist_root_plan(const hoist_bundle* bundle);
/* "batch=8, length=16" for the specialisation in use, "" if there is only one. */
HOIST_INTERNAL void hoist_sizes_text(const hoist_bundle* bundle, char* text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
