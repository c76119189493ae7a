#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include "backends/runtime/cuda/cuda_driver.h"

#ifndef HOIST_WITHOUT_OPENCL

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static hoist_cuda_functions cuda_functions;
static int cuda_is_usable;

static void load_cuda_driver(void) {
  const char* switched_off = getenv("HOIST_NO_CUDA");
  if (switched_off && *switched_off) return;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
  int missing = 0;
  void* found;
  /* A pointer to data is copied into a pointer to a function: C has no cast for it, but POSIX guarantees that it works.
   */
#define HOIST_CUDA_FIND(name, symbol, parameters)                              \
  found = dlsym(library, symbol);                                              \
  if (found) memcpy((void*)&cuda_functions.name, (void*)&found, sizeof found); \
  missing |= !found;
  HOIST_CUDA_FUNCTIONS(HOIST_CUDA_FIND)
#undef HOIST_CUDA_FIND
  cuda_is_usable = !missing && cuda_functions.init(0) == 0;
}

HOIST_INTERNAL const hoist_cuda_functions* hoist_cuda_driver(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_cuda_driver);
  return cuda_is_usable ? &cuda_functions : NULL;
}

HOIST_INTERNAL hoist_status hoist_cuda_check(hoist_error* error, int code, const char* what) {
  const char* name = NULL;
  if (!code) return HOIST_OK;
  const hoist_cuda_functions* cuda = hoist_cuda_driver();
  if (!cuda || cuda->error_name(code, &name) || !name) name = "unknown error of CUDA";
  return hoist_fail(error, HOIST_DEVICE_ERROR, "%s: %s (%d)", what, name, code);
}

#endif
