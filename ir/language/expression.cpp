#include "ir/language/expression.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "ir/base/hash.h"
#include "ir/base/seen_terms.h"
#include "ir/language/typing.h"

namespace hoist {

namespace {

struct Hash {
  size_t operator()(const Node* n) const {
    uint64_t h = mixed(static_cast<uint64_t>(n->pattern), reinterpret_cast<uintptr_t>(n->type));
    for (Expr c : n->children) h = mixed(h, c->serial);
    for (const Nat& s : n->sizes) h = mixed(h, s.hash());
    for (int64_t i : n->integers) h = mixed(h, static_cast<uint64_t>(i));
    for (Type p : n->parameters) h = mixed(h, reinterpret_cast<uintptr_t>(p));
    h = mixed(h, static_cast<uint64_t>(n->function) | static_cast<uint64_t>(n->mode) << 8 |
                     static_cast<uint64_t>(n->dimension) << 16 | static_cast<uint64_t>(n->memory) << 24 |
                     static_cast<uint64_t>(n->border) << 32);
    h = mixed(h, n->bits);
    h = mixed(h, std::hash<std::string>()(n->name));
    if (n->pattern == Pattern::operator_call) h = mixed(h, n->operation->hash());
    if (n->pattern == Pattern::constant) h = mixed(h, XXH3_64bits(n->constant.data(), n->constant.bytes().size()));
    return h;
  }
};

struct Same {
  bool operator()(const Node* a, const Node* b) const {
    return a->pattern == b->pattern && a->type == b->type && a->children == b->children && a->sizes == b->sizes &&
           a->integers == b->integers && a->parameters == b->parameters && a->function == b->function &&
           a->mode == b->mode && a->dimension == b->dimension && a->memory == b->memory && a->border == b->border &&
           a->name == b->name && a->bits == b->bits &&
           (a->pattern != Pattern::constant || a->constant == b->constant) &&
           (a->pattern != Pattern::operator_call || *a->operation == *b->operation);
  }
};

struct Arena {
  std::mutex mutex;
  std::deque<Node> nodes;
  std::unordered_set<const Node*, Hash, Same> index;
};

Arena& arena() {
  static auto* a = new Arena;  // never destroyed: terms live as long as the process
  return *a;
}

bool is_placeholder(Expr e) { return e->pattern == Pattern::parameter && !e->name.empty() && e->name[0] == '\1'; }

Expr intern(Node node) {
  node.free = node.pattern == Pattern::bound ? static_cast<int>(node.integers[0]) + 1 : 0;
  node.has_meta = node.pattern == Pattern::meta;
  node.has_placeholder = is_placeholder(&node);
  node.has_operator_call = node.pattern == Pattern::operator_call;
  for (Expr c : node.children) {
    node.free = std::max(node.free, c->free);
    node.has_meta |= c->has_meta;
    node.has_placeholder |= c->has_placeholder;
    node.has_operator_call |= c->has_operator_call;
  }
  if (node.pattern == Pattern::function) {
    node.free = std::max(0, node.free - static_cast<int>(node.parameters.size()));
  }
  Arena& a = arena();
  std::lock_guard lock(a.mutex);
  if (auto found = a.index.find(&node); found != a.index.end()) return *found;
  node.serial = a.nodes.size();
  a.nodes.push_back(std::move(node));
  a.index.insert(&a.nodes.back());
  return &a.nodes.back();
}

bool is_identity(const std::vector<int64_t>& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// The equations of the normal form. Returns the term that the spec normalises to, or null if the spec is in normal
// form.
Expr normal_form(Spec& s) {
  auto child = [&](size_t i) { return s.children[i]; };
  switch (s.pattern) {
    case Pattern::literal: {  // canonical bits: truncated to the type's width, signed integers sign-extended
      const ScalarRow& type = row(s.type->scalar);
      int spare = 64 - type.bits;
      if (s.type->scalar == Scalar::boolean)
        s.bits = (s.bits & 0xff) != 0;
      else if (spare > 0 && type.is_signed && !type.is_float)
        s.bits = static_cast<uint64_t>(static_cast<int64_t>(s.bits << spare) >> spare);
      else if (spare > 0)
        s.bits = s.bits << spare >> spare;
      return nullptr;
    }
    case Pattern::get:
      return child(0)->pattern == Pattern::tuple ? child(0)->children[static_cast<size_t>(s.integers[0])] : nullptr;
    case Pattern::join:
      return child(0)->pattern == Pattern::split ? child(0)->children[0] : nullptr;
    case Pattern::split:
      return child(0)->pattern == Pattern::join && child(0)->children[0]->type->element->size == s.sizes[0]
                 ? child(0)->children[0]
                 : nullptr;
    case Pattern::transpose: {
      if (child(0)->pattern == Pattern::transpose) {
        const auto& inner = child(0)->integers;
        std::vector<int64_t> both(std::max(inner.size(), s.integers.size()));
        for (size_t i = 0; i < both.size(); ++i) {
          auto outer = i < s.integers.size() ? static_cast<size_t>(s.integers[i]) : i;
          both[i] = outer < inner.size() ? inner[outer] : static_cast<int64_t>(outer);
        }
        s.children = {child(0)->children[0]};
        s.integers = both;
      }
      while (!s.integers.empty() && s.integers.back() == static_cast<int64_t>(s.integers.size()) - 1) {
        s.integers.pop_back();  // trailing fixed dimensions
      }
      return is_identity(s.integers) ? child(0) : nullptr;
    }
    case Pattern::pad:
      return s.sizes[0] == Nat(0) && s.sizes[1] == Nat(0) ? child(0) : nullptr;
    case Pattern::slice:
      return s.sizes[0] == Nat(0) && s.integers[0] == 1 && s.sizes[1] == child(0)->type->size ? child(0) : nullptr;
    case Pattern::concat:
      return s.children.size() == 1 ? child(0) : nullptr;
    case Pattern::map:
      return s.mode == Mode::view && child(0)->children[0]->pattern == Pattern::bound &&
                     child(0)->children[0]->integers[0] == 0
                 ? child(1)
                 : nullptr;
    case Pattern::cast:
    case Pattern::reinterpret:
      return child(0)->type == s.type ? child(0) : nullptr;
    case Pattern::select:
      return child(1) == child(2) ? child(1) : nullptr;
    default:
      return nullptr;
  }
}

// Rebuilds a term, replacing leaves; `leaf(node, depth)` returns the replacement, or null to keep the node. Subtrees
// for which `touches` is false are kept unchanged.
class Rebuild {
 public:
  Rebuild(std::function<Expr(Expr, int64_t)> leaf, std::function<bool(Expr, int64_t)> touches)
      : leaf_(std::move(leaf)), touches_(std::move(touches)) {}

  Expr run(Expr e, int64_t depth) {
    if (!touches_(e, depth)) return e;
    if (Expr r = leaf_(e, depth)) return r;
    if (e->children.empty()) return e;
    auto key = std::pair(e, depth);
    if (auto found = memo_.find(key); found != memo_.end()) return found->second;
    int64_t inner = depth + (e->pattern == Pattern::function ? static_cast<int64_t>(e->parameters.size()) : 0);
    std::vector<Expr> children;
    children.reserve(e->children.size());
    for (Expr c : e->children) children.push_back(run(c, inner));
    Expr r = e;
    if (children != e->children) {
      auto made = with_children(e, std::move(children));
      HOIST_CHECK(made.ok(), made.errors()[0].text());
      r = *made;
    }
    memo_.emplace(key, r);
    return r;
  }

 private:
  std::function<Expr(Expr, int64_t)> leaf_;
  std::function<bool(Expr, int64_t)> touches_;
  std::unordered_map<std::pair<Expr, int64_t>, Expr, PlaceHash> memo_;
};

}  // namespace

Result<Expr> make(Spec spec) {
  HOIST_TRY(spec.type, infer_type(spec));
  if (Expr e = normal_form(spec)) return e;
  Node node;
  static_cast<Spec&>(node) = std::move(spec);
  return intern(std::move(node));
}

Expr build(Spec spec) {
  auto made = make(std::move(spec));
  HOIST_CHECK(made.ok(), made.errors()[0].text());
  return *made;
}

Result<Expr> with_children(Expr e, std::vector<Expr> children) {
  Spec spec = *e;
  spec.children = std::move(children);
  return make(std::move(spec));
}

Expr shift(Expr e, int64_t by, int64_t from) {
  if (by == 0 || e->free <= from) return e;
  Rebuild rebuild(
      [&](Expr n, int64_t depth) {
        return n->pattern == Pattern::bound ? bound(n->integers[0] + (n->integers[0] >= depth ? by : 0), n->type)
                                            : nullptr;
      },
      [](Expr n, int64_t depth) { return n->free > depth; });
  return rebuild.run(e, from);
}

Expr apply(Expr function, const std::vector<Expr>& arguments) {
  HOIST_CHECK(function->pattern == Pattern::function && function->parameters.size() == arguments.size(),
              "apply needs a function with one parameter for each argument");
  auto count = static_cast<int64_t>(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    HOIST_CHECK(arguments[i]->type == function->parameters[i],
                fmt::format("argument {} has type {}, expected {}", i, text(arguments[i]->type),
                            text(function->parameters[i])));
  }
  Rebuild rebuild(
      [&](Expr n, int64_t depth) -> Expr {
        if (n->pattern != Pattern::bound) return nullptr;
        int64_t p = n->integers[0];
        if (p < depth) return n;
        if (p < depth + count) return shift(arguments[static_cast<size_t>(count - 1 - (p - depth))], depth);
        return bound(p - count, n->type);
      },
      [](Expr n, int64_t depth) { return n->free > depth; });
  return rebuild.run(function->children[0], 0);
}

Expr substitute_parameters(Expr e, const std::map<std::string, Expr>& values) {
  Rebuild rebuild(
      [&](Expr n, int64_t depth) -> Expr {
        if (n->pattern != Pattern::parameter) return nullptr;
        auto found = values.find(n->name);
        if (found == values.end()) return n;
        HOIST_CHECK(found->second->type == n->type, fmt::format("parameter {} has type {}, its value {}", n->name,
                                                                text(n->type), text(found->second->type)));
        return shift(found->second, depth);
      },
      [](Expr, int64_t) { return true; });
  return rebuild.run(e, 0);
}

std::vector<Expr> parameters_of(Expr e) {
  std::vector<Expr> found;
  // Passes search all calls of a program for a value. Most calls have a few leaves as operands, which need no set.
  constexpr size_t few = 16;
  const std::vector<Expr>& operands = e->children;
  const auto is_leaf = [](Expr child) { return child->children.empty(); };
  if (!operands.empty() && operands.size() <= few && std::all_of(operands.begin(), operands.end(), is_leaf)) {
    for (Expr p : operands) {
      if (p->pattern == Pattern::parameter && std::find(found.begin(), found.end(), p) == found.end())
        found.push_back(p);
    }
    return found;
  }
  SeenTerms seen;
  const auto walk = [&](const auto& self, Expr n) -> void {
    if (!seen.insert(n)) return;
    if (n->pattern == Pattern::parameter) found.push_back(n);
    for (Expr c : n->children) self(self, c);
  };
  walk(walk, e);
  return found;
}

Expr function(const std::vector<Type>& types, const std::function<Expr(const std::vector<Expr>&)>& body) {
  static std::atomic<uint64_t> fresh = 0;
  std::vector<Expr> variables;
  for (Type t : types) variables.push_back(parameter("\1" + std::to_string(fresh++), t));
  Expr open_body = body(variables);
  auto count = static_cast<int64_t>(types.size());
  Rebuild rebuild(
      [&](Expr n, int64_t depth) -> Expr {
        if (n->pattern == Pattern::bound) {
          return bound(n->integers[0] + (n->integers[0] >= depth ? count : 0), n->type);
        }
        if (!is_placeholder(n)) return nullptr;
        auto found = std::find(variables.begin(), variables.end(), n);
        return found == variables.end() ? n : bound(depth + count - 1 - (found - variables.begin()), n->type);
      },
      [](Expr n, int64_t depth) { return n->has_placeholder || n->free > depth; });
  Spec spec;
  spec.pattern = Pattern::function;
  spec.children = {rebuild.run(open_body, 0)};
  spec.parameters = types;
  return build(std::move(spec));
}

std::string text(const Path& path) {
  std::string out;
  for (int step : path) out += (out.empty() ? "" : ".") + std::to_string(step);
  return out.empty() ? "root" : out;
}

Result<Path> path_named(const std::string& name) {
  Path path;
  if (name == "root") return path;
  size_t start = 0;
  while (start <= name.size()) {
    size_t end = std::min(name.find('.', start), name.size());
    std::string step = name.substr(start, end - start);
    if (step.empty() || step.size() > 6 || step.find_first_not_of("0123456789") != std::string::npos) {
      return Diagnostic{name, "not a place in a term", "write root or child positions such as 0.1.2"};
    }
    path.push_back(std::stoi(step));
    start = end + 1;
  }
  return path;
}

Expr at(Expr root, const Path& path) {
  for (int step : path) {
    if (step < 0 || static_cast<size_t>(step) >= root->children.size()) return nullptr;
    root = root->children[static_cast<size_t>(step)];
  }
  return root;
}

Result<Expr> replace_at(Expr root, const Path& path, Expr replacement) {
  std::vector<Expr> spine = {root};
  for (int step : path) {
    if (step < 0 || static_cast<size_t>(step) >= spine.back()->children.size()) {
      return Diagnostic{text(path), "no such place in the term", ""};
    }
    spine.push_back(spine.back()->children[static_cast<size_t>(step)]);
  }
  if (spine.back()->type != replacement->type) {
    return Diagnostic{text(path),
                      fmt::format("the term there has type {}, its replacement {}", text(spine.back()->type),
                                  text(replacement->type)),
                      ""};
  }
  for (size_t i = path.size(); i-- > 0;) {
    std::vector<Expr> children = spine[i]->children;
    children[static_cast<size_t>(path[i])] = replacement;
    HOIST_TRY(replacement, with_children(spine[i], std::move(children)));
  }
  return replacement;
}

size_t tree_size(Expr e) {
  SeenTerms seen;
  const auto walk = [&](const auto& self, Expr n) -> void {
    if (!seen.insert(n)) return;
    for (Expr c : n->children) self(self, c);
  };
  walk(walk, e);
  return seen.size();
}

}  // namespace hoist
