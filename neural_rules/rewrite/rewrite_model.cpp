#include "neural_rules/rewrite/rewrite_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/text/near_miss.h"
#include "neural_rules/formats/product_weights.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/functions/sums.h"
#include "neural_rules/rewrite/rewrite_values.h"

namespace hoist {
namespace {

class ModelRewriter {
 public:
  ModelRewriter(const Program& program, const Statistics& statistics)
      : program_(program),
        statistics_(statistics),
        flow_(flow_of(program)),
        families_(value_families(program, flow_)),
        sites_(find_sites(program)) {}

  Result<RewrittenModel> run(const Assignment& assignment) {
    choose(assignment);
    if (problems_.empty()) plan_values();
    if (problems_.empty()) check_inputs();
    if (!problems_.empty()) return problems_;
    model_.program = program_;
    if (chosen_.empty()) return std::move(model_);
    ValueWriter writer(program_, flow_, stored_);
    writer.store_inputs();
    for (const NamedCall& layer : flow_.calls) {
      if (!writer.move(layer)) writer.write(rewritten(layer, writer));
    }
    if (!problems_.empty()) return problems_;
    model_.program.constants.insert(writer.constants().begin(), writer.constants().end());
    HOIST_TRY(model_.program, with_calls(model_.program, writer.calls()));
    record();
    return std::move(model_);
  }

 private:
  struct Choice {
    const NeuralRule* rule = nullptr;
    RuleUse use;
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
        problems_.push_back({key, "is no site of the model", did_you_mean(key, keys)});
      } else if (rule == nullptr) {
        problems_.push_back({key, "there is no rule " + name, did_you_mean(name, rules)});
      } else if (auto reason = why_not(*rule, *site->second, program_)) {
        problems_.push_back({key, fmt::format("{} does not apply: {}", name, *reason), ""});
      } else {
        chosen_[key] = {rule, {key, site->second->layer, name, "", 0, ""}};
        if (rule->kind == SiteKind::function) chosen_[key].use.proof = proof_of(*rule);
      }
    }
  }

  static std::string did_you_mean(const std::string& word, const std::vector<std::string>& words) {
    const std::string near = near_miss(word, words);
    return near.empty() ? "" : "did you mean " + near + "?";
  }

  const ValueStatistics* statistics_of(const std::string& value) {
    auto place = statistics_.find(value);
    if (place != statistics_.end()) return &place->second;
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
      StoredFamily stored{&family, choice.rule, Grid{format.scalar, format.block != 0, 1, 0}};
      if (needed) {
        stored.grid = grid_of(format, *seen);
        describe(stored.grid, *seen, choice);
      }
      stored_.push_back(stored);
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
    choice.use.proof = fmt::format("largest magnitude {:.4g} on {} numbers, f16 ends at 65504", largest, seen.count);
  }

  const StoredFamily* stored_as(const std::string& value) const {
    for (const StoredFamily& stored : stored_) {
      if (stored.family->members.count(value) != 0) return &stored;
    }
    return nullptr;
  }

  // Integer products need their activation in the format that they read.
  void check_inputs() {
    for (const Site& site : sites_) {
      auto place = chosen_.find(site.key());
      if (place == chosen_.end() || !place->second.rule->input()) continue;
      const NeuralRule& rule = *place->second.rule;
      const Scalar wanted = *rule.input();
      const StoredFamily* stored = stored_as(site.input);
      if (stored != nullptr && gives(stored->rule->name, wanted)) continue;
      problems_.push_back({site.key(),
                           fmt::format("{} reads {}, which is stored as {}", rule.name, site.input,
                                       stored == nullptr ? "f32" : stored->rule->name),
                           fmt::format("choose a rule {} for the value", row(wanted).name)});
    }
  }

  NamedCall rewritten(const NamedCall& layer, ValueWriter& writer) {
    NamedCall out = layer;
    auto place = chosen_.find(site_key(SiteKind::product, layer.name));
    const ProductScheme* scheme = place == chosen_.end() ? nullptr : &*place->second.rule->product;
    for (size_t i = 0; i < out.inputs.size(); ++i) {
      const bool activation = i == 0 && scheme != nullptr && scheme->activation == ActivationUse::quantised;
      out.inputs[i] = activation ? writer.read_dequantised(out.inputs[i]) : writer.read(out.inputs[i]);
    }
    if (scheme != nullptr) pack(layer, *scheme, place->second, writer, out);
    return out;
  }

