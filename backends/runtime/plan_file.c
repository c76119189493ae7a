/* Reads plan.bin and check.bin. Everything in them is hostile until checked here: counts are bounded by the bytes that
 * are left, so no count can make this allocate more than a small multiple of the file.
 *
 * An array has at most 2^48 bytes, a kernel no more groups than elements to write, and every kernel a step: what is in
 * a plan can then be multiplied and added up without another check, and a kernel of no step would have no arrays that
 * bound it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "plan_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a reader that never passes the end ---- */

typedef struct cursor {
  const unsigned char* data;
  uint64_t size, at;
  uint64_t comparisons; /* made so far, of arguments, regions and positions with each other */
  const char* file;
  hoist_pool** pool;
  hoist_error* error;
} cursor;

static int failed(const cursor* c) { return c->error->status != HOIST_OK; }

/* The first failure stays; afterwards every read gives zeros. */
static void bad(cursor* c, const char* what) {
  if (failed(c)) return;
  hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: %s at byte %llu (compile the model again)", c->file, what,
             (unsigned long long)c->at);
}

/* What is compared with everything else of its kind grows with the square of the file; no model comes near this. */
static void compare(cursor* c, uint64_t count) {
  const uint64_t most = (uint64_t)1 << 30;
  if (count > most - c->comparisons) {
    bad(c, "too many arguments, regions or positions to compare");
    return;
  }
  c->comparisons += count;
}

static uint64_t take(cursor* c, int bytes) {
  if (failed(c)) return 0;
  if (c->size - c->at < (uint64_t)bytes) {
    bad(c, "ends too early");
    return 0;
  }
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= (uint64_t)c->data[c->at + (uint64_t)i] << (8 * i);
  c->at += (uint64_t)bytes;
  return value;
}

static double take_double(cursor* c) {
  const uint64_t word = take(c, 8);
  double value;
  memcpy(&value, &word, sizeof value);
  return value;
}

static const char* take_text(cursor* c) {
  const uint64_t length = take(c, 4);
  if (failed(c)) return "";
  if (c->size - c->at <= length) {
    bad(c, "a text is longer than the file");
    return "";
  }
  const char* text = (const char*)c->data + c->at;
  if (memchr(text, 0, (size_t)length + 1) != text + length) {
    bad(c, "a text does not end where its length says");
    return "";
  }
  c->at += length + 1;
  return text;
}

/* A count of records that take at least `least` bytes each, and room for them. */
static void* take_array(cursor* c, size_t* count, uint64_t least, size_t size) {
  const uint64_t number = take(c, 4);
  *count = 0;
  if (failed(c)) return NULL;
  if (number > (c->size - c->at) / least) {
    bad(c, "a count is larger than the file");
    return NULL;
  }
  void* records = hoist_pool_alloc(c->pool, number, size);
  if (!records) {
    hoist_no_memory(c->error, number * size);
    return NULL;
  }
  *count = (size_t)number;
  return records;
}

static const char** take_texts(cursor* c, size_t* count) {
  const char** texts = take_array(c, count, 5, sizeof *texts);
  for (size_t i = 0; i < *count; ++i) texts[i] = take_text(c);
  return texts;
}

static int take_scalar(cursor* c) {
  const uint64_t scalar = take(c, 1);
  if (scalar >= HOIST_SCALAR_COUNT) {
    bad(c, "unknown scalar type");
    return 0;
  }
  return (int)scalar;
}

/* The number of elements and bytes of what has been read. Both, and the extents other than 0 multiplied, stay within
 * HOIST_MOST_BYTES, so that sums of a few of them fit 64 bits, and one of them a size_t. */
static int64_t* take_shape(cursor* c, int scalar, size_t* rank, uint64_t* elements, uint64_t* bytes) {
  int64_t* shape = take_array(c, rank, 8, sizeof *shape);
  const uint64_t bits = (uint64_t)hoist_scalar_row(scalar)->bits, limit = HOIST_MOST_BYTES / ((bits + 7) / 8);
  *elements = 1;
  *bytes = 0;
  int empty = 0;
  for (size_t i = 0; i < *rank; ++i) {
    const uint64_t extent = take(c, 8);
    shape[i] = (int64_t)extent;
    if (extent && (extent > limit || *elements > limit / extent)) {
      bad(c, "an array is too large");
      *elements = 0;
      return shape;
    }
    if (!extent)
      empty = 1;
    else
      *elements *= extent;
  }
  if (empty) *elements = 0;
  *bytes = (*elements * bits + 7) / 8;
  return shape;
}

static void take_domain(cursor* c, int scalar, double* low, double* high) {
  *low = take_double(c);
  *high = take_double(c);
  const hoist_scalar* row = hoist_scalar_row(scalar);
  double least = -1e300, most = 1e300;
  if (!row->is_float) {
    const int bits = scalar == 0 ? 1 : row->bits - row->is_signed;
    most = 1;
    for (int i = 0; i < bits; ++i) most *= 2;
    least = row->is_signed ? -most : 0;
    most -= 1; /* for 64 bits this rounds back up, and the comparison below still holds the sum in range */
  }
  if (!(*low <= *high && *low >= least && *high <= most)) bad(c, "a domain is empty or outside its type");
}

static hoist_tolerance take_tolerance(cursor* c) {
  hoist_tolerance tolerance = {0, 0, 0, 0};
  tolerance.exact = take(c, 1) != 0;
  tolerance.divides = take(c, 1) != 0;
  tolerance.relative = take_double(c);
  tolerance.absolute = take_double(c);
  if (!(tolerance.relative >= 0 && tolerance.absolute >= 0)) bad(c, "a tolerance is negative");
  return tolerance;
}

