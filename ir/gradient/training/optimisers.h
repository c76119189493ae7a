// Optimisers, read from steps.optimisers: the first comment there explains a row. A row holds for weights of f32 and
// f64. Programs of training steps use it through training_step.h.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/language/expression.h"
#include "ir/text/row_text.h"

namespace hoist {

struct OptimiserRow {
  struct Line {
    std::string key;   ///< once, let, next, between or length
    std::string name;  ///< of `next`: a state, or w
    std::string text;  ///< a term
  };

  std::string name, meaning;
  std::vector<std::pair<std::string, double>> parameters;  ///< hyper-parameters and their defaults
  std::vector<Line> lines;                                 ///< in order; the last one is the next weight

  /// The states of a weight.
  std::vector<std::string> states() const;
};

/// An optimiser with values of its hyper-parameters.
struct Optimiser {
  const OptimiserRow* row = nullptr;
  std::map<std::string, double> parameters;
};

/// All rows, in the order of the file.
std::span<const OptimiserRow> optimiser_table();
/// The optimiser of the text NAME or NAME:PARAMETER=VALUE,...; other hyper-parameters have their defaults. Errors: no
/// such optimiser or hyper-parameter, a value that is no number.
Result<Optimiser> optimiser_named(const std::string& text);

/// The next values of a weight and of its states, as terms.
struct UpdateTerms {
  Expr weight, gradient, rate, time;  ///< two arrays of one type, and numbers of f32 and f64
  std::map<std::string, Expr> states = {};
  std::map<std::string, Expr> parameters = {};  ///< hyper-parameters that are numbers of the program
  bool decays = true;
  /// Makes a value of the program and returns it: for a term of the whole step, by its name and scalar type, or for the
  /// next value of a state or weight ("w").
  std::function<Expr(const std::string&name, Expr term)> define = {}, define_once = {};
  /// For `between`: the preconditioned array. For `length`: the norm of the array, a scalar.
  std::function<Expr(const std::string&name, Expr array)> precondition = {}, length = {};
};
/// Defines the next values in the order of the row's lines.
void define_update(const Optimiser& optimiser, const UpdateTerms& terms);

/// Checks the types of all rows, when hoist is built. Errors: all faults of the file.
Result<Nothing> check_own_optimisers();

}  // namespace hoist
