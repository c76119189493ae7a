/* Strings as numbers. Kernels and arrays hold a string as a word of 64 bits, the XXH64 of its bytes, 0 for the empty
 * one; a table has the strings that belong to the words. Words of equal strings are equal wherever and whenever they
 * are made, so that kernels can move and compare strings, constants of a program are the same bytes in every
 * compilation, and arrays full of zeros hold empty strings. Two different strings of one word are refused where the
 * second enters the table, which holds all that can meet.
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

#define HOIST_LONGEST_STRING ((size_t)1 << 30)

/* Any bytes, zeros too; one more zero stands behind them. */
typedef struct hoist_string_entry {
  uint64_t word;
  size_t length;
  const char* data;
} hoist_string_entry;

/* One of zeros is an empty table. Entries stay where they are until they are forgotten. */
typedef struct hoist_string_table {
  hoist_string_entry** entries; /* in the order in which they came */
  uint32_t* slots;              /* by word: the number of an entry, counted from 1; 0: free */
  size_t count, room, slot_count, kept;
} hoist_string_table;

enum { HOIST_STRING_KNOWN, HOIST_STRING_NO_MEMORY, HOIST_STRING_MEETS_ANOTHER, HOIST_STRING_TOO_LONG };

/* The word of a string, which the table has from then on; one of the results above. */
HOIST_INTERNAL int hoist_string_add(hoist_string_table* table, const char* data, size_t length, uint64_t* word);
/* NULL: the table has none of that word. */
HOIST_INTERNAL const hoist_string_entry* hoist_string_find(const hoist_string_table* table, uint64_t word);
/* The strings that are there stay; the others are forgotten. */
HOIST_INTERNAL void hoist_strings_keep(hoist_string_table* table);
HOIST_INTERNAL void hoist_strings_forget(hoist_string_table* table);
HOIST_INTERNAL void hoist_strings_free(hoist_string_table* table);

#ifdef __cplusplus
}
#endif

#endif
