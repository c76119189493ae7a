// A model in the form that tests write and inspect: a list of calls by name, in any state between edits. Programs are
// made from it and converted back. Only for tests: other code edits programs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/program/program_builder.h"

namespace hoist {

struct NamedModel {
  std::string name;
  int64_t opset = newest_version;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;  ///< a program keeps only the names of outputs
  std::map<std::string, Tensor> constants;
  std::vector<NamedCall> layers;
  uint64_t hash = 0;
  // Further parts of a program; they are ignored when a program is made.
  std::map<std::string, ValueInfo> types = {};  ///< types of all values that are single arrays
  std::vector<std::string> notes = {};
};

/// Makes a program. Errors: as in ProgramBuilder.
inline Result<Program> program_of(const NamedModel& model) {
  Program header;
  header.name = model.name;
  header.version = model.opset;
  for (const ValueInfo& input : model.inputs) header.inputs.emplace_back(input.name, type_of(input));
  for (const ValueInfo& output : model.outputs) header.outputs.push_back(output.name);
  header.constants = model.constants;
  header.hash = model.hash;
  return with_calls(header, model.layers);
}

/// Makes a model; shapes are inputs, as in model files.
inline NamedModel named_model(const Program& program) {
  NamedModel out{program.name,      program.version,      input_infos(program), output_infos(program),
                 program.constants, named_calls(program), program.hash};
  for (NamedCall& call : out.layers) shapes_to_inputs(call, program.version, out.constants);
  for (const auto& [name, type] : value_types(program)) {
    if (leaf_of(type)->is_scalar()) out.types[name] = value_info(name, type);
  }
  out.notes = program.notes;
  return out;
}

}  // namespace hoist
