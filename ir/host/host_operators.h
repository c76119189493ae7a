/* What no kernel computes, as functions on the host: one row an operation, which the interpreter and the runtime of
 * bundles both call. A function takes whole arrays, dense and row-major, and gives one. Strings are words of a table
 * (host_strings.h), to which the strings that it makes are added.
 *
 * C99 and POSIX. Regular expressions need PCRE2 and HOIST_WITH_PCRE2, pictures what host_pictures.h says; without them
 * the rows are there and say so. */
#ifndef HOIST_HOST_OPERATORS_H
#define HOIST_HOST_OPERATORS_H

#include "ir/host/host_strings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scalar types by their numbers, which are those of hoist's ir/scalar.h and of plan.bin. */
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
  const int64_t* shape; /* no extent is negative */
  uint64_t elements;    /* their product */
  void* data;           /* aligned for its type; not written where the function reads */
} hoist_host_array;

/* The last: there is more than the result has room for. */
enum { HOIST_HOST_OK, HOIST_HOST_NO_MEMORY, HOIST_HOST_BAD_VALUE, HOIST_HOST_NO_ROOM };

typedef struct hoist_host_call {
  const hoist_host_array* inputs;
  size_t input_count;
  const hoist_host_array* output;
  hoist_string_table* strings;
  char message[256]; /* what is wrong, where the function does not give HOIST_HOST_OK */
} hoist_host_call;

typedef struct hoist_host_operator {
  const char* name;
  const char* meaning;
  size_t input_count;
  /* Whether types and shapes are those that the function takes; the data are not looked at, and may be NULL. */
  int (*takes)(const hoist_host_call* call);
  int (*evaluate)(hoist_host_call* call); /* of a call that it takes */
  const char* library; /* that it needs beside the C library, as pkg-config names it, or several of them; "": none */
  const char* macro;   /* to be defined where that is there */
  int is_missing;      /* this program was built without it */
  /* Makes of seeded numbers in the first input something that the function takes, where there is room for it; NULL
   * where numbers serve, or strings. */
  void (*seed)(const hoist_host_call* call);
} hoist_host_operator;

/* NULL: there is none of that name. */
HOIST_INTERNAL const hoist_host_operator* hoist_host_operator_named(const char* name);
/* The number of inputs too. */
HOIST_INTERNAL int hoist_host_takes(const hoist_host_operator* row, const hoist_host_call* call);

#ifdef __cplusplus
}
#endif

#endif
