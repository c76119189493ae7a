/* OpenCL kernels of an NVIDIA device, run as one CUDA graph: OpenCL has no call that submits a whole run, and each of
 * its launches takes 5 to 7 us of the host's time (H200, driver 580), a launch in a graph 1 us. The program is the one
 * that the OpenCL driver compiled, so results have the same bits. It is used where the driver returns PTX, CUDA's
 * driver loads it, and the plan has device kernels only; in all other cases the OpenCL engine runs the plan. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include "backends/runtime/control.h"
#include "backends/runtime/cuda/cuda_parts.h"
#include "backends/runtime/transfers.h"

#ifndef HOIST_WITHOUT_OPENCL

#include <stdlib.h>
#include <string.h>

#ifndef CL_DEVICE_UUID_KHR
#define CL_DEVICE_UUID_KHR 0x106A
#endif
#define CUDA_MOST_THREADS_OF_GROUP 0 /* CUfunction_attribute */
#define CUDA_MOST_SHARED_BYTES 8
#define CUDA_USUAL_SHARED_BYTES 49152u
#define CUDA_MOST_GRID_ROWS 65535u

static hoist_status cuda_enter(hoist_bundle* b) {
  hoist_cuda* c = b->opencl->cuda;
  return hoist_cuda_check(&b->error, c->call->context_push(c->context), "cuCtxPushCurrent");
}

/* The program may use CUDA itself, so its own context comes back after each call. */
static hoist_status cuda_leave(hoist_bundle* b, hoist_status status) {
  void* context;
  b->opencl->cuda->call->context_pop(&context);
  return status;
}

static hoist_status cuda_check(hoist_bundle* b, int code, const char* what) {
  return hoist_cuda_check(&b->error, code, what);
}

/* Waits after a failure too: transfers use the caller's memory. */
static hoist_status cuda_wait(hoist_bundle* b, hoist_status status) {
  hoist_cuda* c = b->opencl->cuda;
  const int code = c->call->stream_wait(c->stream);
  return status ? status : cuda_check(b, code, "cuStreamSynchronize");
}

/* ---- opening ---- */

static int cuda_has_device_kernels_only(const hoist_plan* plan) {
  if (plan->control_count || plan->launch_count || !plan->step_count) return 0;
  for (size_t i = 0; i < plan->step_count; ++i) {
    const hoist_plan_kernel* kernel = &plan->kernels[plan->steps[i].kernel];
    if (kernel->host) return 0;
    for (int d = 1; d < 3; ++d) {
      if (kernel->global[d] / kernel->local[d] > CUDA_MOST_GRID_ROWS) return 0;
    }
  }
  return 1;
}

static hoist_status cuda_find_device(hoist_bundle* b) {
  hoist_cuda* c = b->opencl->cuda;
  unsigned char wanted[16], uuid[16];
  int count = 0;
  const cl_int code = clGetDeviceInfo(b->target.device, CL_DEVICE_UUID_KHR, sizeof wanted, wanted, NULL);
  if (code) return hoist_cl_check(&b->error, code, "CL_DEVICE_UUID_KHR");
  hoist_status status = cuda_check(b, c->call->device_count(&count), "cuDeviceGetCount");
  for (int i = 0; i < count && !status; ++i) {
    status = cuda_check(b, c->call->device_get(&c->device, i), "cuDeviceGet");
    if (!status) status = cuda_check(b, c->call->device_uuid(uuid, c->device), "cuDeviceGetUuid");
    if (!status && memcmp(uuid, wanted, sizeof uuid) == 0)
      return cuda_check(b, c->call->context_retain(&c->context, c->device), "cuDevicePrimaryCtxRetain");
  }
  return status ? status : hoist_fail(&b->error, HOIST_NO_DEVICE, "CUDA's driver does not have the OpenCL device");
}

