/* The functions of NVIDIA's CUDA driver that the CUDA engine calls, found at run time. The build needs no header and no
 * library of CUDA: the types here follow the manual "CUDA Driver API", chapters Module Management, Graph Management and
 * Data types. For the files of this folder only. */
#ifndef HOIST_CUDA_DRIVER_H
#define HOIST_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "backends/runtime/plan/plan_file.h"

#ifndef HOIST_WITHOUT_OPENCL

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t hoist_cuda_address; /* CUdeviceptr */

/* CUDA_KERNEL_NODE_PARAMS of version 1. */
typedef struct hoist_cuda_node {
  void* function;
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  void** arguments;
  void** extra;
} hoist_cuda_node;

/* Name without the prefix `cu`, symbol, parameters. Every function returns 0 or an error code. */
/* clang-format off */
#define HOIST_CUDA_FUNCTIONS(row) \
  row(init, "cuInit", (unsigned flags)) \
  row(device_count, "cuDeviceGetCount", (int* count)) \
  row(device_get, "cuDeviceGet", (int* device, int ordinal)) \
  row(device_uuid, "cuDeviceGetUuid", (unsigned char uuid[16], int device)) \
  row(context_retain, "cuDevicePrimaryCtxRetain", (void** context, int device)) \
  row(context_release, "cuDevicePrimaryCtxRelease_v2", (int device)) \
  row(context_push, "cuCtxPushCurrent_v2", (void* context)) \
  row(context_pop, "cuCtxPopCurrent_v2", (void** context)) \
  row(module_load, "cuModuleLoadDataEx", (void** module, const void* image, unsigned count, const int* options, void** values)) \
  row(module_unload, "cuModuleUnload", (void* module)) \
  row(module_function, "cuModuleGetFunction", (void** function, void* module, const char* name)) \
  row(function_set, "cuFuncSetAttribute", (void* function, int attribute, int value)) \
  row(function_get, "cuFuncGetAttribute", (int* value, int attribute, void* function)) \
  row(allocate, "cuMemAlloc_v2", (hoist_cuda_address * address, size_t bytes)) \
  row(release, "cuMemFree_v2", (hoist_cuda_address address)) \
  row(allocate_host, "cuMemHostAlloc", (void** memory, size_t bytes, unsigned flags)) \
  row(release_host, "cuMemFreeHost", (void* memory)) \
  row(to_device, "cuMemcpyHtoDAsync_v2", (hoist_cuda_address to, const void* from, size_t bytes, void* stream)) \
  row(to_host, "cuMemcpyDtoHAsync_v2", (void* to, hoist_cuda_address from, size_t bytes, void* stream)) \
  row(on_device, "cuMemcpyDtoDAsync_v2", (hoist_cuda_address to, hoist_cuda_address from, size_t bytes, void* stream)) \
  row(fill, "cuMemsetD8Async", (hoist_cuda_address to, unsigned char value, size_t bytes, void* stream)) \
  row(stream_create, "cuStreamCreate", (void** stream, unsigned flags)) \
  row(stream_wait, "cuStreamSynchronize", (void* stream)) \
  row(stream_destroy, "cuStreamDestroy_v2", (void* stream)) \
  row(launch, "cuLaunchKernel", (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** arguments, void** extra)) \
  row(graph_create, "cuGraphCreate", (void** graph, unsigned flags)) \
  row(graph_add, "cuGraphAddKernelNode", (void** node, void* graph, void* const* after, size_t count, const hoist_cuda_node* parameters)) \
  row(graph_instantiate, "cuGraphInstantiateWithFlags", (void** ready, void* graph, unsigned long long flags)) \
  row(graph_launch, "cuGraphLaunch", (void* ready, void* stream)) \
  row(graph_destroy, "cuGraphDestroy", (void* graph)) \
  row(ready_destroy, "cuGraphExecDestroy", (void* ready)) \
  row(event_create, "cuEventCreate", (void** event, unsigned flags)) \
  row(event_record, "cuEventRecord", (void* event, void* stream)) \
  row(event_milliseconds, "cuEventElapsedTime", (float* milliseconds, void* first, void* last)) \
  row(event_destroy, "cuEventDestroy_v2", (void* event)) \
  row(error_name, "cuGetErrorName", (int code, const char** name))
/* clang-format on */

typedef struct hoist_cuda_functions {
#define HOIST_CUDA_MEMBER(name, symbol, parameters) int(*name) parameters;
  HOIST_CUDA_FUNCTIONS(HOIST_CUDA_MEMBER)
#undef HOIST_CUDA_MEMBER
} hoist_cuda_functions;

/* The driver's functions, initialised; NULL if there is no driver, it lacks a function, or HOIST_NO_CUDA is set and not
 * empty. The driver stays loaded to the end of the process. */
HOIST_INTERNAL const hoist_cuda_functions* hoist_cuda_driver(void);
/* HOIST_DEVICE_ERROR with "WHAT: NAME OF CODE" unless the code is 0. */
HOIST_INTERNAL hoist_status hoist_cuda_check(hoist_error* error, int code, const char* what);

/* The program that NVIDIA's OpenCL returns as a binary, PTX text, in the form that CUDA's driver loads; free() it. NULL
 * if the text is no such program or there is no memory. The differences:
 * - no `texmode_independent` in .target, and no sections of metadata, which CUDA does not have;
 * - 0 instead of the registers %envreg, the offsets of an OpenCL launch: no launch of a plan has an offset;
 * - the address of an array of dynamic shared memory instead of each load of a parameter in shared memory, which has
 *   that address in OpenCL's launches;
 * - no keyword .ptr with its space and alignment: CUDA's driver refuses it for shared memory. */
HOIST_INTERNAL char* hoist_cuda_text(const char* program, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif

#endif
