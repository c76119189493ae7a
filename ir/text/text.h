// The textual form of the language: one grammar for printed terms, user input, rules, goldens and bundles.
// parse(print(e)) is e (the same pointer) for every well-typed closed term. Grammar and examples:
// tools/pages/reference/language.md.
#pragma once

#include <map>
#include <string>

#include "ir/language/expression.h"

namespace hoist {

struct PrintOptions {
  int width = 100;                   ///< beyond this column, one pattern per line
  bool show_types = false;           ///< print the type after each pattern as a comment
  bool fold_definitions = true;      ///< print named compositions (map2d, pad2d, flatten, ...) by name
  bool declare_parameters = true;    ///< print parameters with their type at their first occurrence
  int64_t version = newest_version;  ///< version of operator calls without an explicit version
};
std::string print(Expr e, const PrintOptions& options = {});

/// A term. `parameters` gives the types of the names written %name that the text itself does not declare (%x : [4]f32
/// declares one where it first appears). Errors name line and column, the expected and the actual token or type.
Result<Expr> parse(const std::string& text, const std::map<std::string, Type>& parameters = {});
Result<Nat> parse_size(const std::string& text);

}  // namespace hoist
