#include "tools/data/output_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ir/base/special_values.h"
#include "ir/text/counted.h"
#include "neural_rules/choice/metric.h"

namespace hoist {
namespace {

bool are_answers(const Tensor& tensor) { return is_integer(tensor.scalar()) || tensor.scalar() == Scalar::boolean; }

double number_at(const Tensor& tensor, int64_t i) {
  return are_answers(tensor) ? static_cast<double>(tensor.integer_at(i)) : tensor.float_at(i);
}

// The extent of the second axis, or 1 if there are no classes.
int64_t classes_of(const Tensor& tensor, int64_t samples) {
  const std::vector<int64_t>& shape = tensor.shape();
  const bool has_classes = (shape.size() == 2 || shape.size() > 3) && shape[0] == samples && shape[1] > 1;
  return has_classes ? shape[1] : 1;
}

// The class with the highest score among scores `stride` apart; -1 if one of them is NaN.
int64_t highest(const Tensor& scores, int64_t first, int64_t classes, int64_t stride) {
  int64_t best = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const double score = number_at(scores, first + c * stride);
    if (std::isnan(score)) return -1;
    if (score > number_at(scores, first + best * stride)) best = c;
  }
  return best;
}

int64_t positions_of(const Tensor& tensor, int64_t samples) {
  if (are_answers(tensor)) return tensor.size();
  const int64_t classes = classes_of(tensor, samples);
  return classes > 1 ? tensor.size() / classes : 0;
}

int64_t agreeing_positions(const Tensor& reference, const Tensor& changed, int64_t samples) {
  int64_t out = 0;
  if (are_answers(reference)) {
    for (int64_t i = 0; i < reference.size(); ++i) out += reference.integer_at(i) == changed.integer_at(i) ? 1 : 0;
    return out;
  }
  const int64_t classes = classes_of(reference, samples);
  if (classes < 2 || reference.size() == 0) return 0;
  const int64_t stride = reference.size() / samples / classes;
  for (int64_t sample = 0; sample < samples; ++sample) {
    for (int64_t place = 0; place < stride; ++place) {
      const int64_t first = sample * classes * stride + place;
      out += highest(reference, first, classes, stride) == highest(changed, first, classes, stride) ? 1 : 0;
    }
  }
  return out;
}

bool is_number(const Tensor& tensor) { return is_float(tensor.scalar()) || are_answers(tensor); }

}  // namespace

void OutputAgreement::add(const Tensor& reference, const Tensor& changed, int64_t samples) {
  ++runs_;
  if (!is_number(reference) || !is_number(changed)) return;
  if (reference.shape() != changed.shape() || reference.scalar() != changed.scalar()) {
    ++other_shape_;
    positions_ += std::max(positions_of(reference, samples), positions_of(changed, samples));
    return;
  }
  positions_ += positions_of(reference, samples);
  agreeing_ += agreeing_positions(reference, changed, samples);
  for (int64_t i = 0; i < reference.size(); ++i) {
    const double was = number_at(reference, i), is = number_at(changed, i);
    if (was == is || (std::isnan(was) && std::isnan(is))) {
      signal_ += std::isfinite(was) ? was * was : 0;
    } else if (std::isfinite(was) && std::isfinite(is)) {
      signal_ += was * was;
      error_ += (is - was) * (is - was);
      largest_ = std::max(largest_, std::abs(is - was));
    } else {
      ++not_finite_;
    }
  }
  values_ += reference.size();
}

double OutputAgreement::sqnr() const {
  if (values_ == 0) return nan_value;
  return not_finite_ > 0 ? -infinity : sqnr_of(signal_, error_);
}

std::string OutputAgreement::text() const {
  std::string out = name_ + ":";
  if (positions_ > 0) {
    out += fmt::format(" {} of {} agree, {:.2f} %;", agreeing_, counted(static_cast<uint64_t>(positions_), "position"),
                       100.0 * static_cast<double>(agreeing_) / static_cast<double>(positions_));
  }
  if (values_ > 0)
    out += sqnr() == infinity ? " all numbers are equal"
                              : fmt::format(" SQNR {:.1f} dB, largest error {:.3g}", sqnr(), largest_);
  else
    out += " no numbers to compare";
  if (not_finite_ > 0)
    out += fmt::format("; {} NaN or infinite in one of the two alone",
                       counted(static_cast<uint64_t>(not_finite_), "number"));
  if (other_shape_ > 0)
    out += fmt::format("; in {} of {} of another shape, and compared in the others alone", other_shape_,
                       counted(static_cast<uint64_t>(runs_), "run"));
  return out;
}

nlohmann::ordered_json OutputAgreement::to_json() const {
  nlohmann::ordered_json out = {{"name", name_}, {"runs", runs_}, {"other_shape", other_shape_}};
  out["positions"] = positions_;
  out["agreeing"] = agreeing_;
  if (positions_ > 0) out["agreement"] = static_cast<double>(agreeing_) / static_cast<double>(positions_);
  out["sqnr"] = std::isfinite(sqnr()) ? nlohmann::ordered_json(sqnr()) : nlohmann::ordered_json();
  out["largest_error"] = largest_;
  out["not_finite"] = not_finite_;
  return out;
}

}  // namespace hoist
