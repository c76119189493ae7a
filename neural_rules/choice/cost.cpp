#include "neural_rules/choice/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "neural_rules/choice/candidates.h"
#include "neural_rules/model/definition.h"

namespace hoist {
namespace {

constexpr double forbidden = std::numeric_limits<double>::infinity();

// Rules of the same cost are one kind, named after the first of them; their cost is measured by a model that has them
// everywhere.
struct Kind {
  std::string cost_class, name;
};

// Integer contractions come first: they save the most, and the time limit may end before the last kind.
std::vector<Kind> kinds_of(const Sensitivity& sensitivity) {
  std::vector<Kind> out;
  for (const SiteKind kind : {SiteKind::product, SiteKind::value, SiteKind::function}) {
    for (const SiteRule& rule : sensitivity.rules) {
      const auto same = [&](const Kind& known) { return known.cost_class == rule.cost_class; };
      if (sensitivity.sites[rule.site].kind == kind && std::none_of(out.begin(), out.end(), same))
        out.push_back({rule.cost_class, rule.rule});
    }
  }
  std::stable_partition(out.begin(), out.end(), [](const Kind& kind) { return multiplies_integers(kind.name); });
  return out;
}

// True if a site must have a rule, whose time must then be known even after the time limit.
bool is_required(const Sensitivity& sensitivity, const Kind& kind) {
  return std::any_of(sensitivity.rules.begin(), sensitivity.rules.end(), [&](const SiteRule& rule) {
    return rule.cost_class == kind.cost_class && !sensitivity.may_stay[rule.site];
  });
}

// The assignment with this kind of rule at every site that allows it, and with the rules that it requires there.
Assignment everywhere(const Sensitivity& sensitivity, const std::string& cost_class) {
  Assignment out;
  for (const SiteRule& rule : sensitivity.rules) {
    if (rule.cost_class != cost_class) continue;
    out[sensitivity.sites[rule.site].key()] = rule.rule;
    out.insert(rule.needs.begin(), rule.needs.end());
  }
  return out;
}

// The site to which a kernel's layers belong: contractions take precedence over values, since a value's format is fused
// into the contraction's kernel.
class Owners {
 public:
  explicit Owners(const Sensitivity& sensitivity) : sites_(sensitivity.sites) {
    for (const SiteRule& rule : sensitivity.rules) {
      for (const NamedCall& call : rule.change.added) added_.emplace(call.name, rule.site);
    }
  }

  size_t owner(const std::vector<std::string>& layers) const {
    for (const SiteKind kind : {SiteKind::product, SiteKind::function, SiteKind::value}) {
      for (size_t i = 0; i < sites_.size(); ++i) {
        if (sites_[i].kind == kind && std::find(layers.begin(), layers.end(), sites_[i].layer) != layers.end())
          return i;
      }
    }
    for (const std::string& layer : layers) {
      if (const auto found = added_.find(layer); found != added_.end()) return found->second;
    }
    return sites_.size();
  }

 private:
  const std::vector<Site>& sites_;
  std::map<std::string, size_t> added_;
};

std::vector<double> seconds_of_sites(const Sensitivity& sensitivity, const Owners& owners,
                                     const std::vector<StepTime>& steps) {
  std::vector<double> out(sensitivity.sites.size() + 1, 0);
  for (const StepTime& step : steps) out[owners.owner(step.layers)] += step.seconds;
  return out;
}

Result<UniformBaseline> timed(const Sensitivity& sensitivity, const PrepareModel& prepare, const Owners& owners,
                              const Kind& kind) {
  UniformBaseline out;
  out.name = kind.name;
  out.cost_class = kind.cost_class;
  if (!kind.name.empty()) out.assignment = everywhere(sensitivity, kind.cost_class);
  HOIST_TRY(RewrittenModel model, rewrite(sensitivity.program, out.assignment, sensitivity.statistics));
  HOIST_TRY(out.runnable, prepare(model));
  HOIST_TRY(const std::vector<StepTime> steps, out.runnable->step_times());
  out.site_seconds = seconds_of_sites(sensitivity, owners, steps);
  return out;
}

// Builds the solver's problem.
class Coster {
 public:
  Coster(Sensitivity& sensitivity, const std::vector<UniformBaseline>& uniform, Objective objective)
      : sensitivity_(sensitivity), uniform_(uniform), objective_(objective) {
    out_.rules.resize(sensitivity.sites.size());
    classes_[""] = "";
    for (size_t i = 0; i < sensitivity.rules.size(); ++i) {
      out_.rules[sensitivity.rules[i].site].push_back(i);
      classes_[sensitivity.rules[i].rule] = sensitivity.rules[i].cost_class;
    }
  }

