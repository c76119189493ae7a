/* An open bundle, and what runs its kernels. Internal to the runtime and to backends/opencl.
 *
 * Kernels are OpenCL C for a device (opencl_engine.c) or native code for this processor (native_engine.c); the rest of
 * the runtime knows an engine by its functions. With HOIST_WITHOUT_OPENCL there is the second alone, and no header or
 * library of OpenCL is needed.
 *
 * Every weight is a buffer of its own: alignment rules for sub-buffers differ by driver, and CPU devices use the
 * file's memory in place. Memory is compared with the device's before any is asked for, since a host may grant more
 * than it has and end the program at the first touch. */
#ifndef HOIST_BUNDLE_HANDLE_H
#define HOIST_BUNDLE_HANDLE_H

#include "backends/runtime/native/loaded_code.h"
#include "backends/runtime/native/native_device.h"
#include "backends/runtime/opencl/opencl_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Small inputs and outputs travel through memory of the handle, inside the run's own queue of commands: on PoCL each
 * transfer that is waited for alone costs as much as three kernels. Where the device computes in the program's memory,
 * inputs and outputs of any size stand in memory of the handle and do not travel at all. */
#define HOIST_STAGED_BYTES 65536u

typedef struct hoist_transfer {
  uint32_t array;
  unsigned char* staged; /* NULL where data goes straight between the caller's memory and the device */
  void* pinned;          /* the driver's buffer that staged is the memory of; NULL: staged is for free() */
  int in_place;          /* staged is the buffer's own memory; the host holds it between runs */
  int host_holds;        /* it is mapped */
  int shared;            /* the caller reads and writes staged himself */
  int set;               /* inputs: has a value */
  int pending;           /* inputs: the staged value is not on the device yet */
  int fresh;             /* outputs: staged holds what the last run gave */
} hoist_transfer;

/* What a kernel that is checked alone works on: memory between two guards that it must leave as they are. */
typedef struct hoist_argument {
#ifndef HOIST_WITHOUT_OPENCL
  cl_mem whole; /* NULL without guards */
  cl_mem part;
#endif
  unsigned char* memory; /* of native code; starts with the guard */
  size_t guard;
} hoist_argument;

/* How kernels are run. Every function but the last two keeps its message in the handle. */
typedef struct hoist_engine {
  hoist_status (*open)(hoist_bundle* bundle, const hoist_options* options);
  void (*close)(hoist_bundle* bundle); /* also after an open that failed */
  hoist_status (*write)(hoist_bundle* bundle, size_t array, const void* data, size_t bytes);
  hoist_status (*read)(hoist_bundle* bundle, size_t array, void* data, size_t bytes);
  /* Several arrays, with one wait for all of them. */
  hoist_status (*read_all)(hoist_bundle* bundle, size_t count, const uint32_t* arrays, void* const* data,
                           const size_t* bytes);
  /* The array's bytes where the host may use them at once; NULL where the device has them, which takes over what it
   * uses when it needs it and gives it back at the end of a run. */
  unsigned char* (*memory)(hoist_bundle* bundle, size_t array);
  /* `data` stay as they are until the device has them, which the next wait of any function here makes sure of. */
  hoist_status (*write_later)(hoist_bundle* bundle, size_t array, const void* data, size_t bytes);
  /* From the start of the first array to so many bytes into the second; and one i64. Neither has to wait. */
  hoist_status (*copy)(hoist_bundle* bundle, size_t from, size_t to, size_t offset, size_t bytes);
  hoist_status (*set_number)(hoist_bundle* bundle, size_t array, int64_t number);
  /* Gives the transfer memory of so many bytes for what is staged; whether there was some. */
  int (*stage)(hoist_bundle* bundle, hoist_transfer* transfer, uint64_t bytes);
  /* All three wait. `run` goes on to the end where outputs are wanted, else it ends with the last of the steps. */
  hoist_status (*run)(hoist_bundle* bundle, size_t first, size_t count, int with_outputs);
  hoist_status (*profile)(hoist_bundle* bundle, double* step_seconds);
  /* `data` is copied: a guard, `bytes` bytes, a guard. */
  hoist_status (*make_argument)(hoist_bundle* bundle, const char* kernel, size_t bytes, size_t guard,
                                unsigned char* data, hoist_argument* made);
  /* `from` counts from the first guard on. */
  hoist_status (*read_argument)(hoist_bundle* bundle, const char* kernel, const hoist_argument* argument, size_t from,
                                size_t bytes, void* data);
  void (*drop_argument)(hoist_argument* argument); /* one of zeros too */
  hoist_status (*run_kernel)(hoist_bundle* bundle, const hoist_plan_kernel* kernel, const hoist_argument* arguments);
  size_t (*guard_alignment)(const hoist_bundle* bundle);
} hoist_engine;
#ifndef HOIST_WITHOUT_OPENCL
HOIST_INTERNAL const hoist_engine* hoist_opencl_engine(void);
#endif
HOIST_INTERNAL const hoist_engine* hoist_native_engine(void);

