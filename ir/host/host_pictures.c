/* Each format's library is called directly instead of a library for all formats: none of these has process-wide
 * settings, exits when memory runs out, or writes files. BMP and PNM are arrays after a header and are decoded here. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "ir/host/host_pictures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HOIST_INTERNAL int hoist_takes_picture(const hoist_host_call* call) {
  const hoist_host_array *stream = &call->inputs[0], *pixels = call->output;
  return stream->scalar == HOIST_HOST_U8 && stream->rank == 1 && pixels->scalar == HOIST_HOST_U8 && pixels->rank == 3 &&
         pixels->shape[0] > 0 && pixels->shape[0] <= INT32_MAX && pixels->shape[1] > 0 &&
         pixels->shape[1] <= INT32_MAX && pixels->shape[2] == 3;
}

HOIST_INTERNAL void hoist_seed_picture(const hoist_host_call* call) {
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
#include <jerror.h>
#include <jpeglib.h>
#include <openjpeg.h>
#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <tiffio.h>
#include <webp/decode.h>

typedef struct picture {
  const unsigned char* stream;
  size_t bytes;
  size_t height, width;  /* the expected size; without pixels, the size in the stream's header */
  unsigned char* pixels; /* RGB per pixel, row by row */
  char* message;
  size_t message_bytes;
} picture;

/* ---- errors ---- */

static int picture_fails(picture* p, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(p->message, p->message_bytes, format, arguments);
  va_end(arguments);
  return HOIST_HOST_BAD_VALUE;
}

static int picture_no_memory(picture* p) {
  picture_fails(p, "no memory for the image");
  return HOIST_HOST_NO_MEMORY;
}

static int picture_ends(picture* p, const char* format) {
  return picture_fails(p, "the stream of %zu bytes ends before its %s picture does", p->bytes, format);
}

/* Called before anything is decoded. */
static int check_picture_size(picture* p, uint64_t width, uint64_t height) {
  if (!p->pixels) {
    if (!width || !height || height > HOIST_MOST_PIXELS / width) {
      return picture_fails(p, "a picture of %llux%llu (width x height); from 1 to %llu pixels are decoded",
                           (unsigned long long)width, (unsigned long long)height,
                           (unsigned long long)HOIST_MOST_PIXELS);
    }
    p->width = (size_t)width;
    p->height = (size_t)height;
    p->pixels = calloc(p->height, 3 * p->width);
    return p->pixels ? HOIST_HOST_OK : picture_no_memory(p);
  }
  if (width == p->width && height == p->height) return HOIST_HOST_OK;
  return picture_fails(p,
                       "a picture of %llux%llu (width x height), the model says %zux%zu; give it in that size, or "
                       "compile the model for its own",
                       (unsigned long long)width, (unsigned long long)height, p->width, p->height);
}

static uint32_t little_at(const unsigned char* p, size_t bytes) {
  uint32_t out = 0;
  for (size_t i = bytes; i-- > 0;) out = out << 8 | p[i];
  return out;
}

