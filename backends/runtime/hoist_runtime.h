/* The runtime of a hoist bundle: loads the folder, runs it on an OpenCL device or as native code, checks it.
 *
 * C99 and POSIX. Depends on OpenCL 1.2 only, or on nothing if it is compiled with -DHOIST_WITHOUT_OPENCL for bundles
 * of native code. Native code is loaded from the bundle's shared library, or linked from its static one
 * (hoist_options.linked_kernels); it runs on the processor of the program. Every function that can fail returns a
 * status, and the handle keeps a message that names the offender. The contents of a bundle's files are untrusted:
 * hashes, sizes, offsets and launch sizes are checked before use, and a damaged file causes an error, never a crash.
 * The kernels are trusted: they are compiled and run, on a CPU as native code of your process, and the hashes (XXH64)
 * detect damage but are not a signature. Open bundles only from sources whose programs you would run; SECURITY.md of
 * hoist describes signatures. Weights of 4 MiB and more stay mapped while a handle uses them, so that processes share
 * their memory: replace an open bundle by renaming a folder, as hoist does, instead of writing to its files, because
 * the system ends a process that reads bytes which a mapped file has lost. Different handles may be used by different
 * threads at the same time, even if they share a context; one handle must not.
 *
 * The first call into OpenCL sets environment variables of PoCL, unless they are set; PoCL reads them once per
 * process. Set them yourself for other values. POCL_AFFINITY=1 is set if the process may use all cores, because PoCL
 * is up to twice as fast with pinned workers. POCL_DEVICES is set if the first bundle that is opened runs on one core,
 * because it is small or options.threads is 1. PoCL then also has a serial device, which computes in the calling
 * thread, on its stack, so that such a run need not wake another thread. Other OpenCL code of the process then finds
 * two devices, the serial one first. */
#ifndef HOIST_RUNTIME_H
#define HOIST_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a struct of this header or a function's signature or meaning changes. Programs that load the runtime as
 * a shared library, whose name ends with this number, should call the function before any other. */
#define HOIST_API_VERSION 1
int hoist_api_version(void);

typedef enum hoist_status {
  HOIST_OK = 0,
  HOIST_BAD_ARGUMENT = 1, /* a name, an index or a number of bytes that the bundle does not have */
  HOIST_BAD_BUNDLE = 2,   /* a file is missing, damaged, or of a newer format */
  HOIST_NO_DEVICE = 3,    /* no OpenCL platform; no device of that name; native code for other processors; a host op
                           * needs a library that the program was built without */
  HOIST_DEVICE_ERROR = 4, /* an OpenCL call failed, or the device is too small for the bundle */
  HOIST_OUT_OF_MEMORY = 5,
  HOIST_MISMATCH = 6,            /* the self-check found a difference */
  HOIST_BAD_EXTENT = 7,          /* the data require more elements of an output than its capacity */
  HOIST_BAD_VALUE = 8,           /* a host op cannot process a string, for instance one that should be a number */
  HOIST_BAD_SIZE = 9,            /* the bundle is not compiled for these sizes, or they lie outside its ranges */
  HOIST_TOO_MANY_ITERATIONS = 10 /* a loop with a data-dependent end exceeds its bound */
} hoist_status;

typedef struct hoist_bundle hoist_bundle;

typedef struct hoist_options {
  const char* device;       /* NULL or "" for native code. An index, or a name or a part of it, ignoring case. NULL: the
                             * first device with the target's name and kind (a CPU or not), else the first of that kind,
                             * else the first */
  int threads;              /* 0: all; else at most this many threads of a CPU device */
  int separate_buffers;     /* 1 to 255: a buffer for each array, so that a checking device detects an overrun; its
                             * initial bytes have this value, so that results which depend on unwritten elements vary
                             * with it (255 makes NaN) */
  int no_cache;             /* not 0: compile; do not use the cache of compiled programs */
  const char* cache_folder; /* NULL: ${XDG_CACHE_HOME:-~/.cache}/hoist; limited to 1000 entries and 256 MiB */
  const hoist_bundle* context_of; /* OpenCL only. NULL: a separate context; else an open handle whose context, device
                                   * and threads are shared; either handle may be closed first */
  const struct hoist_linked_kernel* linked_kernels; /* NULL: native code is loaded from the bundle's shared library;
                                                     * else the table of native/kernels.c, which is linked with the
                                                     * bundle's static library */
  /* NULL, or called with the progress of the driver, which may take minutes if nothing is cached. The thread that
   * opens the bundle or chooses other sizes calls it before kernels.cl is compiled (`done` 0, `kernel` ""), before the
   * first launch of each kernel (a fused launch has a name of its own), and at the end (`done` is `total`). Not called
   * for native code. */
  void (*progress)(void* user, size_t done, size_t total, const char* kernel);
  void* user; /* for progress; must stay valid while the handle is open */
} hoist_options;