typedef struct hoist_family hoist_family;

/* What goes into runs and comes out of them. */
typedef struct hoist_values {
  hoist_transfer *inputs, *outputs;
  hoist_transfer** in_place;  /* one an array; NULL where it is no input or output in place */
  hoist_string_table strings; /* those of the plan and of the last run */
  hoist_string_table* given;  /* one an input: the strings that it is set to */
} hoist_values;

/* Where the run that goes on is. */
typedef struct hoist_run_state {
  int has_run;
  size_t next_item;     /* of the plan */
  uint64_t* iterations; /* one a control: those that are done */
  uint64_t* step_runs;  /* one a step: how often it has run */
  void** host_results;  /* one a host step that has run: what the device may still have to read */
} hoist_run_state;

struct hoist_bundle {
  hoist_error error;
  hoist_plan plan;
  const char* root; /* the bundle's folder, inside of which a specialisation has one of its own */
  const hoist_engine* engine;
  hoist_target target;
  size_t device_index;
  struct hoist_opencl* opencl; /* each engine's own; the other is NULL */
  hoist_native* native;
  int steps_apart;        /* each step is launched alone, also those that a launch joins */
  unsigned char checking; /* options.separate_buffers */
  unsigned char* weights; /* the file; stays while a CPU device computes from it in place */
  hoist_family* family; /* all specialisations of the bundle, which share it and the weights; NULL where there is one */
  hoist_values io;
  hoist_run_state run;
  hoist_cache_entry cache_entry;
};

/* What runs a plan that has been read, without its specialisations; and the end of both, and of the handle. */
HOIST_INTERNAL hoist_status hoist_open_parts(hoist_bundle* bundle, const hoist_options* options);
HOIST_INTERNAL void hoist_close_parts(hoist_bundle* bundle);

/* specialisations.c. Of a bundle that has several: nothing else does anything. */
HOIST_INTERNAL hoist_status hoist_family_make(hoist_bundle* bundle, const hoist_options* options);
HOIST_INTERNAL void hoist_family_close(hoist_family* family);
/* Others may share the weights of this one from now on. */
HOIST_INTERNAL hoist_status hoist_family_opened(hoist_bundle* bundle);
#ifndef HOIST_WITHOUT_OPENCL
/* The buffer of an array. */
HOIST_INTERNAL cl_mem hoist_opencl_buffer(const hoist_bundle* bundle, size_t array);
/* The buffer that another specialisation has for the same bytes, or NULL. */
HOIST_INTERNAL cl_mem hoist_family_weights(const hoist_bundle* bundle, const hoist_plan_array* array);
#endif
/* Of the first specialisation, which says what there is. */
HOIST_INTERNAL const hoist_plan* hoist_root_plan(const hoist_bundle* bundle);
/* "batch=8, length=16" of the one in use, "" where there is one. */
HOIST_INTERNAL void hoist_sizes_text(const hoist_bundle* bundle, char* text, size_t capacity);

