// Tests that the time of lowering is proportional to the number of layers, for families of operators and shapes of
// models. Kernels of bounded size compile in bounded time, so that a whole compilation is linear as well.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "lowering/fusion/kernel_size.h"
#include "tests/lowering/fusion/long_models.h"

namespace hoist::linear_time_test {

// One operator of a family, of which a chain is made: each layer reads the result of the layer before.
struct Link {
  const char* operation;
  Ints shape;
  std::vector<Tensor> constants;
  std::map<std::string, Attribute> attributes;
  size_t results = 1;
};

NamedModel chain_of(const Link& link, int count) {
  NamedModel out;
  out.opset = 21;
  out.inputs = {{value(0), Scalar::f32, link.shape}};
  out.outputs = {{value(count), Scalar::f32, {}}};
  std::vector<std::string> constants;
  for (const Tensor& constant : link.constants)
    out.constants[constants.emplace_back("c" + std::to_string(constants.size()))] = constant;
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> inputs = {value(i)}, outputs = {value(i + 1)};
    inputs.insert(inputs.end(), constants.begin(), constants.end());
    for (size_t k = 1; k < link.results; ++k) outputs.push_back(value(i + 1) + "_" + std::to_string(k));
    out.layers.push_back({"layer" + std::to_string(i), link.operation, "", link.attributes, inputs, outputs});
  }
  return out;
}

// Kernels of bounded size compile in bounded time, so that a whole compilation is linear as well.
TEST(LinearTime, ChainsOfEveryFamilyAreLoweredInLinearTime) {
  const auto ones = [](const Ints& shape) {
    return Tensor::of(Scalar::f32, shape, std::vector<double>(static_cast<size_t>(element_count(shape)), 0.5));
  };
  const auto integers = [](const Ints& shape, const Ints& values) { return Tensor::of(Scalar::i64, shape, values); };
  const Ints rows = {4, 8}, images = {1, 4, 6, 6}, border = {1, 1, 1, 1};
  const std::map<std::string, Attribute> window = {{"kernel_shape", Ints{3, 3}}, {"pads", border}};
  const std::vector<Link> families = {
      {"Conv", images, {ones({4, 4, 3, 3})}, {{"pads", border}}},
      {"ConvTranspose", images, {ones({4, 4, 3, 3})}, {{"pads", border}}},
      {"MaxPool", images, {}, window},
      {"AveragePool", images, {}, window},
      {"LRN", images, {}, {{"size", int64_t{3}}}},
      {"MatMul", rows, {ones({8, 8})}, {}},
      {"Gemm", rows, {ones({8, 8}), ones({8})}, {}},
      {"Einsum", rows, {ones({8, 8})}, {{"equation", std::string("ij,jk->ik")}}},
      {"LayerNormalization", rows, {ones({8})}, {}},
      {"InstanceNormalization", images, {ones({4}), ones({4})}, {}},
      {"GroupNormalization", images, {ones({4}), ones({4})}, {{"num_groups", int64_t{2}}}},
      {"BatchNormalization", images, {ones({4}), ones({4}), ones({4}), ones({4})}, {}},
      {"Softmax", rows, {}, {}},
      {"CumSum", rows, {integers({}, {1})}, {}},
      {"TopK", rows, {integers({1}, {8})}, {}, 2},
      {"Gather", rows, {integers({8}, {1, 2, 3, 4, 5, 6, 7, 0})}, {{"axis", int64_t{1}}}},
      {"GatherElements", rows, {integers({4, 8}, Ints(32, 1))}, {}},
      {"ScatterElements", rows, {integers({1, 1}, {2}), ones({1, 1})}, {}},
      {"ScatterND", rows, {integers({1, 1}, {2}), ones({1, 8})}, {}},
      {"Trilu", rows, {}, {}},
      {"Pad", rows, {integers({4}, {0, 1, 0, -1})}, {{"mode", std::string("edge")}}},
      {"Resize",
       images,
       {Tensor(Scalar::f32, {0}), Tensor(Scalar::f32, {0}), integers({4}, {1, 4, 6, 6})},
       {{"mode", std::string("linear")}}},
      {"Clip", rows, {ones({}), ones({})}, {}},
      {"Mul", rows, {ones({8})}, {}},
  };
  for (const Link& link : families) {
    SCOPED_TRACE(link.operation);
    double once = 0, thrice = 0;
    const LoweredModel small = lowered(chain_of(link, 100), once), large = lowered(chain_of(link, 300), thrice);
    EXPECT_LE(large.steps.size(), 3 * small.steps.size() + 1);
    EXPECT_LT(thrice, 6 * once + 1) << "linear in layers, with room for a busy machine";
    EXPECT_LT(largest(large), 5000u);
    for (const LoweredKernel& kernel : large.kernels)
      EXPECT_LE(position_depth(kernel.expression).nestings, 2 * most_nestings);
  }
}

