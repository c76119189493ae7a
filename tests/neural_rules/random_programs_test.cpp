// Small random programs of layers that move numbers (casts, splits, concatenations with inputs, poolings with
// positions, largest elements) between products, with outputs anywhere: every rule is rewritten everywhere it applies,
// and whole studies run to their end. HOIST_RANDOM_GRAPHS sets the number of programs, HOIST_RANDOM_SEED the first
// seed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>

#include "ir/program/program_values.h"
#include "neural_rules/calibration/site_statistics.h"
#include "neural_rules/choice/choose.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/evaluated_model.h"

namespace hoist::random_programs_test {

using Shape = std::vector<int64_t>;

uint64_t number_in(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {
    model_.name = "random";
    constexpr int64_t opsets[] = {13, 14, 17, 21, 23};
    model_.opset = opsets[below(std::size(opsets))];
  }

  Program make() {
    const size_t inputs = 1 + below(3);
    for (size_t i = 0; i < inputs; ++i) {
      const std::string name = fmt::format("x{}", i);
      model_.inputs.push_back({name, Scalar::f32, {1, 4, 4, 4}});
      values_.push_back({name, {1, 4, 4, 4}});
    }
    const size_t layers = 3 + below(9);
    for (size_t tries = 0; model_.layers.size() < layers && tries < 60; ++tries) grow();
    return finish();
  }

 private:
  struct Value {
    std::string name;
    Shape shape;
  };

  size_t below(size_t n) { return random_() % n; }
  bool chance(size_t percent) { return below(100) < percent; }
  const Value& any() { return values_[chance(60) ? values_.size() - 1 : below(values_.size())]; }
  std::string fresh(const std::string& stem) { return fmt::format("{}{}", stem, ++names_); }

  std::string constant(const Shape& shape, double deviation) {
    const std::string name = fresh("c");
    model_.constants[name] = normal_tensor(shape, deviation, 0, random_());
    return name;
  }
  std::string integers(const Shape& numbers) {
    const std::string name = fresh("i");
    model_.constants[name] = Tensor::of<int64_t>(Scalar::i64, {static_cast<int64_t>(numbers.size())}, numbers);
    return name;
  }

  // Adds the layer if the program stays well typed; its f32 results become possible operands.
  void add(const std::string& operation, std::vector<std::string> inputs,
           std::map<std::string, Attribute> attributes = {}, size_t outputs = 1) {
    NamedCall layer{fresh("layer"), operation, "", std::move(attributes), std::move(inputs), {}};
    for (size_t i = 0; i < outputs; ++i) layer.outputs.push_back(fresh("v"));
    NamedModel with = model_;
    with.layers.push_back(layer);
    for (const std::string& output : layer.outputs) with.outputs.push_back({output, Scalar::f32, {}});
    const auto program = program_of(with);
    if (!program) return;
    std::vector<Value> made;
    for (std::string& output : layer.outputs) {
      const Type type = find_type(*program, output);
      if (type == nullptr || element_count(shape_of(type)) == 0) return;
      if (leaf_of(type)->scalar == Scalar::f32)
        made.push_back({output, shape_of(type)});
      else if (chance(30))
        others_.push_back(output);
      else if (outputs > 1)
        output.clear();
    }
    model_.layers.push_back(std::move(layer));
    values_.insert(values_.end(), made.begin(), made.end());
  }

  void grow() {
    const Value x = any();
    const size_t rank = x.shape.size();
    const auto axis = static_cast<int64_t>(below(std::max<size_t>(rank, 1)));
    switch (below(20)) {
      case 0:
      case 1:
      case 2:
        if (rank >= 2) add("MatMul", {x.name, constant({x.shape.back(), x.shape.back()}, 0.4)});
        break;
      case 3:
      case 4:
        if (rank == 4)
          add("Conv", {x.name, constant({x.shape[1], x.shape[1], 1, 1}, 0.4), constant({x.shape[1]}, 0.1)});
        break;
      case 5:
        add(chance(50) ? "Relu" : chance(50) ? "Tanh" : "Identity", {x.name});
        break;
      case 6:
        add("Cast", {x.name}, {{"to", int64_t{1}}});  // a cast from f32 to f32
        break;
      case 7:
        cast_there_and_back(x);
        break;
      case 8:
      case 9:
        concatenate(x, axis);
        break;
      case 10:
      case 11:
        if (rank > 0) split(x, axis);
        break;
      case 12:
        if (rank == 4)
          add("MaxPool", {x.name}, {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{1, 1}}}, chance(50) ? 2 : 1);
        break;
      case 13:
        if (rank > 0) add("TopK", {x.name, integers({1})}, {{"axis", axis}}, 2);
        break;
      case 14:
        transpose(x);
        break;
      case 15:
        add("Reshape", {x.name, integers(chance(50) ? Shape{1, -1} : Shape{x.shape.empty() ? 1 : x.shape[0], -1, 1})});
        break;
      case 16:
        if (rank > 0) add("Gather", {x.name, integers({0})}, {{"axis", axis}});
        break;
      case 17:
        if (rank > 0) add("Slice", {x.name, integers({0}), integers({1}), integers({axis})});
        break;
      case 18:
        add(chance(50) ? "Add" : "Mul", {x.name, any().name});
        break;
      default:
        if (rank > 0) add(chance(50) ? "Softmax" : "Flatten", {x.name}, {{"axis", axis}});
    }
  }

