#include "neural_rules/rewrite/rewrite_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/text/parse/near_miss.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/functions/sums.h"
#include "neural_rules/model/flow.h"
#include "neural_rules/rewrite/format_rules.h"

namespace hoist {
namespace {

class ModelRewriter {
 public:
  ModelRewriter(const Program& program, const Statistics& statistics, StraightThrough* straight_through)
      : program_(program),
        statistics_(statistics),
        straight_through_(straight_through),
        flow_(flow_of(program)),
        families_(value_families(program, flow_)),
        sites_(find_sites(program)),
        names_(program) {}

  Result<RewrittenModel> run(const Assignment& assignment) {
    choose(assignment);
    if (problems_.empty()) plan_values();
    if (problems_.empty()) check_inputs();
    if (!problems_.empty()) return problems_;
    model_.program = program_;
    if (chosen_.empty()) return std::move(model_);
    store_values();
    for (const NamedCall& layer : flow_.calls) {
      if (straight_through_ == nullptr) move(layer);
    }
    for (const NamedCall& layer : flow_.calls) change_product(layer);
    if (!problems_.empty()) return problems_;
    list_layers();
    record();
    return std::move(model_);
  }

 private:
  struct Choice {
    const NeuralRule* rule = nullptr;
    RuleUse use;

    std::string note() const {
      return use.parameters + (use.parameters.empty() || use.proof.empty() ? "" : "; ") + use.proof;
    }
  };

  // The storage format of the values of one family.
  struct StoredFamily {
    const ValueFamily* family = nullptr;
    const Choice* choice = nullptr;
    ProgramArguments arguments = {};  // scale and zero point, shared by all values
    std::optional<Range> range = {};
  };

  static std::string proof_of(const NeuralRule& rule) {
    const auto certificate = certificate_of(rule.name);
    return certificate ? promise_of(*certificate) : "";
  }

  void choose(const Assignment& assignment) {
    std::map<std::string, const Site*> by_key;
    std::vector<std::string> keys, rules;
    for (const Site& site : sites_) {
      by_key[site.key()] = &site;
      keys.push_back(site.key());
    }
    for (const NeuralRule& rule : neural_rules()) rules.emplace_back(rule.name);
    for (const auto& [key, name] : assignment) {
      auto site = by_key.find(key);
      const NeuralRule* rule = find_neural_rule(name);
      if (site == by_key.end()) {
        problems_.push_back({key, "is not a site of the model", did_you_mean(key, keys)});
      } else if (rule == nullptr) {
        problems_.push_back({key, "unknown rule " + name, did_you_mean(name, rules)});
      } else if (auto reason = why_not(*rule, *site->second, program_)) {
        problems_.push_back({key, fmt::format("{} does not apply: {}", name, *reason), ""});
      } else {
        chosen_[key] = {rule, {key, site->second->layer, name, "", 0, ""}};
        if (rule->kind == SiteKind::function) chosen_[key].use.proof = proof_of(*rule);
      }
    }
  }

  const ValueStatistics* statistics_of(const std::string& value) {
    auto found = statistics_.find(value);
    if (found != statistics_.end()) return &found->second;
    problems_.push_back({value, "there are no statistics of this value", "calibrate the model first"});
    return nullptr;
  }

  void plan_values() {
    for (const ValueFamily& family : families_) {
      auto place = chosen_.find(site_key(SiteKind::value, family.name));
      if (place == chosen_.end()) continue;
      Choice& choice = place->second;
      const ValueFormat& format = *choice.rule->stored;
      const bool needed = choice.rule->calibrated;
      const ValueStatistics* seen = needed ? statistics_of(family.name) : nullptr;
      if (needed && seen == nullptr) continue;
      StoredFamily stored{&family, &choice};
      if (needed) {
        const Grid grid = grid_of(format, *seen);
        stored.range = range_of(grid);
        describe(grid, *seen, choice);
        if (grid.scaled) {
          stored.arguments["scale"] = {
              names_.make(family.name + "/scale"), Tensor::of<float>(Scalar::f32, {}, {grid.scale}), {}};
          stored.arguments["zero_point"] = {
              names_.make(family.name + "/zero_point"), Tensor::of<int64_t>(grid.scalar, {}, {grid.zero_point}), {}};
        }
      }
      stored_.push_back(std::move(stored));
    }
  }

