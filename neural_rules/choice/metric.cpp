#include "neural_rules/choice/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/special_values.h"

namespace hoist {
namespace {

// True if the change is not detectable: equal numbers, or NaN in both.
bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

int64_t top_of(std::span<const double> scores) {
  size_t best = 0;
  for (size_t c = 0; c < scores.size(); ++c) {
    if (std::isnan(scores[c])) return -1;
    if (scores[c] > scores[best]) best = c;
  }
  return scores.empty() ? -1 : static_cast<int64_t>(best);
}

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

std::vector<double> log_softmax(std::span<const double> scores) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double s : scores) sum += std::exp(s - highest);
  std::vector<double> out;
  for (double s : scores) out.push_back(s - highest - std::log(sum));
  return out;
}

// Probabilities that were rounded to 0 in the model's type count as the smallest normal f32.
std::vector<double> logarithms(std::span<const double> probabilities) {
  std::vector<double> out;
  for (double p : probabilities)
    out.push_back(std::log(std::max(p, static_cast<double>(std::numeric_limits<float>::min()))));
  return out;
}

double divergence_of(OutputKind kind, std::span<const double> reference, std::span<const double> changed) {
  const bool logits = kind == OutputKind::logits;
  const std::vector<double> p = logits ? log_softmax(reference) : logarithms(reference);
  const std::vector<double> q = logits ? log_softmax(changed) : logarithms(changed);
  double sum = 0;
  for (size_t c = 0; c < p.size(); ++c) sum += std::exp(p[c]) * (p[c] - q[c]);
  return std::max(sum, 0.0);  // rounding alone makes it negative
}

// Strings have no distance: an equal string counts as 1, a different one as 0.
std::vector<double> sample_of(const Tensor& tensor, const Tensor& reference, int64_t sample, int64_t values) {
  std::vector<double> out(static_cast<size_t>(values));
  for (int64_t i = 0; i < values; ++i) {
    const int64_t at = sample * values + i;
    const bool is_text = tensor.scalar() == Scalar::string;
    out[static_cast<size_t>(i)] =
        is_text ? static_cast<double>(tensor.integer_at(at) == reference.integer_at(at)) : value_at(tensor, at);
  }
  return out;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return shape.empty() ? "a scalar" : fmt::format("[{}]", fmt::join(shape, "]["));
}

}  // namespace

double value_at(const Tensor& tensor, int64_t i) {
  return is_integer(tensor.scalar()) ? static_cast<double>(tensor.integer_at(i)) : tensor.float_at(i);
}

int64_t top_class(const Tensor& scores, int64_t first, int64_t classes) {
  std::vector<double> values(static_cast<size_t>(classes));
  for (int64_t c = 0; c < classes; ++c) values[static_cast<size_t>(c)] = value_at(scores, first + c);
  return top_of(values);
}

double sqnr_of(double signal_power, double mean_squared_error) {
  if (mean_squared_error == 0) return infinity;
  if (std::isnan(signal_power) || std::isnan(mean_squared_error)) return nan_value;
  return std::isinf(mean_squared_error) ? -infinity : 10 * std::log10(signal_power / mean_squared_error);
}

std::string sqnr_text(double decibel) {
  if (decibel == infinity) return "exact";
  return std::isfinite(decibel) ? fmt::format("{:.1f} dB", decibel) : "-";
}

double error_at_sqnr(double signal_power, double decibel) { return signal_power / std::pow(10.0, decibel / 10); }

Result<Nothing> OutputComparison::add(const Tensor& reference, const Tensor& changed, int64_t samples_a_run,
                                      int64_t samples, std::span<const int64_t> labels) {
  const auto problem = [](const std::string& what) { return Diagnostic{"output", what, ""}; };
  HOIST_CHECK(samples_a_run >= 1 && samples >= 0 && samples <= samples_a_run, "a run holds the samples that it counts");
  const std::vector<int64_t>& shape = reference.shape();
  if (dynamic_) {
    add_whole(reference, changed, samples);
    return Nothing{};
  }
  if (shape != changed.shape()) {
    return problem(fmt::format("is {}, the reference model's is {}", shape_text(changed.shape()), shape_text(shape)));
  }
  if (samples_a_run > 1 && (shape.empty() || shape[0] != samples_a_run)) {
    return problem(fmt::format("is {}, expected {} samples along the first axis", shape_text(shape), samples_a_run));
  }
  const int64_t values = reference.size() / samples_a_run;
  if (values_ >= 0 && values_ != values)
    return problem(fmt::format("has {} values per sample, {} in previous runs", values, values_));
  if (values == 0) return problem("has no values");
  const bool first_call = values_ < 0;
  if (!labels.empty() && kind_ == OutputKind::values) return problem("has no classes for labels");
  if (!labels.empty() && static_cast<int64_t>(labels.size()) != samples)
    return problem(fmt::format("has {} samples, but there are {} labels", samples, labels.size()));
  if (!first_call && samples > 0 && labelled_ == labels.empty() && samples_ > 0)
    return problem("some runs have labels, others have none");
  for (int64_t label : labels) {
    if (label < 0 || label >= values)
      return problem(fmt::format("has {} classes, but there is a label {}", values, label));
  }
  values_ = values;
  labelled_ = labelled_ || !labels.empty();
  for (int64_t s = 0; s < samples; ++s) {
    const std::vector<double> was = sample_of(reference, reference, s, values),
                              is = sample_of(changed, reference, s, values);
    add_values(was, is);
    if (kind_ == OutputKind::values) continue;
    add_scores(was, is);
    if (!labels.empty()) add_label(labels[static_cast<size_t>(s)], top_of(was), top_of(is));
  }
  return Nothing{};
}

