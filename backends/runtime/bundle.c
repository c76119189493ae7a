/* Opening, running and closing a bundle, for all engines. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "backends/runtime/bundle.h"

#include <stdlib.h>

#include "backends/runtime/control.h"
#include "backends/runtime/family.h"
#include "backends/runtime/host_steps.h"
#include "backends/runtime/states.h"
#include "backends/runtime/transfers.h"

hoist_status hoist_open(const char* folder, const hoist_options* options, hoist_bundle** bundle) {
  const hoist_options defaults = {0};
  if (!bundle) return HOIST_BAD_ARGUMENT;
  hoist_bundle* b = *bundle = calloc(1, sizeof *b);
  if (!b) return HOIST_OUT_OF_MEMORY;
  if (!folder) return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "no folder given");
  if (!options) options = &defaults;
  b->weights_users = calloc(1, sizeof *b->weights_users);
  if (!b->weights_users) return hoist_no_memory(&b->error, sizeof *b->weights_users);
  *b->weights_users = 1;
  hoist_status status = hoist_plan_read(folder, &b->plan, &b->error);
  b->root = b->plan.folder;
  if (!status) status = hoist_family_make(b, options);
  return status ? status : hoist_open_parts(b, options);
}

HOIST_INTERNAL hoist_status hoist_open_parts(hoist_bundle* b, const hoist_options* options) {
  if (b->plan.target_count) {
    b->engine = hoist_native_engine();
  } else {
#ifdef HOIST_WITHOUT_OPENCL
    return hoist_fail(&b->error, HOIST_NO_DEVICE,
                      "the kernels are OpenCL and this program was built without it (build without "
                      "HOIST_WITHOUT_OPENCL, or compile with --target native)");
#else
    b->engine = hoist_opencl_engine();
#endif
  }
  b->checking = (unsigned char)options->separate_buffers;
  b->options = *options;
  b->options.device = b->options.cache_folder = NULL; /* the caller's memory */
  b->options.context_of = NULL;
  b->options.progress = NULL;
  hoist_status status = hoist_open_strings(b);
  if (!status) status = hoist_open_controls(b);
  if (!status) status = b->engine->open(b, options);
  if (!status) status = hoist_reset_states(b);
  b->is_open = status == HOIST_OK;
  return status;
}

HOIST_INTERNAL void hoist_close_parts(hoist_bundle* b) {
  if (b->engine) b->engine->close(b);
  hoist_forget_host_results(b);
  for (size_t i = 0; b->io.inputs && b->io.outputs && i < b->plan.input_count + b->plan.output_count; ++i)
    free(hoist_transfer_of(b, i)->staged);
  free(b->io.inputs);
  free(b->io.outputs);
  free(b->io.in_place);
  hoist_close_strings(b);
  hoist_close_controls(b);
  hoist_plan_free(&b->plan);
  free(b);
}

void hoist_close(hoist_bundle* b) {
  if (!b) return;
  hoist_family* family = b->family;
  hoist_file_bytes weights = b->weights;
  size_t* users = b->weights_users;
  hoist_close_parts(b);
  for (size_t i = 0; family && family->others && i < family->count; ++i) {
    if (family->others[i]) hoist_close_parts(family->others[i]);
  }
  hoist_family_free(family);
  if (!users || __atomic_sub_fetch(users, 1, __ATOMIC_ACQ_REL)) return;
  hoist_drop_file(&weights);
  free(users);
}

/* ---- running ---- */

hoist_status hoist_run(hoist_bundle* b) {
  hoist_status status = hoist_begin_strings(b);
  if (!status) status = b->engine->run(b, 0, b->plan.step_count, 1);
  if (!status) status = hoist_advance_states(b);
  b->run.has_run = status == HOIST_OK;
  return status;
}

static void outputs_changed(hoist_bundle* b) {
  for (size_t i = 0; i < b->plan.output_count; ++i) b->io.outputs[i].fresh = 0;
  b->run.has_run = 1;
}

hoist_status hoist_run_steps(hoist_bundle* b, size_t first, size_t count) {
  if (first > b->plan.step_count || count > b->plan.step_count - first) {
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "steps %zu to %zu: there are %zu", first, first + count,
                      b->plan.step_count);
  }
  hoist_status status = first ? HOIST_OK : hoist_begin_strings(b);
  if (!status) status = b->engine->run(b, first, count, 0);
  outputs_changed(b);
  return status;
}

hoist_status hoist_profile(hoist_bundle* b, double* step_seconds) {
  hoist_status status = hoist_begin_strings(b);
  if (!status) status = b->engine->profile(b, step_seconds);
  outputs_changed(b);
  return status;
}
