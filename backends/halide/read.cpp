// Read views: a term evaluated with a variable per loop. Arrays are functions of the index, layout patterns rewrite
// indices, scalar code becomes Halide expressions. Only arrays of materialised_arrays.cpp are stored.
#include <fmt/format.h>

#include "backends/halide/emitter.h"

namespace hoist::emission {

void unsupported(const std::string& what, const std::string& hint) { throw Unsupported{{"", what, hint}}; }

Elements::Elements(std::function<Value(H::Expr)> element)
    : element_(std::make_shared<const std::function<Value(H::Expr)>>(std::move(element))) {}

Value Elements::operator()(const H::Expr& index) const { return (*element_)(index); }

Environment extend(const Environment& outer, Value value) {
  return std::make_shared<const Frame>(Frame{std::move(value), outer});
}

const Value& lookup(const Environment& environment, int64_t position) {
  const Frame* frame = environment.get();
  for (; frame != nullptr && position > 0; --position) frame = frame->outer.get();
  HOIST_CHECK(frame != nullptr, "a bound variable outside its function");
  return frame->value;
}

namespace {

Value array(std::function<Value(H::Expr)> at) { return Value{{}, Elements(std::move(at)), {}}; }
Value scalar(H::Expr e) { return Value{std::move(e), nullptr, {}}; }
const Nat& extent(Expr e) { return e->type->size; }

Value indexed_from(size_t rank, const std::function<Value(const std::vector<H::Expr>&)>& element,
                   const std::vector<H::Expr>& so_far) {
  if (rank == 0) return element(so_far);
  return array([=](const H::Expr& i) {
    std::vector<H::Expr> next = so_far;
    next.push_back(i);
    return indexed_from(rank - 1, element, next);
  });
}

H::Expr inside(const H::Expr& i, const Nat& n) { return H::clamp(i, 0, number(n - 1)); }

}  // namespace

Value indexed(size_t rank, const std::function<Value(const std::vector<H::Expr>&)>& element) {
  return indexed_from(rank, element, {});
}

Value select_value(const H::Expr& condition, const Value& a, const Value& b, bool rarely) {
  if (a.at) {
    return array([=](const H::Expr& i) { return select_value(condition, a.at(i), b.at(i), rarely); });
  }
  if (!a.parts.empty()) {
    Value out;
    for (size_t i = 0; i < a.parts.size(); ++i)
      out.parts.push_back(select_value(condition, a.parts[i], b.parts[i], rarely));
    return out;
  }
  if (rarely)
    return scalar(H::Internal::Call::make(a.scalar.type(), rare_marker, {condition, a.scalar, b.scalar},
                                          H::Internal::Call::PureExtern));
  return scalar(selected(condition, a.scalar, b.scalar));
}

// Elements are cached by context and index, because zip and shared subterms read them several times through different
// views.
Value Emitter::cached(std::function<Value(H::Expr)> at) {
  using Known = std::map<H::Expr, Value, H::Internal::IRGraphDeepCompare>;
  auto known = std::make_shared<std::map<uint64_t, Known>>();
  return array([this, at = std::move(at), known](const H::Expr& i) {
    H::Expr index = H::Internal::simplify(i);
    const Known& here = (*known)[context_];
    if (auto found = here.find(index); found != here.end()) return found->second;
    Value v = at(i);
    (*known)[context_].emplace(index, v);
    return v;
  });
}

Value Emitter::apply(Expr function, const Environment& env, std::vector<Value> arguments) {
  Environment inner = env;
  for (Value& a : arguments) inner = extend(inner, std::move(a));
  return read(function->children[0], inner);
}

H::Expr Emitter::safe_index(const H::Expr& index, const Nat& extent) const {
  if (!reads_open_) return index;
  H::Internal::Scope<H::Internal::Interval> ranges;
  for (const Loop& l : loops_) ranges.push(l.name(), H::Internal::Interval(0, number(l.extent - 1)));
  H::Internal::Interval range = H::Internal::bounds_of_expr_in_scope(H::Internal::simplify(index), ranges);
  if (range.is_bounded()) {
    auto low = H::Internal::as_const_int(H::Internal::simplify(range.min));
    auto high = H::Internal::as_const_int(H::Internal::simplify(range.max));
    const bool is_below =
        extent.is_constant() ? high && *high < extent.value() : H::Internal::can_prove(range.max < number(extent));
    if (low && *low >= 0 && is_below) return index;
  }
  return H::clamp(index, 0, number(extent - 1));
}

Value Emitter::bounded(const Value& v, const std::vector<Nat>& shape) {
  if (shape.empty()) return v;
  if (v.at) {
    return indexed(shape.size(), [=, this](const std::vector<H::Expr>& index) {
      Value element = v;
      for (size_t i = 0; i < index.size(); ++i) element = element.at(safe_index(index[i], shape[i]));
      return element;
    });
  }
  Value out;
  for (const Value& part : v.parts) out.parts.push_back(bounded(part, shape));
  return out;
}

Value Emitter::nothing(Scalar kind, size_t rank) {
  Value zero = scalar(scalars_.literal_value(kind, 0));
  return indexed(rank, [zero](const std::vector<H::Expr>&) { return zero; });
}

std::string read_input(const H::Internal::Call& call) {
  constexpr std::string_view ending = "_im";
  const std::string name = call.name.substr(0, call.name.find('$'));
  return call.call_type == H::Internal::Call::Halide && name.ends_with(ending)
             ? name.substr(0, name.size() - ending.size())
             : "";
}

Value Emitter::read_parameter(Expr e) {
  const std::vector<Nat> shape = sizes_of(e->type);
  Scalar kind = leaf_of(e->type)->scalar;
  const bool packed = is_packed(kind);
  const int each_byte = packed ? 8 / row(kind).bits : 1;
  // An array without elements is never read and is not an argument of the kernel.
  if (std::find(shape.begin(), shape.end(), Nat(0)) != shape.end()) return nothing(kind, shape.size());
  const Nat elements = elements_of(shape);
  // Halide takes strides that are not constant from the buffer, which the runtime leaves empty.
  const bool has_open_strides =
      std::any_of(shape.begin() + (shape.empty() ? 0 : 1), shape.end(), [](const Nat& n) { return !n.is_constant(); });
  const bool flat = packed || shape.empty() || has_open_strides;
  auto found = inputs_.find(e->name);
  if (found == inputs_.end()) {
    std::string name = fmt::format("hoist_input_{}", inputs_.size());
    if (upper_bound(elements) >= int64_t{1} << 31) {
      unsupported(fmt::format("parameter {} has {} elements", e->name, upper_bound(elements)),
                  "at most 2147483647 are supported");
    }
    H::ImageParam input(stored_type(kind), flat ? 1 : static_cast<int>(shape.size()), name);
    Nat stride = 1;
    for (size_t i = 0; i < shape.size() && !flat; ++i) {
      const Nat& n = shape[shape.size() - 1 - i];
      input.dim(static_cast<int>(i)).set_bounds(0, number(n)).set_stride(number(stride));
      stride = stride * n;
    }
    if (flat) input.dim(0).set_bounds(0, number(ceiling_division(elements, each_byte))).set_stride(1);
    input.set_host_alignment(64);
    found = inputs_.emplace(e->name, input).first;
    arguments_.push_back(input);
    argument_names_[name] = e->name;
  }
  H::ImageParam input = found->second;
  if (rare_ == 0)
    input_bytes_[input.name()] = (upper_bound(elements) + each_byte - 1) / each_byte * stored_type(kind).bytes();
  if (shape.empty() && !packed) return scalar(scalars_.from_stored(kind, input(0)));
  if (packed) {
    return indexed(shape.size(), [=, this](const std::vector<H::Expr>& index) {
      const int bits = row(kind).bits;
      H::Expr flat = 0;
      for (size_t i = 0; i < index.size(); ++i) flat = flat * number(shape[i]) + index[i];
      H::Expr code =
          (input(flat / each_byte) >> H::cast<uint8_t>((flat % each_byte) * bits)) & H::cast<uint8_t>((1 << bits) - 1);
      if (is_float(kind)) return scalar(scalars_.from_stored(kind, code));
      if (!row(kind).is_signed) return scalar(code);
      const int sign = 1 << (bits - 1);
      return scalar(H::cast<int8_t>(code ^ H::cast<uint8_t>(sign)) - H::cast<int8_t>(sign));
    });
  }
  if (flat) {
    return indexed(shape.size(), [=, this](const std::vector<H::Expr>& index) {
      H::Expr position = 0;
      for (size_t i = 0; i < index.size(); ++i) position = position * number(shape[i]) + safe_index(index[i], shape[i]);
      return scalar(scalars_.from_stored(kind, input(position)));
    });
  }
  return indexed(shape.size(), [=, this](const std::vector<H::Expr>& index) {
    std::vector<H::Expr> innermost_first;
    for (size_t i = index.size(); i-- > 0;) innermost_first.push_back(safe_index(index[i], shape[i]));
    return scalar(scalars_.from_stored(kind, input(innermost_first)));
  });
}

namespace {
uint64_t literal_bits(const Tensor& t, int64_t i) {
  return is_float(t.scalar()) ? bits_from_float(t.scalar(), t.float_at(i)) : static_cast<uint64_t>(t.integer_at(i));
}
}  // namespace

// A small constant is a chain of selections, which the simplifier removes if the index is known.
Value Emitter::read_constant(Expr e) {
  const Tensor& t = e->constant;
  Scalar kind = t.scalar();
  if (t.size() == 0) return nothing(kind, t.shape().size());
  if (t.size() == 1) {
    Value v = scalar(scalars_.literal_value(kind, literal_bits(t, 0)));
    return indexed(t.shape().size(), [v](const std::vector<H::Expr>&) { return v; });
  }
  if (t.size() > 64) {
    unsupported(fmt::format("a constant of {} elements inside a kernel", t.size()),
                "make it a parameter of the kernel");
  }
  std::vector<H::Expr> elements;
  for (int64_t i = 0; i < t.size(); ++i) elements.push_back(scalars_.literal_value(kind, literal_bits(t, i)));
  std::vector<int64_t> shape = t.shape();
  return indexed(shape.size(), [=](const std::vector<H::Expr>& index) {
    H::Expr flat = 0;
    for (size_t i = 0; i < index.size(); ++i) flat = flat * number(shape[i]) + index[i];
    H::Expr out = elements.back();
    for (size_t i = elements.size() - 1; i-- > 0;)
      out = H::select(flat == number(static_cast<int64_t>(i)), elements[i], out);
    return scalar(out);
  });
}

namespace {

// A constant that is read at computed positions and whose size is a power of two, so that its position has few bits.
bool is_table(Expr e) {
  if (e->pattern != Pattern::constant || e->constant.shape().size() != 1) return false;
  const int64_t n = e->constant.size();
  return n >= 8 && n <= 64 && (n & (n - 1)) == 0;
}

// One selection for each bit of the position, in the position's own type: as many comparisons as bits.
H::Expr look_up(const Scalars& scalars, const Tensor& table, const H::Expr& position) {
  std::vector<H::Expr> entries;
  for (int64_t i = 0; i < table.size(); ++i)
    entries.push_back(scalars.literal_value(table.scalar(), literal_bits(table, i)));
  for (int64_t bit = 1; entries.size() > 1; bit *= 2) {
    H::Expr mask = H::Internal::make_const(position.type(), bit);
    H::Expr is_set = (position & mask) != H::Internal::make_zero(position.type());
    std::vector<H::Expr> chosen;
    for (size_t i = 0; i < entries.size(); i += 2) {
      const H::Expr &low = entries[i], &high = entries[i + 1];
      chosen.push_back(H::Internal::equal(low, high) ? low : H::select(is_set, high, low));
    }
    entries = chosen;
  }
  return entries[0];
}

}  // namespace

Value Emitter::read_pad(Expr e, const Environment& env) {
  Value a = read(e->children[0], env);
  const Nat left = e->sizes[0], n = extent(e->children[0]);
  if (n == Nat(0)) {
    if (e->border != Border::value) unsupported("a border around an empty array");
    Value v = read(e->children[1], env);
    return array([v](const H::Expr&) { return v; });
  }
  H::Expr last = number(n - 1), l = number(left), count = number(n);
  switch (e->border) {
    case Border::value: {
      Value v = read(e->children[1], env);
      return array([=](const H::Expr& i) {
        H::Expr x = i - l;
        return select_value(x >= 0 && x < count, a.at(H::clamp(x, 0, last)), v);
      });
    }
    case Border::mirror:
      return array([=](const H::Expr& i) {
        H::Expr x = H::abs(i - l);
        x = H::cast<int32_t>(x);
        return a.at(H::clamp(H::select(x > last, 2 * last - x, x), 0, last));
      });
    case Border::wrap:
      return array(
          [=](const H::Expr& i) { return a.at((i - l + count * number(floor_division(left, n) + 1)) % count); });
    case Border::undefined:
      // Any element is correct here, so the index is passed on; loads ensure that it stays inside their array.
      reads_open_ = true;
      return array([=](const H::Expr& i) { return a.at(i - l); });
    case Border::clamp:
      return array([=](const H::Expr& i) { return a.at(H::clamp(i - l, 0, last)); });
  }
  HOIST_CHECK(false, "not a border");
  std::abort();
}

Value Emitter::read_concat(Expr e, const Environment& env) {
  std::vector<Value> arrays;
  std::vector<Nat> starts = {0};
  std::vector<Nat> extents;
  for (Expr c : e->children) {
    if (extent(c) == Nat(0)) continue;
    arrays.push_back(read(c, env));
    extents.push_back(extent(c));
    starts.push_back(starts.back() + extents.back());
  }
  if (arrays.empty()) return read(e->children[0], env);
  return array([=](const H::Expr& i) {
    Value out = arrays.back().at(inside(i - number(starts[arrays.size() - 1]), extents.back()));
    for (size_t k = arrays.size() - 1; k-- > 0;) {
      out = select_value(i < number(starts[k + 1]), arrays[k].at(inside(i - number(starts[k]), extents[k])), out);
    }
    return out;
  });
}

void Emitter::note_accuracy(Function function, Scalar kind) {
  if (!is_float(kind)) return;
  // OpenCL requires correct rounding of both in f64 and leaves it to the device in f32. The result in a narrower type
  // is the f32 result rounded once more, which is correct if the f32 result is.
  if (function == Function::divide || function == Function::sqrt)
    divides_ |= kind != Scalar::f64;
  else
    worst_ulp_ = std::max(worst_ulp_, row(function).ulp);
}

Value Emitter::read_view(Expr e, const Environment& env) {
  if (e->pattern == Pattern::zip) {
    std::vector<Value> arrays;
    for (Expr c : e->children) arrays.push_back(read(c, env));
    return array([arrays](const H::Expr& i) {
      Value out;
      for (const Value& a : arrays) out.parts.push_back(a.at(i));
      return out;
    });
  }
  if (e->pattern == Pattern::pad) return read_pad(e, env);
  if (e->pattern == Pattern::concat) return read_concat(e, env);
  if (e->pattern == Pattern::index) {
    Value position = read(e->children[0], env);
    if (is_table(e->children[1])) return scalar(look_up(scalars_, e->children[1]->constant, position.scalar));
    Value a = read(e->children[1], env);
    const Nat& n = extent(e->children[1]);
    // A position computed from an element beyond an open border may be any integer.
    H::Expr known = safe_index(H::cast<int32_t>(position.scalar), n);
    return a.at(H::unsafe_promise_clamped(known, 0, number(n - 1)));
  }
  Value a = read(e->children[0], env);
  auto size = [&](size_t i) { return number(e->sizes[i]); };
  switch (e->pattern) {
    case Pattern::split: {
      H::Expr k = size(0);
      return array([=](const H::Expr& o) { return array([=](const H::Expr& i) { return a.at(o * k + i); }); });
    }
    case Pattern::join: {
      H::Expr k = number(e->children[0]->type->element->size);
      return cached([=](const H::Expr& i) { return a.at(i / k).at(i % k); });
    }
    case Pattern::transpose: {
      std::vector<int64_t> permutation = e->integers;
      return indexed(permutation.size(), [=](const std::vector<H::Expr>& index) {
        std::vector<H::Expr> original(index.size());
        for (size_t i = 0; i < index.size(); ++i) original[static_cast<size_t>(permutation[i])] = index[i];
        Value v = a;
        for (const H::Expr& i : original) v = v.at(i);
        return v;
      });
    }
    case Pattern::slide: {
      H::Expr step = size(1), dilation = size(2);
      return array(
          [=](const H::Expr& w) { return array([=](const H::Expr& i) { return a.at(w * step + i * dilation); }); });
    }
    case Pattern::slice: {
      H::Expr start = size(0), step = number(e->integers[0]);
      return array([=](const H::Expr& i) { return a.at(start + i * step); });
    }
    case Pattern::tile: {
      H::Expr k = size(0), shifted = number(extent(e->children[0])) - k;
      return array(
          [=](const H::Expr& o) { return array([=](const H::Expr& i) { return a.at(H::min(o * k, shifted) + i); }); });
    }
    case Pattern::untile: {
      // The row that holds an element: the last row overlaps the row before it, and both agree there.
      const Nat k = e->children[0]->type->element->size, n = e->sizes[0];
      H::Expr width = number(k), start = number(n - k);
      return cached([=](const H::Expr& x) { return a.at(x / width).at(x - H::min(x / width * width, start)); });
    }
    case Pattern::repeat:
      return array([a](const H::Expr&) { return a; });
    default:
      HOIST_CHECK(false, "not a view");
      std::abort();
  }
}

Value Emitter::read(Expr e, const Environment& env) {
  if (e->children.empty()) return read_now(e, env);
  const Frame* frame = e->free > 0 ? env.get() : nullptr;
  if (auto found = memo_.find({context_, e, frame}); found != memo_.end()) return found->second.second;
  Value v = read_now(e, env);
  memo_.emplace(std::tuple(context_, e, frame), std::pair(env, v));
  return v;
}

Value Emitter::read_call(Expr e, const Environment& env) {
  if (auto sum = sums_of_pairs(e, env)) return *sum;
  std::vector<H::Expr> arguments;
  for (Expr c : e->children) arguments.push_back(read(c, env).scalar);
  Scalar kind = e->children[0]->type->scalar;
  note_accuracy(e->function, kind);
  return scalar(scalars_.call_value(e->function, kind, arguments));
}

Value Emitter::read_iterate(Expr e, const Environment& env) {
  Value v = read(e->children[1], env);
  const int64_t count = known_at_compile_time(e->sizes[0]);
  if (count > 64) unsupported(fmt::format("iterate {} inside a kernel", count), "at most 64 steps are unrolled");
  for (int64_t i = 0; i < count; ++i) v = apply(e->children[0], env, {v});
  return v;
}

// The last update at a position wins; read as a fold over the updates for each element.
Value Emitter::read_scatter(Expr e, const Environment& env) {
  Value positions = read(e->children[0], env), updates = read(e->children[1], env), base = read(e->children[2], env);
  const int64_t count = known_at_compile_time(extent(e->children[0]));
  if (count > 64) {
    unsupported(fmt::format("a scatter of {} updates inside an expression", count),
                "let scatter be the kernel's result");
  }
  return cached([=](const H::Expr& i) {
    Value out = base.at(i);
    for (int64_t k = 0; k < count; ++k) {
      H::Expr position = positions.at(number(k)).scalar;
      out = select_value(position == H::cast(position.type(), i), updates.at(number(k)), out);
    }
    return out;
  });
}

Value Emitter::read_now(Expr e, const Environment& env) {
  switch (e->pattern) {
    case Pattern::parameter:
      return read_parameter(e);
    case Pattern::bound:
      return lookup(env, e->integers[0]);
    case Pattern::literal:
      return scalar(scalars_.literal_value(e->type->scalar, e->bits));
    case Pattern::constant:
      return read_constant(e);
    case Pattern::iota: {
      Scalar kind = e->type->element->scalar;
      return array([=, this](const H::Expr& i) { return scalar(scalars_.cast_value(Scalar::i32, kind, i)); });
    }
    case Pattern::meta:
      unsupported("a metavariable");
    case Pattern::function:
      HOIST_CHECK(false, "a function is not a value");
      std::abort();
    case Pattern::call:
      return read_call(e, env);
    case Pattern::select: {
      H::Expr condition = read(e->children[0], env).scalar;
      rare_ += is_rare(e) ? 1 : 0;
      const Value chosen = read(e->children[1], env);
      rare_ -= is_rare(e) ? 1 : 0;
      return select_value(condition, chosen, read(e->children[2], env), is_rare(e));
    }
    case Pattern::cast:
      return scalar(
          scalars_.cast_value(e->children[0]->type->scalar, e->type->scalar, read(e->children[0], env).scalar));
    case Pattern::reinterpret:
      return scalar(
          scalars_.reinterpret_value(e->children[0]->type->scalar, e->type->scalar, read(e->children[0], env).scalar));
    case Pattern::let:
      return apply(e->children[1], env, {read(e->children[0], env)});
    case Pattern::tuple: {
      Value out;
      for (Expr c : e->children) out.parts.push_back(read(c, env));
      return out;
    }
    case Pattern::get:
      return read(e->children[0], env).parts[static_cast<size_t>(e->integers[0])];
    case Pattern::identity:
      return read(e->children[0], env);
    case Pattern::map: {
      Value a = read(e->children[1], env);
      Expr f = e->children[0];
      return cached([=, this](const H::Expr& i) { return apply(f, env, {a.at(i)}); });
    }
    case Pattern::reduce:
    case Pattern::fold:
      return fold(e, env);
    case Pattern::scan:
      return scan(e, env);
    case Pattern::iterate:
      return read_iterate(e, env);
    case Pattern::scatter:
      return read_scatter(e, env);
    case Pattern::materialise:
      return materialise(e, env);
    default:
      return read_view(e, env);
  }
}

}  // namespace hoist::emission
