/* OpenCL devices, compiled programs and their names. Internal to the runtime and to backends/opencl.
 *
 * The number of threads is limited by clCreateSubDevices, which applies to one bundle instead of the process, and to
 * every driver. The default device is chosen here, only by the name and kind in the target description, so that a
 * user's C program gets the same device as the hoist program; the other lines of the description concern speed, not
 * the choice of a device. Besides its device with threads PoCL has a serial device, which computes in the calling
 * thread: on two Zen 5 cores a run takes 3 us there, and 16 us if a thread is woken and waited for. So it is the
 * default for runs of one core. */
#ifndef HOIST_OPENCL_DEVICE_H
#define HOIST_OPENCL_DEVICE_H

#include "backends/runtime/plan/plan_file.h"

#ifndef HOIST_WITHOUT_OPENCL
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A device in use. `device` may be a part of the requested CPU device; native code has none. */
typedef struct hoist_target {
#ifndef HOIST_WITHOUT_OPENCL
  cl_platform_id platform;
  cl_device_id device;
#endif
  size_t index;         /* among all devices; SIZE_MAX: native code */
  int is_part;          /* made by clCreateSubDevices: release it */
  int is_cpu;           /* shares the program's memory and cores */
  int computes_exactly; /* rounds to nearest, keeps denormals and infinities */
  int divides_exactly;
  uint32_t compute_units;
  uint64_t global_memory, local_memory, largest_allocation;
  size_t alignment; /* alignment of sub-buffers, bytes */
  char name[256], platform_name[128], driver[128];
} hoist_target;

#ifndef HOIST_WITHOUT_OPENCL
HOIST_INTERNAL const char* hoist_cl_name(cl_int code);
/* HOIST_DEVICE_ERROR with "WHAT: NAME OF CODE" unless the code is CL_SUCCESS. */
HOIST_INTERNAL hoist_status hoist_cl_check(hoist_error* error, cl_int code, const char* what);

/* All devices of all platforms in the loader's order, but serial ones last. free() the array; the first call prepares
 * the environment, with hoist_offer_serial_devices() if `serial` is set. */
HOIST_INTERNAL hoist_status hoist_all_devices(int serial, cl_device_id** devices, size_t* count, hoist_error* error);
/* The default device among these, by `name` and `is_cpu` only, on this machine or another one: the first of the same
 * name and kind, else the first of the kind, else the first. */
HOIST_INTERNAL size_t hoist_default_device(const hoist_device* devices, size_t count,
                                           const hoist_plan_made_for* made_for);
/* Opens the requested device. If `wanted` is NULL or "", that is the default device of `made_for`, or the first device
 * if that is NULL too, or a serial device for one thread. */
HOIST_INTERNAL hoist_status hoist_target_open(const char* wanted, const hoist_plan_made_for* made_for, int threads,
                                              hoist_target* target, hoist_error* error);
HOIST_INTERNAL int hoist_is_pocl_on_cpu(const hoist_target* target);
/* The build option that selects the processor's instruction for products of bytes, with a space before it:
 * HOIST_VPDPBUSD (AVX-512 VNNI), or HOIST_VPMADDWD (AVX2 or AVX-512) with the number of 32-bit lanes of a register; ""
 * except on PoCL, whose kernels may contain the host's assembly. */
HOIST_INTERNAL const char* hoist_dot_option(const hoist_target* target);
HOIST_INTERNAL void hoist_target_close(hoist_target* target);
/* NULL is allowed. No command of the queue may be running. */
HOIST_INTERNAL void hoist_queue_release(const hoist_target* target, cl_command_queue queue);

#endif

/* The cache entry of a compiled program: the key in plain text, and its file; without a file it is not stored. */
typedef struct hoist_cache_entry {
  char key[2048];
  char folder[2048];
  char path[2100];
  char outcome[512]; /* "hit", "hit: programs/ of the bundle" or "miss: REASON" */
} hoist_cache_entry;

#ifndef HOIST_WITHOUT_OPENCL
/* The program of a source with that hash, from programs/ in `own_folder` or from the cache; NULL without an error if
 * neither has it. Each folder may be NULL and is then skipped. */
HOIST_INTERNAL hoist_status hoist_program_find(const hoist_target* target, cl_context context, uint64_t source_hash,
                                               const char* options, const char* own_folder, const char* cache_folder,
                                               cl_program* program, hoist_cache_entry* entry, hoist_error* error);
HOIST_INTERNAL hoist_status hoist_program_compile(const hoist_target* target, cl_context context, const char* source,
                                                  size_t bytes, const char* options, cl_program* program,
                                                  hoist_error* error);
/* The program's binary as the driver returns it; free() it. NULL if there is none. */
HOIST_INTERNAL unsigned char* hoist_program_binary(cl_program program, size_t* bytes);
/* Stores the plan's program after a miss. Call it after every kernel has run once, since drivers finish compilation at
 * the first launch. A failure only adds to the outcome. */
HOIST_INTERNAL void hoist_program_keep(cl_program program, const hoist_target* target, const hoist_plan* plan,
                                       hoist_cache_entry* entry);
#endif

#ifdef __cplusplus
}
#endif

#endif
