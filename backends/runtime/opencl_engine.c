/* Kernels in OpenCL C on a device: buffers, launches, transfers.
 *
 * Small transfers go through staging memory inside the queue, and no buffer in use is mapped: as fast as writing to
 * mapped memory on PoCL (12 us against 10 us for six kernels), and allowed by the OpenCL standard on every driver. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "bundle_handle.h"

#ifndef HOIST_WITHOUT_OPENCL

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS "kernels.cl"
#define HOST_ALIGNMENT 64u /* of arrays that the host uses where they are */

static hoist_status fill(hoist_bundle* b, cl_mem buffer, size_t bytes, unsigned char value) {
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
  *buffer = hoist_family_weights(b, array);
  if (*buffer) {
    const cl_int code = clRetainMemObject(*buffer);
    if (code) *buffer = NULL;
    return hoist_cl_check(&b->error, code, array->name);
  }
  /* Where the device computes in the program's own memory the file is used in place, else it is copied. */
  /* A checking device knows of its own memory only. */
  const cl_mem_flags flags = b->target.is_cpu && !b->checking ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR;
  return make_buffer(b, array->name, array->bytes, CL_MEM_READ_ONLY | flags, data, buffer);
}

static hoist_status make_writable(hoist_bundle* b, const char* name, size_t bytes, cl_mem* buffer) {
  return make_buffer(b, name, bytes, CL_MEM_READ_WRITE, NULL, buffer);
}

static int has_arena(const hoist_bundle* b) {
  return !b->checking && b->plan.arena_bytes <= b->target.largest_allocation;
}

/* Whether the array's buffer may be a part of the arena's. */
static int lies_in_arena(const hoist_bundle* b, size_t i) {
  const hoist_plan_array* array = &b->plan.arrays[i];
  return array->place == HOIST_PLACE_ARENA && has_arena(b) && !b->in_place[i] && array->bytes &&
         array->offset % b->target.alignment == 0;
}

typedef struct placed_array {
  uint64_t offset, bytes;
  size_t array;
} placed_array;

static int by_place(const void* left, const void* right) {
  const placed_array *a = left, *b = right;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1) : 0;
}

/* On a device with memory of its own, arrays with one place in the arena have a buffer together, as large as the
 * largest, and no others share it: with each launch NVIDIA's driver 580 goes through what overlaps the arguments that
 * are parts of a buffer, which takes up to 0.1 ms. Arrays at one place are never in use at the same time. Where this
 * would take more than a quarter of the memory, all are parts of the arena. */
static hoist_status make_shared_buffers(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  if (b->target.is_cpu) return HOIST_OK;
  placed_array* placed = calloc(plan->array_count + 1, sizeof *placed);
  if (!placed) return hoist_no_memory(&b->error, plan->array_count);
  size_t count = 0;
  for (size_t i = 0; i < plan->array_count; ++i) {
    const hoist_plan_array* array = &plan->arrays[i];
    if (lies_in_arena(b, i) && !b->stays_on_host[i]) placed[count++] = (placed_array){array->offset, array->bytes, i};
  }
  qsort(placed, count, sizeof *placed, by_place);
  uint64_t all = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || placed[i].offset != placed[i - 1].offset) all = hoist_add(all, placed[i].bytes);
  }
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < count && all <= b->target.global_memory / 4 && !status; ++i) {
    cl_mem* const buffer = &b->buffers[placed[i].array];
    if (i > 0 && placed[i].offset == placed[i - 1].offset) {
      cl_mem shared = b->buffers[placed[i - 1].array];
      status = hoist_cl_check(&b->error, clRetainMemObject(shared), plan->arrays[placed[i].array].name);
      if (!status) *buffer = shared;
    } else {
      status = make_writable(b, plan->arrays[placed[i].array].name, placed[i].bytes, buffer);
    }
  }
  free(placed);
  return status;
}

/* Where the device computes in the program's own memory, the arena and arrays that begin as zeros are pages of zeros,
 * which cost nothing before they are used: drivers take memory as it comes, and write every byte to clear it. */
static int begins_as_zeros(const hoist_plan_array* array) {
  return array->place == HOIST_PLACE_CLEARED && array->fill == 0;
}

static int is_pages_of_zeros(const hoist_bundle* b, size_t i) {
  return b->zeros && begins_as_zeros(&b->plan.arrays[i]);
}

/* Memory of the system's is zeros where nothing has run, and so is what the host stages. */
static hoist_status clear_buffers(hoist_bundle* b, int has_run) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.array_count && !status; ++i) {
    const hoist_plan_array* array = &b->plan.arrays[i];
    if (array->place == HOIST_PLACE_WEIGHTS || array->bytes == 0 || b->stays_on_host[i]) continue;
    if (!has_run && (b->in_place[i] || is_pages_of_zeros(b, i) || (b->zeros && lies_in_arena(b, i)))) continue;
    status = fill(b, b->buffers[i], array->bytes, (unsigned char)hoist_first_byte(b, array));
  }
  return status;
}

