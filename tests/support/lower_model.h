// Lowers models that tests write as lists of calls.
#pragma once

#include "ir/text/program_text.h"
#include "lowering/graph/steps.h"
#include "lowering/pipeline/lower.h"
#include "tests/support/named_model.h"

namespace hoist {

/// The program after the passes over calls, in which every layer stays separate.
inline Result<Program> lower_calls(Program program, bool strict, const TableOptions& tables = {},
                                   ConstantUse constants = ConstantUse::computed, const FoldingBudget& folding = {}) {
  PassOptions options;
  options.strict = strict;
  options.tables = tables;
  options.constants = constants;
  options.folding = folding;
  options.share_equal = false;
  HOIST_TRY_VOID(run_passes(program, Pass::calls, options));
  return program;
}

inline Result<Program> lower_calls(const NamedModel& model, bool strict, const TableOptions& tables = {},
                                   ConstantUse constants = ConstantUse::computed, const FoldingBudget& folding = {}) {
  HOIST_TRY(Program program, program_of(model));
  return lower_calls(std::move(program), strict, tables, constants, folding);
}

inline Result<LoweredModel> lower_model(const NamedModel& model, const LowerOptions& options, const Profile& profile) {
  HOIST_TRY(Program program, program_of(model));
  return lower_model(std::move(program), options, profile);
}

/// The program after printing and parsing; the derivation, the origin and notes on the model are separate records.
/// `withheld` has the values of constants that the program withholds.
inline Result<Program> through_text(const Program& program, const std::map<std::string, Tensor>& withheld = {}) {
  HOIST_TRY(Program parsed, parse_program(print_program(program), [&](const std::string& name, const std::string&) {
              const bool is_known = program.withheld.count(name) == 0;
              return std::optional((is_known ? program.constants : withheld).at(name));
            }));
  parsed.steps = program.steps;
  parsed.imported = program.imported;
  parsed.layers = program.layers;
  parsed.evaluated = program.evaluated;
  parsed.notes = program.notes;
  parsed.rounding = program.rounding;
  parsed.hash = program.hash;
  parsed.withheld = program.withheld;
  for (const auto& [name, hash] : program.withheld) parsed.constants.at(name) = program.constants.at(name);
  return parsed;
}

/// lower_model in which every pass starts from the text of the program that the previous pass produced.
inline Result<LoweredModel> lower_through_text(Program program, const LowerOptions& options, const Profile& profile) {
  begin_derivation(program);
  LoweredModel model;
  model.notes = program.notes;
  model.program = std::move(program);
  const PassOptions passing = pass_options(options, profile);
  std::map<std::string, Tensor> known;
  for (const Pass& pass : passes()) {
    if (!pass.is_run(passing)) continue;
    for (const auto& [name, value] : model.program.constants) {
      if (model.program.withheld.count(name) == 0) known[name] = value;  // a pass may withhold what it has packed
    }
    HOIST_TRY_VOID(pass.run(model, passing));
    auto read = through_text(model.program, known);
    if (!read.ok()) return Diagnostic{std::string(pass.name), read.errors()[0].text(), print_program(model.program)};
    if (!same_program(*read, model.program))
      return Diagnostic{std::string(pass.name), "the text is another program", print_program(model.program)};
    model.program = std::move(*read);
  }
  model.derivation = {*model.program.imported, std::move(model.program.steps),
                      options.rules != nullptr ? options.rules->text : ""};
  model.program.steps.clear();
  return model;
}

struct Compilation {
  LowerOptions options;
  Profile profile;
};

/// The options of compilation, varied by a seed.
inline Compilation varied_compilation(uint64_t seed) {
  Compilation out;
  out.options.strict = seed % 3 == 0;
  if (seed % 2 == 0) out.options.convolution = ConvolutionForm::im2col;
  if (seed % 5 == 1) out.options.convolution = ConvolutionForm::winograd;
  const LaunchFusion fusions[] = {LaunchFusion::none, LaunchFusion::automatic, LaunchFusion::launch,
                                  LaunchFusion::automatic};
  out.options.fusion = fusions[seed % 4];
  if (seed % 7 < 3) out.options.layouts = LayoutChoice::rule;
  out.profile.gpu = seed % 5 == 0;
  out.profile.vector_width = seed % 4 == 0 ? 4 : 16;
  return out;
}

}  // namespace hoist
