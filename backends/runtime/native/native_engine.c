/* Native code on the processor of the program: arrays are memory, and a step is a function call. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/runtime/control.h"
#include "backends/runtime/host_steps.h"
#include "backends/runtime/native/loaded_code.h"
#include "backends/runtime/native/native_device.h"
#include "backends/runtime/native/sharing.h"
#include "backends/runtime/transfers.h"

#define MOST_OPERATIONS ((int64_t)1 << 60) /* limit per step: an untrusted plan may claim any number */
/* A longer run outlasts the wake-up of a sleeping thread (20 to 50 microseconds), so the thread can take a part. */
#define WAKING_NANOSECONDS 40000

struct hoist_native {
  void* library;
  hoist_native_function* functions; /* one per kernel */
  hoist_workers* workers;
  unsigned char* arena;
  void* arena_memory;     /* the pointer for free() */
  unsigned char** memory; /* one per array */
  unsigned char** owned;  /* one per array; NULL if the memory belongs to other memory */
  hoist_native_buffer* buffers;
  int32_t sizes[HOIST_MOST_OPEN_SIZES]; /* the open sizes, arguments of every kernel */
  void** arguments;                     /* arguments of all steps in order: the sizes, then buffers */
  size_t* starts;                       /* starts of each step in `arguments` */
  int64_t* operations;                  /* operations of each step */
  hoist_sharing sharing;
};

static unsigned char* native_memory(uint64_t bytes, int value) {
  unsigned char* const memory = hoist_pages(bytes);
  if (memory) memset(memory, value, (size_t)bytes);
  return memory;
}

static void describe_processor(hoist_bundle* b, const char* target) {
  hoist_target* t = &b->target;
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  memset(t, 0, sizeof *t);
  t->is_cpu = t->computes_exactly = t->divides_exactly = 1;
  t->compute_units = hoist_processors();
  t->global_memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : HOIST_MOST_BYTES;
  t->largest_allocation = t->global_memory;
  t->alignment = 64;
  b->target.index = SIZE_MAX;
  snprintf(t->name, sizeof t->name, "native %s", target);
  snprintf(t->platform_name, sizeof t->platform_name, "native code");
}

static hoist_status native_arrays(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  hoist_native* n = b->native;
  n->memory = calloc(plan->array_count + 1, sizeof *n->memory);
  n->owned = calloc(plan->array_count + 1, sizeof *n->owned);
  n->buffers = calloc(plan->array_count + 1, sizeof *n->buffers);
  if (!n->memory || !n->owned || !n->buffers) return hoist_no_memory(&b->error, plan->array_count);
  for (size_t i = 0; i < plan->array_count; ++i) {
    const hoist_plan_array* array = &plan->arrays[i];
    const hoist_transfer* in_place = b->io.in_place[i];
    if (array->place == HOIST_PLACE_WEIGHTS) {
      n->memory[i] = b->weights.data + array->offset;
    } else if (in_place) {
      n->memory[i] = in_place->staged;
    } else if (array->place == HOIST_PLACE_ARENA && !b->checking && array->offset % b->target.alignment == 0) {
      if (!n->arena) n->arena = hoist_pages_of_zeros(plan->arena_bytes, &n->arena_memory);
      n->memory[i] = n->arena ? n->arena + array->offset : NULL;
    } else {
      n->memory[i] = n->owned[i] = native_memory(array->bytes, hoist_first_byte(b, array));
    }
    if (!n->memory[i]) {
      return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "%s: no memory for %llu bytes", array->name,
                        (unsigned long long)array->bytes);
    }
    n->buffers[i].host = n->memory[i];
  }
  return HOIST_OK;
}

static hoist_status native_steps(hoist_bundle* b) {
  const hoist_plan* plan = &b->plan;
  hoist_native* n = b->native;
  size_t all = 0;
  for (size_t i = 0; i < plan->step_count; ++i) all += plan->open_size_count + plan->steps[i].argument_count;
  n->arguments = calloc(all + 1, sizeof *n->arguments);
  n->starts = calloc(plan->step_count + 1, sizeof *n->starts);
  if (!n->arguments || !n->starts) return hoist_no_memory(&b->error, all);
  all = 0;
  for (size_t i = 0; i < plan->step_count; ++i) {
    n->starts[i] = all;
    for (size_t k = 0; k < plan->open_size_count; ++k) n->arguments[all++] = &n->sizes[k];
    for (size_t k = 0; k < plan->steps[i].argument_count; ++k)
      n->arguments[all++] = &n->buffers[plan->steps[i].arguments[k]];
  }
  return HOIST_OK;
}

