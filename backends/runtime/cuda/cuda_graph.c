/* A run as one CUDA graph. The plan orders its steps and lets them share memory; only what two steps share orders them
 * in the graph, so that short kernels run side by side. */
#include "backends/runtime/cuda/cuda_parts.h"

#ifndef HOIST_WITHOUT_OPENCL

#include <stdlib.h>
#include <string.h>

/* A plan with more steps keeps the order of the plan: the sets below have a bit for each pair of steps. */
#define CUDA_MOST_STEPS 8192u

HOIST_INTERNAL void hoist_cuda_fill_node(const hoist_bundle* b, const hoist_plan_kernel* kernel, void** arguments,
                                         hoist_cuda_node* node) {
  static uint64_t nothing; /* stands for the address of local memory, see hoist_cuda_text */
  memset(node, 0, sizeof *node);
  node->function = b->opencl->cuda->functions[kernel - b->plan.kernels];
  for (int i = 0; i < 3; ++i) {
    node->grid[i] = (unsigned)(kernel->global[i] / kernel->local[i]);
    node->block[i] = (unsigned)kernel->local[i];
  }
  node->shared_bytes = (unsigned)kernel->local_bytes;
  arguments[kernel->parameter_count] = &nothing;
  node->arguments = arguments;
}

HOIST_INTERNAL hoist_status hoist_cuda_node_of_step(hoist_bundle* b, size_t i, hoist_cuda_node* node) {
  const hoist_plan_step* step = &b->plan.steps[i];
  void** arguments = calloc(step->argument_count + 1, sizeof *arguments);
  node->arguments = arguments;
  if (!arguments) return hoist_no_memory(&b->error, step->argument_count);
  for (size_t k = 0; k < step->argument_count; ++k) arguments[k] = &b->opencl->cuda->arrays[step->arguments[k]];
  hoist_cuda_fill_node(b, &b->plan.kernels[step->kernel], arguments, node);
  return HOIST_OK;
}

/* Adds a launch of the step; the driver copies the arguments. */
static hoist_status cuda_add_step(hoist_bundle* b, void* graph, size_t i, void* const* after, size_t count,
                                  void** node) {
  hoist_cuda_node launch;
  hoist_status status = hoist_cuda_node_of_step(b, i, &launch);
  if (!status)
    status = hoist_cuda_check(&b->error, b->opencl->cuda->call->graph_add(node, graph, after, count, &launch),
                              b->plan.kernels[b->plan.steps[i].kernel].name);
  free(launch.arguments);
  return status;
}

static hoist_status cuda_instantiate(hoist_bundle* b, void* graph, hoist_status status, void** ready) {
  hoist_cuda* c = b->opencl->cuda;
  if (!status) status = hoist_cuda_check(&b->error, c->call->graph_instantiate(ready, graph, 0), "cuGraphInstantiate");
  if (status) *ready = NULL;
  c->call->graph_destroy(graph);
  return status;
}

HOIST_INTERNAL hoist_status hoist_cuda_graph_of_step(hoist_bundle* b, size_t step, size_t count, void** ready) {
  void *graph = NULL, *node = NULL;
  hoist_status status = hoist_cuda_check(&b->error, b->opencl->cuda->call->graph_create(&graph, 0), "cuGraphCreate");
  if (status) return status;
  for (size_t i = 0; i < count && !status; ++i) {
    void* const before = node;
    status = cuda_add_step(b, graph, step, &before, i ? 1 : 0, &node);
  }
  return cuda_instantiate(b, graph, status, ready);
}

static int cuda_share(const hoist_plan* plan, uint32_t a, uint32_t b, const hoist_plan_parameter* of_a,
                      const hoist_plan_parameter* of_b) {
  if (a != b) return hoist_share_memory(&plan->arrays[a], &plan->arrays[b]);
  return hoist_parameters_overlap(of_a, of_b);
}

/* True if the later step has to wait for the earlier one. */
static int cuda_waits_for(const hoist_plan* plan, size_t later, size_t earlier) {
  const hoist_plan_step *a = &plan->steps[later], *b = &plan->steps[earlier];
  const hoist_plan_parameter *of_a = plan->kernels[a->kernel].parameters, *of_b = plan->kernels[b->kernel].parameters;
  for (size_t i = 0; i < a->argument_count; ++i) {
    for (size_t k = 0; k < b->argument_count; ++k) {
      if (!of_a[i].written && !of_b[k].written) continue;
      if (cuda_share(plan, a->arguments[i], b->arguments[k], &of_a[i], &of_b[k])) return 1;
    }
  }
  return 0;
}

/* Sets of steps: `before + i * words` has a bit for each step that ends before step i begins. */
typedef struct cuda_order {
  uint64_t* before;
  size_t words;
  void **nodes, **after;
} cuda_order;

/* The steps that step i waits for directly, from the last to the first; it waits for all others through these. */
static size_t cuda_direct(const hoist_plan* plan, size_t i, cuda_order* o) {
  uint64_t* mine = o->before + i * o->words;
  size_t count = 0;
  for (size_t k = i; k-- > 0;) {
    if (mine[k / 64] >> (k % 64) & 1 || !cuda_waits_for(plan, i, k)) continue;
    const uint64_t* others = o->before + k * o->words;
    for (size_t word = 0; word <= k / 64; ++word) mine[word] |= others[word];
    mine[k / 64] |= (uint64_t)1 << (k % 64);
    o->after[count++] = o->nodes[k];
  }
  return count;
}

HOIST_INTERNAL hoist_status hoist_cuda_graph_of_run(hoist_bundle* b, void** ready) {
  const size_t steps = b->plan.step_count;
  const int is_ordered = steps <= CUDA_MOST_STEPS;
  cuda_order o = {NULL, (steps + 63) / 64, calloc(steps + 1, sizeof(void*)), calloc(steps + 1, sizeof(void*))};
  if (is_ordered) o.before = calloc(steps * o.words + 1, sizeof *o.before);
  void* graph = NULL;
  hoist_status status = HOIST_OK;
  if (!o.nodes || !o.after || (is_ordered && !o.before)) status = hoist_no_memory(&b->error, steps * o.words);
  if (!status) status = hoist_cuda_check(&b->error, b->opencl->cuda->call->graph_create(&graph, 0), "cuGraphCreate");
  for (size_t i = 0; i < steps && !status; ++i) {
    size_t count = is_ordered ? cuda_direct(&b->plan, i, &o) : 0;
    if (!is_ordered && i) o.after[count++] = o.nodes[i - 1];
    status = cuda_add_step(b, graph, i, o.after, count, &o.nodes[i]);
  }
  if (graph) status = cuda_instantiate(b, graph, status, ready);
  free(o.before);
  free(o.nodes);
  free(o.after);
  return status;
}

#endif
