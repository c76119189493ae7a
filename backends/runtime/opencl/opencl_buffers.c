/* The buffers of a bundle's arrays. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "backends/runtime/family.h"
#include "backends/runtime/opencl/opencl_parts.h"
#include "backends/runtime/transfers.h"

#ifndef HOIST_WITHOUT_OPENCL

#include <stdlib.h>
#include <string.h>

#define HOST_ALIGNMENT 64u /* alignment of arrays that the host accesses in place */

HOIST_INTERNAL hoist_status hoist_opencl_fill(hoist_bundle* b, cl_mem buffer, size_t bytes, unsigned char value) {
  if (b->checking) { /* Oclgrind 21.10 treats memory written by clEnqueueFillBuffer as uninitialised */
    unsigned char* data = malloc(bytes);
    if (!data) return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
    memset(data, value, bytes);
    const cl_int code = clEnqueueWriteBuffer(b->opencl->queue, buffer, CL_TRUE, 0, bytes, data, 0, NULL, NULL);
    free(data);
    return hoist_cl_check(&b->error, code, "clEnqueueWriteBuffer");
  }
  /* The widest pattern that divides the size: drivers are slow with single bytes. */
  unsigned char pattern[16];
  memset(pattern, value, sizeof pattern);
  const size_t width = bytes % 16 == 0 ? 16 : bytes % 4 == 0 ? 4 : 1;
  return hoist_cl_check(&b->error,
                        clEnqueueFillBuffer(b->opencl->queue, buffer, pattern, width, 0, bytes, 0, NULL, NULL),
                        "clEnqueueFillBuffer");
}

static hoist_status make_buffer(hoist_bundle* b, const char* name, size_t bytes, cl_mem_flags flags, void* host,
                                cl_mem* buffer) {
  cl_int code;
  *buffer = clCreateBuffer(b->opencl->context, flags, bytes ? bytes : 1, host, &code);
  if (code) {
    return hoist_fail(&b->error, HOIST_DEVICE_ERROR, "%s: no buffer of %zu bytes on %s: %s", name, bytes,
                      b->target.name, hoist_cl_name(code));
  }
  return HOIST_OK;
}

static hoist_status make_weights(hoist_bundle* b, const hoist_plan_array* array, cl_mem* buffer) {
  *buffer = b->shares_with ? b->shares_with->opencl->buffers[array - b->plan.arrays] : hoist_shared_buffer(b, array);
  if (*buffer) {
    const cl_int code = clRetainMemObject(*buffer);
    if (code) *buffer = NULL;
    return hoist_cl_check(&b->error, code, array->name);
  }
  /* If the device computes in the program's own memory the file is used in place, else it is copied. */
  /* A checking device only accepts its own memory. */
  const cl_mem_flags flags = b->target.is_cpu && !b->checking ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR;
  return make_buffer(b, array->name, array->bytes, CL_MEM_READ_ONLY | flags, b->weights.data + array->offset, buffer);
}

HOIST_INTERNAL hoist_status hoist_opencl_make_writable(hoist_bundle* b, const char* name, size_t bytes,
                                                       cl_mem* buffer) {
  return make_buffer(b, name, bytes, CL_MEM_READ_WRITE, NULL, buffer);
}

static int has_arena(const hoist_bundle* b) {
  return !b->checking && b->plan.arena_bytes <= b->target.largest_allocation;
}

/* True if the array's buffer may be a part of the arena's. */
static int lies_in_arena(const hoist_bundle* b, size_t i) {
  const hoist_plan_array* array = &b->plan.arrays[i];
  return array->place == HOIST_PLACE_ARENA && has_arena(b) && !b->io.in_place[i] && array->bytes &&
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

/* On a device with memory of its own, arrays at the same place in the arena share a buffer, as large as the largest of
 * them, and no others do: at each launch NVIDIA's driver 580 searches for overlaps with arguments that are
 * sub-buffers, which takes up to 0.1 ms. Arrays at one place are never in use at the same time. If these buffers would
 * take more than a quarter of the memory, all arrays are sub-buffers of the arena. */
static hoist_status make_shared_buffers(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  if (b->target.is_cpu) return HOIST_OK;
  placed_array* placed = calloc(plan->array_count + 1, sizeof *placed);
  if (!placed) return hoist_no_memory(&b->error, plan->array_count);
  size_t count = 0;
  for (size_t i = 0; i < plan->array_count; ++i) {
    const hoist_plan_array* array = &plan->arrays[i];
    if (lies_in_arena(b, i) && !b->opencl->stays_on_host[i])
      placed[count++] = (placed_array){array->offset, array->bytes, i};
  }
  qsort(placed, count, sizeof *placed, by_place);
  uint64_t all = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || placed[i].offset != placed[i - 1].offset) all = hoist_add(all, placed[i].bytes);
  }
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < count && all <= b->target.global_memory / 4 && !status; ++i) {
    cl_mem* const buffer = &b->opencl->buffers[placed[i].array];
    if (i > 0 && placed[i].offset == placed[i - 1].offset) {
      cl_mem shared = b->opencl->buffers[placed[i - 1].array];
      status = hoist_cl_check(&b->error, clRetainMemObject(shared), plan->arrays[placed[i].array].name);
      if (!status) *buffer = shared;
    } else {
      status = hoist_opencl_make_writable(b, plan->arrays[placed[i].array].name, placed[i].bytes, buffer);
    }
  }
  free(placed);
  return status;
}

