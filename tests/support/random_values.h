// Random choices for random terms: sizes, types, literals and constants.
#pragma once

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/random_terms.h"

namespace hoist {

class RandomValues {
 public:
  RandomValues(std::mt19937_64& random, const RandomTermOptions& options) : random_(random), options_(options) {}

  int64_t pick(int64_t count) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(count)); }
  bool chance(int percent) { return pick(100) < percent; }
  template <class T>
  const T& pick_from(const std::vector<T>& all) {
    return all[static_cast<size_t>(pick(static_cast<int64_t>(all.size())))];
  }

  Nat size() {
    if (options_.symbolic && chance(40)) {
      Nat n = Nat::name(pick_from<std::string>({"n", "m", "width"}));
      switch (pick(4)) {
        case 0:
          return n * 2 + 1;
        case 1:
          return n * Nat::name("m");
        default:
          return n;
      }
    }
    return 1 + pick(options_.largest_size);
  }
  Scalar scalar() { return pick_from(options_.scalars); }

  Type type(int depth = 0) {
    int64_t kind = pick(depth > 2 ? 2 : 6);
    if (kind < 2) return scalar_type(scalar());
    if (kind == 5) return tuple_type({type(depth + 1), type(depth + 1)});
    return array_type(size(), type(depth + 1));
  }

  Expr random_literal(Scalar s) {
    if (s == Scalar::boolean) return literal_integer(s, pick(2));
    if (!is_float(s))
      return literal_integer(s, chance(80) ? pick(8) - (row(s).is_signed ? 3 : 0) : static_cast<int64_t>(random_()));
    static const std::vector<double> odd = {0.0,
                                            -0.0,
                                            1.0,
                                            0.1,
                                            -2.5,
                                            1e-7,
                                            1e4,
                                            std::numeric_limits<double>::infinity(),
                                            std::numeric_limits<double>::quiet_NaN()};
    return literal(s, chance(30) ? pick_from(odd) : static_cast<double>(pick(2001) - 1000) / 128);
  }

  Expr random_constant(Scalar s, const std::vector<int64_t>& shape) {
    Tensor t(s, shape);
    for (int64_t i = 0; i < t.size(); ++i) {
      if (is_float(s))
        t.set_float(i, static_cast<double>(pick(401) - 200) / 16);
      else
        t.set_integer(i, s == Scalar::boolean ? pick(2) : row(s).is_signed ? pick(9) - 4 : pick(9));
    }
    return constant(t);
  }

 protected:
  std::mt19937_64& random_;
  const RandomTermOptions& options_;
};

}  // namespace hoist
