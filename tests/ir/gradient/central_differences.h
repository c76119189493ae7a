// Adjoints against central differences in f64: the interpreter computes the derivative of the sum of a term's elements,
// each with its own weight, along every parameter.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ir/base/seeded.h"
#include "ir/evaluate/evaluate.h"
#include "ir/gradient/adjoints.h"
#include "ir/operators/operators.h"
#include "ir/text/text.h"

namespace hoist::gradients {

inline double random_between(uint64_t& state, double low, double high) {
  return low + (high - low) * static_cast<double>(next_random(state) >> 11) * 0x1p-53;
}

/// Random values for all parameters: floats within the range, integers from 0 to 2.
inline Bindings random_bindings(Expr e, uint64_t seed, double low = -2, double high = 2) {
  Bindings out;
  for (Expr p : parameters_of(e)) {
    Tensor t(leaf_of(p->type)->scalar, shape_of(p->type));
    for (int64_t i = 0; i < t.size(); ++i) {
      if (is_float(t.scalar()))
        t.set_float(i, random_between(seed, low, high));
      else
        t.set_integer(i, static_cast<int64_t>(next_random(seed) % (t.scalar() == Scalar::boolean ? 2 : 3)));
    }
    out.emplace(p->name, t);
  }
  return out;
}

/// The parameter for the adjoint of the term.
inline Expr seed_of(Expr e) { return parameter("adjoint", e->type); }

inline double weighted_sum(Expr e, const Bindings& at, const Tensor& weights) {
  auto value = evaluate(e, at);
  EXPECT_TRUE(value.ok()) << (value.ok() ? "" : value.errors()[0].text()) << "\n" << print(e);
  double sum = 0;
  if (!value.ok()) return sum;
  for (int64_t i = 0; i < value->size(); ++i) sum += value->float_at(i) * weights.float_at(i);
  return sum;
}

/// Compares the adjoints of all parameters with floats.
inline void expect_adjoints(Expr term, const Bindings& at, const std::string& what, bool knows_result = false) {
  constexpr double step = 1e-5, tolerance = 2e-6;
  const Expr e = without_operator_calls(term);
  if (!knows_result) expect_adjoints(term, at, what + " from its result", true);
  std::vector<Expr> wanted;
  for (Expr p : parameters_of(e)) {
    if (has_floats(p->type)) wanted.push_back(p);
  }
  std::set<std::string> faults;
  const Adjoints adjoints =
      adjoints_of(e, seed_of(e), wanted, faults, knows_result ? parameter("result", e->type) : nullptr);
  for (const std::string& fault : faults) ADD_FAILURE() << what << ": no derivative of " << fault;
  uint64_t state = 3;
  Tensor weights(leaf_of(e->type)->scalar, shape_of(e->type));
  for (int64_t i = 0; i < weights.size(); ++i) weights.set_float(i, random_between(state, 0.5, 1.5));
  for (size_t p = 0; p < wanted.size(); ++p) {
    Bindings with_seed = at;
    with_seed.emplace("adjoint", weights);
    if (knows_result) with_seed.emplace("result", *evaluate(e, at));
    const Expr adjoint = with_bindings(adjoints.bindings, adjoints.of[p]);
    EXPECT_EQ(adjoint->free, 0);
    const auto found = evaluate(adjoint, with_seed);
    ASSERT_TRUE(found.ok()) << what << ": " << found.errors()[0].text() << "\n" << print(adjoint);
    const Tensor& here = at.at(wanted[p]->name);
    for (int64_t i = 0; i < here.size(); ++i) {
      Bindings above = at, below = at;
      above.at(wanted[p]->name).set_float(i, here.float_at(i) + step);
      below.at(wanted[p]->name).set_float(i, here.float_at(i) - step);
      const double expected = (weighted_sum(e, above, weights) - weighted_sum(e, below, weights)) / (2 * step);
      const double difference = std::abs(found->float_at(i) - expected);
      EXPECT_LE(difference, tolerance * (1 + std::abs(expected)))
          << what << ": adjoint " << i << " of " << wanted[p]->name << " is " << found->float_at(i) << ", expected "
          << expected << "\n"
          << print(e) << "\n"
          << print(adjoint);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace hoist::gradients
