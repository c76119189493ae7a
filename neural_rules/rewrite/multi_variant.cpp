#include "neural_rules/rewrite/multi_variant.h"

#include <algorithm>
#include <set>

#include "ir/base/cancellation.h"
#include "ir/base/seeded.h"
#include "neural_rules/rewrite/splice.h"

namespace hoist {

Result<SiteRule> rewrite_alone(const Program& program, const std::vector<Site>& sites, size_t site,
                               const std::string& rule, const Assignment& needs, const Statistics& statistics) {
  SiteRule out;
  out.site = site;
  out.rule = rule;
  out.needs = needs;
  HOIST_TRY(RewrittenModel before, rewrite(program, needs, statistics));
  Assignment assignment = needs;
  assignment[sites[site].key()] = rule;
  HOIST_TRY(RewrittenModel after, rewrite(program, assignment, statistics));
  out.functions = after.functions;
  for (const RuleUse& use : after.uses) {
    if (use.site == sites[site].key()) out.use = use;
  }
  out.change = difference(before.program, after.program);
  out.whole = difference(program, after.program);
  return out;
}

std::vector<std::string> points_of(const std::vector<ValueFamily>& families, const Site& site,
                                   const std::vector<const SiteRule*>& rules) {
  if (site.kind != SiteKind::value) return {site.value};
  std::set<std::string> read;
  for (const SiteRule* rule : rules) {
    for (const ChangedInput& input : rule->change.inputs) read.insert(input.before);
  }
  for (const ValueFamily& family : families) {
    if (family.name != site.value) continue;
    const auto is_read = [&](const std::string& source) { return read.count(source) != 0; };
    if (std::all_of(family.sources.begin(), family.sources.end(), is_read)) return family.sources;
  }
  return {site.value};
}

namespace {

std::vector<const SiteRule*> rules_at(const std::vector<SiteRule>& rules, size_t site) {
  std::vector<const SiteRule*> out;
  for (const SiteRule& rule : rules) {
    if (rule.site == site) out.push_back(&rule);
  }
  return out;
}

Tensor index_constant(size_t index) {
  return Tensor::of(Scalar::i64, {}, std::vector<int64_t>{static_cast<int64_t>(index)});
}
Tensor scalar_constant(double value) { return Tensor::of(Scalar::f32, {}, std::vector<double>{value}); }

/// A value that a switch selects.
struct Alternative {
  std::string condition, value;
};

// Gathers all alternatives first and chains them at the end: the values that a layer reads are only known then.
class VariantMaker {
 public:
  VariantMaker(const Program& program, const std::vector<Site>& sites, const std::vector<SiteRule>& rules)
      : program_(program), types_(value_types(program)), sites_(sites), rules_(rules), splice_(program) {}

  Result<MultiVariantProgram> of_rules() {
    for (size_t site = 0; site < sites_.size(); ++site) add_versions(site);
    for (const SiteRule& rule : rules_) {
      if (sites_[rule.site].kind != SiteKind::value) continue;
      for (const ChangedInput& input : rule.change.inputs) {
        const std::string value = splice_.value(prefix(rule), rule.whole, input.after, resolver());
        slots_[{input.layer, input.slot}].push_back({condition(rule.site, rule.rule), value});
      }
    }
    for (const auto& [clone, rule] : clones_) finish_clone(clone, *rule);
    return finish();
  }

  Result<MultiVariantProgram> of_noise(const std::vector<double>& scales) {
    const std::vector<ValueFamily> families = value_families(program_, flow_of(program_));
    for (size_t site = 0; site < sites_.size(); ++site) {
      cancellation_point();
      for (const std::string& point : points_of(families, sites_[site], rules_at(rules_, site)))
        add_noise(site, point, scales[site]);
    }
    for (const NoiseInput& noise : out_.noises) add_input({noise_name(noise.shape), Scalar::f32, noise.shape});
    return finish();
  }