static void goes_to_device(hoist_bundle* b, uint32_t array) {
  if (array != HOIST_NO_ARRAY) b->stays_on_host[array] = 0;
}

static void moves_go_to_device(hoist_bundle* b, const hoist_plan_move* moves, size_t count) {
  for (size_t i = 0; i < count; ++i) goes_to_device(b, moves[i].from), goes_to_device(b, moves[i].to);
}

/* What one step on the host gives the next need not travel: such arrays are in memory of the handle, each where the
 * arena has its place. */
static hoist_status keep_on_host(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  uint64_t bytes = 0;
  b->stays_on_host = calloc(plan->array_count + 1, 1);
  if (!b->stays_on_host) return hoist_no_memory(&b->error, plan->array_count);
  for (size_t i = 0; i < plan->step_count; ++i) {
    const hoist_plan_step* step = &plan->steps[i];
    for (size_t k = 0; plan->kernels[step->kernel].host && k < step->argument_count; ++k) {
      const hoist_plan_array* array = &plan->arrays[step->arguments[k]];
      b->stays_on_host[step->arguments[k]] = array->place == HOIST_PLACE_ARENA && array->offset % HOST_ALIGNMENT == 0;
    }
  }
  for (size_t i = 0; i < plan->step_count; ++i) {
    const hoist_plan_step* step = &plan->steps[i];
    for (size_t k = 0; !plan->kernels[step->kernel].host && k < step->argument_count; ++k)
      goes_to_device(b, step->arguments[k]);
  }
  for (size_t i = 0; i < plan->control_count; ++i) {
    const hoist_plan_control* control = &plan->controls[i];
    goes_to_device(b, control->condition), goes_to_device(b, control->trips), goes_to_device(b, control->number);
    goes_to_device(b, control->next), goes_to_device(b, control->count);
    moves_go_to_device(b, control->before, control->before_count);
    moves_go_to_device(b, control->after, control->after_count);
    moves_go_to_device(b, control->otherwise, control->otherwise_count);
  }
  for (size_t i = 0; i < plan->array_count; ++i) {
    const uint64_t end = hoist_add(plan->arrays[i].offset, plan->arrays[i].bytes);
    if (b->stays_on_host[i] && end > bytes) bytes = end;
  }
  if (!bytes) return HOIST_OK;
  const hoist_status status = hoist_fits(b, "what steps on the host give", hoist_add(plan->arena_bytes, bytes));
  if (status) return status;
  unsigned char* const memory = hoist_pages(bytes);
  if (!memory) return hoist_no_memory(&b->error, bytes);
  memset(memory, b->checking, (size_t)bytes);
  b->host_arena = memory;
  return HOIST_OK;
}

static uint64_t whole_pages(uint64_t bytes) { return hoist_add(bytes, HOIST_PAGE - 1) / HOIST_PAGE * HOIST_PAGE; }

static uint64_t pages_of_arena(const hoist_bundle* b) { return has_arena(b) ? whole_pages(b->plan.arena_bytes) : 0; }

/* The arena comes first, then each array that begins as zeros. */
static hoist_status make_zeros(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  uint64_t bytes = hoist_add(1, pages_of_arena(b)); /* an array of none has a place, too */
  if (!b->target.is_cpu || b->checking) return HOIST_OK;
  for (size_t i = 0; i < plan->array_count; ++i) {
    if (begins_as_zeros(&plan->arrays[i])) bytes = hoist_add(bytes, whole_pages(plan->arrays[i].bytes));
  }
  b->zeros = hoist_pages_of_zeros(bytes, &b->zeros_memory);
  return b->zeros ? HOIST_OK : hoist_no_memory(&b->error, bytes);
}

static hoist_status make_arena(hoist_bundle* b) {
  const size_t bytes = (size_t)b->plan.arena_bytes;
  if (!b->zeros) return make_writable(b, "the arena", bytes, &b->arena);
  return make_buffer(b, "the arena", bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, b->zeros, &b->arena);
}

