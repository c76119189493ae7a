#include "tools/driver/model.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <future>
#include <limits>

#include "backends/bundle/bundle.h"
#include "backends/halide/native/native_target.h"
#include "backends/opencl/device.h"
#include "ir/operators/operators.h"
#include "ir/target/starter_profiles.h"
#include "lowering/rules/rules.h"
#include "tools/cli/terminal.h"
#include "tools/data/files.h"
#include "tools/driver/input_values.h"
#include "tools/tuning/records_text.h"

namespace hoist {

void add_value_option(CLI::App& command, std::vector<std::string>& values) {
  command
      .add_option("--value", values,
                  "the value that an input has in every run, so that it is none any more: a number, a list such as "
                  "[1,-1], or a .npy or .pb file; for inputs that decide shapes")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_reading_options(CLI::App& command, std::vector<std::string>& dimensions, std::vector<std::string>& values) {
  command
      .add_option("--dim", dimensions,
                  "the value of a symbolic dimension; INPUT.AXIS=N where it has no name, INPUT=N for the members of a "
                  "sequence; "
                  "compile takes several, NAME=N,M")
      ->type_name("NAME=N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_value_option(command, values);
}

void add_bound_options(CLI::App& command, DataBounds& bounds) {
  command
      .add_option("--loop-iterations", bounds.loop_iterations,
                  "the most iterations of a Loop whose end depends on data; also the capacity of scan outputs in rows "
                  "(default: 1048576, and 1024 with scan outputs)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31))
      ->type_name("N");
  command
      .add_option("--string-pieces", bounds.string_pieces,
                  "the maximum number of pieces of a string for a StringSplit without maxsplit, or a Tokenizer "
                  "(default: 64, and 1024 for a Tokenizer)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
}

const char* given_bound(const DataBounds& bounds) {
  return bounds.loop_iterations ? "--loop-iterations" : bounds.string_pieces ? "--string-pieces" : nullptr;
}

void add_model_options(CLI::App& command, ModelOptions& options, bool with_device) {
  add_reading_options(command, options.dimensions, options.values);
  add_bound_options(command, options.bounds);
  command
      .add_option("--unrolled-steps", options.unrolled_steps,
                  "unroll at most so many steps of a loop: iterations of Loop and Scan, and steps of recurrent layers; "
                  "a longer loop runs as dynamic control flow")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option(
          "--conv", options.convolution,
          "the form of convolutions; winograd: of those with windows of 3x3 and 5x5 at stride 1 in f32, which round "
          "otherwise, and of 3x3 in bytes, which do not, with up to 4 times the weights; auto: winograd where "
          "that is less work (not under --objective size), else stencil")
      ->check(CLI::IsMember({"auto", "stencil", "im2col", "winograd"}))
      ->capture_default_str();
  command
      .add_option(
          "--fuse", options.fusion,
          "auto: on CPUs one launch performs many kernels one after the other; none: each is a launch of its own; "
          "launch: chains of layers whose values fit in a work-group's local memory become one kernel")
      ->check(CLI::IsMember({"auto", "none", "launch"}))
      ->capture_default_str();
  command
      .add_option("--tables", options.tables,
                  "replace layers between two 8-bit values of a quantised model by look-up tables")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  command
      .add_option("--constants", options.constants,
                  "the conversion of weights that the model stores in small types: at compile time, which is fast, or "
                  "in the kernels, which makes the bundle small (auto: in the kernels under --objective size)")
      ->check(CLI::IsMember({"auto", "computed", "stored"}))
      ->capture_default_str();
  command
      .add_option("--fold-operations", options.folding.operations,
                  "compute constants at compile time with at most so many operations over the model; the device "
                  "computes the rest")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 50))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option_function<int64_t>(
          "--fold-memory", [&options](int64_t mebibytes) { options.folding.bytes = mebibytes << 20; },
          "and with results of at most so many MiB (default: 4096)")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("MIB");
  command.add_flag("--strict", options.strict, "only rules that keep every bit");
  auto* profile =
      command
          .add_option("--profile", options.profile,
                      "compile for the device that this file describes, or for one that `hoist profiles` lists")
          ->type_name("FILE|NAME");
  if (with_device) {
    command
        .add_option("--device", options.device,
                    "compile for this device: an index, a name or a part of one (default: the first that `hoist "
                    "devices` lists)")
        ->type_name("DEVICE")
        ->excludes(profile);
  }
}

namespace {

// "native" is replaced by the name of the best target that this machine runs, so that the bundle records it.
std::string resolved_target(const std::string& word) {
  const std::string prefix = "native:";
  if (word.rfind(prefix, 0) == 0) {
    auto target = native_target(word.substr(prefix.size()));
    if (!target) throw CLI::ValidationError("--target " + word, target.errors().front().text());
    return (*target)->name;
  }
  std::string found;
  for (const NativeTarget& target : native_targets()) {
    if (native_device({target.name}).ok()) found = target.name;
  }
  if (word != "native") throw CLI::ValidationError("--target " + word, "it is opencl, native or native:NAME");
  if (found.empty()) throw CLI::ValidationError("--target native", "no target is for this processor");
  return found;
}

}  // namespace

void add_target_option(CLI::App& command, ModelOptions& options) {
  std::vector<std::string> names;
  for (const NativeTarget& target : native_targets()) names.push_back(std::string("native:") + target.name);
  command
      .add_option_function<std::string>(
          "--target",
          [&options](const std::string& text) {
            if (text == "opencl") return;
            for (const std::string& word : CLI::detail::split(text, ',')) {
              const std::string name = resolved_target(word);
              if (std::find(options.targets.begin(), options.targets.end(), name) == options.targets.end())
                options.targets.push_back(name);
            }
          },
          fmt::format("the form of the kernels: opencl (default), or machine code that needs no driver: native for "
                      "this processor, or {}; of several, the best that the processor supports runs, and loops are "
                      "made for the first",
                      fmt::join(names, ", ")))
      ->type_name("TARGET")
      ->excludes("--device")
      ->excludes("--profile");
}

void add_steering_options(CLI::App& command, ModelOptions& options) {
  command
      .add_option("--rules", options.rules,
                  "your own rules, parsed, typed and tested on random data before use: rules between operator calls "
                  "apply wherever they match, before hoist's, and --steps may name the others")
      ->type_name("FILE");
  command
      .add_option("--steps", options.steps,
                  "derive the kernel of this layer by the steps in the file instead of hoist's strategy")
      ->type_name("LAYER=FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option(
          "--tuning", options.tuning,
          "choose what hoist tune has found to be fastest on the device, for kernels that it knows, of these or "
          "similar sizes; shipped: what comes with hoist")
      ->type_name("FILE|shipped");
}

namespace {

Attempt<> read_tuning(ModelOptions& options) {
  if (options.tuning.empty() || options.records) return ExitCode::done;
  HOIST_ATTEMPT(const Profile profile, choose_profile(options));
  HOIST_STEP(std::vector<tuning::RecordedChoice> choices, ExitCode::bad_input,
             tuning::read_choices(options.tuning, tuning::tuned_device(profile, options.targets)));
  if (choices.empty() && options.with_notes)
    complain("note", options.tuning + " has no choices for " + profile.name + ": estimates choose");
  options.records = tuning::records_of(std::move(choices));
  return ExitCode::done;
}

}  // namespace

Attempt<> read_steering(ModelOptions& options) {
  HOIST_ATTEMPT([[maybe_unused]] ExitCode tuned, read_tuning(options));
  constexpr size_t most_bytes = size_t{1} << 20;
  if (!options.rules.empty() && options.user_rules == nullptr) {
    HOIST_STEP(const std::string text, ExitCode::bad_input, read_file(options.rules, most_bytes));
    HOIST_STEP(UserRules rules, ExitCode::bad_input, read_user_rules(text, options.rules));
    options.user_rules = std::make_shared<const UserRules>(std::move(rules));
    if (options.steps.empty() && !options.user_rules->rows.within_terms.empty())
      complain("note", "the rules of " + options.rules + " within terms are checked; --steps applies them");
  }
  if (!options.steering.empty()) return ExitCode::done;
  for (const std::string& words : options.steps) {
    const size_t equals = words.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == words.size())
      return usage_failure("--steps " + words, "names no layer or no file", "write --steps conv1=conv1.steps");
    const std::string file = words.substr(equals + 1);
    HOIST_STEP(const std::string text, ExitCode::bad_input, read_file(file, most_bytes));
    HOIST_STEP(Steering steering, ExitCode::bad_input, parse_steering(text, words.substr(0, equals), file));
    options.steering.push_back(std::move(steering));
  }
  return ExitCode::done;
}

Result<ReadOptions> read_options(const std::vector<std::string>& dimensions, const std::vector<std::string>& values,
                                 const DataBounds& bounds) {
  ReadOptions out;
  out.bounds = bounds;
  for (const std::string& text : values) {
    HOIST_TRY(InputValue value, parse_input_value(text));
    out.values.push_back(std::move(value));
  }
  for (const std::string& text : dimensions) {
    HOIST_TRY(DimensionValue value, parse_dimension_value(text));
    out.dimensions.push_back(std::move(value));
  }
  out.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, std::numeric_limits<int>::max()) != nullptr;
  };
  return out;
}

