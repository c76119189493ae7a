/* Encoded pictures as numbers: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP. Streams are hostile until they are
 * decoded: each is known by its first bytes, and its header has to have the size that the caller expects, or no more
 * pixels than HOIST_MOST_PIXELS, before memory is taken for them.
 *
 * Needs libjpeg, libpng, libtiff (4.5), libwebp and OpenJPEG (2.5), and HOIST_WITH_PICTURES. */
#ifndef HOIST_HOST_PICTURES_H
#define HOIST_HOST_PICTURES_H

#include "ir/host/host_operators.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef HOIST_WITH_PICTURES
#define HOIST_PICTURES_MISSING 0
#else
#define HOIST_PICTURES_MISSING 1
#endif

/* Of a picture whose size nobody expects. */
#define HOIST_MOST_PIXELS ((uint64_t)1 << 27)

typedef struct hoist_picture {
  size_t height, width;  /* that the stream has to have, where there are pixels */
  unsigned char* pixels; /* [height][width][3] */
} hoist_picture;

/* Red, green and blue in 8 bits, transparency left out. Without `pixels` the size is that of the stream's header, and
 * the memory is taken, to free(). HOIST_HOST_OK, or what is wrong in `message`; then none is taken. */
HOIST_INTERNAL int hoist_read_picture(const unsigned char* stream, size_t bytes, hoist_picture* picture, char* message,
                                      size_t message_bytes);
/* A call of one stream [n]u8, which may have anything behind its end, for pixels [height][width][3]u8. */
HOIST_INTERNAL int hoist_takes_picture(const hoist_host_call* call);
HOIST_INTERNAL int hoist_decode_picture(hoist_host_call* call);
/* The stream's numbers as the pixels of a PNM picture of that size, in colours, in grey or in black and white as there
 * is room; left as it is where there is none for the last. */
HOIST_INTERNAL void hoist_seed_picture(const hoist_host_call* call);

#ifdef __cplusplus
}
#endif

#endif
