/* PNG images, by libpng. */
#include "ir/host/images/encoded_image.h"

#ifdef HOIST_WITH_PICTURES
#include <png.h>
#include <setjmp.h>
#include <string.h>

typedef struct png_reading {
  encoded_image* p;
  int status;
  size_t at;
  png_structp png;
  png_infop info;
  jmp_buf end;
} png_reading;

static void png_stops(png_structp png, png_const_charp what) {
  png_reading* r = png_get_error_ptr(png);
  if (!r->status) r->status = hoist_image_fails(r->p, "its PNG image cannot be decoded: %s", what);
  longjmp(r->end, 1);
}

static void png_warns(png_structp png, png_const_charp what) {
  (void)png;
  (void)what;
}

static void png_takes(png_structp png, png_bytep to, size_t bytes) {
  png_reading* r = png_get_io_ptr(png);
  if (bytes > r->p->bytes - r->at) {
    r->status = hoist_image_ends(r->p, "PNG");
    longjmp(r->end, 1);
  }
  memcpy(to, r->p->stream + r->at, bytes);
  r->at += bytes;
}

static void read_png(png_reading* r) {
  encoded_image* p = r->p;
  if (setjmp(r->end)) return;
  r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, png_stops, png_warns);
  r->info = r->png ? png_create_info_struct(r->png) : NULL;
  if (!r->info) {
    r->status = hoist_image_no_memory(p);
    return;
  }
  png_set_user_limits(r->png, INT32_MAX, INT32_MAX); /* the model's size is the limit */
  png_set_read_fn(r->png, r, png_takes);
  png_read_info(r->png, r->info);
  r->status = hoist_check_image_size(p, png_get_image_width(r->png, r->info), png_get_image_height(r->png, r->info));
  if (r->status) return;
  png_set_expand(r->png);
  png_set_strip_16(r->png);
  png_set_strip_alpha(r->png);
  png_set_gray_to_rgb(r->png);
  const int passes = png_set_interlace_handling(r->png);
  png_read_update_info(r->png, r->info);
  if (png_get_rowbytes(r->png, r->info) != 3 * p->width) png_error(r->png, "its rows have another size");
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t y = 0; y < p->height; ++y) png_read_row(r->png, p->pixels + 3 * p->width * y, NULL);
  }
  png_read_end(r->png, NULL);
}

HOIST_INTERNAL int hoist_decode_png(encoded_image* p) {
  png_reading r;
  memset(&r, 0, sizeof r);
  r.p = p;
  read_png(&r);
  png_destroy_read_struct(&r.png, &r.info, NULL);
  return r.status;
}
#endif
