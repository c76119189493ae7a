// Folds in vec mode: dot products that have an instruction, of bytes, 16-bit integers and bf16.
#include "backends/halide/emitter.h"

namespace hoist::emission {
// s plus the products of four pairs of an unsigned and a signed byte, or of two pairs of 16-bit integers, whose second
// element may be a byte: the folds that have an instruction.
Value Emitter::dot(Expr e, const Environment& env) {
  const Type pairs = e->children[2]->type;
  const Type bytes = tuple_type({scalar_type(Scalar::u8), scalar_type(Scalar::i8)});
  const auto halfwords = [](Scalar right) { return tuple_type({scalar_type(Scalar::i16), scalar_type(right)}); };
  const bool of_bytes = pairs->element == bytes;
  const bool of_pairs = pairs->element == halfwords(Scalar::i16) || pairs->element == halfwords(Scalar::i8);
  const int together = of_bytes ? 4 : 2;
  auto step = [](Expr sum, Expr pair) {
    auto wide = [&](int64_t part) { return cast(Scalar::i32, get(part, pair)); };
    return call(Function::add, {sum, call(Function::multiply, {wide(0), wide(1)})});
  };
  const bool known = pairs->size == Nat(together) && (of_bytes || of_pairs) && e->type == scalar_type(Scalar::i32) &&
                     e == hoist::fold(step, e->children[1], e->children[2], Mode::vec);
  if (!known) {
    unsupported("a vec fold that is not a dot product",
                "a dot product adds four products of u8 and i8, or two of i16 and i16 or i8, to an i32, or is a sum of "
                "two products of bf16");
  }
  has_dots_ = true;
  Value numbers = read(e->children[2], env);
  std::vector<H::Expr> arguments = {read(e->children[1], env).scalar};
  for (size_t part = 0; part < 2; ++part) {
    std::vector<H::Expr> lanes;
    for (int i = 0; i < together; ++i) lanes.push_back(numbers.at(i).parts[part].scalar);
    const H::Type word = H::Int(lanes[0].type().bits() * together);
    arguments.push_back(H::Internal::Call::make(word, word_marker, lanes, H::Internal::Call::PureExtern));
  }
  return {H::Internal::Call::make(H::Int(32), of_bytes ? "hoist_dot" : "hoist_dot_pairs", arguments,
                                  H::Internal::Call::PureExtern),
          nullptr,
          {}};
}

// sum + (the products of the first elements of pairs + the products of the second elements), each of the two summed
// from zero.
std::optional<Value> Emitter::sums_of_pairs(Expr e, const Environment& env) {
  const auto is_sum = [](Expr call) { return call->pattern == Pattern::call && call->function == Function::add; };
  if (!is_sum(e) || !is_sum(e->children[1])) return std::nullopt;
  const Expr first = e->children[1]->children[0];
  if (first->pattern != Pattern::fold || first->mode != Mode::vec || e->type != scalar_type(Scalar::f32))
    return std::nullopt;
  const Expr numbers = first->children[2];
  if (numbers->pattern != Pattern::zip || numbers->children.size() != 2) return std::nullopt;
  const Expr cut[] = {numbers->children[0], numbers->children[1]};
  for (const Expr operand : cut) {
    if (operand->pattern != Pattern::slice || operand->type->element != scalar_type(Scalar::bf16)) return std::nullopt;
  }
  const Expr left = cut[0]->children[0], right = cut[1]->children[0];
  if (!numbers->type->size.is_constant()) return std::nullopt;
  const int64_t pairs = numbers->type->size.value();
  const auto step = [](Expr sum, Expr pair) {
    const auto wide = [&](int64_t part) { return cast(Scalar::f32, get(part, pair)); };
    return call(Function::fma, {wide(0), wide(1), sum});
  };
  const auto every_second = [&](int64_t from) {
    const Expr operands = zip({slice(from, pairs, left, 2), slice(from, pairs, right, 2)});
    return hoist::fold(step, literal(Scalar::f32, 0), operands, Mode::vec);
  };
  if (e->children[1] != call(Function::add, {every_second(0), every_second(1)})) return std::nullopt;

  const Value values[] = {read(left, env), read(right, env)};
  const auto stored = [&](const Value& value, int64_t i) {
    const H::Expr number_of = value.at(number(i)).scalar;
    const auto* widened = number_of.as<H::Internal::Call>();
    const bool as_stored = widened != nullptr && widened->name == "hoist_from_bf16";
    return as_stored ? widened->args[0] : scalars_.to_stored(Scalar::bf16, number_of);
  };
  H::Expr sums[] = {0.0F, 0.0F};
  for (int64_t pair = 0; pair < pairs; ++pair) {
    std::vector<H::Expr> words;
    for (const Value& value : values) {
      words.push_back(H::Internal::Call::make(H::Int(32), word_marker,
                                              {stored(value, 2 * pair), stored(value, 2 * pair + 1)},
                                              H::Internal::Call::PureExtern));
    }
    const char* const names[] = {add_first_product, add_second_product};
    for (size_t i = 0; i < 2; ++i) {
      sums[i] =
          H::Internal::Call::make(H::Float(32), names[i], {sums[i], words[0], words[1]}, H::Internal::Call::PureExtern);
    }
  }
  return Value{H::Internal::Call::make(H::Float(32), add_two_sums, {read(e->children[0], env).scalar, sums[0], sums[1]},
                                       H::Internal::Call::PureExtern),
               nullptr,
               {}};
}

}  // namespace hoist::emission
