/* Memory that a plan owns, and the files of a bundle, which are read whole and checked against their hashes. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and madvise on Linux */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#include <sys/stat.h>
#include <unistd.h>

#include "backends/runtime/plan/plan_file.h"

HOIST_INTERNAL void* hoist_pool_alloc(hoist_pool** pool, uint64_t count, size_t size) {
  if (count > (SIZE_MAX - 16) / size) return NULL;
  /* The payload starts at byte 16, where any type is aligned. */
  hoist_pool* block = calloc(1, 16 + (size_t)count * size);
  if (!block) return NULL;
  block->next = *pool;
  *pool = block;
  return (char*)block + 16;
}

#define LARGE_PAGE ((size_t)2 << 20)

/* The page size for memory of `bytes` bytes: large pages if it fills at least one. */
static size_t page_for(uint64_t bytes) { return bytes >= LARGE_PAGE ? LARGE_PAGE : HOIST_PAGE; }
static size_t in_whole_pages(uint64_t bytes) {
  const size_t page = page_for(bytes);
  return ((size_t)(bytes ? bytes : 1) + page - 1) / page * page;
}

static void ask_for_large_pages(void* memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
  if (bytes >= LARGE_PAGE) (void)madvise(memory, bytes, MADV_HUGEPAGE); /* not supported on all systems */
#else
  (void)memory, (void)bytes;
#endif
}

HOIST_INTERNAL void* hoist_pages(uint64_t bytes) {
  void* memory = NULL;
  if (bytes > SIZE_MAX - LARGE_PAGE) return NULL;
  if (posix_memalign(&memory, page_for(bytes), in_whole_pages(bytes)) != 0) return NULL;
  ask_for_large_pages(memory, in_whole_pages(bytes));
  return memory;
}

HOIST_INTERNAL void* hoist_pages_of_zeros(uint64_t bytes, void** memory) {
  if (bytes > SIZE_MAX - 2 * LARGE_PAGE) return NULL;
  const size_t page = page_for(bytes);
  *memory = calloc(in_whole_pages(bytes) + page, 1);
  if (!*memory) return NULL;
  unsigned char* start = (unsigned char*)*memory + (page - (uintptr_t)*memory % page) % page;
  ask_for_large_pages(start, in_whole_pages(bytes));
  return start;
}

HOIST_INTERNAL void hoist_pool_free(hoist_pool** pool) {
  while (*pool) {
    hoist_pool* next = (*pool)->next;
    free(*pool);
    *pool = next;
  }
}

HOIST_INTERNAL hoist_status hoist_no_memory(hoist_error* error, uint64_t bytes) {
  return hoist_fail(error, HOIST_OUT_OF_MEMORY, "no memory for %llu bytes", (unsigned long long)bytes);
}

/* A whole regular file with a zero appended. O_NONBLOCK: a named pipe in its place must not block the program. */
HOIST_INTERNAL hoist_status hoist_read_whole(const char* folder, const char* name, unsigned char** data, size_t* bytes,
                                             hoist_error* error) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
    return hoist_fail(error, HOIST_BAD_ARGUMENT, "%s: the path of the bundle is too long", name);
  }
  const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat about;
  if (file < 0) return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: %s", path, strerror(errno));
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(file);
    return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: not a regular file", path);
  }
  const size_t size = (size_t)about.st_size;
  void* const buffer = hoist_pages((uint64_t)size + 1);
  if (!buffer) {
    close(file);
    return hoist_no_memory(error, size);
  }
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(file, (char*)buffer + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += (size_t)got;
  }
  close(file);
  if (done < size) {
    free(buffer);
    return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: only %zu of %zu bytes can be read", path, done, size);
  }
  ((char*)buffer)[size] = 0;
  *data = buffer;
  *bytes = size;
  return HOIST_OK;
}

HOIST_INTERNAL int hoist_write_whole(const char* path, const unsigned char* data, size_t bytes, int lasting) {
  char temporary[4200];
  if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary) return ENAMETOOLONG;
  const int file = mkstemp(temporary);
  int problem = file < 0 ? errno : 0;
  for (size_t done = 0; !problem && done < bytes;) {
    const ssize_t put = write(file, data + done, bytes - done);
    if (put < 0 && errno != EINTR) problem = errno;
    if (put > 0) done += (size_t)put;
  }
  if (file < 0) return problem;
  if (!problem && lasting && fsync(file) != 0) problem = errno;
  if (close(file) != 0 && !problem) problem = errno;
  if (!problem && rename(temporary, path) != 0) problem = errno;
  if (problem) unlink(temporary);
  return problem;
}

