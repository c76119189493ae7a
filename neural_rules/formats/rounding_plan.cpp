#include "neural_rules/formats/rounding_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "neural_rules/formats/product_weights.h"
#include "neural_rules/model/definition.h"

namespace hoist {
namespace {

// Measured work in multiplications, relative to terms^2: per channel and rule for predicting the noise; per channel and
// rule for rounding in several sweeps; per term for inverting the moments.
constexpr double prediction_work = 1, sweeps_work = 6, inverse_work = 0.3;
constexpr double work_a_second = 1e9;

struct LayerSize {
  double terms = 0, channels = 0, groups = 1;
  int64_t samples = 0, windows = 0;  ///< windows per sample: positions in a feature map, or rows
  double rules = 0, rounded = 0;     ///< candidate rules; candidates that round with data

  int64_t entries() const { return static_cast<int64_t>(groups * terms * terms); }
  double vector_work() const { return groups * terms * terms / 2; }
  double rounding_work() const {
    const double channel = rules * prediction_work + rounded * sweeps_work;
    return terms * terms * (channels * channel + groups * terms * rounded * inverse_work);
  }
};

bool rounds_with_data(const CandidateRule& candidate) {
  const ProductScheme* scheme = find_scheme(candidate.rule);
  return scheme != nullptr && scheme->adaptive;
}

LayerSize size_of(const Program& program, const Definition& layer, size_t runs) {
  const Product product = *product_of(program, layer);
  LayerSize out;
  out.terms = static_cast<double>(product.terms());
  out.channels = static_cast<double>(product.channels());
  out.groups = static_cast<double>(product.groups);
  const std::vector<int64_t> shape = shape_of(layer.expression->type);
  const int64_t batch = shape.size() < 2 ? 1 : std::max<int64_t>(shape[0], 1);
  out.samples = batch * static_cast<int64_t>(runs);
  out.windows = std::max<int64_t>(element_count(shape) / (batch * product.channels()), 1);
  return out;
}

struct Considered {
  PlannedRounding planned;
  LayerSize size;
  bool has_to = false;  ///< the layer must not stay unchanged
};

// Sets the number of windows. Returns the work, or nothing if the layer takes too long.
std::optional<double> fit(Considered& layer) {
  const LayerSize& size = layer.size;
  const auto work = [&] {
    const int64_t vectors = size.samples * std::min(size.windows, layer.planned.windows);
    return size.rounding_work() + size.vector_work() * static_cast<double>(vectors);
  };
  if (layer.has_to || work() <= most_layer_seconds * work_a_second) return work();
  const double left = (most_layer_seconds * work_a_second - size.rounding_work()) / size.vector_work();
  const double windows = left / static_cast<double>(size.samples);
  if (windows < 1 || left < size.terms) return std::nullopt;
  layer.planned.windows = static_cast<int64_t>(windows);
  return work();
}

}  // namespace

RoundingPlan plan_rounding(const Program& program, const std::vector<Site>& sites, const CandidateRules& candidates,
                           size_t runs, double seconds) {
  std::vector<Considered> considered;
  for (size_t i = 0; i < sites.size(); ++i) {
    Considered layer;
    for (const CandidateRule& candidate : candidates.rules[i]) {
      if (rounds_with_data(candidate)) layer.planned.rules.push_back(candidate.rule);
    }
    if (layer.planned.rules.empty()) continue;
    layer.planned.layer = sites[i].layer;
    layer.size = size_of(program, *find_layer(program, sites[i].layer), runs);
    layer.size.rules = static_cast<double>(candidates.rules[i].size());
    layer.size.rounded = static_cast<double>(layer.planned.rules.size());
    layer.has_to = !candidates.may_stay[i];
    considered.push_back(std::move(layer));
  }
  std::stable_sort(considered.begin(), considered.end(), [](const Considered& a, const Considered& b) {
    return a.has_to != b.has_to ? a.has_to : a.size.terms < b.size.terms;
  });
  RoundingPlan plan;
  double work = 0;
  int64_t entries = 0;
  for (Considered& layer : considered) {
    const std::optional<double> more = fit(layer);
    const bool fits =
        more && work + *more <= seconds * work_a_second && entries + layer.size.entries() <= most_second_moments;
    if (!fits && !layer.has_to) continue;
    work += *more;
    entries += layer.size.entries();
    plan.layers.push_back(std::move(layer.planned));
  }
  if (plan.layers.size() < considered.size()) {
    plan.notes.push_back(fmt::format(
        "the weights of {} of {} layers are rounded without data: with data they would need too much time or memory",
        considered.size() - plan.layers.size(), considered.size()));
  }
  return plan;
}

Result<Nothing> round_weights(const Program& program, const RoundingPlan& plan, Statistics& statistics) {
  for (const PlannedRounding& planned : plan.layers) {
    const Definition& layer = *find_layer(program, planned.layer);
    for (const std::string& rule : planned.rules) {
      HOIST_TRY(const PreparedProduct prepared, prepare_product(program, layer, *find_neural_rule(rule), statistics));
      statistics.at(prepared.product.input).rounded[planned.layer][rule] =
          std::make_shared<const Tensor>(prepared.packed.numbers);
    }
  }
  return Nothing{};
}

void drop_second_moments(Statistics& statistics) {
  for (auto& [value, of] : statistics) of.second_moments.clear();
}

void keep_rounded(const Assignment& assignment, Statistics& statistics) {
  for (auto& [value, of] : statistics) {
    for (auto& [layer, rules] : of.rounded) {
      const auto chosen = assignment.find(site_key(SiteKind::product, layer));
      std::erase_if(rules,
                    [&](const auto& known) { return chosen == assignment.end() || chosen->second != known.first; });
    }
    std::erase_if(of.rounded, [](const auto& layer) { return layer.second.empty(); });
  }
}

}  // namespace hoist
