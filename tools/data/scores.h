// How right a classifier is: the best classes of scores, and what was answered for which label. For run and evaluate.
// Not for comparing two models: neural_rules/choice/metric.h.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/language/tensor.h"
#include "tools/cli/attempt.h"

namespace hoist {

/// The names of classes, one a line, class 0 first. Errors: no such file, more than 2^20 lines.
Result<std::vector<std::string>> read_class_names(const std::string& file);

struct ScoredClass {
  int64_t label = 0;
  double score = 0;
};
/// The highest of `classes` scores from flat position `first`, best first, the first of equals first; NaN is below all.
std::vector<ScoredClass> best_classes(const Tensor& scores, int64_t first, int64_t classes, size_t count);

/// Elements that are NaN or infinite; 0 for integers.
int64_t count_not_finite(const Tensor& tensor);

/// The share of right answers that guessing gives, or always the commonest label: of samples with these labels, or,
/// where none are known, of classes that come alike often. Precondition: classes > 0.
double guessing_share(int64_t classes, const std::vector<int64_t>& labels = {});
/// Where the 95 % interval of the right share reaches down to what guessing gives: why that may be; "" where it does
/// not.
std::string chance_warning(int64_t right, int64_t samples, double guessing);

/// Gathers the answers for labelled samples.
class ScoreCard {
 public:
  explicit ScoreCard(int64_t classes);
  /// One sample, whose scores stand from flat position `first`.
  void add(const Tensor& scores, int64_t first, int64_t label);

  /// The answers of another part of the data; the order of parts does not matter. The same number of classes.
  void add(const ScoreCard& other);

  int64_t samples() const { return samples_; }
  int64_t right() const { return right_; }
  int64_t in_best_five() const { return in_best_five_; }
  int64_t not_finite() const { return not_finite_; }  ///< samples with a NaN or an infinity among their scores
  int64_t classes() const { return static_cast<int64_t>(labels_.size()); }

  /// Where the 95 % interval of the right share reaches down to what guessing gives, or always the commonest label: why
  /// that may be; "" where it does not.
  std::string chance_warning() const;

  /// A row a class that samples have: samples, right, and what it is taken for most often.
  std::vector<std::vector<std::string>> class_rows(const std::vector<std::string>& names) const;
  /// {"top5", "not_finite", "classes": [{"label", "name", "samples", "right"}], "confusion": [{"label", "answer",
  /// "samples"}]}: labels that samples have, and wrong answers, most frequent first.
  nlohmann::ordered_json to_json(const std::vector<std::string>& names) const;

  /// Every count, for another process: [label, samples, right, [[answer, samples], ...]] for each label that is there.
  nlohmann::json counts() const;
  /// What a stranger gives as counts(). Errors: it is no such thing, or its counts do not add up to `samples` samples
  /// of `classes` classes.
  static Result<ScoreCard> from_counts(const nlohmann::json& counts, int64_t classes, int64_t samples);

 private:
  struct Label {
    int64_t samples = 0, right = 0;
    std::map<int64_t, int64_t> answers = {};  ///< wrong ones; -1 is none
  };
  std::vector<Label> labels_;
  int64_t samples_ = 0, right_ = 0, in_best_five_ = 0, not_finite_ = 0;
};

/// "7", or "7 (boat)" where there is a name.
std::string class_text(int64_t label, const std::vector<std::string>& names);

}  // namespace hoist
