// Tests the properties of definitions that passes and neural rules use.
#include "ir/properties/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "ir/base/seeded.h"
#include "ir/base/seen_terms.h"
#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/interpret_cost.h"
#include "ir/operators/operators.h"
#include "ir/program/program_builder.h"
#include "ir/text/text.h"

namespace hoist::properties_test {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Shapes = std::vector<std::vector<int64_t>>;

// The definition of a layer over f32 inputs a, b, c, ..., or over lists that determine shapes.
Expr term_of(const std::string& operation, const Shapes& shapes, const Attributes& attributes = {},
             const std::map<std::string, std::vector<int64_t>>& lists = {}) {
  ProgramBuilder builder("test", newest_version);
  NamedCall call{"layer", operation, "", attributes, {}, {"result"}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = i < 26 ? std::string(1, static_cast<char>('a' + i)) : "a" + std::to_string(i);
    const auto list = lists.find(name);
    if (list != lists.end())
      builder.add_constant(name, Tensor::of(Scalar::i64, shapes[i], list->second));
    else
      builder.add_input({name, Scalar::f32, shapes[i]});
    call.inputs.push_back(name);
  }
  builder.add_call(call);
  auto program = builder.finish();
  EXPECT_TRUE(program.ok()) << operation << ": " << (program.ok() ? "" : program.errors()[0].text());
  return without_operator_calls(program->definitions.back().expression);
}

std::vector<int64_t> ints(std::initializer_list<int64_t> list) { return list; }

TEST(Properties, WhoseNumbersAValueHas) {
  EXPECT_THAT(moved_from(term_of("Transpose", {{2, 3, 4}}, {{"perm", ints({2, 0, 1})}})), ElementsAre("a"));
  EXPECT_THAT(moved_from(term_of("Concat", {{2, 3}, {2, 5}}, {{"axis", int64_t{1}}})), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(
      moved_from(term_of("MaxPool", {{1, 2, 6, 6}}, {{"kernel_shape", ints({3, 3})}, {"pads", ints({1, 1, 1, 1})}})),
      ElementsAre("a"));
  EXPECT_THAT(moved_from(term_of("GlobalMaxPool", {{1, 2, 6, 6}})), ElementsAre("a"));
  EXPECT_THAT(moved_from(term_of("AveragePool", {{1, 2, 6, 6}}, {{"kernel_shape", ints({2, 2})}})), ElementsAre());
  EXPECT_THAT(moved_from(term_of("Relu", {{5}})), ElementsAre());
  EXPECT_THAT(moved_from(term_of("Pad", {{4}, {2}}, {}, {{"b", {1, 1}}})), ElementsAre());
}

TEST(Properties, PartsOfAConcatenation) {
  const auto joined = concatenation_of(term_of("Concat", {{2, 3, 2}, {2, 5, 2}, {2, 1, 2}}, {{"axis", int64_t{-2}}}));
  ASSERT_TRUE(joined.has_value());
  EXPECT_THAT(joined->parts, ElementsAre("a", "b", "c"));
  EXPECT_EQ(joined->dimension, 1u);
  EXPECT_FALSE(concatenation_of(term_of("Add", {{3}, {3}})).has_value());
}

// A zip takes no more than 64 arrays, so a concatenation of more joins concatenations.
TEST(Properties, PartsOfAConcatenationOfMany) {
  const auto joined = concatenation_of(term_of("Concat", Shapes(100, {2, 3}), {{"axis", int64_t{1}}}));
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->parts.size(), 100u);
  EXPECT_EQ(std::set(joined->parts.begin(), joined->parts.end()).size(), 100u);
  EXPECT_EQ(joined->dimension, 1u);
}

struct Expected {
  std::string operation;
  Shapes shapes;
  Attributes attributes;
  std::vector<size_t> summed;
  size_t channel, output;
  int64_t groups;
};

TEST(Properties, ProductsSayHowTheirWeightsAreLaidOut) {
  const std::vector<Expected> all = {
      {"Conv", {{1, 4, 6, 6}, {8, 4, 3, 3}, {8}}, {}, {1, 2, 3}, 0, 1, 1},
      {"Conv", {{1, 4, 6, 6}, {8, 2, 3, 3}}, {{"group", int64_t{2}}}, {1, 2, 3}, 0, 1, 2},
      {"Conv", {{1, 4, 6, 6}, {4, 1, 3, 3}}, {{"group", int64_t{4}}}, {2, 3}, 0, 1, 4},
      {"Conv", {{1, 4, 6, 6}, {1, 4, 1, 1}}, {}, {1}, 0, 1, 1},
      {"MatMul", {{5, 4}, {4, 3}}, {}, {0}, 1, 1, 1},
      {"MatMul", {{2, 5, 4}, {2, 4, 3}}, {}, {1}, 2, 2, 1},
      {"MatMul", {{5, 4}, {4, 1}}, {}, {0}, 1, 1, 1},
      {"Gemm", {{5, 4}, {3, 4}, {3}}, {{"transB", int64_t{1}}, {"alpha", 0.5}}, {1}, 0, 1, 1},
      {"ConvTranspose", {{1, 4, 6, 6}, {4, 8, 3, 3}}, {}, {0, 2, 3}, 1, 1, 1},
  };
  for (const Expected& e : all) {
    const auto product = product_form(term_of(e.operation, e.shapes, e.attributes));
    ASSERT_TRUE(product.has_value()) << e.operation;
    EXPECT_EQ(product->left, "a") << e.operation;
    EXPECT_EQ(product->right, "b") << e.operation;
    EXPECT_EQ(product->summed, e.summed) << e.operation;
    EXPECT_EQ(product->channel_dimension, e.channel) << e.operation;
    EXPECT_EQ(product->output_dimension, e.output) << e.operation;
    EXPECT_EQ(product->groups, e.groups) << e.operation;
  }
  EXPECT_FALSE(product_form(term_of("ReduceSum", {{3, 4}})).has_value());
  EXPECT_FALSE(product_form(term_of("Mul", {{3, 4}, {3, 4}})).has_value());
}

TEST(Properties, WhatCarriesTheScaleOfChannels) {
  const auto carries = [](Expr term, const std::map<std::string, size_t>& arrays) {
    return carries_scale(term, arrays).has_value();
  };
  const Shapes image = {{1, 4, 6, 6}};
  for (const char* operation : {"Relu", "Identity", "LeakyRelu", "Abs", "Neg", "GlobalAveragePool", "GlobalMaxPool"})
    EXPECT_TRUE(carries(term_of(operation, image), {{"a", 1}})) << operation;
  for (const char* operation : {"Sigmoid", "Exp", "Sqrt", "Softmax", "HardSwish", "Floor", "Elu"})
    EXPECT_FALSE(carries(term_of(operation, image), {{"a", 1}})) << operation;
  for (const char* operation : {"MaxPool", "AveragePool"}) {
    const Attributes pool = {{"kernel_shape", ints({3, 3})}, {"pads", ints({1, 1, 1, 1})}};
    EXPECT_TRUE(carries(term_of(operation, image, pool), {{"a", 1}})) << operation;
    EXPECT_FALSE(carries(term_of(operation, image, pool), {{"a", 2}})) << operation;
  }
  const Expr sum = term_of("Add", {{1, 4, 6}, {1, 4, 6}});
  EXPECT_FALSE(carries(sum, {{"a", 1}}));
  EXPECT_TRUE(carries(sum, {{"a", 1}, {"b", 1}}));
  const Expr norm = term_of("BatchNormalization", {{1, 4, 6, 6}, {4}, {4}, {4}, {4}});
  EXPECT_EQ(carries_scale(norm, {{"b", 0}, {"c", 0}}), 1u);
  EXPECT_FALSE(carries(norm, {{"b", 0}}));
  EXPECT_FALSE(carries(norm, {{"a", 1}}));
}

TEST(Properties, PoolingsAndExponentials) {
  EXPECT_TRUE(pools(term_of("MaxPool", {{1, 4, 6, 6}}, {{"kernel_shape", ints({2, 2})}})));
  EXPECT_TRUE(pools(term_of("GlobalAveragePool", {{1, 4, 6, 6}})));
  EXPECT_FALSE(pools(term_of("LRN", {{1, 4, 6, 6}}, {{"size", int64_t{3}}})));
  EXPECT_FALSE(pools(term_of("Softmax", {{1, 4, 6}})));
  EXPECT_TRUE(normalises_exponentials(term_of("Softmax", {{3, 4}})));
  EXPECT_FALSE(normalises_exponentials(term_of("LogSoftmax", {{3, 4}})));
  EXPECT_FALSE(normalises_exponentials(term_of("Sigmoid", {{3, 4}})));
}

// True if this line compares a value with a quoted name of an operator.
bool compares_a_name(const std::string& line, const std::set<std::string>& names) {
  const auto ends = [](std::string_view text, std::string_view end) {
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text.ends_with(end);
  };
  const auto begins = [](std::string_view text, std::string_view begin) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    return text.starts_with(begin);
  };
  for (size_t open = line.find('"'); open != std::string::npos;) {
    const size_t close = line.find('"', open + 1);
    if (close == std::string::npos) return false;
    const std::string_view before(line.data(), open), after = std::string_view(line).substr(close + 1);
    const bool compared = ends(before, "==") || ends(before, "!=") || ends(before, "count(") || ends(before, "find(") ||
                          begins(after, "==") || begins(after, "!=");
    if (compared && names.count(line.substr(open + 1, close - open - 1)) != 0) return true;
    open = line.find('"', close + 1);
  }
  return false;
}

