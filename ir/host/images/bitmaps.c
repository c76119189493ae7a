/* BMP and PNM images: arrays after a header, decoded without a library. */
#include "ir/host/images/encoded_image.h"

#ifdef HOIST_WITH_PICTURES
#include <string.h>

typedef struct bmp_channel {
  uint32_t mask;
  int shift;
} bmp_channel;

static bmp_channel bmp_channel_of(uint32_t mask) {
  bmp_channel out = {mask, 0};
  while (out.mask && !(out.mask & 1)) {
    out.mask >>= 1;
    ++out.shift;
  }
  return out;
}

HOIST_INTERNAL int hoist_decode_bmp(encoded_image* p) {
  const unsigned char* s = p->stream;
  if (p->bytes < 26) return hoist_image_ends(p, "BMP");
  const uint32_t pixels_at = hoist_little_at(s + 10, 4), header = hoist_little_at(s + 14, 4);
  const int is_core = header == 12;
  if (!is_core && (header < 40 || header > 124)) {
    return hoist_image_fails(p, "a BMP image with a header of %lu bytes, whose version is unknown",
                             (unsigned long)header);
  }
  if (p->bytes < 14 + (size_t)header) return hoist_image_ends(p, "BMP");
  int64_t width, height;
  uint32_t bits, compression = 0, colours = 0;
  if (is_core) {
    width = hoist_little_at(s + 18, 2);
    height = hoist_little_at(s + 20, 2);
    bits = hoist_little_at(s + 24, 2);
  } else {
    width = (int32_t)hoist_little_at(s + 18, 4);
    height = (int32_t)hoist_little_at(s + 22, 4);
    bits = hoist_little_at(s + 28, 2);
    compression = hoist_little_at(s + 30, 4);
    colours = hoist_little_at(s + 46, 4);
  }
  const int from_top = height < 0;
  if (from_top) height = -height;
  if (width <= 0 || height <= 0) return hoist_image_fails(p, "a BMP image without pixels");
  const int status = hoist_check_image_size(p, (uint64_t)width, (uint64_t)height);
  if (status) return status;
  const int has_masks = compression == 3 || compression == 6;
  if (compression && !(has_masks && bits >= 16))
    return hoist_image_fails(p, "a compressed BMP image (kind %lu); store it without compression",
                             (unsigned long)compression);
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
    return hoist_image_fails(p, "a BMP image of %lu bits per pixel", (unsigned long)bits);
  const size_t table = 14 + (size_t)header;
  bmp_channel channels[3] = {{31, 10}, {31, 5}, {31, 0}};
  if (has_masks) { /* part of the larger headers, located after the small one */
    if (p->bytes < 14 + 40 + 12) return hoist_image_ends(p, "BMP");
    for (size_t c = 0; c < 3; ++c) channels[c] = bmp_channel_of(hoist_little_at(s + 54 + 4 * c, 4));
  }
  unsigned char palette[256][3];
  memset(palette, 0, sizeof palette);
  if (bits <= 8) {
    const size_t entry = is_core ? 3 : 4, most = (size_t)1 << bits;
    const size_t count = colours && colours < most ? colours : most;
    for (size_t i = 0; i < count && table + (i + 1) * entry <= p->bytes; ++i) {
      for (size_t c = 0; c < 3; ++c) palette[i][c] = s[table + i * entry + 2 - c];
    }
  }
  const uint64_t row_bytes = ((uint64_t)width * bits + 31) / 32 * 4;
  if (pixels_at > p->bytes || (p->bytes - pixels_at) / row_bytes < (uint64_t)height) return hoist_image_ends(p, "BMP");
  for (size_t y = 0; y < p->height; ++y) {
    const unsigned char* row = s + pixels_at + (size_t)row_bytes * (from_top ? y : p->height - 1 - y);
    unsigned char* to = p->pixels + 3 * p->width * y;
    for (size_t x = 0; x < p->width; ++x, to += 3) {
      if (bits <= 8) {
        const size_t bit = x * bits;
        memcpy(to, palette[row[bit / 8] >> (8 - bits - bit % 8) & ((1u << bits) - 1)], 3);
      } else if (bits == 24 || (bits == 32 && !has_masks)) {
        for (size_t c = 0; c < 3; ++c) to[c] = row[x * (bits / 8) + 2 - c];
      } else {
        const uint32_t pixel = hoist_little_at(row + x * (bits / 8), bits / 8);
        for (size_t c = 0; c < 3; ++c) {
          const bmp_channel* channel = &channels[c];
          to[c] = channel->mask ? hoist_to_byte(pixel >> channel->shift & channel->mask, channel->mask) : 0;
        }
      }
    }
  }
  return HOIST_HOST_OK;
}

