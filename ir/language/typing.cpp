// The type checker: infer_type() returns the type of a node from the types of its children, or an error with the
// expected and the actual type and the failed size equation. One bottom-up pass suffices, since functions appear only
// as arguments.
#include "ir/language/typing.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/evaluate/interpreter/host_call.h"
#include "ir/operators/operators.h"

namespace hoist {

namespace {

Diagnostic fault(const Spec& s, const std::string& what, const std::string& hint = {}) {
  return {"", fmt::format("{}: {}", s.pattern == Pattern::call ? row(s.function).name : row(s.pattern).name, what),
          hint};
}

Diagnostic expected(const Spec& s, const std::string& what, Type found) {
  return fault(s, fmt::format("expected {}, found {}", what, text(found)));
}

bool is_number(Type t) { return t->is_scalar() && t->scalar != Scalar::boolean && t->scalar != Scalar::string; }
bool is_variable(Type t) { return t->kind == TypeNode::variable_kind; }

bool is_function(Expr e, size_t arity) { return e->pattern == Pattern::function && e->parameters.size() == arity; }

// The number of arguments of a pattern, and the arity of each leading one that is a function.
struct Arguments {
  size_t least, most;
  std::vector<int> functions;
};

Arguments arguments_of(const Spec& s) {
  switch (s.pattern) {
    case Pattern::parameter:
    case Pattern::bound:
    case Pattern::literal:
    case Pattern::constant:
    case Pattern::iota:
      return {0, 0, {}};
    case Pattern::map:
    case Pattern::iterate:
      return {2, 2, {1}};
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::scan:
      return {3, 3, {2}};
    case Pattern::let:
      return {2, 2, {0, 1}};
    case Pattern::select:
    case Pattern::scatter:
      return {3, 3, {}};
    case Pattern::index:
      return {2, 2, {}};
    case Pattern::zip:
      return {2, 64, {}};
    case Pattern::tuple:  // the results of a call
      return {2, 4096, {}};
    case Pattern::concat:
      return {1, 4096, {}};
    case Pattern::pad:
      return s.border == Border::value ? Arguments{2, 2, {}} : Arguments{1, 1, {}};
    case Pattern::operator_call:
      return {0, 4096, {}};
    case Pattern::call:
      return {static_cast<size_t>(row(s.function).arity), static_cast<size_t>(row(s.function).arity), {}};
    case Pattern::host:
      return {1, 64, {}};
    case Pattern::meta:
      return {0, 64, {}};
    default:
      return {1, 1, {}};
  }
}

size_t size_count(Pattern pattern) {
  switch (pattern) {
    case Pattern::iota:
    case Pattern::iterate:
    case Pattern::split:
    case Pattern::tile:
    case Pattern::untile:
    case Pattern::repeat:
      return 1;
    case Pattern::pad:
    case Pattern::slice:
      return 2;
    case Pattern::slide:
      return 3;
    default:
      return 0;
  }
}

// Checks the number of children, and that functions appear exactly at the function positions.
Result<Nothing> check_children(const Spec& s) {
  const Arguments shape = arguments_of(s);
  if (s.children.size() < shape.least || s.children.size() > shape.most) {
    const bool few = s.children.size() < shape.least;
    return fault(s, fmt::format("expected {} arguments, found {}",
                                shape.least == shape.most ? std::to_string(shape.least)
                                : few                     ? fmt::format("at least {}", shape.least)
                                                          : fmt::format("at most {}", shape.most),
                                s.children.size()));
  }
  for (size_t i = 0; i < s.children.size(); ++i) {
    int arity = i < shape.functions.size() ? shape.functions[i] : 0;
    if (arity > 0 && !is_function(s.children[i], static_cast<size_t>(arity))) {
      return fault(
          s, fmt::format("argument {} has to be a function of {} parameter{}", i + 1, arity, arity > 1 ? "s" : ""));
    }
    if (arity == 0 && s.children[i]->pattern == Pattern::function) {
      return fault(s, fmt::format("argument {} must not be a function", i + 1));
    }
  }
  const size_t sizes = size_count(s.pattern);
  if (s.sizes.size() != sizes) return fault(s, fmt::format("expected {} sizes, found {}", sizes, s.sizes.size()));
  return Nothing{};
}

Result<Type> type_of_call(const Spec& s) {
  const FunctionRow& f = row(s.function);
  Type t = s.children[0]->type;
  for (Expr c : s.children) {
    if (c->type != t) {
      return fault(s, fmt::format("arguments have different types {} and {}", text(t), text(c->type)),
                   "cast one of them");
    }
  }
  if (!is_variable(t)) {
    if (!t->is_scalar()) return expected(s, "scalars", t);
    const bool compares = s.function == Function::equal || s.function == Function::not_equal;
    const bool fits = t->scalar == Scalar::string    ? compares
                      : is_float(t->scalar)          ? f.on_float
                      : t->scalar == Scalar::boolean ? f.on_boolean
                                                     : f.on_integer;
    if (!fits) return fault(s, fmt::format("not defined on {}", text(t)));
  }
  return f.result == ResultKind::boolean ? scalar_type(Scalar::boolean) : t;
}

Result<Type> type_of_reinterpret(const Spec& s) {
  Type from = s.children[0]->type;
  if (!from->is_scalar() || !s.type->is_scalar()) return expected(s, "scalars of known types", from);
  auto takes = [](Scalar scalar) {
    return scalar != Scalar::boolean && scalar != Scalar::string && row(scalar).bits >= 8;
  };
  if (!takes(from->scalar) || !takes(s.type->scalar) || row(from->scalar).bits != row(s.type->scalar).bits) {
    return fault(s, fmt::format("{} does not have the bits of {}", text(from), text(s.type)),
                 "both need the same width of 8 bits or more");
  }
  return s.type;
}

Result<Type> type_of_reduction(const Spec& s) {
  Expr f = s.children[0];
  Type state = s.children[1]->type, array = s.children[2]->type;
  if (!array->is_array()) return expected(s, "an array", array);
  if (f->parameters[0] != state || f->children[0]->type != state) {
    return fault(s, fmt::format("the function has argument {} and result {}, but the accumulator is {}",
                                text(f->parameters[0]), text(f->children[0]->type), text(state)));
  }
  if (f->parameters[1] != array->element) {
    return fault(s, fmt::format("the function takes elements of type {}, the array has {}", text(f->parameters[1]),
                                text(array->element)));
  }
  if (s.pattern == Pattern::reduce && state != array->element) {
    return fault(s, fmt::format("accumulator {} and elements {} differ", text(state), text(array->element)),
                 "use fold");
  }
  return s.pattern == Pattern::scan ? array_type(array->size, state) : state;
}

Result<Type> type_of_operator_call(const Spec& s) {
  HOIST_CHECK(s.operation != nullptr && s.operation->operands.size() == s.children.size(),
              "an operator call needs one operand for each parameter");
  HOIST_TRY(Expr definition, inline_call(s));
  return definition->type;
}

// The types of whole arrays have to be accepted by the host function.
Result<Type> type_of_host(const Spec& s) {
  std::vector<Type> arrays;
  for (Expr c : s.children) arrays.push_back(c->type);
  HOIST_CHECK(s.type != nullptr, "a function on the host needs a type");
  const std::string problem = host_call_problem(s.name, arrays, s.type);
  if (!problem.empty()) return fault(s, problem);
  return s.type;
}

// True if the size is provably below `least`; a symbolic size fails only if its range excludes larger values.
bool below(const Nat& n, int64_t least) { return at_most(Nat(least), n) == Answer::no; }

Result<Type> type_of_transpose(const Spec& s) {
  Type a = s.children[0]->type;
  std::vector<Nat> sizes;
  Type leaf = a;
  for (size_t i = 0; i < s.integers.size(); ++i, leaf = leaf->element) {
    if (!leaf->is_array()) return expected(s, fmt::format("an array of {} dimensions", s.integers.size()), a);
    sizes.push_back(leaf->size);
  }
  std::vector<int64_t> sorted = s.integers;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return fault(s, "not a permutation of its dimensions");
  }
  std::vector<Nat> permuted;
  for (int64_t p : s.integers) permuted.push_back(sizes[static_cast<size_t>(p)]);
  return array_type(permuted, leaf);
}

Result<Type> type_of_pad(const Spec& s) {
  Type a = s.children[0]->type;
  const Nat& n = a->size;
  if (below(s.sizes[0], 0) || below(s.sizes[1], 0)) {
    return fault(s, fmt::format("negative amounts {} and {}", s.sizes[0].text(), s.sizes[1].text()), "use slice");
  }
  if (s.border == Border::value && s.children[1]->type != a->element) {
    return fault(s, fmt::format("the value has type {}, the elements {}", text(s.children[1]->type), text(a->element)));
  }
  if (s.border == Border::mirror &&
      (at_most(s.sizes[0] + 1, n) == Answer::no || at_most(s.sizes[1] + 1, n) == Answer::no)) {
    return fault(s, fmt::format("mirror amounts {} and {} need more than {} elements", s.sizes[0].text(),
                                s.sizes[1].text(), n.text()));
  }
  return array_type(s.sizes[0] + n + s.sizes[1], a->element);
}

Result<Type> type_of_view(const Spec& s) {
  Type a = s.children[0]->type;
  if (s.pattern == Pattern::repeat) {
    if (below(s.sizes[0], 0)) return fault(s, "negative size " + s.sizes[0].text());
    return array_type(s.sizes[0], a);
  }
  if (!a->is_array()) return expected(s, "an array", a);
  const Nat& n = a->size;
  switch (s.pattern) {
    case Pattern::split: {
      const Nat& k = s.sizes[0];
      if (below(k, 1)) return fault(s, "rows of " + k.text());
      if (divides(k, n) != Answer::yes) {
        return fault(s, fmt::format("{} does not divide {}", k.text(), n.text()),
                     "pad to a multiple first, or use tile");
      }
      return array_type(floor_division(n, k), array_type(k, a->element));
    }
    case Pattern::join:
      if (!a->element->is_array()) return expected(s, "an array of arrays", a);
      return array_type(n * a->element->size, a->element->element);
    case Pattern::transpose:
      return type_of_transpose(s);
    case Pattern::slide: {
      const Nat &size = s.sizes[0], &step = s.sizes[1], &dilation = s.sizes[2];
      if (below(size, 1) || below(step, 1) || below(dilation, 1))
        return fault(s, "size, step and dilation have to be at least 1");
      Nat span = (size - 1) * dilation + 1;
      if (at_most(span, n) == Answer::no) {
        return fault(s, fmt::format("a window of {} elements does not fit into {}", span.text(), n.text()));
      }
      return array_type(floor_division(n - span, step) + 1, array_type(size, a->element));
    }
    case Pattern::pad:
      return type_of_pad(s);
    case Pattern::slice: {
      const Nat &start = s.sizes[0], &count = s.sizes[1];
      if (s.integers.size() != 1 || s.integers[0] == 0) return fault(s, "the step must not be 0");
      if (below(count, 0)) return fault(s, "negative count " + count.text());
      if (count != Nat(0)) {
        Nat last = start + (count - 1) * Nat(s.integers[0]);
        for (const Nat& end : {start, last}) {
          if (at_most(Nat(0), end) == Answer::no || at_most(end + 1, n) == Answer::no) {
            return fault(s, fmt::format("element {} lies outside 0..{}", end.text(), (n - 1).text()));
          }
        }
      }
      return array_type(count, a->element);
    }
    case Pattern::tile: {
      const Nat& k = s.sizes[0];
      if (below(k, 1) || at_most(k, n) == Answer::no)
        return fault(s, fmt::format("rows of {} from {} elements", k.text(), n.text()));
      return array_type(ceiling_division(n, k), array_type(k, a->element));
    }
    case Pattern::untile: {
      const Nat& whole = s.sizes[0];
      if (!a->element->is_array()) return expected(s, "an array of arrays", a);
      if (below(a->element->size, 1)) return fault(s, "rows of " + a->element->size.text());
      if (ceiling_division(whole, a->element->size) != n) {
        return fault(
            s, fmt::format("{} rows of {} do not tile {} elements", n.text(), a->element->size.text(), whole.text()));
      }
      return array_type(whole, a->element->element);
    }
    default:
      HOIST_CHECK(false, "not a view of one array");
      std::abort();
  }
}

Result<Type> type_of_scatter(const Spec& s) {
  Type p = s.children[0]->type, u = s.children[1]->type, b = s.children[2]->type;
  if (!p->is_array() || !u->is_array() || !b->is_array()) return expected(s, "three arrays", p);
  if (p->size != u->size) return fault(s, fmt::format("sizes differ: {} = {} fails", p->size.text(), u->size.text()));
  if (u->element != b->element)
    return fault(s, fmt::format("elements differ: {} and {}", text(u->element), text(b->element)));
  return b;
}

Result<Type> type_of_map(const Spec& s) {
  Type a = s.children[1]->type;
  if (!a->is_array()) return expected(s, "an array", a);
  if (s.children[0]->parameters[0] != a->element) {
    return fault(s, fmt::format("the function takes {}, the elements are {}", text(s.children[0]->parameters[0]),
                                text(a->element)));
  }
  if (s.dimension < 0 || s.dimension > 2) return fault(s, "dimensions are 0, 1 and 2");
  return array_type(a->size, s.children[0]->type);
}

Result<Type> type_of_get(const Spec& s) {
  Type t = s.children[0]->type;
  if (!t->is_tuple()) return expected(s, "a tuple", t);
  if (s.integers.size() != 1 || s.integers[0] < 0 || s.integers[0] >= static_cast<int64_t>(t->parts.size())) {
    return fault(s, fmt::format("no such component of {}", text(t)));
  }
  return t->parts[static_cast<size_t>(s.integers[0])];
}

Result<Type> type_of_select(const Spec& s) {
  if (!s.integers.empty() && s.integers != std::vector<int64_t>{1})
    return fault(s, "a select has no attribute but 1, for rarely");
  if (s.children[0]->type != scalar_type(Scalar::boolean)) return expected(s, "a bool condition", s.children[0]->type);
  if (s.children[1]->type != s.children[2]->type)
    return fault(s, fmt::format("branches differ: {} and {}", text(s.children[1]->type), text(s.children[2]->type)));
  return s.children[1]->type;
}

Result<Type> type_of_arrays(const Spec& s) {
  std::vector<Type> elements;
  Nat total = 0;
  for (Expr c : s.children) {
    if (!c->type->is_array()) return expected(s, "arrays", c->type);
    elements.push_back(c->type->element);
    total = total + c->type->size;
  }
  Type first = s.children[0]->type;
  for (Expr c : s.children) {
    if (s.pattern == Pattern::zip && c->type->size != first->size) {
      return fault(s, fmt::format("sizes differ: {} = {} fails", first->size.text(), c->type->size.text()));
    }
    if (s.pattern == Pattern::concat && c->type->element != first->element) {
      return fault(s, fmt::format("elements differ: {} and {}", text(first->element), text(c->type->element)));
    }
  }
  return s.pattern == Pattern::zip ? array_type(first->size, tuple_type(elements)) : array_type(total, first->element);
}

}  // namespace