static uint32_t big_at(const unsigned char* p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static unsigned char to_byte(uint64_t value, uint64_t largest) {
  return (unsigned char)(value >= largest ? 255 : (value * 255 + largest / 2) / largest);
}

/* ---- BMP ---- */

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

static int decode_bmp(picture* p) {
  const unsigned char* s = p->stream;
  if (p->bytes < 26) return picture_ends(p, "BMP");
  const uint32_t pixels_at = little_at(s + 10, 4), header = little_at(s + 14, 4);
  const int is_core = header == 12;
  if (!is_core && (header < 40 || header > 124)) {
    return picture_fails(p, "a BMP picture with a header of %lu bytes, which is of no known version",
                         (unsigned long)header);
  }
  if (p->bytes < 14 + (size_t)header) return picture_ends(p, "BMP");
  int64_t width, height;
  uint32_t bits, compression = 0, colours = 0;
  if (is_core) {
    width = little_at(s + 18, 2);
    height = little_at(s + 20, 2);
    bits = little_at(s + 24, 2);
  } else {
    width = (int32_t)little_at(s + 18, 4);
    height = (int32_t)little_at(s + 22, 4);
    bits = little_at(s + 28, 2);
    compression = little_at(s + 30, 4);
    colours = little_at(s + 46, 4);
  }
  const int from_top = height < 0;
  if (from_top) height = -height;
  if (width <= 0 || height <= 0) return picture_fails(p, "a BMP image without pixels");
  const int status = check_picture_size(p, (uint64_t)width, (uint64_t)height);
  if (status) return status;
  const int has_masks = compression == 3 || compression == 6;
  if (compression && !(has_masks && bits >= 16))
    return picture_fails(p, "a compressed BMP picture (kind %lu); store it without compression",
                         (unsigned long)compression);
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
    return picture_fails(p, "a BMP picture of %lu bits a pixel", (unsigned long)bits);
  const size_t table = 14 + (size_t)header;
  bmp_channel channels[3] = {{31, 10}, {31, 5}, {31, 0}};
  if (has_masks) { /* part of the larger headers, located after the small one */
    if (p->bytes < 14 + 40 + 12) return picture_ends(p, "BMP");
    for (size_t c = 0; c < 3; ++c) channels[c] = bmp_channel_of(little_at(s + 54 + 4 * c, 4));
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
  if (pixels_at > p->bytes || (p->bytes - pixels_at) / row_bytes < (uint64_t)height) return picture_ends(p, "BMP");
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
        const uint32_t pixel = little_at(row + x * (bits / 8), bits / 8);
        for (size_t c = 0; c < 3; ++c) {
          const bmp_channel* channel = &channels[c];
          to[c] = channel->mask ? to_byte(pixel >> channel->shift & channel->mask, channel->mask) : 0;
        }
      }
    }
  }
  return HOIST_HOST_OK;
}

/* ---- PNM ---- */

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

static int decode_pnm(picture* p) {
  const char kind = (char)p->stream[1];
  pnm_place place = {p->stream + 2, p->stream + p->bytes};
  uint32_t width = 0, height = 0, largest = 1;
  const int is_bitmap = kind == '1' || kind == '4', is_plain = kind <= '3';
  if (!pnm_number(&place, INT32_MAX, &width) || !pnm_number(&place, INT32_MAX, &height) ||
      (!is_bitmap && !pnm_number(&place, 65535, &largest)) || !largest)
    return picture_fails(p, "the header of its PNM image is damaged");
  const int status = check_picture_size(p, width, height);
  if (status) return status;
  if (!is_plain && place.at < place.end) ++place.at; /* one whitespace character ends the header */
  for (size_t y = 0; y < p->height; ++y) {
    unsigned char* to = p->pixels + 3 * p->width * y;
    if (kind == '4') {
      const size_t row_bytes = (p->width + 7) / 8;
      if ((size_t)(place.end - place.at) < row_bytes) return picture_ends(p, "PNM");
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
                     ? picture_ends(p, "PNM")
                     : picture_fails(p, "a sample of its PNM picture is no number up to %lu", (unsigned long)largest);
        }
        to[c] = to_byte(sample, largest);
      }
      if (samples == 1) to[1] = to[2] = to[0];
    }
  }
  return HOIST_HOST_OK;
}

/* ---- JPEG ---- */

typedef struct jpeg_reading {
  picture* p;
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
    r->status = picture_no_memory(r->p);
  } else if (info->err->msg_code == JWRN_JPEG_EOF) {
    r->status = picture_ends(r->p, "JPEG");
  } else {
    info->err->format_message(info, what);
    r->status = picture_fails(r->p, "its JPEG picture cannot be decoded: %s", what);
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
  r->status = picture_fails(r->p, "its JPEG picture has more than %d scans", most_scans);
  longjmp(r->end, 1);
}

