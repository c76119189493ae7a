/* Operations on strings. Strings are bytes; those that are no UTF-8 stay what they are. */
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

/* NULL where the element is no string of the table: what a kernel has computed may be any number. */
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

/* ---- one string for each ---- */

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
    const size_t length = a->length + b->length; /* of two that are at most 2^30 */
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

/* The character that begins here and how many bytes it takes; 0 bytes where no valid UTF-8 begins. */
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

/* Character by character, by the mappings of Unicode that the C library has; what is no UTF-8 stays as it is. */
static int change_case(hoist_host_call* call, int upper) {
  const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  if (!locale) {
    return errno == ENOMEM ? host_no_memory(call)
                           : host_fails(call, "the C library has no locale C.UTF-8, which says what letters are");
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
    const size_t most = 4 * from->length; /* of a letter of one byte may be one of four */
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

/* Inputs: strings, the delimiter, the largest number of splits or -1. */
static int takes_split_count(const hoist_host_call* call) {
  const uint64_t n = call->inputs[0].elements;
  return is_of(&call->inputs[0], HOIST_HOST_STRING, n) && is_of(&call->inputs[1], HOIST_HOST_STRING, 1) &&
         is_of(&call->inputs[2], HOIST_HOST_I64, 1) && is_of(call->output, HOIST_HOST_I64, n);
}

/* As many pieces of each string as the last dimension has room for. */
static int takes_split(const hoist_host_call* call) {
  const uint64_t n = call->inputs[0].elements;
  if (!is_of(&call->inputs[0], HOIST_HOST_STRING, n) || !is_of(&call->inputs[1], HOIST_HOST_STRING, 1) ||
      !is_of(&call->inputs[2], HOIST_HOST_I64, 1) || call->output->scalar != HOIST_HOST_STRING || !call->output->rank)
    return 0;
  const uint64_t room = (uint64_t)call->output->shape[call->output->rank - 1];
  return n && room ? call->output->elements / n == room && call->output->elements % n == 0 : !call->output->elements;
}

static int is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

typedef struct pieces {
  const char *at, *end;
  const hoist_string_entry* delimiter; /* empty: blanks, of which several are one, and none begins or ends a string */
  int64_t splits;                      /* that are left */
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
  }
  return HOIST_HOST_OK;
}

/* ---- regular expressions ---- */

static int takes_match(const hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  return is_of(&call->inputs[0], HOIST_HOST_STRING, n) && is_of(&call->inputs[1], HOIST_HOST_STRING, 1) &&
         is_of(call->output, HOIST_HOST_BOOL, n);
}

#ifdef HOIST_WITH_PCRE2
#define HOIST_PCRE2_MISSING 0

/* Without back-references and the like, which the syntax of RE2 has not: the matcher that follows all ways at once
 * refuses them, and no text makes it go back. */
static int match(hoist_host_call* call) {
  enum { workspace_size = 4096 };
  const hoist_string_entry* pattern = string_at(call, 1, 0);
  unsigned char* results = call->output->data;
  int code = 0;
  PCRE2_SIZE place = 0;
  if (!pattern) return HOIST_HOST_BAD_VALUE;
  pcre2_code* compiled =
      pcre2_compile((PCRE2_SPTR)pattern->data, pattern->length,
                    PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C,
                    &code, &place, NULL);
  if (!compiled) {
    if (code == PCRE2_ERROR_NOMEMORY) return host_no_memory(call);
    char why[160] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR*)why, sizeof why);
    snprintf(call->message, sizeof call->message, "the pattern is none: %s at byte %zu", why, (size_t)place);
    return HOIST_HOST_BAD_VALUE;
  }
  int status = HOIST_HOST_OK;
  pcre2_match_data* found = pcre2_match_data_create(1, NULL);
  int* workspace = malloc(workspace_size * sizeof *workspace);
  if (!found || !workspace) status = host_no_memory(call);
  for (uint64_t i = 0; i < call->output->elements && !status; ++i) {
    const hoist_string_entry* text = string_at(call, 0, i);
    if (!text) {
      status = HOIST_HOST_BAD_VALUE;
      break;
    }
    code =
        pcre2_dfa_match(compiled, (PCRE2_SPTR)text->data, text->length, 0, 0, found, NULL, workspace, workspace_size);
    /* Bytes that are no text match nothing. */
    const int is_text = !(code <= PCRE2_ERROR_UTF8_ERR1 && code >= PCRE2_ERROR_UTF8_ERR21);
    results[i] = code >= 0;
    if (code >= 0 || code == PCRE2_ERROR_NOMATCH || !is_text) continue;
    if (code == PCRE2_ERROR_NOMEMORY) {
      status = host_no_memory(call);
    } else {
      char why[160] = "";
      pcre2_get_error_message(code, (PCRE2_UCHAR*)why, sizeof why);
      snprintf(call->message, sizeof call->message, "the pattern cannot be matched: %s", why);
      status = HOIST_HOST_BAD_VALUE;
    }
  }
  free(workspace);
  pcre2_match_data_free(found);
  pcre2_code_free(compiled);
  return status;
}
#else
#define HOIST_PCRE2_MISSING 1

static int match(hoist_host_call* call) { return host_fails(call, "this program is built without PCRE2"); }
#endif

/* ---- numbers ---- */

static int takes_to_number(const hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  const int scalar = call->output->scalar;
  return is_of(&call->inputs[0], HOIST_HOST_STRING, n) && (scalar == HOIST_HOST_F64 || scalar == HOIST_HOST_I64);
}

/* As strtod and strtoll read them in the C locale, blanks around them left out. */
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

/* The fewest digits that read back as the same number. */
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
        /* Whatever the program's locale has for a point. */
        for (int k = 0; k < length; ++k) text[k] = text[k] == ',' ? '.' : text[k];
      }
    }
    const int status = put_string(call, i, text, (size_t)length);
    if (status) return status;
  }
  return HOIST_HOST_OK;
}

/* ---- the table ---- */

static const hoist_host_operator host_operators[] = {
    {"string_concat", "each string of the one array with that of the other behind it", 2, takes_concat, concat, "", "",
     0, NULL},
    {"string_lower", "letters small", 1, takes_case, to_lower, "", "", 0, NULL},
    {"string_upper", "letters capital", 1, takes_case, to_upper, "", "", 0, NULL},
    {"string_split", "the pieces of each string between delimiters, as many as there is room for", 3, takes_split,
     split, "", "", 0, NULL},
    {"string_split_count", "how many pieces each string has", 3, takes_split_count, split_count, "", "", 0, NULL},
    {"regex_full_match", "whether a regular expression fits the whole of each string", 2, takes_match, match,
     "libpcre2-8", "HOIST_WITH_PCRE2", HOIST_PCRE2_MISSING, NULL},
    {"string_to_number", "the number that each string writes", 1, takes_to_number, to_number, "", "", 0, NULL},
    {"number_to_string", "each number in the fewest digits that read back as the same", 1, takes_from_number,
     from_number, "", "", 0, NULL},
    {"picture_decode", "red, green and blue of the picture that a stream holds", 1, hoist_takes_picture,
     hoist_decode_picture, "libjpeg libpng libtiff-4 libwebp libopenjp2", "HOIST_WITH_PICTURES", HOIST_PICTURES_MISSING,
     hoist_seed_picture},
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
