#include "ir/operators/definitions/support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/base/strings.h"
#include "ir/program/onnx_type.h"

namespace hoist::operators {

Diagnostic fault(const std::string& what, const std::string& hint) { return {"", what, hint}; }

Lowered one(Expr e) { return std::vector<Expr>{e}; }

std::string text(const Shape& shape) { return text(Sizes(shape.begin(), shape.end())); }

std::string text(const Sizes& sizes) {
  if (sizes.empty()) return "a scalar";
  std::string out;
  for (const Nat& n : sizes) out += fmt::format("[{}]", n.text());
  return out;
}

Shape extents(Expr x) { return shape_of(x->type); }
int64_t rank_of(Expr x) { return static_cast<int64_t>(sizes_of(x->type).size()); }
Scalar element_of(Expr x) { return leaf_of(x->type)->scalar; }

int64_t product(const Shape& shape) {
  int64_t n = 1;
  for (int64_t e : shape) n *= e;
  return n;
}

Nat product(const Sizes& sizes) {
  Nat n = 1;
  for (const Nat& size : sizes) n = n * size;
  return n;
}

Result<Nothing> check_extents(const Shape& shape) {
  for (int64_t n : shape) {
    if (n < 0) return fault(fmt::format("the result has a negative extent {}", n));
  }
  // Extents besides a zero extent count as well, since intermediate arrays may lack the zero extent.
  int64_t total = 1;
  for (int64_t n : shape) {
    if (n > most_elements / total) {
      return fault(fmt::format("the result {} has more than {} elements", text(shape), most_elements));
    }
    total *= std::max<int64_t>(n, 1);
  }
  return Nothing{};
}

// ---- Attributes ----------------------------------------------------------------------------------------------------

namespace {

template <class T>
Result<T> attribute(const OperatorContext& c, const std::string& name, const T& otherwise, const char* kind) {
  auto found = c.call.attributes.find(name);
  if (found == c.call.attributes.end()) return otherwise;
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  return fault(fmt::format("attribute {} has to be {}", name, kind));
}

}  // namespace

bool has_attribute(const OperatorContext& c, const std::string& name) { return c.call.attributes.count(name) > 0; }

Result<int64_t> integer_attribute(const OperatorContext& c, const std::string& name, int64_t otherwise) {
  return attribute<int64_t>(c, name, otherwise, "an integer");
}

Result<double> float_attribute(const OperatorContext& c, const std::string& name, double otherwise) {
  return attribute<double>(c, name, otherwise, "a float");
}

Result<std::string> string_attribute(const OperatorContext& c, const std::string& name, const std::string& otherwise) {
  return attribute<std::string>(c, name, otherwise, "a string");
}

Result<Shape> integers_attribute(const OperatorContext& c, const std::string& name, const Shape& otherwise) {
  return attribute<Shape>(c, name, otherwise, "a list of integers");
}

Result<std::vector<std::string>> strings_attribute(const OperatorContext& c, const std::string& name) {
  auto found = c.call.attributes.find(name);
  if (found == c.call.attributes.end()) return std::vector<std::string>{};
  if (const auto* list = std::get_if<std::vector<std::string>>(&found->second)) return *list;
  return fault(fmt::format("attribute {} has to be a list of strings", name));
}

Result<std::string> choice_attribute(const OperatorContext& c, const std::string& name, const std::string& otherwise,
                                     const std::vector<std::string>& choices) {
  HOIST_TRY(auto value, string_attribute(c, name, otherwise));
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  return fault(fmt::format("attribute {} is {}, expected one of {}", name, value, fmt::join(choices, ", ")));
}

Result<Scalar> scalar_of_onnx(int64_t data_type) {
  if (const auto scalar = scalar_of_onnx_type(data_type)) return *scalar;
  return fault(fmt::format("element type {} of ONNX is not supported", data_type));
}

// ---- Inputs --------------------------------------------------------------------------------------------------------

Expr input(const OperatorContext& c, size_t i) { return i < c.inputs.size() ? c.inputs[i] : nullptr; }

bool is_given(const OperatorContext& c, size_t i, const std::string& role) {
  return input(c, i) != nullptr || has_attribute(c, role);
}

Result<Tensor> constant_input(const OperatorContext& c, size_t i, const std::string& role) {
  if (auto found = c.call.attributes.find(role); found != c.call.attributes.end()) {
    if (const auto* tensor = std::get_if<Tensor>(&found->second)) return *tensor;
    if (const auto* list = std::get_if<Shape>(&found->second))
      return Tensor::of(Scalar::i64, {static_cast<int64_t>(list->size())}, *list);
    if (const auto* list = std::get_if<std::vector<double>>(&found->second))
      return Tensor::of(Scalar::f32, {static_cast<int64_t>(list->size())}, *list);
    return fault(fmt::format("attribute {} has to be a list of numbers or a tensor", role));
  }
  if (input(c, i) == nullptr) return fault(fmt::format("input {} ({}) is missing", i, role));
  if (c.constants[i] == nullptr) {
    const bool named = c.inputs[i]->pattern == Pattern::parameter;
    return fault(
        fmt::format("input {} ({}) has to be known at compile time, but {} is computed from the model's inputs", i,
                    role, named ? c.inputs[i]->name : "it"),
        "make it an initialiser, or a function of shapes");
  }
  return *c.constants[i];
}

Result<Shape> constant_integers(const OperatorContext& c, size_t i, const std::string& role) {
  HOIST_TRY(const Tensor value, constant_input(c, i, role));
  if (!is_integer(value.scalar()) || value.shape().size() > 1) {
    return fault(fmt::format("input {} ({}) has to be a list of integers, found {}{}", i, role, text(value.shape()),
                             row(value.scalar()).name));
  }
  return value.as_integers();
}

Result<std::vector<double>> constant_floats(const OperatorContext& c, size_t i, const std::string& role) {
  HOIST_TRY(const Tensor value, constant_input(c, i, role));
  if (!is_float(value.scalar()) || value.shape().size() > 1) {
    return fault(fmt::format("input {} ({}) has to be a list of floats, found {}{}", i, role, text(value.shape()),
                             row(value.scalar()).name));
  }
  std::vector<double> out;
  for (int64_t k = 0; k < value.size(); ++k) out.push_back(value.float_at(k));
  return out;
}

Result<std::optional<Shape>> integers_of(const OperatorContext& c, const std::string& name, size_t i) {
  auto found = c.call.attributes.find(name);
  if (found != c.call.attributes.end() && !std::holds_alternative<Tensor>(found->second)) {
    HOIST_TRY(auto value, integers_attribute(c, name, {}));
    return std::optional(std::move(value));
  }
  if (!is_given(c, i, name)) return std::optional<Shape>();
  HOIST_TRY(auto value, constant_integers(c, i, name));
  return std::optional(std::move(value));
}

Result<Nothing> check_same_element(const OperatorContext& c) {
  for (size_t i = 1; i < c.inputs.size(); ++i) {
    if (c.inputs[i] == nullptr || c.inputs[0] == nullptr) continue;
    Scalar a = element_of(c.inputs[0]), b = element_of(c.inputs[i]);
    if (a != b) {
      return fault(fmt::format("inputs 0 and {} have different element types {} and {}", i, row(a).name, row(b).name));
    }
  }
  return Nothing{};
}

Result<int64_t> normalise_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return fault(fmt::format("axis {} lies outside -{}..{}", axis, rank, rank - 1));
  return axis < 0 ? axis + rank : axis;
}

