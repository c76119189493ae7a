/* An open bundle, and the engine that runs its kernels. Internal to the runtime and to backends/opencl.
 *
 * Kernels are OpenCL C for a device (opencl_engine.c) or native code for this processor (native_engine.c); the rest of
 * the runtime uses an engine only through its functions. With HOIST_WITHOUT_OPENCL only native code is available, and
 * no header or library of OpenCL is needed.
 *
 * Every weight is a buffer of its own: alignment rules for sub-buffers differ by driver, and CPU devices use the
 * file's memory in place. The required memory is compared with the device's before any allocation, since a host may
 * overcommit and end the program at the first access. */
#ifndef HOIST_BUNDLE_HANDLE_H
#define HOIST_BUNDLE_HANDLE_H

#include "backends/runtime/native/loaded_code.h"
#include "backends/runtime/native/native_device.h"
#include "backends/runtime/opencl/opencl_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Small inputs and outputs are copied through memory of the handle, inside the run's own command queue: on PoCL a
 * separate transfer with a wait costs as much as three kernels. If the device computes in the program's memory, inputs
 * and outputs of any size are in memory of the handle and are not copied at all. */
#define HOIST_STAGED_BYTES 65536u

typedef struct hoist_transfer {
  uint32_t array;
  unsigned char* staged; /* NULL if data is copied directly between the caller's memory and the device */
  void* pinned;          /* the driver's buffer that provides staged; NULL: staged belongs to free() */
  int in_place;          /* staged is the buffer's own memory; the host holds it between runs */
  int host_holds;        /* it is mapped */
  int shared;            /* the caller accesses staged directly */
  int set;               /* inputs: has a value */
  int pending;           /* inputs: the staged value is not on the device yet */
  int fresh;             /* outputs: staged holds the result of the last run */
} hoist_transfer;

/* An argument of a kernel that is checked alone: memory between two guards that the kernel must not change. */
typedef struct hoist_argument {
#ifndef HOIST_WITHOUT_OPENCL
  cl_mem whole; /* NULL without guards */
  cl_mem part;
  uint64_t address; /* CUDA: address of the guard */
#endif
  unsigned char* memory; /* native code: memory, which starts with the guard */
  size_t guard;
} hoist_argument;

/* The functions that run kernels. Every function but drop_argument and guard_alignment stores its error message in the
 * handle. An engine that runs neither host ops nor control flow has no memory, write_later, copy and set_number. */
typedef struct hoist_engine {
  const char* name;
  hoist_status (*open)(hoist_bundle* bundle, const hoist_options* options);
  void (*close)(hoist_bundle* bundle); /* also after an open that failed */
  hoist_status (*write)(hoist_bundle* bundle, size_t array, const void* data, size_t bytes);
  hoist_status (*read)(hoist_bundle* bundle, size_t array, void* data, size_t bytes);
  /* Reads several arrays, with one wait for all of them. */
  hoist_status (*read_all)(hoist_bundle* bundle, size_t count, const uint32_t* arrays, void* const* data,
                           const size_t* bytes);
  /* The array's bytes if the host may access them now; NULL if the device holds them. A device takes over memory at
   * its first use in a run and returns it at the end of the run. */
  unsigned char* (*memory)(hoist_bundle* bundle, size_t array);
  /* `data` must not change until the device has it, which the next wait of any function here ensures. */
  hoist_status (*write_later)(hoist_bundle* bundle, size_t array, const void* data, size_t bytes);
  /* Copies the start of the first array to byte `offset` of the second; set_number writes one i64. Neither has to
   * wait. */
  hoist_status (*copy)(hoist_bundle* bundle, size_t from, size_t to, size_t offset, size_t bytes);
  hoist_status (*set_number)(hoist_bundle* bundle, size_t array, int64_t number);
  /* Allocates `bytes` bytes of staging memory; true on success. */
  int (*stage)(hoist_bundle* bundle, hoist_transfer* transfer, uint64_t bytes);
  /* Both wait. `run` continues to the end of the plan with outputs, else it stops after the last of the steps. */
  hoist_status (*run)(hoist_bundle* bundle, size_t first, size_t count, int with_outputs);
  hoist_status (*profile)(hoist_bundle* bundle, double* step_seconds);
  /* `data` is copied: a guard, `bytes` bytes, a guard. */
  hoist_status (*make_argument)(hoist_bundle* bundle, const char* kernel, size_t bytes, size_t guard,
                                unsigned char* data, hoist_argument* made);
  /* `from` counts from the first guard. */
  hoist_status (*read_argument)(hoist_bundle* bundle, const char* kernel, const hoist_argument* argument, size_t from,
                                size_t bytes, void* data);
  void (*drop_argument)(hoist_bundle* bundle, hoist_argument* argument); /* allowed for an argument of zeros */
  hoist_status (*run_kernel)(hoist_bundle* bundle, const hoist_plan_kernel* kernel, const hoist_argument* arguments);
  size_t (*guard_alignment)(const hoist_bundle* bundle);
} hoist_engine;
#ifndef HOIST_WITHOUT_OPENCL
HOIST_INTERNAL const hoist_engine* hoist_opencl_engine(void);
/* Opened and closed by the OpenCL engine, see hoist_cuda_open. */
HOIST_INTERNAL const hoist_engine* hoist_cuda_engine(void);
#endif
HOIST_INTERNAL const hoist_engine* hoist_native_engine(void);

typedef struct hoist_family hoist_family;

/* The inputs and outputs of runs. */
typedef struct hoist_values {
  hoist_transfer *inputs, *outputs;
  hoist_transfer** in_place;  /* one per array; NULL if it is no input or output in place */
  hoist_string_table strings; /* strings of the plan and of the last run */
  hoist_string_table* given;  /* one per input: the strings that it is set to */
} hoist_values;

