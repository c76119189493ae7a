// The accuracy of a classifier: the best classes of scores, and the counts of answers per label. For run and evaluate.
// To compare two models use neural_rules/choice/metric.h.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {

/// Reads the names of classes, one per line, class 0 first. Errors: no such file, more than 2^20 lines.
Result<std::vector<std::string>> read_class_names(const std::string& file);

struct ScoredClass {
  int64_t label = 0;
  double score = 0;
};
/// The highest of `classes` scores from flat position `first`, in descending order, the first of equal scores first;
/// NaN is lowest.
std::vector<ScoredClass> best_classes(const Tensor& scores, int64_t first, int64_t classes, size_t count);

/// The number of elements that are NaN or infinite; 0 for integers.
int64_t count_not_finite(const Tensor& tensor);

/// The share of right answers achieved by guessing, or by always answering the commonest label, for samples with these
/// labels; without labels, for equally frequent classes. Precondition: classes > 0.
double guessing_share(int64_t classes, const std::vector<int64_t>& labels = {});
/// A possible reason if the 95 % interval of the share of right answers includes the share of guessing; otherwise "".
std::string chance_warning(int64_t right, int64_t samples, double guessing);

/// Gathers the answers for labelled samples.
class ScoreCard {
 public:
  explicit ScoreCard(int64_t classes);
  /// Adds one sample, whose scores begin at flat position `first`.
  void add(const Tensor& scores, int64_t first, int64_t label);

  /// Adds the answers for another part of the data, in any order of parts. The number of classes must be the same.
  void add(const ScoreCard& other);

  int64_t samples() const { return samples_; }
  int64_t right() const { return right_; }
  int64_t in_best_five() const { return in_best_five_; }
  int64_t not_finite() const { return not_finite_; }  ///< samples with a NaN or an infinite score
  int64_t classes() const { return static_cast<int64_t>(labels_.size()); }

  /// A warning with likely causes if the 95 % interval of the accuracy includes that of guessing, or of always
  /// answering the commonest label; else "".
  std::string chance_warning() const;

  /// One row per class that has samples: samples, correct answers, and the most frequent wrong class.
  std::vector<std::vector<std::string>> class_rows(const std::vector<std::string>& names) const;
  /// {"top5", "not_finite", "classes": [{"label", "name", "samples", "right"}], "confusion": [{"label", "answer",
  /// "samples"}]}: labels that have samples, and wrong answers, most frequent first.
  nlohmann::ordered_json to_json(const std::vector<std::string>& names) const;

  /// All counts, for another process: [label, samples, right, [[answer, samples], ...]] for each label that occurs.
  nlohmann::json counts() const;
  /// Parses untrusted text from counts(). Errors: it has another form, or its counts do not add up to `samples` samples
  /// of `classes` classes.
  static Result<ScoreCard> from_counts(const nlohmann::json& counts, int64_t classes, int64_t samples);

 private:
  struct Label {
    int64_t samples = 0, right = 0;
    std::map<int64_t, int64_t> answers = {};  ///< wrong answers; -1 is none
  };
  std::vector<Label> labels_;
  int64_t samples_ = 0, right_ = 0, in_best_five_ = 0, not_finite_ = 0;
};

/// "7", or "7 (boat)" if the class has a name.
std::string class_text(int64_t label, const std::vector<std::string>& names);

}  // namespace hoist