 private:
  Result<MultiVariantProgram> finish() {
    for (const NamedCall& layer : named_calls(program_)) {
      for (size_t slot = 0; slot < layer.inputs.size(); ++slot) {
        const std::string value = effective(layer, slot);  // may add layers
        splice_.layer(layer.name).inputs[slot] = value;
      }
    }
    for (std::string& output : splice_.program().outputs) output = resolved(output);
    for (DynamicExtent& extent : splice_.program().extents) extent.value = resolved(extent.value);
    for (const auto& [value, versions] : versions_) chain("version of " + value, value, versions);
    HOIST_TRY(out_.model.program, splice_.finish());
    out_.model.only_values = true;
    out_.model.functions = functions_;
    return std::move(out_);
  }

  void add_input(const ValueInfo& input) { splice_.program().inputs.emplace_back(input.name, type_of(input)); }

  std::string prefix(const SiteRule& rule) const { return sites_[rule.site].key() + " " + rule.rule + ": "; }
  std::string resolved(const std::string& value) const {
    return versions_.count(value) == 0 ? value : "version of " + value;
  }
  Splice::Resolver resolver() const {
    return [this](const std::string& value) { return resolved(value); };
  }

  // The scalar that switches a rule of a site.
  std::string condition(size_t site, const std::string& rule) {
    const std::vector<std::string>& rules = switch_of(site, rule).rules;
    const auto index = static_cast<size_t>(std::find(rules.begin(), rules.end(), rule) - rules.begin());
    std::string name = "switch " + sites_[site].key() + " " + (rule.empty() ? "noise" : rule);
    if (!splice_.has_layer(name)) {
      const std::string position = name + " position";
      splice_.program().constants[position] = index_constant(index);
      splice_.add({name, "Gather", "", {}, {"switches " + sites_[site].key(), position}, {name}});
    }
    return name;
  }

  const SwitchInput& switch_of(size_t site, const std::string& rule) {
    for (const SwitchInput& known : out_.switches) {
      if (known.site == site) return known;
    }
    SwitchInput input{site, {}};
    if (rule.empty()) {
      input.rules.emplace_back();
    } else {
      for (const SiteRule* known : rules_at(rules_, site)) input.rules.push_back(known->rule);
    }
    const auto count = static_cast<int64_t>(input.rules.size());
    add_input({"switches " + sites_[site].key(), Scalar::boolean, {count}});
    out_.switches.push_back(std::move(input));
    return out_.switches.back();
  }

  // For layers that rules replace as a whole: consumers of the value read one of its versions.
  void add_versions(size_t site) {
    for (const SiteRule* rule : rules_at(rules_, site)) {
      for (const NamedCall& layer : replaced_by(splice_, sites_[site], *rule)) {
        NamedCall clone = layer;
        clone.name = prefix(*rule) + layer.name;
        for (std::string& output : clone.outputs) {
          if (output.empty()) continue;
          versions_[output].push_back({condition(site, rule->rule), prefix(*rule) + output});
          output = prefix(*rule) + output;
        }
        if (auto function = rule->functions.find(layer.name); function != rule->functions.end())
          functions_[clone.name] = function->second;
        clones_.emplace_back(std::move(clone), rule);
      }
    }
  }

  void add_noise(size_t site, const std::string& point, double scale) {
    const std::string name = "noise at " + point + " of " + sites_[site].key();
    const std::string noise = noise_input(shape_of(types_.at(point)));
    splice_.program().constants[name + " scale"] = scalar_constant(scale);
    splice_.add({name + " scaled", "Mul", "", {}, {noise, name + " scale"}, {name + " scaled"}});
    splice_.add({name, "Add", "", {}, {point, name + " scaled"}, {name}});
    versions_[point].push_back({condition(site, ""), name});
  }

  static std::string noise_name(const std::vector<int64_t>& shape) {
    std::string name = "noise";
    for (int64_t extent : shape) name += " " + std::to_string(extent);
    return name;
  }

  std::string noise_input(const std::vector<int64_t>& shape) {
    const auto same = [&](const NoiseInput& known) { return known.shape == shape; };
    if (std::none_of(out_.noises.begin(), out_.noises.end(), same)) out_.noises.push_back({shape});
    return noise_name(shape);
  }

