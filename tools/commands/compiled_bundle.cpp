#include "tools/commands/compiled_bundle.h"

#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>

#include "backends/bundle/bundle.h"
#include "frontend/write_model.h"
#include "ir/base/mapped_file.h"
#include "ir/base/stopwatch.h"
#include "ir/text/counted.h"
#include "lowering/terms/statements.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/driver/opened_bundle.h"
#include "tools/inspection/layers.h"
#include "tools/inspection/model_summary.h"
#include "tools/inspection/prediction.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

// Writes the layers of a differing kernel as a model, next to the bundle that is not written; returns the hint.
std::string write_reduced(const Options& command, const CompiledModel& compiled,
                          const std::vector<std::string>& layers) {
  fs::path path = command.output;
  if (!path.has_filename()) path = path.parent_path();
  path += ".mismatch.onnx";
  auto bytes = write_model(model_of_layers(compiled.program, layers), {.producer_version = HOIST_VERSION});
  if (!bytes) return "the layers alone do not form a model: " + bytes.errors().front().text();
  if (auto written = write_file(path, *bytes); !written) return written.errors().front().text();
  return "these layers alone are the model " + path.string();
}

Diagnostics mismatch_of(const Options& command, const CompiledModel& compiled, const SelfCheck& check) {
  if (!check.mismatch && !check.launch_mismatch->subject.starts_with("launch")) {
    return {{check.launch_mismatch->subject, check.launch_mismatch->message + " on " + check.device,
             "send it to the project: this is a bug of hoist or of the driver", ErrorKind::difference}};
  }
  if (!check.mismatch) {
    return {{check.launch_mismatch->subject,
             fmt::format("differs on {} from its kernels in launches of their own: {}", check.device,
                         check.launch_mismatch->message),
             "no bundle is written; --pass fusion=none gives each kernel a launch of its own", ErrorKind::difference}};
  }
  const KernelMismatch& mismatch = *check.mismatch;
  const PlanStep& step = compiled.plan.steps[mismatch.step];
  const PlanKernel& kernel = compiled.plan.kernels[static_cast<size_t>(step.kernel)];
  Diagnostics out;
  out.push_back({fmt::format("kernel {}, which computes {}", kernel.name, joined_names(step.layers)),
                 fmt::format("differs from the interpreter on {} at {} of {} elements, first at {}", check.device,
                             mismatch.comparison.different, mismatch.comparison.compared, mismatch.comparison.message),
                 "no bundle is written"});
  const bool several = count_statements(compiled.groups[mismatch.step].low) > 0;
  out.push_back(
      {kernel.name, mismatch.origin, several ? "--pass fusion=none gives each layer a launch of its own" : ""});
  out.push_back({kernel.name, write_reduced(command, compiled, step.layers),
                 "send it to the project: this is a bug of hoist or of the driver"});
  return with_kind(ErrorKind::difference, std::move(out));
}

Result<Nothing> write_models(std::vector<SizedModel>& models, const std::string& output, const BundleOptions& options) {
  std::vector<SizedPlan> plans;
  for (SizedModel& model : models) plans.push_back({model.sizes, &model.compiled.plan});
  return write_bundle(plans, output, options);
}

// Comes after the names of kernels, so that kernels of all sizes have different names: programs link them together.
std::string kernel_suffix(const std::vector<SizedModel>& before, const Sizes& sizes) {
  if (before.empty()) return "";
  std::string out = sizes_suffix(sizes);
  const auto is_taken = [&] {
    return std::any_of(before.begin(), before.end(), [&](const SizedModel& model) {
      const std::vector<PlanKernel>& kernels = model.compiled.plan.kernels;
      return std::any_of(kernels.begin(), kernels.end(),
                         [&](const PlanKernel& kernel) { return kernel.name.ends_with(out); });
    });
  };
  while (is_taken()) out += '_';
  return out;
}

}  // namespace

Result<Nothing> check_output(const Options& command) {
  const std::filesystem::path folder = command.output;
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored)) {
    if (!is_bundle(folder)) return Diagnostic{command.output, "exists and is not a bundle", "name another folder"};
    if (!command.force) return Diagnostic{command.output, "exists", "use --force to replace the bundle"};
  }
  const std::filesystem::path parent = folder.parent_path();
  if (folder.empty()) return usage_error("--output", "is empty", "name the folder that the bundle becomes");
  if (!parent.empty() && !std::filesystem::is_directory(parent, ignored))
    return Diagnostic{command.output, parent.string() + " is not a folder", "make it first, or name another"};
  return Nothing{};
}

