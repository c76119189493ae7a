// The operators of the language, one row each, text in files *.op or C++: what a call means as an expression. A
// definition says what is computed, not how: maps without a mode, reductions and views, over arrays of scalars in
// ONNX's logical layout (a tensor of rank 0 is a scalar). The type of a call is that of its definition, which is also
// the shape inference. Unfolding a call, which puts the definition in its place, is an exact rule. Extents may be sizes
// without a number wherever the definition only carries them along; one that needs the number refuses the call.
//
// What definitions keep to where ONNX leaves it open, NUMERICS.md beside this file having the comparison with others:
// - Positions from data are clamped and updates outside are dropped, since a kernel must not leave its arrays whatever
//   a model's input holds. Positions known at compile time are checked instead, and an error.
// - Formulas of several operations on f16 and bf16 are computed in f32 and rounded once, as engines do: a long sum in
//   f16 stops growing, and 1 + exp(-8) is 1 there (precision.h).
// - An integer layer has one meaning: the exact sum of products of (number - zero point), plus the bias, times one f32
//   factor (the scales' product over the result's scale), rounded half to even, plus the zero point, saturated. Sums
//   are i32 where the number of terms and a known bias prove that it holds them, else i64; MatMulInteger and
//   ConvInteger have i32 from the standard. Zero points are subtracted before products are formed, so that padding is
//   zeros and the definitions of the float operators serve; taking them out of the sum is a rule's business.
// - A quantised number's sum with its zero point is formed in f32, for scales of f16 as well: f16 does not hold 16-bit
//   zero points. The division is in the type that ONNX says.
// - Where ONNX has an operator and a function body for it and the direct form is smaller, it has a row: softmax without
//   a broadcast maximum, layer normalisation without reshapes, Clip without Less and Where.
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

/// A call and what is known of its operands.
struct OperatorContext {
  const OperatorCall& call;
  std::vector<Expr> inputs;              ///< the operands by their places; null where an optional one is left out
  std::vector<const Tensor*> constants;  ///< the operand's value where it is known at compile time, else null
};

/// Which element types the first input of an operator may have.
enum class Takes : uint8_t { anything, numbers, floats, integers, booleans };
std::string_view name_of(Takes takes);
bool takes(Takes what, Scalar scalar);

/// Of an operator whose attributes are programs: what ONNX hands to them. Behind it they take what they capture.
struct BodyRow {
  size_t fixed = 0;  ///< operands in front of those that a body takes: a condition, a number of iterations
  /// The types of a body's inputs, from those of the operands by place; null for one that is left out.
  Result<std::vector<Type>> (*inputs)(const OperatorCall& call, const std::vector<Type>& operands);
  /// Where the first operand alone decides: the attribute whose program the call is for that value. Null where it does
  /// not.
  std::string_view (*picked)(const Tensor& first) = nullptr;
  /// The body runs as often as the first operand says, as long as the condition holds, which is the second operand and
  /// then what the body gives first. It takes the number of the iteration and the condition in front of the others.
  bool iterates = false;
};

/// Of an operator with results that are as long as data decide: their type says how long they are at most, one more
/// result how long they are. The elements that count stand first.
struct ExtentRow {
  /// The place of that result, an i64 scalar, behind those of the standard; -1: behind what a body gives.
  /// place_of_count says which it is of a call.
  int64_t count;
  /// Pairs of a result and the dimension that is counted; none where the operands, as far as they are known, decide.
  Result<std::vector<std::pair<int64_t, int64_t>>> (*dimensions)(const OperatorContext&);
  /// They are the pieces of strings, and an attribute that the standard has not, `most`, says how many there is room
  /// for.
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
  int least_inputs, most_inputs;  ///< most_inputs -1: any number
  Takes takes;
  /// One expression for each result of the call, in terms of the inputs; null where the row has a definition in the
  /// language.
  Result<std::vector<Expr>> (*lower)(const OperatorContext&);
  std::string_view meaning;  ///< of a function, for people: what it computes, and why no text says it
  /// Where float test inputs may be drawn from, such that the operator is defined and well conditioned there.
  double low = -2, high = 2;
  /// Its inputs that decide shapes, by place and name: "1 starts, 2 ends".
  std::string_view shape_inputs = {};
  /// The version of the standard from which it takes 8-bit floats; none does where it is 0.
  int float8_since = 0;
  /// Several calls that are less work together, as one term; null where a call stays as it is. Rounding may differ.
  Expr (*decompose)(const Spec& call) = nullptr;
  /// What it gives depends on how many results are asked for, so that those which nobody reads count too.
  bool counts_results = false;
  /// The definition in the language (operator_text.h); null where `lower` is the definition.
  const operators::OperatorSource* source = nullptr;
  const BodyRow* bodies = nullptr;              ///< null where no attribute is a program
  const ExtentRow* extents = nullptr;           ///< null where types say how long all results are
  const CompositionRow* composition = nullptr;  ///< null where inputs and results are tensors
  /// So many extents of its result, from the first on, are up to data, and the definition takes those that the model
  /// declares for the value: an attribute "size" that the standard has not.
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

/// The place of the result that counts, of a call whose operator has an ExtentRow; `body_outputs` are how many outputs
/// its body has, 0 without one.
int64_t place_of_count(const OperatorRow& row, int64_t body_outputs);
int64_t place_of_count(const OperatorCall& call);
/// The dimensions of a call's results that data decide, as pairs; none where its operator's row has no ExtentRow.
Result<std::vector<std::pair<int64_t, int64_t>>> counted_dimensions(const OperatorCall& call,
                                                                    const std::vector<Expr>& operands);

/// All rows, sorted by domain and name.
std::span<const OperatorRow> operator_table();
/// Parses the texts of all rows. Errors: all that is wrong in their files. For developers, at build and where
/// HOIST_RULES_FOLDER names files that may have changed.
Result<Nothing> check_own_operators();
/// The row of an operator, or null: no such row, or one for later versions only. The domain "ai.onnx" is "".
const OperatorRow* find_operator(std::string_view domain, std::string_view name, int64_t opset);

/// The results of a call as expressions over its inputs. Errors: no row, wrong number or types of inputs, bad
/// attributes, shapes that do not fit, an input that has to be constant but is not.
Result<std::vector<Expr>> define(const OperatorContext& context);

/// Values of parameters that are known at compile time.
using KnownValues = std::map<std::string, Tensor>;

/// The definition of a call in its place, a tuple where the call has several results. The rule "unfold", exact. What is
/// known of the operands picks between forms that give the same values; it never changes the type.
Result<Expr> unfold(const Spec& call, const KnownValues& known = {});
/// A term with every call in it unfolded.
Expr without_operator_calls(Expr e);

}  // namespace hoist
