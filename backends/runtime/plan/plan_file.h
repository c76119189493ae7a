/* The contents of plan.bin and check.bin, read and checked: every index is in range, every size is the product of its
 * shape, every string ends with a zero. Internal to the runtime and independent of OpenCL.
 * plan_fields.h lists the fields; backends/bundle/plan_format.cpp is the writer, plan_file.c the reader. */
#ifndef HOIST_PLAN_FILE_H
#define HOIST_PLAN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "backends/runtime/hoist_runtime.h"
#include "backends/runtime/plan/plan_fields.h"
#include "ir/host/host_images.h"
#include "ir/host/host_operators.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HOIST_PLAN_MAGIC "HOISTPLN"
#define HOIST_CHECK_MAGIC "HOISTCHK"
#define HOIST_PREPROCESSING_MAGIC "HOISTPRE"
#define HOIST_PREPROCESSING_FILE "preprocessing.bin"
#define HOIST_FORMAT_VERSION 13u

/* The runs of a sequence that checks states. */
#define HOIST_CHECKED_RUNS 3u

/* Limit of specialisations of one bundle. */
#define HOIST_MOST_SPECIALISATIONS 64u

/* Limit of sizes that a run chooses. */
#define HOIST_MOST_OPEN_SIZES 16u

/* Limit of arguments of all steps of one fused launch: no driver supports more, and a check compares their pairs. */
#define HOIST_MOST_LAUNCH_ARGUMENTS 1024u

/* The longest side of a resized image: five digits. */
#define HOIST_MOST_SIDE 99999u

/* Limit of one array: no device has more memory, and the smallest size_t can hold it with later additions. */
#define HOIST_MOST_BYTES (SIZE_MAX / 4 < ((uint64_t)1 << 48) ? (uint64_t)(SIZE_MAX / 4) : (uint64_t)1 << 48)

typedef struct hoist_error {
  hoist_status status;
  char message[1024];
} hoist_error;

/* Stores the message and returns the status, so that a failing path is one line. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
HOIST_INTERNAL hoist_status
hoist_fail(hoist_error* error, hoist_status status, const char* format, ...);

/* Scalar types by their number in the file, which is their position in hoist's ir/language/scalar.h. */
typedef struct hoist_scalar {
  const char* name;
  int bits; /* bits of one value in memory */
  int is_float, is_signed;
  int exponent_bits, mantissa_bits, bias; /* exponent bits, mantissa bits and bias of the small float formats */
  /* 1: no infinities, NaN is all ones (fn); 2: also no negative zero, NaN is the sign bit (fnuz); 3: neither infinities
   * nor NaN; 4: exponents of powers of two, NaN is all ones */
  int finite;
} hoist_scalar;
#define HOIST_SCALAR_COUNT 24
HOIST_INTERNAL const hoist_scalar* hoist_scalar_row(int scalar);
HOIST_INTERNAL int hoist_scalar_named(const char* name);
/* Value `index` of an array as the raw bits of its type, and as a double. */
HOIST_INTERNAL uint64_t hoist_load_bits(int scalar, const void* data, uint64_t index);
HOIST_INTERNAL double hoist_bits_to_double(int scalar, uint64_t bits);
HOIST_INTERNAL void hoist_store_bits(int scalar, void* data, uint64_t index, uint64_t value);
/* The bits of a number that is not NaN, rounded half to even; integers saturate. */
HOIST_INTERNAL uint64_t hoist_number_bits(int scalar, double value);
HOIST_INTERNAL void hoist_seeded(int scalar, uint64_t seed, uint32_t parameter, double low, double high,
                                 uint64_t elements, void* data);
/* Puts extreme numbers in the place of about one number in `one_in`. */
HOIST_INTERNAL void hoist_seeded_extremes(int scalar, uint64_t seed, uint32_t parameter, uint64_t one_in,
                                          unsigned which, uint64_t elements, void* data);

