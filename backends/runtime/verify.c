/* The self-check: files, then every kernel, then the whole model, against the interpreter's values. A checked kernel's
 * result starts as NaN, or as zeros if the kernel writes the interior of a cleared array, so that an element that was
 * never written is visible. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/bundle.h"
#include "backends/runtime/family.h"
#include "backends/runtime/host_steps.h"
#include "backends/runtime/states.h"
#include "backends/runtime/transfers.h"

typedef struct comparison {
  hoist_plan_tolerance tolerance;
  uint64_t compared, wrong, first_wrong;
  double largest_error, first_found, first_expected;
  uint64_t strayed;         /* bytes of guards that changed */
  const char* strayed_from; /* the first parameter with such a guard */
  int on_host;              /* no device has computed it */
} comparison;

/* On a device without exact arithmetic, values are compared within bounds: a few roundings, or the kernel's own
 * tolerance. */
static hoist_plan_tolerance effective(const hoist_target* target, hoist_plan_tolerance tolerance) {
  const int exactly = target->computes_exactly && (!tolerance.divides || target->divides_exactly);
  if (!tolerance.exact || exactly) return tolerance;
  tolerance.exact = 0;
  if (tolerance.relative < 1e-5) tolerance.relative = 1e-5;
  if (tolerance.absolute < 1e-6) tolerance.absolute = 1e-6;
  return tolerance;
}

static void compare_value(comparison* c, int scalar, uint64_t position, uint64_t found_bits, uint64_t expected_bits) {
  const int is_float = hoist_scalar_row(scalar)->is_float;
  const double found = hoist_bits_to_double(scalar, found_bits), expected = hoist_bits_to_double(scalar, expected_bits);
  const double difference = found > expected ? found - expected : expected - found;
  const double size = expected < 0 ? -expected : expected;
  ++c->compared;
  if (difference > c->largest_error) c->largest_error = difference;
  if (found_bits == expected_bits || (is_float && found != found && expected != expected)) return;
  if (!c->tolerance.exact && difference <= c->tolerance.absolute + c->tolerance.relative * size) return;
  if (c->wrong++) return;
  c->first_wrong = position;
  c->first_found = found;
  c->first_expected = expected;
}

/* Values in check.bin take whole bytes, packed ones one byte each. */
static uint64_t expected_bits(int scalar, const unsigned char* bytes, int* width) {
  const int bits = hoist_scalar_row(scalar)->bits;
  uint64_t value = 0;
  *width = (bits + 7) / 8;
  for (int i = 0; i < *width; ++i) value |= (uint64_t)bytes[i] << (8 * i);
  return bits < 8 ? value & (((uint64_t)1 << bits) - 1) : value;
}

static hoist_status conclude(const comparison* c, const char* kind, const char* name, hoist_report report, void* user,
                             hoist_error* error) {
  char subject[320], message[512];
  snprintf(subject, sizeof subject, "%s %.256s", kind, name);
  if (c->strayed) {
    snprintf(message, sizeof message, "writes outside its arrays: %llu bytes before or after %.256s changed",
             (unsigned long long)c->strayed, c->strayed_from);
  } else if (c->wrong) {
    snprintf(message, sizeof message,
             "%llu of %llu positions differ; position %llu is %.9g, expected %.9g, tolerance %s (%g + %g |expected|)",
             (unsigned long long)c->wrong, (unsigned long long)c->compared, (unsigned long long)c->first_wrong,
             c->first_found, c->first_expected, c->tolerance.exact ? "none" : "given", c->tolerance.absolute,
             c->tolerance.relative);
  } else if (c->compared == 0) {
    snprintf(message, sizeof message, "%s",
             c->on_host ? "computed on the host" : "the bundle has no expected values for it");
  } else if (c->tolerance.exact) {
    snprintf(message, sizeof message, "%llu positions, bit-identical", (unsigned long long)c->compared);
  } else {
    snprintf(message, sizeof message, "%llu positions within %g + %g |expected|, largest error %.3g",
             (unsigned long long)c->compared, c->tolerance.absolute, c->tolerance.relative, c->largest_error);
  }
  const int passed = !c->wrong && !c->strayed;
  const hoist_finding finding = {subject, passed, message, c->compared, c->largest_error};
  if (report) report(user, &finding);
  if (passed) return HOIST_OK;
  return hoist_fail(error, HOIST_MISMATCH, "%s: %s", subject, message);
}