static hoist_status cuda_load_program(hoist_bundle* b) {
  hoist_cuda* c = b->opencl->cuda;
  size_t bytes = 0;
  unsigned char* binary = hoist_program_binary(b->opencl->program, &bytes);
  char* text = binary ? hoist_cuda_text((const char*)binary, bytes) : NULL;
  free(binary);
  if (!text) return hoist_fail(&b->error, HOIST_DEVICE_ERROR, "the program's binary is not PTX");
  const hoist_status status =
      cuda_check(b, c->call->module_load(&c->module, text, 0, NULL, NULL), "cuModuleLoadDataEx");
  if (status) c->module = NULL;
  free(text);
  return status;
}

/* OpenCL compares the number of arguments with the plan's; CUDA would read as many as the kernel takes. */
static hoist_status cuda_load_kernel(hoist_bundle* b, const hoist_plan_kernel* kernel, void** function) {
  hoist_cuda* c = b->opencl->cuda;
  cl_kernel compared = NULL;
  int most = 0;
  hoist_status status = hoist_opencl_make_kernel(b, kernel, 0, &compared);
  if (compared) clReleaseKernel(compared);
  if (!status) status = cuda_check(b, c->call->module_function(function, c->module, kernel->name), kernel->name);
  if (!status && kernel->local_bytes > CUDA_USUAL_SHARED_BYTES)
    status =
        cuda_check(b, c->call->function_set(*function, CUDA_MOST_SHARED_BYTES, (int)kernel->local_bytes), kernel->name);
  if (!status)
    status = cuda_check(b, c->call->function_get(&most, CUDA_MOST_THREADS_OF_GROUP, *function), kernel->name);
  if (!status && kernel->local[0] * kernel->local[1] * kernel->local[2] > (uint64_t)most)
    return hoist_fail(&b->error, HOIST_DEVICE_ERROR, "kernel %s: groups of at most %d work-items", kernel->name, most);
  return status;
}

static hoist_status cuda_allocate(hoist_bundle* b, const char* what, uint64_t bytes, hoist_cuda_address* address) {
  const hoist_status status = cuda_check(b, b->opencl->cuda->call->allocate(address, bytes ? bytes : 1), what);
  if (status) *address = 0;
  return status;
}

static hoist_status cuda_make_weights(hoist_bundle* b, const hoist_bundle* context_of) {
  hoist_cuda* c = b->opencl->cuda;
  const int is_related = b->shares_with || (context_of && context_of->family == b->family && b->family);
  if (is_related && context_of->opencl->cuda) {
    c->weights = context_of->opencl->cuda->weights;
    __atomic_add_fetch(&c->weights->users, 1, __ATOMIC_RELAXED);
    return HOIST_OK;
  }
  c->weights = calloc(1, sizeof *c->weights);
  if (!c->weights) return hoist_no_memory(&b->error, sizeof *c->weights);
  c->weights->users = 1;
  const hoist_status status = cuda_allocate(b, "the weights", b->plan.weights_bytes, &c->weights->address);
  if (status || !b->plan.weights_bytes) return status;
  return cuda_check(b, c->call->to_device(c->weights->address, b->weights.data, b->plan.weights_bytes, c->stream),
                    "the weights");
}

static hoist_status cuda_make_arrays(hoist_bundle* b) {
  hoist_cuda* c = b->opencl->cuda;
  hoist_status status = cuda_allocate(b, "the arena", b->plan.arena_bytes, &c->arena);
  if (!status) status = cuda_check(b, c->call->fill(c->arena, 0, b->plan.arena_bytes, c->stream), "the arena");
  for (size_t i = 0; i < b->plan.array_count && !status; ++i) {
    const hoist_plan_array* array = &b->plan.arrays[i];
    if (array->place == HOIST_PLACE_WEIGHTS) {
      c->arrays[i] = c->weights->address + array->offset;
    } else if (array->place == HOIST_PLACE_ARENA) {
      c->arrays[i] = c->arena + array->offset;
    } else {
      status = cuda_allocate(b, array->name, array->bytes, &c->owned[i]);
      c->arrays[i] = c->owned[i];
      const unsigned char first = (unsigned char)hoist_first_byte(b, array);
      if (!status) status = cuda_check(b, c->call->fill(c->arrays[i], first, array->bytes, c->stream), array->name);
    }
  }
  return status;
}

