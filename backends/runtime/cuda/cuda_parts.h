/* The device state of a bundle whose kernels run through CUDA's driver. For the files of this folder and the OpenCL
 * engine, which opens it. */
#ifndef HOIST_CUDA_PARTS_H
#define HOIST_CUDA_PARTS_H

#include "backends/runtime/cuda/cuda_driver.h"
#include "backends/runtime/opencl/opencl_parts.h"

#ifndef HOIST_WITHOUT_OPENCL

#ifdef __cplusplus
extern "C" {
#endif

/* The weights file on the device, which the specialisations and the sessions of a bundle share. */
typedef struct hoist_cuda_weights {
  hoist_cuda_address address;
  size_t users; /* atomic */
} hoist_cuda_weights;

typedef struct hoist_cuda {
  const hoist_cuda_functions* call;
  int device;
  void* context;
  void* stream;
  void* module;
  void* runs[2];    /* all steps as one graph; the second with the memory of states exchanged, made when it is needed */
  int turn;         /* the graph of the next run */
  size_t exchanged; /* the first array that has exchanged its memory, counted from 1; 0: none */
  void** rows;      /* one per step: HOIST_CUDA_ROW launches of it as one graph; made by the first profile */
  int has_rows;     /* true if some are there */
  void* begin;      /* events around a row */
  void* end;
  void** functions; /* one per kernel of the plan; NULL if no step uses it */
  hoist_cuda_address arena;
  hoist_cuda_address* owned;  /* one per array; 0 for weights and arrays in the arena */
  hoist_cuda_address* arrays; /* one per array */
  hoist_cuda_weights* weights;
} hoist_cuda;

/* Launches in a row: a single event measures about 4 us too much, a launch inside a graph takes 1 us. */
#define HOIST_CUDA_ROW 20u

/* Prepares to run the plan on the device of the OpenCL engine, whose program is built. True on success; otherwise
 * it leaves nothing, and the handle's error is unchanged. */
HOIST_INTERNAL int hoist_cuda_open(hoist_bundle* bundle, const hoist_bundle* context_of);
/* cuda_graph.c. A graph of all steps, each after the earlier ones with which it shares memory that one of the two
 * writes; or of `count` launches of one step, one after the other. */
HOIST_INTERNAL hoist_status hoist_cuda_graph_of_run(hoist_bundle* bundle, void** ready);
HOIST_INTERNAL hoist_status hoist_cuda_graph_of_step(hoist_bundle* bundle, size_t step, size_t count, void** ready);
/* Fills a launch of the kernel with these addresses. `arguments` has one entry more than there are parameters. */
HOIST_INTERNAL void hoist_cuda_fill_node(const hoist_bundle* bundle, const hoist_plan_kernel* kernel, void** arguments,
                                         hoist_cuda_node* node);
/* The same with the arrays of a step. The caller frees `arguments`, also after an error. */
HOIST_INTERNAL hoist_status hoist_cuda_node_of_step(hoist_bundle* bundle, size_t step, hoist_cuda_node* node);

#ifdef __cplusplus
}
#endif

#endif

#endif