static hoist_status make_buffers(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  b->buffers = calloc(plan->array_count + 1, sizeof *b->buffers);
  if (!b->buffers) return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for %zu arrays", plan->array_count);
  hoist_status status = make_shared_buffers(b);
  if (!status) status = make_zeros(b);
  uint64_t zeros = pages_of_arena(b); /* where the next of them begin */
  for (size_t i = 0; i < plan->array_count && !status; ++i) {
    const hoist_plan_array* array = &plan->arrays[i];
    if (b->stays_on_host[i] || b->buffers[i]) {
      status = HOIST_OK;
    } else if (array->place == HOIST_PLACE_WEIGHTS) {
      status = make_weights(b, array, &b->buffers[i]);
    } else if (b->in_place[i]) {
      status = make_buffer(b, array->name, array->bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                           b->in_place[i]->staged, &b->buffers[i]);
    } else if (is_pages_of_zeros(b, i)) {
      status = make_buffer(b, array->name, array->bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, b->zeros + zeros,
                           &b->buffers[i]);
      zeros += whole_pages(array->bytes);
    } else if (!lies_in_arena(b, i)) {
      status = make_writable(b, array->name, array->bytes, &b->buffers[i]);
    } else {
      status = b->arena ? HOIST_OK : make_arena(b);
      if (!status) {
        const cl_buffer_region region = {array->offset, array->bytes};
        cl_int code;
        b->buffers[i] = clCreateSubBuffer(b->arena, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
        status = hoist_cl_check(&b->error, code, array->name);
      }
    }
  }
  return status;
}

/* `more` arguments behind the parameters and the local memory. */
static hoist_status make_kernel(hoist_bundle* b, const hoist_plan_kernel* plan, size_t more, cl_kernel* kernel) {
  cl_int code;
  *kernel = clCreateKernel(b->program, plan->name, &code);
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

static hoist_status bind_local_memory(hoist_bundle* b, cl_kernel kernel, const hoist_plan_kernel* plan) {
  if (!plan->local_bytes) return HOIST_OK;
  const cl_int code = clSetKernelArg(kernel, (cl_uint)plan->parameter_count, plan->local_bytes, NULL);
  return hoist_cl_check(&b->error, code, plan->name);
}

/* The kernel with these arrays of the plan as its first arguments. */
static hoist_status make_bound(hoist_bundle* b, const hoist_plan_kernel* plan, size_t more, const uint32_t* arrays,
                               cl_kernel* kernel) {
  hoist_status status = make_kernel(b, plan, more, kernel);
  for (size_t i = 0; i < plan->parameter_count && !status; ++i) {
    const cl_int code = clSetKernelArg(*kernel, (cl_uint)i, sizeof(cl_mem), &b->buffers[arrays[i]]);
    status = hoist_cl_check(&b->error, code, plan->name);
  }
  return status ? status : bind_local_memory(b, *kernel, plan);
}

/* Some of the steps of a launch; by work-items of their own for each group of a single one where they share none. */
static hoist_status make_part(hoist_bundle* b, const hoist_plan_launch* launch, size_t first, size_t count,
                              cl_kernel* kernel) {
  const cl_int items = b->shares_groups ? (cl_int)launch->kernel.global[0] : 0;
  const cl_int begin = (cl_int)(first - launch->first), end = begin + (cl_int)count;
  const cl_uint next = (cl_uint)launch->kernel.parameter_count;
  hoist_status status = make_bound(b, &launch->kernel, 4, launch->arguments, kernel);
  if (status) return status;
  cl_int code = clSetKernelArg(*kernel, next, sizeof(cl_mem), &b->taken);
  if (!code) code = clSetKernelArg(*kernel, next + 1, sizeof items, &items);
  if (!code) code = clSetKernelArg(*kernel, next + 2, sizeof begin, &begin);
  if (!code) code = clSetKernelArg(*kernel, next + 3, sizeof end, &end);
  return hoist_cl_check(&b->error, code, launch->kernel.name);
}

static hoist_status make_step(hoist_bundle* b, size_t i) {
  const hoist_plan_step* step = &b->plan.steps[i];
  cl_kernel kernel = NULL;
  const hoist_status status = step->launch ? make_part(b, step->launch, i, 1, &kernel)
                                           : make_bound(b, &b->plan.kernels[step->kernel], 0, step->arguments, &kernel);
  if (!status)
    b->kernels[i] = kernel;
  else if (kernel)
    clReleaseKernel(kernel);
  return status;
}

static uint64_t groups_of(const hoist_plan_kernel* kernel) {
  uint64_t groups = 1;
  for (int i = 0; i < 3; ++i) groups *= kernel->global[i] / kernel->local[i];
  return groups;
}

/* Work-items share the groups of a launch's steps; more than there are groups would find nothing to do. The words by
 * which they do it are zeros before a launch, and behind it. Where a driver's work-items are no threads of the
 * processor, or its atomic operations are not known to be right (Mesa's llvmpipe 22.3 performs them for work-items that
 * do not exist), each step is launched alone. */
static hoist_status share_groups(hoist_bundle* b) {
  hoist_plan* plan = &b->plan;
  size_t words = 0;
  b->shares_groups = hoist_is_pocl_on_cpu(&b->target);
  for (size_t i = 0; i < plan->launch_count; ++i) {
    hoist_plan_launch* launch = &plan->launches[i];
    uint64_t most = 1;
    for (size_t k = launch->first; k < launch->first + launch->count; ++k) {
      const uint64_t groups = groups_of(&plan->kernels[plan->steps[k].kernel]);
      if (groups > most) most = groups;
    }
    launch->kernel.global[0] = most < b->target.compute_units ? most : b->target.compute_units;
    /* HOIST_ROW of kernels.cl, and its rows: one for each work-item, and two more */
    const size_t row = (launch->count + 15) / 16 * 16, needed = (launch->kernel.global[0] + 2) * row;
    if (needed > words) words = needed;
  }
  const size_t bytes = words * sizeof(cl_int);
  if (!words) return HOIST_OK;
  const hoist_status status = make_writable(b, "what work-items share", bytes, &b->taken);
  return status ? status : fill(b, b->taken, bytes, 0);
}

static hoist_status make_steps(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  b->kernels = calloc(plan->step_count + 1, sizeof *b->kernels);
  b->launches = calloc(plan->launch_count + 1, sizeof *b->launches);
  if (!b->kernels || !b->launches)
    return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for %zu steps", plan->step_count);
  hoist_status status = share_groups(b);
  for (size_t i = 0; i < plan->step_count && !status; ++i) {
    const int is_alone = !plan->steps[i].launch || !b->shares_groups;
    if (is_alone && !plan->kernels[plan->steps[i].kernel].host) status = make_step(b, i);
  }
  for (size_t i = 0; i < plan->launch_count && b->shares_groups && !status; ++i) {
    const hoist_plan_launch* launch = &plan->launches[i];
    status = make_part(b, launch, launch->first, launch->count, &b->launches[i]);
  }
  return status;
}

/* Arrays in place go to the device before the first command that uses them, and back at the end of a run: between runs
 * the host holds them. */
static hoist_status pass_to_device(hoist_bundle* b, cl_command_queue queue, size_t array) {
  hoist_transfer* t = b->in_place[array];
  if (!t || !t->host_holds) return HOIST_OK;
  const cl_int code = clEnqueueUnmapMemObject(queue, b->buffers[array], t->staged, 0, NULL, NULL);
  t->host_holds = code != CL_SUCCESS;
  return hoist_cl_check(&b->error, code, b->plan.arrays[array].name);
}

static hoist_status pass_to_host(hoist_bundle* b, cl_command_queue queue) {
  for (size_t i = 0; i < b->plan.input_count + b->plan.output_count; ++i) {
    hoist_transfer* t = hoist_transfer_of(b, i);
    cl_int code = CL_SUCCESS;
    if (!t->in_place || t->host_holds) continue;
    clEnqueueMapBuffer(queue, b->buffers[t->array], CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
                       b->plan.arrays[t->array].bytes, 0, NULL, NULL, &code);
    if (code) return hoist_cl_check(&b->error, code, b->plan.arrays[t->array].name);
    t->host_holds = 1;
  }
  return HOIST_OK;
}

/* The weights are the file's own bytes on CPU devices. */
static unsigned char* memory_of(hoist_bundle* b, size_t array) {
  const hoist_plan_array* a = &b->plan.arrays[array];
  const hoist_transfer* t = b->in_place[array];
  if (b->stays_on_host[array]) return b->host_arena + a->offset;
  if (a->place == HOIST_PLACE_WEIGHTS) return b->weights ? b->weights + a->offset : NULL;
  return t && t->host_holds ? t->staged : NULL;
}

/* What a run needs before its first launch, and the outputs after its last; neither waits. */
static hoist_status upload(hoist_bundle* b, cl_command_queue queue) {
  if (hoist_check_inputs(b)) return b->error.status;
  for (size_t i = 0; i < b->plan.input_count; ++i) {
    hoist_transfer* input = &b->inputs[i];
    const uint32_t number = b->plan.inputs[i].array;
    const hoist_plan_array* array = &b->plan.arrays[number];
    if (!input->pending && (!input->shared || input->in_place)) continue;
    cl_int code = CL_SUCCESS; /* drivers refuse transfers of nothing */
    if (array->bytes)
      code = clEnqueueWriteBuffer(queue, b->buffers[number], CL_FALSE, 0, array->bytes, input->staged, 0, NULL, NULL);
    if (code) return hoist_cl_check(&b->error, code, array->name);
    input->pending = 0;
  }
  return HOIST_OK;
}

static hoist_status download(hoist_bundle* b, cl_command_queue queue) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.output_count && !status; ++i) {
    hoist_transfer* output = &b->outputs[i];
    if (!output->staged || output->in_place) continue;
    const hoist_plan_array* array = &b->plan.arrays[output->array];
    if (array->place == HOIST_PLACE_WEIGHTS && output->fresh) continue; /* what is constant comes once */
    const unsigned char* held = memory_of(b, output->array);
    cl_int code = CL_SUCCESS;
    if (held) {
      memcpy(output->staged, held, array->bytes);
    } else if (array->bytes) {
      code = clEnqueueReadBuffer(queue, b->buffers[output->array], CL_FALSE, 0, array->bytes, output->staged, 0, NULL,
                                 NULL);
    }
    if (code) status = hoist_cl_check(&b->error, code, array->name);
    output->fresh = 1;
  }
  return status;
}

