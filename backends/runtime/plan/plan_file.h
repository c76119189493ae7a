/* What plan.bin and check.bin hold, read and checked: every index is in range, every size is the product of its shape,
 * every string ends with a zero. Internal to the runtime; knows nothing of OpenCL. backends/bundle/plan_format.cpp
 * writes what plan_file.c reads. */
#ifndef HOIST_PLAN_FILE_H
#define HOIST_PLAN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "backends/runtime/hoist_runtime.h"
#include "ir/host/host_operators.h"
#include "ir/host/host_pictures.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HOIST_PLAN_MAGIC "HOISTPLN"
#define HOIST_CHECK_MAGIC "HOISTCHK"
#define HOIST_PREPROCESSING_MAGIC "HOISTPRE"
#define HOIST_PREPROCESSING_FILE "preprocessing.bin"
#define HOIST_FORMAT_VERSION 12u

/* Sets of sizes that one bundle can be compiled for. */
#define HOIST_MOST_SPECIALISATIONS 64u

/* Arguments of the steps of one launch, all together: no driver takes so many, and a check goes through their pairs. */
#define HOIST_MOST_LAUNCH_ARGUMENTS 1024u

/* The longest side that a picture is resized to: five digits. */
#define HOIST_MOST_SIDE 99999u

/* What one array can have: no device has more, and the smallest size_t holds it with room for what is added to it. */
#define HOIST_MOST_BYTES (SIZE_MAX / 4 < ((uint64_t)1 << 48) ? (uint64_t)(SIZE_MAX / 4) : (uint64_t)1 << 48)

typedef struct hoist_error {
  hoist_status status;
  char message[1024];
} hoist_error;

/* Keeps the message and returns the status, so that a failing path is one line. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
HOIST_INTERNAL hoist_status
hoist_fail(hoist_error* error, hoist_status status, const char* format, ...);

/* Scalar types by their number in the file, which is their position in hoist's ir/language/scalar.h. */
typedef struct hoist_scalar {
  const char* name;
  int bits; /* of one value in memory */
  int is_float, is_signed;
  int exponent_bits, mantissa_bits, bias; /* of the small float formats */
  /* 1: no infinities, NaN is all ones (fn); 2: also no negative zero, NaN is the sign bit (fnuz); 3: neither infinities
   * nor NaN; 4: exponents of powers of two, NaN is all ones */
  int finite;
} hoist_scalar;
#define HOIST_SCALAR_COUNT 24
HOIST_INTERNAL const hoist_scalar* hoist_scalar_row(int scalar);
HOIST_INTERNAL int hoist_scalar_named(const char* name);
/* Value `index` of an array as the raw bits of its type, and as a number. */
HOIST_INTERNAL uint64_t hoist_load_bits(int scalar, const void* data, uint64_t index);
HOIST_INTERNAL double hoist_bits_to_double(int scalar, uint64_t bits);
HOIST_INTERNAL void hoist_store_bits(int scalar, void* data, uint64_t index, uint64_t value);
/* The bits of a number that is not NaN, halves to even; integers stop at the ends of their type. */
HOIST_INTERNAL uint64_t hoist_number_bits(int scalar, double value);
HOIST_INTERNAL void hoist_seeded(int scalar, uint64_t seed, uint32_t parameter, double low, double high,
                                 uint64_t elements, void* data);

enum { HOIST_PLACE_INPUT, HOIST_PLACE_OUTPUT, HOIST_PLACE_WEIGHTS, HOIST_PLACE_ARENA, HOIST_PLACE_CLEARED };

typedef struct hoist_file {
  const char* path; /* inside the bundle, with '/' */
  uint64_t bytes, hash;
} hoist_file;

typedef struct hoist_plan_array {
  const char* name;
  int scalar, place;
  size_t rank;
  int64_t* shape;
  uint64_t offset, bytes;
  int fill; /* what each byte of a cleared array is at load */
} hoist_plan_array;

typedef struct hoist_plan_parameter {
  const char* name;
  int scalar, written;
  size_t rank;
  int64_t* shape;
  uint64_t elements, bytes;
  double low, high;
  size_t region_count; /* boxes that hold the values it reads, or the one that it writes; 0: the whole array */
  int64_t* regions;    /* `rank` elements before each box, then its `rank` extents */
} hoist_plan_parameter;

typedef struct hoist_tolerance {
  int exact;   /* bit-identical where the device computes as IEEE 754 says */
  int divides; /* and, for that, where it rounds division and square root correctly */
  double relative, absolute;
} hoist_tolerance;

/* Expected values: positions run over the written parameters one after the other; a value takes (bits + 7) / 8 bytes,
 * from `starts` on. */
