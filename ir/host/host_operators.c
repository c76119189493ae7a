/* Host operations on strings. Strings are bytes; invalid UTF-8 stays unchanged. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX: locales of a call */
#endif
#include "ir/host/host_operators.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "ir/host/host_boxes.h"
#include "ir/host/host_order.h"
#include "ir/host/host_pictures.h"

#ifdef HOIST_WITH_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

/* ---- reading and making strings ---- */

static int host_fails(hoist_host_call* call, const char* what) {
  snprintf(call->message, sizeof call->message, "%s", what);
  return HOIST_HOST_BAD_VALUE;
}

static int host_no_memory(hoist_host_call* call) {
  snprintf(call->message, sizeof call->message, "no memory for the strings");
  return HOIST_HOST_NO_MEMORY;
}

/* The entry of an element, or NULL if its handle is not in the table: handles that a kernel computed may be
 * arbitrary. */
static const hoist_string_entry* string_at(hoist_host_call* call, size_t input, uint64_t i) {
  const uint64_t* words = call->inputs[input].data;
  const hoist_string_entry* entry = hoist_string_find(call->strings, words[i]);
  if (!entry) {
    snprintf(call->message, sizeof call->message, "element %llu of input %zu holds no string", (unsigned long long)i,
             input);
  }
  return entry;
}

static int put_string(hoist_host_call* call, uint64_t i, const char* data, size_t length) {
  uint64_t* words = call->output->data;
  switch (hoist_string_add(call->strings, data, length, &words[i])) {
    case HOIST_STRING_KNOWN:
      return HOIST_HOST_OK;
    case HOIST_STRING_NO_MEMORY:
      return host_no_memory(call);
    case HOIST_STRING_TOO_LONG:
      snprintf(call->message, sizeof call->message, "a string of %zu bytes, the longest has %zu", length,
               HOIST_LONGEST_STRING);
      return HOIST_HOST_BAD_VALUE;
    default:
      return host_fails(call, "two strings have the same hash of 64 bits (change one of them by a character)");
  }
}

static int is_of(const hoist_host_array* array, int scalar, uint64_t elements) {
  return array->scalar == scalar && array->elements == elements;
}

/* ---- elementwise ---- */

static int takes_concat(const hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  return is_of(&call->inputs[0], HOIST_HOST_STRING, n) && is_of(&call->inputs[1], HOIST_HOST_STRING, n) &&
         is_of(call->output, HOIST_HOST_STRING, n);
}

static int concat(hoist_host_call* call) {
  char* buffer = NULL;
  size_t room = 0;
  int status = HOIST_HOST_OK;
  for (uint64_t i = 0; i < call->output->elements && !status; ++i) {
    const hoist_string_entry *a = string_at(call, 0, i), *b = a ? string_at(call, 1, i) : NULL;
    if (!b) {
      status = HOIST_HOST_BAD_VALUE;
      break;
    }
    const size_t length = a->length + b->length; /* both are at most 2^30 */
    if (length > room) {
      char* larger = realloc(buffer, 2 * length);
      if (!larger) {
        status = host_no_memory(call);
        break;
      }
      buffer = larger;
      room = 2 * length;
    }
    if (a->length) memcpy(buffer, a->data, a->length);
    if (b->length) memcpy(buffer + a->length, b->data, b->length);
    status = put_string(call, i, buffer, length);
  }
  free(buffer);
  return status;
}

static int takes_case(const hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  return is_of(&call->inputs[0], HOIST_HOST_STRING, n) && is_of(call->output, HOIST_HOST_STRING, n);
}

/* The character at p and its size in bytes; 0 if there is no valid UTF-8 at p. */
static size_t utf8_character(const unsigned char* p, size_t left, uint32_t* character) {
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

static size_t put_utf8(unsigned char* p, uint32_t c) {
  if (c < 0x80) {
    p[0] = (unsigned char)c;
    return 1;
  }
  const size_t bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = bytes; i-- > 1; c >>= 6) p[i] = (unsigned char)(0x80 | (c & 0x3F));
  p[0] = (unsigned char)((0xF00u >> bytes & 0xFF) | c);
  return bytes;
}

