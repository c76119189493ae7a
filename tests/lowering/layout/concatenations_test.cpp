// Tests that concatenations share arrays: dense blocks, nested and partial concatenations, with the interpreter's
// values and without copies where parts follow each other.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/text/program_text.h"
#include "tests/lowering/stored_run.h"

namespace hoist::concatenations_test {

Program parsed(const std::string& text) {
  auto program = parse_program("program version 21\n" + text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return std::move(*program);
}

Bindings random_inputs(const Program& program, std::mt19937& random) {
  Bindings out;
  for (const auto& [name, type] : program.inputs) {
    Tensor values(Scalar::f32, shape_of(type));
    for (int64_t i = 0; i < values.size(); ++i) values.set_float(i, static_cast<double>(random() % 17) / 8 - 1);
    out.emplace(name, std::move(values));
  }
  return out;
}

LoweredModel lowered(const Program& program) {
  auto model = lower_model(program, {}, Profile{});
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return std::move(*model);
}

void expect_values(const Program& program, const LoweredModel& model, std::mt19937& random) {
  const Bindings inputs = random_inputs(program, random), expected = values_of(program, inputs);
  for (const bool low : {false, true}) {
    for (const auto& [name, value] : outputs_of(model, inputs, low))
      EXPECT_TRUE(close(value, expected.at(name), 1e-5)) << name << (low ? ", low" : ", stored");
  }
}

// Each layer reads all features before it, of `rows` rows and 8 new columns a layer. A chain concatenates the features
// so far and the new ones; otherwise all parts are named again.
std::string dense_block(int layers, bool is_chain) {
  std::string text = "input %x : [12][8]f32\ndefine %f0 : [12][8]f32 = Sin(%x) from \"f0\"\n", parts = "%f0",
              all = "%f0";
  for (int i = 1; i <= layers; ++i) {
    text += fmt::format("input %w{} : [{}][8]f32\n", i, 8 * i);
    text += fmt::format("define %e{0} : [12][{1}]f32 = Sqrt({2}) from \"e{0}\"\n", i, 8 * i, all);
    text += fmt::format("define %f{0} : [12][8]f32 = MatMul(%e{0}, %w{0}) from \"f{0}\"\n", i);
    parts = fmt::format("{}, %f{}", is_chain ? all : parts, i);
    text += fmt::format("define %c{0} : [12][{1}]f32 = Concat({2}; axis = 1) from \"c{0}\"\n", i, 8 * i + 8, parts);
    all = fmt::format("%c{}", i);
  }
  return text + fmt::format("define %y : [12][{}]f32 = Exp({}) from \"y\"\noutput %y\n", 8 * layers + 8, all);
}

TEST(Concatenations, OfDenseBlocksAreRegionsOfTheLast) {
  std::mt19937 random(1);
  for (const bool is_chain : {false, true}) {
    const Program program = parsed(dense_block(6, is_chain));
    const LoweredModel model = lowered(program);
    EXPECT_LE(model.steps.size(), 1U + 2 * 6 + 1) << is_chain;  // f0, e and f of each layer, y
    expect_values(program, model, random);
  }
}

// Concatenations of random values before, along both dimensions, whose parts may repeat, be inputs or outputs, or
// belong to several concatenations.
TEST(Concatenations, OfRandomPartsHaveTheInterpretersValues) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::string text = "input %x : [4][8]f32\n";
    struct Value {
      std::string name;
      int64_t rows, columns;
    };
    std::vector<Value> values = {{"%x", 4, 8}};
    std::vector<std::string> used;
    for (int i = 0; i < 12; ++i) {
      const Value& first = values[random() % values.size()];
      Value made = {fmt::format("%v{}", i), first.rows, first.columns};
      std::string call = fmt::format("Sin({})", first.name);
      if (random() % 2 == 0) {
        const bool of_rows = random() % 2 == 0;
        std::vector<std::string> parts = {first.name};
        for (size_t k = random() % 4; k > 0; --k) {
          const Value& next = values[random() % values.size()];
          if ((of_rows ? next.columns != made.columns : next.rows != made.rows) || made.rows * made.columns > 4096)
            continue;
          (of_rows ? made.rows : made.columns) += of_rows ? next.rows : next.columns;
          parts.push_back(next.name);
        }
        call = fmt::format("Concat({}; axis = {})", fmt::join(parts, ", "), of_rows ? 0 : 1);
      }
      text += fmt::format("define {} : [{}][{}]f32 = {} from \"l{}\"\n", made.name, made.rows, made.columns, call, i);
      values.push_back(made);
    }
    for (size_t i = 1; i < values.size(); ++i) {
      if (i + 1 == values.size() || random() % 4 == 0) text += "output " + values[i].name + "\n";
    }
    SCOPED_TRACE(text);
    const Program program = parsed(text);
    expect_values(program, lowered(program), random);
  }
}

}  // namespace hoist::concatenations_test
