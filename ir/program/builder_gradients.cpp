// The backward pass of the calls before a call of Gradient, as definitions of the program that is built.
#include "ir/gradient/gradient.h"
#include "ir/program/program_builder.h"

namespace hoist {

Result<std::vector<std::string>> ProgramBuilder::add_gradients(const std::string& of,
                                                               const std::vector<std::string>& values) {
  if (!counts_.empty())
    return Diagnostic{"", "follows layers with dynamic output shapes, which have no gradients",
                      "use upper bounds, or constants, instead of values that depend on data"};
  Program before = program_;
  before.outputs = {of};
  HOIST_TRY(Program both, gradient(before, {of, true, values}));
  both.outputs.erase(both.outputs.begin());
  remove_unused(both);
  std::map<std::string, Expr> renamed;
  const auto name_of = [&](const std::string& value, Type type) {
    std::string name = names_.make(value);
    renamed.emplace(value, parameter(name, type));
    return name;
  };
  for (auto& [value, tensor] : both.constants) {
    if (types_.count(value) != 0) continue;
    const std::string name = name_of(value, type_of(tensor));
    add_constant(name, std::move(tensor));
  }
  for (const Definition& d : both.definitions) {
    if (types_.count(d.value) != 0) continue;
    NamedCall part;
    part.name = name_of(d.value, d.expression->type);
    define(part.name, substitute_parameters(d.expression, renamed), part);
  }
  std::vector<std::string> out;
  for (const std::string& output : both.outputs) out.push_back(renamed.at(output)->name);
  return out;
}

}  // namespace hoist