  CostModel make() {
    for (size_t site = 0; site < sensitivity_.sites.size(); ++site) add_node(site);
    const std::vector<std::vector<size_t>> consumers = consumer_sites(sensitivity_.program, sensitivity_.sites);
    for (size_t site = 0; site < consumers.size(); ++site) {
      for (size_t other : consumers[site]) {
        if (sensitivity_.sites[site].kind == SiteKind::value)
          add_edge(site, other, true);
        else
          add_edge(other, site, false);
      }
    }
    out_.base = objective_ == Objective::time ? uniform_[0].seconds(sensitivity_.sites.size()) : 0;
    return std::move(out_);
  }

 private:
  // The uniform-precision model from which the rule's cost is read; "" is the unchanged model.
  const UniformBaseline* uniform(const std::string& rule) const {
    const auto known = classes_.find(rule);
    if (known == classes_.end()) return nullptr;
    const auto shows = [&](const UniformBaseline& model) { return model.cost_class == known->second; };
    const auto found = std::find_if(uniform_.begin(), uniform_.end(), shows);
    return found == uniform_.end() ? nullptr : &*found;
  }
  double seconds(const std::string& rule, size_t site) const { return uniform(rule)->seconds(site); }

  Candidate* candidate(size_t site, const std::string& rule) {
    for (Candidate& known : sensitivity_.studied[site].candidates) {
      if (known.rule == rule) return &known;
    }
    return nullptr;
  }

  void add_node(size_t site) {
    const bool by_time = objective_ == Objective::time;
    StudySite& studied = sensitivity_.studied[site];
    studied.time = uniform_[0].site_seconds[site];
    const bool is_product = studied.site.kind == SiteKind::product;
    ChoiceNode node;
    node.options.push_back(
        {by_time ? uniform_[0].seconds(site) : (is_product ? studied.bytes : 0), 0, !sensitivity_.may_stay[site]});
    for (size_t index : out_.rules[site]) {
      const SiteRule& rule = sensitivity_.rules[index];
      Candidate& found = *candidate(site, rule.rule);
      const bool known = uniform(rule.rule) != nullptr;
      if (known) found.time = uniform(rule.rule)->site_seconds[site];
      const double error = std::isnan(found.error_alone) ? found.predicted_error : found.error_alone;
      // A format that saves no bytes in the file is not an option of its own.
      const double bytes = is_product ? found.bytes : 1e-3;
      const double cost = by_time ? (known ? seconds(rule.rule, site) : 0) : bytes;
      const bool usable = std::isfinite(error) && (known || !by_time);
      node.options.push_back({cost, usable ? error : 0, !usable});
    }
    out_.problem.nodes.push_back(std::move(node));
  }

  std::string rule_of(size_t site, size_t option) const {
    return option == 0 ? "" : sensitivity_.rules[out_.rules[site][option - 1]].rule;
  }

  // The part of a kernel's format-dependent time that is due to its reads; the rest is due to its writes.
  double share_read(size_t consumer) const {
    const Site& site = sensitivity_.sites[consumer];
    const auto bytes = [&](const std::string& value) {
      const Type type = find_type(sensitivity_.program, value);
      return type == nullptr ? 1.0 : static_cast<double>(element_count(shape_of(type)));
    };
    return bytes(site.input) / std::max(1.0, bytes(site.input) + bytes(site.value));
  }

  // The kernel's time depends on the format of a value that it reads or writes.
  void add_edge(size_t value, size_t kernel, bool reads) {
    ChoiceEdge edge{value, kernel, {}};
    const double share = reads ? share_read(kernel) : 1 - share_read(kernel);
    for (size_t i = 0; i < out_.problem_options(value); ++i) {
      for (size_t j = 0; j < out_.problem_options(kernel); ++j)
        edge.cost.push_back(pair_cost(value, rule_of(value, i), kernel, rule_of(kernel, j), reads, share));
    }
    out_.problem.edges.push_back(std::move(edge));
  }

  double pair_cost(size_t value, const std::string& format, size_t kernel, const std::string& rule, bool reads,
                   double share) const {
    const auto wanted = rule.empty() ? std::nullopt : find_neural_rule(rule)->input();
    if (reads && wanted && !gives(format, *wanted)) return forbidden;
    if (objective_ == Objective::size) return 0;
    double cost = format_cost(format, kernel);
    if (wanted) {  // the rule's time was measured with all values in the format that it requires
      const UniformBaseline* model = uniform(rule);
      const auto assigned =
          model == nullptr ? Assignment::const_iterator{} : model->assignment.find(sensitivity_.sites[value].key());
      if (model != nullptr && assigned != model->assignment.end()) cost -= format_cost(assigned->second, kernel);
      if (reads) return 0;
    }
    return share * cost;
  }

