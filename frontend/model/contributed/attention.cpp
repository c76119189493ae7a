// Attention and rotary embedding of com.microsoft.
#include <algorithm>
#include <array>
#include <limits>

#include "frontend/model/contributed/bodies.h"

namespace hoist::bodies {

namespace {

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

}  // namespace

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

namespace {

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
    // Capacity for at least as many rows as the longest element has, which are at most all earlier rows and this
    // call's: that bounds the dimension where `total` is an input of the model.
    w.constant("sides", {2});
    w.constant("nothing_before", {0});
    w.add(
        "past_length = Shape <start = 2, end = 3> (past_key) total_list = Reshape (total, list) "
        "wanted = Cast <to = 7> (total_list) room = Max (past_length, wanted) lacking = Sub (room, past_length) "
        "missing = Min (lacking, length) pads = Concat <axis = 0> (nothing_before, missing) "
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

}  // namespace

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

}  // namespace hoist::bodies
