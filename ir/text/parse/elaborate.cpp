#include "ir/text/parse/elaborate.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/strings.h"

namespace hoist {

Type leaf_scalar(Type type) {
  if (type == nullptr) return nullptr;
  if (type->is_array()) return leaf_scalar(type->element);
  if (!type->is_tuple()) return type;
  Type found = leaf_scalar(type->parts[0]);
  for (Type part : type->parts) {
    if (leaf_scalar(part) != found) return nullptr;
  }
  return found;
}

bool is_bare(Syn s) {
  switch (s->kind) {
    case Syntax::number:
      return s->suffix.empty();
    case Syntax::prefix:
    case Syntax::infix:
      break;
    case Syntax::application:
      if (s->children.empty() || (s->text != "fill" && !function_named(s->text))) return false;
      break;
    default:
      return false;
  }
  return std::all_of(s->children.begin(), s->children.end(), is_bare);
}

Elaborator::Weight Elaborator::weight(Type type) {
  if (auto found = weights_.find(type); found != weights_.end()) return found->second;
  Weight w{1, 1};
  if (type->is_array()) {
    Weight element = weight(type->element);
    w = {std::max(1.0, coefficient_bound(type->size)) * element.elements, element.nodes + 1};
  }
  for (Type part : type->parts) {
    Weight p = weight(part);
    w = {std::max(w.elements, p.elements), w.nodes + p.nodes};
  }
  weights_.emplace(type, w);
  return w;
}

// Sizes and types of untrusted input are bounded: the arithmetic of sizes must not overflow, and messages print them.
Result<Expr> Elaborator::finish(Spec spec, Syn s) {
  const bool from_untrusted = vocabulary == nullptr;  // operators' definitions have their own checks
  for (Nat& n : spec.sizes) {
    if (coefficient_bound(n) > (from_untrusted ? 0x1p31 : 0x1p40))
      return fault_at(s->token, fmt::format("the size {} is beyond 2^{}", n.text(), from_untrusted ? 31 : 40));
  }
  auto made = make(std::move(spec));
  if (!made.ok()) {
    Diagnostics errors = made.errors();
    for (Diagnostic& d : errors) {
      if (d.where.empty()) d.where = fmt::format("{}:{}", s->token.line, s->token.column);
    }
    return errors;
  }
  Expr e = *made;
  Weight w = weight(e->type);
  if (w.elements > most_array_elements) return fault_at(s->token, "an array of more than 2^48 elements");
  if (w.nodes > 4096) return fault_at(s->token, "a type of more than 4096 parts");
  int depth = 1;
  for (Expr c : e->children) {
    auto found = depths_.find(c);
    depth = std::max(depth, 1 + (found == depths_.end() ? 1 : found->second));
  }
  depths_.emplace(e, depth);
  if (depth > depth_limit) return fault_at(s->token, fmt::format("a term of more than {} levels", depth_limit));
  return e;
}

Result<Expr> Elaborator::number(Syn s, Type type) {
  if (!s->suffix.empty()) type = scalar_type(*scalar_named(s->suffix));
  if (type == nullptr) {
    return fault_at(s->token, "the type of the number " + s->text + " is not known here",
                    "write it with its type, such as " + s->text + "f32");
  }
  if (type->kind == TypeNode::variable_kind && numbers_as_metas) return meta("#" + s->text, {}, type);
  if (!type->is_scalar()) {
    return fault_at(s->token, fmt::format("the number {} cannot have the type {}", s->text, text(type)),
                    "write it with its type");
  }
  auto bits = number_bits(type->scalar, s->text);
  if (!bits) return fault_at(s->token, fmt::format("{} is not a value of {}", s->text, text(type)));
  Spec spec;
  spec.type = type;
  spec.bits = *bits;
  return finish(std::move(spec), s);
}

Result<Expr> Elaborator::bits(Syn s) {
  auto scalar = scalar_named(s->suffix);
  if (!scalar) return fault_at(s->token, "a type comes before #, such as f32#7fc00000");
  bool hexadecimal = !s->text.empty() && s->text.find_first_not_of("0123456789abcdef") == std::string::npos;
  int width = row(*scalar).bits;
  if (!hexadecimal || static_cast<int>(s->text.size()) * 4 > std::max(width, 4)) {
    return fault_at(s->token,
                    fmt::format("expected at most {} hexadecimal digits after {}#", std::max(width, 4) / 4, s->suffix));
  }
  Spec spec;
  spec.type = scalar_type(*scalar);
  spec.bits = std::stoull(s->text, nullptr, 16);
  if (row(*scalar).is_signed && !is_float(*scalar)) {
    spec.bits = static_cast<uint64_t>(static_cast<int64_t>(spec.bits << (64 - width)) >> (64 - width));
  }
  if (*scalar == Scalar::boolean) spec.bits = spec.bits != 0;
  return finish(std::move(spec), s);
}

Result<Expr> Elaborator::let(Syn s, Type hint) {
  HOIST_TRY(Expr bound_value, value(s->children[0], nullptr));
  size_t entries = scope_.entries.size();
  HOIST_TRY_VOID(bind(s->binders[0], bound_value->type, scope_.depth, {}, s));
  ++scope_.depth;
  auto body = value(s->children[1], hint);
  --scope_.depth;
  scope_.entries.resize(entries);
  if (!body.ok()) return body;
  Spec f;
  f.pattern = Pattern::function;
  f.children = {*body};
  f.parameters = {bound_value->type};
  HOIST_TRY(Expr made, finish(std::move(f), s));
  Spec spec;
  spec.pattern = Pattern::let;
  spec.children = {bound_value, made};
  return finish(std::move(spec), s);
}

Result<Nothing> Elaborator::deeper(Syn s) {
  constexpr ptrdiff_t stack_limit = ptrdiff_t{4} << 20;  // half of the default stack of a thread
  ptrdiff_t used = stack_ - static_cast<const char*>(__builtin_frame_address(0));
  if (++recursion_ > depth_limit || used > stack_limit || used < -stack_limit) {
    return fault_at(s->token, fmt::format("definitions and terms nested deeper than {}", recursion_ - 1));
  }
  return Nothing{};
}

Result<Expr> Elaborator::operation(Syn s) {
  Spec spec;
  for (Syn c : s->children) {
    HOIST_TRY(Expr operand, value(c, nullptr));
    spec.children.push_back(operand);
  }
  spec.pattern = Pattern::operator_call;
  OperatorCall call = s->call;
  if (version) call.version = *version;
  for (const auto& [key, name] : s->attribute_names) {
    auto place = attributes.find(name);
    if (place == attributes.end()) return fault_at(s->token, "the attribute name " + name + " stands for nothing");
    call.attributes[key] = place->second;
  }
  if (!s->rest.empty()) {
    auto place = rests.find(s->rest);
    if (place == rests.end()) return fault_at(s->token, "*" + s->rest + " stands for nothing");
    for (const auto& [key, value] : place->second) call.attributes.emplace(key, value);
  }
  spec.operation = std::make_shared<const OperatorCall>(std::move(call));
  return finish(std::move(spec), s);
}

Result<Expr> Elaborator::value(Syn s, Type hint) {
  Nest nest{recursion_};
  HOIST_TRY_VOID(deeper(s));
  if (auto found = known(s)) return known_literal(*found, s, hint);
  Spec spec;
  switch (s->kind) {
    case Syntax::application:
      return named(s, {}, hint);
    case Syntax::number:
      return number(s, hint);
    case Syntax::bits:
      return bits(s);
    case Syntax::parameter:
      spec.pattern = Pattern::parameter;
      spec.name = s->text;
      spec.type = s->type;
      return finish(std::move(spec), s);
    case Syntax::constant:
      spec.pattern = Pattern::constant;
      spec.constant = s->tensor;
      return finish(std::move(spec), s);
    case Syntax::tuple: {
      spec.pattern = Pattern::tuple;
      for (Syn c : s->children) {
        HOIST_TRY(Expr part, value(c, hint));
        spec.children.push_back(part);
      }
      return finish(std::move(spec), s);
    }
    case Syntax::operation:
      return operation(s);
    case Syntax::component: {
      HOIST_TRY(Expr x, value(s->children[0], nullptr));
      spec.pattern = Pattern::get;
      spec.children = {x};
      spec.integers = s->integers;
      return finish(std::move(spec), s);
    }
    case Syntax::prefix:
      return scalar_call(s->function, s, {{s->children[0], nullptr}}, hint);
    case Syntax::infix:
      return scalar_call(s->function, s, {{s->children[0], nullptr}, {s->children[1], nullptr}}, hint);
    case Syntax::pipe: {
      HOIST_TRY(Expr x, value(s->children[0], nullptr));
      return applied(s->children[1], {x}, hint);
    }
    case Syntax::let:
      return let(s, hint);
    case Syntax::where: {
      const size_t entries = declare_definitions(s);
      auto body = value(s->children[0], hint);
      scope_.entries.resize(entries);
      return body;
    }
    case Syntax::string: {
      const auto word = word_of_string(s->text);
      if (!word.ok()) return fault_at(s->token, word.errors()[0].what, word.errors()[0].hint);
      spec.type = scalar_type(Scalar::string);
      spec.bits = *word;
      return finish(std::move(spec), s);
    }
    case Syntax::section:
    case Syntax::lambda:
    case Syntax::compose:
      break;
  }
  return fault_at(s->token, "expected a value, found a function");
}

Result<Expr> Elaborator::argument(const Argument& a, Type hint) {
  return a.made != nullptr ? Result<Expr>(a.made) : value(a.syntax, hint);
}

// Makes terms that must have one type: terms of known type first, then untyped literals.
Result<std::vector<Expr>> Elaborator::group(const std::vector<Argument>& arguments, Type hint) {
  std::vector<Expr> made(arguments.size(), nullptr);
  Type known = nullptr;
  for (bool bare : {false, true}) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (made[i] != nullptr || (arguments[i].made == nullptr && this->bare(arguments[i].syntax)) != bare) continue;
      HOIST_TRY(made[i], argument(arguments[i], known != nullptr ? known : hint));
      if (known == nullptr) known = leaf_scalar(made[i]->type);
    }
  }
  return made;
}

