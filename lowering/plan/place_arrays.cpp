#include <algorithm>

#include "lowering/layout/memory.h"
#include "lowering/plan/rows.h"

namespace hoist {
namespace {

// Alignment of places in the arena; drivers refuse sub-buffers at smaller multiples.
constexpr int64_t arena_alignment = 4096;

// The items that begin and end each control, and the one between the branches.
struct ControlSpan {
  int enter = 0, otherwise = 0, leave = 0;
};

std::vector<ControlSpan> spans(const LoweredModel& model) {
  std::vector<ControlSpan> out(model.controls.size());
  for (size_t i = 0; i < model.items.size(); ++i) {
    const auto index = static_cast<size_t>(model.items[i].index);
    const int at = static_cast<int>(i);
    if (model.items[i].kind == PlanItem::Kind::enter) out[index].enter = at;
    if (model.items[i].kind == PlanItem::Kind::otherwise) out[index].otherwise = at;
    if (model.items[i].kind == PlanItem::Kind::leave) out[index].leave = at;
  }
  return out;
}

}  // namespace

Result<Nothing> place_arrays(LoweredModel& model, const PassOptions& options) {
  std::vector<int> first(model.arrays.size(), -1), last(model.arrays.size(), 0);
  const auto use = [&](int array, int at) {
    if (array < 0) return;
    const auto a = static_cast<size_t>(array);
    if (first[a] < 0) first[a] = last[a] = at;
    first[a] = std::min(first[a], at);
    last[a] = std::max(last[a], at);
  };
  std::vector<PlanItem> items = model.items;
  for (size_t i = 0; model.items.empty() && i < model.steps.size(); ++i)
    items.push_back({PlanItem::Kind::step, static_cast<int>(i)});
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].kind != PlanItem::Kind::step) continue;
    for (int argument : model.steps[static_cast<size_t>(items[i].index)].arguments) use(argument, static_cast<int>(i));
  }
  const std::vector<ControlSpan> all = spans(model);
  for (size_t c = 0; c < all.size(); ++c) {
    const PlanControl& control = model.controls[c];
    const auto moves = [&](const std::vector<PlanControl::Move>& some, int at) {
      for (const PlanControl::Move& move : some) use(move.from, at), use(move.to, at);
    };
    use(control.condition, all[c].enter), use(control.trips, all[c].enter);
    use(control.number, all[c].enter), use(control.number, all[c].leave), use(control.next, all[c].leave);
    use(control.count, all[c].leave);
    for (const PlanControl::Move& move : control.after) {
      if (move.is_row) use(move.to, all[c].enter);  // rows are written one by one
    }
    moves(control.before, all[c].enter);
    moves(control.after, control.is_loop ? all[c].leave : all[c].otherwise);
    moves(control.otherwise, all[c].leave);
  }
  // An array that is alive on both sides of the beginning or the end of a loop is alive in every iteration, also if the
  // loop begins by writing it, as a carried value that no iteration changes. Outer loops come first, and a lifetime
  // that an inner loop extends may reach out of them.
  for (size_t c = all.size(); c-- > 0;) {
    if (!model.controls[c].is_loop) continue;
    for (size_t a = 0; a < first.size(); ++a) {
      const bool enters = first[a] <= all[c].enter && last[a] >= all[c].enter && last[a] <= all[c].leave;
      const bool leaves = first[a] >= all[c].enter && first[a] <= all[c].leave && last[a] > all[c].leave;
      if (enters) last[a] = all[c].leave;
      if (leaves) first[a] = all[c].enter;
    }
  }
  std::vector<Lifetime> lifetimes;
  std::vector<int> which;
  for (size_t a = 0; a < model.arrays.size(); ++a) {
    const PlanArray& array = model.arrays[a];
    if (array.place != Place::arena) continue;
    lifetimes.push_back({byte_size(array.scalar, array.shape), first[a], last[a], 0});
    which.push_back(static_cast<int>(a));
  }
  model.arena_bytes = place_arrays(lifetimes, arena_alignment, !options.separate_arrays);
  for (size_t i = 0; i < which.size(); ++i) model.arrays[static_cast<size_t>(which[i])].offset = lifetimes[i].offset;
  return Nothing{};
}

}  // namespace hoist
