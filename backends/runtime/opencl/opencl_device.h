/* OpenCL devices, compiled programs and what they are called. Internal to the runtime and to backends/opencl.
 *
 * Threads are counted by clCreateSubDevices, which holds for one bundle instead of the process, and for every driver.
 * The default device is chosen here, by name and kind of the profile alone, so that a user's C program gets what the
 * hoist program gets; the other lines of a profile say how fast kernels are, not where they belong. Of PoCL there is
 * besides its device with threads a serial one, which computes in the thread that calls: on two Zen 5 cores a run takes
 * 3 us there where waking a thread and waiting for it makes 16, so it is the default for what one core computes. */
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

/* A device in use. `device` may be a part of the CPU device that was asked for; native code has none. */
typedef struct hoist_target {
#ifndef HOIST_WITHOUT_OPENCL
  cl_platform_id platform;
  cl_device_id device;
#endif
  int is_part;          /* made by clCreateSubDevices: release it */
  int is_cpu;           /* shares the program's memory and cores */
  int computes_exactly; /* rounds to nearest, keeps denormals and infinities */
  int divides_exactly;
  uint32_t compute_units;
  uint64_t global_memory, local_memory, largest_allocation;
  size_t alignment; /* of sub-buffers, bytes */
  char name[256], platform_name[128], driver[128];
} hoist_target;

#ifndef HOIST_WITHOUT_OPENCL
HOIST_INTERNAL const char* hoist_cl_name(cl_int code);
/* HOIST_DEVICE_ERROR with "WHAT: NAME OF CODE" unless the code is CL_SUCCESS. */
HOIST_INTERNAL hoist_status hoist_cl_check(hoist_error* error, cl_int code, const char* what);

/* All devices of all platforms in the loader's order, but serial ones last. free() the array; the first call prepares
 * the environment, as hoist_offer_serial_devices() does where `serial` says so. */
HOIST_INTERNAL hoist_status hoist_all_devices(int serial, cl_device_id** devices, size_t* count, hoist_error* error);
/* Which of these devices, compared by `name` and `is_cpu` alone, runs what is made for another machine's or this one's:
 * the first of its name and kind, else the first of its kind, else the first. */
HOIST_INTERNAL size_t hoist_default_device(const hoist_device* devices, size_t count, const hoist_made_for* made_for);
/* The wanted device; where `wanted` is NULL or "" the default one for what is to run there, or the first one where that
 * is NULL too, and for one thread a serial one in its place. `index` may be NULL. */
HOIST_INTERNAL hoist_status hoist_target_open(const char* wanted, const hoist_made_for* made_for, int threads,
                                              hoist_target* target, size_t* index, hoist_error* error);
HOIST_INTERNAL int hoist_is_pocl_on_cpu(const hoist_target* target);
/* The build option by which kernels learn how the processor multiplies bytes, with a space before it: HOIST_VPDPBUSD
 * (AVX-512 VNNI), HOIST_VPMADDWD (AVX2 or AVX-512) with the lanes of 32 bits in a register; "" elsewhere than on PoCL,
 * whose kernels may hold assembly of the host's. */
HOIST_INTERNAL const char* hoist_dot_option(const hoist_target* target);
HOIST_INTERNAL void hoist_target_close(hoist_target* target);
/* NULL is allowed. Nothing of the queue's may be running. */
HOIST_INTERNAL void hoist_queue_release(const hoist_target* target, cl_command_queue queue);

#endif

/* Where a compiled program is kept: the key in words, and its file; no file: it is not kept. */
typedef struct hoist_cache_entry {
  char key[2048];
  char folder[2048];
  char path[2100];
  char outcome[512]; /* "hit", "hit: programs/ of the bundle" or "miss: REASON" */
} hoist_cache_entry;

#ifndef HOIST_WITHOUT_OPENCL
/* The program of a source with that hash, from programs/ in `own_folder` or from the cache; NULL, and no error, where
 * neither has it. Each folder may be NULL: then nothing is taken from it. */
HOIST_INTERNAL hoist_status hoist_program_find(const hoist_target* target, cl_context context, uint64_t source_hash,
                                               const char* options, const char* own_folder, const char* cache_folder,
                                               cl_program* program, hoist_cache_entry* entry, hoist_error* error);
HOIST_INTERNAL hoist_status hoist_program_compile(const hoist_target* target, cl_context context, const char* source,
                                                  size_t bytes, const char* options, cl_program* program,
                                                  hoist_error* error);
/* Keeps what was a miss, the program of the plan. Best after every kernel has run once, since drivers compile the last
 * part at the first launch. A failure only adds to the outcome. */
HOIST_INTERNAL void hoist_program_keep(cl_program program, const hoist_target* target, const hoist_plan* plan,
                                       hoist_cache_entry* entry);
#endif

#ifdef __cplusplus
}
#endif

#endif
