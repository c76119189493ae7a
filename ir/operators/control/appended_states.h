// States of a Loop to which each iteration only appends, as exporters write a list that grows: the appended elements
// may be rows of the loop instead, so that the state need not grow. It is in this folder because recognising such a
// body needs the names of operators; ir/program calls it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/program/program_builder.h"

namespace hoist::operators {

/// The index of the first state among the inputs of a Loop and of its body, after the number and the condition.
inline constexpr size_t first_loop_state = 2;

using Makers = std::map<std::string, const NamedCall*>;
/// The call of a body that computes each value.
Makers makers_of(const NamedBody& body);

/// True if the call returns its operand unchanged, with elements of this type.
bool changes_nothing(const NamedCall& call, Scalar scalar);

/// A state to which each iteration only appends: the appending calls, and the appended values.
struct Appended {
  size_t state = 0;
  int64_t axis = 0;
  std::vector<std::string> parts;
  std::set<std::string> values;  ///< values that those calls compute
};
/// Nothing if the body uses the state in any other way, whose elements are of this type.
std::optional<Appended> appended_state(const NamedBody& body, size_t state, Scalar scalar);

/// A body that carries an array of the members instead of a list to which it only appends members. Nothing if it uses
/// the list in any other way.
std::optional<NamedBody> with_array(const NamedBody& body, size_t state);

/// The loop of this name with the appended values as rows instead of the state.
NamedCall with_rows(NamedCall loop, const Appended& appended, const std::string& rows);

/// The list without the element at a position.
template <class T>
void erase_at(std::vector<T>& all, size_t place) {
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(place));
}

}  // namespace hoist::operators