  void pack(const NamedCall& layer, const ProductScheme& scheme, Choice& choice, ValueWriter& writer, NamedCall& out) {
    auto prepared = prepare_product(program_, *find_layer(program_, layer.name), *choice.rule, statistics_);
    if (!prepared) {
      problems_.insert(problems_.end(), prepared.errors().begin(), prepared.errors().end());
      return;
    }
    const auto& [product, packed, bias] = *prepared;
    if (bias) {
      out.inputs.resize(3);
      out.inputs[2] = writer.add_constant(layer.name + "/bias", *bias);
    }
    if (scheme.activation == ActivationUse::dynamic)
      out.inputs[0] = writer.quantise_dynamically(layer.name, out.inputs[0]);
    out.inputs[1] = write_weights(layer.name, product, packed, writer);
    choice.use.parameters = fmt::format("{} scales, {} bytes", packed.scales.size(), byte_size(packed));
    if (scheme.half) check_sums(product, packed, choice);
    if (scheme.activation == ActivationUse::as_is) return;
    const double magnitude = largest_activation(scheme);
    choice.use.proof = fmt::format("sums stay below 2^31: {:.3g}", magnitude * largest_sum(product, packed));
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
    choice.use.proof = fmt::format("sums stay below {:.4g} on {} numbers, f16 ends at 65504", largest, seen->count);
  }

  // Numbers and scales as constants, the layers that make f32 of them, and the name of that.
  static std::string write_weights(const std::string& name, const Product& product, const PackedWeights& packed,
                                   ValueWriter& writer) {
    const std::string numbers = writer.add_constant(name + "/weights", packed.numbers);
    NamedCall wide{writer.fresh(name + "/dequantise_weights"), "Cast", "", {}, {numbers}, {}};
    wide.outputs = {writer.fresh(name + "/weights_f32")};
    if (packed.scales.empty()) {
      wide.attributes["to"] = onnx_type(Scalar::f32);
    } else {
      wide.operation = "DequantizeLinear";
      const std::vector<int64_t> shape = packed.layout.scale_shape();
      wide.inputs.push_back(writer.add_constant(name + "/scales", Tensor::of(Scalar::f32, shape, packed.scales)));
      if (!packed.zero_points.empty()) {
        wide.inputs.push_back(
            writer.add_constant(name + "/zero_points", Tensor::of(packed.format.scalar, shape, packed.zero_points)));
      }
      wide.attributes["axis"] = packed.layout.axis;
      if (packed.layout.block != 0) wide.attributes["block_size"] = packed.layout.block;
    }
    std::string result = wide.outputs[0];
    writer.add(std::move(wide));
    if (packed.layout.shape == product.shape) return result;
    NamedCall reshape{writer.fresh(name + "/reshape_weights"), "Reshape", "", {}, {result}, {}};
    const auto rank = static_cast<int64_t>(product.shape.size());
    reshape.inputs.push_back(
        writer.add_constant(name + "/weights_shape", Tensor::of(Scalar::i64, {rank}, product.shape)));
    reshape.outputs = {writer.fresh(name + "/weights_reshaped")};
    result = reshape.outputs[0];
    writer.add(std::move(reshape));
    return result;
  }

  void record() {
    for (const Site& site : sites_) {
      auto place = chosen_.find(site.key());
      if (place == chosen_.end()) continue;
      const RuleUse& use = place->second.use;
      model_.uses.push_back(use);
      // under_functions() says which terms of the layer it concerns.
      if (site.kind == SiteKind::function || place->second.rule->half()) model_.functions[site.layer] = use.rule;
      if (site.kind == SiteKind::function) continue;
      const std::string between = use.parameters.empty() || use.proof.empty() ? "" : "; ";
      const std::string note = use.parameters + between + use.proof;
      model_.program.steps.push_back({use.rule, site.layer, RuleClass::neural, note, {}});
    }
  }

  const Program& program_;
  const Statistics& statistics_;
  Flow flow_;
  std::vector<ValueFamily> families_;
  std::vector<Site> sites_;
  std::map<std::string, Choice> chosen_;  // by site
  std::vector<StoredFamily> stored_;
  Diagnostics problems_;
  RewrittenModel model_;
};

}  // namespace

Result<RewrittenModel> rewrite(const Program& program, const Assignment& assignment, const Statistics& statistics) {
  return ModelRewriter(program, statistics).run(assignment);
}

}  // namespace hoist