/* A kernel of native code that is part of the program. A table ends with a row of NULLs. */
typedef struct hoist_linked_kernel {
  const char* target; /* "x86-64-v3" */
  const char* kernel;
  int (*function)(void** arguments);
} hoist_linked_kernel;

/* An input, an output or any other array; the strings and the shape belong to the handle. */
typedef struct hoist_array {
  const char* name;
  const char* scalar; /* "f32", "i8", ... as in hoist's language; types of 2 and 4 bits are packed, lowest bits first;
                       * "string": `bytes` / 8 strings, see hoist_set_input_strings */
  size_t rank;
  const int64_t* shape; /* outermost extent first, row-major */
  size_t bytes;
} hoist_array;

/* One launch. `layers` are the model's layers that it computes; `arguments` are array indices, one per parameter. */
typedef struct hoist_step {
  const char* kernel;
  int kernel_index;
  size_t layer_count;
  const char* const* layers;
  size_t argument_count;
  const uint32_t* arguments;
  int64_t operations; /* arithmetic operations of the launch */
  int on_host;        /* a host op: no kernel is launched */
} hoist_step;

typedef struct hoist_device {
  char platform[128];
  char name[256];
  char driver[128];
  int is_cpu; /* a CPU that computes in the program's memory */
  unsigned compute_units;
} hoist_device;

/* The sizes of one specialisation, by name, as in `hoist compile --dim batch=1,8`. The strings and numbers belong to
 * the handle. */
typedef struct hoist_specialisation {
  size_t size_count; /* 0 if the bundle is compiled for one set of sizes */
  const char* const* names;
  const int64_t* sizes;
} hoist_specialisation;

/* A size that a bundle leaves open, as in `hoist compile --dim length=1..512`; the string belongs to the handle. */
typedef struct hoist_open_size {
  const char* name;
  int64_t least, most;
  int64_t now; /* after hoist_open the largest one */
} hoist_open_size;

/* 8-bit pixels, as cameras and decoders provide them. */
typedef struct hoist_pixels {
  const unsigned char* data; /* row by row from the top, `channels` bytes per pixel */
  size_t rows, columns;
  size_t channels;  /* 1: grey; 3: red, green, blue */
  size_t row_pitch; /* bytes from one row to the next; 0: columns * channels */
  int blue_first;   /* not 0: the bytes are blue, green, red */
} hoist_pixels;

/* The conversion of images into an input: resized (with a triangle filter as wide as the pixels that an output pixel
 * covers), cropped to the centre, colours in the input's order, (value * scale - mean) / deviation for each value from
 * 0 to 255, in the input's layout. Floats and integers are rounded half to even; integers saturate. `hoist compile`
 * stores it if one of --resize, --crop, --colours, --scale, --mean, --std or --layout is given. */
typedef struct hoist_preprocessing {
  size_t rows, columns, channels;      /* rows, columns and channels of the input; 1 channel (grey) or 3 */
  int channels_first;                  /* the input is [channels][rows][columns], else [rows][columns][channels] */
  int blue_first;                      /* the input's channels are blue, green, red */
  int crop;                            /* parts of a resized image beyond the input are cropped; 0: sizes must match */
  size_t resize_rows, resize_columns;  /* both 0: to rows and columns; only rows 0: the shorter side to
                                        * resize_columns */
  double scale, mean[3], deviation[3]; /* mean and deviation by channel, in the input's order */
} hoist_preprocessing;

