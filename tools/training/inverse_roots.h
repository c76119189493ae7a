// Inverse roots of Kronecker statistics (ir/gradient/training/kronecker.h), by eigenvalues in f64 on the host, while
// the device runs: roots of the statistics after a multiple of `every` steps replace the old roots `every` steps later,
// at whichever time they are ready, so that the same seed gives the same bits.
#pragma once

#include <cstdint>
#include <future>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "ir/gradient/training/kronecker.h"

namespace hoist {

/// Each block of [blocks][n][n], a symmetric matrix without negative eigenvalues, to the power -1 / (2 * dimensions).
/// `ridge` times the largest eigenvalue is added to all; a block of zeros becomes the unit matrix.
Tensor inverse_roots(const Tensor& statistics, int64_t dimensions, double ridge);

class KroneckerRoots {
 public:
  KroneckerRoots() = default;
  KroneckerRoots(std::vector<KroneckerFactor> factors, double ridge, int64_t every_runs)
      : factors_(std::move(factors)), ridge_(ridge), every_(every_runs) {}

  /// Gives the step the roots of its present statistics, and begins to count runs.
  Result<Nothing> refresh(BundleRunner& step);
  /// Counts a run of the step.
  Result<Nothing> after_run(BundleRunner& step);

 private:
  Result<std::vector<Tensor>> statistics(BundleRunner& step) const;
  Result<Nothing> set(BundleRunner& step, const std::vector<Tensor>& roots) const;
  std::vector<Tensor> roots_of(const std::vector<Tensor>& statistics) const;

  std::vector<KroneckerFactor> factors_;
  double ridge_ = 0;
  int64_t every_ = 1, runs_ = 0;
  std::future<std::vector<Tensor>> coming_;
};

}  // namespace hoist