/* If the device computes in the program's own memory, the arena and zero-initialised arrays are zero pages from the
 * system, which cost nothing until they are used: drivers allocate arbitrary memory and write every byte to clear
 * it. */
static int begins_as_zeros(const hoist_plan_array* array) {
  return array->place == HOIST_PLACE_CLEARED && array->fill == 0;
}

static int is_pages_of_zeros(const hoist_bundle* b, size_t i) {
  return b->opencl->zeros && begins_as_zeros(&b->plan.arrays[i]);
}

/* Before the first run system memory and staged memory are zeros already. */
HOIST_INTERNAL hoist_status hoist_opencl_clear_buffers(hoist_bundle* b, int has_run) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.array_count && !status; ++i) {
    const hoist_plan_array* array = &b->plan.arrays[i];
    if (array->place == HOIST_PLACE_WEIGHTS || array->bytes == 0 || b->opencl->stays_on_host[i]) continue;
    if (!has_run && (b->io.in_place[i] || is_pages_of_zeros(b, i) || (b->opencl->zeros && lies_in_arena(b, i))))
      continue;
    status = hoist_opencl_fill(b, b->opencl->buffers[i], array->bytes, (unsigned char)hoist_first_byte(b, array));
  }
  return status;
}

static void goes_to_device(hoist_bundle* b, uint32_t array) {
  if (array != HOIST_NO_ARRAY) b->opencl->stays_on_host[array] = 0;
}

static void moves_go_to_device(hoist_bundle* b, const hoist_plan_move* moves, size_t count) {
  for (size_t i = 0; i < count; ++i) goes_to_device(b, moves[i].from), goes_to_device(b, moves[i].to);
}

/* Arrays exchanged between host ops only are not transferred: they are in memory of the handle, at their offsets in
 * the arena. */