/* ---- plan.bin ---- */

static int is_identifier(const char* text) {
  for (const char* p = text; *p; ++p) {
    const int letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
    if (!letter && !(p > text && *p >= '0' && *p <= '9')) return 0;
  }
  return *text != 0;
}

/* Of native code: small letters, digits, '-' and '_', not many. */
static int is_target_name(const char* text) {
  return *text && strlen(text) <= 64 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(text);
}

/* Relative, without "..", in letters that mean the same everywhere. */
static int is_inner_path(const char* path) {
  if (!*path || *path == '/' || strstr(path, "..")) return 0;
  for (const char* p = path; *p; ++p) {
    if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || strchr("._-/", *p))) {
      return 0;
    }
  }
  return 1;
}

static void take_array_record(cursor* c, hoist_plan* plan, hoist_plan_array* array) {
  array->name = take_text(c);
  array->scalar = take_scalar(c);
  array->place = (int)take(c, 1);
  uint64_t elements;
  array->shape = take_shape(c, array->scalar, &array->rank, &elements, &array->bytes);
  array->offset = take(c, 8);
  array->fill = (int)take(c, 1);
  if (failed(c)) return;
  if (array->place > HOIST_PLACE_CLEARED) {
    bad(c, "unknown place of an array");
    return;
  }
  const int weights = array->place == HOIST_PLACE_WEIGHTS, arena = array->place == HOIST_PLACE_ARENA;
  const uint64_t room = weights ? plan->weights_bytes : arena ? plan->arena_bytes : UINT64_MAX;
  if (array->offset > room || array->bytes > room - array->offset) bad(c, "an array reaches beyond its buffer");
  if (weights && array->offset % 64) bad(c, "weights are not aligned to 64 bytes");
}

static void take_regions(cursor* c, hoist_plan_parameter* parameter) {
  /* At least one byte each, so that arrays of rank 0 cannot make the count meaningless. */
  const uint64_t count = take(c, 4), numbers = 2 * (uint64_t)parameter->rank;
  if (failed(c)) return;
  if (count > (c->size - c->at) / (numbers ? 8 * numbers : 1) || (parameter->written && count > 1)) {
    bad(c, "too many regions of an array");
    return;
  }
  parameter->regions = hoist_pool_alloc(c->pool, count * numbers, sizeof *parameter->regions);
  if (!parameter->regions) {
    hoist_no_memory(c->error, count * numbers * 8);
    return;
  }
  parameter->region_count = (size_t)count;
  for (uint64_t k = 0; k < count * numbers; ++k) parameter->regions[k] = (int64_t)take(c, 8);
  for (size_t k = 0; k < parameter->region_count; ++k) {
    const int64_t *before = parameter->regions + k * numbers, *extent = before + parameter->rank;
    for (size_t d = 0; d < parameter->rank; ++d) {
      if (before[d] < 0 || extent[d] < 0 || before[d] > parameter->shape[d] ||
          extent[d] > parameter->shape[d] - before[d]) {
        bad(c, "a region reaches beyond its array");
        return;
      }
    }
  }
}

/* Whole arrays that are read, and behind them one that is written, of the types that the function takes. */
static void check_host_call(cursor* c, const hoist_plan_kernel* kernel) {
  const size_t count = kernel->parameter_count;
  hoist_host_array* arrays = hoist_pool_alloc(c->pool, count, sizeof *arrays);
  if (!arrays) {
    hoist_no_memory(c->error, count * sizeof *arrays);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const hoist_plan_parameter* parameter = &kernel->parameters[i];
    const hoist_host_array array = {parameter->scalar, parameter->rank, parameter->shape, parameter->elements, NULL};
    arrays[i] = array;
    if (parameter->written != (i + 1 == count) || parameter->region_count) {
      bad(c, "a step on the host writes what is not its last array, or a part of it");
      return;
    }
  }
  const hoist_host_call call = {arrays, count - 1, &arrays[count - 1], NULL, ""};
  if (!hoist_host_takes(kernel->host, &call)) bad(c, "a step on the host has arrays of other types or sizes");
}