typedef struct hoist_samples {
  uint64_t seed, count;
  uint64_t *positions, *starts;
  const unsigned char* values;
} hoist_samples;

typedef struct hoist_plan_kernel {
  const char* name;
  size_t layer_count;
  const char** layers;
  uint64_t global[3], local[3], local_bytes;
  size_t parameter_count;
  hoist_plan_parameter* parameters;
  hoist_tolerance tolerance;
  int64_t operations;
  const hoist_host_operator* host; /* the host performs it; NULL: a device does */
  int is_launched;                 /* some step names it */
  int is_alone;                    /* and some such step belongs to no hoist_plan_launch */
  uint32_t step;                   /* the last that names it */
  int writes_cleared;              /* some step binds what it writes to a cleared array */
} hoist_plan_kernel;

struct hoist_plan_launch;

typedef struct hoist_plan_step {
  uint32_t kernel;
  const struct hoist_plan_launch* launch; /* that performs it; NULL: it is a launch of its kernel */
  size_t layer_count;
  const char** layers;
  size_t argument_count;
  uint32_t* arguments;
} hoist_plan_step;

/* Steps one after the other that one launch performs. Its arguments are the arrays of all of them, each as often as one
 * of them names it, then the words by which work-items share groups, how many do, the first step and the end. */
typedef struct hoist_plan_launch {
  hoist_plan_kernel kernel; /* of one work-item, its parameters only counted */
  size_t first, count;      /* steps */
  uint32_t* arguments;      /* one a parameter */
} hoist_plan_launch;

/* Copies a whole array, to another of its size or into the place that the iteration's number says. */
typedef struct hoist_plan_move {
  uint32_t from, to;
  int is_row;
} hoist_plan_move;

#define HOIST_NO_ARRAY UINT32_MAX
/* Iterations of a loop, whatever its plan says. */
#define HOIST_MOST_ITERATIONS ((uint64_t)1 << 31)

/* If or Loop: which steps a run performs, and how often. */
typedef struct hoist_plan_control {
  const char* name;
  size_t layer_count;
  const char** layers;
  int is_loop, fails;                                /* fails: to go on behind the last iteration is an error */
  uint64_t most;                                     /* iterations */
  uint32_t condition, trips, number, next, count;    /* arrays, or HOIST_NO_ARRAY */
  size_t before_count, after_count, otherwise_count; /* a loop has no `otherwise`, a branch nothing before */
  hoist_plan_move *before, *after, *otherwise;
  size_t enter, middle, leave; /* items; a loop has no middle */
} hoist_plan_control;

enum { HOIST_ITEM_STEP, HOIST_ITEM_ENTER, HOIST_ITEM_OTHERWISE, HOIST_ITEM_LEAVE };

/* What a run does next. Steps and controls begin in their order, and controls nest. */
typedef struct hoist_plan_item {
  int kind;
  uint32_t index;
} hoist_plan_item;

typedef struct hoist_plan_input {
  uint32_t array;
  double low, high;
} hoist_plan_input;

/* An output whose data decide how long it is along a dimension, and the output that says so: one i64. */
typedef struct hoist_plan_extent {
  uint32_t output, dimension, count;
} hoist_plan_extent;

/* A set of sizes that the model is compiled for. Each but the first, which is the plan that lists them all, has a plan
 * of its own in a folder inside the bundle. */
typedef struct hoist_plan_specialisation {
  const char* folder; /* "" of the first */
  int64_t* sizes;     /* one a name */
  int64_t** shapes;   /* one an input */
} hoist_plan_specialisation;

/* How pictures become an input; rows, columns and channels are those of the plan that says so. */
typedef struct hoist_plan_preprocessing {
  uint32_t input;
  hoist_preprocessing how;
} hoist_plan_preprocessing;

typedef struct hoist_pool {
  struct hoist_pool* next;
} hoist_pool;

/* What the kernels were compiled for. */
typedef struct hoist_made_for {
  const char* name; /* of the profile, which is the device's where it was made from one */
  int is_cpu;
  int is_serial; /* one core computes a run sooner than several that have to be woken */
} hoist_made_for;

