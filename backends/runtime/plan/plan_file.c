/* Reads plan.bin and check.bin. Everything in them is untrusted until it is checked here: counts are bounded by the
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

/* Relative, without "..", in characters that mean the same on every system. */
static int is_inner_path(const char* path) {
  if (!*path || *path == '/' || strstr(path, "..")) return 0;
  for (const char* p = path; *p; ++p) {
    if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || strchr("._-/", *p))) {
      return 0;
    }
  }
  return 1;
}

static void take_extents(hoist_cursor* c, hoist_plan* plan) {
  const uint64_t model_outputs = hoist_take(c, 4);
  if (model_outputs > plan->output_count) hoist_bad_bytes(c, "the model has more outputs than there are");
  plan->model_output_count = (size_t)model_outputs;
  plan->extents = hoist_take_array(c, &plan->extent_count, 12, sizeof *plan->extents);
  for (size_t i = 0; i < plan->extent_count && !hoist_has_failed(c); ++i) {
    hoist_plan_extent* extent = &plan->extents[i];
    extent->output = (uint32_t)hoist_take(c, 4);
    extent->dimension = (uint32_t)hoist_take(c, 4);
    extent->count = (uint32_t)hoist_take(c, 4);
    if (hoist_has_failed(c)) return;
    if (extent->output >= plan->model_output_count ||
        extent->dimension >= plan->arrays[plan->outputs[extent->output]].rank) {
      hoist_bad_bytes(c, "an extent of a dimension beyond the output's rank");
    } else if (extent->count < plan->model_output_count || extent->count >= plan->output_count) {
      hoist_bad_bytes(c, "an extent of a missing output");
    } else {
      const hoist_plan_array* count = &plan->arrays[plan->outputs[extent->count]];
      if (count->scalar != hoist_scalar_named("i64") || count->bytes != 8)
        hoist_bad_bytes(c, "the value of an extent is not i64");
    }
  }
}

/* Any bytes, including zeros, used in place. */
static void take_strings(hoist_cursor* c, hoist_plan* plan) {
  plan->strings = hoist_take_array(c, &plan->string_count, 4, sizeof *plan->strings);
  for (size_t i = 0; i < plan->string_count && !hoist_has_failed(c); ++i) {
    const uint64_t length = hoist_take(c, 4);
    if (hoist_has_failed(c)) return;
    if (length > c->size - c->at) {
      hoist_bad_bytes(c, "a string is longer than the file");
      return;
    }
    plan->strings[i].data = (const char*)c->data + c->at;
    plan->strings[i].length = (size_t)length;
    c->at += length;
  }
}

static void take_specialisation(hoist_cursor* c, hoist_plan* plan, size_t number) {
  hoist_plan_specialisation* one = &plan->specialisations[number];
  one->folder = hoist_take_text(c);
  if (hoist_has_failed(c)) return;
  if (number == 0 ? *one->folder
                  : !is_inner_path(one->folder) || strchr(one->folder, '/') || strlen(one->folder) > 64) {
    hoist_bad_bytes(c, "the folder name of a specialisation is invalid");
    return;
  }
  if (plan->size_count > (c->size - c->at) / 8) {
    hoist_bad_bytes(c, "ends too early");
    return;
  }
  one->sizes = hoist_pool_alloc(c->pool, plan->size_count, sizeof *one->sizes);
  one->shapes = hoist_pool_alloc(c->pool, plan->input_count, sizeof *one->shapes);
  if (!one->sizes || !one->shapes) {
    hoist_no_memory(c->error, plan->size_count + plan->input_count);
    return;
  }
  for (size_t i = 0; i < plan->size_count; ++i) one->sizes[i] = (int64_t)hoist_take(c, 8);
  for (size_t i = 0; i < plan->input_count && !hoist_has_failed(c); ++i) {
    const hoist_plan_array* input = &plan->arrays[plan->inputs[i].array];
    uint64_t elements, bytes;
    size_t rank;
    one->shapes[i] = hoist_take_shape(c, input->scalar, &rank, &elements, &bytes);
    if (hoist_has_failed(c)) return;
    if (rank != input->rank) {
      hoist_bad_bytes(c, "an input has another rank in a specialisation");
    } else if (number == 0 && rank && memcmp(one->shapes[i], input->shape, rank * sizeof *input->shape) != 0) {
      hoist_bad_bytes(c, "the first specialisation differs from the plan");
    }
  }
  for (size_t other = 0; other < number && !hoist_has_failed(c); ++other) {
    hoist_count_comparisons(c, plan->size_count);
    if (hoist_has_failed(c)) return;
    if (memcmp(one->sizes, plan->specialisations[other].sizes, plan->size_count * sizeof *one->sizes) == 0) {
      hoist_bad_bytes(c, "two specialisations have the same sizes");
    } else if (strcmp(one->folder, plan->specialisations[other].folder) == 0) {
      hoist_bad_bytes(c, "two specialisations have the same folder");
    }
  }
}