/* Per character, by the Unicode mappings of the C library; invalid UTF-8 stays unchanged. */
static int change_case(hoist_host_call* call, int upper) {
  const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  if (!locale) {
    return errno == ENOMEM ? host_no_memory(call)
                           : host_fails(call, "the C library has no locale C.UTF-8, which defines letters");
  }
  int status = HOIST_HOST_OK;
  unsigned char* buffer = NULL;
  size_t room = 0;
  for (uint64_t i = 0; i < call->output->elements && !status; ++i) {
    const hoist_string_entry* from = string_at(call, 0, i);
    if (!from) {
      status = HOIST_HOST_BAD_VALUE;
      break;
    }
    const size_t most = 4 * from->length; /* a letter of one byte may map to a letter of four */
    if (most > room) {
      unsigned char* larger = realloc(buffer, most);
      if (!larger) {
        status = host_no_memory(call);
        break;
      }
      buffer = larger;
      room = most;
    }
    const unsigned char* p = (const unsigned char*)from->data;
    size_t length = 0;
    for (size_t k = 0; k < from->length;) {
      uint32_t c = 0;
      const size_t bytes = utf8_character(p + k, from->length - k, &c);
      if (!bytes) {
        buffer[length++] = p[k++];
        continue;
      }
      k += bytes;
      const uint32_t other = (uint32_t)(upper ? towupper_l((wint_t)c, locale) : towlower_l((wint_t)c, locale));
      length += put_utf8(buffer + length, other <= 0x10FFFF ? other : c);
    }
    status = put_string(call, i, (const char*)buffer, length);
  }
  free(buffer);
  freelocale(locale);
  return status;
}

static int to_lower(hoist_host_call* call) { return change_case(call, 0); }
static int to_upper(hoist_host_call* call) { return change_case(call, 1); }

/* ---- pieces ---- */

/* Inputs: strings, the delimiter, the maximum number of splits or -1. */
static int takes_split_count(const hoist_host_call* call) {
  const uint64_t n = call->inputs[0].elements;
  return is_of(&call->inputs[0], HOIST_HOST_STRING, n) && is_of(&call->inputs[1], HOIST_HOST_STRING, 1) &&
         is_of(&call->inputs[2], HOIST_HOST_I64, 1) && is_of(call->output, HOIST_HOST_I64, n);
}

/* True if the array contains strings, with the capacity of its last dimension for each of n elements. */
static int has_room_for_parts(const hoist_host_array* output, uint64_t n) {
  if (output->scalar != HOIST_HOST_STRING || !output->rank) return 0;
  const uint64_t room = (uint64_t)output->shape[output->rank - 1];
  return n && room ? output->elements / n == room && output->elements % n == 0 : !output->elements;
}

static int no_room_for_parts(hoist_host_call* call, uint64_t element, const char* parts, uint64_t count,
                             uint64_t room) {
  snprintf(call->message, sizeof call->message,
           "element %llu has %llu %s, and the capacity is %llu (--bound string-pieces)", (unsigned long long)element,
           (unsigned long long)count, parts, (unsigned long long)room);
  return HOIST_HOST_NO_ROOM;
}

/* The output has as many pieces per string as its last dimension. */
static int takes_split(const hoist_host_call* call) {
  const uint64_t n = call->inputs[0].elements;
  return is_of(&call->inputs[0], HOIST_HOST_STRING, n) && is_of(&call->inputs[1], HOIST_HOST_STRING, 1) &&
         is_of(&call->inputs[2], HOIST_HOST_I64, 1) && has_room_for_parts(call->output, n);
}

static int is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

typedef struct pieces {
  const char *at, *end;
  const hoist_string_entry* delimiter; /* empty: any run of whitespace is a delimiter, and both ends are trimmed */
  int64_t splits;                      /* remaining */
  int over;
} pieces;

static pieces pieces_of(const hoist_string_entry* text, const hoist_string_entry* delimiter, int64_t splits) {
  const pieces all = {text->data, text->data + text->length, delimiter, splits, 0};
  return all;
}

static int next_piece(pieces* p, const char** piece, size_t* length) {
  if (p->over) return 0;
  const char* stop = NULL;
  size_t skipped = p->delimiter->length;
  if (!skipped) {
    while (p->at < p->end && is_blank(*p->at)) ++p->at;
    if (p->at == p->end) return 0;
    if (p->splits) {
      for (stop = p->at; stop < p->end && !is_blank(*stop);) ++stop;
      if (stop == p->end) stop = NULL;
    }
  } else if (p->splits) {
    stop = memmem(p->at, (size_t)(p->end - p->at), p->delimiter->data, skipped);
  }
  *piece = p->at;
  *length = (size_t)((stop ? stop : p->end) - p->at);
  p->over = !stop;
  if (!stop) return 1;
  p->at = stop + skipped;
  if (p->splits > 0) --p->splits;
  return 1;
}