void OutputComparison::add_whole(const Tensor& reference, const Tensor& changed, int64_t samples) {
  samples_ += samples;
  if (reference.shape() == changed.shape()) {
    --samples_;
    add_values(sample_of(reference, reference, 0, reference.size()), sample_of(changed, reference, 0, changed.size()));
  } else {
    error_ = largest_ = infinity;
  }
}

void OutputComparison::add_values(std::span<const double> reference, std::span<const double> changed) {
  ++samples_;
  compared_ += static_cast<int64_t>(reference.size());
  not_finite_ += all_finite(changed) ? 0 : 1;
  reference_not_finite_ += all_finite(reference) ? 0 : 1;
  const bool centred = kind_ != OutputKind::values && all_finite(reference) && all_finite(changed);
  const double reference_mean = centred ? mean_of(reference) : 0, changed_mean = centred ? mean_of(changed) : 0;
  // Scores that cannot be centred do not count as signal.
  const bool signal = centred || kind_ == OutputKind::values;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (std::isfinite(reference[i])) {
      const bool first = finite_values_++ == 0;
      low_ = first ? reference[i] : std::min(low_, reference[i]);
      high_ = first ? reference[i] : std::max(high_, reference[i]);
    }
    const double was = reference[i] - reference_mean, is = changed[i] - changed_mean;
    if (signal && std::isfinite(was)) signal_ += was * was;
    if (same(reference[i], changed[i]) && reference_mean == changed_mean) continue;
    const double error = std::isfinite(was) && std::isfinite(is) ? std::abs(is - was) : infinity;
    largest_ = std::max(largest_, error);
    error_ += error * error;
  }
}

void OutputComparison::add_scores(std::span<const double> reference, std::span<const double> changed) {
  flips_ += top_of(reference) != top_of(changed) ? 1 : 0;
  if (all_finite(reference) && all_finite(changed)) {
    divergence_ += divergence_of(kind_, reference, changed);
  } else if (!std::equal(reference.begin(), reference.end(), changed.begin(), same)) {
    divergence_ = infinity;
  }
}

void OutputComparison::add_label(int64_t label, int64_t reference_class, int64_t changed_class) {
  classes_.resize(static_cast<size_t>(values_));
  const bool was = reference_class == label, is = changed_class == label;
  ++(was && is ? paired_.both_right : was ? paired_.lost : is ? paired_.gained : paired_.both_wrong);
  OfClass& of = classes_[static_cast<size_t>(label)];
  ++of.samples;
  of.reference_right += was ? 1 : 0;
  of.right += is ? 1 : 0;
}

OutputMetrics OutputComparison::metrics() const {
  OutputMetrics out;
  out.kind = kind_;
  out.samples = samples_;
  out.values_a_sample = std::max<int64_t>(values_, 0);
  const auto count = static_cast<double>(std::max<int64_t>(compared_, 1));
  out.signal_power = samples_ == 0 ? nan_value : signal_ / count;
  out.mean_squared_error = samples_ == 0 ? nan_value : error_ / count;
  out.sqnr = sqnr_of(out.signal_power, out.mean_squared_error);
  out.largest_error = samples_ == 0 ? nan_value : largest_;
  out.low = finite_values_ == 0 ? nan_value : low_;
  out.high = finite_values_ == 0 ? nan_value : high_;
  out.psnr = sqnr_of((out.high - out.low) * (out.high - out.low), out.mean_squared_error);
  out.not_finite = not_finite_;
  out.reference_not_finite = reference_not_finite_;
  const bool scores = kind_ != OutputKind::values;
  out.flips = flips_;
  out.agreement = scores ? wilson(samples_ - flips_, samples_) : Interval{nan_value, nan_value, nan_value};
  out.divergence = scores && samples_ > 0 ? divergence_ / static_cast<double>(samples_) : nan_value;
  out.labelled = labelled_;
  out.paired = paired_;
  out.reference_top1 = wilson(paired_.both_right + paired_.lost, paired_.samples());
  out.top1 = wilson(paired_.both_right + paired_.gained, paired_.samples());
  out.drop = paired_drop(paired_);
  out.p_value = mcnemar_p_value(paired_.lost, paired_.gained);
  for (size_t c = 0; c < classes_.size(); ++c) {
    const OfClass& of = classes_[c];
    if (of.samples == 0) continue;
    const double drop = static_cast<double>(of.reference_right - of.right) / static_cast<double>(of.samples);
    if (out.worst_class >= 0 && drop <= out.worst_class_drop) continue;
    out.worst_class = static_cast<int64_t>(c);
    out.worst_class_drop = drop;
    out.worst_class_samples = of.samples;
  }
  return out;
}

}  // namespace hoist