enum { HOIST_PLACE_INPUT, HOIST_PLACE_OUTPUT, HOIST_PLACE_WEIGHTS, HOIST_PLACE_ARENA, HOIST_PLACE_CLEARED };
enum { HOIST_ITEM_STEP, HOIST_ITEM_ENTER, HOIST_ITEM_OTHERWISE, HOIST_ITEM_LEAVE };
/* Operations on a stack of sizes: the first two push a value, the others replace the two topmost values. */
enum {
  HOIST_SIZE_CONSTANT,
  HOIST_SIZE_NAME,
  HOIST_SIZE_ADD,
  HOIST_SIZE_MULTIPLY,
  HOIST_SIZE_FLOOR_DIVISION,
  HOIST_SIZE_REMAINDER,
  HOIST_SIZE_MINIMUM,
  HOIST_SIZE_MAXIMUM
};
/* Numbers that may depend on open sizes: an extent of an array, a kernel's `global` in a dimension, its operations. */
enum { HOIST_NUMBER_EXTENT, HOIST_NUMBER_GLOBAL, HOIST_NUMBER_OPERATIONS };
/* Limit of values on the stack at a time. */
#define HOIST_MOST_SIZE_VALUES 32
#define HOIST_NO_ARRAY UINT32_MAX
/* Limit of iterations, whatever the plan specifies. */
#define HOIST_MOST_ITERATIONS ((uint64_t)1 << 31)

#define HOIST_INTEGER_TYPE(kind, type, bytes, holds, message) typedef type hoist_plan_##kind;
HOIST_INTEGER_KINDS(HOIST_INTEGER_TYPE)
typedef int hoist_plan_flag;
typedef double hoist_plan_number, hoist_plan_numbers[3];
typedef uint64_t hoist_plan_sizes[3];
typedef const char* hoist_plan_text;
typedef hoist_string hoist_plan_string;
typedef const hoist_host_operator* hoist_plan_host_operator; /* NULL: none */
typedef hoist_preprocessing hoist_plan_pixels;

/* The members of a record by its rows in plan_fields.h; fields of S are written out. */
#define HOIST_MEMBER(kind, name) hoist_plan_##kind name;
#define HOIST_MEMBER_LIST(kind, name, number) \
  size_t number;                              \
  hoist_plan_##kind* name;
#define HOIST_NOTHING(kind, other)
#define HOIST_MEMBERS(FIELDS) FIELDS(HOIST_MEMBER, HOIST_MEMBER_LIST, HOIST_NOTHING)
#define HOIST_RECORD(kind, FIELDS)   \
  typedef struct hoist_plan_##kind { \
    HOIST_MEMBERS(FIELDS)            \
  } hoist_plan_##kind;

HOIST_RECORD(listed_file, HOIST_LISTED_FILE_FIELDS)
HOIST_RECORD(tolerance, HOIST_TOLERANCE_FIELDS)
HOIST_RECORD(move, HOIST_MOVE_FIELDS)
HOIST_RECORD(item, HOIST_ITEM_FIELDS)
HOIST_RECORD(input, HOIST_INPUT_FIELDS)
HOIST_RECORD(state, HOIST_STATE_FIELDS)
HOIST_RECORD(saved_state, HOIST_SAVED_STATE_FIELDS)
HOIST_RECORD(extent, HOIST_EXTENT_FIELDS)
HOIST_RECORD(made_for, HOIST_MADE_FOR_FIELDS)

HOIST_RECORD(operation, HOIST_OPERATION_FIELDS)

typedef struct hoist_plan_open_size {
  HOIST_MEMBERS(HOIST_OPEN_SIZE_FIELDS)
  int64_t now; /* the chosen size; after reading the largest one */
} hoist_plan_open_size;

typedef struct hoist_plan_open_number {
  HOIST_MEMBERS(HOIST_OPEN_NUMBER_FIELDS)
  int64_t most; /* its value for the largest sizes */
} hoist_plan_open_number;

typedef struct hoist_plan_array {
  HOIST_MEMBERS(HOIST_ARRAY_FIELDS)
  uint64_t bytes;    /* of the chosen sizes */
  uint64_t capacity; /* of the largest ones, for which memory is allocated */
} hoist_plan_array;

typedef struct hoist_plan_parameter {
  HOIST_MEMBERS(HOIST_PARAMETER_FIELDS)
  uint64_t elements, bytes;
  double low, high;
  size_t region_count; /* boxes of the values that it reads, or the box that it writes; 0: the whole array */
  int64_t* regions;    /* `rank` elements before each box, then its `rank` extents */
} hoist_plan_parameter;

/* Expected values. Positions count through the written parameters in order; a value takes (bits + 7) / 8 bytes at its
 * offset in `starts`. */
typedef struct hoist_samples {
  uint64_t seed, count, bytes; /* bytes of all values */
  uint64_t *positions, *starts;
  const unsigned char* values;
  uint64_t one_extreme_in; /* 0, or the same positions have values for inputs with extreme numbers */
  unsigned extremes;       /* the kinds of extreme numbers */
  const unsigned char* extreme_values;
} hoist_samples;

