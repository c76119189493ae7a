// Gradient-boosted regression trees, as XGBoost has them: the model of the default strategy of search and of the cost
// model. Deterministic: one thread, one seed. Not for models of strangers: XGBoost reads what `load` is given.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hoist::tuning {

/// Rows of equally many numbers.
struct FeatureTable {
  size_t columns = 0;
  std::vector<float> numbers;

  size_t rows() const { return columns == 0 ? 0 : numbers.size() / columns; }
  void add(const std::vector<float>& row);
};

struct BoostedTreesOptions {
  bool ranks = false;  ///< only the order of the labels counts, else their squared error
  int rounds = 100;
  int depth = 3;
  double rate = 0.3;
  double rows_of_a_tree = 1, columns_of_a_tree = 1;  ///< shares, drawn at random
  uint64_t seed = 0;
};

class BoostedTrees {
 public:
  static BoostedTrees fit(const FeatureTable& features, const std::vector<float>& labels,
                          const BoostedTreesOptions& options);
  /// One number a row; the larger the label was, the larger.
  std::vector<float> predict(const FeatureTable& features) const;

  /// As JSON that load reads.
  std::string save() const;
  /// Nothing where the text is no such model.
  static std::unique_ptr<BoostedTrees> load(const std::string& text);

 private:
  explicit BoostedTrees(std::shared_ptr<void> booster) : booster_(std::move(booster)) {}
  std::shared_ptr<void> booster_;
};

}  // namespace hoist::tuning