static int split_count(hoist_host_call* call) {
  const hoist_string_entry* delimiter = string_at(call, 1, 0);
  const int64_t splits = *(const int64_t*)call->inputs[2].data;
  int64_t* counts = call->output->data;
  if (!delimiter) return HOIST_HOST_BAD_VALUE;
  for (uint64_t i = 0; i < call->output->elements; ++i) {
    const hoist_string_entry* text = string_at(call, 0, i);
    if (!text) return HOIST_HOST_BAD_VALUE;
    pieces all = pieces_of(text, delimiter, splits);
    const char* piece;
    size_t length;
    for (counts[i] = 0; next_piece(&all, &piece, &length);) ++counts[i];
  }
  return HOIST_HOST_OK;
}

static int split(hoist_host_call* call) {
  const hoist_string_entry* delimiter = string_at(call, 1, 0);
  const int64_t splits = *(const int64_t*)call->inputs[2].data;
  const uint64_t n = call->inputs[0].elements, room = n ? call->output->elements / n : 0;
  if (!delimiter) return HOIST_HOST_BAD_VALUE;
  for (uint64_t i = 0; i < n; ++i) {
    const hoist_string_entry* text = string_at(call, 0, i);
    if (!text) return HOIST_HOST_BAD_VALUE;
    pieces all = pieces_of(text, delimiter, splits);
    for (uint64_t k = 0; k < room; ++k) {
      const char* piece = "";
      size_t length = 0;
      if (!next_piece(&all, &piece, &length)) length = 0;
      const int status = put_string(call, i * room + k, piece, length);
      if (status) return status;
    }
    const char* beyond;
    size_t length;
    uint64_t count = room;
    while (next_piece(&all, &beyond, &length)) ++count;
    if (count > room) return no_room_for_parts(call, i, "pieces", count, room);
  }
  return HOIST_HOST_OK;
}

/* ---- regular expressions ---- */

static int takes_match(const hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  return is_of(&call->inputs[0], HOIST_HOST_STRING, n) && is_of(&call->inputs[1], HOIST_HOST_STRING, 1) &&
         is_of(call->output, HOIST_HOST_BOOL, n);
}

/* Inputs: strings; expressions, none if each character is a token; three integers: 1 if the expressions match
 * separators and 0 if the single expression matches tokens, the minimum number of characters per token, and 1 if the
 * tokens of a string are enclosed in two marks. */
static int takes_token_count(const hoist_host_call* call) {
  const uint64_t n = call->inputs[0].elements;
  return is_of(&call->inputs[0], HOIST_HOST_STRING, n) && call->inputs[1].scalar == HOIST_HOST_STRING &&
         is_of(&call->inputs[2], HOIST_HOST_I64, 3) && is_of(call->output, HOIST_HOST_I64, n);
}

/* Additional input: the string that pads the tokens; the output has as many strings per element as its last
 * dimension. */
static int takes_tokens(const hoist_host_call* call) {
  const uint64_t n = call->inputs[0].elements;
  if (!is_of(&call->inputs[0], HOIST_HOST_STRING, n) || call->inputs[1].scalar != HOIST_HOST_STRING ||
      !is_of(&call->inputs[2], HOIST_HOST_I64, 3) || !is_of(&call->inputs[3], HOIST_HOST_STRING, 1))
    return 0;
  return has_room_for_parts(call->output, n);
}

#ifdef HOIST_WITH_PCRE2
#define HOIST_PCRE2_MISSING 0

/* A compiled expression with the matcher's memory. The DFA matcher follows all alternatives in parallel and returns the
 * longest of the leftmost matches: it rejects back-references and other features that RE2's syntax does not have, and
 * it never backtracks. */
typedef struct expression {
  pcre2_code* code;
  pcre2_match_data* found;
  int* workspace;
} expression;

enum { workspace_size = 4096 };

static void forget_expression(expression* e) {
  free(e->workspace);
  pcre2_match_data_free(e->found);
  pcre2_code_free(e->code);
}