static hoist_status launch(hoist_bundle* b, cl_command_queue queue, cl_kernel kernel, const hoist_plan_kernel* plan,
                           cl_event* event) {
  size_t global[3], local[3];
  for (int i = 0; i < 3; ++i) {
    global[i] = plan->global[i];
    local[i] = plan->local[i];
  }
  const cl_int code = clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, local, 0, NULL, event);
  return code ? hoist_cl_check(&b->error, code, plan->name) : HOIST_OK;
}

/* The kernel as a launch of its own, or as one step of `joined`. */
static hoist_status launch_part(hoist_bundle* b, cl_command_queue queue, cl_kernel kernel,
                                const hoist_plan_kernel* plan, const hoist_plan_launch* joined, cl_event* event) {
  if (!joined) return launch(b, queue, kernel, plan, event);
  hoist_plan_kernel part = joined->kernel;
  if (!b->shares_groups) part.global[0] = groups_of(plan);
  return launch(b, queue, kernel, &part, event);
}

static hoist_status launch_step(hoist_bundle* b, cl_command_queue queue, size_t i, cl_event* event) {
  const hoist_plan_step* step = &b->plan.steps[i];
  hoist_status status = b->kernels[i] ? HOIST_OK : make_step(b, i);
  for (size_t k = 0; k < step->argument_count && !status; ++k) status = pass_to_device(b, queue, step->arguments[k]);
  return status ? status : launch_part(b, queue, b->kernels[i], &b->plan.kernels[step->kernel], step->launch, event);
}

