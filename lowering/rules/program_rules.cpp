#include "lowering/rules/program_rules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <utility>

#include "ir/rules/program_index.h"
#include "lowering/graph/program.h"
#include "lowering/rules/call_conditions.h"
#include "lowering/rules/tables.h"

namespace hoist {
namespace {

using Integers = std::vector<int64_t>;

Integers integers(const Attributes& attributes, const std::string& name, const Integers& otherwise) {
  const auto found = attributes.find(name);
  const auto* value = found == attributes.end() ? nullptr : std::get_if<Integers>(&found->second);
  return value == nullptr ? otherwise : *value;
}

int64_t integer(const Attributes& attributes, const std::string& name, int64_t otherwise) {
  const auto found = attributes.find(name);
  const auto* value = found == attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value == nullptr ? otherwise : *value;
}

int64_t integer(const ProgramMatch& match, const std::string& name) { return integer(match.attributes, name, 0); }

// The attribute group of a convolution, 1 if it is absent.
int64_t groups_of(const ProgramMatch& match) {
  const auto rest = match.rests.find("A");
  return rest == match.rests.end() ? 1 : integer(rest->second, "group", 1);
}

// The shape in which values per channel broadcast over tensors of that rank, whose dimension 1 is the channel.
Integers by_channel(size_t rank) {
  Integers shape(std::max<size_t>(rank, 2) - 1, 1);
  shape[0] = -1;
  return shape;
}

bool is_one_number(const Tensor* tensor) { return tensor != nullptr && tensor->size() == 1; }

// True if no sum of products overflows i32. `axis` is the axis of the outputs; an activation is at most 255 from its
// zero point. Both the sum of stored elements and its correction by the zero point have to fit.
bool sums_fit(const Tensor& numbers, size_t axis, int64_t zero) {
  int64_t inner = 1;
  for (size_t i = axis + 1; i < numbers.shape().size(); ++i) inner *= numbers.shape()[i];
  const int64_t outputs = numbers.shape()[axis];
  std::vector<int64_t> sums(static_cast<size_t>(outputs), 0);
  for (int64_t i = 0; i < numbers.size(); ++i)
    sums[static_cast<size_t>(i / inner % outputs)] += std::abs(numbers.integer_at(i) - zero);
  return std::all_of(sums.begin(), sums.end(), [](int64_t sum) { return sum * 255 * 2 < INT32_MAX; });
}

// Filters of one channel have so few products per sum that separating their zero point gains nothing.
bool has_filters_of_one_channel(const ProgramMatch& match) {
  const Tensor* w = match.known("w");
  return w != nullptr && w->shape().size() >= 3 && w->shape()[1] == 1;
}

// The minimum and the maximum of 0 and the zero points y of weights w: one zero point for all outputs, or one for each
// along `axis`. Absent zero points result in 0 and 0.
std::optional<std::pair<int64_t, int64_t>> zero_points_of_weights(const ProgramMatch& match, size_t axis) {
  std::pair<int64_t, int64_t> out = {0, 0};
  if (match.absent.count("y") != 0) return out;
  const Tensor *w = match.known("w"), *y = match.known("y");
  if (y == nullptr || y->scalar() != Scalar::i8 || y->shape().size() > 1) return std::nullopt;
  if (y->size() != 1 && y->size() != w->shape()[axis]) return std::nullopt;
  for (int64_t i = 0; i < y->size(); ++i) {
    out.first = std::min(out.first, y->integer_at(i));
    out.second = std::max(out.second, y->integer_at(i));
  }
  return out;
}

// True if the contractions with known signed 8-bit weights w fit in i32 both with and without their zero points. The
// zero points of a grouped convolution have to be 0, except with one channel per group: nonzero ones cannot be
// subtracted from the sums.
bool can_be_around_zero(const ProgramMatch& match, size_t axis) {
  const Tensor* w = match.known("w");
  if (w == nullptr || w->scalar() != Scalar::i8 || w->shape().size() <= axis) return false;
  const auto zeros = zero_points_of_weights(match, axis);
  if (!zeros || !sums_fit(*w, axis, zeros->first) || !sums_fit(*w, axis, zeros->second)) return false;
  return *zeros == std::pair<int64_t, int64_t>() || groups_of(match) == 1 || has_filters_of_one_channel(match);
}

// x is 8 bits with one scale p and one zero point z; w is a constant in signed 8 bits with one scale q for all outputs
// or one for each along `axis`. Adds `factors`, and `by_channel` for a convolution: the shapes in which factors and a
// bias broadcast.
bool is_integer_product(ProgramMatch& match, size_t axis) {
  const Tensor *x = match.known("x"), *p = match.known("p"), *z = match.known("z"), *w = match.known("w"),
               *q = match.known("q");
  if (x != nullptr || !is_one_number(p) || p->scalar() != Scalar::f32 || !is_one_number(z)) return false;
  if (z->scalar() != Scalar::u8 && z->scalar() != Scalar::i8) return false;
  if (!can_be_around_zero(match, axis) || q == nullptr || q->scalar() != Scalar::f32 || integer(match, "k") != 0)
    return false;
  const auto rank = static_cast<int64_t>(w->shape().size());
  const int64_t along = integer(match, "d") < 0 ? integer(match, "d") + rank : integer(match, "d");
  const bool each = q->size() == w->shape()[axis] && along == static_cast<int64_t>(axis);
  if (q->size() != 1 && !each) return false;
  // Channels of a convolution come before its spatial dimensions; columns of a matrix product come last.
  std::vector<int64_t> shape;
  if (axis == 0 && match.rests.count("A") != 0) {
    shape = by_channel(w->shape().size());
    match.attributes["by_channel"] = shape;
  }
  if (q->size() == 1)
    shape.clear();
  else if (shape.empty())
    shape = {-1};
  match.attributes["factors"] = shape;
  return true;
}

bool has_unsigned_weights(ProgramMatch& match) {
  const Tensor *w = match.known("w"), *y = match.known("y");
  return w != nullptr && w->scalar() == Scalar::u8 && y != nullptr && y->scalar() == Scalar::u8;
}

// Signed 8-bit inputs that are multiplied with known weights.
bool has_signed_inputs(ProgramMatch& match) {
  return leaf_of(match.values.at("x")->type) == scalar_type(Scalar::i8) && match.known("x") == nullptr &&
         match.known("w") != nullptr;
}

bool is_matrix(const ProgramMatch& match) {
  return match.known("w") != nullptr && match.known("w")->shape().size() == 2;
}

bool is_of_one_number(Type type) { return element_count(shape_of(type)) == 1; }

// The shape of a constant, also of a constant whose values a derivation withholds.
bool is_withheld(const ProgramMatch& match, const std::string& operand) {
  const Expr e = match.values.at(operand);
  return e->pattern == Pattern::parameter && match.program->withheld.count(e->name) != 0;
}

// An integer contraction of x with known weights and outputs along `axis`, whose zero points are known and not all 0.
bool has_zero_points_of_weights(const ProgramMatch& match, size_t axis) {
  if (match.known("x") != nullptr || !is_of_one_number(match.values.at("z")->type)) return false;
  return can_be_around_zero(match, axis) &&
         (is_withheld(match, "y") || *zero_points_of_weights(match, axis) != std::pair<int64_t, int64_t>());
}

// Adds `zeros`: the shape in which zero points broadcast.
bool is_convolution_with_zero_points(ProgramMatch& match) {
  if (!has_zero_points_of_weights(match, 0) || has_filters_of_one_channel(match)) return false;
  const bool is_one = is_one_number(match.known("y"));
  match.attributes["zeros"] = is_one ? Integers() : by_channel(match.known("w")->shape().size());
  return true;
}

// A contraction of bytes, whose zero point the program computes, with known weights and outputs along `axis`.
bool has_computed_zero_point(const ProgramMatch& match, size_t axis) {
  const Tensor* w = match.known("w");
  if (match.known("x") != nullptr || leaf_of(match.values.at("x")->type) != scalar_type(Scalar::u8)) return false;
  if (match.known("z") != nullptr || !is_of_one_number(match.values.at("z")->type)) return false;
  return w != nullptr && w->scalar() == Scalar::i8 && w->shape().size() > axis && sums_fit(*w, axis, 0);
}

bool pads_automatically(const Attributes& given) {
  const auto automatic = given.find("auto_pad");
  return automatic != given.end() && automatic->second != Attribute(std::string("NOTSET"));
}

// Adds a pad layer that borders the images, because a computed zero point gives a border that is unknown at compile
// time; the convolution then has no padding.
bool are_images_around_computed_number(ProgramMatch& match) {
  const Tensor* w = match.known("w");
  if (!has_computed_zero_point(match, 0) || w->shape().size() < 3) return false;
  Attributes& given = match.rests["A"];
  const auto rank = static_cast<int64_t>(w->shape().size()) - 2;
  if (pads_automatically(given)) return false;
  const Integers border = integers(given, "pads", Integers(static_cast<size_t>(2 * rank), 0));
  if (std::any_of(border.begin(), border.end(), [](int64_t n) { return n < 0; })) return false;
  given.erase("pads");
  Integers spatial, summed = {1};
  for (int64_t i = 0; i < rank; ++i) {
    spatial.push_back(2 + i);
    summed.push_back(2 + i);
  }
  match.attributes.insert(
      {{"border", border}, {"by_channel", by_channel(w->shape().size())}, {"spatial", spatial}, {"summed", summed}});
  return true;
}

// An integer contraction with a known bias that cannot overflow i32 either, quantised by one scale and one zero point.
bool is_requantised_product(ProgramMatch& match, size_t axis) {
  const Tensor *s = match.known("s"), *t = match.known("t");
  if (!is_one_number(s) || s->scalar() != Scalar::f32 || !is_one_number(t) || t->shape() != s->shape()) return false;
  if (match.values.count("b") != 0) {
    const Tensor* b = match.known("b");
    if (b == nullptr) return false;
    for (int64_t i = 0; i < b->size(); ++i)
      if (std::abs(b->integer_at(i)) >= INT32_MAX / 2) return false;  // sums_fit leaves this margin
  }
  return is_integer_product(match, axis);
}

// 32-bit integers, as contractions sum them.
bool are_integer_sums(const ProgramMatch& match) {
  return leaf_of(match.values.at("x")->type) == scalar_type(Scalar::i32) && match.known("x") == nullptr;
}

// True if the whole tensor has one known scale, other than 1.
bool has_other_scale(const ProgramMatch& match) {
  const Tensor* s = match.known("s");
  return is_one_number(s) && s->scalar() == Scalar::f32 && s->float_at(0) != 1;
}

// Bytes with one scale, which is positive.
bool is_of_positive_scale(const ProgramMatch& match) {
  const Tensor *s = match.known("s"), *z = match.known("z");
  const Type x = leaf_of(match.values.at("x")->type);
  if (x != scalar_type(Scalar::u8) && x != scalar_type(Scalar::i8)) return false;
  if (!is_one_number(s) || s->scalar() != Scalar::f32 || !(s->float_at(0) > 0)) return false;
  return match.absent.count("z") != 0 || is_one_number(z);
}

// True if each window of a pool contains an element of the image: the maximum of an empty window is the border's value,
// which is not a byte.
bool has_no_empty_window(const ProgramMatch& match) {
  const Attributes& given = match.rests.at("A");
  const Integers kernel = integers(given, "kernel_shape", {});
  const size_t rank = kernel.size();
  const Integers strides = integers(given, "strides", Integers(rank, 1)),
                 pads = integers(given, "pads", Integers(2 * rank, 0)),
                 dilations = integers(given, "dilations", Integers(rank, 1));
  const bool rounds_up = integer(given, "ceil_mode", 0) != 0;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t begin = pads[i], end = pads[rank + i];
    if (dilations[i] != 1 || begin >= kernel[i] || end >= kernel[i]) return false;
    if (rounds_up && end + strides[i] > kernel[i]) return false;
  }
  return true;
}

// Bytes that are dequantised and quantised with the same scale and the same zero point do not change, if the scale is
// not so large or small that rounding reaches half a quantisation step.
bool is_of_same_scale(const ProgramMatch& match) {
  const Tensor *s = match.known("s"), *p = match.known("p"), *z = match.known("z"), *y = match.known("y");
  if (!is_of_positive_scale(match) || !is_one_number(p) || !is_one_number(z) || !is_one_number(y)) return false;
  const double scale = s->float_at(0);
  constexpr double largest = 0x1p100, least = 0x1p-100;
  return p->scalar() == Scalar::f32 && p->float_at(0) == scale && scale <= largest && scale >= least &&
         y->scalar() == z->scalar() && y->integer_at(0) == z->integer_at(0);
}

// A value that is quantised with positive scales to unsigned bytes in which 0 represents 0.
bool is_quantised_from_zero(const ProgramMatch& match) {
  const Tensor *s = match.known("s"), *z = match.known("z");
  if (s == nullptr || s->scalar() != Scalar::f32 || z == nullptr || z->scalar() != Scalar::u8) return false;
  bool holds = true;
  for (int64_t i = 0; i < s->size(); ++i) holds &= s->float_at(i) > 0;
  for (int64_t i = 0; i < z->size(); ++i) holds &= z->integer_at(i) == 0;
  return holds;
}

// Known elements of 2 or 4 bits. Adds `byte`: the type of bytes that holds them.
bool has_packed_weights(ProgramMatch& match) {
  const Tensor* w = match.known("w");
  if (w == nullptr || !is_packed(w->scalar())) return false;
  match.attributes["byte"] = int64_t{row(w->scalar()).is_signed ? 3 : 2};
  return true;
}

// A contraction of f16 with known f16 and sums in f32. Adds `by_channel`: the shape in which a bias broadcasts.
bool is_product_of_halves(ProgramMatch& match) {
  const Tensor* w = match.known("w");
  if (w == nullptr || w->scalar() != Scalar::f16 || match.known("x") != nullptr) return false;
  match.attributes["by_channel"] = by_channel(w->shape().size());
  return true;
}

int64_t extent_at(const std::vector<int64_t>& shape, int64_t i) {
  const int64_t place = i < 0 ? static_cast<int64_t>(shape.size()) + i : i;
  return place < 0 || place >= static_cast<int64_t>(shape.size()) ? 0 : shape[static_cast<size_t>(place)];
}

// A contraction of bf16 with known bf16 whose summed dimension fills at least two words of a matrix instruction.
bool is_product_of_bf16(const ProgramMatch& match, int64_t summed) {
  const Tensor* w = match.known("w");
  if (w == nullptr || w->scalar() != Scalar::bf16 || match.known("x") != nullptr || groups_of(match) != 1) return false;
  if (leaf_of(match.values.at("x")->type) != scalar_type(Scalar::bf16) || w->shape().size() < 2) return false;
  return extent_at(w->shape(), summed) % 4 == 0;
}

// True if this dimension of the result has at least four rows and divides into bands of at most the rows of a matrix
// instruction. A single row stays in 8 bits, which take less memory traffic.
bool has_bands(const ProgramMatch& match, int64_t dimension) {
  const std::vector<int64_t> result = shape_of(match.index->find(match.value)->expression->type);
  const int64_t rows = extent_at(result, dimension);
  if (result.size() < 2 || rows == 1) return result.size() >= 2;
  for (int64_t band = 4; band <= 16; ++band) {
    if (rows % band == 0) return true;
  }
  return false;
}

// A contraction of bytes in one channel group, whose inputs may be stored in 16 bits.
bool is_product_of_bytes(const ProgramMatch& match) {
  const Tensor *w = match.known("w"), *z = match.known("z");
  if (w == nullptr || w->scalar() != Scalar::i8 || !is_one_number(z) || z->scalar() != Scalar::u8) return false;
  if (match.known("x") != nullptr || leaf_of(match.values.at("x")->type) != scalar_type(Scalar::u8)) return false;
  return w->shape().size() >= 2 && groups_of(match) == 1;
}

// A contraction of bytes with one channel per filter, whose sums f32 holds exactly.
bool is_exact_in_floats(const ProgramMatch& match) {
  constexpr int64_t exact_integers = int64_t{1} << 24, most_of_a_product = 255 * 128;
  const Tensor *w = match.known("w"), *z = match.known("z");
  if (!has_filters_of_one_channel(match) || w->scalar() != Scalar::i8 || !is_one_number(z)) return false;
  if (match.known("x") != nullptr || leaf_of(match.values.at("x")->type) != scalar_type(Scalar::u8)) return false;
  return z->scalar() == Scalar::u8 && w->size() / w->shape()[0] * most_of_a_product <= exact_integers;
}

// Windows that may be padded with a value other than 0: a border repeats one byte (Padding::byte).
bool needs_border_of_zeros(const ProgramMatch& match) {
  const std::vector<int64_t>& shape = match.known("w")->shape();
  return std::any_of(shape.begin() + 2, shape.end(), [](int64_t n) { return n != 1; }) &&
         match.known("z")->integer_at(0) != 0;
}

// Integer sums over a number of input channels that is not a multiple of the given number: adds zeros up to the next
// multiple. Negative axes count from the last, because both operands of a matrix product may have batch dimensions of
// their own.
bool is_no_multiple(ProgramMatch& match, int64_t of, int64_t axis, int64_t from_weights) {
  const Tensor *w = match.known("w"), *z = match.known("z");
  if (w == nullptr || w->scalar() != Scalar::i8 || !is_one_number(z) || z->scalar() != Scalar::u8) return false;
  const auto rank = static_cast<int64_t>(w->shape().size());
  // A vector of weights has no columns.
  const int64_t place = from_weights >= 0 ? from_weights : std::max<int64_t>(rank + from_weights, 0);
  if (place >= rank) return false;
  const auto weights_axis = static_cast<size_t>(place);
  if (groups_of(match) != 1) return false;
  const int64_t missing = (of - w->shape()[weights_axis] % of) % of;
  if (missing == 0) return false;
  match.attributes["amounts"] = std::vector<int64_t>{0, missing};
  match.attributes["along"] =
      std::vector<int64_t>{axis < 0 ? static_cast<int64_t>(sizes_of(match.values.at("x")->type).size()) - 1 : axis};
  match.attributes["weights_along"] = std::vector<int64_t>{static_cast<int64_t>(weights_axis)};
  return true;
}

// A single signed zero point of a quantised value that only calls of the same shape use; every call that dequantises
// the value is changed in turn.
bool is_only_dequantised(ProgramMatch& match) {
  const Program& program = *match.program;
  auto signed_zero = [&](const Tensor* zero) { return is_one_number(zero) && zero->scalar() == Scalar::i8; };
  if (!signed_zero(match.known("z")) || !signed_zero(match.known("y"))) return false;
  const std::string& quantised = match.consumed.front();
  if (match.index->is_output(quantised)) return false;
  const std::string& reader = match.index->find(match.value)->expression->operation->name;
  for (const size_t use : match.index->uses_of(quantised)) {
    const Spec& call = *program.definitions[use].expression;
    if (call.pattern != Pattern::operator_call || call.operation->name != reader || call.children.size() != 3)
      return false;
    if (call.children[0]->name != quantised || call.children[2]->pattern != Pattern::parameter) return false;
    auto zero = program.constants.find(call.children[2]->name);
    if (zero == program.constants.end() || !signed_zero(&zero->second)) return false;
  }
  return true;
}

Integers joined(std::initializer_list<Integers> lists) {
  Integers out;
  for (const Integers& list : lists) out.insert(out.end(), list.begin(), list.end());
  return out;
}

// A transposed convolution with strides s. Outputs a stride apart are sums over the same taps of a filter, every s-th
// tap: each of the s phases is a convolution with those taps in reverse order. Here all phases are channels of one
// convolution, and a pixel shuffle interleaves them. Adds the attributes of that convolution. A phase has `q` taps
// (zeros extend the filter to a multiple of s) and `rows` outputs.
bool has_phases(ProgramMatch& match) {
  const Tensor* w = match.known("w");
  const Definition* self = match.index->find(match.value);
  const Attributes& given = match.rests["A"];
  for (const char* other : {"output_shape", "auto_pad"}) {
    if (given.count(other) != 0) return false;
  }
  if (w == nullptr || self == nullptr) return false;
  const Integers dilations = integers(given, "dilations", {});
  if (std::any_of(dilations.begin(), dilations.end(), [](int64_t n) { return n != 1; })) return false;
  const Integers x = shape_of(match.values.at("x")->type), y = shape_of(self->expression->type);
  const size_t rank = x.size() - 2;
  const Integers s = integers(given, "strides", Integers(rank, 1)),
                 begin = integers(given, "pads", Integers(2 * rank, 0));
  if (s == Integers(rank, 1) || *std::min_element(begin.begin(), begin.end()) < 0) return false;
  const int64_t groups = groups_of(match), inputs = x[1] / groups, outputs = w->shape()[1];

  const auto each = [&](const std::function<int64_t(size_t)>& value) {
    Integers out;
    for (size_t i = 0; i < rank; ++i) out.push_back(value(i));
    return out;
  };
  const auto number = [](size_t i) { return static_cast<int64_t>(i); };
  const Integers q = each([&](size_t i) { return (w->shape()[2 + i] + s[i] - 1) / s[i]; });
  const Integers rows =
      each([&](size_t i) { return std::max(x[2 + i] + q[i] - 1, (begin[i] + y[2 + i] + s[i] - 1) / s[i]); });
  int64_t phases = 1;
  for (int64_t stride : s) phases *= stride;
  Integers taps_and_phases;
  Integers rows_and_phases;
  for (size_t i = 0; i < rank; ++i) {
    taps_and_phases.insert(taps_and_phases.end(), {q[i], s[i]});
    rows_and_phases.insert(rows_and_phases.end(), {number(3 + rank + i), number(2 + i)});
  }
  const std::pair<const char*, Integers> added[] = {
      {"groups_inputs_outputs_taps_phases", joined({{groups, inputs, outputs}, taps_and_phases})},
      {"more_taps", joined({Integers(4 + rank, 0), each([&](size_t i) { return q[i] * s[i] - w->shape()[2 + i]; })})},
      {"taps", each([&](size_t i) { return number(3 + 2 * i); })},
      {"last", Integers(rank, -1)},
      {"before_first", each([&](size_t i) { return -q[i] - 1; })},
      {"outputs_by_phase", joined({{0}, each([&](size_t i) { return number(4 + 2 * i); }), {2, 1}, each([&](size_t i) {
                                     return number(3 + 2 * i);
                                   })})},
      {"filters", joined({{groups * phases * outputs, inputs}, q})},
      {"borders",
       joined({each([&](size_t i) { return q[i] - 1; }), each([&](size_t i) { return rows[i] - x[2 + i]; })})},
      {"phases_outputs_rows", joined({{x[0], groups}, s, {outputs}, rows})},
      {"rows_by_phase", joined({{0, 1, number(2 + rank)}, rows_and_phases})},
      {"together", joined({{x[0], groups * outputs}, each([&](size_t i) { return rows[i] * s[i]; })})},
      {"begin", each([&](size_t i) { return begin[i]; })},
      {"end", each([&](size_t i) { return begin[i] + y[2 + i]; })},
      {"spatial", each([&](size_t i) { return number(2 + i); })},
      {"groups_one_outputs", {groups, 1, outputs}},
      {"groups_phases_outputs", {groups, phases, outputs}},
      {"channels", {groups * phases * outputs}}};
  for (const auto& [name, value] : added) match.attributes[name] = value;
  match.attributes["groups"] = groups;
  return true;
}

// The same for images with strides of two and a filter of odd size in both directions: the second phase of a direction
// has one tap less than the first, so each of the four phases is a convolution of its own, with 9 products instead of
// 16 for a 3x3 filter. If a phase has too few channels to fill vectors, four convolutions are slower than one.
bool has_short_phases(ProgramMatch& match) {
  if (!has_phases(match)) return false;
  const std::vector<int64_t>& filters = match.known("w")->shape();
  if (filters.size() != 4 || groups_of(match) != 1) return false;
  const Integers strides = integers(match.rests["A"], "strides", {1, 1}),
                 borders = integers(match.attributes, "borders", {});
  const int64_t outputs = filters[1], taps_down = filters[2], taps_across = filters[3];
  constexpr int64_t least_outputs = 16;
  if (strides != Integers{2, 2} || outputs % least_outputs != 0) return false;
  if (taps_down % 2 == 0 || taps_across % 2 == 0 || taps_down < 3 || taps_across < 3) return false;
  for (int64_t down : {0, 1}) {
    for (int64_t across : {0, 1}) {
      const int64_t phase = 2 * down + across;
      const std::string name = std::to_string(phase);
      match.attributes["begin" + name] = Integers{phase * outputs, down, across};
      match.attributes["end" + name] = Integers{(phase + 1) * outputs, taps_down / 2 + 1, taps_across / 2 + 1};
      match.attributes["borders" + name] = Integers{borders[0] - down, borders[1] - across, borders[2], borders[3]};
    }
  }
  match.attributes["outputs_and_taps"] = Integers{0, 2, 3};
  return true;
}

// True for a convolution of rows in groups of several channels, with one tap and no padding: each result is a product
// of a filter with the channels of one element. Adds the shapes of the filters by group, of the rows by group, and of
// the result.
bool is_product_of_row_groups(ProgramMatch& match) {
  const Integers x = shape_of(match.values.at("x")->type), w = shape_of(match.values.at("w")->type);
  const Attributes& given = match.rests["A"];
  const int64_t groups = groups_of(match);
  if (x.size() != 3 || w[2] != 1 || groups == 1 || w[1] == 1) return false;
  // A convolution of shorter floats rounds once, after the bias.
  const Scalar scalar = leaf_of(match.values.at("x")->type)->scalar;
  if (scalar != Scalar::f32 && scalar != Scalar::f64) return false;
  if (integers(given, "strides", {1}) != Integers{1} || integers(given, "pads", {0, 0}) != Integers{0, 0}) return false;
  match.attributes["filters"] = Integers{groups, w[0] / groups, w[1]};
  match.attributes["rows"] = Integers{x[0], groups, w[1], x[2]};
  match.attributes["together"] = Integers{x[0], w[0], x[2]};
  match.attributes["by_channel"] = by_channel(x.size());
  return true;
}

// True for a convolution of volumes whose windows span one frame each, in steps of one. Adds the shapes of the images
// `frames`, of the `filters`, and of the result as `volumes` with frames before channels; *A has two dimensions.
bool has_windows_of_frames(ProgramMatch& match) {
  const Integers x = shape_of(match.values.at("x")->type), w = shape_of(match.values.at("w")->type);
  Attributes& given = match.rests["A"];
  if (x.size() != 5 || w[2] != 1 || pads_automatically(given)) return false;
  const Integers strides = integers(given, "strides", {1, 1, 1}), dilations = integers(given, "dilations", {1, 1, 1}),
                 pads = integers(given, "pads", {0, 0, 0, 0, 0, 0});
  if (strides[0] != 1 || pads[0] != 0 || pads[3] != 0) return false;
  given["kernel_shape"] = Integers{w[3], w[4]};
  given["strides"] = Integers{strides[1], strides[2]};
  given["dilations"] = Integers{dilations[1], dilations[2]};
  given["pads"] = Integers{pads[1], pads[2], pads[4], pads[5]};
  const Integers result = shape_of(match.index->find(match.value)->expression->type);
  match.attributes.insert({{"frames", Integers{x[0] * x[2], x[1], x[3], x[4]}},
                           {"filters", Integers{w[0], w[1], w[3], w[4]}},
                           {"volumes", Integers{result[0], result[2], result[1], result[3], result[4]}}});
  return true;
}

// A computed float to the power of one known number, which keeps its shape.
bool is_power_of(const ProgramMatch& match, int64_t exponent) {
  const Tensor* t = match.known("t");
  const Type x = match.values.at("x")->type;
  if (!is_one_number(t) || match.known("x") != nullptr || !is_float(leaf_of(x)->scalar)) return false;
  if (t->shape().size() > sizes_of(x).size() || t->scalar() == Scalar::string) return false;
  return is_float(t->scalar()) ? t->float_at(0) == static_cast<double>(exponent) : t->integer_at(0) == exponent;
}

// True for statistics per channel in the type of the scaled elements. Adds `by_channel`: the shape in which they
// broadcast.
bool are_factors_of_channels(ProgramMatch& match) {
  const Type x = match.values.at("x")->type;
  const Tensor* s = match.known("s");
  const Scalar scalar = leaf_of(x)->scalar;
  if (s == nullptr || s->scalar() != scalar || (scalar != Scalar::f32 && scalar != Scalar::f64)) return false;
  const size_t rank = sizes_of(x).size();
  if (rank < 2 || match.known("x") != nullptr) return false;
  match.attributes["by_channel"] = by_channel(rank);
  return true;
}

// True for computed images that a normalisation divides into groups of whole channels: as many as `num_groups` of *A
// says, or as the images are reshaped to. Sums of shorter floats are wider, so they stay one operator. Adds the axes of
// `positions`, the shape `groups` of channels by group, the shapes `per_channel`, `by_channel`, `one_each` and
// `group_channels` of numbers for channels and groups, and `joined`, the result's shape.
bool are_groups_of_channels(ProgramMatch& match) {
  const Type type = match.values.at("x")->type;
  const Integers x = shape_of(type), joined = shape_of(match.index->find(match.value)->expression->type);
  const Scalar scalar = leaf_of(type)->scalar;
  if (x.size() < 3 || element_count(x) == 0 || match.known("x") != nullptr) return false;
  if (scalar != Scalar::f32 && scalar != Scalar::f64) return false;
  const int64_t groups = integer(match.rests["A"], "num_groups", joined[1]);
  if (joined[0] != x[0] || groups < 1 || x[1] % groups != 0) return false;
  Integers positions, per_channel = {x[0], x[1]};
  for (size_t i = 2; i < x.size(); ++i) {
    positions.push_back(static_cast<int64_t>(i));
    per_channel.push_back(1);
  }
  match.attributes.insert({{"positions", positions},
                           {"groups", Integers{x[0], groups, x[1] / groups}},
                           {"per_channel", per_channel},
                           {"by_channel", by_channel(x.size())},
                           {"one_each", Integers{groups, 1}},
                           {"group_channels", Integers{groups, x[1] / groups}},
                           {"joined", joined}});
  return true;
}

}  // namespace