Result<Expr> Elaborator::scalar_call(Function f, Syn s, const std::vector<Argument>& arguments, Type hint) {
  if (row(f).result == ResultKind::boolean) hint = nullptr;  // does not determine the operands' type
  Spec spec;
  spec.pattern = Pattern::call;
  spec.function = f;
  HOIST_TRY(spec.children, group(arguments, hint));
  auto arity = static_cast<size_t>(row(f).arity);
  if (spec.children.size() == 1 && arity > 1 && spec.children[0]->type->is_tuple() &&
      spec.children[0]->type->parts.size() == arity) {
    Expr parts = spec.children[0];
    spec.children.clear();
    for (size_t i = 0; i < arity; ++i) spec.children.push_back(get(static_cast<int64_t>(i), parts));
  }
  return finish(std::move(spec), s);
}

Result<Expr> Elaborator::applied(Syn f, const std::vector<Expr>& arguments, Type hint) {
  Nest nest{recursion_};
  HOIST_TRY_VOID(deeper(f));
  switch (f->kind) {
    case Syntax::application:
      return named(f, arguments, hint);
    case Syntax::lambda: {
      std::vector<Type> types;
      for (Expr a : arguments) types.push_back(a->type);
      HOIST_TRY(Expr made, function(f, types, hint));
      return hoist::apply(made, arguments);
    }
    case Syntax::compose: {
      HOIST_TRY(Expr inner, applied(f->children[0], arguments, nullptr));
      return applied(f->children[1], {inner}, hint);
    }
    case Syntax::section: {
      std::vector<Argument> all;
      for (Expr a : arguments) all.push_back({nullptr, a});
      for (Syn c : f->children) all.push_back({c, nullptr});
      return scalar_call(f->function, f, all, hint);
    }
    default:
      return fault_at(f->token, "expected a function, found a value");
  }
}

}  // namespace hoist
