/* Finding devices, and the set-up of the process before the first OpenCL call. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include "backends/runtime/opencl/opencl_device.h"

#ifndef HOIST_WITHOUT_OPENCL

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

HOIST_INTERNAL const char* hoist_cl_name(cl_int code) {
  static const struct {
    cl_int code;
    const char* name;
  } names[] = {{CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
               {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
               {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
               {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
               {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
               {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
               {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
               {CL_MISALIGNED_SUB_BUFFER_OFFSET, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
               {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
               {CL_DEVICE_PARTITION_FAILED, "CL_DEVICE_PARTITION_FAILED"},
               {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
               {CL_INVALID_DEVICE, "CL_INVALID_DEVICE"},
               {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT"},
               {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"},
               {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT"},
               {CL_INVALID_BINARY, "CL_INVALID_BINARY"},
               {CL_INVALID_BUILD_OPTIONS, "CL_INVALID_BUILD_OPTIONS"},
               {CL_INVALID_PROGRAM, "CL_INVALID_PROGRAM"},
               {CL_INVALID_PROGRAM_EXECUTABLE, "CL_INVALID_PROGRAM_EXECUTABLE"},
               {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
               {CL_INVALID_KERNEL_DEFINITION, "CL_INVALID_KERNEL_DEFINITION"},
               {CL_INVALID_KERNEL, "CL_INVALID_KERNEL"},
               {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX"},
               {CL_INVALID_ARG_VALUE, "CL_INVALID_ARG_VALUE"},
               {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
               {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
               {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
               {CL_INVALID_WORK_ITEM_SIZE, "CL_INVALID_WORK_ITEM_SIZE"},
               {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
               {CL_INVALID_GLOBAL_WORK_SIZE, "CL_INVALID_GLOBAL_WORK_SIZE"},
               {CL_INVALID_PROPERTY, "CL_INVALID_PROPERTY"},
               {-1001, "CL_PLATFORM_NOT_FOUND_KHR"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (names[i].code == code) return names[i].name;
  }
  return "an unlisted OpenCL error";
}

HOIST_INTERNAL hoist_status hoist_cl_check(hoist_error* error, cl_int code, const char* what) {
  if (code == CL_SUCCESS) return HOIST_OK;
  return hoist_fail(error, HOIST_DEVICE_ERROR, "%s: %s (%d)", what, hoist_cl_name(code), (int)code);
}

static cl_int device_text(cl_device_id device, cl_device_info what, char* text, size_t capacity) {
  text[0] = 0;
  const cl_int code = clGetDeviceInfo(device, what, capacity, text, NULL);
  if (code) snprintf(text, capacity, "unknown");
  text[capacity - 1] = 0;
  return code;
}

static const char pocl[] = "Portable Computing Language";

HOIST_INTERNAL int hoist_is_pocl_on_cpu(const hoist_target* target) {
  return target->is_cpu && strcmp(target->platform_name, pocl) == 0;
}

/* Sets *serial to true for PoCL's device without threads. A failed query is an error: a wrong answer would change the
 * device that a model is compiled for. */
static hoist_status ask_serial(cl_device_id device, int* serial, hoist_error* error) {
  char name[256], platform_name[128] = "";
  cl_platform_id platform = NULL;
  cl_int code = device_text(device, CL_DEVICE_NAME, name, sizeof name);
  if (!code) code = clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL);
  if (!code) code = clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name, platform_name, NULL);
  *serial = !code && strcmp(platform_name, pocl) == 0 &&
            (strncmp(name, "basic", 5) == 0 || strncmp(name, "cpu-minimal", 11) == 0);
  return hoist_cl_check(error, code, "clGetDeviceInfo");
}

static hoist_status put_serial_last(cl_device_id* devices, size_t count, hoist_error* error) {
  size_t left = count;
  for (size_t i = 0; i < left;) {
    const cl_device_id device = devices[i];
    int serial = 0;
    if (ask_serial(device, &serial, error)) return error->status;
    if (!serial) {
      ++i;
      continue;
    }
    memmove(devices + i, devices + i + 1, (count - i - 1) * sizeof *devices);
    devices[count - 1] = device;
    --left;
  }
  return HOIST_OK;
}