  void describe(const Grid& grid, const ValueStatistics& seen, Choice& choice) {
    choice.use.clipped_share = clipped_share(seen, range_of(grid));
    if (grid.scaled)
      choice.use.parameters = fmt::format("scale = {:.6g}, zero point = {}", grid.scale, grid.zero_point);
    if (grid.scalar != Scalar::f16) return;
    const double largest = std::max(-seen.low, seen.high);
    // Twice the largest number of calibration has to fit, since other data may be larger.
    if (largest >= largest_of(Scalar::f16) / 2) {
      problems_.push_back({choice.use.site, fmt::format("f16 does not apply: the largest magnitude is {}", largest),
                           "bf16 has the range of f32"});
    }
    choice.use.proof = fmt::format("largest magnitude {:.4g} on {} elements, f16 ends at 65504", largest, seen.count);
  }

  StoredFamily* stored_as(const std::string& value) {
    for (StoredFamily& stored : stored_) {
      if (stored.family->members.count(value) != 0) return &stored;
    }
    return nullptr;
  }

  // Such contractions need their activation in the format that they read.
  void check_inputs() {
    for (const Site& site : sites_) {
      auto place = chosen_.find(site.key());
      if (place == chosen_.end() || !place->second.rule->input()) continue;
      const NeuralRule& rule = *place->second.rule;
      const Scalar wanted = *rule.input();
      const StoredFamily* stored = stored_as(site.input);
      if (stored != nullptr && gives(stored->choice->rule->name, wanted)) continue;
      problems_.push_back({site.key(),
                           fmt::format("{} reads {}, which is stored as {}", rule.name, site.input,
                                       stored == nullptr ? "f32" : stored->choice->rule->name),
                           fmt::format("choose a rule {} for the value", row(wanted).name)});
    }
  }

  void store(StoredFamily& stored, const std::string& value) {
    const bool is_scaled = stored.arguments.count("scale") != 0;
    for (const StatedGradient& stated : apply(*stored.choice, value, stored.arguments))
      straight_through_->values.push_back({stated.value, stated.of,
                                           stated.is_clipped ? stored.range : std::optional<Range>(),
                                           is_scaled ? stored.arguments.at("scale").name : "",
                                           is_scaled ? stored.arguments.at("zero_point").name : ""});
    for (auto& [name, argument] : stored.arguments)
      argument.value.reset();  // the program contains the constant from here on
    small_.insert(value);
  }

  // The last value comes first: the stored form is directly after the layer that makes it.
  void store_values() {
    for (auto stored = stored_.rbegin(); stored != stored_.rend(); ++stored) {
      const std::vector<std::string>& sources = stored->family->sources;
      for (auto source = sources.rbegin(); source != sources.rend(); ++source) store(*stored, *source);
    }
  }

  // Returns the gradients of the added values, if wanted.
  std::vector<StatedGradient> apply(const Choice& choice, const std::string& value, const ProgramArguments& arguments) {
    std::vector<StatedGradient> stated;
    const auto applied = apply_format(choice.rule->name, model_.program, value, arguments,
                                      straight_through_ == nullptr ? nullptr : &stated);
    if (applied.ok() && *applied)
      model_.program.steps.back().note = choice.note();
    else
      problems_.push_back({choice.use.site, fmt::format("{} does not apply at {}", choice.rule->name, value),
                           applied.ok() ? "" : applied.errors()[0].text()});
    return stated;
  }

  // Layers that only move numbers of a stored family do so in its format, if the standard supports them for its type.
  void move(const NamedCall& layer) {
    const std::string& value = layer.outputs[0];
    if (value.empty() || small_.count(value) != 0 || stored_as(value) == nullptr) return;
    const std::string& defined = program_.definitions[flow_.places[flow_.producer.at(value)]].value;
    if (move_before_dequantise(model_.program, defined)) small_.insert(layer.outputs.begin(), layer.outputs.end());
  }

