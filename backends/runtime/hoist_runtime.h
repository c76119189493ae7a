/* The runtime of a hoist bundle: loads the folder, runs it on an OpenCL device or as native code, checks it.
 *
 * C99 and POSIX; depends on OpenCL 1.2 and nothing else, and not on that where it is compiled with
 * -DHOIST_WITHOUT_OPENCL, for bundles of native code. Those are loaded from the bundle's shared library, or linked from
 * its static one (hoist_options.linked_kernels); they run on the processor that the program runs on. Every function
 * that can fail returns a status, and the handle keeps a message that names the offender. What a bundle's files say is
 * not trusted: hashes, sizes, offsets and launch sizes are checked before use, and a damaged one gives a message, never
 * a crash. What its kernels do is: they are compiled and run, on a CPU as native code of your process, and the hashes
 * (XXH64) find damage but are no signature. Open bundles from those alone whose programs you would run; SECURITY.md of
 * hoist says how to sign one. Different handles may be used from different threads at the same time, also where they
 * share a context; one handle must not.
 *
 * The first call into OpenCL sets variables of PoCL's, where they are unset, which it reads once in a process; set them
 * yourself to decide otherwise. POCL_AFFINITY=1 when the process may use all cores, because PoCL is up to twice as fast
 * with pinned workers. POCL_DEVICES where the first bundle that is opened is computed by one core, because it is small
 * or options.threads is 1: then PoCL also has a serial device, which computes in the calling thread, on its stack, and
 * saves such a run the waking of another thread. OpenCL code beside hoist finds two devices then, the serial one first.
 */
#ifndef HOIST_RUNTIME_H
#define HOIST_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a struct of this header changes, or a function takes or gives something else: programs that load the
 * runtime as a shared library, whose name ends with this number, ask the function before they call any other. */
#define HOIST_API_VERSION 1
int hoist_api_version(void);

typedef enum hoist_status {
  HOIST_OK = 0,
  HOIST_BAD_ARGUMENT = 1, /* a name, an index or a number of bytes that the bundle does not have */
  HOIST_BAD_BUNDLE = 2,   /* a file is missing, damaged, or of a newer format */
  HOIST_NO_DEVICE = 3,    /* no OpenCL platform, no device of that name, native code for other processors, or a step on
                             the host needs a library that the program was built without */
  HOIST_DEVICE_ERROR = 4, /* an OpenCL call failed, or the device is too small for the bundle */
  HOIST_OUT_OF_MEMORY = 5,
  HOIST_MISMATCH = 6,            /* the self-check found a difference */
  HOIST_BAD_EXTENT = 7,          /* data give an output more elements than it has room for */
  HOIST_BAD_VALUE = 8,           /* a string that a step on the host cannot take: no number, where a number is read */
  HOIST_BAD_SIZE = 9,            /* the bundle is not compiled for these sizes */
  HOIST_TOO_MANY_ITERATIONS = 10 /* a loop whose end is up to data does not end */
} hoist_status;

typedef struct hoist_bundle hoist_bundle;

typedef struct hoist_options {
  const char*
      device;  /* native code has none: NULL or "". An index, a name, or a part of one, in any letter case; NULL: the
                  first of the profile's  name and kind, else the first of its kind (a CPU or not), else the first one */
  int threads; /* 0: all; else at most this many threads of a CPU device */
  int separate_buffers;     /* 1 to 255: a buffer for each array, so that a checking device sees an overrun; every byte
                               of it is this number at first, so that a result which depends on elements that nobody
                               wrote changes with it (255 makes NaN) */
  int no_cache;             /* not 0: compile, neither read compiled programs nor write them to the cache */
  const char* cache_folder; /* NULL: ${XDG_CACHE_HOME:-~/.cache}/hoist; kept to 1000 entries and 256 MiB */
  const hoist_bundle* context_of; /* OpenCL alone. NULL: a context of its own; else an open handle with which to share
                                     its context, so its device and threads as well; either may be closed first */
  const struct hoist_linked_kernel* linked_kernels; /* NULL: native code is loaded from the bundle's shared library;
                                                       else the table in the bundle's native/kernels.c, which is linked
                                                       with its static one */
  /* NULL, or told how far the driver is, which may take minutes where nothing is cached: by the thread that opens the
   * bundle, or chooses other sizes, before kernels.cl is compiled (`done` 0, `kernel` ""), before a kernel is launched
   * for the first time (a launch of several steps has a name of its own), and at the end (`done` is `total`). Native
   * code has nothing to tell. */
  void (*progress)(void* user, size_t done, size_t total, const char* kernel);
  void* user; /* for progress, as long as the handle is open */
} hoist_options;