// For a model and one of four times as many layers. Other programs on the machine slow some measurements down.
void expect_linear(const NamedModel& once, const NamedModel& four) {
  constexpr int attempts = 3;
  double of_once = 0, of_four = 0;
  for (int i = 0; i < attempts; ++i) {
    lowered(once, of_once);
    lowered(four, of_four);
    if (of_four < 6 * of_once + 0.5) return;
  }
  ADD_FAILURE() << of_four << " s for four times the layers of " << of_once << " s";
}

// Passes that search the program for each definition take a time that grows with its square, which short chains do not
// show. Each link: a layer or two of about the same work.
TEST(LinearTime, PassesThatAddDefinitionsTakeLinearTime) {
  const auto model = [](Scalar scalar) {
    NamedModel out;
    out.opset = 21;
    out.inputs = {{value(0), scalar, {4, 8}}};
    out.constants["scale"] = Tensor::of(Scalar::f32, {}, std::vector<double>{0.1});
    out.constants["zero"] = Tensor::of(Scalar::i8, {}, std::vector<int>{0});
    out.constants["eight"] = Tensor::of(Scalar::i64, {1}, std::vector<int>{8});
    return out;
  };
  const auto conditional = [&](int count) {
    NamedModel out = model(Scalar::f32);
    out.inputs.push_back({"condition", Scalar::boolean, {}});
    const auto body = [](const char* branch, const char* operation, int i) {
      return NamedBody{branch, branch, {}, {}, {{"inner", operation, "", {}, {value(i)}, {"result"}}}, {"result"}};
    };
    for (int i = 0; i < count; ++i) {
      NamedCall call{"layer" + std::to_string(i), "If", "", {}, {"condition"}, {value(i + 1)}};
      call.bodies = {body("then_branch", "Neg", i), body("else_branch", "Abs", i)};
      out.layers.push_back(std::move(call));
    }
    return out;
  };
  const auto quantised = [&](int count) {
    NamedModel out = model(Scalar::f32);
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i), q = "q" + number;
      out.layers.push_back({"quantise" + number, "QuantizeLinear", "", {}, {value(i), "scale", "zero"}, {q}});
      out.layers.push_back({"dequantise" + number, "DequantizeLinear", "", {}, {q, "scale", "zero"}, {value(i + 1)}});
    }
    return out;
  };
  const auto sorted = [&](int count) {
    NamedModel out = model(Scalar::f32);
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      out.layers.push_back({"sort" + number, "TopK", "", {}, {value(i), "eight"}, {value(i + 1), "order" + number}});
    }
    return out;
  };
  const std::vector<std::pair<const char*, std::function<NamedModel(int)>>> families = {
      {"bodies", conditional}, {"quantisation", quantised}, {"sorting", sorted}};
  for (const auto& [name, chain_of_length] : families) {
    SCOPED_TRACE(name);
    NamedModel once = chain_of_length(500), four = chain_of_length(2000);
    once.outputs = {{value(500), Scalar::f32, {}}};
    four.outputs = {{value(2000), Scalar::f32, {}}};
    expect_linear(once, four);
  }
}

// Layers of a model that grows by links of one family, which need not be single layers.
class Layers {
 public:
  Layers(Scalar scalar, const Ints& shape) {
    model_.opset = 21;
    model_.inputs = {{"x", scalar, shape}};
  }