static const hoist_plan_listed_file* listed_file(const hoist_plan* plan, const char* path, hoist_error* error) {
  for (size_t i = 0; i < plan->file_count; ++i) {
    if (strcmp(plan->files[i].path, path) == 0) return &plan->files[i];
  }
  hoist_fail(error, HOIST_BAD_BUNDLE, "plan.bin lists no file %s", path);
  return NULL;
}

#ifndef HOIST_WITHOUT_OPENCL
HOIST_INTERNAL hoist_status hoist_plan_hash(const hoist_plan* plan, const char* path, uint64_t* hash,
                                            hoist_error* error) {
  const hoist_plan_listed_file* file = listed_file(plan, path, error);
  if (!file) return error->status;
  *hash = file->hash;
  return HOIST_OK;
}
#endif

HOIST_INTERNAL hoist_status hoist_plan_file(const hoist_plan* plan, const char* path, unsigned char** data,
                                            size_t* bytes, hoist_error* error) {
  const hoist_plan_listed_file* file = listed_file(plan, path, error);
  if (!file) return error->status;
  const hoist_status status = hoist_read_whole(plan->folder, path, data, bytes, error);
  if (status) return status;
  if (*bytes != file->bytes) {
    hoist_fail(error, HOIST_BAD_BUNDLE, "%s: has %zu bytes, and plan.bin states %llu (copy the bundle again)", path,
               *bytes, (unsigned long long)file->bytes);
  } else if (hoist_hash(*data, *bytes) != file->hash) {
    hoist_fail(error, HOIST_BAD_BUNDLE, "%s: hash %016llx, and plan.bin states %016llx: the file has been changed",
               path, (unsigned long long)hoist_hash(*data, *bytes), (unsigned long long)file->hash);
  } else {
    return HOIST_OK;
  }
  free(*data);
  *data = NULL;
  return HOIST_BAD_BUNDLE;
}

HOIST_INTERNAL hoist_status hoist_plan_verify_files(const hoist_plan* plan, hoist_report report, void* user,
                                                    hoist_error* error) {
  hoist_status worst = HOIST_OK;
  for (size_t i = 0; i < plan->file_count; ++i) {
    unsigned char* data = NULL;
    size_t bytes = 0;
    hoist_error own;
    const hoist_status status = hoist_plan_file(plan, plan->files[i].path, &data, &bytes, &own);
    free(data);
    char subject[512], message[256];
    snprintf(subject, sizeof subject, "file %s", plan->files[i].path);
    snprintf(message, sizeof message, "%zu bytes, hash %016llx", bytes, (unsigned long long)plan->files[i].hash);
    const hoist_finding finding = {subject, status == HOIST_OK, status ? own.message : message, 0, 0};
    if (report) report(user, &finding);
    if (status && !worst) {
      worst = status;
      *error = own;
    }
  }
  return worst;
}

hoist_status hoist_verify_files(const char* folder, hoist_report report, void* user, char* message, size_t capacity) {
  hoist_plan plan;
  hoist_error error = {HOIST_OK, ""};
  hoist_status status =
      folder ? hoist_plan_read(folder, &plan, &error) : hoist_fail(&error, HOIST_BAD_ARGUMENT, "no folder given");
  if (status == HOIST_OK) {
    const hoist_finding finding = {"file plan.bin", 1, "hash and contents agree", 0, 0};
    if (report) report(user, &finding);
    status = hoist_plan_verify_files(&plan, report, user, &error);
    for (size_t i = 1; i < plan.specialisation_count && !status; ++i) {
      hoist_plan other;
      status = hoist_plan_read_specialisation(&plan, i, &other, &error);
      if (!status) hoist_plan_free(&other);
    }
    hoist_plan_free(&plan);
  } else if (report) {
    const hoist_finding finding = {"file plan.bin", 0, error.message, 0, 0};
    report(user, &finding);
  }
  if (message && capacity) snprintf(message, capacity, "%s", error.message);
  return status;
}
