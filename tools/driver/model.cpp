#include "tools/driver/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>

#include "backends/bundle/bundle.h"
#include "backends/halide/native/native_target.h"
#include "backends/opencl/device.h"
#include "ir/operators/operators.h"
#include "ir/target/starter_profiles.h"
#include "ir/text/parse/near_miss.h"
#include "lowering/rules/rules.h"
#include "lowering/sizes/open_model.h"
#include "tools/base/files.h"
#include "tools/base/terminal.h"
#include "tools/driver/input_values.h"
#include "tools/records/records_text.h"

namespace hoist {

Result<std::string> resolved_target(const std::string& word) {
  const std::string prefix = "native:";
  if (word.starts_with(prefix)) {
    HOIST_TRY(const NativeTarget* target, native_target(word.substr(prefix.size())));
    return std::string(target->name);
  }
  std::string found;
  for (const NativeTarget& target : native_targets()) {
    if (native_device({target.name}).ok()) found = target.name;
  }
  if (word != "native")
    return Diagnostic{"--target " + word, "is not opencl, native, native:NAME or a file",
                      "hoist devices --profile --output FILE writes one"};
  if (found.empty()) return Diagnostic{"--target native", "no target is for this processor", ""};
  return found;
}

namespace {

Result<Nothing> read_tuning(ModelOptions& options) {
  if (options.tuning.empty() || options.records) return Nothing{};
  HOIST_TRY(const Profile profile, choose_profile(options));
  HOIST_TRY(std::vector<tuning::RecordedChoice> choices,
            tuning::read_choices(options.tuning, tuning::tuned_device(profile, options.targets)));
  const bool is_without_choices = choices.empty();
  options.records = tuning::records_of(std::move(choices));
  HOIST_TRY(options.times, tuning::read_times(options.tuning, tuning::tuned_device(profile, options.targets)));
  if (is_without_choices && options.times.empty() && options.with_notes)
    print_message("note", options.tuning + " has no choices for " + profile.name + ": estimates choose");
  return Nothing{};
}

}  // namespace

Result<Nothing> read_schedule_scripts(ModelOptions& options) {
  HOIST_TRY_VOID(read_tuning(options));
  constexpr size_t most_bytes = size_t{1} << 20;
  if (!options.rules.empty() && options.user_rules == nullptr) {
    HOIST_TRY(const std::string text, read_file(options.rules, most_bytes));
    HOIST_TRY(UserRules rules, read_user_rules(text, options.rules));
    options.user_rules = std::make_shared<const UserRules>(std::move(rules));
    if (options.steps.empty() && !options.user_rules->rows.within_terms.empty())
      print_message("note", "the rules of " + options.rules + " within terms are checked; --steps applies them");
  }
  if (!options.schedule_scripts.empty()) return Nothing{};
  for (const std::string& words : options.steps) {
    const size_t equals = words.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == words.size())
      return usage_error("--steps " + words, "names no layer or no file", "write --steps conv1=conv1.steps");
    const std::string file = words.substr(equals + 1);
    HOIST_TRY(const std::string text, read_file(file, most_bytes));
    HOIST_TRY(ScheduleScript script, parse_schedule_script(text, words.substr(0, equals), file));
    for (const ScheduleStep& step : script.steps) {
      if (!step.former.empty() && options.with_notes)
        print_old_name(fmt::format("{}:{}: {}", file, step.line, step.former), step.rule);
    }
    options.schedule_scripts.push_back(std::move(script));
  }
  return Nothing{};
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

Result<ReadOptions> read_options(const ModelOptions& options) {
  HOIST_TRY(ReadOptions out, read_options(options.dimensions, options.values, options.bounds));
  out.states = options.states;
  out.training_step = options.training_step;
  out.inference_form = options.inference_form;
  for (const std::string& text : options.initial) {
    HOIST_TRY(InputValue value, parse_input_value(text, "--initial"));
    out.initial.push_back(std::move(value));
  }
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

Result<Nothing> refuse_bundle(const std::filesystem::path& model) {
  if (model.extension() == ".lift")
    return Diagnostic{model.string(), "is a program as text, and an ONNX model is needed",
                      "hoist rewrite runs passes and rules on programs"};
  if (!is_bundle(model)) return Nothing{};
  return Diagnostic{model.string(), "is a bundle, and a model is needed", "name the ONNX file that it comes from"};
}

Result<Profile> read_profile(const std::string& file) {
  HOIST_TRY(const std::string text, read_file(file, size_t{1} << 20));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return Diagnostic{file, "is empty", "hoist devices --profile writes a file to start with"};
  return parse_profile(text, file);
}

Result<Profile> choose_profile(const ModelOptions& options) {
  if (!options.targets.empty()) {
    if (options.fusion == "launch")
      return usage_error("--pass fusion=launch", "needs work-groups that share memory, which native code does not have",
                         "leave it out, or compile for OpenCL");
    HOIST_TRY(const NativeTarget* target, with_kind(ErrorKind::usage, native_target(options.targets.front())));
    if (options.profile.empty()) return profile_of(*target);
    HOIST_TRY(Profile profile, read_profile(options.profile));
    if (same_device(profile, profile_of(*target))) return profile;
    return Diagnostic{options.profile,
                      fmt::format("differs from the description of {} in more than rates and loads", target->name),
                      "a native target determines its description: hoist devices --profile --target writes it"};
  }
  if (!options.profile.empty()) {
    // A file is preferred to a starter description of the same name.
    const StarterProfile* starter = find_starter_profile(options.profile);
    const bool is_file = std::filesystem::exists(options.profile);
    if (starter != nullptr && !is_file) return starter->profile;
    if (!is_file) {
      std::vector<std::string> names;
      for (const StarterProfile& known : starter_profiles()) names.emplace_back(known.name);
      // "a100" is a part of a name rather than a misspelt one.
      const auto part = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
        return name.find(options.profile) != std::string::npos;
      });
      return Diagnostic{"--profile " + options.profile, "is neither a file nor a target description of hoist",
                        part != names.end()
                            ? "did you mean " + *part + "?"
                            : did_you_mean(options.profile, names, "hoist profiles lists the descriptions")};
    }
    HOIST_TRY(Profile profile, read_profile(options.profile));
    if (profile.rates.target.empty()) return profile;
    return Diagnostic{options.profile, "describes native code for " + profile.rates.target,
                      "give it to --target instead of --profile"};
  }
  HOIST_TRY(Device device, with_kind(ErrorKind::device, find_device(options.device)));
  return profile_of(device);
}