  std::string constant(const std::string& name, const Tensor& tensor) {
    model_.constants[name] = tensor;
    return name;
  }
  /// The first result of a new layer.
  std::string add(const std::string& operation, const std::vector<std::string>& inputs,
                  const Attributes& attributes = {}, size_t results = 1, std::vector<NamedBody> bodies = {}) {
    const size_t dot = operation.rfind('.');
    const std::string number = std::to_string(model_.layers.size());
    NamedCall call{"layer" + number, operation.substr(dot + 1), "", attributes, inputs, {"v" + number}};
    if (dot != std::string::npos) call.domain = operation.substr(0, dot);
    for (size_t i = 1; i < results; ++i) call.outputs.push_back("v" + number + "_" + std::to_string(i));
    call.bodies = std::move(bodies);
    model_.layers.push_back(std::move(call));
    return model_.layers.back().outputs[0];
  }
  std::string join(const std::string& a, const std::string& b) {
    return add(model_.inputs[0].scalar == Scalar::string ? "StringConcat" : "Add", {a, b});
  }
  NamedModel ending_with(const std::string& result) {
    model_.outputs = {{result, model_.inputs[0].scalar, {}}};
    return model_;
  }

 private:
  NamedModel model_;
};

struct Family {
  const char* name;
  Scalar scalar;
  Ints shape;
  std::function<std::string(Layers& layers, const std::string& input)> link;  // a value of the same type
};

Tensor halves(const Ints& shape) {
  return Tensor::of(Scalar::f32, shape, std::vector<double>(static_cast<size_t>(element_count(shape)), 0.5));
}
Tensor one_integer(int64_t value) { return Tensor::of(Scalar::i64, {1}, Ints{value}); }

std::string recurrent(Layers& layers, const std::string& x, const std::string& operation, int64_t gates) {
  const std::string states = layers.add(
      operation, {x, layers.constant("w", halves({1, 4 * gates, 4})), layers.constant("r", halves({1, 4 * gates, 4}))},
      {{"hidden_size", int64_t{4}}});
  return layers.add("Squeeze", {states, layers.constant("one", one_integer(1))});
}

std::string ensemble(Layers& layers, const std::string& x, double threshold) {
  const Attributes attributes = {{"n_targets", int64_t{1}},
                                 {"nodes_treeids", Ints{0, 0, 0}},
                                 {"nodes_nodeids", Ints{0, 1, 2}},
                                 {"nodes_featureids", Ints{1, 0, 0}},
                                 {"nodes_values", std::vector<double>{threshold, 0, 0}},
                                 {"nodes_modes", std::vector<std::string>{"BRANCH_LEQ", "LEAF", "LEAF"}},
                                 {"nodes_truenodeids", Ints{1, 0, 0}},
                                 {"nodes_falsenodeids", Ints{2, 0, 0}},
                                 {"target_treeids", Ints{0, 0}},
                                 {"target_nodeids", Ints{1, 2}},
                                 {"target_ids", Ints{0, 0}},
                                 {"target_weights", std::vector<double>{1, 2}}};
  return layers.add("ai.onnx.ml.TreeEnsembleRegressor", {x}, attributes);
}

std::string tree(Layers& layers, const std::string& x) { return layers.join(x, ensemble(layers, x, 0.5)); }

// The number of iterations is computed from the input.
std::string loop(Layers& layers, const std::string& x,
                 const std::vector<NamedCall>& calls = {{"inner", "Abs", "", {}, {"s"}, {"t"}}}) {
  const std::string sum = layers.add("ReduceSum", {x}, {{"keepdims", int64_t{0}}});
  const std::string trips = layers.add("Cast", {sum}, {{"to", int64_t{7}}});
  NamedBody body{"body", "body", {"i", "on", "s"}, {}, calls, {"on", "t"}};
  return layers.add("Loop", {trips, "", x}, {}, 1, {body});
}

std::string scan(Layers& layers, const std::string& x) {
  NamedBody body{"body", "body", {"s", "e"}, {}, {{"inner", "Add", "", {}, {"s", "e"}, {"sum"}}}, {"sum", "sum"}};
  const std::string initial = layers.constant("zeros", halves({8}));
  const std::string last = layers.add("Scan", {initial, x}, {{"num_scan_inputs", int64_t{1}}}, 2, {body});
  return last + "_1";
}