static hoist_status cuda_prepare(hoist_bundle* b, const hoist_bundle* context_of) {
  hoist_cuda* c = b->opencl->cuda;
  const hoist_plan* plan = &b->plan;
  c->functions = calloc(plan->kernel_count + 1, sizeof *c->functions);
  c->owned = calloc(plan->array_count + 1, sizeof *c->owned);
  c->arrays = calloc(plan->array_count + 1, sizeof *c->arrays);
  c->rows = calloc(plan->step_count + 1, sizeof *c->rows);
  if (!c->functions || !c->owned || !c->arrays || !c->rows) return hoist_no_memory(&b->error, plan->array_count);
  hoist_status status = cuda_check(b, c->call->stream_create(&c->stream, 1), "cuStreamCreate");
  if (!status) status = cuda_load_program(b);
  for (size_t i = 0; i < plan->kernel_count && !status; ++i) {
    if (plan->kernels[i].is_launched) status = cuda_load_kernel(b, &plan->kernels[i], &c->functions[i]);
  }
  if (!status) status = cuda_make_weights(b, context_of);
  if (!status) status = cuda_make_arrays(b);
  if (!status) status = cuda_check(b, c->call->event_create(&c->begin, 0), "cuEventCreate");
  if (!status) status = cuda_check(b, c->call->event_create(&c->end, 0), "cuEventCreate");
  if (!status) status = hoist_cuda_graph_of_run(b, &c->runs[0]);
  return c->stream ? cuda_wait(b, status) : status;
}

static void cuda_drop_weights(hoist_cuda* c) {
  if (!c->weights || __atomic_sub_fetch(&c->weights->users, 1, __ATOMIC_ACQ_REL)) return;
  if (c->weights->address) c->call->release(c->weights->address);
  free(c->weights);
}

/* The next profile makes them again. */
static void cuda_drop_rows(hoist_bundle* b) {
  hoist_cuda* c = b->opencl->cuda;
  for (size_t i = 0; c->rows && i < b->plan.step_count; ++i) {
    if (c->rows[i]) c->call->ready_destroy(c->rows[i]);
    c->rows[i] = NULL;
  }
  c->has_rows = 0;
}

static void cuda_drop_device_state(hoist_bundle* b) {
  hoist_cuda* c = b->opencl->cuda;
  if (c->stream) c->call->stream_wait(c->stream);
  cuda_drop_rows(b);
  for (int i = 0; i < 2; ++i) {
    if (c->runs[i]) c->call->ready_destroy(c->runs[i]);
  }
  if (c->begin) c->call->event_destroy(c->begin);
  if (c->end) c->call->event_destroy(c->end);
  for (size_t i = 0; c->owned && i < b->plan.array_count; ++i) {
    if (c->owned[i]) c->call->release(c->owned[i]);
  }
  if (c->arena) c->call->release(c->arena);
  cuda_drop_weights(c);
  if (c->module) c->call->module_unload(c->module);
  if (c->stream) c->call->stream_destroy(c->stream);
}

static void cuda_drop(hoist_bundle* b) {
  hoist_cuda* c = b->opencl->cuda;
  if (c->context) {
    if (!cuda_enter(b)) {
      cuda_drop_device_state(b);
      (void)cuda_leave(b, HOIST_OK);
    }
    c->call->context_release(c->device);
  }
  free(c->rows);
  free(c->functions);
  free(c->owned);
  free(c->arrays);
  free(c);
  b->opencl->cuda = NULL;
}

