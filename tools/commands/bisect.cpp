// hoist bisect: the first step from a model to its kernels that wrongly changes a value. hoist reduce: the smallest
// part of the model with such a step.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "backends/bundle/bundle.h"
#include "frontend/write_model.h"
#include "ir/base/temporary_folder.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/driver/opened_bundle.h"
#include "tools/driver/self_check.h"
#include "tools/inspection/layers.h"
#include "tools/inspection/translation.h"

namespace hoist {
namespace {

// The first step that changes values, and its layers; nothing if there is none.
struct Fault {
  Diagnostics problems;
  std::vector<std::string> layers;
};

// The steps after the rules: code generator and driver, if there is a device of the target description.
Result<std::optional<Fault>> fault_on_device(OpenedModel model, const ModelOptions& options) {
  HOIST_TRY(const CompiledModel compiled, compile_model(std::move(model), options));
  const Result<Device> device = device_for(compiled.profile, options.device);
  if (!device || !too_large_to_check(compiled.plan).empty()) return std::optional<Fault>();
  RunOptions run;
  run.device = options.device;
  HOIST_TRY(const TemporaryFolder folder, TemporaryFolder::make());
  HOIST_TRY_VOID(write_bundle(compiled.plan, folder.path() / "bundle", {}));
  HOIST_TRY(const SelfCheck check,
            self_check(folder.path() / "bundle", compiled.plan, compiled.groups, 1,
                       compiled.rules != nullptr ? compiled.rules->table : lowering_rules(), run));
  if (check.launch_mismatch) {
    return std::optional(Fault{
        {{check.launch_mismatch->subject, check.launch_mismatch->message, "its kernels are right when launched alone"}},
        {}});
  }
  if (!check.mismatch) return std::optional<Fault>();
  const PlanStep& step = compiled.plan.steps[check.mismatch->step];
  const PlanKernel& kernel = compiled.plan.kernels[static_cast<size_t>(step.kernel)];
  return std::optional(
      Fault{{{"kernel " + kernel.name, check.mismatch->comparison.message, check.mismatch->origin}}, step.layers});
}

Result<std::optional<Fault>> first_fault(const Program& program, const Options& command, Validation* seen) {
  ModelOptions options = command.model;
  HOIST_TRY_VOID(read_schedule_scripts(options));
  HOIST_TRY(OpenedModel model, open_model(program, options));
  HOIST_TRY(Validation validation, validate_derivation(model.lowered.derivation, model.profile, true));
  if (seen != nullptr) *seen = validation;
  if (validation.differences.empty() && command.no_check) return std::optional<Fault>();
  if (validation.differences.empty()) return fault_on_device(std::move(model), options);
  const StepDifference& first = validation.differences.front();
  return std::optional(Fault{{described(first)}, {first.layer}});
}

}  // namespace

Result<ExitCode> commands::bisect(const Options& command) {
  HOIST_TRY(Program program, read_program(command.subject, command.model));
  Validation seen;
  HOIST_TRY(const std::optional<Fault> fault, first_fault(program, command, &seen));
  print_line("{}", summary_of(seen));
  HOIST_TRY_VOID(answer_json(command.json, {{"keeps_numbers", !fault},
                                            {"steps", seen.steps},
                                            {"comparisons", seen.compared},
                                            {"elements", seen.elements},
                                            {"not_compared", seen.left},
                                            {"layers", fault ? fault->layers : std::vector<std::string>()},
                                            {"problems", problems_json(fault ? fault->problems : Diagnostics())}}));
  if (fault) return with_kind(ErrorKind::difference, fault->problems);
  return ExitCode::done;
}

namespace {

// Removes layers in turn, larger parts first, as long as the rest has a fault.
Result<Program> reduced(Program program, const Options& command) {
  Progress progress;
  for (size_t part = std::max<size_t>(program.definitions.size() / 2, 1);; part = std::max<size_t>(part / 2, 1)) {
    bool smaller = false;
    for (size_t start = 0; start < program.definitions.size() && program.definitions.size() > 1;) {
      std::vector<std::string> kept;
      for (size_t i = 0; i < program.definitions.size(); ++i) {
        if (i < start || i >= start + part) kept.push_back(layer_name(program.definitions[i]));
      }
      progress.show(fmt::format("{} layers, {} left out", program.definitions.size(), part));
      Program candidate = model_of_layers(program, kept);
      bool faulty = false;
      if (!candidate.outputs.empty() && candidate.definitions.size() < program.definitions.size()) {
        auto fault = first_fault(candidate, command, nullptr);
        faulty = fault.ok() && fault->has_value();  // a part that does not compile is not a smaller example
      }
      if (faulty) {
        program = std::move(candidate);
        smaller = true;
      } else {
        start += part;
      }
    }
    if (part == 1 && !smaller) return program;
  }
}

}  // namespace

Result<ExitCode> commands::reduce(const Options& command) {
  HOIST_TRY_VOID(refuse_two_outputs(command.json, "--output", command.output));
  HOIST_TRY(Program program, read_program(command.subject, command.model));
  HOIST_TRY(const std::optional<Fault> fault, first_fault(program, command, nullptr));
  if (!fault)
    return Diagnostic{command.subject, "every step and every kernel keeps the values",
                      "nothing to reduce: hoist bisect lists the comparisons", ErrorKind::negative};
  const size_t before = program.definitions.size();
  HOIST_TRY(program, reduced(std::move(program), command));
  HOIST_TRY(const std::optional<Fault> left, first_fault(program, command, nullptr));
  HOIST_TRY(const std::string bytes, write_model(program, {.producer_version = HOIST_VERSION}));
  HOIST_TRY_VOID(write_file(command.output, bytes));
  print_summary("{}: {} of {} layers", command.output, program.definitions.size(), before);
  if (left) print_message("note", left->problems);
  return done(answer_json(command.json, {{"file", command.output},
                                         {"layers", program.definitions.size()},
                                         {"layers_before", before},
                                         {"problems", problems_json(left ? left->problems : Diagnostics())}}));
}

}  // namespace hoist
