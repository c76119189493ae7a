// One program instead of one per assignment. A multi-variant program holds every rule of every site at once, each
// selected by a switch that is an input of the model, so that inputs select any assignment. With all switches off, its
// terms give the model's own bits (kernels may round differently, because they are grouped differently). The effect of
// a rule at its site is taken from the result of rewrite() there, so the two cannot disagree. The program of local
// errors, a related form, computes each rule and the unchanged layer on unchanged inputs. Neither is for timing: both
// compute every alternative.
//
// A bundle for each of 300 candidates takes minutes, since a driver takes a third of a second per kernel; one program
// with all variants takes as long as a few bundles. It contains one rule per site: each run computes all rules of a
// program, so that a single program with all rules would make the work of measuring each rule alone quadratic (284
// rules of squeezenet1.1 with 12 samples take 267 s as one program, with 16 samples 140 s as seven). Products are
// computed twice and weights are not selected: a select over weights copies them in each run and keeps them from being
// packed (a run of squeezenet1.1's takes 10 ms instead of 23).
#pragma once

#include <string>
#include <vector>

#include "neural_rules/model/flow.h"
#include "neural_rules/rewrite/difference.h"
#include "neural_rules/rewrite/rewrite_model.h"

namespace hoist {

/// One rule at one site, as rewrite() carries it out: alone, or together with the formats that its inputs must have.
struct SiteRule {
  size_t site = 0;  ///< among the sites
  std::string rule;
  std::string cost_class;                        ///< rules of one class cost the same (candidates.h)
  Assignment needs;                              ///< the other assignments that the rule required
  std::map<std::string, std::string> functions;  ///< layer -> function rule
  RuleUse use;                                   ///< parameters, clipped share and proof
  ProgramDifference change;                      ///< difference from the program with the rule's requirements
  ProgramDifference whole;  ///< difference from the unchanged program; has every layer that `change` reads
};

/// Rewrites the program with this rule alone. Errors are rewrite()'s.
Result<SiteRule> rewrite_alone(const Program& program, const std::vector<Site>& sites, size_t site,
                               const std::string& rule, const Assignment& needs, const Statistics& statistics);

/// The values at which a site's rules take effect: the layer's output, or the arrays that are stored in the format.
/// `families` are all of the program.
std::vector<std::string> points_of(const std::vector<ValueFamily>& families, const Site& site,
                                   const std::vector<const SiteRule*>& rules);

/// The inputs of a multi-variant program after the model's own.
struct SwitchInput {
  size_t site = 0;
  std::vector<std::string> rules;  ///< one switch each, in this order; "" is the switch for noise
};
struct NoiseInput {
  std::vector<int64_t> shape;  ///< all sites whose values have this shape share it
};

struct MultiVariantProgram {
  RewrittenModel model;
  std::vector<SwitchInput> switches;  ///< bool arrays
  std::vector<NoiseInput> noises;     ///< f32 arrays, multiplied by the site's noise scale
  /// The inputs after the model's own inputs: the switches, then `noise` (absent if the program has none). `noisy`: the
  /// site that gets noise, or npos.
  std::vector<Tensor> inputs(const std::vector<Site>& sites, const Assignment& assignment, size_t noisy = npos,
                             const std::vector<Tensor>& noise = {}) const;
  /// Noise of mean 0 and mean square 1 for all sites.
  std::vector<Tensor> noise(uint64_t seed) const;
  static constexpr size_t npos = static_cast<size_t>(-1);
};

/// Errors: errors of with_calls.
Result<MultiVariantProgram> make_multi_variant(const Program& program, const std::vector<Site>& sites,
                                               const std::vector<SiteRule>& rules);

/// Variants with noise instead of rules: little more work than the model itself. `rules` determine the values to which
/// noise is added, `noise_scales`, by site, its standard deviation.
Result<MultiVariantProgram> make_noise_variants(const Program& program, const std::vector<Site>& sites,
                                                const std::vector<SiteRule>& rules,
                                                const std::vector<double>& noise_scales);

/// A program with the inputs of the model and one output per rule: the sum of squared differences at the rule's points.
struct LocalErrors {
  RewrittenModel model;
  std::vector<int64_t> elements;  ///< of each sum
};
Result<LocalErrors> make_local_errors(const Program& program, const std::vector<Site>& sites,
                                      const std::vector<SiteRule>& rules);

/// The model with copies of further values as outputs, after its own, made by the last layers in the same order:
/// copies, so that the kernels that compute them have the same form as in the model. Values that are model inputs are
/// left out.
Result<Program> with_outputs(const Program& program, const std::vector<std::string>& values);

}  // namespace hoist