/* The caller has to free the expression whatever the status is. */
static int compile_expression(hoist_host_call* call, const hoist_string_entry* pattern, uint32_t options,
                              expression* e) {
  int code = 0;
  PCRE2_SIZE place = 0;
  memset(e, 0, sizeof *e);
  if (!pattern) return HOIST_HOST_BAD_VALUE;
  e->code = pcre2_compile((PCRE2_SPTR)pattern->data, pattern->length,
                          PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | options, &code, &place, NULL);
  if (!e->code) {
    if (code == PCRE2_ERROR_NOMEMORY) return host_no_memory(call);
    char why[160] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR*)why, sizeof why);
    snprintf(call->message, sizeof call->message, "the pattern is none: %s at byte %zu", why, (size_t)place);
    return HOIST_HOST_BAD_VALUE;
  }
  e->found = pcre2_match_data_create(1, NULL);
  e->workspace = malloc(workspace_size * sizeof *e->workspace);
  return e->found && e->workspace ? HOIST_HOST_OK : host_no_memory(call);
}

/* Searches the first match from the byte `start` on; sets *matches. */
static int search(hoist_host_call* call, const expression* e, const char* text, size_t length, size_t start,
                  int* matches) {
  const int code =
      pcre2_dfa_match(e->code, (PCRE2_SPTR)text, length, start, 0, e->found, NULL, e->workspace, workspace_size);
  /* Invalid UTF-8 matches nothing. */
  const int is_text = !(code <= PCRE2_ERROR_UTF8_ERR1 && code >= PCRE2_ERROR_UTF8_ERR21);
  *matches = code >= 0;
  if (code >= 0 || code == PCRE2_ERROR_NOMATCH || !is_text) return HOIST_HOST_OK;
  if (code == PCRE2_ERROR_NOMEMORY) return host_no_memory(call);
  char why[160] = "";
  pcre2_get_error_message(code, (PCRE2_UCHAR*)why, sizeof why);
  snprintf(call->message, sizeof call->message, "the pattern cannot be matched: %s", why);
  return HOIST_HOST_BAD_VALUE;
}

static int match(hoist_host_call* call) {
  unsigned char* results = call->output->data;
  expression e;
  int status = compile_expression(call, string_at(call, 1, 0), PCRE2_ANCHORED | PCRE2_ENDANCHORED, &e);
  for (uint64_t i = 0; i < call->output->elements && !status; ++i) {
    const hoist_string_entry* text = string_at(call, 0, i);
    int matches = 0;
    status = text ? search(call, &e, text->data, text->length, 0, &matches) : HOIST_HOST_BAD_VALUE;
    results[i] = (unsigned char)matches;
  }
  forget_expression(&e);
  return status;
}

/* ---- tokens ---- */

typedef struct span {
  size_t start, length;
} span;

typedef struct spans {
  span* all;
  size_t count, room;
} spans;

static int add_span(hoist_host_call* call, spans* list, size_t start, size_t length) {
  if (list->count == list->room) {
    const size_t room = list->room ? 2 * list->room : 64;
    span* larger = realloc(list->all, room * sizeof *larger);
    if (!larger) return host_no_memory(call);
    list->all = larger;
    list->room = room;
  }
  const span one = {start, length};
  list->all[list->count++] = one;
  return HOIST_HOST_OK;
}

typedef struct tokenizer {
  expression* expressions;
  size_t count; /* number of expressions; 0: each character is a token */
  int between;  /* the expressions match separators */
  int64_t least_characters;
  spans tokens, parts; /* of the current string */
} tokenizer;

static void forget_tokenizer(tokenizer* t) {
  for (size_t i = 0; i < t->count; ++i) forget_expression(&t->expressions[i]);
  free(t->expressions);
  free(t->tokens.all);
  free(t->parts.all);
}

/* The caller has to free the tokenizer whatever the status is. */
static int make_tokenizer(hoist_host_call* call, tokenizer* t) {
  const int64_t* settings = call->inputs[2].data;
  const size_t count = (size_t)call->inputs[1].elements;
  memset(t, 0, sizeof *t);
  t->between = settings[0] != 0;
  t->least_characters = settings[1];
  if (!count) return HOIST_HOST_OK;
  t->expressions = calloc(count, sizeof *t->expressions);
  if (!t->expressions) return host_no_memory(call);
  for (; t->count < count;) {
    const int status = compile_expression(call, string_at(call, 1, t->count), 0, &t->expressions[t->count]);
    ++t->count;
    if (status) return status;
  }
  return HOIST_HOST_OK;
}

