/* A stream that is decoded, and what the decoders of all formats share. Only for this folder and host_pictures.c. */
#ifndef HOIST_PICTURES_PICTURE_H
#define HOIST_PICTURES_PICTURE_H

#include <stdio.h> /* before jpeglib.h */

#include "ir/host/host_pictures.h"

#ifdef HOIST_WITH_PICTURES
typedef struct picture {
  const unsigned char* stream;
  size_t bytes;
  size_t height, width;  /* the expected size; without pixels, the size in the stream's header */
  unsigned char* pixels; /* RGB per pixel, row by row */
  char* message;
  size_t message_bytes;
} picture;

/* Writes the message; returns HOIST_HOST_BAD_VALUE. */
HOIST_INTERNAL int hoist_picture_fails(picture* p, const char* format, ...);
HOIST_INTERNAL int hoist_picture_no_memory(picture* p);
HOIST_INTERNAL int hoist_picture_ends(picture* p, const char* format);
/* Called before anything is decoded; allocates the pixels if there are none. */
HOIST_INTERNAL int hoist_check_picture_size(picture* p, uint64_t width, uint64_t height);

/* Integers of a stream: little-endian of up to 4 bytes, big-endian of 4 bytes. */
HOIST_INTERNAL uint32_t hoist_little_at(const unsigned char* p, size_t bytes);
HOIST_INTERNAL uint32_t hoist_big_at(const unsigned char* p);
/* Scales from 0 to `largest` to 0 to 255, rounded. */
HOIST_INTERNAL unsigned char hoist_to_byte(uint64_t value, uint64_t largest);

/* Decoders of the formats. Each returns HOIST_HOST_OK, or an error with its message. */
HOIST_INTERNAL int hoist_decode_bmp(picture* p);
HOIST_INTERNAL int hoist_decode_jpeg(picture* p);
HOIST_INTERNAL int hoist_decode_jpeg2000(picture* p);
HOIST_INTERNAL int hoist_decode_png(picture* p);
HOIST_INTERNAL int hoist_decode_pnm(picture* p);
HOIST_INTERNAL int hoist_decode_tiff(picture* p);
HOIST_INTERNAL int hoist_decode_webp(picture* p);
#endif

#endif
