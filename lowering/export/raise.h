// The way back from an expression to ONNX operators over whole arrays: what a layer computes after rules have changed
// its expression, for engines that know operators only. Maps become broadcasting operators (each enclosing map is a
// leading dimension), reductions by a function of the table Reduce operators, views Reshape, Transpose and their like.
// Values are those of the expression but for what ONNX cannot say: fma rounds twice, sums may be reassociated, and
// casts of floats outside an integer type's range are as the engine has them. Not for layers that no rule touches:
// those stay the operators that they are.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/language/expression.h"
#include "ir/program/program_builder.h"

namespace hoist {

struct RaisedLayers {
  std::vector<NamedCall> layers;  ///< in topological order; the last one gives the value
  std::map<std::string, Tensor> constants;
};

/// Layers of ai.onnx (opset 28; BitCast, where there are casts of bits, needs 26) that compute a closed expression with
/// constant sizes, whose parameters name values, and give the result the name `value`. Layers, values and constants in
/// between are called `prefix`/OPERATOR_NUMBER. Errors: a pattern or function that has no operator, or not on its type
/// (folds, scans, scatters, windows), a tuple as the result.
Result<RaisedLayers> raise(Expr e, const std::string& value, const std::string& prefix);

/// The program with what `rewritten` makes of these layers' expressions, raised. A layer that lowering evaluates at
/// compile time stays. Errors: those of lowering, of `rewritten` and of raise, each with its layer.
Result<Program> replace_by_expressions(
    const Program& program, const std::vector<std::string>& layers,
    const std::function<Result<Expr>(const std::string& layer, Expr expression)>& rewritten);

}  // namespace hoist
