// Memoisation in the interpreter: the values that are worth it, and the table that holds them.
#include "ir/evaluate/interpreter/interpret_check.h"
#include "ir/evaluate/interpreter/interpreter.h"

namespace hoist::interpretation {

std::shared_ptr<Memo> Interpreter::memo_of(Expr e, const Frame* env) {
  Slot& slot = slots_[e];
  const size_t n = slot.entries.size();
  for (size_t i = 0; i < n; ++i) {
    const size_t k = (slot.recent + i) % n;
    if (!slot.entries[k].is_for(env)) continue;
    slot.recent = k;
    return slot.entries[k].memo;
  }
  if (n < Slot::capacity) slot.entries.emplace_back();
  slot.recent = n < Slot::capacity ? n : (slot.recent + 1) % n;
  Entry& entry = slot.entries[slot.recent];
  entry.surroundings.clear();
  for (const Frame* f = env; f != nullptr; f = f->outer)
    entry.surroundings.push_back({f->value, f->position, f->version});
  entry.memo = std::make_shared<Memo>();
  return entry.memo;
}

uint64_t Interpreter::remembered(Memo& memo, Expr value, const Frame* env, const Cell* path) {
  const Layout* layout = layouts_.of(value->type);
  const int64_t offset = offset_of(layout, path);
  if (memo.pages.empty()) memo.pages.resize(static_cast<size_t>(layout->count / Memo::page_size + 1));
  auto& page = memo.pages[static_cast<size_t>(offset / Memo::page_size)];
  if (page == nullptr) page = std::make_unique<Memo::Page>();
  const int64_t i = offset % Memo::page_size;
  if (!page->known[i]) {
    page->words[i] = looked_up(value, env, path);
    page->known[i] = true;
  }
  return page->words[i];
}

uint64_t Interpreter::materialised(Expr e, const Frame* env, const Cell* path) {
  if (!worth_remembering(e->children[0])) return at(e->children[0], env, path);
  auto memo = memo_of(e, env);
  return remembered(*memo, e->children[0], env, path);
}

uint64_t Interpreter::let(Expr e, const Frame* env, const Cell* path) {
  Expr value = e->children[0];
  Frame frame{env, env, value, -1, nullptr, 0, nullptr};
  if (worth_remembering(value)) frame.memo = memo_of(value, env);
  return at(e->children[1]->children[0], &frame, path);
}

// True if recomputing costs more than memoising. Values with a memo of their own are not memoised again.
bool Interpreter::worth_remembering(Expr value) {
  switch (value->pattern) {
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::iterate:
    case Pattern::scan:
    case Pattern::materialise:
    case Pattern::host:
      return false;
    default:
      break;
  }
  return computes(value) && layouts_.of(value->type)->count <= memory_limit / 16;
}

bool Interpreter::computes(Expr e) {
  switch (e->pattern) {
    case Pattern::call:
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::iterate:
    case Pattern::scan:
    case Pattern::scatter:
    case Pattern::host:
      return true;
    default:
      break;
  }
  if (e->children.empty()) return false;
  auto [place, is_new] = computes_.emplace(e, false);
  if (!is_new) return place->second;
  bool any = false;
  for (Expr c : e->children) any = any || computes(c);
  return computes_[e] = any;
}

// Equal subterms are one node. If a term written as a tree would be far larger than its graph, subterms with several
// uses are memoised like lets; otherwise recomputing them is cheaper.
void Interpreter::find_shared(Expr root) {
  std::unordered_map<Expr, int> users;
  std::unordered_map<Expr, double> written_out;
  std::vector<std::pair<Expr, size_t>> walk = {{root, 0}};
  while (!walk.empty()) {
    auto& [e, next] = walk.back();
    if (next < e->children.size()) {
      Expr c = e->children[next++];
      if (++users[c] == 1) walk.emplace_back(c, 0);
      continue;
    }
    double size = 1;
    for (Expr c : e->children) size += written_out[c];
    written_out[e] = size;
    walk.pop_back();
  }
  constexpr double much = 1e4;
  if (written_out[root] < much || written_out[root] < 16 * static_cast<double>(users.size())) return;
  for (auto [e, count] : users) {
    if (count > 1 && e->pattern != Pattern::function && worth_remembering(e)) shared_.insert(e);
  }
}

}  // namespace hoist::interpretation
