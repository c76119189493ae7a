// Measures kernels for the cost model (../cost_model.h): kernel_times MODEL RECORDS [SECONDS [VARIANTS [TARGET]]]
// compiles a model for the first device, or as native code for the target, with the estimate's knobs and with random
// ones, runs each variant for some seconds, and appends a line of JSON per kernel to RECORDS. A kernel that the file
// already has for this device is not added again.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/opencl/device.h"
#include "ir/base/stopwatch.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/driver/model.h"
#include "tools/driver/opened_bundle.h"
#include "tools/tuning/strategies/candidates.h"
#include "tools/tuning/tuned_model.h"
#include "tools/tuning/variants.h"

namespace hoist {
namespace {

using tuning::Random;
using tuning::Subject;
using tuning::TunedProgram;

/// A random point, near the usual one or anywhere: the final choice is among points near the estimate's, and the model
/// must know that the others are slow.
KnobValues drawn(const Subject& subject, Random random) {
  const auto usual = point_with(subject.space, subject.usual);
  if (!usual || random.below(2) == 0) {
    const auto any = tuning::Candidates(subject.space, 1).draw(random);
    return any ? values_of(subject.space, *any) : subject.usual;
  }
  Point point = *usual;
  for (size_t moves = 1 + random.below(3); moves > 0; --moves) {
    const std::vector<Point> around = adjacent_points(subject.space, point);
    if (!around.empty()) point = around[random.below(around.size())];
  }
  return values_of(subject.space, point);
}

/// Random knobs for every kernel that has knobs; none for variant 0.
Result<TuningRecords> records_of_variant(const TunedProgram& tuned, uint64_t variant) {
  auto knobs = std::make_shared<std::map<TuningTask, KnobValues>>();
  const TuningRecords records = [knobs](const TuningTask& task) {
    const auto found = knobs->find(task);
    return found == knobs->end() ? KnobValues() : found->second;
  };
  if (variant == 0) return records;
  using tuning::ChoiceKind;
  for (const ChoiceKind kind : {ChoiceKind::convolutions, ChoiceKind::launches, ChoiceKind::tiles}) {
    // Half of the variants keep the estimate's convolution forms, since another form leaves fewer kernels of the usual
    // ones, and most variants do not fuse layers.
    if (kind == ChoiceKind::convolutions && variant % 2 == 0) continue;
    if (kind == ChoiceKind::launches && variant % 4 != 3) continue;
    HOIST_TRY(const std::vector<Subject> subjects, tuning::subjects_of(tuned, kind, records));
    std::map<TuningTask, KnobValues> found;
    for (size_t i = 0; i < subjects.size(); ++i)
      found[subjects[i].task] = drawn(subjects[i], Random(variant * 1'000'003 + i));
    for (const auto& [task, values] : found) (*knobs)[task].insert(values.begin(), values.end());
  }
  return records;
}

constexpr char reference_program[] =
    "program %reference version 21\ninput %left : [128][128]f32\ninput %right : [128][128]f32\n"
    "define %product : [128][128]f32 = MatMul(%left, %right) from \"product\"\noutput %product\n";

/// Opens a program of kernels, sets its inputs and runs it once.
Result<ModelOnDevice> open(LoweredModel lowered, const PrepareOptions& how) {
  HOIST_TRY(ModelOnDevice opened, with_kind(ErrorKind::device, open_on_device(std::move(lowered), how, how.profile)));
  const std::vector<Tensor> inputs = seeded_inputs(opened.runner, opened.plan, 1);
  for (size_t i = 0; i < inputs.size(); ++i)
    HOIST_TRY_VOID(with_kind(ErrorKind::device, opened.runner.set_input(i, inputs[i])));
  HOIST_TRY_VOID(with_kind(ErrorKind::device, opened.runner.run()));
  return opened;
}

/// The device name of a record, which separates native code from driver code.
std::string device_name(const PrepareOptions& how, const BundleRunner& bundle) {
  return how.targets.empty() ? bundle.device_name() : how.profile.name;
}

std::string driver_of(const PrepareOptions& how) {
  if (!how.targets.empty()) return "native code, no driver";
  const auto device = find_device(how.run.device);
  return device ? device->platform + " " + device->driver : "";
}

Result<Nothing> measure(const TunedProgram& tuned, const std::string& model, uint64_t variant, double seconds,
                        BundleRunner& reference, std::set<std::string>& known, std::ofstream& records) {
  PrepareOptions how = tuned.options;
  HOIST_TRY(how.lower.records, records_of_variant(tuned, variant));
  HOIST_TRY(LoweredModel lowered, lower_program(tuned.program, how.lower, how.profile));
  // Kernels that were measured before are not compiled again, unless a later step is new.
  const bool any_new = std::any_of(lowered.kernels.begin(), lowered.kernels.end(), [&](const LoweredKernel& kernel) {
    return kernel.host.empty() && !known.contains(print(kernel.expression));
  });
  if (!any_new) return Nothing{};
  std::vector<std::string> expressions;
  for (const LoweredKernel& kernel : lowered.kernels) expressions.push_back(print(kernel.expression));
  HOIST_TRY(ModelOnDevice opened, open(std::move(lowered), how));
  const Plan& plan = opened.plan;
  BundleRunner& bundle = opened.runner;
  std::vector<double> references, run_times;
  std::vector<std::vector<double>> samples(bundle.steps().size());
  const Stopwatch timing;
  for (int runs = 0; runs < 9 || (timing.seconds() < seconds && runs < 400); ++runs) {
    HOIST_TRY(const std::vector<double> times, with_kind(ErrorKind::device, bundle.profile()));
    HOIST_TRY(const std::vector<double> reference_times, with_kind(ErrorKind::device, reference.profile()));
    references.push_back(reference_times[0]);
    const Stopwatch whole;
    HOIST_TRY_VOID(with_kind(ErrorKind::device, bundle.run()));
    run_times.push_back(whole.seconds());
    for (size_t i = 0; i < times.size(); ++i) samples[i].push_back(times[i]);
  }
  // The seconds of a run per step outside the kernels.
  double launch = summarise_times(run_times).lower_quartile.value;
  for (const std::vector<double>& step : samples) launch -= summarise_times(step).lower_quartile.value;
  launch = std::max(launch, 0.0) / static_cast<double>(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto kernel = static_cast<size_t>(bundle.steps()[i].kernel_index);
    if (!plan.kernels[kernel].host.empty() || bundle.step_runs(i) != 1) continue;
    if (!known.insert(expressions[kernel]).second) continue;
    records << nlohmann::ordered_json{{"model", model},
                                      {"kernel", plan.kernels[kernel].name},
                                      {"device", device_name(how, bundle)},
                                      {"driver", driver_of(how)},
                                      {"target", how.targets.empty() ? "" : how.targets.front()},
                                      {"profile", print_without_rates(how.profile)},
                                      {"expression", expressions[kernel]},
                                      {"operations", plan.kernels[kernel].operations},
                                      {"seconds", summarise_times(samples[i]).lower_quartile.value},
                                      {"reference", summarise_times(references).lower_quartile.value},
                                      {"launch", launch},
                                      {"samples", samples[i].size()}}
                   .dump()
            << '\n';
  }
  records.flush();
  return Nothing{};
}

Result<Nothing> measure_model(const std::filesystem::path& model, const std::filesystem::path& file, double seconds,
                              int variants, const std::string& target) {
  ModelOptions options;
  options.with_notes = false;
  if (!target.empty()) options.targets = {target};
  HOIST_TRY(Program program, read_program(model, options));
  HOIST_TRY(const TunedProgram tuned, tuning::tuned_program(std::move(program), options));
  const PrepareOptions& how = tuned.options;
  HOIST_TRY(Program product, parse_program(reference_program));
  HOIST_TRY(LoweredModel lowered, lower_model(std::move(product), {}, how.profile));
  HOIST_TRY(ModelOnDevice reference, open(std::move(lowered), how));
  std::set<std::string> known;
  std::ifstream old(file);
  for (std::string line; std::getline(old, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (record.is_object() && record.value("profile", "") == print_without_rates(how.profile))
      known.insert(record.value("expression", ""));
  }
  std::ofstream records(file, std::ios::app);
  if (!records) return Diagnostic{file.string(), "it cannot be written"};
  for (int variant = 0; variant < variants; ++variant) {
    const Stopwatch stopwatch;
    const size_t before = known.size();
    HOIST_TRY([[maybe_unused]] auto done, measure(tuned, model.filename().string(), static_cast<uint64_t>(variant),
                                                  seconds, reference.runner, known, records));
    fmt::print("{}: {} kernels of variant {}, {:.1f} s\n", model.filename().string(), known.size() - before, variant,
               stopwatch.seconds());
    std::fflush(stdout);
  }
  return Nothing{};
}

}  // namespace
}  // namespace hoist

int main(int count, char** arguments) {
  if (count < 3) {
    fmt::print(stderr, "usage: kernel_times MODEL RECORDS [SECONDS [VARIANTS [TARGET]]]\n");
    return static_cast<int>(hoist::ExitCode::usage);
  }
  const auto done = hoist::measure_model(arguments[1], arguments[2], count > 3 ? std::atof(arguments[3]) : 1,
                                         count > 4 ? std::atoi(arguments[4]) : 6, count > 5 ? arguments[5] : "");
  if (done.ok()) return 0;
  for (const auto& problem : done.errors()) fmt::print(stderr, "kernel_times: {}\n", problem.text());
  return static_cast<int>(hoist::exit_code(done.errors()));
}