static void take_kernel_record(cursor* c, const hoist_plan* plan, hoist_plan_kernel* kernel) {
  kernel->name = take_text(c);
  if (!failed(c) && !is_identifier(kernel->name)) bad(c, "a kernel's name is not an identifier");
  const char* host = take_text(c);
  if (!failed(c) && *host && !(kernel->host = hoist_host_operator_named(host)))
    bad(c, "a step on the host that this runtime does not have");
  kernel->layers = take_texts(c, &kernel->layer_count);
  for (int i = 0; i < 3; ++i) kernel->global[i] = take(c, 8);
  for (int i = 0; i < 3; ++i) kernel->local[i] = take(c, 8);
  kernel->local_bytes = take(c, 8);
  uint64_t work_items = 1, groups = 1, most_elements = 0;
  for (int i = 0; i < 3 && !failed(c); ++i) {
    if (!kernel->local[i] || !kernel->global[i] || kernel->global[i] % kernel->local[i]) {
      bad(c, "launch sizes are zero or not a multiple of the group's");
    } else if (kernel->global[i] > ((uint64_t)1 << 48) / work_items || kernel->local[i] > 65536) {
      bad(c, "launch sizes are too large");
    } else {
      work_items *= kernel->global[i];
      groups *= kernel->global[i] / kernel->local[i];
    }
  }
  /* Native code is called with a range of groups, which are its work-items: those of the loop that threads divide and
   * of the loops inside, and how often they come. */
  if (plan->target_count &&
      (work_items != groups || kernel->local_bytes || kernel->global[2] != 1 || groups > INT32_MAX)) {
    bad(c, "a native kernel has work-groups");
  }
  kernel->parameters = take_array(c, &kernel->parameter_count, 31, sizeof *kernel->parameters);
  /* More pointers than drivers take; so few that the elements of all of them can be added up. */
  if (kernel->parameter_count > 4096) bad(c, "a kernel has more than 4096 parameters");
  int written = 0;
  for (size_t i = 0; i < kernel->parameter_count && !failed(c); ++i) {
    hoist_plan_parameter* parameter = &kernel->parameters[i];
    parameter->name = take_text(c);
    parameter->scalar = take_scalar(c);
    parameter->written = take(c, 1) != 0;
    parameter->shape = take_shape(c, parameter->scalar, &parameter->rank, &parameter->elements, &parameter->bytes);
    take_domain(c, parameter->scalar, &parameter->low, &parameter->high);
    take_regions(c, parameter);
    written |= parameter->written;
    if (parameter->written && parameter->elements > most_elements) most_elements = parameter->elements;
  }
  if (!written) bad(c, "a kernel writes nothing");
  if (!failed(c) && kernel->host) check_host_call(c, kernel);
  /* Every group has something to write; more of them than elements would write outside. */
  if (groups > (most_elements ? most_elements : 1)) bad(c, "a kernel has more groups than elements to write");
  kernel->tolerance = take_tolerance(c);
  kernel->operations = (int64_t)take(c, 8);
}

HOIST_INTERNAL int hoist_share_memory(const hoist_plan_array* a, const hoist_plan_array* b) {
  return a->place == HOIST_PLACE_ARENA && b->place == HOIST_PLACE_ARENA && a->offset < b->offset + b->bytes &&
         b->offset < a->offset + a->bytes;
}

static int boxes_overlap(size_t rank, const int64_t* a, const int64_t* b) {
  for (size_t d = 0; d < rank; ++d) {
    if (a[d] + a[rank + d] <= b[d] || b[d] + b[rank + d] <= a[d]) return 0;
  }
  return 1;
}

/* Of two parameters that one array is bound to. Parts of a concatenation share an array, each in its own region. */
static int regions_overlap(cursor* c, const hoist_plan_parameter* a, const hoist_plan_parameter* b) {
  if (!a->elements || !b->elements) return 0;
  if (!a->region_count || !b->region_count || a->rank != b->rank) return 1;
  compare(c, (uint64_t)a->region_count * b->region_count);
  if (failed(c)) return 0;
  if (memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0) return 1;
  for (size_t i = 0; i < a->region_count; ++i) {
    for (size_t k = 0; k < b->region_count; ++k) {
      if (boxes_overlap(a->rank, a->regions + 2 * i * a->rank, b->regions + 2 * k * b->rank)) return 1;
    }
  }
  return 0;
}

static void take_step_record(cursor* c, hoist_plan* plan, hoist_plan_step* step) {
  step->kernel = (uint32_t)take(c, 4);
  step->layers = take_texts(c, &step->layer_count);
  step->arguments = take_array(c, &step->argument_count, 4, sizeof *step->arguments);
  for (size_t i = 0; i < step->argument_count; ++i) step->arguments[i] = (uint32_t)take(c, 4);
  if (failed(c)) return;
  if (step->kernel >= plan->kernel_count) {
    bad(c, "a step names a kernel that is not there");
    return;
  }
  hoist_plan_kernel* kernel = &plan->kernels[step->kernel];
  kernel->is_launched = 1;
  if (step->argument_count != kernel->parameter_count) {
    bad(c, "a step has another number of arguments than its kernel has parameters");
    return;
  }
  for (size_t i = 0; i < step->argument_count; ++i) {
    if (step->arguments[i] >= plan->array_count) {
      bad(c, "a step names an array that is not there");
      return;
    }
  }
  for (size_t i = 0; i < step->argument_count; ++i) {
    const hoist_plan_array* array = &plan->arrays[step->arguments[i]];
    const hoist_plan_parameter* parameter = &kernel->parameters[i];
    /* Of what is packed, bytes are written. */
    const int in_bytes = parameter->written && hoist_scalar_row(array->scalar)->bits < 8 &&
                         parameter->scalar == hoist_scalar_named("u8");
    if ((array->scalar != parameter->scalar && !in_bytes) || array->bytes != parameter->bytes) {
      bad(c, "an argument has another type or size than its parameter");
      return;
    }
    if (!parameter->written) continue;
    if (array->place == HOIST_PLACE_INPUT || array->place == HOIST_PLACE_WEIGHTS) {
      bad(c, "a step writes an input or a weight");
      return;
    }
    if (array->place == HOIST_PLACE_CLEARED) kernel->writes_cleared = 1;
    compare(c, step->argument_count);
    if (failed(c)) return;
    for (size_t k = 0; k < step->argument_count; ++k) {
      const hoist_plan_array* other = &plan->arrays[step->arguments[k]];
      if (k == i) continue;
      if (other == array && regions_overlap(c, parameter, &kernel->parameters[k])) {
        bad(c, "a step writes elements that it also reads or writes elsewhere");
        return;
      }
      if (other != array && hoist_share_memory(array, other)) {
        bad(c, "a step writes an array that shares memory with another of its arrays");
        return;
      }
    }
  }
}

