/* Launches of kernels, alone or fused. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include "backends/runtime/opencl/opencl_parts.h"

#ifndef HOIST_WITHOUT_OPENCL

HOIST_INTERNAL hoist_status hoist_opencl_launch(hoist_bundle* b, cl_command_queue queue, cl_kernel kernel,
                                                const hoist_plan_kernel* plan, cl_event* event) {
  size_t global[3], local[3];
  for (int i = 0; i < 3; ++i) {
    global[i] = plan->global[i];
    local[i] = plan->local[i];
  }
  const cl_int code = clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, local, 0, NULL, event);
  return code ? hoist_cl_check(&b->error, code, plan->name) : HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_opencl_launch_part(hoist_bundle* b, cl_command_queue queue, cl_kernel kernel,
                                                     const hoist_plan_kernel* plan,
                                                     const hoist_plan_launch* fused_launch, cl_event* event) {
  if (!fused_launch) return hoist_opencl_launch(b, queue, kernel, plan, event);
  hoist_plan_kernel part = fused_launch->kernel;
  if (!b->opencl->shares_groups) part.global[0] = hoist_opencl_groups_of(plan);
  return hoist_opencl_launch(b, queue, kernel, &part, event);
}

HOIST_INTERNAL hoist_status hoist_opencl_launch_step(hoist_bundle* b, cl_command_queue queue, size_t i,
                                                     cl_event* event) {
  const hoist_plan_step* step = &b->plan.steps[i];
  hoist_status status = b->opencl->kernels[i] ? HOIST_OK : hoist_opencl_make_step(b, i);
  for (size_t k = 0; k < step->argument_count && !status; ++k)
    status = hoist_opencl_pass_to_device(b, queue, step->arguments[k]);
  return status ? status
                : hoist_opencl_launch_part(b, queue, b->opencl->kernels[i], &b->plan.kernels[step->kernel],
                                           step->launch, event);
}

HOIST_INTERNAL const hoist_plan_launch* hoist_opencl_launch_from(const hoist_bundle* b, size_t step, size_t end) {
  const hoist_plan_launch* fused_launch = b->plan.steps[step].launch;
  const int begins = fused_launch && b->opencl->shares_groups && !b->run.steps_apart && fused_launch->first == step &&
                     step + fused_launch->count <= end;
  return begins ? fused_launch : NULL;
}

/* Runs every kernel once before its program is stored, since drivers finish compilation at the first launch. The
 * inputs are zeros here. */
HOIST_INTERNAL hoist_status hoist_opencl_keep_program(hoist_bundle* b, const hoist_options* options) {
  hoist_status status = HOIST_OK;
  size_t seen = 0;
  for (size_t i = 0; i < b->plan.step_count && !status; ++i) {
    const hoist_plan_launch* fused_launch = hoist_opencl_launch_from(b, i, b->plan.step_count);
    const uint32_t index = b->plan.steps[i].kernel;
    const hoist_plan_kernel* kernel = fused_launch ? &fused_launch->kernel : &b->plan.kernels[index];
    if (kernel->host) continue;
    int is_first = 1;
    for (size_t j = 0; j < i && is_first && !fused_launch; ++j)
      is_first = b->plan.steps[j].launch || b->plan.steps[j].kernel != index;
    if (is_first && options->progress) options->progress(options->user, ++seen, b->plan.kernel_count + 1, kernel->name);
    status = fused_launch ? hoist_opencl_launch(b, b->opencl->queue,
                                                b->opencl->launches[fused_launch - b->plan.launches], kernel, NULL)
                          : hoist_opencl_launch_step(b, b->opencl->queue, i, NULL);
    if (!status && is_first && options->progress)
      status = hoist_cl_check(&b->error, clFinish(b->opencl->queue), "clFinish");
    if (fused_launch) i += fused_launch->count - 1;
  }
  if (!status) status = hoist_cl_check(&b->error, clFinish(b->opencl->queue), "clFinish");
  if (!status) hoist_program_keep(b->opencl->program, &b->target, &b->plan, &b->cache_entry);
  return status ? status : hoist_opencl_clear_buffers(b, 1);
}

#endif
