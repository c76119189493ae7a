/* Compiling kernels, and the cache of compiled programs. The modification time of a cache entry is the time of its
 * last use, which a hit renews: access times are often switched off. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */
#endif
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/runtime/native/loaded_code.h"
#include "backends/runtime/opencl/opencl_device.h"

#ifndef HOIST_WITHOUT_OPENCL

/* Folder of a bundle with entries like those in the cache, if it was compiled with them. */
#define HOIST_PROGRAMS "programs"

/* A cache entry: magic, the key as text (so that keys with equal hashes are distinguished), the binary, a hash of
 * everything. */
#define CACHE_MAGIC "HOISTBIN1\n"

/* Limits of the cache after an entry was written; the least recently used entries are removed first. */
#define CACHE_MOST_ENTRIES 1000
#define CACHE_MOST_BYTES ((uint64_t)256 << 20)

HOIST_INTERNAL const char* hoist_dot_option(const hoist_target* target) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (!hoist_is_pocl_on_cpu(target)) return "";
  if (__builtin_cpu_supports("avx512bw")) {
    return __builtin_cpu_supports("avx512vnni") ? " -DHOIST_VPDPBUSD" : " -DHOIST_VPMADDWD=16";
  }
  return __builtin_cpu_supports("avx2") ? " -DHOIST_VPMADDWD=8" : "";
#else
  (void)target;
  return "";
#endif
}

/* mkdir -p with private permissions, as the convention for cache folders requires. */
static int make_folders(const char* path) {
  char partial[4096];
  if (snprintf(partial, sizeof partial, "%s", path) >= (int)sizeof partial) return -1;
  for (char* p = partial + 1; *p; ++p) {
    if (*p != '/') continue;
    *p = 0;
    if (mkdir(partial, 0700) != 0 && errno != EEXIST) return -1;
    *p = '/';
  }
  return mkdir(partial, 0700) == 0 || errno == EEXIST ? 0 : -1;
}

static unsigned char* read_entry(const char* path, size_t* bytes) {
  FILE* file = fopen(path, "rb");
  struct stat about;
  unsigned char* data = NULL;
  if (!file) return NULL;
  if (fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode) && (data = malloc((size_t)about.st_size + 1))) {
    *bytes = fread(data, 1, (size_t)about.st_size, file);
  }
  fclose(file);
  return data;
}

/* The start of the binary in an intact entry for this key, else NULL with the reason. */
static const unsigned char* entry_binary(const unsigned char* data, size_t bytes, const char* key, size_t* binary_bytes,
                                         const char** reason) {
  const size_t head = strlen(CACHE_MAGIC) + strlen(key) + 1;
  uint64_t hash = 0;
  if (bytes < head + 9 || memcmp(data, CACHE_MAGIC, strlen(CACHE_MAGIC)) != 0) {
    *reason = "the entry is damaged";
    return NULL;
  }
  for (int i = 0; i < 8; ++i) hash |= (uint64_t)data[bytes - 8 + (size_t)i] << (8 * i);
  if (hoist_hash(data, bytes - 8) != hash) {
    *reason = "the entry is damaged";
    return NULL;
  }
  if (memcmp(data + strlen(CACHE_MAGIC), key, strlen(key) + 1) != 0) {
    *reason = "the entry is for another device, driver or source";
    return NULL;
  }
  *binary_bytes = bytes - 8 - head;
  return data + head;
}

/* Returns 0 or errno. The entry appears complete or not at all. */
static int write_entry(const char* folder, const char* path, const char* key, const unsigned char* binary,
                       size_t bytes) {
  const size_t head = strlen(CACHE_MAGIC) + strlen(key) + 1, total = head + bytes + 8;
  if (make_folders(folder) != 0) return errno ? errno : EIO;
  unsigned char* data = malloc(total);
  if (!data) return ENOMEM;
  memcpy(data, CACHE_MAGIC, strlen(CACHE_MAGIC));
  strcpy((char*)data + strlen(CACHE_MAGIC), key);
  memcpy(data + head, binary, bytes);
  const uint64_t hash = hoist_hash(data, total - 8);
  for (int i = 0; i < 8; ++i) data[total - 8 + (size_t)i] = (unsigned char)(hash >> (8 * i));
  const int problem = hoist_write_whole(path, data, total, 0);
  free(data);
  return problem;
}

typedef struct cache_file {
  char name[32];
  uint64_t bytes;
  struct timespec used;
} cache_file;