static void read_jpeg(jpeg_reading* r) {
  picture* p = r->p;
  struct jpeg_decompress_struct* info = &r->info;
  if (setjmp(r->end)) return;
  jpeg_create_decompress(info);
  info->progress = &r->progress;
  jpeg_mem_src(info, p->stream, (unsigned long)p->bytes);
  jpeg_read_header(info, TRUE);
  r->status = check_picture_size(p, info->image_width, info->image_height);
  if (!r->status && info->num_components != 1 && info->num_components != 3 && info->num_components != 4)
    r->status = picture_fails(p, "a JPEG picture of %d components", info->num_components);
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
      to[i] = to_byte(inks[0][i / 3 * 4 + i % 3] * inks[0][i / 3 * 4 + 3], 65025);
  }
  jpeg_finish_decompress(info);
}

static int decode_jpeg(picture* p) {
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

/* ---- PNG ---- */

typedef struct png_reading {
  picture* p;
  int status;
  size_t at;
  png_structp png;
  png_infop info;
  jmp_buf end;
} png_reading;

static void png_stops(png_structp png, png_const_charp what) {
  png_reading* r = png_get_error_ptr(png);
  if (!r->status) r->status = picture_fails(r->p, "its PNG picture cannot be decoded: %s", what);
  longjmp(r->end, 1);
}

static void png_warns(png_structp png, png_const_charp what) {
  (void)png;
  (void)what;
}

static void png_takes(png_structp png, png_bytep to, size_t bytes) {
  png_reading* r = png_get_io_ptr(png);
  if (bytes > r->p->bytes - r->at) {
    r->status = picture_ends(r->p, "PNG");
    longjmp(r->end, 1);
  }
  memcpy(to, r->p->stream + r->at, bytes);
  r->at += bytes;
}

static void read_png(png_reading* r) {
  picture* p = r->p;
  if (setjmp(r->end)) return;
  r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, png_stops, png_warns);
  r->info = r->png ? png_create_info_struct(r->png) : NULL;
  if (!r->info) {
    r->status = picture_no_memory(p);
    return;
  }
  png_set_user_limits(r->png, INT32_MAX, INT32_MAX); /* the model's size is the limit */
  png_set_read_fn(r->png, r, png_takes);
  png_read_info(r->png, r->info);
  r->status = check_picture_size(p, png_get_image_width(r->png, r->info), png_get_image_height(r->png, r->info));
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

static int decode_png(picture* p) {
  png_reading r;
  memset(&r, 0, sizeof r);
  r.p = p;
  read_png(&r);
  png_destroy_read_struct(&r.png, &r.info, NULL);
  return r.status;
}

/* ---- TIFF ---- */

typedef struct tiff_reading {
  picture* p;
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

static int read_tiff(picture* p, TIFF* tiff, const tiff_reading* r) {
  uint32_t width = 0, height = 0;
  uint16_t orientation = ORIENTATION_TOPLEFT, extra = 0, *kinds = NULL;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  const int status = check_picture_size(p, width, height);
  if (status) return status;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
  if (orientation > ORIENTATION_BOTLEFT)
    return picture_fails(p, "a TIFF picture that lies on its side (orientation %d)", orientation);
  /* Keeps colours unchanged: the library would multiply them by an alpha channel that is not marked as associated. */
  uint16_t associated[8] = {EXTRASAMPLE_ASSOCALPHA};
  if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &extra, &kinds) && extra && extra <= 8)
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, extra, associated);
  uint32_t* raster = malloc(4 * p->width * p->height);
  if (!raster) return picture_no_memory(p);
  const int is_read = TIFFReadRGBAImageOriented(tiff, width, height, raster, ORIENTATION_TOPLEFT, 1);
  for (size_t i = 0; is_read && i < p->width * p->height; ++i) {
    p->pixels[3 * i] = (unsigned char)TIFFGetR(raster[i]);
    p->pixels[3 * i + 1] = (unsigned char)TIFFGetG(raster[i]);
    p->pixels[3 * i + 2] = (unsigned char)TIFFGetB(raster[i]);
  }
  free(raster);
  return is_read ? HOIST_HOST_OK : picture_fails(p, "its TIFF picture cannot be decoded: %s", r->what);
}

