/* The interface between the runtime and the code that runs kernels: OpenCL C on a device (opencl_engine.c), the same
 * through CUDA's driver (cuda_engine.c), or native code on this processor (native_engine.c). The rest of the runtime
 * uses an engine only through its functions. With HOIST_WITHOUT_OPENCL only native code is available, and no header or
 * library of OpenCL is needed. */
#ifndef HOIST_ENGINE_H
#define HOIST_ENGINE_H

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
 * handle. An engine that runs neither host ops nor control flow has no memory, write_later and set_number. */
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
  /* Two arrays of one size, with memory of their own, exchange it; between runs. NULL: values of states are copied. */
  hoist_status (*swap)(hoist_bundle* bundle, size_t a, size_t b);
  /* Follows sizes that have been chosen; between runs. An engine without it refuses plans with open sizes. */
  void (*resize)(hoist_bundle* bundle);
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

#ifdef __cplusplus
}
#endif

#endif
