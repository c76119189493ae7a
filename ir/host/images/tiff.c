/* TIFF images, by libtiff. */
#include "ir/host/images/encoded_image.h"

#ifdef HOIST_WITH_PICTURES
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

typedef struct tiff_reading {
  encoded_image* p;
  size_t at;
  char what[160];
} tiff_reading;

static tmsize_t tiff_takes(thandle_t handle, void* to, tmsize_t bytes) {
  tiff_reading* r = handle;
  const size_t left = r->at < r->p->bytes ? r->p->bytes - r->at : 0;
  const size_t taken = (size_t)bytes < left ? (size_t)bytes : left;
  if (taken) memcpy(to, r->p->stream + r->at, taken);
  r->at += taken;
  return (tmsize_t)taken;
}

static tmsize_t tiff_gives(thandle_t handle, void* from, tmsize_t bytes) {
  (void)handle;
  (void)from;
  (void)bytes;
  return 0;
}

static toff_t tiff_seeks(thandle_t handle, toff_t offset, int whence) {
  tiff_reading* r = handle;
  const toff_t from = whence == SEEK_CUR ? r->at : whence == SEEK_END ? r->p->bytes : 0;
  r->at = (size_t)(from + offset);
  return r->at;
}

static int tiff_closes(thandle_t handle) {
  (void)handle;
  return 0;
}

static toff_t tiff_size(thandle_t handle) { return ((tiff_reading*)handle)->p->bytes; }

static int tiff_notes(TIFF* tiff, void* reading, const char* module, const char* format, va_list arguments) {
  tiff_reading* r = reading;
  (void)tiff;
  (void)module;
  if (!*r->what) vsnprintf(r->what, sizeof r->what, format, arguments);
  return 1; /* suppresses the library's default handler */
}

static int tiff_is_silent(TIFF* tiff, void* reading, const char* module, const char* format, va_list arguments) {
  (void)tiff;
  (void)reading;
  (void)module;
  (void)format;
  (void)arguments;
  return 1;
}

static int read_tiff(encoded_image* p, TIFF* tiff, const tiff_reading* r) {
  uint32_t width = 0, height = 0;
  uint16_t orientation = ORIENTATION_TOPLEFT, extra = 0, *kinds = NULL;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  const int status = hoist_check_image_size(p, width, height);
  if (status) return status;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
  if (orientation > ORIENTATION_BOTLEFT)
    return hoist_image_fails(p, "a rotated TIFF image (orientation %d)", orientation);
  /* Keeps colours unchanged: the library would multiply them by an alpha channel that is not marked as associated. */
  uint16_t associated[8] = {EXTRASAMPLE_ASSOCALPHA};
  if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &extra, &kinds) && extra && extra <= 8)
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, extra, associated);
  uint32_t* raster = malloc(4 * p->width * p->height);
  if (!raster) return hoist_image_no_memory(p);
  const int is_read = TIFFReadRGBAImageOriented(tiff, width, height, raster, ORIENTATION_TOPLEFT, 1);
  for (size_t i = 0; is_read && i < p->width * p->height; ++i) {
    p->pixels[3 * i] = (unsigned char)TIFFGetR(raster[i]);
    p->pixels[3 * i + 1] = (unsigned char)TIFFGetG(raster[i]);
    p->pixels[3 * i + 2] = (unsigned char)TIFFGetB(raster[i]);
  }
  free(raster);
  return is_read ? HOIST_HOST_OK : hoist_image_fails(p, "its TIFF image cannot be decoded: %s", r->what);
}

HOIST_INTERNAL int hoist_decode_tiff(encoded_image* p) {
  tiff_reading r = {p, 0, ""};
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (!options) return hoist_image_no_memory(p);
  /* Limits allocations for strips and tiles, whose size the stream also claims. */
  const uint64_t pixels = p->pixels ? (uint64_t)p->width * p->height : HOIST_MOST_PIXELS;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)(16 * pixels + ((size_t)1 << 24)));
  TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_notes, &r);
  TIFFOpenOptionsSetWarningHandlerExtR(options, tiff_is_silent, NULL);
  TIFF* tiff = TIFFClientOpenExt("stream", "rm", &r, tiff_takes, tiff_gives, tiff_seeks, tiff_closes, tiff_size, NULL,
                                 NULL, options);
  TIFFOpenOptionsFree(options);
  const int status =
      tiff ? read_tiff(p, tiff, &r) : hoist_image_fails(p, "its TIFF image cannot be decoded: %s", r.what);
  if (tiff) TIFFClose(tiff);
  return status;
}
#endif
