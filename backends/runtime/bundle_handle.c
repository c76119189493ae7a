/* Opening, running and closing a bundle. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "bundle_handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

HOIST_INTERNAL hoist_status hoist_fill(hoist_bundle* b, cl_mem buffer, size_t bytes, unsigned char value) {
  if (b->checking) { /* to Oclgrind 21.10, what clEnqueueFillBuffer writes is still uninitialised */
    unsigned char* data = malloc(bytes);
    if (!data) return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
    memset(data, value, bytes);
    const cl_int code = clEnqueueWriteBuffer(b->queue, buffer, CL_TRUE, 0, bytes, data, 0, NULL, NULL);
    free(data);
    return hoist_cl_check(&b->error, code, "clEnqueueWriteBuffer");
  }
  /* The widest pattern that divides the size: drivers fill byte by byte slowly. */
  unsigned char pattern[16];
  memset(pattern, value, sizeof pattern);
  const size_t width = bytes % 16 == 0 ? 16 : bytes % 4 == 0 ? 4 : 1;
  return hoist_cl_check(&b->error, clEnqueueFillBuffer(b->queue, buffer, pattern, width, 0, bytes, 0, NULL, NULL),
                        "clEnqueueFillBuffer");
}

HOIST_INTERNAL uint64_t hoist_add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

HOIST_INTERNAL hoist_status hoist_fits(hoist_bundle* b, const char* what, uint64_t bytes) {
  if (bytes <= b->target.global_memory) return HOIST_OK;
  return hoist_fail(&b->error, HOIST_DEVICE_ERROR, "%s: needs %llu bytes, %s has %llu", what, (unsigned long long)bytes,
                    b->target.name, (unsigned long long)b->target.global_memory);
}

/* Of every array alone and of all together. */
static hoist_status check_memory(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  const int separate = b->checking || plan->arena_bytes > b->target.largest_allocation;
  uint64_t all = separate ? 0 : plan->arena_bytes;
  for (size_t i = 0; i < plan->array_count; ++i) {
    const hoist_plan_array* array = &plan->arrays[i];
    if (array->bytes > b->target.largest_allocation) {
      return hoist_fail(&b->error, HOIST_DEVICE_ERROR, "%s: needs %llu bytes, %s allocates at most %llu in one piece",
                        array->name, (unsigned long long)array->bytes, b->target.name,
                        (unsigned long long)b->target.largest_allocation);
    }
    if (separate || array->place != HOIST_PLACE_ARENA) all = hoist_add(all, array->bytes);
  }
  return hoist_fits(b, "the bundle", all);
}

static hoist_status make_buffer(hoist_bundle* b, const char* name, size_t bytes, cl_mem_flags flags, void* host,
                                cl_mem* buffer) {
  cl_int code;
  *buffer = clCreateBuffer(b->context, flags, bytes ? bytes : 1, host, &code);
  if (code) {
    return hoist_fail(&b->error, HOIST_DEVICE_ERROR, "%s: no buffer of %zu bytes on %s: %s", name, bytes,
                      b->target.name, hoist_cl_name(code));
  }
  return HOIST_OK;
}

static hoist_status make_weights(hoist_bundle* b, const hoist_plan_array* array, cl_mem* buffer) {
  unsigned char* data = b->weights + array->offset;
  /* Where the device computes in the program's own memory the file is used in place, else it is copied. */
  /* A checking device knows of its own memory only. */
  const cl_mem_flags flags = b->target.is_cpu && !b->checking ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR;
  return make_buffer(b, array->name, array->bytes, CL_MEM_READ_ONLY | flags, data, buffer);
}

static hoist_status make_writable(hoist_bundle* b, const char* name, size_t bytes, cl_mem* buffer) {
  return make_buffer(b, name, bytes, CL_MEM_READ_WRITE, NULL, buffer);
}

/* Zeros for everything but weights: what a kernel never writes is then the same on every run. The border of a cleared
 * array has its own byte. When checking, arrays start with the byte that was asked for, so that a result shows what it
 * takes from elements that nobody wrote. */
static hoist_status clear_buffers(hoist_bundle* b) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.array_count && !status; ++i) {
    const hoist_plan_array* array = &b->plan.arrays[i];
    if (array->place == HOIST_PLACE_WEIGHTS || array->bytes == 0) continue;
    const int may_show = array->place == HOIST_PLACE_ARENA || array->place == HOIST_PLACE_OUTPUT;
    status = hoist_fill(b, b->buffers[i], array->bytes, may_show ? b->checking : array->fill);
  }
  return status;
}

