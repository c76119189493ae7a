// hoist verify: the bundle's own self-check, then every kernel against the interpreter on the inputs that it really
// had.
#include <limits>
#include <nlohmann/json.hpp>

#include "backends/opencl/device.h"
#include "ir/evaluate.h"
#include "ir/text.h"
#include "tools/bundle.h"
#include "tools/certificate.h"
#include "tools/command.h"
#include "tools/data.h"
#include "tools/json_answer.h"
#include "tools/samples.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct VerifyCommand {
  std::string bundle, data, json;
  int64_t positions = 24;
  bool all = false;
  RunOptions options;
};

// What device arithmetic may differ by where it does not promise IEEE 754: the runtime's own bounds.
constexpr double inexact_relative = 1e-5, inexact_absolute = 1e-6;

// Inputs: the first run of the data, or seeded numbers from the inputs' domains.
Attempt<std::vector<Tensor>> inputs_for(const BundleRunner& bundle, const Plan& plan, const std::string& data) {
  if (data.empty()) return seeded_inputs(bundle, plan, plan.model_hash);
  HOIST_STEP(Samples samples, ExitCode::bad_input, read_samples(data, inputs_of(bundle), {}));
  return samples.runs.front();
}

Tensor gather(const Tensor& from, const std::vector<int64_t>& positions) {
  Tensor out(from.scalar(), {static_cast<int64_t>(positions.size())});
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (is_integer(from.scalar()))
      out.set_integer(at, from.integer_at(positions[i]));
    else
      out.set_float(at, from.float_at(positions[i]));
  }
  return out;
}

Tolerance tolerance_on(const Device& device, Tolerance tolerance) {
  if (!tolerance.exact) return tolerance;
  if (!device.computes_exactly || (tolerance.divides && !device.divides_exactly)) {
    tolerance = {false, tolerance.divides, inexact_relative, inexact_absolute};
  }
  return tolerance;
}

// After step `index` has run: its result against the interpreter on what its inputs hold.
Attempt<Finding> check_step(BundleRunner& bundle, const Plan& plan, const Device& device, size_t index, int64_t count) {
  const PlanStep& step = plan.steps[index];
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  Finding out;
  out.subject = "step " + std::to_string(index) + ", kernel " + kernel.name;
  HOIST_STEP(Expr term, ExitCode::bad_input, parse(kernel.expression));
  Bindings bindings;
  Tensor result;
  Region written;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    HOIST_STEP(Tensor array, ExitCode::device, bundle.read_array(static_cast<size_t>(step.arguments[i])));
    const KernelParameter& parameter = kernel.parameters[i];
    // An array may be stored under another shape of the same elements than the kernel sees.
    Tensor seen = array.shape() == parameter.shape ? array : array.reshaped(parameter.shape);
    if (parameter.written) {
      result = seen;
      written = parameter.regions_or_whole().front();
    } else {
      bindings[parameter.name] = seen;
    }
  }
  const std::vector<int64_t> positions = sample_positions(written, count, plan.model_hash + index);
  HOIST_STEP(Tensor expected, ExitCode::bad_input, interpret_at(term, bindings, positions));
  const Tensor got = gather(result, positions);
  const Tolerance tolerance = tolerance_on(device, kernel.tolerance);
  Comparison comparison = compare(got, expected, tolerance.relative, tolerance.absolute);
  out.compared = positions.size();
  out.largest_error = comparison.largest_error;
  out.passed = comparison.agrees();
  if (!out.passed) {
    out.message = comparison.first < 0
                      ? comparison.difference
                      : fmt::format("position {}: {}, expected {}", positions[static_cast<size_t>(comparison.first)],
                                    element_text(got, comparison.first), element_text(expected, comparison.first));
  }
  return out;
}

Attempt<> verify(const VerifyCommand& command) {
  HOIST_ATTEMPT(BundleInfo info, bundle_info(command.bundle));
  HOIST_STEP(Device device, ExitCode::device, find_device(command.options.device));
  HOIST_STEP(BundleRunner bundle, ExitCode::device, BundleRunner::open(command.bundle, command.options));
  const int64_t positions = command.all ? std::numeric_limits<int64_t>::max() : command.positions;
  std::vector<Finding> findings;
  Progress progress;
  progress.show("the bundle's self-check");
  HOIST_STEP(findings, ExitCode::device, bundle.verify());
  HOIST_ATTEMPT(std::vector<Tensor> inputs, inputs_for(bundle, info.plan, command.data));
  for (size_t i = 0; i < inputs.size(); ++i) HOIST_STEP_VOID(ExitCode::bad_input, bundle.set_input(i, inputs[i]));
  for (size_t i = 0; i < bundle.steps().size(); ++i) {
    progress.show(fmt::format("step {} of {}", i + 1, bundle.steps().size()));
    HOIST_STEP_VOID(ExitCode::device, bundle.run_steps(i, 1));
    HOIST_ATTEMPT(Finding finding, check_step(bundle, info.plan, device, i, positions));
    findings.push_back(std::move(finding));
  }
  if (!command.data.empty() && !info.plan.certificate.empty()) {
    progress.show("the certificate");
    HOIST_ATTEMPT(std::optional<Finding> finding, check_certificate(bundle, info.plan.certificate, command.data));
    if (finding)
      findings.push_back(std::move(*finding));
    else
      complain("note", "the certificate was made with other data; it is checked with those alone");
  }
  size_t failed = 0;
  nlohmann::ordered_json lines = nlohmann::json::array();
  for (const Finding& finding : findings) {
    if (!finding.passed) ++failed;
    lines.push_back({{"subject", finding.subject},
                     {"passed", finding.passed},
                     {"message", finding.message},
                     {"compared", finding.compared},
                     {"largest_error", finding.largest_error}});
    if (command.json == "-") continue;
    if (!finding.passed)
      say_line("failed {}: {}", finding.subject, finding.message);
    else if (finding.compared == 0)
      say_line("passed {}", finding.subject);
    else
      say_line("passed {}: {} positions, largest error {:.3g}", finding.subject, finding.compared,
               finding.largest_error);
  }
  if (!command.json.empty()) {
    const nlohmann::ordered_json out = {{"passed", failed == 0}, {"device", bundle.device_name()}, {"findings", lines}};
    HOIST_STEP_VOID(ExitCode::bad_input, write_json(command.json, out));
  }
  if (command.json != "-") {
    say_line("{} of {} checks passed on {}", findings.size() - failed, findings.size(), bundle.device_name());
  }
  return failed == 0 ? ExitCode::done : ExitCode::no;
}

}  // namespace

void add_verify(CLI::App& program, Action& action) {
  auto options = std::make_shared<VerifyCommand>();
  CLI::App& command =
      add_command(program, action, "verify",
                  "check a bundle: its files, its self-check, and every kernel against the interpreter on real inputs",
                  "  hoist verify digits.hoist --data models/digits_residual_test.npz", options, verify);
  add_bundle_options(command, options->bundle, options->options);
  command
      .add_option(
          "--data", options->data,
          "the inputs: the first sample of an .npz, or the first test_data_set_K of a folder (default: seeded numbers)")
      ->type_name("DATA");
  auto* all = command.add_flag("--all", options->all, "compare every element of every kernel's result: slow");
  command.add_option("--positions", options->positions, "compare so many elements of each kernel's result")
      ->check(CLI::Range(1, 1000000000))
      ->type_name("N")
      ->capture_default_str()
      ->excludes(all);
  add_json_option(command, options->json, "the findings");
}

}  // namespace hoist
