// Models that grow in one direction, and the processor time that lowering them takes. For tests of this folder.
#pragma once

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "lowering/pipeline/lower.h"
#include "tests/support/lower_model.h"

namespace hoist {

using Ints = std::vector<int64_t>;

inline std::string value(int i) { return "t" + std::to_string(i); }

inline NamedModel chain(int count, const std::string& operation, size_t operands) {
  NamedModel out;
  out.opset = 21;
  out.inputs = {{value(0), Scalar::f32, {2, 6}}};
  out.outputs = {{value(count), Scalar::f32, {}}};
  for (int i = 0; i < count; ++i) {
    out.layers.push_back(
        {"layer" + std::to_string(i), operation, "", {}, std::vector<std::string>(operands, value(i)), {value(i + 1)}});
  }
  return out;
}

inline double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

inline LoweredModel lowered(const NamedModel& graph, double& seconds) {
  const double before = processor_seconds();
  auto out = lower_model(graph, {}, {});
  HOIST_CHECK(out.ok(), out.errors()[0].text());
  seconds = processor_seconds() - before;
  return std::move(*out);
}

inline size_t largest(const LoweredModel& model) {
  size_t out = 0;
  for (const LoweredKernel& kernel : model.kernels) out = std::max(out, tree_size(kernel.expression));
  return out;
}

}  // namespace hoist