/* In operations, plus an estimate for moved elements, which have none and still take time. The last argument is the
 * result. */
static int64_t work_of(const hoist_plan* plan, size_t i) {
  const hoist_plan_step* step = &plan->steps[i];
  const hoist_plan_kernel* kernel = &plan->kernels[step->kernel];
  if (kernel->host || step->argument_count == 0 || kernel->operations < 0) return 0;
  if (kernel->operations > MOST_OPERATIONS) return MOST_OPERATIONS;
  return kernel->operations + (int64_t)(plan->arrays[step->arguments[step->argument_count - 1]].bytes / 4);
}

static void native_resize(hoist_bundle* b) {
  hoist_native* n = b->native;
  for (size_t i = 0; i < b->plan.open_size_count; ++i) n->sizes[i] = (int32_t)b->plan.open_sizes[i].now;
  for (size_t i = 0; i < b->plan.step_count; ++i) n->operations[i] = work_of(&b->plan, i);
}

static hoist_status native_operations(hoist_bundle* b) {
  hoist_native* n = b->native;
  n->operations = calloc(b->plan.step_count + 1, sizeof *n->operations);
  if (!n->operations) return hoist_no_memory(&b->error, b->plan.step_count);
  native_resize(b);
  return HOIST_OK;
}

static hoist_status native_open(hoist_bundle* b, const hoist_options* options) {
  const char* target;
  const hoist_plan* plan = &b->plan;
  hoist_status status = hoist_native_choose(plan, &target, &b->error);
  if (status) return status;
  if (options->device && *options->device) {
    return hoist_fail(&b->error, HOIST_NO_DEVICE,
                      "device %s: the bundle is native code, which runs on no OpenCL device", options->device);
  }
  if (options->threads < 0) {
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%d threads: at least 1 is needed", options->threads);
  }
  describe_processor(b, target);
  hoist_native* n = b->native = calloc(1, sizeof *n);
  if (!n) return hoist_no_memory(&b->error, sizeof *n);
  n->functions = calloc(plan->kernel_count + 1, sizeof *n->functions);
  if (!n->functions) return hoist_no_memory(&b->error, plan->kernel_count);
  status = hoist_check_memory(b, b->weights.data != NULL);
  if (!status) status = hoist_native_load(plan, target, options->linked_kernels, &n->library, n->functions, &b->error);
  if (!status) status = hoist_read_weights(b, &b->error);
  if (!status) status = hoist_make_transfers(b);
  if (!status) status = native_arrays(b);
  if (!status) status = native_steps(b);
  if (!status) status = native_operations(b);
  if (status) return status;
  size_t most = 1;
  for (size_t i = 0; i < plan->kernel_count; ++i) {
    if (plan->kernels[i].parameter_count > most) most = plan->kernels[i].parameter_count;
  }
  most += plan->open_size_count;
  unsigned threads = b->target.compute_units;
  if (options->threads && (unsigned)options->threads < threads) threads = (unsigned)options->threads;
  n->workers = hoist_workers_make(threads, most);
  if (!n->workers) return hoist_no_memory(&b->error, most);
  b->target.compute_units = hoist_workers_count(n->workers);
  hoist_sharing_begin(&n->sharing, n->operations, b->target.compute_units > 1 ? plan->step_count : 0);
  snprintf(b->cache_entry.outcome, sizeof b->cache_entry.outcome, "native code, nothing to compile");
  return HOIST_OK;
}

static void native_close(hoist_bundle* b) {
  hoist_native* n = b->native;
  if (!n) return;
  hoist_workers_free(n->workers);
  hoist_native_unload(n->library);
  for (size_t i = 0; n->owned && i < b->plan.array_count; ++i) free(n->owned[i]);
  free(n->owned);
  free(n->memory);
  free(n->buffers);
  free(n->arguments);
  free(n->starts);
  free(n->operations);
  free(n->functions);
  free(n->arena_memory);
  free(n);
}

