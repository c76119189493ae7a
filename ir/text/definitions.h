// Named compositions of patterns: map2d, pad2d, flatten, relu, ... Each is a row of text in the language itself; the
// parser expands it, the printer prints by name what expands to the same term. A name may have several rows, told apart
// by the exact number of dimensions of the arguments. They are notation only, no term remembers them.
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
  /// The arguments in order, as rules declare theirs, and sizes: "k: size". Size names of the types are bound by the
  /// arguments' types and may be used in the definition.
  std::string_view given;
  std::string_view definition;
  std::string_view meaning;  ///< one line
};
std::span<const DefinitionRow> definition_table();

/// A row, read. Not named as the definitions of a Program are (lowering/graph/program.h): two types of one name in one
/// namespace share their template instances.
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
/// The rows of a name, in order; empty when there is none. The arguments alone, and with the bodies.
std::vector<const NamedDefinition*> definition_arguments(std::string_view name);
std::vector<const NamedDefinition*> definitions_named(std::string_view name);
/// The row for values of these types, in order; null when none fits. The only row of a name takes values of more
/// dimensions than it says.
const NamedDefinition* fitting_definition(const std::vector<const NamedDefinition*>& rows,
                                          const std::vector<Type>& types);
/// A definition as a term whose arguments are metavariables and whose numbers are metavariables #number.
struct DefinitionTerm {
  const NamedDefinition* definition = nullptr;
  Expr term = nullptr;
};
std::span<const DefinitionTerm> definition_terms();
/// All names, each once, in the table's order.
std::vector<std::string> definition_names();
/// Reads the arguments of a row or the declarations of a rule.
Result<std::vector<NamedDefinition::Argument>> parse_arguments(const std::string& text);

}  // namespace hoist
