// Compares operators over arrays with dynamic shapes with the same calls over arrays of that length, interpreted and
// after all passes: empty, partly filled, and at full capacity.
#include <gmock/gmock.h>

#include "tests/lowering/operators/dynamic_calls.h"

namespace hoist::dynamic_extents_test {

using testing::HasSubstr;

TEST(DynamicExtents, AreNumbersAsWell) {
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

TEST(DynamicExtents, ReductionsLeaveOutWhatDoesNotCount) {
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

TEST(DynamicExtents, ProductsSumOverWhatCounts) {
  compare({mixed_numbers({4, 3}), 0, {gives_z("MatMul", {"y", "x2"})}, {"z"}, {mixed_numbers({3, 2})}});
  compare({mixed_numbers({2, 4}), 1, {call_named("Transpose", {"y"}, {"t"}), gives_z("MatMul", {"y", "t"})}});
  compare({mixed_numbers({4, 3}),
           0,
           {gives_z("Gemm", {"y", "x2", "x3"})},
           {"z"},
           {mixed_numbers({3, 2}), mixed_numbers({2})}});
}

TEST(DynamicExtents, SequencesOfTokensEndWhereTokensDo) {
  const auto counts = [](int64_t skips) {
    return Attributes{{"min_gram_length", int64_t{1}},
                      {"max_gram_length", int64_t{2}},
                      {"max_skip_count", skips},
                      {"mode", std::string("TF")},
                      {"ngram_counts", List{0, 3}},
                      {"ngram_indexes", List{3, 0, 1, 2, 4}},
                      {"pool_int64s", List{0, 1, 3, 0, 1, 3, 3}}};
  };
  for (const Scalar scalar : {Scalar::i64, Scalar::i32}) {
    Tensor tokens(scalar, {2, 6});
    for (int64_t i = 0; i < tokens.size(); ++i) tokens.set_integer(i, List{0, 1, 3, 3, 0, 1, 3, 0, 2, 1, 3, 3}[i]);
    for (const int64_t axis : {0, 1}) {
      for (const int64_t skips : {0, 2}) compare({tokens, axis, {gives_z("TfIdfVectorizer", {"y"}, counts(skips))}});
    }
  }
}

TEST(DynamicExtents, ImagesAreComputedOneByOne) {
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

TEST(DynamicExtents, RegionsThatDoNotCountAreCutOut) {
  const Attributes pooled = {
      {"output_height", int64_t{2}}, {"output_width", int64_t{2}}, {"sampling_ratio", int64_t{2}}};
  compare({floats({3, 4}, {0, 0, 3, 3, 1, 1, 4, 2, 0, 1, 2, 4}),
           0,
           {call_named("Compress", {"x3", "x1"}, {"n"}, {{"axis", int64_t{0}}}),
            gives_z("RoiAlign", {"x2", "y", "n"}, pooled)},
           {"z"},
           {mixed_numbers({2, 2, 5, 5}), integers({3}, {1, 0, 1})}});
}

TEST(DynamicExtents, PlacesCountFromWhereElementsEnd) {
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
  // Positions that data select, in an array of static extent.
  compare({integers({5}, {2, -1, 0, 1, -3}), 0, {gives_z("Gather", {"x2", "y"})}, {"z"}, {mixed_numbers({4, 2})}});
  compare({integers({5, 1}, {2, -1, 0, 1, -3}), 0, {gives_z("GatherND", {"x2", "y"})}, {"z"}, {mixed_numbers({4, 2})}});
  compare({integers({5, 2}, {2, -1, 0, 1, -3, 2, 0, 0, 1, 3}),
           0,
           {gives_z("GatherElements", {"x2", "y"})},
           {"z"},
           {mixed_numbers({5, 2})}});
}

TEST(DynamicExtents, ScattersDropWhatDoesNotCount) {
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

TEST(DynamicExtents, PartsAreCutAndJoined) {
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
  const auto padded = [](List pads, const std::string& mode) {
    return gives_z("Pad", {"y"}, {{"pads", std::move(pads)}, {"mode", mode}});
  };
  compare({mixed_numbers({4, 3}), 0, {padded({-1, 0, 0, -1}, "constant")}, {"z"}, {}, {}, 1});
  compare({mixed_numbers({4, 3}), 0, {padded({2, 0, 3, 1}, "edge")}, {"z"}, {}, {}, 1});
  compare({mixed_numbers({4, 3}), 0, {padded({2, 0, 3, 1}, "wrap")}, {"z"}, {}, {}, 1});
  compare({mixed_numbers({5, 3}), 0, {padded({2, 0, 1, 1}, "reflect")}, {"z"}, {}, {}, 3});
  compare({mixed_numbers({1, 4, 3}),
           1,
           {gives_z("TensorScatter", {"y", "x2", "x3"})},
           {"z"},
           {mixed_numbers({1, 2, 3}), integers({1}, {1})},
           {},
           3});
  compare({mixed_numbers({4, 5, 3}),
           0,
           {call_named("Slice", {"y"}, {"u"}, {{"starts", List{0}}, {"ends", List{2}}, {"axes", List{1}}}),
            gives_z("TensorScatter", {"y", "u"}, {{"mode", std::string("circular")}})}});
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

TEST(DynamicExtents, ElementsMoveTogetherInAnotherShape) {
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

TEST(DynamicExtents, ElementsAreRepeated) {
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

TEST(DynamicExtents, OnlyWhatCountsIsChosen) {
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

TEST(DynamicExtents, BoxesThatDoNotCountAreNeitherTakenNorInTheWay) {
  const Tensor boxes = floats({1, 5, 4}, {0, 0, 1, 1, 0, 0, 1, 0.9, 2, 2, 3, 3, 0, 0, 0, 0, 0, 0, 1, 0.8});
  const Tensor scores = floats({1, 1, 5}, {-1, -2, -3, -1, -5});
  std::vector<NamedCall> calls = {call_named("Compress", {"x2", "x1"}, {"s"}, {{"axis", int64_t{2}}}),
                                  call_named("NonMaxSuppression", {"y", "s", "most", "overlap"}, {"z"})};
  const std::map<std::string, Tensor> constants = {{"most", integers({1}, {3})}, {"overlap", floats({1}, {0.5})}};
  compare({boxes, 1, calls, {"z"}, {scores}, constants});
}

TEST(DynamicExtents, BranchesMayBeOfDifferentExtents) {
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

// A static size is static for later layers too: only one branch is defined.
TEST(DynamicExtents, WhatIsKnownOfAShapeDecides) {
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

// Compares calls that read "s", bounded dynamic integers, with the same calls for known integers.
void compare_numbers(const Tensor& x, const std::vector<int64_t>& found, const std::vector<NamedCall>& calls,
                     double error = 0, std::map<std::string, Tensor> constants = {}) {
  const auto n = static_cast<int64_t>(found.size());
  const Tensor numbers = Tensor::of(Scalar::i64, {n}, found);
  constants["low"] = integers({}, {-2}), constants["high"] = integers({}, {9});
  std::vector<NamedCall> all = {call_named("Clip", {"x1", "low", "high"}, {"s"})};
  all.insert(all.end(), calls.begin(), calls.end());
  const std::vector<Tensor> got = outputs_of_calls({x, numbers}, all, {"z"}, constants);
  constants["s"] = numbers;
  const std::vector<Tensor> wanted =
      interpreted_outputs(program_of_calls({x, numbers}, calls, {"z"}, constants), {x, numbers});
  EXPECT_TRUE(close(got[0], wanted[0], error))
      << calls.back().operation << " " << fmt::format("{}", fmt::join(found, ",")) << ": " << show(got[0]) << " for "
      << show(wanted[0]);
}

TEST(DynamicExtents, BoundedDataDecideThem) {
  const std::map<std::string, Tensor> scalars = {{"nought", integers({}, {0})}, {"one", integers({}, {1})}};
  const Tensor x = mixed_numbers({6, 2});
  for (const int64_t n : {0, 1, 4, 9}) {
    compare_numbers(x, {n, 2}, {gives_z("ConstantOfShape", {"s"})});
    compare_numbers(x, {n}, {call_named("Squeeze", {"s"}, {"n"}), gives_z("Range", {"nought", "n", "one"})}, 0,
                    scalars);
  }
  compare_numbers(x, {3}, {call_named("ConstantOfShape", {"s"}, {"f"}), gives_z("Shape", {"f"})});
  for (const int64_t end : {-2, -1, 0, 3, 6, 9})
    compare_numbers(x, {end}, {gives_z("Slice", {"x0", "first", "s"})}, 0, {{"first", integers({1}, {1})}});
  compare_numbers(mixed_numbers({3, 2}), {2, 1}, {gives_z("Tile", {"x0", "s"})});
  for (const List& pads : {List{0, 3}, List{2, 0}, List{-2, 9}, List{1, -1}})
    compare_numbers(x, pads, {gives_z("Pad", {"x0", "s", "", "first"})}, 0, {{"first", integers({1}, {0})}});
  for (const char* mode : {"edge", "reflect", "wrap"}) {
    for (const List& pads : {List{0, 0, 3, 1}, List{2, 1, 0, 0}, List{1, -1, -2, 1}})
      compare_numbers(x, pads, {gives_z("Pad", {"x0", "s"}, {{"mode", std::string(mode)}})});
  }
  compare_numbers(Tensor(Scalar::f32, {0, 2}), {0, 3}, {gives_z("Pad", {"x0", "s", "", "first"})}, 0,
                  {{"first", integers({1}, {0})}});
  compare_numbers(mixed_numbers({1, 2}), {3, 2}, {gives_z("Expand", {"x0", "s"})});
}

TEST(DynamicExtents, ImagesAreResizedToWhatDataSay) {
  const auto resized = [](const std::string& mode, const std::string& coordinates, Attributes more = {}) {
    more["mode"] = mode;
    more["coordinate_transformation_mode"] = coordinates;
    const Attributes all = more;
    return std::vector<NamedCall>{call_named("Concat", {"planes", "s"}, {"t"}, {{"axis", int64_t{0}}}),
                                  gives_z("Resize", {"x0", "", "", "t"}, all)};
  };
  const std::map<std::string, Tensor> planes = {{"planes", integers({2}, {1, 2})}};
  const Tensor x = mixed_numbers({1, 2, 4, 3});
  for (const List& size : {List{4, 3}, List{1, 1}, List{8, 6}, List{5, 2}, List{3, 9}}) {
    for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}) {
      compare_numbers(x, size, resized("linear", coordinates), 1e-5, planes);
      compare_numbers(x, size, resized("cubic", coordinates), 1e-4, planes);
      compare_numbers(x, size, resized("cubic", coordinates, {{"exclude_outside", int64_t{1}}}), 1e-4, planes);
    }
    for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
      compare_numbers(x, size, resized("nearest", "asymmetric", {{"nearest_mode", std::string(rounding)}}), 0, planes);
    compare_numbers(x, size, resized("nearest", "half_pixel"), 0, planes);
  }
  compare_numbers(mixed_numbers({1, 2, 4, 3}, Scalar::u8), {8, 6}, resized("linear", "asymmetric"), 0, planes);
}

TEST(DynamicExtents, ImagesOfWhichDataSayTheSizeAreResized) {
  compare({mixed_numbers({1, 1, 4, 2}),
           2,
           {gives_z("Resize", {"y"},
                    {{"sizes", List{1, 1, 8, 4}},
                     {"mode", std::string("linear")},
                     {"coordinate_transformation_mode", std::string("asymmetric")}})},
           {"z"},
           {},
           {},
           1});
}

TEST(DynamicExtents, RoomIsBounded) {
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

}  // namespace hoist::dynamic_extents_test