/* A guard is a multiple of the alignment of a part's start. */
static size_t guard_bytes(const hoist_bundle* b) {
  const size_t page = 4096, alignment = b->engine->guard_alignment(b);
  return b->checking ? 0 : (page + alignment - 1) / alignment * alignment;
}

/* Successive even bytes differ, and elements of every float type are NaN, which is visible in results. */
static unsigned char guard_byte(size_t i) { return i % 2 ? 0xFF : (unsigned char)(0xF0 | (i / 2 % 16)); }

static void fill_guard(unsigned char* guard, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) guard[i] = guard_byte(i);
}

/* Makes buffers for every parameter: seeded data for operands, with extreme numbers among them or without, and for
 * results a pattern that the kernel has to replace, or zeros if the border of a cleared array is part of the value. */
static hoist_status fill_parameters(hoist_bundle* b, const hoist_plan_kernel* kernel, const hoist_samples* samples,
                                    uint64_t one_extreme_in, hoist_argument* arguments) {
  const size_t guard = guard_bytes(b);
  for (size_t i = 0; i < kernel->parameter_count; ++i) {
    const hoist_plan_parameter* parameter = &kernel->parameters[i];
    const size_t bytes = parameter->bytes ? parameter->bytes : 1;
    unsigned char* data = malloc(bytes + 2 * guard);
    if (!data)
      return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "kernel %s: no memory for %zu bytes", kernel->name, bytes);
    fill_guard(data, guard);
    memset(data + guard, parameter->written && !kernel->writes_cleared ? 0xFF : 0, bytes);
    fill_guard(data + guard + bytes, guard);
    if (!parameter->written) {
      hoist_seeded(parameter->scalar, samples->seed, (uint32_t)i, parameter->low, parameter->high, parameter->elements,
                   data + guard);
      hoist_seeded_extremes(parameter->scalar, samples->seed, (uint32_t)i, one_extreme_in, samples->extremes,
                            parameter->elements, data + guard);
    }
    const hoist_status status = b->engine->make_argument(b, kernel->name, bytes, guard, data, &arguments[i]);
    free(data);
    if (status) return status;
  }
  return HOIST_OK;
}

static hoist_status compare_guards(hoist_bundle* b, const hoist_plan_kernel* kernel, const hoist_argument* arguments,
                                   comparison* c) {
  const size_t guard = guard_bytes(b);
  unsigned char* data = malloc(guard + 1);
  hoist_status status =
      data ? HOIST_OK : hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "kernel %s: no memory for guards", kernel->name);
  for (size_t i = 0; i < 2 * kernel->parameter_count && guard && !status; ++i) {
    const hoist_plan_parameter* parameter = &kernel->parameters[i / 2];
    const size_t behind = guard + (parameter->bytes ? parameter->bytes : 1);
    status = b->engine->read_argument(b, kernel->name, &arguments[i / 2], i % 2 ? behind : 0, guard, data);
    for (size_t k = 0; k < guard && !status; ++k) {
      if (data[k] == guard_byte(k)) continue;
      if (!c->strayed++) c->strayed_from = parameter->name;
    }
  }
  free(data);
  return status;
}

static hoist_status compare_written(hoist_bundle* b, const hoist_plan_kernel* kernel, const hoist_samples* samples,
                                    const unsigned char* values, const hoist_argument* arguments, comparison* c) {
  uint64_t before = 0;
  for (size_t i = 0; i < kernel->parameter_count; ++i) {
    const hoist_plan_parameter* parameter = &kernel->parameters[i];
    if (!parameter->written || !parameter->elements) continue;
    unsigned char* data = malloc(parameter->bytes);
    if (!data) return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "kernel %s: no memory for its result", kernel->name);
    const hoist_status status =
        b->engine->read_argument(b, kernel->name, &arguments[i], guard_bytes(b), parameter->bytes, data);
    if (status) {
      free(data);
      return status;
    }
    for (uint64_t k = 0; k < samples->count; ++k) {
      const uint64_t position = samples->positions[k];
      if (position < before || position - before >= parameter->elements) continue; /* of another parameter */
      int width;
      const uint64_t expected = expected_bits(parameter->scalar, values + samples->starts[k], &width);
      compare_value(c, parameter->scalar, position, hoist_load_bits(parameter->scalar, data, position - before),
                    expected);
    }
    before += parameter->elements;
    free(data);
  }
  return HOIST_OK;
}