/* One line of a self-check. `subject` is "file weights.bin", "kernel conv1", "output logits" or "states". */
typedef struct hoist_finding {
  const char* subject;
  int passed;
  const char* message;
  uint64_t compared;    /* positions compared; 0 for files */
  double largest_error; /* largest absolute difference among them */
} hoist_finding;
typedef void (*hoist_report)(void* user, const hoist_finding* finding);

/* Lists the devices of all platforms, in the order of the index in hoist_options. Fills at most `capacity` entries and
 * returns the number of devices. */
int hoist_devices(hoist_device* devices, int capacity);
/* Sets POCL_DEVICES as above, whichever bundle is opened first. Call it before any other use of OpenCL, in programs
 * that list devices or open a large bundle before small ones. */
void hoist_offer_serial_devices(void);

/* Opens the bundle in `folder`, compiles its kernels or loads them from its programs/ folder (`hoist compile
 * --programs`) or the cache, and allocates its buffers. `options` may be NULL. *bundle is set on failure too, for
 * hoist_error_message, unless memory ran out; close it in any case. */
hoist_status hoist_open(const char* folder, const hoist_options* options, hoist_bundle** bundle);
void hoist_close(hoist_bundle* bundle);

/* The message of the last failed call on this handle; "" if none failed. */
const char* hoist_error_message(const hoist_bundle* bundle);
const char* hoist_status_name(hoist_status status);

const char* hoist_model_name(const hoist_bundle* bundle);
const char* hoist_device_name(const hoist_bundle* bundle);
/* "native", "OpenCL", or "CUDA graph": OpenCL's kernels where CUDA's driver submits a whole run at once, which it
 * does for plans without host ops and control flow unless the environment has HOIST_NO_CUDA. */
const char* hoist_engine_name(const hoist_bundle* bundle);
int hoist_device_index(const hoist_bundle* bundle); /* in the list of hoist_devices; -1: native code */
/* True if this processor supports the native target of this name ("x86-64-v3") and the system permits it; for
 * sapphirerapids the function requests the tile registers for the process. */
int hoist_runs_target(const char* target);
/* The target that the bundle is compiled for: a device name and kind; hoist_fits_profile is true if the device in use
 * is of that kind. On another kind results are correct, but a run may be a thousand times slower. */
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
/* Returns -1 if there is none of that name. */
int hoist_input_index(const hoist_bundle* bundle, const char* name);
int hoist_output_index(const hoist_bundle* bundle, const char* name);

/* Copies the data; `bytes` must be the array's size. An input keeps its value over many runs. */
hoist_status hoist_set_input(hoist_bundle* bundle, size_t index, const void* data, size_t bytes);
hoist_status hoist_set_input_named(hoist_bundle* bundle, const char* name, const void* data, size_t bytes);
/* Access without a copy: memory of the handle that holds the input, or the output, of the following runs. It is valid
 * until the handle is closed and must not be accessed during a run. On CPU devices kernels use this memory directly.
 * An input counts as set from then on, initially with zeros. */
hoist_status hoist_input_memory(hoist_bundle* bundle, size_t index, void** memory);
hoist_status hoist_output_memory(hoist_bundle* bundle, size_t index, const void** memory);
/* Fills every input with seeded elements of its domain (hoist_seeded_fill), string inputs with the model's strings and
 * the empty one, and inputs of encoded images with images of the right size. */
hoist_status hoist_seed_inputs(hoist_bundle* bundle, uint64_t seed);
/* Runs every step and waits; every input must have been set. */
hoist_status hoist_run(hoist_bundle* bundle);
hoist_status hoist_get_output(hoist_bundle* bundle, size_t index, void* data, size_t bytes);
hoist_status hoist_get_output_named(hoist_bundle* bundle, const char* name, void* data, size_t bytes);

/* A string: any bytes, UTF-8 according to ONNX; it may contain zeros. */
typedef struct hoist_string {
  const char* data;
  size_t length;
} hoist_string;

/* Set and get inputs and outputs of strings, which no other function accepts. Strings that are set are copied and stay
 * set over many runs. Returned strings belong to the handle, end with a zero, and are valid until the next run begins
 * or the handle is closed. `count` must be the number of elements of the array. Both fail with HOIST_BAD_VALUE if two
 * different strings have the same 64-bit hash, since arrays of devices hold hashes. */