Result<Shape> normalise_axes(const Shape& axes, int64_t rank) {
  Shape out;
  for (int64_t a : axes) {
    HOIST_TRY(int64_t axis, normalise_axis(a, rank));
    if (std::find(out.begin(), out.end(), axis) != out.end()) return fault(fmt::format("axis {} is named twice", axis));
    out.push_back(axis);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// ---- Scalar formulas -----------------------------------------------------------------------------------------------

namespace {

Expr typed(const Number& n, const Number& like) {
  if (n.e != nullptr) return n.e;
  HOIST_CHECK(like.e != nullptr, "a formula needs a term to take its type from");
  return literal(like.e->type->scalar, n.value);
}

}  // namespace

Number apply(Function function, Number a) { return call(function, {a.e}); }

Number apply(Function function, Number a, Number b) { return call(function, {typed(a, b), typed(b, a)}); }

Number choose(Number condition, Number a, Number b) { return select(condition.e, typed(a, b), typed(b, a)); }

Expr zero(Scalar scalar) { return literal(scalar, 0); }

Expr convert(Scalar to, Expr x) {
  Scalar from = x->type->scalar;
  if (from == to) return x;
  if (from == Scalar::f8e8m0 && to == Scalar::boolean) return convert(to, cast(Scalar::f32, x));  // f8e8m0 has no zero
  if (to == Scalar::boolean) return call(Function::not_equal, {x, zero(from)});
  if (is_float(from) && row(to).bits < 8 && is_integer(to)) return convert(to, cast(Scalar::i32, x));
  if (!is_integer(from) || !is_integer(to)) return cast(to, x);
  const ScalarRow &f = row(from), &t = row(to);
  bool fits = f.is_signed == t.is_signed ? f.bits <= t.bits : !f.is_signed && f.bits < t.bits;
  if (fits) return cast(to, x);
  if (t.bits == 64) {
    // Reinterprets the low bits of a signed number as unsigned, or of an unsigned number as signed, through arithmetic
    // that wraps.
    Expr low = call(Function::logical_and,
                    {x, literal_integer(from, f.bits == 64 ? INT64_MAX : (int64_t{1} << (f.bits - 1)) - 1)});
    Expr top = f.is_signed ? call(Function::less, {x, zero(from)})
                           : call(Function::greater, {x, literal_integer(from, INT64_MAX)});
    int64_t weight = f.bits == 64 ? INT64_MIN : -(int64_t{1} << (f.bits - 1));
    Expr wide = cast(to, low);
    return select(top, call(Function::add, {wide, literal_integer(to, weight)}), wide);
  }
  Expr low = call(Function::logical_and, {x, literal_integer(from, (int64_t{1} << t.bits) - 1)});
  if (!t.is_signed) return cast(to, low);
  if (f.bits == t.bits) {  // from unsigned of the same width: the top bit is the sign
    int64_t half = int64_t{1} << (t.bits - 1);
    Expr wide = cast(Scalar::i64, low);
    Expr folded = select(call(Function::greater_equal, {wide, literal_integer(Scalar::i64, half)}),
                         call(Function::subtract, {wide, literal_integer(Scalar::i64, 2 * half)}), wide);
    return cast(to, folded);
  }
  Expr sign = literal_integer(from, int64_t{1} << (t.bits - 1));
  if (f.is_signed) return cast(to, call(Function::subtract, {call(Function::logical_xor, {low, sign}), sign}));
  return convert(to, cast(Scalar::i64, low));
}

Expr convert_without_saturation(Scalar to, Expr x) {
  Scalar from = x->type->scalar;
  if (!is_float(to) || row(to).bits != 8 || !is_float(from)) return convert(to, x);
  // From these magnitudes on, the nearest value lies beyond the type's largest number (a tie goes to the even value).
  const bool is_power = to == Scalar::f8e8m0;
  double limit = is_power ? 0x1p127 : to == Scalar::f8e4m3fn ? 464 : to == Scalar::f8e4m3fnuz ? 248 : 61440;
  Function beyond = is_power || to == Scalar::f8e4m3fn ? Function::greater : Function::greater_equal;
  Expr lost = call(beyond, {call(Function::absolute, {x}), literal(from, limit)});
  if (to != Scalar::f8e5m2) return select(lost, literal(to, std::numeric_limits<double>::quiet_NaN()), cast(to, x));
  // A cast never results in an infinity of this type, so its bits are written explicitly.
  const auto infinity = [&](int64_t bits) { return reinterpret(to, literal_integer(Scalar::u8, bits)); };
  Expr negative = call(Function::less, {x, zero(from)});
  return select(lost, select(negative, infinity(0xfc), infinity(0x7c)), cast(to, x));
}

Scalar wide_float(Scalar scalar) { return is_float(scalar) && row(scalar).bits < 32 ? Scalar::f32 : scalar; }

Expr clamped_position(Expr i, int64_t n) {
  Number x = i;
  if (row(i->type->scalar).is_signed) {
    x = choose(x < 0.0, x + static_cast<double>(n), x);
    x = max(x, 0.0);
  }
  return min(x, static_cast<double>(std::max<int64_t>(n - 1, 0))).e;
}

// ---- Arrays --------------------------------------------------------------------------------------------------------

Expr in_memory(Expr x) { return materialise(Memory::global, x); }

Expr at_position(int64_t position, Expr array) {
  return index(literal_integer(position > INT32_MAX ? Scalar::i64 : Scalar::i32, position), array);
}

Expr map_zip(const std::vector<Expr>& arrays, const std::function<Expr(const std::vector<Expr>&)>& f) {
  if (arrays.size() == 1) return map([&](Expr x) { return f({x}); }, arrays[0]);
  return map(
      [&](Expr t) {
        std::vector<Expr> parts;
        for (size_t i = 0; i < arrays.size(); ++i) parts.push_back(get(static_cast<int64_t>(i), t));
        return f(parts);
      },
      zip(arrays));
}

Expr map_zip_at(int64_t depth, const std::vector<Expr>& arrays,
                const std::function<Expr(const std::vector<Expr>&)>& f) {
  if (depth == 0) return f(arrays);
  return map_zip(arrays, [&](const std::vector<Expr>& parts) { return map_zip_at(depth - 1, parts, f); });
}

Result<Nothing> check_sizes(const Sizes& sizes) {
  Shape numbers;
  for (const Nat& n : sizes) {
    if (n.is_constant()) numbers.push_back(n.value());
  }
  return check_extents(numbers);
}

Result<Sizes> broadcast_sizes(const std::vector<Expr>& arrays) {
  Sizes out;
  for (Expr x : arrays) {
    const Sizes s = sizes_of(x->type);
    if (s.size() > out.size()) out.insert(out.begin(), s.size() - out.size(), Nat(1));
    const size_t offset = out.size() - s.size();
    for (size_t i = 0; i < s.size(); ++i) {
      Nat& n = out[offset + i];
      if (n == Nat(1))
        n = s[i];
      else if (s[i] != Nat(1) && s[i] != n) {
        const bool numbers = s[i].is_constant() && n.is_constant();
        return fault(fmt::format("{} does not broadcast with {}: {} and {} {}", text(s), text(out), s[i].text(),
                                 n.text(), numbers ? "differ" : "may differ"));
      }
    }
  }
  HOIST_TRY_VOID(check_sizes(out));
  return out;
}

Result<Shape> broadcast_extents(const std::vector<Expr>& arrays) {
  HOIST_TRY(const Sizes sizes, broadcast_sizes(arrays));
  Shape out;
  for (const Nat& n : sizes) out.push_back(n.value());
  return out;
}

Expr elementwise(std::vector<Expr> arrays, const std::function<Expr(const std::vector<Expr>&)>& f) {
  int64_t rank = 0;
  Nat n = 1;
  for (Expr x : arrays) rank = std::max(rank, rank_of(x));
  if (rank == 0) return f(arrays);
  for (Expr x : arrays) {
    if (rank_of(x) == rank && x->type->size != Nat(1)) n = x->type->size;
  }
  std::vector<Expr> moving;  // distinct arrays that have this dimension
  std::vector<size_t> slot(arrays.size(), SIZE_MAX);
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (rank_of(arrays[i]) < rank) continue;
    if (arrays[i]->type->size != n) {
      arrays[i] = at_position(0, arrays[i]);
      continue;
    }
    auto found = std::find(moving.begin(), moving.end(), arrays[i]);
    slot[i] = static_cast<size_t>(found - moving.begin());
    if (found == moving.end()) moving.push_back(arrays[i]);
  }
  return map_zip(moving, [&](const std::vector<Expr>& parts) {
    std::vector<Expr> inner = arrays;
    for (size_t i = 0; i < inner.size(); ++i) {
      if (slot[i] != SIZE_MAX) inner[i] = parts[slot[i]];
    }
    return elementwise(inner, f);
  });
}

Expr broadcast_to(Expr x, const Shape& shape) {
  Shape from = extents(x);
  size_t offset = shape.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t n = shape[offset + i];
    if (from[i] == n) continue;
    x = map_at(
        static_cast<int>(i), [&](Expr row) { return repeat(n, at_position(0, row)); }, x);
  }
  for (size_t i = offset; i-- > 0;) x = repeat(shape[i], x);
  return x;
}

