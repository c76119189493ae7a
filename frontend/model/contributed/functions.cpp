#include "frontend/model/contributed/functions.h"

#include <onnx/defs/function.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "frontend/model/contributed/bodies.h"
#include "frontend/model/inference.h"

namespace hoist {
namespace {

using namespace bodies;

constexpr std::string_view microsoft = "com.microsoft";

// A convolution, an added operand and a function of the sum.
bool write_fused_convolution(Writer& w) {
  const auto* named = w.attribute("activation");
  const std::string activation = named == nullptr ? "" : named->s();
  const auto* parameters = w.attribute("activation_params");
  const auto parameter = [&](int i, float otherwise) {
    return parameters != nullptr && i < parameters->floats_size() ? parameters->floats(i) : otherwise;
  };
  w.add(w.given(2) ? "sum_c = Conv (x, weights, bias)" : "sum_c = Conv (x, weights)");
  for (const char* name : {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}) w.take(name);
  w.add(w.given(3) ? "sum = Add (sum_c, added)" : "sum = Identity (sum_c)");
  if (activation == "Clip") {
    w.like("low", parameter(0, 0), "sum");
    w.like("high", parameter(1, 0), "sum");
    w.add("y = Clip (sum, low, high)");
    return parameters != nullptr && parameters->floats_size() == 2;
  }
  constexpr std::array<std::string_view, 6> functions = {"", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"};
  if (std::find(functions.begin(), functions.end(), activation) == functions.end()) return false;
  w.add("y = " + (activation.empty() ? "Identity" : activation) + " (sum)");
  if (parameters != nullptr && parameters->floats_size() > 0) w.set("alpha", parameter(0, 0));
  if (parameters != nullptr && parameters->floats_size() > 1) w.set("beta", parameter(1, 0));
  return true;
}

bool write_dynamic_product(Writer& w) {
  w.add("q, scale, zero = DynamicQuantizeLinear (a)");
  w.add(std::string("y = com.microsoft.MatMulIntegerToFloat (q, b, scale, b_scale, zero, ") +
        (w.given(3) ? "b_zero" : "\"\"") + (w.given(4) ? ", bias)" : ")"));
  return true;
}

bool write_skip_normalisation(Writer& w) {
  w.add(w.given(4) ? "part = Add (x, skip) sum = Add (part, bias)" : "sum = Add (x, skip)");
  w.add(w.given(3) ? "y, mean, deviation = LayerNormalization <axis = -1> (sum, scale, shift)"
                   : "y, mean, deviation = LayerNormalization <axis = -1> (sum, scale)");
  w.set("epsilon", w.number("epsilon", 1e-12F));
  return true;
}

bool write_skip_simplified_normalisation(Writer& w) {
  w.add(w.given(3) ? "part = Add (x, skip) sum = Add (part, bias)" : "sum = Add (x, skip)");
  w.add("y, deviation = com.microsoft.SimplifiedLayerNormalization <axis = -1> (sum, scale)");
  w.set("epsilon", w.number("epsilon", 1e-12F));
  w.add("mean = Identity (deviation)");  // never executed
  return !w.wanted(1);
}

bool write_embedding(Writer& w) {
  w.add("words = Gather (word_embedding, ids)");
  w.constant("zero", {0});
  if (w.given(8)) {
    w.add("places = Gather (position_embedding, position_ids)");
  } else {
    w.add("length = Shape <start = 1, end = 2> (ids) places = Slice (position_embedding, zero, length, zero)");
  }
  w.add("placed = Add (words, places)");
  w.add(w.given(1) && w.given(4) ? "segments = Gather (segment_embedding, segment_ids) sum = Add (placed, segments)"
                                 : "sum = Identity (placed)");
  w.add("y = LayerNormalization <axis = -1> (sum, scale, shift)");
  w.set("epsilon", w.number("epsilon", 1e-12F));
  w.constant("one", {1});
  w.add(w.given(7) ? "lengths = ReduceSum <keepdims = 0> (mask, one)"
                   : "none = Sub (ids, ids) lengths = ReduceSum <keepdims = 0> (none, one)");
  return true;
}

// Weights in blocks along the sum are a DequantizeLinear of bytes, whose constants hoist keeps in bytes where a kernel
// widens them. Left to the operator's own definition: f16, zero points in floats, and an order of the columns.
bool write_block_quantised_product(Writer& w) {
  const auto weights = w.extents(1);
  const int64_t bits = w.integer("bits", 4), block = w.integer("block_size", 0), columns = w.integer("N", 0);
  const int64_t inner = w.integer("K", 0);
  // The rows have the type of the scales; their own may be unknown, after another contributed operator.
  const bool in_types =
      w.element_type(2) == onnx::TensorProto::FLOAT && (!w.given(3) || w.element_type(3) == onnx::TensorProto::UINT8);
  if (!in_types || w.given(4) || (bits != 4 && bits != 8) || std::min({block, columns, inner}) < 1) return false;
  const int64_t blocks = (inner + block - 1) / block, packed = (blocks * bits + 7) / 8;
  if (!weights || *weights != Integers{columns, blocks, block * bits / 8}) return false;
  w.constant("by_blocks", {columns, blocks});
  w.constant("by_rows", {columns, blocks * block});
  w.constant("zero_rows", {columns, packed * 8 / bits});
  w.constant("single", {-1, 1});
  w.constant("from", {0});
  w.constant("second", {1});
  w.constant("block_count", {blocks});
  w.constant("inner", {inner});
  w.like("mask", 15, "b");
  w.like("half_byte", 4, "b");
  const auto unpacked = [&](const std::string& bytes, const std::string& to, const std::string& shape) {
    if (bits == 4) {
      w.add(bytes + "_bytes = Reshape (" + bytes + ", single) " + bytes + "_low = BitwiseAnd (" + bytes +
            "_bytes, mask)");
      w.add(bytes + "_high = BitShift <direction = \"RIGHT\"> (" + bytes + "_bytes, half_byte)");
      w.add(bytes + "_all = Concat <axis = -1> (" + bytes + "_low, " + bytes + "_high)");
    }
    w.add(to + " = Reshape (" + bytes + (bits == 4 ? "_all, " : ", ") + shape + ")");
  };
  w.add("s = Reshape (scales, by_blocks)");
  unpacked("b", "q", "by_rows");
  if (w.given(3)) {
    unpacked("zeros", "all_zeros", "zero_rows");
    w.add("z = Slice (all_zeros, from, block_count, second)");
    w.add("rows = DequantizeLinear <axis = 1> (q, s, z)");
  } else {
    w.like("middle", bits == 4 ? 8.0F : 128.0F, "b");
    w.add("wide = Cast <to = 5> (q) middle_wide = Cast <to = 5> (middle) centred = Sub (wide, middle_wide)");
    w.add("signed = Cast <to = 3> (centred) rows = DequantizeLinear <axis = 1> (signed, s)");
  }
  w.set("block_size", block);
  w.add("exact = Slice (rows, from, inner, second) turned = Transpose <perm = [1, 0]> (exact)");
  w.add(w.given(5) ? "product = MatMul (a, turned) y = Add (product, bias)" : "y = MatMul (a, turned)");
  return true;
}

// ---- The standard's own --------------------------------------------------------------------------------------------

// The standard's body flattens images to [n][c][-1], which has no meaning for a batch of no elements.
bool write_cross_entropy(Writer& w) {
  w.add("log_prob = LogSoftmax <axis = 1> (scores)");
  w.add(w.given(2) ? "y = NegativeLogLikelihoodLoss (log_prob, labels, weights)"
                   : "y = NegativeLogLikelihoodLoss (log_prob, labels)");
  for (const char* name : {"reduction", "ignore_index"}) w.take(name);
  return true;
}

// ---- Other names ----------------------------------------------------------------------------------------------------

// Operators that differ from an operator of the standard in name or in the types of operands. Their body consists of
// layers of the standard, and the last layer has the attributes of the call.
template <const char* layers>
bool write_layers(Writer& w) {
  w.add(layers);
  w.take_all();
  return true;
}

constexpr char trilu[] = "y = Trilu (x, k)";
constexpr char gathered[] = "places = Cast <to = 7> (indices) y = GatherND (x, places)";
constexpr char unique[] = "y, first, places, counts = Unique <sorted = 0> (x)";
constexpr char expanded[] =
    "list = Constant <value_ints = [-1]> () axes = Reshape (axis, list) places = Cast <to = 7> (axes) "
    "y = Unsqueeze (x, places)";
constexpr char padded[] = "y = Pad (x, pads, value)";
constexpr char fused_product[] = "y = com.microsoft.FusedMatMul (a, b)";
constexpr char quantised[] = "y = QuantizeLinear (x, scale, zero)";
constexpr char dequantised[] = "y = DequantizeLinear (x, scale, zero)";

bool write_range(Writer& w) {
  if (w.given(2)) {
    w.add("y = Range (start, limit, delta)");
  } else {
    w.like("one", 1, "start");
    w.add("y = Range (start, limit, one)");
  }
  return true;
}

// A product and a function of it, with its parameters.
bool write_fused_gemm(Writer& w) {
  const auto* named = w.attribute("activation");
  const std::string function = named == nullptr ? "" : named->s();
  w.add("sum = Gemm (a, b, c)");
  for (const char* name : {"alpha", "beta", "transA", "transB"}) w.take(name);
  constexpr std::array<std::string_view, 7> functions = {"Relu",      "Tanh",        "Sigmoid", "Softsign",
                                                         "LeakyRelu", "HardSigmoid", "Elu"};
  if (std::find(functions.begin(), functions.end(), function) == functions.end()) return false;
  w.add("y = " + function + " (sum)");
  for (const char* name : {"alpha", "beta", "gamma"}) {
    const std::string own = std::string("activation_") + name;
    if (w.attribute(own) != nullptr) w.set(name, w.number(own, 0));
  }
  return true;
}

struct Contributed {
  std::string_view name;
  std::vector<const char*> inputs, outputs;
  bool (*write)(Writer&);
  std::string_view domain = microsoft;
};

const std::vector<Contributed>& contributed() {
  static const std::vector<Contributed> rows = {
      {"FusedConv", {"x", "weights", "bias", "added"}, {"y"}, write_fused_convolution},
      {"MatMulNBits", {"a", "b", "scales", "zeros", "groups", "bias"}, {"y"}, write_block_quantised_product},
      {"DynamicQuantizeMatMul", {"a", "b", "b_scale", "b_zero", "bias"}, {"y"}, write_dynamic_product},
      {"SkipLayerNormalization",
       {"x", "skip", "scale", "shift", "bias"},
       {"y", "mean", "deviation", "sum"},
       write_skip_normalisation},
      {"SkipSimplifiedLayerNormalization",
       {"x", "skip", "scale", "bias"},
       {"y", "mean", "deviation", "sum"},
       write_skip_simplified_normalisation},
      {"EmbedLayerNormalization",
       {"ids", "segment_ids", "word_embedding", "position_embedding", "segment_embedding", "scale", "shift", "mask",
        "position_ids"},
       {"y", "lengths", "sum"},
       write_embedding},
      {"Attention",
       {"x", "weights", "bias", "mask", "past", "attention_bias", "past_length"},
       {"y", "present"},
       write_attention},
      {"MultiHeadAttention",
       {"query", "key", "value", "bias", "mask", "attention_bias", "past_key", "past_value"},
       {"y", "present_key", "present_value"},
       write_multi_head_attention},
      {"GroupQueryAttention",
       {"query", "key", "value", "past_key", "past_value", "seqlens_k", "total", "cosines", "sines", "position_ids",
        "attention_bias", "head_sink"},
       {"y", "present_key", "present_value"},
       write_group_query_attention},
      {"RotaryEmbedding", {"x", "places", "cosines", "sines"}, {"y"}, write_rotary_embedding},
      {"Trilu", {"x", "k"}, {"y"}, write_layers<trilu>},
      {"GatherND", {"x", "indices"}, {"y"}, write_layers<gathered>},
      {"Unique", {"x"}, {"y", "places", "counts"}, write_layers<unique>},
      {"ExpandDims", {"x", "axis"}, {"y"}, write_layers<expanded>},
      {"Pad", {"x", "pads", "value"}, {"y"}, write_layers<padded>},
      {"Range", {"start", "limit", "delta"}, {"y"}, write_range},
      {"TransposeMatMul", {"a", "b"}, {"y"}, write_layers<fused_product>},
      {"FusedGemm", {"a", "b", "c"}, {"y"}, write_fused_gemm},
      {"QuantizeLinear", {"x", "scale", "zero"}, {"y"}, write_layers<quantised>},
      {"DequantizeLinear", {"x", "scale", "zero"}, {"y"}, write_layers<dequantised>},
      {"SoftmaxCrossEntropyLoss", {"scores", "labels", "weights"}, {"y", "log_prob"}, write_cross_entropy, ""},
  };
  return rows;
}

const Contributed* find_contributed(const std::string& domain, const std::string& operation) {
  const auto& rows = contributed();
  const auto at = std::find_if(rows.begin(), rows.end(),
                               [&](const Contributed& row) { return row.name == operation && row.domain == domain; });
  return at == rows.end() ? nullptr : &*at;
}

}  // namespace

bool has_contributed_body(const std::string& domain, const std::string& operation) {
  return find_contributed(domain, operation) != nullptr;
}

std::vector<std::string> contributed_operators() {
  std::vector<std::string> out;
  for (const Contributed& row : contributed()) {
    if (row.domain == microsoft) out.emplace_back(row.name);
  }
  return out;
}

bool is_contributed_without_domain(const onnx::NodeProto& node) {
  return node.domain().empty() &&
         (node.op_type() == "SimplifiedLayerNormalization" || node.op_type() == "SkipSimplifiedLayerNormalization");
}

std::optional<onnx::FunctionProto> contributed_body(const onnx::NodeProto& node,
                                                    const std::vector<onnx::TypeProto>& types) {
  const Contributed* row = find_contributed(node.domain(), node.op_type());
  if (row == nullptr) return std::nullopt;
  onnx::FunctionProto body;
  body.set_name(node.op_type());
  body.set_domain(node.domain());
  body.add_opset_import()->set_version(newest_opset());
  for (const char* name : row->inputs) body.add_input(name);
  for (const char* name : row->outputs) body.add_output(name);
  Writer writer(node, types, body);
  if (!row->write(writer)) return std::nullopt;
  return body;
}

}  // namespace hoist