hoist_status hoist_set_input_strings(hoist_bundle* bundle, size_t index, const hoist_string* strings, size_t count);
hoist_status hoist_get_output_strings(hoist_bundle* bundle, size_t index, hoist_string* strings, size_t count);

/* The actual shape of an output after a run, outermost extent first; `rank` is the array's. For dynamic shapes (such
 * as the positions of non-zero elements, or boxes that do not overlap) hoist_output gives the maximum, which is also
 * the shape that hoist_get_output copies and hoist_output_memory holds; the valid elements come first in each
 * dimension. Fails before the first run, and with HOIST_BAD_EXTENT if the data require more elements than the
 * capacity. */
hoist_status hoist_output_shape(hoist_bundle* bundle, size_t index, int64_t* shape, size_t rank);

/* States: values that live between runs, such as a recurrent network's memory (`hoist compile --state INPUT=OUTPUT`). A
 * run reads each state and gives it its next value, on the device; a run that fails changes none. hoist_run_steps and
 * hoist_profile change none either. States begin with the bundle's initial values, zeros unless it has others. Each
 * specialisation has its own states. A state is neither an input nor an output. */
size_t hoist_state_count(const hoist_bundle* bundle);
hoist_status hoist_state(hoist_bundle* bundle, size_t index, hoist_array* array);
int hoist_state_index(const hoist_bundle* bundle, const char* name); /* -1 if there is none of that name */
hoist_status hoist_get_state(hoist_bundle* bundle, size_t index, void* data, size_t bytes);
hoist_status hoist_set_state(hoist_bundle* bundle, size_t index, const void* data, size_t bytes);
/* Gives every state its initial value. */
hoist_status hoist_reset_states(hoist_bundle* bundle);
/* All states as one file, which appears complete or not at all. A damaged file, or one of another model or with other
 * states, is an error, and then no state changes. Any bundle of the same model with the same states may load it. */
hoist_status hoist_save_states(hoist_bundle* bundle, const char* path);
hoist_status hoist_load_states(hoist_bundle* bundle, const char* path);

/* Opens another session of an open bundle: a handle for the same sizes with inputs, outputs, states and memory of its
 * own, which shares the weights, the device's context and the compiled kernels. `threads` as in hoist_options, for
 * native code alone; 0: as for the bundle. Either may be closed first, and they may be used by different threads at the
 * same time; during the call another thread may run the bundle, but not choose its sizes or close it. *session is set
 * as by hoist_open. */
hoist_status hoist_open_session(const hoist_bundle* bundle, int threads, hoist_bundle** session);

/* A bundle compiled for several sizes has a specialisation for each of their combinations: separate kernels, arrays,
 * inputs and outputs, and shared weights. One of them is in use, after hoist_open the first; all functions refer to
 * it. The first choice of a specialisation loads it, which compiles its kernels unless they are cached, and it stays
 * loaded. Each specialisation has its own inputs, outputs and memory, which keep their values: set the inputs after
 * the choice. A choice that fails changes nothing; with HOIST_BAD_SIZE the message lists the available sizes. */
size_t hoist_specialisation_count(const hoist_bundle* bundle); /* 1 if there are no sizes to choose from */
size_t hoist_specialisation_in_use(const hoist_bundle* bundle);
hoist_status hoist_describe_specialisation(hoist_bundle* bundle, size_t index, hoist_specialisation* specialisation);
hoist_status hoist_choose(hoist_bundle* bundle, size_t index);
/* A bundle with open sizes runs any of them with the same kernels, and memory for the largest ones. A choice compiles
 * and allocates nothing, and unsets inputs whose shape changes. */
size_t hoist_open_size_count(const hoist_bundle* bundle);
hoist_status hoist_describe_open_size(hoist_bundle* bundle, size_t index, hoist_open_size* size);
/* Chooses one size by its name; the others stay. */
hoist_status hoist_choose_size(hoist_bundle* bundle, const char* name, int64_t size);
/* Chooses the sizes that give an input this shape; sizes that do not affect it stay. hoist_output then gives the new
 * shapes of the outputs. Without several specialisations the shape is compared with the only one. */
