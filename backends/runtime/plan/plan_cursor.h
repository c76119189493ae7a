/* A bounded cursor over plan.bin and check.bin, and the records of a plan that are read with it. The first failure
 * stays in the error; afterwards every read returns zeros. For the readers of these files only. */
#ifndef HOIST_PLAN_CURSOR_H
#define HOIST_PLAN_CURSOR_H

#include "backends/runtime/plan/plan_file.h"

typedef struct hoist_cursor {
  const unsigned char* data;
  uint64_t size, at;
  uint64_t comparisons; /* number so far, of arguments, regions and positions with each other */
  const char* file;
  hoist_pool** pool;
  hoist_error* error;
} hoist_cursor;

HOIST_INTERNAL int hoist_has_failed(const hoist_cursor* c);
/* Keeps the first failure; afterwards every read returns zeros. */
HOIST_INTERNAL void hoist_bad_bytes(hoist_cursor* c, const char* what);
/* Comparisons of all records of a kind with each other grow with the square of the file; no model comes near the
 * limit. */
HOIST_INTERNAL void hoist_count_comparisons(hoist_cursor* c, uint64_t count);
HOIST_INTERNAL uint64_t hoist_take(hoist_cursor* c, int bytes);
HOIST_INTERNAL double hoist_take_double(hoist_cursor* c);
HOIST_INTERNAL const char* hoist_take_text(hoist_cursor* c);
/* Reads a count of records of at least `least` bytes each, and allocates them. */
HOIST_INTERNAL void* hoist_take_array(hoist_cursor* c, size_t* count, uint64_t least, size_t size);
HOIST_INTERNAL const char** hoist_take_texts(hoist_cursor* c, size_t* count);
HOIST_INTERNAL int hoist_take_scalar(hoist_cursor* c);
/* Reads a shape and computes the number of elements and bytes. Both, and the product of the extents other than 0, stay
 * within HOIST_MOST_BYTES, so that sums of a few of them fit into 64 bits, and each into a size_t. */
HOIST_INTERNAL int64_t* hoist_take_shape(hoist_cursor* c, int scalar, size_t* rank, uint64_t* elements,
                                         uint64_t* bytes);
HOIST_INTERNAL void hoist_take_domain(hoist_cursor* c, int scalar, double* low, double* high);
HOIST_INTERNAL hoist_tolerance hoist_take_tolerance(hoist_cursor* c);
/* Checks magic, version, own size and own hash; leaves the cursor after the header and the end before the hash. */
HOIST_INTERNAL hoist_status hoist_check_frame(hoist_cursor* c, const char* magic);
HOIST_INTERNAL int hoist_is_identifier(const char* text);
HOIST_INTERNAL void hoist_take_array_record(hoist_cursor* c, hoist_plan* plan, hoist_plan_array* array);
HOIST_INTERNAL void hoist_take_kernel_record(hoist_cursor* c, const hoist_plan* plan, hoist_plan_kernel* kernel);
HOIST_INTERNAL void hoist_take_step_record(hoist_cursor* c, hoist_plan* plan, hoist_plan_step* step);
HOIST_INTERNAL void hoist_take_controls(hoist_cursor* c, hoist_plan* plan);
HOIST_INTERNAL void hoist_take_launches(hoist_cursor* c, hoist_plan* plan);

#endif