  double format_cost(const std::string& format, size_t kernel) const {
    if (format.empty() || uniform(format) == nullptr) return 0;
    return seconds(format, kernel) - seconds("", kernel);
  }

  Sensitivity& sensitivity_;
  const std::vector<UniformBaseline>& uniform_;
  Objective objective_;
  std::map<std::string, std::string> classes_;  // by rule
  CostModel out_;
};

}  // namespace

double UniformBaseline::seconds_of_run() const {
  return change * std::accumulate(site_seconds.begin(), site_seconds.end(), 0.0);
}

void scale_to_runs(std::vector<UniformBaseline>& models, const std::vector<StudyPoint>& points) {
  for (UniformBaseline& model : models) {
    const auto is_timed = [&](const StudyPoint& p) { return p.assignment == model.assignment && p.is_timed(); };
    const auto found = std::find_if(points.begin(), points.end(), is_timed);
    const double seconds = model.seconds_of_run();
    if (found != points.end() && seconds > 0) model.change *= found->time.value / seconds;
  }
}

UniformBaseline unchanged_model(const Sensitivity& sensitivity, const std::vector<StepTime>& steps) {
  UniformBaseline out;
  out.site_seconds = seconds_of_sites(sensitivity, Owners(sensitivity), steps);
  return out;
}

Result<bool> add_uniform_baselines(std::vector<UniformBaseline>& models, const Sensitivity& sensitivity,
                                   const PrepareModel& prepare, const SensitivityOptions& options,
                                   const TakeUniform& take) {
  const Owners owners(sensitivity);
  bool all = true;
  std::vector<Kind> kinds = kinds_of(sensitivity);
  kinds.insert(kinds.begin(), Kind{});
  size_t begun = 0;
  for (const Kind& kind : kinds) {
    const double share = share_of_study(StudyPart::uniform_baselines, begun++, kinds.size());
    const auto same = [&](const UniformBaseline& known) { return known.cost_class == kind.cost_class; };
    if (std::any_of(models.begin(), models.end(), same)) continue;
    if (!kind.name.empty() && options.out_of_time() && !is_required(sensitivity, kind)) {
      all = false;
      continue;
    }
    options.progress(kind.name.empty() ? "timing the unchanged model" : "timing " + kind.name + " everywhere", share);
    HOIST_TRY(UniformBaseline model, timed(sensitivity, prepare, owners, kind));
    models.push_back(std::move(model));
    HOIST_TRY_VOID(take(models.back()));
    options.measured();
  }
  return all;
}

size_t CostModel::problem_options(size_t site) const { return rules[site].size() + 1; }

CostModel cost_model(Sensitivity& sensitivity, const std::vector<UniformBaseline>& uniform, Objective objective) {
  return Coster(sensitivity, uniform, objective).make();
}

Assignment assignment_of(const Sensitivity& sensitivity, const CostModel& model, const std::vector<size_t>& options) {
  Assignment out;
  for (size_t site = 0; site < options.size(); ++site) {
    if (options[site] != 0)
      out[sensitivity.sites[site].key()] = sensitivity.rules[model.rules[site][options[site] - 1]].rule;
  }
  return out;
}

std::vector<size_t> options_of(const Sensitivity& sensitivity, const CostModel& model, const Assignment& assignment) {
  std::vector<size_t> out(sensitivity.sites.size(), 0);
  for (size_t site = 0; site < out.size(); ++site) {
    const auto chosen = assignment.find(sensitivity.sites[site].key());
    if (chosen == assignment.end()) continue;
    for (size_t i = 0; i < model.rules[site].size(); ++i) {
      if (sensitivity.rules[model.rules[site][i]].rule == chosen->second) out[site] = i + 1;
    }
  }
  return out;
}

double weight_bytes(const Sensitivity& sensitivity, const Assignment& assignment) {
  double out = 0;
  for (const StudySite& studied : sensitivity.studied) {
    if (studied.site.kind != SiteKind::product) continue;
    double bytes = studied.bytes;
    if (const auto chosen = assignment.find(studied.site.key()); chosen != assignment.end()) {
      for (const Candidate& candidate : studied.candidates) {
        if (candidate.rule == chosen->second) bytes = candidate.bytes;
      }
    }
    out += bytes;
  }
  return out;
}

}  // namespace hoist
