#include "ir/program/sizes.h"

#include <fmt/format.h>

#include <unordered_map>

#include "ir/rules/match.h"
#include "ir/text/parse/near_miss.h"

namespace hoist {
namespace {

std::string bounds_text(const SizeBounds& bounds) { return fmt::format("from {} to {}", bounds.least, bounds.most); }

// Checks that extents are non-negative and that the number of elements is representable in memory.
Result<Nothing> check_extents_of(Type type) {
  double total = 1;
  for (const Nat& n : sizes_of(type)) {
    if (!n.is_constant()) continue;
    if (n.value() < 0) return Diagnostic{"", fmt::format("has the extent {} with these sizes", n.value()), ""};
    total *= static_cast<double>(std::max<int64_t>(n.value(), 1));
  }
  if (total > most_array_elements) return Diagnostic{"", "has more than 2^48 elements with these sizes", ""};
  if (!leaf_of(type)->is_tuple()) return Nothing{};
  for (Type part : leaf_of(type)->parts) HOIST_TRY_VOID(check_extents_of(part));
  return Nothing{};
}

// Substitutes values for sizes. Equal terms are replaced once.
class SizesReplaced {
 public:
  explicit SizesReplaced(Match sizes) : sizes_(std::move(sizes)) {}

  Result<Program> program(const Program& from) {
    Program out = from;
    for (auto& [name, type] : out.inputs) {
      HOIST_TRY(type, type_of_value("input " + name, type));
    }
    for (Definition& definition : out.definitions) {
      const std::string where = "value " + definition.value;
      HOIST_TRY(const Type expected, type_of_value(where, definition.expression->type));
      auto made = term(definition.expression);
      if (!made.ok()) return located(where, made.errors());
      if ((*made)->type != expected) {
        return Diagnostic{where,
                          fmt::format("has type {} with these sizes, and {} is expected from {}", text((*made)->type),
                                      text(expected), text(definition.expression->type)),
                          ""};
      }
      definition.expression = *made;
    }
    return out;
  }

  Result<Expr> term(Expr e) {
    if (auto known = made_.find(e); known != made_.end()) return known->second;
    Spec spec = *e;
    for (Nat& size : spec.sizes) {
      HOIST_TRY(size, instantiate(size, sizes_));
    }
    for (Type& type : spec.parameters) {
      HOIST_TRY(type, instantiate(type, sizes_));
    }
    if (spec.type != nullptr && e->children.empty()) {
      HOIST_TRY(spec.type, instantiate(spec.type, sizes_));
    }
    for (Expr& child : spec.children) {
      HOIST_TRY(child, term(child));
    }
    if (spec.operation != nullptr) HOIST_TRY_VOID(bodies(spec));
    HOIST_TRY(Expr made, make(std::move(spec)));
    return made_[e] = made;
  }

 private:
  static Diagnostics located(const std::string& where, Diagnostics errors) {
    for (Diagnostic& d : errors) d.where = where + (d.where.empty() ? "" : ", " + d.where);
    return errors;
  }

  Result<Type> type_of_value(const std::string& where, Type type) {
    auto made = instantiate(type, sizes_);
    if (!made.ok()) return located(where, made.errors());
    if (auto fits = check_extents_of(*made); !fits.ok()) return located(where, fits.errors());
    return made;
  }

  Result<Nothing> bodies(Spec& call) {
    OperatorCall operation = *call.operation;
    bool any = false;
    for (auto& [name, attribute] : operation.attributes) {
      auto* body = std::get_if<Body>(&attribute);
      if (body == nullptr || body->program == nullptr) continue;
      any = true;
      auto made = program(*body->program);
      if (!made.ok()) return located(name, made.errors());
      body->program = std::make_shared<const Program>(std::move(*made));
    }
    if (any) call.operation = std::make_shared<const OperatorCall>(std::move(operation));
    return Nothing{};
  }

  const Match sizes_;
  std::unordered_map<Expr, Expr> made_;
};

}  // namespace

Result<Program> with_sizes(const Program& program, const std::map<std::string, int64_t>& numbers) {
  Match sizes;
  std::vector<std::string> names;
  Program open = program;
  for (const auto& [name, bounds] : program.sizes) {
    names.push_back(name);
    sizes.sizes.emplace(name, Nat::name(name));
  }
  Diagnostics problems;
  for (const auto& [name, number] : numbers) {
    auto found = program.sizes.find(name);
    if (found == program.sizes.end()) {
      problems.push_back({"size " + name, "the program has no such size",
                          did_you_mean(name, names, "its text declares them: size n from 1 to 512")});
    } else if (number < found->second.least || number > found->second.most) {
      problems.push_back(
          {"size " + name, fmt::format("{} lies outside its bounds, {}", number, bounds_text(found->second)), ""});
    } else {
      sizes.sizes[name] = Nat(number);
      open.sizes.erase(name);
    }
  }
  if (!problems.empty()) return problems;
  // Products of sizes may overflow 64 bits, which is an error in the given values.
  const FaultsAreErrors guard;
  try {
    return SizesReplaced(std::move(sizes)).program(open);
  } catch (const InternalFault& fault) {
    return Diagnostic{program.name, "has no types for these sizes: " + fault.text, ""};
  }
}

Result<Expr> with_sizes(Expr term, const std::map<std::string, int64_t>& numbers) {
  Match sizes;
  for (const auto& [name, number] : numbers) sizes.sizes.emplace(name, Nat(number));
  const FaultsAreErrors guard;
  try {
    return SizesReplaced(std::move(sizes)).term(term);
  } catch (const InternalFault& fault) {
    return Diagnostic{"", "has no type for these sizes: " + fault.text, ""};
  }
}

Result<Nothing> check_sizes_known(const Program& program) {
  if (program.sizes.empty()) return Nothing{};
  std::string names, options;
  for (const auto& [name, bounds] : program.sizes) {
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", name, bounds_text(bounds));
    options += fmt::format(" --dim {}={}", name, bounds.least);
  }
  return Diagnostic{program.name.empty() ? "program" : "program " + program.name, "has sizes without numbers: " + names,
                    "hoist rewrite FILE.lift" + options + " replaces them by numbers"};
}

}  // namespace hoist
