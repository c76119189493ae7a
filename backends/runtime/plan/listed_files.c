/* The files that a plan lists, read or mapped, and checked against their sizes and hashes. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, and madvise on Linux */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/runtime/plan/plan_file.h"

/* Smaller files are copied into large pages, which a mapping may lack. */
#define LEAST_MAPPED ((size_t)4 << 20)

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

static hoist_status check_size(const hoist_plan_listed_file* listed, size_t bytes, hoist_error* error) {
  if (bytes == listed->bytes) return HOIST_OK;
  return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: has %zu bytes, and plan.bin states %llu (copy the bundle again)",
                    listed->path, bytes, (unsigned long long)listed->bytes);
}

static hoist_status check_hash(const hoist_plan_listed_file* listed, uint64_t hash, hoist_error* error) {
  if (hash == listed->hash) return HOIST_OK;
  return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: hash %016llx, and plan.bin states %016llx: the file has been changed",
                    listed->path, (unsigned long long)hash, (unsigned long long)listed->hash);
}

HOIST_INTERNAL hoist_status hoist_plan_file(const hoist_plan* plan, const char* path, unsigned char** data,
                                            size_t* bytes, hoist_error* error) {
  const hoist_plan_listed_file* listed = listed_file(plan, path, error);
  if (!listed) return error->status;
  hoist_status status = hoist_read_whole(plan->folder, path, data, bytes, error);
  if (status) return status;
  status = check_size(listed, *bytes, error);
  if (!status) status = check_hash(listed, hoist_hash(*data, *bytes), error);
  if (!status) return HOIST_OK;
  free(*data);
  *data = NULL;
  return status;
}

/* Reads the file in pieces instead of through a mapping: a file that another program truncates meanwhile then gives
 * an error. */
static hoist_status check_contents(const hoist_plan_listed_file* listed, const hoist_opened_file* opened,
                                   hoist_error* error) {
  enum { piece = 1 << 18 };
  hoist_status status = check_size(listed, opened->size, error);
  if (status) return status;
  unsigned char* const data = malloc(piece);
  if (!data) return hoist_no_memory(error, piece);
  hoist_hash_state hash;
  hoist_hash_begin(&hash);
  size_t left = opened->size;
  while (left > piece && hoist_read_up_to(opened, data, piece) == piece) {
    hoist_hash_blocks(&hash, data, piece / HOIST_HASH_BLOCK);
    left -= piece;
  }
  if (left > piece || hoist_read_up_to(opened, data, left) < left) {
    status =
        hoist_fail(error, HOIST_BAD_BUNDLE, "%s: only a part of its %zu bytes can be read", opened->path, opened->size);
  } else {
    status = check_hash(listed, hoist_hash_end(&hash, data, left), error);
  }
  free(data);
  return status;
}

/* NULL if the file system maps no files. The file is read here, unless it is in the system's cache, because only
 * reads of a mapping make large pages of it. */
static void* map_pages(const hoist_opened_file* opened) {
  void* const mapped = mmap(NULL, opened->size, PROT_READ, MAP_PRIVATE, opened->file, 0);
  if (mapped == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
  (void)madvise(mapped, opened->size, MADV_HUGEPAGE);
#endif
#ifdef MADV_POPULATE_READ
  (void)madvise(mapped, opened->size, MADV_POPULATE_READ); /* no signal at the end of a truncated file */
#endif
  return mapped;
}

HOIST_INTERNAL hoist_status hoist_plan_map(const hoist_plan* plan, const char* path, hoist_file_bytes* file,
                                           hoist_error* error) {
  const hoist_plan_listed_file* listed = listed_file(plan, path, error);
  if (!listed) return error->status;
  if (listed->bytes >= LEAST_MAPPED) {
    hoist_opened_file opened;
    hoist_status status = hoist_open_regular(plan->folder, path, &opened, error);
    if (status) return status;
    status = check_size(listed, opened.size, error);
    void* const mapped = status ? NULL : map_pages(&opened);
    if (mapped) status = check_contents(listed, &opened, error);
    close(opened.file);
    if (status && mapped) (void)munmap(mapped, opened.size);
    if (!status && mapped) *file = (hoist_file_bytes){mapped, opened.size, 1};
    if (status || mapped) return status;
  }
  file->is_mapped = 0;
  return hoist_plan_file(plan, path, &file->data, &file->bytes, error);
}

HOIST_INTERNAL void hoist_drop_file(hoist_file_bytes* file) {
  if (file->is_mapped)
    (void)munmap(file->data, file->bytes);
  else
    free(file->data);
  *file = (hoist_file_bytes){NULL, 0, 0};
}

static hoist_status check_file(const hoist_plan* plan, const hoist_plan_listed_file* listed, hoist_error* error) {
  hoist_opened_file opened;
  hoist_status status = hoist_open_regular(plan->folder, listed->path, &opened, error);
  if (status) return status;
  status = check_contents(listed, &opened, error);
  close(opened.file);
  return status;
}

HOIST_INTERNAL hoist_status hoist_plan_verify_files(const hoist_plan* plan, hoist_report report, void* user,
                                                    hoist_error* error) {
  hoist_status worst = HOIST_OK;
  for (size_t i = 0; i < plan->file_count; ++i) {
    const hoist_plan_listed_file* listed = &plan->files[i];
    hoist_error own;
    const hoist_status status = check_file(plan, listed, &own);
    char subject[512], message[256];
    snprintf(subject, sizeof subject, "file %s", listed->path);
    snprintf(message, sizeof message, "%llu bytes, hash %016llx", (unsigned long long)listed->bytes,
             (unsigned long long)listed->hash);
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