static hoist_status native_write(hoist_bundle* b, size_t array, const void* data, size_t bytes) {
  memcpy(b->native->memory[array], data, bytes);
  return HOIST_OK;
}

static hoist_status native_read(hoist_bundle* b, size_t array, void* data, size_t bytes) {
  memcpy(data, b->native->memory[array], bytes);
  return HOIST_OK;
}

static hoist_status native_read_all(hoist_bundle* b, size_t count, const uint32_t* arrays, void* const* data,
                                    const size_t* bytes) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < count && !status; ++i) {
    if (bytes[i]) status = native_read(b, arrays[i], data[i], bytes[i]);
  }
  return status;
}

static unsigned char* native_memory_of(hoist_bundle* b, size_t array) { return b->native->memory[array]; }

static hoist_status native_copy(hoist_bundle* b, size_t from, size_t to, size_t offset, size_t bytes) {
  memcpy(b->native->memory[to] + offset, b->native->memory[from], bytes);
  return HOIST_OK;
}

static int native_stage(hoist_bundle* b, hoist_transfer* t, uint64_t bytes) {
  (void)b;
  return (t->staged = hoist_pages(bytes)) != NULL;
}

static hoist_status native_set_number(hoist_bundle* b, size_t array, int64_t number) {
  return native_write(b, array, &number, sizeof number);
}

static hoist_status native_swap(hoist_bundle* b, size_t one, size_t other) {
  hoist_native* n = b->native;
  unsigned char *const memory = n->memory[one], *const owned = n->owned[one];
  n->memory[one] = n->memory[other], n->owned[one] = n->owned[other];
  n->memory[other] = memory, n->owned[other] = owned;
  n->buffers[one].host = n->memory[one], n->buffers[other].host = n->memory[other];
  return HOIST_OK;
}

static hoist_status native_step(hoist_bundle* b, size_t i) {
  const hoist_plan_step* step = &b->plan.steps[i];
  const hoist_plan_kernel* kernel = &b->plan.kernels[step->kernel];
  hoist_native* n = b->native;
  if (kernel->host) return hoist_host_step(b, i);
  hoist_workers_run(n->workers, n->functions[step->kernel], n->arguments + n->starts[i],
                    b->plan.open_size_count + step->argument_count, kernel->global, n->operations[i],
                    n->operations[i] >= hoist_sharing_least(&n->sharing));
  return HOIST_OK;
}

/* Prepares a run before its first step. */
static hoist_status native_inputs(hoist_bundle* b, size_t first, size_t count) {
  if (hoist_check_inputs(b)) return b->error.status;
  for (size_t i = 0; i < b->plan.input_count; ++i) {
    hoist_transfer* input = &b->io.inputs[i];
    if (input->in_place || !(input->pending || input->shared)) continue;
    memcpy(b->native->memory[input->array], input->staged, b->plan.arrays[input->array].bytes);
    input->pending = 0;
  }
  const hoist_native* n = b->native;
  const int64_t least = hoist_sharing_least(&n->sharing);
  int64_t shared = 0;
  for (size_t i = first; i < first + count && shared < HOIST_WAKING_OPERATIONS; ++i)
    shared += n->operations[i] < least ? 0 : n->operations[i];
  /* A kernel with scattered accesses takes longer than its operations suggest. */
  const int long_run = shared > 0 && n->sharing.last_time >= WAKING_NANOSECONDS;
  if (shared >= HOIST_WAKING_OPERATIONS || long_run) hoist_workers_wake(n->workers);
  return HOIST_OK;
}