HOIST_INTERNAL int hoist_cuda_open(hoist_bundle* b, const hoist_bundle* context_of) {
  const hoist_error before = b->error;
  if (b->target.is_cpu || b->checking || !cuda_has_device_kernels_only(&b->plan)) return 0;
  const hoist_cuda_functions* call = hoist_cuda_driver();
  hoist_cuda* c = call ? calloc(1, sizeof *c) : NULL;
  if (!c) return 0;
  c->call = call;
  b->opencl->cuda = c;
  hoist_status status = cuda_find_device(b);
  if (!status) status = cuda_enter(b);
  if (!status) status = cuda_leave(b, cuda_prepare(b, context_of));
  if (!status) return 1;
  cuda_drop(b);
  b->error = before;
  return 0;
}

static void cuda_close_device(hoist_bundle* b) {
  hoist_cuda* c = b->opencl->cuda;
  const hoist_status status = cuda_enter(b);
  for (size_t i = 0; !status && b->io.inputs && b->io.outputs && i < b->plan.input_count + b->plan.output_count; ++i) {
    hoist_transfer* t = hoist_transfer_of(b, i);
    if (!t->pinned) continue;
    c->call->stream_wait(c->stream);
    c->call->release_host(t->pinned);
    t->pinned = t->staged = NULL;
  }
  if (!status) (void)cuda_leave(b, HOIST_OK);
  cuda_drop(b);
  hoist_opencl_close(b);
}

/* ---- transfers ---- */

static hoist_status cuda_send(hoist_bundle* b, void* stream, size_t array, const void* data, size_t bytes) {
  hoist_cuda* c = b->opencl->cuda;
  return cuda_check(b, c->call->to_device(c->arrays[array], data, bytes, stream), b->plan.arrays[array].name);
}

static hoist_status cuda_fetch(hoist_bundle* b, void* stream, size_t array, void* data, size_t bytes) {
  hoist_cuda* c = b->opencl->cuda;
  return cuda_check(b, c->call->to_host(data, c->arrays[array], bytes, stream), b->plan.arrays[array].name);
}

static hoist_status cuda_write_array(hoist_bundle* b, size_t array, const void* data, size_t bytes) {
  const hoist_status status = cuda_enter(b);
  return status ? status : cuda_leave(b, cuda_wait(b, cuda_send(b, b->opencl->cuda->stream, array, data, bytes)));
}

static hoist_status cuda_read_array(hoist_bundle* b, size_t array, void* data, size_t bytes) {
  const hoist_status status = cuda_enter(b);
  return status ? status : cuda_leave(b, cuda_wait(b, cuda_fetch(b, b->opencl->cuda->stream, array, data, bytes)));
}

static hoist_status cuda_read_all(hoist_bundle* b, size_t count, const uint32_t* arrays, void* const* data,
                                  const size_t* bytes) {
  hoist_status status = cuda_enter(b);
  if (status) return status;
  for (size_t i = 0; i < count && !status; ++i) {
    if (bytes[i]) status = cuda_fetch(b, b->opencl->cuda->stream, arrays[i], data[i], bytes[i]);
  }
  return cuda_leave(b, cuda_wait(b, status));
}

static hoist_status cuda_copy(hoist_bundle* b, size_t from, size_t to, size_t offset, size_t bytes) {
  hoist_cuda* c = b->opencl->cuda;
  const hoist_status status = cuda_enter(b);
  if (status) return status;
  const int code = c->call->on_device(c->arrays[to] + offset, c->arrays[from], bytes, c->stream);
  return cuda_leave(b, cuda_check(b, code, b->plan.arrays[to].name));
}

static void cuda_exchange(hoist_cuda_address* arrays, size_t one, size_t other) {
  const hoist_cuda_address address = arrays[one];
  arrays[one] = arrays[other];
  arrays[other] = address;
}

/* Graphs contain addresses. All states exchange their memory after each run, so there are two graphs of a run. */
static hoist_status cuda_swap(hoist_bundle* b, size_t one, size_t other) {
  hoist_cuda* c = b->opencl->cuda;
  if (c->has_rows) {
    const hoist_status status = cuda_enter(b);
    if (status) return status;
    cuda_drop_rows(b);
    (void)cuda_leave(b, HOIST_OK);
  }
  cuda_exchange(c->arrays, one, other);
  cuda_exchange(c->owned, one, other);
  if (!c->exchanged) c->exchanged = one + 1;
  if (c->exchanged == one + 1) c->turn = !c->turn;
  return HOIST_OK;
}

