/* JPEG 2000 images, by OpenJPEG. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "ir/host/images/encoded_image.h"

#ifdef HOIST_WITH_PICTURES
#include <openjpeg.h>
#include <stdio.h>
#include <string.h>

typedef struct jpeg2000_reading {
  encoded_image* p;
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
static int check_jpeg2000_headers(encoded_image* p) {
  enum { header_bytes = 42, most_components = 4, most_tiles = 4096 };
  static const unsigned char markers[] = {0xFF, 0x4F, 0xFF, 0x51};
  const unsigned char *at = p->stream, *end = p->stream + p->bytes;
  size_t count = 0;
  while ((at = memmem(at, (size_t)(end - at), markers, sizeof markers))) {
    if (end - at < header_bytes) break;
    uint64_t n[8]; /* the image's end and offset, the tiles' size and offset; each horizontal, then vertical */
    for (size_t i = 0; i < 8; ++i) n[i] = hoist_big_at(at + 8 + 4 * i);
    if (n[0] <= n[2] || n[1] <= n[3] || !n[4] || !n[5] || n[6] > n[2] || n[7] > n[3])
      return hoist_image_fails(p, "the header of its JPEG 2000 image is damaged");
    const int status = hoist_check_image_size(p, n[0] - n[2], n[1] - n[3]);
    if (status) return status;
    const uint64_t across = (n[0] - n[6] + n[4] - 1) / n[4], down = (n[1] - n[7] + n[5] - 1) / n[5];
    const unsigned components = (unsigned)at[40] << 8 | at[41];
    if (!components || components > most_components || across > most_tiles || down > most_tiles ||
        across * down > most_tiles)
      return hoist_image_fails(p, "a JPEG 2000 image of %u components in %llu tiles", components,
                               (unsigned long long)(across * down));
    at += sizeof markers;
    ++count;
  }
  return count ? HOIST_HOST_OK : hoist_image_ends(p, "JPEG 2000");
}

static int take_jpeg2000(encoded_image* p, const opj_image_t* image) {
  if (image->color_space == OPJ_CLRSPC_SYCC || image->color_space == OPJ_CLRSPC_EYCC ||
      image->color_space == OPJ_CLRSPC_CMYK)
    return hoist_image_fails(p, "a JPEG 2000 image of other colours than grey or red, green and blue");
  const size_t colours = image->numcomps >= 3 ? 3 : 1;
  for (size_t c = 0; c < colours; ++c) {
    const opj_image_comp_t* from = &image->comps[c];
    if (!from->data || from->w != p->width || from->h != p->height)
      return hoist_image_fails(p, "a JPEG 2000 image whose components have several sizes");
    if (from->prec < 1 || from->prec > 31)
      return hoist_image_fails(p, "a JPEG 2000 image of %u bits per sample", (unsigned)from->prec);
    const int64_t offset = from->sgnd ? (int64_t)1 << (from->prec - 1) : 0;
    for (size_t i = 0; i < p->width * p->height; ++i) {
      const int64_t value = from->data[i] + offset;
      p->pixels[3 * i + c] = value < 0 ? 0 : hoist_to_byte((uint64_t)value, ((uint64_t)1 << from->prec) - 1);
    }
  }
  for (size_t i = 0; colours == 1 && i < p->width * p->height; ++i)
    p->pixels[3 * i + 1] = p->pixels[3 * i + 2] = p->pixels[3 * i];
  return HOIST_HOST_OK;
}

HOIST_INTERNAL int hoist_decode_jpeg2000(encoded_image* p) {
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
      status = hoist_image_fails(p, "its JPEG 2000 image cannot be decoded: %s", r.what);
    }
  } else {
    status = hoist_image_no_memory(p);
  }
  opj_image_destroy(image);
  if (stream) opj_stream_destroy(stream);
  if (codec) opj_destroy_codec(codec);
  return status;
}
#endif