typedef struct pnm_place {
  const unsigned char *at, *end;
} pnm_place;

static void pnm_skip_blanks(pnm_place* place) {
  for (; place->at < place->end; ++place->at) {
    const unsigned char c = *place->at;
    if (c == '#') {
      while (place->at < place->end && *place->at != '\n' && *place->at != '\r') ++place->at;
      if (place->at == place->end) return;
    } else if (c != ' ' && !(c >= '\t' && c <= '\r')) {
      return;
    }
  }
}

/* Returns 0 unless a number of at most `largest` is next. */
static int pnm_number(pnm_place* place, uint32_t largest, uint32_t* number) {
  pnm_skip_blanks(place);
  uint64_t out = 0;
  const unsigned char* begin = place->at;
  for (; place->at < place->end && *place->at >= '0' && *place->at <= '9'; ++place->at) {
    out = 10 * out + (uint64_t)(*place->at - '0');
    if (out > largest) return 0;
  }
  *number = (uint32_t)out;
  return place->at > begin;
}

/* Reads the next sample; returns 0 if there is none. A set bit is black. */
static int pnm_sample(pnm_place* place, char kind, uint32_t largest, uint32_t* sample) {
  if (kind == '1') { /* plain bitmaps need no whitespace between digits */
    pnm_skip_blanks(place);
    if (place->at == place->end || (*place->at != '0' && *place->at != '1')) return 0;
    *sample = *place->at++ == '0';
    return 1;
  }
  if (kind == '2' || kind == '3') return pnm_number(place, largest, sample);
  const size_t bytes = largest > 255 ? 2 : 1;
  if ((size_t)(place->end - place->at) < bytes) return 0;
  *sample = bytes == 2 ? (uint32_t)place->at[0] << 8 | place->at[1] : place->at[0];
  place->at += bytes;
  return 1;
}

HOIST_INTERNAL int hoist_decode_pnm(encoded_image* p) {
  const char kind = (char)p->stream[1];
  pnm_place place = {p->stream + 2, p->stream + p->bytes};
  uint32_t width = 0, height = 0, largest = 1;
  const int is_bitmap = kind == '1' || kind == '4', is_plain = kind <= '3';
  if (!pnm_number(&place, INT32_MAX, &width) || !pnm_number(&place, INT32_MAX, &height) ||
      (!is_bitmap && !pnm_number(&place, 65535, &largest)) || !largest)
    return hoist_image_fails(p, "the header of its PNM image is damaged");
  const int status = hoist_check_image_size(p, width, height);
  if (status) return status;
  if (!is_plain && place.at < place.end) ++place.at; /* one whitespace character ends the header */
  for (size_t y = 0; y < p->height; ++y) {
    unsigned char* to = p->pixels + 3 * p->width * y;
    if (kind == '4') {
      const size_t row_bytes = (p->width + 7) / 8;
      if ((size_t)(place.end - place.at) < row_bytes) return hoist_image_ends(p, "PNM");
      for (size_t x = 0; x < p->width; ++x) memset(to + 3 * x, place.at[x / 8] >> (7 - x % 8) & 1 ? 0 : 255, 3);
      place.at += row_bytes;
      continue;
    }
    const size_t samples = kind == '3' || kind == '6' ? 3 : 1;
    for (size_t x = 0; x < p->width; ++x, to += 3) {
      for (size_t c = 0; c < samples; ++c) {
        uint32_t sample = 0;
        if (!pnm_sample(&place, kind, largest, &sample)) {
          return !is_plain || place.at == place.end
                     ? hoist_image_ends(p, "PNM")
                     : hoist_image_fails(p, "a sample of its PNM image is not a number up to %lu",
                                         (unsigned long)largest);
        }
        to[c] = hoist_to_byte(sample, largest);
      }
      if (samples == 1) to[1] = to[2] = to[0];
    }
  }
  return HOIST_HOST_OK;
}
#endif
