#include "lowering/layout/storage.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lowering/terms/terms.h"

namespace hoist {
namespace {

Expr zero_of(Type type) {
  HOIST_CHECK(type->is_scalar(), "only arrays of scalars are stored");
  return literal_integer(type->scalar, 0);
}

std::vector<int64_t> inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> out(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) out[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return out;
}

// The panels' dimension becomes outermost: [k...][panels][width] -> [panels][k...][width]; interleaved rows stay
// innermost.
std::vector<int64_t> panels_first(size_t rank, bool interleaved) {
  std::vector<int64_t> permutation = {static_cast<int64_t>(rank) - 1};
  for (size_t i = 0; i + 1 < rank; ++i) permutation.push_back(static_cast<int64_t>(i));
  permutation.push_back(static_cast<int64_t>(rank));
  if (interleaved) permutation.push_back(static_cast<int64_t>(rank) + 1);
  return permutation;
}

Expr permute(const Storage& s, Expr logical) {
  return s.permutation.empty() ? logical : transpose(s.permutation, logical);
}

// The bits of a packed value as a u8.
Expr code_of(Expr x) {
  const Scalar scalar = x->type->scalar;
  const auto whole = [](Scalar type, int64_t n) { return literal_integer(type, n); };
  if (!is_float(scalar))
    return call(Function::logical_and, {cast(Scalar::u8, x), whole(Scalar::u8, (int64_t{1} << row(scalar).bits) - 1)});
  HOIST_CHECK(scalar == Scalar::f4e2m1, "f4e2m1 is the only packed float");
  // f4e2m1 in units of 0.5: codes advance by one unit up to 2, by two units up to 4, then by four. The sign bit is that
  // of the f32.
  const Expr wide = cast(Scalar::f32, x);
  const Expr halves =
      cast(Scalar::u8, call(Function::multiply, {call(Function::absolute, {wide}), literal(Scalar::f32, 2)}));
  const auto beyond = [&](int64_t least, int64_t shift, int64_t first) {
    const Expr steps = call(Function::shift_right, {halves, whole(Scalar::u8, shift)});
    return std::pair{call(Function::less, {halves, whole(Scalar::u8, least)}),
                     call(Function::add, {steps, whole(Scalar::u8, first)})};
  };
  const auto [below_two, from_two] = beyond(4, 1, 2);
  const auto [below_four, from_four] = beyond(8, 2, 4);
  const Expr magnitude = select(below_two, halves, select(below_four, from_two, from_four));
  const Expr sign = call(Function::shift_right, {reinterpret(Scalar::u32, wide), whole(Scalar::u32, 31)});
  return call(Function::logical_or,
              {magnitude, call(Function::shift_left, {cast(Scalar::u8, sign), whole(Scalar::u8, 3)})});
}

}  // namespace

Expr read_storage(const Storage& s, Expr stored) {
  std::vector<int64_t> none(s.permutation.size(), 0);
  return read_with_border(s, stored, {none, none, 0});
}

Expr read_with_border(const Storage& s, Expr stored, const Padding& padding) {
  size_t rank = s.permutation.size();
  if (rank == 0) return stored;
  if (s.joined > 0) {
    Storage apart = s;
    apart.joined = 0;
    const std::vector<int64_t> extents = apart.array_shape();
    for (int64_t i = s.joined; i > 0; --i) stored = split(extents[static_cast<size_t>(i)], stored);
  }
  if (s.panel > 0) {
    stored = transpose(inverse(panels_first(rank, s.interleave > 0)), stored);
    stored = map_at(
        static_cast<int>(rank) - 1, [](Expr x) { return join(x); }, stored);
  }
  if (s.interleave > 0) {
    stored = map_at(
        static_cast<int>(rank) - 2, [](Expr rows) { return join(map([](Expr row) { return transpose(row); }, rows)); },
        stored);
  }
  std::vector<int64_t> shape = s.stored_shape();
  for (size_t i = 0; i < rank; ++i) {
    int64_t before = padding.before[static_cast<size_t>(s.permutation[i])];
    int64_t after = padding.after[static_cast<size_t>(s.permutation[i])];
    if (s.before[i] == before && s.after[i] == after) continue;
    stored = map_at(
        static_cast<int>(i), [&](Expr x) { return slice(s.before[i] - before, before + shape[i] + after, x); }, stored);
  }
  return transpose(inverse(s.permutation), stored);
}

namespace {

Expr in_panels(const Storage& s, Expr rows) {
  if (s.panel == 0) return rows;
  const size_t rank = s.permutation.size();
  rows = map_at(
      static_cast<int>(rank) - 1, [&](Expr x) { return split(s.panel, x); }, rows);
  return transpose(panels_first(rank, s.interleave > 0), rows);
}

}  // namespace

Expr interior(const Storage& s, Expr logical) {
  Expr e = permute(s, logical);
  if (s.vector_padding != 0) {
    int last = static_cast<int>(s.permutation.size()) - 1;
    e = map_at(
        last, [&](Expr x) { return pad(0, s.vector_padding, Border::undefined, x); }, e);
  }
  for (int64_t i = 0; i < s.joined; ++i) e = join(e);
  return in_panels(s, e);
}

Expr surround(const Storage& s, Expr inside) {
  for (size_t i = s.permutation.size(); i-- > 0;) {
    int64_t after = s.after[i] - (i + 1 == s.permutation.size() ? s.vector_padding : 0);
    if (s.before[i] == 0 && after == 0) continue;
    inside = map_at(
        static_cast<int>(i), [&](Expr x) { return pad(s.before[i], after, Border::undefined, x); }, inside);
  }
  return inside;
}

Expr written(const Storage& s, Expr stored) {
  if (!s.is_packed()) return stored;
  const Scalar scalar = leaf_of(s.logical)->scalar;
  const int bits = row(scalar).bits, each_byte = 8 / bits;
  Expr flat = sizes_of(stored->type).empty() ? repeat(1, stored) : stored;
  while (flat->type->element->is_array()) flat = join(flat);
  const int64_t count = flat->type->size.value(), spare = (each_byte - count % each_byte) % each_byte;
  if (spare != 0) flat = pad(0, spare, zero_of(leaf_of(s.logical)), flat);
  const auto together = [&](Expr values) {
    Expr byte = nullptr;
    for (int i = 0; i < each_byte; ++i) {
      Expr code = code_of(index(literal_integer(Scalar::i32, i), values));
      if (i > 0) code = call(Function::shift_left, {code, literal_integer(Scalar::u8, i * bits)});
      byte = byte == nullptr ? code : call(Function::logical_or, {byte, code});
    }
    return byte;
  };
  return map(together, split(each_byte, flat));
}

Expr pack(const Storage& s, Expr logical) {
  Expr e = permute(s, logical);
  size_t rank = s.permutation.size();
  // Padding of outer dimensions consists of whole rows of zeros, so inner dimensions are padded first.
  for (size_t i = rank; i-- > 0;) {
    if (s.before[i] == 0 && s.after[i] == 0) continue;
    e = map_at(
        static_cast<int>(i),
        [&](Expr x) {
          Type element = x->type->element;
          std::vector<Nat> sizes = sizes_of(element);
          return pad(s.before[i], s.after[i], repeat(sizes, zero_of(leaf_of(element))), x);
        },
        e);
  }
  if (s.interleave > 0) {
    e = map_at(
        static_cast<int>(rank) - 2,
        [&](Expr rows) { return map([](Expr four) { return transpose(four); }, split(s.interleave, rows)); }, e);
  }
  return in_panels(s, e);
}

int64_t padded_row(int64_t columns, const Profile& profile) {
  // Whole vectors, or the next power of two if the array is narrower.
  int64_t multiple = 1;
  while (multiple < profile.vector_width && multiple < columns) multiple *= 2;
  return round_up(columns, multiple);
}

}  // namespace hoist
