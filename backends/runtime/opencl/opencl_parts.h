/* The device state of a bundle, and the creation of its buffers and kernels. For the OpenCL engine only. */
#ifndef HOIST_OPENCL_PARTS_H
#define HOIST_OPENCL_PARTS_H

#include "backends/runtime/bundle_handle.h"

#ifndef HOIST_WITHOUT_OPENCL

/* The device state of the bundle. */
struct hoist_opencl {
  cl_context context;
  cl_command_queue queue, profiling_queue; /* the second is created at its first use */
  uint64_t loaded_libraries;               /* number of loaded libraries when their pages were last touched */
  cl_program program;
  cl_kernel* kernels;  /* one per step, with its arguments bound; for a step of a fused launch created when it is first
                        * launched alone */
  cl_kernel* launches; /* one per fused launch */
  cl_mem* buffers;     /* one per array */
  cl_mem arena;
  cl_mem taken;                 /* counters by which work-items share the groups of a fused launch */
  int shares_groups;            /* true if they do */
  unsigned char* stays_on_host; /* one per array: true if only host ops use it */
  unsigned char* host_arena;    /* memory of these arrays */
  unsigned char* zeros;         /* the arena and zero-initialised arrays; NULL if the driver allocates them */
  void* zeros_memory;           /* the pointer for free() */
  struct hoist_cuda* cuda;      /* if CUDA's driver runs the plan; there are neither buffers nor kernels then */
};

/* opencl_buffers.c, opencl_kernels.c and opencl_launches.c. */
HOIST_INTERNAL hoist_status hoist_opencl_fill(hoist_bundle* b, cl_mem buffer, size_t bytes, unsigned char value);
HOIST_INTERNAL hoist_status hoist_opencl_make_writable(hoist_bundle* b, const char* name, size_t bytes, cl_mem* buffer);
/* Fills all arrays but weights with their initial bytes. `has_run` is 0 before the first run, when system memory and
 * staged memory are zeros already. */
HOIST_INTERNAL hoist_status hoist_opencl_clear_buffers(hoist_bundle* b, int has_run);
/* Places arrays that only host ops use in memory of the handle, at their offsets in the arena, so that they are not
 * transferred. */
HOIST_INTERNAL hoist_status hoist_opencl_keep_on_host(hoist_bundle* b);
HOIST_INTERNAL hoist_status hoist_opencl_make_buffers(hoist_bundle* b);
/* An array in place passes to the device before the first command that uses it, and back at the end of a run: between
 * runs the host holds it. */
HOIST_INTERNAL hoist_status hoist_opencl_pass_to_device(hoist_bundle* b, cl_command_queue queue, size_t array);
/* Releases everything of the device, also after an open that failed. */
HOIST_INTERNAL void hoist_opencl_close(hoist_bundle* b);
/* Creates and checks a kernel with `more` arguments after the parameters and the local memory. */
HOIST_INTERNAL hoist_status hoist_opencl_make_kernel(hoist_bundle* b, const hoist_plan_kernel* plan, size_t more,
                                                     cl_kernel* kernel);
HOIST_INTERNAL hoist_status hoist_opencl_bind_local_memory(hoist_bundle* b, cl_kernel kernel,
                                                           const hoist_plan_kernel* plan);
/* A part of a fused launch. If work-items do not share groups, a single step has one work-item for each of its
 * groups. */
HOIST_INTERNAL hoist_status hoist_opencl_make_part(hoist_bundle* b, const hoist_plan_launch* launch, size_t first,
                                                   size_t count, cl_kernel* kernel);
HOIST_INTERNAL hoist_status hoist_opencl_make_step(hoist_bundle* b, size_t i);
/* The arrays exchange their buffers, and kernels get the new ones. */
HOIST_INTERNAL hoist_status hoist_opencl_swap(hoist_bundle* b, size_t one, size_t other);
HOIST_INTERNAL uint64_t hoist_opencl_groups_of(const hoist_plan_kernel* kernel);
HOIST_INTERNAL hoist_status hoist_opencl_make_steps(hoist_bundle* b);
/* Runs every kernel once and stores the program, since drivers finish compilation at the first launch. The inputs are
 * zeros here. */
HOIST_INTERNAL hoist_status hoist_opencl_keep_program(hoist_bundle* b, const hoist_options* options);
/* Reads kernels.cl only if no compiled program is found. */
HOIST_INTERNAL hoist_status hoist_opencl_make_program(hoist_bundle* b, const hoist_options* options);
HOIST_INTERNAL hoist_status hoist_opencl_launch(hoist_bundle* b, cl_command_queue queue, cl_kernel kernel,
                                                const hoist_plan_kernel* plan, cl_event* event);
/* Launches the kernel alone, or as one step of the fused launch; NULL: alone. */
HOIST_INTERNAL hoist_status hoist_opencl_launch_part(hoist_bundle* b, cl_command_queue queue, cl_kernel kernel,
                                                     const hoist_plan_kernel* plan,
                                                     const hoist_plan_launch* fused_launch, cl_event* event);
HOIST_INTERNAL hoist_status hoist_opencl_launch_step(hoist_bundle* b, cl_command_queue queue, size_t i,
                                                     cl_event* event);
/* The fused launch that begins with this step and ends before `end`; NULL: the step is launched alone. */
HOIST_INTERNAL const hoist_plan_launch* hoist_opencl_launch_from(const hoist_bundle* b, size_t step, size_t end);

#endif

#endif