  void cast_there_and_back(const Value& x) {
    const size_t before = others_.size();
    const std::string half = fresh("half");
    model_.layers.push_back({fresh("layer"), "Cast", "", {{"to", int64_t{10}}}, {x.name}, {half}});
    add("Cast", {half}, {{"to", int64_t{1}}});
    others_.resize(before);
  }

  void concatenate(const Value& x, int64_t axis) {
    const std::vector<Value> known = values_;
    std::vector<std::string> parts = {x.name};
    for (const Value& other : known) {
      if (other.shape == x.shape && chance(60)) parts.push_back(other.name);
    }
    if (chance(20)) parts.push_back(x.name);
    if (!x.shape.empty()) add("Concat", parts, {{"axis", axis}});
  }

  void split(const Value& x, int64_t axis) {
    const int64_t extent = x.shape[static_cast<size_t>(axis)];
    if (extent < 2) return;
    add("Split", {x.name, integers({1, extent - 1})}, {{"axis", axis}}, 2);
  }

  void transpose(const Value& x) {
    Shape order(x.shape.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::shuffle(order.begin(), order.end(), random_);
    add("Transpose", {x.name}, {{"perm", order}});
  }

  // The last value, some others, and sometimes an unchanged input or results of other types than f32.
  Program finish() {
    std::vector<std::string> outputs = {values_.back().name};
    const auto give = [&](const std::string& name) {
      if (std::find(outputs.begin(), outputs.end(), name) == outputs.end()) outputs.push_back(name);
    };
    for (const Value& value : values_) {
      const bool is_input = value.name.starts_with("x");
      if (chance(is_input ? 10 : 25)) give(value.name);
    }
    for (const std::string& other : others_) give(other);
    for (const std::string& output : outputs) model_.outputs.push_back({output, Scalar::f32, {}});
    auto program = program_of(model_);
    HOIST_CHECK(program.ok(), program.errors()[0].text());
    return std::move(*program);
  }

  std::mt19937_64 random_;
  NamedModel model_;
  std::vector<Value> values_;
  std::vector<std::string> others_;  // integers, f16
  int names_ = 0;
};

// Rules that are distinguished by their effect on the program.
std::vector<std::vector<std::string>> rules_to_try() {
  std::vector<std::vector<std::string>> out;
  for (const NeuralRule& rule : neural_rules()) {
    std::vector<std::string>& together = out.emplace_back(1, std::string(rule.name));
    if (const auto input = rule.input()) {
      for (const NeuralRule& format : neural_rules()) {
        if (format.stored && gives(format.name, *input)) together.emplace_back(format.name);
      }
    }
  }
  return out;
}

TEST(RandomPrograms, EveryRuleIsRewrittenWhereItApplies) {
  const uint64_t models = number_in("HOIST_RANDOM_GRAPHS", 60), first = number_in("HOIST_RANDOM_SEED", 0);
  uint64_t rewritten = 0;
  for (uint64_t seed = first; seed < first + models; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const CalibratedModel model = calibrated(Generator(seed).make(), 2, seed);
    const std::vector<Site> sites = find_sites(model.program);
    const Bindings before = all_values(model.program, model.samples[0]);
    for (const std::vector<std::string>& rules : rules_to_try()) {
      const auto assignment = uniform_assignment(model.program, sites, rules);
      if (!assignment) continue;
      const auto changed = rewrite(model.program, *assignment, model.statistics);
      if (!changed) continue;  // for example, a range that the format lacks
      ++rewritten;
      SCOPED_TRACE(rules[0]);
      const Bindings after = all_values(changed->program, model.samples[0]);
      for (const std::string& output : model.program.outputs) {
        EXPECT_EQ(before.at(output).shape(), after.at(output).shape()) << output;
        EXPECT_EQ(before.at(output).scalar(), after.at(output).scalar()) << output;
      }
    }
  }
  EXPECT_GT(rewritten, 5 * models);
}

Samples samples_of(const Program& program, uint64_t seed) { return normal_samples(program, 3, seed); }

TEST(RandomPrograms, StudiesRunToTheirEnd) {
  const uint64_t models = number_in("HOIST_RANDOM_GRAPHS", 12), first = number_in("HOIST_RANDOM_SEED", 0);
  uint64_t changed = 0;
  for (uint64_t seed = first; seed < first + models; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Program program = Generator(seed).make();
    ChooseOptions options;
    options.budget.limit = 20;
    options.objective = seed % 2 == 0 ? Objective::size : Objective::time;
    options.sensitivity.measure_all = false;
    options.least_timing_seconds = 0;
    options.timing_rounds = 5;
    const auto found =
        choose(program, samples_of(program, seed), samples_of(program, seed + 100), evaluated_models(), options);
    ASSERT_TRUE(found.ok()) << found.errors()[0].text();
    EXPECT_TRUE(found->study.budget_met);
    changed += found->chosen.empty() ? 0 : 1;
  }
  EXPECT_GT(changed, models / 4);
}

}  // namespace hoist::random_programs_test