static int decode_tiff(picture* p) {
  tiff_reading r = {p, 0, ""};
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (!options) return picture_no_memory(p);
  /* Limits allocations for strips and tiles, whose size the stream also claims. */
  const uint64_t pixels = p->pixels ? (uint64_t)p->width * p->height : HOIST_MOST_PIXELS;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)(16 * pixels + ((size_t)1 << 24)));
  TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_notes, &r);
  TIFFOpenOptionsSetWarningHandlerExtR(options, tiff_is_silent, NULL);
  TIFF* tiff = TIFFClientOpenExt("stream", "rm", &r, tiff_takes, tiff_gives, tiff_seeks, tiff_closes, tiff_size, NULL,
                                 NULL, options);
  TIFFOpenOptionsFree(options);
  const int status = tiff ? read_tiff(p, tiff, &r) : picture_fails(p, "its TIFF picture cannot be decoded: %s", r.what);
  if (tiff) TIFFClose(tiff);
  return status;
}

/* ---- WebP ---- */

static int decode_webp(picture* p) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return picture_fails(p, "libwebp is of another version than its header");
  VP8StatusCode code = WebPGetFeatures(p->stream, p->bytes, &config.input);
  if (!code && config.input.has_animation)
    return picture_fails(p, "an animated WebP image; give one of its images alone");
  if (!code) {
    const int status = check_picture_size(p, (uint64_t)config.input.width, (uint64_t)config.input.height);
    if (status) return status;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = p->pixels;
    config.output.u.RGBA.stride = (int)(3 * p->width);
    config.output.u.RGBA.size = 3 * p->width * p->height;
    code = WebPDecode(p->stream, p->bytes, &config);
    WebPFreeDecBuffer(&config.output);
  }
  if (code == VP8_STATUS_OK) return HOIST_HOST_OK;
  if (code == VP8_STATUS_OUT_OF_MEMORY) return picture_no_memory(p);
  if (code == VP8_STATUS_NOT_ENOUGH_DATA || code == VP8_STATUS_SUSPENDED) return picture_ends(p, "WebP");
  return picture_fails(p, "its WebP picture cannot be decoded: libwebp's status %d", (int)code);
}

/* ---- JPEG 2000 ---- */

typedef struct jpeg2000_reading {
  picture* p;
  size_t at;
  char what[160];
} jpeg2000_reading;

static OPJ_SIZE_T jpeg2000_takes(void* to, OPJ_SIZE_T bytes, void* reading) {
  jpeg2000_reading* r = reading;
  const size_t left = r->p->bytes - r->at, taken = bytes < left ? bytes : left;
  if (!taken) return (OPJ_SIZE_T)-1;
  memcpy(to, r->p->stream + r->at, taken);
  r->at += taken;
  return taken;
}

static OPJ_OFF_T jpeg2000_skips(OPJ_OFF_T bytes, void* reading) {
  jpeg2000_reading* r = reading;
  if (bytes < 0 || (uint64_t)bytes > r->p->bytes - r->at) return -1;
  r->at += (size_t)bytes;
  return bytes;
}

static OPJ_BOOL jpeg2000_seeks(OPJ_OFF_T to, void* reading) {
  jpeg2000_reading* r = reading;
  if (to < 0 || (uint64_t)to > r->p->bytes) return OPJ_FALSE;
  r->at = (size_t)to;
  return OPJ_TRUE;
}

static void jpeg2000_notes(const char* what, void* reading) {
  jpeg2000_reading* r = reading;
  if (!*r->what) snprintf(r->what, sizeof r->what, "%.*s", (int)strcspn(what, "\n"), what);
}

static void jpeg2000_is_silent(const char* what, void* reading) {
  (void)what;
  (void)reading;
}

