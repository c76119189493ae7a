#include "tools/tuning/strategies/boosted_trees.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ir/base/result.h"

namespace hoist::tuning {
namespace {

/// XGBoost fails only if it is misused or memory runs out.
void expect_done(int status) { HOIST_CHECK(status == 0, std::string("XGBoost: ") + XGBGetLastError()); }

std::shared_ptr<void> matrix_of(const FeatureTable& features) {
  DMatrixHandle matrix = nullptr;
  expect_done(XGDMatrixCreateFromMat_omp(features.numbers.data(), features.rows(), features.columns,
                                         std::numeric_limits<float>::quiet_NaN(), &matrix, 1));
  return {matrix, XGDMatrixFree};
}

std::shared_ptr<void> booster_of(DMatrixHandle matrix) {
  BoosterHandle booster = nullptr;
  expect_done(XGBoosterCreate(&matrix, 1, &booster));
  std::shared_ptr<void> owner(booster, XGBoosterFree);
  for (const auto& [name, value] : {std::pair("nthread", "1"), std::pair("verbosity", "0")})
    expect_done(XGBoosterSetParam(booster, name, value));
  return owner;
}

/// The trees that XGBoost has made, in the form in which it saves them.
nlohmann::json trees_of(BoosterHandle booster) {
  bst_ulong length = 0;
  const char* text = nullptr;
  expect_done(XGBoosterSaveModelToBuffer(booster, R"({"format": "json"})", &length, &text));
  return nlohmann::json::parse(text, text + length).at("learner").at("gradient_booster").at("model").at("trees");
}

constexpr int deepest = 64;

}  // namespace

void FeatureTable::add(const std::vector<float>& row) {
  if (numbers.empty()) columns = row.size();
  HOIST_CHECK(row.size() == columns, "rows of different lengths");
  numbers.insert(numbers.end(), row.begin(), row.end());
}

BoostedTrees BoostedTrees::fit(const FeatureTable& features, const std::vector<float>& labels,
                               const BoostedTreesOptions& options) {
  HOIST_CHECK(labels.size() == features.rows() && !labels.empty(), "a label for each row");
  const auto matrix = matrix_of(features);
  expect_done(XGDMatrixSetFloatInfo(matrix.get(), "label", labels.data(), labels.size()));
  if (options.ranks) {
    const auto all = static_cast<unsigned>(labels.size());
    expect_done(XGDMatrixSetUIntInfo(matrix.get(), "group", &all, 1));
  }
  const DMatrixHandle handle = matrix.get();
  const auto booster = booster_of(handle);
  const std::vector<std::pair<const char*, std::string>> parameters = {
      {"objective", options.ranks ? "rank:pairwise" : "reg:squarederror"},
      {"tree_method", "hist"},
      {"max_depth", std::to_string(options.depth)},
      {"eta", std::to_string(options.rate)},
      {"subsample", std::to_string(options.rows_of_a_tree)},
      {"colsample_bytree", std::to_string(options.columns_of_a_tree)},
      {"seed", std::to_string(options.seed % 1'000'000'007)},
  };
  for (const auto& [name, value] : parameters) expect_done(XGBoosterSetParam(booster.get(), name, value.c_str()));
  for (int round = 0; round < options.rounds; ++round)
    expect_done(XGBoosterUpdateOneIter(booster.get(), round, matrix.get()));
  BoostedTrees made;
  for (const nlohmann::json& saved : trees_of(booster.get())) {
    const auto left = saved.at("left_children").get<std::vector<int>>();
    const auto right = saved.at("right_children").get<std::vector<int>>();
    const auto feature = saved.at("split_indices").get<std::vector<int>>();
    const auto number = saved.at("split_conditions").get<std::vector<float>>();
    Tree& tree = made.trees_.emplace_back();
    const std::function<void(size_t)> add = [&](size_t node) {
      const size_t place = tree.size();
      tree.push_back({left[node] < 0 ? -1 : feature[node], number[node], 0});
      if (left[node] < 0) return;
      add(static_cast<size_t>(left[node]));
      tree[place].right = tree.size();
      add(static_cast<size_t>(right[node]));
    };
    add(0);
  }
  return made;
}

std::vector<float> BoostedTrees::predict(const FeatureTable& features) const {
  constexpr float base = 0.5F;  // XGBoost's trees start from it
  std::vector<float> out;
  for (size_t row = 0; row < features.rows(); ++row) {
    const float* numbers = features.numbers.data() + row * features.columns;
    float sum = base;
    for (const Tree& tree : trees_) {
      size_t node = 0;
      while (tree[node].feature >= 0)
        node = numbers[tree[node].feature] < tree[node].number ? node + 1 : tree[node].right;
      sum += tree[node].number;
    }
    out.push_back(sum);
  }
  return out;
}

std::string BoostedTrees::save() const {
  std::string out;
  for (const Tree& tree : trees_) {
    const char* before = "";
    for (const Node& node : tree) {
      out += before;
      if (node.feature >= 0) out += fmt::format("{}<", node.feature);
      out += fmt::format("{}", node.number);
      before = " ";
    }
    out += '\n';
  }
  return out;
}

bool BoostedTrees::load_node(std::istream& words, size_t features, int depth, Tree& tree) {
  std::string word;
  if (depth > deepest || !(words >> word)) return false;
  Node node;
  const size_t less = word.find('<');
  const char* number = word.data();
  const char* const end = word.data() + word.size();
  if (less != std::string::npos) {
    const auto parsed = std::from_chars(number, number + less, node.feature);
    if (parsed.ec != std::errc() || parsed.ptr != number + less) return false;
    if (node.feature < 0 || static_cast<size_t>(node.feature) >= features) return false;
    number += less + 1;
  }
  const auto parsed = std::from_chars(number, end, node.number);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(node.number)) return false;
  const size_t place = tree.size();
  tree.push_back(node);
  if (node.feature < 0) return true;
  if (!load_node(words, features, depth + 1, tree)) return false;
  tree[place].right = tree.size();
  return load_node(words, features, depth + 1, tree);
}

std::optional<BoostedTrees> BoostedTrees::load(const std::string& text, size_t features) {
  BoostedTrees out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string rest;
    if (!load_node(words, features, 0, out.trees_.emplace_back()) || words >> rest) return std::nullopt;
  }
  return out;
}

}  // namespace hoist::tuning