static int by_last_use(const void* a, const void* b) {
  const struct timespec *x = &((const cache_file*)a)->used, *y = &((const cache_file*)b)->used;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* True for entries, and for remains of a process that ended during a write; all other files of the folder belong to
 * the user. */
static int is_entry_name(const char* name) {
  for (int i = 0; i < 16; ++i) {
    if (!isxdigit((unsigned char)name[i])) return 0;
  }
  const size_t length = strlen(name);
  return strncmp(name + 16, ".bin", 4) == 0 && (length == 20 || (length == 27 && name[20] == '.'));
}

/* All entries of the folder in an array to free(); NULL if there are none or memory ran out. */
static cache_file* list_entries(DIR* folder, size_t* count) {
  cache_file* files = NULL;
  size_t capacity = 0;
  *count = 0;
  for (struct dirent* found; (found = readdir(folder));) {
    struct stat about;
    if (!is_entry_name(found->d_name)) continue;
    if (fstatat(dirfd(folder), found->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode)) continue;
    if (*count == capacity) {
      capacity = capacity ? 2 * capacity : 64;
      cache_file* more = realloc(files, capacity * sizeof *files);
      if (!more) {
        free(files);
        return NULL;
      }
      files = more;
    }
    cache_file* file = &files[(*count)++];
    snprintf(file->name, sizeof file->name, "%.31s", found->d_name);
    file->bytes = (uint64_t)about.st_size;
    file->used = about.st_mtim;
  }
  return files;
}

/* Prunes the cache to its limits; the newest entry stays even if it exceeds them alone. After a failure the next entry
 * tries again. */
static void prune_entries(const char* path) {
  DIR* folder = opendir(path);
  if (!folder) return;
  size_t count = 0;
  uint64_t bytes = 0;
  cache_file* files = list_entries(folder, &count);
  if (files) {
    qsort(files, count, sizeof *files, by_last_use);
    for (size_t i = 0; i < count; ++i) bytes += files[i].bytes;
    for (size_t i = 0; i + 1 < count && (count - i > CACHE_MOST_ENTRIES || bytes > CACHE_MOST_BYTES); ++i) {
      unlinkat(dirfd(folder), files[i].name, 0);
      bytes -= files[i].bytes;
    }
  }
  free(files);
  closedir(folder);
}

static int has_extension(const hoist_target* target, const char* name) {
  size_t bytes = 0;
  char* all = NULL;
  int found = 0;
  if (clGetDeviceInfo(target->device, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) == CL_SUCCESS && bytes &&
      (all = calloc(bytes + 1, 1)) &&
      clGetDeviceInfo(target->device, CL_DEVICE_EXTENSIONS, bytes, all, NULL) == CL_SUCCESS) {
    found = strstr(all, name) != NULL;
  }
  free(all);
  return found;
}

/* A hint for a source that the device does not compile, or "". */
static const char* missing_feature(const hoist_target* target, const char* source, size_t bytes) {
  static const char half[] = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable";
  const size_t length = sizeof half - 1;
  for (size_t i = 0; i + length <= bytes; ++i) {
    if (source[i] != '#' || memcmp(source + i, half, length) != 0) continue;
    if (has_extension(target, "cl_khr_fp16")) break;
    return " (it computes in f16 and the device lacks cl_khr_fp16: compile with half = no in the profile)";
  }
  return "";
}

/* `source` is NULL for a program created from a binary. */
static hoist_status build(const hoist_target* target, cl_program program, const char* options, const char* source,
                          size_t source_bytes, hoist_error* error) {
  const cl_int code = clBuildProgram(program, 1, &target->device, options, NULL, NULL);
  if (code == CL_SUCCESS) return HOIST_OK;
  char log[600] = "";
  char* whole = NULL;
  size_t bytes = 0;
  if (clGetProgramBuildInfo(program, target->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) == CL_SUCCESS && bytes &&
      (whole = calloc(bytes + 1, 1)) &&
      clGetProgramBuildInfo(program, target->device, CL_PROGRAM_BUILD_LOG, bytes, whole, NULL) == CL_SUCCESS) {
    snprintf(log, sizeof log, ": %s", whole);
  }
  free(whole);
  struct rlimit limit;
  const int limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return hoist_fail(
      error, HOIST_DEVICE_ERROR, "kernels.cl does not compile on %s%s: %s%s%s", target->name,
      missing_feature(target, source, source_bytes), hoist_cl_name(code), log,
      limited ? " (there is a file-size limit, see ulimit -f: drivers write compiled kernels to files)" : "");
}

HOIST_INTERNAL unsigned char* hoist_program_binary(cl_program program, size_t* bytes) {
  size_t size = 0;
  if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS || !size) return NULL;
  unsigned char* binary = malloc(size);
  if (binary && clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) != CL_SUCCESS) {
    free(binary);
    return NULL;
  }
  *bytes = size;
  return binary;
}

