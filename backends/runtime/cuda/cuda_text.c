#include "backends/runtime/cuda/cuda_driver.h"

#ifndef HOIST_WITHOUT_OPENCL

#include <stdlib.h>
#include <string.h>

#define PTX_DYNAMIC "hoist_dynamic"
#define PTX_MOST_NAME 256

/* Text that grows; `failed` is set once memory runs out. */
typedef struct ptx_text {
  char* data;
  size_t length, capacity;
  int failed;
} ptx_text;

static void ptx_append(ptx_text* t, const char* from, size_t bytes) {
  if (t->failed) return;
  if (bytes >= t->capacity - t->length) {
    const size_t capacity = 2 * (t->capacity + bytes) + 64;
    char* data = realloc(t->data, capacity);
    t->failed = !data;
    if (!data) return;
    t->data = data;
    t->capacity = capacity;
  }
  memcpy(t->data + t->length, from, bytes);
  t->length += bytes;
  t->data[t->length] = 0;
}

static void ptx_append_text(ptx_text* t, const char* from) { ptx_append(t, from, strlen(from)); }

/* A line without its end; the lines of a text are visited in order. */
typedef struct ptx_span {
  const char *begin, *end;
} ptx_span;

static const char* ptx_find(ptx_span in, const char* word) {
  const size_t length = strlen(word);
  for (const char* at = in.begin; at + length <= in.end; ++at) {
    if (memcmp(at, word, length) == 0) return at;
  }
  return NULL;
}

static int ptx_begins(ptx_span line, const char* word) {
  while (line.begin < line.end && (*line.begin == ' ' || *line.begin == '\t')) ++line.begin;
  const size_t length = strlen(word);
  return (size_t)(line.end - line.begin) >= length && memcmp(line.begin, word, length) == 0;
}

static int ptx_is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/* The parameter of the current kernel that is an address in shared memory. A kernel of hoist has at most one. */
typedef struct ptx_shared {
  char name[PTX_MOST_NAME];
  size_t length;
} ptx_shared;

/* ".param .u64 .ptr .global .align 4 NAME," without ".ptr .global .align 4". */
static void ptx_append_parameter(ptx_text* t, ptx_span line, const char* pointer, ptx_shared* shared) {
  ptx_span rest = {pointer, line.end};
  const int is_shared = ptx_find(rest, ".ptr .shared") == pointer;
  const char* align = ptx_find(rest, ".align");
  const char* name = align ? align + strlen(".align") : pointer + strlen(".ptr");
  while (name < line.end && !ptx_is_name(*name)) ++name; /* to the number of .align, or to the space's name */
  while (name < line.end && ptx_is_name(*name)) ++name;
  while (name < line.end && !ptx_is_name(*name)) ++name;
  ptx_append(t, line.begin, (size_t)(pointer - line.begin));
  ptx_append(t, name, (size_t)(line.end - name));
  size_t length = 0;
  while (name + length < line.end && ptx_is_name(name[length])) ++length;
  if (!is_shared || length >= sizeof shared->name) {
    t->failed |= is_shared;
    return;
  }
  memcpy(shared->name, name, length);
  shared->length = length;
}

/* "ld.param.u64 REGISTER, [NAME];" of the shared parameter becomes "mov.u64 REGISTER, hoist_dynamic;". True if it was
 * one. */
static int ptx_append_shared_load(ptx_text* t, ptx_span line, const ptx_shared* shared) {
  if (!shared->length || !ptx_begins(line, "ld.param.u64")) return 0;
  const char* open = ptx_find(line, "[");
  if (!open || (size_t)(line.end - open) < shared->length + 2) return 0;
  if (memcmp(open + 1, shared->name, shared->length) != 0 || ptx_is_name(open[1 + shared->length])) return 0;
  const char* after = ptx_find(line, "ld.param.u64") + strlen("ld.param.u64");
  ptx_append_text(t, "mov.u64");
  ptx_append(t, after, (size_t)(open - after));
  ptx_append_text(t, PTX_DYNAMIC ";");
  return 1;
}

static void ptx_append_without_offsets(ptx_text* t, ptx_span line) {
  for (const char* at; (at = ptx_find(line, "%envreg"));) {
    ptx_append(t, line.begin, (size_t)(at - line.begin));
    ptx_append_text(t, "0");
    for (at += strlen("%envreg"); at < line.end && *at >= '0' && *at <= '9';) ++at;
    line.begin = at;
  }
  ptx_append(t, line.begin, (size_t)(line.end - line.begin));
}

static void ptx_append_line(ptx_text* t, ptx_span line, ptx_shared* shared) {
  const char* pointer = ptx_begins(line, ".param") ? ptx_find(line, ".ptr") : NULL;
  const char* mode = ptx_begins(line, ".target") ? ptx_find(line, ", texmode_independent") : NULL;
  if (ptx_find(line, ".entry")) shared->length = 0;
  if (mode)
    ptx_append(t, line.begin, (size_t)(mode - line.begin));
  else if (pointer)
    ptx_append_parameter(t, line, pointer, shared);
  else if (!ptx_append_shared_load(t, line, shared))
    ptx_append_without_offsets(t, line);
  ptx_append_text(t, "\n");
  if (ptx_begins(line, ".address_size")) ptx_append_text(t, ".extern .shared .align 128 .b8 " PTX_DYNAMIC "[];\n");
}

HOIST_INTERNAL char* hoist_cuda_text(const char* program, size_t bytes) {
  if (bytes == 0) return NULL; /* the pointer may be null */
  ptx_text made = {NULL, 0, 0, 0};
  ptx_shared shared = {"", 0};
  const char* end = memchr(program, 0, bytes);
  const ptx_span all = {program, end ? end : program + bytes};
  if (!ptx_find(all, ".version") || !ptx_find(all, ".target") || !ptx_find(all, ".address_size")) return NULL;
  int in_metadata = 0;
  for (ptx_span line = {all.begin, NULL}; line.begin < all.end && !made.failed; line.begin = line.end + 1) {
    line.end = memchr(line.begin, '\n', (size_t)(all.end - line.begin));
    if (!line.end) line.end = all.end;
    if (ptx_begins(line, ".metadata_section")) in_metadata = 1;
    if (!in_metadata) ptx_append_line(&made, line, &shared);
    if (in_metadata && ptx_begins(line, "}") && ptx_find(line, ".metadata_section")) in_metadata = 0;
  }
  if (!made.failed) return made.data;
  free(made.data);
  return NULL;
}

#endif