const Ints rows = {4, 8};

std::vector<Family> families() {
  return {
      {"LSTM", Scalar::f32, {2, 1, 4}, [](Layers& l, const std::string& x) { return recurrent(l, x, "LSTM", 4); }},
      {"GRU", Scalar::f32, {2, 1, 4}, [](Layers& l, const std::string& x) { return recurrent(l, x, "GRU", 3); }},
      {"RNN", Scalar::f32, {2, 1, 4}, [](Layers& l, const std::string& x) { return recurrent(l, x, "RNN", 1); }},
      {"trees", Scalar::f32, rows, tree},
      {"scans", Scalar::f32, rows, scan},
      {"loops", Scalar::f32, rows, [](Layers& l, const std::string& x) { return loop(l, x); }},
      {"strings",
       Scalar::string,
       {4},
       [](Layers& l, const std::string& x) {
         return l.add("StringNormalizer", {x}, {{"case_change_action", std::string("UPPER")}});
       }},
      {"parts", Scalar::f32, rows,
       [](Layers& l, const std::string& x) {
         const std::string part = l.add("Split", {x}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{2}}}, 2);
         return l.add("Concat", {part + "_1", part}, {{"axis", int64_t{1}}});
       }},
      {"sequences", Scalar::f32, rows,
       [](Layers& l, const std::string& x) {
         return l.add("SequenceAt", {l.add("SequenceConstruct", {x, x}), l.constant("one", one_integer(1))});
       }},
      {"normalised", Scalar::f32, rows,
       [](Layers& l, const std::string& x) {
         return l.add("ai.onnx.ml.Normalizer", {x}, {{"norm", std::string("L2")}});
       }},
      {"means", Scalar::f32, rows,
       [](Layers& l, const std::string& x) {
         return l.add("Sub", {x, l.add("ReduceMean", {x, l.constant("one", one_integer(1))})});
       }},
  };
}

NamedModel grown_chain(const Family& family, int links) {
  Layers layers(family.scalar, family.shape);
  std::string x = "x";
  for (int i = 0; i < links; ++i) x = family.link(layers, x);
  return layers.ending_with(x);
}

NamedModel grown_ladder(const Family& family, int links) {
  Layers layers(family.scalar, family.shape);
  std::string x = "x", before = "x";
  for (int i = 0; i < links; ++i) {
    const std::string next = family.link(layers, layers.join(x, before));
    before = std::exchange(x, next);
  }
  return layers.ending_with(x);
}

NamedModel grown_diamonds(const Family& family, int links) {
  Layers layers(family.scalar, family.shape);
  std::string x = "x";
  for (int i = 0; i < links; i += 2) x = layers.join(family.link(layers, x), family.link(layers, layers.join(x, x)));
  return layers.ending_with(x);
}

// All links read the input, and pairs of results are joined until one is left.
NamedModel grown_fan(const Family& family, int links) {
  Layers layers(family.scalar, family.shape);
  std::vector<std::string> all;
  std::string scaled = "x";
  for (int i = 0; i < links; ++i) {
    scaled = layers.join(scaled, "x");
    all.push_back(family.link(layers, scaled));
  }
  for (size_t i = 0; i + 1 < all.size(); i += 2) all.push_back(layers.join(all[i], all[i + 1]));
  return layers.ending_with(all.back());
}

TEST(LinearTime, ModelsOfEveryShapeAreLoweredInLinearTime) {
  for (const Family& family : families()) {
    for (const auto& grown : {grown_chain, grown_ladder, grown_diamonds, grown_fan}) {
      SCOPED_TRACE(family.name);
      expect_linear(grown(family, 40), grown(family, 160));
    }
  }
}

