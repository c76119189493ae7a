// Operators over arrays that are as long as data decide, against the same calls over arrays of that length, interpreted
// and through all passes: none of the elements, some, and as many as there is room for.
#include <gmock/gmock.h>

#include <random>

#include "called_outputs.h"

namespace hoist {
namespace {

using testing::HasSubstr;

/// Calls that read "y", which has the elements of `x` along `axis` that a mask keeps, and x2, x3, ...
struct Counted {
  Tensor x;
  int64_t axis = 0;
  std::vector<NamedCall> calls;
  std::vector<std::string> outputs = {"z"};
  std::vector<Tensor> more = {};
  std::map<std::string, Tensor> constants = {};
  int64_t least = 0;  ///< elements below which the calls have no meaning
};

Tensor compressed(const Tensor& x, int64_t axis, const std::vector<int64_t>& mask) {
  std::vector<int64_t> shape = x.shape();
  int64_t& extent = shape[static_cast<size_t>(axis)];
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t n = extent;
  extent = std::count(mask.begin(), mask.end(), 1);
  Tensor out(x.scalar(), shape);
  int64_t next = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (mask[static_cast<size_t>(i / inner % n)] == 0) continue;
    if (is_float(x.scalar()))
      out.set_float(next++, x.float_at(i));
    else
      out.set_integer(next++, x.integer_at(i));
  }
  return out;
}

std::vector<std::vector<int64_t>> drawn_masks(int64_t n, int64_t least) {
  std::vector<std::vector<int64_t>> out;
  std::mt19937_64 random(static_cast<uint64_t>(n));
  for (int64_t kind = 0; kind < 5; ++kind) {
    std::vector<int64_t> mask;
    for (int64_t i = 0; i < n; ++i)
      mask.push_back(kind == 0 ? 0 : kind == 1 ? 1 : kind == 2 ? i == n - 1 : static_cast<int64_t>(random() % 2));
    if (std::count(mask.begin(), mask.end(), 1) >= least) out.push_back(mask);
  }
  return out;
}

void compare(const Counted& c) {
  const int64_t n = c.x.shape()[static_cast<size_t>(c.axis)];
  for (const std::vector<int64_t>& mask : drawn_masks(n, c.least)) {
    std::vector<Tensor> inputs = {c.x, Tensor::of(Scalar::boolean, {n}, mask)};
    inputs.insert(inputs.end(), c.more.begin(), c.more.end());
    std::vector<NamedCall> calls = {call_named("Compress", {"x0", "x1"}, {"y"}, {{"axis", c.axis}})};
    calls.insert(calls.end(), c.calls.begin(), c.calls.end());
    const auto found = outputs_of_calls(inputs, calls, c.outputs, c.constants);
    inputs[0] = compressed(c.x, c.axis, mask);
    calls[0] = call_named("Identity", {"x0"}, {"y"});
    const auto wanted = interpreted_outputs(program_of_calls(inputs, calls, c.outputs, c.constants), inputs);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(same_bits(found[i], wanted[i]))
          << c.calls.back().operation << ", " << fmt::format("{}", fmt::join(mask, "")) << ": " << show(found[i])
          << " for " << show(wanted[i]);
    }
  }
}

NamedCall gives_z(const std::string& operation, std::vector<std::string> inputs = {"y"}, Attributes attributes = {}) {
  return call_named(operation, inputs, {"z"}, std::move(attributes));
}

Tensor mixed_numbers(std::vector<int64_t> shape, Scalar scalar = Scalar::f32) {
  const int64_t n = element_count(shape);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(i * 7 % 11 - 4);
  return Tensor::of(scalar, std::move(shape), values);
}

using List = std::vector<int64_t>;

TEST(DataExtents, AreNumbersAsWell) {
  compare({mixed_numbers({5, 3}), 0, {gives_z("Shape")}});
  compare({mixed_numbers({5, 3}), 0, {gives_z("Shape", {"y"}, {{"start", int64_t{-1}}})}});
  compare({mixed_numbers({5, 3}), 0, {gives_z("Size")}});
  compare({mixed_numbers({5, 3}), 0, {call_named("Shape", {"y"}, {"s"}), gives_z("ConstantOfShape", {"s"})}});
  compare({mixed_numbers({5}),
           0,
           {call_named("Size", {"y"}, {"s"}), call_named("Mul", {"s", "two"}, {"t"}),
            gives_z("Range", {"one", "t", "two"})},
           {"z"},
           {},
           {{"one", integers({}, {1})}, {"two", integers({}, {2})}}});
}

