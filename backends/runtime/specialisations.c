/* The other sizes that a bundle is compiled for. Each specialisation is a handle of its own, opened when it is chosen
 * for the first time. Choosing swaps its contents with the program's handle, so that all other code sees a single
 * plan. Specialisations share the weights and the device's context. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/bundle.h"
#include "backends/runtime/family.h"

size_t hoist_specialisation_count(const hoist_bundle* b) { return b->family ? b->family->count : 1; }
size_t hoist_specialisation_in_use(const hoist_bundle* b) { return b->family ? b->family->in_use : 0; }

hoist_status hoist_describe_specialisation(hoist_bundle* b, size_t index, hoist_specialisation* specialisation) {
  if (hoist_in_range(b, "specialisation", index, hoist_specialisation_count(b))) return b->error.status;
  const hoist_plan* root = hoist_root_plan(b);
  specialisation->size_count = root->size_count;
  specialisation->names = root->size_names;
  specialisation->sizes = b->family ? root->specialisations[index].sizes : NULL;
  return HOIST_OK;
}

static hoist_bundle* open_another(hoist_bundle* b, size_t index) {
  const hoist_family* family = b->family;
  hoist_options options = family->options;
  hoist_bundle* made = calloc(1, sizeof *made);
  if (!made) {
    hoist_no_memory(&b->error, sizeof *made);
    return NULL;
  }
  hoist_status status = hoist_plan_read_specialisation(hoist_root_plan(b), index, &made->plan, &made->error);
  made->root = b->root;
  made->family = b->family;
  made->weights = b->weights;
  made->weights_users = b->weights_users;
  options.context_of = b->plan.target_count ? NULL : b;
  if (!status) status = hoist_open_parts(made, &options);
  if (!status) return made;
  hoist_fail(&b->error, status, "%s", made->error.message);
  hoist_close_parts(made);
  return NULL;
}

hoist_status hoist_choose(hoist_bundle* b, size_t index) {
  if (hoist_in_range(b, "specialisation", index, hoist_specialisation_count(b))) return b->error.status;
  hoist_family* family = b->family;
  if (!family || family->in_use == index) return HOIST_OK;
  hoist_bundle* other = family->others[index] ? family->others[index] : open_another(b, index);
  if (!other) return b->error.status;
  const hoist_error said = b->error; /* messages belong to the program's handle */
  const hoist_bundle contents = *b;
  *b = *other;
  *other = contents;
  b->error = said;
  family->others[index] = NULL;
  family->others[family->in_use] = other;
  family->in_use = index;
  return HOIST_OK;
}

HOIST_INTERNAL void hoist_list_name(char* list, size_t capacity, const char* name) {
  const size_t used = strlen(list);
  snprintf(list + used, capacity - used, "%s%s", used ? ", " : "", name);
}

hoist_status hoist_choose_size(hoist_bundle* b, const char* name, int64_t size) {
  const hoist_plan* root = hoist_root_plan(b);
  char there[512] = "";
  size_t k = 0;
  if (b->plan.open_size_count) return hoist_resize_by_name(b, name, size);
  if (!b->family) {
    return hoist_fail(&b->error, HOIST_BAD_SIZE, "size %s: the bundle is compiled for one set of sizes", name);
  }
  while (k < root->size_count && strcmp(root->size_names[k], name) != 0) ++k;
  if (k == root->size_count) {
    for (size_t i = 0; i < root->size_count; ++i) hoist_list_name(there, sizeof there, root->size_names[i]);
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "no size is called %s (there are: %s)", name, there);
  }
  const hoist_plan_specialisation* all = root->specialisations;
  const int64_t* now = all[b->family->in_use].sizes;
  for (size_t i = 0; i < root->specialisation_count; ++i) {
    size_t same = 0;
    for (size_t j = 0; j < root->size_count; ++j) same += all[i].sizes[j] == (j == k ? size : now[j]);
    if (same == root->size_count) return hoist_choose(b, i);
    int is_new = 1;
    for (size_t j = 0; j < i; ++j) is_new &= all[j].sizes[k] != all[i].sizes[k];
    if (!is_new) continue;
    const size_t used = strlen(there);
    snprintf(there + used, sizeof there - used, "%s%lld", used ? ", " : "", (long long)all[i].sizes[k]);
  }
  return hoist_fail(&b->error, HOIST_BAD_SIZE, "%s=%lld: the bundle is not compiled for it (there are: %s)", name,
                    (long long)size, there);
}

static void append_shape(char* text, size_t capacity, const int64_t* shape, size_t rank) {
  size_t used = strlen(text);
  snprintf(text + used, capacity - used, "%s[", used ? " " : "");
  for (size_t i = 0; i < rank; ++i) {
    used = strlen(text);
    snprintf(text + used, capacity - used, "%s%lld", i ? "," : "", (long long)shape[i]);
  }
  used = strlen(text);
  snprintf(text + used, capacity - used, "]");
}

static int same_shape(const int64_t* a, const int64_t* b, size_t rank) {
  return !rank || memcmp(a, b, rank * sizeof *a) == 0;
}

hoist_status hoist_choose_input_shape(hoist_bundle* b, size_t index, const int64_t* shape, size_t rank) {
  if (hoist_in_range(b, "input", index, hoist_model_inputs(&b->plan))) return b->error.status;
  const hoist_plan* root = hoist_root_plan(b);
  const hoist_plan_array* input = &b->plan.arrays[b->plan.inputs[index].array];
  char given[256] = "", there[512] = "";
  if (!shape && rank) return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: no shape given", input->name);
  if (rank == input->rank && same_shape(shape, input->shape, rank)) return HOIST_OK;
  if (rank == input->rank && b->plan.open_size_count) return hoist_resize_by_shape(b, index, shape);
  /* Among the matching specialisations, chooses the one with the fewest sizes that differ from the current ones. */
  size_t best = root->specialisation_count, most = 0;
  for (size_t i = 0; i < root->specialisation_count; ++i) {
    const hoist_plan_specialisation* one = &root->specialisations[i];
    if (rank != input->rank || !same_shape(shape, one->shapes[index], rank)) {
      int is_new = 1;
      for (size_t k = 0; k < i; ++k) {
        is_new &= !same_shape(one->shapes[index], root->specialisations[k].shapes[index], input->rank);
      }
      if (is_new) append_shape(there, sizeof there, one->shapes[index], input->rank);
      continue;
    }
    size_t same = 0;
    for (size_t k = 0; k < root->size_count; ++k) {
      same += one->sizes[k] == root->specialisations[b->family->in_use].sizes[k];
    }
    if (best < root->specialisation_count && same <= most) continue;
    best = i;
    most = same;
  }
  if (best < root->specialisation_count) return hoist_choose(b, best);
  if (!b->family) append_shape(there, sizeof there, input->shape, input->rank);
  append_shape(given, sizeof given, shape, rank);
  return hoist_fail(&b->error, HOIST_BAD_SIZE, "input %s: the bundle is not compiled for %s (there are: %s)",
                    input->name, given, there);
}
