#include "frontend/model/contributed_functions.h"

#include <onnx/defs/function.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "frontend/model/inference.h"

namespace hoist {
namespace {

constexpr std::string_view microsoft = "com.microsoft";

using Integers = std::vector<int64_t>;

// A call and the body that is being written for it.
class Writer {
 public:
  Writer(const onnx::NodeProto& call, const std::vector<onnx::TypeProto>& types, onnx::FunctionProto& body)
      : call_(call), types_(types), body_(body), builder_(body) {}

  bool given(int input) const { return input < call_.input_size() && !call_.input(input).empty(); }
  bool wanted(int output) const { return output < call_.output_size() && !call_.output(output).empty(); }
  int inputs() const { return call_.input_size(); }

  const onnx::AttributeProto* attribute(std::string_view name) const {
    const auto& all = call_.attribute();
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.name() == name; });
    return at == all.end() ? nullptr : &*at;
  }
  int64_t integer(std::string_view name, int64_t otherwise) const {
    const auto* a = attribute(name);
    return a == nullptr ? otherwise : a->i();
  }
  float number(std::string_view name, float otherwise) const {
    const auto* a = attribute(name);
    return a == nullptr ? otherwise : a->f();
  }

  /// The extents of an input, -1 for a symbolic one; nothing if even their number is unknown.
  std::optional<Integers> extents(int input) const {
    const auto i = static_cast<size_t>(input);
    if (i >= types_.size() || !types_[i].has_tensor_type() || !types_[i].tensor_type().has_shape()) return std::nullopt;
    Integers out;
    for (const auto& dim : types_[i].tensor_type().shape().dim())
      out.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    return out;
  }

  void add(const std::string& text) { builder_.Add(text.c_str()); }
  void constant(const std::string& name, const Integers& values) { builder_.Const(name, values); }
  void scalar(const std::string& name, int64_t value) { builder_.Const(name, value); }
  /// A constant in the type of a value.
  void like(const std::string& name, float number, const std::string& value) {
    builder_.Const(name + "_f32", number);
    add(name + " = CastLike (" + name + "_f32, " + value + ")");
  }
  /// Sets an attribute of the last node, or copies an attribute of the call.
  void set(const std::string& name, float value) { last().mutable_attribute()->Add(onnx::MakeAttribute(name, value)); }
  void set(const std::string& name, int64_t value) {
    last().mutable_attribute()->Add(onnx::MakeAttribute(name, value));
  }
  void take(std::string_view name) {
    if (const auto* a = attribute(name)) *last().add_attribute() = *a;
  }
  void take_all() { last().mutable_attribute()->MergeFrom(call_.attribute()); }

 private:
  onnx::NodeProto& last() { return *body_.mutable_node(body_.node_size() - 1); }

  const onnx::NodeProto& call_;
  const std::vector<onnx::TypeProto>& types_;
  onnx::FunctionProto& body_;
  onnx::FunctionBuilder builder_;
};

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

// ---- Attention -----------------------------------------------------------------------------------------------------

// [batch][length][heads * size] to [batch][heads][length][size].
void write_heads(Writer& w, const std::string& name) {
  w.add(name + "_parts = Reshape (" + name + ", by_heads) " + name + "_heads = Transpose <perm = [0, 2, 1, 3]> (" +
        name + "_parts)");
}