/* While reading a header, the library allocates memory for all tiles and components that it claims, so every place in
 * the stream with the two markers of a header must claim the expected size. */
static int check_jpeg2000_headers(picture* p) {
  enum { header_bytes = 42, most_components = 4, most_tiles = 4096 };
  static const unsigned char markers[] = {0xFF, 0x4F, 0xFF, 0x51};
  const unsigned char *at = p->stream, *end = p->stream + p->bytes;
  size_t count = 0;
  while ((at = memmem(at, (size_t)(end - at), markers, sizeof markers))) {
    if (end - at < header_bytes) break;
    uint64_t n[8]; /* the image's end and offset, the tiles' size and offset; each horizontal, then vertical */
    for (size_t i = 0; i < 8; ++i) n[i] = big_at(at + 8 + 4 * i);
    if (n[0] <= n[2] || n[1] <= n[3] || !n[4] || !n[5] || n[6] > n[2] || n[7] > n[3])
      return picture_fails(p, "the header of its JPEG 2000 image is damaged");
    const int status = check_picture_size(p, n[0] - n[2], n[1] - n[3]);
    if (status) return status;
    const uint64_t across = (n[0] - n[6] + n[4] - 1) / n[4], down = (n[1] - n[7] + n[5] - 1) / n[5];
    const unsigned components = (unsigned)at[40] << 8 | at[41];
    if (!components || components > most_components || across > most_tiles || down > most_tiles ||
        across * down > most_tiles)
      return picture_fails(p, "a JPEG 2000 picture of %u components in %llu tiles", components,
                           (unsigned long long)(across * down));
    at += sizeof markers;
    ++count;
  }
  return count ? HOIST_HOST_OK : picture_ends(p, "JPEG 2000");
}

static int take_jpeg2000(picture* p, const opj_image_t* image) {
  if (image->color_space == OPJ_CLRSPC_SYCC || image->color_space == OPJ_CLRSPC_EYCC ||
      image->color_space == OPJ_CLRSPC_CMYK)
    return picture_fails(p, "a JPEG 2000 image of other colours than grey or red, green and blue");
  const size_t colours = image->numcomps >= 3 ? 3 : 1;
  for (size_t c = 0; c < colours; ++c) {
    const opj_image_comp_t* from = &image->comps[c];
    if (!from->data || from->w != p->width || from->h != p->height)
      return picture_fails(p, "a JPEG 2000 image whose components have several sizes");
    if (from->prec < 1 || from->prec > 31)
      return picture_fails(p, "a JPEG 2000 picture of %u bits a sample", (unsigned)from->prec);
    const int64_t offset = from->sgnd ? (int64_t)1 << (from->prec - 1) : 0;
    for (size_t i = 0; i < p->width * p->height; ++i) {
      const int64_t value = from->data[i] + offset;
      p->pixels[3 * i + c] = value < 0 ? 0 : to_byte((uint64_t)value, ((uint64_t)1 << from->prec) - 1);
    }
  }
  for (size_t i = 0; colours == 1 && i < p->width * p->height; ++i)
    p->pixels[3 * i + 1] = p->pixels[3 * i + 2] = p->pixels[3 * i];
  return HOIST_HOST_OK;
}

