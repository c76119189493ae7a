/* Reads plan.bin and preprocessing.bin. Everything in them is untrusted until it is checked: counts are bounded by the
 * remaining bytes, so no count can cause allocations of more than a small multiple of the file. An array has at most
 * 2^48 bytes, a kernel no more groups than elements to write, and every kernel a step. So numbers of a plan can be
 * multiplied and added without another check; a kernel without a step would have no arrays that bound it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/plan/plan_cursor.h"

/* A native target: lower-case letters, digits, '-' and '_', at most 64. */
static int is_target_name(const char* text) {
  return *text && strlen(text) <= 64 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(text);
}

HOIST_INTERNAL void hoist_check_input(hoist_cursor* c, hoist_plan_input* input) {
  const hoist_plan_array* array = &c->plan->arrays[input->array];
  if (array->place != HOIST_PLACE_INPUT) hoist_bad_bytes(c, "an input names an invalid array");
  hoist_check_domain(c, array->scalar, input->low, input->high);
}

HOIST_INTERNAL void hoist_check_extent(hoist_cursor* c, hoist_plan_extent* extent) {
  const hoist_plan* plan = c->plan;
  if (extent->output >= plan->model_output_count ||
      extent->dimension >= plan->arrays[plan->outputs[extent->output]].rank) {
    hoist_bad_bytes(c, "an extent of a dimension beyond the output's rank");
  } else if (extent->count < plan->model_output_count) {
    hoist_bad_bytes(c, "an extent of a missing output");
  } else {
    const hoist_plan_array* count = &plan->arrays[plan->outputs[extent->count]];
    if (count->scalar != hoist_scalar_named("i64") || count->bytes != 8)
      hoist_bad_bytes(c, "the value of an extent is not i64");
  }
}

HOIST_INTERNAL size_t hoist_model_inputs(const hoist_plan* plan) { return plan->input_count - plan->state_count; }

HOIST_INTERNAL size_t hoist_first_extent(const hoist_plan* plan) {
  size_t first = plan->model_output_count + plan->state_count;
  for (size_t i = 0; i < plan->state_count; ++i) first += plan->states[i].initial != HOIST_NO_ARRAY;
  return first;
}

