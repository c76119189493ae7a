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
#include "ir/host/host_calls.h"
#include "ir/host/host_expressions.h"
#include "ir/host/host_images.h"
#include "ir/host/host_order.h"

/* ---- elementwise ---- */

static int takes_concat(const hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  return hoist_array_is(&call->inputs[0], HOIST_HOST_STRING, n) &&
         hoist_array_is(&call->inputs[1], HOIST_HOST_STRING, n) && hoist_array_is(call->output, HOIST_HOST_STRING, n);
}

static int concat(hoist_host_call* call) {
  char* buffer = NULL;
  size_t room = 0;
  int status = HOIST_HOST_OK;
  for (uint64_t i = 0; i < call->output->elements && !status; ++i) {
    const hoist_string_entry *a = hoist_string_at(call, 0, i), *b = a ? hoist_string_at(call, 1, i) : NULL;
    if (!b) {
      status = HOIST_HOST_BAD_VALUE;
      break;
    }
    const size_t length = a->length + b->length; /* both are at most 2^30 */
    if (length > room) {
      char* larger = realloc(buffer, 2 * length);
      if (!larger) {
        status = hoist_host_no_memory(call);
        break;
      }
      buffer = larger;
      room = 2 * length;
    }
    if (a->length) memcpy(buffer, a->data, a->length);
    if (b->length) memcpy(buffer + a->length, b->data, b->length);
    status = hoist_string_put(call, i, buffer, length);
  }
  free(buffer);
  return status;
}

static int takes_case(const hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  return hoist_array_is(&call->inputs[0], HOIST_HOST_STRING, n) && hoist_array_is(call->output, HOIST_HOST_STRING, n);
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
    return errno == ENOMEM ? hoist_host_no_memory(call)
                           : hoist_host_fails(call, "the C library has no locale C.UTF-8, which defines letters");
  }
  int status = HOIST_HOST_OK;
  unsigned char* buffer = NULL;
  size_t room = 0;
  for (uint64_t i = 0; i < call->output->elements && !status; ++i) {
    const hoist_string_entry* from = hoist_string_at(call, 0, i);
    if (!from) {
      status = HOIST_HOST_BAD_VALUE;
      break;
    }
    const size_t most = 4 * from->length; /* a letter of one byte may map to a letter of four */
    if (most > room) {
      unsigned char* larger = realloc(buffer, most);
      if (!larger) {
        status = hoist_host_no_memory(call);
        break;
      }
      buffer = larger;
      room = most;
    }
    const unsigned char* p = (const unsigned char*)from->data;
    size_t length = 0;
    for (size_t k = 0; k < from->length;) {
      uint32_t c = 0;
      const size_t bytes = hoist_utf8_character(p + k, from->length - k, &c);
      if (!bytes) {
        buffer[length++] = p[k++];
        continue;
      }
      k += bytes;
      const uint32_t other = (uint32_t)(upper ? towupper_l((wint_t)c, locale) : towlower_l((wint_t)c, locale));
      length += put_utf8(buffer + length, other <= 0x10FFFF ? other : c);
    }
    status = hoist_string_put(call, i, (const char*)buffer, length);
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
  return hoist_array_is(&call->inputs[0], HOIST_HOST_STRING, n) &&
         hoist_array_is(&call->inputs[1], HOIST_HOST_STRING, 1) &&
         hoist_array_is(&call->inputs[2], HOIST_HOST_I64, 1) && hoist_array_is(call->output, HOIST_HOST_I64, n);
}

/* The output has as many pieces per string as its last dimension. */
static int takes_split(const hoist_host_call* call) {
  const uint64_t n = call->inputs[0].elements;
  return hoist_array_is(&call->inputs[0], HOIST_HOST_STRING, n) &&
         hoist_array_is(&call->inputs[1], HOIST_HOST_STRING, 1) &&
         hoist_array_is(&call->inputs[2], HOIST_HOST_I64, 1) && hoist_has_room_for_parts(call->output, n);
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
  const hoist_string_entry* delimiter = hoist_string_at(call, 1, 0);
  const int64_t splits = *(const int64_t*)call->inputs[2].data;
  int64_t* counts = call->output->data;
  if (!delimiter) return HOIST_HOST_BAD_VALUE;
  for (uint64_t i = 0; i < call->output->elements; ++i) {
    const hoist_string_entry* text = hoist_string_at(call, 0, i);
    if (!text) return HOIST_HOST_BAD_VALUE;
    pieces all = pieces_of(text, delimiter, splits);
    const char* piece;
    size_t length;
    for (counts[i] = 0; next_piece(&all, &piece, &length);) ++counts[i];
  }
  return HOIST_HOST_OK;
}