/* Whatever failed, nothing stays behind in the queue that would still read the handle's memory. */
static hoist_status finish(hoist_bundle* b, cl_command_queue queue, hoist_status status) {
  const hoist_status passed = pass_to_host(b, queue);
  if (!status) status = passed;
  const cl_int code = clFinish(queue);
  if (b->target.is_cpu) hoist_touch_libraries(&b->loaded_libraries);
  if (status || !code) return status;
  return hoist_cl_check(&b->error, code, "clFinish");
}

/* The launch of several steps that begins with this one and ends before `end`; NULL: the step is launched alone. */
static const hoist_plan_launch* launch_from(const hoist_bundle* b, size_t step, size_t end) {
  const hoist_plan_launch* joined = b->plan.steps[step].launch;
  const int begins =
      joined && b->shares_groups && !b->steps_apart && joined->first == step && step + joined->count <= end;
  return begins ? joined : NULL;
}

/* The steps of a launch, the first of which is the next one; `step` becomes the last. */
static hoist_status launch_joined(hoist_bundle* b, const hoist_plan_launch* joined, size_t* step) {
  hoist_status status = HOIST_OK;
  for (size_t k = 0; k < joined->kernel.parameter_count && !status; ++k)
    status = pass_to_device(b, b->queue, joined->arguments[k]);
  if (!status) status = launch(b, b->queue, b->launches[joined - b->plan.launches], &joined->kernel, NULL);
  for (size_t k = 1; k < joined->count && !status; ++k)
    status = hoist_next_step(b, joined->first + joined->count, step);
  return status;
}