// Writes scores, their masks and y, from the queries, keys and values by heads: q_heads, k_all and v_all.
bool write_scores(Writer& w, int mask, int bias) {
  w.add("turned = Transpose <perm = [0, 1, 3, 2]> (k_all)");
  const float scale = w.number("scale", 0);
  if (scale == 0) {
    w.add(
        "size = Shape <start = 3> (q_heads) size_in_type = CastLike (size, q_heads) root = Sqrt (size_in_type) "
        "factor = Reciprocal (root)");
  } else {
    w.like("factor", scale, "q_heads");
  }
  w.add("plain = MatMul (q_heads, turned) scores = Mul (plain, factor)");
  std::string last = "scores";
  w.add("line_count = Shape <start = 2, end = 3> (q_heads) key_count = Shape <start = 2, end = 3> (k_all)");
  if (w.given(mask)) {
    const auto extents = w.extents(mask);
    if (!extents || extents->size() > 3 || extents->empty()) return false;
    if (extents->size() == 1) {  // the number of valid keys of each row of the batch
      const auto batch = w.extents(0);
      if (!batch || (*extents)[0] < 0 || (*extents)[0] != (*batch)[0]) return false;
      w.constant("rows", {-1, 1, 1, 1});
      w.scalar("from", 0);
      w.scalar("by", 1);
      w.add(
          "limits = Reshape (mask, rows) key_number = Squeeze (key_count) keys = Range (from, key_number, by) "
          "keys_in_type = CastLike (keys, limits) counts = Less (keys_in_type, limits)");
    } else {
      w.constant("wide", extents->size() == 2 ? Integers{1, 2} : Integers{1});
      w.add("spread = Unsqueeze (mask, wide) counts = Cast <to = 9> (spread)");
    }
    w.like("nothing", 0, "scores");
    w.like("masked", w.number("mask_filter_value", -10000.0F), "scores");
    w.add("mask_added = Where (counts, nothing, masked) with_mask = Add (scores, mask_added)");
    last = "with_mask";
  }
  if (w.given(bias)) {
    w.add("with_bias = Add (" + last + ", attention_bias)");
    last = "with_bias";
  }
  if (w.integer("unidirectional", 0) != 0) {
    // The queries are the last rows of a sequence as long as the keys. Later keys are excluded however large their
    // score is; a masked score has mask_filter_value added and may still win.
    w.like("lowest", std::numeric_limits<float>::lowest(), "scores");
    w.scalar("line_from", 0);
    w.scalar("line_by", 1);
    w.constant("upright", {-1, 1});
    w.add(
        "line_number = Squeeze (line_count) line_places = Range (line_from, line_number, line_by) "
        "all_keys = Squeeze (key_count) key_places = Range (line_from, all_keys, line_by) "
        "further = Sub (key_count, line_count) moved_lines = Add (line_places, further) "
        "upright_lines = Reshape (moved_lines, upright) before = LessOrEqual (key_places, upright_lines) "
        "with_order = Where (before, " +
        last + ", lowest)");
    last = "with_order";
  }
  w.constant("whole", {0, 0, -1});
  w.add("shares = Softmax <axis = -1> (" + last +
        ") found = MatMul (shares, v_all) lines = Transpose <perm = [0, 2, 1, 3]> (found) y = Reshape (lines, whole)");
  return true;
}

// One product computes queries, keys and values.
bool write_attention(Writer& w) {
  const int64_t heads = w.integer("num_heads", 0);
  if (heads < 1 || w.integer("do_rotary", 0) != 0 || w.given(6)) return false;
  w.add(w.given(2) ? "product = MatMul (x, weights) all = Add (product, bias)" : "all = MatMul (x, weights)");
  if (const auto* sizes = w.attribute("qkv_hidden_sizes"); sizes != nullptr && sizes->ints_size() == 3) {
    w.constant("sizes", Integers(sizes->ints().begin(), sizes->ints().end()));
    w.add("q, k, v = Split <axis = 2> (all, sizes)");
  } else {
    w.add("q, k, v = Split <axis = 2, num_outputs = 3> (all)");
  }
  w.constant("by_heads", {0, 0, heads, -1});
  for (const char* name : {"q", "k", "v"}) write_heads(w, name);
  w.constant("front", {0});
  if (w.given(4)) {
    w.scalar("of_keys", 0);
    w.scalar("of_values", 1);
    w.add(
        "past_keys = Gather (past, of_keys) past_values = Gather (past, of_values) "
        "k_all = Concat <axis = 2> (past_keys, k_heads) v_all = Concat <axis = 2> (past_values, v_heads)");
  } else {
    w.add("k_all = Identity (k_heads) v_all = Identity (v_heads)");
  }
  if (w.wanted(1))
    w.add(
        "k_front = Unsqueeze (k_all, front) v_front = Unsqueeze (v_all, front) present = Concat <axis = 0> (k_front, "
        "v_front)");
  return write_scores(w, 3, 5);
}

