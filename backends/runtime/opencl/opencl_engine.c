/* Kernels in OpenCL C on a device: buffers, launches, transfers. Small transfers go through staging memory inside the
 * queue, and no buffer in use is mapped. On PoCL that is nearly as fast as writing to mapped memory (12 us against 10
 * us for six kernels), and the OpenCL standard allows it on every driver. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "backends/runtime/control.h"
#include "backends/runtime/cuda/cuda_parts.h"
#include "backends/runtime/family.h"
#include "backends/runtime/host_steps.h"
#include "backends/runtime/native/loaded_code.h"
#include "backends/runtime/native/native_device.h"
#include "backends/runtime/transfers.h"

#ifndef HOIST_WITHOUT_OPENCL

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hoist_status pass_to_host(hoist_bundle* b, cl_command_queue queue) {
  for (size_t i = 0; i < b->plan.input_count + b->plan.output_count; ++i) {
    hoist_transfer* t = hoist_transfer_of(b, i);
    cl_int code = CL_SUCCESS;
    if (!t->in_place || t->host_holds) continue;
    clEnqueueMapBuffer(queue, b->opencl->buffers[t->array], CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
                       b->plan.arrays[t->array].bytes, 0, NULL, NULL, &code);
    if (code) return hoist_cl_check(&b->error, code, b->plan.arrays[t->array].name);
    t->host_holds = 1;
  }
  return HOIST_OK;
}

/* On CPU devices the weights are the file's own bytes. */
static unsigned char* memory_of(hoist_bundle* b, size_t array) {
  const hoist_plan_array* a = &b->plan.arrays[array];
  const hoist_transfer* t = b->io.in_place[array];
  if (b->opencl->stays_on_host[array]) return b->opencl->host_arena + a->offset;
  if (a->place == HOIST_PLACE_WEIGHTS) return b->weights.data ? b->weights.data + a->offset : NULL;
  return t && t->host_holds ? t->staged : NULL;
}

static hoist_status send_array(hoist_bundle* b, void* queue, size_t array, const void* data, size_t bytes) {
  const cl_int code = clEnqueueWriteBuffer(queue, b->opencl->buffers[array], CL_FALSE, 0, bytes, data, 0, NULL, NULL);
  return hoist_cl_check(&b->error, code, b->plan.arrays[array].name);
}

static hoist_status fetch_array(hoist_bundle* b, void* queue, size_t array, void* data, size_t bytes) {
  const unsigned char* held = memory_of(b, array);
  cl_int code = CL_SUCCESS;
  if (held)
    memcpy(data, held, bytes);
  else
    code = clEnqueueReadBuffer(queue, b->opencl->buffers[array], CL_FALSE, 0, bytes, data, 0, NULL, NULL);
  return hoist_cl_check(&b->error, code, b->plan.arrays[array].name);
}

/* Waits for the queue after any failure too, since its commands use the handle's memory. */
static hoist_status finish(hoist_bundle* b, cl_command_queue queue, hoist_status status) {
  const hoist_status passed = pass_to_host(b, queue);
  if (!status) status = passed;
  const cl_int code = clFinish(queue);
  if (b->target.is_cpu) hoist_touch_libraries(&b->opencl->loaded_libraries);
  if (status || !code) return status;
  return hoist_cl_check(&b->error, code, "clFinish");
}

/* Runs a fused launch, whose first step is the next one; `step` becomes its last step. */
static hoist_status launch_fused(hoist_bundle* b, const hoist_plan_launch* fused_launch, size_t* step) {
  hoist_status status = HOIST_OK;
  for (size_t k = 0; k < fused_launch->kernel.parameter_count && !status; ++k)
    status = hoist_opencl_pass_to_device(b, b->opencl->queue, fused_launch->arguments[k]);
  if (!status)
    status = hoist_opencl_launch(b, b->opencl->queue, b->opencl->launches[fused_launch - b->plan.launches],
                                 &fused_launch->kernel, NULL);
  for (size_t k = 1; k < fused_launch->count && !status; ++k)
    status = hoist_next_step(b, fused_launch->first + fused_launch->count, step);
  return status;
}

