// The builders of expression.h: each fills a Spec and leaves the rest to make().
#include "ir/language/expression.h"

namespace hoist {
namespace {

Expr with(Pattern pattern, std::vector<Expr> children, std::vector<Nat> sizes = {}) {
  Spec spec;
  spec.pattern = pattern;
  spec.children = std::move(children);
  spec.sizes = std::move(sizes);
  return build(std::move(spec));
}

Expr typed_leaf(Pattern pattern, Type type, const std::string& name = {}) {
  Spec spec;
  spec.pattern = pattern;
  spec.type = type;
  spec.name = name;
  return build(std::move(spec));
}

Type element(Expr array) {
  HOIST_CHECK(array->type->is_array(), "expected an array, found " + text(array->type));
  return array->type->element;
}

}  // namespace

Expr parameter(const std::string& name, Type type) { return typed_leaf(Pattern::parameter, type, name); }

Expr bound(int64_t position, Type type) {
  Spec spec;
  spec.pattern = Pattern::bound;
  spec.integers = {position};
  spec.type = type;
  return build(std::move(spec));
}

Expr literal(Scalar scalar, double value) {
  Spec spec;
  spec.type = scalar_type(scalar);
  spec.bits = is_float(scalar) ? bits_from_float(scalar, value) : static_cast<uint64_t>(static_cast<int64_t>(value));
  return build(std::move(spec));
}

Expr literal_integer(Scalar scalar, int64_t value) {
  if (is_float(scalar)) return literal(scalar, static_cast<double>(value));
  Spec spec;
  spec.type = scalar_type(scalar);
  spec.bits = static_cast<uint64_t>(value);
  return build(std::move(spec));
}

Expr constant(const Tensor& tensor) {
  Spec spec;
  spec.pattern = Pattern::constant;
  spec.constant = tensor;
  return build(std::move(spec));
}

Expr iota(const Nat& n, Scalar scalar) {
  Spec spec;
  spec.pattern = Pattern::iota;
  spec.sizes = {n};
  spec.type = array_type(n, scalar_type(scalar));
  return build(std::move(spec));
}

Expr function(Type type, const std::function<Expr(Expr)>& body) {
  return function(std::vector<Type>{type}, [&](const std::vector<Expr>& v) { return body(v[0]); });
}

Expr function(Type a, Type b, const std::function<Expr(Expr, Expr)>& body) {
  return function(std::vector<Type>{a, b}, [&](const std::vector<Expr>& v) { return body(v[0], v[1]); });
}

Expr call(Function function, std::vector<Expr> arguments) {
  Spec spec;
  spec.pattern = Pattern::call;
  spec.function = function;
  spec.children = std::move(arguments);
  return build(std::move(spec));
}

Expr select(Expr condition, Expr a, Expr b) { return with(Pattern::select, {condition, a, b}); }
Expr rarely(Expr condition, Expr a, Expr b) {
  Spec s;
  s.pattern = Pattern::select;
  s.children = {condition, a, b};
  s.integers = {1};
  return build(std::move(s));
}
bool is_rare(Expr e) { return e->pattern == Pattern::select && !e->integers.empty(); }

Expr cast(Scalar scalar, Expr x) {
  Spec spec;
  spec.pattern = Pattern::cast;
  spec.children = {x};
  spec.type = scalar_type(scalar);
  return build(std::move(spec));
}

Expr reinterpret(Scalar scalar, Expr x) {
  Spec spec;
  spec.pattern = Pattern::reinterpret;
  spec.children = {x};
  spec.type = scalar_type(scalar);
  return build(std::move(spec));
}

Expr let(Expr value, const std::function<Expr(Expr)>& body) {
  return with(Pattern::let, {value, function(value->type, body)});
}

Expr tuple(std::vector<Expr> parts) { return with(Pattern::tuple, std::move(parts)); }

Expr get(int64_t component, Expr x) {
  Spec spec;
  spec.pattern = Pattern::get;
  spec.children = {x};
  spec.integers = {component};
  return build(std::move(spec));
}

Expr identity(Expr x) { return with(Pattern::identity, {x}); }

Expr map(Expr function, Expr array, Mode mode, int dimension) {
  Spec spec;
  spec.pattern = Pattern::map;
  spec.children = {function, array};
  spec.mode = mode;
  spec.dimension = dimension;
  return build(std::move(spec));
}

Expr map(const std::function<Expr(Expr)>& f, Expr array, Mode mode, int dimension) {
  return map(function(element(array), f), array, mode, dimension);
}

Expr map_at(int depth, const std::function<Expr(Expr)>& f, Expr array) {
  if (depth == 0) return f(array);
  return map([&](Expr x) { return map_at(depth - 1, f, x); }, array);
}

Expr reduce(Function f, Expr neutral, Expr array) {
  return reduce([&](Expr a, Expr b) { return call(f, {a, b}); }, neutral, array);
}

Expr reduce(const std::function<Expr(Expr, Expr)>& f, Expr neutral, Expr array) {
  return with(Pattern::reduce, {function(neutral->type, element(array), f), neutral, array});
}

Expr fold(const std::function<Expr(Expr, Expr)>& f, Expr initial, Expr array, Mode mode) {
  Spec spec;
  spec.pattern = Pattern::fold;
  spec.children = {function(initial->type, element(array), f), initial, array};
  spec.mode = mode;
  return build(std::move(spec));
}

Expr scan(const std::function<Expr(Expr, Expr)>& f, Expr initial, Expr array) {
  return with(Pattern::scan, {function(initial->type, element(array), f), initial, array});
}

Expr iterate(const Nat& k, const std::function<Expr(Expr)>& f, Expr x) {
  return with(Pattern::iterate, {function(x->type, f), x}, {k});
}

Expr zip(std::vector<Expr> arrays) { return with(Pattern::zip, std::move(arrays)); }
Expr split(const Nat& k, Expr array) { return with(Pattern::split, {array}, {k}); }
Expr join(Expr array) { return with(Pattern::join, {array}); }
Expr transpose(Expr array) { return transpose({1, 0}, array); }

Expr transpose(const std::vector<int64_t>& permutation, Expr array) {
  Spec spec;
  spec.pattern = Pattern::transpose;
  spec.children = {array};
  spec.integers = permutation;
  return build(std::move(spec));
}

Expr slide(const Nat& size, const Nat& step, const Nat& dilation, Expr array) {
  return with(Pattern::slide, {array}, {size, step, dilation});
}

Expr pad(const Nat& left, const Nat& right, Expr value, Expr array) {
  return with(Pattern::pad, {array, value}, {left, right});
}

Expr pad(const Nat& left, const Nat& right, Border border, Expr array) {
  Spec spec;
  spec.pattern = Pattern::pad;
  spec.children = {array};
  spec.sizes = {left, right};
  spec.border = border;
  return build(std::move(spec));
}

Expr slice(const Nat& start, const Nat& count, Expr array, int64_t step) {
  Spec spec;
  spec.pattern = Pattern::slice;
  spec.children = {array};
  spec.sizes = {start, count};
  spec.integers = {step};
  return build(std::move(spec));
}

Expr tile(const Nat& k, Expr array) { return with(Pattern::tile, {array}, {k}); }
Expr untile(const Nat& n, Expr array) { return with(Pattern::untile, {array}, {n}); }
Expr concat(std::vector<Expr> arrays) { return with(Pattern::concat, std::move(arrays)); }
Expr repeat(const Nat& n, Expr x) { return with(Pattern::repeat, {x}, {n}); }

Expr repeat(const std::vector<Nat>& sizes, Expr x) {
  for (size_t i = sizes.size(); i-- > 0;) x = repeat(sizes[i], x);
  return x;
}

Expr index(Expr position, Expr array) { return with(Pattern::index, {position, array}); }

Expr scatter(Expr positions, Expr updates, Expr base) { return with(Pattern::scatter, {positions, updates, base}); }

Result<Expr> host(const std::string& function, std::vector<Expr> arrays, Type result) {
  Spec spec;
  spec.pattern = Pattern::host;
  spec.name = function;
  spec.children = std::move(arrays);
  spec.type = result;
  return make(std::move(spec));
}

Expr materialise(Memory memory, Expr x) {
  Spec spec;
  spec.pattern = Pattern::materialise;
  spec.children = {x};
  spec.memory = memory;
  return build(std::move(spec));
}

Expr meta(const std::string& name, std::vector<Expr> arguments, Type type) {
  Spec spec;
  spec.pattern = Pattern::meta;
  spec.name = name;
  spec.children = std::move(arguments);
  spec.type = type;
  return build(std::move(spec));
}

Result<Expr> operator_call(OperatorCall call, const std::vector<Expr>& operands) {
  Spec spec;
  spec.pattern = Pattern::operator_call;
  call.operands.clear();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == nullptr) continue;
    call.operands.push_back(static_cast<int64_t>(i));
    spec.children.push_back(operands[i]);
  }
  spec.operation = std::make_shared<const OperatorCall>(std::move(call));
  return make(std::move(spec));
}

}  // namespace hoist
