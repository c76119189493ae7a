/* The arrays of a call: types, strings and their characters, capacities, and errors. Only for the functions of this
 * folder. */
#ifndef HOIST_HOST_CALLS_H
#define HOIST_HOST_CALLS_H

#include "ir/host/host_operators.h"

/* Writes the message; returns HOIST_HOST_BAD_VALUE. */
HOIST_INTERNAL int hoist_host_fails(hoist_host_call* call, const char* what);
HOIST_INTERNAL int hoist_host_no_memory(hoist_host_call* call);

HOIST_INTERNAL int hoist_array_is(const hoist_host_array* array, int scalar, uint64_t elements);

/* The entry of an element, or NULL if its handle is not in the table: handles that a kernel computed may be
 * arbitrary. */
HOIST_INTERNAL const hoist_string_entry* hoist_string_at(hoist_host_call* call, size_t input, uint64_t i);
/* Sets element i of the output to a string, which is copied. */
HOIST_INTERNAL int hoist_string_put(hoist_host_call* call, uint64_t i, const char* data, size_t length);

/* True if the array contains strings, with the capacity of its last dimension for each of n elements. */
HOIST_INTERNAL int hoist_has_room_for_parts(const hoist_host_array* output, uint64_t n);
HOIST_INTERNAL int hoist_no_room_for_parts(hoist_host_call* call, uint64_t element, const char* parts, uint64_t count,
                                           uint64_t room);

/* The character at p and its size in bytes; 0 if there is no valid UTF-8 at p. */
HOIST_INTERNAL size_t hoist_utf8_character(const unsigned char* p, size_t left, uint32_t* character);

#endif
