#include "tools/model.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "backends/opencl/device.h"
#include "lowering/operators.h"
#include "tools/files.h"
#include "tools/terminal.h"

namespace hoist {

void add_model_options(CLI::App& command, ModelOptions& options, bool with_device) {
  command
      .add_option("--dim", options.dimensions, "the value of a symbolic dimension; INPUT.AXIS=N where it has no name")
      ->type_name("NAME=N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--conv", options.convolution, "the form of convolutions")
      ->check(CLI::IsMember({"auto", "stencil", "im2col"}))
      ->capture_default_str();
  command.add_flag("--strict", options.strict, "only rules that keep every bit");
  auto* profile = command.add_option("--profile", options.profile, "compile for the device that this file describes")
                      ->type_name("FILE");
  if (with_device) {
    command
        .add_option("--device", options.device,
                    "compile for this device: an index, a name or a part of one (default: the first that `hoist "
                    "devices` lists)")
        ->type_name("DEVICE")
        ->excludes(profile);
  }
}

Result<ReadOptions> read_options(const std::vector<std::string>& dimensions) {
  ReadOptions out;
  for (const std::string& text : dimensions) {
    HOIST_TRY(DimensionValue value, parse_dimension_value(text));
    out.dimensions.push_back(std::move(value));
  }
  out.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, std::numeric_limits<int>::max()) != nullptr;
  };
  return out;
}

Attempt<Profile> choose_profile(const ModelOptions& options) {
  if (!options.profile.empty()) {
    HOIST_STEP(std::string text, ExitCode::bad_input, read_file(options.profile, size_t{1} << 20));
    HOIST_STEP(Profile profile, ExitCode::bad_input, parse_profile(text, options.profile));
    return profile;
  }
  HOIST_STEP(Device device, ExitCode::device, find_device(options.device));
  return profile_of(device);
}

CompileOptions compile_options(const ModelOptions& options) {
  CompileOptions out;
  if (options.convolution == "stencil") out.lower.convolution = ConvolutionForm::stencil;
  if (options.convolution == "im2col") out.lower.convolution = ConvolutionForm::im2col;
  out.lower.strict = options.strict;
  return out;
}

Attempt<CompiledModel> compile_model(const std::filesystem::path& path, const ModelOptions& options) {
  Progress progress;
  progress.show("reading " + path.string());
  HOIST_STEP(ReadOptions reading, ExitCode::usage, read_options(options.dimensions));
  HOIST_STEP(Graph graph, ExitCode::bad_input, read_model(path, reading));
  return compile_model(std::move(graph), options);
}

Attempt<CompiledModel> compile_model(Graph graph, const ModelOptions& options) {
  Progress progress;
  HOIST_ATTEMPT(Profile profile, choose_profile(options));
  progress.show("compiling " + graph.name);
  HOIST_STEP(Compilation compilation, ExitCode::bad_input, compile_graph(graph, compile_options(options), profile));
  for (const std::string& note : compilation.lowered.notes) complain("note", note);
  return CompiledModel{std::move(graph), std::move(profile), std::move(compilation)};
}

}  // namespace hoist
