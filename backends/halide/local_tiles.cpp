// Panels: arrays in local memory that are inside work-item loops. Such an array belongs to the group: it has its own
// dimensions and one for each work-item, unroll and vec loop that it depends on, so it holds the operands of all
// work-items. All work-items fill it at the beginning of the innermost fold step that it depends on, adjacent
// work-items from adjacent addresses.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "backends/halide/emitter.h"

namespace hoist::emission {
namespace {

// The variables of a value, and the first element of a parameter that it reads.
class Look : public H::Internal::IRGraphVisitor {
 public:
  explicit Look(const std::map<std::string, H::ImageParam>& inputs) {
    for (const auto& [name, input] : inputs) inputs_.emplace(input.name(), input);
  }
  std::set<std::string> variables;

  // The distance in memory between the first two elements read along a variable; large if it is unknown. Later
  // distances may differ, at the ends of rows or at a border.
  int64_t distance(const std::string& variable) const {
    if (load_ == nullptr) return 0;
    auto first = address(variable, 0), second = address(variable, 1);
    return first && second ? std::abs(*second - *first) : std::numeric_limits<int64_t>::max();
  }

 private:
  using IRGraphVisitor::visit;
  std::map<std::string, H::ImageParam> inputs_;
  const H::Internal::Call* load_ = nullptr;
  const H::ImageParam* input_ = nullptr;

  // The address of the load when the variable has a value and all others are zero.
  std::optional<int64_t> address(const std::string& variable, int value) const {
    std::map<std::string, H::Expr> at;
    for (const std::string& name : variables) at[name] = 0;
    at[variable] = value;
    int64_t whole = 0, stride = 1;
    for (size_t i = 0; i < load_->args.size(); ++i) {
      auto index = H::Internal::as_const_int(H::Internal::simplify(H::Internal::substitute(at, load_->args[i])));
      auto extent = H::Internal::as_const_int(input_->parameter().extent_constraint(static_cast<int>(i)));
      if (!index || !extent) return std::nullopt;
      whole += *index * stride;
      stride *= *extent;
    }
    return whole;
  }