static int cuda_make_staging(hoist_bundle* b, hoist_transfer* t, uint64_t bytes) {
  if (!cuda_enter(b)) {
    if (b->opencl->cuda->call->allocate_host(&t->pinned, bytes, 0)) t->pinned = NULL;
    (void)cuda_leave(b, HOIST_OK);
  }
  t->staged = t->pinned ? t->pinned : hoist_pages(bytes);
  return t->staged != NULL;
}

/* ---- runs ---- */

static hoist_status cuda_launch(hoist_bundle* b, const char* kernel, const hoist_cuda_node* n) {
  hoist_cuda* c = b->opencl->cuda;
  const int code = c->call->launch(n->function, n->grid[0], n->grid[1], n->grid[2], n->block[0], n->block[1],
                                   n->block[2], n->shared_bytes, c->stream, n->arguments, NULL);
  return cuda_check(b, code, kernel);
}

static hoist_status cuda_launch_step(hoist_bundle* b, size_t i) {
  hoist_cuda_node launch;
  hoist_status status = hoist_cuda_node_of_step(b, i, &launch);
  if (!status) status = cuda_launch(b, b->plan.kernels[b->plan.steps[i].kernel].name, &launch);
  free(launch.arguments);
  return status;
}

static hoist_status cuda_launch_run(hoist_bundle* b) {
  hoist_cuda* c = b->opencl->cuda;
  void** run = &c->runs[c->turn];
  const hoist_status status = *run ? HOIST_OK : hoist_cuda_graph_of_run(b, run);
  return status ? status : cuda_check(b, c->call->graph_launch(*run, c->stream), "cuGraphLaunch");
}

static hoist_status cuda_run_steps(hoist_bundle* b, size_t first, size_t count) {
  const int is_whole = first == 0 && count == b->plan.step_count;
  hoist_status status = HOIST_OK;
  hoist_begin_items(b, first);
  for (size_t i; !status && !(status = hoist_next_step(b, first + count, &i)) && i < b->plan.step_count;) {
    if (!is_whole) status = cuda_launch_step(b, i);
  }
  return status || !is_whole ? status : cuda_launch_run(b);
}

static hoist_status cuda_run(hoist_bundle* b, size_t first, size_t count, int with_outputs) {
  hoist_status status = cuda_enter(b);
  if (status) return status;
  status = hoist_send_inputs(b, b->opencl->cuda->stream, cuda_send);
  if (!status) status = cuda_run_steps(b, first, count);
  if (!status && with_outputs) status = hoist_fetch_outputs(b, b->opencl->cuda->stream, cuda_fetch);
  return cuda_leave(b, cuda_wait(b, status));
}

/* A step writes nothing that it reads, so repeating it leaves its results as they are. */
static hoist_status cuda_time_row(hoist_bundle* b, size_t i, double* seconds) {
  hoist_cuda* c = b->opencl->cuda;
  float milliseconds = 0;
  c->has_rows = 1;
  hoist_status status = c->rows[i] ? HOIST_OK : hoist_cuda_graph_of_step(b, i, HOIST_CUDA_ROW, &c->rows[i]);
  if (!status) status = cuda_check(b, c->call->event_record(c->begin, c->stream), "cuEventRecord");
  if (!status) status = cuda_check(b, c->call->graph_launch(c->rows[i], c->stream), "cuGraphLaunch");
  if (!status) status = cuda_check(b, c->call->event_record(c->end, c->stream), "cuEventRecord");
  status = cuda_wait(b, status);
  if (!status)
    status = cuda_check(b, c->call->event_milliseconds(&milliseconds, c->begin, c->end), "cuEventElapsedTime");
  *seconds += 1e-3 * (double)milliseconds / HOIST_CUDA_ROW;
  return status;
}

