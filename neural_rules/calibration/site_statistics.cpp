#include "neural_rules/calibration/site_statistics.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/base/stopwatch.h"
#include "ir/base/threads.h"
#include "ir/text/parse/near_miss.h"
#include "neural_rules/choice/candidates.h"
#include "neural_rules/neural_rules.h"
#include "neural_rules/rewrite/multi_variant.h"

namespace hoist {
namespace {

// The values of one run, each once.
class Observed {
 public:
  void add(const std::string& value, const Tensor& tensor) {
    if (names_.insert(value).second) values_.push_back({value, &tensor});
  }
  Result<Nothing> pass_to(Calibrator& calibrator, bool min_max) const {
    std::vector<Diagnostics> problems(values_.size());
    for_each_in_threads(values_.size(), [&](size_t i) {
      const auto& [name, tensor] = values_[i];
      const auto done = min_max ? calibrator.observe_min_max(name, *tensor) : calibrator.observe(name, *tensor);
      if (!done) problems[i] = done.errors();
    });
    for (Diagnostics& problem : problems) {
      if (!problem.empty()) return std::move(problem);
    }
    return Nothing{};
  }

 private:
  std::set<std::string> names_;
  std::vector<std::pair<std::string, const Tensor*>> values_;
};

// Outputs after the model's own are copies of values.
const std::string& seen_value(const Program& program, size_t output, size_t own) {
  if (output < own) return program.outputs[output];
  return find_definition(program, program.outputs[output])->expression->children[0]->name;
}

Diagnostic unknown_rule(const std::string& name) {
  std::vector<std::string> names;
  for (const NeuralRule& rule : neural_rules()) names.emplace_back(rule.name);
  return {"rule " + name, "unknown rule", did_you_mean(name, names, "hoist rules lists them")};
}

// Applies a rule at every possible site, or gives the reason why it applies nowhere.
class Uniform {
 public:
  Uniform(const Program& program, const std::vector<Site>& sites) : program_(program), sites_(sites) {}

  // Rules for values first: contractions read the formats of values.
  Result<Assignment> assign(const std::vector<const NeuralRule*>& rules) {
    for (const bool values : {true, false}) {
      for (const NeuralRule* rule : rules) {
        if ((rule->kind == SiteKind::value) != values) continue;
        HOIST_TRY_VOID(assign(*rule));
      }
    }
    return std::move(out_);
  }

 private:
  Result<Nothing> assign(const NeuralRule& rule) {
    std::string reason = "the model has no site for it";
    int assigned = 0;
    for (const Site& site : sites_) {
      if (site.kind != rule.kind || out_.count(site.key()) != 0) continue;
      if (const auto why = reason_against(rule, site)) {
        if (assigned == 0) reason = site.key() + ": " + *why;
        continue;
      }
      out_[site.key()] = rule.name;
      ++assigned;
    }
    if (assigned == 0) return Diagnostic{"rule " + std::string(rule.name), "applies nowhere", reason};
    return Nothing{};
  }

  std::optional<std::string> reason_against(const NeuralRule& rule, const Site& site) const {
    if (auto why = why_not(rule, site, program_)) return why;
    const std::optional<Scalar> wanted = rule.input();
    if (!wanted) return std::nullopt;
    const size_t input = input_site(program_, sites_, site);
    const auto format = input < sites_.size() ? out_.find(sites_[input].key()) : out_.end();
    if (format != out_.end() && gives(format->second, *wanted)) return std::nullopt;
    return "its input is not stored as " + std::string(row(*wanted).name) +
           ": also name a rule that stores it in this type";
  }

