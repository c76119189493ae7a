// First-order estimates of sensitivities (sensitivity.h) by gradients. For random signs r of the outputs' elements, the
// expected square of the gradient of <r, outputs> by a value is the sum of squares of all derivatives of the outputs by
// it (Hutchinson, 1990): the outputs' change for small noise of mean square 1 at the value. One backward pass estimates
// all sites, where noise needs a run for each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neural_rules/choice/outputs.h"
#include "neural_rules/rewrite/multi_variant.h"

namespace hoist {

class GradientSensitivity {
 public:
  /// Errors: errors of gradient(): layers without a derivative, sizes that are known only at run time.
  static Result<GradientSensitivity> make(const Program& program, const std::vector<Site>& sites,
                                          const std::vector<SiteRule>& rules);

  /// Inputs: the model's, and the signs of each output of floats. Outputs: a sum of squares for each point of a site.
  const RewrittenModel& model() const { return model_; }
  /// By site, from the first `runs` runs. `reference`: the outputs of the unchanged model for at least these.
  Result<std::vector<double>> estimate(RunnableModel& runnable, const Samples& samples, const RunOutputs& reference,
                                       size_t runs, uint64_t seed) const;

 private:
  struct SignedOutput {
    size_t output = 0;  ///< of the model
    Scalar scalar = Scalar::f32;
    std::vector<int64_t> shape;
    int64_t values(const Samples& samples) const { return element_count(shape) / samples.samples_a_run; }
  };

  // Scores are compared after the mean of each sample is subtracted (metric.h), and the other outputs count by their
  // power (outputs.h), so the signs are centred and scaled alike.
  Tensor signs(const SignedOutput& of, double scale, const Samples& samples, size_t run, uint64_t seed) const;

  RewrittenModel model_;
  OutputKinds kinds_;
  std::vector<SignedOutput> signed_;
  std::vector<std::vector<size_t>> points_;  ///< by site: numbers of sums
};

/// A comparison of estimates with measured values.
struct EstimateQuality {
  size_t count = 0;
  double least = 1, median = 1, most = 1;  ///< of estimate / measured
  /// True if measured values would not choose otherwise for most sites: formats differ by a factor of 4 a bit.
  bool is_good() const { return count > 0 && median > 0.5 && median < 2; }
  std::string text() const;
};
EstimateQuality quality_of(const std::vector<double>& estimates, const std::vector<double>& measured);

}  // namespace hoist