typedef struct hoist_plan {
  hoist_pool* pool; /* owns everything below */
  char* folder;
  const char *model_name, *build_options;
  hoist_made_for made_for;
  uint64_t model_hash, arena_bytes, weights_bytes;
  size_t target_count, file_count, array_count, kernel_count, step_count, input_count, output_count;
  const char** targets; /* of native code, with a function of every kernel for each; none: OpenCL C */
  hoist_file* files;
  hoist_plan_array* arrays;
  hoist_plan_kernel* kernels;
  hoist_plan_step* steps;
  size_t control_count, item_count;
  hoist_plan_control* controls;
  size_t launch_count; /* in the order of their steps; no control begins or ends within one */
  hoist_plan_launch* launches;
  hoist_plan_item* items; /* every step once, also where there are no controls */
  hoist_plan_input* inputs;
  uint32_t* outputs;
  size_t model_output_count; /* those of the model come first, behind them the counts of extents */
  size_t extent_count;
  hoist_plan_extent* extents;
  size_t string_count; /* those that weights and kernels hold the words of */
  hoist_string* strings;
  size_t size_count, specialisation_count; /* both 0 where the model is compiled for one set of sizes */
  const char** size_names;
  hoist_plan_specialisation* specialisations;
  size_t preprocessing_count; /* in preprocessing.bin, which only the first specialisation has */
  hoist_plan_preprocessing* preprocessing;
} hoist_plan;

typedef struct hoist_checks {
  hoist_pool* pool;
  hoist_samples* kernels; /* one a kernel of the plan; count 0 where it has none */
  uint64_t model_seed;
  hoist_tolerance model_tolerance;
  size_t output_count;    /* 0: no whole-model check */
  uint32_t* outputs;      /* which output */
  hoist_samples* samples; /* its positions and values */
} hoist_checks;

/* Which argument of the launch argument `k` of one of its steps is. */
HOIST_INTERNAL size_t hoist_launch_argument(const hoist_plan_launch* launch, const hoist_plan_step* step, size_t k);
HOIST_INTERNAL void* hoist_pool_alloc(hoist_pool** pool, uint64_t count,
                                      size_t size); /* zeroed; NULL when out of memory */
HOIST_INTERNAL void hoist_pool_free(hoist_pool** pool);
HOIST_INTERNAL hoist_status hoist_no_memory(hoist_error* error, uint64_t bytes);
/* Memory of whole pages, of 2 MiB where it is as large as one: what a network computes goes through more of the usual
 * ones than a core remembers addresses of. free() it; NULL when out of memory. */
HOIST_INTERNAL void* hoist_pages(uint64_t bytes);
/* The same, of zeros that cost nothing before they are used. free() `*memory`, not what this returns. */
HOIST_INTERNAL void* hoist_pages_of_zeros(uint64_t bytes, void** memory);
#define HOIST_PAGE ((size_t)4096)

/* A regular file, whole, in pages of its own and with a zero behind it; free() it. */
HOIST_INTERNAL hoist_status hoist_read_whole(const char* folder, const char* name, unsigned char** data, size_t* bytes,
                                             hoist_error* error);

/* Whether bytes of one are bytes of the other. */
HOIST_INTERNAL int hoist_share_memory(const hoist_plan_array* a, const hoist_plan_array* b);

HOIST_INTERNAL hoist_status hoist_plan_read(const char* folder, hoist_plan* plan, hoist_error* error);
/* The plan of another specialisation than the first: it has the inputs and outputs of `root`, in the listed shapes. */
HOIST_INTERNAL hoist_status hoist_plan_read_specialisation(const hoist_plan* root, size_t index, hoist_plan* plan,
                                                           hoist_error* error);
HOIST_INTERNAL void hoist_plan_free(hoist_plan* plan);
/* Reads a file that the plan lists, aligned to 4096 bytes and followed by a zero, and checks its size and hash; free()
 * it. The list says what is expected, so a missing entry is an error as well. */
HOIST_INTERNAL hoist_status hoist_plan_file(const hoist_plan* plan, const char* path, unsigned char** data,
                                            size_t* bytes, hoist_error* error);
#ifndef HOIST_WITHOUT_OPENCL /* native code is read in any case */
/* The hash that the plan lists for a file, which is not read. */
HOIST_INTERNAL hoist_status hoist_plan_hash(const hoist_plan* plan, const char* path, uint64_t* hash,
                                            hoist_error* error);
#endif
/* The hash of every listed file, streamed; `failures` counts, the first message stays in `error`. */
HOIST_INTERNAL hoist_status hoist_plan_verify_files(const hoist_plan* plan, hoist_report report, void* user,
                                                    hoist_error* error);
/* pixels.c. Why there can be no such preprocessing; NULL where there can. */
HOIST_INTERNAL const char* hoist_preprocessing_problem(const hoist_preprocessing* how);
/* Whether the array has the rank and the type of pictures; and their rows, columns and channels, where it has. */
HOIST_INTERNAL int hoist_holds_pictures(const hoist_plan_array* array);
HOIST_INTERNAL void hoist_picture_shape(const hoist_plan_array* array, hoist_preprocessing* how);
HOIST_INTERNAL hoist_status hoist_checks_read(const hoist_plan* plan, hoist_checks* checks, hoist_error* error);

#ifdef __cplusplus
}
#endif

#endif