static int same_type(const hoist_plan_array* a, const hoist_plan_array* b) {
  return a->scalar == b->scalar && a->rank == b->rank &&
         (!a->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* The value of a run is written into an array of its own, which no state of the same run reads. */
HOIST_INTERNAL void hoist_check_state(hoist_cursor* c, hoist_plan_state* state) {
  const hoist_plan* plan = c->plan;
  const size_t number = (size_t)(state - plan->states);
  const hoist_plan_array *read = &plan->arrays[state->read], *written = &plan->arrays[state->written];
  if (plan->state_count > plan->input_count || plan->inputs[hoist_model_inputs(plan) + number].array != state->read) {
    hoist_bad_bytes(c, "a state is not the input of its place");
  } else if (read->scalar == HOIST_HOST_STRING || !same_type(read, written) ||
             (written->place != HOIST_PLACE_OUTPUT && written->place != HOIST_PLACE_WEIGHTS)) {
    hoist_bad_bytes(c, "the next value of a state lies in an invalid array");
  } else if (state->initial != HOIST_NO_ARRAY && (plan->arrays[state->initial].place != HOIST_PLACE_WEIGHTS ||
                                                  !same_type(read, &plan->arrays[state->initial]))) {
    hoist_bad_bytes(c, "the initial value of a state lies in an invalid array");
  }
}

/* Also checks that the outputs of states come after the model's and before the lengths, and that no output is read as
 * a state, since the next run's value replaces it. */
HOIST_INTERNAL void hoist_take_states(hoist_cursor* c, hoist_plan* r) {
  if (hoist_has_failed(c) || c->at == c->size) return;
  HOIST_TAKE_LIST(state, states, state_count)
  if (hoist_has_failed(c)) return;
  size_t next = r->model_output_count;
  int good = (r->state_count > 0 || c->at < c->size) && hoist_first_extent(r) <= r->output_count;
  for (size_t i = 0; i < r->state_count && good; ++i) {
    good &= r->outputs[next++] == r->states[i].written;
    if (r->states[i].initial != HOIST_NO_ARRAY) good &= r->outputs[next++] == r->states[i].initial;
    hoist_count_comparisons(c, r->input_count + r->output_count);
    if (hoist_has_failed(c)) return;
    for (size_t k = 0; k < r->output_count; ++k) good &= r->outputs[k] != r->states[i].read;
    for (size_t k = 0, uses = 0; k < r->input_count; ++k) good &= (uses += r->inputs[k].array == r->states[i].read) < 2;
  }
  for (size_t i = 0; i < r->extent_count && good; ++i) good &= r->extents[i].count >= hoist_first_extent(r);
  if (!good) hoist_bad_bytes(c, "the outputs of states are not in their order");
}

static void check_specialisation_count(hoist_cursor* c) {
  const size_t count = c->plan->specialisation_count;
  if (count == 1 || count > HOIST_MOST_SPECIALISATIONS || !count != !c->plan->size_count)
    hoist_bad_bytes(c, "an impossible number of specialisations");
}

HOIST_INTERNAL void hoist_take_sizes_and_shapes(hoist_cursor* c, hoist_plan_specialisation* r) {
  const hoist_plan* plan = c->plan;
  check_specialisation_count(c);
  if (hoist_has_failed(c)) return;
  if (plan->size_count > (c->size - c->at) / 8) {
    hoist_bad_bytes(c, "ends too early");
    return;
  }
  r->sizes = hoist_pool_alloc(c->pool, plan->size_count, sizeof *r->sizes);
  r->shapes = hoist_pool_alloc(c->pool, plan->input_count, sizeof *r->shapes);
  if (!r->sizes || !r->shapes) {
    hoist_no_memory(c->error, plan->size_count + plan->input_count);
    return;
  }
  for (size_t i = 0; i < plan->size_count; ++i) hoist_take_integer(c, &r->sizes[i]);
  for (size_t i = 0; i < plan->input_count && !hoist_has_failed(c); ++i) {
    const hoist_plan_array* input = &plan->arrays[plan->inputs[i].array];
    uint64_t elements, bytes;
    size_t rank;
    int64_t* shape = hoist_take_list(c, &rank, HOIST_LEAST_integer, sizeof *shape);
    for (size_t k = 0; k < rank; ++k) hoist_take_integer(c, &shape[k]);
    hoist_measure_shape(c, input->scalar, rank, shape, &elements, &bytes);
    if (rank != input->rank) {
      hoist_bad_bytes(c, "an input has another rank in a specialisation");
    } else if (r == plan->specialisations && rank && memcmp(shape, input->shape, rank * sizeof *shape) != 0) {
      hoist_bad_bytes(c, "the first specialisation differs from the plan");
    }
    r->shapes[i] = shape;
  }
}

HOIST_INTERNAL void hoist_check_specialisation(hoist_cursor* c, hoist_plan_specialisation* one) {
  const hoist_plan_specialisation* all = c->plan->specialisations;
  const size_t number = (size_t)(one - all), size_count = c->plan->size_count;
  if (number == 0 ? *one->folder
                  : !hoist_is_inner_path(one->folder) || strchr(one->folder, '/') || strlen(one->folder) > 64) {
    hoist_bad_bytes(c, "the folder name of a specialisation is invalid");
  }
  for (size_t other = 0; other < number && !hoist_has_failed(c); ++other) {
    hoist_count_comparisons(c, size_count);
    if (hoist_has_failed(c)) return;
    if (memcmp(one->sizes, all[other].sizes, size_count * sizeof *one->sizes) == 0) {
      hoist_bad_bytes(c, "two specialisations have the same sizes");
    } else if (strcmp(one->folder, all[other].folder) == 0) {
      hoist_bad_bytes(c, "two specialisations have the same folder");
    }
  }
}

/* Each record fits those before it; this checks the plan as a whole. */
static void check_plan(hoist_cursor* c) {
  const hoist_plan* plan = c->plan;
  for (size_t i = 0; i < plan->target_count; ++i) {
    if (!is_target_name(plan->targets[i])) hoist_bad_bytes(c, "the name of a target is invalid");
  }
  /* A kernel's launch is bounded by the arrays of its step; a kernel without a step would be unbounded. */
  for (size_t i = 0; i < plan->kernel_count; ++i) {
    if (!plan->kernels[i].is_launched) hoist_bad_bytes(c, "a kernel belongs to no step");
  }
  hoist_refuse_control_within(c);
  for (size_t i = 0; i < plan->step_count; ++i) {
    hoist_plan_kernel* kernel = &plan->kernels[plan->steps[i].kernel];
    kernel->step = (uint32_t)i;
    if (!plan->steps[i].launch) kernel->is_alone = 1;
  }
  for (size_t i = 0; i < plan->output_count; ++i) {
    /* An array in the arena may be overwritten by a later step. */
    if (plan->arrays[plan->outputs[i]].place == HOIST_PLACE_ARENA) hoist_bad_bytes(c, "an output lies in the arena");
  }
  check_specialisation_count(c);
  if (c->at != c->size) hoist_bad_bytes(c, "has excess bytes at its end");
}

static void take_plan(hoist_cursor* c, hoist_plan* r) {
  HOIST_PLAN_FIELDS(HOIST_TAKE, HOIST_TAKE_LIST, HOIST_TAKE_OTHERS)
  if (!hoist_has_failed(c)) check_plan(c);
}

/* Keeps `folder` and a copy of the bytes, to which the texts point. */
static hoist_status plan_from(const unsigned char* data, size_t bytes, const char* folder, const char* inner,
                              hoist_plan* plan, hoist_error* error) {
  const size_t length = strlen(folder) + strlen(inner) + 2;
  error->status = HOIST_OK;
  unsigned char* image = hoist_pool_alloc(&plan->pool, bytes + 1, 1);
  plan->folder = hoist_pool_alloc(&plan->pool, length, 1);
  if (!image || !plan->folder) {
    hoist_no_memory(error, bytes);
  } else {
    memcpy(image, data, bytes);
    plan->hash = hoist_hash(data, bytes);
    snprintf(plan->folder, length, "%s%s%s", folder, *inner ? "/" : "", inner);
    hoist_cursor c = {image, bytes, 0, 0, "plan.bin", &plan->pool, error, plan};
    if (hoist_check_frame(&c, HOIST_PLAN_MAGIC) == HOIST_OK) take_plan(&c, plan);
  }
  if (error->status) hoist_plan_free(plan);
  return error->status;
}

static void take_preprocessing(hoist_cursor* c, size_t number) {
  const hoist_plan* plan = c->plan;
  hoist_plan_preprocessing* one = &plan->preprocessing[number];
  hoist_take_count(c, &one->input);
  hoist_take_pixels(c, &one->how);
  if (hoist_has_failed(c)) return;
  if (one->input >= hoist_model_inputs(plan) || (number && one->input <= one[-1].input)) {
    hoist_bad_bytes(c, "the inputs are not the plan's inputs in order");
    return;
  }
  const hoist_plan_array* array = &plan->arrays[plan->inputs[one->input].array];
  if (!hoist_holds_images(array)) {
    hoist_bad_bytes(c, "an input that holds no images");
    return;
  }
  hoist_image_shape(array, &one->how);
  const char* problem = hoist_preprocessing_problem(&one->how);
  if (problem) hoist_bad_bytes(c, problem);
}

static hoist_status read_preprocessing(hoist_plan* plan, hoist_error* error) {
  unsigned char* data = NULL;
  size_t bytes = 0;
  int is_listed = 0;
  for (size_t i = 0; i < plan->file_count; ++i) {
    is_listed |= strcmp(plan->files[i].path, HOIST_PREPROCESSING_FILE) == 0;
  }
  if (!is_listed) return HOIST_OK;
  if (hoist_plan_file(plan, HOIST_PREPROCESSING_FILE, &data, &bytes, error)) return error->status;
  hoist_cursor c = {data, bytes, 0, 0, HOIST_PREPROCESSING_FILE, &plan->pool, error, plan};
  if (hoist_check_frame(&c, HOIST_PREPROCESSING_MAGIC) == HOIST_OK) {
    plan->preprocessing = hoist_take_list(&c, &plan->preprocessing_count, HOIST_LEAST_count + HOIST_LEAST_pixels,
                                          sizeof *plan->preprocessing);
    for (size_t i = 0; i < plan->preprocessing_count && !hoist_has_failed(&c); ++i) take_preprocessing(&c, i);
    if (!hoist_has_failed(&c) && c.at != c.size) hoist_bad_bytes(&c, "has excess bytes at its end");
  }
  free(data);
  return error->status;
}

HOIST_INTERNAL hoist_status hoist_plan_read(const char* folder, hoist_plan* plan, hoist_error* error) {
  memset(plan, 0, sizeof *plan);
  error->status = HOIST_OK;
  unsigned char* data = NULL;
  size_t bytes = 0;
  if (hoist_read_whole(folder, "plan.bin", &data, &bytes, error)) return error->status;
  plan_from(data, bytes, folder, "", plan, error);
  free(data);
  if (!error->status && read_preprocessing(plan, error)) hoist_plan_free(plan);
  return error->status;
}

static int same_array(const hoist_plan_array* a, const hoist_plan_array* b) {
  return strcmp(a->name, b->name) == 0 && a->scalar == b->scalar && a->rank == b->rank;
}

/* Checks the properties on which a choice among specialisations relies; NULL if all of them hold. */
static const char* difference(const hoist_plan* root, const hoist_plan* plan, int64_t* const* shapes) {
  if (plan->specialisation_count) return "has specialisations of its own";
  if (plan->weights_bytes != root->weights_bytes) return "belongs to other weights";
  if (plan->target_count != root->target_count) return "belongs to other targets";
  for (size_t i = 0; i < plan->target_count; ++i) {
    if (strcmp(plan->targets[i], root->targets[i]) != 0) return "belongs to other targets";
  }
  if (plan->state_count != root->state_count || plan->input_count != root->input_count ||
      plan->model_output_count != root->model_output_count) {
    return "has another number of inputs or outputs";
  }
  for (size_t i = 0; i < plan->input_count; ++i) {
    const hoist_plan_array* input = &plan->arrays[plan->inputs[i].array];
    if (!same_array(input, &root->arrays[root->inputs[i].array])) return "has other inputs";
    if (input->rank && memcmp(input->shape, shapes[i], input->rank * sizeof *input->shape) != 0) {
      return "has inputs of other shapes than the bundle states";
    }
  }
  for (size_t i = 0; i < plan->model_output_count; ++i) {
    if (!same_array(&plan->arrays[plan->outputs[i]], &root->arrays[root->outputs[i]])) return "has other outputs";
  }
  return NULL;
}

HOIST_INTERNAL hoist_status hoist_plan_read_specialisation(const hoist_plan* root, size_t index, hoist_plan* plan,
                                                           hoist_error* error) {
  const hoist_plan_specialisation* one = &root->specialisations[index];
  char path[128];
  memset(plan, 0, sizeof *plan);
  snprintf(path, sizeof path, "%s/plan.bin", one->folder);
  unsigned char* data = NULL;
  size_t bytes = 0;
  if (hoist_plan_file(root, path, &data, &bytes, error)) return error->status;
  plan_from(data, bytes, root->folder, one->folder, plan, error);
  free(data);
  if (error->status) return error->status;
  const char* found = difference(root, plan, one->shapes);
  if (!found) return HOIST_OK;
  hoist_plan_free(plan);
  return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: %s (compile the model again)", path, found);
}

HOIST_INTERNAL void hoist_plan_free(hoist_plan* plan) {
  hoist_pool_free(&plan->pool);
  memset(plan, 0, sizeof *plan);
}
