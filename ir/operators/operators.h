// The operators of the language, one row each, as text in files *.op or in C++: the meaning of a call as a term. A
// definition states a value, not its computation: maps without a mode, reductions and views, over arrays of scalars in
// ONNX's logical layout (a tensor of rank 0 is a scalar). The type of a call is the type of its definition, which is
// also the shape inference. Inlining, which replaces a call by its definition, is an exact rule. Extents may be
// symbolic if the definition only passes them on; a definition that needs the value of a size refuses the call.
//
// Choices of definitions where ONNX leaves them open (NUMERICS.md in this folder compares them with other engines):
// - Positions from data are clamped and updates outside are dropped, so that a kernel stays inside its arrays for any
//   input. Positions known at compile time are checked instead, and may be errors.
// - Formulas of several operations on f16 and bf16 are computed in f32 and rounded once, as engines do: a long sum in
//   f16 stops growing, and 1 + exp(-8) is 1 there (precision.h).
// - An integer layer has one meaning: the exact sum of products of (element - zero point), plus the bias, times one f32
//   factor (the scales' product over the result's scale), rounded half to even, plus the zero point, saturated. Sums
//   are i32 if the number of terms and a known bias prove that i32 holds them, else i64; MatMulInteger and ConvInteger
//   have i32 from the standard. Zero points are subtracted before the multiplication, so padding is zeros and the
//   definitions of the float operators serve; a rule may move zero points out of the sum.
// - The sum of a quantised element and its zero point is computed in f32, also for scales of f16: f16 does not hold
//   16-bit zero points. The division is in the type that ONNX states.
// - If ONNX has an operator and a function body for it and the direct form is smaller, it has a row: softmax without a
//   broadcast maximum, layer normalisation without reshapes, Clip without Less and Where.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/language/expression.h"
#include "ir/language/tensor.h"

namespace hoist {

/// A call and the known facts about its operands.
struct OperatorContext {
  const OperatorCall& call;
  std::vector<Expr> inputs;              ///< the operands by their places; null where an optional one is left out
  std::vector<const Tensor*> constants;  ///< the operand's value if it is known at compile time, else null
};

/// The element types that the first input of an operator may have.
enum class Takes : uint8_t { anything, numbers, floats, integers, booleans };
std::string_view name_of(Takes takes);
bool takes(Takes what, Scalar scalar);

/// For an operator whose attributes are programs: the inputs that ONNX gives them. The captured values follow.
struct BodyRow {
  size_t fixed = 0;  ///< operands before the operands of a body: a condition, a number of iterations
  /// The types of a body's inputs, from the types of the operands by place; null for an absent one.
  Result<std::vector<Type>> (*inputs)(const OperatorCall& call, const std::vector<Type>& operands);
  /// If the first operand selects the body: the attribute whose program the call executes for that value. Null
  /// otherwise.
  std::string_view (*picked)(const Tensor& first) = nullptr;
  /// The first operand is the number of iterations, which also end when the condition is false: the second operand, and
  /// then the body's first result. The body receives the number of the iteration and the condition before its other
  /// inputs.
  bool iterates = false;
};

/// For an operator with results of data-dependent length: their type states the capacity, and one more result the
/// length. Valid elements come first.
struct ExtentRow {
  /// The place of that result, an i64 scalar, after the results of the standard; -1: after the results of a body.
  /// place_of_count gives it for a call.
  int64_t count;
  /// Pairs of a result and the dimension that is counted; none if known operands determine the length.
  Result<std::vector<std::pair<int64_t, int64_t>>> (*dimensions)(const OperatorContext&);
  /// Its elements are pieces of strings, and `most`, an attribute that the standard does not have, states the capacity.
  bool cuts_strings = false;
};

struct CompositionRow;  // composition.h

namespace operators {
class OperatorSource;  // operator_text.h
}

struct OperatorRow {
  std::string_view domain;        ///< "" is ai.onnx
  std::string_view name;          ///< ONNX op_type
  int since;                      ///< the first version of the domain whose meaning the row has
  int least_inputs, most_inputs;  ///< most_inputs = -1: any number
  Takes takes;
  /// One expression for each result of the call, in terms of the inputs; null if the row has a definition in the
  /// language.
  Result<std::vector<Expr>> (*lower)(const OperatorContext&);
  std::string_view meaning;  ///< for C++ definitions: a description of the value, and the reason for C++
  /// The range of float test inputs in which the operator is defined and well conditioned.
  double low = -2, high = 2;
  /// Its inputs that determine shapes, by place and name: "1 starts, 2 ends".
  std::string_view shape_inputs = {};
  /// The version of the standard from which it accepts 8-bit floats; 0 for none.
  int float8_since = 0;
  /// An equivalent term of several calls with less work in all; null if the call stays unchanged. Rounding may differ.
  Expr (*decompose)(const Spec& call) = nullptr;
  /// The values depend on the number of requested results, so unused results count too.
  bool counts_results = false;
  /// The definition in the language (operator_text.h); null if `lower` is the definition.
  const operators::OperatorSource* source = nullptr;
  const BodyRow* bodies = nullptr;              ///< null if no attribute is a program
  const ExtentRow* extents = nullptr;           ///< null if types determine the lengths of all results
  const CompositionRow* composition = nullptr;  ///< null if inputs and results are tensors
  /// The number of leading extents of its result that are data-dependent, and the definition takes the extents that the
  /// model declares for the value: an attribute "size" that the standard does not have.
  int declared_extents = 0;
};

constexpr OperatorRow with_extents(OperatorRow row, const ExtentRow& extents) {
  row.extents = &extents;
  return row;
}

/// An input that decides the shape of a result, and so is an attribute of a call: the target of a Reshape, the axes of
/// a reduction. A frontend evaluates it while it builds a program.
struct ShapeInput {
  size_t place;
  std::string_view name;  ///< in the standard, and of the attribute
};
std::vector<ShapeInput> shape_inputs(const OperatorRow& row);

/// The index of the count among the results of a call whose operator has an ExtentRow; `body_outputs` is the number of
/// outputs of its body, 0 without a body.
int64_t place_of_count(const OperatorRow& row, int64_t body_outputs);
int64_t place_of_count(const OperatorCall& call);
/// The data-dependent dimensions of a call's results, as pairs; none if its operator's row has no ExtentRow.
Result<std::vector<std::pair<int64_t, int64_t>>> dynamic_dimensions(const OperatorCall& call,
                                                                    const std::vector<Expr>& operands);

/// All rows, sorted by domain and name.
std::span<const OperatorRow> operator_table();
/// Parses the texts of all rows. Errors: all faults of their files. For developers: at build time, and if
/// HOIST_RULES_FOLDER names files that may have changed.
Result<Nothing> check_own_operators();
/// The row of an operator, or null: no such row, or one for later versions only. The domain "ai.onnx" is "".
const OperatorRow* find_operator(std::string_view domain, std::string_view name, int64_t opset);

/// The results of a call as expressions over its inputs. Errors: no row, wrong number or types of inputs, bad
/// attributes, shapes that do not fit, an input that has to be constant but is not.
Result<std::vector<Expr>> define(const OperatorContext& context);

/// Values of parameters that are known at compile time.
using KnownValues = std::map<std::string, Tensor>;

/// Replaces a call by its definition, a tuple if the call has several results. The rule `inline-definitions`, exact.
/// Known operands select between forms that give the same values; they never change the type.
Result<Expr> inline_call(const Spec& call, const KnownValues& known = {});
/// A term with every call in it inlined.
Expr without_operator_calls(Expr e);

}  // namespace hoist
