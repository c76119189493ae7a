// One instrumented graph instead of one per assignment. The switchboard holds every rule of every site at once, each
// behind a switch that is an input of the model, so that any assignment can be evaluated by what is fed in; with all
// switches off its expressions give the model's own bits (kernels may round as those of another grouping do). What a
// rule does at its site is read off what rewrite() makes of it there, so the two cannot disagree. Its sibling, the
// graph of local errors, computes each rule beside the unchanged layer on unchanged inputs. Neither is for timing: both
// compute everything that could be.
#pragma once

#include <string>
#include <vector>

#include "neural_rules/difference.h"
#include "neural_rules/rewrite.h"

namespace hoist {

/// One rule at one site, as rewrite() carries it out: alone, or together with the formats that it needs of its inputs.
struct SiteRule {
  size_t site = 0;  ///< among the sites
  std::string rule;
  std::string cost_class;                        ///< rules of one class cost the same (candidates.h)
  Assignment needs;                              ///< what else had to be assigned for the rule to apply
  std::map<std::string, std::string> functions;  ///< layer -> function rule
  RuleUse use;                                   ///< parameters, clipped share and proof
  GraphDifference change;                        ///< from the graph with what the rule needs
  GraphDifference whole;                         ///< from the graph as it is: has every layer that `change` reads
};

/// Rewrites the graph with this rule alone. Errors are rewrite()'s.
Result<SiteRule> rewrite_alone(const Graph& graph, const std::vector<Site>& sites, size_t site, const std::string& rule,
                               const Assignment& needs, const Statistics& statistics);

/// The values at which a site's rules take effect: the layer's output, or the arrays that are stored in the format.
std::vector<std::string> points_of(const Graph& graph, const Site& site, const std::vector<const SiteRule*>& rules);

/// Inputs that a switchboard has after the model's own.
struct SwitchInput {
  size_t site = 0;
  std::vector<std::string> rules;  ///< a switch each, in this order; "" is the one for noise
};
struct NoiseInput {
  std::vector<int64_t> shape;  ///< all sites whose values have this shape share it
};

struct Switchboard {
  RewrittenModel model;
  std::vector<SwitchInput> switches;  ///< bool arrays
  std::vector<NoiseInput> noises;     ///< f32 arrays, multiplied by the site's noise scale
  /// What to feed after the model's own inputs: the switches, then `noise` (nothing where the board has none). `noisy`:
  /// the site that gets noise, or npos.
  std::vector<Tensor> inputs(const std::vector<Site>& sites, const Assignment& assignment, size_t noisy = npos,
                             const std::vector<Tensor>& noise = {}) const;
  /// Noise of mean 0 and mean square 1 for all sites.
  std::vector<Tensor> noise(uint64_t seed) const;
  static constexpr size_t npos = static_cast<size_t>(-1);
};

/// The graph's `types` has to hold the type of every value.
Switchboard make_switchboard(const Graph& graph, const std::vector<Site>& sites, const std::vector<SiteRule>& rules);

/// A switchboard of noise instead of rules: little more work than the model itself. `rules` say where the noise goes
/// in, `noise_scales`, by site, its standard deviation.
Switchboard make_noise_board(const Graph& graph, const std::vector<Site>& sites, const std::vector<SiteRule>& rules,
                             const std::vector<double>& noise_scales);

/// A graph with the model's inputs whose outputs are, a rule each, the sum of squared differences at the rule's points.
struct LocalErrors {
  RewrittenModel model;
  std::vector<int64_t> elements;  ///< of each sum
};
LocalErrors make_local_errors(const Graph& graph, const std::vector<Site>& sites, const std::vector<SiteRule>& rules);

/// The model with copies of further values as outputs, after its own, made by the last layers in the same order:
/// copies, so that the kernels before them keep the form that they have in the model. Values that are model inputs are
/// left out.
Graph with_outputs(const Graph& graph, const std::vector<std::string>& values);

}  // namespace hoist