static void take_specialisations(hoist_cursor* c, hoist_plan* plan) {
  plan->size_names = hoist_take_texts(c, &plan->size_count);
  const uint64_t count = hoist_take(c, 4);
  if (hoist_has_failed(c)) return;
  if (count == 1 || count > HOIST_MOST_SPECIALISATIONS || !count != !plan->size_count) {
    hoist_bad_bytes(c, "an impossible number of specialisations");
    return;
  }
  plan->specialisations = hoist_pool_alloc(c->pool, count, sizeof *plan->specialisations);
  if (!plan->specialisations) {
    hoist_no_memory(c->error, count * sizeof *plan->specialisations);
    return;
  }
  plan->specialisation_count = (size_t)count;
  for (size_t i = 0; i < plan->specialisation_count && !hoist_has_failed(c); ++i) take_specialisation(c, plan, i);
}

static void take_plan(hoist_cursor* c, hoist_plan* plan) {
  plan->model_name = hoist_take_text(c);
  plan->model_hash = hoist_take(c, 8);
  plan->made_for.name = hoist_take_text(c);
  const uint64_t is_cpu = hoist_take(c, 1);
  if (is_cpu > 1) hoist_bad_bytes(c, "an unknown kind of device");
  plan->made_for.is_cpu = (int)is_cpu;
  plan->made_for.is_serial = hoist_take(c, 1) != 0;
  plan->build_options = hoist_take_text(c);
  plan->targets = hoist_take_texts(c, &plan->target_count);
  for (size_t i = 0; i < plan->target_count && !hoist_has_failed(c); ++i) {
    if (!is_target_name(plan->targets[i])) hoist_bad_bytes(c, "the name of a target is invalid");
  }
  plan->arena_bytes = hoist_take(c, 8);
  plan->weights_bytes = hoist_take(c, 8);
  plan->files = hoist_take_array(c, &plan->file_count, 21, sizeof *plan->files);
  for (size_t i = 0; i < plan->file_count; ++i) {
    plan->files[i].path = hoist_take_text(c);
    plan->files[i].bytes = hoist_take(c, 8);
    plan->files[i].hash = hoist_take(c, 8);
    if (!hoist_has_failed(c) && !is_inner_path(plan->files[i].path))
      hoist_bad_bytes(c, "a file name leads out of the bundle");
  }
  plan->arrays = hoist_take_array(c, &plan->array_count, 26, sizeof *plan->arrays);
  for (size_t i = 0; i < plan->array_count && !hoist_has_failed(c); ++i)
    hoist_take_array_record(c, plan, &plan->arrays[i]);
  plan->kernels = hoist_take_array(c, &plan->kernel_count, 108, sizeof *plan->kernels);
  for (size_t i = 0; i < plan->kernel_count && !hoist_has_failed(c); ++i)
    hoist_take_kernel_record(c, plan, &plan->kernels[i]);
  plan->steps = hoist_take_array(c, &plan->step_count, 12, sizeof *plan->steps);
  for (size_t i = 0; i < plan->step_count && !hoist_has_failed(c); ++i)
    hoist_take_step_record(c, plan, &plan->steps[i]);
  /* A kernel's launch is bounded by the arrays of its step; a kernel without a step would be unbounded. */
  for (size_t i = 0; i < plan->kernel_count && !hoist_has_failed(c); ++i) {
    if (!plan->kernels[i].is_launched) hoist_bad_bytes(c, "a kernel belongs to no step");
  }
  hoist_take_controls(c, plan);
  hoist_take_launches(c, plan);
  plan->inputs = hoist_take_array(c, &plan->input_count, 20, sizeof *plan->inputs);
  for (size_t i = 0; i < plan->input_count && !hoist_has_failed(c); ++i) {
    plan->inputs[i].array = (uint32_t)hoist_take(c, 4);
    if (plan->inputs[i].array >= plan->array_count || plan->arrays[plan->inputs[i].array].place != HOIST_PLACE_INPUT) {
      hoist_bad_bytes(c, "an input names an invalid array");
      return;
    }
    hoist_take_domain(c, plan->arrays[plan->inputs[i].array].scalar, &plan->inputs[i].low, &plan->inputs[i].high);
  }
  plan->outputs = hoist_take_array(c, &plan->output_count, 4, sizeof *plan->outputs);
  for (size_t i = 0; i < plan->output_count && !hoist_has_failed(c); ++i) {
    plan->outputs[i] = (uint32_t)hoist_take(c, 4);
    if (plan->outputs[i] >= plan->array_count) {
      hoist_bad_bytes(c, "an output names a missing array");
      return;
    }
    /* An array in the arena may be overwritten by a later step. */
    if (plan->arrays[plan->outputs[i]].place == HOIST_PLACE_ARENA) {
      hoist_bad_bytes(c, "an output lies in the arena");
      return;
    }
  }
  take_extents(c, plan);
  take_strings(c, plan);
  if (!hoist_has_failed(c)) take_specialisations(c, plan);
  if (!hoist_has_failed(c) && c->at != c->size) hoist_bad_bytes(c, "has excess bytes at its end");
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
    snprintf(plan->folder, length, "%s%s%s", folder, *inner ? "/" : "", inner);
    hoist_cursor c = {image, bytes, 0, 0, "plan.bin", &plan->pool, error};
    if (hoist_check_frame(&c, HOIST_PLAN_MAGIC) == HOIST_OK) take_plan(&c, plan);
  }
  if (error->status) hoist_plan_free(plan);
  return error->status;
}

