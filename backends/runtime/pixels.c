/* Preprocessing of images for a model's input: resizing, cropping and scaling as in training. Bundles and the hoist
 * program share this code, and its bits are the same on every machine: the factors of a product are short enough that
 * fusing it with a sum changes nothing. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/family.h"
#include "backends/runtime/transfers.h"

static int is_pixel_count(size_t rows, size_t columns) {
  return rows && columns && rows <= HOIST_MOST_PIXELS / columns;
}

HOIST_INTERNAL const char* hoist_preprocessing_problem(const hoist_preprocessing* how) {
  if (how->channels != 1 && how->channels != 3) return "images have 1 or 3 channels";
  if (!is_pixel_count(how->rows, how->columns)) return "the input has no pixels, or too many";
  if (how->resize_rows > HOIST_MOST_SIDE || how->resize_columns > HOIST_MOST_SIDE ||
      (how->resize_rows && !how->resize_columns)) {
    return "the size to resize to is impossible";
  }
  if (!isfinite(how->scale)) return "the scale is not finite";
  for (size_t c = 0; c < how->channels; ++c) {
    if (!isfinite(how->mean[c])) return "a mean is not finite";
    if (!isfinite(how->deviation[c]) || how->deviation[c] == 0) return "a deviation is zero or not finite";
  }
  return NULL;
}

static int is_pixel_type(int scalar) {
  return scalar >= 0 && scalar != HOIST_HOST_STRING && scalar != hoist_scalar_named("bool");
}

HOIST_INTERNAL int hoist_holds_images(const hoist_plan_array* array) {
  return (array->rank == 3 || array->rank == 4) && is_pixel_type(array->scalar);
}

HOIST_INTERNAL void hoist_image_shape(const hoist_plan_array* array, hoist_preprocessing* how) {
  const int64_t* shape = array->shape + (array->rank - 3);
  how->channels = (size_t)shape[how->channels_first ? 0 : 2];
  how->rows = (size_t)shape[how->channels_first ? 1 : 0];
  how->columns = (size_t)shape[how->channels_first ? 2 : 1];
}

/* ---- resizing ---- */

/* The taps of `count` outputs along a line: output i uses `counts[i]` elements from `firsts[i]` on, with `stride`
 * weights reserved for each. Firsts and ends never decrease. */
typedef struct taps {
  size_t count, stride;
  size_t *firsts, *counts;
  float* weights;
} taps;

static void free_taps(taps* t) {
  free(t->firsts);
  free(t->counts);
  free(t->weights);
}

/* Makes the taps of outputs `begin` to `begin + count` when a line of `from` elements is resized to `to`. A weight has
 * the 24 bits of a float: its product with a pixel, or with a float, is exact in double. False if memory ran out. */
static int make_taps(size_t from, size_t to, size_t begin, size_t count, taps* t) {
  const double step = (double)from / (double)to, reach = step > 1 ? step : 1;
  t->count = count;
  t->stride = (size_t)(2 * reach) + 2;
  t->firsts = malloc(count * sizeof *t->firsts);
  t->counts = malloc(count * sizeof *t->counts);
  t->weights = calloc(count, t->stride * sizeof *t->weights);
  if (!t->firsts || !t->counts || !t->weights) return 0;
  for (size_t i = 0; i < count; ++i) {
    /* volatile: fused with the sums below it would have other bits. */
    volatile double product = ((double)(begin + i) + 0.5) * step;
    const double middle = product, low = middle - reach + 0.5;
    const size_t first = low > 0 ? (size_t)low : 0, after = (size_t)(middle + reach + 0.5);
    const size_t end = after < from ? after : from;
    float* weights = t->weights + i * t->stride;
    double sum = 0;
    for (size_t k = first; k < end; ++k) {
      const double distance = fabs((double)k + 0.5 - middle) / reach;
      sum += distance < 1 ? 1 - distance : 0;
    }
    for (size_t k = first; k < end; ++k) {
      const double distance = fabs((double)k + 0.5 - middle) / reach;
      weights[k - first] = (float)((distance < 1 ? 1 - distance : 0) / sum);
    }
    t->firsts[i] = first;
    t->counts[i] = end - first;
  }
  return 1;
}

static void resize_line(const unsigned char* row, const taps* along, size_t channels, float* line) {
  for (size_t x = 0; x < along->count; ++x) {
    const float* weights = along->weights + x * along->stride;
    const unsigned char* from = row + along->firsts[x] * channels;
    for (size_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (size_t k = 0; k < along->counts[x]; ++k) sum += (double)weights[k] * from[k * channels + c];
      line[x * channels + c] = (float)sum;
    }
  }
}

