/* JPEG images, by libjpeg. */
#include "ir/host/images/encoded_image.h"

#ifdef HOIST_WITH_PICTURES
#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>
#include <string.h>

typedef struct jpeg_reading {
  encoded_image* p;
  int status;
  struct jpeg_decompress_struct info;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  jmp_buf end;
} jpeg_reading;

static void jpeg_stops(j_common_ptr info) {
  jpeg_reading* r = info->client_data;
  char what[JMSG_LENGTH_MAX];
  if (info->err->msg_code == JERR_OUT_OF_MEMORY) {
    r->status = hoist_image_no_memory(r->p);
  } else if (info->err->msg_code == JWRN_JPEG_EOF) {
    r->status = hoist_image_ends(r->p, "JPEG");
  } else {
    info->err->format_message(info, what);
    r->status = hoist_image_fails(r->p, "its JPEG image cannot be decoded: %s", what);
  }
  longjmp(r->end, 1);
}

/* The library would fill a truncated image with grey. Its other warnings concern data that is common in practice. */
static void jpeg_warns(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) jpeg_stops(info);
}

/* Each scan of a progressive image costs a pass over all pixels, but only a few bytes of the stream. */
static void jpeg_counts_scans(j_common_ptr info) {
  enum { most_scans = 200 };
  jpeg_reading* r = info->client_data;
  if (r->info.input_scan_number <= most_scans) return;
  r->status = hoist_image_fails(r->p, "its JPEG image has more than %d scans", most_scans);
  longjmp(r->end, 1);
}

static void read_jpeg(jpeg_reading* r) {
  encoded_image* p = r->p;
  struct jpeg_decompress_struct* info = &r->info;
  if (setjmp(r->end)) return;
  jpeg_create_decompress(info);
  info->progress = &r->progress;
  jpeg_mem_src(info, p->stream, (unsigned long)p->bytes);
  jpeg_read_header(info, TRUE);
  r->status = hoist_check_image_size(p, info->image_width, info->image_height);
  if (!r->status && info->num_components != 1 && info->num_components != 3 && info->num_components != 4)
    r->status = hoist_image_fails(p, "a JPEG image of %d components", info->num_components);
  if (r->status) return;
  const int has_black = info->num_components == 4;
  info->out_color_space = has_black ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(info);
  JSAMPARRAY inks = info->mem->alloc_sarray((j_common_ptr)info, JPOOL_IMAGE, (JDIMENSION)(4 * p->width), 1);
  while (info->output_scanline < info->output_height) {
    JSAMPROW to = p->pixels + 3 * p->width * info->output_scanline;
    if (jpeg_read_scanlines(info, has_black ? inks : &to, 1) != 1 || !has_black) continue;
    /* CMYK values are stored inverted, as Adobe's programs write them. */
    for (size_t i = 0; i < 3 * p->width; ++i)
      to[i] = hoist_to_byte(inks[0][i / 3 * 4 + i % 3] * inks[0][i / 3 * 4 + 3], 65025);
  }
  jpeg_finish_decompress(info);
}

HOIST_INTERNAL int hoist_decode_jpeg(encoded_image* p) {
  jpeg_reading r;
  memset(&r, 0, sizeof r);
  r.p = p;
  r.info.err = jpeg_std_error(&r.errors);
  r.info.client_data = &r;
  r.errors.error_exit = jpeg_stops;
  r.errors.emit_message = jpeg_warns;
  r.progress.progress_monitor = jpeg_counts_scans;
  read_jpeg(&r);
  jpeg_destroy_decompress(&r.info);
  return r.status;
}
#endif