static hoist_status run_steps(hoist_bundle* b, size_t first, size_t count, int whole) {
  const size_t end = first + count;
  hoist_status status = hoist_send_inputs(b, b->opencl->queue, send_array);
  hoist_begin_items(b, first);
  for (size_t i; !status && !(status = hoist_next_step(b, end, &i)) && i < b->plan.step_count;) {
    const hoist_plan_kernel* kernel = &b->plan.kernels[b->plan.steps[i].kernel];
    const hoist_plan_launch* fused_launch = hoist_opencl_launch_from(b, i, end);
    if (fused_launch)
      status = launch_fused(b, fused_launch, &i);
    else
      status = kernel->host ? hoist_host_step(b, i) : hoist_opencl_launch_step(b, b->opencl->queue, i, NULL);
    if (!whole && i + 1 == end) break;
  }
  return status;
}

/* Device and context of another handle never change, so another thread may be using it. */
static hoist_status share_context(hoist_bundle* b, const hoist_bundle* other) {
  if (!other->opencl || !other->opencl->context)
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "the handle whose context is to be shared is not open");
  cl_int code = other->target.is_part ? clRetainDevice(other->target.device) : CL_SUCCESS;
  if (code) return hoist_cl_check(&b->error, code, "clRetainDevice");
  b->target = other->target;
  code = clRetainContext(other->opencl->context);
  if (code) return hoist_cl_check(&b->error, code, "clRetainContext");
  b->opencl->context = other->opencl->context;
  return HOIST_OK;
}

static hoist_status make_context(hoist_bundle* b, const hoist_options* options) {
  const hoist_status status =
      hoist_target_open(options->device, &b->plan.made_for, options->threads, &b->target, &b->error);
  if (status) return status;
  cl_int code;
  b->opencl->context = clCreateContext(NULL, 1, &b->target.device, NULL, NULL, &code);
  return hoist_cl_check(&b->error, code, "clCreateContext");
}

/* Weights are read while the first query to OpenCL loads every driver of the system with its compilers, which takes
 * half of the time to open a small bundle. */
typedef struct weights_reader {
  hoist_bundle* bundle;
  hoist_error error; /* separate, since the opening thread writes the handle's own error */
  pthread_t thread;
  int is_thread;
} weights_reader;

static void* read_weights(void* user) {
  weights_reader* reader = user;
  (void)hoist_read_weights(reader->bundle, &reader->error);
  return NULL;
}

static void begin_weights(weights_reader* reader) {
  reader->is_thread = !reader->bundle->weights.data && pthread_create(&reader->thread, NULL, read_weights, reader) == 0;
}

static void end_weights(weights_reader* reader) {
  if (reader->is_thread)
    pthread_join(reader->thread, NULL);
  else
    read_weights(reader);
}

/* The rest of opening where CUDA's driver runs the plan. */
static hoist_status open_with_cuda(hoist_bundle* b) {
  b->engine = hoist_cuda_engine();
  hoist_program_keep(b->opencl->program, &b->target, &b->plan, &b->cache_entry);
  return hoist_make_transfers(b);
}

static void* buffer_of(const hoist_bundle* b, size_t array) { return b->opencl->buffers[array]; }

static hoist_status open_with_opencl(hoist_bundle* b, const hoist_options* options) {
  hoist_status status = hoist_make_transfers(b);
  if (!status) status = hoist_opencl_keep_on_host(b);
  if (!status) status = hoist_opencl_make_buffers(b);
  if (!status) status = hoist_opencl_clear_buffers(b, 0);
  if (!status) status = hoist_opencl_make_steps(b);
  if (!status && b->cache_entry.path[0]) status = hoist_opencl_keep_program(b, options);
  if (!status) status = pass_to_host(b, b->opencl->queue);
  if (!status) status = hoist_cl_check(&b->error, clFinish(b->opencl->queue), "clFinish");
  return status ? status : hoist_share_weights(b, buffer_of);
}

/* CUDA's driver runs the plan if it can. A session uses the same driver as the handle with which it shares. */
static hoist_status open_engine(hoist_bundle* b, const hoist_options* options) {
  const int with_cuda = b->shares_with && b->shares_with->opencl->cuda;
  if ((!b->shares_with || with_cuda) && hoist_cuda_open(b, options->context_of)) return open_with_cuda(b);
  if (!with_cuda) return open_with_opencl(b, options);
  return hoist_fail(&b->error, HOIST_DEVICE_ERROR, "CUDA's driver has no memory for another session");
}

