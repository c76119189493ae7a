#include "ir/host/host_calls.h"

#include <stdio.h>

HOIST_INTERNAL int hoist_host_fails(hoist_host_call* call, const char* what) {
  snprintf(call->message, sizeof call->message, "%s", what);
  return HOIST_HOST_BAD_VALUE;
}

HOIST_INTERNAL int hoist_host_no_memory(hoist_host_call* call) {
  snprintf(call->message, sizeof call->message, "no memory for the strings");
  return HOIST_HOST_NO_MEMORY;
}

HOIST_INTERNAL const hoist_string_entry* hoist_string_at(hoist_host_call* call, size_t input, uint64_t i) {
  const uint64_t* words = call->inputs[input].data;
  const hoist_string_entry* entry = hoist_string_find(call->strings, words[i]);
  if (!entry) {
    snprintf(call->message, sizeof call->message, "element %llu of input %zu holds no string", (unsigned long long)i,
             input);
  }
  return entry;
}

HOIST_INTERNAL int hoist_string_put(hoist_host_call* call, uint64_t i, const char* data, size_t length) {
  uint64_t* words = call->output->data;
  switch (hoist_string_add(call->strings, data, length, &words[i])) {
    case HOIST_STRING_KNOWN:
      return HOIST_HOST_OK;
    case HOIST_STRING_NO_MEMORY:
      return hoist_host_no_memory(call);
    case HOIST_STRING_TOO_LONG:
      snprintf(call->message, sizeof call->message, "a string of %zu bytes, the longest has %zu", length,
               HOIST_LONGEST_STRING);
      return HOIST_HOST_BAD_VALUE;
    default:
      return hoist_host_fails(call, "two strings have the same hash of 64 bits (change one of them by a character)");
  }
}

HOIST_INTERNAL int hoist_array_is(const hoist_host_array* array, int scalar, uint64_t elements) {
  return array->scalar == scalar && array->elements == elements;
}

HOIST_INTERNAL int hoist_has_room_for_parts(const hoist_host_array* output, uint64_t n) {
  if (output->scalar != HOIST_HOST_STRING || !output->rank) return 0;
  const uint64_t room = (uint64_t)output->shape[output->rank - 1];
  return n && room ? output->elements / n == room && output->elements % n == 0 : !output->elements;
}

HOIST_INTERNAL int hoist_no_room_for_parts(hoist_host_call* call, uint64_t element, const char* parts, uint64_t count,
                                           uint64_t room) {
  snprintf(call->message, sizeof call->message,
           "element %llu has %llu %s, and the capacity is %llu (--bound string-pieces)", (unsigned long long)element,
           (unsigned long long)count, parts, (unsigned long long)room);
  return HOIST_HOST_NO_ROOM;
}

HOIST_INTERNAL size_t hoist_utf8_character(const unsigned char* p, size_t left, uint32_t* character) {
  const uint32_t first = p[0];
  const size_t bytes = first < 0x80                    ? 1
                       : first >= 0xC2 && first < 0xE0 ? 2
                       : first >= 0xE0 && first < 0xF0 ? 3
                       : first >= 0xF0 && first < 0xF5 ? 4
                                                       : 0;
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (!bytes || bytes > left) return 0;
  uint32_t c = bytes == 1 ? first : first & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((p[i] & 0xC0) != 0x80) return 0;
    c = c << 6 | (p[i] & 0x3Fu);
  }
  if (c < least[bytes] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 0;
  *character = c;
  return bytes;
}
