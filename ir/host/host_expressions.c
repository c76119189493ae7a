#include "ir/host/host_expressions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/host/host_calls.h"

HOIST_INTERNAL int hoist_takes_match(const hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  return hoist_array_is(&call->inputs[0], HOIST_HOST_STRING, n) &&
         hoist_array_is(&call->inputs[1], HOIST_HOST_STRING, 1) && hoist_array_is(call->output, HOIST_HOST_BOOL, n);
}

HOIST_INTERNAL int hoist_takes_token_count(const hoist_host_call* call) {
  const uint64_t n = call->inputs[0].elements;
  return hoist_array_is(&call->inputs[0], HOIST_HOST_STRING, n) && call->inputs[1].scalar == HOIST_HOST_STRING &&
         hoist_array_is(&call->inputs[2], HOIST_HOST_I64, 3) && hoist_array_is(call->output, HOIST_HOST_I64, n);
}

HOIST_INTERNAL int hoist_takes_tokens(const hoist_host_call* call) {
  const uint64_t n = call->inputs[0].elements;
  if (!hoist_array_is(&call->inputs[0], HOIST_HOST_STRING, n) || call->inputs[1].scalar != HOIST_HOST_STRING ||
      !hoist_array_is(&call->inputs[2], HOIST_HOST_I64, 3) || !hoist_array_is(&call->inputs[3], HOIST_HOST_STRING, 1))
    return 0;
  return hoist_has_room_for_parts(call->output, n);
}

#ifdef HOIST_WITH_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

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
    if (code == PCRE2_ERROR_NOMEMORY) return hoist_host_no_memory(call);
    char why[160] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR*)why, sizeof why);
    snprintf(call->message, sizeof call->message, "the pattern is invalid: %s at byte %zu", why, (size_t)place);
    return HOIST_HOST_BAD_VALUE;
  }
  e->found = pcre2_match_data_create(1, NULL);
  e->workspace = malloc(workspace_size * sizeof *e->workspace);
  return e->found && e->workspace ? HOIST_HOST_OK : hoist_host_no_memory(call);
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
  if (code == PCRE2_ERROR_NOMEMORY) return hoist_host_no_memory(call);
  char why[160] = "";
  pcre2_get_error_message(code, (PCRE2_UCHAR*)why, sizeof why);
  snprintf(call->message, sizeof call->message, "the pattern cannot be matched: %s", why);
  return HOIST_HOST_BAD_VALUE;
}

HOIST_INTERNAL int hoist_match_strings(hoist_host_call* call) {
  unsigned char* results = call->output->data;
  expression e;
  int status = compile_expression(call, hoist_string_at(call, 1, 0), PCRE2_ANCHORED | PCRE2_ENDANCHORED, &e);
  for (uint64_t i = 0; i < call->output->elements && !status; ++i) {
    const hoist_string_entry* text = hoist_string_at(call, 0, i);
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
    if (!larger) return hoist_host_no_memory(call);
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
  spans tokens, parts; /* tokens and parts of the current string */
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
  if (!t->expressions) return hoist_host_no_memory(call);
  for (; t->count < count;) {
    const int status = compile_expression(call, hoist_string_at(call, 1, t->count), 0, &t->expressions[t->count]);
    ++t->count;
    if (status) return status;
  }
  return HOIST_HOST_OK;
}

static size_t character_at(const char* text, size_t length, size_t place) {
  uint32_t character;
  return place < length ? hoist_utf8_character((const unsigned char*)text + place, length - place, &character) : 1;
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
  const hoist_string_entry* entry = hoist_string_at(call, 0, i);
  if (!entry) return HOIST_HOST_BAD_VALUE;
  *string = entry;
  t->tokens.count = 0;
  int status = HOIST_HOST_OK;
  for (size_t k = 0; k < entry->length && !status;) {
    const size_t bytes = character_at(entry->data, entry->length, k);
    if (!bytes) {
      snprintf(call->message, sizeof call->message, "byte %zu of element %llu is not valid UTF-8", k,
               (unsigned long long)i);
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

HOIST_INTERNAL int hoist_count_tokens(hoist_host_call* call) {
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

HOIST_INTERNAL int hoist_make_tokens(hoist_host_call* call) {
  const int marks = ((const int64_t*)call->inputs[2].data)[2] != 0;
  const uint64_t n = call->inputs[0].elements, room = n ? call->output->elements / n : 0;
  const hoist_string_entry* filler = hoist_string_at(call, 3, 0);
  if (!filler) return HOIST_HOST_BAD_VALUE;
  tokenizer t;
  int status = make_tokenizer(call, &t);
  for (uint64_t i = 0; i < n && !status; ++i) {
    const hoist_string_entry* string = NULL;
    status = tokens_of(call, &t, i, &string);
    const uint64_t count = t.tokens.count, first = marks ? 1 : 0, parts = count && marks ? count + 2 : count;
    if (!status && parts > room)
      status = hoist_no_room_for_parts(call, i, marks ? "tokens and marks" : "tokens", parts, room);
    for (uint64_t k = 0; k < room && !status; ++k) {
      if (marks && k == 0) {
        status = hoist_string_put(call, i * room + k, "\x02", 1);
      } else if (k - first < count) {
        const span token = t.tokens.all[k - first];
        status = hoist_string_put(call, i * room + k, string->data + token.start, token.length);
      } else if (marks && k - first == count) {
        status = hoist_string_put(call, i * room + k, "\x03", 1);
      } else {
        status = hoist_string_put(call, i * room + k, filler->data, filler->length);
      }
    }
  }
  forget_tokenizer(&t);
  return status;
}
#else
static int without_expressions(hoist_host_call* call) {
  return hoist_host_fails(call, "this program is built without PCRE2");
}
HOIST_INTERNAL int hoist_match_strings(hoist_host_call* call) { return without_expressions(call); }
HOIST_INTERNAL int hoist_count_tokens(hoist_host_call* call) { return without_expressions(call); }
HOIST_INTERNAL int hoist_make_tokens(hoist_host_call* call) { return without_expressions(call); }
#endif
