// Summarises a model, lowered or in a bundle, in a few numbers and one sentence: inputs and outputs, arithmetic,
// memory. check, inspect and compile share it, so that they agree. Times are measured by bench.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/program/program.h"
#include "lowering/cost/work.h"
#include "lowering/pipeline/lower.h"

namespace hoist {

/// The memory that the arrays of a model need.
struct ArrayBytes {
  int64_t weights = 0;  ///< in their stored form
  int64_t values = 0;   ///< bytes for values between layers
};
ArrayBytes array_bytes(const std::vector<PlanArray>& arrays, int64_t arena_bytes);

struct ModelSummary {
  std::string name;
  std::vector<ValueInfo> inputs, outputs, states;
  std::map<std::string, std::set<int64_t>> counted;  ///< dynamic dimensions of outputs
  size_t layers = 0, kernels = 0;
  size_t steps = 0;                       ///< of a run: launches and host ops
  std::map<std::string, size_t> on_host;  ///< the number of steps of each host op
  /// Dynamic control flow, by layer: the maximum iterations of a loop, 0 for a branch.
  std::map<std::string, int64_t> controls;
  /// The number of iterations of each other loop, by its first layer: parts of a batch, for example.
  std::map<std::string, int64_t> loops;
  Work work;  ///< executed by the kernels of a run in which each step runs once
  ArrayBytes bytes;
};

ModelSummary summary_of(const LoweredModel& model);
ModelSummary summary_of(const Plan& plan);

/// "digits: image [1][1][8][8]f32 becomes logits [1][10]f32; 36 layers in 13 kernels, ..."
std::string sentence_of(const ModelSummary& summary);
/// One line for each input, output and state, with its shape and bytes.
std::string arrays_table(const ModelSummary& summary);
nlohmann::ordered_json to_json(const ModelSummary& summary);

/// Three digits and a word or a unit: "1.34 million", "84.5 kB".
std::string number_text(int64_t number);
std::string bytes_text(int64_t bytes);

}  // namespace hoist
