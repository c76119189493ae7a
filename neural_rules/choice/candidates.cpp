#include "neural_rules/choice/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "ir/base/cancellation.h"
#include "ir/base/threads.h"
#include "neural_rules/formats/formats.h"
#include "neural_rules/formats/product_weights.h"
#include "neural_rules/model/flow.h"

namespace hoist {
namespace {

// The family of each value that is stored between layers.
std::map<std::string, std::string> family_names(const Program& program) {
  std::map<std::string, std::string> out;
  for (const ValueFamily& family : value_families(program, flow_of(program))) {
    for (const std::string& member : family.members) out[member] = family.name;
  }
  return out;
}

std::string family_of(const std::map<std::string, std::string>& families, const std::string& value) {
  const auto found = families.find(value);
  return found == families.end() ? "" : found->second;
}

size_t site_of_family(const std::vector<Site>& sites, const std::string& family) {
  const auto is_it = [&](const Site& site) { return site.kind == SiteKind::value && site.value == family; };
  return static_cast<size_t>(std::find_if(sites.begin(), sites.end(), is_it) - sites.begin());
}

// The value that the layer's kernel writes: elementwise layers are fused into the kernel.
std::string made_family(const Flow& flow, const std::map<std::string, std::string>& families, std::string value) {
  for (size_t steps = 0; steps < flow.calls.size(); ++steps) {
    if (std::string family = family_of(families, value); !family.empty()) return family;
    const auto consumers = flow.consumers.find(value);
    if (consumers == flow.consumers.end()) return "";
    const auto joins = [&](size_t consumer) {
      const LayerKind kind = flow.kinds[consumer];
      return kind == LayerKind::elementwise || kind == LayerKind::view;
    };
    const auto next = std::find_if(consumers->second.begin(), consumers->second.end(), joins);
    if (next == consumers->second.end()) return "";
    value = flow.calls[*next].outputs[0];
  }
  return "";
}

Result<Nothing> check_arithmetic(const Preferences& preferences, const DeviceArithmetic& device) {
  Diagnostics problems;
  for (const Preference& statement : preferences.statements) {
    const NeuralRule* rule = find_neural_rule(statement.rule);
    if (rule == nullptr || device.has(rule->arithmetic()) || statement.wish == Wish::forbid) continue;
    problems.push_back(
        {fmt::format("{}:{}", preferences.where, statement.line),
         fmt::format("rule {} needs arithmetic in {}, which the device lacks", statement.rule,
                     row(*rule->arithmetic()).name),
         "hoist devices and hoist profiles list the features of devices; hoist export --rule needs none"});
  }
  if (!problems.empty()) return problems;
  return Nothing{};
}

// The first of the rules that stores in the format, or null.
const std::string* has_format(const std::vector<std::string>& rules, Scalar wanted) {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const std::string& rule) { return gives(rule, wanted); });
  return found == rules.end() ? nullptr : &*found;
}

// The formats of a value that the preferences allow.
std::string left_at(const Site& site, const AllowedRules& allowed) {
  if (allowed.rules.empty()) return site.key() + " stays unchanged";
  return fmt::format("{} is left {}", site.key(), fmt::join(allowed.rules, ", "));
}

}  // namespace

