/* The program of a bundle, and its kernels with their arguments. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "backends/runtime/opencl/opencl_parts.h"

#ifndef HOIST_WITHOUT_OPENCL

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS "kernels.cl"

/* Creates and checks a kernel with `more` arguments after the parameters and the local memory. */
HOIST_INTERNAL hoist_status hoist_opencl_make_kernel(hoist_bundle* b, const hoist_plan_kernel* plan, size_t more,
                                                     cl_kernel* kernel) {
  cl_int code;
  *kernel = clCreateKernel(b->opencl->program, plan->name, &code);
  if (code) return hoist_cl_check(&b->error, code, plan->name);
  cl_uint arguments = 0;
  size_t largest = 0, compiled[3] = {0, 0, 0};
  cl_ulong local = 0;
  const size_t expected = plan->parameter_count + (plan->local_bytes ? 1 : 0) + more;
  code = clGetKernelInfo(*kernel, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, NULL);
  if (!code) {
    code =
        clGetKernelWorkGroupInfo(*kernel, b->target.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof largest, &largest, NULL);
  }
  if (!code) {
    code = clGetKernelWorkGroupInfo(*kernel, b->target.device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof compiled,
                                    compiled, NULL);
  }
  if (!code) {
    code = clGetKernelWorkGroupInfo(*kernel, b->target.device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
  }
  if (code) return hoist_cl_check(&b->error, code, plan->name);
  if (arguments != expected) {
    return hoist_fail(&b->error, HOIST_BAD_BUNDLE, "kernel %s: takes %u arguments in kernels.cl, %zu in plan.bin",
                      plan->name, arguments, expected);
  }
  for (int i = 0; i < 3; ++i) {
    if (!compiled[0] || compiled[i] == plan->local[i]) continue; /* zeros: the source does not fix the size */
    return hoist_fail(&b->error, HOIST_BAD_BUNDLE,
                      "kernel %s: groups of %zu x %zu x %zu work-items in kernels.cl, "
                      "%llu x %llu x %llu in plan.bin",
                      plan->name, compiled[0], compiled[1], compiled[2], (unsigned long long)plan->local[0],
                      (unsigned long long)plan->local[1], (unsigned long long)plan->local[2]);
  }
  const uint64_t group = plan->local[0] * plan->local[1] * plan->local[2];
  if (group > largest) {
    return hoist_fail(&b->error, HOIST_DEVICE_ERROR,
                      "kernel %s: groups of %llu work-items, %s runs at most %zu (compile for this device)", plan->name,
                      (unsigned long long)group, b->target.name, largest);
  }
  if (plan->local_bytes > b->target.local_memory || local > b->target.local_memory - plan->local_bytes) {
    return hoist_fail(&b->error, HOIST_DEVICE_ERROR,
                      "kernel %s: %llu bytes of local memory, %s has %llu (compile for this device)", plan->name,
                      (unsigned long long)(plan->local_bytes + local), b->target.name,
                      (unsigned long long)b->target.local_memory);
  }
  return HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_opencl_bind_local_memory(hoist_bundle* b, cl_kernel kernel,
                                                           const hoist_plan_kernel* plan) {
  if (!plan->local_bytes) return HOIST_OK;
  const cl_int code = clSetKernelArg(kernel, (cl_uint)plan->parameter_count, plan->local_bytes, NULL);
  return hoist_cl_check(&b->error, code, plan->name);
}

/* The kernel with these arrays of the plan as its first arguments. */
static hoist_status make_bound(hoist_bundle* b, const hoist_plan_kernel* plan, size_t more, const uint32_t* arrays,
                               cl_kernel* kernel) {
  hoist_status status = hoist_opencl_make_kernel(b, plan, more, kernel);
  for (size_t i = 0; i < plan->parameter_count && !status; ++i) {
    const cl_int code = clSetKernelArg(*kernel, (cl_uint)i, sizeof(cl_mem), &b->opencl->buffers[arrays[i]]);
    status = hoist_cl_check(&b->error, code, plan->name);
  }
  return status ? status : hoist_opencl_bind_local_memory(b, *kernel, plan);
}

/* Sets the arguments that are one of two arrays, if the kernel is there. */
static hoist_status bind_again(hoist_bundle* b, cl_kernel kernel, const uint32_t* arrays, size_t count,
                               const size_t changed[2]) {
  cl_int code = CL_SUCCESS;
  for (size_t i = 0; kernel && i < count && !code; ++i) {
    if (arrays[i] == changed[0] || arrays[i] == changed[1])
      code = clSetKernelArg(kernel, (cl_uint)i, sizeof(cl_mem), &b->opencl->buffers[arrays[i]]);
  }
  return hoist_cl_check(&b->error, code, "clSetKernelArg");
}

HOIST_INTERNAL hoist_status hoist_opencl_swap(hoist_bundle* b, size_t one, size_t other) {
  const size_t changed[2] = {one, other};
  const cl_mem buffer = b->opencl->buffers[one];
  hoist_status status = HOIST_OK;
  b->opencl->buffers[one] = b->opencl->buffers[other];
  b->opencl->buffers[other] = buffer;
  for (size_t i = 0; i < b->plan.step_count && !status; ++i) {
    const hoist_plan_step* step = &b->plan.steps[i];
    const hoist_plan_launch* launch = step->launch; /* its arguments, if the step is a part of one */
    status = bind_again(b, b->opencl->kernels[i], launch ? launch->arguments : step->arguments,
                        launch ? launch->kernel.parameter_count : step->argument_count, changed);
  }
  for (size_t i = 0; i < b->plan.launch_count && !status; ++i) {
    const hoist_plan_launch* launch = &b->plan.launches[i];
    status = bind_again(b, b->opencl->launches[i], launch->arguments, launch->kernel.parameter_count, changed);
  }
  return status;
}

/* A part of a fused launch. If work-items do not share groups, a single step has one work-item for each of its
 * groups. */
HOIST_INTERNAL hoist_status hoist_opencl_make_part(hoist_bundle* b, const hoist_plan_launch* launch, size_t first,
                                                   size_t count, cl_kernel* kernel) {
  const cl_int items = b->opencl->shares_groups ? (cl_int)launch->kernel.global[0] : 0;
  const cl_int begin = (cl_int)(first - launch->first), end = begin + (cl_int)count;
  const cl_uint next = (cl_uint)launch->kernel.parameter_count;
  hoist_status status = make_bound(b, &launch->kernel, 4, launch->arguments, kernel);
  if (status) return status;
  cl_int code = clSetKernelArg(*kernel, next, sizeof(cl_mem), &b->opencl->taken);
  if (!code) code = clSetKernelArg(*kernel, next + 1, sizeof items, &items);
  if (!code) code = clSetKernelArg(*kernel, next + 2, sizeof begin, &begin);
  if (!code) code = clSetKernelArg(*kernel, next + 3, sizeof end, &end);
  return hoist_cl_check(&b->error, code, launch->kernel.name);
}

HOIST_INTERNAL hoist_status hoist_opencl_make_step(hoist_bundle* b, size_t i) {
  const hoist_plan_step* step = &b->plan.steps[i];
  cl_kernel kernel = NULL;
  const hoist_status status = step->launch ? hoist_opencl_make_part(b, step->launch, i, 1, &kernel)
                                           : make_bound(b, &b->plan.kernels[step->kernel], 0, step->arguments, &kernel);
  if (!status)
    b->opencl->kernels[i] = kernel;
  else if (kernel)
    clReleaseKernel(kernel);
  return status;
}

HOIST_INTERNAL uint64_t hoist_opencl_groups_of(const hoist_plan_kernel* kernel) {
  uint64_t groups = 1;
  for (int i = 0; i < 3; ++i) groups *= kernel->global[i] / kernel->local[i];
  return groups;
}

/* Allocates the words by which work-items share the groups of fused launches; more work-items than groups would be
 * idle. The words are zero before and after each launch. If a driver's work-items are not threads of the processor, or
 * its atomic operations are not known to be correct (Mesa's llvmpipe 22.3 executes them for work-items that do not
 * exist), each step is launched alone. */
static hoist_status share_groups(hoist_bundle* b) {
  hoist_plan* plan = &b->plan;
  size_t words = 0;
  b->opencl->shares_groups = hoist_is_pocl_on_cpu(&b->target);
  for (size_t i = 0; i < plan->launch_count; ++i) {
    hoist_plan_launch* launch = &plan->launches[i];
    uint64_t most = 1;
    for (size_t k = launch->first; k < launch->first + launch->count; ++k) {
      const uint64_t groups = hoist_opencl_groups_of(&plan->kernels[plan->steps[k].kernel]);
      if (groups > most) most = groups;
    }
    launch->kernel.global[0] = most < b->target.compute_units ? most : b->target.compute_units;
    /* The elements of a row (HOIST_ROW in kernels.cl); the array has a row per work-item, and two more. */
    const size_t row = (launch->count + 15) / 16 * 16, needed = (launch->kernel.global[0] + 2) * row;
    if (needed > words) words = needed;
  }
  const size_t bytes = words * sizeof(cl_int);
  if (!words) return HOIST_OK;
  const hoist_status status = hoist_opencl_make_writable(b, "the counters of fused launches", bytes, &b->opencl->taken);
  return status ? status : hoist_opencl_fill(b, b->opencl->taken, bytes, 0);
}

HOIST_INTERNAL hoist_status hoist_opencl_make_steps(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  b->opencl->kernels = calloc(plan->step_count + 1, sizeof *b->opencl->kernels);
  b->opencl->launches = calloc(plan->launch_count + 1, sizeof *b->opencl->launches);
  if (!b->opencl->kernels || !b->opencl->launches)
    return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for %zu steps", plan->step_count);
  hoist_status status = share_groups(b);
  for (size_t i = 0; i < plan->step_count && !status; ++i) {
    const int is_alone = !plan->steps[i].launch || !b->opencl->shares_groups;
    if (is_alone && !plan->kernels[plan->steps[i].kernel].host) status = hoist_opencl_make_step(b, i);
  }
  for (size_t i = 0; i < plan->launch_count && b->opencl->shares_groups && !status; ++i) {
    const hoist_plan_launch* launch = &plan->launches[i];
    status = hoist_opencl_make_part(b, launch, launch->first, launch->count, &b->opencl->launches[i]);
  }
  return status;
}

/* ${XDG_CACHE_HOME:-~/.cache}/hoist, or NULL if neither is set. */
static const char* default_cache(char* path, size_t capacity) {
  const char* cache = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  int length;
  /* By convention a relative path counts as unset. */
  if (cache && *cache == '/')
    length = snprintf(path, capacity, "%s/hoist", cache);
  else if (home && *home)
    length = snprintf(path, capacity, "%s/.cache/hoist", home);
  else
    return NULL;
  return length > 0 && (size_t)length < capacity ? path : NULL;
}

/* Reads kernels.cl only if no compiled program is found. */
HOIST_INTERNAL hoist_status hoist_opencl_make_program(hoist_bundle* b, const hoist_options* options) {
  char path[4096];
  const char* own = options->no_cache ? NULL : b->root;
  const char* cache = options->no_cache ? NULL : options->cache_folder;
  if (!cache && !options->no_cache) cache = default_cache(path, sizeof path);
  if (b->shares_with) {
    const cl_program program = b->shares_with->opencl->program;
    snprintf(b->cache_entry.outcome, sizeof b->cache_entry.outcome, "shared with another session");
    const cl_int code = clRetainProgram(program);
    if (!code) b->opencl->program = program;
    return hoist_cl_check(&b->error, code, "clRetainProgram");
  }
  if (options->progress) options->progress(options->user, 0, b->plan.kernel_count + 1, "");
  uint64_t hash = 0;
  hoist_status status = hoist_plan_hash(&b->plan, KERNELS, &hash, &b->error);
  if (!status) {
    status = hoist_program_find(&b->target, b->opencl->context, hash, b->plan.build_options, own, cache,
                                &b->opencl->program, &b->cache_entry, &b->error);
  }
  if (status || b->opencl->program) return status;
  unsigned char* source = NULL;
  size_t bytes = 0;
  status = hoist_plan_file(&b->plan, KERNELS, &source, &bytes, &b->error);
  if (!status) {
    status = hoist_program_compile(&b->target, b->opencl->context, (const char*)source, bytes, b->plan.build_options,
                                   &b->opencl->program, &b->error);
  }
  free(source);
  return status;
}

#endif