static hoist_status open_on_device(hoist_bundle* b, const hoist_options* options) {
  b->opencl = calloc(1, sizeof *b->opencl);
  if (!b->opencl) return hoist_no_memory(&b->error, sizeof *b->opencl);
  const int has_weights = b->weights.data || b->shares_with;
  weights_reader reader = {.bundle = b};
  if (!b->shares_with) begin_weights(&reader);
  hoist_status status = options->context_of ? share_context(b, options->context_of) : make_context(b, options);
  if (!status) status = hoist_check_memory(b, has_weights);
  if (!b->shares_with) end_weights(&reader);
  if (!status && (status = reader.error.status)) b->error = reader.error;
  if (status) return status;
  b->opencl->loaded_libraries = hoist_loaded_libraries();
  cl_int code;
  b->opencl->queue = clCreateCommandQueue(b->opencl->context, b->target.device, 0, &code);
  status = hoist_cl_check(&b->error, code, "clCreateCommandQueue");
  if (!status) status = hoist_opencl_make_program(b, options);
  if (!status) status = open_engine(b, options);
  if (!status && options->progress)
    options->progress(options->user, b->plan.kernel_count + 1, b->plan.kernel_count + 1, "");
  if (!status && !b->target.is_cpu && !b->shares_with) hoist_drop_file(&b->weights);
  return status;
}

/* Whole pages: PoCL uses foreign memory in place only at its own alignment. Other devices copy five times as fast from
 * and to memory that the driver has pinned, if it can pin any. */
static int make_staging(hoist_bundle* b, hoist_transfer* t, uint64_t bytes) {
  cl_int code = CL_SUCCESS;
  cl_mem pinned = NULL;
  if (!b->target.is_cpu && !b->checking)
    pinned = clCreateBuffer(b->opencl->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code);
  if (pinned) {
    t->staged = clEnqueueMapBuffer(b->opencl->queue, pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL,
                                   NULL, &code);
    t->pinned = code ? NULL : pinned;
    if (code) clReleaseMemObject(pinned);
    if (code) t->staged = NULL;
  }
  if (!t->staged) t->staged = hoist_pages(bytes);
  return t->staged != NULL;
}

/* Weights are never written. */
static hoist_status write_now_or_later(hoist_bundle* b, size_t array, const void* data, size_t bytes, cl_bool waits) {
  unsigned char* held = memory_of(b, array);
  if (held) {
    memcpy(held, data, bytes);
    return HOIST_OK;
  }
  const cl_int code =
      clEnqueueWriteBuffer(b->opencl->queue, b->opencl->buffers[array], waits, 0, bytes, data, 0, NULL, NULL);
  return hoist_cl_check(&b->error, code, b->plan.arrays[array].name);
}

static hoist_status write_array(hoist_bundle* b, size_t array, const void* data, size_t bytes) {
  return write_now_or_later(b, array, data, bytes, CL_TRUE);
}

static hoist_status write_later(hoist_bundle* b, size_t array, const void* data, size_t bytes) {
  return write_now_or_later(b, array, data, bytes, CL_FALSE);
}

static hoist_status read_array(hoist_bundle* b, size_t array, void* data, size_t bytes) {
  const unsigned char* held = memory_of(b, array);
  if (held) {
    memcpy(data, held, bytes);
    return HOIST_OK;
  }
  const cl_int code =
      clEnqueueReadBuffer(b->opencl->queue, b->opencl->buffers[array], CL_TRUE, 0, bytes, data, 0, NULL, NULL);
  return hoist_cl_check(&b->error, code, b->plan.arrays[array].name);
}

static hoist_status read_all(hoist_bundle* b, size_t count, const uint32_t* arrays, void* const* data,
                             const size_t* bytes) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < count && !status; ++i) {
    const unsigned char* held = memory_of(b, arrays[i]);
    if (!bytes[i]) continue;
    if (held) {
      memcpy(data[i], held, bytes[i]);
      continue;
    }
    const cl_int code = clEnqueueReadBuffer(b->opencl->queue, b->opencl->buffers[arrays[i]], CL_FALSE, 0, bytes[i],
                                            data[i], 0, NULL, NULL);
    status = hoist_cl_check(&b->error, code, b->plan.arrays[arrays[i]].name);
  }
  /* After any failure too: the caller owns the destination memory. */
  const cl_int code = clFinish(b->opencl->queue);
  return status ? status : hoist_cl_check(&b->error, code, "clFinish");
}