/* A kernel of native code that is part of the program. A table of them ends with a row of NULLs. */
typedef struct hoist_linked_kernel {
  const char* target; /* "x86-64-v3" */
  const char* kernel;
  int (*function)(void** arguments);
} hoist_linked_kernel;

/* An input, an output or any other array; the strings and the shape belong to the handle. */
typedef struct hoist_array {
  const char* name;
  const char* scalar; /* "f32", "i8", ... as hoist's language writes them; types of 2 and 4 bits are packed, the lowest
                         bits first; "string": hoist_set_input_strings, of which `bytes` / 8 are there */
  size_t rank;
  const int64_t* shape; /* outermost extent first, row-major */
  size_t bytes;
} hoist_array;

/* One launch. `layers` are the model's layers that it computes; `arguments` are array indices, parameter by parameter.
 */
typedef struct hoist_step {
  const char* kernel;
  int kernel_index;
  size_t layer_count;
  const char* const* layers;
  size_t argument_count;
  const uint32_t* arguments;
  int64_t operations; /* arithmetic operations of the launch */
  int on_host;        /* the host performs it, and no kernel is launched */
} hoist_step;

typedef struct hoist_device {
  char platform[128];
  char name[256];
  char driver[128];
  int is_cpu; /* a CPU that computes in the program's memory */
  unsigned compute_units;
} hoist_device;

/* What one of a bundle's specialisations is compiled for: sizes by name, as `hoist compile --dim batch=1,8` has them.
 * The strings and numbers belong to the handle. */
typedef struct hoist_specialisation {
  size_t size_count; /* 0 where the bundle is compiled for one set of sizes */
  const char* const* names;
  const int64_t* sizes;
} hoist_specialisation;

/* Pixels of 8 bits as cameras and decoders give them. */
typedef struct hoist_pixels {
  const unsigned char* data; /* row by row from the top, `channels` bytes a pixel */
  size_t rows, columns;
  size_t channels;  /* 1: grey; 3: red, green, blue */
  size_t row_pitch; /* bytes from a row to the next; 0: columns * channels */
  int blue_first;   /* not 0: the bytes are blue, green, red */
} hoist_pixels;

/* How pictures become an input: resized (a triangle filter as wide as what a pixel covers), cropped around the middle,
 * colours in the input's order, (value * scale - mean) / deviation of each value from 0 to 255, in the input's layout.
 * Floats are rounded half to even, integers too, and those stop at the ends of their type. `hoist compile` stores it
 * where it is given --resize, --crop, --colours, --scale, --mean, --std or --layout. */
typedef struct hoist_preprocessing {
  size_t rows, columns, channels;      /* that the input takes; 1 channel (grey) or 3 */
  int channels_first;                  /* the input is [channels][rows][columns], else [rows][columns][channels] */
  int blue_first;                      /* the input's channels are blue, green, red */
  int crop;                            /* what a resized picture has beyond the input goes; 0: it must have none */
  size_t resize_rows, resize_columns;  /* both 0: to rows and columns; only rows 0: the shorter side to the other one */
  double scale, mean[3], deviation[3]; /* the two by channel, as the input has them */
} hoist_preprocessing;

/* One line of a self-check. `subject` is "file weights.bin", "kernel conv1" or "output logits". */
typedef struct hoist_finding {
  const char* subject;
  int passed;
  const char* message;
  uint64_t compared;    /* positions compared; 0 for files */
  double largest_error; /* largest absolute difference among them */
} hoist_finding;
typedef void (*hoist_report)(void* user, const hoist_finding* finding);

/* The devices of all platforms, in the order that an index in hoist_options counts. Fills at most `capacity` and
 * returns how many there are. */
int hoist_devices(hoist_device* devices, int capacity);
/* Before every other call that uses OpenCL: sets POCL_DEVICES as above whatever is opened first. For programs that ask
 * for devices, or open a large bundle, before small ones. */
void hoist_offer_serial_devices(void);

/* Opens the bundle in `folder`, compiles its kernels or takes them from programs/ there (`hoist compile --programs`) or
 * from the cache, and allocates its buffers. `options` may be NULL. *bundle is set on failure too, for
 * hoist_error_message, unless memory ran out; close it in any case. */
hoist_status hoist_open(const char* folder, const hoist_options* options, hoist_bundle** bundle);
void hoist_close(hoist_bundle* bundle);

/* What the last failing call on this handle had to say; "" when none failed. */
const char* hoist_error_message(const hoist_bundle* bundle);
const char* hoist_status_name(hoist_status status);

const char* hoist_model_name(const hoist_bundle* bundle);
const char* hoist_device_name(const hoist_bundle* bundle);
int hoist_device_index(const hoist_bundle* bundle); /* in the list of hoist_devices; -1: native code */
/* Whether this processor has what the target of native code needs, by its name ("x86-64-v3"), and the system allows it:
 * for sapphirerapids the process asks for the registers of matrices. */