// Code that compares an operator's name implements a list that lacks new operators.
TEST(Properties, NobodyComparesNamesOfOperators) {
  namespace fs = std::filesystem;
  std::set<std::string> names;
  for (const OperatorRow& row : operator_table()) names.insert(std::string(row.name));
  ASSERT_TRUE(compares_a_name("if (call.name == \"Conv\") return;", names));
  ASSERT_TRUE(compares_a_name("a(\"x\", b.count(\"Relu\") != 0)", names));
  ASSERT_FALSE(compares_a_name("add(\"Conv\", x == \"y\")", names));
  int files = 0;
  for (const char* folder : {"ir", "lowering", "neural_rules", "backends", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(HOIST_SOURCE_DIR) / folder)) {
      const std::string path = entry.path().string();
      const bool source = path.ends_with(".cpp") || path.ends_with(".h") || path.ends_with(".c");
      if (!source || path.find("/ir/operators/") != std::string::npos) continue;
      std::ifstream file(path);
      int number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        EXPECT_FALSE(compares_a_name(line, names)) << path << ":" << number << ": " << line;
      }
      ++files;
    }
  }
  EXPECT_GT(files, 300);
}

// A rarely computed alternative does not affect the properties and costs of a term; its value is the value of the
// selection.
TEST(Properties, RareBranchesDoNotCount) {
  const auto term = [](const char* choice) {
    auto e = parse(std::string("%x : [4][6]f32 |> map (\\row. ") + choice +
                   "(index 0i64 row > 1, row |> slide 3 1 |> map (reduce (+) 0) |> reduce (+) 0, index 1i64 row))");
    HOIST_CHECK(e.ok(), e.errors()[0].text());
    return *e;
  };
  const Expr rare = term("rarely"), usual = term("select");
  EXPECT_NE(rare, usual);
  EXPECT_EQ(*parse(print(rare)), rare);
  EXPECT_TRUE(folds(usual));
  EXPECT_FALSE(folds(rare));
  EXPECT_TRUE(has_windows(usual));
  EXPECT_FALSE(has_windows(rare));
  EXPECT_LT(interpretation_steps(rare), interpretation_steps(usual));
  const Bindings inputs = {{"x", seeded_tensor(Scalar::f32, {4, 6}, 1, 0, 0, 2)}};
  const Tensor a = *interpret(rare, inputs), b = *interpret(usual, inputs);
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(a.float_at(i), b.float_at(i));
}

TEST(SeenTerms, EachIsNewOnce) {
  SeenTerms seen;
  std::vector<Expr> terms;
  for (int64_t i = 0; i < 1000; ++i) terms.push_back(literal_integer(Scalar::i64, i * i));
  for (Expr e : terms) {
    EXPECT_FALSE(seen.contains(e));
    EXPECT_TRUE(seen.insert(e));
    EXPECT_FALSE(seen.insert(e));
  }
  for (Expr e : terms) EXPECT_TRUE(seen.contains(e));
  EXPECT_EQ(seen.size(), terms.size());
}

}  // namespace hoist::properties_test