const ProgramConditions& program_conditions() {
  using Numbers = std::span<const int64_t>;
  const auto plain = [](auto holds) { return [holds](ProgramMatch& m, Numbers) { return holds(m); }; };
  const auto along = [](auto holds) {
    return [holds](ProgramMatch& m, Numbers n) { return holds(m, static_cast<size_t>(n[0])); };
  };
  static const ProgramConditions all = {
      {"matrix of weights", plain(is_matrix)},
      {"integer product along #", along(is_integer_product)},
      {"requantised product along #", along(is_requantised_product)},
      {"unsigned weights", plain(has_unsigned_weights)},
      {"packed weights", plain(has_packed_weights)},
      {"signed inputs", plain(has_signed_inputs)},
      {"images padded with a computed value", plain(are_images_around_computed_number)},
      {"computed zero point along #", along(has_computed_zero_point)},
      {"convolution with zero points of weights", plain(is_convolution_with_zero_points)},
      {"nonzero points of weights along #", along(has_zero_points_of_weights)},
      {"integer sums", plain(are_integer_sums)},
      {"a scale other than one", plain(has_other_scale)},
      {"a positive scale", plain(is_of_positive_scale)},
      {"no empty window", plain(has_no_empty_window)},
      {"the same scale", plain(is_of_same_scale)},
      {"quantised from zero", plain(is_quantised_from_zero)},
      {"phases of strides", plain(has_phases)},
      {"short phases of strides", plain(has_short_phases)},
      {"product of row groups", plain(is_product_of_row_groups)},
      {"windows of frames", plain(has_windows_of_frames)},
      {"taps of padding", plain(has_taps_of_padding)},
      {"a tap of mostly padding", plain(has_tap_of_mostly_padding)},
      {"positions of all elements", [](ProgramMatch& m, Numbers) { return scatters_to_box(m, true); }},
      {"positions of a box", [](ProgramMatch& m, Numbers) { return scatters_to_box(m, false); }},
      {"positions along an axis that count through all",
       [](ProgramMatch& m, Numbers) { return gathers_view(m, Positions::along_axis, true); }},
      {"positions along an axis that count",
       [](ProgramMatch& m, Numbers) { return gathers_view(m, Positions::along_axis, false); }},
      {"tuples of positions that count through all",
       [](ProgramMatch& m, Numbers) { return gathers_view(m, Positions::tuples, true); }},
      {"tuples of positions that count",
       [](ProgramMatch& m, Numbers) { return gathers_view(m, Positions::tuples, false); }},
      {"power of #", [](ProgramMatch& m, Numbers n) { return is_power_of(m, n[0]); }},
      {"no multiple of # along # of inputs and # of weights",
       [](ProgramMatch& m, Numbers n) { return is_no_multiple(m, n[0], n[1], n[2]); }},
      // In training mode the statistics change with the momentum.
      {"running statistics", [](ProgramMatch& m, Numbers) { return integer(m.rests["B"], "training_mode", 0) == 0; }},
      {"factors of channels", plain(are_factors_of_channels)},
      {"groups of channels", plain(are_groups_of_channels)},
      {"only dequantised", plain(is_only_dequantised)},
      {"product of halves", plain(is_product_of_halves)},
      {"product of bf16 summed along #", [](ProgramMatch& m, Numbers n) { return is_product_of_bf16(m, n[0]); }},
      {"bands of rows along #", [](ProgramMatch& m, Numbers n) { return has_bands(m, n[0]); }},
      {"product of bytes that floats hold", plain(is_exact_in_floats)},
      {"product of bytes", plain(is_product_of_bytes)},
      {"border of another number", plain(needs_border_of_zeros)},
  };
  return all;
}