bool write_multi_head_attention(Writer& w) {
  const int64_t heads = w.integer("num_heads", 0);
  const auto query = w.extents(0);
  // Packed inputs have five dimensions.
  if (heads < 1 || !query || query->size() != 3 || !w.given(1) || !w.given(2) || w.inputs() > 8) return false;
  const auto key = w.extents(1), value = w.extents(2);
  if (!key || !value || key->size() != value->size() || (key->size() != 3 && key->size() != 4)) return false;
  w.constant("by_heads", {0, 0, heads, -1});
  std::array<std::string, 3> names = {"query", "key", "value"};
  if (w.given(3)) {  // biases of queries, keys and values, concatenated
    const bool separate = key->size() == 3;
    if (!separate || query->back() < 0 || key->back() < 0 || value->back() < 0) return false;
    w.constant("widths", {query->back(), key->back(), value->back()});
    w.add("query_bias, key_bias, value_bias = Split <axis = 0> (bias, widths)");
    for (std::string& name : names) {
      w.add(name + "_sum = Add (" + name + ", " + name + "_bias)");
      name += "_sum";
    }
  }
  w.add("q = Identity (" + names[0] + ")");
  write_heads(w, "q");
  if (key->size() == 3) {
    w.add("k = Identity (" + names[1] + ") v = Identity (" + names[2] + ")");
    write_heads(w, "k");
    write_heads(w, "v");
  } else {
    w.add("k_heads = Identity (key) v_heads = Identity (value)");
  }
  if (w.given(6) != w.given(7)) return false;
  w.add(w.given(6) ? "k_all = Concat <axis = 2> (past_key, k_heads) v_all = Concat <axis = 2> (past_value, v_heads)"
                   : "k_all = Identity (k_heads) v_all = Identity (v_heads)");
  if (w.wanted(1)) w.add("present_key = Identity (k_all)");
  if (w.wanted(2)) w.add("present_value = Identity (v_all)");
  return write_scores(w, 4, 5);
}

// The parts of write_group_query_attention, in their order.
struct GroupedHeads {
  int64_t queries, keys;  // number of heads; there are as many of values as of keys
};

void write_grouped_heads(Writer& w, GroupedHeads heads) {
  if (w.given(1)) {
    w.constant("by_heads", {0, 0, heads.queries, -1});
    w.constant("by_kept_heads", {0, 0, heads.keys, -1});
    w.add("q = Reshape (query, by_heads) k = Reshape (key, by_kept_heads) v = Reshape (value, by_kept_heads)");
  } else {
    w.constant("by_all_heads", {0, 0, heads.queries + 2 * heads.keys, -1});
    w.constant("head_counts", {heads.queries, heads.keys, heads.keys});
    w.add("all = Reshape (query, by_all_heads) q, k, v = Split <axis = 2> (all, head_counts)");
  }
  w.constant("list", {-1});
  w.scalar("none", 0);
  w.scalar("one", 1);
  w.add(
      "q_plain = Transpose <perm = [0, 2, 1, 3]> (q) k_plain = Transpose <perm = [0, 2, 1, 3]> (k) "
      "v_heads = Transpose <perm = [0, 2, 1, 3]> (v) length = Shape <start = 1, end = 2> (query) "
      "line_count = Squeeze (length) steps = Range (none, line_count, one) "
      "last_rows = Reshape (seqlens_k, list) last = Cast <to = 7> (last_rows) behind = Add (last, one) "
      "difference = Sub (behind, length) first = Max (difference, none)");
}