Result<std::vector<PlanPreprocessing>> preprocessing_of(const std::vector<ValueInfo>& inputs,
                                                        const ImageOptions& options) {
  std::vector<PlanPreprocessing> out;
  if (!any_given(options)) return out;
  Diagnostics problems;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto how = preprocessing_for(inputs[i], options);
    if (!how) {
      problems.insert(problems.end(), how.errors().begin(), how.errors().end());
      continue;
    }
    out.push_back(plan_preprocessing(static_cast<int>(i), *how));
  }
  if (out.empty()) return problems;
  return out;
}

Result<Nothing> write_results(const Options& command, std::vector<SizedModel>& models, const Record* record) {
  for (SizedModel& model : models) {
    HOIST_TRY(model.compiled.plan.preprocessing, preprocessing_of(input_infos(model.compiled.program), command.images));
  }
  const CompiledModel& first = models.front().compiled;
  std::string not_checked;
  Result<SelfCheck> checked = SelfCheck();
  SizedModel* at_work = &models.front();
  BundleOptions options{command.force, [](const fs::path&) { return mapped_files_unchanged(); }};
  if (command.no_check)
    not_checked = "--no-check is given";
  else if (auto found = device_for(first.plan, first.profile, command.model.device); !found.ok())
    not_checked = found.errors()[0].text();
  bool any_checked = false;
  for (SizedModel& model : models) {
    model.check.not_checked = not_checked.empty() ? too_large_to_check(model.compiled.plan) : not_checked;
    any_checked |= model.check.not_checked.empty();
  }
  if (command.programs) {
    for (const SizedModel& model : models) {
      if (!model.check.not_checked.empty())
        return Diagnostic{"--programs", "needs a run on the device: " + model.check.not_checked, "", ErrorKind::device};
    }
  }
  if (any_checked) {
    options.check = [&](const fs::path& folder) -> Result<Nothing> {
      HOIST_TRY_VOID(mapped_files_unchanged());
      malloc_trim(0);  // the weights are written, and the check maps them
      for (SizedModel& model : models) {
        if (!model.check.not_checked.empty()) continue;
        const CompiledModel& compiled = model.compiled;
        at_work = &model;
        RunOptions run;
        run.device = command.model.device;
        run.sizes = model.sizes;
        if (command.programs) run.cache_folder = (folder / "programs").string();
        checked = self_check(folder, compiled.plan, compiled.groups, 1,
                             compiled.rules != nullptr ? compiled.rules->table : lowering_rules(), run);
        if (!checked.ok()) return checked.errors();
        model.check = *checked;
        if (!model.check.agrees()) return Diagnostic{"self-check", "differs", ""};
        if (!compiled.plan.open_sizes.empty()) {
          HOIST_TRY(model.check.sizes, check_open_size(folder, compiled, run));
        }
        std::error_code none;
        if (command.programs && fs::is_empty(run.cache_folder, none))
          return Diagnostic{"--programs", "nothing was stored: cache: " + model.check.driver_cache, ""};
      }
      return Nothing{};
    };
  }
  auto written = write_models(models, command.output, options);
  if (!written) HOIST_TRY_VOID(mapped_files_unchanged());  // the reason of any other failure
  if (!checked.ok()) return checked.errors();
  if (!at_work->check.agrees()) return mismatch_of(command, at_work->compiled, at_work->check);
  if (!written) return written.errors();
  if (record != nullptr && !command.budget.record.empty()) HOIST_TRY_VOID(write_record(command.budget.record, *record));
  return Nothing{};
}

