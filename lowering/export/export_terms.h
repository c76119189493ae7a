// Export of an expression as ONNX operators over whole arrays, for engines that know only operators: a layer whose
// expression was rewritten by rules becomes ONNX layers again. Maps become broadcasting operators (each enclosing map
// is a leading dimension), reductions by a function of the table become Reduce operators, and views become Reshape,
// Transpose and similar operators. The values equal the expression's values except where ONNX cannot express them: fma
// rounds twice, sums may be reassociated, and casts of floats outside an integer type's range are defined by the
// engine. Do not use it for layers that no rule changes: their original operators are exported.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/language/expression.h"
#include "ir/program/program_builder.h"

namespace hoist {

struct ExportedLayers {
  std::vector<NamedCall> layers;  ///< layers in topological order; the last one computes the value
  std::map<std::string, Tensor> constants;
};

/// Layers of ai.onnx (opset 28; BitCast needs 26) that compute a closed expression with constant sizes. The
/// expression's parameters are value names, and the result is called `value`. Intermediate layers, values and constants
/// are named `prefix`/OPERATOR_NUMBER. Errors: a pattern or function without an ONNX operator or without one for its
/// type (folds, scans, scatters, windows); a tuple as the result.
Result<ExportedLayers> export_term(Expr e, const std::string& value, const std::string& prefix);

/// Returns the program in which each of these layers is replaced by the export of `rewritten` of its expression. A
/// layer that lowering evaluates at compile time stays. Errors come from lowering, `rewritten` and export_term, each
/// with its layer.
Result<Program> replace_by_expressions(
    const Program& program, const std::vector<std::string>& layers,
    const std::function<Result<Expr>(const std::string& layer, Expr expression)>& rewritten);

}  // namespace hoist