int hoist_runs_target(const char* target);
/* What the bundle is compiled for: a profile, which has the name and the kind of a device; and whether the device in
 * use is of that kind. Where it is not, results are right and a run may take a thousand times as long. */
const char* hoist_profile_name(const hoist_bundle* bundle);
int hoist_profile_is_cpu(const hoist_bundle* bundle);
int hoist_fits_profile(const hoist_bundle* bundle);
int hoist_threads(const hoist_bundle* bundle); /* compute units of the device in use */
/* "hit", "hit: programs/ of the bundle", "miss: REASON"; "native code, nothing to compile". */
const char* hoist_cache_outcome(const hoist_bundle* bundle);

size_t hoist_input_count(const hoist_bundle* bundle);
size_t hoist_output_count(const hoist_bundle* bundle);
hoist_status hoist_input(hoist_bundle* bundle, size_t index, hoist_array* array);
hoist_status hoist_output(hoist_bundle* bundle, size_t index, hoist_array* array);
/* -1 when there is none of that name. */
int hoist_input_index(const hoist_bundle* bundle, const char* name);
int hoist_output_index(const hoist_bundle* bundle, const char* name);

/* Copies the data in; `bytes` must be the array's. An input keeps its value over many runs. */
hoist_status hoist_set_input(hoist_bundle* bundle, size_t index, const void* data, size_t bytes);
hoist_status hoist_set_input_named(hoist_bundle* bundle, const char* name, const void* data, size_t bytes);
/* Without a copy: memory of the handle from which the next runs take an input, and in which they leave an output. Both
 * stay until the handle is closed; leave them alone while it runs. On CPU devices kernels work in that very memory. An
 * input counts as set from then on, with zeros where nothing was written. */
hoist_status hoist_input_memory(hoist_bundle* bundle, size_t index, void** memory);
hoist_status hoist_output_memory(hoist_bundle* bundle, size_t index, const void** memory);
/* Fills every input with seeded numbers from its domain (hoist_seeded_fill), and those of strings with strings that the
 * model knows and with the empty one; encoded pictures become ones of the right size. */
hoist_status hoist_seed_inputs(hoist_bundle* bundle, uint64_t seed);
/* Runs every step and waits; every input must have been set. */
hoist_status hoist_run(hoist_bundle* bundle);
hoist_status hoist_get_output(hoist_bundle* bundle, size_t index, void* data, size_t bytes);
hoist_status hoist_get_output_named(hoist_bundle* bundle, const char* name, void* data, size_t bytes);

/* A string: any bytes, UTF-8 by ONNX's rules; zeros may be among them. */
typedef struct hoist_string {
  const char* data;
  size_t length;
} hoist_string;

/* The two for inputs and outputs of strings, whose elements no other function takes or gives. Strings that are set are
 * copied, and stay set over many runs. Those that are given back belong to the handle, have a zero behind them, and
 * live until the next run begins or the handle is closed. `count` must be the number of elements of the array. Both
 * fail with HOIST_BAD_VALUE where a string has the same hash of 64 bits as another one, since arrays of devices hold
 * hashes. */
hoist_status hoist_set_input_strings(hoist_bundle* bundle, size_t index, const hoist_string* strings, size_t count);
hoist_status hoist_get_output_strings(hoist_bundle* bundle, size_t index, hoist_string* strings, size_t count);

/* How long an output is after a run, outermost extent first; `rank` is its array's. Where data decide how many elements
 * it has (the positions of those that are not 0, the boxes that do not overlap), hoist_output gives the most that there
 * can be, which is what hoist_get_output copies and hoist_output_memory holds: rows of that length, in each of which
 * the elements that count stand first. Fails before the first run, and with HOIST_BAD_EXTENT where data ask for more
 * elements than there is room for, the 9 largest of 5 say. */
hoist_status hoist_output_shape(hoist_bundle* bundle, size_t index, int64_t* shape, size_t rank);

/* A bundle may be compiled for several sizes, and holds a specialisation for each of their combinations: kernels,
 * arrays, inputs and outputs of their own, on weights that they share. One of them is in use, after hoist_open the
 * first; all functions speak of that one. Choosing another loads it when it is chosen for the first time, which
 * compiles its kernels where the cache has none, and keeps what was loaded. Each has inputs, outputs and memory of its
 * own, which keep their values: set the inputs after the choice. A choice that fails changes nothing; HOIST_BAD_SIZE
 * says that the bundle has no such sizes, and the message which ones it has. */
