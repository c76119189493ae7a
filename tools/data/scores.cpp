#include "tools/data/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "ir/text/counted.h"
#include "neural_rules/choice/metric.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/base/files.h"

namespace hoist {

Result<std::vector<std::string>> read_class_names(const std::string& file) {
  constexpr size_t most_classes = size_t{1} << 20;
  HOIST_TRY(const std::string text, read_file(file, size_t{1} << 26));
  std::vector<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    out.push_back(line);
  }
  while (!out.empty() && out.back().empty()) out.pop_back();
  if (out.empty()) return Diagnostic{file, "names no class", "write one name per line, class 0 first"};
  if (out.size() > most_classes)
    return Diagnostic{file, fmt::format("has {} lines, at most {} are read", out.size(), most_classes), ""};
  return out;
}

std::vector<ScoredClass> best_classes(const Tensor& scores, int64_t first, int64_t classes, size_t count) {
  std::vector<ScoredClass> all;
  for (int64_t i = 0; i < classes; ++i) all.push_back({i, value_at(scores, first + i)});
  const auto better = [](const ScoredClass& a, const ScoredClass& b) {
    if (std::isnan(a.score) || std::isnan(b.score)) return !std::isnan(a.score) && std::isnan(b.score);
    return a.score > b.score || (a.score == b.score && a.label < b.label);
  };
  count = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(), better);
  all.resize(count);
  return all;
}

int64_t count_not_finite(const Tensor& tensor) {
  if (!is_float(tensor.scalar())) return 0;
  int64_t out = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) out += std::isfinite(tensor.float_at(i)) ? 0 : 1;
  return out;
}

ScoreCard::ScoreCard(int64_t classes) : labels_(static_cast<size_t>(classes)) {}

void ScoreCard::add(const Tensor& scores, int64_t first, int64_t label) {
  Label& of_label = labels_.at(static_cast<size_t>(label));
  ++samples_;
  ++of_label.samples;
  bool finite = true;
  for (int64_t i = 0; i < classes(); ++i) finite = finite && std::isfinite(value_at(scores, first + i));
  not_finite_ += finite ? 0 : 1;
  const int64_t answer = top_class(scores, first, classes());
  if (answer == label) {
    ++right_;
    ++of_label.right;
  } else {
    ++of_label.answers[answer];
  }
  const auto best = best_classes(scores, first, classes(), 5);
  in_best_five_ +=
      answer >= 0 && std::any_of(best.begin(), best.end(), [&](const auto& b) { return b.label == label; });
}

void ScoreCard::add(const ScoreCard& other) {
  HOIST_CHECK(classes() == other.classes(), "the score cards have different numbers of classes");
  samples_ += other.samples_;
  right_ += other.right_;
  in_best_five_ += other.in_best_five_;
  not_finite_ += other.not_finite_;
  for (size_t i = 0; i < labels_.size(); ++i) {
    labels_[i].samples += other.labels_[i].samples;
    labels_[i].right += other.labels_[i].right;
    for (const auto& [answer, count] : other.labels_[i].answers) labels_[i].answers[answer] += count;
  }
}

nlohmann::json ScoreCard::counts() const {
  nlohmann::json out = {{"best_five", in_best_five_}, {"not_finite", not_finite_}, {"labels", nlohmann::json::array()}};
  for (size_t i = 0; i < labels_.size(); ++i) {
    const Label& label = labels_[i];
    if (label.samples == 0) continue;
    nlohmann::json wrong = nlohmann::json::array();
    for (const auto& [answer, count] : label.answers) wrong.push_back({answer, count});
    out["labels"].push_back({i, label.samples, label.right, wrong});
  }
  return out;
}

Result<ScoreCard> ScoreCard::from_counts(const nlohmann::json& counts, int64_t classes, int64_t samples) {
  const Diagnostic wrong{"counts", fmt::format("do not add up to {} samples of {} classes", samples, classes), ""};
  ScoreCard out(classes);
  // A number of samples, or a class.
  const auto number = [](const nlohmann::json& value, int64_t least, int64_t most) -> std::optional<int64_t> {
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{1} << 62U))
      return std::nullopt;
    const auto out = value.get<int64_t>();
    return out < least || out > most ? std::nullopt : std::optional(out);
  };
  if (!counts.is_object() || counts.size() != 3 || !counts.contains("best_five") || !counts.contains("not_finite") ||
      !counts.contains("labels") || !counts["labels"].is_array())
    return wrong;
  const auto best_five = number(counts["best_five"], 0, samples), infinite = number(counts["not_finite"], 0, samples);
  if (!best_five || !infinite) return wrong;
  out.in_best_five_ = *best_five;
  out.not_finite_ = *infinite;
  for (const nlohmann::json& row : counts["labels"]) {
    if (!row.is_array() || row.size() != 4 || !row[3].is_array()) return wrong;
    const auto label = number(row[0], 0, classes - 1), count = number(row[1], 1, samples),
               right = number(row[2], 0, samples);
    if (!label || !count || !right) return wrong;
    Label& of_label = out.labels_[static_cast<size_t>(*label)];
    if (of_label.samples != 0) return wrong;
    of_label.samples = *count;
    of_label.right = *right;
    int64_t left = *count - *right;
    for (const nlohmann::json& pair : row[3]) {
      if (!pair.is_array() || pair.size() != 2) return wrong;
      const auto answer = number(pair[0], -1, classes - 1), times = number(pair[1], 1, samples);
      if (!answer || !times || *answer == *label || !of_label.answers.emplace(*answer, *times).second) return wrong;
      left -= *times;
    }
    if (left != 0) return wrong;
    out.samples_ += *count;
    out.right_ += *right;
    if (out.samples_ > samples) return wrong;
  }
  if (out.samples_ != samples || out.in_best_five_ < out.right_) return wrong;
  return out;
}