Result<Type> infer_type(const Spec& s) {
  HOIST_TRY_VOID(check_children(s));
  auto type_at = [&](size_t i) { return s.children[i]->type; };
  switch (s.pattern) {
    case Pattern::parameter:
    case Pattern::bound:
    case Pattern::literal:
    case Pattern::iota:
    case Pattern::meta:
      HOIST_CHECK(s.type != nullptr, "a leaf needs a type");
      if (s.pattern == Pattern::literal && !s.type->is_scalar()) return expected(s, "a scalar type", s.type);
      if (s.pattern == Pattern::iota) {
        if (below(s.sizes[0], 0)) return fault(s, "negative size " + s.sizes[0].text());
        return array_type(s.sizes[0], s.type->is_array() ? s.type->element : s.type);
      }
      return s.type;
    case Pattern::constant: {
      Type t = scalar_type(s.constant.scalar());
      for (size_t i = s.constant.shape().size(); i-- > 0;) t = array_type(s.constant.shape()[i], t);
      return t;
    }
    case Pattern::function:
      return type_at(0);
    case Pattern::call:
      return type_of_call(s);
    case Pattern::select:
      return type_of_select(s);
    case Pattern::cast:
      if (!is_variable(type_at(0)) && !type_at(0)->is_scalar()) return expected(s, "a scalar", type_at(0));
      if (type_at(0) != s.type && (type_at(0) == scalar_type(Scalar::string) || s.type == scalar_type(Scalar::string)))
        return fault(s, fmt::format("{} is not a number of {}", text(type_at(0)), text(s.type)));
      return s.type;
    case Pattern::reinterpret:
      return type_of_reinterpret(s);
    case Pattern::let: {
      Expr f = s.children[1];
      if (f->parameters[0] != type_at(0)) {
        return fault(s, fmt::format("bound as {}, but the value is {}", text(f->parameters[0]), text(type_at(0))));
      }
      return f->type;
    }
    case Pattern::tuple: {
      std::vector<Type> parts;
      for (Expr c : s.children) parts.push_back(c->type);
      return tuple_type(parts);
    }
    case Pattern::get:
      return type_of_get(s);
    case Pattern::identity:
    case Pattern::materialise:
      return type_at(0);
    case Pattern::operator_call:
      return type_of_operator_call(s);
    case Pattern::host:
      return type_of_host(s);
    case Pattern::map:
      return type_of_map(s);
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::scan:
      return type_of_reduction(s);
    case Pattern::iterate:
      if (s.children[0]->parameters[0] != type_at(1) || s.children[0]->type != type_at(1)) {
        return fault(s, fmt::format("the function has to keep the type {}", text(type_at(1))));
      }
      return type_at(1);
    case Pattern::zip:
    case Pattern::concat:
      return type_of_arrays(s);
    case Pattern::index:
      if (!is_variable(type_at(0)) && (!is_number(type_at(0)) || is_float(type_at(0)->scalar)))
        return expected(s, "an integer position", type_at(0));
      if (!type_at(1)->is_array()) return expected(s, "an array", type_at(1));
      return type_at(1)->element;
    case Pattern::scatter:
      return type_of_scatter(s);
    default:
      return type_of_view(s);
  }
}

}  // namespace hoist