static hoist_status run_steps(hoist_bundle* b, size_t first, size_t count, int whole) {
  const size_t end = first + count;
  hoist_status status = upload(b, b->queue);
  hoist_begin_items(b, first);
  for (size_t i; !status && !(status = hoist_next_step(b, end, &i)) && i < b->plan.step_count;) {
    const hoist_plan_kernel* kernel = &b->plan.kernels[b->plan.steps[i].kernel];
    const hoist_plan_launch* joined = launch_from(b, i, end);
    if (joined)
      status = launch_joined(b, joined, &i);
    else
      status = kernel->host ? hoist_host_step(b, i) : launch_step(b, b->queue, i, NULL);
    if (!whole && i + 1 == end) break;
  }
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

/* Drivers compile the last part at the first launch, so every kernel runs once before its program is kept. The inputs
 * are zeros here. */
static hoist_status keep_program(hoist_bundle* b, const hoist_options* options) {
  hoist_status status = HOIST_OK;
  size_t seen = 0;
  for (size_t i = 0; i < b->plan.step_count && !status; ++i) {
    const hoist_plan_launch* joined = launch_from(b, i, b->plan.step_count);
    const uint32_t index = b->plan.steps[i].kernel;
    const hoist_plan_kernel* kernel = joined ? &joined->kernel : &b->plan.kernels[index];
    if (kernel->host) continue;
    int is_first = 1;
    for (size_t j = 0; j < i && is_first && !joined; ++j)
      is_first = b->plan.steps[j].launch || b->plan.steps[j].kernel != index;
    if (is_first && options->progress) options->progress(options->user, ++seen, b->plan.kernel_count + 1, kernel->name);
    status = joined ? launch(b, b->queue, b->launches[joined - b->plan.launches], kernel, NULL)
                    : launch_step(b, b->queue, i, NULL);
    if (!status && is_first && options->progress) status = hoist_cl_check(&b->error, clFinish(b->queue), "clFinish");
    if (joined) i += joined->count - 1;
  }
  if (!status) status = hoist_cl_check(&b->error, clFinish(b->queue), "clFinish");
  if (!status) hoist_program_keep(b->program, &b->target, &b->plan, &b->cache_entry);
  return status ? status : clear_buffers(b, 1);
}

/* kernels.cl is read where no program of it is kept. */
static hoist_status make_program(hoist_bundle* b, const hoist_options* options) {
  char path[4096];
  const char* own = options->no_cache ? NULL : b->root;
  const char* cache = options->no_cache ? NULL : options->cache_folder;
  if (!cache && !options->no_cache) cache = default_cache(path, sizeof path);
  if (options->progress) options->progress(options->user, 0, b->plan.kernel_count + 1, "");
  uint64_t hash = 0;
  hoist_status status = hoist_plan_hash(&b->plan, KERNELS, &hash, &b->error);
  if (!status) {
    status = hoist_program_find(&b->target, b->context, hash, b->plan.build_options, own, cache, &b->program,
                                &b->cache_entry, &b->error);
  }
  if (status || b->program) return status;
  unsigned char* source = NULL;
  size_t bytes = 0;
  status = hoist_plan_file(&b->plan, KERNELS, &source, &bytes, &b->error);
  if (!status) {
    status = hoist_program_compile(&b->target, b->context, (const char*)source, bytes, b->plan.build_options,
                                   &b->program, &b->error);
  }
  free(source);
  return status;
}

/* Weights are read while the first question to OpenCL loads every driver of the system with its compilers, which takes
 * half of the time until a small bundle is open. */
typedef struct weights_reader {
  hoist_bundle* bundle;
  hoist_error error; /* the handle's own is written by who opens the device */
  pthread_t thread;
  int is_thread;
} weights_reader;

static void* read_weights(void* user) {
  weights_reader* reader = user;
  (void)hoist_read_weights(reader->bundle, &reader->error);
  return NULL;
}

static void begin_weights(weights_reader* reader) {
  reader->is_thread = !reader->bundle->weights && pthread_create(&reader->thread, NULL, read_weights, reader) == 0;
}

static void end_weights(weights_reader* reader) {
  if (reader->is_thread)
    pthread_join(reader->thread, NULL);
  else
    read_weights(reader);
}

static hoist_status open_on_device(hoist_bundle* b, const hoist_options* options) {
  const int has_weights = b->weights != NULL;
  weights_reader reader = {.bundle = b};
  begin_weights(&reader);
  hoist_status status = options->context_of ? share_context(b, options->context_of) : make_context(b, options);
  if (!status) status = hoist_check_memory(b, has_weights);
  end_weights(&reader);
  if (!status && (status = reader.error.status)) b->error = reader.error;
  if (status) return status;
  b->loaded_libraries = hoist_loaded_libraries();
  cl_int code;
  b->queue = clCreateCommandQueue(b->context, b->target.device, 0, &code);
  status = hoist_cl_check(&b->error, code, "clCreateCommandQueue");
  if (!status) status = make_program(b, options);
  if (!status) status = hoist_make_transfers(b);
  if (!status) status = keep_on_host(b);
  if (!status) status = make_buffers(b);
  if (!status) status = clear_buffers(b, 0);
  if (!status) status = make_steps(b);
  if (!status && b->cache_entry.path[0]) status = keep_program(b, options);
  if (!status && options->progress)
    options->progress(options->user, b->plan.kernel_count + 1, b->plan.kernel_count + 1, "");
  if (!status) status = pass_to_host(b, b->queue);
  if (!status) status = hoist_cl_check(&b->error, clFinish(b->queue), "clFinish");
  if (!status && !b->target.is_cpu) {
    free(b->weights);
    b->weights = NULL;
  }
  return status;
}

/* Whole pages: PoCL takes memory of others only at its own alignment. Other devices copy five times as fast from and to
 * memory that the driver has pinned, as far as there is some. */
static int make_staging(hoist_bundle* b, hoist_transfer* t, uint64_t bytes) {
  cl_int code = CL_SUCCESS;
  cl_mem pinned = NULL;
  if (!b->target.is_cpu && !b->checking)
    pinned = clCreateBuffer(b->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code);
  if (pinned) {
    t->staged =
        clEnqueueMapBuffer(b->queue, pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &code);
    t->pinned = code ? NULL : pinned;
    if (code) clReleaseMemObject(pinned);
    if (code) t->staged = NULL;
  }
  if (!t->staged) t->staged = hoist_pages(bytes);
  return t->staged != NULL;
}

static void drop_pinned(hoist_bundle* b) {
  for (size_t i = 0; b->inputs && b->outputs && i < b->plan.input_count + b->plan.output_count; ++i) {
    hoist_transfer* t = hoist_transfer_of(b, i);
    if (!t->pinned) continue;
    clEnqueueUnmapMemObject(b->queue, t->pinned, t->staged, 0, NULL, NULL);
    clFinish(b->queue);
    clReleaseMemObject(t->pinned);
    t->pinned = t->staged = NULL;
  }
}

static void close_device(hoist_bundle* b) {
  if (b->queue) {
    /* PoCL never frees the queue of a buffer that is still mapped. */
    for (size_t i = 0; b->in_place && b->buffers && i < b->plan.array_count; ++i) pass_to_device(b, b->queue, i);
    clFinish(b->queue);
    drop_pinned(b);
  }
  for (size_t i = 0; b->kernels && i < b->plan.step_count; ++i) {
    if (b->kernels[i]) clReleaseKernel(b->kernels[i]);
  }
  for (size_t i = 0; b->launches && i < b->plan.launch_count; ++i) {
    if (b->launches[i]) clReleaseKernel(b->launches[i]);
  }
  /* In the reverse order of creation: NVIDIA's driver 580 faults when an older one of two overlapping sub-buffers goes
   * first. */
  for (size_t i = b->buffers ? b->plan.array_count : 0; i-- > 0;) {
    if (b->buffers[i]) clReleaseMemObject(b->buffers[i]);
  }
  if (b->taken) clReleaseMemObject(b->taken);
  if (b->arena) clReleaseMemObject(b->arena);
  if (b->program) clReleaseProgram(b->program);
  hoist_queue_release(&b->target, b->profiling_queue);
  hoist_queue_release(&b->target, b->queue);
  if (b->context) clReleaseContext(b->context);
  hoist_target_close(&b->target);
  free(b->stays_on_host);
  free(b->host_arena);
  free(b->zeros_memory); /* behind its buffers */
  free(b->kernels);
  free(b->launches);
  free(b->buffers);
}

/* Nobody writes weights. */
static hoist_status write_now_or_later(hoist_bundle* b, size_t array, const void* data, size_t bytes, cl_bool waits) {
  unsigned char* held = memory_of(b, array);
  if (held) {
    memcpy(held, data, bytes);
    return HOIST_OK;
  }
  const cl_int code = clEnqueueWriteBuffer(b->queue, b->buffers[array], waits, 0, bytes, data, 0, NULL, NULL);
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
  const cl_int code = clEnqueueReadBuffer(b->queue, b->buffers[array], CL_TRUE, 0, bytes, data, 0, NULL, NULL);
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
    const cl_int code =
        clEnqueueReadBuffer(b->queue, b->buffers[arrays[i]], CL_FALSE, 0, bytes[i], data[i], 0, NULL, NULL);
    status = hoist_cl_check(&b->error, code, b->plan.arrays[arrays[i]].name);
  }
  /* Whatever failed: the caller owns the memory that is read into. */
  const cl_int code = clFinish(b->queue);
  return status ? status : hoist_cl_check(&b->error, code, "clFinish");
}

