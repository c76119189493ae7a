// Gradient-boosted regression trees: the model of the default search strategy and of the cost model. XGBoost fits them
// on one thread with a fixed seed, so they are deterministic; the result is plain data, which is evaluated and stored
// without XGBoost. Parsing untrusted text gives trees or nothing. Features must be finite.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace hoist::tuning {

/// Rows of equal length.
struct FeatureTable {
  size_t columns = 0;
  std::vector<float> numbers;

  size_t rows() const { return columns == 0 ? 0 : numbers.size() / columns; }
  void add(const std::vector<float>& row);
};

struct BoostedTreesOptions {
  bool ranks = false;  ///< fit only the order of the labels, else their squared error
  int rounds = 100;
  int depth = 3;
  double rate = 0.3;
  double rows_of_a_tree = 1, columns_of_a_tree = 1;  ///< random shares
  uint64_t seed = 0;
};

class BoostedTrees {
 public:
  static BoostedTrees fit(const FeatureTable& features, const std::vector<float>& labels,
                          const BoostedTreesOptions& options);
  /// One prediction per row, which increases with the label.
  std::vector<float> predict(const FeatureTable& features) const;

  /// One line per tree with its nodes in preorder: "FEATURE<NUMBER" sends smaller values to the left; a leaf is a
  /// number.
  std::string save() const;
  /// Empty if the text is not a list of such trees with this number of features.
  static std::optional<BoostedTrees> load(const std::string& text, size_t features);

 private:
  struct Node {
    int feature = -1;  ///< -1: a leaf
    float number = 0;  ///< smaller values go left; at a leaf, the value that the tree adds
    size_t right = 0;  ///< index of the right child; the left child is the next node
  };
  using Tree = std::vector<Node>;
  BoostedTrees() = default;
  static bool load_node(std::istream& words, size_t features, int depth, Tree& tree);

  std::vector<Tree> trees_;
};

}  // namespace hoist::tuning