/* One value of that type; `may_lack` allows none, `written` says that the control writes it. */
static uint32_t take_number_array(cursor* c, const hoist_plan* plan, const char* scalar, int may_lack, int written) {
  const uint32_t index = (uint32_t)take(c, 4);
  if (failed(c) || (index == HOIST_NO_ARRAY && may_lack)) return index;
  if (index >= plan->array_count) {
    bad(c, "a control names an array that is not there");
    return HOIST_NO_ARRAY;
  }
  const hoist_plan_array* array = &plan->arrays[index];
  const int type = hoist_scalar_named(scalar);
  if (array->scalar != type || array->bytes != (uint64_t)hoist_scalar_row(type)->bits / 8) {
    bad(c, "a control reads or writes a number of another type");
  } else if (written && (array->place == HOIST_PLACE_INPUT || array->place == HOIST_PLACE_WEIGHTS)) {
    bad(c, "a control writes an input or a weight");
  }
  return index;
}

static hoist_plan_move* take_moves(cursor* c, const hoist_plan* plan, uint64_t most, int may_be_rows, size_t* count) {
  hoist_plan_move* moves = take_array(c, count, 9, sizeof *moves);
  for (size_t i = 0; i < *count && !failed(c); ++i) {
    hoist_plan_move* move = &moves[i];
    move->from = (uint32_t)take(c, 4);
    move->to = (uint32_t)take(c, 4);
    move->is_row = take(c, 1) != 0;
    if (failed(c)) break;
    if (move->from >= plan->array_count || move->to >= plan->array_count) {
      bad(c, "a control names an array that is not there");
      break;
    }
    const hoist_plan_array *from = &plan->arrays[move->from], *to = &plan->arrays[move->to];
    const int fits = move->is_row ? !from->bytes || most <= to->bytes / from->bytes : from->bytes == to->bytes;
    if (from == to || hoist_share_memory(from, to)) {
      bad(c, "a control copies an array onto itself");
    } else if (from->scalar != to->scalar || !fits || (move->is_row && !may_be_rows)) {
      bad(c, "a control copies an array into one of another type or size");
    } else if (to->place == HOIST_PLACE_INPUT || to->place == HOIST_PLACE_WEIGHTS) {
      bad(c, "a control writes an input or a weight");
    }
  }
  return moves;
}

static void take_control_record(cursor* c, const hoist_plan* plan, hoist_plan_control* control) {
  control->name = take_text(c);
  control->layers = take_texts(c, &control->layer_count);
  const uint64_t is_loop = take(c, 1);
  if (is_loop > 1) bad(c, "a kind of control that there is not");
  control->is_loop = (int)is_loop;
  control->fails = take(c, 1) != 0;
  control->most = take(c, 8);
  if (control->most > HOIST_MOST_ITERATIONS) bad(c, "a loop of too many iterations");
  control->condition = take_number_array(c, plan, "bool", control->is_loop, 0);
  control->trips = take_number_array(c, plan, "i64", 1, 0);
  control->number = take_number_array(c, plan, "i64", 1, 1);
  control->next = take_number_array(c, plan, "bool", 1, 0);
  control->count = take_number_array(c, plan, "i64", 1, 1);
  control->before = take_moves(c, plan, 0, 0, &control->before_count);
  control->after = take_moves(c, plan, control->most, control->is_loop, &control->after_count);
  control->otherwise = take_moves(c, plan, 0, 0, &control->otherwise_count);
  const int has_loop = control->before_count || control->trips != HOIST_NO_ARRAY || control->most ||
                       control->number != HOIST_NO_ARRAY || control->next != HOIST_NO_ARRAY ||
                       control->count != HOIST_NO_ARRAY || control->fails;
  if (!failed(c) && (control->is_loop ? control->otherwise_count != 0 : has_loop)) {
    bad(c, "a branch has parts of a loop, or a loop of a branch");
  }
}

/* Every step and every control begins once, in order, and what begins inside a control ends there. `open` has room for
 * all controls. */
static void take_items(cursor* c, hoist_plan* plan, uint32_t* open) {
  size_t depth = 0, steps = 0, controls = 0;
  for (size_t i = 0; i < plan->item_count && !failed(c); ++i) {
    hoist_plan_item* item = &plan->items[i];
    item->kind = (int)take(c, 1);
    item->index = (uint32_t)take(c, 4);
    if (failed(c)) return;
    hoist_plan_control* inner = depth ? &plan->controls[open[depth - 1]] : NULL;
    const int is_inner = depth && open[depth - 1] == item->index;
    if (item->kind == HOIST_ITEM_STEP && item->index == steps && steps < plan->step_count) {
      ++steps;
    } else if (item->kind == HOIST_ITEM_ENTER && item->index == controls && controls < plan->control_count) {
      plan->controls[controls].enter = i;
      open[depth++] = (uint32_t)controls++;
    } else if (item->kind == HOIST_ITEM_OTHERWISE && is_inner && !inner->is_loop && !inner->middle) {
      inner->middle = i;
    } else if (item->kind == HOIST_ITEM_LEAVE && is_inner && (inner->is_loop || inner->middle)) {
      inner->leave = i;
      --depth;
    } else {
      bad(c, "an item that no run could perform");
    }
  }
  if (depth || steps != plan->step_count || controls != plan->control_count) {
    bad(c, "not every step and control is performed");
  }
}

