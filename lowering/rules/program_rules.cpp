#include "lowering/rules/program_rules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <utility>

#include "lowering/graph/program.h"

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

// The attribute group of a convolution, 1 where it is left out.
int64_t groups_of(const ProgramMatch& match) {
  const auto rest = match.rests.find("A");
  return rest == match.rests.end() ? 1 : integer(rest->second, "group", 1);
}

// The shape in which numbers of channels broadcast over tensors of that rank, whose dimension 1 holds those.
Integers by_channel(size_t rank) {
  Integers shape(std::max<size_t>(rank, 2) - 1, 1);
  shape[0] = -1;
  return shape;
}

bool is_one_number(const Tensor* tensor) { return tensor != nullptr && tensor->size() == 1; }

// Can no sum of products leave i32? `axis` is that of the outputs; an activation is at most 255 from its zero point.
// Both the sum of stored numbers and its correction by the zero point have to fit.
bool sums_fit(const Tensor& numbers, size_t axis, int64_t zero) {
  int64_t inner = 1;
  for (size_t i = axis + 1; i < numbers.shape().size(); ++i) inner *= numbers.shape()[i];
  const int64_t outputs = numbers.shape()[axis];
  std::vector<int64_t> sums(static_cast<size_t>(outputs), 0);
  for (int64_t i = 0; i < numbers.size(); ++i)
    sums[static_cast<size_t>(i / inner % outputs)] += std::abs(numbers.integer_at(i) - zero);
  return std::all_of(sums.begin(), sums.end(), [](int64_t sum) { return sum * 255 * 2 < INT32_MAX; });
}

// Filters of one channel each sum so few products that nothing is won by taking their zero point apart.
bool has_filters_of_one_channel(const ProgramMatch& match) {
  const Tensor* w = match.known("w");
  return w != nullptr && w->shape().size() >= 3 && w->shape()[1] == 1;
}

// The least and the largest of the zero points y of weights w and of 0, where there is one for all outputs, which are
// along `axis`, or one for each; of zero points that are left out 0 and 0.
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

// Do the sums of products with known weights w in 8 signed bits fit in i32 with their zero points and without? Those of
// a convolution in groups, but for one channel each, have to be 0: the others cannot be taken from the sums.
bool can_be_around_zero(const ProgramMatch& match, size_t axis) {
  const Tensor* w = match.known("w");
  if (w == nullptr || w->scalar() != Scalar::i8 || w->shape().size() <= axis) return false;
  const auto zeros = zero_points_of_weights(match, axis);
  if (!zeros || !sums_fit(*w, axis, zeros->first) || !sums_fit(*w, axis, zeros->second)) return false;
  return *zeros == std::pair<int64_t, int64_t>() || groups_of(match) == 1 || has_filters_of_one_channel(match);
}

// x is 8 bits with one scale p and one zero point z, w a constant in 8 signed bits with one scale q for all or for each
// output along `axis`. Adds `factors`, and `by_channel` for a convolution: the shapes in which factors and a bias
// broadcast.
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
  // Channels of a convolution come before its spatial dimensions, columns of a product last.
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

// Inputs in 8 bits with a sign that meet known weights.
bool has_signed_inputs(ProgramMatch& match) {
  return leaf_of(match.values.at("x")->type) == scalar_type(Scalar::i8) && match.known("x") == nullptr &&
         match.known("w") != nullptr;
}

bool is_matrix(const ProgramMatch& match) {
  return match.known("w") != nullptr && match.known("w")->shape().size() == 2;
}

bool is_of_one_number(Type type) { return element_count(shape_of(type)) == 1; }

// Of a constant whose values a derivation leaves out.
bool is_withheld(const ProgramMatch& match, const std::string& operand) {
  const Expr e = match.values.at(operand);
  return e->pattern == Pattern::parameter && match.program->withheld.count(e->name) != 0;
}

// An integer product of x with known weights, outputs along `axis`, whose zero points are known and not all 0.
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

// A product of bytes, whose zero point the program computes, with known weights, outputs along `axis`.
bool has_computed_zero_point(const ProgramMatch& match, size_t axis) {
  const Tensor* w = match.known("w");
  if (match.known("x") != nullptr || leaf_of(match.values.at("x")->type) != scalar_type(Scalar::u8)) return false;
  if (match.known("z") != nullptr || !is_of_one_number(match.values.at("z")->type)) return false;
  return w != nullptr && w->scalar() == Scalar::i8 && w->shape().size() > axis && sums_fit(*w, axis, 0);
}