  void visit(const H::Internal::Variable* op) override { variables.insert(op->name); }
  void visit(const H::Internal::Call* op) override {
    if (auto found = inputs_.find(read_input(*op)); load_ == nullptr && found != inputs_.end()) {
      load_ = op;
      input_ = &found->second;
    }
    IRGraphVisitor::visit(op);
  }
};

// Copies per work-item that are written out rather than looped over.
constexpr int64_t most_unrolled = 16;

struct Dimension {
  H::Var variable;
  int64_t extent;
  int64_t distance;
};

// Vectors of 4 where the elements that are next to each other in the tile are so in memory.
int64_t vector_lanes(const std::vector<Dimension>& dimensions) {
  int64_t run = 1;
  for (const Dimension& d : dimensions) {
    if (d.distance != run) break;
    run *= d.extent;
  }
  return run % 4 == 0 ? 4 : 1;
}

// All work-items fill the tile, `items` of them in each dimension; adjacent work-items fill adjacent elements.
void fill(H::Func& f, const std::vector<Dimension>& dimensions, const int64_t (&items)[3], int& fresh) {
  H::Var all = dimensions[0].variable;
  int64_t total = dimensions[0].extent;
  for (const Dimension& d : dimensions) f.bound(d.variable, 0, number(d.extent));
  for (size_t i = 1; i < dimensions.size(); ++i) {
    H::Var fused(fmt::format("fused{}", fresh++));
    f.fuse(all, dimensions[i].variable, fused);
    all = fused;
    total *= dimensions[i].extent;
  }
  int64_t lanes = vector_lanes(dimensions), count = items[0] * items[1] * items[2], shares = total / lanes;
  auto tail = shares % count == 0 ? H::TailStrategy::RoundUp : H::TailStrategy::GuardWithIf;
  H::Var vector("vector"), share("share"), item("item"), rest("rest");
  H::Var x("x"), y("y"), z("z");
  if (lanes > 1) {
    f.split(all, all, vector, number(lanes), H::TailStrategy::RoundUp).vectorize(vector);
  }
  f.split(all, share, item, number(count), tail);
  f.split(item, rest, x, number(items[0]), H::TailStrategy::RoundUp);
  f.split(rest, z, y, number(items[1]), H::TailStrategy::RoundUp);
  std::vector<H::VarOrRVar> order = {share, x, y, z};
  if (lanes > 1) order.insert(order.begin(), vector);
  f.reorder(order).gpu_threads(x, y, z).never_partition_all();
  if (shares <= most_unrolled * count) f.unroll(share);
}

}  // namespace

Value Emitter::local_tile(Expr e, const Environment& env) {
  Layout layout = layout_of(e->type);
  if (layout.scalars.size() != 1) unsupported("a local tile of tuples", "keep each component in a tile of its own");
  Value element = read(e->children[0], env);
  std::vector<Dimension> dimensions;
  std::vector<H::Var> own;
  for (const Nat& n : layout.shape) {
    own.emplace_back(fmt::format("dim{}", fresh_++));
    dimensions.push_back({own.back(), known_at_compile_time(n), 0});
    element = element.at(own.back());
  }
  H::Expr value = to_private(layout.scalars[0], element.scalar);
  Look look(inputs_);
  value.accept(&look);

  // Loops that the tile depends on: register tiles and work-items become dimensions; for any other loop the tile holds
  // one value at a time.
  std::vector<Loop> around;
  std::string owner;
  size_t last = 0, depth = 0;
  int64_t items[3] = {1, 1, 1};
  for (size_t i = 0; i < loops_.size(); ++i) {
    const Loop& l = loops_[i];
    if (!l.is_reduction && l.mode == Mode::local) items[l.dimension] = known_at_compile_time(l.extent);
    if (l.is_reduction && look.variables.count(l.name()) != 0) last = i;
  }
  for (size_t i = 0; i < loops_.size(); ++i) {
    const Loop& l = loops_[i];
    if (l.is_reduction || (l.mode != Mode::local && !l.spreads())) {
      if (l.mode == Mode::group || i <= last) around.push_back(l);
      if (l.is_reduction && i <= last) {
        depth = owner == l.owner ? depth + 1 : 1;
        owner = l.owner;
      }
    } else if (look.variables.count(l.name()) != 0) {
      dimensions.push_back({l.variable, known_at_compile_time(l.extent), 0});
    }
  }
  if (dimensions.empty())
    unsupported("a local scalar inside a local map", "bind it by a let outside of the local maps");
  if (!owner.empty()) tile_depth_[owner] = std::max(tile_depth_[owner], depth);
  for (Dimension& d : dimensions) d.distance = look.distance(d.variable.name());
  std::stable_sort(dimensions.begin(), dimensions.end(),
                   [](const Dimension& a, const Dimension& b) { return a.distance < b.distance; });

  H::Func f("tile");
  std::vector<H::Var> parameters;
  std::map<std::string, H::Expr> inward;
  for (const Dimension& d : dimensions) parameters.push_back(d.variable);
  for (size_t i = around.size(); i-- > 0;) {
    const Loop& l = around[i];
    parameters.push_back(l.is_reduction ? H::Var(fmt::format("step{}", fresh_++)) : l.variable);
    inward[l.name()] = parameters.back();
  }
  for (const auto& [name, by] : inward) value = H::Internal::graph_substitute(name, by, value);
  f(parameters) = value;

  fill(f, dimensions, items, fresh_);

  std::vector<Loop> spread;
  for (const Loop& l : loops_) {
    if (!l.is_reduction && look.variables.count(l.name()) != 0 && (l.mode == Mode::local || l.spreads()))
      spread.push_back(l);
  }
  stored_.push_back({f, around, false, true, {}, spread});
  for (size_t i = 0; i < own.size(); ++i) stored_.back().own.emplace_back(own[i], layout.shape[i]);
  std::vector<Dimension> sorted = dimensions;
  Scalar kind = layout.scalars[0];
  return indexed(layout.shape.size(), [=](const std::vector<H::Expr>& index) {
    std::vector<H::Expr> arguments;
    for (const Dimension& d : sorted) {
      H::Expr at = d.variable;
      for (size_t i = 0; i < own.size(); ++i) {
        if (own[i].name() == d.variable.name()) at = index[i];
      }
      arguments.push_back(at);
    }
    for (size_t i = around.size(); i-- > 0;) arguments.push_back(around[i].expr());
    return Value{from_private(kind, H::Expr(H::Func(f)(arguments))), nullptr, {}};
  });
}

}  // namespace hoist::emission