/* PoCL reads its variables when the loader opens it. POCL_AFFINITY pins worker k to core k whatever the process's own
 * mask, so it is right only if the process may use every core. */
static void prepare_environment(int serial) {
  static int prepared = 0;
  /* Each release of PoCL has its own names for these devices and ignores the others. */
  if (serial) setenv("POCL_DEVICES", "pthread basic cpu cpu-minimal", 0);
  if (prepared) return;
  prepared = 1;
#if defined(__linux__) && defined(CPU_COUNT)
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) == sysconf(_SC_NPROCESSORS_ONLN)) {
    setenv("POCL_AFFINITY", "1", 0);
  }
#endif
}

static hoist_status list_devices(int serial, cl_device_id** devices, size_t* count, hoist_error* error) {
  *devices = NULL;
  *count = 0;
  prepare_environment(serial);
  cl_uint platform_count = 0;
  const cl_int code = clGetPlatformIDs(0, NULL, &platform_count);
  if (code != CL_SUCCESS || platform_count == 0) {
    return hoist_fail(error, HOIST_NO_DEVICE,
                      "no OpenCL platform (install a driver: the package pocl-opencl-icd for the processor, or the "
                      "graphics card's own)");
  }
  cl_platform_id* platforms = calloc(platform_count, sizeof *platforms);
  if (!platforms) return hoist_fail(error, HOIST_OUT_OF_MEMORY, "no memory for the list of platforms");
  hoist_status status = hoist_cl_check(error, clGetPlatformIDs(platform_count, platforms, NULL), "clGetPlatformIDs");
  for (cl_uint i = 0; i < platform_count && !status; ++i) {
    cl_uint number = 0;
    /* A platform without devices returns an error; the others still count. */
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 0, NULL, &number) != CL_SUCCESS || number == 0) continue;
    cl_device_id* more = realloc(*devices, (*count + number) * sizeof **devices);
    if (!more) {
      status = hoist_fail(error, HOIST_OUT_OF_MEMORY, "no memory for the list of devices");
      break;
    }
    *devices = more;
    status = hoist_cl_check(error, clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, number, more + *count, NULL),
                            "clGetDeviceIDs");
    if (!status) *count += number;
  }
  free(platforms);
  if (!status && *count == 0) {
    status = hoist_fail(error, HOIST_NO_DEVICE, "%u OpenCL platforms and no device (install a driver)", platform_count);
  }
  if (!status) status = put_serial_last(*devices, *count, error);
  if (status) {
    free(*devices);
    *devices = NULL;
    *count = 0;
  }
  return status;
}

/* One thread at a time: PoCL reports no device to a thread that calls while another one starts the driver. */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;

HOIST_INTERNAL hoist_status hoist_all_devices(int serial, cl_device_id** devices, size_t* count, hoist_error* error) {
  pthread_mutex_lock(&listing);
  const hoist_status status = list_devices(serial, devices, count, error);
  pthread_mutex_unlock(&listing);
  return status;
}

void hoist_offer_serial_devices(void) {
  pthread_mutex_lock(&listing);
  prepare_environment(1);
  pthread_mutex_unlock(&listing);
}