  void change_product(const NamedCall& layer) {
    const auto place = chosen_.find(site_key(SiteKind::product, layer.name));
    if (place == chosen_.end()) return;
    Choice& choice = place->second;
    const ProductScheme& scheme = *choice.rule->product;
    const Definition& definition = *find_layer(program_, layer.name);
    auto prepared = prepare_product(program_, definition, *choice.rule, statistics_);
    if (!prepared) {
      problems_.insert(problems_.end(), prepared.errors().begin(), prepared.errors().end());
      return;
    }
    const auto& [product, packed, bias] = *prepared;
    // A layer that only moves elements has made the value from elements on the grid, so rounding changes none of them;
    // contractions that read a stored type require the dequantising layer directly before them.
    if (scheme.input && small_.count(product.input) == 0) store(*stored_as(product.input), product.input);
    choice.use.parameters = fmt::format("{} scales, {} bytes", packed.scales.size(), byte_size(packed));
    if (scheme.half) check_sums(product, packed, choice);
    if (scheme.activation != ActivationUse::as_is) {
      const double magnitude = largest_activation(scheme);
      choice.use.proof = fmt::format("sums stay below 2^31: {:.3g}", magnitude * largest_sum(product, packed));
    }
    for (const StatedGradient& stated : apply(choice, definition.value, arguments_of(*prepared))) {
      if (stated.of == product.weights)
        straight_through_->weights.push_back(
            {layer.name, stated.value, *prepared,
             scheme.activation == ActivationUse::as_is ? 0 : largest_activation(scheme), stated.is_clipped});
      else
        straight_through_->values.push_back({stated.value, stated.of, std::nullopt, "", ""});
    }
  }

  // Sums of magnitudes bound every partial sum. Twice the largest input of calibration has to fit.
  void check_sums(const Product& product, const PackedWeights& packed, Choice& choice) {
    const ValueStatistics* seen = statistics_of(product.input);
    if (seen == nullptr) return;
    const double largest = std::max(-seen->low, seen->high) * largest_sum(product, packed);
    if (largest >= largest_of(Scalar::f16) / 2) {
      problems_.push_back({choice.use.site,
                           fmt::format("{} does not apply: sums reach {:.4g}, f16 ends at 65504", half_rule, largest),
                           ""});
    }
    choice.use.proof = fmt::format("sums stay below {:.4g} on {} elements, f16 ends at 65504", largest, seen->count);
  }

  // The model's calls, and the added calls at their places.
  void list_layers() {
    std::map<std::string, std::string> operations;
    for (const ModelLayer& layer : program_.layers) operations[layer.name] = layer.operation;
    std::vector<ModelLayer> layers;
    std::set<std::string> listed;
    const auto list = [&](const std::string& name, const std::string& operation) {
      if (listed.insert(name).second) layers.push_back({name, operation});
    };
    for (const std::string& layer : program_.evaluated) list(layer, operations[layer]);
    for (const Definition& definition : model_.program.definitions) {
      if (definition.expression->pattern != Pattern::operator_call) continue;
      for (const std::string& layer : definition.layers) {
        const auto known = operations.find(layer);
        list(layer, known != operations.end() ? known->second : definition.expression->operation->name);
      }
    }
    model_.program.layers = std::move(layers);
  }

  void record() {
    for (const Site& site : sites_) {
      auto place = chosen_.find(site.key());
      if (place == chosen_.end()) continue;
      const RuleUse& use = place->second.use;
      model_.uses.push_back(use);
      // under_functions() selects the terms of the layer that it concerns.
      if (site.kind == SiteKind::function || place->second.rule->half()) model_.functions[site.layer] = use.rule;
    }
  }

  const Program& program_;
  const Statistics& statistics_;
  StraightThrough* straight_through_;  // null: not wanted
  Flow flow_;
  std::vector<ValueFamily> families_;
  std::vector<Site> sites_;
  std::map<std::string, Choice> chosen_;  // by site
  std::vector<StoredFamily> stored_;
  ValueNames names_;
  std::set<std::string> small_;  // values that are stored in a small format, including moved ones
  Diagnostics problems_;
  RewrittenModel model_;
};

}  // namespace

Result<RewrittenModel> rewrite(const Program& program, const Assignment& assignment, const Statistics& statistics,
                               StraightThrough* straight_through) {
  return ModelRewriter(program, statistics, straight_through).run(assignment);
}

}  // namespace hoist