/* With `one_extreme_in` 0 on ordinary numbers, else with extreme numbers among them. */
static hoist_status verify_kernel(hoist_bundle* b, const hoist_plan_kernel* kernel, const hoist_samples* samples,
                                  uint64_t one_extreme_in, comparison* c) {
  const unsigned char* values = one_extreme_in ? samples->extreme_values : samples->values;
  hoist_argument* arguments = calloc(kernel->parameter_count, sizeof *arguments);
  uint64_t all = 0;
  for (size_t i = 0; i < kernel->parameter_count; ++i) {
    all = hoist_add(all, hoist_add(kernel->parameters[i].bytes, 2 * guard_bytes(b)));
  }
  hoist_status status = hoist_fits(b, kernel->name, all);
  if (!arguments) {
    status = hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "kernel %s: no memory for its parameters", kernel->name);
  }
  if (!status) status = fill_parameters(b, kernel, samples, one_extreme_in, arguments);
  if (!status) status = b->engine->run_kernel(b, kernel, arguments);
  if (!status) status = compare_written(b, kernel, samples, values, arguments, c);
  if (!status) status = compare_guards(b, kernel, arguments, c);
  for (size_t i = 0; arguments && i < kernel->parameter_count; ++i) b->engine->drop_argument(b, &arguments[i]);
  free(arguments);
  return status;
}

/* The state whose next value is the output, or state_count. */
static size_t state_of_output(const hoist_plan* plan, uint32_t output) {
  size_t state = plan->state_count, next = plan->model_output_count;
  for (size_t i = 0; i < plan->state_count; ++i) {
    if (next++ == output) state = i;
    next += plan->states[i].initial != HOIST_NO_ARRAY;
  }
  return state;
}

static hoist_status verify_output(hoist_bundle* b, uint32_t output, const hoist_samples* samples, comparison* c) {
  const hoist_plan_array* array = &b->plan.arrays[b->plan.outputs[output]];
  unsigned char* data = malloc(array->bytes + 1);
  if (!data) return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "output %s: no memory for it", array->name);
  const size_t state = state_of_output(&b->plan, output);
  const hoist_status status = state < b->plan.state_count ? hoist_get_state(b, state, data, array->bytes)
                                                          : hoist_any_output(b, output, data, array->bytes);
  const unsigned char* value = samples->values;
  for (uint64_t k = 0; k < samples->count && !status; ++k) {
    int width;
    const uint64_t expected = expected_bits(array->scalar, value, &width);
    value += width;
    compare_value(c, array->scalar, samples->positions[k], hoist_load_bits(array->scalar, data, samples->positions[k]),
                  expected);
  }
  free(data);
  return status;
}

/* True if step `i` writes its argument `k` and no later step of the launch writes to that memory. */
static int stays_after(const hoist_plan* plan, const hoist_plan_launch* launch, size_t i, size_t k) {
  if (!plan->kernels[plan->steps[i].kernel].parameters[k].written) return 0;
  for (size_t later = i + 1; later < launch->first + launch->count; ++later) {
    const hoist_plan_step* step = &plan->steps[later];
    for (size_t other = 0; other < step->argument_count; ++other) {
      const uint32_t array = plan->steps[i].arguments[k], another = step->arguments[other];
      const int is_there = array == another || hoist_share_memory(&plan->arrays[array], &plan->arrays[another]);
      if (is_there && plan->kernels[step->kernel].parameters[other].written) return 0;
    }
  }
  return 1;
}

/* The results that remain after a launch, one array after the other; free() them. */
static hoist_status read_launch(hoist_bundle* b, const hoist_plan_launch* launch, unsigned char** data) {
  const hoist_plan* plan = &b->plan;
  uint64_t bytes = 1;
  for (size_t k = 0; k < launch->kernel.parameter_count; ++k)
    bytes = hoist_add(bytes, plan->arrays[launch->arguments[k]].bytes);
  *data = bytes > HOIST_MOST_BYTES ? NULL : malloc((size_t)bytes);
  if (!*data) return hoist_no_memory(&b->error, bytes);
  unsigned char* next = *data;
  for (size_t i = launch->first; i < launch->first + launch->count; ++i) {
    for (size_t k = 0; k < plan->steps[i].argument_count; ++k) {
      const uint32_t array = plan->steps[i].arguments[k];
      const size_t size = (size_t)plan->arrays[array].bytes;
      if (!size || !stays_after(plan, launch, i, k)) continue;
      const hoist_status status = b->engine->read(b, array, next, size);
      if (status) return status;
      next += size;
    }
  }
  return HOIST_OK;
}

