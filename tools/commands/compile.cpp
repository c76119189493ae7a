// hoist compile: a model becomes a bundle.
#include <chrono>

#include "backends/bundle/bundle.h"
#include "tools/command.h"
#include "tools/model.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct CompileCommand {
  std::string model, output;
  bool force = false;
  ModelOptions options;
};

Attempt<> compile(const CompileCommand& command) {
  const std::filesystem::path folder = command.output;
  std::error_code ignored;
  // Known before the work: nobody wants to wait for this message.
  if (std::filesystem::exists(folder, ignored)) {
    if (!is_bundle(folder)) return input_failure(command.output, "exists and is not a bundle", "name another folder");
    if (!command.force) return input_failure(command.output, "exists", "use --force to replace the bundle");
  }
  const std::filesystem::path parent = folder.parent_path();
  if (folder.empty()) return usage_failure("--output", "is empty", "name the folder that the bundle becomes");
  if (!parent.empty() && !std::filesystem::is_directory(parent, ignored))
    return input_failure(command.output, parent.string() + " is not a folder", "make it first, or name another");
  const auto start = std::chrono::steady_clock::now();
  HOIST_ATTEMPT(CompiledModel compiled, compile_model(command.model, command.options));
  const Plan& plan = compiled.plan;
  HOIST_STEP_VOID(ExitCode::bad_input, write_bundle(plan, folder, {command.force}));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  size_t weights = 0;
  for (const PlanArray& array : plan.arrays) {
    if (array.place == Place::weights) weights += array.constant.bytes().size();
  }
  say_line("{}: {} layers in {} steps of {} kernels, {:.1f} MB of weights, {:.1f} MB between layers, for {}; {:.1f} s",
           command.output, compiled.graph.layers.size(), plan.steps.size(), plan.kernels.size(),
           static_cast<double>(weights) / 1e6, static_cast<double>(plan.arena_bytes) / 1e6, compiled.profile.name,
           seconds.count());
  return ExitCode::done;
}

}  // namespace

void add_compile(CLI::App& program, Action& action) {
  auto options = std::make_shared<CompileCommand>();
  CLI::App& command = add_command(program, action, "compile",
                                  "compile a model to a bundle: a folder that any C program can load and run",
                                  "  hoist compile models/digits_residual.onnx -o digits.hoist\n"
                                  "  hoist compile model.onnx -o model.hoist --dim batch=8 --device 0",
                                  options, compile);
  command.add_option("model", options->model, "an ONNX file")->required()->type_name("MODEL");
  command.add_option("-o,--output", options->output, "the bundle's folder")->required()->type_name("DIR");
  command.add_flag("--force", options->force, "replace the folder if it is a bundle");
  add_model_options(command, options->options);
}

}  // namespace hoist
