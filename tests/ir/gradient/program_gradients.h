// Gradients of programs against central differences in f64.
#pragma once

#include <gtest/gtest.h>

#include "ir/gradient/gradient.h"
#include "ir/text/program_text.h"
#include "tests/ir/gradient/central_differences.h"

namespace hoist::gradients {

inline Program program(const std::string& text) {
  auto parsed = parse_program("program %p version 21\n" + text);
  EXPECT_TRUE(parsed.ok()) << text << ": " << (parsed.ok() ? "" : parsed.errors()[0].text());
  return parsed.ok() ? *parsed : Program{};
}

/// All values of a program.
inline Bindings values_of(const Program& p, const Bindings& inputs) {
  Bindings values = inputs;
  for (const auto& [name, tensor] : p.constants) values.emplace(name, tensor);
  std::map<std::string, Expr> tuples;
  for (const Definition& d : p.definitions) {
    const Expr e = substitute_parameters(without_operator_calls(d.expression), tuples);
    if (!leaf_of(e->type)->is_scalar()) {
      tuples.emplace(d.value, e);
      continue;
    }
    auto value = evaluate(e, values);
    EXPECT_TRUE(value.ok()) << d.value << ": " << (value.ok() ? "" : value.errors()[0].text());
    if (value.ok()) values.insert_or_assign(d.value, *value);
  }
  return values;
}

inline Bindings random_inputs(const Program& p, uint64_t seed) {
  Bindings out;
  for (const auto& [name, type] : p.inputs) out.merge(random_bindings(parameter(name, type), seed++));
  return out;
}

/// Compares the gradients with central differences, and reads the program's text again.
inline void expect_gradients(const Program& p, const GradientRequest& request) {
  const auto made = gradient(p, request);
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  const std::string text = print_program(*made);
  const auto again = parse_program(text);
  ASSERT_TRUE(again.ok()) << again.errors()[0].text() << "\n" << text;
  EXPECT_TRUE(same_program(*made, *again));
  const Bindings inputs = random_inputs(p, 9);
  const Bindings found = values_of(*made, inputs);
  ASSERT_EQ(made->outputs.size(), 1 + request.with_respect_to.size());
  constexpr double step = 1e-5;
  for (size_t k = 0; k < request.with_respect_to.size(); ++k) {
    const std::string& value = request.with_respect_to[k];
    const Tensor& gradients = found.at(made->outputs[k + 1]);
    const bool is_constant = p.constants.count(value) != 0;
    const Tensor& here = is_constant ? p.constants.at(value) : inputs.at(value);
    ASSERT_EQ(gradients.shape(), here.shape());
    for (int64_t i = 0; i < here.size(); ++i) {
      double losses[2];
      for (const int side : {0, 1}) {
        Bindings moved = inputs;
        Program other = p;
        Tensor& tensor = is_constant ? other.constants.at(value) : moved.at(value);
        tensor.set_float(i, here.float_at(i) + (side == 1 ? step : -step));
        const Bindings all = values_of(other, moved);
        losses[side] = 0;
        const Tensor& loss = all.at(request.loss);
        for (int64_t j = 0; j < loss.size(); ++j) losses[side] += loss.float_at(j);
      }
      const double expected = (losses[1] - losses[0]) / (2 * step);
      EXPECT_NEAR(gradients.float_at(i), expected, 3e-6 * (1 + std::abs(expected))) << value << " at " << i << "\n"
                                                                                    << text;
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace hoist::gradients