HOIST_INTERNAL hoist_status hoist_opencl_keep_on_host(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  uint64_t bytes = 0;
  b->opencl->stays_on_host = calloc(plan->array_count + 1, 1);
  if (!b->opencl->stays_on_host) return hoist_no_memory(&b->error, plan->array_count);
  for (size_t i = 0; i < plan->step_count; ++i) {
    const hoist_plan_step* step = &plan->steps[i];
    for (size_t k = 0; plan->kernels[step->kernel].host && k < step->argument_count; ++k) {
      const hoist_plan_array* array = &plan->arrays[step->arguments[k]];
      b->opencl->stays_on_host[step->arguments[k]] =
          array->place == HOIST_PLACE_ARENA && array->offset % HOST_ALIGNMENT == 0;
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
    if (b->opencl->stays_on_host[i] && end > bytes) bytes = end;
  }
  if (!bytes) return HOIST_OK;
  const hoist_status status = hoist_fits(b, "the results of host ops", hoist_add(plan->arena_bytes, bytes));
  if (status) return status;
  unsigned char* const memory = hoist_pages(bytes);
  if (!memory) return hoist_no_memory(&b->error, bytes);
  memset(memory, b->checking, (size_t)bytes);
  b->opencl->host_arena = memory;
  return HOIST_OK;
}

static uint64_t whole_pages(uint64_t bytes) { return hoist_add(bytes, HOIST_PAGE - 1) / HOIST_PAGE * HOIST_PAGE; }

static uint64_t pages_of_arena(const hoist_bundle* b) { return has_arena(b) ? whole_pages(b->plan.arena_bytes) : 0; }

/* The arena comes first, then each zero-initialised array. */
static hoist_status make_zeros(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  uint64_t bytes = hoist_add(1, pages_of_arena(b)); /* an array of no bytes has a place, too */
  if (!b->target.is_cpu || b->checking) return HOIST_OK;
  for (size_t i = 0; i < plan->array_count; ++i) {
    if (begins_as_zeros(&plan->arrays[i])) bytes = hoist_add(bytes, whole_pages(plan->arrays[i].bytes));
  }
  b->opencl->zeros = hoist_pages_of_zeros(bytes, &b->opencl->zeros_memory);
  return b->opencl->zeros ? HOIST_OK : hoist_no_memory(&b->error, bytes);
}

static hoist_status make_arena(hoist_bundle* b) {
  const size_t bytes = (size_t)b->plan.arena_bytes;
  if (!b->opencl->zeros) return hoist_opencl_make_writable(b, "the arena", bytes, &b->opencl->arena);
  return make_buffer(b, "the arena", bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, b->opencl->zeros,
                     &b->opencl->arena);
}

HOIST_INTERNAL hoist_status hoist_opencl_make_buffers(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  b->opencl->buffers = calloc(plan->array_count + 1, sizeof *b->opencl->buffers);
  if (!b->opencl->buffers)
    return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "no memory for %zu arrays", plan->array_count);
  hoist_status status = make_shared_buffers(b);
  if (!status) status = make_zeros(b);
  uint64_t zeros = pages_of_arena(b); /* start of the next array */
  for (size_t i = 0; i < plan->array_count && !status; ++i) {
    const hoist_plan_array* array = &plan->arrays[i];
    if (b->opencl->stays_on_host[i] || b->opencl->buffers[i]) {
      status = HOIST_OK;
    } else if (array->place == HOIST_PLACE_WEIGHTS) {
      status = make_weights(b, array, &b->opencl->buffers[i]);
    } else if (b->io.in_place[i]) {
      status = make_buffer(b, array->name, array->bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                           b->io.in_place[i]->staged, &b->opencl->buffers[i]);
    } else if (is_pages_of_zeros(b, i)) {
      status = make_buffer(b, array->name, array->bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                           b->opencl->zeros + zeros, &b->opencl->buffers[i]);
      zeros += whole_pages(array->bytes);
    } else if (!lies_in_arena(b, i)) {
      status = hoist_opencl_make_writable(b, array->name, array->bytes, &b->opencl->buffers[i]);
    } else {
      status = b->opencl->arena ? HOIST_OK : make_arena(b);
      if (!status) {
        const cl_buffer_region region = {array->offset, array->bytes};
        cl_int code;
        b->opencl->buffers[i] =
            clCreateSubBuffer(b->opencl->arena, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
        status = hoist_cl_check(&b->error, code, array->name);
      }
    }
  }
  return status;
}

/* ---- between host and device, and the end ---- */

HOIST_INTERNAL hoist_status hoist_opencl_pass_to_device(hoist_bundle* b, cl_command_queue queue, size_t array) {
  hoist_transfer* t = b->io.in_place[array];
  if (!t || !t->host_holds) return HOIST_OK;
  const cl_int code = clEnqueueUnmapMemObject(queue, b->opencl->buffers[array], t->staged, 0, NULL, NULL);
  t->host_holds = code != CL_SUCCESS;
  return hoist_cl_check(&b->error, code, b->plan.arrays[array].name);
}

static void drop_pinned(hoist_bundle* b) {
  for (size_t i = 0; b->io.inputs && b->io.outputs && i < b->plan.input_count + b->plan.output_count; ++i) {
    hoist_transfer* t = hoist_transfer_of(b, i);
    if (!t->pinned) continue;
    clEnqueueUnmapMemObject(b->opencl->queue, t->pinned, t->staged, 0, NULL, NULL);
    clFinish(b->opencl->queue);
    clReleaseMemObject(t->pinned);
    t->pinned = t->staged = NULL;
  }
}

HOIST_INTERNAL void hoist_opencl_close(hoist_bundle* b) {
  if (!b->opencl) {
    hoist_target_close(&b->target);
    return;
  }
  if (b->opencl->queue) {
    /* PoCL never frees the queue of a buffer that is still mapped. */
    for (size_t i = 0; b->io.in_place && b->opencl->buffers && i < b->plan.array_count; ++i)
      hoist_opencl_pass_to_device(b, b->opencl->queue, i);
    clFinish(b->opencl->queue);
    drop_pinned(b);
  }
  for (size_t i = 0; b->opencl->kernels && i < b->plan.step_count; ++i) {
    if (b->opencl->kernels[i]) clReleaseKernel(b->opencl->kernels[i]);
  }
  for (size_t i = 0; b->opencl->launches && i < b->plan.launch_count; ++i) {
    if (b->opencl->launches[i]) clReleaseKernel(b->opencl->launches[i]);
  }
  /* In the reverse order of creation: NVIDIA's driver 580 faults if the older one of two overlapping sub-buffers is
   * released first. */
  for (size_t i = b->opencl->buffers ? b->plan.array_count : 0; i-- > 0;) {
    if (b->opencl->buffers[i]) clReleaseMemObject(b->opencl->buffers[i]);
  }
  if (b->opencl->taken) clReleaseMemObject(b->opencl->taken);
  if (b->opencl->arena) clReleaseMemObject(b->opencl->arena);
  if (b->opencl->program) clReleaseProgram(b->opencl->program);
  hoist_queue_release(&b->target, b->opencl->profiling_queue);
  hoist_queue_release(&b->target, b->opencl->queue);
  if (b->opencl->context) clReleaseContext(b->opencl->context);
  hoist_target_close(&b->target);
  free(b->opencl->stays_on_host);
  free(b->opencl->host_arena);
  free(b->opencl->zeros_memory); /* after its buffers */
  free(b->opencl->kernels);
  free(b->opencl->launches);
  free(b->opencl->buffers);
  free(b->opencl);
  b->opencl = NULL;
}

#endif
