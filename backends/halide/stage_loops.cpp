#include "backends/halide/stage_loops.h"

#include <algorithm>

#include "backends/halide/index_form.h"

namespace hoist::emission {
namespace {

// True if an expression in loop variables is zero for all iterations.
bool is_zero(const H::Expr& e, const std::vector<Loop>& loops) {
  std::map<std::string, int64_t> extents;
  for (const Loop& l : loops) extents[l.name()] = l.most();
  return is_always_zero(e, extents);
}

void split_dimension(H::Stage& stage, const H::Var& dimension, const std::vector<LoopSplit>& splits, bool guarded) {
  H::Var rest = dimension;
  auto tail = guarded ? H::TailStrategy::GuardWithIf : H::TailStrategy::RoundUp;
  for (size_t k = 0; k + 1 < splits.size(); ++k) {
    H::Var inner = k + 2 == splits.size() ? splits[k + 1].loop.variable : H::Var(rest.name() + "_rest");
    stage.split(rest, splits[k].loop.variable, inner, number(splits[k].step), tail);
    rest = inner;
  }
  if (splits.size() == 1) stage.rename(dimension, splits[0].loop.variable);
}

void apply_modes(H::Stage& stage, const std::vector<Loop>& loops, bool reductions) {
  std::vector<const Loop*> items;
  for (const Loop& l : loops) {
    if (l.is_reduction) {
      if (reductions && l.mode == Mode::unroll) stage.unroll(l.reduction);
      continue;
    }
    if (l.mode == Mode::vec) stage.vectorize(l.variable);
    if (l.mode == Mode::unroll) stage.unroll(l.variable);
    if (l.mode == Mode::local) items.push_back(&l);
    if (l.mode == Mode::group) unsupported("a group map inside a fold or a materialised array");
  }
  std::sort(items.begin(), items.end(), [](const Loop* a, const Loop* b) { return a->dimension < b->dimension; });
  if (items.size() == 1) stage.gpu_threads(items[0]->variable);
  if (items.size() == 2) stage.gpu_threads(items[0]->variable, items[1]->variable);
  if (items.size() == 3) stage.gpu_threads(items[0]->variable, items[1]->variable, items[2]->variable);
  if (items.size() > 3) unsupported("more than three nested local maps");
}

// The number of a nest's loops, counted from the last one, that are reductions with unrolled steps.
size_t written_out(const std::vector<Loop>& nest) {
  size_t count = 0;
  bool any = false;
  for (size_t i = nest.size(); i-- > 0 && nest[i].is_reduction; ++count) {
    if (nest[i].extent != Nat(1) && nest[i].mode != Mode::unroll) break;
    any |= nest[i].mode == Mode::unroll;
  }
  return any ? count : 0;
}

// Innermost first: the vector, the loops of a matrix instruction, unrolled steps, the enclosing unrolled loops, the
// nest; the work-items that share a fold over tiles run inside its first `outside` reductions, where the tiles are
// filled.
void order_loops(H::Stage& stage, const std::vector<Loop>& spread, const std::vector<Loop>& nest, bool reductions,
                 size_t outside = 0) {
  std::vector<H::VarOrRVar> order;
  for (const Loop& l : spread) {
    if (l.mode == Mode::vec) order.emplace_back(l.variable);
  }
  for (const Loop& l : nest) {
    if (l.mode == Mode::vec && !l.is_reduction) order.emplace_back(l.variable);
  }
  for (size_t i = nest.size(); i-- > 0;) {
    if (nest[i].is_reduction && nest[i].mode == Mode::matrix && reductions) order.emplace_back(nest[i].reduction);
  }
  // All steps of one element precede the next element: adjacent windows overlap, and their common elements are in a
  // register.
  const size_t steps = reductions && !has_local(spread) ? written_out(nest) : 0;
  const auto spread_over = [&](Mode mode) {
    for (size_t i = spread.size(); i-- > 0;) {
      if (spread[i].mode == mode) order.emplace_back(spread[i].variable);
    }
  };
  spread_over(Mode::matrix);
  for (size_t i = nest.size(); i-- > nest.size() - steps;) order.emplace_back(nest[i].reduction);
  spread_over(Mode::unroll);
  std::vector<H::VarOrRVar> around;
  size_t left =
      static_cast<size_t>(std::count_if(nest.begin(), nest.end(), [](const Loop& l) { return l.is_reduction; }));
  for (size_t i = nest.size(); i-- > 0;) {
    if (nest[i].mode == Mode::vec && !nest[i].is_reduction) continue;
    if (!nest[i].is_reduction) order.emplace_back(nest[i].variable);
    if (nest[i].is_reduction && nest[i].mode != Mode::matrix && reductions && i < nest.size() - steps)
      (left <= outside ? around : order).emplace_back(nest[i].reduction);
    if (nest[i].is_reduction) --left;
  }
  for (size_t i = spread.size(); i-- > 0;) {
    if (spread[i].mode == Mode::local) order.emplace_back(spread[i].variable);
  }
  order.insert(order.end(), around.begin(), around.end());
  if (order.size() > 1) stage.reorder(order);
}

}  // namespace

bool has_local(std::span<const Loop> loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [](const Loop& l) { return !l.is_reduction && l.mode == Mode::local; });
}

