// What a term is, read off its patterns: the properties by which passes decide, so that no pass needs a list of
// operators. Everything here looks at unfolded terms (operators/operators.h) and holds for whatever an operator's
// definition says.
#pragma once

#include <optional>

#include "ir/expression.h"

namespace hoist {

/// Each element of the term as a scalar function of that element of one array.
struct Elementwise {
  Expr array = nullptr;  ///< the parameter
  Expr body = nullptr;   ///< over the parameter `element_name`, which stands for the element; other parameters are
                         ///< scalars, or arrays that every element reads in the same places
};
inline constexpr char element_name[] = "element";

/// Whether the term is elementwise in the array of that name, which has the same sizes. Nothing where an element
/// depends on other elements of it, or on where it stands.
std::optional<Elementwise> elementwise_in(Expr term, const std::string& array);

/// About how many instructions one evaluation of a scalar term takes: 1 for what processors do in one, 4 for divisions
/// and roots, 16 for other functions. Shared subterms count once.
int64_t instruction_estimate(Expr body);

}  // namespace hoist