static size_t character_at(const char* text, size_t length, size_t place) {
  uint32_t character;
  return place < length ? utf8_character((const unsigned char*)text + place, length - place, &character) : 1;
}

/* Adds a token if it has the minimum number of characters. */
static int add_token(hoist_host_call* call, const tokenizer* t, spans* list, const char* text, size_t start,
                     size_t length, int* added) {
  int64_t characters = 0;
  for (size_t k = 0; k < length; ++characters) k += character_at(text + start, length, k);
  const int stays = characters >= t->least_characters;
  if (added) *added = stays;
  return stays ? add_span(call, list, start, length) : HOIST_HOST_OK;
}

/* The text between matches. An empty match consumes the next character. */
static int split_by(hoist_host_call* call, const tokenizer* t, const expression* e, const char* text, span of,
                    spans* list) {
  size_t start = 0;
  int status = HOIST_HOST_OK;
  while (!status && start <= of.length) {
    int matches = 0;
    status = search(call, e, text + of.start, of.length, start, &matches);
    if (status) break;
    const PCRE2_SIZE* found = pcre2_get_ovector_pointer(e->found);
    const size_t end = matches ? found[0] : of.length, next = matches ? found[1] : of.length + 1;
    status = add_token(call, t, list, text, of.start + start, end - start, NULL);
    start = next > end ? next : end + character_at(text + of.start, of.length, end);
  }
  return status;
}

/* The matches. After a match that is too short, the search continues at its second character. */
static int find_all(hoist_host_call* call, const tokenizer* t, const char* text, size_t length, spans* list) {
  size_t start = 0;
  int status = HOIST_HOST_OK, matches = 1;
  while (start <= length) {
    status = search(call, &t->expressions[0], text, length, start, &matches);
    if (status || !matches) break;
    const PCRE2_SIZE* found = pcre2_get_ovector_pointer(t->expressions[0].found);
    int added = 0;
    status = add_token(call, t, list, text, found[0], found[1] - found[0], &added);
    if (status) break;
    start = added ? found[1] : found[0] + character_at(text, length, found[0]);
  }
  return status;
}

/* Computes the tokens of a string into t->tokens. */
static int tokens_of(hoist_host_call* call, tokenizer* t, uint64_t i, const hoist_string_entry** string) {
  const hoist_string_entry* entry = string_at(call, 0, i);
  if (!entry) return HOIST_HOST_BAD_VALUE;
  *string = entry;
  t->tokens.count = 0;
  int status = HOIST_HOST_OK;
  for (size_t k = 0; k < entry->length && !status;) {
    const size_t bytes = character_at(entry->data, entry->length, k);
    if (!bytes) {
      snprintf(call->message, sizeof call->message, "byte %zu of element %llu is no UTF-8", k, (unsigned long long)i);
      return HOIST_HOST_BAD_VALUE;
    }
    if (!t->count) status = add_span(call, &t->tokens, k, bytes);
    k += bytes;
  }
  if (!t->count || status) return status;
  if (!t->between) return find_all(call, t, entry->data, entry->length, &t->tokens);
  status = add_span(call, &t->tokens, 0, entry->length);
  for (size_t e = 0; e < t->count && !status; ++e) {
    const spans before = t->tokens;
    t->tokens = t->parts;
    t->parts = before;
    t->tokens.count = 0;
    for (size_t k = 0; k < before.count && !status; ++k)
      status = split_by(call, t, &t->expressions[e], entry->data, before.all[k], &t->tokens);
  }
  return status;
}

static int token_count(hoist_host_call* call) {
  int64_t* counts = call->output->data;
  tokenizer t;
  int status = make_tokenizer(call, &t);
  for (uint64_t i = 0; i < call->output->elements && !status; ++i) {
    const hoist_string_entry* string;
    status = tokens_of(call, &t, i, &string);
    counts[i] = (int64_t)t.tokens.count;
  }
  forget_tokenizer(&t);
  return status;
}