static void take_preprocessing(hoist_cursor* c, const hoist_plan* plan, size_t number) {
  hoist_plan_preprocessing* one = &plan->preprocessing[number];
  hoist_preprocessing* how = &one->how;
  one->input = (uint32_t)hoist_take(c, 4);
  how->channels_first = hoist_take(c, 1) != 0;
  how->blue_first = hoist_take(c, 1) != 0;
  how->crop = hoist_take(c, 1) != 0;
  how->resize_rows = (size_t)hoist_take(c, 4);
  how->resize_columns = (size_t)hoist_take(c, 4);
  how->scale = hoist_take_double(c);
  for (int i = 0; i < 3; ++i) how->mean[i] = hoist_take_double(c);
  for (int i = 0; i < 3; ++i) how->deviation[i] = hoist_take_double(c);
  if (hoist_has_failed(c)) return;
  if (one->input >= plan->input_count || (number && one->input <= plan->preprocessing[number - 1].input)) {
    hoist_bad_bytes(c, "the inputs are not the plan's inputs in order");
    return;
  }
  const hoist_plan_array* array = &plan->arrays[plan->inputs[one->input].array];
  if (!hoist_holds_pictures(array)) {
    hoist_bad_bytes(c, "an input that holds no images");
    return;
  }
  hoist_picture_shape(array, how);
  const char* problem = hoist_preprocessing_problem(how);
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
  hoist_cursor c = {data, bytes, 0, 0, HOIST_PREPROCESSING_FILE, &plan->pool, error};
  if (hoist_check_frame(&c, HOIST_PREPROCESSING_MAGIC) == HOIST_OK) {
    plan->preprocessing = hoist_take_array(&c, &plan->preprocessing_count, 71, sizeof *plan->preprocessing);
    for (size_t i = 0; i < plan->preprocessing_count && !hoist_has_failed(&c); ++i) take_preprocessing(&c, plan, i);
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
  if (plan->input_count != root->input_count || plan->model_output_count != root->model_output_count) {
    return "has another number of inputs or outputs";
  }
  for (size_t i = 0; i < plan->input_count; ++i) {
    const hoist_plan_array* input = &plan->arrays[plan->inputs[i].array];
    if (!same_array(input, &root->arrays[root->inputs[i].array])) return "has other inputs";
    if (input->rank && memcmp(input->shape, shapes[i], input->rank * sizeof *input->shape) != 0) {
      return "has inputs of other shapes than the bundle says";
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
