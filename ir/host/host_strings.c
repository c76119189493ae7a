/* Strings by their handles, and the hash that computes handles; the hash also detects damaged files. */
#include "ir/host/host_strings.h"

#include <stdlib.h>
#include <string.h>

/* XXH64 after the xxHash specification, "doc/xxhash_spec.md", version 0.1.1, seed 0. */
static const uint64_t prime1 = 0x9E3779B185EBCA87u, prime2 = 0xC2B2AE3D27D4EB4Fu, prime3 = 0x165667B19E3779F9u,
                      prime4 = 0x85EBCA77C2B2AE63u, prime5 = 0x27D4EB2F165667C5u;

static uint64_t rotate_left(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static uint64_t little64(const unsigned char* p) {
  return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
         (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

static uint64_t hash_round(uint64_t accumulator, uint64_t lane) {
  return rotate_left(accumulator + lane * prime2, 31) * prime1;
}

static uint64_t hash_merge(uint64_t accumulator, uint64_t lane) {
  return (accumulator ^ hash_round(0, lane)) * prime1 + prime4;
}

HOIST_INTERNAL void hoist_hash_begin(hoist_hash_state* state) {
  *state = (hoist_hash_state){{prime1 + prime2, prime2, 0, 0 - prime1}, 0};
}

HOIST_INTERNAL void hoist_hash_blocks(hoist_hash_state* state, const void* data, size_t blocks) {
  const unsigned char* p = data;
  uint64_t lanes[4];
  memcpy(lanes, state->lanes, sizeof lanes);
  for (const unsigned char* end = p + blocks * HOIST_HASH_BLOCK; p < end; p += HOIST_HASH_BLOCK) {
    for (int i = 0; i < 4; ++i) lanes[i] = hash_round(lanes[i], little64(p + 8 * i));
  }
  memcpy(state->lanes, lanes, sizeof lanes);
  state->bytes += blocks * HOIST_HASH_BLOCK;
}

HOIST_INTERNAL uint64_t hoist_hash_end(hoist_hash_state* state, const void* data, size_t bytes) {
  const unsigned char* p = data;
  const unsigned char* end = p + bytes;
  const size_t blocks = bytes / HOIST_HASH_BLOCK;
  hoist_hash_blocks(state, p, blocks);
  p += blocks * HOIST_HASH_BLOCK;
  const uint64_t* lanes = state->lanes;
  uint64_t hash = prime5;
  if (state->bytes > 0) {
    hash = rotate_left(lanes[0], 1) + rotate_left(lanes[1], 7) + rotate_left(lanes[2], 12) + rotate_left(lanes[3], 18);
    for (int i = 0; i < 4; ++i) hash = hash_merge(hash, lanes[i]);
  }
  hash += state->bytes + (uint64_t)(end - p);
  for (; end - p >= 8; p += 8) hash = rotate_left(hash ^ hash_round(0, little64(p)), 27) * prime1 + prime4;
  if (end - p >= 4) {
    const uint64_t lane = little64((const unsigned char[8]){p[0], p[1], p[2], p[3], 0, 0, 0, 0});
    hash = rotate_left(hash ^ lane * prime1, 23) * prime2 + prime3;
    p += 4;
  }
  for (; p < end; ++p) hash = rotate_left(hash ^ *p * prime5, 11) * prime1;
  hash = (hash ^ hash >> 33) * prime2;
  hash = (hash ^ hash >> 29) * prime3;
  return hash ^ hash >> 32;
}

HOIST_INTERNAL uint64_t hoist_hash(const void* data, size_t bytes) {
  hoist_hash_state state;
  hoist_hash_begin(&state);
  return hoist_hash_end(&state, data, bytes);
}

/* ---- the table ---- */

static const hoist_string_entry empty_string = {0, 0, ""};

static size_t slot_of_word(const hoist_string_table* table, uint64_t word) {
  size_t slot = (size_t)word & (table->slot_count - 1);
  while (table->slots[slot] && table->entries[table->slots[slot] - 1]->word != word)
    slot = (slot + 1) & (table->slot_count - 1);
  return slot;
}

HOIST_INTERNAL const hoist_string_entry* hoist_string_find(const hoist_string_table* table, uint64_t word) {
  if (!word) return &empty_string;
  if (!table->slot_count) return NULL;
  const uint32_t number = table->slots[slot_of_word(table, word)];
  return number ? table->entries[number - 1] : NULL;
}

static void fill_slots(hoist_string_table* table) {
  memset(table->slots, 0, table->slot_count * sizeof *table->slots);
  for (size_t i = 0; i < table->count; ++i)
    table->slots[slot_of_word(table, table->entries[i]->word)] = (uint32_t)(i + 1);
}

/* Ensures capacity for one more entry, and twice as many slots as entries. */
static int grow_strings(hoist_string_table* table) {
  if (table->count < table->room) return 1;
  const size_t room = table->room ? 2 * table->room : 64;
  if (room > (size_t)1 << 30) return 0;
  hoist_string_entry** entries = realloc(table->entries, room * sizeof *entries);
  if (!entries) return 0;
  table->entries = entries;
  uint32_t* slots = malloc(2 * room * sizeof *slots);
  if (!slots) return 0;
  free(table->slots);
  table->slots = slots;
  table->slot_count = 2 * room;
  table->room = room;
  fill_slots(table);
  return 1;
}

HOIST_INTERNAL int hoist_string_add(hoist_string_table* table, const char* data, size_t length, uint64_t* word) {
  *word = 0;
  if (!length) return HOIST_STRING_KNOWN;
  if (length > HOIST_LONGEST_STRING) return HOIST_STRING_TOO_LONG;
  const uint64_t hash = hoist_hash(data, length);
  if (!hash) return HOIST_STRING_MEETS_ANOTHER;
  const hoist_string_entry* known = hoist_string_find(table, hash);
  if (known && (known->length != length || memcmp(known->data, data, length) != 0)) return HOIST_STRING_MEETS_ANOTHER;
  *word = hash;
  if (known) return HOIST_STRING_KNOWN;
  hoist_string_entry* entry = malloc(sizeof *entry + length + 1);
  if (!entry || !grow_strings(table)) {
    free(entry);
    return HOIST_STRING_NO_MEMORY;
  }
  char* bytes = (char*)(entry + 1);
  memcpy(bytes, data, length);
  bytes[length] = 0;
  entry->word = hash;
  entry->length = length;
  entry->data = bytes;
  table->slots[slot_of_word(table, hash)] = (uint32_t)(table->count + 1);
  table->entries[table->count++] = entry;
  return HOIST_STRING_KNOWN;
}

HOIST_INTERNAL void hoist_strings_keep(hoist_string_table* table) { table->kept = table->count; }

HOIST_INTERNAL void hoist_strings_forget(hoist_string_table* table) {
  if (table->count == table->kept) return;
  while (table->count > table->kept) free(table->entries[--table->count]);
  fill_slots(table);
}

HOIST_INTERNAL void hoist_strings_free(hoist_string_table* table) {
  table->kept = 0;
  if (table->slots) hoist_strings_forget(table);
  free(table->entries);
  free(table->slots);
  memset(table, 0, sizeof *table);
}
