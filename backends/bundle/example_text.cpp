// example.c of a bundle: the program is the same for every bundle; its comment names the inputs and outputs.
#include "backends/bundle/bundle_text.h"

namespace hoist {
namespace {

constexpr std::string_view program = R"text(#define _POSIX_C_SOURCE 200809L

#include "runtime/hoist_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HOIST_LINKED_KERNELS
extern const hoist_linked_kernel hoist_linked_kernels[]; /* native/kernels.c */
#endif

static int fail(hoist_bundle* bundle, hoist_status status) {
  fprintf(stderr, "example: %s: %s\n", hoist_status_name(status), hoist_error_message(bundle));
  hoist_close(bundle);
  return status == HOIST_MISMATCH ? 1 : status == HOIST_BAD_BUNDLE || status == HOIST_BAD_ARGUMENT ? 3 : 4;
}

static void report(void* user, const hoist_finding* finding) {
  (void)user;
  printf("%s  %s: %s\n", finding->passed ? "ok  " : "FAIL", finding->subject, finding->message);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* Reads exactly `bytes` bytes. */
static int read_raw(const char* path, void* data, size_t bytes) {
  FILE* file = fopen(path, "rb");
  if (!file) {
    perror(path);
    return 0;
  }
  const size_t got = fread(data, 1, bytes, file);
  const int longer = got == bytes && fgetc(file) != EOF;
  fclose(file);
  if (got == bytes && !longer) return 1;
  fprintf(stderr, "example: %s: has %s than the %zu bytes of the input\n", path, longer ? "more" : "fewer", bytes);
  return 0;
}

/* Each line of the file is a string of at most 4095 bytes. */
static int set_strings(hoist_bundle* bundle, size_t index, size_t count, const char* path) {
  hoist_string* strings = calloc(count + 1, sizeof *strings);
  char* lines = malloc(4096 * (count + 1));
  FILE* file = fopen(path, "rb");
  size_t read = 0;
  if (!file) perror(path);
  while (strings && lines && file && read < count && fgets(lines + 4096 * read, 4096, file)) {
    strings[read].data = lines + 4096 * read;
    strings[read].length = strcspn(strings[read].data, "\n");
    ++read;
  }
  if (file) fclose(file);
  if (file && read < count) fprintf(stderr, "example: %s: has fewer than the %zu lines of the input\n", path, count);
  const int done = strings && lines && read == count &&
                   hoist_set_input_strings(bundle, index, strings, count) == HOIST_OK;
  free(strings);
  free(lines);
  return done ? 0 : 3;
}

/* The next number in the header of a .ppm or .pgm file, after blanks and lines that begin with #; 0 without one. */
static size_t header_number(FILE* file) {
  size_t value = 0;
  int c = fgetc(file);
  while (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '#') {
    if (c == '#') while (c != '\n' && c != EOF) c = fgetc(file);
    else c = fgetc(file);
  }
  for (; c >= '0' && c <= '9' && value < 100000; c = fgetc(file)) value = 10 * value + (size_t)(c - '0');
  return value;
}

/* The runtime resizes and scales the pixels of an image as the bundle states. This example reads the simplest formats,
 * .ppm and .pgm; pixels of a camera or of any decoder serve as well. */
static int set_image(hoist_bundle* bundle, size_t index, const char* path) {
  hoist_pixels pixels = {NULL, 0, 0, 0, 0, 0};
  FILE* file = fopen(path, "rb");
  if (!file) return perror(path), 3;
  const int p = fgetc(file), kind = fgetc(file);
  pixels.channels = p == 'P' && kind == '6' ? 3 : p == 'P' && kind == '5' ? 1 : 0;
  if (pixels.channels) pixels.columns = header_number(file), pixels.rows = header_number(file);
  unsigned char* data = NULL;
  if (pixels.rows && pixels.columns && header_number(file) == 255) {
    data = malloc(pixels.rows * pixels.columns * pixels.channels);
    pixels.data = data;
  }
  if (!data || fread(data, pixels.columns * pixels.channels, pixels.rows, file) != pixels.rows) {
    fprintf(stderr, "example: %s: not a complete .ppm or .pgm image of 8 bits (P6 or P5)\n", path);
    fclose(file);
    free(data);
    return 3;
  }
  fclose(file);
  const hoist_status status = hoist_set_input_pixels(bundle, index, &pixels, 1);
  free(data);
  if (status) fprintf(stderr, "example: %s: %s\n", path, hoist_error_message(bundle));
  return status ? 3 : 0;
}

static int is_image(const char* path) {
  const char* dot = strrchr(path, '.');
  return dot && (strcmp(dot, ".ppm") == 0 || strcmp(dot, ".pgm") == 0);
}

/* NAME=FILE on the command line fills an input with the raw bytes of a file; an input of strings with its lines. */
static int set_from_file(hoist_bundle* bundle, const char* argument) {
  const char* equals = strrchr(argument, '=');
  char name[256];
  hoist_array input;
  if (!equals || (size_t)(equals - argument) >= sizeof name) {
    fprintf(stderr, "example: %s: neither an option nor NAME=FILE\n", argument);
    return 2;
  }
  memcpy(name, argument, (size_t)(equals - argument));
  name[equals - argument] = 0;
  const int index = hoist_input_index(bundle, name);
  if (index < 0 || hoist_input(bundle, (size_t)index, &input) != HOIST_OK) {
    fprintf(stderr, "example: no input is called %s\n", name);
    return 3;
  }
  if (strcmp(input.scalar, "string") == 0) return set_strings(bundle, (size_t)index, input.bytes / 8, equals + 1);
  hoist_preprocessing how;
  if (is_image(equals + 1) && hoist_input_preprocessing(bundle, (size_t)index, &how) == HOIST_OK)
    return set_image(bundle, (size_t)index, equals + 1);
  void* data = malloc(input.bytes + 1);
  if (!data) return 4;
  int code = read_raw(equals + 1, data, input.bytes) ? 0 : 3;
  if (!code && hoist_set_input(bundle, (size_t)index, data, input.bytes) != HOIST_OK) code = 3;
  free(data);
  return code;
}

static int print_strings(hoist_bundle* bundle, size_t index, size_t count) {
  hoist_string* strings = malloc((count + 1) * sizeof *strings);
  const int read = strings && hoist_get_output_strings(bundle, index, strings, count) == HOIST_OK;
  for (size_t i = 0; read && i < count && i < 10; ++i) printf(" \"%s\"", strings[i].data);
  if (read) printf("%s\n", count > 10 ? " ..." : "");
  free(strings);
  return read;
}

static int print_numbers(hoist_bundle* bundle, size_t index, const hoist_array* output) {
  unsigned char* data = malloc(output->bytes + 1);
  if (!data || hoist_get_output(bundle, index, data, output->bytes) != HOIST_OK) {
    free(data);
    return 0;
  }
  const int is_float = strcmp(output->scalar, "f32") == 0;
  const size_t width = is_float ? sizeof(float) : 1;
  for (size_t i = 0; i < 10 && (i + 1) * width <= output->bytes; ++i) {
    float value;
    if (is_float) {
      memcpy(&value, data + i * width, sizeof value);
      printf(" %g", value);
    } else {
      printf(" %02x", data[i]);
    }
  }
  printf("%s\n", output->bytes > 10 * width ? " ..." : "");
  free(data);
  return 1;
}

static int print_output(hoist_bundle* bundle, size_t index) {
  hoist_array output;
  int64_t shape[32]; /* the actual shape, at most output.shape */
  if (hoist_output(bundle, index, &output) != HOIST_OK || output.rank > 32 ||
      hoist_output_shape(bundle, index, shape, output.rank) != HOIST_OK)
    return 0;
  printf("%s %s[", output.name, output.scalar);
  for (size_t i = 0; i < output.rank; ++i) printf("%s%lld", i ? "," : "", (long long)shape[i]);
  printf("]:");
  if (strcmp(output.scalar, "string") == 0) return print_strings(bundle, index, output.bytes / 8);
  return print_numbers(bundle, index, &output);
}

int main(int count, char** arguments) {
  hoist_options options = {0};
#ifdef HOIST_LINKED_KERNELS
  options.linked_kernels = hoist_linked_kernels;
#endif
  char folder[4096] = ".";
  const char* slash = strrchr(arguments[0], '/');
  if (slash && (size_t)(slash - arguments[0]) < sizeof folder) {
    /* Without an argument the bundle is in the program's folder. */
    memcpy(folder, arguments[0], (size_t)(slash - arguments[0]));
    folder[slash - arguments[0]] = 0;
    if (!*folder) strcpy(folder, "/");
  }
  int verify = 0, runs = 20;
  for (int i = 1; i < count; ++i) {
    const char* value = i + 1 < count ? arguments[i + 1] : "";
    if (strcmp(arguments[i], "--verify") == 0) verify = 1;
    else if (strcmp(arguments[i], "--device") == 0 && *value) options.device = value, ++i;
    else if (strcmp(arguments[i], "--threads") == 0 && *value) options.threads = atoi(value), ++i;
    else if (strcmp(arguments[i], "--runs") == 0 && *value) runs = atoi(value), ++i;
    else if (strcmp(arguments[i], "--bundle") == 0 && *value) snprintf(folder, sizeof folder, "%s", value), ++i;
    else if (!strchr(arguments[i], '=')) {
      printf("usage: %s [--verify] [--device D] [--threads N] [--runs N] [--bundle FOLDER] [INPUT=FILE ...]\n",
             arguments[0]);
      return strcmp(arguments[i], "--help") == 0 ? 0 : 2;
    }
  }

  hoist_bundle* bundle;
  hoist_status status = hoist_open(folder, &options, &bundle);
  if (status) return fail(bundle, status);
  printf("%s on %s, %d compute units, compiled kernels: cache %s\n", hoist_model_name(bundle),
         hoist_device_name(bundle), hoist_threads(bundle), hoist_cache_outcome(bundle));
  if (!hoist_fits_profile(bundle)) {
    fprintf(stderr, "the bundle is made for %s, a %s: it may be slow here (--device chooses another)\n",
            hoist_profile_name(bundle), hoist_profile_is_cpu(bundle) ? "CPU" : "GPU");
  }
  if (verify) {
    status = hoist_verify(bundle, report, NULL);
    if (status) return fail(bundle, status);
    printf("verified\n");
    hoist_close(bundle);
    return 0;
  }

  status = hoist_seed_inputs(bundle, 1);
  if (status) return fail(bundle, status);
  for (int i = 1; i < count; ++i) {
    if (strncmp(arguments[i], "--", 2) == 0) {
      i += strcmp(arguments[i], "--verify") != 0;
      continue;
    }
    const int code = set_from_file(bundle, arguments[i]);
    if (code) {
      hoist_close(bundle);
      return code;
    }
  }
  if (runs < 1) runs = 1;
  double* times = malloc((size_t)runs * sizeof *times);
  if (!times) return fail(bundle, HOIST_OUT_OF_MEMORY);
  for (int i = 0; i < runs; ++i) {
    const double start = now();
    status = hoist_run(bundle);
    if (status) return fail(bundle, status);
    times[i] = now() - start;
  }
  qsort(times, (size_t)runs, sizeof *times, ascending);
  for (size_t i = 0; i < hoist_output_count(bundle); ++i) {
    if (!print_output(bundle, i)) return fail(bundle, HOIST_BAD_BUNDLE);
  }
  printf("%d runs, median %.3f ms, fastest %.3f ms\n", runs, times[runs / 2] * 1e3, times[0] * 1e3);
  free(times);
  hoist_close(bundle);
  return 0;
}
)text";

/// Replaces characters that are unsafe in a C comment.
std::string commented(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += plain || c == '_' || c == '.' || c == '-' || c == ':' ? c : '_';
  }
  return out;
}

void list(const Plan& plan, std::string_view kind, const std::vector<int>& indices, std::string& out) {
  for (int index : indices) {
    const PlanArray& array = plan.arrays[static_cast<size_t>(index)];
    out += " *   ";
    out += kind;
    out += ' ' + commented(array.name) + " : ";
    for (int64_t extent : array.shape) out += '[' + std::to_string(extent) + ']';
    out += row(array.scalar).name;
    out += ", " + std::to_string(byte_size(array.scalar, array.shape)) + " bytes\n";
  }
}

}  // namespace

std::string example_text(const Plan& plan) {
  std::string out = "/* Runs the bundle of " + commented(plan.model_name) + "; edit it freely.\n" +
                    (plan.targets.empty()
                         ? " * Build it with make, or: cc example.c runtime/hoist_runtime.c -lOpenCL -lpthread -ldl -o "
                           "example\n"
                         : " * Build it with make, or: cc -DHOIST_WITHOUT_OPENCL example.c runtime/hoist_runtime.c "
                           "-lpthread -ldl -lm -o example\n") +
                    " * NAME=FILE sets an input to raw little-endian bytes" +
                    (plan.preprocessing.empty() ? "" : " or to an image (.ppm, .pgm)") +
                    "; other inputs get seeded random values.\n";
  const auto first = [](const std::vector<int>& arrays, size_t count) {
    return std::vector<int>(arrays.begin(), arrays.begin() + static_cast<std::ptrdiff_t>(count));
  };
  list(plan, "input", first(plan.inputs, plan.model_inputs()), out);
  list(plan, "output", first(plan.outputs, plan.model_outputs()), out);
  out += " */\n";
  out += program;
  return out;
}

}  // namespace hoist