static void take_controls(cursor* c, hoist_plan* plan) {
  plan->controls = take_array(c, &plan->control_count, 60, sizeof *plan->controls);
  for (size_t i = 0; i < plan->control_count && !failed(c); ++i) take_control_record(c, plan, &plan->controls[i]);
  if (failed(c)) return;
  if (plan->control_count) {
    uint32_t* open = hoist_pool_alloc(c->pool, plan->control_count, sizeof *open);
    if (!open) {
      hoist_no_memory(c->error, plan->control_count * sizeof *open);
      return;
    }
    plan->items = take_array(c, &plan->item_count, 5, sizeof *plan->items);
    take_items(c, plan, open);
    return;
  }
  plan->items = hoist_pool_alloc(c->pool, plan->step_count, sizeof *plan->items);
  if (!plan->items) {
    hoist_no_memory(c->error, plan->step_count * sizeof *plan->items);
    return;
  }
  plan->item_count = plan->step_count;
  for (size_t i = 0; i < plan->step_count; ++i) plan->items[i].index = (uint32_t)i;
}

HOIST_INTERNAL size_t hoist_launch_argument(const hoist_plan_launch* launch, const hoist_plan_step* step, size_t k) {
  const uint32_t array = step->arguments[k];
  size_t before = 0, i = 0;
  for (size_t other = 0; other < k; ++other) before += step->arguments[other] == array;
  for (; i < launch->kernel.parameter_count; ++i) {
    if (launch->arguments[i] == array && before-- == 0) break;
  }
  return i;
}

static void list_arguments(cursor* c, const hoist_plan* plan, hoist_plan_launch* launch) {
  size_t most = 0;
  for (size_t i = 0; i < launch->count; ++i) most += plan->steps[launch->first + i].argument_count;
  if (most > HOIST_MOST_LAUNCH_ARGUMENTS) {
    bad(c, "a launch of steps with too many arguments");
    return;
  }
  launch->arguments = hoist_pool_alloc(c->pool, most, sizeof *launch->arguments);
  if (!launch->arguments) {
    hoist_no_memory(c->error, most * sizeof *launch->arguments);
    return;
  }
  for (size_t i = 0; i < launch->count; ++i) {
    const hoist_plan_step* step = &plan->steps[launch->first + i];
    for (size_t k = 0; k < step->argument_count; ++k) {
      if (hoist_launch_argument(launch, step, k) == launch->kernel.parameter_count)
        launch->arguments[launch->kernel.parameter_count++] = step->arguments[k];
    }
  }
}

/* What decides whether a step runs is between launches. */
static void refuse_control_within(cursor* c, const hoist_plan* plan) {
  const hoist_plan_launch* last = NULL; /* of the item before, where that is a step */
  for (size_t i = 0; i < plan->item_count; ++i) {
    const hoist_plan_step* step = plan->items[i].kind == HOIST_ITEM_STEP ? &plan->steps[plan->items[i].index] : NULL;
    const hoist_plan_launch* launch = step ? step->launch : NULL;
    if (launch && plan->items[i].index > launch->first && last != launch)
      bad(c, "a control begins or ends within a launch");
    last = launch;
  }
}

static void take_launches(cursor* c, hoist_plan* plan) {
  size_t end = 0;
  plan->launches = take_array(c, &plan->launch_count, 12, sizeof *plan->launches);
  if (plan->launch_count && plan->target_count) bad(c, "launches of several steps in native code");
  for (size_t i = 0; i < plan->launch_count && !failed(c); ++i) {
    hoist_plan_launch* launch = &plan->launches[i];
    launch->kernel.name = take_text(c);
    if (!failed(c) && !is_identifier(launch->kernel.name)) bad(c, "a launch's name is not an identifier");
    launch->first = (size_t)take(c, 4);
    launch->count = (size_t)take(c, 4);
    for (int d = 0; d < 3; ++d) launch->kernel.global[d] = launch->kernel.local[d] = 1;
    if (failed(c)) return;
    if (launch->count < 1 || launch->first < end || launch->first > plan->step_count ||
        launch->count > plan->step_count - launch->first) {
      bad(c, "a launch of no step, of another's steps or of steps that are not there");
      return;
    }
    end = launch->first + launch->count;
    for (size_t k = launch->first; k < end; ++k) {
      const hoist_plan_kernel* kernel = &plan->kernels[plan->steps[k].kernel];
      const uint64_t* const local = kernel->local;
      if (kernel->host || kernel->local_bytes || local[0] != 1 || local[1] != 1 || local[2] != 1)
        bad(c, "a launch of kernels whose groups are no single work-items");
      if (kernel->global[0] * kernel->global[1] * kernel->global[2] > INT32_MAX / 2)
        bad(c, "a launch of kernels with too many groups");
      plan->steps[k].launch = launch;
    }
    if (!failed(c)) list_arguments(c, plan, launch);
  }
  if (!failed(c) && plan->control_count) refuse_control_within(c, plan);
  for (size_t i = 0; i < plan->step_count && !failed(c); ++i) {
    hoist_plan_kernel* kernel = &plan->kernels[plan->steps[i].kernel];
    kernel->step = (uint32_t)i;
    if (!plan->steps[i].launch) kernel->is_alone = 1;
  }
}

static void take_extents(cursor* c, hoist_plan* plan) {
  const uint64_t model_outputs = take(c, 4);
  if (model_outputs > plan->output_count) bad(c, "the model has more outputs than there are");
  plan->model_output_count = (size_t)model_outputs;
  plan->extents = take_array(c, &plan->extent_count, 12, sizeof *plan->extents);
  for (size_t i = 0; i < plan->extent_count && !failed(c); ++i) {
    hoist_plan_extent* extent = &plan->extents[i];
    extent->output = (uint32_t)take(c, 4);
    extent->dimension = (uint32_t)take(c, 4);
    extent->count = (uint32_t)take(c, 4);
    if (failed(c)) return;
    if (extent->output >= plan->model_output_count ||
        extent->dimension >= plan->arrays[plan->outputs[extent->output]].rank) {
      bad(c, "an extent of a dimension that no output has");
    } else if (extent->count < plan->model_output_count || extent->count >= plan->output_count) {
      bad(c, "an extent that no output counts");
    } else {
      const hoist_plan_array* count = &plan->arrays[plan->outputs[extent->count]];
      if (count->scalar != hoist_scalar_named("i64") || count->bytes != 8) bad(c, "an extent is counted by no i64");
    }
  }
}