CompileOptions compile_options(const ModelOptions& options) {
  CompileOptions out;
  if (options.convolution == "stencil") out.lower.convolution = ConvolutionForm::stencil;
  if (options.convolution == "im2col") out.lower.convolution = ConvolutionForm::im2col;
  if (options.convolution == "winograd") out.lower.convolution = ConvolutionForm::winograd;
  if (options.fusion == "none") out.lower.fusion = LaunchFusion::none;
  if (options.fusion == "launch") out.lower.fusion = LaunchFusion::launch;
  if (options.layouts == "rule") out.lower.layouts = LayoutChoice::rule;
  if (options.batches == "whole") out.lower.batches = BatchDivision::none;
  if (options.tables == "on") out.lower.tables.use = TableUse::on;
  if (options.tables == "off") out.lower.tables.use = TableUse::off;
  if (options.constants == "stored") out.lower.constants = ConstantUse::stored;
  out.lower.folding = options.folding;
  out.lower.memory = static_cast<int64_t>(options.memory * (1 << 20));
  out.lower.strict = options.strict;
  out.lower.unrolled_steps = options.unrolled_steps;
  out.lower.rules = options.user_rules.get();
  out.lower.steps = options.schedule_scripts;
  out.lower.records = options.records;
  out.targets = options.targets;
  out.kernel_suffix = options.kernel_suffix;
  return out;
}

Result<Program> read_program(const std::filesystem::path& path, const ModelOptions& options) {
  HOIST_TRY_VOID(refuse_bundle(path));
  Progress progress;
  progress.show("reading " + path.string());
  HOIST_TRY(const ReadOptions reading, with_kind(ErrorKind::usage, read_options(options)));
  HOIST_TRY(Program program, read_model(path, reading));
  return program;
}

