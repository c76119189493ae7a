// hoist grad: the program of a loss and its gradients, printed or compiled to a bundle.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/base/stopwatch.h"
#include "ir/gradient/gradient.h"
#include "ir/gradient/losses.h"
#include "lowering/pipeline/passes.h"
#include "tools/base/file_lock.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/commands/compiled_bundle.h"
#include "tools/driver/model.h"
#include "tools/driver/program_file.h"

namespace hoist {
namespace {

// The value that --of names: by default the only output.
Result<std::string> value_of(const Options& command, const Program& program) {
  if (!command.loss_value.empty()) return command.loss_value;
  if (program.outputs.size() == 1) return program.outputs[0];
  return Diagnostic{program.name,
                    fmt::format("has {} outputs: {}", program.outputs.size(), fmt::join(program.outputs, ", ")),
                    "name a value: --of NAME"};
}

// Adds the loss, or reads it from the value, NAME or sum(NAME), and replaces `weights` and `inputs` by the names of
// values.
Result<GradientRequest> request_for(const Options& command, Program& program) {
  const std::vector<std::string> inputs = float_inputs(program);
  GradientRequest out;
  HOIST_TRY(out.loss, value_of(command, program));
  if (!command.loss.empty()) {
    HOIST_TRY(out.loss, add_loss(program, out.loss, command.loss));
  } else if (out.loss.starts_with("sum(") && out.loss.ends_with(")")) {
    out.loss = out.loss.substr(4, out.loss.size() - 5);
    out.is_summed = true;
  }
  for (const std::string& name : command.with_respect_to) {
    const std::vector<std::string> all = name == "weights"  ? weights_of(program, out.loss)
                                         : name == "inputs" ? inputs
                                                            : std::vector{name};
    for (const std::string& value : all) {
      auto& values = out.with_respect_to;
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
  }
  return out;
}

// Inlines the bodies of control flow, and differentiates the program. The steps until then are dropped: the derivation
// of the bundle starts from the program with gradients.
Result<Program> with_gradients(const Options& command, Program program) {
  PassOptions options;
  options.unrolled_steps = command.model.unrolled_steps;
  HOIST_TRY_VOID(find_pass("inline-bodies")->run(program, options));
  HOIST_TRY(const GradientRequest request, request_for(command, program));
  HOIST_TRY(Program out, gradient(program, request));
  out.steps.clear();
  return out;
}

Result<ExitCode> write_bundle(const Options& command, Program program) {
  const Stopwatch stopwatch;
  std::vector<SizedModel> models;
  HOIST_TRY(CompiledModel compiled, compile_model(std::move(program), command.model));
  models.push_back({{}, std::move(compiled)});
  HOIST_TRY_VOID(write_results(command, models, nullptr));
  const double seconds = stopwatch.seconds();
  report_size(command, models.front().compiled, seconds);
  report_check(models.front().check);
  return done(answer_json(command.json, answer_of(command, models.front().compiled, models.front().check, seconds)));
}

}  // namespace

Result<ExitCode> commands::grad(const Options& command) {
  if (!command.is_given("--output")) {
    for (const char* option : {"--force", "--no-check"}) {
      if (command.is_given(option)) return usage_error(option, "applies only to a bundle", "add -o DIR");
    }
    HOIST_TRY(Program program, read_program(command.subject, command.model));
    HOIST_TRY(const Program gradients, with_gradients(command, std::move(program)));
    return done(show_program(gradients, "", command.json));
  }
  HOIST_TRY_VOID(check_output(command));
  HOIST_TRY(const FileLock lock, FileLock::take(command.output));
  HOIST_TRY(const std::vector<SizeChoice> choices, size_choices(command.model.dimensions));
  if (choices.size() > 1) {
    return write_for_sizes(command, choices, [](const Options& one, CompileAnswer&) -> Result<CompiledModel> {
      HOIST_TRY(Program program, read_program(one.subject, one.model));
      HOIST_TRY(Program gradients, with_gradients(one, std::move(program)));
      return compile_model(std::move(gradients), one.model);
    });
  }
  HOIST_TRY(Program program, read_program_and_prepare(command.subject, command.model));
  HOIST_TRY(Program gradients, with_gradients(command, std::move(program)));
  return write_bundle(command, std::move(gradients));
}

}  // namespace hoist
