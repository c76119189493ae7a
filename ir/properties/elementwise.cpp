#include <algorithm>
#include <unordered_map>

#include "ir/base/seen_terms.h"
#include "ir/properties/properties.h"

namespace hoist {
namespace {

// Descends into a term one dimension at a time, replacing the array by its element.
class Element {
 public:
  /// Each nesting depth has its own name for the array, so that a part is never taken for the whole array.
  Element(std::string array, std::string element) : array_(std::move(array)), element_(std::move(element)) {}

  // The element of `e` at an index common to all arrays, or null if there is none.
  Expr at(Expr e) {
    if (!e->type->is_array()) return nullptr;
    if (auto found = memo_.find(e); found != memo_.end()) return found->second;
    return memo_[e] = element(e);
  }

 private:
  Expr element(Expr e) {
    switch (e->pattern) {
      case Pattern::parameter:
        return e->name == array_ ? parameter(element_, e->type->element) : nullptr;
      case Pattern::map: {
        if (e->mode != Mode::view) return nullptr;
        Expr x = at(e->children[1]);
        return x == nullptr ? nullptr : apply(e->children[0], {x});
      }
      case Pattern::zip: {
        std::vector<Expr> parts;
        for (Expr c : e->children) {
          parts.push_back(at(c));
          if (parts.back() == nullptr) return nullptr;
        }
        return tuple(std::move(parts));
      }
      case Pattern::repeat:
        return e->children[0];
      case Pattern::identity:
        return at(e->children[0]);
      case Pattern::let:
        return at(apply(e->children[1], {e->children[0]}));
      case Pattern::get: {
        Expr x = e->children[0];
        return x->pattern == Pattern::let ? at(get(e->integers[0], apply(x->children[1], {x->children[0]}))) : nullptr;
      }
      default:
        return nullptr;
    }
  }

  const std::string array_, element_;
  std::unordered_map<Expr, Expr> memo_;
};

}  // namespace

std::optional<Elementwise> elementwise_in(Expr term, const std::string& array) {
  Expr found = nullptr;
  for (Expr p : parameters_of(term)) {
    if (p->name == array) found = p;
  }
  if (found == nullptr || term->free > 0 || sizes_of(term->type) != sizes_of(found->type)) return std::nullopt;
  if (!leaf_of(term->type)->is_scalar() || !leaf_of(found->type)->is_scalar() || !term->type->is_array())
    return std::nullopt;
  Expr body = term;
  std::vector<std::string> names = {array};
  while (body->type->is_array()) {
    const bool last = !body->type->element->is_array();
    names.push_back(last ? element_name : std::string(element_name) + std::to_string(names.size()));
    body = Element(names[names.size() - 2], names.back()).at(body);
    if (body == nullptr) return std::nullopt;
  }
  // A remaining use of the array, or of a part, would read all of it.
  names.pop_back();
  for (Expr p : parameters_of(body)) {
    if (std::find(names.begin(), names.end(), p->name) != names.end()) return std::nullopt;
  }
  return Elementwise{found, body};
}

int64_t instruction_estimate(Expr body) {
  SeenTerms seen;
  int64_t count = 0;
  std::function<void(Expr)> walk = [&](Expr e) {
    if (!seen.insert(e)) return;
    if (e->pattern == Pattern::call) {
      switch (e->function) {
        case Function::divide:
        case Function::modulo:
        case Function::remainder:
          count += 4;
          break;
        case Function::sqrt:
          count += 2;
          break;
        default:
          count += row(e->function).ulp > 0 ? 16 : 1;
      }
    } else if (e->pattern == Pattern::select) {
      ++count;
    }
    for (Expr c : e->children) walk(c);
  };
  walk(body);
  return count;
}

}  // namespace hoist