static hoist_status make_buffers(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  b->buffers = calloc(plan->array_count + 1, sizeof *b->buffers);
  if (!b->buffers) return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for %zu arrays", plan->array_count);
  const int separate = b->checking || plan->arena_bytes > b->target.largest_allocation;
  for (size_t i = 0; i < plan->array_count; ++i) {
    const hoist_plan_array* array = &plan->arrays[i];
    hoist_status status;
    if (array->place == HOIST_PLACE_WEIGHTS) {
      status = make_weights(b, array, &b->buffers[i]);
    } else if (hoist_memory_in_place(b, i)) {
      status = make_buffer(b, array->name, array->bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                           hoist_memory_in_place(b, i), &b->buffers[i]);
    } else if (array->place != HOIST_PLACE_ARENA || separate || !array->bytes || array->offset % b->target.alignment) {
      status = make_writable(b, array->name, array->bytes, &b->buffers[i]);
    } else {
      status = b->arena ? HOIST_OK : make_writable(b, "the arena", plan->arena_bytes, &b->arena);
      if (!status) {
        const cl_buffer_region region = {array->offset, array->bytes};
        cl_int code;
        b->buffers[i] = clCreateSubBuffer(b->arena, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
        status = hoist_cl_check(&b->error, code, array->name);
      }
    }
    if (status) return status;
  }
  return HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_make_kernel(hoist_bundle* b, const hoist_plan_kernel* plan, cl_kernel* kernel) {
  cl_int code;
  *kernel = clCreateKernel(b->program, plan->name, &code);
  if (code) return hoist_cl_check(&b->error, code, plan->name);
  cl_uint arguments = 0;
  size_t largest = 0, compiled[3] = {0, 0, 0};
  cl_ulong local = 0;
  const size_t expected = plan->parameter_count + (plan->local_bytes ? 1 : 0);
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
    if (!compiled[0] || compiled[i] == plan->local[i]) continue; /* zeros: its source leaves the size open */
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

HOIST_INTERNAL hoist_status hoist_bind(hoist_bundle* b, cl_kernel kernel, const hoist_plan_kernel* plan,
                                       const cl_mem* buffers) {
  cl_int code = CL_SUCCESS;
  const cl_uint count = (cl_uint)plan->parameter_count;
  for (cl_uint i = 0; i < count && !code; ++i) code = clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[i]);
  if (!code && plan->local_bytes) code = clSetKernelArg(kernel, count, plan->local_bytes, NULL);
  return hoist_cl_check(&b->error, code, plan->name);
}

static hoist_status make_steps(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  b->kernels = calloc(plan->step_count + 1, sizeof *b->kernels);
  size_t most = 1;
  for (size_t i = 0; i < plan->kernel_count; ++i) {
    if (plan->kernels[i].parameter_count > most) most = plan->kernels[i].parameter_count;
  }
  cl_mem* arguments = calloc(most, sizeof *arguments);
  hoist_status status = HOIST_OK;
  if (!b->kernels || !arguments) {
    status = hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for %zu steps", plan->step_count);
  }
  for (size_t i = 0; i < plan->step_count && !status; ++i) {
    const hoist_plan_step* step = &plan->steps[i];
    for (size_t k = 0; k < step->argument_count; ++k) arguments[k] = b->buffers[step->arguments[k]];
    status = hoist_make_kernel(b, &plan->kernels[step->kernel], &b->kernels[i]);
    if (!status) status = hoist_bind(b, b->kernels[i], &plan->kernels[step->kernel], arguments);
  }
  free(arguments);
  return status;
}

/* ${XDG_CACHE_HOME:-~/.cache}/hoist, or NULL where neither is known. */
static const char* default_cache(char* path, size_t capacity) {
  const char* cache = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  int length;
  /* The convention says that a relative path counts as unset. */
  if (cache && *cache == '/')
    length = snprintf(path, capacity, "%s/hoist", cache);
  else if (home && *home)
    length = snprintf(path, capacity, "%s/.cache/hoist", home);
  else
    return NULL;
  return length > 0 && (size_t)length < capacity ? path : NULL;
}

/* Device and context of another handle, which may be in use by another thread: they never change. */
static hoist_status share_context(hoist_bundle* b, const hoist_bundle* other) {
  if (!other->context)
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "the handle to share a context with is not open");
  cl_int code = other->target.is_part ? clRetainDevice(other->target.device) : CL_SUCCESS;
  if (code) return hoist_cl_check(&b->error, code, "clRetainDevice");
  b->target = other->target;
  b->device_index = other->device_index;
  code = clRetainContext(other->context);
  if (code) return hoist_cl_check(&b->error, code, "clRetainContext");
  b->context = other->context;
  return HOIST_OK;
}

static hoist_status make_context(hoist_bundle* b, const hoist_options* options) {
  const hoist_status status =
      hoist_target_open(options->device, &b->plan.made_for, options->threads, &b->target, &b->device_index, &b->error);
  if (status) return status;
  cl_int code;
  b->context = clCreateContext(NULL, 1, &b->target.device, NULL, NULL, &code);
  return hoist_cl_check(&b->error, code, "clCreateContext");
}

static hoist_status open_on_device(hoist_bundle* b, const hoist_options* options) {
  b->checking = (unsigned char)options->separate_buffers;
  hoist_status status = options->context_of ? share_context(b, options->context_of) : make_context(b, options);
  if (!status) status = check_memory(b);
  if (status) return status;
  unsigned char* source = NULL;
  size_t source_bytes = 0, weights_bytes = 0;
  status = hoist_plan_file(&b->plan, "weights.bin", &b->weights, &weights_bytes, &b->error);
  if (!status && weights_bytes != b->plan.weights_bytes) {
    status = hoist_fail(&b->error, HOIST_BAD_BUNDLE, "weights.bin: has %zu bytes, the arrays in plan.bin need %llu",
                        weights_bytes, (unsigned long long)b->plan.weights_bytes);
  }
  if (!status) status = hoist_plan_file(&b->plan, "kernels.cl", &source, &source_bytes, &b->error);
  if (status) return status;
  cl_int code;
  b->queue = clCreateCommandQueue(b->context, b->target.device, 0, &code);
  status = hoist_cl_check(&b->error, code, "clCreateCommandQueue");
  if (!status) {
    char path[4096];
    const char* cache = options->no_cache ? NULL : options->cache_folder;
    if (!cache && !options->no_cache) cache = default_cache(path, sizeof path);
    status = hoist_program_build(&b->target, b->context, (const char*)source, source_bytes, b->plan.build_options,
                                 cache, &b->program, &b->cache_entry, &b->error);
  }
  free(source);
  if (!status) status = hoist_make_transfers(b);
  if (!status) status = make_buffers(b);
  if (!status) status = clear_buffers(b);
  if (!status) status = make_steps(b);
  if (!status && b->cache_entry.path[0]) {
    /* Drivers compile the last part at the first launch, so every kernel runs once before its program is kept. The
     * inputs are zeros here. */
    for (size_t i = 0; i < b->plan.step_count && !status; ++i) {
      status = hoist_launch(b, b->queue, b->kernels[i], &b->plan.kernels[b->plan.steps[i].kernel], NULL);
    }
    if (!status) status = hoist_cl_check(&b->error, clFinish(b->queue), "clFinish");
    if (!status) hoist_program_keep(b->program, &b->cache_entry);
    if (!status) status = clear_buffers(b);
  }
  if (!status) status = hoist_pass(b, b->queue, 1);
  if (!status) status = hoist_cl_check(&b->error, clFinish(b->queue), "clFinish");
  if (!status && !b->target.is_cpu) {
    free(b->weights);
    b->weights = NULL;
  }
  return status;
}

hoist_status hoist_open(const char* folder, const hoist_options* options, hoist_bundle** bundle) {
  const hoist_options defaults = {NULL, 0, 0, 0, NULL, NULL};
  if (!bundle) return HOIST_BAD_ARGUMENT;
  hoist_bundle* b = *bundle = calloc(1, sizeof *b);
  if (!b) return HOIST_OUT_OF_MEMORY;
  if (!folder) return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "no folder given");
  hoist_status status = hoist_plan_read(folder, &b->plan, &b->error);
  if (!status) status = open_on_device(b, options ? options : &defaults);
  return status;
}

