// The loops of a stage of a stored array: which dimensions the loops of its nest run along, their order and modes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/halide/emitter.h"

namespace hoist::emission {

using Substitution = std::map<std::string, H::Expr>;

/// A part of a dimension: the loop runs along it in steps of `step`.
struct LoopSplit {
  Loop loop;
  int64_t step;
};

/// For each dimension, outermost first: the loops that run along it, in descending order of their steps.
using Splits = std::vector<std::vector<LoopSplit>>;

/// The splits of the dimensions of an array of that shape, derived from the index that the nest writes: a sum of step *
/// loop. Unsupported: any other index, and an array of which some elements are not written.
Splits splits_of(const Nest& nest, const std::vector<Nat>& shape);

/// Each loop as a function of the dimension that it runs along.
Substitution inverted(const Splits& splits, const std::vector<H::Var>& dimensions);

bool has_local(std::span<const Loop> loops);

struct LoopChoices {
  bool reductions = false;  ///< the stage runs the nest's reductions: an update
  bool guarded = false;     ///< the nest may omit the last elements of a dimension
  size_t outside = 0;       ///< the number of reductions outside of the work-items of a fold over tiles
};

/// Schedules a stage of a stored array: its dimensions are split and ordered into the loops of `spread` and `nest`, and
/// each loop gets its own mode.
void schedule_loops(H::Stage stage, const std::vector<H::Var>& dimensions, const Splits& splits,
                    const std::vector<Loop>& spread, const std::vector<Loop>& nest, LoopChoices choices = {});

}  // namespace hoist::emission
