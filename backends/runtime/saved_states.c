/* Files of saved states, little-endian: HOISTSTA, a version, the file's size, the model's hash, a list of states (the
 * fields of HOIST_SAVED_STATE_FIELDS and their bytes), and the hash of everything before it. A file is of the model,
 * not of a bundle: any bundle with the same states may load it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/plan/plan_cursor.h"
#include "backends/runtime/states.h"

#define STATES_MAGIC "HOISTSTA"
#define STATES_VERSION 1u

/* ---- writing ---- */

static unsigned char* put(unsigned char* at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) *at++ = (unsigned char)(value >> (8 * i));
  return at;
}

/* The fields of one state before its bytes. */
static size_t head_bytes(const hoist_plan_array* array) {
  return strlen(array->name) + 5 + 1 + 4 + 8 * array->rank + 8;
}

static unsigned char* put_head(unsigned char* at, const hoist_plan_array* array) {
  const size_t length = strlen(array->name);
  at = put(at, length, 4);
  memcpy(at, array->name, length + 1);
  at = put(at + length + 1, (uint64_t)array->scalar, 1);
  at = put(at, array->rank, 4);
  for (size_t i = 0; i < array->rank; ++i) at = put(at, (uint64_t)array->shape[i], 8);
  return put(at, array->bytes, 8);
}

/* The bytes of the whole file; free() them. */
static hoist_status states_image(hoist_bundle* b, unsigned char** image, size_t* bytes) {
  uint64_t all = 8 + 8 + 8 + 8 + 4 + 8;
  for (size_t i = 0; i < b->plan.state_count; ++i) {
    const hoist_plan_array* array = &b->plan.arrays[b->plan.states[i].read];
    all = hoist_add(all, hoist_add(head_bytes(array), array->bytes));
  }
  *bytes = (size_t)all;
  *image = all > HOIST_MOST_BYTES ? NULL : malloc((size_t)all);
  if (!*image) return hoist_no_memory(&b->error, all);
  unsigned char* at = *image;
  memcpy(at, STATES_MAGIC, 8);
  at = put(at + 8, STATES_VERSION, 8);
  at = put(at, all, 8);
  at = put(at, b->plan.model_hash, 8);
  at = put(at, b->plan.state_count, 4);
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.state_count && !status; ++i) {
    const hoist_plan_array* array = &b->plan.arrays[b->plan.states[i].read];
    at = put_head(at, array);
    status = hoist_get_state(b, i, at, (size_t)array->bytes);
    at += array->bytes;
  }
  put(at, hoist_hash(*image, (size_t)all - 8), 8);
  return status;
}

static hoist_status has_states(hoist_bundle* b, const char* path) {
  if (!path) return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "no file given");
  if (b->plan.state_count) return HOIST_OK;
  return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "the bundle has no state (compile with --state INPUT=OUTPUT)");
}

hoist_status hoist_save_states(hoist_bundle* b, const char* path) {
  unsigned char* image = NULL;
  size_t bytes = 0;
  hoist_status status = has_states(b, path);
  if (!status) status = states_image(b, &image, &bytes);
  const int problem = status ? 0 : hoist_write_whole(path, image, bytes, 1);
  free(image);
  if (!problem) return status;
  return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: cannot be written: %s", path, strerror(problem));
}

/* ---- reading ---- */

static hoist_status check_frame(hoist_cursor* c) {
  if (c->size < 44 || memcmp(c->data, STATES_MAGIC, 8) != 0)
    return hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: is no file of saved states", c->file);
  c->at = 8;
  const uint64_t version = hoist_take(c, 8), bytes = hoist_take(c, 8);
  if (version != STATES_VERSION) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: has version %llu, and this runtime reads version %u", c->file,
                      (unsigned long long)version, STATES_VERSION);
  }
  hoist_cursor end = {c->data, c->size, c->size - 8, 0, c->file, c->pool, c->error, c->plan};
  if (bytes != c->size || hoist_take(&end, 8) != hoist_hash(c->data, (size_t)c->size - 8))
    return hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: is truncated or damaged", c->file);
  c->size -= 8;
  return HOIST_OK;
}

/* Sets `*data` to the bytes of the state, which the file has to hold next. */
static hoist_status take_state(hoist_cursor* c, const hoist_plan_array* array, const unsigned char** data) {
  hoist_plan_saved_state saved;
  memset(&saved, 0, sizeof saved);
  hoist_take_saved_state(c, &saved);
  if (hoist_has_failed(c)) return c->error->status;
  const int same = strcmp(saved.name, array->name) == 0 && saved.scalar == array->scalar && saved.rank == array->rank &&
                   (!array->rank || memcmp(saved.shape, array->shape, array->rank * sizeof *array->shape) == 0);
  if (!same || saved.bytes != array->bytes || saved.bytes > c->size - c->at) {
    return hoist_fail(
        c->error, HOIST_BAD_ARGUMENT,
        "%s: holds state %.128s in the place of %.128s, or of another type or shape (it belongs to a bundle "
        "with other states or sizes)",
        c->file, saved.name, array->name);
  }
  *data = c->data + c->at;
  c->at += array->bytes;
  return HOIST_OK;
}

static hoist_status take_states(hoist_bundle* b, hoist_cursor* c, const unsigned char** values) {
  if (check_frame(c)) return c->error->status;
  const uint64_t model = hoist_take(c, 8), count = hoist_take(c, 4);
  if (model != b->plan.model_hash) {
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: holds states of another model than %s", c->file,
                      hoist_model_name(b));
  }
  if (count != b->plan.state_count) {
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%s: holds %llu states, and the bundle has %zu", c->file,
                      (unsigned long long)count, b->plan.state_count);
  }
  hoist_status status = HOIST_OK;
  for (size_t i = 0; i < b->plan.state_count && !status; ++i)
    status = take_state(c, &b->plan.arrays[b->plan.states[i].read], &values[i]);
  if (!status && c->at != c->size) hoist_bad_bytes(c, "has excess bytes at its end");
  return c->error->status;
}

hoist_status hoist_load_states(hoist_bundle* b, const char* path) {
  unsigned char* data = NULL;
  size_t bytes = 0;
  hoist_pool* pool = NULL;
  if (has_states(b, path)) return b->error.status;
  const unsigned char** values = calloc(b->plan.state_count, sizeof *values);
  hoist_error error = {HOIST_OK, ""}; /* the error of an earlier call is no failure of the cursor */
  if (!values) return hoist_no_memory(&b->error, b->plan.state_count);
  hoist_status status = hoist_read_whole(*path == '/' ? "" : ".", path, &data, &bytes, &error);
  if (!status) {
    b->error.status = HOIST_OK;
    hoist_cursor c = {data, bytes, 0, 0, path, &pool, &b->error, &b->plan};
    status = take_states(b, &c, values);
  } else {
    b->error = error;
  }
  /* Nothing changes before the whole file is checked. */
  for (size_t i = 0; i < b->plan.state_count && !status; ++i)
    status = hoist_set_state(b, i, values[i], (size_t)b->plan.arrays[b->plan.states[i].read].bytes);
  free(data);
  free(values);
  hoist_pool_free(&pool);
  return status;
}