HOIST_INTERNAL hoist_status hoist_in_range(hoist_bundle* bundle, const char* what, size_t index, size_t count);

/* Whether so many bytes can be had from the device, before any of them is asked for: what the host asks for may be
 * granted and end the program when it is written. */
HOIST_INTERNAL hoist_status hoist_fits(hoist_bundle* bundle, const char* what, uint64_t bytes);
/* The sum, or the largest number there is where it does not fit. */
HOIST_INTERNAL uint64_t hoist_add(uint64_t a, uint64_t b);

/* Whether the device has room for the bundle; without its weights where another specialisation holds them. */
HOIST_INTERNAL hoist_status hoist_check_memory(hoist_bundle* bundle, int has_weights);
/* The file, its size checked, in bundle->weights; what is wrong is in `error`, so that another thread may read it. */
HOIST_INTERNAL hoist_status hoist_read_weights(hoist_bundle* bundle, hoist_error* error);
/* What each byte of an array that is no weight is at first. */
HOIST_INTERNAL int hoist_first_byte(const hoist_bundle* bundle, const hoist_plan_array* array);

/* control.c. */
HOIST_INTERNAL hoist_status hoist_open_controls(hoist_bundle* bundle);
HOIST_INTERNAL void hoist_close_controls(hoist_bundle* bundle); /* also after an open that failed */
/* Before what hoist_next_step gives: a run begins, or goes on at a later step. */
HOIST_INTERNAL void hoist_begin_items(hoist_bundle* bundle, size_t first);
/* The next step below `end` that the run performs, which the caller then does; the number of steps where there is none.
 * Reads conditions, so it waits for what decides them. */
HOIST_INTERNAL hoist_status hoist_next_step(hoist_bundle* bundle, size_t end, size_t* step);

/* host_steps.c. Whether every step on the host can be performed, and the plan's strings. */
HOIST_INTERNAL hoist_status hoist_open_strings(hoist_bundle* bundle);
HOIST_INTERNAL void hoist_close_strings(hoist_bundle* bundle); /* also after an open that failed */
/* Words of strings that the plan has, or of the empty one. */
HOIST_INTERNAL void hoist_seeded_strings(const hoist_bundle* bundle, uint64_t seed, uint32_t parameter,
                                         uint64_t elements, uint64_t* words);
/* The same of an input that a step on the host reads, whose function takes no numbers of any kind. */
HOIST_INTERNAL hoist_status hoist_seed_for_host(hoist_bundle* bundle, uint32_t array, void* data);
/* The strings of the last run are forgotten, those of the inputs are there. */
HOIST_INTERNAL hoist_status hoist_begin_strings(hoist_bundle* bundle);
/* Waits for the steps before where the device has what the step reads, and has its result written, which need not be
 * done then. What the host holds is read and written where it is. */
HOIST_INTERNAL hoist_status hoist_host_step(hoist_bundle* bundle, size_t index);
/* Once the device reads them no more. */
HOIST_INTERNAL void hoist_forget_host_results(hoist_bundle* bundle);

/* transfers.c. Inputs, then outputs. */
HOIST_INTERNAL hoist_transfer* hoist_transfer_of(hoist_bundle* bundle, size_t i);
HOIST_INTERNAL hoist_status hoist_make_transfers(hoist_bundle* bundle);
HOIST_INTERNAL hoist_status hoist_check_inputs(hoist_bundle* bundle);
/* As hoist_set_input, of an array of any type. */
HOIST_INTERNAL hoist_status hoist_set_words(hoist_bundle* bundle, size_t index, const void* data, size_t bytes);
/* As hoist_get_output; `index` may be that of a count, which is no output of the model. */
HOIST_INTERNAL hoist_status hoist_any_output(hoist_bundle* bundle, size_t index, void* data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
