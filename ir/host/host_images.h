/* Decoding of images: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP. Streams are untrusted: the format is determined by
 * the first bytes, and before memory is allocated the header must claim the size that the caller expects, or at most
 * HOIST_MOST_PIXELS pixels.
 *
 * Needs libjpeg, libpng, libtiff (4.5), libwebp and OpenJPEG (2.5), and HOIST_WITH_PICTURES. */
#ifndef HOIST_HOST_IMAGES_H
#define HOIST_HOST_IMAGES_H

#include "ir/host/host_operators.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef HOIST_WITH_PICTURES
#define HOIST_PICTURES_MISSING 0
#else
#define HOIST_PICTURES_MISSING 1
#endif

/* Limit for an image of unknown size. */
#define HOIST_MOST_PIXELS ((uint64_t)1 << 27)

typedef struct hoist_image {
  size_t height, width;  /* required size of the image, if there are pixels */
  unsigned char* pixels; /* [height][width][3] */
} hoist_image;

/* Decodes to 8-bit RGB without alpha. Without `pixels`, the size comes from the stream's header and the memory is
 * allocated; the caller has to free() it. Returns HOIST_HOST_OK, or an error with its text in `message`; then nothing
 * is allocated. */
HOIST_INTERNAL int hoist_read_image(const unsigned char* stream, size_t bytes, hoist_image* image, char* message,
                                    size_t message_bytes);
/* A call with one stream [n]u8, which may have trailing bytes, for pixels [height][width][3]u8. */
HOIST_INTERNAL int hoist_takes_image(const hoist_host_call* call);
HOIST_INTERNAL int hoist_decode_image(hoist_host_call* call);
/* Turns the stream's bytes into a PNM image of that size: in colour, in grey or in black and white, depending on the
 * length of the stream; unchanged if it is too short for black and white. */
HOIST_INTERNAL void hoist_seed_image(const hoist_host_call* call);

#ifdef __cplusplus
}
#endif

#endif
