/* WebP images, by libwebp. */
#include "ir/host/images/encoded_image.h"

#ifdef HOIST_WITH_PICTURES
#include <webp/decode.h>

HOIST_INTERNAL int hoist_decode_webp(encoded_image* p) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return hoist_image_fails(p, "libwebp is of another version than its header");
  VP8StatusCode code = WebPGetFeatures(p->stream, p->bytes, &config.input);
  if (!code && config.input.has_animation)
    return hoist_image_fails(p, "an animated WebP image; give one of its images alone");
  if (!code) {
    const int status = hoist_check_image_size(p, (uint64_t)config.input.width, (uint64_t)config.input.height);
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
  if (code == VP8_STATUS_OUT_OF_MEMORY) return hoist_image_no_memory(p);
  if (code == VP8_STATUS_NOT_ENOUGH_DATA || code == VP8_STATUS_SUSPENDED) return hoist_image_ends(p, "WebP");
  return hoist_image_fails(p, "its WebP image cannot be decoded: libwebp's status %d", (int)code);
}
#endif