static hoist_status describe(cl_device_id device, hoist_target* target, hoist_error* error) {
  memset(target, 0, sizeof *target);
  target->device = device;
  cl_device_type type = 0;
  cl_device_fp_config floats = 0;
  cl_uint alignment_bits = 0;
  cl_bool shared = CL_FALSE, little = CL_FALSE;
  cl_int code = clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof target->platform, &target->platform, NULL);
  if (!code) code = clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  if (!code) code = clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof floats, &floats, NULL);
  if (!code)
    code = clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof alignment_bits, &alignment_bits, NULL);
  if (!code) code = clGetDeviceInfo(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof shared, &shared, NULL);
  if (!code) code = clGetDeviceInfo(device, CL_DEVICE_ENDIAN_LITTLE, sizeof little, &little, NULL);
  if (!code) {
    code = clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof target->compute_units, &target->compute_units,
                           NULL);
  }
  if (!code) {
    code =
        clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof target->global_memory, &target->global_memory, NULL);
  }
  if (!code) {
    code = clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof target->local_memory, &target->local_memory, NULL);
  }
  if (!code) {
    code = clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof target->largest_allocation,
                           &target->largest_allocation, NULL);
  }
  /* The names are required too: they are part of the cache's keys. */
  if (!code) code = device_text(device, CL_DEVICE_NAME, target->name, sizeof target->name);
  if (!code) code = device_text(device, CL_DRIVER_VERSION, target->driver, sizeof target->driver);
  if (code) return hoist_cl_check(error, code, "clGetDeviceInfo");
  code =
      clGetPlatformInfo(target->platform, CL_PLATFORM_NAME, sizeof target->platform_name, target->platform_name, NULL);
  if (code) return hoist_cl_check(error, code, "clGetPlatformInfo");
  if (!little) return hoist_fail(error, HOIST_DEVICE_ERROR, "%s: big-endian devices are not supported", target->name);
  const cl_device_fp_config exact = CL_FP_ROUND_TO_NEAREST | CL_FP_DENORM | CL_FP_INF_NAN;
  target->is_cpu = (type & CL_DEVICE_TYPE_CPU) && shared;
  target->computes_exactly = (floats & exact) == exact;
  target->divides_exactly = (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  target->alignment = alignment_bits / 8 ? alignment_bits / 8 : 1;
  return HOIST_OK;
}

/* Describes a device for hoist_devices; only by name if it cannot be used. */
static int summarise(cl_device_id device, hoist_device* out) {
  hoist_target target;
  hoist_error error;
  memset(out, 0, sizeof *out);
  if (describe(device, &target, &error)) {
    device_text(device, CL_DEVICE_NAME, out->name, sizeof out->name);
    return 0;
  }
  snprintf(out->platform, sizeof out->platform, "%s", target.platform_name);
  snprintf(out->name, sizeof out->name, "%s", target.name);
  snprintf(out->driver, sizeof out->driver, "%s", target.driver);
  out->is_cpu = target.is_cpu;
  out->compute_units = target.compute_units;
  return 1;
}

int hoist_devices(hoist_device* devices, int capacity) {
  cl_device_id* all;
  size_t count;
  hoist_error error;
  if (hoist_all_devices(0, &all, &count, &error)) return 0;
  for (size_t i = 0; i < count && (int)i < capacity; ++i) summarise(all[i], &devices[i]);
  free(all);
  return (int)count;
}

static int contains(const char* text, const char* part) {
  const size_t length = strlen(part);
  for (; strlen(text) >= length; ++text) {
    size_t i = 0;
    while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i])) ++i;
    if (i == length) return 1;
    if (!*text) break;
  }
  return 0;
}

HOIST_INTERNAL size_t hoist_default_device(const hoist_device* devices, size_t count,
                                           const hoist_plan_made_for* made_for) {
  for (int by_name = 1; by_name >= 0; --by_name) {
    for (size_t i = 0; i < count; ++i) {
      if (devices[i].is_cpu != made_for->is_cpu) continue;
      if (!by_name || strcmp(devices[i].name, made_for->name) == 0) return i;
    }
  }
  return 0;
}

/* Considers only devices that can be used. */
static hoist_status choose_default(const hoist_plan_made_for* made_for, const cl_device_id* devices, size_t count,
                                   size_t* chosen, hoist_error* error) {
  hoist_device* usable = malloc(count * sizeof *usable);
  size_t* places = malloc(count * sizeof *places);
  size_t found = 0;
  if (usable && places) {
    for (size_t i = 0; i < count; ++i) {
      if (summarise(devices[i], &usable[found])) places[found++] = i;
    }
    if (found) *chosen = places[hoist_default_device(usable, found, made_for)];
  }
  const int has_memory = usable && places;
  free(usable);
  free(places);
  return has_memory ? HOIST_OK : hoist_fail(error, HOIST_OUT_OF_MEMORY, "no memory for the list of devices");
}