void hoist_close(hoist_bundle* b) {
  if (!b) return;
  if (b->queue) {
    /* PoCL never frees the queue of a buffer that is still mapped. */
    if (b->inputs && b->outputs) hoist_pass(b, b->queue, 0);
    clFinish(b->queue);
  }
  for (size_t i = 0; b->kernels && i < b->plan.step_count; ++i) {
    if (b->kernels[i]) clReleaseKernel(b->kernels[i]);
  }
  /* In the reverse order of creation: NVIDIA's driver 580 faults when an older one of two overlapping sub-buffers goes
   * first. */
  for (size_t i = b->buffers ? b->plan.array_count : 0; i-- > 0;) {
    if (b->buffers[i]) clReleaseMemObject(b->buffers[i]);
  }
  if (b->arena) clReleaseMemObject(b->arena);
  if (b->program) clReleaseProgram(b->program);
  hoist_queue_release(&b->target, b->profiling_queue);
  hoist_queue_release(&b->target, b->queue);
  if (b->context) clReleaseContext(b->context);
  hoist_target_close(&b->target);
  for (size_t i = 0; b->inputs && i < b->plan.input_count; ++i) free(b->inputs[i].staged);
  for (size_t i = 0; b->outputs && i < b->plan.output_count; ++i) free(b->outputs[i].staged);
  free(b->inputs);
  free(b->outputs);
  free(b->kernels);
  free(b->buffers);
  free(b->weights);
  hoist_plan_free(&b->plan);
  free(b);
}

