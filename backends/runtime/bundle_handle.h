/* An open bundle. Internal to the runtime and to backends/opencl. It knows its engine, the parts of a run and its
 * family of specialisations only as pointers; each has a header of its own.
 *
 * Every weight is a buffer of its own: alignment rules for sub-buffers differ by driver, and CPU devices use the
 * file's memory in place. The required memory is compared with the device's before any allocation, since a host may
 * overcommit and end the program at the first access. */
#ifndef HOIST_BUNDLE_HANDLE_H
#define HOIST_BUNDLE_HANDLE_H

#include "backends/runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hoist_family hoist_family; /* family.h */

/* The inputs and outputs of runs. */
typedef struct hoist_values {
  hoist_transfer *inputs, *outputs;
  hoist_transfer** in_place;  /* one per array; NULL if it is not an input or output in place */
  hoist_string_table strings; /* strings of the plan and of the last run */
  hoist_string_table* given;  /* one per input: the strings that it is set to */
} hoist_values;

/* The progress of the current run. */
typedef struct hoist_run_state {
  int has_run;
  int steps_apart;      /* each step is launched alone, including steps of fused launches */
  size_t next_item;     /* next item of the plan */
  uint64_t* iterations; /* one per control: completed iterations */
  uint64_t* step_runs;  /* one per step: number of executions */
  void** host_results;  /* one per executed host op: data that the device may still have to read */
} hoist_run_state;

struct hoist_bundle {
  hoist_error error;
  hoist_plan plan;
  const char* root; /* the bundle's folder, which contains the folders of specialisations */
  const hoist_engine* engine;
  hoist_target target;
  struct hoist_opencl* opencl; /* each engine's own state; the other pointer is NULL */
  struct hoist_native* native;
  hoist_options options;    /* for further sessions */
  int is_open;              /* no function changes the parts that sessions share from then on */
  unsigned char checking;   /* options.separate_buffers */
  hoist_file_bytes weights; /* stay while a CPU device uses them in place */
  size_t* weights_users; /* atomic: handles that use `weights`, which the last one drops; the program's handles only */
  const hoist_bundle* shares_with; /* while a session opens: the handle with the same plan whose parts it shares */
  hoist_family* family; /* all specialisations of the bundle, which share it and the weights; NULL if there is one */
  hoist_values io;
  hoist_run_state run;
  hoist_cache_entry cache_entry;
};

/* Fails unless the data have the bytes of the array. */
HOIST_INTERNAL hoist_status hoist_right_size(hoist_bundle* bundle, const hoist_plan_array* array, const void* data,
                                             size_t bytes);
HOIST_INTERNAL hoist_status hoist_in_range(hoist_bundle* bundle, const char* what, size_t index, size_t count);

/* Fails if the device has fewer bytes. Called before any allocation: the host may overcommit and end the program at
 * the first write. */
HOIST_INTERNAL hoist_status hoist_fits(hoist_bundle* bundle, const char* what, uint64_t bytes);
/* The sum, or UINT64_MAX on overflow. */
HOIST_INTERNAL uint64_t hoist_add(uint64_t a, uint64_t b);

/* Fails if the bundle does not fit into the device; its weights count unless another specialisation holds them. */
HOIST_INTERNAL hoist_status hoist_check_memory(hoist_bundle* bundle, int has_weights);
/* Reads or maps the file as bundle->weights and checks its size. The message goes into `error`, so that another thread
 * may read it. */
HOIST_INTERNAL hoist_status hoist_read_weights(hoist_bundle* bundle, hoist_error* error);
/* The initial byte of an array that is not a weight. */
HOIST_INTERNAL int hoist_first_byte(const hoist_bundle* bundle, const hoist_plan_array* array);

#ifdef __cplusplus
}
#endif

#endif
