/* Memory that a plan owns, and whole files. */
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

/* O_NONBLOCK: a named pipe in the file's place must not block the program. */
HOIST_INTERNAL hoist_status hoist_open_regular(const char* folder, const char* name, hoist_opened_file* opened,
                                               hoist_error* error) {
  struct stat about;
  if (snprintf(opened->path, sizeof opened->path, "%s/%s", folder, name) >= (int)sizeof opened->path) {
    return hoist_fail(error, HOIST_BAD_ARGUMENT, "%s: the path of the bundle is too long", name);
  }
  opened->file = open(opened->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (opened->file < 0) return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: %s", opened->path, strerror(errno));
  if (fstat(opened->file, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(opened->file);
    return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: not a regular file", opened->path);
  }
  opened->size = (size_t)about.st_size;
  return HOIST_OK;
}

HOIST_INTERNAL size_t hoist_read_up_to(const hoist_opened_file* opened, unsigned char* data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = read(opened->file, data + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += (size_t)got;
  }
  return done;
}

HOIST_INTERNAL hoist_status hoist_read_whole(const char* folder, const char* name, unsigned char** data, size_t* bytes,
                                             hoist_error* error) {
  hoist_opened_file opened;
  const hoist_status status = hoist_open_regular(folder, name, &opened, error);
  if (status) return status;
  unsigned char* const buffer = hoist_pages((uint64_t)opened.size + 1);
  if (!buffer) {
    close(opened.file);
    return hoist_no_memory(error, opened.size);
  }
  const size_t done = hoist_read_up_to(&opened, buffer, opened.size);
  close(opened.file);
  if (done < opened.size) {
    free(buffer);
    return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: only %zu of %zu bytes can be read", opened.path, done, opened.size);
  }
  buffer[opened.size] = 0;
  *data = buffer;
  *bytes = opened.size;
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
