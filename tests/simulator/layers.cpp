#include "tests/simulator/layers.h"

#include "ir/base/seeded.h"

namespace hoist {
namespace {

using Ints = std::vector<int64_t>;

Operand input(Ints shape, Scalar scalar = Scalar::f32) { return {std::move(shape), scalar, false, {}}; }
Operand weights(Ints shape, Scalar scalar = Scalar::f32) { return {std::move(shape), scalar, true, {}}; }
Operand numbers(Scalar scalar, const Ints& values) {
  return {{static_cast<int64_t>(values.size())}, scalar, true, values};
}
Operand positions(const Ints& values) { return numbers(Scalar::i64, values); }
Operand factors(const Ints& values) { return numbers(Scalar::f32, values); }

}  // namespace

std::vector<SmallLayer> convolution_layers() {
  const Ints same = {1, 1, 1, 1};
  return {
      {"conv_1d_tail_7", "Conv", {input({1, 5, 7}), weights({7, 5, 3})}, {{"pads", Ints{1, 1}}}},
      {"conv_2d", "Conv", {input({1, 8, 6, 8}), weights({16, 8, 3, 3}), weights({16})}, {{"pads", same}}},
      {"conv_2d_tail_13", "Conv", {input({1, 3, 5, 13}), weights({13, 3, 3, 3})}, {{"pads", same}}},
      {"conv_2d_tail_7", "Conv", {input({1, 7, 7, 7}), weights({7, 7, 3, 3})}, {}},
      {"conv_2d_point", "Conv", {input({1, 16, 4, 7}), weights({16, 16, 1, 1}), weights({16})}, {}},
      {"conv_2d_batch", "Conv", {input({2, 4, 5, 5}), weights({8, 4, 3, 3})}, {{"pads", same}}},
      {"conv_2d_strided",
       "Conv",
       {input({1, 4, 9, 9}), weights({8, 4, 3, 3})},
       {{"strides", Ints{2, 2}}, {"pads", same}}},
      {"conv_2d_dilated",
       "Conv",
       {input({1, 4, 9, 9}), weights({8, 4, 3, 3})},
       {{"dilations", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}}},
      {"conv_2d_one_sided", "Conv", {input({1, 4, 6, 6}), weights({8, 4, 2, 3})}, {{"pads", Ints{1, 0, 0, 2}}}},
      {"conv_2d_grouped",
       "Conv",
       {input({1, 8, 6, 6}), weights({12, 4, 3, 3})},
       {{"group", int64_t{2}}, {"pads", same}}},
      {"conv_2d_depthwise",
       "Conv",
       {input({1, 16, 7, 7}), weights({16, 1, 3, 3}), weights({16})},
       {{"group", int64_t{16}}, {"pads", same}}},
      {"conv_2d_depthwise_13",
       "Conv",
       {input({1, 13, 8, 8}), weights({13, 1, 3, 3})},
       {{"group", int64_t{13}}, {"strides", Ints{2, 2}}}},
      {"conv_3d", "Conv", {input({1, 3, 4, 5, 5}), weights({8, 3, 2, 3, 3})}, {{"pads", Ints{0, 1, 1, 1, 1, 1}}}},
      {"conv_transposed", "ConvTranspose", {input({1, 4, 4, 5}), weights({4, 6, 3, 3})}, {{"strides", Ints{2, 2}}}},
      {"conv_integer",
       "ConvInteger",
       {input({1, 4, 6, 7}, Scalar::u8), weights({8, 4, 3, 3}, Scalar::i8), numbers(Scalar::u8, {100})},
       {{"pads", Ints{1, 1, 1, 1}}}},
      {"conv_quantised",
       "QLinearConv",
       {input({1, 6, 5, 5}, Scalar::i8), factors({1}), numbers(Scalar::i8, {3}), weights({4, 3, 3, 3}, Scalar::i8),
        factors({1, 2, 3, 4}), numbers(Scalar::i8, {0}), factors({32}), numbers(Scalar::i8, {-1}),
        numbers(Scalar::i32, {5, -6, 7, -8})},
       {{"group", int64_t{2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
  };
}

std::vector<SmallLayer> other_layers() {
  return {
      {"gemm", "Gemm", {input({4, 24}), weights({32, 24}), weights({32})}, {{"transB", int64_t{1}}}},
      {"gemm_tail_13", "Gemm", {input({7, 13}), weights({13, 13}), weights({13})}, {}},
      {"gemm_one_row", "Gemm", {input({1, 40}), weights({40, 17})}, {}},
      {"matmul_of_inputs", "MatMul", {input({9, 11}), input({11, 10})}, {}},
      {"matmul_batched", "MatMul", {input({2, 3, 5, 8}), input({3, 8, 6})}, {}},
      {"matmul_columns_uneven", "MatMul", {input({4, 9, 5}), input({4, 5, 21})}, {}},
      {"matmul_vector", "MatMul", {input({21}), weights({21, 7})}, {}},

      {"pool_max",
       "MaxPool",
       {input({1, 7, 9, 9})},
       {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
      {"pool_max_places", "MaxPool", {input({1, 3, 6, 6})}, {{"kernel_shape", Ints{2, 2}}}, 2},
      {"pool_average",
       "AveragePool",
       {input({1, 16, 7, 7})},
       {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}},
      {"pool_global", "GlobalAveragePool", {input({1, 13, 7, 7})}, {}},
      {"pool_global_max", "GlobalMaxPool", {input({2, 16, 4, 4})}, {}},

      {"pool_power", "LpPool", {input({1, 5, 6, 6})}, {{"kernel_shape", Ints{3, 3}}}},
      {"pool_1d_ceiling",
       "MaxPool",
       {input({1, 4, 10})},
       {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}}},
      {"pool_3d",
       "AveragePool",
       {input({1, 3, 4, 5, 5})},
       {{"kernel_shape", Ints{2, 2, 2}}, {"strides", Ints{2, 2, 2}}}},

      {"softmax_rows", "Softmax", {input({5, 13})}, {{"axis", int64_t{1}}}},
      {"softmax_columns", "Softmax", {input({7, 6, 4})}, {{"axis", int64_t{1}}}},
      {"log_softmax", "LogSoftmax", {input({3, 16})}, {{"axis", int64_t{-1}}}},
      {"layer_norm", "LayerNormalization", {input({6, 24}), weights({24}), weights({24})}, {}},
      {"instance_norm", "InstanceNormalization", {input({1, 7, 5, 5}), weights({7}), weights({7})}, {}},
      {"batch_norm",
       "BatchNormalization",
       {input({1, 3, 5, 7}), weights({3}), weights({3}), weights({3}), {{3}, Scalar::f32, true, {1, 2, 3}}},
       {}},
      {"local_response", "LRN", {input({1, 7, 4, 4})}, {{"size", int64_t{3}}}},

      {"reduce_sum_all", "ReduceSum", {input({7, 13})}, {{"keepdims", int64_t{0}}}},
      {"reduce_mean", "ReduceMean", {input({4, 6, 8}), positions({0, 2})}, {}},
      {"reduce_max", "ReduceMax", {input({13, 7}), positions({1})}, {}},
      {"arg_max", "ArgMax", {input({5, 9})}, {{"axis", int64_t{1}}}},
      {"reduce_product_middle", "ReduceProd", {input({3, 5, 4}), positions({1})}, {}},
      {"reduce_log_sum", "ReduceLogSumExp", {input({6, 11}), positions({1})}, {}},
      {"arg_min_columns", "ArgMin", {input({6, 7})}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}}},
      {"group_norm",
       "GroupNormalization",
       {input({1, 6, 4, 4}), weights({6}), weights({6})},
       {{"num_groups", int64_t{2}}}},
      {"hard_maximum", "Hardmax", {input({4, 9})}, {}},
      {"einsum_chain", "Einsum", {input({3, 5, 4}), input({3, 4, 6})}, {{"equation", std::string("bij,bjk->bik")}}},
      {"distinct_values", "Unique", {input({6})}, {{"sorted", int64_t{0}}}, 5},
      {"running_sum", "CumSum", {input({4, 7}), {{}, Scalar::i64, true, {1}}}, {}},
      {"running_columns", "CumSum", {input({37, 20}), {{}, Scalar::i64, true, {0}}}, {}},
      {"running_planes", "CumSum", {input({9, 3, 8}), {{}, Scalar::i64, true, {0}}}, {{"exclusive", int64_t{1}}}},

      {"add_broadcast", "Add", {input({3, 5, 7}), input({5, 1})}, {}},
      {"relu_tail_13", "Relu", {input({13})}, {}},
      {"multiply_even", "Mul", {input({4, 32}), input({4, 32})}, {}},
      {"sigmoid", "Sigmoid", {input({7, 7})}, {}},
      {"sine", "Sin", {input({19})}, {}},
      {"where_less", "Where", {input({9}, Scalar::boolean), input({9}), input({4, 9})}, {}},
      {"divide_integers", "Div", {input({11}, Scalar::i32), {{1}, Scalar::i32, true, {3}}}, {}},
      {"halves", "Add", {input({3, 9}, Scalar::f16), input({9}, Scalar::f16)}, {}},
      {"bytes", "Max", {input({21}, Scalar::u8), input({21}, Scalar::u8)}, {}},
      {"cast_to_bytes", "Cast", {input({17})}, {{"to", int64_t{3}}}},
      {"cast_to_doubles", "Cast", {input({7}, Scalar::i64)}, {{"to", int64_t{11}}}},

      {"transposed", "Transpose", {input({5, 7, 4})}, {{"perm", Ints{2, 0, 1}}}},
      {"transposed_even", "Transpose", {input({32, 16})}, {{"perm", Ints{1, 0}}}},
      {"transposed_7_dimensions", "Transpose", {input({2, 3, 2, 2, 3, 2, 2})}, {{"perm", Ints{6, 2, 1, 5, 0, 3, 4}}}},
      {"concat_inside", "Concat", {input({3, 5}), input({3, 4}), input({3, 7})}, {{"axis", int64_t{1}}}},
      {"concat_outside", "Concat", {input({2, 6}), input({5, 6})}, {{"axis", int64_t{0}}}},
      {"sliced",
       "Slice",
       {input({9, 8}), positions({1, 7}), positions({8, 0}), positions({0, 1}), positions({2, -2})},
       {}},
      {"split_apart", "Split", {input({4, 7}), positions({3, 4})}, {{"axis", int64_t{1}}}, 2},
      {"pad_constant", "Pad", {input({4, 5}), positions({1, 2, 0, 3})}, {}},
      {"pad_mirror", "Pad", {input({5, 6}), positions({2, 1, 1, 2})}, {{"mode", std::string("reflect")}}},
      {"pad_edge", "Pad", {input({5, 6}), positions({2, 1, 1, 2})}, {{"mode", std::string("edge")}}},
      {"gathered", "Gather", {input({7, 6}), positions({6, 0, -1, 3, 3})}, {}},
      {"gathered_by_input", "Gather", {input({7, 6}), input({5}, Scalar::i64)}, {}},
      {"gathered_elements",
       "GatherElements",
       {input({4, 5}), {{4, 2}, Scalar::i64, true, {0, 4, 1, -1, 2, 2, 3, 0}}},
       {{"axis", int64_t{1}}}},
      {"gathered_tuples", "GatherND", {input({4, 5, 3}), {{3, 2}, Scalar::i64, true, {0, 4, 3, 1, 2, 2}}}, {}},
      {"scattered_rows", "ScatterND", {input({5, 4}), {{2, 1}, Scalar::i64, true, {4, 1}}, input({2, 4})}, {}},
      {"one_hot",
       "OneHot",
       {input({5}, Scalar::i64), {{}, Scalar::i64, true, {7}}, {{2}, Scalar::f32, true, {0, 1}}},
       {}},
      {"triangle", "Trilu", {input({5, 7})}, {{"upper", int64_t{0}}}},
      {"reversed_sequences",
       "ReverseSequence",
       {input({4, 5}), {{5}, Scalar::i64, true, {1, 4, 2, 3, 4}}},
       {{"time_axis", int64_t{0}}, {"batch_axis", int64_t{1}}}},
      {"expanded", "Expand", {input({3, 1, 4}), positions({2, 3, 5, 4})}, {}},
      {"scattered", "ScatterElements", {input({8}), positions({1, 7, 3}), input({3})}, {}},
      {"scattered_columns",
       "ScatterElements",
       {input({11, 20}), input({7, 18}, Scalar::i64), input({7, 18})},
       {{"axis", int64_t{0}}}},
      {"scattered_along_rows",
       "ScatterElements",
       {input({3, 33}), input({3, 12}, Scalar::i32), input({3, 12})},
       {{"axis", int64_t{1}}}},
      {"scattered_rows_of_input", "ScatterND", {input({40, 24}), input({7, 1}, Scalar::i64), input({7, 24})}, {}},
      {"scattered_tuples", "ScatterND", {input({6, 7}), input({70, 2}, Scalar::i64), input({70})}, {}},
      {"added_rows",
       "ScatterND",
       {input({6, 20}), input({9, 1}, Scalar::i64), input({9, 20})},
       {{"reduction", std::string("add")}}},
      {"largest_along_rows",
       "ScatterElements",
       {input({2, 30}), input({2, 12}, Scalar::i64), input({2, 12})},
       {{"axis", int64_t{1}}, {"reduction", std::string("max")}}},
      {"unpooled",
       "MaxUnpool",
       {input({1, 2, 3, 3}), input({1, 2, 3, 3}, Scalar::i64)},
       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
      {"reduced_by_blocks", "ReduceSum", {input({20000})}, {{"keepdims", int64_t{0}}}},
      {"place_of_all", "ArgMax", {input({300})}, {}},
      {"resized_nearest",
       "Resize",
       {input({1, 3, 4, 5}), {}, {}, positions({1, 3, 8, 10})},
       {{"mode", std::string("nearest")}}},
      {"resized_linear",
       "Resize",
       {input({1, 2, 5, 4}), {}, {}, positions({1, 2, 7, 9})},
       {{"mode", std::string("linear")}}},
      {"depth_to_space", "DepthToSpace", {input({1, 12, 3, 5})}, {{"blocksize", int64_t{2}}}},
      {"space_to_depth", "SpaceToDepth", {input({1, 3, 6, 4})}, {{"blocksize", int64_t{2}}}},
      {"tiled", "Tile", {input({3, 4}), positions({2, 3})}, {}},

      {"quantised", "QuantizeLinear", {input({5, 13}), factors({1}), numbers(Scalar::u8, {128})}, {}},
      {"quantised_by_channel",
       "QuantizeLinear",
       {input({2, 3, 7}), factors({1, 2, 4})},
       {{"output_dtype", int64_t{3}}}},
      {"dequantised", "DequantizeLinear", {input({29}, Scalar::i8), factors({2}), numbers(Scalar::i8, {-5})}, {}},
      {"dequantised_blocks",
       "DequantizeLinear",
       {input({5, 2}, Scalar::u8), {{3, 2}, Scalar::f32, true, {1, 2, 3, 4, 5, 6}}},
       {{"axis", int64_t{0}}, {"block_size", int64_t{2}}}},
      {"matmul_integer",
       "MatMulInteger",
       {input({5, 9}, Scalar::u8), weights({9, 13}, Scalar::i8), numbers(Scalar::u8, {7})},
       {}},
      {"matmul_quantised",
       "QLinearMatMul",
       {input({7, 24}, Scalar::u8), factors({1}), numbers(Scalar::u8, {128}), weights({24, 16}, Scalar::i8),
        factors({3}), numbers(Scalar::i8, {0}), factors({64}), numbers(Scalar::u8, {100})},
       {}},
  };
}

NamedModel model_of(const std::vector<SmallLayer>& layers) {
  NamedModel model;
  model.name = "small_layers";
  model.opset = 21;
  model.hash = 1;
  for (const SmallLayer& small : layers) {
    NamedCall layer;
    layer.name = small.name;
    layer.operation = small.operation;
    layer.attributes = small.attributes;
    for (size_t i = 0; i < small.inputs.size(); ++i) {
      const Operand& operand = small.inputs[i];
      const std::string name = small.name + "_in" + std::to_string(i);
      if (operand.constant && !operand.values.empty()) {
        model.constants.emplace(name, Tensor::of(operand.scalar, operand.shape, operand.values));
      } else if (operand.constant) {
        model.constants.emplace(name, seeded_tensor(operand.scalar, operand.shape, 1, static_cast<uint32_t>(i), -1, 1));
      } else if (!operand.shape.empty()) {
        model.inputs.push_back({name, operand.scalar, operand.shape});
      } else {  // a missing optional input
        layer.inputs.emplace_back();
        continue;
      }
      layer.inputs.push_back(name);
    }
    for (size_t i = 0; i < small.outputs; ++i) {
      const std::string name = small.name + "_out" + std::to_string(i);
      layer.outputs.push_back(name);
      model.outputs.push_back({name, Scalar::f32, {}});
    }
    model.layers.push_back(std::move(layer));
  }
  return model;
}

}  // namespace hoist
