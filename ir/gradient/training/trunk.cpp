#include "ir/gradient/training/trunk.h"

#include <algorithm>
#include <set>

#include "ir/text/parse/near_miss.h"

namespace hoist {
namespace {

Program up_to(Program program, const std::string& output) {
  program.outputs = {output};
  program.extents.clear();
  program.steps.clear();
  remove_unused(program);
  return program;
}

}  // namespace

Result<TrunkAndHead> split_model(const Program& program, const std::string& value, const std::string& judged) {
  const std::map<std::string, Type> types = value_types(program);
  if (!types.contains(value)) {
    std::vector<std::string> names;
    for (const Definition& d : program.definitions) names.push_back(d.value);
    return Diagnostic{value, "is no value of the model", did_you_mean(value, names, "hoist inspect lists them")};
  }
  if (!is_definition(program, value)) return Diagnostic{value, "is computed by no layer", "name a layer's result"};
  TrunkAndHead out{up_to(program, value), program};
  Program& head = out.head;
  std::erase_if(head.definitions, [&](const Definition& d) { return d.value == value; });
  head.inputs.emplace_back(value, types.at(value));
  head = up_to(std::move(head), judged);
  std::set<std::string> read;
  for (const Definition& d : head.definitions) {
    for (const std::string& name : values_read(d)) read.insert(name);
  }
  if (!read.contains(value)) return Diagnostic{judged, "does not depend on " + value, "name a value before it"};
  for (const auto& [input, type] : program.inputs) {
    if (read.contains(input))
      return Diagnostic{judged, "depends on the input " + input + " also without " + value, "name a later value"};
  }
  std::erase_if(head.inputs, [&](const auto& input) { return input.first != value; });
  return out;
}

}  // namespace hoist