/* Any bytes, zeros too, in the place where they stand. */
static void take_strings(cursor* c, hoist_plan* plan) {
  plan->strings = take_array(c, &plan->string_count, 4, sizeof *plan->strings);
  for (size_t i = 0; i < plan->string_count && !failed(c); ++i) {
    const uint64_t length = take(c, 4);
    if (failed(c)) return;
    if (length > c->size - c->at) {
      bad(c, "a string is longer than the file");
      return;
    }
    plan->strings[i].data = (const char*)c->data + c->at;
    plan->strings[i].length = (size_t)length;
    c->at += length;
  }
}

static void take_specialisation(cursor* c, hoist_plan* plan, size_t number) {
  hoist_plan_specialisation* one = &plan->specialisations[number];
  one->folder = take_text(c);
  if (failed(c)) return;
  if (number == 0 ? *one->folder
                  : !is_inner_path(one->folder) || strchr(one->folder, '/') || strlen(one->folder) > 64) {
    bad(c, "the folder of a specialisation is none");
    return;
  }
  if (plan->size_count > (c->size - c->at) / 8) {
    bad(c, "ends too early");
    return;
  }
  one->sizes = hoist_pool_alloc(c->pool, plan->size_count, sizeof *one->sizes);
  one->shapes = hoist_pool_alloc(c->pool, plan->input_count, sizeof *one->shapes);
  if (!one->sizes || !one->shapes) {
    hoist_no_memory(c->error, plan->size_count + plan->input_count);
    return;
  }
  for (size_t i = 0; i < plan->size_count; ++i) one->sizes[i] = (int64_t)take(c, 8);
  for (size_t i = 0; i < plan->input_count && !failed(c); ++i) {
    const hoist_plan_array* input = &plan->arrays[plan->inputs[i].array];
    uint64_t elements, bytes;
    size_t rank;
    one->shapes[i] = take_shape(c, input->scalar, &rank, &elements, &bytes);
    if (failed(c)) return;
    if (rank != input->rank) {
      bad(c, "an input has another rank in a specialisation");
    } else if (number == 0 && rank && memcmp(one->shapes[i], input->shape, rank * sizeof *input->shape) != 0) {
      bad(c, "the first specialisation is not that of the plan");
    }
  }
  for (size_t other = 0; other < number && !failed(c); ++other) {
    compare(c, plan->size_count);
    if (failed(c)) return;
    if (memcmp(one->sizes, plan->specialisations[other].sizes, plan->size_count * sizeof *one->sizes) == 0) {
      bad(c, "two specialisations have the same sizes");
    } else if (strcmp(one->folder, plan->specialisations[other].folder) == 0) {
      bad(c, "two specialisations have the same folder");
    }
  }
}

static void take_specialisations(cursor* c, hoist_plan* plan) {
  plan->size_names = take_texts(c, &plan->size_count);
  const uint64_t count = take(c, 4);
  if (failed(c)) return;
  if (count == 1 || count > HOIST_MOST_SPECIALISATIONS || !count != !plan->size_count) {
    bad(c, "a number of specialisations that there cannot be");
    return;
  }
  plan->specialisations = hoist_pool_alloc(c->pool, count, sizeof *plan->specialisations);
  if (!plan->specialisations) {
    hoist_no_memory(c->error, count * sizeof *plan->specialisations);
    return;
  }
  plan->specialisation_count = (size_t)count;
  for (size_t i = 0; i < plan->specialisation_count && !failed(c); ++i) take_specialisation(c, plan, i);
}

