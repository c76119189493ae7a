#include "neural_rules/candidates.h"

#include <algorithm>
#include <map>

#include "neural_rules/flow.h"
#include "neural_rules/formats.h"

namespace hoist {
namespace {

// The family of each value that is stored between layers.
std::map<std::string, std::string> family_names(const Graph& graph) {
  std::map<std::string, std::string> out;
  for (const ValueFamily& family : value_families(graph, flow_of(graph))) {
    for (const std::string& member : family.members) out[member] = family.name;
  }
  return out;
}

std::string family_of(const std::map<std::string, std::string>& families, const std::string& value) {
  const auto place = families.find(value);
  return place == families.end() ? "" : place->second;
}

size_t site_of_family(const std::vector<Site>& sites, const std::string& family) {
  const auto is_it = [&](const Site& site) { return site.kind == SiteKind::value && site.value == family; };
  return static_cast<size_t>(std::find_if(sites.begin(), sites.end(), is_it) - sites.begin());
}

// The value that the layer's kernel writes: layers that only work on single elements join it.
std::string made_family(const Graph& graph, const Flow& flow, const std::map<std::string, std::string>& families,
                        std::string value) {
  for (size_t steps = 0; steps < graph.layers.size(); ++steps) {
    if (const std::string family = family_of(families, value); !family.empty()) return family;
    const auto readers = flow.readers.find(value);
    if (readers == flow.readers.end()) return "";
    const auto joins = [&](size_t reader) {
      const LayerKind kind = kind_of(graph.layers[reader]);
      return kind == LayerKind::elementwise || kind == LayerKind::view;
    };
    const auto next = std::find_if(readers->second.begin(), readers->second.end(), joins);
    if (next == readers->second.end()) return "";
    value = graph.layers[*next].outputs[0];
  }
  return "";
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Result<CandidateRules> candidate_rules(const Graph& graph, const std::vector<Site>& sites,
                                       const Preferences& preferences) {
  std::vector<SiteCandidates> possible;
  for (const Site& site : sites) {
    SiteCandidates candidates{&site, {}};
    for (const NeuralRule& rule : neural_rules()) {
      if (rule.kind == site.kind && !why_not(rule, site, graph)) candidates.rules.emplace_back(rule.name);
    }
    possible.push_back(std::move(candidates));
  }
  HOIST_TRY(std::vector<AllowedRules> allowed, apply_preferences(preferences, possible, neural_rules()));
  const std::map<std::string, std::string> families = family_names(graph);
  CandidateRules out;
  out.rules.resize(sites.size());
  for (size_t i = 0; i < sites.size(); ++i) {
    out.may_stay.push_back(allowed[i].unchanged);
    for (const std::string& name : allowed[i].rules) {
      CandidateRule candidate{name, {}};
      const std::string_view wanted = find_neural_rule(name)->input_format;
      if (!wanted.empty()) {
        const size_t input = site_of_family(sites, family_of(families, sites[i].input));
        if (input == sites.size()) continue;
        const auto gives = [&](const std::string& rule) {
          return find_value_format(rule) != nullptr && rule.starts_with(wanted);
        };
        const auto format = std::find_if(allowed[input].rules.begin(), allowed[input].rules.end(), gives);
        if (format == allowed[input].rules.end()) continue;
        candidate.needs[sites[input].key()] = *format;
      }
      out.rules[i].push_back(std::move(candidate));
    }
  }
  return out;
}

size_t input_site(const Graph& graph, const std::vector<Site>& sites, const Site& product) {
  return site_of_family(sites, family_of(family_names(graph), product.input));
}

std::vector<std::vector<size_t>> reader_sites(const Graph& graph, const std::vector<Site>& sites) {
  const std::map<std::string, std::string> families = family_names(graph);
  const Flow flow = flow_of(graph);
  std::vector<std::vector<size_t>> out(sites.size());
  for (size_t i = 0; i < sites.size(); ++i) {
    const Site& site = sites[i];
    if (site.kind != SiteKind::value) {
      const size_t made = site_of_family(sites, made_family(graph, flow, families, site.value));
      if (made != sites.size()) out[i].push_back(made);
      continue;
    }
    for (size_t k = 0; k < sites.size(); ++k) {
      if (sites[k].kind != SiteKind::value && family_of(families, sites[k].input) == site.value) out[i].push_back(k);
    }
  }
  return out;
}

double bytes_under(const Graph& graph, const Site& site, const SiteRule& rule) {
  if (site.kind == SiteKind::function) return 0;
  if (site.kind == SiteKind::value) {
    const ValueFormat* format = find_value_format(rule.rule);
    const ValueInfo& value = graph.inferred.at(site.value);
    return static_cast<double>(byte_size(format == nullptr ? value.scalar : format->scalar, value.shape));
  }
  double bytes = 0;
  for (const auto& [name, tensor] : rule.whole.constants) {
    const auto reads = [&](const Layer& layer) { return contains(layer.inputs, name); };
    const bool stays = std::any_of(rule.change.added.begin(), rule.change.added.end(), reads);
    if (stays && !tensor.shape().empty()) bytes += static_cast<double>(byte_size(tensor.scalar(), tensor.shape()));
  }
  return bytes;
}

}  // namespace hoist
