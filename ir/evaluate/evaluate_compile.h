// From a term to stages and programs; see evaluate_program.h for what those are and evaluate_compile.cpp for how.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/evaluate_program.h"

namespace hoist {

/// The last stage's buffer is the result. Empty when the term has a form that only the interpreter computes: an
/// accumulator whose elements mix inside another fold, or nesting too deep to compile.
std::unique_ptr<Compiled> compile(Expr e, const Bindings& bindings);

/// One element of a term as a formula over elements of its parameters, at a position that is one variable a dimension.
/// Nothing of it can be run; properties.h reads it.
struct ElementFormula {
  Compiled parts;                 ///< values and loops, no stages
  int root = -1;                  ///< the element
  std::vector<IndexId> position;  ///< its indices; 0 in dimensions of one element
  struct Read {
    std::string parameter;
    std::vector<IndexId> at;
  };
  std::map<int, Read> reads;  ///< by value: the loads of parameters
};
/// Empty where an element is no formula: scans, scatters, an accumulator whose elements mix, tuples.
std::unique_ptr<ElementFormula> element_formula(Expr term);

}  // namespace hoist
