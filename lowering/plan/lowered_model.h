// The result of the passes: a program with its kernels as low-level terms, and their plan.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/plan/region.h"
#include "ir/program/program_derivation.h"
#include "ir/rules/rewrite.h"
#include "lowering/tiling/tile.h"

namespace hoist {

/// One kernel; steps with equal terms share it.
struct LoweredKernel {
  std::string name;                 ///< an OpenCL identifier made from the layers' names
  std::vector<std::string> layers;  ///< layers of its first step
  Expr expression = nullptr;        ///< low-level; parameters "p0", "p1", ... ; its type is the stored result array
  std::vector<Expr> parameters;     ///< p0, p1, ... in order
  std::vector<Domain> domains;      ///< value range per parameter, for seeded checks
  std::vector<std::vector<Region>> reads;  ///< per parameter: the region that holds the values it reads
  Region region;                           ///< the elements of the result that hold the value
  std::string unproved;    ///< a data-dependent position that may lie outside its array; "" if there is none
  int64_t operations = 0;  ///< of one launch: Work::arithmetic() of its term
  /// With open sizes: the term with symbols, of which `expression` is the instance for the largest sizes, and its
  /// operations.
  Expr open = nullptr;
  Nat open_operations = 0;
  std::string host;       ///< the function of ir/host that runs it; "" for kernels
  bool is_fused = false;  ///< launches run its steps (PlanLaunch in ir/plan/plan.h)
  /// The parameters whose arrays are not in the caches when the kernel begins (CPU).
  std::vector<std::string> cold = {};
  /// The parameters whose arrays are written by steps of the same run.
  std::vector<std::string> computed = {};
};

/// The terms of a group at each stage, for inspect and explain. Parameters have the names of values.
struct LoweredGroup {
  std::string value;
  std::vector<std::string> layers;
  Expr high = nullptr;    ///< after merging, logical
  Derivation derivation;  ///< derivation from the stored high-level term to the low-level term
  Expr low = nullptr;
  int kernel = 0;
};

struct LoweredModel {
  Program original;  ///< one definition per layer
  Program program;   ///< the program with all decisions; its definitions are kernels
  // The choices of storage that a search may vary, by value.
  std::map<std::string, TiledResults> tiled;  ///< the results of definitions that are computed in tiles
  /// NHWC or NCHW loops of definitions that read model inputs or write model outputs as images (storage_plan.h).
  std::map<std::string, KnobValues> layouts;
  std::vector<LoweredGroup> groups;  ///< groups in execution order, one per step
  std::vector<LoweredKernel> kernels;
  std::vector<PlanArray> arrays;     ///< offsets and constants filled in
  std::vector<PlanStep> steps;       ///< arguments: p0, p1, ..., then the result
  std::vector<PlanLaunch> launches;  ///< fused launches
  bool is_serial = false;            ///< as in Plan
  std::vector<PlanControl> controls;
  std::vector<PlanItem> items;  ///< empty without controls
  std::vector<int> inputs, outputs;
  std::vector<PlanState> states;
  std::vector<PlanExtent> extents;
  std::vector<PlanSize> open_sizes;           ///< by which the other members have the numbers of the largest sizes
  std::vector<std::vector<Nat>> open_shapes;  ///< with open sizes: of each array
  int64_t arena_bytes = 0;
  ProgramDerivation derivation;   ///< derivation from the imported program to `low` of every group
  std::vector<PlanLayer> layers;  ///< the model's layers, with the reason if no step computes one
  std::vector<std::string> notes;
};

}  // namespace hoist