static hoist_status copy_array(hoist_bundle* b, size_t from, size_t to, size_t offset, size_t bytes) {
  hoist_status status = hoist_opencl_pass_to_device(b, b->opencl->queue, from);
  if (!status) status = hoist_opencl_pass_to_device(b, b->opencl->queue, to);
  if (status) return status;
  const cl_int code = clEnqueueCopyBuffer(b->opencl->queue, b->opencl->buffers[from], b->opencl->buffers[to], 0, offset,
                                          bytes, 0, NULL, NULL);
  return hoist_cl_check(&b->error, code, b->plan.arrays[to].name);
}

/* A pattern is copied at the call, so no wait is needed. A checking device treats filled memory as uninitialised. */
static hoist_status set_number(hoist_bundle* b, size_t array, int64_t number) {
  if (b->checking || memory_of(b, array)) return write_array(b, array, &number, sizeof number);
  const cl_int code = clEnqueueFillBuffer(b->opencl->queue, b->opencl->buffers[array], &number, sizeof number, 0,
                                          sizeof number, 0, NULL, NULL);
  return hoist_cl_check(&b->error, code, b->plan.arrays[array].name);
}

static hoist_status run(hoist_bundle* b, size_t first, size_t count, int with_outputs) {
  hoist_status status = run_steps(b, first, count, with_outputs);
  if (!status && with_outputs) status = hoist_fetch_outputs(b, b->opencl->queue, fetch_array);
  return finish(b, b->opencl->queue, status);
}

/* The operands are transferred by the other queue, after all earlier steps. */
static hoist_status profile_on_host(hoist_bundle* b, size_t i, double* seconds) {
  const hoist_status status = hoist_cl_check(&b->error, clFinish(b->opencl->profiling_queue), "clFinish");
  if (status) return status;
  const uint64_t start = hoist_nanoseconds();
  const hoist_status done = hoist_host_step(b, i);
  const cl_int code = clFinish(b->opencl->queue); /* after any failure too: the other queue reads the result */
  *seconds += 1e-9 * (double)(hoist_nanoseconds() - start);
  return done ? done : hoist_cl_check(&b->error, code, "clFinish");
}

/* Copies and writes of controls are in the other queue. */
static hoist_status next_profiled(hoist_bundle* b, size_t* step) {
  const hoist_status status = hoist_next_step(b, b->plan.step_count, step);
  if (status || !b->plan.control_count) return status;
  return hoist_cl_check(&b->error, clFinish(b->opencl->queue), "clFinish");
}

