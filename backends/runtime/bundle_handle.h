/* An open bundle. Internal to the runtime and to backends/opencl.
 *
 * Every weight is a buffer of its own: alignment rules for sub-buffers differ by driver, and CPU devices use the
 * file's memory in place. Memory is compared with the device's before any is asked for, since a host may grant more
 * than it has and end the program at the first touch. */
#ifndef HOIST_BUNDLE_HANDLE_H
#define HOIST_BUNDLE_HANDLE_H

#include "opencl_device.h"

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
  int in_place;          /* staged is the buffer's own memory; the host holds it between runs */
  int host_holds;        /* it is mapped */
  int shared;            /* the caller reads and writes staged himself */
  int set;               /* inputs: has a value */
  int pending;           /* inputs: the staged value is not on the device yet */
  int fresh;             /* outputs: staged holds what the last run gave */
} hoist_transfer;

struct hoist_bundle {
  hoist_error error;
  hoist_plan plan;
  hoist_target target;
  size_t device_index;
  cl_context context;
  cl_command_queue queue, profiling_queue; /* the second is made when it is first needed */
  cl_program program;
  cl_kernel* kernels; /* one a step, its arguments bound once */
  cl_mem* buffers;    /* one an array */
  cl_mem arena;
  unsigned char checking; /* options.separate_buffers */
  unsigned char* weights; /* the file; stays while a CPU device computes from it in place */
  hoist_transfer *inputs, *outputs;
  int has_run;
  hoist_cache_entry cache_entry;
};

HOIST_INTERNAL hoist_status hoist_in_range(hoist_bundle* bundle, const char* what, size_t index, size_t count);

/* Whether so many bytes can be had from the device, before any of them is asked for: what the host asks for may be
 * granted and end the program when it is written. */
HOIST_INTERNAL hoist_status hoist_fits(hoist_bundle* bundle, const char* what, uint64_t bytes);
/* The sum, or the largest number there is where it does not fit. */
HOIST_INTERNAL uint64_t hoist_add(uint64_t a, uint64_t b);

/* transfers.c. The memory of an array that is in place, else NULL. */
HOIST_INTERNAL unsigned char* hoist_memory_in_place(hoist_bundle* bundle, size_t array);
HOIST_INTERNAL hoist_status hoist_make_transfers(hoist_bundle* bundle);
/* Arrays in place go from the device to the host or back: between runs the host holds them. */
HOIST_INTERNAL hoist_status hoist_pass(hoist_bundle* bundle, cl_command_queue queue, int to_host);
/* What a run needs before its first launch, and the outputs after its last; neither waits. */
HOIST_INTERNAL hoist_status hoist_upload(hoist_bundle* bundle, cl_command_queue queue);
HOIST_INTERNAL hoist_status hoist_download(hoist_bundle* bundle, cl_command_queue queue);

HOIST_INTERNAL hoist_status hoist_bind(hoist_bundle* bundle, cl_kernel kernel, const hoist_plan_kernel* plan,
                                       const cl_mem* buffers);
HOIST_INTERNAL hoist_status hoist_launch(hoist_bundle* bundle, cl_command_queue queue, cl_kernel kernel,
                                         const hoist_plan_kernel* plan, cl_event* event);
HOIST_INTERNAL hoist_status hoist_make_kernel(hoist_bundle* bundle, const hoist_plan_kernel* plan, cl_kernel* kernel);
HOIST_INTERNAL hoist_status hoist_fill(hoist_bundle* bundle, cl_mem buffer, size_t bytes, unsigned char value);

#ifdef __cplusplus
}
#endif

#endif