  const Program& program_;
  const std::vector<Site>& sites_;
  Assignment out_;
};

// The state of the passes of one calibration.
struct Passes {
  size_t runs = 0;  // number of runs of the used samples
  size_t done = 0, all = 0;
};

// The number of runs of the samples that fit into the time limit given the duration of one run; at least one.
size_t runs_that_fit(const Samples& samples, double run_seconds, double seconds, size_t passes) {
  const double fitting = seconds / (run_seconds * static_cast<double>(passes));
  const size_t most = samples.runs.size();
  return fitting >= static_cast<double>(most) ? most : std::max<size_t>(1, static_cast<size_t>(fitting));
}

Result<Statistics> statistics_of(const Program& program, const std::vector<Site>& sites, const Samples& samples,
                                 const PrepareModel& prepare, const RoundingPlan& plan,
                                 const std::function<void(const std::vector<Tensor>&)>& seen,
                                 const CalibrationWatch& watch, Passes& passes) {
  std::vector<std::string> values;
  for (const Site& site : sites) {
    values.push_back(site.value);
    if (!site.input.empty()) values.push_back(site.input);
  }
  RewrittenModel model;
  HOIST_TRY(model.program, with_outputs(program, values));
  model.only_values = true;
  HOIST_TRY(const std::unique_ptr<RunnableModel> runnable, prepare(model));
  const size_t own = model_output_count(program);
  Calibrator calibrator(program);
  for (const PlannedRounding& planned : plan.layers)
    calibrator.collect_second_moments(program, planned.layer, planned.windows);
  for (const bool min_max : {true, false}) {
    for (size_t run = 0; run < passes.runs; ++run) {
      const Stopwatch stopwatch;
      const std::vector<Tensor>& inputs = samples.runs[run];
      HOIST_TRY(const std::vector<Tensor> outputs, runnable->run(inputs));
      if (min_max) seen({outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(own)});
      Observed observed;
      for (size_t i = 0; i < inputs.size(); ++i) observed.add(program.inputs[i].first, inputs[i]);
      for (size_t i = 0; i < outputs.size(); ++i) observed.add(seen_value(model.program, i, own), outputs[i]);
      HOIST_TRY_VOID(observed.pass_to(calibrator, min_max));
      // The first run may include the start of a device, so it is not timed.
      if (passes.done == std::min<size_t>(1, passes.runs - 1)) {
        const size_t count = passes.all / passes.runs;
        passes.runs = std::max(run + 1, runs_that_fit(samples, stopwatch.seconds(), watch.seconds, count));
        passes.all = passes.runs * count;
      }
      watch.progress(++passes.done, passes.all);
    }
  }
  return calibrator.finish();
}

}  // namespace

Result<CalibratedProgram> calibrate(const Program& program, const std::vector<Site>& sites, const Samples& samples,
                                    const PrepareModel& prepare, const RoundingPlan& plan, ChannelScaling scaling,
                                    const std::function<void(const std::vector<Tensor>&)>& seen,
                                    const CalibrationWatch& watch) {
  CalibratedProgram out;
  out.program = program;
  Passes passes;
  passes.runs = samples.runs.size();
  passes.all = passes.runs * (scaling == ChannelScaling::off ? 2 : 4);
  const Stopwatch stopwatch;
  HOIST_TRY(out.statistics, statistics_of(program, sites, samples, prepare, plan, seen, watch, passes));
  out.unscaled = scaling == ChannelScaling::automatic && watch.seconds_left() < 2 * stopwatch.seconds();
  if (!out.unscaled) out.factors = channel_factors(program, out.statistics, scaling);
  if (!out.factors.empty()) {
    HOIST_TRY_VOID(scale_channels(out.program, out.factors));
    const auto unseen = [](const std::vector<Tensor>&) {};
    HOIST_TRY(out.statistics, statistics_of(out.program, sites, samples, prepare, plan, unseen, watch, passes));
  }
  out.runs = passes.runs;
  HOIST_TRY_VOID(round_weights(out.program, plan, out.statistics));
  return out;
}

Result<Assignment> uniform_assignment(const Program& program, const std::vector<Site>& sites,
                                      const std::vector<std::string>& names) {
  std::vector<const NeuralRule*> rules;
  Diagnostics problems;
  for (const std::string& name : names) {
    if (const NeuralRule* rule = find_neural_rule(name))
      rules.push_back(rule);
    else
      problems.push_back(unknown_rule(name));
  }
  if (!problems.empty()) return problems;
  return Uniform(program, sites).assign(rules);
}

}  // namespace hoist