static int split(hoist_host_call* call) {
  const hoist_string_entry* delimiter = hoist_string_at(call, 1, 0);
  const int64_t splits = *(const int64_t*)call->inputs[2].data;
  const uint64_t n = call->inputs[0].elements, room = n ? call->output->elements / n : 0;
  if (!delimiter) return HOIST_HOST_BAD_VALUE;
  for (uint64_t i = 0; i < n; ++i) {
    const hoist_string_entry* text = hoist_string_at(call, 0, i);
    if (!text) return HOIST_HOST_BAD_VALUE;
    pieces all = pieces_of(text, delimiter, splits);
    for (uint64_t k = 0; k < room; ++k) {
      const char* piece = "";
      size_t length = 0;
      if (!next_piece(&all, &piece, &length)) length = 0;
      const int status = hoist_string_put(call, i * room + k, piece, length);
      if (status) return status;
    }
    const char* beyond;
    size_t length;
    uint64_t count = room;
    while (next_piece(&all, &beyond, &length)) ++count;
    if (count > room) return hoist_no_room_for_parts(call, i, "pieces", count, room);
  }
  return HOIST_HOST_OK;
}

/* ---- numbers ---- */

static int takes_to_number(const hoist_host_call* call) {
  const uint64_t n = call->output->elements;
  const int scalar = call->output->scalar;
  return hoist_array_is(&call->inputs[0], HOIST_HOST_STRING, n) &&
         (scalar == HOIST_HOST_F64 || scalar == HOIST_HOST_I64);
}

/* The syntax of strtod and strtoll in the C locale; surrounding whitespace is ignored. */
static int to_number(hoist_host_call* call) {
  const locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!locale) return hoist_host_no_memory(call);
  int status = HOIST_HOST_OK;
  for (uint64_t i = 0; i < call->output->elements && !status; ++i) {
    const hoist_string_entry* text = hoist_string_at(call, 0, i);
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
    snprintf(call->message, sizeof call->message, "\"%.60s\" is not a number%s", text->data,
             is_beyond ? " of 64 bits" : "");
    status = HOIST_HOST_BAD_VALUE;
  }
  freelocale(locale);
  return status;
}

static int takes_from_number(const hoist_host_call* call) {
  const int scalar = call->inputs[0].scalar;
  return hoist_array_is(call->output, HOIST_HOST_STRING, call->inputs[0].elements) &&
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
    const int status = hoist_string_put(call, i, text, (size_t)length);
    if (status) return status;
  }
  return HOIST_HOST_OK;
}

/* ---- parts of arrays ---- */

static int takes_part(const hoist_host_call* call) {
  return hoist_array_is(&call->inputs[0], HOIST_HOST_I64, call->inputs[0].elements) &&
         hoist_array_is(call->output, HOIST_HOST_I64, call->output->elements) &&
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
    {"regex_full_match", "true for each string that a regular expression matches in whole", 2, hoist_takes_match,
     hoist_match_strings, "libpcre2-8", "HOIST_WITH_PCRE2", HOIST_PCRE2_MISSING, NULL},
    {"string_tokens", "the tokens of each string by regular expressions, up to the capacity", 4, hoist_takes_tokens,
     hoist_make_tokens, "libpcre2-8", "HOIST_WITH_PCRE2", HOIST_PCRE2_MISSING, NULL},
    {"string_token_count", "the number of tokens of each string", 3, hoist_takes_token_count, hoist_count_tokens,
     "libpcre2-8", "HOIST_WITH_PCRE2", HOIST_PCRE2_MISSING, NULL},
    {"string_to_number", "the number that each string represents", 1, takes_to_number, to_number, "", "", 0, NULL},
    {"number_to_string", "each number in the fewest digits that read back as the same", 1, takes_from_number,
     from_number, "", "", 0, NULL},
    {"picture_decode", "red, green and blue of an encoded image", 1, hoist_takes_image, hoist_decode_image,
     "libjpeg libpng libtiff-4 libwebp libopenjp2", "HOIST_WITH_PICTURES", HOIST_PICTURES_MISSING, hoist_seed_image},
    {"boxes_apart", "for each image and class the boxes with the highest scores that do not overlap, and their number",
     6, hoist_takes_boxes, hoist_choose_boxes, "", "", 0, NULL},
    {"largest_places", "the places of the largest keys of each row, in order", 1, hoist_takes_keys,
     hoist_choose_largest, "", "", 0, NULL},
    {"string_ranks", "the number of different strings before each string, in the order of their bytes", 1,
     hoist_takes_ranks, hoist_rank_strings, "", "", 0, NULL},
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