static int decode_jpeg2000(picture* p) {
  int status = check_jpeg2000_headers(p);
  if (status) return status;
  jpeg2000_reading r = {p, 0, ""};
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* image = NULL;
  opj_codec_t* codec = opj_create_decompress(p->stream[0] == 0xFF ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  opj_stream_t* stream = opj_stream_create(1 << 16, OPJ_TRUE);
  if (codec && stream) {
    opj_set_error_handler(codec, jpeg2000_notes, &r);
    opj_set_warning_handler(codec, jpeg2000_is_silent, NULL);
    opj_set_info_handler(codec, jpeg2000_is_silent, NULL);
    opj_stream_set_read_function(stream, jpeg2000_takes);
    opj_stream_set_skip_function(stream, jpeg2000_skips);
    opj_stream_set_seek_function(stream, jpeg2000_seeks);
    opj_stream_set_user_data(stream, &r, NULL);
    opj_stream_set_user_data_length(stream, p->bytes);
    if (opj_setup_decoder(codec, &parameters) && opj_decoder_set_strict_mode(codec, OPJ_TRUE) &&
        opj_read_header(stream, codec, &image) && opj_decode(codec, stream, image)) {
      status = take_jpeg2000(p, image);
    } else {
      status = picture_fails(p, "its JPEG 2000 picture cannot be decoded: %s", r.what);
    }
  } else {
    status = picture_no_memory(p);
  }
  opj_image_destroy(image);
  if (stream) opj_stream_destroy(stream);
  if (codec) opj_destroy_codec(codec);
  return status;
}

/* ---- all formats ---- */

typedef struct picture_format {
  const char* begins; /* '?' matches any byte */
  size_t bytes;
  int (*decode)(picture* p);
} picture_format;

/* All decoders are called through this table. */
static const picture_format picture_formats[] = {
    {"BM", 2, decode_bmp},
    {"\xFF\xD8\xFF", 3, decode_jpeg},
    {"\0\0\0\x0CjP  \r\n\x87\n", 12, decode_jpeg2000},
    {"\xFF\x4F\xFF\x51", 4, decode_jpeg2000},
    {"\x89PNG\r\n\x1A\n", 8, decode_png},
    {"P1", 2, decode_pnm},
    {"P2", 2, decode_pnm},
    {"P3", 2, decode_pnm},
    {"P4", 2, decode_pnm},
    {"P5", 2, decode_pnm},
    {"P6", 2, decode_pnm},
    {"II*\0", 4, decode_tiff},
    {"MM\0*", 4, decode_tiff},
    {"RIFF????WEBP", 12, decode_webp},
};

static int begins_with(const picture* p, const picture_format* format) {
  if (p->bytes < format->bytes) return 0;
  for (size_t i = 0; i < format->bytes; ++i) {
    if (format->begins[i] != '?' && (unsigned char)format->begins[i] != p->stream[i]) return 0;
  }
  return 1;
}

HOIST_INTERNAL int hoist_read_picture(const unsigned char* stream, size_t bytes, hoist_picture* picture, char* message,
                                      size_t message_bytes) {
  const int takes_memory = !picture->pixels;
  struct picture p = {stream, bytes, picture->height, picture->width, picture->pixels, message, message_bytes};
  int status = HOIST_HOST_BAD_VALUE;
  size_t i = 0;
  const size_t count = sizeof picture_formats / sizeof *picture_formats;
  while (i < count && !begins_with(&p, &picture_formats[i])) ++i;
  if (i < count) {
    status = picture_formats[i].decode(&p);
  } else {
    picture_fails(&p, "%zu bytes that are no picture in BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP", bytes);
  }
  if (status && takes_memory) {
    free(p.pixels);
    p.pixels = NULL;
  }
  picture->height = p.height;
  picture->width = p.width;
  picture->pixels = p.pixels;
  return status;
}
#else

HOIST_INTERNAL int hoist_read_picture(const unsigned char* stream, size_t bytes, hoist_picture* picture, char* message,
                                      size_t message_bytes) {
  (void)stream;
  (void)bytes;
  (void)picture;
  snprintf(message, message_bytes, "this program is built without image libraries");
  return HOIST_HOST_BAD_VALUE;
}
#endif

HOIST_INTERNAL int hoist_decode_picture(hoist_host_call* call) {
  const hoist_host_array *stream = &call->inputs[0], *pixels = call->output;
  hoist_picture picture = {(size_t)pixels->shape[0], (size_t)pixels->shape[1], pixels->data};
  return hoist_read_picture(stream->data, (size_t)stream->elements, &picture, call->message, sizeof call->message);
}
