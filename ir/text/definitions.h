// Named compositions of patterns: map2d, pad2d, flatten, relu, ... Each row is text in the language; the parser expands
// a composition, and the printer prints a term by name if it equals an expansion. Rows of the same name differ in the
// exact ranks of their arguments. Names are only notation: no term contains them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/text/parse/parse_term.h"

namespace hoist {

struct Syntax;

struct DefinitionRow {
  std::string_view name;
  /// The arguments in order, declared as in rules, and sizes: "k: size". The arguments' types bind their size names,
  /// which the definition may use.
  std::string_view given;
  std::string_view definition;
  std::string_view meaning;  ///< one line
};
std::span<const DefinitionRow> definition_table();

/// A parsed row. Its name differs from that of a Program's definitions (lowering/graph/program.h), since two types of
/// one name in one namespace would share their template instances.
struct NamedDefinition {
  struct Argument {
    std::string name;
    bool is_size = false;
    MetaDeclaration meta;
    bool is_function() const { return !meta.arguments.empty(); }
  };
  const DefinitionRow* row = nullptr;
  std::vector<Argument> arguments;
  const Syntax* body = nullptr;
};
/// The rows of a name in the table's order, empty if there are none: with arguments only, and with bodies.
std::vector<const NamedDefinition*> definition_arguments(std::string_view name);
std::vector<const NamedDefinition*> definitions_named(std::string_view name);
/// The first row that fits values of these types, or null. If a name has a single row, values may have more dimensions
/// than declared.
const NamedDefinition* fitting_definition(const std::vector<const NamedDefinition*>& rows,
                                          const std::vector<Type>& types);
/// A definition as a term: its arguments are metavariables, its untyped literals metavariables #number.
struct DefinitionTerm {
  const NamedDefinition* definition = nullptr;
  Expr term = nullptr;
};
std::span<const DefinitionTerm> definition_terms();
/// All names without repetition, in the table's order.
std::vector<std::string> definition_names();
/// Parses the arguments of a row or the declarations of a rule.
Result<std::vector<NamedDefinition::Argument>> parse_arguments(const std::string& text);

}  // namespace hoist