size_t hoist_specialisation_count(const hoist_bundle* bundle); /* 1 where there are no sizes to choose from */
size_t hoist_specialisation_in_use(const hoist_bundle* bundle);
hoist_status hoist_describe_specialisation(hoist_bundle* bundle, size_t index, hoist_specialisation* specialisation);
hoist_status hoist_choose(hoist_bundle* bundle, size_t index);
/* One size by its name; the others stay as they are. */
hoist_status hoist_choose_size(hoist_bundle* bundle, const char* name, int64_t size);
/* The sizes that give an input this shape; those that it says nothing of stay as they are. hoist_output then says what
 * shapes the outputs have. Without several specialisations it compares the shape with the only one that there is. */
hoist_status hoist_choose_input_shape(hoist_bundle* bundle, size_t index, const int64_t* shape, size_t rank);

/* Pictures as they are: resized, cropped and scaled into an input as the bundle says, by the arithmetic of `hoist run`,
 * bit for bit. An input [count][channels][rows][columns], or with the channels last, takes `count` of them, one of
 * three dimensions 1. Decoding files is the program's affair. HOIST_BAD_ARGUMENT where the bundle does not say how, or
 * the pictures do not fit; the input then stays what it was. */
hoist_status hoist_set_input_pixels(hoist_bundle* bundle, size_t index, const hoist_pixels* pixels, size_t count);
/* What the bundle says; HOIST_BAD_ARGUMENT where it says nothing. */
hoist_status hoist_input_preprocessing(hoist_bundle* bundle, size_t index, hoist_preprocessing* preprocessing);
/* The same for one picture, without a bundle: `data` has room for rows * columns * channels elements of `scalar`, "f32"
 * for example. `message` receives what is wrong. */
hoist_status hoist_prepare_pixels(const hoist_preprocessing* preprocessing, const char* scalar,
                                  const hoist_pixels* pixels, void* data, char* message, size_t capacity);

/* For tools: steps, what lies between them, and how long each takes. */
size_t hoist_step_count(const hoist_bundle* bundle);
size_t hoist_array_count(const hoist_bundle* bundle);
hoist_status hoist_describe_step(hoist_bundle* bundle, size_t index, hoist_step* step);
hoist_status hoist_describe_array(hoist_bundle* bundle, size_t index, hoist_array* array);
/* Runs steps first .. first+count-1 and waits. Where data decide which steps of a bundle run, and how often, calls go
 * on one from the other, the first of them at step 0, and end when the last of the steps has run, in a loop for the
 * first time, or has been passed. */
hoist_status hoist_run_steps(hoist_bundle* bundle, size_t first, size_t count);
/* How often the step has run since a run began: 0 in a branch that was not chosen, several times in a loop. */
uint64_t hoist_step_runs(const hoist_bundle* bundle, size_t index);
/* The array's present content; arrays that share the arena are overwritten by later steps. */
hoist_status hoist_read_array(hoist_bundle* bundle, size_t index, void* data, size_t bytes);
/* The same of an array of strings; `data` is NULL where an element holds none. */
hoist_status hoist_read_strings(hoist_bundle* bundle, size_t index, hoist_string* strings, size_t count);
/* Runs every step with profiling; step_seconds has room for hoist_step_count numbers. */
hoist_status hoist_profile(hoist_bundle* bundle, double* step_seconds);

/* The self-check: the hashes of all files, then each kernel on seeded inputs and, where the bundle has it, the whole
 * model, compared with the expected values in check.bin, and launches of several steps beside those steps launched
 * alone; of every specialisation. Overwrites the inputs. `report` may be NULL. */
hoist_status hoist_verify(hoist_bundle* bundle, hoist_report report, void* user);
/* The part that compares launches of several steps with those steps launched alone, from inputs of this seed on, which
 * it overwrites; of the sizes in use. HOIST_MISMATCH where they leave something else. */
hoist_status hoist_verify_launches(hoist_bundle* bundle, uint64_t seed, hoist_report report, void* user);
/* The first part alone; needs no device. `message` receives the first failure. */
hoist_status hoist_verify_files(const char* folder, hoist_report report, void* user, char* message, size_t capacity);

/* Seeded data, the same on every machine. Element i of parameter p has the 64 bits
 *   mix(mix(seed + (p + 1) * 0x9E3779B97F4A7C15) + (i + 1) * 0x9E3779B97F4A7C15), mix = the finaliser of splitmix64;
 * their upper 53 make u in [0, 1). Floats are low + u * (high - low), computed in double and rounded half to even into
 * the type; integers and bool are low + floor(u * (high - low + 1)). `scalar` is a name such as "f32". */
hoist_status hoist_seeded_fill(const char* scalar, uint64_t seed, uint32_t parameter, double low, double high,
                               uint64_t elements, void* data);

#ifdef __cplusplus
}
#endif

#endif