typedef struct hoist_plan_kernel {
  HOIST_MEMBERS(HOIST_KERNEL_FIELDS)
  int is_launched;    /* some step uses it */
  int is_alone;       /* some such step belongs to no hoist_plan_launch */
  uint32_t step;      /* the last one that uses it */
  int writes_cleared; /* some step writes a cleared array with it */
} hoist_plan_kernel;

struct hoist_plan_launch;

typedef struct hoist_plan_step {
  HOIST_MEMBERS(HOIST_STEP_FIELDS)
  const struct hoist_plan_launch* launch; /* the fused launch that runs it; NULL: it is a launch of its kernel */
} hoist_plan_step;

/* The arguments of the launch are the arrays of all steps, where an array that a step names several times is repeated,
 * then the words by which work-items share groups, the number of these work-items, the first step and the end. */
typedef struct hoist_plan_launch {
  HOIST_MEMBERS(HOIST_LAUNCH_FIELDS)
  hoist_plan_kernel kernel; /* kernel of one work-item; only its name and the number of its parameters are set */
  uint32_t* arguments;      /* one per parameter */
} hoist_plan_launch;

typedef struct hoist_plan_control {
  HOIST_MEMBERS(HOIST_CONTROL_FIELDS)
  size_t enter, middle, leave; /* items; a loop has no middle */
} hoist_plan_control;

typedef struct hoist_plan_specialisation {
  HOIST_MEMBERS(HOIST_SPECIALISATION_FIELDS)
  int64_t* sizes;   /* one per name */
  int64_t** shapes; /* one per input */
} hoist_plan_specialisation;

typedef struct hoist_plan_preprocessing {
  uint32_t input;
  hoist_plan_pixels how; /* includes the rows, columns and channels of the input's shape in the same plan */
} hoist_plan_preprocessing;

typedef struct hoist_pool {
  struct hoist_pool* next;
} hoist_pool;

typedef struct hoist_plan {
  hoist_pool* pool; /* owns everything below */
  char* folder;
  HOIST_MEMBERS(HOIST_PLAN_FIELDS)
  size_t item_count;
  hoist_plan_item* items; /* every step once, also if there are no controls */
  uint64_t hash;          /* of plan.bin */
  size_t state_count;     /* the model's inputs are the others, see hoist_model_inputs */
  hoist_plan_state* states;
  size_t open_size_count, open_number_count;
  hoist_plan_open_size* open_sizes;
  hoist_plan_open_number* open_numbers;
  size_t preprocessing_count; /* entries of preprocessing.bin, which only the first specialisation has */
  hoist_plan_preprocessing* preprocessing;
} hoist_plan;

typedef struct hoist_checks {
  hoist_pool* pool;
  hoist_samples* kernels; /* one per kernel of the plan; count 0 if it has none */
  uint64_t model_seed;
  hoist_plan_tolerance model_tolerance;
  size_t output_count;    /* 0: no whole-model check */
  uint32_t* outputs;      /* index of the output; check.bin adds the number of outputs for each run before */
  uint32_t* runs;         /* the run whose output it is; 0 unless there are states; never descending */
  hoist_samples* samples; /* its positions and values */
} hoist_checks;

/* The number of the model's inputs, which come before the states. */
HOIST_INTERNAL size_t hoist_model_inputs(const hoist_plan* plan);
/* The first output after the model's and the states': the others are lengths. */
HOIST_INTERNAL size_t hoist_first_extent(const hoist_plan* plan);
/* The index, in the launch, of argument `k` of one of its steps. */
HOIST_INTERNAL size_t hoist_launch_argument(const hoist_plan_launch* launch, const hoist_plan_step* step, size_t k);
HOIST_INTERNAL void* hoist_pool_alloc(hoist_pool** pool, uint64_t count,
                                      size_t size); /* zeroed; NULL when out of memory */
HOIST_INTERNAL void hoist_pool_free(hoist_pool** pool);
HOIST_INTERNAL hoist_status hoist_no_memory(hoist_error* error, uint64_t bytes);
/* Memory of whole pages, of 2 MiB each if it fills at least one: a network's arrays span more small pages than the TLB
 * holds. free() it; NULL when out of memory. */
HOIST_INTERNAL void* hoist_pages(uint64_t bytes);
/* The same, as zeros that cost nothing until they are used. free() `*memory`, not the returned pointer. */
HOIST_INTERNAL void* hoist_pages_of_zeros(uint64_t bytes, void** memory);
#define HOIST_PAGE ((size_t)4096)