TEST(DataExtents, ReductionsLeaveOutWhatDoesNotCount) {
  for (const char* name : {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare",
                           "ReduceL2", "ReduceLogSumExp"}) {
    for (const int64_t axis : {0, 1}) {
      compare({mixed_numbers({4, 3}), axis, {gives_z(name, {"y"}, {{"axes", List{0}}, {"keepdims", axis}})}});
      compare({mixed_numbers({4, 3}), axis, {gives_z(name)}});
    }
  }
  compare({mixed_numbers({4, 3}, Scalar::i32), 0, {gives_z("ReduceMax", {"y"}, {{"axes", List{0}}})}});
  compare({counting({4, 2}), 0, {gives_z("ReduceMean", {"y"}, {{"axes", List{0}}})}, {"z"}, {}, {}, 1});
  compare({counting({4, 2}, Scalar::f16), 0, {gives_z("ReduceMean", {"y"}, {{"axes", List{0}}})}, {"z"}, {}, {}, 1});
  for (const char* name : {"ArgMax", "ArgMin"})
    compare({mixed_numbers({5, 2}), 0, {gives_z(name, {"y"}, {{"axis", int64_t{0}}})}, {"z"}, {}, {}, 1});
  for (const char* name : {"Softmax", "Hardmax"})
    compare({mixed_numbers({2, 5}), 1, {gives_z(name)}, {"z"}, {}, {}, 1});
  compare({mixed_numbers({2, 5}), 0, {gives_z("Softmax")}});
  for (const int64_t reverse : {0, 1})
    compare({mixed_numbers({5}), 0, {gives_z("CumSum", {"y"}, {{"axis", List{0}}, {"reverse", reverse}})}});
}

TEST(DataExtents, ProductsSumOverWhatCounts) {
  compare({mixed_numbers({4, 3}), 0, {gives_z("MatMul", {"y", "x2"})}, {"z"}, {mixed_numbers({3, 2})}});
  compare({mixed_numbers({2, 4}), 1, {call_named("Transpose", {"y"}, {"t"}), gives_z("MatMul", {"y", "t"})}});
  compare({mixed_numbers({4, 3}),
           0,
           {gives_z("Gemm", {"y", "x2", "x3"})},
           {"z"},
           {mixed_numbers({3, 2}), mixed_numbers({2})}});
}

TEST(DataExtents, PicturesAreComputedOneByOne) {
  const Tensor x = mixed_numbers({4, 2, 4, 4});
  compare({x, 0, {gives_z("Conv", {"y", "x2"})}, {"z"}, {mixed_numbers({3, 2, 3, 3})}});
  compare(
      {x, 0, {gives_z("ConvTranspose", {"y", "x2"}, {{"strides", List{2, 2}}})}, {"z"}, {mixed_numbers({2, 1, 2, 2})}});
  const Attributes window = {{"kernel_shape", List{2, 2}}, {"strides", List{2, 2}}};
  for (const char* name : {"MaxPool", "AveragePool"}) compare({x, 0, {gives_z(name, {"y"}, window)}});
  for (const char* name : {"GlobalAveragePool", "GlobalMaxPool"}) compare({x, 0, {gives_z(name)}});
  compare({mixed_numbers({4, 4, 2, 2}), 0, {gives_z("DepthToSpace", {"y"}, {{"blocksize", int64_t{2}}})}});
  compare({x, 0, {gives_z("SpaceToDepth", {"y"}, {{"blocksize", int64_t{2}}})}});
  compare({x, 0, {gives_z("InstanceNormalization", {"y", "x2", "x2"})}, {"z"}, {mixed_numbers({2})}});
  compare({x, 0, {gives_z("Resize", {"y", "", "scales"})}, {"z"}, {}, {{"scales", floats({4}, {1, 1, 2, 2})}}, 1});
  compare({x,
           0,
           {call_named("Shape", {"y"}, {"s"}, {{"end", int64_t{2}}}),
            call_named("Concat", {"s", "plane"}, {"t"}, {{"axis", int64_t{0}}}), gives_z("Resize", {"y", "", "", "t"})},
           {"z"},
           {},
           {{"plane", integers({2}, {3, 6})}},
           1});
}