std::span<const ProgramRuleRow> operator_rule_rows() { return own_rule_rows().between_calls; }

const ProgramRule* operator_rule(const std::string& name) {
  static std::mutex mutex;
  static auto* known = new std::map<std::string_view, const ProgramRule*>;  // null: not read yet
  const std::lock_guard lock(mutex);
  if (known->empty()) {
    for (const ProgramRuleRow& row : operator_rule_rows()) known->emplace(row.name, nullptr);
  }
  const auto found = known->find(name);
  if (found == known->end()) return nullptr;
  if (found->second == nullptr) {
    const auto rows = operator_rule_rows();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const ProgramRuleRow& r) { return r.name == name; });
    const auto read = load_program_rules(std::span(&*row, 1), program_conditions());
    HOIST_CHECK(read.ok(), "a rule between operator calls is wrong: " + (read.ok() ? "" : read.errors()[0].text()));
    found->second = read->front();
  }
  return found->second;
}

std::vector<const ProgramRule*> operator_rules() {
  std::vector<const ProgramRule*> out;
  for (const ProgramRuleRow& row : operator_rule_rows()) out.push_back(operator_rule(row.name));
  return out;
}

std::vector<const ProgramRule*> operator_rules_of(std::string_view pass) {
  std::vector<const ProgramRule*> out;
  for (const ProgramRuleRow& row : operator_rule_rows()) {
    if (row.pass == pass) out.push_back(operator_rule(row.name));
  }
  HOIST_CHECK(!out.empty(), "no rule names the pass " + std::string(pass));
  return out;
}

}  // namespace hoist