Result<Program> read_model_of_shapes(const std::filesystem::path& path, ReadOptions reading,
                                     const std::vector<std::vector<int64_t>>& shapes) {
  HOIST_TRY(Program program, read_model(path, reading));
  const std::vector<ValueInfo> declared = input_infos(program);
  bool differs = false;
  for (size_t i = 0; i < std::min(declared.size(), shapes.size()); ++i) {
    const ValueInfo& info = declared[i];
    if (info.shape.size() != shapes[i].size()) continue;
    for (size_t axis = 0; axis < info.shape.size(); ++axis) {
      if (info.shape[axis] == shapes[i][axis] || shapes[i][axis] < 1) continue;
      reading.dimensions.push_back({info.name + "." + std::to_string(axis), shapes[i][axis]});
      differs = true;
    }
  }
  if (!differs) return program;
  auto again = read_model(path, reading);
  return again ? std::move(again) : Result<Program>(std::move(program));  // a fixed extent: the run reports a mismatch
}

Attempt<> refuse_bundle(const std::filesystem::path& model) {
  if (model.extension() == ".lift")
    return input_failure(model.string(), "is a program as text, and an ONNX model is needed",
                         "hoist rewrite runs passes and rules on programs");
  if (!is_bundle(model)) return ExitCode::done;
  return input_failure(model.string(), "is a bundle, and a model is needed", "name the ONNX file that it comes from");
}