TEST(DataExtents, RegionsThatDoNotCountAreCutOut) {
  const Attributes pooled = {
      {"output_height", int64_t{2}}, {"output_width", int64_t{2}}, {"sampling_ratio", int64_t{2}}};
  compare({floats({3, 4}, {0, 0, 3, 3, 1, 1, 4, 2, 0, 1, 2, 4}),
           0,
           {call_named("Compress", {"x3", "x1"}, {"n"}, {{"axis", int64_t{0}}}),
            gives_z("RoiAlign", {"x2", "y", "n"}, pooled)},
           {"z"},
           {mixed_numbers({2, 2, 5, 5}), integers({3}, {1, 0, 1})}});
}

TEST(DataExtents, PlacesCountFromWhereElementsEnd) {
  const Tensor places = integers({2, 2}, {0, -1, 1, -2});
  for (const int64_t axis : {0, 1}) {
    compare({mixed_numbers({5, 5}), axis, {gives_z("Gather", {"y", "x2"}, {{"axis", axis}})}, {"z"}, {places}, {}, 2});
    compare({mixed_numbers({5, 5}),
             axis,
             {gives_z("Gather", {"y", "p"}, {{"axis", axis}})},
             {"z"},
             {},
             {{"p", places}},
             2});
    compare({mixed_numbers({5, 5}), axis, {gives_z("GatherND", {"y", "x2"})}, {"z"}, {places}, {}, 2});
    compare({mixed_numbers({2, 5}),
             1,
             {gives_z("GatherElements", {"y", "x2"}, {{"axis", int64_t{1}}})},
             {"z"},
             {places},
             {},
             2});
  }
  // The places of some elements, in all of them.
  compare({integers({5}, {2, -1, 0, 1, -3}), 0, {gives_z("Gather", {"x2", "y"})}, {"z"}, {mixed_numbers({4, 2})}});
  compare({integers({5, 1}, {2, -1, 0, 1, -3}), 0, {gives_z("GatherND", {"x2", "y"})}, {"z"}, {mixed_numbers({4, 2})}});
  compare({integers({5, 2}, {2, -1, 0, 1, -3, 2, 0, 0, 1, 3}),
           0,
           {gives_z("GatherElements", {"x2", "y"})},
           {"z"},
           {mixed_numbers({5, 2})}});
}

TEST(DataExtents, ScattersDropWhatDoesNotCount) {
  const std::vector<NamedCall> rows = {call_named("Cast", {"y"}, {"u"}, {{"to", int64_t{1}}})};
  std::vector<NamedCall> calls = rows;
  calls.push_back(gives_z("ScatterElements", {"x2", "y", "u"}));
  compare({integers({4}, {2, -1, 0, 5}), 0, calls, {"z"}, {mixed_numbers({6})}});
  calls.back() = call_named("ScatterND", {"x2", "pairs", "u"}, {"z"}, {{"reduction", std::string("add")}});
  calls.insert(calls.begin(), call_named("Unsqueeze", {"y"}, {"pairs"}, {{"axes", List{1}}}));
  compare({integers({4}, {2, -1, 0, 5}), 0, calls, {"z"}, {mixed_numbers({6})}});
  compare({mixed_numbers({5, 2}),
           0,
           {gives_z("ScatterElements", {"y", "x2", "x3"})},
           {"z"},
           {integers({2, 2}, {0, 1, -1, -2}), mixed_numbers({2, 2})},
           {},
           2});
  compare({mixed_numbers({5, 2}),
           0,
           {gives_z("ScatterND", {"y", "x2", "x3"})},
           {"z"},
           {integers({2, 1}, {-1, 0}), mixed_numbers({2, 2})},
           {},
           2});
}