/* The sums of all lines. A row of the image is resized once and added to every output that uses it. */
static void resize_rows(const hoist_pixels* pixels, size_t pitch, const taps* along, const taps* down, float* line,
                        double* sums) {
  const size_t channels = pixels->channels, width = along->count * channels;
  const size_t last = down->count - 1, end = down->firsts[last] + down->counts[last];
  size_t next = 0;
  for (size_t y = down->firsts[0]; y < end; ++y) {
    resize_line(pixels->data + y * pitch, along, channels, line);
    while (down->firsts[next] + down->counts[next] <= y) ++next;
    for (size_t i = next; i < down->count && down->firsts[i] <= y; ++i) {
      if (y >= down->firsts[i] + down->counts[i]) continue;
      const double weight = down->weights[i * down->stride + (y - down->firsts[i])];
      double* to = sums + i * width;
      for (size_t x = 0; x < width; ++x) to[x] += weight * (double)line[x];
    }
  }
}

/* ---- values ---- */

/* Clamped to 0 to 255, halves to even. */
static unsigned char nearest_byte(double sum) {
  if (!(sum > 0)) return 0;
  if (sum >= 255) return 255;
  const int whole = (int)sum;
  const double rest = sum - whole;
  return (unsigned char)(whole + (rest > 0.5 || (rest == 0.5 && whole % 2 == 1)));
}

/* The value of each 8-bit level in each channel of the input. */
static void make_table(const hoist_preprocessing* how, int scalar, uint64_t (*table)[256]) {
  for (size_t c = 0; c < how->channels; ++c) {
    for (int value = 0; value < 256; ++value) {
      volatile double scaled = value * how->scale; /* as above */
      table[c][value] = hoist_number_bits(scalar, (scaled - how->mean[c]) / how->deviation[c]);
    }
  }
}

static void store_image(const hoist_preprocessing* how, int scalar, int blue_first, const double* sums, void* data,
                        uint64_t offset) {
  uint64_t table[3][256];
  const size_t channels = how->channels, plane = how->rows * how->columns;
  make_table(how, scalar, table);
  for (size_t i = 0; i < plane; ++i) {
    for (size_t c = 0; c < channels; ++c) {
      const size_t colour = !how->blue_first == !blue_first ? c : channels - 1 - c;
      const uint64_t bits = table[c][nearest_byte(sums[i * channels + colour])];
      hoist_store_bits(scalar, data, offset + (how->channels_first ? c * plane + i : i * channels + c), bits);
    }
  }
}

/* ---- an image ---- */

typedef struct extents {
  size_t rows, columns;
} extents;

static hoist_status resized_to(const hoist_preprocessing* how, const hoist_pixels* pixels, extents* to,
                               hoist_error* error) {
  to->rows = how->resize_columns ? how->resize_rows : how->rows;
  to->columns = how->resize_columns ? how->resize_columns : how->columns;
  if (!to->rows) {
    const size_t shorter = pixels->rows < pixels->columns ? pixels->rows : pixels->columns;
    const double side = (double)how->resize_columns;
    to->rows = (size_t)((double)pixels->rows * side / (double)shorter + 0.5);
    to->columns = (size_t)((double)pixels->columns * side / (double)shorter + 0.5);
  }
  if (!is_pixel_count(to->rows, to->columns)) {
    return hoist_fail(error, HOIST_BAD_ARGUMENT,
                      "an image of %zu x %zu pixels would be resized to %zu x %zu (width x "
                      "height), more than %llu pixels",
                      pixels->columns, pixels->rows, to->columns, to->rows, (unsigned long long)HOIST_MOST_PIXELS);
  }
  const int covers = to->rows >= how->rows && to->columns >= how->columns;
  if (covers && (how->crop || (to->rows == how->rows && to->columns == how->columns))) return HOIST_OK;
  return hoist_fail(error, HOIST_BAD_ARGUMENT,
                    "an image of %zu x %zu pixels is %zu x %zu after resizing, and the input is %zu x %zu (%s)",
                    pixels->columns, pixels->rows, to->columns, to->rows, how->columns, how->rows,
                    covers ? "crop it" : "resize it to more");
}

static hoist_status check_pixels(const hoist_preprocessing* how, const hoist_pixels* pixels, hoist_error* error) {
  if (!pixels || !pixels->data) return hoist_fail(error, HOIST_BAD_ARGUMENT, "no pixels given");
  if (!is_pixel_count(pixels->rows, pixels->columns)) {
    return hoist_fail(error, HOIST_BAD_ARGUMENT, "an image of %zu x %zu pixels, expected 1 to %llu pixels",
                      pixels->columns, pixels->rows, (unsigned long long)HOIST_MOST_PIXELS);
  }
  if (pixels->channels != how->channels) {
    return hoist_fail(error, HOIST_BAD_ARGUMENT, "an image of %zu channels, and the input has %zu (%s)",
                      pixels->channels, how->channels, how->channels == 1 ? "grey" : "red, green and blue");
  }
  if (pixels->row_pitch && pixels->row_pitch < pixels->columns * pixels->channels) {
    return hoist_fail(error, HOIST_BAD_ARGUMENT, "rows of %zu bytes are too short for %zu pixels of %zu channels",
                      pixels->row_pitch, pixels->columns, pixels->channels);
  }
  return HOIST_OK;
}