static int tokens(hoist_host_call* call) {
  const int marks = ((const int64_t*)call->inputs[2].data)[2] != 0;
  const uint64_t n = call->inputs[0].elements, room = n ? call->output->elements / n : 0;
  const hoist_string_entry* filler = string_at(call, 3, 0);
  if (!filler) return HOIST_HOST_BAD_VALUE;
  tokenizer t;
  int status = make_tokenizer(call, &t);
  for (uint64_t i = 0; i < n && !status; ++i) {
    const hoist_string_entry* string = NULL;
    status = tokens_of(call, &t, i, &string);
    const uint64_t count = t.tokens.count, first = marks ? 1 : 0, parts = count && marks ? count + 2 : count;
    if (!status && parts > room)
      status = no_room_for_parts(call, i, marks ? "tokens and marks" : "tokens", parts, room);
    for (uint64_t k = 0; k < room && !status; ++k) {
      if (marks && k == 0) {
        status = put_string(call, i * room + k, "\x02", 1);
      } else if (k - first < count) {
        const span token = t.tokens.all[k - first];
        status = put_string(call, i * room + k, string->data + token.start, token.length);
      } else if (marks && k - first == count) {
        status = put_string(call, i * room + k, "\x03", 1);
      } else {
        status = put_string(call, i * room + k, filler->data, filler->length);
      }
    }
  }
  forget_tokenizer(&t);
  return status;
}
#else
#define HOIST_PCRE2_MISSING 1

static int without_expressions(hoist_host_call* call) {
  return host_fails(call, "this program is built without PCRE2");
}
static int match(hoist_host_call* call) { return without_expressions(call); }
static int token_count(hoist_host_call* call) { return without_expressions(call); }
static int tokens(hoist_host_call* call) { return without_expressions(call); }
#endif

/* ---- numbers ---- */

static int takes_to_number(const hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  const int scalar = call->output->scalar;
  return is_of(&call->inputs[0], HOIST_HOST_STRING, n) && (scalar == HOIST_HOST_F64 || scalar == HOIST_HOST_I64);
}

/* The syntax of strtod and strtoll in the C locale; surrounding whitespace is ignored. */
static int to_number(hoist_host_call* call) {
  const locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!locale) return host_no_memory(call);
  int status = HOIST_HOST_OK;
  for (uint64_t i = 0; i < call->output->elements && !status; ++i) {
    const hoist_string_entry* text = string_at(call, 0, i);
    if (!text) {
      status = HOIST_HOST_BAD_VALUE;
      break;
    }
    char* end = NULL;
    errno = 0;
    if (call->output->scalar == HOIST_HOST_F64) {
      ((double*)call->output->data)[i] = strtod_l(text->data, &end, locale);
    } else {
      ((int64_t*)call->output->data)[i] = strtoll_l(text->data, &end, 10, locale);
    }
    const int is_beyond = errno == ERANGE && call->output->scalar == HOIST_HOST_I64;
    const char* rest = end;
    while (is_blank(*rest)) ++rest;
    if (end != text->data && rest == text->data + text->length && !is_beyond) continue;
    snprintf(call->message, sizeof call->message, "\"%.60s\" is no number%s", text->data,
             is_beyond ? " of 64 bits" : "");
    status = HOIST_HOST_BAD_VALUE;
  }
  freelocale(locale);
  return status;
}

static int takes_from_number(const hoist_host_call* call) {
  const int scalar = call->inputs[0].scalar;
  return is_of(call->output, HOIST_HOST_STRING, call->inputs[0].elements) &&
         (scalar == HOIST_HOST_F32 || scalar == HOIST_HOST_F64 || scalar == HOIST_HOST_I64);
}

/* The shortest decimal text that converts back to the same number. */
static int from_number(hoist_host_call* call) {
  const hoist_host_array* numbers = &call->inputs[0];
  for (uint64_t i = 0; i < numbers->elements; ++i) {
    char text[64];
    int length = 0;
    if (numbers->scalar == HOIST_HOST_I64) {
      length = snprintf(text, sizeof text, "%lld", (long long)((const int64_t*)numbers->data)[i]);
    } else {
      const int is_single = numbers->scalar == HOIST_HOST_F32;
      const double number = is_single ? (double)((const float*)numbers->data)[i] : ((const double*)numbers->data)[i];
      if (number != number) {
        length = snprintf(text, sizeof text, "NaN");
      } else if (number == HUGE_VAL || number == -HUGE_VAL) {
        length = snprintf(text, sizeof text, number > 0 ? "INF" : "-INF");
      } else {
        for (int digits = is_single ? 6 : 15; digits <= (is_single ? 9 : 17); ++digits) {
          length = snprintf(text, sizeof text, "%.*g", digits, number);
          const double back = strtod(text, NULL);
          if (is_single ? (float)back == (float)number : back == number) break;
        }
        /* The program's locale may have a comma as decimal separator. */
        for (int k = 0; k < length; ++k) text[k] = text[k] == ',' ? '.' : text[k];
      }
    }
    const int status = put_string(call, i, text, (size_t)length);
    if (status) return status;
  }
  return HOIST_HOST_OK;
}

