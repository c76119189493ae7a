/* Wrappers for every call of a test program that can fail. CMakeLists.txt reads the names for the linker's --wrap
 * from the lines that begin with WRAP_; runtime_test.cpp checks that the C runtime calls no other function that can
 * fail. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/faults.h"

/* Followed by the body of the replacement for `name`, which is __real_name there. */
#define WRAP_AS(name, type, parameters) \
  type __real_##name parameters;        \
  type __wrap_##name parameters;        \
  type __wrap_##name parameters

/* Fails with an errno. */
#define WRAP_SIMPLE(name, type, parameters, arguments, kind, code, failure) \
  WRAP_AS(name, type, parameters) {                                         \
    if (fails(kind, #name, code)) return failure;                           \
    return __real_##name arguments;                                         \
  }

static long live_blocks, live_files, live_objects;

long fault_live_blocks(void) { return __atomic_load_n(&live_blocks, __ATOMIC_SEQ_CST); }
long fault_live_files(void) { return __atomic_load_n(&live_files, __ATOMIC_SEQ_CST); }
long fault_live_objects(void) { return __atomic_load_n(&live_objects, __ATOMIC_SEQ_CST); }

static void add(long* live, long change) { __atomic_add_fetch(live, change, __ATOMIC_SEQ_CST); }

static int fails(fault_kind kind, const char* function, int code) {
  if (!fault_now(kind, function)) return 0;
  errno = code;
  return 1;
}

/* Calls that allocate disk space also count as calls on files. */
static int file_fails(const char* function, int code) {
  const int full = fails(FAULT_DISK, function, ENOSPC);
  return fails(FAULT_FILE, function, code) || full;
}

/* ---- memory ---- */

static void* kept_block(void* block) {
  if (block) add(&live_blocks, 1);
  return block;
}

WRAP_AS(malloc, void*, (size_t bytes)) {
  return fails(FAULT_MEMORY, "malloc", ENOMEM) ? NULL : kept_block(__real_malloc(bytes));
}

WRAP_AS(calloc, void*, (size_t n, size_t bytes)) {
  return fails(FAULT_MEMORY, "calloc", ENOMEM) ? NULL : kept_block(__real_calloc(n, bytes));
}

WRAP_AS(realloc, void*, (void* block, size_t bytes)) {
  if (fails(FAULT_MEMORY, "realloc", ENOMEM)) return NULL;
  void* moved = __real_realloc(block, bytes);
  if (!block) kept_block(moved);
  return moved;
}

WRAP_AS(posix_memalign, int, (void** block, size_t alignment, size_t bytes)) {
  if (fails(FAULT_MEMORY, "posix_memalign", ENOMEM)) return ENOMEM;
  const int code = __real_posix_memalign(block, alignment, bytes);
  if (!code) kept_block(*block);
  return code;
}

WRAP_AS(free, void, (void* block)) {
  if (block) add(&live_blocks, -1);
  __real_free(block);
}

WRAP_AS(mmap, void*, (void* at, size_t bytes, int protection, int flags, int file, off_t offset)) {
  if (fails(FAULT_MEMORY, "mmap", ENOMEM)) return MAP_FAILED;
  void* const mapped = __real_mmap(at, bytes, protection, flags, file, offset);
  if (mapped != MAP_FAILED) add(&live_blocks, 1);
  return mapped;
}

WRAP_AS(munmap, int, (void* at, size_t bytes)) {
  add(&live_blocks, -1);
  return __real_munmap(at, bytes);
}

WRAP_SIMPLE(setenv, int, (const char* name, const char* value, int replace), (name, value, replace), FAULT_MEMORY,
            ENOMEM, -1)

/* ---- files ---- */

static int kept_file(int file) {
  if (file >= 0) add(&live_files, 1);
  return file;
}

WRAP_AS(open, int, (const char* path, int flags, ...)) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (flags & O_CREAT ? file_fails("open", ENOSPC) : fails(FAULT_FILE, "open", EMFILE)) return -1;
  return kept_file(__real_open(path, flags, mode));
}

WRAP_AS(mkstemp, int, (char* path)) { return file_fails("mkstemp", EACCES) ? -1 : kept_file(__real_mkstemp(path)); }

WRAP_AS(memfd_create, int, (const char* name, unsigned flags)) {
  return file_fails("memfd_create", EMFILE) ? -1 : kept_file(__real_memfd_create(name, flags));
}

WRAP_SIMPLE(dlopen, void*, (const char* path, int flags), (path, flags), FAULT_FILE, EMFILE, NULL)

WRAP_AS(close, int, (int file)) {
  add(&live_files, -1);
  const int code = __real_close(file);
  return fails(FAULT_FILE, "close", EIO) ? -1 : code;
}

WRAP_AS(fopen, FILE*, (const char* path, const char* how)) {
  if (*how == 'r' ? fails(FAULT_FILE, "fopen", EMFILE) : file_fails("fopen", ENOSPC)) return NULL;
  FILE* file = __real_fopen(path, how);
  if (file) add(&live_files, 1);
  return file;
}

WRAP_AS(fclose, int, (FILE * file)) {
  add(&live_files, -1);
  const int code = __real_fclose(file);
  return fails(FAULT_FILE, "fclose", EIO) ? EOF : code;
}

WRAP_AS(opendir, DIR*, (const char* path)) {
  if (fails(FAULT_FILE, "opendir", EMFILE)) return NULL;
  DIR* folder = __real_opendir(path);
  if (folder) add(&live_files, 1);
  return folder;
}

WRAP_AS(closedir, int, (DIR * folder)) {
  add(&live_files, -1);
  const int code = __real_closedir(folder);
  return fails(FAULT_FILE, "closedir", EIO) ? -1 : code;
}

static size_t part_of(size_t bytes, const char* function) {
  return bytes > 1 && fault_now(FAULT_SHORT, function) ? (bytes + 1) / 2 : bytes;
}

WRAP_AS(read, ssize_t, (int file, void* data, size_t bytes)) {
  if (fails(FAULT_FILE, "read", EIO) || fails(FAULT_INTERRUPT, "read", EINTR)) return -1;
  return __real_read(file, data, part_of(bytes, "read"));
}

WRAP_AS(write, ssize_t, (int file, const void* data, size_t bytes)) {
  if (file_fails("write", EIO) || fails(FAULT_INTERRUPT, "write", EINTR)) return -1;
  return __real_write(file, data, part_of(bytes, "write"));
}

WRAP_SIMPLE(fread, size_t, (void* data, size_t size, size_t n, FILE* file), (data, size, n, file), FAULT_FILE, EIO, 0)
WRAP_SIMPLE(fstat, int, (int file, struct stat* about), (file, about), FAULT_FILE, EIO, -1)
WRAP_SIMPLE(fstatat, int, (int folder, const char* path, struct stat* about, int flags), (folder, path, about, flags),
            FAULT_FILE, EIO, -1)
WRAP_SIMPLE(readdir, struct dirent*, (DIR * folder), (folder), FAULT_FILE, EIO, NULL)
WRAP_SIMPLE(unlink, int, (const char* path), (path), FAULT_FILE, EACCES, -1)
WRAP_SIMPLE(unlinkat, int, (int folder, const char* path, int flags), (folder, path, flags), FAULT_FILE, EACCES, -1)
WRAP_SIMPLE(utimensat, int, (int folder, const char* path, const struct timespec* times, int flags),
            (folder, path, times, flags), FAULT_FILE, EACCES, -1)
WRAP_SIMPLE(link, int, (const char* from, const char* to), (from, to), FAULT_FILE, EACCES, -1)
WRAP_SIMPLE(access, int, (const char* path, int mode), (path, mode), FAULT_FILE, EACCES, -1)
WRAP_SIMPLE(getrlimit, int, (int what, struct rlimit* limit), (what, limit), FAULT_FILE, EINVAL, -1)

WRAP_AS(mkdir, int, (const char* path, mode_t mode)) {
  return file_fails("mkdir", EACCES) ? -1 : __real_mkdir(path, mode);
}

WRAP_AS(rename, int, (const char* from, const char* to)) {
  return file_fails("rename", EACCES) ? -1 : __real_rename(from, to);
}

WRAP_AS(fsync, int, (int file)) { return file_fails("fsync", EIO) ? -1 : __real_fsync(file); }

/* Calls that only the program makes. */

WRAP_AS(mkdtemp, char*, (char* path)) { return file_fails("mkdtemp", EACCES) ? NULL : __real_mkdtemp(path); }

WRAP_AS(fwrite, size_t, (const void* data, size_t size, size_t n, FILE* file)) {
  return file_fails("fwrite", EIO) ? 0 : __real_fwrite(data, size, n, file);
}

WRAP_AS(fflush, int, (FILE * file)) {
  const int code = __real_fflush(file);
  return file_fails("fflush", EIO) ? EOF : code;
}

WRAP_SIMPLE(pread, ssize_t, (int file, void* data, size_t bytes, off_t offset), (file, data, bytes, offset), FAULT_FILE,
            EIO, -1)
WRAP_SIMPLE(stat, int, (const char* path, struct stat* about), (path, about), FAULT_FILE, EACCES, -1)
WRAP_SIMPLE(lstat, int, (const char* path, struct stat* about), (path, about), FAULT_FILE, EACCES, -1)
WRAP_SIMPLE(flock, int, (int file, int how), (file, how), FAULT_FILE, ENOLCK, -1)
WRAP_SIMPLE(rmdir, int, (const char* path), (path), FAULT_FILE, EACCES, -1)
WRAP_SIMPLE(pthread_create, int,
            (pthread_t * thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument),
            (thread, attributes, body, argument), FAULT_MEMORY, EAGAIN, EAGAIN)

/* ---- OpenCL ---- */

static int device_fails(const char* function) { return fault_now(FAULT_OPENCL, function); }

#define WRAP_CALL(name, parameters, arguments, failure) \
  WRAP_AS(name, cl_int, parameters) { return device_fails(#name) ? failure : __real_##name arguments; }

/* The last parameter receives the code. */
#define WRAP_CREATION(name, type, parameters, arguments, failure) \
  WRAP_AS(name, type, parameters) {                               \
    if (device_fails(#name)) {                                    \
      if (code) *code = failure;                                  \
      return NULL;                                                \
    }                                                             \
    type made = __real_##name arguments;                          \
    if (made) add(&live_objects, 1);                              \
    return made;                                                  \
  }

#define WRAP_RETAIN(name, type)                            \
  WRAP_AS(name, cl_int, (type object)) {                   \
    if (device_fails(#name)) return CL_OUT_OF_HOST_MEMORY; \
    add(&live_objects, 1);                                 \
    return __real_##name(object);                          \
  }

#define WRAP_RELEASE(name, type)         \
  WRAP_AS(name, cl_int, (type object)) { \
    add(&live_objects, -1);              \
    return __real_##name(object);        \
  }

WRAP_CALL(clGetPlatformIDs, (cl_uint n, cl_platform_id* platforms, cl_uint* count), (n, platforms, count),
          CL_OUT_OF_HOST_MEMORY)
WRAP_CALL(clGetPlatformInfo, (cl_platform_id platform, cl_platform_info what, size_t room, void* value, size_t* bytes),
          (platform, what, room, value, bytes), CL_OUT_OF_HOST_MEMORY)
WRAP_CALL(clGetDeviceIDs,
          (cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id* devices, cl_uint* count),
          (platform, type, n, devices, count), CL_OUT_OF_RESOURCES)
/* With HOIST_MEMORY_OF_ITS_OWN a device reports memory separate from the program's, as GPUs do. */
WRAP_AS(clGetDeviceInfo, cl_int, (cl_device_id device, cl_device_info what, size_t room, void* value, size_t* bytes)) {
  if (fault_now(FAULT_OPENCL, "clGetDeviceInfo")) return CL_OUT_OF_RESOURCES;
  const cl_int code = __real_clGetDeviceInfo(device, what, room, value, bytes);
  if (!code && what == CL_DEVICE_HOST_UNIFIED_MEMORY && value && getenv("HOIST_MEMORY_OF_ITS_OWN"))
    *(cl_bool*)value = CL_FALSE;
  return code;
}
WRAP_CALL(clGetProgramInfo, (cl_program program, cl_program_info what, size_t room, void* value, size_t* bytes),
          (program, what, room, value, bytes), CL_OUT_OF_RESOURCES)
WRAP_CALL(clGetProgramBuildInfo,
          (cl_program program, cl_device_id device, cl_program_build_info what, size_t room, void* value,
           size_t* bytes),
          (program, device, what, room, value, bytes), CL_OUT_OF_RESOURCES)
WRAP_CALL(clGetKernelInfo, (cl_kernel kernel, cl_kernel_info what, size_t room, void* value, size_t* bytes),
          (kernel, what, room, value, bytes), CL_OUT_OF_RESOURCES)
WRAP_CALL(clGetKernelWorkGroupInfo,
          (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t room, void* value,
           size_t* bytes),
          (kernel, device, what, room, value, bytes), CL_OUT_OF_RESOURCES)
WRAP_CALL(clGetEventProfilingInfo, (cl_event event, cl_profiling_info what, size_t room, void* value, size_t* bytes),
          (event, what, room, value, bytes), CL_PROFILING_INFO_NOT_AVAILABLE)
WRAP_CALL(clBuildProgram,
          (cl_program program, cl_uint n, const cl_device_id* devices, const char* options,
           void(CL_CALLBACK* notify)(cl_program, void*), void* user),
          (program, n, devices, options, notify, user), CL_BUILD_PROGRAM_FAILURE)
WRAP_CALL(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t bytes, const void* value),
          (kernel, index, bytes, value), CL_OUT_OF_RESOURCES)
WRAP_CALL(clEnqueueFillBuffer,
          (cl_command_queue queue, cl_mem buffer, const void* pattern, size_t width, size_t offset, size_t bytes,
           cl_uint n, const cl_event* waits, cl_event* event),
          (queue, buffer, pattern, width, offset, bytes, n, waits, event), CL_MEM_OBJECT_ALLOCATION_FAILURE)
WRAP_CALL(clEnqueueCopyBuffer,
          (cl_command_queue queue, cl_mem from, cl_mem to, size_t start, size_t offset, size_t bytes, cl_uint n,
           const cl_event* waits, cl_event* event),
          (queue, from, to, start, offset, bytes, n, waits, event), CL_MEM_COPY_OVERLAP)
WRAP_CALL(clEnqueueReadBuffer,
          (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes, void* data, cl_uint n,
           const cl_event* waits, cl_event* event),
          (queue, buffer, blocking, offset, bytes, data, n, waits, event), CL_OUT_OF_RESOURCES)
WRAP_CALL(clEnqueueWriteBuffer,
          (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes, const void* data,
           cl_uint n, const cl_event* waits, cl_event* event),
          (queue, buffer, blocking, offset, bytes, data, n, waits, event), CL_OUT_OF_RESOURCES)
WRAP_CALL(clEnqueueUnmapMemObject,
          (cl_command_queue queue, cl_mem buffer, void* mapped, cl_uint n, const cl_event* waits, cl_event* event),
          (queue, buffer, mapped, n, waits, event), CL_OUT_OF_RESOURCES)

/* A device that fails at the end of its work has still ended it. */
WRAP_AS(clFinish, cl_int, (cl_command_queue queue)) {
  const cl_int code = __real_clFinish(queue);
  return device_fails("clFinish") ? CL_OUT_OF_RESOURCES : code;
}

WRAP_AS(clEnqueueNDRangeKernel, cl_int,
        (cl_command_queue queue, cl_kernel kernel, cl_uint rank, const size_t* offset, const size_t* global,
         const size_t* local, cl_uint n, const cl_event* waits, cl_event* event)) {
  if (device_fails("clEnqueueNDRangeKernel")) return CL_OUT_OF_RESOURCES;
  const cl_int code = __real_clEnqueueNDRangeKernel(queue, kernel, rank, offset, global, local, n, waits, event);
  if (!code && event) add(&live_objects, 1);
  return code;
}

WRAP_AS(clEnqueueMapBuffer, void*,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset, size_t bytes,
         cl_uint n, const cl_event* waits, cl_event* event, cl_int* code)) {
  if (device_fails("clEnqueueMapBuffer")) {
    if (code) *code = CL_MAP_FAILURE;
    return NULL;
  }
  return __real_clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes, n, waits, event, code);
}

WRAP_AS(clCreateSubDevices, cl_int,
        (cl_device_id device, const cl_device_partition_property* parts, cl_uint n, cl_device_id* made,
         cl_uint* count)) {
  if (device_fails("clCreateSubDevices")) return CL_DEVICE_PARTITION_FAILED;
  const cl_int code = __real_clCreateSubDevices(device, parts, n, made, count);
  if (!code && made) add(&live_objects, 1);
  return code;
}

WRAP_CREATION(clCreateContext, cl_context,
              (const cl_context_properties* properties, cl_uint n, const cl_device_id* devices,
               void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* user, cl_int* code),
              (properties, n, devices, notify, user, code), CL_OUT_OF_HOST_MEMORY)
WRAP_CREATION(clCreateCommandQueue, cl_command_queue,
              (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* code),
              (context, device, properties, code), CL_OUT_OF_RESOURCES)
WRAP_CREATION(clCreateProgramWithSource, cl_program,
              (cl_context context, cl_uint n, const char** texts, const size_t* lengths, cl_int* code),
              (context, n, texts, lengths, code), CL_OUT_OF_HOST_MEMORY)
WRAP_CREATION(clCreateProgramWithBinary, cl_program,
              (cl_context context, cl_uint n, const cl_device_id* devices, const size_t* lengths,
               const unsigned char** binaries, cl_int* statuses, cl_int* code),
              (context, n, devices, lengths, binaries, statuses, code), CL_INVALID_BINARY)
WRAP_CREATION(clCreateKernel, cl_kernel, (cl_program program, const char* name, cl_int* code), (program, name, code),
              CL_OUT_OF_RESOURCES)
WRAP_CREATION(clCreateBuffer, cl_mem, (cl_context context, cl_mem_flags flags, size_t bytes, void* host, cl_int* code),
              (context, flags, bytes, host, code), CL_MEM_OBJECT_ALLOCATION_FAILURE)
WRAP_CREATION(clCreateSubBuffer, cl_mem,
              (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* region, cl_int* code),
              (buffer, flags, type, region, code), CL_MISALIGNED_SUB_BUFFER_OFFSET)

WRAP_RETAIN(clRetainContext, cl_context)
WRAP_RETAIN(clRetainDevice, cl_device_id)
WRAP_RETAIN(clRetainMemObject, cl_mem)
WRAP_RETAIN(clRetainProgram, cl_program)
WRAP_RELEASE(clReleaseCommandQueue, cl_command_queue)
WRAP_RELEASE(clReleaseContext, cl_context)
WRAP_RELEASE(clReleaseDevice, cl_device_id)
WRAP_RELEASE(clReleaseEvent, cl_event)
WRAP_RELEASE(clReleaseKernel, cl_kernel)
WRAP_RELEASE(clReleaseMemObject, cl_mem)
WRAP_RELEASE(clReleaseProgram, cl_program)
