#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "backends/runtime/plan/plan_cursor.h"

#include <string.h>

HOIST_INTERNAL int hoist_has_failed(const hoist_cursor* c) { return c->error->status != HOIST_OK; }

/* Keeps the first failure; afterwards every read returns zeros. */
HOIST_INTERNAL void hoist_bad_bytes(hoist_cursor* c, const char* what) {
  if (hoist_has_failed(c)) return;
  hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: %s at byte %llu (compile the model again)", c->file, what,
             (unsigned long long)c->at);
}

/* The number of comparisons of records with each other grows with the square of the file's size; models stay far below
 * this limit. */
HOIST_INTERNAL void hoist_count_comparisons(hoist_cursor* c, uint64_t count) {
  const uint64_t most = (uint64_t)1 << 30;
  if (count > most - c->comparisons) {
    hoist_bad_bytes(c, "too many arguments, regions or positions to compare");
    return;
  }
  c->comparisons += count;
}

HOIST_INTERNAL uint64_t hoist_take(hoist_cursor* c, int bytes) {
  if (hoist_has_failed(c)) return 0;
  if (c->size - c->at < (uint64_t)bytes) {
    hoist_bad_bytes(c, "ends too early");
    return 0;
  }
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= (uint64_t)c->data[c->at + (uint64_t)i] << (8 * i);
  c->at += (uint64_t)bytes;
  return value;
}

/* Reads a number of records of at least `least` bytes each, and allocates them. */
HOIST_INTERNAL void* hoist_take_list(hoist_cursor* c, size_t* count, uint64_t least, size_t size) {
  const uint64_t number = hoist_take(c, 4);
  *count = 0;
  if (hoist_has_failed(c)) return NULL;
  if (number > (c->size - c->at) / least) {
    hoist_bad_bytes(c, "a count is larger than the file");
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

#define HOIST_TAKE_INTEGER(kind, type, bytes, holds, message)                    \
  HOIST_INTERNAL void hoist_take_##kind(hoist_cursor* c, hoist_plan_##kind* r) { \
    const uint64_t value = hoist_take(c, bytes);                                 \
    if (!hoist_has_failed(c) && !(holds)) hoist_bad_bytes(c, message);           \
    *r = hoist_has_failed(c) ? 0 : (type)value;                                  \
  }
HOIST_INTEGER_KINDS(HOIST_TAKE_INTEGER)

HOIST_INTERNAL void hoist_take_flag(hoist_cursor* c, int* r) { *r = hoist_take(c, 1) != 0; }

HOIST_INTERNAL void hoist_take_number(hoist_cursor* c, double* r) {
  const uint64_t word = hoist_take(c, 8);
  memcpy(r, &word, sizeof *r);
}

HOIST_INTERNAL void hoist_take_numbers(hoist_cursor* c, hoist_plan_numbers* r) {
  for (int i = 0; i < 3; ++i) hoist_take_number(c, &(*r)[i]);
}

HOIST_INTERNAL void hoist_take_sizes(hoist_cursor* c, hoist_plan_sizes* r) {
  for (int i = 0; i < 3; ++i) hoist_take_word(c, &(*r)[i]);
}

/* The bytes of a string, used in place. */
HOIST_INTERNAL void hoist_take_string(hoist_cursor* c, hoist_string* r) {
  const uint64_t length = hoist_take(c, 4);
  r->data = "";
  r->length = 0;
  if (hoist_has_failed(c)) return;
  if (length > c->size - c->at) {
    hoist_bad_bytes(c, "a string is longer than the file");
    return;
  }
  r->data = (const char*)c->data + c->at;
  r->length = (size_t)length;
  c->at += length;
}

HOIST_INTERNAL void hoist_take_text(hoist_cursor* c, const char** r) {
  hoist_string text;
  hoist_take_string(c, &text);
  *r = "";
  if (hoist_take(c, 1) != 0 || memchr(text.data, 0, text.length)) {
    hoist_bad_bytes(c, "a text does not end at its stated length");
  } else if (!hoist_has_failed(c)) {
    *r = text.data;
  }
}

HOIST_INTERNAL void hoist_take_host_operator(hoist_cursor* c, const hoist_host_operator** r) {
  const char* name;
  hoist_take_text(c, &name);
  *r = *name ? hoist_host_operator_named(name) : NULL;
  if (*name && !*r) hoist_bad_bytes(c, "a host op that this runtime does not have");
}

HOIST_INTERNAL void hoist_measure_shape(hoist_cursor* c, int scalar, size_t rank, const int64_t* shape,
                                        uint64_t* elements, uint64_t* bytes) {
  const uint64_t bits = (uint64_t)hoist_scalar_row(scalar)->bits, limit = HOIST_MOST_BYTES / ((bits + 7) / 8);
  int empty = 0;
  *elements = 1;
  for (size_t i = 0; i < rank; ++i) {
    const uint64_t extent = (uint64_t)shape[i];
    if (extent && (extent > limit || *elements > limit / extent)) {
      hoist_bad_bytes(c, "an array is too large");
      *elements = 0;
      break;
    }
    if (!extent)
      empty = 1;
    else
      *elements *= extent;
  }
  if (empty) *elements = 0;
  *bytes = (*elements * bits + 7) / 8;
}

HOIST_INTERNAL void hoist_check_domain(hoist_cursor* c, int scalar, double low, double high) {
  const hoist_scalar* row = hoist_scalar_row(scalar);
  double least = -1e300, most = 1e300;
  if (!row->is_float) {
    const int bits = scalar == 0 ? 1 : row->bits - row->is_signed;
    most = 1;
    for (int i = 0; i < bits; ++i) most *= 2;
    least = row->is_signed ? -most : 0;
    most -= 1; /* for 64 bits this rounds back up, and the comparison below still holds the sum in range */
  }
  if (!(low <= high && low >= least && high <= most)) hoist_bad_bytes(c, "a domain is empty or outside its type");
}

/* Checks magic, version, own size and own hash; leaves the cursor after the header and the end before the hash. */
HOIST_INTERNAL hoist_status hoist_check_frame(hoist_cursor* c, const char* magic) {
  if (c->size < 32 || memcmp(c->data, magic, 8) != 0) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: not the plan of a hoist bundle", c->file);
  }
  c->at = 8;
  const uint64_t version = hoist_take(c, 8), bytes = hoist_take(c, 8);
  if (version < HOIST_FORMAT_VERSION) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE,
                      "%s: format version %llu is older than %u, the one that this runtime reads (compile the model "
                      "again: hoist compile MODEL.onnx -o BUNDLE --force)",
                      c->file, (unsigned long long)version, HOIST_FORMAT_VERSION);
  }
  if (version > HOIST_FORMAT_VERSION) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE,
                      "%s: format version %llu is newer than %u, the one that this runtime reads (build with the "
                      "runtime in the bundle's own runtime folder)",
                      c->file, (unsigned long long)version, HOIST_FORMAT_VERSION);
  }
  if (bytes != c->size) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: has %llu bytes and states %llu: it is truncated or damaged",
                      c->file, (unsigned long long)c->size, (unsigned long long)bytes);
  }
  const uint64_t found = hoist_hash(c->data, (size_t)c->size - 8);
  const uint64_t at = c->at;
  c->at = c->size - 8;
  const uint64_t said = hoist_take(c, 8);
  c->at = at;
  c->size -= 8;
  if (found != said) {
    return hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: hash %016llx, its end says %016llx: the file has been changed",
                      c->file, (unsigned long long)found, (unsigned long long)said);
  }
  return HOIST_OK;
}