/* A regular file that is open for reading; close() it. */
typedef struct hoist_opened_file {
  int file;
  size_t size; /* in bytes, when it was opened */
  char path[4096];
} hoist_opened_file;
HOIST_INTERNAL hoist_status hoist_open_regular(const char* folder, const char* name, hoist_opened_file* opened,
                                               hoist_error* error);
/* The number of bytes that were read: less than `bytes` at the end of the file and after an error. */
HOIST_INTERNAL size_t hoist_read_up_to(const hoist_opened_file* opened, unsigned char* data, size_t bytes);
/* A whole regular file in pages of its own, with a zero appended; free() it. */
HOIST_INTERNAL hoist_status hoist_read_whole(const char* folder, const char* name, unsigned char** data, size_t* bytes,
                                             hoist_error* error);

/* Returns 0 or errno. The file appears complete or not at all, and otherwise a file of that name stays as it was;
 * `lasting`: it is on the disk when the function returns. */
HOIST_INTERNAL int hoist_write_whole(const char* path, const unsigned char* data, size_t bytes, int lasting);

/* True if the arrays overlap in the arena. */
HOIST_INTERNAL int hoist_share_memory(const hoist_plan_array* a, const hoist_plan_array* b);
/* For parameters bound to one array: true unless their regions lie apart. Parts of a concatenation share an array, each
 * in its own region. */
HOIST_INTERNAL int hoist_parameters_overlap(const hoist_plan_parameter* a, const hoist_plan_parameter* b);

/* Gives the open sizes these values, one each in order, and changes every number that depends on them. After a failure
 * the plan is unchanged: a value out of range, or a number that would exceed its value for the largest sizes. */
HOIST_INTERNAL hoist_status hoist_plan_resize(hoist_plan* plan, const int64_t* sizes, hoist_error* error);
/* Sets each open size that is an extent of the array to that extent of the shape. */
HOIST_INTERNAL void hoist_sizes_of_shape(const hoist_plan* plan, size_t array, const int64_t* shape, int64_t* sizes);

HOIST_INTERNAL hoist_status hoist_plan_read(const char* folder, hoist_plan* plan, hoist_error* error);
/* The plan of a specialisation other than the first: it has the inputs and outputs of `root`, in the listed shapes. */
HOIST_INTERNAL hoist_status hoist_plan_read_specialisation(const hoist_plan* root, size_t index, hoist_plan* plan,
                                                           hoist_error* error);
HOIST_INTERNAL void hoist_plan_free(hoist_plan* plan);
/* Reads a file that the plan lists, aligned to 4096 bytes and followed by a zero, and checks its size and hash; free()
 * it. A file that is not listed is an error. */
HOIST_INTERNAL hoist_status hoist_plan_file(const hoist_plan* plan, const char* path, unsigned char** data,
                                            size_t* bytes, hoist_error* error);
/* The checked bytes of a file that the plan lists, aligned to 4096 bytes. A large file is mapped: processes share its
 * pages, no byte of it may be written, and it must not be changed or truncated as long as it is mapped. */
typedef struct hoist_file_bytes {
  unsigned char* data;
  size_t bytes;
  int is_mapped;
} hoist_file_bytes;
HOIST_INTERNAL hoist_status hoist_plan_map(const hoist_plan* plan, const char* path, hoist_file_bytes* file,
                                           hoist_error* error);
HOIST_INTERNAL void hoist_drop_file(hoist_file_bytes* file);
#ifndef HOIST_WITHOUT_OPENCL /* native code is always read */
/* The hash that the plan lists for a file, without reading the file. */
HOIST_INTERNAL hoist_status hoist_plan_hash(const hoist_plan* plan, const char* path, uint64_t* hash,
                                            hoist_error* error);
#endif
/* Checks the hash of every listed file and reports each; the first message stays in `error`. */
HOIST_INTERNAL hoist_status hoist_plan_verify_files(const hoist_plan* plan, hoist_report report, void* user,
                                                    hoist_error* error);
/* pixels.c. The reason why preprocessing is invalid; NULL if it is valid. */
HOIST_INTERNAL const char* hoist_preprocessing_problem(const hoist_preprocessing* how);
/* True if the array has the rank and the type of images. hoist_image_shape sets rows, columns and channels from its
 * shape. */
HOIST_INTERNAL int hoist_holds_images(const hoist_plan_array* array);
HOIST_INTERNAL void hoist_image_shape(const hoist_plan_array* array, hoist_preprocessing* how);
HOIST_INTERNAL hoist_status hoist_checks_read(const hoist_plan* plan, hoist_checks* checks, hoist_error* error);

#ifdef __cplusplus
}
#endif

#endif