static hoist_status native_run(hoist_bundle* b, size_t first, size_t count, int with_outputs) {
  const size_t end = first + count;
  /* Only whole runs are compared with each other, and only if there are several levels. */
  const int timed = first == 0 && count == b->plan.step_count && b->native->sharing.count > 1;
  const uint64_t start = timed ? hoist_nanoseconds() : 0;
  if (!timed) hoist_sharing_settle(&b->native->sharing);
  hoist_status status = native_inputs(b, first, count);
  hoist_begin_items(b, first);
  for (size_t i; !status && !(status = hoist_next_step(b, end, &i)) && i < b->plan.step_count;) {
    status = native_step(b, i);
    if (!with_outputs && i + 1 == end) break;
  }
  if (status) return status;
  for (size_t i = 0; with_outputs && i < b->plan.output_count; ++i) {
    hoist_transfer* output = &b->io.outputs[i];
    if (!output->staged || output->in_place) continue;
    memcpy(output->staged, b->native->memory[output->array], b->plan.arrays[output->array].bytes);
    output->fresh = 1;
  }
  if (timed) hoist_sharing_took(&b->native->sharing, hoist_nanoseconds() - start);
  return HOIST_OK;
}

static hoist_status native_profile(hoist_bundle* b, double* step_seconds) {
  hoist_sharing_settle(&b->native->sharing);
  hoist_status status = native_inputs(b, 0, b->plan.step_count);
  if (b->plan.step_count) memset(step_seconds, 0, b->plan.step_count * sizeof *step_seconds);
  hoist_begin_items(b, 0);
  for (size_t i; !status && !(status = hoist_next_step(b, b->plan.step_count, &i)) && i < b->plan.step_count;) {
    const uint64_t start = hoist_nanoseconds();
    status = native_step(b, i);
    step_seconds[i] += 1e-9 * (double)(hoist_nanoseconds() - start);
  }
  return status;
}

/* ---- the self-check ---- */

static size_t native_guard_alignment(const hoist_bundle* b) { return b->target.alignment; }

static hoist_status native_make_argument(hoist_bundle* b, const char* kernel, size_t bytes, size_t guard,
                                         unsigned char* data, hoist_argument* made) {
  made->memory = native_memory((uint64_t)bytes + 2 * guard, 0);
  made->guard = guard;
  if (!made->memory) {
    return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "kernel %s: no memory for %zu bytes", kernel, bytes + 2 * guard);
  }
  memcpy(made->memory, data, bytes + 2 * guard);
  return HOIST_OK;
}

static hoist_status native_read_argument(hoist_bundle* b, const char* kernel, const hoist_argument* argument,
                                         size_t from, size_t bytes, void* data) {
  (void)b;
  (void)kernel;
  memcpy(data, argument->memory + from, bytes);
  return HOIST_OK;
}

static void native_drop_argument(hoist_bundle* b, hoist_argument* argument) {
  (void)b;
  free(argument->memory);
}

static hoist_status native_run_kernel(hoist_bundle* b, const hoist_plan_kernel* kernel,
                                      const hoist_argument* arguments) {
  const size_t count = kernel->parameter_count, sizes = b->plan.open_size_count;
  hoist_native* n = b->native;
  hoist_native_buffer* buffers = calloc(count + 1, sizeof *buffers);
  void** pointers = calloc(sizes + count + 1, sizeof *pointers);
  const int has_memory = buffers && pointers;
  for (size_t i = 0; has_memory && i < sizes; ++i) pointers[i] = &n->sizes[i];
  for (size_t i = 0; has_memory && i < count; ++i) {
    buffers[i].host = arguments[i].memory + arguments[i].guard;
    pointers[sizes + i] = &buffers[i];
  }
  if (has_memory) {
    hoist_workers_run(n->workers, n->functions[kernel - b->plan.kernels], pointers, sizes + count, kernel->global, 0,
                      0);
  }
  free(buffers);
  free(pointers);
  return has_memory ? HOIST_OK : hoist_no_memory(&b->error, count);
}

HOIST_INTERNAL const hoist_engine* hoist_native_engine(void) {
  static const hoist_engine engine = {"native",
                                      native_open,
                                      native_close,
                                      native_write,
                                      native_read,
                                      native_read_all,
                                      native_memory_of,
                                      native_write,
                                      native_copy,
                                      native_set_number,
                                      native_swap,
                                      native_resize,
                                      native_stage,
                                      native_run,
                                      native_profile,
                                      native_make_argument,
                                      native_read_argument,
                                      native_drop_argument,
                                      native_run_kernel,
                                      native_guard_alignment};
  return &engine;
}