/* The intact program in `entry->folder` for `entry->key`, else NULL with the reason; sets `entry->path`. */
static cl_program find_program(const hoist_target* target, cl_context context, const char* options,
                               hoist_cache_entry* entry, const char** reason) {
  snprintf(entry->path, sizeof entry->path, "%s/%016llx.bin", entry->folder,
           (unsigned long long)hoist_hash(entry->key, strlen(entry->key)));
  size_t entry_bytes = 0, binary_bytes = 0;
  cl_program program = NULL;
  unsigned char* data = read_entry(entry->path, &entry_bytes);
  *reason = "no entry for this source on this device and driver";
  const unsigned char* binary = data ? entry_binary(data, entry_bytes, entry->key, &binary_bytes, reason) : NULL;
  if (binary) {
    cl_int binary_status = CL_SUCCESS, code = CL_SUCCESS;
    hoist_error refused;
    program = clCreateProgramWithBinary(context, 1, &target->device, &binary_bytes, &binary, &binary_status, &code);
    if (code || binary_status || build(target, program, options, NULL, 0, &refused)) {
      if (program) clReleaseProgram(program);
      program = NULL;
      *reason = "the driver refuses the entry";
    }
  }
  free(data);
  return program;
}

#define OPTIONS_BYTES 1024

/* The plan's options, then the options that depend on the device: correctly rounded division, and the instruction for
 * products of bytes. */
static hoist_status complete_options(const hoist_target* target, const char* options, char all[OPTIONS_BYTES],
                                     hoist_error* error) {
  const int length =
      snprintf(all, OPTIONS_BYTES, "%s%s%s%s", options,
               hoist_is_pocl_on_cpu(target) ? " -DHOIST_RESTRICT=restrict -DHOIST_PREFETCHES" : "",
               target->divides_exactly ? " -cl-fp32-correctly-rounded-divide-sqrt" : "", hoist_dot_option(target));
  if (length < OPTIONS_BYTES) return HOIST_OK;
  return hoist_fail(error, HOIST_BAD_BUNDLE, "plan.bin: the build options have more than %d characters", OPTIONS_BYTES);
}

