/* A bounded cursor over plan.bin, check.bin and preprocessing.bin, and the fields and records that are read with it.
 * The first failure stays in the error; afterwards every read gives zeros. For the readers of these files only. */
#ifndef HOIST_PLAN_CURSOR_H
#define HOIST_PLAN_CURSOR_H

#include "backends/runtime/plan/plan_file.h"

typedef struct hoist_cursor {
  const unsigned char* data;
  uint64_t size, at;
  uint64_t
      comparisons; /* counts of arguments, regions and positions so far, each compared with all others of its kind */
  const char* file;
  hoist_pool** pool;
  hoist_error* error;
  hoist_plan* plan; /* the plan whose fields are read; NULL for check.bin */
} hoist_cursor;

HOIST_INTERNAL int hoist_has_failed(const hoist_cursor* c);
/* Keeps the first failure; afterwards every read returns zeros. */
HOIST_INTERNAL void hoist_bad_bytes(hoist_cursor* c, const char* what);
/* Comparisons of all records of a kind with each other grow with the square of the file; no model comes near the
 * limit. */
HOIST_INTERNAL void hoist_count_comparisons(hoist_cursor* c, uint64_t count);
HOIST_INTERNAL uint64_t hoist_take(hoist_cursor* c, int bytes);
/* Reads a number of records of at least `least` bytes each, and allocates them. */
HOIST_INTERNAL void* hoist_take_list(hoist_cursor* c, size_t* count, uint64_t least, size_t size);

/* The least number of bytes of each kind. */
#define HOIST_LEAST(kind, name) +HOIST_LEAST_##kind
#define HOIST_LEAST_LIST(kind, name, number) +4
#define HOIST_LEAST_OTHERS(kind, bytes) +bytes
#define HOIST_LEAST_OF_INTEGER(kind, type, bytes, holds, message) HOIST_LEAST_##kind = bytes,
#define HOIST_LEAST_OF_KIND(kind, bytes) HOIST_LEAST_##kind = bytes,
#define HOIST_LEAST_OF_RECORD(kind, FIELDS) \
  HOIST_LEAST_##kind = 0 FIELDS(HOIST_LEAST, HOIST_LEAST_LIST, HOIST_LEAST_OTHERS),
enum {
  HOIST_INTEGER_KINDS(HOIST_LEAST_OF_INTEGER) HOIST_OTHER_KINDS(HOIST_LEAST_OF_KIND)
      HOIST_PLAN_RECORDS(HOIST_LEAST_OF_RECORD, HOIST_LEAST_OF_RECORD)
};

/* hoist_take_KIND reads fields or a record. A record is then checked by hoist_check_KIND against the plan as it was
 * read so far. */
#define HOIST_TAKE_OF_INTEGER(kind, type, bytes, holds, message) HOIST_TAKE_OF(kind, bytes)
#define HOIST_TAKE_OF(kind, other) HOIST_INTERNAL void hoist_take_##kind(hoist_cursor* c, hoist_plan_##kind* r);
#define HOIST_CHECK_OF(kind, other) HOIST_INTERNAL void hoist_check_##kind(hoist_cursor* c, hoist_plan_##kind* r);
HOIST_INTEGER_KINDS(HOIST_TAKE_OF_INTEGER)
HOIST_OTHER_KINDS(HOIST_TAKE_OF)
HOIST_PLAN_RECORDS(HOIST_TAKE_OF, HOIST_TAKE_OF)
HOIST_PLAN_RECORDS(HOIST_CHECK_OF, HOIST_NOTHING)
HOIST_INTERNAL void hoist_take_domain(hoist_cursor* c, hoist_plan_parameter* r);
HOIST_INTERNAL void hoist_take_regions(hoist_cursor* c, hoist_plan_parameter* r);
HOIST_INTERNAL void hoist_take_items(hoist_cursor* c, hoist_plan* r);
HOIST_INTERNAL void hoist_take_states(hoist_cursor* c, hoist_plan* r);
HOIST_INTERNAL void hoist_take_open_sizes(hoist_cursor* c, hoist_plan* r);
HOIST_INTERNAL void hoist_take_sizes_and_shapes(hoist_cursor* c, hoist_plan_specialisation* r);
/* The expansions of rows that read record `r`. */
#define HOIST_TAKE(kind, name) hoist_take_##kind(c, &r->name);
#define HOIST_TAKE_LIST(kind, name, number)                                      \
  r->name = hoist_take_list(c, &r->number, HOIST_LEAST_##kind, sizeof *r->name); \
  for (size_t i = 0; i < r->number && !hoist_has_failed(c); ++i) hoist_take_##kind(c, &r->name[i]);
#define HOIST_TAKE_OTHERS(kind, bytes) hoist_take_##kind(c, r);

/* The number of elements and bytes of an array of that shape. Both, and the product of the extents other than 0, stay
 * within HOIST_MOST_BYTES, so that sums of a few of them fit into 64 bits, and each into a size_t. */
HOIST_INTERNAL void hoist_measure_shape(hoist_cursor* c, int scalar, size_t rank, const int64_t* shape,
                                        uint64_t* elements, uint64_t* bytes);
HOIST_INTERNAL void hoist_check_domain(hoist_cursor* c, int scalar, double low, double high);
/* Checks magic, version, own size and own hash; leaves the cursor after the header and the end before the hash. */
HOIST_INTERNAL hoist_status hoist_check_frame(hoist_cursor* c, const char* magic);
/* Refuses fused launches in which a control begins or ends. */
HOIST_INTERNAL void hoist_refuse_control_within(hoist_cursor* c);
HOIST_INTERNAL int hoist_is_identifier(const char* text);
HOIST_INTERNAL int hoist_is_inner_path(const char* path);

#endif
