// hoist verify: the bundle's own self-check, then every kernel against the interpreter on its real inputs.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/evaluate/interpreter/interpret_cost.h"
#include "ir/text/counted.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/data/samples.h"
#include "tools/driver/driver_helpers.h"
#include "tools/driver/model.h"
#include "tools/driver/opened_bundle.h"
#include "tools/driver/self_check.h"
#include "tools/driver/sizes.h"
#include "tools/inspection/derivation.h"
#include "tools/study/certificate.h"

namespace hoist {
namespace {

// Inputs: the first runs of the data, or seeded numbers from the inputs' domains.
Result<std::vector<std::vector<Tensor>>> inputs_for(const BundleRunner& bundle, const Plan& plan,
                                                    const std::string& data) {
  if (data.empty()) return seeded_runs(bundle, plan, plan.model_hash);
  HOIST_TRY(Samples samples, read_samples(data, inputs_of(bundle), {.images = as_stored(bundle, 0, {})}));
  return std::move(samples.runs);
}

std::string subject_of(const Plan& plan, size_t run, size_t step) {
  return fmt::format("{}step {}, kernel {}", plan.states.empty() ? "" : fmt::format("run {}, ", run + 1), step,
                     plan.kernels[static_cast<size_t>(plan.steps[step].kernel)].name);
}

// Some elements of a step's result, or all of them.
Result<StepComparison> compared(const Options& command, const StepValues& values, uint64_t seed) {
  if (command.all) return compare_everywhere(values);
  const int64_t count =
      command.positions == usual_positions ? affordable_elements(values.term, usual_positions) : command.positions;
  return compare_step(values, sample_positions(values.region, count, seed));
}

// After step `index` has run: compares its result with the interpreter's for its inputs.
Result<Finding> check_step(const Options& command, BundleRunner& bundle, const Plan& plan, const Device& device,
                           size_t run, size_t index) {
  Finding out;
  out.subject = subject_of(plan, run, index);
  HOIST_TRY(StepValues values, step_values(bundle, plan, device, index));
  HOIST_TRY(StepComparison found, compared(command, values, plan.model_hash + index));
  out.compared = found.compared;
  out.largest_error = found.largest_error;
  out.passed = found.message.empty();
  out.message = found.message;
  return out;
}

// Prints a line for each finding; returns the number of failures.
Result<size_t> report_findings(const Options& command, const std::vector<Finding>& findings,
                               const std::string& device) {
  size_t failed = 0;
  nlohmann::ordered_json lines = nlohmann::json::array();
  for (const Finding& finding : findings) {
    if (!finding.passed) ++failed;
    lines.push_back({{"subject", finding.subject},
                     {"passed", finding.passed},
                     {"message", finding.message},
                     {"compared", finding.compared},
                     {"largest_error", finding.largest_error}});
    if (!finding.passed)
      print_line("failed {}: {}", finding.subject, finding.message);
    else if (finding.compared == 0)
      print_line("passed {}", finding.subject);
    else
      print_line("passed {}: {}, largest error {:.3g}", finding.subject,
                 counted(static_cast<uint64_t>(finding.compared), "position"), finding.largest_error);
  }
  if (!command.json.empty()) {
    nlohmann::ordered_json out = {{"passed", failed == 0}};
    if (!device.empty()) out["device"] = device;
    out["findings"] = lines;
    HOIST_TRY_VOID(write_json(command.json, out));
  }
  print_line("{} of {} checks passed{}", findings.size() - failed, findings.size(),
             device.empty() ? "" : " on " + device);
  return failed;
}

// Needs no device: terms and hashes alone.
Result<ExitCode> verify_derivation(const Options& command) {
  Progress progress;
  std::vector<Finding> findings;
  for (size_t i = 0, count = 1; i < count; ++i) {
    HOIST_TRY(const BundleInfo info, read_bundle(command.subject, true, i));
    count = std::max<size_t>(info.sizes.size(), 1);
    if (!info.plan.open_sizes.empty())
      return usage_error("--derivation", "is not checked for a range of sizes: the derivation is that of one of them",
                         "hoist verify without it compares the kernels");
    std::optional<Program> model;
    if (!command.source.empty()) {
      HOIST_TRY(model, read_program_of(command.source, command.model.values, info, command.model.bounds));
    }
    progress.show("replaying the derivation");
    HOIST_TRY(std::vector<Finding> found, check_derivation(info, model ? &*model : nullptr));
    for (Finding& finding : found) {
      if (count > 1) finding.subject += " for " + sizes_text(info.sizes[i]);
      findings.push_back(std::move(finding));
    }
  }
  HOIST_TRY(const size_t failed, report_findings(command, findings, ""));
  return failed == 0 ? ExitCode::done : ExitCode::no;
}

// The steps of a run, each against the interpreter.
Result<Nothing> check_run(const Options& command, BundleRunner& bundle, const Plan& plan, const Device& device,
                          size_t run, Progress& progress, std::vector<Finding>& findings) {
  for (size_t i = 0; i < bundle.steps().size(); ++i) {
    progress.show(fmt::format("step {} of {}", i + 1, bundle.steps().size()),
                  static_cast<double>(i) / static_cast<double>(bundle.steps().size()));
    HOIST_TRY_VOID(of_run(bundle, bundle.run_steps(i, 1)));
    if (bundle.step_runs(i) == 0) {
      Finding finding;
      finding.subject = subject_of(plan, run, i) + ": not selected by these inputs";
      finding.passed = true;
      findings.push_back(std::move(finding));
      continue;
    }
    HOIST_TRY(Finding finding, check_step(command, bundle, plan, device, run, i));
    findings.push_back(std::move(finding));
  }
  return Nothing{};
}

// The steps of the specialisation in use; with states, in a sequence of runs.
Result<Nothing> check_steps_of(const Options& command, BundleRunner& bundle, const Plan& plan, Progress& progress,
                               std::vector<Finding>& findings) {
  HOIST_TRY(Device device, with_kind(ErrorKind::device, device_of(bundle, plan)));
  HOIST_TRY(const auto samples, inputs_for(bundle, plan, command.data));
  for (size_t run = 0; run < plan.checked_runs(); ++run) {
    // The steps have to run once more: states change at the end of a whole run.
    if (run > 0) HOIST_TRY_VOID(of_run(bundle, bundle.run()));
    HOIST_TRY_VOID(set_run(bundle, samples, run));
    HOIST_TRY_VOID(check_run(command, bundle, plan, device, run, progress, findings));
  }
  return Nothing{};
}

}  // namespace

Result<ExitCode> commands::verify(const Options& command) {
  if (!command.helper_part.empty()) {
    HOIST_TRY(const HelperPart part, parse_helper_part(command.helper_part));
    return done(help_driver(command.subject, command.run, part));
  }
  for (const char* option : {"--value", "--bound loop-iterations", "--bound string-pieces"}) {
    if (command.is_given(option) && command.source.empty())
      return usage_error(option, "is for the model at the start of the derivation", "add --model");
  }
  HOIST_TRY(BundleInfo info, bundle_info(command.subject));
  if (command.derivation) return verify_derivation(command);
  HOIST_TRY(BundleRunner bundle, open_checked(command.subject, command.run));
  std::vector<Finding> findings;
  Progress progress;
  progress.show("the bundle's self-check");
  HOIST_TRY(findings, with_kind(ErrorKind::device, bundle.verify()));
  HOIST_TRY(const size_t wanted, specialisation_of(info, command.run.sizes));
  for (size_t i = 0; i < bundle.specialisations().size(); ++i) {
    if (!command.run.sizes.empty() && i != wanted) continue;
    HOIST_TRY(const BundleInfo one, read_bundle(command.subject, false, i));
    HOIST_TRY_VOID(with_kind(ErrorKind::device, bundle.choose(i)));
    HOIST_TRY_VOID(check_steps_of(command, bundle, one.plan, progress, findings));
  }
  if (!command.data.empty() && !info.plan.certificate.empty()) {
    progress.show("the certificate");
    HOIST_TRY(std::optional<Finding> finding, check_certificate(bundle, info.plan.certificate, command.data));
    if (finding)
      findings.push_back(std::move(*finding));
    else
      print_message("note", "the certificate was made with other data; it is checked with those alone");
  }
  HOIST_TRY(const size_t failed, report_findings(command, findings, bundle.device_name()));
  return failed == 0 ? ExitCode::done : ExitCode::no;
}

}  // namespace hoist