static hoist_status copy_array(hoist_bundle* b, size_t from, size_t to, size_t offset, size_t bytes) {
  hoist_status status = pass_to_device(b, b->queue, from);
  if (!status) status = pass_to_device(b, b->queue, to);
  if (status) return status;
  const cl_int code = clEnqueueCopyBuffer(b->queue, b->buffers[from], b->buffers[to], 0, offset, bytes, 0, NULL, NULL);
  return hoist_cl_check(&b->error, code, b->plan.arrays[to].name);
}

/* A pattern is taken over at once, so nobody waits. A checking device still takes what it fills for uninitialised. */
static hoist_status set_number(hoist_bundle* b, size_t array, int64_t number) {
  if (b->checking || memory_of(b, array)) return write_array(b, array, &number, sizeof number);
  const cl_int code =
      clEnqueueFillBuffer(b->queue, b->buffers[array], &number, sizeof number, 0, sizeof number, 0, NULL, NULL);
  return hoist_cl_check(&b->error, code, b->plan.arrays[array].name);
}

static hoist_status run(hoist_bundle* b, size_t first, size_t count, int with_outputs) {
  hoist_status status = run_steps(b, first, count, with_outputs);
  if (!status && with_outputs) status = download(b, b->queue);
  return finish(b, b->queue, status);
}

