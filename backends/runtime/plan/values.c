/* Scalar types and seeded values. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/plan/plan_file.h"

HOIST_INTERNAL hoist_status hoist_fail(hoist_error* error, hoist_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  error->status = status;
  return status;
}

int hoist_api_version(void) { return HOIST_API_VERSION; }

const char* hoist_status_name(hoist_status status) {
  switch (status) {
    case HOIST_OK:
      return "ok";
    case HOIST_BAD_ARGUMENT:
      return "bad argument";
    case HOIST_BAD_BUNDLE:
      return "bad bundle";
    case HOIST_NO_DEVICE:
      return "no device";
    case HOIST_DEVICE_ERROR:
      return "device error";
    case HOIST_OUT_OF_MEMORY:
      return "out of memory";
    case HOIST_MISMATCH:
      return "mismatch";
    case HOIST_BAD_EXTENT:
      return "bad extent";
    case HOIST_BAD_VALUE:
      return "bad value";
    case HOIST_BAD_SIZE:
      return "bad size";
    case HOIST_TOO_MANY_ITERATIONS:
      return "too many iterations";
  }
  return "unknown status";
}

static const hoist_scalar scalar_rows[HOIST_SCALAR_COUNT] = {
    {"bool", 8, 0, 0, 0, 0, 0, 0},       {"i4", 4, 0, 1, 0, 0, 0, 0},       {"u4", 4, 0, 0, 0, 0, 0, 0},
    {"i8", 8, 0, 1, 0, 0, 0, 0},         {"u8", 8, 0, 0, 0, 0, 0, 0},       {"i16", 16, 0, 1, 0, 0, 0, 0},
    {"u16", 16, 0, 0, 0, 0, 0, 0},       {"i32", 32, 0, 1, 0, 0, 0, 0},     {"u32", 32, 0, 0, 0, 0, 0, 0},
    {"i64", 64, 0, 1, 0, 0, 0, 0},       {"u64", 64, 0, 0, 0, 0, 0, 0},     {"f8e4m3fn", 8, 1, 1, 4, 3, 7, 1},
    {"f8e4m3fnuz", 8, 1, 1, 4, 3, 8, 2}, {"f8e5m2", 8, 1, 1, 5, 2, 15, 0},  {"f8e5m2fnuz", 8, 1, 1, 5, 2, 16, 2},
    {"bf16", 16, 1, 1, 8, 7, 127, 0},    {"f16", 16, 1, 1, 5, 10, 15, 0},   {"f32", 32, 1, 1, 8, 23, 127, 0},
    {"f64", 64, 1, 1, 11, 52, 1023, 0},  {"i2", 2, 0, 1, 0, 0, 0, 0},       {"u2", 2, 0, 0, 0, 0, 0, 0},
    {"f4e2m1", 4, 1, 1, 2, 1, 1, 3},     {"f8e8m0", 8, 1, 0, 8, 0, 127, 4}, {"string", 64, 0, 0, 0, 0, 0, 0},
};

HOIST_INTERNAL const hoist_scalar* hoist_scalar_row(int scalar) { return &scalar_rows[scalar]; }

HOIST_INTERNAL int hoist_scalar_named(const char* name) {
  for (int i = 0; i < HOIST_SCALAR_COUNT; ++i) {
    if (strcmp(scalar_rows[i].name, name) == 0) return i;
  }
  return -1;
}

HOIST_INTERNAL uint64_t hoist_load_bits(int scalar, const void* data, uint64_t index) {
  const unsigned char* bytes = data;
  const int bits = scalar_rows[scalar].bits;
  if (bits < 8) {
    const uint64_t each_byte = (uint64_t)(8 / bits);
    return (uint64_t)bytes[index / each_byte] >> (int)(index % each_byte) * bits & (((uint64_t)1 << bits) - 1);
  }
  uint64_t value = 0;
  const int width = bits / 8;
  bytes += index * (uint64_t)width;
  for (int i = 0; i < width; ++i) value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

HOIST_INTERNAL void hoist_store_bits(int scalar, void* data, uint64_t index, uint64_t value) {
  unsigned char* bytes = data;
  const int bits = scalar_rows[scalar].bits;
  if (bits < 8) {
    const uint64_t each_byte = (uint64_t)(8 / bits), mask = ((uint64_t)1 << bits) - 1;
    const int shift = (int)(index % each_byte) * bits;
    unsigned char* byte = bytes + index / each_byte;
    *byte = (unsigned char)((*byte & ~(mask << shift)) | (value & mask) << shift);
    return;
  }
  const int width = bits / 8;
  bytes += index * (uint64_t)width;
  for (int i = 0; i < width; ++i) bytes[i] = (unsigned char)(value >> (8 * i));
}

static double double_from_word(uint64_t word) {
  double value;
  memcpy(&value, &word, sizeof value);
  return value;
}

static uint64_t word_from_double(double value) {
  uint64_t word;
  memcpy(&word, &value, sizeof word);
  return word;
}

HOIST_INTERNAL double hoist_bits_to_double(int scalar, uint64_t bits) {
  const hoist_scalar* row = &scalar_rows[scalar];
  if (!row->is_float) {
    if (!row->is_signed) return (double)bits;
    const uint64_t sign = (uint64_t)1 << (row->bits - 1);
    return (double)(int64_t)((bits ^ sign) - sign);
  }
  if (row->finite == 4) return double_from_word(bits == 255 ? (uint64_t)0x7FF8 << 48 : (bits + 1023 - 127) << 52);
  const int m = row->mantissa_bits, e = row->exponent_bits;
  const uint64_t sign = bits >> (row->bits - 1) & 1;
  const uint64_t exponent = bits >> m & (((uint64_t)1 << e) - 1);
  const uint64_t mantissa = bits & (((uint64_t)1 << m) - 1);
  const int all_ones = exponent == ((uint64_t)1 << e) - 1;
  if (row->finite == 0 && all_ones) {
    return double_from_word(sign << 63 | (uint64_t)0x7FF << 52 |
                            (mantissa ? (uint64_t)1 << 51 | mantissa << (52 - m) : 0));
  }
  if ((row->finite == 1 && all_ones && mantissa == ((uint64_t)1 << m) - 1) ||
      (row->finite == 2 && sign && !exponent && !mantissa)) {
    return double_from_word((uint64_t)0x7FF8 << 48);
  }
  if (row->bits == 64) return double_from_word(bits);
  /* (1 or 0).mantissa * 2^(exponent - bias): the power of two is made from its bits, so no libm is needed. */
  const int power = (exponent ? (int)exponent : 1) - row->bias - m;
  const double whole = (double)(mantissa | (exponent ? (uint64_t)1 << m : 0));
  const double value = whole * double_from_word((uint64_t)(power + 1023) << 52);
  return sign ? -value : value;
}

