// The properties of a term, derived from its patterns. Passes and neural rules decide by them, so none needs a list of
// operators. All functions expect inlined definitions (operators/operators.h) and hold for every definition: a new
// operator gets its properties from its row.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

bool any_node(Expr e, const std::function<bool(Expr)>& test);
/// The same for the usual computation, without the first branch of rarely().
bool any_usual_node(Expr e, const std::function<bool(Expr)>& test);
/// The children of a node without that branch.
std::vector<Expr> usual_children(Expr e);

/// True for reduce, fold, scan, iterate, scatter and host ops.
bool is_fold(Expr e);
/// True if the term contains such a node.
bool folds(Expr e);
/// True for a let of an array-valued body, whose elements all share the bound value.
bool binds_for_many(Expr e);
/// True if such a let in the term binds the result of a fold, as softmax and normalisations do: all elements of a row
/// share it. A let around a scalar belongs to one element only, as in the logarithm of a sum of exponentials.
bool shares_folds(Expr e);
bool concatenates(Expr e);
/// True if the term reads windows of more than one element.
bool has_windows(Expr e);
/// True if the term only moves data: views of parameters without any computation.
bool moves_only(Expr e);

/// A scatter: the base with updates at positions, in order. With `combine` an element becomes combine(old, update)
/// instead of the update.
struct ScatterForm {
  Expr positions = nullptr;  ///< [m]I
  Expr updates = nullptr;    ///< [m]T
  Expr base = nullptr;       ///< [n]T
  std::optional<Function> combine;
};
/// The form of a `scatter` or of a term that combined_at makes; nothing for other terms.
std::optional<ScatterForm> scatter_form(Expr e);
/// The base, an array of scalars, with updates combined into the elements at their positions, in order; updates outside
/// the base are dropped. The result is a fold whose steps change one element each.
Expr combined_at(Function combine, Expr positions, Expr updates, Expr base);

/// True for a fold over an array of scalars whose steps bind folds of the array by lets before they change it.
bool looks_before_changes(Expr e);
/// True if the steps of such a fold use the array in no other way and then change each element independently. The
/// update can then run in place.
bool changes_in_place(Expr e);

/// An elementwise term: each element is a scalar function of the same element of one array.
struct Elementwise {
  Expr array = nullptr;  ///< the parameter
  Expr body = nullptr;   ///< in terms of the parameter `element_name`, the element; other parameters are scalars, or
                         ///< arrays that every element reads at the same positions
};
inline constexpr char element_name[] = "\2element";  // a reserved name, never that of a model's value

/// The elementwise form of the term with respect to the array of that name, which has the same sizes. Nothing if an
/// element depends on other elements of the array or on its own position.
std::optional<Elementwise> elementwise_in(Expr term, const std::string& array);

/// An estimate of the instructions per evaluation of a scalar term: 1 for single-instruction operations, 4 for
/// divisions and roots, 16 for other functions. Shared subterms count once.
int64_t instruction_estimate(Expr body);

std::set<Function> functions_in(Expr term);

/// The parameters whose elements the term copies bit for bit: through views, concatenations, look-ups and maxima of
/// windows. Empty if some element may have another value, such as a border's 0.
std::set<std::string> moved_from(Expr term);

/// A term that only concatenates arrays along a dimension, in order. Empty arrays are left out.
struct Concatenation {
  std::vector<std::string> parts;
  size_t dimension = 0;
};
std::optional<Concatenation> concatenation_of(Expr term);

/// A contraction: each element of the term contains one sum over k of left[.., k, ..] * right[.., k, ..]; both operands
/// may be converted and shifted by an offset before the multiplication.
struct ProductForm {
  std::string left, right;          ///< parameters, in the order in which the definition multiplies
  std::vector<size_t> summed;       ///< the contracted dimensions of `right`, ascending
  std::vector<size_t> left_summed;  ///< the contracted dimensions of `left`
  size_t left_rank = 0;
  size_t channel_dimension = 0;  ///< of `right`: output channels; `left` depends on their group at most
  size_t output_dimension = 0;   ///< of the term: output channels
  /// The number of groups of output channels that read different parts of `left`; 1 if all read the same part.
  int64_t groups = 1;
};
std::optional<ProductForm> product_form(Expr term);

/// True if each element reads a feature map [N][C][spatial...] at its own batch index and channel and at other spatial
/// positions, as poolings do.
bool pools(Expr term);

/// True if each element is an exponential divided by a sum of exponentials, as in softmax.
bool normalises_exponentials(Expr term);

/// The dimension of the result along which per-channel scales propagate: if the elements of each array with index c
/// along its dimension are multiplied by a positive s(c), the result's elements with index c are multiplied by s(c), up
/// to rounding. Nothing if this does not hold.
std::optional<size_t> carries_scale(Expr term, const std::map<std::string, size_t>& dimensions);

}  // namespace hoist
