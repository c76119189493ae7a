/* A stream that is decoded, and what the decoders of all formats share. Only for this folder and host_images.c. */
#ifndef HOIST_IMAGES_ENCODED_IMAGE_H
#define HOIST_IMAGES_ENCODED_IMAGE_H

#include <stdio.h> /* before jpeglib.h */

#include "ir/host/host_images.h"

#ifdef HOIST_WITH_PICTURES
typedef struct encoded_image {
  const unsigned char* stream;
  size_t bytes;
  size_t height, width;  /* the expected size; without pixels, the size in the stream's header */
  unsigned char* pixels; /* RGB per pixel, row by row */
  char* message;
  size_t message_bytes;
} encoded_image;

/* Writes the message; returns HOIST_HOST_BAD_VALUE. */
HOIST_INTERNAL int hoist_image_fails(encoded_image* p, const char* format, ...);
HOIST_INTERNAL int hoist_image_no_memory(encoded_image* p);
HOIST_INTERNAL int hoist_image_ends(encoded_image* p, const char* format);
/* Called before anything is decoded; allocates the pixels if there are none. */
HOIST_INTERNAL int hoist_check_image_size(encoded_image* p, uint64_t width, uint64_t height);

/* Integers of a stream: little-endian of up to 4 bytes, big-endian of 4 bytes. */
HOIST_INTERNAL uint32_t hoist_little_at(const unsigned char* p, size_t bytes);
HOIST_INTERNAL uint32_t hoist_big_at(const unsigned char* p);
/* Scales from 0 to `largest` to 0 to 255, rounded. */
HOIST_INTERNAL unsigned char hoist_to_byte(uint64_t value, uint64_t largest);

/* Decoders of the formats. Each returns HOIST_HOST_OK, or an error with its message. */
HOIST_INTERNAL int hoist_decode_bmp(encoded_image* p);
HOIST_INTERNAL int hoist_decode_jpeg(encoded_image* p);
HOIST_INTERNAL int hoist_decode_jpeg2000(encoded_image* p);
HOIST_INTERNAL int hoist_decode_png(encoded_image* p);
HOIST_INTERNAL int hoist_decode_pnm(encoded_image* p);
HOIST_INTERNAL int hoist_decode_tiff(encoded_image* p);
HOIST_INTERNAL int hoist_decode_webp(encoded_image* p);
#endif

#endif
