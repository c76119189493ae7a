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

/* Comparisons of all records of a kind with each other grow with the square of the file; no model comes near this
 * limit. */
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

HOIST_INTERNAL double hoist_take_double(hoist_cursor* c) {
  const uint64_t word = hoist_take(c, 8);
  double value;
  memcpy(&value, &word, sizeof value);
  return value;
}

HOIST_INTERNAL const char* hoist_take_text(hoist_cursor* c) {
  const uint64_t length = hoist_take(c, 4);
  if (hoist_has_failed(c)) return "";
  if (c->size - c->at <= length) {
    hoist_bad_bytes(c, "a text is longer than the file");
    return "";
  }
  const char* text = (const char*)c->data + c->at;
  if (memchr(text, 0, (size_t)length + 1) != text + length) {
    hoist_bad_bytes(c, "a text does not end where its length says");
    return "";
  }
  c->at += length + 1;
  return text;
}

/* Reads a count of records of at least `least` bytes each, and allocates them. */
HOIST_INTERNAL void* hoist_take_array(hoist_cursor* c, size_t* count, uint64_t least, size_t size) {
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

HOIST_INTERNAL const char** hoist_take_texts(hoist_cursor* c, size_t* count) {
  const char** texts = hoist_take_array(c, count, 5, sizeof *texts);
  for (size_t i = 0; i < *count; ++i) texts[i] = hoist_take_text(c);
  return texts;
}

HOIST_INTERNAL int hoist_take_scalar(hoist_cursor* c) {
  const uint64_t scalar = hoist_take(c, 1);
  if (scalar >= HOIST_SCALAR_COUNT) {
    hoist_bad_bytes(c, "unknown scalar type");
    return 0;
  }
  return (int)scalar;
}

/* Reads a shape and computes the number of elements and bytes. Both, and the product of the extents other than 0, stay
 * within HOIST_MOST_BYTES, so that sums of a few of them fit into 64 bits, and each into a size_t. */
HOIST_INTERNAL int64_t* hoist_take_shape(hoist_cursor* c, int scalar, size_t* rank, uint64_t* elements,
                                         uint64_t* bytes) {
  int64_t* shape = hoist_take_array(c, rank, 8, sizeof *shape);
  const uint64_t bits = (uint64_t)hoist_scalar_row(scalar)->bits, limit = HOIST_MOST_BYTES / ((bits + 7) / 8);
  *elements = 1;
  *bytes = 0;
  int empty = 0;
  for (size_t i = 0; i < *rank; ++i) {
    const uint64_t extent = hoist_take(c, 8);
    shape[i] = (int64_t)extent;
    if (extent && (extent > limit || *elements > limit / extent)) {
      hoist_bad_bytes(c, "an array is too large");
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

HOIST_INTERNAL void hoist_take_domain(hoist_cursor* c, int scalar, double* low, double* high) {
  *low = hoist_take_double(c);
  *high = hoist_take_double(c);
  const hoist_scalar* row = hoist_scalar_row(scalar);
  double least = -1e300, most = 1e300;
  if (!row->is_float) {
    const int bits = scalar == 0 ? 1 : row->bits - row->is_signed;
    most = 1;
    for (int i = 0; i < bits; ++i) most *= 2;
    least = row->is_signed ? -most : 0;
    most -= 1; /* for 64 bits this rounds back up, and the comparison below still holds the sum in range */
  }
  if (!(*low <= *high && *low >= least && *high <= most)) hoist_bad_bytes(c, "a domain is empty or outside its type");
}

HOIST_INTERNAL hoist_tolerance hoist_take_tolerance(hoist_cursor* c) {
  hoist_tolerance tolerance = {0, 0, 0, 0};
  tolerance.exact = hoist_take(c, 1) != 0;
  tolerance.divides = hoist_take(c, 1) != 0;
  tolerance.relative = hoist_take_double(c);
  tolerance.absolute = hoist_take_double(c);
  if (!(tolerance.relative >= 0 && tolerance.absolute >= 0)) hoist_bad_bytes(c, "a tolerance is negative");
  return tolerance;
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
    return hoist_fail(c->error, HOIST_BAD_BUNDLE, "%s: has %llu bytes and says %llu: it is truncated or damaged",
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