/* An index, else the first exact name, else the first device whose name or platform contains the text. */
static hoist_status choose(const char* wanted, const hoist_plan_made_for* made_for, const cl_device_id* devices,
                           size_t count, size_t* chosen, hoist_error* error) {
  *chosen = 0;
  if (!wanted || !*wanted) return made_for ? choose_default(made_for, devices, count, chosen, error) : HOIST_OK;
  if (strspn(wanted, "0123456789") == strlen(wanted)) {
    const unsigned long index = strlen(wanted) < 9 ? strtoul(wanted, NULL, 10) : count;
    if (index >= count) {
      return hoist_fail(error, HOIST_NO_DEVICE, "device %s: there are %zu, counted from 0", wanted, count);
    }
    *chosen = index;
    return HOIST_OK;
  }
  char names[512] = "";
  for (int exact = 1; exact >= 0; --exact) {
    for (size_t i = 0; i < count; ++i) {
      char name[256], platform_name[128] = "";
      cl_platform_id platform = NULL;
      device_text(devices[i], CL_DEVICE_NAME, name, sizeof name);
      if (clGetDeviceInfo(devices[i], CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) == CL_SUCCESS) {
        clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name, platform_name, NULL);
        platform_name[sizeof platform_name - 1] = 0;
      }
      if (exact ? strcmp(name, wanted) == 0 : contains(name, wanted) || contains(platform_name, wanted)) {
        *chosen = i;
        return HOIST_OK;
      }
      if (exact) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%zu %s", i ? ", " : "", i, name);
      }
    }
  }
  return hoist_fail(error, HOIST_NO_DEVICE, "no device is called %s (there are: %s)", wanted, names);
}

HOIST_INTERNAL hoist_status hoist_target_open(const char* wanted, const hoist_plan_made_for* made_for, int threads,
                                              hoist_target* target, hoist_error* error) {
  const int serial = (!wanted || !*wanted) && (threads == 1 || (made_for && made_for->is_serial));
  memset(target, 0, sizeof *target);
  cl_device_id* devices;
  size_t count, chosen = 0;
  hoist_status status = hoist_all_devices(serial, &devices, &count, error);
  if (status) return status;
  status = choose(wanted, made_for, devices, count, &chosen, error);
  if (!status) status = describe(devices[chosen], target, error);
  for (size_t i = 0; i < count && serial && !status && hoist_is_pocl_on_cpu(target); ++i) {
    int is_serial = 0;
    status = ask_serial(devices[i], &is_serial, error);
    if (status || !is_serial) continue;
    chosen = i;
    status = describe(devices[chosen], target, error);
    break;
  }
  free(devices);
  target->index = chosen;
  if (status || threads == 0) return status;
  if (threads < 0) return hoist_fail(error, HOIST_BAD_ARGUMENT, "%d threads: at least 1 is needed", threads);
  if (!target->is_cpu || (cl_uint)threads >= target->compute_units) return HOIST_OK;
  const cl_device_partition_property parts[] = {CL_DEVICE_PARTITION_BY_COUNTS, threads,
                                                CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
  cl_device_id part = NULL;
  const cl_int code = clCreateSubDevices(target->device, parts, 1, &part, NULL);
  if (code) {
    return hoist_fail(error, HOIST_DEVICE_ERROR, "%s: cannot be limited to %d threads: %s", target->name, threads,
                      hoist_cl_name(code));
  }
  target->device = part;
  target->is_part = 1;
  target->compute_units = (cl_uint)threads;
  return HOIST_OK;
}

HOIST_INTERNAL void hoist_target_close(hoist_target* target) {
  if (target->is_part) clReleaseDevice(target->device);
  memset(target, 0, sizeof *target);
}

/* PoCL 3.1 frees a part of a device with the program's own reference, while a worker may still be releasing the last
 * command that it ran there. That command holds its queue, so the queue's reference count shows when the worker is
 * done. */
HOIST_INTERNAL void hoist_queue_release(const hoist_target* target, cl_command_queue queue) {
  if (!queue) return;
  for (int i = 0; target->is_part && i < 1000; ++i) {
    const struct timespec moment = {0, 1000 * (long)i};
    cl_uint references = 1;
    if (clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references, NULL)) break;
    if (references <= 1) break;
    nanosleep(&moment, NULL);
  }
  clReleaseCommandQueue(queue);
}

#else

void hoist_offer_serial_devices(void) {}

int hoist_devices(hoist_device* devices, int capacity) {
  (void)devices;
  (void)capacity;
  return 0;
}

#endif /* HOIST_WITHOUT_OPENCL */