hoist_status hoist_choose_input_shape(hoist_bundle* bundle, size_t index, const int64_t* shape, size_t rank);

/* Resizes, crops and scales images into an input as the bundle defines it, with the arithmetic of `hoist run`, bit for
 * bit. An input [count][channels][rows][columns], or with channels last, accepts `count` images, an input of rank
 * three one image. Files have to be decoded by the program. HOIST_BAD_ARGUMENT if the bundle defines no preprocessing
 * or the images do not fit; the input then keeps its value. */
hoist_status hoist_set_input_pixels(hoist_bundle* bundle, size_t index, const hoist_pixels* pixels, size_t count);
/* The preprocessing of the bundle; HOIST_BAD_ARGUMENT if it defines none. */
hoist_status hoist_input_preprocessing(hoist_bundle* bundle, size_t index, hoist_preprocessing* preprocessing);
/* The same for one image, without a bundle: `data` must have the capacity of rows * columns * channels elements of
 * `scalar`, for example "f32". `message` receives the error. */
hoist_status hoist_prepare_pixels(const hoist_preprocessing* preprocessing, const char* scalar,
                                  const hoist_pixels* pixels, void* data, char* message, size_t capacity);

/* For tools: steps, intermediate arrays, and times. */
size_t hoist_step_count(const hoist_bundle* bundle);
size_t hoist_array_count(const hoist_bundle* bundle);
hoist_status hoist_describe_step(hoist_bundle* bundle, size_t index, hoist_step* step);
hoist_status hoist_describe_array(hoist_bundle* bundle, size_t index, hoist_array* array);
/* Runs steps first .. first+count-1 and waits. In a bundle with dynamic control flow the calls continue each other,
 * the first of them at step 0; a call ends when the last of its steps has run, in a loop for the first time, or has
 * been skipped. */
hoist_status hoist_run_steps(hoist_bundle* bundle, size_t first, size_t count);
/* The number of executions of the step since a run began: 0 in a branch that was not chosen, several in a loop. */
uint64_t hoist_step_runs(const hoist_bundle* bundle, size_t index);
/* The array's present content; arrays that share the arena are overwritten by later steps. */
hoist_status hoist_read_array(hoist_bundle* bundle, size_t index, void* data, size_t bytes);
/* The same for an array of strings; `data` is NULL for an element without a string. */
hoist_status hoist_read_strings(hoist_bundle* bundle, size_t index, hoist_string* strings, size_t count);
/* Runs every step with profiling; step_seconds must have the capacity of hoist_step_count elements. */
hoist_status hoist_profile(hoist_bundle* bundle, double* step_seconds);

/* The self-check of every specialisation: the hashes of all files, then each kernel on seeded inputs and, if the
 * bundle includes it, the whole model, compared with the expected values in check.bin, and fused launches compared
 * with their steps launched alone. States are checked by sequences of runs. Overwrites the inputs, and gives states
 * their initial values. `report` may be NULL. */
hoist_status hoist_verify(hoist_bundle* bundle, hoist_report report, void* user);
/* The parts that compare fused launches with their steps launched alone, and that run sequences if there are states,
 * for the sizes in use. Overwrites the inputs, with this seed, and resets states. HOIST_MISMATCH if results differ. */
hoist_status hoist_verify_launches(hoist_bundle* bundle, uint64_t seed, hoist_report report, void* user);
/* The first part of hoist_verify, the hashes of all files; needs no device. `message` receives the first failure. */
hoist_status hoist_verify_files(const char* folder, hoist_report report, void* user, char* message, size_t capacity);

/* Seeded data, the same on every machine. Element i of parameter p has the 64 bits mix(mix(seed + (p + 1) *
 * 0x9E3779B97F4A7C15) + (i + 1) * 0x9E3779B97F4A7C15), mix = the finaliser of splitmix64; their upper 53 make u in [0,
 * 1). Floats are low + u * (high - low), computed in double and rounded half to even into the type; integers and bool
 * are low + floor(u * (high - low + 1)). `scalar` is a name such as "f32". */
hoist_status hoist_seeded_fill(const char* scalar, uint64_t seed, uint32_t parameter, double low, double high,
                               uint64_t elements, void* data);

#ifdef __cplusplus
}
#endif

#endif
