// Gradient-boosted regression trees: the model of the default strategy of search and of the cost model. XGBoost makes
// them, on one thread from one seed, so they are deterministic; what it made is plain data here, which is evaluated and
// kept as text without it. A text of a stranger gives trees or nothing. Features are finite.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
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

  /// A line for each tree: its nodes, parents before children and left before right, as "FEATURE<NUMBER" where smaller
  /// numbers go left, and as a number where it ends.
  std::string save() const;
  /// Nothing where the text is no such trees over so many features.
  static std::optional<BoostedTrees> load(const std::string& text, size_t features);

 private:
  struct Node {
    int feature = -1;  ///< -1: an end
    float number = 0;  ///< smaller ones go left; at an end, what the tree adds
    size_t right = 0;  ///< among the tree's nodes; the left one is the next
  };
  using Tree = std::vector<Node>;
  BoostedTrees() = default;
  static bool load_node(std::istream& words, size_t features, int depth, Tree& tree);

  std::vector<Tree> trees_;
};

}  // namespace hoist::tuning