TEST(DataExtents, PartsAreCutAndJoined) {
  const auto cut = [](List starts, List ends, List steps) {
    return gives_z("Slice", {"y"}, {{"starts", starts}, {"ends", ends}, {"axes", List{0}}, {"steps", steps}});
  };
  for (const NamedCall& call : {cut({0}, {3}, {1}), cut({1}, {100}, {1}), cut({-2}, {100}, {1}), cut({0}, {-1}, {1}),
                                cut({1}, {-1}, {2}), cut({-1}, {-100}, {-1}), cut({3}, {0}, {-2}), cut({9}, {9}, {1})})
    compare({mixed_numbers({6, 2}), 0, {call}});
  compare({mixed_numbers({6, 2}),
           0,
           {call_named("Shape", {"y"}, {"s"}), call_named("Slice", {"s", "nought", "one"}, {"n"}),
            gives_z("Slice", {"x2", "nought", "n"})},
           {"z"},
           {mixed_numbers({6})},
           {{"nought", integers({1}, {0})}, {"one", integers({1}, {1})}}});
  for (const int64_t axis : {0, 1}) {
    compare({mixed_numbers({4, 3}), axis, {gives_z("Concat", {"y", "y"}, {{"axis", axis}})}});
    compare({mixed_numbers({4, 3}),
             axis,
             {gives_z("Concat", {"x2", "y", "x2", "y"}, {{"axis", axis}})},
             {"z"},
             {mixed_numbers(axis == 0 ? List{2, 3} : List{4, 2})}});
    compare({mixed_numbers({4, 3}), axis, {gives_z("Concat", {"y", "y"}, {{"axis", 1 - axis}})}});
  }
  compare({mixed_numbers({4, 3}), 0, {gives_z("Pad", {"y"}, {{"pads", List{1, 0, 2, 1}}})}});
  compare(
      {mixed_numbers({4, 3}), 0, {gives_z("Pad", {"y"}, {{"pads", List{0, 1, 0, 1}}, {"mode", std::string("edge")}})}});
  compare({mixed_numbers({4, 3}),
           0,
           {call_named("Split", {"y"}, {"z", "w"}, {{"axis", int64_t{1}}, {"split", List{1, 2}}})},
           {"z", "w"}});
  compare({mixed_numbers({5}),
           0,
           {call_named("Split", {"y"}, {"z", "w"}, {{"num_outputs", int64_t{2}}})},
           {"z", "w"},
           {},
           {},
           1});
}

TEST(DataExtents, ElementsMoveTogetherInAnotherShape) {
  const auto shape = [](List to) { return gives_z("Reshape", {"y"}, {{"shape", to}}); };
  for (const NamedCall& call : {shape({-1}), shape({-1, 3}), shape({0, -1}), shape({0, 3, 2}), shape({-1, 2, 3}),
                                shape({3, -1}), gives_z("Flatten"), gives_z("Flatten", {"y"}, {{"axis", int64_t{0}}})})
    compare({mixed_numbers({4, 6}), 0, {call}, {"z"}, {}, {}, 1});
  for (const NamedCall& call : {shape({-1}), shape({4, -1}), shape({2, 2, -1}), shape({-1, 2}), gives_z("Flatten")})
    compare({mixed_numbers({4, 3}), 1, {call}, {"z"}, {}, {}, 1});
  compare({mixed_numbers({4, 1}), 0, {gives_z("Squeeze", {"y"}, {{"axes", List{1}}})}});
  compare({mixed_numbers({2, 4}), 1, {gives_z("Transpose", {"y"}, {{"perm", List{1, 0}}})}});
  compare({mixed_numbers({4, 3}),
           0,
           {call_named("Shape", {"y"}, {"s"}), call_named("Concat", {"s", "one"}, {"t"}, {{"axis", int64_t{0}}}),
            gives_z("Reshape", {"y", "t"})},
           {"z"},
           {},
           {{"one", integers({1}, {1})}}});
}

TEST(DataExtents, ElementsAreRepeated) {
  compare({mixed_numbers({4, 3}),
           0,
           {call_named("Shape", {"y"}, {"s"}), gives_z("Expand", {"x2", "s"})},
           {"z"},
           {mixed_numbers({3})}});
  compare({mixed_numbers({4, 1}), 0, {gives_z("Expand", {"y"}, {{"shape", List{2, 1, 5}}})}});
  compare({mixed_numbers({4, 2}), 0, {gives_z("Tile", {"y"}, {{"repeats", List{3, 1}}})}});
  compare({mixed_numbers({4, 2}), 0, {gives_z("Tile", {"y"}, {{"repeats", List{1, 2}}})}});
  compare({mixed_numbers({4}),
           0,
           {call_named("Shape", {"y"}, {"s"}), gives_z("Tile", {"x2", "s"})},
           {"z"},
           {mixed_numbers({3})}});
}