static void take_plan(cursor* c, hoist_plan* plan) {
  plan->model_name = take_text(c);
  plan->model_hash = take(c, 8);
  plan->made_for.name = take_text(c);
  const uint64_t is_cpu = take(c, 1);
  if (is_cpu > 1) bad(c, "a kind of device that there is not");
  plan->made_for.is_cpu = (int)is_cpu;
  plan->made_for.is_serial = take(c, 1) != 0;
  plan->build_options = take_text(c);
  plan->targets = take_texts(c, &plan->target_count);
  for (size_t i = 0; i < plan->target_count && !failed(c); ++i) {
    if (!is_target_name(plan->targets[i])) bad(c, "the name of a target is none");
  }
  plan->arena_bytes = take(c, 8);
  plan->weights_bytes = take(c, 8);
  plan->files = take_array(c, &plan->file_count, 21, sizeof *plan->files);
  for (size_t i = 0; i < plan->file_count; ++i) {
    plan->files[i].path = take_text(c);
    plan->files[i].bytes = take(c, 8);
    plan->files[i].hash = take(c, 8);
    if (!failed(c) && !is_inner_path(plan->files[i].path)) bad(c, "a file name leads out of the bundle");
  }
  plan->arrays = take_array(c, &plan->array_count, 26, sizeof *plan->arrays);
  for (size_t i = 0; i < plan->array_count && !failed(c); ++i) take_array_record(c, plan, &plan->arrays[i]);
  plan->kernels = take_array(c, &plan->kernel_count, 108, sizeof *plan->kernels);
  for (size_t i = 0; i < plan->kernel_count && !failed(c); ++i) take_kernel_record(c, plan, &plan->kernels[i]);
  plan->steps = take_array(c, &plan->step_count, 12, sizeof *plan->steps);
  for (size_t i = 0; i < plan->step_count && !failed(c); ++i) take_step_record(c, plan, &plan->steps[i]);
  /* The arrays of a step bound what its kernel takes; nothing would bound a kernel of no step. */
  for (size_t i = 0; i < plan->kernel_count && !failed(c); ++i) {
    if (!plan->kernels[i].is_launched) bad(c, "a kernel belongs to no step");
  }
  take_controls(c, plan);
  take_launches(c, plan);
  plan->inputs = take_array(c, &plan->input_count, 20, sizeof *plan->inputs);
  for (size_t i = 0; i < plan->input_count && !failed(c); ++i) {
    plan->inputs[i].array = (uint32_t)take(c, 4);
    if (plan->inputs[i].array >= plan->array_count || plan->arrays[plan->inputs[i].array].place != HOIST_PLACE_INPUT) {
      bad(c, "an input names an array that is none");
      return;
    }
    take_domain(c, plan->arrays[plan->inputs[i].array].scalar, &plan->inputs[i].low, &plan->inputs[i].high);
  }
  plan->outputs = take_array(c, &plan->output_count, 4, sizeof *plan->outputs);
  for (size_t i = 0; i < plan->output_count && !failed(c); ++i) {
    plan->outputs[i] = (uint32_t)take(c, 4);
    if (plan->outputs[i] >= plan->array_count) {
      bad(c, "an output names an array that is not there");
      return;
    }
    /* Anything else may be overwritten by a later step. */
    if (plan->arrays[plan->outputs[i]].place == HOIST_PLACE_ARENA) {
      bad(c, "an output lies in the arena");
      return;
    }
  }
  take_extents(c, plan);
  take_strings(c, plan);
  if (!failed(c)) take_specialisations(c, plan);
  if (!failed(c) && c->at != c->size) bad(c, "holds more than it should");
}

/* Magic, version, own size and own hash; leaves the cursor behind the header and before the hash. */
static hoist_status check_frame(cursor* c, const char* magic) {
  if (c->size < 32 || memcmp(c->data, magic, 8) != 0) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: not the plan of a hoist bundle", c->file);
  }
  c->at = 8;
  const uint64_t version = take(c, 8), bytes = take(c, 8);
  if (version < HOIST_FORMAT_VERSION) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE,
                      "%s: format version %llu is older than %u, the one that this runtime reads (compile the model "
                      "again)",
                      c->file, (unsigned long long)version, HOIST_FORMAT_VERSION);
  }
  if (version > HOIST_FORMAT_VERSION) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE,
                      "%s: format version %llu is newer than %u, the one that this runtime reads (build with the "
                      "runtime in the bundle's own runtime folder)",
                      c->file, (unsigned long long)version, HOIST_FORMAT_VERSION);
  }
  if (bytes != c->size) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: has %llu bytes and says %llu: it is truncated or damaged",
                      c->file, (unsigned long long)c->size, (unsigned long long)bytes);
  }
  const uint64_t found = hoist_hash(c->data, (size_t)c->size - 8);
  const uint64_t at = c->at;
  c->at = c->size - 8;
  const uint64_t said = take(c, 8);
  c->at = at;
  c->size -= 8;
  if (found != said) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: hash %016llx, its end says %016llx: the file has been changed",
                      c->file, (unsigned long long)found, (unsigned long long)said);
  }
  return HOIST_OK;
}

/* Keeps `folder`, and a copy of the bytes, which the texts point into. */
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
    cursor c = {image, bytes, 0, 0, "plan.bin", &plan->pool, error};
    if (check_frame(&c, HOIST_PLAN_MAGIC) == HOIST_OK) take_plan(&c, plan);
  }
  if (error->status) hoist_plan_free(plan);
  return error->status;
}