Result<CandidateRules> candidate_rules(const Program& program, const std::vector<Site>& sites,
                                       const Preferences& preferences, const DeviceArithmetic& device) {
  HOIST_TRY_VOID(check_arithmetic(preferences, device));
  std::vector<SiteCandidates> possible;
  for (const Site& site : sites) {
    SiteCandidates candidates{&site, {}};
    for (const NeuralRule& rule : neural_rules()) {
      if (rule.kind == site.kind && device.has(rule.arithmetic()) && !why_not(rule, site, program))
        candidates.rules.emplace_back(rule.name);
    }
    possible.push_back(std::move(candidates));
  }
  const std::map<std::string, std::string> families = family_names(program);
  const auto input_of = [&](size_t site) { return site_of_family(sites, family_of(families, sites[site].input)); };
  const std::vector<SiteCandidates> formats = possible;
  for (size_t i = 0; i < sites.size(); ++i) {
    std::erase_if(possible[i].rules, [&](const std::string& rule) {
      const auto wanted = find_neural_rule(rule)->input();
      if (!wanted) return false;
      const size_t input = input_of(i);
      return input == sites.size() || !has_format(formats[input].rules, *wanted);
    });
  }
  HOIST_TRY(std::vector<AllowedRules> allowed, apply_preferences(preferences, possible, neural_rules()));
  CandidateRules out;
  out.rules.resize(sites.size());
  Diagnostics problems;
  for (size_t i = 0; i < sites.size(); ++i) {
    out.may_stay.push_back(allowed[i].unchanged);
    for (const std::string& name : allowed[i].rules) {
      CandidateRule candidate{name, {}};
      if (const auto wanted = find_neural_rule(name)->input()) {
        const size_t input = input_of(i);
        const std::string* format = has_format(allowed[input].rules, *wanted);
        if (format == nullptr) {
          if (!allowed[i].unchanged)
            problems.push_back(
                {preferences.where,
                 fmt::format("{} is pinned to {}, which needs {} in {}; {}", sites[i].key(), name, sites[input].value,
                             row(*wanted).name, left_at(sites[input], allowed[input])),
                 "change one of the two"});
          continue;
        }
        candidate.needs[sites[input].key()] = *format;
      }
      out.rules[i].push_back(std::move(candidate));
    }
  }
  if (!problems.empty()) return problems;
  return out;
}

size_t input_site(const Program& program, const std::vector<Site>& sites, const Site& product) {
  return site_of_family(sites, family_of(family_names(program), product.input));
}

std::vector<std::vector<size_t>> consumer_sites(const Program& program, const std::vector<Site>& sites) {
  const std::map<std::string, std::string> families = family_names(program);
  const Flow flow = flow_of(program);
  std::vector<std::vector<size_t>> out(sites.size());
  for (size_t i = 0; i < sites.size(); ++i) {
    const Site& site = sites[i];
    if (site.kind != SiteKind::value) {
      const size_t made = site_of_family(sites, made_family(flow, families, site.value));
      if (made != sites.size()) out[i].push_back(made);
      continue;
    }
    for (size_t k = 0; k < sites.size(); ++k) {
      if (sites[k].kind != SiteKind::value && family_of(families, sites[k].input) == site.value) out[i].push_back(k);
    }
  }
  return out;
}

