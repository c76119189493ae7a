#include "neural_rules/choice/budget.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/text/parse/near_miss.h"
#include "neural_rules/choice/solver/interval.h"

namespace hoist {
namespace {

struct MeasureRow {
  BudgetMeasure measure;
  std::string_view name, unit, example;
  double low, high;  ///< low and high of the limit
};
constexpr MeasureRow measures[] = {
    {BudgetMeasure::top1, "top1", "%", "top1=0.5%", 0, 100},
    {BudgetMeasure::sqnr, "sqnr", "dB", "sqnr=30dB", 0, 200},
    {BudgetMeasure::agreement, "agreement", "%", "agreement=99%", 0, 100},
    {BudgetMeasure::metric, "metric", "%", "metric=-1%:CMD", 0, 100},
};
constexpr double default_metric_limit = 1;  // per cent, as in neural-compressor

const MeasureRow& row_of(BudgetMeasure measure) {
  for (const MeasureRow& row : measures) {
    if (row.measure == measure) return row;
  }
  HOIST_CHECK(false, "a measure without a row");
}

std::string trimmed(std::string_view s) {
  const size_t begin = s.find_first_not_of(" \t\r\n"), end = s.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos ? "" : std::string(s.substr(begin, end - begin + 1));
}

Diagnostic problem(std::string what, std::string hint) { return {"--budget", std::move(what), std::move(hint)}; }

struct Quantity {
  double number = 0;
  std::string unit;
};

std::optional<Quantity> split_quantity(const std::string& text) {
  Quantity out;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out.number);
  if (error != std::errc{} || !std::isfinite(out.number)) return std::nullopt;
  out.unit = trimmed(std::string_view(rest, static_cast<size_t>(end - rest)));
  return out;
}

// Reads a limit with its unit and checks the range of its measure.
Result<double> parse_limit(const MeasureRow& row, const std::string& text) {
  const std::string hint = fmt::format("for example {}", row.example);
  if (text.empty()) return problem(fmt::format("{} needs a number", row.name), hint);
  const std::optional<Quantity> found = split_quantity(text);
  if (!found) return problem(fmt::format("{} is not a number, in {}={}", text, row.name, text), hint);
  if (found->unit.empty()) {
    return problem(fmt::format("{}={} lacks its unit", row.name, text),
                   fmt::format("did you mean {}={}{}?", row.name, text, row.unit));
  }
  if (found->unit != row.unit) {
    return problem(fmt::format("{} has the unit {}, {} is given in {}", text, found->unit, row.name, row.unit), hint);
  }
  if (found->number < row.low || found->number > row.high) {
    return problem(fmt::format("{} is from {} to {} {}, not {}", row.name, row.low, row.high, row.unit, found->number),
                   hint);
  }
  return found->number;
}

// "CMD" or "[+|-]2%:CMD". A command that begins with a number and a colon requires an explicit limit.
Result<Budget> parse_metric(const std::string& text) {
  Budget out{BudgetMeasure::metric, default_metric_limit, false, text};
  const size_t colon = text.find(':');
  const std::string limit = colon == std::string::npos ? "" : trimmed(std::string_view(text).substr(0, colon));
  const bool sign = !limit.empty() && (limit[0] == '+' || limit[0] == '-');
  const std::string magnitude = sign ? limit.substr(1) : limit;
  if (split_quantity(magnitude)) {
    HOIST_TRY(out.limit, parse_limit(row_of(BudgetMeasure::metric), magnitude));
    out.lower_better = limit[0] == '+';
    out.command = trimmed(std::string_view(text).substr(colon + 1));
  }
  if (out.command.empty()) {
    return problem("metric needs a command that prints a number for an output folder", "for example metric=./score.py");
  }
  return out;
}

// Counts are exact: a limit within rounding error of an integer number of samples is that number.
int64_t whole_samples(double percent, int64_t samples) {
  const auto count = static_cast<double>(samples);
  return static_cast<int64_t>(std::floor(percent / 100 * count + 1e-9 + 1e-15 * count));
}

// The harmful change in per cent of the reference.
double metric_harm(const Budget& budget, const BudgetEvidence& evidence) {
  const double change = evidence.metric - evidence.reference_metric;
  const double harm = budget.lower_better ? change : -change;
  return harm <= 0 ? 0 : 100 * harm / std::abs(evidence.reference_metric);
}

}  // namespace

std::string Budget::text() const {
  const MeasureRow& row = row_of(measure);
  if (measure != BudgetMeasure::metric) return fmt::format("{}={}{}", row.name, limit, row.unit);
  return fmt::format("metric={}{}%:{}", lower_better ? '+' : '-', limit, command);
}

Result<Budget> parse_budget(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = trimmed(std::string_view(text).substr(0, equals));
  std::vector<std::string> names;
  for (const MeasureRow& row : measures) names.emplace_back(row.name);
  for (const MeasureRow& row : measures) {
    if (name != row.name) continue;
    if (equals == std::string::npos) return problem(name + " needs =LIMIT", fmt::format("for example {}", row.example));
    const std::string rest = trimmed(std::string_view(text).substr(equals + 1));
    if (row.measure == BudgetMeasure::metric) return parse_metric(rest);
    HOIST_TRY(const double limit, parse_limit(row, rest));
    if (row.measure == BudgetMeasure::sqnr && limit == 0)
      return problem("sqnr=0dB allows as much error as there is signal", "for example sqnr=30dB");
    return Budget{row.measure, limit, false, ""};
  }
  return problem(name.empty() ? "names no measure" : "there is no measure " + name,
                 did_you_mean(name, names, "top1=0.5%, sqnr=30dB, agreement=99% or metric=CMD"));
}