/* Writes the result as elements of `data` from `offset` on. */
static hoist_status prepare(const hoist_preprocessing* how, int scalar, const hoist_pixels* pixels, void* data,
                            uint64_t offset, hoist_error* error) {
  extents to;
  taps along = {0, 0, NULL, NULL, NULL}, down = {0, 0, NULL, NULL, NULL};
  hoist_status status = check_pixels(how, pixels, error);
  if (!status) status = resized_to(how, pixels, &to, error);
  if (status) return status;
  const size_t width = how->columns * how->channels;
  float* line = malloc(width * sizeof *line);
  double* sums = calloc(how->rows, width * sizeof *sums);
  if (line && sums && make_taps(pixels->columns, to.columns, (to.columns - how->columns) / 2, how->columns, &along) &&
      make_taps(pixels->rows, to.rows, (to.rows - how->rows) / 2, how->rows, &down)) {
    const size_t pitch = pixels->row_pitch ? pixels->row_pitch : pixels->columns * pixels->channels;
    resize_rows(pixels, pitch, &along, &down, line, sums);
    store_image(how, scalar, pixels->blue_first, sums, data, offset);
  } else {
    status = hoist_no_memory(error, how->rows * width * sizeof *sums);
  }
  free_taps(&along);
  free_taps(&down);
  free(line);
  free(sums);
  return status;
}

hoist_status hoist_prepare_pixels(const hoist_preprocessing* how, const char* scalar, const hoist_pixels* pixels,
                                  void* data, char* message, size_t capacity) {
  hoist_error error = {HOIST_OK, ""};
  const int number = scalar ? hoist_scalar_named(scalar) : -1;
  const char* problem = !how ? "nothing says how" : hoist_preprocessing_problem(how);
  if (!problem && !is_pixel_type(number)) problem = "images cannot have this type";
  if (!problem && !data) problem = "no memory given";
  if (problem) {
    hoist_fail(&error, HOIST_BAD_ARGUMENT, "%s", problem);
  } else {
    prepare(how, number, pixels, data, 0, &error);
  }
  if (message && capacity) snprintf(message, capacity, "%s", error.message);
  return error.status;
}

/* ---- inputs ---- */

hoist_status hoist_input_preprocessing(hoist_bundle* b, size_t index, hoist_preprocessing* how) {
  if (hoist_in_range(b, "input", index, b->plan.input_count)) return b->error.status;
  const hoist_plan* root = hoist_root_plan(b);
  const hoist_plan_array* array = &b->plan.arrays[b->plan.inputs[index].array];
  for (size_t i = 0; i < root->preprocessing_count; ++i) {
    if (root->preprocessing[i].input != index) continue;
    *how = root->preprocessing[i].how;
    hoist_image_shape(array, how); /* shape for the sizes in use */
    const char* problem = hoist_preprocessing_problem(how);
    return problem ? hoist_fail(&b->error, HOIST_BAD_BUNDLE, "input %s: %s", array->name, problem) : HOIST_OK;
  }
  return hoist_fail(
      &b->error, HOIST_BAD_ARGUMENT,
      "input %s: the bundle does not state how pixels become it (hoist compile --scale 1/255, for example, or "
      "--mean, --std, --resize, --crop, --colours, --layout)",
      array->name);
}

hoist_status hoist_set_input_pixels(hoist_bundle* b, size_t index, const hoist_pixels* pixels, size_t count) {
  hoist_preprocessing how;
  hoist_status status = hoist_input_preprocessing(b, index, &how);
  if (status) return status;
  const hoist_plan_array* array = &b->plan.arrays[b->plan.inputs[index].array];
  const size_t wanted = array->rank == 4 ? (size_t)array->shape[0] : 1;
  if (count != wanted || (count && !pixels)) {
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "input %s takes %zu %s, %zu given", array->name, wanted,
                      wanted == 1 ? "image" : "images", pixels ? count : 0);
  }
  hoist_error error = {HOIST_OK, ""};
  void* data = calloc(array->bytes + 1, 1);
  if (!data) return hoist_fail(&b->error, HOIST_OUT_OF_MEMORY, "%s: no memory for its data", array->name);
  for (size_t i = 0; i < count && !status; ++i) {
    status =
        prepare(&how, array->scalar, &pixels[i], data, (uint64_t)i * how.rows * how.columns * how.channels, &error);
  }
  if (status) {
    hoist_fail(&b->error, status, "input %s: %s", array->name, error.message);
  } else {
    status = hoist_set_words(b, index, data, array->bytes);
  }
  free(data);
  return status;
}