Attempt<> refuse_model_options(const ModelOptions& options) {
  const char* given = nullptr;
  if (!options.values.empty()) given = "--value";
  if (const char* bound = given_bound(options.bounds)) given = bound;
  if (options.unrolled_steps != most_unrolled_steps) given = "--unrolled-steps";
  if (!options.device.empty()) given = "--device";
  if (!options.profile.empty()) given = "--profile";
  if (options.convolution != "auto") given = "--conv";
  if (options.fusion != "auto") given = "--fuse";
  if (options.tables != "auto") given = "--tables";
  if (options.constants != "auto") given = "--constants";
  if (options.folding != FoldingBudget{}) given = "--fold-operations or --fold-memory";
  if (options.strict) given = "--strict";
  if (!options.rules.empty()) given = "--rules";
  if (!options.steps.empty()) given = "--steps";
  if (!options.tuning.empty()) given = "--tuning";
  if (given == nullptr) return ExitCode::done;
  return usage_failure(given, "applies to models: a bundle stays as it was compiled", "name the ONNX file instead");
}

Attempt<Profile> choose_profile(const ModelOptions& options) {
  if (!options.targets.empty()) {
    if (options.fusion == "launch")
      return usage_failure("--fuse launch", "needs work-groups that share memory, which native code does not have",
                           "leave it out, or compile for OpenCL");
    HOIST_STEP(const NativeTarget* target, ExitCode::usage, native_target(options.targets.front()));
    return profile_of(*target);
  }
  if (!options.profile.empty()) {
    // A file is preferred to a starter description of the same name.
    const StarterProfile* starter = find_starter_profile(options.profile);
    if (starter != nullptr && !std::filesystem::exists(options.profile)) return starter->profile;
    HOIST_STEP(std::string text, ExitCode::bad_input, read_file(options.profile, size_t{1} << 20));
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
      return input_failure(options.profile, "is empty", "hoist devices --profile writes a file to start with");
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
  if (options.convolution == "winograd") out.lower.convolution = ConvolutionForm::winograd;
  if (options.fusion == "none") out.lower.fusion = LaunchFusion::none;
  if (options.fusion == "launch") out.lower.fusion = LaunchFusion::launch;
  if (options.tables == "on") out.lower.tables = TableUse::on;
  if (options.tables == "off") out.lower.tables = TableUse::off;
  if (options.constants == "stored") out.lower.constants = ConstantUse::stored;
  out.lower.folding = options.folding;
  out.lower.strict = options.strict;
  out.lower.unrolled_steps = options.unrolled_steps;
  out.lower.rules = options.user_rules.get();
  out.lower.steps = options.steering;
  out.lower.records = options.records;
  out.targets = options.targets;
  out.kernel_suffix = options.kernel_suffix;
  return out;
}

Attempt<Program> read_program(const std::filesystem::path& path, const ModelOptions& options) {
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, refuse_bundle(path));
  Progress progress;
  progress.show("reading " + path.string());
  HOIST_STEP(ReadOptions reading, ExitCode::usage, read_options(options.dimensions, options.values, options.bounds));
  HOIST_STEP(Program program, ExitCode::bad_input, read_model(path, reading));
  return program;
}

