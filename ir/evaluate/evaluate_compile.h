// From a term to stages and programs, which evaluate_program.h defines; evaluate_compile.cpp describes the method.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/evaluate_program.h"

namespace hoist {

/// The last stage's buffer is the result. Null if only the interpreter can compute the term: an accumulator whose
/// elements mix inside another fold, or nesting too deep to compile.
std::unique_ptr<Compiled> compile(Expr e, const Bindings& bindings);

/// One element of a term as a formula over elements of its parameters, at a position with one variable per dimension.
/// It cannot be executed; properties.h analyses it.
struct ElementFormula {
  Compiled parts;                 ///< values and loops, no stages
  int root = -1;                  ///< the element
  std::vector<IndexId> position;  ///< its indices; 0 in dimensions of extent 1
  struct Read {
    std::string parameter;
    std::vector<IndexId> at;
  };
  std::map<int, Read> reads;  ///< loads of parameters, by value
};
/// The formula of an element of the term, or null if there is none: scans, scatters, an accumulator whose elements mix,
/// tuples.
std::unique_ptr<ElementFormula> element_formula(Expr term);

}  // namespace hoist
