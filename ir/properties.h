// What a term is, read off its patterns: the properties by which passes and neural rules decide, so that none of them
// needs a list of operators. Everything here looks at unfolded terms (operators/operators.h) and holds for whatever an
// operator's definition says: a new operator has its properties from its row.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/expression.h"

namespace hoist {

/// Does any node of the term pass the test?
bool any_node(Expr e, const std::function<bool(Expr)>& test);
/// The same of what is computed as a rule: not of the first branch of rarely().
bool any_usual_node(Expr e, const std::function<bool(Expr)>& test);
/// The children of a node without that branch.
std::vector<Expr> usual_children(Expr e);

/// Is it a reduce, fold, scan, iterate or scatter?
bool is_fold(Expr e);
/// Does the term compute with any?
bool folds(Expr e);
/// Is it a let around an array, so that all its elements read what is bound?
bool binds_for_many(Expr e);
/// Does such a let name the result of a fold, as softmax and normalisations do? Then all elements of a row need it. One
/// around a number is that element's own, as in the logarithm of a sum of exponentials.
bool shares_folds(Expr e);
/// Does the term join arrays?
bool concatenates(Expr e);
/// Does the term look at windows of more than one element?
bool has_windows(Expr e);
/// Does the term only move data: views of parameters, no computation at all?
bool moves_only(Expr e);

/// A scatter: the base with updates at positions, in order. With `combine` an update meets what is there instead of
/// taking its place: combine(old, update).
struct ScatterForm {
  Expr positions = nullptr;  ///< [m]I
  Expr updates = nullptr;    ///< [m]T
  Expr base = nullptr;       ///< [n]T
  std::optional<Function> combine;
};
/// Of `scatter` and of what combined_at makes; none for other terms.
std::optional<ScatterForm> scatter_form(Expr e);
/// The base, an array of scalars, with updates combined into the elements at their positions, in order; those outside
/// are dropped. A fold whose steps change one element each.
Expr combined_at(Function combine, Expr positions, Expr updates, Expr base);

/// A fold over an array of numbers whose steps name folds of it by lets, before they change it.
bool looks_before_changes(Expr e);
/// Such a fold whose steps read the array in no other way than that, and then change each element by itself. So they
/// can change it where it stands.
bool changes_in_place(Expr e);

/// Each element of the term as a scalar function of that element of one array.
struct Elementwise {
  Expr array = nullptr;  ///< the parameter
  Expr body = nullptr;   ///< over the parameter `element_name`, which stands for the element; other parameters are
                         ///< scalars, or arrays that every element reads in the same places
};
inline constexpr char element_name[] = "\2element";  // no value of a model is named so

/// Whether the term is elementwise in the array of that name, which has the same sizes. Nothing where an element
/// depends on other elements of it, or on where it stands.
std::optional<Elementwise> elementwise_in(Expr term, const std::string& array);

/// About how many instructions one evaluation of a scalar term takes: 1 for what processors do in one, 4 for divisions
/// and roots, 16 for other functions. Shared subterms count once.
int64_t instruction_estimate(Expr body);

/// The functions that the term calls.
std::set<Function> functions_in(Expr term);

/// The parameters whose elements the term's elements are, the same bits: those of a view, a concatenation, a look-up,
/// the largest ones of windows. Empty where any element may be another number, a border's 0 say.
std::set<std::string> moved_from(Expr term);

/// A term that only joins arrays along a dimension, in order. Arrays without elements are left out.
struct Concatenation {
  std::vector<std::string> parts;
  size_t dimension = 0;
};
std::optional<Concatenation> concatenation_of(Expr term);

/// A sum of products: each element of the term is made of one sum over k of left[.., k, ..] * right[.., k, ..], where
/// both may be converted and moved by an offset before they are multiplied.
struct ProductForm {
  std::string left, right;          ///< parameters, in the order in which the definition multiplies
  std::vector<size_t> summed;       ///< dimensions of `right` that the sum runs over, ascending
  std::vector<size_t> left_summed;  ///< those of `left`
  size_t left_rank = 0;
  size_t channel_dimension = 0;  ///< of `right`: runs over output channels; `left` depends on their group at most
  size_t output_dimension = 0;   ///< of the term's elements: where the output channels are
  /// Groups of output channels that read different parts of `left`, 1 where all read the same.
  int64_t groups = 1;
};
std::optional<ProductForm> product_form(Expr term);

/// Does each element read a picture, [N][C][spatial...], at its own image and channel and elsewhere in space, as
/// poolings do?
bool pools(Expr term);

/// Is each element an exponential over a sum of exponentials, as in softmax?
bool normalises_exponentials(Expr term);

/// The dimension of the term that carries the channels of arrays with their scale: where the elements of each of the
/// arrays with index c along its dimension are multiplied by a positive s(c), the term's elements with index c along
/// the result are multiplied by the same, up to rounding. Nothing where that does not hold.
std::optional<size_t> carries_scale(Expr term, const std::map<std::string, size_t>& dimensions);

}  // namespace hoist