/* For a finite number; rounds half to even. Values beyond the type's range become its infinity, or its largest value
 * if it has none. */
static uint64_t bits_from_double(const hoist_scalar* row, double value) {
  const uint64_t word = word_from_double(value);
  if (row->bits == 64) return word;
  if (row->bits == 32) {
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
  }
  if (row->finite == 4) { /* the power of two at or above the magnitude */
    const int power = (int)(word >> 52 & 0x7FF) + (word << 12 ? 1 : 0) - 1023 + 127;
    return (uint64_t)(power < 0 ? 0 : power > 254 ? 254 : power);
  }
  const int m = row->mantissa_bits;
  const uint64_t sign = (word >> 63) << (row->bits - 1);
  uint64_t largest = ((((uint64_t)1 << row->exponent_bits) - 1) << m) - (row->finite ? 0 : 1);
  if (row->finite == 1) largest |= ((uint64_t)1 << m) - 2;
  if (row->finite >= 2) largest |= ((uint64_t)1 << m) - 1;
  int exponent = (int)(word >> 52 & 0x7FF) - 1023;
  uint64_t code = 0;
  if (exponent > -1023) {
    const uint64_t mantissa = (word & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    const int smallest = 1 - row->bias;
    const int below = exponent < smallest ? smallest - exponent : 0;
    const int dropped = 52 - m + below;
    if (dropped < 54) {
      const uint64_t rest = mantissa & (((uint64_t)1 << dropped) - 1), half = (uint64_t)1 << (dropped - 1);
      code = mantissa >> dropped;
      if (rest > half || (rest == half && (code & 1))) ++code;
      /* A normal number's leading one adds 1 to the exponent field. */
      if (!below) code += (uint64_t)(exponent + row->bias - 1) << m;
    }
  }
  if (code > largest) code = row->finite ? largest : largest + 1;
  if (row->finite == 2 && code == 0) return 0;
  return sign | code;
}

HOIST_INTERNAL uint64_t hoist_number_bits(int scalar, double value) {
  const hoist_scalar* row = &scalar_rows[scalar];
  if (row->is_float) return bits_from_double(row, value);
  const int digits = row->bits - row->is_signed, negative = value < 0;
  const double end = double_from_word((uint64_t)(1023 + digits) << 52), size = negative ? -value : value;
  const uint64_t most = digits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << digits) - 1;
  if (negative && !row->is_signed) return 0;
  if (size >= end) return negative ? 0 - most - 1 : most;
  uint64_t whole = (uint64_t)size;
  const double rest = size - (double)whole;
  if (rest > 0.5 || (rest == 0.5 && whole % 2 == 1)) ++whole;
  if (whole > most && !negative) whole = most;
  return negative ? 0 - whole : whole;
}

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