/* Its arrays go through the other queue, once the steps before are done. */
static hoist_status profile_on_host(hoist_bundle* b, size_t i, double* seconds) {
  const hoist_status status = hoist_cl_check(&b->error, clFinish(b->profiling_queue), "clFinish");
  if (status) return status;
  const uint64_t start = hoist_nanoseconds();
  const hoist_status done = hoist_host_step(b, i);
  const cl_int code = clFinish(b->queue); /* whatever failed: the other queue reads the result */
  *seconds += 1e-9 * (double)(hoist_nanoseconds() - start);
  return done ? done : hoist_cl_check(&b->error, code, "clFinish");
}

/* What controls copy and write stands in the other queue. */
static hoist_status next_profiled(hoist_bundle* b, size_t* step) {
  const hoist_status status = hoist_next_step(b, b->plan.step_count, step);
  if (status || !b->plan.control_count) return status;
  return hoist_cl_check(&b->error, clFinish(b->queue), "clFinish");
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
  if (count) memset(step_seconds, 0, count * sizeof *step_seconds); /* callers have no array for no steps */
  hoist_status status = upload(b, b->profiling_queue);
  hoist_begin_items(b, 0);
  for (size_t i; !status && !(status = next_profiled(b, &i)) && i < count;) {
    const hoist_plan_kernel* kernel = &b->plan.kernels[b->plan.steps[i].kernel];
    if (kernel->host)
      status = profile_on_host(b, i, &step_seconds[i]);
    else
      status = launch_step(b, b->profiling_queue, i, &events[i]);
    /* A step of a loop runs again, and what decides that is read by the other queue. */
    if (!status && b->plan.control_count) {
      status = hoist_cl_check(&b->error, clFinish(b->profiling_queue), "clFinish");
      add_seconds(b, &events[i], &step_seconds[i], &status);
    }
  }
  status = finish(b, b->profiling_queue, status);
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
  cl_mem buffer = clCreateBuffer(b->context, flags, bytes + 2 * guard, data, &code);
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
  return hoist_cl_check(&b->error, clEnqueueReadBuffer(b->queue, buffer, CL_TRUE, from, bytes, data, 0, NULL, NULL),
                        kernel);
}

static void drop_argument(hoist_argument* argument) {
  if (argument->part) clReleaseMemObject(argument->part);
  if (argument->whole) clReleaseMemObject(argument->whole);
}

/* As a launch of its own, or as a part of one with these arguments. */
static hoist_status run_kernel(hoist_bundle* b, const hoist_plan_kernel* kernel, const hoist_argument* arguments) {
  const hoist_plan_step* step = &b->plan.steps[kernel->step];
  const hoist_plan_launch* joined = kernel->is_alone ? NULL : step->launch;
  cl_kernel function = NULL;
  hoist_status status =
      joined ? make_part(b, joined, kernel->step, 1, &function) : make_kernel(b, kernel, 0, &function);
  for (size_t i = 0; i < kernel->parameter_count && !status; ++i) {
    const size_t place = joined ? hoist_launch_argument(joined, step, i) : i;
    const cl_int code = clSetKernelArg(function, (cl_uint)place, sizeof(cl_mem), &arguments[i].part);
    status = hoist_cl_check(&b->error, code, kernel->name);
  }
  if (!status && !joined) status = bind_local_memory(b, function, kernel);
  if (!status) status = launch_part(b, b->queue, function, kernel, joined, NULL);
  if (!status) status = hoist_cl_check(&b->error, clFinish(b->queue), kernel->name);
  if (function) clReleaseKernel(function);
  return status;
}

HOIST_INTERNAL const hoist_engine* hoist_opencl_engine(void) {
  static const hoist_engine engine = {
      open_on_device, close_device, write_array,    read_array, read_all, memory_of,     write_later,
      copy_array,     set_number,   make_staging,   run,        profile,  make_argument, read_argument,
      drop_argument,  run_kernel,   guard_alignment};
  return &engine;
}

#endif /* HOIST_WITHOUT_OPENCL */
