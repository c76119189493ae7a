// Measures kernels for the cost model (../cost_model.h): kernel_times MODEL RECORDS [SECONDS] compiles a model for the
// first device, as it is and as for devices with shorter vectors and other registers, which gives the kernels other
// tiles, runs each variant for some seconds, and adds a line of JSON for each kernel to RECORDS. A kernel that stands
// in the file already for this device is not added again.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/stopwatch.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "neural_rules/choice/interval.h"
#include "tools/device_models.h"
#include "tools/model.h"
#include "tools/opened_bundle.h"

namespace hoist {
namespace {

/// The same device with other numbers for what strategies choose tiles by.
std::vector<Profile> variants_of(const Profile& device) {
  std::vector<Profile> variants = {device};
  const auto add = [&](int64_t width, int64_t registers) {
    Profile& other = variants.emplace_back(device);
    other.vector_width = width, other.vector_registers = registers;
  };
  add(device.vector_width, device.vector_registers / 2);
  add(std::max<int64_t>(device.vector_width / 2, 1), device.vector_registers);
  add(device.vector_width, 8);
  add(std::max<int64_t>(device.vector_width / 2, 1), 16);
  add(std::max<int64_t>(device.vector_width / 4, 1), 32);
  return variants;
}

constexpr char reference_program[] =
    "program %reference version 21\ninput %left : [128][128]f32\ninput %right : [128][128]f32\n"
    "define %product : [128][128]f32 = MatMul(%left, %right) from \"product\"\noutput %product\n";

/// A program of kernels for the first device, its inputs set, run once.
Attempt<ModelOnDevice> open(LoweredModel lowered, const Profile& profile) {
  HOIST_STEP(ModelOnDevice opened, ExitCode::device, open_on_device(std::move(lowered), {}, profile));
  const std::vector<Tensor> inputs = seeded_inputs(opened.runner, opened.plan, 1);
  for (size_t i = 0; i < inputs.size(); ++i) HOIST_STEP_VOID(ExitCode::device, opened.runner.set_input(i, inputs[i]));
  HOIST_STEP_VOID(ExitCode::device, opened.runner.run());
  return opened;
}

Attempt<> measure(const Program& program, const std::string& model, const Profile& device, const Profile& variant,
                  double seconds, BundleRunner& reference, std::set<std::string>& known, std::ofstream& records) {
  HOIST_STEP(LoweredModel lowered, ExitCode::bad_input, lower_model(program, {}, variant));
  // What was measured before is not compiled again, unless a step behind it is new.
  const bool any_new = std::any_of(lowered.kernels.begin(), lowered.kernels.end(), [&](const LoweredKernel& kernel) {
    return kernel.host.empty() && !known.contains(print(kernel.expression));
  });
  if (!any_new) return ExitCode::done;
  std::vector<std::string> expressions;
  for (const LoweredKernel& kernel : lowered.kernels) expressions.push_back(print(kernel.expression));
  HOIST_ATTEMPT(ModelOnDevice opened, open(std::move(lowered), variant));
  const Plan& plan = opened.plan;
  BundleRunner& bundle = opened.runner;
  std::vector<double> references;
  std::vector<std::vector<double>> samples(bundle.steps().size());
  const Stopwatch timing;
  for (int runs = 0; runs < 9 || (timing.seconds() < seconds && runs < 400); ++runs) {
    HOIST_STEP(const std::vector<double> times, ExitCode::device, bundle.profile());
    HOIST_STEP(const std::vector<double> reference_times, ExitCode::device, reference.profile());
    references.push_back(reference_times[0]);
    for (size_t i = 0; i < times.size(); ++i) samples[i].push_back(times[i]);
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto kernel = static_cast<size_t>(bundle.steps()[i].kernel_index);
    if (!plan.kernels[kernel].host.empty() || bundle.step_runs(i) != 1) continue;
    if (!known.insert(expressions[kernel]).second) continue;
    records << nlohmann::ordered_json{{"model", model},
                                      {"kernel", plan.kernels[kernel].name},
                                      {"device", bundle.device_name()},
                                      {"profile", print(device)},
                                      {"expression", expressions[kernel]},
                                      {"operations", plan.kernels[kernel].operations},
                                      {"seconds", summarise_times(samples[i]).lower_quartile.value},
                                      {"reference", summarise_times(references).lower_quartile.value},
                                      {"samples", samples[i].size()}}
                   .dump()
            << '\n';
  }
  records.flush();
  return ExitCode::done;
}

Attempt<> measure_model(const std::filesystem::path& model, const std::filesystem::path& file, double seconds) {
  ModelOptions options;
  options.with_notes = false;
  HOIST_ATTEMPT(const Profile device, choose_profile(options));
  HOIST_ATTEMPT(const Program program, read_program(model, options));
  HOIST_STEP(Program product, ExitCode::bad_input, parse_program(reference_program));
  HOIST_STEP(LoweredModel lowered, ExitCode::bad_input, lower_model(std::move(product), {}, device));
  HOIST_ATTEMPT(ModelOnDevice reference, open(std::move(lowered), device));
  std::set<std::string> known;
  std::ifstream old(file);
  for (std::string line; std::getline(old, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (record.is_object() && record.value("profile", "") == print(device))
      known.insert(record.value("expression", ""));
  }
  std::ofstream records(file, std::ios::app);
  if (!records) return input_failure(file.string(), "it cannot be written");
  for (const Profile& variant : variants_of(device)) {
    const Stopwatch stopwatch;
    const size_t before = known.size();
    HOIST_ATTEMPT([[maybe_unused]] auto done, measure(program, model.filename().string(), device, variant, seconds,
                                                      reference.runner, known, records));
    fmt::print("{}: {} kernels for vectors of {} and {} registers, {:.1f} s\n", model.filename().string(),
               known.size() - before, variant.vector_width, variant.vector_registers, stopwatch.seconds());
    std::fflush(stdout);
  }
  return ExitCode::done;
}

}  // namespace
}  // namespace hoist

int main(int count, char** arguments) {
  if (count < 3) {
    fmt::print(stderr, "usage: kernel_times MODEL RECORDS [SECONDS]\n");
    return static_cast<int>(hoist::ExitCode::usage);
  }
  const auto done = hoist::measure_model(arguments[1], arguments[2], count > 3 ? std::atof(arguments[3]) : 1);
  if (done.ok()) return 0;
  for (const auto& problem : done.failure().problems) fmt::print(stderr, "kernel_times: {}\n", problem.text());
  return static_cast<int>(done.failure().code);
}