namespace {

// If all samples have the same label, its frequency in other data is unknown.
double guessing_share(int64_t classes, int64_t samples, const std::vector<int64_t>& samples_by_label) {
  int64_t commonest = 0, present = 0;
  for (const int64_t count : samples_by_label) {
    commonest = std::max(commonest, count);
    present += count > 0 ? 1 : 0;
  }
  return std::max(1.0 / static_cast<double>(classes),
                  present > 1 ? static_cast<double>(commonest) / static_cast<double>(samples) : 0);
}

}  // namespace

double guessing_share(int64_t classes, const std::vector<int64_t>& labels) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t label : labels) ++counts[label];
  std::vector<int64_t> samples_by_label;
  for (const auto& [label, count] : counts) samples_by_label.push_back(count);
  return guessing_share(classes, static_cast<int64_t>(labels.size()), samples_by_label);
}

std::string chance_warning(int64_t right, int64_t samples, double guessing) {
  if (samples == 0 || wilson(right, samples).low > guessing) return "";
  return fmt::format(
      "{} of {} right is no better than guessing at {:.1f} %: do the labels use the model's class "
      "numbers, and are the data scaled as in training?",
      right, samples, 100 * guessing);
}

std::string ScoreCard::chance_warning() const {
  if (samples_ == 0 || classes() < 2) return "";
  std::vector<int64_t> samples_by_label;
  for (const Label& label : labels_) samples_by_label.push_back(label.samples);
  return hoist::chance_warning(right_, samples_, guessing_share(classes(), samples_, samples_by_label));
}

std::vector<std::vector<std::string>> ScoreCard::class_rows(const std::vector<std::string>& names) const {
  std::vector<std::vector<std::string>> rows = {{"class", "samples", "right", "share", "most often confused with"}};
  for (size_t i = 0; i < labels_.size(); ++i) {
    const Label& label = labels_[i];
    if (label.samples == 0) continue;
    const auto often = std::max_element(label.answers.begin(), label.answers.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    rows.push_back(
        {class_text(static_cast<int64_t>(i), names), std::to_string(label.samples), std::to_string(label.right),
         fmt::format("{:.1f} %", 100.0 * static_cast<double>(label.right) / static_cast<double>(label.samples)),
         often == label.answers.end() ? ""
                                      : fmt::format("{}, {}", class_text(often->first, names),
                                                    counted(static_cast<uint64_t>(often->second), "time"))});
  }
  return rows;
}

nlohmann::ordered_json ScoreCard::to_json(const std::vector<std::string>& names) const {
  nlohmann::ordered_json out = {
      {"top5", samples_ == 0 ? 0 : static_cast<double>(in_best_five_) / static_cast<double>(samples_)},
      {"not_finite", not_finite_},
      {"classes", nlohmann::json::array()},
      {"confusion", nlohmann::json::array()}};
  struct Wrong {
    int64_t label, answer, samples;
  };
  std::vector<Wrong> wrong;
  for (size_t i = 0; i < labels_.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    if (labels_[i].samples == 0) continue;
    out["classes"].push_back({{"label", number},
                              {"name", i < names.size() ? names[i] : ""},
                              {"samples", labels_[i].samples},
                              {"right", labels_[i].right}});
    for (const auto& [answer, count] : labels_[i].answers) wrong.push_back({number, answer, count});
  }
  std::stable_sort(wrong.begin(), wrong.end(), [](const Wrong& a, const Wrong& b) { return a.samples > b.samples; });
  for (const Wrong& each : wrong)
    out["confusion"].push_back({{"label", each.label}, {"answer", each.answer}, {"samples", each.samples}});
  return out;
}

std::string class_text(int64_t label, const std::vector<std::string>& names) {
  if (label < 0) return "none (NaN)";
  if (static_cast<size_t>(label) >= names.size()) return std::to_string(label);
  return fmt::format("{} ({})", label, names[static_cast<size_t>(label)]);
}

}  // namespace hoist