static void take_preprocessing(cursor* c, const hoist_plan* plan, size_t number) {
  hoist_plan_preprocessing* one = &plan->preprocessing[number];
  hoist_preprocessing* how = &one->how;
  one->input = (uint32_t)take(c, 4);
  how->channels_first = take(c, 1) != 0;
  how->blue_first = take(c, 1) != 0;
  how->crop = take(c, 1) != 0;
  how->resize_rows = (size_t)take(c, 4);
  how->resize_columns = (size_t)take(c, 4);
  how->scale = take_double(c);
  for (int i = 0; i < 3; ++i) how->mean[i] = take_double(c);
  for (int i = 0; i < 3; ++i) how->deviation[i] = take_double(c);
  if (failed(c)) return;
  if (one->input >= plan->input_count || (number && one->input <= plan->preprocessing[number - 1].input)) {
    bad(c, "the inputs are not those of the plan, one after the other");
    return;
  }
  const hoist_plan_array* array = &plan->arrays[plan->inputs[one->input].array];
  if (!hoist_holds_pictures(array)) {
    bad(c, "an input that holds no pictures");
    return;
  }
  hoist_picture_shape(array, how);
  const char* problem = hoist_preprocessing_problem(how);
  if (problem) bad(c, problem);
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
  cursor c = {data, bytes, 0, 0, HOIST_PREPROCESSING_FILE, &plan->pool, error};
  if (check_frame(&c, HOIST_PREPROCESSING_MAGIC) == HOIST_OK) {
    plan->preprocessing = take_array(&c, &plan->preprocessing_count, 71, sizeof *plan->preprocessing);
    for (size_t i = 0; i < plan->preprocessing_count && !failed(&c); ++i) take_preprocessing(&c, plan, i);
    if (!failed(&c) && c.at != c.size) bad(&c, "holds more than it should");
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

/* What a program that chooses among specialisations may rely on; NULL where all of it holds. */
static const char* difference(const hoist_plan* root, const hoist_plan* plan, int64_t* const* shapes) {
  if (plan->specialisation_count) return "has specialisations of its own";
  if (plan->weights_bytes != root->weights_bytes) return "is made for other weights";
  if (plan->target_count != root->target_count) return "is made for other targets";
  for (size_t i = 0; i < plan->target_count; ++i) {
    if (strcmp(plan->targets[i], root->targets[i]) != 0) return "is made for other targets";
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

/* ---- check.bin ---- */

static uint64_t value_bytes(int scalar) { return ((uint64_t)hoist_scalar_row(scalar)->bits + 7) / 8; }

/* Positions count through `parts` arrays one after the other. */
static void take_samples(cursor* c, hoist_samples* samples, size_t parts, const int* scalars,
                         const uint64_t* elements) {
  samples->count = take(c, 8);
  if (failed(c)) return;
  if (samples->count > (c->size - c->at) / 9) {
    bad(c, "a count is larger than the file");
    return;
  }
  samples->positions = hoist_pool_alloc(c->pool, samples->count, sizeof *samples->positions);
  samples->starts = hoist_pool_alloc(c->pool, samples->count, sizeof *samples->starts);
  if (!samples->positions || !samples->starts) {
    hoist_no_memory(c->error, samples->count * 16);
    return;
  }
  compare(c, samples->count * parts); /* at most a ninth of the file times what a kernel writes */
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < samples->count; ++i) {
    const uint64_t position = samples->positions[i] = take(c, 8);
    uint64_t before = 0;
    size_t part = 0;
    while (part < parts && position - before >= elements[part]) before += elements[part++];
    if (part == parts) {
      bad(c, "a position lies outside its array");
      return;
    }
    samples->starts[i] = bytes;
    bytes += value_bytes(scalars[part]);
  }
  if (failed(c)) return;
  if (bytes > c->size - c->at) {
    bad(c, "ends too early");
    return;
  }
  samples->values = c->data + c->at;
  c->at += bytes;
}

static void take_kernel_samples(cursor* c, const hoist_plan_kernel* kernel, hoist_samples* samples) {
  samples->seed = take(c, 8);
  int* scalars = hoist_pool_alloc(c->pool, kernel->parameter_count, sizeof *scalars);
  uint64_t* elements = hoist_pool_alloc(c->pool, kernel->parameter_count, sizeof *elements);
  if (!scalars || !elements) {
    hoist_no_memory(c->error, kernel->parameter_count * 12);
    return;
  }
  size_t parts = 0;
  for (size_t i = 0; i < kernel->parameter_count; ++i) {
    if (!kernel->parameters[i].written) continue;
    scalars[parts] = kernel->parameters[i].scalar;
    elements[parts++] = kernel->parameters[i].elements;
  }
  take_samples(c, samples, parts, scalars, elements);
}

HOIST_INTERNAL hoist_status hoist_checks_read(const hoist_plan* plan, hoist_checks* checks, hoist_error* error) {
  memset(checks, 0, sizeof *checks);
  unsigned char* data = NULL;
  size_t bytes = 0;
  if (hoist_plan_file(plan, "check.bin", &data, &bytes, error)) return error->status;
  error->status = HOIST_OK;
  unsigned char* image = hoist_pool_alloc(&checks->pool, bytes + 1, 1);
  checks->kernels = hoist_pool_alloc(&checks->pool, plan->kernel_count, sizeof *checks->kernels);
  if (!image || !checks->kernels) {
    hoist_no_memory(error, bytes);
  } else {
    memcpy(image, data, bytes);
    cursor c = {image, bytes, 0, 0, "check.bin", &checks->pool, error};
    if (check_frame(&c, HOIST_CHECK_MAGIC) == HOIST_OK) {
      if (take(&c, 4) != plan->kernel_count) bad(&c, "is made for another number of kernels");
      for (size_t i = 0; i < plan->kernel_count && !failed(&c); ++i) {
        take_kernel_samples(&c, &plan->kernels[i], &checks->kernels[i]);
      }
      checks->model_seed = take(&c, 8);
      checks->model_tolerance = take_tolerance(&c);
      checks->outputs = take_array(&c, &checks->output_count, 12, sizeof *checks->outputs);
      checks->samples = hoist_pool_alloc(&checks->pool, checks->output_count, sizeof *checks->samples);
      if (!checks->samples) hoist_no_memory(error, checks->output_count);
      for (size_t i = 0; i < checks->output_count && !failed(&c); ++i) {
        checks->outputs[i] = (uint32_t)take(&c, 4);
        if (checks->outputs[i] >= plan->output_count) {
          bad(&c, "names an output that is not there");
          break;
        }
        const hoist_plan_array* array = &plan->arrays[plan->outputs[checks->outputs[i]]];
        uint64_t elements = 1;
        for (size_t k = 0; k < array->rank; ++k) elements *= (uint64_t)array->shape[k];
        take_samples(&c, &checks->samples[i], 1, &array->scalar, &elements);
      }
      if (!failed(&c) && c.at != c.size) bad(&c, "holds more than it should");
    }
  }
  free(data);
  if (error->status) hoist_pool_free(&checks->pool);
  return error->status;
}
