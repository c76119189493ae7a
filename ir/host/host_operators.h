/* Host ops: operations without kernels, as C functions on the host. There is one row per operation, which the
 * interpreter and the runtime of bundles share. A function takes whole arrays, dense and row-major, and computes one.
 * Strings are handles in a table (host_strings.h), to which the functions add the strings that they create.
 *
 * C99 and POSIX. Regular expressions need PCRE2 and HOIST_WITH_PCRE2, images the libraries in host_images.h; a build
 * without them has the rows, with is_missing set. */
#ifndef HOIST_HOST_OPERATORS_H
#define HOIST_HOST_OPERATORS_H

#include "ir/host/host_strings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scalar types with the values of ir/language/scalar.h and of plan.bin. */
enum {
  HOIST_HOST_BOOL = 0,
  HOIST_HOST_U8 = 4,
  HOIST_HOST_I32 = 7,
  HOIST_HOST_U32 = 8,
  HOIST_HOST_I64 = 9,
  HOIST_HOST_U64 = 10,
  HOIST_HOST_F32 = 17,
  HOIST_HOST_F64 = 18,
  HOIST_HOST_STRING = 23
};

typedef struct hoist_host_array {
  int scalar;
  size_t rank;
  const int64_t* shape; /* all extents are non-negative */
  uint64_t elements;    /* product of the extents */
  void* data;           /* aligned for its type; inputs are only read */
} hoist_host_array;

/* HOIST_HOST_NO_ROOM: the result exceeds the capacity of the output. */
enum { HOIST_HOST_OK, HOIST_HOST_NO_MEMORY, HOIST_HOST_BAD_VALUE, HOIST_HOST_NO_ROOM };

typedef struct hoist_host_call {
  const hoist_host_array* inputs;
  size_t input_count;
  const hoist_host_array* output;
  hoist_string_table* strings;
  char message[256]; /* the error, unless the function returns HOIST_HOST_OK */
} hoist_host_call;

typedef struct hoist_host_operator {
  const char* name;
  const char* meaning;
  size_t input_count;
  /* True if the function accepts these types and shapes; data is not read and may be NULL. */
  int (*takes)(const hoist_host_call* call);
  int (*evaluate)(hoist_host_call* call); /* requires that takes() holds */
  const char* library; /* the libraries it needs in addition to the C library, by their pkg-config names; "": none */
  const char* macro;   /* defined if the libraries are available */
  int is_missing;      /* this program was built without it */
  /* Turns seeded bytes of the first input into valid input, if they are long enough; NULL for functions that accept
   * arbitrary numbers, or strings. */
  void (*seed)(const hoist_host_call* call);
} hoist_host_operator;

/* The row of that name, or NULL. */
HOIST_INTERNAL const hoist_host_operator* hoist_host_operator_named(const char* name);
/* True if the number of inputs is right and the row accepts the call. */
HOIST_INTERNAL int hoist_host_takes(const hoist_host_operator* row, const hoist_host_call* call);

#ifdef __cplusplus
}
#endif

#endif