/* Clears the arrays that launches write, since results of an earlier run would hide missing ones. */
static hoist_status clear_results(hoist_bundle* b) {
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.step_count && !status; ++i) {
    const hoist_plan_step* step = &b->plan.steps[i];
    for (size_t k = 0; step->launch && k < step->argument_count && !status; ++k) {
      const hoist_plan_array* array = &b->plan.arrays[step->arguments[k]];
      if (!b->plan.kernels[step->kernel].parameters[k].written || !array->bytes) continue;
      unsigned char* first = malloc((size_t)array->bytes);
      if (!first) return hoist_no_memory(&b->error, array->bytes);
      memset(first, hoist_first_byte(b, array), (size_t)array->bytes);
      status = b->engine->write(b, step->arguments[k], first, (size_t)array->bytes);
      free(first);
    }
  }
  return status;
}

/* Runs all steps in order and reads the results of each launch. */
static hoist_status run_to_launches(hoist_bundle* b, int steps_apart, unsigned char** held) {
  size_t done = 0;
  hoist_status status = hoist_begin_strings(b);
  if (!status) status = clear_results(b);
  b->run.steps_apart = steps_apart;
  for (size_t i = 0; i < b->plan.launch_count && !status; ++i) {
    const hoist_plan_launch* launch = &b->plan.launches[i];
    if (launch->first > done) status = b->engine->run(b, done, launch->first - done, 0);
    if (!status) status = b->engine->run(b, launch->first, launch->count, 0);
    /* A branch that was not chosen has no results. */
    if (!status && b->run.step_runs[launch->first]) status = read_launch(b, launch, &held[i]);
    done = launch->first + launch->count;
  }
  b->run.steps_apart = 0;
  return status;
}

/* True if the element belongs to the value; elements around it, such as the padding of a row to whole vectors, are
 * undefined. */
static int holds_value(const hoist_plan_parameter* parameter, uint64_t element) {
  if (!parameter->region_count) return 1;
  for (size_t d = parameter->rank; d-- > 0;) {
    const uint64_t extent = (uint64_t)parameter->shape[d], place = element % extent;
    const uint64_t begin = (uint64_t)parameter->regions[d];
    if (place < begin || place - begin >= (uint64_t)parameter->regions[parameter->rank + d]) return 0;
    element /= extent;
  }
  return 1;
}

static void compare_launch(const hoist_plan* plan, const hoist_plan_launch* launch, const unsigned char* found,
                           const unsigned char* expected, comparison* c) {
  for (size_t i = launch->first; i < launch->first + launch->count; ++i) {
    const hoist_plan_step* step = &plan->steps[i];
    for (size_t k = 0; k < step->argument_count; ++k) {
      const hoist_plan_parameter* parameter = &plan->kernels[step->kernel].parameters[k];
      if (!stays_after(plan, launch, i, k)) continue;
      for (uint64_t e = 0; e < parameter->elements; ++e) {
        if (!holds_value(parameter, e)) continue;
        compare_value(c, parameter->scalar, e, hoist_load_bits(parameter->scalar, found, e),
                      hoist_load_bits(parameter->scalar, expected, e));
      }
      found += plan->arrays[step->arguments[k]].bytes;
      expected += plan->arrays[step->arguments[k]].bytes;
    }
  }
}

/* Compares fused launches with their steps launched alone; the kernels of these steps are checked separately. */
static hoist_status verify_launches(hoist_bundle* b, uint64_t seed, hoist_report report, void* user,
                                    hoist_error* first) {
  const size_t count = b->plan.launch_count;
  if (!count) return HOIST_OK;
  unsigned char** held = calloc(2 * count, sizeof *held);
  if (!held) return hoist_no_memory(&b->error, 2 * count * sizeof *held);
  hoist_status status = hoist_seed_inputs(b, seed);
  if (!status) status = run_to_launches(b, 1, held);
  if (!status) status = run_to_launches(b, 0, held + count);
  for (size_t i = 0; i < count && !status; ++i) {
    comparison c = {.tolerance = {.exact = 1}};
    hoist_error own = {HOIST_OK, ""};
    if (!held[i] || !held[count + i]) continue;
    compare_launch(&b->plan, &b->plan.launches[i], held[count + i], held[i], &c);
    if (conclude(&c, "launch", b->plan.launches[i].kernel.name, report, user, &own) && !first->status) *first = own;
  }
  for (size_t i = 0; i < 2 * count; ++i) free(held[i]);
  free(held);
  return status;
}