HOIST_INTERNAL hoist_status hoist_program_find(const hoist_target* target, cl_context context, uint64_t source_hash,
                                               const char* options, const char* own_folder, const char* cache_folder,
                                               cl_program* program, hoist_cache_entry* entry, hoist_error* error) {
  char all[OPTIONS_BYTES];
  const char* reason = "the cache is switched off";
  *program = NULL;
  memset(entry, 0, sizeof *entry);
  const hoist_status status = complete_options(target, options, all, error);
  if (status) return status;
  snprintf(entry->key, sizeof entry->key, "platform %s\ndevice %s\nunits %u\ndriver %s\noptions %s\nsource %016llx\n",
           target->platform_name, target->name, target->compute_units, target->driver, all,
           (unsigned long long)source_hash);
  const int folder_bytes = (int)sizeof entry->folder;
  if (own_folder && snprintf(entry->folder, sizeof entry->folder, "%s/" HOIST_PROGRAMS, own_folder) < folder_bytes &&
      (*program = find_program(target, context, all, entry, &reason))) {
    snprintf(entry->outcome, sizeof entry->outcome, "hit: " HOIST_PROGRAMS "/ of the bundle");
  }
  entry->path[0] = 0; /* the programs in a bundle are never overwritten */
  if (*program) return HOIST_OK;
  if (cache_folder && snprintf(entry->folder, sizeof entry->folder, "%s", cache_folder) >= folder_bytes) {
    reason = "the path of the cache is too long";
  } else if (cache_folder && (*program = find_program(target, context, all, entry, &reason))) {
    utimensat(AT_FDCWD, entry->path, NULL, 0); /* marks the entry as used; access times may be switched off */
    entry->path[0] = 0;
    snprintf(entry->outcome, sizeof entry->outcome, "hit");
    return HOIST_OK;
  }
  snprintf(entry->outcome, sizeof entry->outcome, "miss: %s", reason);
  return HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_program_compile(const hoist_target* target, cl_context context, const char* source,
                                                  size_t bytes, const char* options, cl_program* program,
                                                  hoist_error* error) {
  char all[OPTIONS_BYTES];
  cl_int code = CL_SUCCESS;
  *program = NULL;
  hoist_status status = complete_options(target, options, all, error);
  if (status) return status;
  *program = clCreateProgramWithSource(context, 1, &source, &bytes, &code);
  if (code) return hoist_cl_check(error, code, "clCreateProgramWithSource");
  status = build(target, *program, all, source, bytes, error);
  if (status) {
    clReleaseProgram(*program);
    *program = NULL;
  }
  return status;
}

/* ---- builds for any size of groups ----
 *
 * PoCL's cache has a folder per program with a folder per kernel, and there a library for each launched group size,
 * KERNEL/8-1-1-goffs0/KERNEL.so. A request for a program's binary builds every kernel once more, for any size, as
 * KERNEL/0-0-0/KERNEL.so, which takes as long as all previous builds. PoCL uses that library only if it cannot build
 * one for a size, and a plan's launches have fixed sizes; so the launched library serves as well. A driver with other
 * files builds what it needs. */

typedef struct pocl_folder {
  const hoist_plan* plan;
  char path[4096]; /* "" until it is found */
} pocl_folder;

static int fits(int length, size_t capacity) { return length > 0 && (size_t)length < capacity; }

/* The folder of the launched build, relative to the kernel's own; NULL if there is none. */
static const char* launched_build(const char* program_folder, const hoist_plan_kernel* kernel, char* build,
                                  size_t capacity) {
  for (int small = 1; small >= 0; --small) {
    char path[4096];
    snprintf(build, capacity, "%llu-%llu-%llu-goffs0%s", (unsigned long long)kernel->local[0],
             (unsigned long long)kernel->local[1], (unsigned long long)kernel->local[2], small ? "-smallgrid" : "");
    if (fits(snprintf(path, sizeof path, "%s/%s/%s/%s.so", program_folder, kernel->name, build, kernel->name),
             sizeof path) &&
        access(path, F_OK) == 0)
      return build;
  }
  return NULL;
}

/* The next kernel that a run launches; NULL after the last. */
static const hoist_plan_kernel* next_launched(const hoist_plan* plan, size_t* next) {
  while (*next < plan->kernel_count) {
    const hoist_plan_kernel* kernel = &plan->kernels[(*next)++];
    if (kernel->is_alone && !kernel->host) return kernel;
  }
  const size_t launch = *next - plan->kernel_count;
  ++*next;
  return launch < plan->launch_count ? &plan->launches[launch].kernel : NULL;
}

static int has_every_kernel(const char* program_folder, const hoist_plan* plan) {
  char build[128];
  size_t next = 0;
  for (const hoist_plan_kernel* kernel; (kernel = next_launched(plan, &next));) {
    if (!launched_build(program_folder, kernel, build, sizeof build)) return 0;
  }
  return 1;
}

/* Finds the folder of FOLDER/KERNEL/BUILD/KERNEL.so; the last library counts, since its program was launched last. */
static void find_pocl_folder(const char* path, void* user) {
  pocl_folder* found = user;
  char folder[sizeof found->path];
  const size_t length = strlen(path);
  if (length >= sizeof folder || length < 3 || strcmp(path + length - 3, ".so") != 0) return;
  memcpy(folder, path, length + 1);
  for (int i = 0; i < 3; ++i) {
    char* slash = strrchr(folder, '/');
    if (!slash || slash == folder) return;
    *slash = 0;
  }
  if (strcmp(folder, found->path) != 0 && has_every_kernel(folder, found->plan))
    memcpy(found->path, folder, strlen(folder) + 1);
}

static void spare_builds_for_any_size(const hoist_plan* plan) {
  pocl_folder program = {plan, ""};
  hoist_visit_libraries(find_pocl_folder, &program);
  size_t next = 0;
  for (const hoist_plan_kernel* kernel; program.path[0] && (kernel = next_launched(plan, &next));) {
    char build[128], launched[4096], folder[4096], library[4096];
    if (!launched_build(program.path, kernel, build, sizeof build)) continue;
    if (!fits(snprintf(folder, sizeof folder, "%s/%s/0-0-0", program.path, kernel->name), sizeof folder) ||
        !fits(snprintf(library, sizeof library, "%s/%s/0-0-0/%s.so", program.path, kernel->name, kernel->name),
              sizeof library) ||
        !fits(snprintf(launched, sizeof launched, "%s/%s/%s/%s.so", program.path, kernel->name, build, kernel->name),
              sizeof launched))
      continue;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) continue;
    /* A hard link: if PoCL's cache is switched off, PoCL removes its files one by one, and aborts at a symbolic link
     * whose target is gone. */
    if (link(launched, library) != 0) continue; /* the driver has built its own */
  }
}

HOIST_INTERNAL void hoist_program_keep(cl_program program, const hoist_target* target, const hoist_plan* plan,
                                       hoist_cache_entry* entry) {
  if (!entry->path[0]) return;
  if (hoist_is_pocl_on_cpu(target)) spare_builds_for_any_size(plan);
  size_t bytes = 0;
  unsigned char* binary = hoist_program_binary(program, &bytes);
  const int problem = binary ? write_entry(entry->folder, entry->path, entry->key, binary, bytes) : 0;
  if (binary && !problem) prune_entries(entry->folder);
  const size_t used = strlen(entry->outcome);
  if (!binary) snprintf(entry->outcome + used, sizeof entry->outcome - used, "; the driver gives no binary to keep");
  if (problem) {
    snprintf(entry->outcome + used, sizeof entry->outcome - used, "; it could not be written: %s", strerror(problem));
  }
  free(binary);
}

#endif /* HOIST_WITHOUT_OPENCL */