TEST(DataExtents, OnlyWhatCountsIsChosen) {
  compare({mixed_numbers({6, 2}), 0, {gives_z("NonZero")}});
  compare({mixed_numbers({2, 6}), 1, {gives_z("NonZero")}});
  compare({mixed_numbers({6, 2}),
           0,
           {gives_z("Compress", {"y", "x2"}, {{"axis", int64_t{1}}})},
           {"z"},
           {Tensor::of(Scalar::boolean, {2}, List{0, 1})}});
  compare({mixed_numbers({6}),
           0,
           {call_named("Greater", {"y", "x2"}, {"c"}), gives_z("Compress", {"y", "c"})},
           {"z"},
           {floats({}, {0})}});
  compare({mixed_numbers({6}),
           0,
           {call_named("Shape", {"y"}, {"s"}), call_named("Min", {"s", "three"}, {"k"}),
            call_named("TopK", {"y", "k"}, {"z", "w"})},
           {"z", "w"},
           {},
           {{"three", integers({1}, {3})}}});
  compare({mixed_numbers({2, 6}),
           1,
           {call_named("TopK", {"y"}, {"z", "w"}, {{"k", List{2}}, {"largest", int64_t{0}}})},
           {"z", "w"},
           {},
           {},
           2});
}

TEST(DataExtents, BoxesThatDoNotCountAreNeitherTakenNorInTheWay) {
  const Tensor boxes = floats({1, 5, 4}, {0, 0, 1, 1, 0, 0, 1, 0.9, 2, 2, 3, 3, 0, 0, 0, 0, 0, 0, 1, 0.8});
  const Tensor scores = floats({1, 1, 5}, {-1, -2, -3, -1, -5});
  std::vector<NamedCall> calls = {call_named("Compress", {"x2", "x1"}, {"s"}, {{"axis", int64_t{2}}}),
                                  call_named("NonMaxSuppression", {"y", "s", "most", "overlap"}, {"z"})};
  const std::map<std::string, Tensor> constants = {{"most", integers({1}, {3})}, {"overlap", floats({1}, {0.5})}};
  compare({boxes, 1, calls, {"z"}, {scores}, constants});
}

TEST(DataExtents, BranchesMayBeOfDifferentExtents) {
  NamedBody none, all;
  none.attribute = "then_branch", all.attribute = "else_branch";
  none.constants["nothing"] = Tensor(Scalar::f32, {0});
  none.outputs = {"nothing"};
  all.calls = {call_named("Neg", {"y"}, {"less"}), call_named("ReduceMax", {"y"}, {"most"}, {{"keepdims", int64_t{0}}}),
               call_named("Add", {"less", "most"}, {"moved"})};
  all.outputs = {"moved"};
  NamedCall branch = gives_z("If", {"empty"});
  branch.bodies = {none, all};
  compare({mixed_numbers({5}),
           0,
           {call_named("Size", {"y"}, {"n"}), call_named("Equal", {"n", "nought"}, {"empty"}), branch,
            call_named("Neg", {"z"}, {"w"})},
           {"w"},
           {},
           {{"nought", integers({}, {0})}}});
}

// A size that does not depend on data is one for the layers behind it, too: only one branch has a meaning.
TEST(DataExtents, WhatIsKnownOfAShapeDecides) {
  NamedBody squeezes, stays;
  squeezes.attribute = "then_branch", stays.attribute = "else_branch";
  squeezes.calls = {call_named("Squeeze", {"y"}, {"flat"}, {{"axes", List{1}}})};
  squeezes.outputs = {"flat"};
  stays.calls = {call_named("Identity", {"y"}, {"same"})};
  stays.outputs = {"same"};
  NamedCall branch = gives_z("If", {"c"});
  branch.bodies = {squeezes, stays};
  for (const int64_t columns : {1, 2}) {
    compare({mixed_numbers({4, columns}),
             0,
             {call_named("Shape", {"y"}, {"s"}), call_named("Gather", {"s", "one"}, {"n"}),
              call_named("Equal", {"n", "one"}, {"c"}), branch},
             {"z"},
             {},
             {{"one", integers({}, {1})}}});
  }
}

TEST(DataExtents, RoomIsBounded) {
  ProgramBuilder builder = builder_of({counting({100000})}, {call_named("NonZero", {"x0"}, {"p"})});
  builder.add_call(call_named("Shape", {"p"}, {"s"}));
  builder.add_constant("last", integers({2}, {1, 1}));
  builder.add_call(call_named("Gather", {"s", "last"}, {"n"}));
  builder.add_call(call_named("ConstantOfShape", {"n"}, {"z"}));
  builder.add_output("z");
  const auto program = builder.finish();
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.errors()[0].text(), HasSubstr("most_bounded_elements"));
}

}  // namespace
}  // namespace hoist