// All links dequantise the same weights, in equal layers that each product recomputes.
TEST(LinearTime, ProductsOfSharedWeightsNameLinearlyManyLayers) {
  const auto names_of = [](int links) {
    Layers layers(Scalar::f32, rows);
    const std::string scale = layers.constant("scale", Tensor::of(Scalar::f32, {}, std::vector<double>{0.1})),
                      zero = layers.constant("zero", Tensor::of(Scalar::i8, {}, std::vector<int>{0})),
                      weights = layers.constant("weights", Tensor::of(Scalar::i8, {8, 8}, std::vector<int>(64, 3)));
    std::string x = "x";
    for (int i = 0; i < links; ++i) {
      const std::string bytes = layers.add("QuantizeLinear", {x, scale, zero});
      const std::string left = layers.add("DequantizeLinear", {bytes, scale, zero});
      x = layers.add("MatMul", {left, layers.add("DequantizeLinear", {weights, scale, zero})});
    }
    double seconds = 0;
    const LoweredModel model = lowered(layers.ending_with(x), seconds);
    std::set<std::string> different;
    size_t names = 0;
    for (const PlanStep& step : model.steps) {
      names += step.layers.size();
      different.insert(step.layers.begin(), step.layers.end());
    }
    EXPECT_EQ(different.size(), static_cast<size_t>(4 * links)) << "a step names every layer";
    return names;
  };
  EXPECT_LE(names_of(300), 3 * names_of(100) + 300);
}

// Each part is a slice at a place of its own, which would make it a kernel of its own.
TEST(LinearTime, PartsOfASplitShareAKernel) {
  for (const int64_t axis : {0, 1}) {
    NamedModel model;
    model.opset = 21;
    model.inputs = {{"x", Scalar::f32, {6, 800}}};
    if (axis == 0) model.inputs[0].shape = {800, 6};
    model.layers = {{"layer", "Split", "", {{"axis", axis}, {"num_outputs", int64_t{400}}}, {"x"}, {}}};
    for (int i = 0; i < 400; ++i) {
      model.layers[0].outputs.push_back(value(i));
      model.outputs.push_back({value(i), Scalar::f32, {}});
    }
    double seconds = 0;
    const LoweredModel parts = lowered(model, seconds);
    EXPECT_EQ(parts.steps.size(), 400U);
    EXPECT_EQ(parts.kernels.size(), 1U);
    for (const LoweredKernel& kernel : parts.kernels) EXPECT_EQ(kernel.unproved, "");
  }
}

// Each part has a place of its own in the joined array as well, which would make it a kernel of its own.
TEST(LinearTime, JoinedPartsShareKernels) {
  constexpr int64_t count = 200;
  for (const int64_t axis : {0, 1}) {
    Layers layers(Scalar::f32, axis == 0 ? Ints{2 * count, 6} : Ints{6, 2 * count});
    const std::string first = layers.add("Split", {"x"}, {{"axis", axis}, {"num_outputs", count}}, count);
    std::vector<std::string> parts;
    for (int64_t i = 0; i < count; ++i)
      parts.push_back(layers.add("Relu", {i == 0 ? first : first + "_" + std::to_string(i)}));
    double seconds = 0;
    const LoweredModel joined = lowered(layers.ending_with(layers.add("Concat", parts, {{"axis", axis}})), seconds);
    EXPECT_LE(joined.kernels.size(), 1U + (count + 15) / 16);
    EXPECT_LT(largest(joined), 500U) << "no kernel selects from all parts";
  }
}

// The bodies read the condition with which iterations begin.
TEST(LinearTime, LoopsShareTheirConstants) {
  Layers layers(Scalar::f32, rows);
  std::string x = "x";
  for (int i = 0; i < 50; ++i) {
    x = loop(
        layers, x,
        {{"number", "Cast", "", {{"to", int64_t{1}}}, {"on"}, {"one"}}, {"inner", "Mul", "", {}, {"s", "one"}, {"t"}}});
  }
  double seconds = 0;
  EXPECT_LE(lowered(layers.ending_with(x), seconds).program.constants.size(), 2U);
}

// Ensembles differ in their tables, which would be parts of terms that differ.
TEST(LinearTime, SmallEnsemblesShareAKernel) {
  Layers layers(Scalar::f32, rows);
  std::vector<std::string> scores;
  for (int i = 0; i < 100; ++i) scores.push_back(ensemble(layers, "x", i));
  double seconds = 0;
  const LoweredModel joined =
      lowered(layers.ending_with(layers.add("Concat", scores, {{"axis", int64_t{1}}})), seconds);
  EXPECT_LE(joined.kernels.size(), 1U + (100 + 15) / 16);
}

}  // namespace hoist::linear_time_test
