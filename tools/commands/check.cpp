// hoist check: which operators a model needs and whether hoist has them; every problem at once.
#include <nlohmann/json.hpp>

#include "backends/opencl/device.h"
#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/terminal.h"
#include "tools/driver/model.h"
#include "tools/inspection/model_summary.h"

namespace hoist {
namespace {

struct CheckOptions {
  std::string model, json;
  std::vector<std::string> dimensions, values;
  DataBounds bounds;
};

std::string_view name_of(Support support) {
  switch (support) {
    case Support::operation:
      return "supported";
    case Support::function:
      return "replaced by its function body";
    case Support::constant:
      return "becomes a constant";
    case Support::none:
      break;
  }
  return "not supported";
}

struct CheckAnswer {
  std::vector<OperatorUse> operators;
  Diagnostics problems;
  std::optional<ModelSummary> summary;  ///< where it can be compiled
  ExitCode code = ExitCode::done;
};

// The compilation without the expected values of the self-check: every accepted model compiles. The kernels are for the
// first device, or for a CPU if there is none.
Result<ModelSummary> compiles(Program program) {
  auto device = find_device("");
  const Profile profile = device ? profile_of(*device) : Profile();
  CompileOptions options;
  options.check_positions = 0;
  HOIST_TRY(LoweredModel lowered, lower_model(std::move(program), options.lower, profile));
  ModelSummary out = summary_of(lowered);
  HOIST_TRY_VOID(make_plan(std::move(lowered), options, profile));
  return out;
}

Attempt<CheckAnswer> answer(const CheckOptions& options) {
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, refuse_bundle(options.model));
  HOIST_STEP(ReadOptions reading, ExitCode::usage, read_options(options.dimensions, options.values, options.bounds));
  CheckAnswer out;
  HOIST_STEP(out.operators, ExitCode::bad_input, list_operators(options.model, reading));
  auto program = read_model(options.model, reading);
  if (program) {
    for (const std::string& note : program->notes) complain("note", note);
    if (auto compiled = compiles(std::move(*program)); compiled) {
      out.summary = std::move(*compiled);
    } else {
      out.problems = compiled.errors();
      out.code = ExitCode::no;
    }
    return out;
  }
  out.problems = program.errors();
  out.code = ExitCode::no;
  const bool lacking = std::any_of(out.operators.begin(), out.operators.end(),
                                   [](const OperatorUse& use) { return use.support == Support::none; });
  if (!lacking) {
    // A model that is wrong in itself, not one that exceeds hoist: it fails with every operator allowed.
    if (!check_model(options.model, reading)) out.code = ExitCode::bad_input;
  }
  return out;
}

Attempt<> check(const CheckOptions& options) {
  HOIST_ATTEMPT(CheckAnswer found, answer(options));
  if (!options.json.empty()) {
    nlohmann::ordered_json out = {{"supported", found.code == ExitCode::done},
                                  {"operators", nlohmann::json::array()},
                                  {"problems", problems_json(found.problems)}};
    if (found.summary) out.update(to_json(*found.summary));
    for (const OperatorUse& use : found.operators) {
      out["operators"].push_back(
          {{"domain", use.domain}, {"name", use.operation}, {"count", use.count}, {"support", name_of(use.support)}});
    }
    HOIST_ATTEMPT([[maybe_unused]] ExitCode written, answer_json(options.json, out));
  }
  std::vector<std::vector<std::string>> rows;
  for (const OperatorUse& use : found.operators) {
    rows.push_back({use.domain.empty() ? use.operation : use.domain + "." + use.operation, std::to_string(use.count),
                    std::string(name_of(use.support))});
  }
  say(table(rows));
  if (found.summary) {
    say_line("{}", sentence_of(*found.summary));
    say(arrays_table(*found.summary));
    say_line("{} can be compiled", options.model);
  }
  if (found.code != ExitCode::done) return Failure{found.code, found.problems};
  return ExitCode::done;
}

}  // namespace

void add_check(CLI::App& program, Action& action) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App& command =
      add_command(program, action, "check", "check whether a model can be compiled, and list every obstacle",
                  "  hoist check models/digits_residual.onnx", options, check);
  command.add_option("model", options->model, "an ONNX file")->required()->type_name("MODEL");
  add_reading_options(command, options->dimensions, options->values);
  add_bound_options(command, options->bounds);
  add_json_option(command, options->json);
}

}  // namespace hoist
