/* Each format's library is called directly instead of a library for all formats: none of these has process-wide
 * settings, exits when memory runs out, or writes files. One file per format: ir/host/images/. */
#include "ir/host/host_images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/host/images/encoded_image.h"

HOIST_INTERNAL int hoist_takes_image(const hoist_host_call* call) {
  const hoist_host_array *stream = &call->inputs[0], *pixels = call->output;
  return stream->scalar == HOIST_HOST_U8 && stream->rank == 1 && pixels->scalar == HOIST_HOST_U8 && pixels->rank == 3 &&
         pixels->shape[0] > 0 && pixels->shape[0] <= INT32_MAX && pixels->shape[1] > 0 &&
         pixels->shape[1] <= INT32_MAX && pixels->shape[2] == 3;
}

HOIST_INTERNAL void hoist_seed_image(const hoist_host_call* call) {
  const uint64_t height = (uint64_t)call->output->shape[0], width = (uint64_t)call->output->shape[1];
  for (int kind = 6; kind >= 4; --kind) {
    const uint64_t row = kind == 6 ? 3 * width : kind == 5 ? width : (width + 7) / 8;
    char header[64];
    const int length = snprintf(header, sizeof header, "P%d %llu %llu%s\n", kind, (unsigned long long)width,
                                (unsigned long long)height, kind == 4 ? "" : " 255");
    const uint64_t bytes = call->inputs[0].elements;
    if (bytes < (uint64_t)length || (bytes - (uint64_t)length) / row < height) continue;
    memcpy(call->inputs[0].data, header, (size_t)length);
    return;
  }
}

#ifdef HOIST_WITH_PICTURES
#include <stdarg.h>

HOIST_INTERNAL int hoist_image_fails(encoded_image* p, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(p->message, p->message_bytes, format, arguments);
  va_end(arguments);
  return HOIST_HOST_BAD_VALUE;
}

HOIST_INTERNAL int hoist_image_no_memory(encoded_image* p) {
  hoist_image_fails(p, "no memory for the image");
  return HOIST_HOST_NO_MEMORY;
}

HOIST_INTERNAL int hoist_image_ends(encoded_image* p, const char* format) {
  return hoist_image_fails(p, "the stream of %zu bytes ends before its %s image does", p->bytes, format);
}

HOIST_INTERNAL int hoist_check_image_size(encoded_image* p, uint64_t width, uint64_t height) {
  if (!p->pixels) {
    if (!width || !height || height > HOIST_MOST_PIXELS / width) {
      return hoist_image_fails(p, "an image of %llux%llu (width x height); from 1 to %llu pixels are decoded",
                               (unsigned long long)width, (unsigned long long)height,
                               (unsigned long long)HOIST_MOST_PIXELS);
    }
    p->width = (size_t)width;
    p->height = (size_t)height;
    p->pixels = calloc(p->height, 3 * p->width);
    return p->pixels ? HOIST_HOST_OK : hoist_image_no_memory(p);
  }
  if (width == p->width && height == p->height) return HOIST_HOST_OK;
  return hoist_image_fails(
      p,
      "an image of %llux%llu (width x height), and the model states %zux%zu; give it in that size, or "
      "compile the model for its own",
      (unsigned long long)width, (unsigned long long)height, p->width, p->height);
}

HOIST_INTERNAL uint32_t hoist_little_at(const unsigned char* p, size_t bytes) {
  uint32_t out = 0;
  for (size_t i = bytes; i-- > 0;) out = out << 8 | p[i];
  return out;
}

HOIST_INTERNAL uint32_t hoist_big_at(const unsigned char* p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

HOIST_INTERNAL unsigned char hoist_to_byte(uint64_t value, uint64_t largest) {
  return (unsigned char)(value >= largest ? 255 : (value * 255 + largest / 2) / largest);
}

typedef struct image_format {
  const char* begins; /* '?' matches any byte */
  size_t bytes;
  int (*decode)(encoded_image* p);
} image_format;

/* All decoders are called through this table. */
static const image_format image_formats[] = {
    {"BM", 2, hoist_decode_bmp},
    {"\xFF\xD8\xFF", 3, hoist_decode_jpeg},
    {"\0\0\0\x0CjP  \r\n\x87\n", 12, hoist_decode_jpeg2000},
    {"\xFF\x4F\xFF\x51", 4, hoist_decode_jpeg2000},
    {"\x89PNG\r\n\x1A\n", 8, hoist_decode_png},
    {"P1", 2, hoist_decode_pnm},
    {"P2", 2, hoist_decode_pnm},
    {"P3", 2, hoist_decode_pnm},
    {"P4", 2, hoist_decode_pnm},
    {"P5", 2, hoist_decode_pnm},
    {"P6", 2, hoist_decode_pnm},
    {"II*\0", 4, hoist_decode_tiff},
    {"MM\0*", 4, hoist_decode_tiff},
    {"RIFF????WEBP", 12, hoist_decode_webp},
};

static int begins_with(const encoded_image* p, const image_format* format) {
  if (p->bytes < format->bytes) return 0;
  for (size_t i = 0; i < format->bytes; ++i) {
    if (format->begins[i] != '?' && (unsigned char)format->begins[i] != p->stream[i]) return 0;
  }
  return 1;
}

HOIST_INTERNAL int hoist_read_image(const unsigned char* stream, size_t bytes, hoist_image* image, char* message,
                                    size_t message_bytes) {
  const int takes_memory = !image->pixels;
  struct encoded_image p = {stream, bytes, image->height, image->width, image->pixels, message, message_bytes};
  int status = HOIST_HOST_BAD_VALUE;
  size_t i = 0;
  const size_t count = sizeof image_formats / sizeof *image_formats;
  while (i < count && !begins_with(&p, &image_formats[i])) ++i;
  if (i < count) {
    status = image_formats[i].decode(&p);
  } else {
    hoist_image_fails(&p, "%zu bytes that are not an image in BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP", bytes);
  }
  if (status && takes_memory) {
    free(p.pixels);
    p.pixels = NULL;
  }
  image->height = p.height;
  image->width = p.width;
  image->pixels = p.pixels;
  return status;
}
#else

HOIST_INTERNAL int hoist_read_image(const unsigned char* stream, size_t bytes, hoist_image* image, char* message,
                                    size_t message_bytes) {
  (void)stream;
  (void)bytes;
  (void)image;
  snprintf(message, message_bytes, "this program is built without image libraries");
  return HOIST_HOST_BAD_VALUE;
}
#endif

HOIST_INTERNAL int hoist_decode_image(hoist_host_call* call) {
  const hoist_host_array *stream = &call->inputs[0], *pixels = call->output;
  hoist_image image = {(size_t)pixels->shape[0], (size_t)pixels->shape[1], pixels->data};
  return hoist_read_image(stream->data, (size_t)stream->elements, &image, call->message, sizeof call->message);
}