/* ---- what there is ---- */

const char* hoist_error_message(const hoist_bundle* b) { return b ? b->error.message : "out of memory"; }
const char* hoist_model_name(const hoist_bundle* b) { return b->plan.model_name ? b->plan.model_name : ""; }
const char* hoist_device_name(const hoist_bundle* b) { return b->target.name; }
int hoist_device_index(const hoist_bundle* b) { return (int)b->device_index; }
const char* hoist_profile_name(const hoist_bundle* b) { return b->plan.made_for.name ? b->plan.made_for.name : ""; }
int hoist_profile_is_cpu(const hoist_bundle* b) { return b->plan.made_for.is_cpu; }
int hoist_fits_profile(const hoist_bundle* b) { return b->target.is_cpu == b->plan.made_for.is_cpu; }
int hoist_threads(const hoist_bundle* b) { return (int)b->target.compute_units; }
const char* hoist_cache_outcome(const hoist_bundle* b) { return b->cache_entry.outcome; }
size_t hoist_input_count(const hoist_bundle* b) { return b->plan.input_count; }
size_t hoist_output_count(const hoist_bundle* b) { return b->plan.output_count; }
size_t hoist_step_count(const hoist_bundle* b) { return b->plan.step_count; }
size_t hoist_array_count(const hoist_bundle* b) { return b->plan.array_count; }

HOIST_INTERNAL hoist_status hoist_in_range(hoist_bundle* b, const char* what, size_t index, size_t count) {
  if (index < count) return HOIST_OK;
  return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s %zu: there are %zu, counted from 0", what, index, count);
}

hoist_status hoist_describe_array(hoist_bundle* b, size_t index, hoist_array* array) {
  if (hoist_in_range(b, "array", index, b->plan.array_count)) return b->error.status;
  const hoist_plan_array* found = &b->plan.arrays[index];
  array->name = found->name;
  array->scalar = hoist_scalar_row(found->scalar)->name;
  array->rank = found->rank;
  array->shape = found->shape;
  array->bytes = found->bytes;
  return HOIST_OK;
}

hoist_status hoist_input(hoist_bundle* b, size_t index, hoist_array* array) {
  if (hoist_in_range(b, "input", index, b->plan.input_count)) return b->error.status;
  return hoist_describe_array(b, b->plan.inputs[index].array, array);
}

hoist_status hoist_output(hoist_bundle* b, size_t index, hoist_array* array) {
  if (hoist_in_range(b, "output", index, b->plan.output_count)) return b->error.status;
  return hoist_describe_array(b, b->plan.outputs[index], array);
}

int hoist_input_index(const hoist_bundle* b, const char* name) {
  for (size_t i = 0; i < b->plan.input_count; ++i) {
    if (strcmp(b->plan.arrays[b->plan.inputs[i].array].name, name) == 0) return (int)i;
  }
  return -1;
}

int hoist_output_index(const hoist_bundle* b, const char* name) {
  for (size_t i = 0; i < b->plan.output_count; ++i) {
    if (strcmp(b->plan.arrays[b->plan.outputs[i]].name, name) == 0) return (int)i;
  }
  return -1;
}

