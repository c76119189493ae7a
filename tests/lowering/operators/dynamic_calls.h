// Compares calls over arrays with dynamic shapes with the same calls over arrays of that length: empty, partly filled,
// and at full capacity.
#pragma once

#include <random>

#include "tests/lowering/operators/called_outputs.h"

namespace hoist {

/// Calls that read "y", which has the elements of `x` along `axis` that a mask selects, and x2, x3, ...
struct DynamicCalls {
  Tensor x;
  int64_t axis = 0;
  std::vector<NamedCall> calls;
  std::vector<std::string> outputs = {"z"};
  std::vector<Tensor> more = {};
  std::map<std::string, Tensor> constants = {};
  int64_t least = 0;   ///< the least number of elements for which the calls are defined
  bool lowers = true;  ///< also runs all passes, after which the plan has no loop
};

inline Tensor compressed(const Tensor& x, int64_t axis, const std::vector<int64_t>& mask) {
  std::vector<int64_t> shape = x.shape();
  int64_t& extent = shape[static_cast<size_t>(axis)];
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t n = extent;
  extent = std::count(mask.begin(), mask.end(), 1);
  Tensor out(x.scalar(), shape);
  int64_t next = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (mask[static_cast<size_t>(i / inner % n)] == 0) continue;
    if (is_float(x.scalar()))
      out.set_float(next++, x.float_at(i));
    else
      out.set_integer(next++, x.integer_at(i));
  }
  return out;
}

inline std::vector<std::vector<int64_t>> drawn_masks(int64_t n, int64_t least) {
  std::vector<std::vector<int64_t>> out;
  std::mt19937_64 random(static_cast<uint64_t>(n));
  for (int64_t kind = 0; kind < 5; ++kind) {
    std::vector<int64_t> mask;
    for (int64_t i = 0; i < n; ++i)
      mask.push_back(kind == 0 ? 0 : kind == 1 ? 1 : kind == 2 ? i == n - 1 : static_cast<int64_t>(random() % 2));
    if (std::count(mask.begin(), mask.end(), 1) >= least) out.push_back(mask);
  }
  return out;
}

inline void compare(const DynamicCalls& c) {
  const int64_t n = c.x.shape()[static_cast<size_t>(c.axis)];
  for (const std::vector<int64_t>& mask : drawn_masks(n, c.least)) {
    std::vector<Tensor> inputs = {c.x, Tensor::of(Scalar::boolean, {n}, mask)};
    inputs.insert(inputs.end(), c.more.begin(), c.more.end());
    std::vector<NamedCall> calls = {call_named("Compress", {"x0", "x1"}, {"y"}, {{"axis", c.axis}})};
    calls.insert(calls.end(), c.calls.begin(), c.calls.end());
    const auto found = c.lowers ? outputs_of_calls(inputs, calls, c.outputs, c.constants)
                                : interpreted_outputs(program_of_calls(inputs, calls, c.outputs, c.constants), inputs);
    inputs[0] = compressed(c.x, c.axis, mask);
    calls[0] = call_named("Identity", {"x0"}, {"y"});
    const auto wanted = interpreted_outputs(program_of_calls(inputs, calls, c.outputs, c.constants), inputs);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(same_bits(found[i], wanted[i]))
          << c.calls.back().operation << ", " << fmt::format("{}", fmt::join(mask, "")) << ": " << show(found[i])
          << " for " << show(wanted[i]);
    }
  }
}

inline NamedCall gives_z(const std::string& operation, std::vector<std::string> inputs = {"y"},
                         Attributes attributes = {}) {
  return call_named(operation, inputs, {"z"}, std::move(attributes));
}

inline Tensor mixed_numbers(std::vector<int64_t> shape, Scalar scalar = Scalar::f32) {
  const int64_t n = element_count(shape);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(i * 7 % 11 - 4);
  return Tensor::of(scalar, std::move(shape), values);
}

using List = std::vector<int64_t>;

}  // namespace hoist