  // Parts of the rule that belong to other sites, such as a needed format, are read through the switches of those
  // sites.
  void finish_clone(NamedCall clone, const SiteRule& rule) {
    const NamedCall original = splice_.original(clone.name.substr(prefix(rule).size()));
    for (size_t slot = 0; slot < clone.inputs.size(); ++slot) {
      std::string& input = clone.inputs[slot];
      const bool needed = rule.change.same.count(input) != 0 && rule.whole.same.count(input) == 0;
      const bool kept = rule.change.same.count(input) != 0 && slot < original.inputs.size() &&
                        (needed || input == original.inputs[slot]);
      input = kept ? effective(original, slot) : splice_.value(prefix(rule), rule.whole, input, resolver());
    }
    splice_.add(std::move(clone));
  }

  // The layer's operand: the value, or one of the alternatives of this input.
  std::string effective(const NamedCall& layer, size_t slot) {
    const std::string& value = layer.inputs[slot];
    const auto found = slots_.find({layer.name, slot});
    if (value.empty() || found == slots_.end()) return resolved(value);
    std::string key = resolved(value);
    for (const Alternative& alternative : found->second) key += " or " + alternative.value;
    const auto [known, fresh] = chains_.emplace(key, "choice " + std::to_string(chains_.size()) + " of " + value);
    if (fresh) chain(known->second, resolved(value), found->second);
    return known->second;
  }

  void chain(const std::string& name, std::string value, const std::vector<Alternative>& alternatives) {
    for (size_t i = 0; i < alternatives.size(); ++i) {
      const std::string output = i + 1 == alternatives.size() ? name : name + " " + std::to_string(i);
      splice_.add({output, "Where", "", {}, {alternatives[i].condition, alternatives[i].value, value}, {output}});
      value = output;
    }
  }