Expr reshape(Expr x, const Shape& to) { return reshape_to(x, Sizes(to.begin(), to.end())); }

Expr reshape_to(Expr x, const Sizes& to) {
  const Sizes from = sizes_of(x->type);
  if (from == to) return x;
  HOIST_CHECK(product(from) == product(to),
              fmt::format("{} and {} must have equally many elements", text(from), text(to)));
  if (product(from) == Nat(0)) return repeat(to, zero(element_of(x)));
  if (to.empty()) {
    for (size_t i = 0; i < from.size(); ++i) x = at_position(0, x);
    return x;
  }
  if (from.empty()) return repeat(to, x);
  auto join_at = [&](size_t depth) {
    x = map_at(
        static_cast<int>(depth), [](Expr a) { return join(a); }, x);
  };
  auto split_at = [&](size_t depth, const Nat& k) {
    x = map_at(
        static_cast<int>(depth), [&](Expr a) { return split(k, a); }, x);
  };
  // Left to right: equal extents stay; for different extents, the shortest runs with equal products are joined and
  // split again.
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    if (from[i] == to[j]) {
      ++i, ++j;
      continue;
    }
    size_t i_end = i + 1, j_end = j + 1;
    Nat p = from[i], q = to[j];
    while (p != q) {
      if ((at_most(p, q) == Answer::yes && i_end < from.size()) || j_end == to.size())
        p = p * from[i_end++];
      else
        q = q * to[j_end++];
    }
    for (size_t k = i + 1; k < i_end; ++k) join_at(j);
    for (size_t k = j_end; k-- > j + 1;) split_at(j, to[k]);
    i = i_end, j = j_end;
  }
  for (; i < from.size(); ++i) join_at(j - 1);  // the remaining axis has extent 1
  for (; j < to.size(); ++j) split_at(j - 1, 1);
  return x;
}