hoist_status hoist_describe_step(hoist_bundle* b, size_t index, hoist_step* step) {
  if (hoist_in_range(b, "step", index, b->plan.step_count)) return b->error.status;
  const hoist_plan_step* found = &b->plan.steps[index];
  const hoist_plan_kernel* kernel = &b->plan.kernels[found->kernel];
  step->kernel = kernel->name;
  step->kernel_index = (int)found->kernel;
  step->layer_count = found->layer_count;
  step->layers = found->layers;
  step->argument_count = found->argument_count;
  step->arguments = found->arguments;
  step->operations = kernel->operations;
  return HOIST_OK;
}

/* ---- running ---- */

HOIST_INTERNAL hoist_status hoist_launch(hoist_bundle* b, cl_command_queue queue, cl_kernel kernel,
                                         const hoist_plan_kernel* plan, cl_event* event) {
  size_t global[3], local[3];
  for (int i = 0; i < 3; ++i) {
    global[i] = plan->global[i];
    local[i] = plan->local[i];
  }
  const cl_int code = clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, local, 0, NULL, event);
  return code ? hoist_cl_check(&b->error, code, plan->name) : HOIST_OK;
}

/* Whatever failed, nothing stays behind in the queue that would still read the handle's memory. */
static hoist_status finish(hoist_bundle* b, cl_command_queue queue, hoist_status status) {
  const hoist_status passed = hoist_pass(b, queue, 1);
  if (!status) status = passed;
  const cl_int code = clFinish(queue);
  if (status || !code) return status;
  return hoist_cl_check(&b->error, code, "clFinish");
}

static hoist_status run_steps(hoist_bundle* b, size_t first, size_t count) {
  hoist_status status = hoist_upload(b, b->queue);
  for (size_t i = first; i < first + count && !status; ++i) {
    status = hoist_launch(b, b->queue, b->kernels[i], &b->plan.kernels[b->plan.steps[i].kernel], NULL);
  }
  return status;
}

hoist_status hoist_run(hoist_bundle* b) {
  hoist_status status = run_steps(b, 0, b->plan.step_count);
  if (!status) status = hoist_download(b, b->queue);
  status = finish(b, b->queue, status);
  b->has_run = status == HOIST_OK;
  return status;
}

static void outputs_changed(hoist_bundle* b) {
  for (size_t i = 0; i < b->plan.output_count; ++i) b->outputs[i].fresh = 0;
  b->has_run = 1;
}

hoist_status hoist_run_steps(hoist_bundle* b, size_t first, size_t count) {
  if (first > b->plan.step_count || count > b->plan.step_count - first) {
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "steps %zu to %zu: there are %zu", first, first + count,
                      b->plan.step_count);
  }
  const hoist_status status = finish(b, b->queue, run_steps(b, first, count));
  outputs_changed(b);
  return status;
}

hoist_status hoist_profile(hoist_bundle* b, double* step_seconds) {
  cl_int code = CL_SUCCESS;
  if (!b->profiling_queue) {
    b->profiling_queue = clCreateCommandQueue(b->context, b->target.device, CL_QUEUE_PROFILING_ENABLE, &code);
    if (code) {
      b->profiling_queue = NULL;
      return hoist_cl_check(&b->error, code, "clCreateCommandQueue with profiling");
    }
  }
  const size_t count = b->plan.step_count;
  cl_event* events = calloc(count + 1, sizeof *events);
  if (!events) return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for %zu events", count);
  hoist_status status = hoist_upload(b, b->profiling_queue);
  for (size_t i = 0; i < count && !status; ++i) {
    status = hoist_launch(b, b->profiling_queue, b->kernels[i], &b->plan.kernels[b->plan.steps[i].kernel], &events[i]);
  }
  status = finish(b, b->profiling_queue, status);
  for (size_t i = 0; i < count; ++i) {
    cl_ulong start = 0, end = 0;
    if (!events[i]) continue;
    code = clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
    if (!code) code = clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    if (code && !status) status = hoist_cl_check(&b->error, code, "clGetEventProfilingInfo");
    step_seconds[i] = end > start ? (double)(end - start) * 1e-9 : 0;
    clReleaseEvent(events[i]);
  }
  free(events);
  outputs_changed(b);
  return status;
}
