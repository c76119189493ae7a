// Common code of the operator families: attributes and constant inputs with type-checked errors, axes, scalar formulas,
// broadcasting, reshaping and reductions over axes. All terms are views and maps without a mode. Functions that return
// an Expr require checked arguments: a wrong one is a fault of hoist and aborts. Only for ir/operators.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ir/operators/operators.h"

namespace hoist::operators {

using Lowered = Result<std::vector<Expr>>;
using Shape = std::vector<int64_t>;
using Sizes = std::vector<Nat>;  ///< extents that need not be numbers

/// The largest number of elements of an array in a lowered layer; a model beyond it is refused.
inline constexpr int64_t most_elements = int64_t{1} << 40;

/// No table that an operator makes at compile time (positions, weights, counts) has more entries.
inline constexpr int64_t most_table_entries = int64_t{1} << 26;

/// An error of the layer being lowered; lower_layer adds its name.
Diagnostic fault(const std::string& what, const std::string& hint = {});
Lowered one(Expr e);
std::string text(const Shape& shape);  ///< "[2][3]", "a scalar"
std::string text(const Sizes& sizes);

// ---- What is known of an array of scalars -------------------------------------------------------------------------
Shape extents(Expr x);  ///< constant extents; a definition that accepts symbolic sizes uses sizes_of(x->type)
int64_t rank_of(Expr x);
Scalar element_of(Expr x);
int64_t product(const Shape& shape);
Nat product(const Sizes& sizes);
/// Extents that are not negative and whose product stays within most_elements.
Result<Nothing> check_extents(const Shape& shape);
Result<Nothing> check_sizes(const Sizes& sizes);  ///< the same for constant extents

// ---- Attributes: the value, or `otherwise` where the layer has none; a wrong kind is an error ----------------------
bool has_attribute(const OperatorContext& context, const std::string& name);
Result<int64_t> integer_attribute(const OperatorContext& context, const std::string& name, int64_t otherwise);
Result<double> float_attribute(const OperatorContext& context, const std::string& name, double otherwise);
Result<std::string> string_attribute(const OperatorContext& context, const std::string& name,
                                     const std::string& otherwise);
Result<Shape> integers_attribute(const OperatorContext& context, const std::string& name, const Shape& otherwise);
Result<std::vector<std::string>> strings_attribute(const OperatorContext& context, const std::string& name);
/// An attribute that is one of the strings of a list.
Result<std::string> choice_attribute(const OperatorContext& context, const std::string& name,
                                     const std::string& otherwise, const std::vector<std::string>& choices);
/// An element type by ONNX's number for it (TensorProto.DataType).
Result<Scalar> scalar_of_onnx(int64_t data_type);

// ---- Inputs ------------------------------------------------------------------------------------------------------
Expr input(const OperatorContext& context, size_t i);  ///< null when left out
/// True if an input that may have become an attribute is present.
bool is_given(const OperatorContext& context, size_t i, const std::string& role);
/// The value of an input that has to be known at compile time, or of the attribute that it has become; `role` is its
/// name in the standard ("axes").
Result<Tensor> constant_input(const OperatorContext& context, size_t i, const std::string& role);
Result<Shape> constant_integers(const OperatorContext& context, size_t i, const std::string& role);
Result<std::vector<double>> constant_floats(const OperatorContext& context, size_t i, const std::string& role);
/// From the attribute of that name, else from input i, else nothing: how axes moved from one to the other.
Result<std::optional<Shape>> integers_of(const OperatorContext& context, const std::string& name, size_t i);
/// Checks that all present inputs have the element type of the first.
Result<Nothing> check_same_element(const OperatorContext& context);

Result<int64_t> normalise_axis(int64_t axis, int64_t rank);     ///< into 0 .. rank-1
Result<Shape> normalise_axes(const Shape& axes, int64_t rank);  ///< sorted; a repeated one is an error

// ---- Scalar formulas -----------------------------------------------------------------------------------------------
/// A scalar in a formula: a term, or a number that takes the type of the other operand.
struct Number {
  Number(Expr term) : e(term) {}            // NOLINT: implicit by design
  Number(double number) : value(number) {}  // NOLINT: implicit by design
  Expr e = nullptr;
  double value = 0;
};
Number apply(Function function, Number a);
Number apply(Function function, Number a, Number b);
Number choose(Number condition, Number a, Number b);
inline Number operator+(Number a, Number b) { return apply(Function::add, a, b); }
inline Number operator-(Number a, Number b) { return apply(Function::subtract, a, b); }
inline Number operator*(Number a, Number b) { return apply(Function::multiply, a, b); }
inline Number operator/(Number a, Number b) { return apply(Function::divide, a, b); }
inline Number operator-(Number a) { return apply(Function::negate, a); }
inline Number operator<(Number a, Number b) { return apply(Function::less, a, b); }
inline Number operator>(Number a, Number b) { return apply(Function::greater, a, b); }
inline Number operator<=(Number a, Number b) { return apply(Function::less_equal, a, b); }
inline Number operator>=(Number a, Number b) { return apply(Function::greater_equal, a, b); }
inline Number operator==(Number a, Number b) { return apply(Function::equal, a, b); }
inline Number operator&(Number a, Number b) { return apply(Function::logical_and, a, b); }
inline Number operator|(Number a, Number b) { return apply(Function::logical_or, a, b); }
inline Number operator!(Number a) { return apply(Function::logical_not, a); }
inline Number sqrt(Number a) { return apply(Function::sqrt, a); }
inline Number abs(Number a) { return apply(Function::absolute, a); }
inline Number floor(Number a) { return apply(Function::floor, a); }
inline Number max(Number a, Number b) { return apply(Function::maximum, a, b); }
inline Number min(Number a, Number b) { return apply(Function::minimum, a, b); }

Expr zero(Scalar scalar);  ///< 0, or false
/// A scalar in another type, as ONNX converts: to bool is "not 0", integers keep their low bits, the rest as cast says.
Expr convert(Scalar to, Expr x);
/// The same, but a value too large for a float8 becomes infinity, or NaN if the type has no infinity.
Expr convert_without_saturation(Scalar to, Expr x);
/// The type in which sums of this type are computed if ONNX requires more precision: f32 for f16 and bf16.
Scalar wide_float(Scalar scalar);
/// An index i of an array of n as a position: negative ones count from the end, others out of range are clamped, so
/// that no kernel reads beyond the array.
Expr clamped_position(Expr i, int64_t n);

// ---- Arrays --------------------------------------------------------------------------------------------------------
Expr at_position(int64_t position, Expr array);
/// Materialises the array in global memory, so that several uses do not recompute it.
Expr in_memory(Expr x);
/// map over the zip of the arrays (of one array: over itself); the function gets one element of each.
Expr map_zip(const std::vector<Expr>& arrays, const std::function<Expr(const std::vector<Expr>&)>& f);
/// The same under `depth` dimensions that all arrays have.
Expr map_zip_at(int64_t depth, const std::vector<Expr>& arrays, const std::function<Expr(const std::vector<Expr>&)>& f);
/// The extents to which all broadcast in numpy's sense, or the two that do not fit. Symbolic sizes fit if they are
/// equal, or if one of them is 1.
Result<Sizes> broadcast_sizes(const std::vector<Expr>& arrays);
Result<Shape> broadcast_extents(const std::vector<Expr>& arrays);  ///< the same as constant extents
/// A scalar function on arrays that broadcast: mapped over dimensions that an array has, captured in dimensions that it
/// lacks.
Expr elementwise(std::vector<Expr> arrays, const std::function<Expr(const std::vector<Expr>&)>& f);
/// Repeats along new dimensions and along dimensions of extent 1.
Expr broadcast_to(Expr x, const Shape& shape);
/// The same elements in row-major order under another shape of equal size: only differing extents are joined and split.
Expr reshape(Expr x, const Shape& shape);
Expr reshape_to(Expr x, const Sizes& to);  ///< the same for symbolic extents
Expr flatten(Expr x);                      ///< reshape to one dimension
Result<Expr> constant_strings(const Shape& shape, const std::vector<std::string>& strings);
Expr constant_like(Scalar scalar, const Shape& shape, double value);  ///< the same number everywhere
Expr concat_at(int64_t depth, const std::vector<Expr>& arrays);
/// Concatenates along an axis; refuses arrays that differ in other extents.
Lowered concatenation(const std::vector<Expr>& arrays, int64_t axis);
/// Pads an array of any rank along its first dimension with the same number everywhere.
Expr pad_with(int64_t before, int64_t after, Expr value, Expr array);
/// transpose, for any rank: dimension i of the result is dimension permutation[i] of x.
Expr permute(const Shape& permutation, Expr x);
Shape inverse(const Shape& permutation);
/// The permutation that leaves the other dimensions in order and puts `axes` last.
Shape with_last(const Shape& axes, int64_t rank);
/// f on the flattened elements along the axes, for each of the others; reduced dimensions may stay with extent 1.
Expr reduce_axes(Expr x, const Shape& axes, bool keep, const std::function<Expr(Expr)>& f);
/// f on each row along the axis, which returns a row (of any length); dimensions stay in place.
Expr map_rows(Expr x, int64_t axis, const std::function<Expr(Expr)>& f);

// Sums of f16 and bf16 are formed in f32 and rounded once: in their own type a long sum would stop growing.
Expr sum(Expr row);  ///< reduce (+) 0
Expr mean_of(
    Expr row);  ///< the sum divided by the length; correct even if the type can represent the mean but not the sum

}  // namespace hoist::operators
