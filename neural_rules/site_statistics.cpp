#include "neural_rules/site_statistics.h"

#include <optional>

#include "ir/near_miss.h"
#include "neural_rules/candidates.h"
#include "neural_rules/rules.h"
#include "neural_rules/switchboard.h"

namespace hoist {
namespace {

Result<Nothing> observe(Calibrator& calibrator, const std::string& value, const Tensor& tensor, bool extremes) {
  return extremes ? calibrator.observe_extremes(value, tensor) : calibrator.observe(value, tensor);
}

// Behind the model's own outputs stand copies.
const std::string& seen_value(const Graph& graph, size_t output, size_t own) {
  const ValueInfo& info = graph.outputs[output];
  return output < own ? info.name : graph.layers[graph.layers.size() - (graph.outputs.size() - output)].inputs[0];
}

Diagnostic unknown_rule(const std::string& name) {
  std::vector<std::string> names;
  for (const NeuralRule& rule : neural_rules()) names.emplace_back(rule.name);
  const std::string near = near_miss(name, names);
  return {"rule " + name, "there is no such rule",
          near.empty() ? "hoist rules lists them" : "did you mean " + near + "?"};
}

// Where the rule applies, or why it does nowhere.
class Uniform {
 public:
  Uniform(const Graph& graph, const std::vector<Site>& sites) : graph_(graph), sites_(sites) {}

  // Rules for values first: products read what these give.
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
    if (auto why = why_not(rule, site, graph_)) return why;
    if (rule.input_format.empty()) return std::nullopt;
    const size_t input = input_site(graph_, sites_, site);
    const auto format = input < sites_.size() ? out_.find(sites_[input].key()) : out_.end();
    if (format != out_.end() && format->second.starts_with(rule.input_format)) return std::nullopt;
    return "its input is not stored as " + std::string(rule.input_format) + ": name a rule that does so too";
  }

  const Graph& graph_;
  const std::vector<Site>& sites_;
  Assignment out_;
};

Result<Statistics> statistics_of(const Graph& graph, const std::vector<Site>& sites, const Samples& samples,
                                 const PrepareModel& prepare, const RoundingPlan& plan,
                                 const std::function<void(const std::vector<Tensor>&)>& seen) {
  std::vector<std::string> values;
  for (const Site& site : sites) {
    values.push_back(site.value);
    if (!site.input.empty()) values.push_back(site.input);
  }
  RewrittenModel model;
  model.graph = with_outputs(graph, values);
  model.only_values = true;
  HOIST_TRY(const std::unique_ptr<RunnableModel> runnable, prepare(model));
  Calibrator calibrator(graph);
  for (const PlannedRounding& planned : plan.layers)
    calibrator.collect_second_moments(graph, planned.layer, planned.windows);
  for (const bool extremes : {true, false}) {
    for (const std::vector<Tensor>& inputs : samples.runs) {
      HOIST_TRY(const std::vector<Tensor> outputs, runnable->run(inputs));
      if (extremes) seen({outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(graph.outputs.size())});
      for (size_t i = 0; i < inputs.size(); ++i)
        HOIST_TRY_VOID(observe(calibrator, graph.inputs[i].name, inputs[i], extremes));
      for (size_t i = 0; i < outputs.size(); ++i)
        HOIST_TRY_VOID(observe(calibrator, seen_value(model.graph, i, graph.outputs.size()), outputs[i], extremes));
    }
  }
  return calibrator.finish();
}

}  // namespace

Result<CalibratedGraph> calibrate(const Graph& graph, const std::vector<Site>& sites, const Samples& samples,
                                  const PrepareModel& prepare, const RoundingPlan& plan, ChannelScaling scaling,
                                  const std::function<void(const std::vector<Tensor>&)>& seen) {
  CalibratedGraph out;
  out.graph = graph;
  HOIST_TRY(out.statistics, statistics_of(graph, sites, samples, prepare, plan, seen));
  out.factors = channel_factors(graph, out.statistics, scaling);
  if (!out.factors.empty()) {
    HOIST_TRY_VOID(scale_channels(out.graph, out.factors));
    HOIST_TRY(out.statistics,
              statistics_of(out.graph, sites, samples, prepare, plan, [](const std::vector<Tensor>&) {}));
  }
  HOIST_TRY_VOID(round_weights(out.graph, plan, out.statistics));
  return out;
}

Result<Assignment> uniform_assignment(const Graph& graph, const std::vector<Site>& sites,
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
  return Uniform(graph, sites).assign(rules);
}

}  // namespace hoist
