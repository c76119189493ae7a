// A model, lowered or in a bundle, in a few numbers and one sentence: what goes in and out, how much is computed and
// stored. For check, inspect and compile, so that they say the same. Not for times: bench measures those.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/program/program.h"
#include "lowering/pipeline/lower.h"

namespace hoist {

/// What the arrays of a model take.
struct ArrayBytes {
  int64_t weights = 0;  ///< as they are stored
  int64_t values = 0;   ///< of memory for what lies between layers
};
ArrayBytes array_bytes(const std::vector<PlanArray>& arrays, int64_t arena_bytes);

struct ModelSummary {
  std::string name;
  std::vector<ValueInfo> inputs, outputs;
  std::map<std::string, std::set<int64_t>> counted;  ///< dimensions of outputs that are as long as data decide
  size_t layers = 0, kernels = 0;
  size_t steps = 0;                       ///< of a run: launches, and what the host performs
  std::map<std::string, size_t> on_host;  ///< how many steps the host performs, by what they do
  /// What data decide as the plan runs, by the layer: of a loop the most iterations, of a branch 0.
  std::map<std::string, int64_t> controls;
  int64_t operations = 0;       ///< arithmetic operations of a run in which each step runs once
  int64_t multiplications = 0;  ///< among them, as the kernels compute it, padding included
  ArrayBytes bytes;
};

ModelSummary summary_of(const LoweredModel& model);
ModelSummary summary_of(const Plan& plan);

/// "digits: image [1][1][8][8]f32 becomes logits [1][10]f32; 36 layers in 13 kernels, ..."
std::string sentence_of(const ModelSummary& summary);
/// A line for each input and output, with its shape and bytes.
std::string arrays_table(const ModelSummary& summary);
nlohmann::ordered_json to_json(const ModelSummary& summary);

/// Three digits and a word or a unit for the size: "1.34 million", "84.5 kB".
std::string number_text(int64_t number);
std::string bytes_text(int64_t bytes);

}  // namespace hoist
