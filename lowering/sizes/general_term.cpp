#include "lowering/sizes/general_term.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/evaluate/evaluate.h"
#include "ir/program/sizes.h"
#include "ir/text/text.h"
#include "lowering/strategies/schedule_script.h"

namespace hoist {
namespace {

template <typename Value>
bool all_equal(const std::vector<Value>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

// Everything of a node but its children, sizes and types.
bool same_kind(Expr a, Expr b) {
  return a->pattern == b->pattern && a->children.size() == b->children.size() && a->sizes.size() == b->sizes.size() &&
         a->integers == b->integers && a->parameters.size() == b->parameters.size() && a->function == b->function &&
         a->mode == b->mode && a->dimension == b->dimension && a->memory == b->memory && a->border == b->border &&
         a->name == b->name && a->bits == b->bits && a->operation == b->operation &&
         a->constant.shape() == b->constant.shape() && std::ranges::equal(a->constant.bytes(), b->constant.bytes());
}

// The size as a value: the last of the integers 0, 1, ..., n.
Expr size_as_value(const Nat& n) {
  return index(literal_integer(Scalar::i32, 0), slice(n, 1, iota(n + 1, Scalar::i32)));
}

double literal_double(Expr literal) {
  const auto value = interpret(literal, {});
  HOIST_CHECK(value.ok(), "a literal has a value");
  return is_float(value->scalar()) ? value->float_at(0) : static_cast<double>(value->integer_at(0));
}

}  // namespace

Result<Nat> GeneralTerms::size(const std::vector<int64_t>& numbers) {
  if (auto fit = fit_.of(numbers)) return *fit;
  return Diagnostic{"",
                    fmt::format("the numbers {} at {} = {} have no known form", fmt::join(numbers, ", "), fit_.name(),
                                fmt::join(fit_.probes(), ", ")),
                    ""};
}

Result<Type> GeneralTerms::type(const std::vector<Type>& types) {
  if (all_equal(types)) return types.front();
  const auto differ = [&] {
    return Diagnostic{
        "", fmt::format("the types {} and {} differ in more than numbers", text(types.front()), text(types.back())),
        ""};
  };
  std::vector<std::vector<Type>> parts(types.front()->is_array() ? 1 : types.front()->parts.size());
  std::vector<int64_t> extents;
  for (Type each : types) {
    if (each->is_array() != types.front()->is_array() || each->is_tuple() != types.front()->is_tuple() ||
        each->parts.size() != types.front()->parts.size() || each->is_scalar())
      return differ();
    if (each->is_array()) {
      extents.push_back(each->size.value());
      parts[0].push_back(each->element);
    }
    for (size_t i = 0; i < each->parts.size(); ++i) parts[i].push_back(each->parts[i]);
  }
  std::vector<Type> made;
  for (const std::vector<Type>& part : parts) {
    HOIST_TRY(made.emplace_back(), type(part));
  }
  if (!types.front()->is_array()) return tuple_type(made);
  HOIST_TRY(const Nat extent, size(extents));
  return array_type(extent, made[0]);
}

Result<Expr> GeneralTerms::node(const std::vector<Expr>& terms) {
  if (all_equal(terms)) return terms.front();
  if (const auto known = made_.find(terms); known != made_.end()) return known->second;
  const Expr first = terms.front();
  if (first->pattern == Pattern::literal) {
    if (const auto number = literal(terms)) return made_[terms] = *number;
  }
  for (Expr other : terms) {
    if (same_kind(first, other)) continue;
    return Diagnostic{"",
                      fmt::format("the kernels have other forms at different sizes: {} and {}", pattern_text(first),
                                  pattern_text(other)),
                      ""};
  }
  Spec spec = *first;
  const auto each = [&](const auto& part) {
    std::vector<std::decay_t<decltype(part(first))>> out;
    for (Expr term : terms) out.push_back(part(term));
    return out;
  };
  for (size_t i = 0; i < spec.sizes.size(); ++i) {
    HOIST_TRY(spec.sizes[i], size(each([&](Expr e) { return e->sizes[i].value(); })));
  }
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    HOIST_TRY(spec.parameters[i], type(each([&](Expr e) { return e->parameters[i]; })));
  }
  if (spec.type != nullptr && spec.children.empty()) {
    HOIST_TRY(spec.type, type(each([](Expr e) { return e->type; })));
  }
  for (size_t i = 0; i < spec.children.size(); ++i) {
    HOIST_TRY(spec.children[i], node(each([&](Expr e) { return e->children[i]; })));
  }
  HOIST_TRY(const Expr made, make(std::move(spec)));
  return made_[terms] = made;
}

// A parameter takes the place of the literal, so that instances can be compared with the terms.
std::optional<Expr> GeneralTerms::literal(const std::vector<Expr>& terms) {
  const Type type = terms.front()->type;
  for (Expr term : terms) {
    if (term->pattern != Pattern::literal || term->type != type) return std::nullopt;
  }
  if (type->scalar == Scalar::boolean) return std::nullopt;
  for (const bool reciprocal : {false, true}) {
    std::vector<int64_t> numbers;
    for (Expr term : terms) {
      const double value = literal_double(term);
      const double number = std::round(reciprocal ? 1 / value : value);
      if (!(std::abs(number) < 1e9)) return std::nullopt;
      numbers.push_back(static_cast<int64_t>(number));
    }
    const auto size = fit_.of(numbers);
    if (!size) continue;
    const Expr number = cast(type->scalar, size_as_value(*size));
    const Expr value = reciprocal ? call(Function::divide, {hoist::literal(type->scalar, 1), number}) : number;
    bool is_equal = true;
    for (size_t i = 0; i < terms.size() && is_equal; ++i) {
      const auto instance = with_sizes(value, {{fit_.name(), fit_.probes()[i]}});
      const auto made = instance ? interpret(*instance, {}) : Result<Tensor>(instance.errors());
      const auto expected = interpret(terms[i], {});
      is_equal = made.ok() && expected.ok() && *made == *expected;
    }
    if (!is_equal) continue;
    const Expr place = parameter(fmt::format("\1{}{}", fit_.name(), literals_.size()), type);
    literals_[place->name] = {terms, value};
    return place;
  }
  return std::nullopt;
}

Result<Expr> GeneralTerms::term(const std::vector<Expr>& terms) {
  HOIST_TRY(const Expr general, node(terms));
  std::map<std::string, Expr> values;
  for (const auto& [name, literal] : literals_) values.emplace(name, literal.value);
  for (size_t i = 0; i < terms.size(); ++i) {
    HOIST_TRY(Expr instance, with_sizes(general, {{fit_.name(), fit_.probes()[i]}}));
    std::map<std::string, Expr> here;
    for (const auto& [name, literal] : literals_) here.emplace(name, literal.terms[i]);
    instance = substitute_parameters(instance, here);
    if (instance != terms[i])
      return Diagnostic{
          "", fmt::format("the kernel at {} = {} is no instance of the others", fit_.name(), fit_.probes()[i]), ""};
  }
  return substitute_parameters(general, values);
}

}  // namespace hoist