Attempt<OpenedModel> open_model(Program program, ModelOptions options) {
  if (options.strict && options.convolution == "winograd")
    return usage_failure("--conv winograd", "rounds differently from the model, and --strict keeps every bit",
                         "leave one of them out");
  HOIST_ATTEMPT([[maybe_unused]] ExitCode read, read_steering(options));
  HOIST_ATTEMPT(Profile profile, choose_profile(options));
  HOIST_STEP(LoweredModel lowered, ExitCode::bad_input, lower_model(program, compile_options(options).lower, profile));
  for (const std::string& note : lowered.notes) {
    if (options.with_notes) complain("note", note);
  }
  return OpenedModel{std::move(program), std::move(profile), std::move(lowered)};
}

Attempt<Program> read_program_and_prepare(const std::filesystem::path& path, const ModelOptions& options) {
  const bool asks_driver = options.targets.empty() && options.profile.empty();
  std::future<void> prepared = std::async([device = asks_driver ? std::optional(options.device) : std::nullopt] {
    lowering_rules();
    if (device) static_cast<void>(find_device(*device));  // the caller that needs the device reports the error
  });
  HOIST_ATTEMPT(Program program, read_program(path, options));
  prepared.get();  // rethrows std::bad_alloc of the other thread
  return program;
}

Attempt<OpenedModel> open_model(const std::filesystem::path& path, const ModelOptions& options) {
  HOIST_ATTEMPT(Program program, read_program_and_prepare(path, options));
  return open_model(std::move(program), options);
}

Attempt<CompiledModel> compile_model(const std::filesystem::path& path, const ModelOptions& options) {
  HOIST_ATTEMPT(Program program, read_program(path, options));
  return compile_model(std::move(program), options);
}

Attempt<CompiledModel> compile_model(Program program, const ModelOptions& given) {
  ModelOptions options = given;
  HOIST_ATTEMPT([[maybe_unused]] ExitCode read, read_steering(options));
  Progress progress;
  progress.show("compiling " + program.name);
  HOIST_ATTEMPT(OpenedModel model, open_model(std::move(program), options));
  return compile_model(std::move(model), options);
}

Attempt<CompiledModel> compile_model(OpenedModel model, const ModelOptions& options) {
  std::vector<LoweredGroup> groups = model.lowered.groups;
  Progress progress;
  CompileOptions compile = compile_options(options);
  compile.progress = [&](size_t done, size_t all) {
    progress.show(fmt::format("kernel {} of {} of {}", done, all, model.program.name),
                  static_cast<double>(done) / static_cast<double>(all));
  };
  HOIST_STEP(Plan plan, ExitCode::bad_input, make_plan(std::move(model.lowered), compile, model.profile));
  return CompiledModel{std::move(model.program), std::move(model.profile), std::move(plan), std::move(groups),
                       options.user_rules};
}

}  // namespace hoist