Result<OpenedModel> open_model(Program program, ModelOptions options) {
  if (options.strict && options.convolution == "winograd")
    return usage_error("--pass convolution=winograd", "rounds differently from the model, and --strict keeps every bit",
                       "leave one of them out");
  HOIST_TRY_VOID(read_schedule_scripts(options));
  HOIST_TRY(Profile profile, choose_profile(options));
  HOIST_TRY(LoweredModel lowered, lower_model(program, compile_options(options).lower, profile));
  for (const std::string& note : lowered.notes) {
    if (options.with_notes) print_message("note", note);
  }
  return OpenedModel{std::move(program), std::move(profile), std::move(lowered), std::move(options.targets),
                     std::move(options.times)};
}

Result<Program> read_program_and_prepare(const std::filesystem::path& path, const ModelOptions& options) {
  const bool asks_driver = options.targets.empty() && options.profile.empty();
  std::future<void> prepared = std::async([device = asks_driver ? std::optional(options.device) : std::nullopt] {
    lowering_rules();
    if (device) static_cast<void>(find_device(*device));  // the caller that needs the device reports the error
  });
  HOIST_TRY(Program program, read_program(path, options));
  prepared.get();  // rethrows std::bad_alloc of the other thread
  return program;
}

Result<OpenedModel> open_model(const std::filesystem::path& path, const ModelOptions& options) {
  HOIST_TRY(Program program, read_program_and_prepare(path, options));
  return open_model(std::move(program), options);
}

Result<CompiledModel> compile_model(const std::filesystem::path& path, const ModelOptions& options) {
  HOIST_TRY(Program program, read_program(path, options));
  return compile_model(std::move(program), options);
}

Result<CompiledModel> compile_model(Program program, const ModelOptions& given) {
  ModelOptions options = given;
  HOIST_TRY_VOID(read_schedule_scripts(options));
  Progress progress;
  progress.show("compiling " + program.name);
  HOIST_TRY(OpenedModel model, open_model(std::move(program), options));
  return compile_model(std::move(model), options);
}

Result<CompiledModel> compile_model(const std::filesystem::path& path, const ModelOptions& given,
                                    const PlanSize& size) {
  ModelOptions options = given;
  if (options.targets.empty())
    return usage_error("--dim " + size.name, "leaves a size open, which native code alone can do",
                       "add --target native");
  HOIST_TRY_VOID(read_schedule_scripts(options));
  HOIST_TRY(Profile profile, choose_profile(options));
  const auto read = [path, options, name = size.name](int64_t n) {
    ModelOptions one = options;
    one.dimensions.push_back(name + "=" + std::to_string(n));
    return read_program(path, one);
  };
  HOIST_TRY(Program largest, read(size.most));
  const auto program = [&](int64_t n) -> Result<Program> { return n == size.most ? largest : read(n); };
  CompileOptions compile = compile_options(options);
  HOIST_TRY(LoweredModel lowered, lower_open(program, size, compile.lower, profile));
  std::vector<LoweredGroup> groups = lowered.groups;
  Progress progress;
  compile.progress = kernel_progress(progress, largest.name);
  HOIST_TRY(Plan plan, make_plan(std::move(lowered), compile, profile));
  return CompiledModel{std::move(largest),
                       std::move(profile),
                       std::move(plan),
                       std::move(groups),
                       options.user_rules,
                       std::move(options.times),
                       read};
}

std::function<void(size_t done, size_t all)> kernel_progress(Progress& progress, const std::string& model) {
  return [&progress, model](size_t done, size_t all) {
    progress.show(fmt::format("kernel {} of {} of {}", done, all, model),
                  static_cast<double>(done) / static_cast<double>(all));
  };
}

Result<CompiledModel> compile_model(OpenedModel model, const ModelOptions& options) {
  std::vector<LoweredGroup> groups = model.lowered.groups;
  Progress progress;
  CompileOptions compile = compile_options(options);
  compile.progress = kernel_progress(progress, model.program.name);
  HOIST_TRY(Plan plan, make_plan(std::move(model.lowered), compile, model.profile));
  return CompiledModel{std::move(model.program), std::move(model.profile), std::move(plan),
                       std::move(groups),        options.user_rules,       std::move(model.times)};
}

}  // namespace hoist
