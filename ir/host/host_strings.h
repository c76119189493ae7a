/* String handles. Kernels and arrays hold a string as a 64-bit handle, the XXH64 of its bytes, 0 for the empty string;
 * a table maps handles to strings. Equal strings have equal handles in every process, so kernels can move and compare
 * strings, a program's constants are the same bytes in every compilation, and zero-filled arrays hold empty strings. A
 * table rejects a string whose handle belongs to another of its strings.
 *
 * C99; depends on nothing. The interpreter and the runtime of bundles use the same code. */
#ifndef HOIST_HOST_STRINGS_H
#define HOIST_HOST_STRINGS_H

#include <stddef.h>
#include <stdint.h>

#ifndef HOIST_INTERNAL
#define HOIST_INTERNAL
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* XXH64 with seed 0. */
HOIST_INTERNAL uint64_t hoist_hash(const void* data, size_t bytes);

/* The same for data in pieces: whole blocks of HOIST_HASH_BLOCK bytes, then a rest of any length. */
#define HOIST_HASH_BLOCK ((size_t)32)
typedef struct hoist_hash_state {
  uint64_t lanes[4];
  uint64_t bytes;
} hoist_hash_state;
HOIST_INTERNAL void hoist_hash_begin(hoist_hash_state* state);
HOIST_INTERNAL void hoist_hash_blocks(hoist_hash_state* state, const void* data, size_t blocks);
HOIST_INTERNAL uint64_t hoist_hash_end(hoist_hash_state* state, const void* data, size_t bytes);

#define HOIST_LONGEST_STRING ((size_t)1 << 30)

/* A string of arbitrary bytes, including zeros, with a terminating zero. */
typedef struct hoist_string_entry {
  uint64_t word;
  size_t length;
  const char* data;
} hoist_string_entry;

/* A zero-initialised table is empty. Entries do not move until they are forgotten. */
typedef struct hoist_string_table {
  hoist_string_entry** entries; /* entries in order of insertion */
  uint32_t* slots;              /* hash table by handle: the number of an entry, counted from 1; 0: free */
  size_t count, room, slot_count, kept;
} hoist_string_table;

enum { HOIST_STRING_KNOWN, HOIST_STRING_NO_MEMORY, HOIST_STRING_MEETS_ANOTHER, HOIST_STRING_TOO_LONG };

/* Adds a string, if it is new, and returns its handle in *word. The result is one of the constants above. */
HOIST_INTERNAL int hoist_string_add(hoist_string_table* table, const char* data, size_t length, uint64_t* word);
/* The entry of a handle, or NULL. */
HOIST_INTERNAL const hoist_string_entry* hoist_string_find(const hoist_string_table* table, uint64_t word);
/* hoist_strings_keep() marks the current strings as permanent; hoist_strings_forget() removes all others. */
HOIST_INTERNAL void hoist_strings_keep(hoist_string_table* table);
HOIST_INTERNAL void hoist_strings_forget(hoist_string_table* table);
HOIST_INTERNAL void hoist_strings_free(hoist_string_table* table);

#ifdef __cplusplus
}
#endif

#endif