/* The progress of the current run. */
typedef struct hoist_run_state {
  int has_run;
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
  size_t device_index;
  struct hoist_opencl* opencl; /* each engine's own state; the other pointer is NULL */
  hoist_native* native;
  int steps_apart;        /* each step is launched alone, including steps of fused launches */
  unsigned char checking; /* options.separate_buffers */
  unsigned char* weights; /* the file; stays while a CPU device uses it in place */
  hoist_family* family;   /* all specialisations of the bundle, which share it and the weights; NULL if there is one */
  hoist_values io;
  hoist_run_state run;
  hoist_cache_entry cache_entry;
};

/* Opens the engine for a plan that has been read, without its other specialisations; hoist_close_parts closes it and
 * frees the handle. */
HOIST_INTERNAL hoist_status hoist_open_parts(hoist_bundle* bundle, const hoist_options* options);
HOIST_INTERNAL void hoist_close_parts(hoist_bundle* bundle);

/* specialisations.c, for bundles with several specialisations; the functions do nothing for others. */
HOIST_INTERNAL hoist_status hoist_family_make(hoist_bundle* bundle, const hoist_options* options);
HOIST_INTERNAL void hoist_family_close(hoist_family* family);
/* From now on other specialisations may share the weights of this one. */
HOIST_INTERNAL hoist_status hoist_family_opened(hoist_bundle* bundle);
#ifndef HOIST_WITHOUT_OPENCL
/* The buffer of an array. */
HOIST_INTERNAL cl_mem hoist_opencl_buffer(const hoist_bundle* bundle, size_t array);
/* The buffer of another specialisation for the same bytes, or NULL. */
HOIST_INTERNAL cl_mem hoist_family_weights(const hoist_bundle* bundle, const hoist_plan_array* array);
#endif
/* The plan of the first specialisation, which lists all of them. */
HOIST_INTERNAL const hoist_plan* hoist_root_plan(const hoist_bundle* bundle);
/* "batch=8, length=16" for the specialisation in use, "" if there is only one. */
HOIST_INTERNAL void hoist_sizes_text(const hoist_bundle* bundle, char* text, size_t capacity);

HOIST_INTERNAL hoist_status hoist_in_range(hoist_bundle* bundle, const char* what, size_t index, size_t count);

/* Fails if the device has fewer bytes. Called before any allocation: the host may overcommit and end the program at
 * the first write. */
HOIST_INTERNAL hoist_status hoist_fits(hoist_bundle* bundle, const char* what, uint64_t bytes);
/* The sum, or UINT64_MAX on overflow. */
HOIST_INTERNAL uint64_t hoist_add(uint64_t a, uint64_t b);

/* Fails if the bundle does not fit into the device; its weights count unless another specialisation holds them. */
HOIST_INTERNAL hoist_status hoist_check_memory(hoist_bundle* bundle, int has_weights);
/* Reads the file into bundle->weights and checks its size. The message goes into `error`, so that another thread may
 * read it. */
HOIST_INTERNAL hoist_status hoist_read_weights(hoist_bundle* bundle, hoist_error* error);
/* The initial byte of an array that is no weight. */
HOIST_INTERNAL int hoist_first_byte(const hoist_bundle* bundle, const hoist_plan_array* array);

/* control.c. */
HOIST_INTERNAL hoist_status hoist_open_controls(hoist_bundle* bundle);
HOIST_INTERNAL void hoist_close_controls(hoist_bundle* bundle); /* also after an open that failed */
/* Prepares hoist_next_step: a run begins, or continues at a later step. */
HOIST_INTERNAL void hoist_begin_items(hoist_bundle* bundle, size_t first);
/* The next step below `end` that the run executes, which the caller then executes; the number of steps if there is
 * none. Reads conditions, so it waits for the steps that compute them. */
HOIST_INTERNAL hoist_status hoist_next_step(hoist_bundle* bundle, size_t end, size_t* step);

/* host_steps.c. Fails if a host op is not available; registers the plan's strings. */
HOIST_INTERNAL hoist_status hoist_open_strings(hoist_bundle* bundle);
HOIST_INTERNAL void hoist_close_strings(hoist_bundle* bundle); /* also after an open that failed */
/* Fills `words` with handles of the plan's strings and of the empty string. */
HOIST_INTERNAL void hoist_seeded_strings(const hoist_bundle* bundle, uint64_t seed, uint32_t parameter,
                                         uint64_t elements, uint64_t* words);
/* Fills an input of a host op whose function does not accept arbitrary elements. */
HOIST_INTERNAL hoist_status hoist_seed_for_host(hoist_bundle* bundle, uint32_t array, void* data);
/* Drops the strings of the last run and adds the strings of the inputs. */
HOIST_INTERNAL hoist_status hoist_begin_strings(hoist_bundle* bundle);
/* Executes a host op. Waits for earlier steps if the device holds an operand, and queues the transfer of the result,
 * which may finish later. Arrays that the host holds are accessed in place. */
HOIST_INTERNAL hoist_status hoist_host_step(hoist_bundle* bundle, size_t index);
/* Releases the results of host ops; called when the device no longer reads them. */
HOIST_INTERNAL void hoist_forget_host_results(hoist_bundle* bundle);

/* transfers.c. Inputs, then outputs. */
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
/* Like hoist_get_output; `index` may also name a count, which is no output of the model. */
HOIST_INTERNAL hoist_status hoist_any_output(hoist_bundle* bundle, size_t index, void* data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