bool write_grouped_rotation(Writer& w, GroupedHeads heads, int64_t columns) {
  if (w.integer("do_rotary", 0) != 0) {
    const auto table = w.extents(7);
    if (!w.given(7) || !w.given(8) || !table || table->size() != 2) return false;
    w.constant("upright", {-1, 1});
    if (w.given(9)) {  // only the first position of a prompt counts
      w.constant("front_place", {0, 0});
      w.add(
          "place = GatherND (position_ids, front_place) from_place = Add (steps, place) "
          "wanted_rows = Reshape (total, list) total_rows = Cast <to = 7> (wanted_rows) "
          "is_prompt = Equal (total_rows, length) places = Where (is_prompt, from_place, position_ids)");
    } else {
      w.add("begins = Reshape (first, upright) places = Add (begins, steps)");
    }
    const int64_t width = w.given(1) ? columns / heads.queries : columns / (heads.queries + 2 * heads.keys);
    const int64_t turned = columns > 0 && (*table)[1] > 0 && 2 * (*table)[1] < width ? 2 * (*table)[1] : 0;
    for (const char* name : {"q", "k"}) {
      w.add(std::string(name) + "_heads = RotaryEmbedding (" + name + "_plain, cosines, sines, places)");
      w.set("interleaved", w.integer("rotary_interleaved", 0));
      w.set("rotary_embedding_dim", turned);
    }
  } else {
    w.add("q_heads = Identity (q_plain) k_heads = Identity (k_plain)");
  }
  return true;
}

void write_appended_rows(Writer& w) {
  if (w.given(3)) {
    // Capacity for at least as many rows as the longest element has.
    w.constant("sides", {2});
    w.add(
        "past_length = Shape <start = 2, end = 3> (past_key) total_list = Reshape (total, list) "
        "wanted = Cast <to = 7> (total_list) room = Max (past_length, wanted) missing = Sub (room, past_length) "
        "nothing_before = Sub (missing, missing) pads = Concat <axis = 0> (nothing_before, missing) "
        "past_k = Pad (past_key, pads, , sides) past_v = Pad (past_value, pads, , sides) "
        "k_all = TensorScatter <axis = 2> (past_k, k_heads, first) v_all = TensorScatter <axis = 2> (past_v, v_heads, "
        "first)");
  } else {
    w.add("k_all = Identity (k_heads) v_all = Identity (v_heads)");
  }
  w.add("present_key = Identity (k_all) present_value = Identity (v_all)");
}

// Queries that share keys are rows of one product. Returns the name of the scores.
std::string write_grouped_scores(Writer& w, GroupedHeads heads) {
  const float scale = w.number("scale", 0), cap = w.number("softcap", 0);
  w.add("size = Shape <start = 3> (q_heads)");
  if (scale == 0)
    w.add("size_in_type = CastLike (size, q_heads) root = Sqrt (size_in_type) factor = Reciprocal (root)");
  else
    w.like("factor", scale, "q_heads");
  w.add(
      "batch = Shape <start = 0, end = 1> (query) key_count = Shape <start = 2, end = 3> (k_all) "
      "turned = Transpose <perm = [0, 1, 3, 2]> (k_all)");
  w.constant("kept_count", {heads.keys});
  w.constant("head_count", {heads.queries});
  w.add(
      "lines_shape = Concat <axis = 0> (batch, kept_count, list, size) q_lines = Reshape (q_heads, lines_shape) "
      "products = MatMul (q_lines, turned) scores_shape = Concat <axis = 0> (batch, head_count, length, key_count) "
      "products_by_head = Reshape (products, scores_shape) scores = Mul (products_by_head, factor)");
  std::string scores = "scores";
  if (cap > 0) {
    w.like("cap", cap, "scores");
    w.add("inside = Div (scores, cap) bent = Tanh (inside) capped = Mul (bent, cap)");
    scores = "capped";
  }
  if (w.given(10)) {
    w.add("with_bias = Add (" + scores + ", attention_bias)");
    scores = "with_bias";
  }
  return scores;
}

