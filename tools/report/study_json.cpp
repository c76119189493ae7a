#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "neural_rules/choice/solver/interval.h"
#include "neural_rules/neural_rules.h"
#include "tools/report/report.h"

namespace hoist {
namespace {

using Json = nlohmann::ordered_json;

// JSON has finite numbers only.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json interval(const Interval& of) {
  return {{"value", number(of.value)}, {"low", number(of.low)}, {"high", number(of.high)}};
}

Json statistics(const ValueStatistics& of) {
  Json channels = Json::array();
  for (const auto& channel : of.channels) {
    channels.push_back({{"low", number(channel.low)}, {"high", number(channel.high)}, {"mean", number(channel.mean)}});
  }
  return {{"count", of.count},
          {"low", number(of.low)},
          {"high", number(of.high)},
          {"mean", number(of.mean)},
          {"mean_square", number(of.mean_square)},
          {"histogram", of.histogram},
          {"channels", channels}};
}

// The type that a contraction under the rule requires for its input value; "" if any type will do.
std::string type_read(const std::string& rule) {
  const NeuralRule* found = find_neural_rule(rule);
  const auto input = found != nullptr ? found->input() : std::nullopt;
  return input ? std::string(row(*input).name) : "";
}

// The required input types that a value under the rule can be stored in.
std::vector<std::string> types_given(const std::string& rule) {
  std::vector<std::string> out;
  if (find_value_format(rule) == nullptr) return out;
  for (const NeuralRule& product : neural_rules()) {
    const auto input = product.input();
    if (!input || !gives(rule, *input)) continue;
    const std::string name(row(*input).name);
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

// The levels of a quantised value under calibration, with six digits. Empty if the histogram is too coarse to show
// them, as for f16, and for block formats, whose scales are computed in each run.
Json levels(const StudySite& at, const Candidate& of) {
  const ValueFormat* format = find_value_format(of.rule);
  Json out = Json::array();
  if (at.site.kind != SiteKind::value || format == nullptr || format->block != 0 || at.statistics.count == 0)
    return out;
  const std::vector<double> found = levels_of(grid_of(*format, at.statistics), at.statistics);
  if (2 * found.size() > at.statistics.histogram.size()) return out;
  for (const double level : found) out.push_back(number(std::stod(fmt::format("{:.6g}", level))));
  return out;
}

Json candidate(const StudySite& at, const Candidate& of) {
  return {{"rule", of.rule},
          {"reads", type_read(of.rule)},
          {"gives", types_given(of.rule)},
          {"predicted_error", number(of.predicted_error)},
          {"error_alone", number(of.error_alone)},
          {"local_error", number(of.local_error)},
          {"time", number(of.time)},
          {"bytes", number(of.bytes)},
          {"clipped_share", number(of.clipped_share)},
          {"clip_low", number(of.clip_low)},
          {"clip_high", number(of.clip_high)},
          {"levels", levels(at, of)},
          {"proof", of.proof}};
}

Json site(const StudySite& of) {
  Json candidates = Json::array();
  for (const Candidate& each : of.candidates) candidates.push_back(candidate(of, each));
  return {{"key", of.site.key()},
          {"kind", name_of(of.site.kind)},
          {"layer", of.site.layer},
          {"value", of.site.value},
          {"input", of.site.input},
          {"weights", of.site.weights},
          {"operation", of.operation},
          {"sensitivity", number(of.sensitivity)},
          {"time", number(of.time)},
          {"bytes", number(of.bytes)},
          {"accumulated_error", number(of.accumulated_error)},
          {"chosen", of.chosen},
          {"candidates", candidates},
          {"successors", of.successors},
          {"statistics", statistics(of.statistics)}};
}

Json point(const StudyPoint& of) {
  const PairedCounts paired{of.both_right, of.lost, of.gained, of.both_wrong};
  Json out = {{"name", of.name},
              {"chosen", of.chosen},
              {"on_front", of.on_front},
              {"verified", of.verified},
              {"predicted_time", number(of.predicted_time)},
              {"predicted_error", number(of.predicted_error)},
              {"size", number(of.size)},
              {"time", interval(of.time)},
              {"error", number(of.error)},
              {"sqnr", number(of.sqnr)},
              {"psnr", number(of.psnr)},
              {"agreement", interval(of.agreement)},
              {"top1", interval(of.top1)},
              {"samples", of.samples},
              {"both_right", of.both_right},
              {"lost", of.lost},
              {"gained", of.gained},
              {"both_wrong", of.both_wrong},
              {"drop", interval(paired_drop(paired))},
              {"mcnemar_p", mcnemar_p_value(of.lost, of.gained)},
              {"flips", of.flips},
              {"worst_class", of.worst_class},
              {"worst_class_drop", number(of.worst_class_drop)},
              {"user_metric", number(of.user_metric)},
              {"assignment", Json(of.assignment)}};
  if (const Retraining* trained = of.retraining.get())
    out["retraining"] = {{"epochs", trained->epochs},       {"steps", trained->steps},
                         {"samples", trained->samples},     {"seed", trained->seed},
                         {"data_hash", trained->data_hash}, {"weights_hash", trained->weights_hash},
                         {"loss", trained->loss},           {"curve", trained->curve}};
  return out;
}

}  // namespace

Json to_json(const Study& study) {
  Json sites = Json::array(), points = Json::array();
  for (const StudySite& each : study.sites) sites.push_back(site(each));
  for (const StudyPoint& each : study.points) points.push_back(point(each));
  return {{"model", study.model},
          {"summary", study.summary},
          {"budget", study.budget},
          {"budget_met", study.budget_met},
          {"confidence", study.confidence},
          {"objective", study.objective},
          {"device", study.device},
          {"profile", study.profile},
          {"version", study.version},
          {"seed", study.seed},
          {"model_hash", study.model_hash},
          {"calibration_hash", study.calibration_hash},
          {"verification_hash", study.verification_hash},
          {"calibration_samples", study.calibration_samples},
          {"verification_samples", study.verification_samples},
          {"classes", study.classes},
          {"output_power", number(study.output_power)},
          {"points", points},
          {"sites", sites},
          {"notes", study.notes}};
}

}  // namespace hoist
