#include "tools/tuning/strategies/boosted_trees.h"

#include <xgboost/c_api.h>

#include <limits>

#include "ir/result.h"

namespace hoist::tuning {
namespace {

/// XGBoost fails where it is used wrongly, or memory runs out.
void expect_done(int status) { HOIST_CHECK(status == 0, std::string("XGBoost: ") + XGBGetLastError()); }

std::shared_ptr<void> matrix_of(const FeatureTable& features) {
  DMatrixHandle matrix = nullptr;
  expect_done(XGDMatrixCreateFromMat_omp(features.numbers.data(), features.rows(), features.columns,
                                         std::numeric_limits<float>::quiet_NaN(), &matrix, 1));
  return {matrix, XGDMatrixFree};
}

std::shared_ptr<void> booster_of(const DMatrixHandle* matrix) {
  BoosterHandle booster = nullptr;
  expect_done(XGBoosterCreate(matrix, matrix == nullptr ? 0 : 1, &booster));
  std::shared_ptr<void> owner(booster, XGBoosterFree);
  for (const auto& [name, value] : {std::pair("nthread", "1"), std::pair("verbosity", "0")})
    expect_done(XGBoosterSetParam(booster, name, value));
  return owner;
}

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
  DMatrixHandle handle = matrix.get();
  auto booster = booster_of(&handle);
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
  return BoostedTrees(std::move(booster));
}

std::vector<float> BoostedTrees::predict(const FeatureTable& features) const {
  if (features.rows() == 0) return {};
  const auto matrix = matrix_of(features);
  bst_ulong length = 0;
  const float* numbers = nullptr;
  expect_done(XGBoosterPredict(booster_.get(), matrix.get(), 0, 0, 0, &length, &numbers));
  return {numbers, numbers + length};
}

std::string BoostedTrees::save() const {
  bst_ulong length = 0;
  const char* text = nullptr;
  expect_done(XGBoosterSaveModelToBuffer(booster_.get(), R"({"format": "json"})", &length, &text));
  return {text, length};
}

std::unique_ptr<BoostedTrees> BoostedTrees::load(const std::string& text) {
  auto booster = booster_of(nullptr);
  if (XGBoosterLoadModelFromBuffer(booster.get(), text.data(), text.size()) != 0) return nullptr;
  return std::unique_ptr<BoostedTrees>(new BoostedTrees(std::move(booster)));
}

}  // namespace hoist::tuning