/* ---- parts of arrays ---- */

static int takes_part(const hoist_host_call* call) {
  return is_of(&call->inputs[0], HOIST_HOST_I64, call->inputs[0].elements) &&
         is_of(call->output, HOIST_HOST_I64, call->output->elements) &&
         call->output->elements <= call->inputs[0].elements;
}

static int copy_from(hoist_host_call* call, uint64_t start) {
  const hoist_host_array* out = call->output;
  if (out->elements)
    memcpy(out->data, (const int64_t*)call->inputs[0].data + start, (size_t)out->elements * sizeof(int64_t));
  return HOIST_HOST_OK;
}

static int first_numbers(hoist_host_call* call) { return copy_from(call, 0); }

static int last_numbers(hoist_host_call* call) {
  return copy_from(call, call->inputs[0].elements - call->output->elements);
}

/* ---- the table ---- */

static const hoist_host_operator host_operators[] = {
    {"string_concat", "each string of the first array followed by the string of the second", 2, takes_concat, concat,
     "", "", 0, NULL},
    {"string_lower", "letters small", 1, takes_case, to_lower, "", "", 0, NULL},
    {"string_upper", "letters capital", 1, takes_case, to_upper, "", "", 0, NULL},
    {"string_split", "the pieces of each string between delimiters, up to the capacity", 3, takes_split, split, "", "",
     0, NULL},
    {"string_split_count", "the number of pieces of each string", 3, takes_split_count, split_count, "", "", 0, NULL},
    {"regex_full_match", "true for each string that a regular expression matches in whole", 2, takes_match, match,
     "libpcre2-8", "HOIST_WITH_PCRE2", HOIST_PCRE2_MISSING, NULL},
    {"string_tokens", "the tokens of each string by regular expressions, up to the capacity", 4, takes_tokens, tokens,
     "libpcre2-8", "HOIST_WITH_PCRE2", HOIST_PCRE2_MISSING, NULL},
    {"string_token_count", "the number of tokens of each string", 3, takes_token_count, token_count, "libpcre2-8",
     "HOIST_WITH_PCRE2", HOIST_PCRE2_MISSING, NULL},
    {"string_to_number", "the number that each string writes", 1, takes_to_number, to_number, "", "", 0, NULL},
    {"number_to_string", "each number in the fewest digits that read back as the same", 1, takes_from_number,
     from_number, "", "", 0, NULL},
    {"picture_decode", "red, green and blue of an encoded image", 1, hoist_takes_picture, hoist_decode_picture,
     "libjpeg libpng libtiff-4 libwebp libopenjp2", "HOIST_WITH_PICTURES", HOIST_PICTURES_MISSING, hoist_seed_picture},
    {"boxes_apart", "for each image and class the boxes with the highest scores that do not overlap, and their number",
     6, hoist_takes_boxes, hoist_choose_boxes, "", "", 0, NULL},
    {"largest_places", "the places of the largest keys of each row, in order", 1, hoist_takes_keys,
     hoist_choose_largest, "", "", 0, NULL},
    {"first_numbers", "the integers at the start of an array, up to the capacity", 1, takes_part, first_numbers, "", "",
     0, NULL},
    {"last_numbers", "the integers at the end of an array, up to the capacity", 1, takes_part, last_numbers, "", "", 0,
     NULL},
};

HOIST_INTERNAL const hoist_host_operator* hoist_host_operator_named(const char* name) {
  for (size_t i = 0; i < sizeof host_operators / sizeof *host_operators; ++i) {
    if (strcmp(host_operators[i].name, name) == 0) return &host_operators[i];
  }
  return NULL;
}

HOIST_INTERNAL int hoist_host_takes(const hoist_host_operator* row, const hoist_host_call* call) {
  return call->input_count == row->input_count && row->takes(call);
}
