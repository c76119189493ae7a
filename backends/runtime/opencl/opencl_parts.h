/* What a device holds of a bundle, and how its buffers and kernels are made. For the OpenCL engine only. */
#ifndef HOIST_OPENCL_PARTS_H
#define HOIST_OPENCL_PARTS_H

#include "backends/runtime/bundle_handle.h"

#ifndef HOIST_WITHOUT_OPENCL

/* What a device holds of the bundle. */
struct hoist_opencl {
  cl_context context;
  cl_command_queue queue, profiling_queue; /* the second is made when it is first needed */
  uint64_t loaded_libraries;               /* how many were loaded when their pages were last touched */
  cl_program program;
  cl_kernel* kernels;  /* one a step, its arguments bound once; of joined steps when it is first launched alone */
  cl_kernel* launches; /* and one a launch of several steps */
  cl_mem* buffers;     /* one an array */
  cl_mem arena;
  cl_mem taken;                 /* the words by which work-items share the groups of a launch of several steps */
  int shares_groups;            /* whether they do */
  unsigned char* stays_on_host; /* one an array: whether nothing but steps on the host uses it */
  unsigned char* host_arena;    /* which has those */
  unsigned char* zeros;         /* the arena and arrays that begin as zeros; NULL where the driver has its own */
  void* zeros_memory;           /* what to free() of it */
};

/* opencl_buffers.c and opencl_kernels.c */
HOIST_INTERNAL hoist_status hoist_opencl_fill(hoist_bundle* b, cl_mem buffer, size_t bytes, unsigned char value);
HOIST_INTERNAL hoist_status hoist_opencl_make_writable(hoist_bundle* b, const char* name, size_t bytes, cl_mem* buffer);
/* Memory of the system's is zeros where nothing has run, and so is what the host stages. */
HOIST_INTERNAL hoist_status hoist_opencl_clear_buffers(hoist_bundle* b, int has_run);
/* What one step on the host gives the next need not travel: such arrays are in memory of the handle, each where the
 * arena has its place. */
HOIST_INTERNAL hoist_status hoist_opencl_keep_on_host(hoist_bundle* b);
HOIST_INTERNAL hoist_status hoist_opencl_make_buffers(hoist_bundle* b);
/* `more` arguments behind the parameters and the local memory. */
HOIST_INTERNAL hoist_status hoist_opencl_make_kernel(hoist_bundle* b, const hoist_plan_kernel* plan, size_t more,
                                                     cl_kernel* kernel);
HOIST_INTERNAL hoist_status hoist_opencl_bind_local_memory(hoist_bundle* b, cl_kernel kernel,
                                                           const hoist_plan_kernel* plan);
/* Some of the steps of a launch; by work-items of their own for each group of a single one where they share none. */
HOIST_INTERNAL hoist_status hoist_opencl_make_part(hoist_bundle* b, const hoist_plan_launch* launch, size_t first,
                                                   size_t count, cl_kernel* kernel);
HOIST_INTERNAL hoist_status hoist_opencl_make_step(hoist_bundle* b, size_t i);
HOIST_INTERNAL uint64_t hoist_opencl_groups_of(const hoist_plan_kernel* kernel);
HOIST_INTERNAL hoist_status hoist_opencl_make_steps(hoist_bundle* b);
/* Drivers compile the last part at the first launch, so every kernel runs once before its program is kept. The inputs
 * are zeros here. */
HOIST_INTERNAL hoist_status hoist_opencl_keep_program(hoist_bundle* b, const hoist_options* options);
/* kernels.cl is read where no program of it is kept. */
HOIST_INTERNAL hoist_status hoist_opencl_make_program(hoist_bundle* b, const hoist_options* options);
HOIST_INTERNAL hoist_status hoist_opencl_launch(hoist_bundle* b, cl_command_queue queue, cl_kernel kernel,
                                                const hoist_plan_kernel* plan, cl_event* event);
HOIST_INTERNAL hoist_status hoist_opencl_launch_step(hoist_bundle* b, cl_command_queue queue, size_t i,
                                                     cl_event* event);
/* The launch of several steps that begins with this one and ends before `end`; NULL: the step is launched alone. */
HOIST_INTERNAL const hoist_plan_launch* hoist_opencl_launch_from(const hoist_bundle* b, size_t step, size_t end);

#endif

#endif
