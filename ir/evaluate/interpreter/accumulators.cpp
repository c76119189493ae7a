// Patterns that the interpreter computes as a whole or step by step: folds, scans, iterates, scatters, host calls.
#include <fmt/format.h>

#include "ir/evaluate/interpreter/host_call.h"
#include "ir/evaluate/interpreter/interpret_check.h"
#include "ir/evaluate/interpreter/interpreter.h"
#include "ir/evaluate/scalar_math.h"

namespace hoist::interpretation {

// Computes all scalars of a term.
bool Interpreter::force(Expr e, const Frame* env, std::vector<uint64_t>& words, std::vector<Cell>& cells) {
  const Layout* layout = layouts_.of(e->type);
  for (int64_t i = 0; i < layout->count && !stopped(); ++i) {
    words[static_cast<size_t>(i)] = at(e, env, path_to(layout, i, cells));
  }
  return !stopped();
}

bool Interpreter::fits(Expr e, int64_t states, const Layout* state) {
  int64_t words = 0;
  if (!__builtin_mul_overflow(states, state->count, &words) && words <= memory_limit / 8) return true;
  fault(*e, fmt::format("{} accumulators of type {} need more than {} GiB", states, text(e->type), memory_limit >> 30));
  return false;
}

// One step: the body's accumulator is `before`, its element is number `step` of the array (iterate has none).
bool Interpreter::advance(Expr e, const Frame* env, int64_t step, const std::vector<uint64_t>& before,
                          std::vector<uint64_t>& after, std::vector<Cell>& cells) {
  Frame state{env, env, nullptr, -1, before.data(), ++versions_, nullptr};
  Expr body = e->children[0]->children[0];
  if (e->pattern == Pattern::iterate) return force(body, &state, after, cells);
  Frame element{&state, env, e->children[2], step, nullptr, 0, nullptr};
  ElementMemo memo;
  if (ElementMemo::holds(e->children[2]->type->element)) element.element = &memo;
  return force(body, &element, after, cells);
}

uint64_t Interpreter::folded(Expr e, const Frame* env, const Cell* path) {
  const Layout* layout = layouts_.of(e->type);
  auto memo = memo_of(e, env);
  if (!memo->complete) {
    if (!fits(e, 2, layout)) return 0;
    const int64_t steps = e->pattern == Pattern::iterate ? e->sizes[0].value() : extent(e->children[2]);
    std::vector<uint64_t> before(static_cast<size_t>(layout->count)), after(before.size());
    std::vector<Cell> cells;
    if (!force(e->children[1], env, before, cells)) return 0;
    for (int64_t i = 0; i < steps; ++i) {
      if (!advance(e, env, i, before, after, cells)) return 0;
      std::swap(before, after);
    }
    memo->words = std::move(before);
    memo->complete = true;
  }
  return memo->words[static_cast<size_t>(offset_of(layout, path))];
}

// Computes the accumulators up to the requested one; later ones are computed on demand.
uint64_t Interpreter::scanned(Expr e, const Frame* env, const Cell* path) {
  const Layout* layout = layouts_.of(e->children[1]->type);
  const auto count = static_cast<size_t>(layout->count);
  if (!fits(e, extent(e), layout)) return 0;
  auto memo = memo_of(e, env);
  std::vector<uint64_t>& words = memo->words;
  const size_t wanted = (static_cast<size_t>(path->value) + 1) * count;
  if (words.size() < wanted) {
    std::vector<uint64_t> before(count), after(count);
    std::vector<Cell> cells;
    if (words.empty()) {
      if (!force(e->children[1], env, before, cells)) return 0;
    } else {
      before.assign(words.end() - layout->count, words.end());
    }
    while (words.size() < wanted) {
      if (!advance(e, env, static_cast<int64_t>(words.size() / count), before, after, cells)) return 0;
      words.insert(words.end(), after.begin(), after.end());
      std::swap(before, after);
    }
  }
  return words[static_cast<size_t>(path->value) * count + static_cast<size_t>(offset_of(layout, path->rest))];
}

// Computes the whole result at once, from whole arrays.
uint64_t Interpreter::called_on_host(Expr e, const Frame* env, const Cell* path) {
  auto memo = memo_of(e, env);
  if (!memo->complete) {
    std::vector<Tensor> arrays;
    std::vector<Cell> cells;
    for (Expr child : e->children) {
      const Layout* layout = layouts_.of(child->type);
      if (!fits(child, 1, layout)) return 0;
      std::vector<uint64_t> words(static_cast<size_t>(layout->count));
      if (!force(child, env, words, cells)) return 0;
      Tensor array(leaf_of(child->type)->scalar, shape_of(child->type));
      std::byte* bytes = array.data();
      for (size_t i = 0; i < words.size(); ++i)
        write_column(&words[i], array.scalar(), bytes, static_cast<int64_t>(i), 1);
      arrays.push_back(std::move(array));
    }
    if (!fits(e, 1, layouts_.of(e->type))) return 0;
    const auto result = evaluate_host_call(e->name, std::move(arrays), e->type);
    if (!result.ok()) return fault(*e, result.errors()[0].what, result.errors()[0].hint);
    memo->words.resize(static_cast<size_t>(result->size()));
    for (size_t i = 0; i < memo->words.size(); ++i) memo->words[i] = word_at(*result, static_cast<int64_t>(i));
    memo->complete = true;
  }
  return memo->words[static_cast<size_t>(offset_of(layouts_.of(e->type), path))];
}

// The update that each element of the base takes is computed once.
uint64_t Interpreter::scattered(Expr e, const Frame* env, const Cell* path) {
  constexpr uint64_t none = ~uint64_t{0};
  Expr positions = e->children[0];
  auto memo = memo_of(e, env);
  if (!memo->complete) {
    const int64_t n = extent(e);
    if (!fits(e, n, layouts_.of(scalar_type(Scalar::i64)))) return 0;
    std::vector<uint64_t> winner(static_cast<size_t>(n), none);
    for (int64_t i = 0; i < extent(positions) && !stopped(); ++i) {
      Cell cell{i, nullptr};
      int64_t position = integer_of_word(positions->type->element->scalar, at(positions, env, &cell));
      if (position >= 0 && position < n) winner[static_cast<size_t>(position)] = static_cast<uint64_t>(i);
    }
    memo->words = std::move(winner);
    memo->complete = true;
  }
  const uint64_t update = memo->words[static_cast<size_t>(path->value)];
  if (update == none) return at(e->children[2], env, path);
  Cell inner{static_cast<int64_t>(update), path->rest};
  return at(e->children[1], env, &inner);
}

}  // namespace hoist::interpretation