Splits splits_of(const Nest& nest, const std::vector<Nat>& shape) {
  Substitution zero;
  for (const Loop& l : nest.loops) {
    if (!l.is_reduction) zero[l.name()] = 0;
  }
  Splits out;
  for (size_t i = 0; i < nest.index.size(); ++i) {
    H::Expr index = nest.index[i], rest = index;
    H::Expr base = H::Internal::substitute(zero, index);
    std::vector<LoopSplit> splits;
    for (const Loop& l : nest.loops) {
      if (l.is_reduction) continue;
      Substitution one = zero;
      one[l.name()] = 1;
      H::Expr step = H::Internal::simplify(H::Internal::substitute(one, index) - base);
      auto constant = H::Internal::as_const_int(step);
      if (!constant) unsupported("a materialised array that is written at computed positions");
      if (*constant == 0) continue;
      splits.push_back({l, *constant});
      rest = rest - l.expr() * number(*constant);
    }
    if (!is_zero(rest, nest.loops)) {
      unsupported("layout patterns around a fold's or materialised array's nest whose order is unknown",
                  "use join, transpose and slice 0 around it, and apply split or untile to its consumers");
    }
    std::stable_sort(splits.begin(), splits.end(), [](const LoopSplit& a, const LoopSplit& b) {
      return a.step != b.step ? a.step > b.step : a.loop.most() > b.loop.most();
    });
    for (size_t k = 0; k < splits.size(); ++k) {
      const Nat inner = k + 1 == splits.size() ? 1 : Nat(splits[k + 1].step) * splits[k + 1].loop.extent;
      if (Nat(splits[k].step) != inner)
        unsupported("a materialised array of which the nest writes only some elements", "write all of it");
    }
    out.push_back(std::move(splits));
  }
  for (const Limit& limit : nest.limits) {
    bool known = false;
    for (size_t i = 0; i < nest.index.size(); ++i) {
      known |= limit.low == Nat(0) && limit.high == shape[i] && is_zero(limit.expression - nest.index[i], nest.loops);
    }
    if (!known)
      unsupported("a slice in the middle of a materialised array's nest", "slice a whole dimension from its start");
  }
  return out;
}

Substitution inverted(const Splits& splits, const std::vector<H::Var>& dimensions) {
  Substitution out;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    H::Expr rest = dimensions[i];
    for (const LoopSplit& split : splits[i]) {
      if (split.step == 1) {
        out[split.loop.name()] = rest;
        rest = 0;
      } else {
        out[split.loop.name()] = rest / number(split.step);
        rest = rest % number(split.step);
      }
    }
  }
  return out;
}

void schedule_loops(H::Stage stage, const std::vector<H::Var>& dimensions, const Splits& splits,
                    const std::vector<Loop>& spread, const std::vector<Loop>& nest, LoopChoices choices) {
  for (size_t i = 0; i < dimensions.size(); ++i) split_dimension(stage, dimensions[i], splits[i], choices.guarded);
  order_loops(stage, spread, nest, choices.reductions, choices.outside);
  apply_modes(stage, nest, choices.reductions);
  apply_modes(stage, spread, choices.reductions);
}

}  // namespace hoist::emission