Expr flatten(Expr x) {
  if (rank_of(x) == 0) return repeat(1, x);
  while (rank_of(x) > 1) x = join(x);
  return x;
}

Result<Expr> constant_strings(const Shape& shape, const std::vector<std::string>& strings) {
  HOIST_TRY(const Tensor made, tensor_of_strings(shape, strings));
  return constant(made);
}

Expr constant_like(Scalar scalar, const Shape& shape, double value) {
  return repeat(std::vector<Nat>(shape.begin(), shape.end()), literal(scalar, value));
}

Expr concat_at(int64_t depth, const std::vector<Expr>& arrays) {
  constexpr size_t most = 32;  // a zip takes no more than 64 arrays
  if (depth > 0 && arrays.size() > most) {
    std::vector<Expr> chunks;
    for (size_t i = 0; i < arrays.size(); i += most) {
      auto first = arrays.begin() + static_cast<std::ptrdiff_t>(i);
      chunks.push_back(
          concat_at(depth, {first, first + static_cast<std::ptrdiff_t>(std::min(most, arrays.size() - i))}));
    }
    return concat_at(depth, chunks);
  }
  if (arrays.size() == 1) return arrays[0];
  return map_zip_at(depth, arrays, [](const std::vector<Expr>& parts) { return concat(parts); });
}