void report_check(const SelfCheck& check) {
  if (!check.not_checked.empty()) {
    print_summary("not checked: {}", check.not_checked);
    return;
  }
  std::string how =
      check.kernels_whole == check.kernels
          ? "every element"
          : fmt::format(
                "{} elements{}", check.compared,
                check.kernels_whole == 0 ? "" : fmt::format(", all of {}", counted(check.kernels_whole, "kernel")));
  if (check.kernels_left > 0) how += fmt::format(", none of {} whose elements take too long", check.kernels_left);
  if (!check.ended.empty())
    print_message("note",
                  "with seeded inputs the run ends at " + check.ended + " (hoist verify --data checks the rest)");
  if (check.kernels == 0) {
    print_summary("nothing to check: no kernel computes an element");
    return;
  }
  print_summary("checked on {}: {} {} with the interpreter ({}); {:.1f} s, and {:.1f} s in the driver (cache: {})",
                check.device, counted(check.kernels, "kernel"), check.kernels == 1 ? "agrees" : "agree", how,
                check.seconds, check.driver_seconds, check.driver_cache);
  if (!check.sizes.empty())
    print_summary("checked at the sizes {} too: the outputs are the model's", fmt::join(check.sizes, ", "));
}

void report_size(const Options& command, const CompiledModel& compiled, double seconds) {
  const Plan& plan = compiled.plan;
  const ArrayBytes bytes = array_bytes(plan.arrays, plan.arena_bytes);
  const std::string steps = plan.steps.size() == plan.kernels.size() ? "" : counted(plan.steps.size(), "step") + " of ";
  const size_t launches = count_launches(plan.steps.size(), plan.launches);
  const std::string joined =
      plan.launches.empty() ? "" : fmt::format(" in {} launch{}", launches, launches == 1 ? "" : "es");
  print_summary("{}: {} in {}{}{}, {} of weights, {} between layers, for {}; {:.1f} s", command.output,
                counted(compiled.program.layers.size(), "layer"), steps, counted(plan.kernels.size(), "kernel"), joined,
                bytes_text(bytes.weights), bytes_text(bytes.values), compiled.profile.name, seconds);
  if (const std::string time = text_of(prediction_of(plan, compiled.profile, compiled.times)); !time.empty())
    print_summary("{}", time);
}

CompileAnswer answer_of(const Options& command, const CompiledModel& compiled, const SelfCheck& check, double seconds) {
  CompileAnswer out = {{"bundle", command.output}};
  out.update(to_json(summary_of(compiled.plan)));
  if (const Prediction time = prediction_of(compiled.plan, compiled.profile, compiled.times); time.is_known)
    out["predicted"] = to_json(time);
  out["profile"] = compiled.profile.name;
  out["targets"] = compiled.plan.targets;
  out["seconds"] = seconds;
  out["check"] = {{"done", check.not_checked.empty()}};
  if (!check.not_checked.empty()) {
    out["check"]["reason"] = check.not_checked;
    return out;
  }
  out["check"]["device"] = check.device;
  out["check"]["kernels"] = check.kernels;
  out["check"]["elements"] = check.compared;
  out["check"]["seconds"] = check.seconds;
  out["check"]["driver_seconds"] = check.driver_seconds;
  out["check"]["cache"] = check.driver_cache;
  return out;
}

Result<ExitCode> write_for_sizes(const Options& command, const std::vector<SizeChoice>& choices,
                                 const CompileForSizes& compile) {
  const Stopwatch stopwatch;
  std::vector<SizedModel> models;
  for (const SizeChoice& choice : choices) {
    Options one = command;
    one.model.dimensions = choice.dimensions;
    one.model.with_notes = models.empty();
    one.model.kernel_suffix = kernel_suffix(models, choice.sizes);
    CompileAnswer tuned;
    HOIST_TRY(CompiledModel compiled, compile(one, tuned));
    models.push_back({choice.sizes, std::move(compiled), {}, std::move(tuned)});
  }
  std::vector<Plan*> plans;
  for (SizedModel& model : models) plans.push_back(&model.compiled.plan);
  HOIST_TRY_VOID(join_tables(plans));
  HOIST_TRY_VOID(write_results(command, models, nullptr));
  const double seconds = stopwatch.seconds();
  CompileAnswer answer = answer_of(command, models.front().compiled, models.front().check, seconds);
  for (SizedModel& model : models) {
    print_line("for {}:", sizes_text(model.sizes));
    report_size(command, model.compiled, seconds);
    report_check(model.check);
    CompileAnswer own = {{"sizes", sizes_json(model.sizes)}};
    own.update(to_json(summary_of(model.compiled.plan)));
    if (!model.tuned.is_null()) own["tuned"] = std::move(model.tuned);
    answer["specialisations"].push_back(std::move(own));
  }
  return done(answer_json(command.json, answer));
}

}  // namespace hoist