namespace {

constexpr const char* blocks_class = "blocks";

struct Weight {
  std::string cost_class;
  double bytes = 0;
};

Weight weight_of(const Program& program, const Site& site, const std::string& rule) {
  if (site.kind == SiteKind::function) return {rule, 0};
  if (site.kind == SiteKind::value) {
    const ValueFormat& format = *find_value_format(rule);
    const std::vector<int64_t> shape = shape_of(find_type(program, site.value));
    const auto bytes = static_cast<double>(byte_size(format.scalar, shape));
    if (format.block != 0) return {blocks_class, bytes + bytes / static_cast<double>(format.block) * 4};
    // Formats of contractions that require an input of their own kind are not merged.
    const std::string type(row(format.scalar).name);
    return {is_float(format.scalar) ? std::to_string(row(format.scalar).bits) : type, bytes};
  }
  const ProductScheme& scheme = *find_scheme(rule);
  const WeightFormat& format = scheme.weights;
  const Tensor& weights = program.constants.at(site.weights);
  const Product product = *product_of(program, *find_layer(program, site.layer));
  const auto scales = static_cast<double>(layout_of(product, format).count) * 4;
  const double bytes = static_cast<double>(weights.size()) * static_cast<double>(row(format.scalar).bits) / 8;
  return {(scheme.half ? "half product " : "product ") + std::string(scheme.input ? row(*scheme.input).name : "") +
              " " + std::to_string(static_cast<int>(scheme.activation)) + " " + std::to_string(row(format.scalar).bits),
          bytes + (is_float(format.scalar) && row(format.scalar).bits == 16 ? 0 : scales)};
}

void keep_least_noise(std::vector<WeighedRule>& rules) {
  for (size_t i = 0; i < rules.size(); ++i) {
    bool beaten = false;
    for (size_t k = 0; k < rules.size(); ++k) {
      if (k == i || rules[k].cost_class != rules[i].cost_class) continue;
      beaten = beaten || rules[k].predicted_noise < rules[i].predicted_noise ||
               (rules[k].predicted_noise == rules[i].predicted_noise && k < i);
    }
    rules[i].kept = !beaten;
  }
}

// Blocks need separate kernels, so they are considered only if no smaller format is as accurate.
void drop_blocks(std::vector<WeighedRule>& rules) {
  for (WeighedRule& blocks : rules) {
    if (blocks.cost_class != blocks_class) continue;
    const auto beats = [&](const WeighedRule& other) {
      return other.bytes < blocks.bytes && other.predicted_noise <= blocks.predicted_noise;
    };
    if (std::any_of(rules.begin(), rules.end(), beats)) blocks.kept = false;
  }
}

// A contraction's rule is dropped if the format that it reads was not kept for its input.
void match_needs(const std::vector<Site>& sites, std::vector<std::vector<WeighedRule>>& rules) {
  for (std::vector<WeighedRule>& at_site : rules) {
    for (WeighedRule& rule : at_site) {
      const auto wanted = find_neural_rule(rule.candidate.rule)->input();
      for (auto& [key, format] : rule.candidate.needs) {
        const auto is_input = [&, name = key](const Site& site) { return site.key() == name; };
        const auto input = std::find_if(sites.begin(), sites.end(), is_input) - sites.begin();
        const std::vector<WeighedRule>& formats = rules[static_cast<size_t>(input)];
        const auto fits = [&](const WeighedRule& f) { return f.kept && gives(f.candidate.rule, *wanted); };
        const auto found = std::find_if(formats.begin(), formats.end(), fits);
        if (found == formats.end())
          rule.kept = false;
        else
          format = found->candidate.rule;
      }
    }
  }
}

WeighedRule sized(const Program& program, const Site& site, const CandidateRule& candidate) {
  const Weight weight = weight_of(program, site, candidate.rule);
  return {candidate, std::nan(""), weight.bytes, weight.cost_class, true};
}

struct WeighTask {
  size_t site = 0;
  const CandidateRule* candidate = nullptr;
  std::optional<WeighedRule> weighed = {};

  // Noise of values follows from their histograms.
  bool packs_weights(const std::vector<Site>& sites) const { return sites[site].kind == SiteKind::product; }
};

}  // namespace

std::vector<std::vector<WeighedRule>> weigh_rules(const Program& program, const std::vector<Site>& sites,
                                                  const CandidateRules& candidates, const Statistics& statistics,
                                                  const std::function<bool()>& out_of_time) {
  std::vector<WeighTask> tasks;
  for (size_t i = 0; i < sites.size(); ++i) {
    for (const CandidateRule& candidate : candidates.rules[i]) tasks.push_back({i, &candidate});
  }
  std::vector<WeighTask*> order;
  for (WeighTask& task : tasks) order.push_back(&task);
  std::stable_partition(order.begin(), order.end(), [&](const WeighTask* task) {
    return !task->packs_weights(sites) || multiplies_integers(task->candidate->rule);
  });
  const auto is_over = latched(out_of_time);
  for_each_in_threads(order.size(), [&](size_t i) {
    cancellation_point();
    WeighTask& task = *order[i];
    const Site& site = sites[task.site];
    WeighedRule weighed = sized(program, site, *task.candidate);
    const bool is_late = task.packs_weights(sites) && candidates.may_stay[task.site] && is_over();
    if (site.kind != SiteKind::function && !is_late) {
      const auto noise = predicted_noise(program, site, *find_neural_rule(task.candidate->rule), statistics);
      if (!noise) return;
      weighed.predicted_noise = *noise;
    }
    task.weighed = std::move(weighed);
  });
  std::vector<std::vector<WeighedRule>> out(sites.size());
  for (WeighTask& task : tasks) {
    if (task.weighed) out[task.site].push_back(std::move(*task.weighed));
  }
  for (std::vector<WeighedRule>& rules : out) {
    keep_least_noise(rules);
    drop_blocks(rules);
  }
  match_needs(sites, out);
  return out;
}

}  // namespace hoist