// Adds what pictures are bordered with before, as no border is known when it is compiled; the convolution then has
// none.
bool are_pictures_around_computed_number(ProgramMatch& match) {
  const Tensor* w = match.known("w");
  if (!has_computed_zero_point(match, 0) || w->shape().size() < 3) return false;
  Attributes& given = match.rests["A"];
  const auto rank = static_cast<int64_t>(w->shape().size()) - 2;
  const auto automatic = given.find("auto_pad");
  if (automatic != given.end() && automatic->second != Attribute(std::string("NOTSET"))) return false;
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

// An integer product with a known bias that cannot leave i32 either, quantised by one scale and one zero point.
bool is_requantised_product(ProgramMatch& match, size_t axis) {
  const Tensor *s = match.known("s"), *t = match.known("t");
  if (!is_one_number(s) || s->scalar() != Scalar::f32 || !is_one_number(t) || t->shape() != s->shape()) return false;
  if (match.values.count("b") != 0) {
    const Tensor* b = match.known("b");
    if (b == nullptr) return false;
    for (int64_t i = 0; i < b->size(); ++i)
      if (std::abs(b->integer_at(i)) >= INT32_MAX / 2) return false;  // as sums_fit leaves so much
  }
  return is_integer_product(match, axis);
}

// What is quantised by a scale other than 1, one for the whole tensor.
bool has_other_scale(ProgramMatch& match) {
  const Tensor* s = match.known("s");
  return is_one_number(s) && s->scalar() == Scalar::f32 && s->float_at(0) != 1 && match.known("x") == nullptr;
}

// Bytes with one scale, which is above zero.
bool is_of_positive_scale(const ProgramMatch& match) {
  const Tensor *s = match.known("s"), *z = match.known("z");
  const Type x = leaf_of(match.values.at("x")->type);
  if (x != scalar_type(Scalar::u8) && x != scalar_type(Scalar::i8)) return false;
  if (!is_one_number(s) || s->scalar() != Scalar::f32 || !(s->float_at(0) > 0)) return false;
  return match.absent.count("z") != 0 || is_one_number(z);
}

// Each window of a pool holds an element of the picture: of none the maximum is that of borders, which are no bytes.
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

// Bytes that are dequantised and quantised with the same scale, one that is not so large or small that rounding reaches
// a half of a step, and the same zero point: they stay what they are.
bool is_of_same_scale(const ProgramMatch& match) {
  const Tensor *s = match.known("s"), *p = match.known("p"), *z = match.known("z"), *y = match.known("y");
  if (!is_of_positive_scale(match) || !is_one_number(p) || !is_one_number(z) || !is_one_number(y)) return false;
  const double scale = s->float_at(0);
  constexpr double largest = 0x1p100, least = 0x1p-100;
  return p->scalar() == Scalar::f32 && p->float_at(0) == scale && scale <= largest && scale >= least &&
         y->scalar() == z->scalar() && y->integer_at(0) == z->integer_at(0);
}

// What is quantised with positive scales to bytes without a sign, of which 0 stands for 0.
bool is_quantised_from_zero(const ProgramMatch& match) {
  const Tensor *s = match.known("s"), *z = match.known("z");
  if (s == nullptr || s->scalar() != Scalar::f32 || z == nullptr || z->scalar() != Scalar::u8) return false;
  bool holds = true;
  for (int64_t i = 0; i < s->size(); ++i) holds &= s->float_at(i) > 0;
  for (int64_t i = 0; i < z->size(); ++i) holds &= z->integer_at(i) == 0;
  return holds;
}

// A product of f16 with known f16, whose sums are of f32. Adds `by_channel`: the shape in which a bias broadcasts.
bool is_product_of_halves(ProgramMatch& match) {
  const Tensor* w = match.known("w");
  if (w == nullptr || w->scalar() != Scalar::f16 || match.known("x") != nullptr) return false;
  match.attributes["by_channel"] = by_channel(w->shape().size());
  return true;
}

// Whether bands of at least four rows, and of no more than a matrix instruction has, make up so many; one row has none,
// and is read in fewer bytes.
bool make_up_matrices(int64_t rows) {
  if (rows == 1) return true;
  for (int64_t band = 4; band <= 16; ++band) {
    if (rows % band == 0) return true;
  }
  return false;
}

// A product of bf16 with known bf16, whose summed dimension of the weights makes up words of a matrix instruction, two
// at least. Rows of pictures are those of their last dimension.
bool is_product_of_bf16(const ProgramMatch& match, int64_t summed, bool of_pictures) {
  const Tensor* w = match.known("w");
  if (w == nullptr || w->scalar() != Scalar::bf16 || match.known("x") != nullptr || groups_of(match) != 1) return false;
  if (leaf_of(match.values.at("x")->type) != scalar_type(Scalar::bf16)) return false;
  const std::vector<int64_t> result = shape_of(find_definition(*match.program, match.value)->expression->type);
  if (w->shape().size() < 2 || result.size() < 2) return false;
  const auto extent_at = [](const std::vector<int64_t>& shape, int64_t i) {
    return shape[static_cast<size_t>(i < 0 ? static_cast<int64_t>(shape.size()) + i : i)];
  };
  return extent_at(w->shape(), summed) % 4 == 0 && make_up_matrices(extent_at(result, of_pictures ? -1 : -2));
}

// A product of bytes, one group of channels, whose inputs may be stored in 16 bits.
bool is_product_of_bytes(const ProgramMatch& match) {
  const Tensor *w = match.known("w"), *z = match.known("z");
  if (w == nullptr || w->scalar() != Scalar::i8 || !is_one_number(z) || z->scalar() != Scalar::u8) return false;
  if (match.known("x") != nullptr || leaf_of(match.values.at("x")->type) != scalar_type(Scalar::u8)) return false;
  return w->shape().size() >= 2 && groups_of(match) == 1;
}

// A product of bytes in which each filter has one channel, whose sums f32 holds exactly.
bool is_exact_in_floats(const ProgramMatch& match) {
  constexpr int64_t exact_integers = int64_t{1} << 24, most_of_a_product = 255 * 128;
  const Tensor *w = match.known("w"), *z = match.known("z");
  if (!has_filters_of_one_channel(match) || w->scalar() != Scalar::i8 || !is_one_number(z)) return false;
  if (match.known("x") != nullptr || leaf_of(match.values.at("x")->type) != scalar_type(Scalar::u8)) return false;
  return z->scalar() == Scalar::u8 && w->size() / w->shape()[0] * most_of_a_product <= exact_integers;
}

// Of windows that may be padded with another number than 0: a border is of repeated bytes (Padding::byte).
bool needs_border_of_zeros(const ProgramMatch& match) {
  const std::vector<int64_t>& shape = match.known("w")->shape();
  return std::any_of(shape.begin() + 2, shape.end(), [](int64_t n) { return n != 1; }) &&
         match.known("z")->integer_at(0) != 0;
}

// Input channels of integer sums that are no multiple of so many: adds the amounts by which zeros complete them.
// Negative axes count from the last, as both operands of a product may have batch dimensions of their own.
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

// A signed zero point of one number where the quantised value is read by calls of the same shape only: everybody who
// dequantises it is changed in turn.
bool is_only_dequantised(ProgramMatch& match) {
  const Program& program = *match.program;
  auto signed_zero = [&](const Tensor* zero) { return is_one_number(zero) && zero->scalar() == Scalar::i8; };
  if (!signed_zero(match.known("z")) || !signed_zero(match.known("y"))) return false;
  const std::string& quantised = match.consumed.front();
  if (is_output(program, quantised)) return false;
  auto self = std::find_if(program.definitions.begin(), program.definitions.end(),
                           [&](const Definition& d) { return d.value == match.value; });
  const std::string& reader = self->expression->operation->name;
  for (const Definition& definition : program.definitions) {
    const std::vector<Expr> reads = parameters_of(definition.expression);
    if (std::none_of(reads.begin(), reads.end(), [&](Expr p) { return p->name == quantised; })) continue;
    const Spec& call = *definition.expression;
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
// one: each of the s phases is a convolution by those taps, the last one first. All phases are channels of one
// convolution here, and a pixel shuffle puts them in their places. Adds the attributes of that; `q` below are the taps
// of a phase, with zeros where the filter is no multiple of s, and `rows` its outputs.
bool has_phases(ProgramMatch& match) {
  const Tensor* w = match.known("w");
  const Definition* self = find_definition(*match.program, match.value);
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

// The same of pictures with strides of two where the filter is odd in both directions: the second phase of a direction
// has a tap less than the first, so each of the four is a convolution of its own, by 9 products in the place of 16 for
// a filter of 3x3. Where a phase has few channels, or they fill no vectors, four convolutions take longer than one.
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

// Statistics of channels as numbers of the type that they scale. Adds `by_channel`: the shape in which they broadcast.
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

const ProgramConditions& conditions() {
  static const ProgramConditions all = {
      {"integer product over outputs first", [](ProgramMatch& m) { return is_integer_product(m, 0); }},
      {"integer product over columns", [](ProgramMatch& m) { return is_matrix(m) && is_integer_product(m, 1); }},
      {"integer product over rows", [](ProgramMatch& m) { return is_matrix(m) && is_integer_product(m, 0); }},
      {"requantised product over outputs first", [](ProgramMatch& m) { return is_requantised_product(m, 0); }},
      {"requantised product over columns",
       [](ProgramMatch& m) { return is_matrix(m) && is_requantised_product(m, 1); }},
      {"unsigned weights", has_unsigned_weights},
      {"signed inputs", has_signed_inputs},
      {"pictures around a computed number", are_pictures_around_computed_number},
      {"rows around a computed number", [](ProgramMatch& m) { return is_matrix(m) && has_computed_zero_point(m, 1); }},
      {"convolution with zero points of weights", is_convolution_with_zero_points},
      {"matrix product with zero points of weights",
       [](ProgramMatch& m) { return is_matrix(m) && has_zero_points_of_weights(m, 1); }},
      {"plain factor", [](ProgramMatch& m) { return integer(m, "t") == 0; }},
      {"transposed factor", [](ProgramMatch& m) { return integer(m, "t") != 0; }},
      {"left factor as it is", [](ProgramMatch& m) { return integer(m, "l") == 0; }},
      {"whole bias",
       [](ProgramMatch& m) {
         const auto* beta = std::get_if<double>(&m.attributes["g"]);
         return beta != nullptr && *beta == 1;
       }},
      {"another scale than 1", has_other_scale},
      {"a positive scale", [](ProgramMatch& m) { return is_of_positive_scale(m); }},
      {"no empty window", [](ProgramMatch& m) { return has_no_empty_window(m); }},
      {"the same scale", [](ProgramMatch& m) { return is_of_same_scale(m); }},
      {"quantised from zero", [](ProgramMatch& m) { return is_quantised_from_zero(m); }},
      {"phases of strides", has_phases},
      {"short phases of strides", has_short_phases},
      {"no multiple of four: channels", [](ProgramMatch& m) { return is_no_multiple(m, 4, 1, 1); }},
      {"no multiple of four: columns", [](ProgramMatch& m) { return is_no_multiple(m, 4, -1, -2); }},
      {"no multiple of two: channels", [](ProgramMatch& m) { return is_no_multiple(m, 2, 1, 1); }},
      {"no multiple of two: columns", [](ProgramMatch& m) { return is_no_multiple(m, 2, -1, -2); }},
      // Momentum says how those would change.
      {"running statistics", [](ProgramMatch& m) { return integer(m.rests["B"], "training_mode", 0) == 0; }},
      {"factors of channels", are_factors_of_channels},
      {"only dequantised", is_only_dequantised},
      {"product of halves", is_product_of_halves},
      {"convolution of bf16", [](ProgramMatch& m) { return is_product_of_bf16(m, 1, true); }},
      {"product of bf16 over columns", [](ProgramMatch& m) { return is_product_of_bf16(m, -2, false); }},
      {"product of bf16 over rows", [](ProgramMatch& m) { return is_product_of_bf16(m, -1, false); }},
      {"product of bytes that floats hold", [](ProgramMatch& m) { return is_exact_in_floats(m); }},
      {"product of bytes", [](ProgramMatch& m) { return is_product_of_bytes(m); }},
      {"products of bytes in windows around zero",
       [](ProgramMatch& m) { return is_product_of_bytes(m) && !needs_border_of_zeros(m); }},
      {"products of bytes in windows around another number",
       [](ProgramMatch& m) { return is_product_of_bytes(m) && needs_border_of_zeros(m); }},
  };
  return all;
}

// A convolution and a batch norm over its channels, for pictures of 1 and 2 dimensions.
std::vector<std::string> batch_norm_examples() {
  const std::string statistics =
      "%known_s : [n]f32, %known_o : [n]f32, %known_m : [n]f32, %known_positive_positive_v : [n]f32";
  return {
      "BatchNormalization(Conv(%x : [b][c][h][w]f32, %known_w : [n][c][k][l]f32, %known_b : [n]f32; "
      "strides = [i, j]), " +
          statistics + "; epsilon = 0.001)",
      "BatchNormalization(Conv(%x : [b][c][h]f32, %known_w : [n][c][k]f32), " + statistics +
          "; momentum = 0.9, training_mode = 0)"};
}

// Integer products of 8-bit operands whose signs are not those that dot instructions take: inputs without one, weights
// with one. Moved by 128 with their zero points, they are the same differences.
std::vector<ProgramRuleRow> sign_rows() {
  struct Product {
    const char* name;
    std::string operation, operands;  // operands: {x}, {z}, {w} and {y} are what moves, and the zero points
    std::string given, example;       // {type of x}, {type of w}
  };
  const std::string integer = "({x}, {w}, {z}, {y}";
  const std::string linear = "({x}, p, {z}, {w}, q, {y}, s, t";
  const std::string numbers = ", p: P, q: Q, s: S, t: T";
  const std::string results = "%known_positive_s : f32, %known_t : u8";
  const auto one_number = [](const std::string& name, const std::string& type) {
    return "%known_positive_" + name + " : f32, %known_" + (name == "p" ? "z" : "y") + " : " + type;
  };
  const std::string picture = "%x : [b][c][h][v]{xs}", filters = "%known_w : [n][c][i][j]{ws}";
  const std::string rows = "%x : [m][k]{xs}", columns = "%known_w : [k][n]{ws}";
  const std::string zeros = ", %known_z : {xs}, %known_y : {ws}";
  const std::string linear_filters =
      ", " + one_number("p", "{xs}") + ", " + filters + ", " + one_number("q", "{ws}") + ", " + results;
  const Product products[] = {
      {"integer-convolution", "ConvInteger", integer + "; *A)", "", "(" + picture + ", " + filters + zeros + ")"},
      {"integer-matrix-product", "MatMulInteger", integer + ")", "", "(" + rows + ", " + columns + zeros + ")"},
      {"linear-convolution", "QLinearConv", linear + ", b; *A)", numbers + ", b: B = _",
       "(" + picture + linear_filters + ", %known_b : [n]i32)"},
      {"linear-matrix-product", "QLinearMatMul", linear + ")", numbers,
       "(" + rows + ", " + one_number("p", "{xs}") + ", " + columns + ", " + one_number("q", "{ws}") + ", " + results +
           ")"},
  };
  const auto filled = [](std::string text, const std::map<std::string, std::string>& names) {
    for (const auto& [name, value] : names)
      for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
    return text;
  };
  const std::map<std::string, std::string> as_they_are = {{"{x}", "x"}, {"{z}", "z"}, {"{w}", "w"}, {"{y}", "y"}};
  std::vector<ProgramRuleRow> out;
  for (const Product& product : products) {
    for (const bool inputs : {true, false}) {
      std::map<std::string, std::string> moved = as_they_are;
      moved[inputs ? "{x}" : "{w}"] = "moved";
      moved[inputs ? "{z}" : "{y}"] = "zero";
      const std::string by = inputs ? "Add" : "Sub", to = inputs ? "2" : "3", none = inputs ? "0i8" : "0u8";
      const auto shifted = [&](const std::string& value) {
        return "Cast(" + by + "(Cast(" + value + "; to = 6), 128i32); to = " + to + ")";
      };
      ProgramRuleRow row;
      row.name = std::string(inputs ? "unsigned-inputs-of-" : "signed-weights-of-") + product.name;
      row.given = "x: X, z: Z = " + (inputs ? none : "_") + ", w: W, y: Y = " + (inputs ? "_" : none) + product.given;
      row.left = product.operation + filled(product.operands, as_they_are);
      row.right = product.operation + filled(product.operands, moved) +
                  " where moved = " + shifted(inputs ? "x" : "w") + "; zero = " + shifted(inputs ? "z" : "y");
      row.where = inputs ? "signed inputs" : "unsigned weights";
      row.rule_class = RuleClass::exact;
      row.meaning = inputs ? "inputs of 8 bits with a sign lose it, 128 larger, as dot instructions take inputs"
                           : "weights of 8 bits without a sign get one, 128 smaller, as dot instructions take weights";
      row.examples = {product.operation +
                      filled(product.example, {{"{xs}", inputs ? "i8" : "u8"}, {"{ws}", inputs ? "i8" : "u8"}})};
      out.push_back(std::move(row));
    }
  }
  return out;
}

// The operands of a product of dequantised numbers.
constexpr char quantised_given[] =
    "x: X, p: P, z: Z, w: [n]W, q: Q, y: Y = _, c = 1, d = 1, k = 0, t = 0, l = 0, f = 1.0, g = 1.0";

// Those of a product of bytes that gives bytes.
constexpr char requantised_given[] = "x: X, p: P, z: Z, w: [n]W, q: Q, y: Y, s: S, t: T";

// clang-format off
std::vector<ProgramRuleRow> rows() {
  const char* in_sixteen_bits = "inputs are stored in the 16 bits of which an instruction multiplies pairs";
  const char* sums_in_f32 = "sums of halves are of f32 and rounded once, so operands may be widened before";
  const char* operands_in_bf16 =
      "products of operands in bf16 and their sums are of f32 either way; what is stored in bf16 is what instructions for "
      "products of matrices take";
  const std::string activation = "DequantizeLinear(%x : [b][c][h][v]u8, %known_positive_p : f32, %known_z : u8)";
  const std::string filters = "DequantizeLinear(%known_w : [n][c][i][j]i8, %known_positive_q : [n]f32; axis = 0)";
  const std::string depthwise =
      "(DequantizeLinear(%x : [b][3][h][v]u8, %known_positive_p : f32, %known_z : u8), "
      "DequantizeLinear(%known_w : [3][1][i][j]i8, %known_positive_q : f32, %known_y : i8)";
  const std::string one_scale = "DequantizeLinear(%known_w : [n][c][i][j]i8, %known_positive_q : f32, %zero_y : i8)";
  const std::string rows_of_bytes =
      "DequantizeLinear(%x : [m][k]u8, %known_positive_p : f32, %known_z : u8; axis = 0)";
  const std::string columns = "DequantizeLinear(%known_w : [k][n]i8, %known_positive_q : [n]f32; axis = 1)";
  const std::string transposed = "DequantizeLinear(%known_w : [n][k]i8, %known_positive_q : [n]f32; axis = 0)";
  const char* sums_quantised =
      "bytes whose product is quantised are multiplied as integers, so that what is known of those counts";
  const std::string requantised =
      "QuantizeLinear(Mul(Cast(sums; to = 1), factor), one, t) where one = Cast(Equal(s, s); to = 1); "
      "factor = Reshape(Div(Mul(p, q), s); shape = factors)";
  const std::string linear_bytes = "%x : [b][c][h][v]u8, %known_positive_p : f32, %known_z : u8, ";
  const std::string linear_filters = "%known_w : [n][c][i][j]i8, %known_positive_q : [n]f32, %zero_y : [n]i8";
  const std::string linear_result = ", %known_positive_s : f32, %known_t : u8";
  const std::string product = "(DequantizeLinear(x, p, z; axis = c), DequantizeLinear(w, q, y; axis = d, block_size = k)";
  const std::string factor =
      "factor = Reshape(Cast(Mul(Cast(p; to = 11), Cast(q; to = 11)); to = 1); shape = factors)";
  const std::string gemm_factor =
      "factor = Reshape(Cast(Mul(Mul(Cast(p; to = 11), Cast(q; to = 11)), f); to = 1); shape = factors)";
  const std::string with_zero_point = "DequantizeLinear(%known_w : [n][c][i][j]i8, %known_positive_q : f32, %known_y : i8)";
  const char* weights_once =
      "a zero point of the inputs that is computed is subtracted from exact sums, times the sums of the weights, which are known";
  const char* none_of_weights = "weights whose zero point is 0 are multiplied as they are";
  const std::string inputs_once =
      "the zero point of the weights takes a multiple of the sum of the inputs, which is one for all outputs, from exact sums";
  const std::string exact_sums = "sums of integer products are exact and scaled once, instead of sums of dequantised numbers";
  const std::string by_phases =
      "the outputs of each phase of the strides are a convolution by some of the taps, without products with the zeros between inputs";
  const std::string by_short_phases =
      "each phase of strides of two is a convolution of its own by its taps, of which the second phases have one less";
  const auto four_phases = [](const std::string& bias) {
    std::string out = "Concat(";
    for (const char* phase : {"0", "1", "2", "3"}) {
      const std::string name = phase;
      out += (name == "0" ? "" : ", ") + ("Conv(x, Slice(filters; starts = begin" + name) + ", ends = end" + name +
             ", axes = outputs_and_taps)" + bias + "; pads = borders" + name + ")";
    }
    return out + "; axis = 1)";
  };
  const std::string in_phases =
      "Slice(Reshape(Transpose(Reshape(convolved; shape = phases_outputs_rows); perm = rows_by_phase); shape = together); "
      "starts = begin, ends = end, axes = spatial) where "
      "parts = Reshape(Pad(w; pads = more_taps); shape = groups_inputs_outputs_taps_phases); "
      "backwards = Slice(parts; starts = last, ends = before_first, axes = taps, steps = last); "
      "filters = Reshape(Transpose(backwards; perm = outputs_by_phase); shape = filters); ";
  return {
    {"batch-norm-folding",
     "x: X, w: [n]W, b: [n]F = fill 0 [n], s: [n]F, o: [n]F, m: [n]G, v: [n]G, e = 1e-5f64",
     "BatchNormalization(Conv(x, w, b; *A), s, o, m, v; epsilon = e, *B)",
     "Conv(x, weights, bias; *A) where "
     "factors = zip(s, v) |> map (\\(s, v). cast f64 s / sqrt (cast f64 v + e)); "
     "weights = zip(w, factors) |> map (\\(filter, a). CastLike(Mul(Cast(filter; to = 11), a), filter)); "
     "bias = zip(zip(b, o), zip(m, factors)) |> map (\\((b, o), (m, a)). CastLike(cast f64 b * a + (cast f64 o - cast f64 m * a), o))",
     "known w, known b, known s, known o, known m, known v, running statistics, alone", RuleClass::rounding,
     "the normalisation scales each channel by a known number, which the weights and the bias take in", batch_norm_examples()},

    {"batch-norm-to-factors",
     "x: X, s: [n]F, o: [n]F, m: [n]G, v: [n]G, e = 1e-5f64",
     "BatchNormalization(x, s, o, m, v; epsilon = e, *B)",
     "Add(Mul(x, factors), terms) where "
     "scale = zip(s, v) |> map (\\(s, v). cast f64 s / sqrt (cast f64 v + e)); "
     "shift = zip(o, zip(m, scale)) |> map (\\(o, (m, a)). cast f64 o - cast f64 m * a); "
     "factors = Reshape(CastLike(scale, s); shape = by_channel); terms = Reshape(CastLike(shift, s); shape = by_channel)",
     "known s, known o, known m, known v, running statistics, factors of channels", RuleClass::rounding,
     "a normalisation by known statistics multiplies each channel by a number and adds another one",
     {"BatchNormalization(%x : [b][n][h][w]f32, %known_s : [n]f32, %known_o : [n]f32, %known_m : [n]f32, "
      "%known_positive_positive_v : [n]f32; epsilon = 0.001, momentum = 0.9)"}},

    {"signed-to-unsigned",
     "x: X, s: S, z: Z, p: P, y: Y, t = 0",
     "DequantizeLinear(QuantizeLinear(x, s, z; output_dtype = t, *A), p, y; *B)",
     "DequantizeLinear(unsigned, p, zero; *B) where "
     "moved = Cast(Add(Cast(z; to = 6), 128i32); to = 2); zero = Cast(Add(Cast(y; to = 6), 128i32); to = 2); "
     "unsigned = QuantizeLinear(x, s, moved; *A)",
     "only dequantised", RuleClass::rounding,
     "8-bit values that only dequantising layers see are stored as unsigned numbers, 128 larger (a NaN, for which "
     "quantising has no number, may become another one)",
     {"DequantizeLinear(QuantizeLinear(%x : [a][b]f32, %known_positive_s : f32, %known_z : i8), %known_positive_p : f32, %known_y : i8)"}},

    {"weights-to-signed", "w: W, q: Q, y: Y",
     "DequantizeLinear(w, q, y; *A)",
     "DequantizeLinear(moved, q, zero; *A) where "
     "moved = Cast(Sub(Cast(w; to = 6), 128i32); to = 3); zero = Cast(Sub(Cast(y; to = 6), 128i32); to = 3)",
     "unsigned weights", RuleClass::exact,
     "constants of 8 bits without a sign are stored with one, 128 smaller, as dot instructions take weights",
     {"DequantizeLinear(%known_w : [n][c]u8, %known_positive_q : f32, %known_y : u8)"}},
    {"dequantise-convolution", quantised_given,
     "Conv" + product + "; *A)",
     "Mul(Cast(sums; to = 1), factor) where sums = ConvInteger(x, w, z, y; *A); " + factor,
     "integer product over outputs first", RuleClass::rounding, exact_sums,
     {"Conv(" + activation + ", " + filters + ")", "Conv(" + activation + ", " + one_scale + "; strides = [s, t])",
      "Conv(" + activation + ", " + with_zero_point + "; strides = [s, t])", "Conv" + depthwise + "; group = 3)"}},
    {"dequantise-convolution-bias", std::string(quantised_given) + ", b: B",
     "Conv" + product + ", b; *A)",
     "Add(scaled, Reshape(b; shape = by_channel)) where sums = ConvInteger(x, w, z, y; *A); " + factor +
     "; scaled = Mul(Cast(sums; to = 1), factor)",
     "integer product over outputs first", RuleClass::rounding, exact_sums,
     {"Conv(" + activation + ", " + filters + ", %known_b : [n]f32)", "Conv(" + activation + ", " + one_scale + ", %b : [n]f32)",
      "Conv(" + activation + ", " + with_zero_point + ", %b : [n]f32)", "Conv" + depthwise + ", %b : [3]f32; group = 3)"}},
    {"dequantise-matrix-product", quantised_given,
     "MatMul" + product + ")",
     "Mul(Cast(sums; to = 1), factor) where sums = MatMulInteger(x, w, z, y); " + factor,
     "integer product over columns", RuleClass::rounding, exact_sums,
     {"MatMul(" + rows_of_bytes + ", " + columns + ")"}},
    {"dequantise-gemm", quantised_given,
     "Gemm" + product + "; alpha = f, beta = g, transA = l, transB = t)",
     "Mul(Cast(sums; to = 1), factor) where sums = MatMulInteger(x, w, z, y); " + gemm_factor,
     "plain factor, left factor as it is, integer product over columns", RuleClass::rounding, exact_sums,
     {"Gemm(" + rows_of_bytes + ", " + columns + "; alpha = 0.5)"}},
    {"dequantise-gemm-bias", std::string(quantised_given) + ", b: B",
     "Gemm" + product + ", b; alpha = f, beta = g, transA = l, transB = t)",
     "Add(scaled, b) where sums = MatMulInteger(x, w, z, y); " + gemm_factor + "; scaled = Mul(Cast(sums; to = 1), factor)",
     "plain factor, left factor as it is, whole bias, integer product over columns", RuleClass::rounding, exact_sums,
     {"Gemm(" + rows_of_bytes + ", " + columns + ", %b : [n]f32)"}},
    {"dequantise-gemm-transposed", quantised_given,
     "Gemm" + product + "; alpha = f, beta = g, transA = l, transB = t)",
     "Mul(Cast(sums; to = 1), factor) where columns = Transpose(w); sums = MatMulInteger(x, columns, z, y); " + gemm_factor,
     "transposed factor, left factor as it is, integer product over rows", RuleClass::rounding, exact_sums,
     {"Gemm(" + rows_of_bytes + ", " + transposed + "; transB = 1)"}},
    {"dequantise-gemm-transposed-bias", std::string(quantised_given) + ", b: B",
     "Gemm" + product + ", b; alpha = f, beta = g, transA = l, transB = t)",
     "Add(scaled, b) where columns = Transpose(w); sums = MatMulInteger(x, columns, z, y); " + gemm_factor +
     "; scaled = Mul(Cast(sums; to = 1), factor)",
     "transposed factor, left factor as it is, whole bias, integer product over rows", RuleClass::rounding, exact_sums,
     {"Gemm(" + rows_of_bytes + ", " + transposed + ", %b : [n]f32; transB = 1, alpha = 2.0)"}},

    {"integer-convolution-around-zero", "x: X, w: W, z: Z, y: Y",
     "ConvInteger(x, w, z, y; *A)",
     "ConvInteger(x, w, z; *A)",
     "zero y", RuleClass::exact, none_of_weights,
     {"ConvInteger(%x : [b][c][h][v]u8, %known_w : [n][c][i][j]i8, %known_z : u8, %zero_y : i8; strides = [s, t])"}},
    {"integer-matrix-product-around-zero", "x: X, w: W, z: Z, y: Y",
     "MatMulInteger(x, w, z, y)",
     "MatMulInteger(x, w, z)",
     "zero y", RuleClass::exact, none_of_weights,
     {"MatMulInteger(%x : [m][k]u8, %known_w : [k][n]i8, %z : u8, %zero_y : [n]i8)"}},
    {"zero-points-of-filters", "x: X, w: [n]W, z: Z, y: Y",
     "ConvInteger(x, w, z, y; *A)",
     "Sub(products, less) where first = slice 0 1 w; ones = Cast(Equal(first, first); to = 3); "
     "inputs = ConvInteger(x, ones, z; *A); less = Mul(inputs, Reshape(Cast(y; to = 6); shape = zeros)); products = ConvInteger(x, w, z; *A)",
     "convolution with zero points of weights", RuleClass::exact, inputs_once,
     {"ConvInteger(%x : [b][c][h][v]u8, %known_w : [n][c][i][j]i8, %known_z : u8, %known_y : i8; pads = [1, 0, 0, 1])",
      "ConvInteger(%x : [b][c][h]u8, %known_w : [n][c][i]i8, %z : u8, %known_y : [n]i8)"}},
    {"zero-points-of-columns", "x: X, w: W, z: Z, y: Y",
     "MatMulInteger(x, w, z, y)",
     "Sub(products, less) where centred = Sub(Cast(x; to = 6), Cast(z; to = 6)); "
     "inputs = ReduceSum(centred; axes = [-1], keepdims = 1); less = Mul(inputs, Cast(y; to = 6)); "
     "products = MatMulInteger(x, w, z)",
     "matrix product with zero points of weights", RuleClass::exact, inputs_once,
     {"MatMulInteger(%x : [m][k]u8, %known_w : [k][n]i8, %z : u8, %known_y : i8)",
      "MatMulInteger(%x : [b][m][k]u8, %known_w : [k][n]i8, %z : u8, %known_y : [n]i8)"}},

    {"zero-point-of-rows", "x: X, w: W, z: Z",
     "MatMulInteger(x, w, z)",
     "Sub(products, less) where none = Cast(0i32; to = 2); products = MatMulInteger(x, w, none); "
     "less = Mul(ReduceSum(Cast(w; to = 6); axes = [0], keepdims = 0), Cast(z; to = 6))",
     "rows around a computed number", RuleClass::exact, weights_once,
     {"MatMulInteger(%x : [b][m][k]u8, %known_w : [k][n]i8, %z : u8)"}},
    {"zero-point-of-pictures", "x: X, w: W, z: Z",
     "ConvInteger(x, w, z; *A)",
     "Sub(products, less) where zero = Reshape(z; shape = integers []); "
     "bordered = Pad(x, _, zero; pads = border, axes = spatial); none = Cast(0i32; to = 2); "
     "products = ConvInteger(bordered, w, none; *A); offsets = ReduceSum(Cast(w; to = 6); axes = summed, keepdims = 0); "
     "less = Mul(Reshape(offsets; shape = by_channel), Cast(z; to = 6))",
     "pictures around a computed number", RuleClass::exact, weights_once,
     {"ConvInteger(%x : [b][c][h][v]u8, %known_w : [n][c][i][j]i8, %z : u8; pads = [1, 0, 0, 1], strides = [s, t])",
      "ConvInteger(%x : [b][c][h]u8, %known_w : [n][c][i]i8, %z : u8; dilations = [d])"}},

    {"requantised-convolution", requantised_given,
     "QLinearConv(x, p, z, w, q, y, s, t; *A)",
     requantised + "; sums = ConvInteger(x, w, z, y; *A)",
     "requantised product over outputs first", RuleClass::exact, sums_quantised,
     {"QLinearConv(" + linear_bytes + linear_filters + linear_result + "; strides = [u, v])"}},
    {"requantised-convolution-bias", std::string(requantised_given) + ", b: B",
     "QLinearConv(x, p, z, w, q, y, s, t, b; *A)",
     requantised + "; products = ConvInteger(x, w, z, y; *A); sums = Add(products, Reshape(b; shape = by_channel))",
     "requantised product over outputs first", RuleClass::exact, sums_quantised,
     {"QLinearConv(" + linear_bytes + linear_filters + linear_result + ", %known_b : [n]i32; pads = [1, 0, 0, 1])"}},
    {"requantised-matrix-product", std::string(requantised_given) + ", d = 1",
     "QLinearMatMul(x, p, z, w, q, y, s, t)",
     requantised + "; sums = MatMulInteger(x, w, z, y)",
     "requantised product over columns", RuleClass::exact, sums_quantised,
     {"QLinearMatMul(%x : [m][k]u8, %known_positive_p : f32, %known_z : u8, %known_w : [k][n]i8, %known_positive_q : [n]f32, "
      "%zero_y : [n]i8" + linear_result + ")"}},

    {"pool-of-bytes", "x: X, s: S, z: Z = _",
     "MaxPool(DequantizeLinear(x, s, z; *B); *A)",
     "DequantizeLinear(greatest, s, z; *B) where greatest = MaxPool(x; *A)",
     "a positive scale, no empty window", RuleClass::exact, "the greatest byte stands for the greatest number, as the scale is above zero",
     {"MaxPool(DequantizeLinear(%x : [b][c][h][v]u8, %known_positive_s : f32, %known_z : u8); kernel_shape = [3, 2], strides = [2, 1], pads = [1, 1, 1, 0])",
      "MaxPool(DequantizeLinear(%x : [b][c][h]i8, %known_positive_s : f32, %known_z : i8); kernel_shape = [2])",
      "MaxPool(DequantizeLinear(%x : [b][c][h]i8, %known_positive_s : f32); kernel_shape = [2])"}},
    {"quantised-again", "x: X, s: S, z: Z, p: P, y: Y",
     "QuantizeLinear(DequantizeLinear(x, s, z; *B), p, y; *A)",
     "Identity(x)",
     "the same scale", RuleClass::exact, "bytes that are quantised again with the same scale and zero point stay what they are",
     {"QuantizeLinear(DequantizeLinear(%x : [a][b]u8, %known_positive_s : f32, %known_z : u8), %known_positive_s : f32, %known_z : u8)",
      "QuantizeLinear(DequantizeLinear(%x : [a][b]i8, %known_positive_s : f32, %known_z : i8), %known_positive_s : f32, %known_z : i8)"}},
    {"relu-in-quantising", "x: X, s: S, z: Z",
     "QuantizeLinear(Relu(x), s, z; *A)",
     "QuantizeLinear(x, s, z; *A)",
     "quantised from zero", RuleClass::exact, "what is below zero becomes the least byte, which stands for zero",
     {"QuantizeLinear(Relu(%x : [a][b]f32), %known_positive_s : f32, %zero_z : u8)",
      "QuantizeLinear(Relu(%x : [a][b]f32), %known_positive_s : [b]f32, %zero_z : [b]u8; axis = 1)"}},
    {"quantise-by-reciprocal", "x: X, s: S, z: Z = _",
     "QuantizeLinear(x, s, z; *A)",
     "QuantizeLinear(steps, one, z; *A) where reciprocal = Reshape(Cast(Reciprocal(Cast(s; to = 11)); to = 1); shape = integers []); "
     "one = Cast(Equal(s, s); to = 1); steps = Mul(x, reciprocal)",
     "another scale than 1", RuleClass::rounding, "multiplies by 1 / scale instead of dividing",
     {"QuantizeLinear(%x : [a][b]f32, %known_positive_s : f32)",
      "QuantizeLinear(%x : [a][b]f32, %known_positive_s : f32, %known_z : i8)"}},

    {"short-phases-of-transposed-convolution", "x: X, w: W",
     "ConvTranspose(x, w; *A)",
     in_phases + "convolved = " + four_phases(", _"),
     "short phases of strides", RuleClass::rounding, by_short_phases,
     {"ConvTranspose(%x : [b][c][h][v]f32, %known_w : [c][16][3][5]f32; strides = [2, 2], pads = [1, 2, 1, 2])"}},
    {"short-phases-of-transposed-convolution-bias", "x: X, w: W, b: B",
     "ConvTranspose(x, w, b; *A)",
     in_phases + "convolved = " + four_phases(", b"),
     "short phases of strides", RuleClass::rounding, by_short_phases,
     {"ConvTranspose(%x : [b][c][h][v]f32, %known_w : [c][16][3][3]f32, %b : [16]f32; strides = [2, 2], output_padding = [1, 1], pads = [0, 1, 0, 1])"}},
    {"phases-of-transposed-convolution", "x: X, w: W",
     "ConvTranspose(x, w; *A)",
     in_phases + "convolved = Conv(x, filters, _; group = groups, pads = borders)",
     "phases of strides", RuleClass::rounding, by_phases,
     {"ConvTranspose(%x : [b][c][h][v]f32, %known_w : [c][n][i][j]f32; strides = [s, t])",
      "ConvTranspose(%x : [b][c][h]f32, %known_w : [c][n][i]f32; strides = [3], pads = [1, 0])"}},
    {"phases-of-transposed-convolution-bias", "x: X, w: W, b: B",
     "ConvTranspose(x, w, b; *A)",
     in_phases + "each = Expand(Reshape(b; shape = groups_one_outputs); shape = groups_phases_outputs); "
     "bias = Reshape(each; shape = channels); convolved = Conv(x, filters, bias; group = groups, pads = borders)",
     "phases of strides", RuleClass::rounding, by_phases,
     {"ConvTranspose(%x : [b][2][h][v]f32, %known_w : [2][n][i][j]f32, %b : [2*n]f32; strides = [2, 1], group = 2)",
      "ConvTranspose(%x : [b][c][h][v]f32, %known_w : [c][n][2][3]f32, %b : [n]f32; strides = [2, 2], output_padding = [1, 1], pads = [0, 1, 0, 1])",
      "ConvTranspose(%x : [b][c][h]f32, %known_w : [c][n][3]f32, %b : [n]f32; strides = [2], dilations = [1])"}},

    {"widened-convolution", "x: X, w: W",
     "Conv(x, w, _; *A)",
     "Cast(Conv(Cast(x; to = 1), Cast(w; to = 1), _; *A); to = 10)",
     "product of halves", RuleClass::exact, sums_in_f32,
     {"Conv(%x : [b][c][h][v]f16, %known_w : [n][c][i][j]f16; strides = [s, t])"}},
    {"widened-convolution-bias", "x: X, w: W, b: B",
     "Conv(x, w, b; *A)",
     "Add(Cast(sums; to = 10), Reshape(b; shape = by_channel)) where "
     "sums = Conv(Cast(x; to = 1), Cast(w; to = 1), _; *A)",
     "product of halves", RuleClass::exact, sums_in_f32,
     {"Conv(%x : [b][c][h][v]f16, %known_w : [n][c][i][j]f16, %b : [n]f16)",
      "Conv(%x : [b][c][h]f16, %known_w : [n][c][i]f16, %b : [n]f16; strides = [s])"}},
    {"widened-matrix-product", "x: X, w: W",
     "MatMul(x, w)",
     "Cast(MatMul(Cast(x; to = 1), Cast(w; to = 1)); to = 10)",
     "product of halves", RuleClass::exact, sums_in_f32,
     {"MatMul(%x : [m][k]f16, %known_w : [k][n]f16)"}},
    {"bf16-convolution", "x: X, w: W, b: B = _",
     "Conv(Cast(x; to = 1), Cast(w; to = 1), b; *A)",
     "Conv(x, w, b; output_dtype = 1, *A)",
     "convolution of bf16", RuleClass::exact, operands_in_bf16,
     {"Conv(Cast(%x : [b][8][h][9]bf16; to = 1), Cast(%known_w : [n][8][i][2]bf16; to = 1); strides = [s, 1])",
      "Conv(Cast(%x : [b][4][7]bf16; to = 1), Cast(%known_w : [n][4][3]bf16; to = 1), %b : [n]f32; pads = [1, 0])"}},
    {"bf16-matrix-product", "x: X, w: W",
     "MatMul(Cast(x; to = 1), Cast(w; to = 1))",
     "MatMul(x, w; output_dtype = 1)",
     "product of bf16 over columns", RuleClass::exact, operands_in_bf16,
     {"MatMul(Cast(%x : [b][4][8]bf16; to = 1), Cast(%known_w : [8][n]bf16; to = 1))"}},
    {"bf16-gemm", "x: X, w: W, b: B = _, f = 1.0, g = 1.0, l = 0, t = 0",
     "Gemm(Cast(x; to = 1), Cast(w; to = 1), b; alpha = f, beta = g, transA = l, transB = t)",
     "Gemm(x, w, b; alpha = f, beta = g, output_dtype = 1)",
     "plain factor, left factor as it is, product of bf16 over columns", RuleClass::exact, operands_in_bf16,
     {"Gemm(Cast(%x : [1][8]bf16; to = 1), Cast(%known_w : [8][n]bf16; to = 1), %b : [n]f32; alpha = 0.5, transA = 0)"}},
    {"bf16-gemm-transposed", "x: X, w: W, b: B = _, f = 1.0, g = 1.0, l = 0, t = 0",
     "Gemm(Cast(x; to = 1), Cast(w; to = 1), b; alpha = f, beta = g, transA = l, transB = t)",
     "Gemm(x, Transpose(w), b; alpha = f, beta = g, output_dtype = 1)",
     "transposed factor, left factor as it is, product of bf16 over rows", RuleClass::exact, operands_in_bf16,
     {"Gemm(Cast(%x : [7][8]bf16; to = 1), Cast(%known_w : [n][8]bf16; to = 1), %b : [n]f32; transB = 1)"}},
    {"integer-convolution-in-floats", "x: X, w: W, z: Z",
     "Cast(ConvInteger(x, w, z; *A); to = 1)",
     "Conv(centred, Cast(w; to = 1), _; *A) where centred = Sub(Cast(x; to = 1), Cast(z; to = 1))",
     "product of bytes that floats hold", RuleClass::exact,
     "where each filter has one channel, no instruction adds up several products; f32 holds the sums of so few exactly, and "
     "multiplies and adds at once",
     {"Cast(ConvInteger(%x : [b][3][h][v]u8, %known_w : [3][1][i][j]i8, %known_z : u8; group = 3, pads = [1, 0, 0, 1]); to = 1)",
      "Cast(ConvInteger(%x : [b][1][h][v]u8, %known_w : [n][1][i][j]i8, %known_z : u8; strides = [s, t]); to = 1)"}},
    {"widened-integer-convolution", "x: X, w: W, z: Z",
     "ConvInteger(x, w, z; *A)",
     "ConvInteger(wide, w, zero; *A) where wide = Cast(x; to = 5); zero = Cast(z; to = 5)",
     "products of bytes in windows around zero", RuleClass::exact, in_sixteen_bits,
     {"ConvInteger(%x : [b][c][h][v]u8, %known_w : [n][c][i][j]i8, %zero_z : u8; strides = [s, t])",
      "ConvInteger(%x : [b][c][h][v]u8, %known_w : [n][c][1][1]i8, %known_z : u8)"}},
    {"centred-integer-convolution", "x: X, w: W, z: Z",
     "ConvInteger(x, w, z; *A)",
     "ConvInteger(wide, w, zero; *A) where moved = Cast(z; to = 5); wide = Sub(Cast(x; to = 5), moved); zero = Sub(moved, moved)",
     "products of bytes in windows around another number", RuleClass::exact,
     "inputs are stored in the 16 bits of which an instruction multiplies pairs, less their zero point, so that borders are zeros",
     {"ConvInteger(%x : [b][c][h][v]u8, %known_w : [n][c][2][j]i8, %known_z : u8; strides = [s, t], pads = [1, 0, 0, 1])"}},
    {"widened-integer-matrix-product", "x: X, w: W, z: Z",
     "MatMulInteger(x, w, z)",
     "MatMulInteger(wide, w, zero) where wide = Cast(x; to = 5); zero = Cast(z; to = 5)",
     "product of bytes", RuleClass::exact, in_sixteen_bits,
     {"MatMulInteger(%x : [m][k]u8, %known_w : [k][n]i8, %known_z : u8)"}},
    {"channels-to-four", "x: X, w: W, z: Z",
     "ConvInteger(x, w, z; *A)",
     "ConvInteger(padded, weights, z; *A) where zero = Reshape(z; shape = integers []); "
     "padded = Pad(x, _, zero; pads = amounts, axes = along); weights = Pad(w; pads = amounts, axes = weights_along)",
     "no multiple of four: channels", RuleClass::exact,
     "input channels of zeros complete groups of four, which dot instructions take",
     {"ConvInteger(%x : [b][c][h][v]u8, %known_w : [n][c][i][j]i8, %known_z : u8)"}},
    {"columns-to-four", "x: X, w: W, z: Z",
     "MatMulInteger(x, w, z)",
     "MatMulInteger(padded, weights, z) where zero = Reshape(z; shape = integers []); "
     "padded = Pad(x, _, zero; pads = amounts, axes = along); weights = Pad(w; pads = amounts, axes = weights_along)",
     "no multiple of four: columns", RuleClass::exact,
     "columns of zeros complete groups of four, which dot instructions take",
     {"MatMulInteger(%x : [m][k]u8, %known_w : [k][n]i8, %known_z : u8)"}},
    {"channels-to-two", "x: X, w: W, z: Z",
     "ConvInteger(x, w, z; *A)",
     "ConvInteger(padded, weights, z; *A) where zero = Reshape(z; shape = integers []); "
     "padded = Pad(x, _, zero; pads = amounts, axes = along); weights = Pad(w; pads = amounts, axes = weights_along)",
     "product of bytes, no multiple of two: channels", RuleClass::exact,
     "input channels of zeros complete pairs, which an instruction for 16 bits takes",
     {"ConvInteger(%x : [b][c][h][v]u8, %known_w : [n][c][i][j]i8, %zero_z : u8)"}},
    {"columns-to-two", "x: X, w: W, z: Z",
     "MatMulInteger(x, w, z)",
     "MatMulInteger(padded, weights, z) where zero = Reshape(z; shape = integers []); "
     "padded = Pad(x, _, zero; pads = amounts, axes = along); weights = Pad(w; pads = amounts, axes = weights_along)",
     "product of bytes, no multiple of two: columns", RuleClass::exact,
     "columns of zeros complete pairs, which an instruction for 16 bits takes",
     {"MatMulInteger(%x : [m][k]u8, %known_w : [k][n]i8, %zero_z : u8)"}},
  };
}
// clang-format on

}  // namespace

std::span<const ProgramRuleRow> operator_rule_rows() {
  static const std::vector<ProgramRuleRow> all = [] {
    std::vector<ProgramRuleRow> out = rows();
    for (ProgramRuleRow& row : sign_rows()) out.push_back(std::move(row));
    return out;
  }();
  return all;
}

const std::vector<const ProgramRule*>& operator_rules() {
  static const std::vector<const ProgramRule*> rules = [] {
    auto loaded = load_program_rules(operator_rule_rows(), conditions());
    std::string messages;
    if (!loaded.ok()) {
      for (const Diagnostic& d : loaded.errors()) messages += "\n  " + d.text();
    }
    HOIST_CHECK(loaded.ok(), "the table of rules between operators is wrong:" + messages);
    return *loaded;
  }();
  return rules;
}

std::vector<const ProgramRule*> operator_rules(std::span<const std::string_view> names) {
  std::vector<const ProgramRule*> chosen;
  for (std::string_view name : names) {
    auto found = std::find_if(operator_rules().begin(), operator_rules().end(),
                              [&](const ProgramRule* rule) { return row(*rule).name == name; });
    HOIST_CHECK(found != operator_rules().end(), "there is no rule " + std::string(name));
    chosen.push_back(*found);
  }
  return chosen;
}

}  // namespace hoist
