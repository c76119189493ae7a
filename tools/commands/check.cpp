// hoist check: the operators that a model needs and whether hoist supports them; reports all problems together.
#include <nlohmann/json.hpp>

#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/driver/model.h"
#include "tools/inspection/model_summary.h"

namespace hoist {
namespace {

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
  std::optional<ModelSummary> summary;   ///< where it can be compiled
  ErrorKind kind = ErrorKind::negative;  ///< of the problems
};

// A compilation without the expected values of the self-check: an accepted model compiles. The kernels are compiled for
// the target, the first device, or a CPU if there is no device.
Result<ModelSummary> compiles(Program program, const ModelOptions& given) {
  const auto chosen = choose_profile(given);
  const Profile profile = chosen.ok() ? *chosen : Profile();
  CompileOptions options = compile_options(given);
  options.check_positions = 0;
  options.lower.packs_weights = false;
  HOIST_TRY(LoweredModel lowered, lower_model(std::move(program), options.lower, profile));
  ModelSummary out = summary_of(lowered);
  HOIST_TRY_VOID(make_plan(std::move(lowered), options, profile));
  return out;
}

Result<CheckAnswer> answer(const Options& options) {
  HOIST_TRY_VOID(refuse_bundle(options.subject));
  HOIST_TRY(ReadOptions reading, with_kind(ErrorKind::usage, read_options(options.model)));
  reading.hashes_weights = false;
  CheckAnswer out;
  HOIST_TRY(out.operators, list_operators(options.subject, reading));
  auto program = read_model(options.subject, reading);
  if (program) {
    for (const std::string& note : program->notes) print_message("note", note);
    if (auto compiled = compiles(std::move(*program), options.model); compiled) {
      out.summary = std::move(*compiled);
    } else {
      out.problems = compiled.errors();
    }
    return out;
  }
  out.problems = program.errors();
  const bool lacking = std::any_of(out.operators.begin(), out.operators.end(),
                                   [](const OperatorUse& use) { return use.support == Support::none; });
  if (!lacking) {
    // True if the model itself is invalid, not merely unsupported: reading fails even with every operator allowed.
    if (!check_model(options.subject, reading)) out.kind = ErrorKind::input;
  }
  return out;
}

}  // namespace

Result<ExitCode> commands::check(const Options& options) {
  HOIST_TRY(CheckAnswer found, answer(options));
  if (!options.json.empty()) {
    nlohmann::ordered_json out = {{"supported", found.problems.empty()},
                                  {"operators", nlohmann::json::array()},
                                  {"problems", problems_json(found.problems)}};
    if (found.summary) out.update(to_json(*found.summary));
    for (const OperatorUse& use : found.operators) {
      out["operators"].push_back(
          {{"domain", use.domain}, {"name", use.operation}, {"count", use.count}, {"support", name_of(use.support)}});
    }
    HOIST_TRY_VOID(answer_json(options.json, out));
  }
  std::vector<std::vector<std::string>> rows;
  for (const OperatorUse& use : found.operators) {
    rows.push_back({use.domain.empty() ? use.operation : use.domain + "." + use.operation, std::to_string(use.count),
                    std::string(name_of(use.support))});
  }
  say(table(rows));
  if (found.summary) {
    print_line("{}", sentence_of(*found.summary));
    say(arrays_table(*found.summary));
    print_line("{} can be compiled", options.subject);
  }
  if (found.problems.empty()) return ExitCode::done;
  return with_kind(found.kind, found.problems);
}

}  // namespace hoist