Result<Objective> parse_objective(const std::string& text) {
  if (text == "time") return Objective::time;
  if (text == "size") return Objective::size;
  return Diagnostic{"--objective", "is time or size, not " + text, did_you_mean(text, {"time", "size"})};
}

std::string name_of(Objective objective) { return objective == Objective::time ? "time" : "size"; }

int64_t samples_allowed(const Budget& budget, int64_t samples) {
  HOIST_CHECK(budget.measure == BudgetMeasure::top1 || budget.measure == BudgetMeasure::agreement,
              "this budget is not counted in samples");
  const double percent = budget.measure == BudgetMeasure::top1 ? budget.limit : 100 - budget.limit;
  return whole_samples(percent, samples);
}

bool met(const Budget& budget, const BudgetEvidence& evidence) {
  if (evidence.samples == 0) return false;
  switch (budget.measure) {
    case BudgetMeasure::top1:
      return evidence.labelled && evidence.lost - evidence.gained <= samples_allowed(budget, evidence.samples);
    case BudgetMeasure::agreement:
      return evidence.flips <= samples_allowed(budget, evidence.samples);
    case BudgetMeasure::sqnr:
      return evidence.sqnr >= budget.limit;
    case BudgetMeasure::metric:
      return metric_harm(budget, evidence) <= budget.limit * (1 + 1e-12);
  }
  return false;
}

std::string verdict(const Budget& budget, const BudgetEvidence& evidence) {
  if (evidence.samples == 0) return "no samples to verify with";
  const auto of = [&](int64_t count) {
    return fmt::format("{} of {} samples, allowed {}", count, evidence.samples,
                       samples_allowed(budget, evidence.samples));
  };
  switch (budget.measure) {
    case BudgetMeasure::top1: {
      if (!evidence.labelled) return "no labels to verify with";
      const int64_t lost = evidence.lost - evidence.gained;
      const std::string counts = fmt::format(" (lost {}, gained {})", evidence.lost, evidence.gained);
      return (lost >= 0 ? "lost " + of(lost) : fmt::format("gained {} of {} samples", -lost, evidence.samples)) +
             counts;
    }
    case BudgetMeasure::agreement:
      return "other class at " + of(evidence.flips);
    case BudgetMeasure::sqnr:
      return fmt::format("{}, at least {} dB asked",
                         std::isinf(evidence.sqnr) ? "no error" : fmt::format("{:.2f} dB", evidence.sqnr),
                         budget.limit);
    case BudgetMeasure::metric:
      return fmt::format("metric {} against {} of the unchanged model: {:.3g} % worse, allowed {} %", evidence.metric,
                         evidence.reference_metric, metric_harm(budget, evidence), budget.limit);
  }
  return "";
}

namespace {

// The upper limit of the budget's share at 95 % confidence if there were `factor` times as many samples with the same
// shares.
double share_bound(const Budget& budget, const BudgetEvidence& of, double factor) {
  const auto times = [&](int64_t count) { return std::llround(static_cast<double>(count) * factor); };
  if (budget.measure == BudgetMeasure::agreement) return wilson(times(of.flips), times(of.samples)).high;
  PairedCounts counts{times(of.both_right), times(of.lost), times(of.gained), 0};
  counts.both_wrong = std::max<int64_t>(0, times(of.samples) - counts.samples());
  return paired_drop(counts).high;
}

std::string with_separators(int64_t number) {
  std::string out = std::to_string(number);
  for (auto place = static_cast<std::ptrdiff_t>(out.size()) - 3; place > 0; place -= 3)
    out.insert(static_cast<size_t>(place), ",");
  return out;
}

// The number of samples that would prove the budget, rounded up to two digits; 0 if not even a hundred million would.
int64_t samples_that_show(const Budget& budget, const BudgetEvidence& evidence, double allowed) {
  constexpr double most = 1e8;
  const auto samples = static_cast<double>(evidence.samples);
  double factor = 1;
  while (share_bound(budget, evidence, factor) > allowed) {
    factor *= 1.05;
    if (factor * samples > most) return 0;
  }
  const double count = factor * samples, step = std::pow(10, std::floor(std::log10(count)) - 1);
  return std::llround(std::ceil(count / step) * step);
}

}  // namespace

std::string confidence(const Budget& budget, const BudgetEvidence& evidence) {
  const bool is_met = met(budget, evidence);
  std::string on = fmt::format("{} on {} samples", is_met ? "met" : "not met", with_separators(evidence.samples));
  const bool top1 = budget.measure == BudgetMeasure::top1;
  if (!is_met || (!top1 && budget.measure != BudgetMeasure::agreement)) return on;
  const double allowed = (top1 ? budget.limit : 100 - budget.limit) / 100;
  const double bound = share_bound(budget, evidence, 1);
  const std::string what = top1 ? "points of top-1 lost" : "% of classes changed";
  const std::string limit = fmt::format("; 95 % bound: {:.2g} {}", 100 * bound, what);
  if (bound <= allowed) return on + limit;
  const int64_t enough = samples_that_show(budget, evidence, allowed);
  if (enough == 0) return on + limit;
  return on + limit + fmt::format("; about {} such samples would show {}", with_separators(enough), budget.text());
}

std::string resolution_note(const Budget& budget, int64_t samples) {
  if (budget.measure != BudgetMeasure::top1 && budget.measure != BudgetMeasure::agreement) return "";
  if (samples == 0) return "there are no samples to verify with";
  if (samples_allowed(budget, samples) > 0) return "";
  const double step = 100.0 / static_cast<double>(samples);
  return fmt::format("one of {} samples is {:.3g} points, so {} allows no change", samples, step, budget.text());
}

}  // namespace hoist
