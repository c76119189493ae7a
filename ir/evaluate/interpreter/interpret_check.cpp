#include "ir/evaluate/interpreter/interpret_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace hoist {
namespace {

Result<Nothing> check_type(Type type) {
  for (; type->is_array(); type = type->element) {
    if (!type->size.is_constant()) {
      return Diagnostic{"", fmt::format("the size {} has no value", type->size.text()),
                        "give the named sizes numbers first"};
    }
  }
  for (Type part : type->parts) HOIST_TRY_VOID(check_type(part));
  if (type->kind == TypeNode::variable_kind)
    return Diagnostic{"", "a type variable " + type->name + " has no value", ""};
  return Nothing{};
}

Result<Nothing> check_parameter(Expr e, const Bindings* bindings) {
  if (!leaf_of(e->type)->is_scalar()) {
    return Diagnostic{"%" + e->name, "a parameter of type " + text(e->type) + " cannot be bound to a tensor", ""};
  }
  if (bindings == nullptr) return Nothing{};
  auto found = bindings->find(e->name);
  if (found == bindings->end()) return Diagnostic{"%" + e->name, "the parameter has no value", "bind it to a tensor"};
  const Tensor& tensor = found->second;
  if (tensor.scalar() != leaf_of(e->type)->scalar || tensor.shape() != shape_of(e->type)) {
    return Diagnostic{"%" + e->name,
                      fmt::format("expected {}, found [{}]{}", text(e->type), fmt::join(tensor.shape(), "]["),
                                  row(tensor.scalar()).name),
                      ""};
  }
  return Nothing{};
}

}  // namespace

std::optional<int64_t> scalar_count_of(Type type) {
  if (type->is_scalar()) return 1;
  int64_t count = 0;
  if (type->is_array()) {
    auto element = scalar_count_of(type->element);
    if (!element || __builtin_mul_overflow(*element, type->size.value(), &count)) return std::nullopt;
    return count;
  }
  for (Type part : type->parts) {
    auto more = scalar_count_of(part);
    if (!more || __builtin_add_overflow(count, *more, &count)) return std::nullopt;
  }
  return count;
}

Result<Nothing> check_computable(Expr root, const Bindings* bindings) {
  if (root->pattern == Pattern::function) return Diagnostic{"", "a function has no value", "apply it to arguments"};
  if (root->free > 0) return Diagnostic{"", "the term is not closed", "bind its variables"};
  if (root->has_meta) return Diagnostic{"", "the term holds a metavariable", "instantiate the rule first"};
  if (!leaf_of(root->type)->is_scalar()) {
    return Diagnostic{"", "expected an array of scalars as the result, found " + text(root->type),
                      "take one component"};
  }
  std::unordered_set<Expr> seen = {root};
  std::vector<Expr> waiting = {root};  // an explicit stack: terms may nest deeply
  while (!waiting.empty()) {
    Expr e = waiting.back();
    waiting.pop_back();
    HOIST_TRY_VOID(check_type(e->type));
    for (const Nat& size : e->sizes) {
      if (!size.is_constant()) {
        return Diagnostic{"", fmt::format("{}: the size {} has no value", row(e->pattern).name, size.text()), ""};
      }
    }
    if (e->pattern == Pattern::parameter) HOIST_TRY_VOID(check_parameter(e, bindings));
    auto count = scalar_count_of(e->type);
    if (!count || *count > (int64_t{1} << 60)) {
      return Diagnostic{"", fmt::format("{}: too many elements in {}", row(e->pattern).name, text(e->type)), ""};
    }
    for (Expr c : e->children) {
      if (seen.insert(c).second) waiting.push_back(c);
    }
  }
  return Nothing{};
}

Result<Nothing> check_whole_computable(Expr root, const Bindings& bindings) {
  HOIST_TRY_VOID(check_computable(root, &bindings));
  if (scalar_count_of(root->type).value() > memory_limit / 8) {
    return Diagnostic{"", fmt::format("the result {} needs more than {} GiB", text(root->type), memory_limit >> 30),
                      ""};
  }
  return Nothing{};
}

}  // namespace hoist