void write_causal_shares(Writer& w, const std::string& scores) {
  w.constant("upright_lines", {-1, 1, 1, 1});
  w.constant("as_lines", {1, 1, -1, 1});
  w.add(
      "first_lines = Reshape (first, upright_lines) step_lines = Reshape (steps, as_lines) "
      "own_places = Add (first_lines, step_lines) all_keys = Squeeze (key_count) "
      "key_places = Range (none, all_keys, one) before = LessOrEqual (key_places, own_places)");
  std::string counts = "before";
  if (const int64_t window = w.integer("local_window_size", -1); window >= 0) {
    w.scalar("window", window);
    w.add("oldest = Sub (own_places, window) near = Greater (key_places, oldest) counted = And (before, near)");
    counts = "counted";
  }
  w.like("never", -std::numeric_limits<float>::infinity(), "scores");
  w.add("masked = Where (" + counts + ", " + scores + ", never)");
  if (w.given(11) || w.integer("smooth_softmax", 0) == 1) {  // an additional score without a key
    if (w.given(11)) {
      w.constant("for_heads", {1, -1, 1, 1});
      w.add("sink_type = CastLike (head_sink, scores) sink = Reshape (sink_type, for_heads)");
    } else {
      w.like("sink", 0, "scores");
    }
    w.constant("single", {1});
    w.constant("front", {0});
    w.constant("last_axis", {3});
    w.add(
        "sink_shape = Concat <axis = 0> (batch, head_count, length, single) sinks = Expand (sink, sink_shape) "
        "more = Concat <axis = 3> (masked, sinks) more_shares = Softmax <axis = -1> (more) "
        "shares = Slice (more_shares, front, key_count, last_axis)");
  } else {
    w.add("shares = Softmax <axis = -1> (masked)");
  }
}

// Queries of several heads share keys and values, whose arrays have capacity for the rows of earlier calls: after this
// call's rows are appended, seqlens_k + 1 rows of each element of the batch are valid. A prompt may be shorter than its
// array; results for the rest of it are undefined.
bool write_group_query_attention(Writer& w) {
  const int64_t heads = w.integer("num_heads", 0), kept_heads = w.integer("kv_num_heads", 0);
  const auto query = w.extents(0);
  if (heads < 1 || kept_heads < 1 || heads % kept_heads != 0 || !query || query->size() != 3 || !w.given(5) ||
      w.given(1) != w.given(2) || w.given(3) != w.given(4) || w.inputs() > 12 || w.integer("qk_output", 0) != 0)
    return false;
  const GroupedHeads counts{heads, kept_heads};
  write_grouped_heads(w, counts);
  if (!write_grouped_rotation(w, counts, query->back())) return false;
  write_appended_rows(w);
  write_causal_shares(w, write_grouped_scores(w, counts));
  w.constant("whole", {0, 0, -1});
  w.add(
      "share_lines_shape = Concat <axis = 0> (batch, kept_count, list, key_count) "
      "share_lines = Reshape (shares, share_lines_shape) found = MatMul (share_lines, v_all) "
      "heads_shape = Concat <axis = 0> (batch, head_count, length, size) found_heads = Reshape (found, heads_shape) "
      "lines = Transpose <perm = [0, 2, 1, 3]> (found_heads) y = Reshape (lines, whole)");
  return true;
}

// The standard's operator has the same meaning if there is one position per element.
bool write_rotary_embedding(Writer& w) {
  const auto x = w.extents(0), places = w.extents(1), table = w.extents(2);
  if (!x || !places || (x->size() != 3 && x->size() != 4) || w.number("scale", 1) != 1 ||
      w.integer("is_packed_batching", 0) != 0)
    return false;
  int64_t heads = w.integer("num_heads", 0);
  if (heads == 0 && x->size() == 3) {
    if (!table || table->size() != 2 || (*table)[1] < 1 || (*x)[2] < 1) return false;
    heads = (*x)[2] / (2 * (*table)[1]);
  }
  if (places->size() == 1) {  // the position of the first element
    w.scalar("from", 0);
    w.scalar("by", 1);
    w.add("batch = Shape <start = 0, end = 1> (x)");
    w.add(x->size() == 3 ? "length = Shape <start = 1, end = 2> (x)" : "length = Shape <start = 2, end = 3> (x)");
    w.add(
        "number = Squeeze (length) steps = Range (from, number, by) moved = Add (steps, places) "
        "extents = Concat <axis = 0> (batch, length) every = Expand (moved, extents)");
  } else {
    w.add("every = Identity (places)");
  }
  w.add("y = RotaryEmbedding (x, cosines, sines, every)");
  w.take("interleaved");
  if (x->size() == 3) w.set("num_heads", heads);
  w.take("rotary_embedding_dim");
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

// Operators with another name or other types of operands than an operator of the standard: the layers of the body, of
// which the last one has the attributes of the call.
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
