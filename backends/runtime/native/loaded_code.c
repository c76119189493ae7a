#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include "backends/runtime/native/loaded_code.h"

#include <stddef.h>
#include <unistd.h>
#ifdef __linux__
#include <link.h>

static int count_libraries(struct dl_phdr_info* library, size_t size, void* count) {
  (void)size;
  *(uint64_t*)count = library->dlpi_adds;
  return 1;
}

/* The libraries are listed in the order in which they were loaded. */
typedef struct hoist_library_walk {
  uint64_t known, position;
} hoist_library_walk;

/* Pages may begin between variables, where the address sanitizer reports reads. */
#if defined(__GNUC__)
#define HOIST_READS_ANYWHERE __attribute__((no_sanitize_address))
#else
#define HOIST_READS_ANYWHERE
#endif

HOIST_READS_ANYWHERE static int touch_library(struct dl_phdr_info* library, size_t size, void* user) {
  hoist_library_walk* walk = user;
  (void)size;
  const uint64_t added = library->dlpi_adds - walk->known;
  if (++walk->position + added <= library->dlpi_adds - library->dlpi_subs) return 0;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t i = 0; i < library->dlpi_phnum; ++i) {
    if (library->dlpi_phdr[i].p_type != PT_LOAD || !(library->dlpi_phdr[i].p_flags & PF_R)) continue;
    const volatile char* data = (const volatile char*)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
    for (size_t at = 0; at < library->dlpi_phdr[i].p_filesz; at += page) (void)data[at];
  }
  return 0;
}

HOIST_INTERNAL uint64_t hoist_loaded_libraries(void) {
  uint64_t count = 0;
  dl_iterate_phdr(count_libraries, &count);
  return count;
}

HOIST_INTERNAL void hoist_touch_libraries(uint64_t* known) {
  const uint64_t now = hoist_loaded_libraries();
  if (now == *known) return;
  hoist_library_walk walk = {*known, 0};
  dl_iterate_phdr(touch_library, &walk);
  *known = now;
}

#ifndef HOIST_WITHOUT_OPENCL
typedef struct hoist_library_visit {
  void (*visit)(const char* path, void* user);
  void* user;
} hoist_library_visit;

static int visit_library(struct dl_phdr_info* library, size_t size, void* visit) {
  const hoist_library_visit* one = visit;
  (void)size;
  if (library->dlpi_name) one->visit(library->dlpi_name, one->user);
  return 0;
}

HOIST_INTERNAL void hoist_visit_libraries(void (*visit)(const char* path, void* user), void* user) {
  hoist_library_visit all = {visit, user};
  dl_iterate_phdr(visit_library, &all);
}
#endif
#else
HOIST_INTERNAL uint64_t hoist_loaded_libraries(void) { return 0; }
HOIST_INTERNAL void hoist_touch_libraries(uint64_t* known) { (void)known; }
#ifndef HOIST_WITHOUT_OPENCL
HOIST_INTERNAL void hoist_visit_libraries(void (*visit)(const char* path, void* user), void* user) {
  (void)visit;
  (void)user;
}
#endif
#endif