Lowered concatenation(const std::vector<Expr>& given, int64_t named) {
  // PyTorch exports empty lists, which are ignored next to arrays of more dimensions.
  std::vector<Expr> arrays = given;
  if (std::any_of(given.begin(), given.end(), [](Expr x) { return rank_of(x) != 1; }))
    std::erase_if(arrays, [](Expr x) { return extents(x) == Shape{0}; });
  const Shape first = extents(arrays[0]);
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(arrays[0])));
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Shape shape = extents(arrays[i]);
    bool fits = shape.size() == first.size();
    for (size_t k = 0; fits && k < shape.size(); ++k) fits = static_cast<int64_t>(k) == axis || shape[k] == first[k];
    if (!fits)
      return fault(
          fmt::format("inputs 0 and {} do not fit along axis {}: {} and {}", i, axis, text(first), text(shape)));
  }
  if (arrays.size() > 1024) return fault(fmt::format("{} inputs, at most 1024 are supported", arrays.size()));
  return one(concat_at(axis, arrays));
}

Expr pad_with(int64_t before, int64_t after, Expr value, Expr array) {
  Shape shape = extents(array);
  for (size_t i = shape.size(); i-- > 1;) value = repeat(shape[i], value);
  return pad(before, after, value, array);
}

Expr permute(const Shape& permutation, Expr x) { return permutation.empty() ? x : transpose(permutation, x); }