HOIST_INTERNAL void hoist_seeded(int scalar, uint64_t seed, uint32_t parameter, double low, double high,
                                 uint64_t elements, void* data) {
  const hoist_scalar* row = &scalar_rows[scalar];
  const uint64_t step = 0x9E3779B97F4A7C15u;
  const uint64_t start = mix(seed + ((uint64_t)parameter + 1) * step);
  const double range = row->is_float ? high - low : high - low + 1;
  for (uint64_t i = 0; i < elements; ++i) {
    const double u = (double)(mix(start + (i + 1) * step) >> 11) * (1.0 / 9007199254740992.0);
    /* volatile: a compiler that contracts this to a fused multiply-add would give other bits. */
    volatile double scaled = u * range;
    uint64_t bits;
    if (row->is_float) {
      bits = bits_from_double(row, low + scaled);
    } else {
      uint64_t whole = (uint64_t)scaled;
      if (whole > 0 && (double)whole > high - low) --whole;
      bits = low < 0 ? (uint64_t)(int64_t)low + whole : (uint64_t)low + whole;
    }
    hoist_store_bits(scalar, data, i, bits);
  }
}

/* The definition is at seeded_extreme in ir/base/extremes.h. */
HOIST_INTERNAL void hoist_seeded_extremes(int scalar, uint64_t seed, uint32_t parameter, uint64_t one_in,
                                          unsigned which, uint64_t elements, void* data) {
  const hoist_scalar* row = &scalar_rows[scalar];
  const uint64_t step = 0x9E3779B97F4A7C15u;
  const uint64_t start = mix(seed + ((uint64_t)parameter + 1) * step + 1);
  const double extremes[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-40, -1e-40, 1e30, -1e30};
  const uint64_t nan = (((uint64_t)2 << row->exponent_bits) - 1) << (row->mantissa_bits ? row->mantissa_bits - 1 : 0);
  if (!row->is_float || row->bits < 16 || !one_in) return;
  for (uint64_t i = 0; i < elements; ++i) {
    const uint64_t random = mix(start + (i + 1) * step);
    const double value = extremes[random >> 61];
    if (random & (one_in - 1) || !(which >> (random >> 61) & 1)) continue;
    hoist_store_bits(scalar, data, i, value != value ? nan : bits_from_double(row, value));
  }
}

hoist_status hoist_seeded_fill(const char* scalar, uint64_t seed, uint32_t parameter, double low, double high,
                               uint64_t elements, void* data) {
  const int number = scalar ? hoist_scalar_named(scalar) : -1;
  if (number < 0 || !(low <= high) || (elements && !data)) return HOIST_BAD_ARGUMENT;
  hoist_seeded(number, seed, parameter, low, high, elements, data);
  return HOIST_OK;
}