static void add_seconds(hoist_bundle* b, cl_event* event, double* seconds, hoist_status* status) {
  cl_ulong start = 0, end = 0;
  if (!*event) return;
  cl_int code = clGetEventProfilingInfo(*event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
  if (!code) code = clGetEventProfilingInfo(*event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
  if (code && !*status) *status = hoist_cl_check(&b->error, code, "clGetEventProfilingInfo");
  if (end > start) *seconds += (double)(end - start) * 1e-9;
  clReleaseEvent(*event);
  *event = NULL;
}

static hoist_status profile(hoist_bundle* b, double* step_seconds) {
  cl_int code = CL_SUCCESS;
  if (!b->opencl->profiling_queue) {
    b->opencl->profiling_queue =
        clCreateCommandQueue(b->opencl->context, b->target.device, CL_QUEUE_PROFILING_ENABLE, &code);
    if (code) {
      b->opencl->profiling_queue = NULL;
      return hoist_cl_check(&b->error, code, "clCreateCommandQueue with profiling");
    }
  }
  const size_t count = b->plan.step_count;
  cl_event* events = calloc(count + 1, sizeof *events);
  if (!events) return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for %zu events", count);
  if (count) memset(step_seconds, 0, count * sizeof *step_seconds); /* may be NULL without steps */
  hoist_status status = hoist_send_inputs(b, b->opencl->profiling_queue, send_array);
  hoist_begin_items(b, 0);
  for (size_t i; !status && !(status = next_profiled(b, &i)) && i < count;) {
    const hoist_plan_kernel* kernel = &b->plan.kernels[b->plan.steps[i].kernel];
    if (kernel->host)
      status = profile_on_host(b, i, &step_seconds[i]);
    else
      status = hoist_opencl_launch_step(b, b->opencl->profiling_queue, i, &events[i]);
    /* A step of a loop runs again, and its condition is read through the other queue. */
    if (!status && b->plan.control_count) {
      status = hoist_cl_check(&b->error, clFinish(b->opencl->profiling_queue), "clFinish");
      add_seconds(b, &events[i], &step_seconds[i], &status);
    }
  }
  status = finish(b, b->opencl->profiling_queue, status);
  for (size_t i = 0; i < count; ++i) add_seconds(b, &events[i], &step_seconds[i], &status);
  free(events);
  return status;
}

/* ---- the self-check ---- */

static size_t guard_alignment(const hoist_bundle* b) { return b->target.alignment; }

static hoist_status make_argument(hoist_bundle* b, const char* kernel, size_t bytes, size_t guard, unsigned char* data,
                                  hoist_argument* made) {
  const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
  const cl_buffer_region region = {guard, bytes};
  cl_int code;
  cl_mem buffer = clCreateBuffer(b->opencl->context, flags, bytes + 2 * guard, data, &code);
  if (!code && !guard) made->part = buffer;
  if (!code && guard) {
    made->whole = buffer;
    made->part = clCreateSubBuffer(buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  }
  if (!code) return HOIST_OK;
  return hoist_fail(&b->error, HOIST_DEVICE_ERROR, "kernel %s: no buffer of %zu bytes: %s", kernel, bytes + 2 * guard,
                    hoist_cl_name(code));
}

static hoist_status read_argument(hoist_bundle* b, const char* kernel, const hoist_argument* argument, size_t from,
                                  size_t bytes, void* data) {
  const cl_mem buffer = argument->whole ? argument->whole : argument->part;
  return hoist_cl_check(
      &b->error, clEnqueueReadBuffer(b->opencl->queue, buffer, CL_TRUE, from, bytes, data, 0, NULL, NULL), kernel);
}

static void drop_argument(hoist_bundle* b, hoist_argument* argument) {
  (void)b;
  if (argument->part) clReleaseMemObject(argument->part);
  if (argument->whole) clReleaseMemObject(argument->whole);
}

/* Launches the kernel alone, or as a part of a fused launch with these arguments. */
static hoist_status run_kernel(hoist_bundle* b, const hoist_plan_kernel* kernel, const hoist_argument* arguments) {
  const hoist_plan_step* step = &b->plan.steps[kernel->step];
  const hoist_plan_launch* fused_launch = kernel->is_alone ? NULL : step->launch;
  cl_kernel function = NULL;
  hoist_status status = fused_launch ? hoist_opencl_make_part(b, fused_launch, kernel->step, 1, &function)
                                     : hoist_opencl_make_kernel(b, kernel, 0, &function);
  for (size_t i = 0; i < kernel->parameter_count && !status; ++i) {
    const size_t place = fused_launch ? hoist_launch_argument(fused_launch, step, i) : i;
    const cl_int code = clSetKernelArg(function, (cl_uint)place, sizeof(cl_mem), &arguments[i].part);
    status = hoist_cl_check(&b->error, code, kernel->name);
  }
  if (!status && !fused_launch) status = hoist_opencl_bind_local_memory(b, function, kernel);
  if (!status) status = hoist_opencl_launch_part(b, b->opencl->queue, function, kernel, fused_launch, NULL);
  if (!status) status = hoist_cl_check(&b->error, clFinish(b->opencl->queue), kernel->name);
  if (function) clReleaseKernel(function);
  return status;
}

HOIST_INTERNAL const hoist_engine* hoist_opencl_engine(void) {
  static const hoist_engine engine = {
      "OpenCL",    open_on_device, hoist_opencl_close, write_array,       read_array, read_all,       memory_of,
      write_later, copy_array,     set_number,         hoist_opencl_swap, NULL,       make_staging,   run,
      profile,     make_argument,  read_argument,      drop_argument,     run_kernel, guard_alignment};
  return &engine;
}

#endif /* HOIST_WITHOUT_OPENCL */