Shape inverse(const Shape& permutation) {
  Shape out(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) out[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return out;
}

Shape with_last(const Shape& axes, int64_t rank) {
  Shape out;
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) out.push_back(i);
  }
  out.insert(out.end(), axes.begin(), axes.end());
  return out;
}

// [kept...][n1]...[nk] for the axes, flattened to [kept...][n].
static Expr rows_along(Expr x, const Shape& axes) {
  int64_t rank = rank_of(x), kept = rank - static_cast<int64_t>(axes.size());
  x = permute(with_last(axes, rank), x);
  return map_at(
      static_cast<int>(kept), [](Expr block) { return flatten(block); }, x);
}

Expr reduce_axes(Expr x, const Shape& axes, bool keep, const std::function<Expr(Expr)>& f) {
  Sizes sizes = sizes_of(x->type);
  int64_t kept = static_cast<int64_t>(sizes.size() - axes.size());
  Expr reduced = map_at(static_cast<int>(kept), f, rows_along(x, axes));
  if (!keep) return reduced;
  for (int64_t a : axes) sizes[static_cast<size_t>(a)] = 1;
  return reshape_to(reduced, sizes);
}

Expr map_rows(Expr x, int64_t axis, const std::function<Expr(Expr)>& f) {
  int64_t rank = rank_of(x);
  Shape permutation = with_last({axis}, rank);
  return permute(inverse(permutation), map_at(static_cast<int>(rank - 1), f, permute(permutation, x)));
}

Expr sum(Expr row) {
  Scalar scalar = element_of(row), wide = wide_float(scalar);
  if (wide == scalar) return reduce(Function::add, zero(scalar), row);
  return cast(scalar, reduce(Function::add, zero(wide), map([&](Expr x) { return cast(wide, x); }, row)));
}

Expr mean_of(Expr row) {
  const Scalar scalar = element_of(row), wide = wide_float(scalar);
  const auto mean = [](Expr total, Expr of) { return (Number(total) / static_cast<double>(extents(of)[0])).e; };
  if (wide == scalar) return mean(sum(row), row);
  return cast(scalar, mean(sum(map([&](Expr x) { return cast(wide, x); }, row)), row));
}

}  // namespace hoist::operators
