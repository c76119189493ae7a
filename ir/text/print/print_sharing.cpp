#include "ir/text/print/print_sharing.h"

#include <algorithm>
#include <set>

namespace hoist {
namespace {

constexpr int64_t long_enough = 10;  // minimum size in nodes of a subterm that gets a name

}  // namespace

Sharing::Sharing(Expr root) {
  walk(root, 0, nullptr);
  measure(key(root, 0));
}

// Positions of the free variables of a term, sorted.
const std::vector<int64_t>& Sharing::free_positions(Expr e) const {
  if (auto place = free_.find(e); place != free_.end()) return place->second;
  std::set<int64_t> found;
  if (e->pattern == Pattern::bound) found.insert(e->integers[0]);
  auto inner = e->pattern == Pattern::function ? static_cast<int64_t>(e->parameters.size()) : 0;
  for (Expr c : e->children) {
    if (c->free == 0) continue;
    for (int64_t p : free_positions(c)) {
      if (p >= inner) found.insert(p - inner);
    }
  }
  return free_.emplace(e, std::vector<int64_t>(found.begin(), found.end())).first->second;
}

bool Sharing::uses(Expr e, int64_t position) const {
  if (e->free <= position) return false;
  const auto& found = free_positions(e);
  return std::binary_search(found.begin(), found.end(), position);
}

Sharing::Step Sharing::owner_step(Expr e, int depth) const {
  if (e->free == 0) return path_[0];
  int64_t level = depth - 1 - free_positions(e).front();  // level of the innermost variable that it uses
  for (const Step& step : path_) {
    if (step.depth > level) return step;
  }
  return path_.back();
}

Sharing::Key Sharing::key(Expr e, int depth) const {
  Step step = owner_step(e, depth);
  return e->free == 0 ? Key{e, 0, 0} : Key{e, step.owner, depth - step.depth};
}

void Sharing::enter(Expr function, int depth) {
  auto found = occurrences_.find(key(function, depth));
  HOIST_CHECK(found != occurrences_.end() && found->second.inside >= 0, "a function outside the term");
  path_.push_back({found->second.inside, depth + static_cast<int>(function->parameters.size())});
}

void Sharing::walk(Expr e, int depth, Occurrence* parent) {
  Key k = key(e, depth);
  if (parent != nullptr) parent->children.push_back(k);
  auto [place, fresh] = occurrences_.emplace(k, Occurrence{});
  Occurrence& o = place->second;
  ++o.count;
  if (!fresh) return;
  if (e->pattern != Pattern::function) {
    for (Expr c : e->children) walk(c, depth, &o);
    return;
  }
  int inner = depth + static_cast<int>(e->parameters.size());
  o.inside = owners_++;
  path_.push_back({o.inside, inner});
  walk(e->children[0], inner, &o);
  path_.pop_back();
}

int64_t Sharing::measure(const Key& k) {
  Occurrence& o = occurrences_.at(k);
  if (o.size > 0) return o.shared ? 1 : o.size;
  o.size = 1;
  int64_t size = 1;
  for (const Key& c : o.children) size += measure(c);
  o.size = size;
  o.shared = o.count > 1 && size >= long_enough && std::get<0>(k)->pattern != Pattern::constant;
  return o.shared ? 1 : o.size;
}

bool Sharing::is_shared(Expr e, int depth) const {
  auto found = occurrences_.find(key(e, depth));
  return found != occurrences_.end() && found->second.shared;
}

}  // namespace hoist