static hoist_status cuda_profile(hoist_bundle* b, double* step_seconds) {
  hoist_status status = cuda_enter(b);
  if (status) return status;
  memset(step_seconds, 0, b->plan.step_count * sizeof *step_seconds);
  status = hoist_send_inputs(b, b->opencl->cuda->stream, cuda_send);
  hoist_begin_items(b, 0);
  for (size_t i; !status && !(status = hoist_next_step(b, b->plan.step_count, &i)) && i < b->plan.step_count;)
    status = cuda_time_row(b, i, &step_seconds[i]);
  return cuda_leave(b, cuda_wait(b, status));
}

/* ---- the self-check ---- */

#define CUDA_ALIGNMENT 256u /* of cuMemAlloc */

static size_t cuda_guard_alignment(const hoist_bundle* b) {
  (void)b;
  return CUDA_ALIGNMENT;
}

static hoist_status cuda_make_argument(hoist_bundle* b, const char* kernel, size_t bytes, size_t guard,
                                       unsigned char* data, hoist_argument* made) {
  hoist_cuda* c = b->opencl->cuda;
  hoist_status status = cuda_enter(b);
  if (status) return status;
  status = cuda_allocate(b, kernel, bytes + 2 * guard, &made->address);
  made->guard = guard;
  if (!status && bytes + 2 * guard)
    status = cuda_check(b, c->call->to_device(made->address, data, bytes + 2 * guard, c->stream), kernel);
  return cuda_leave(b, cuda_wait(b, status));
}

static hoist_status cuda_read_argument(hoist_bundle* b, const char* kernel, const hoist_argument* argument, size_t from,
                                       size_t bytes, void* data) {
  hoist_cuda* c = b->opencl->cuda;
  hoist_status status = cuda_enter(b);
  if (status) return status;
  if (bytes) status = cuda_check(b, c->call->to_host(data, argument->address + from, bytes, c->stream), kernel);
  return cuda_leave(b, cuda_wait(b, status));
}

static void cuda_drop_argument(hoist_bundle* b, hoist_argument* argument) {
  if (!argument->address || cuda_enter(b)) return;
  b->opencl->cuda->call->release(argument->address);
  (void)cuda_leave(b, HOIST_OK);
}

static hoist_status cuda_run_kernel(hoist_bundle* b, const hoist_plan_kernel* kernel, const hoist_argument* arguments) {
  const size_t count = kernel->parameter_count;
  hoist_cuda_address* addresses = calloc(count + 1, sizeof *addresses);
  void** pointers = calloc(count + 1, sizeof *pointers);
  hoist_cuda_node launch;
  hoist_status status = addresses && pointers ? cuda_enter(b) : hoist_no_memory(&b->error, count);
  if (!status) {
    for (size_t i = 0; i < count; ++i) {
      addresses[i] = arguments[i].address + arguments[i].guard;
      pointers[i] = &addresses[i];
    }
    hoist_cuda_fill_node(b, kernel, pointers, &launch);
    status = cuda_leave(b, cuda_wait(b, cuda_launch(b, kernel->name, &launch)));
  }
  free(addresses);
  free(pointers);
  return status;
}

HOIST_INTERNAL const hoist_engine* hoist_cuda_engine(void) {
  static const hoist_engine engine = {.name = "CUDA graph",
                                      .close = cuda_close_device,
                                      .write = cuda_write_array,
                                      .read = cuda_read_array,
                                      .read_all = cuda_read_all,
                                      .copy = cuda_copy,
                                      .swap = cuda_swap,
                                      .stage = cuda_make_staging,
                                      .run = cuda_run,
                                      .profile = cuda_profile,
                                      .make_argument = cuda_make_argument,
                                      .read_argument = cuda_read_argument,
                                      .drop_argument = cuda_drop_argument,
                                      .run_kernel = cuda_run_kernel,
                                      .guard_alignment = cuda_guard_alignment};
  return &engine;
}

#endif
