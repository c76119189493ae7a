// hoist export: a model as hoist understands it, as ONNX for other engines.
#include "frontend/write_model.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/model.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

struct ExportCommand {
  std::string model, output;
  ModelOptions options;
  bool force = false;
};

// Known before the work: nobody wants to wait for these messages.
Attempt<> check_output(const ExportCommand& command) {
  const fs::path file = command.output;
  std::error_code ignored;
  if (file.empty()) return usage_failure("--output", "is empty", "name the file that the model becomes");
  if (fs::is_directory(file, ignored)) return input_failure(command.output, "is a folder", "name a file");
  const fs::path folder = file.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    return input_failure(command.output, folder.string() + " is not a folder", "make it first, or name another");
  if (fs::equivalent(file, command.model, ignored))
    return input_failure(command.output, "is the model itself", "name another file");
  if (fs::is_regular_file(file, ignored) && !command.force)
    return input_failure(command.output, "exists", "use --force to replace it");
  return ExitCode::done;
}

Attempt<> export_model(const ExportCommand& command) {
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, check_output(command));
  HOIST_ATTEMPT(Graph graph, read_graph(command.model, command.options));
  for (const std::string& note : graph.notes) complain("note", note);
  HOIST_STEP(std::string bytes, ExitCode::bad_input, write_model(graph, {HOIST_VERSION}));
  HOIST_STEP_VOID(ExitCode::bad_input, write_file(command.output, bytes));
  if (command.output != "-")
    say_line("{}: {} layers, {:.1f} MB", command.output, graph.layers.size(), static_cast<double>(bytes.size()) / 1e6);
  return ExitCode::done;
}

}  // namespace

void add_export(CLI::App& program, Action& action) {
  auto options = std::make_shared<ExportCommand>();
  CLI::App& command =
      add_command(program, action, "export", "write a model as ONNX for other engines, as hoist understands it",
                  "  hoist export models/digits_residual.onnx -o plain.onnx", options, export_model);
  command.add_option("model", options->model, "an ONNX file")->required()->type_name("MODEL");
  command.add_option("-o,--output", options->output, "the file (- for standard output)")->required()->type_name("FILE");
  command.add_flag("--force", options->force, "replace the file if there is one");
  add_dimension_option(command, options->options.dimensions);
}

}  // namespace hoist