  const Program& program_;
  const std::map<std::string, Type> types_;
  const std::vector<Site>& sites_;
  const std::vector<SiteRule>& rules_;
  Splice splice_;
  MultiVariantProgram out_;
  std::map<std::string, std::string> functions_;
  std::map<std::string, std::vector<Alternative>> versions_;                  ///< by value
  std::map<std::pair<std::string, size_t>, std::vector<Alternative>> slots_;  ///< alternatives by layer and input
  std::map<std::string, std::string> chains_;
  std::vector<std::pair<NamedCall, const SiteRule*>> clones_;
};

// The operands of the sum of squared differences: the unchanged value and the value under the rule.
using Pair = std::pair<std::string, std::string>;

std::vector<Pair> pairs_of(Splice& splice, const std::vector<ValueFamily>& families, const Site& site,
                           const SiteRule& rule, std::map<std::string, std::string>& functions) {
  const std::string prefix = site.key() + " " + rule.rule + ": ";
  const auto as_it_is = [](const std::string& value) { return value; };
  std::vector<Pair> out;
  if (site.kind == SiteKind::value) {
    const std::vector<std::string> points = points_of(families, site, {&rule});
    const auto is_at_point = [&](const ChangedInput& input) {
      return std::find(points.begin(), points.end(), input.before) != points.end();
    };
    // If views and poolings move the quantised elements, the array itself has no uses: the moved arrays represent the
    // value.
    const bool is_read = std::any_of(rule.change.inputs.begin(), rule.change.inputs.end(), is_at_point);
    std::set<Pair> known;
    for (const ChangedInput& input : rule.change.inputs) {
      if (is_read && !is_at_point(input)) continue;
      const Pair pair = {input.before, splice.value(prefix, rule.whole, input.after, as_it_is)};
      if (known.insert(pair).second) out.push_back(pair);
    }
    return out;
  }
  for (NamedCall& layer : replaced_by(splice, site, rule)) {
    const NamedCall original = splice.original(layer.name);
    if (auto function = rule.functions.find(layer.name); function != rule.functions.end())
      functions[prefix + layer.name] = function->second;
    for (size_t slot = 0; slot < layer.inputs.size(); ++slot) {
      const bool kept = slot < original.inputs.size() && layer.inputs[slot] == original.inputs[slot];
      if (!kept) layer.inputs[slot] = splice.value(prefix, rule.whole, layer.inputs[slot], as_it_is);
    }
    layer.name = prefix + layer.name;
    for (size_t i = 0; i < layer.outputs.size(); ++i) {
      if (layer.outputs[i].empty()) continue;
      layer.outputs[i] = prefix + original.outputs[i];
      if (original.outputs[i] == site.value) out.emplace_back(site.value, layer.outputs[i]);
    }
    splice.add(std::move(layer));
  }
  return out;
}

}  // namespace

std::vector<Tensor> MultiVariantProgram::inputs(const std::vector<Site>& sites, const Assignment& assignment,
                                                size_t noisy, const std::vector<Tensor>& noise) const {
  std::vector<Tensor> out;
  for (const SwitchInput& input : switches) {
    Tensor tensor(Scalar::boolean, {static_cast<int64_t>(input.rules.size())});
    const auto found = assignment.find(sites[input.site].key());
    for (size_t i = 0; i < input.rules.size(); ++i) {
      const bool assigned = found != assignment.end() && input.rules[i] == found->second;
      const bool on = input.rules[i].empty() ? input.site == noisy : assigned;
      tensor.set_float(static_cast<int64_t>(i), on ? 1 : 0);
    }
    out.push_back(std::move(tensor));
  }
  out.insert(out.end(), noise.begin(), noise.end());
  return out;
}

std::vector<Tensor> MultiVariantProgram::noise(uint64_t seed) const {
  // Uniform in [-sqrt(3), sqrt(3)].
  constexpr double edge = 1.7320508075688772;
  std::vector<Tensor> out;
  for (size_t i = 0; i < noises.size(); ++i)
    out.push_back(seeded_tensor(Scalar::f32, noises[i].shape, seed, static_cast<uint32_t>(i), -edge, edge));
  return out;
}

Result<MultiVariantProgram> make_multi_variant(const Program& program, const std::vector<Site>& sites,
                                               const std::vector<SiteRule>& rules) {
  return VariantMaker(program, sites, rules).of_rules();
}

Result<MultiVariantProgram> make_noise_variants(const Program& program, const std::vector<Site>& sites,
                                                const std::vector<SiteRule>& rules,
                                                const std::vector<double>& noise_scales) {
  return VariantMaker(program, sites, rules).of_noise(noise_scales);
}

Result<LocalErrors> make_local_errors(const Program& program, const std::vector<Site>& sites,
                                      const std::vector<SiteRule>& rules) {
  LocalErrors out;
  const std::map<std::string, Type> types = value_types(program);
  Splice splice(program);
  splice.program().outputs.clear();
  splice.program().extents.clear();
  const std::vector<ValueFamily> families = value_families(program, flow_of(program));
  for (const SiteRule& rule : rules) {
    cancellation_point();
    const std::string name = "error of " + sites[rule.site].key() + " " + rule.rule;
    int64_t elements = 0;
    std::string sum;
    size_t count = 0;
    for (const auto& [before, after] : pairs_of(splice, families, sites[rule.site], rule, out.model.functions)) {
      const std::string part = name + " " + std::to_string(count++);
      splice.add({part + " difference", "Sub", "", {}, {after, before}, {part + " difference"}});
      splice.add({part, "ReduceSumSquare", "", {{"keepdims", int64_t{0}}}, {part + " difference"}, {part}});
      elements += element_count(shape_of(types.at(before)));
      if (!sum.empty()) splice.add({part + " sum", "Add", "", {}, {sum, part}, {part + " sum"}});
      sum = sum.empty() ? part : part + " sum";
    }
    if (sum.empty()) {  // a rule that changes nothing here
      sum = name;
      splice.program().constants[sum] = scalar_constant(0);
    }
    splice.program().outputs.push_back(sum);
    out.elements.push_back(std::max<int64_t>(1, elements));
  }
  HOIST_TRY(out.model.program, splice.finish());
  out.model.only_values = true;
  return out;
}

Result<Program> with_outputs(const Program& program, const std::vector<std::string>& values) {
  Program out = program;
  std::vector<NamedCall> calls = named_calls(program);
  ValueNames names(program);
  std::set<std::string> known(program.outputs.begin(), program.outputs.end());
  for (const auto& [name, type] : program.inputs) known.insert(name);
  for (const std::string& value : values) {
    if (!known.insert(value).second) continue;
    const std::string name = names.make(value + ".seen");
    calls.push_back({name, "Identity", "", {}, {value}, {name}});
    out.outputs.insert(out.outputs.begin() + static_cast<std::ptrdiff_t>(model_output_count(out)), name);
  }
  return with_calls(out, calls);
}

}  // namespace hoist