/* Compares the outputs of the model. With states they are the outputs of a sequence of runs: run k has the inputs of
 * the seed plus k. */
static hoist_status verify_model(hoist_bundle* b, const hoist_checks* checks, hoist_report report, void* user,
                                 hoist_error* first) {
  uint32_t runs = 0;
  hoist_status status = checks->output_count ? hoist_reset_states(b) : HOIST_OK;
  for (size_t i = 0; i < checks->output_count && !status; ++i) {
    comparison c = {.tolerance = effective(&b->target, checks->model_tolerance)};
    hoist_error own = {HOIST_OK, ""};
    char sizes[128], run[32] = "", name[440];
    for (; runs <= checks->runs[i] && !status; ++runs) {
      status = hoist_seed_inputs(b, checks->model_seed + runs);
      if (!status) status = hoist_run(b);
    }
    if (!status) status = verify_output(b, checks->outputs[i], &checks->samples[i], &c);
    if (status) break;
    hoist_sizes_text(b, sizes, sizeof sizes);
    if (b->plan.state_count) snprintf(run, sizeof run, " of run %u", (unsigned)checks->runs[i] + 1);
    snprintf(name, sizeof name, "%.256s%s%s%s", b->plan.arrays[b->plan.outputs[checks->outputs[i]]].name, run,
             *sizes ? " of " : "", sizes);
    if (conclude(&c, "output", name, report, user, &own) && !first->status) *first = own;
  }
  return status;
}

/* Checks kernels and model of the specialisation in use. The first difference is stored in `first`; the returned
 * status is for other errors. */
static hoist_status verify_one(hoist_bundle* b, hoist_report report, void* user, hoist_error* first) {
  hoist_checks checks;
  if (hoist_resize(b, NULL)) return b->error.status; /* check.bin has values for the largest sizes */
  if (hoist_checks_read(&b->plan, &checks, &b->error)) return b->error.status;
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.kernel_count && !status; ++i) {
    const hoist_plan_kernel* kernel = &b->plan.kernels[i];
    comparison c = {.tolerance = effective(&b->target, kernel->tolerance), .on_host = kernel->host != NULL};
    hoist_error own = {HOIST_OK, ""};
    const hoist_samples* samples = &checks.kernels[i];
    if (samples->count && !kernel->host) status = verify_kernel(b, kernel, samples, 0, &c);
    if (!status && samples->count && samples->one_extreme_in && !kernel->host && !c.wrong && !c.strayed)
      status = verify_kernel(b, kernel, samples, samples->one_extreme_in, &c);
    if (status) break;
    if (conclude(&c, "kernel", kernel->name, report, user, &own) && !first->status) *first = own;
  }
  if (!status) status = verify_launches(b, checks.model_seed, report, user, first);
  if (!status) status = verify_model(b, &checks, report, user, first);
  if (!status && b->plan.state_count) status = hoist_verify_states(b, checks.model_seed, report, user, first);
  hoist_pool_free(&checks.pool);
  return status;
}

hoist_status hoist_verify(hoist_bundle* b, hoist_report report, void* user) {
  hoist_error first = {HOIST_OK, ""};
  /* plan.bin may have changed since it was opened. */
  first.status = hoist_verify_files(b->root, report, user, first.message, sizeof first.message);
  const size_t in_use = hoist_specialisation_in_use(b);
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < hoist_specialisation_count(b) && !status; ++i) {
    status = hoist_choose(b, i);
    if (!status) status = verify_one(b, report, user, &first);
  }
  const hoist_status back = hoist_choose(b, in_use); /* it is open */
  if (!status) status = back;
  if (status) return status;
  if (first.status) return hoist_fail(&b->error, first.status, "%s", first.message);
  return HOIST_OK;
}

hoist_status hoist_verify_launches(hoist_bundle* b, uint64_t seed, hoist_report report, void* user) {
  hoist_error first = {HOIST_OK, ""};
  hoist_status status = verify_launches(b, seed, report, user, &first);
  if (!status && b->plan.state_count) status = hoist_verify_states(b, seed, report, user, &first);
  return status || !first.status ? status : hoist_fail(&b->error, first.status, "%s", first.message);
}
