// What is done to the lowered program just before it is split into host code and kernel.
#include <fmt/format.h>

#include <optional>
#include <set>
#include <string_view>

#include "backends/halide/emitter.h"

namespace hoist::emission {
namespace {

using namespace Halide::Internal;  // NOLINT: this file is about nothing else
using HExpr = Halide::Expr;

// The values of the lets around, so that an index can be seen as a whole.
class WithLets : public IRMutator {
 protected:
  using IRMutator::visit;
  std::map<std::string, HExpr> lets_;

  Stmt visit(const LetStmt* op) override {
    HExpr value = mutate(op->value);
    lets_[op->name] = value;
    Stmt body = mutate(op->body);
    lets_.erase(op->name);
    return LetStmt::make(op->name, value, body);
  }
  HExpr visit(const Let* op) override {
    HExpr value = mutate(op->value);
    lets_[op->name] = value;
    HExpr body = mutate(op->body);
    lets_.erase(op->name);
    return Let::make(op->name, value, body);
  }
  HExpr expanded(HExpr e) const {
    for (;;) {
      HExpr next = substitute(lets_, e);
      if (next.same_as(e)) return e;
      e = next;
    }
  }
};

// Lets that are used no more go.
class WithUsedLets : public WithLets {
 protected:
  using WithLets::visit;

  Stmt visit(const LetStmt* op) override {
    Stmt s = WithLets::visit(op);
    const LetStmt* let = s.as<LetStmt>();
    return let != nullptr && !stmt_uses_var(let->body, let->name) ? let->body : s;
  }
  HExpr visit(const Let* op) override {
    HExpr e = WithLets::visit(op);
    const Let* let = e.as<Let>();
    return let != nullptr && !expr_uses_var(let->body, let->name) ? let->body : e;
  }
};

// result[...] = hoist_store(index, condition, value) becomes if (condition) result[index] = value. So do marked stores
// to other arrays, those of the parts of a scatter, of which nothing else is left.
class StoreAtIndex : public WithLets {
 public:
  explicit StoreAtIndex(std::string result) : result_(std::move(result)) {}

  using WithLets::mutate;
  Stmt mutate(const Stmt& s) override {
    if (!seen_) {
      seen_ = true;
      find_writers(s);
    }
    return WithLets::mutate(s);
  }

 private:
  using WithLets::visit;
  std::string result_;
  bool seen_ = false;
  std::set<std::string> writers_;  // arrays with marked stores, beside the result
  Halide::Parameter parameter_;    // of the result

  void find_writers(const Stmt& s) {
    struct Find : IRVisitor {
      StoreAtIndex& pass;
      explicit Find(StoreAtIndex& found) : pass(found) {}
      using IRVisitor::visit;
      void visit(const Store* op) override {
        HExpr value = op->value;
        while (const Let* let = value.as<Let>()) value = let->body;
        if (op->name == pass.result_)
          pass.parameter_ = op->param;
        else if (is_marked(value))
          pass.writers_.insert(op->name);
      }
    } find(*this);
    s.accept(&find);
  }

  Stmt visit(const Allocate* op) override {
    return writers_.count(op->name) != 0 ? mutate(op->body) : WithLets::visit(op);
  }
  Stmt visit(const Free* op) override {
    return writers_.count(op->name) != 0 ? Evaluate::make(0) : WithLets::visit(op);
  }

  HExpr visit(const Call* op) override {
    if (op->name != old_marker) return WithLets::visit(op);
    return Load::make(op->type, result_, mutate(op->args[0]), {}, parameter_, const_true(op->type.lanes()),
                      ModulusRemainder());
  }

  static bool is_marked(const HExpr& value) {
    if (const Shuffle* shuffle = value.as<Shuffle>()) return is_marked(shuffle->vectors[0]);
    const Call* marker = value.as<Call>();
    return marker != nullptr && marker->name == store_marker;
  }

  Stmt visit(const Store* op) override {
    const bool writes = writers_.count(op->name) != 0;
    if (op->name != result_ && !writes) return WithLets::visit(op);
    if (!is_const_one(op->predicate)) unsupported("a result that is stored under a predicate");
    HExpr value = op->value;
    std::vector<std::pair<std::string, HExpr>> inner;
    while (const Let* let = value.as<Let>()) {
      inner.emplace_back(let->name, mutate(let->value));
      value = let->body;
    }
    if (!writers_.empty() && !is_marked(value)) return Evaluate::make(0);
    return store(marked(value, 0), marked(value, 1), mutate(marked(value, 2)), writes ? parameter_ : op->param, inner);
  }

  // What was marked: index, condition or value. Halide may take vectors apart around the call, to deal with even and
  // odd elements of 4 bits say, and put them together again.
  static HExpr marked(const HExpr& value, size_t argument) {
    if (const Shuffle* shuffle = value.as<Shuffle>()) {
      std::vector<HExpr> parts;
      for (const HExpr& vector : shuffle->vectors) {
        HExpr part = marked(vector, argument);
        parts.push_back(part.type().lanes() == vector.type().lanes() ? part
                                                                     : Broadcast::make(part, vector.type().lanes()));
      }
      return Shuffle::make(parts, shuffle->indices);
    }
    const Call* marker = value.as<Call>();
    if (marker == nullptr || marker->name != store_marker) unsupported("a result whose store was moved");
    return marker->args[argument];
  }

  Stmt wrap(Stmt s, const std::vector<std::pair<std::string, HExpr>>& inner) {
    for (size_t i = inner.size(); i-- > 0;) s = LetStmt::make(inner[i].first, inner[i].second, s);
    return s;
  }

  Stmt store(const HExpr& index, HExpr condition, const HExpr& value, const Halide::Parameter& parameter,
             const std::vector<std::pair<std::string, HExpr>>& inner) {
    std::map<std::string, HExpr> saved = lets_;
    for (const auto& [name, e] : inner) lets_[name] = e;
    HExpr whole = simplify(expanded(index));
    HExpr known = simplify(expanded(condition));
    lets_ = saved;
    if (const Broadcast* b = condition.as<Broadcast>()) condition = b->value;
    if (const Broadcast* b = known.as<Broadcast>()) {
      known = b->value;
      condition = known;
    }
    if (is_const_one(known))
      return wrap(Store::make(result_, value, kept(whole, index), parameter, const_true(value.type().lanes()),
                              alignment(whole)),
                  inner);
    if (known.type().lanes() == 1) {
      return wrap(IfThenElse::make(condition.type().lanes() == 1 ? condition : known,
                                   Store::make(result_, value, kept(whole, index), parameter,
                                               const_true(value.type().lanes()), alignment(whole))),
                  inner);
    }
    // A condition that differs between the elements of a vector: one by one.
    std::vector<Stmt> lanes;
    std::string name = unique_name("lanes");
    HExpr vector = Variable::make(value.type(), name);
    for (int i = 0; i < value.type().lanes(); ++i) {
      lanes.push_back(IfThenElse::make(simplify(extract_lane(known, i)),
                                       Store::make(result_, extract_lane(vector, i), simplify(extract_lane(whole, i)),
                                                   parameter, const_true(), ModulusRemainder())));
    }
    return wrap(LetStmt::make(name, value, Block::make(lanes)), inner);
  }

  // A vector's index is written out, so that it is seen to be dense; a scalar's keeps its shared parts.
  static HExpr kept(const HExpr& whole, const HExpr& index) { return whole.type().lanes() > 1 ? whole : index; }

  static ModulusRemainder alignment(const HExpr& index) {
    const Ramp* ramp = index.as<Ramp>();
    return modulus_remainder(ramp != nullptr ? ramp->base : index.type().lanes() == 1 ? index : HExpr(0));
  }
};

// An array in registers at a group's loop is allocated for all work-items of the group; each needs its own part only.
// Indices are the same function of the work-item everywhere, which is checked, so the part is found by setting it to 0.
class CompactRegisters : public WithLets {
  using WithLets::visit;
  struct Array {
    int64_t size = 0;
    std::map<std::string, int64_t> steps;  // of each work-item loop
    bool seen = false;
  };
  std::map<std::string, Array> arrays_;
  std::vector<std::string> items_;

  static std::string suffix(const std::string& name) { return name.substr(name.rfind('.') + 1); }

  HExpr own_part(const std::string& name, const HExpr& index) {
    HExpr whole = expanded(index);
    std::map<std::string, HExpr> zero;
    for (const std::string& item : items_) zero[item] = 0;
    HExpr part = simplify(substitute(zero, whole));
    Array& array = arrays_[name];
    std::map<std::string, int64_t> steps;
    for (const std::string& item : items_) {
      std::map<std::string, HExpr> one = zero;
      one[item] = 1;
      HExpr step = substitute(one, whole);
      HExpr difference = simplify(step - substitute(zero, whole));
      if (const Broadcast* b = difference.as<Broadcast>()) difference = b->value;
      auto constant = as_const_int(difference);
      if (!constant) unsupported("a register tile whose index depends on the work-item in two ways");
      steps[suffix(item)] = *constant;
    }
    if (array.seen && array.steps != steps) {
      unsupported("work-items that read register tiles of others",
                  "use the same local maps around the fold's body and around what reads it");
    }
    array.seen = true;
    array.steps = steps;
    const Ramp* ramp = part.as<Ramp>();
    auto base = as_const_int(ramp != nullptr ? ramp->base : part);
    auto stride = ramp != nullptr ? as_const_int(ramp->stride) : std::optional<int64_t>(0);
    int lanes = part.type().lanes();
    if (base && stride) {
      array.size = std::max(array.size, *base + *stride * (lanes - 1) + 1);
    } else {
      auto bounds = bounds_of_expr_in_scope(part, loops_);
      HExpr high = bounds.has_upper_bound() ? simplify(bounds.max) : HExpr();
      auto most = high.defined() ? as_const_int(high) : std::nullopt;
      if (!most) unsupported("a register tile with an index that is not known");
      array.size = std::max(array.size, *most + 1);
    }
    return part;
  }

  Scope<Interval> loops_;

  Stmt visit(const For* op) override {
    if (op->for_type == ForType::GPUThread) {
      items_.push_back(op->name);
      Stmt s = WithLets::visit(op);
      items_.pop_back();
      return s;
    }
    ScopedBinding<Interval> bound(loops_, op->name, Interval(op->min, simplify(op->min + op->extent - 1)));
    return WithLets::visit(op);
  }
  Stmt visit(const Allocate* op) override {
    if (op->memory_type != Halide::MemoryType::Register) return WithLets::visit(op);
    arrays_[op->name] = {};
    Stmt body = mutate(op->body);
    int64_t size = arrays_[op->name].size;
    arrays_.erase(op->name);
    return Allocate::make(op->name, op->type, op->memory_type, {HExpr(static_cast<int32_t>(size))}, op->condition,
                          body);
  }
  HExpr visit(const Load* op) override {
    if (arrays_.count(op->name) == 0) return WithLets::visit(op);
    HExpr index = own_part(op->name, op->index);
    return Load::make(op->type, op->name, index, op->image, op->param, op->predicate, ModulusRemainder());
  }
  Stmt visit(const Store* op) override {
    if (arrays_.count(op->name) == 0) return WithLets::visit(op);
    HExpr index = own_part(op->name, op->index);
    return Store::make(op->name, mutate(op->value), index, op->param, op->predicate, ModulusRemainder());
  }
};

// Halide loads what a vector of indices can reach as one vector of just so many lanes and shuffles it: 32 for every
// second of them, three for a few. OpenCL has vectors of some widths only (those of three take the room of four), so
// the others are loaded in parts.
class LoadLanes : public WithUsedLets {
  using WithUsedLets::visit;

  static bool has_width(int lanes) { return lanes <= 2 || lanes == 4 || lanes == 8 || lanes == 16; }

  // The vector in parts that OpenCL has, first lanes first; nothing where it is no load of neighbours.
  std::vector<HExpr> parts_of(const HExpr& vector) const {
    const HExpr whole = expanded(vector);
    const Load* load = whole.as<Load>();
    const Ramp* ramp = load != nullptr ? load->index.as<Ramp>() : nullptr;
    if (ramp == nullptr || !is_const_one(load->predicate)) return {};
    std::vector<HExpr> parts;
    for (int from = 0, lanes = 16; from < ramp->lanes; from += lanes) {
      while (lanes > ramp->lanes - from) lanes /= 2;
      const HExpr base = simplify(ramp->base + ramp->stride * from);
      parts.push_back(Load::make(load->type.with_lanes(lanes), load->name,
                                 lanes == 1 ? base : Ramp::make(base, ramp->stride, lanes), load->image, load->param,
                                 const_true(lanes), ModulusRemainder()));
    }
    return parts;
  }

  HExpr visit(const Shuffle* op) override {
    std::vector<HExpr> vectors;
    for (const HExpr& vector : op->vectors) {
      const HExpr mutated = mutate(vector);
      const std::vector<HExpr> parts = has_width(vector.type().lanes()) ? std::vector<HExpr>{} : parts_of(mutated);
      if (parts.empty())
        vectors.push_back(mutated);
      else
        vectors.insert(vectors.end(), parts.begin(), parts.end());
    }
    return Shuffle::make(vectors, op->indices);
  }
};

// A vector with a stride is stored lane by lane, at distances from the first that are parts of addresses.
// Halide prints a vector of indices, which PoCL computes as one and takes apart.
class StoreLanes : public IRMutator {
  using IRMutator::visit;

  Stmt visit(const Store* op) override {
    const Ramp* ramp = op->index.as<Ramp>();
    if (ramp == nullptr || is_const_one(ramp->stride) || ramp->base.type().lanes() > 1 || !is_const_one(op->predicate))
      return IRMutator::visit(op);
    const std::string name = unique_name("value"), first_name = unique_name("first");
    const HExpr value = Variable::make(op->value.type(), name), first = Variable::make(ramp->base.type(), first_name);
    std::vector<Stmt> stores;
    for (int lane = 0; lane < ramp->lanes; ++lane) {
      stores.push_back(Store::make(op->name, Shuffle::make_extract_element(value, lane),
                                   simplify(first + ramp->stride * lane), op->param, const_true(), ModulusRemainder()));
    }
    return LetStmt::make(name, mutate(op->value), LetStmt::make(first_name, ramp->base, Block::make(stores)));
  }
};

// Halide compares the numbers of a vector's lanes in few bits, with a difference that saturates; where it fits, it is
// one operation instead of eight.
class PlainDifferences : public IRMutator {
  using IRMutator::visit;
  Scope<ConstantInterval> ranges_;

  Stmt visit(const For* op) override {
    const ConstantInterval first = constant_integer_bounds(op->min, ranges_);
    const ConstantInterval last = constant_integer_bounds(op->min + op->extent - 1, ranges_);
    const ScopedBinding<ConstantInterval> bound(ranges_, op->name, ConstantInterval::make_union(first, last));
    return IRMutator::visit(op);
  }
  Stmt visit(const LetStmt* op) override {
    const HExpr value = mutate(op->value);
    const ScopedBinding<ConstantInterval> bound(ranges_, op->name, constant_integer_bounds(value, ranges_));
    return LetStmt::make(op->name, value, mutate(op->body));
  }
  HExpr visit(const Let* op) override {
    const HExpr value = mutate(op->value);
    const ScopedBinding<ConstantInterval> bound(ranges_, op->name, constant_integer_bounds(value, ranges_));
    return Let::make(op->name, value, mutate(op->body));
  }
  HExpr visit(const Call* op) override {
    HExpr out = IRMutator::visit(op);
    const Call* call = out.as<Call>();
    if (call == nullptr || !call->is_intrinsic(Call::saturating_sub) || !out.type().is_int()) return out;
    const auto range = [&](const HExpr& e) { return constant_integer_bounds(e, ranges_); };
    const ConstantInterval difference = range(call->args[0]) - range(call->args[1]);
    return out.type().can_represent(difference) ? call->args[0] - call->args[1] : out;
  }
};

// Every second of a row's elements, as windows with a stride of two have them. Halide takes them out of all that the
// vectors side by side span; out of two vectors of neighbours, the last of which ends with the last element that is
// wanted, they are two shuffles. A fused product takes elements one by one until LLVM's optimiser puts them together,
// and makes loads of single elements of a whole vector on the way; where only the elements that are wanted are loaded,
// it leaves that alone.
class LoadSeconds : public WithUsedLets {
  using WithUsedLets::visit;

  // Where the indices begin, if they are so many, two apart.
  static std::optional<int> seconds(const std::vector<int>& indices) {
    for (size_t i = 1; i < indices.size(); ++i) {
      if (indices[i] != indices[i - 1] + 2) return std::nullopt;
    }
    const bool whole_vectors = indices.size() == 4 || indices.size() == 8 || indices.size() == 16;
    return whole_vectors ? std::optional<int>(indices[0]) : std::nullopt;
  }

  HExpr visit(const Call* op) override {
    const bool outside = fused_;
    fused_ = outside || op->name == "fma";
    HExpr out = WithUsedLets::visit(op);
    fused_ = outside;
    return out;
  }

  HExpr visit(const Shuffle* op) override {
    HExpr shuffle = WithUsedLets::visit(op);
    op = shuffle.as<Shuffle>();
    const auto first = op != nullptr && op->vectors.size() == 1 ? seconds(op->indices) : std::nullopt;
    if (!first) return shuffle;
    const HExpr whole = expanded(op->vectors[0]);
    const Load* load = whole.as<Load>();
    const Ramp* ramp = load != nullptr ? load->index.as<Ramp>() : nullptr;
    if (ramp == nullptr || !is_const_one(load->predicate) || !is_const_one(ramp->stride)) return shuffle;
    if (load->type.bits() < 32) return shuffle;  // AVX2 has no masked load of them
    const auto lanes = static_cast<int>(op->indices.size());
    const Halide::Type numbers = Halide::Int(32);
    const auto neighbours = [&](int from, int wanted) {
      const HExpr places = Ramp::make(make_const(numbers, 0), make_const(numbers, 1), lanes);
      const auto everywhere = [&](int n) { return Broadcast::make(make_const(numbers, n), lanes); };
      return Load::make(load->type.with_lanes(lanes), load->name, Ramp::make(simplify(ramp->base + from), 1, lanes),
                        load->image, load->param,
                        fused_ ? places % everywhere(2) == everywhere(wanted) : const_true(lanes), ModulusRemainder());
    };
    std::vector<int> chosen;
    for (int i = 0; i < lanes; ++i) chosen.push_back(i < lanes / 2 ? 2 * i : 2 * i + 1);
    return Shuffle::make({neighbours(*first, 0), neighbours(*first + lanes - 1, 1)}, chosen);
  }

  bool fused_ = false;  // below a fused product
};

// Sums of every second element need not stand in their order before they are done: what LoadSeconds takes out of two
// vectors is a blend of them, where lanes keep their places, and a shuffle. If all that is stored in an array of a
// work-item is computed lane by lane from such elements, from itself, and from numbers that all lanes share, the blends
// alone are, and whoever reads the array puts its lanes in order: one shuffle a result instead of one a step.
class BlendSeconds : public IRMutator {
  using IRMutator::visit;

  static std::vector<int> places(int lanes, int (*of)(int lane, int lanes)) {
    std::vector<int> out;
    for (int i = 0; i < lanes; ++i) out.push_back(of(i, lanes));
    return out;
  }
  // Of two vectors: first the even lanes of the one, then the odd ones of the other.
  static std::vector<int> in_order(int lanes) {
    return places(lanes, [](int i, int n) { return i < n / 2 ? 2 * i : 2 * i + 1; });
  }
  static std::vector<int> blended(int lanes) {
    return places(lanes, [](int i, int n) { return i % 2 == 0 ? i : n + i; });
  }
  static std::vector<int> ordered(int lanes) {
    return places(lanes, [](int i, int n) { return i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1; });
  }
  static bool takes_seconds(const Shuffle* op) {
    const int lanes = op->type.lanes();
    return op->vectors.size() == 2 && op->vectors[0].type().lanes() == lanes && op->vectors[1].type() == op->type &&
           op->vectors[0].type() == op->type && op->indices == in_order(lanes);
  }

  // Whether an array is read and written in whole vectors of one length, and what is written computed lane by lane.
  class Lanewise : public IRVisitor {
   public:
    explicit Lanewise(const std::string& array) : array_(array) {}
    bool holds() const { return holds_ && seconds_; }

   private:
    using IRVisitor::visit;
    std::string array_;
    int lanes_ = 0;
    bool holds_ = true, seconds_ = false;

    bool is_vector(const HExpr& index) {
      const Ramp* ramp = index.as<Ramp>();
      if (ramp == nullptr || !is_const_one(ramp->stride) || ramp->base.type().is_vector()) return false;
      if (lanes_ == 0) lanes_ = ramp->lanes;
      return lanes_ == ramp->lanes && modulus_remainder(ramp->base).modulus % lanes_ == 0 &&
             modulus_remainder(ramp->base).remainder % lanes_ == 0;
    }
    bool all(const std::vector<HExpr>& parts) {
      return std::all_of(parts.begin(), parts.end(), [&](const HExpr& part) { return computed_by_lanes(part); });
    }
    bool computed_by_lanes(const HExpr& e) {
      if (e.type().lanes() != lanes_) return false;
      if (const Broadcast* same = e.as<Broadcast>()) return same->value.type().is_scalar();
      if (const Load* load = e.as<Load>())
        return load->name == array_ && is_const_one(load->predicate) && is_vector(load->index);
      if (const Shuffle* shuffle = e.as<Shuffle>()) {
        seconds_ = seconds_ || takes_seconds(shuffle);
        return takes_seconds(shuffle);
      }
      if (const Call* call = e.as<Call>())
        return (call->call_type == Call::PureExtern || call->is_strict_float_intrinsic()) && all(call->args);
      if (const Select* choice = e.as<Select>())
        return all({choice->condition, choice->true_value, choice->false_value});
      return false;
    }

    void visit(const Store* op) override {
      if (op->name == array_)
        holds_ = holds_ && is_const_one(op->predicate) && is_vector(op->index) && computed_by_lanes(op->value);
      IRVisitor::visit(op);
    }
    void visit(const Load* op) override {
      if (op->name == array_) holds_ = holds_ && is_const_one(op->predicate) && is_vector(op->index);
      IRVisitor::visit(op);
    }
    void visit(const Variable* op) override { holds_ = holds_ && op->name != array_; }
  };

  // What is stored in the array is left blended; what is read for anything else is put in order.
  class Blend : public IRMutator {
   public:
    explicit Blend(const std::string& array) : array_(array) {}

   private:
    using IRMutator::visit;
    std::string array_;
    bool stored_ = false;

    Stmt visit(const Store* op) override {
      if (op->name != array_) return IRMutator::visit(op);
      stored_ = true;
      Stmt out = IRMutator::visit(op);
      stored_ = false;
      return out;
    }
    HExpr visit(const Shuffle* op) override {
      return stored_ && takes_seconds(op) ? Shuffle::make(op->vectors, blended(op->type.lanes()))
                                          : IRMutator::visit(op);
    }
    HExpr visit(const Load* op) override {
      if (op->name != array_ || stored_) return IRMutator::visit(op);
      return Shuffle::make({HExpr(op)}, ordered(op->type.lanes()));
    }
  };

  Stmt visit(const Allocate* op) override {
    const Stmt inside = IRMutator::visit(op);
    Lanewise lanewise(op->name);
    inside.accept(&lanewise);
    return lanewise.holds() ? Blend(op->name).mutate(inside) : inside;
  }
};

// Near a border the indices of a vector are clamped, and each lane is a load of its own. Where no lane is clamped,
// which is asked first, the vector is one load of neighbours. Where it is selected from such vectors and borders, and
// all lanes are of the vector, which is asked as well, nothing is selected.
class LoadInside : public WithUsedLets {
  using WithUsedLets::visit;

  // An index without its clamps, and whether none of them changes it.
  struct Unclamped : IRMutator {
    HExpr inside = const_true();
    bool any = false;

   private:
    using IRMutator::visit;
    static const Broadcast* limit_of(const HExpr& a, const HExpr& b) {
      const Broadcast* limit = b.as<Broadcast>();
      return limit != nullptr ? limit : a.as<Broadcast>();
    }
    template <class Op>
    HExpr without(const Op* op, bool is_least) {
      const Broadcast* limit = limit_of(op->a, op->b);
      if (!op->type.is_vector() || limit == nullptr || limit->value.type().is_vector()) return IRMutator::visit(op);
      HExpr lanes = simplify(mutate(limit == op->b.get() ? op->a : op->b));
      const Ramp* ramp = lanes.as<Ramp>();
      if (ramp == nullptr || !is_const_one(ramp->stride)) return IRMutator::visit(op);
      any = true;
      inside = inside && (is_least ? ramp->base >= limit->value : ramp->base + (ramp->lanes - 1) <= limit->value);
      return lanes;
    }
    HExpr visit(const Max* op) override { return without(op, true); }
    HExpr visit(const Min* op) override { return without(op, false); }
  };

  // A condition of a vector's lanes with its lets in their places, and whether it holds in all of them; nothing where
  // that is more than a comparison or two.
  struct Lanes {
    HExpr condition, all;
  };
  std::optional<Lanes> lanes_of(const HExpr& e) const {
    if (const Variable* name = e.as<Variable>()) {
      const auto value = lets_.find(name->name);
      return value == lets_.end() ? std::nullopt : lanes_of(value->second);
    }
    if (const Broadcast* same = e.as<Broadcast>()) {
      return same->value.type().is_vector() ? std::nullopt : std::optional(Lanes{e, same->value});
    }
    if (const And* both = e.as<And>()) {
      const auto a = lanes_of(both->a), b = lanes_of(both->b);
      return a && b ? std::optional(Lanes{a->condition && b->condition, a->all && b->all}) : std::nullopt;
    }
    if (const LE* le = e.as<LE>()) return compared(le);
    if (const LT* lt = e.as<LT>()) return compared(lt);
    return std::nullopt;
  }
  // The first and the last of numbers side by side, which may have been made narrower.
  struct Ends {
    HExpr first, last;
  };
  static std::optional<Ends> ends_of(const HExpr& x) {
    if (const Cast* cast = x.as<Cast>(); cast != nullptr && x.type().is_int()) {
      const auto ends = ends_of(cast->value);
      const auto fits = [&](const HExpr& end) {
        const auto number = as_const_int(end);
        return number && x.type().can_represent(*number);
      };
      if (!ends || !fits(ends->first) || !fits(ends->last)) return std::nullopt;
      const Halide::Type one = x.type().element_of();
      return Ends{simplify(Cast::make(one, ends->first)), simplify(Cast::make(one, ends->last))};
    }
    const Ramp* ramp = x.as<Ramp>();
    if (ramp == nullptr || !is_const_one(ramp->stride) || ramp->base.type().is_vector()) return std::nullopt;
    return Ends{ramp->base, simplify(ramp->base + make_const(ramp->base.type(), ramp->lanes - 1))};
  }
  // What x saturates, which is on the same side of a number inside x's type as x is.
  static HExpr unsaturated(const HExpr& x, const HExpr& number) {
    const Call* call = x.as<Call>();
    const auto value = as_const_int(number);
    const bool same = call != nullptr && call->is_intrinsic(Call::saturating_cast) && value && x.type().is_int() &&
                      call->args[0].type().is_int() && call->args[0].type().bits() > x.type().bits() &&
                      x.type().can_represent(*value - 1) && x.type().can_represent(*value + 1);
    return same ? call->args[0] : HExpr();
  }
  template <class Op>
  static std::optional<Lanes> compared(const Op* op) {
    const auto spread = [](const HExpr& x) {
      const Broadcast* out = x.as<Broadcast>();
      return out != nullptr && !out->value.type().is_vector() ? out : nullptr;
    };
    const auto one = [](const HExpr& a, const HExpr& b) {
      if (const HExpr wide = unsaturated(a, b); wide.defined())
        return simplify(Op::make(wide, Cast::make(wide.type(), b)));
      if (const HExpr wide = unsaturated(b, a); wide.defined())
        return simplify(Op::make(Cast::make(wide.type(), a), wide));
      return simplify(Op::make(a, b));
    };
    if (const Broadcast* a = spread(op->a)) {
      const auto b = ends_of(op->b);
      return b ? std::optional(Lanes{Op::make(op->a, op->b), one(a->value, b->first)}) : std::nullopt;
    }
    if (const Broadcast* b = spread(op->b)) {
      const auto a = ends_of(op->a);
      return a ? std::optional(Lanes{Op::make(op->a, op->b), one(a->last, b->value)}) : std::nullopt;
    }
    return std::nullopt;
  }

  HExpr visit(const Select* op) override {
    HExpr out = WithUsedLets::visit(op);
    const Select* selected = out.as<Select>();
    if (selected == nullptr || !selected->condition.type().is_vector()) return out;
    const Call* guarded = selected->true_value.as<Call>();
    if (guarded == nullptr || !guarded->is_intrinsic(Call::if_then_else)) return out;
    const auto lanes = lanes_of(selected->condition);
    if (!lanes) return out;
    return Call::make(out.type(), Call::if_then_else,
                      {simplify(lanes->all && guarded->args[0]), guarded->args[1],
                       Select::make(lanes->condition, selected->true_value, selected->false_value)},
                      Call::PureIntrinsic);
  }

  HExpr visit(const Load* op) override {
    HExpr load = WithUsedLets::visit(op);
    if (!op->type.is_vector() || !is_const_one(op->predicate)) return load;
    Unclamped unclamped;
    const HExpr index = simplify(unclamped.mutate(simplify(expanded(op->index))));
    const Ramp* ramp = index.as<Ramp>();
    if (!unclamped.any || ramp == nullptr || !is_const_one(ramp->stride)) return load;
    const HExpr neighbours =
        Load::make(op->type, op->name, index, op->image, op->param, const_true(op->type.lanes()), ModulusRemainder());
    return Call::make(op->type, Call::if_then_else, {simplify(unclamped.inside), neighbours, load},
                      Call::PureIntrinsic);
  }
};

// Near a border, where it is known which lanes of a vector are selected from an array and which from the border: those
// of the array are taken out of vectors of neighbours, none of which reaches beyond them.
class LoadKnownLanes : public WithUsedLets {
  using WithUsedLets::visit;

  // The lanes that may be selected of a value, from the first to the last.
  struct Selected {
    int lanes, first, last;
  };

  // Those where the condition may be as wanted; nothing where all are.
  static std::optional<Selected> selected_lanes(const HExpr& condition, bool wanted) {
    const int lanes = condition.type().lanes();
    Selected out{lanes, lanes, -1};
    bool all = true;
    for (int lane = 0; lane < lanes; ++lane) {
      const HExpr known = simplify(extract_lane(condition, lane));
      const bool never = wanted ? is_const_zero(known) : is_const_one(known);
      all = all && !never;
      if (never) continue;
      out.first = std::min(out.first, lane);
      out.last = lane;
    }
    return all || out.last < 0 ? std::nullopt : std::optional(out);
  }

  class Loads : public IRMutator {
   public:
    Loads(const LoadKnownLanes& around, Selected selected) : around_(around), selected_(selected) {}

   private:
    using IRMutator::visit;
    const LoadKnownLanes& around_;
    Selected selected_;

    HExpr visit(const Load* op) override {
      return taken_from(
          op, op->type.lanes(), [](int lane) { return lane; }, op);
    }
    // Where clamping repeats an element at an end, Halide's simplifier has made a shorter load and a shuffle of it.
    HExpr visit(const Shuffle* op) override {
      const Load* load = op->vectors.size() == 1 ? op->vectors[0].as<Load>() : nullptr;
      if (load == nullptr) return IRMutator::visit(op);
      const auto lane_of = [&](int lane) { return op->indices[static_cast<size_t>(lane)]; };
      return taken_from(load, op->type.lanes(), lane_of, op);
    }

    // As many lanes, each the one of the load that `lane_of` says, out of vectors of neighbours; `as_it_is` where those
    // are unknown or too many.
    HExpr taken_from(const Load* load, int lanes, const std::function<int(int)>& lane_of, const HExpr& as_it_is) const {
      if (lanes != selected_.lanes || !is_const_one(load->predicate)) return as_it_is;
      const HExpr index = around_.expanded(load->index);
      const auto index_of = [&](int lane) {
        return index.type().is_vector() ? extract_lane(index, lane_of(lane)) : index;
      };
      const HExpr base = simplify(index_of(selected_.first));
      std::vector<int> distances;  // of each lane that is selected from the first one
      for (int lane = selected_.first; lane <= selected_.last; ++lane) {
        const auto distance = as_const_int(simplify(index_of(lane) - base));
        if (!distance || *distance < 0 || *distance >= most_vectors * lanes) return as_it_is;
        distances.push_back(static_cast<int>(*distance));
      }
      const int all = *std::max_element(distances.begin(), distances.end()) + 1;
      int width = lanes;
      while (width > all) width /= 2;
      const int count = (all + width - 1) / width;
      if (width == 1 || count > most_vectors) return as_it_is;
      const auto start = [&](int vector) { return std::min(vector * width, all - width); };
      std::vector<HExpr> vectors;
      for (int i = 0; i < count; ++i) {
        const HExpr neighbours = Ramp::make(simplify(base + start(i)), make_const(base.type(), 1), width);
        vectors.push_back(Load::make(load->type.with_lanes(width), load->name, neighbours, load->image, load->param,
                                     const_true(width), ModulusRemainder()));
      }
      std::vector<int> chosen;
      for (int lane = 0; lane < lanes; ++lane) {
        const int known = std::clamp(lane, selected_.first, selected_.last) - selected_.first;
        const int distance = distances[static_cast<size_t>(known)], vector = std::min(distance / width, count - 1);
        chosen.push_back(vector * width + distance - start(vector));
      }
      return Shuffle::make(vectors, chosen);
    }

    static constexpr int most_vectors = 4;
  };

  HExpr visit(const Select* op) override {
    HExpr out = WithUsedLets::visit(op);
    const Select* select = out.as<Select>();
    if (select == nullptr || !select->condition.type().is_vector()) return out;
    const HExpr condition = expanded(select->condition);
    const auto of_lanes = [&](const HExpr& value, bool wanted) {
      const auto selected = selected_lanes(condition, wanted);
      return selected ? Loads(*this, *selected).mutate(value) : value;
    };
    return Select::make(select->condition, of_lanes(select->true_value, true), of_lanes(select->false_value, false));
  }
};

// (x * a + c) % (a * b) is (x % b) * a + c where c is less than a, which Halide does not see: indices of neighbours
// differ by a number then.
class PlainRemainders : public IRMutator {
  using IRMutator::visit;

  HExpr visit(const Mod* op) override {
    const auto whole = as_const_int(op->b);
    const Add* sum = op->a.as<Add>();
    const Mul* product = sum != nullptr ? sum->a.as<Mul>() : nullptr;
    const auto step = product != nullptr ? as_const_int(product->b) : std::nullopt;
    const auto rest = sum != nullptr ? as_const_int(sum->b) : std::nullopt;
    if (!whole || !step || !rest || *step <= 0 || *rest < 0 || *rest >= *step || *whole % *step != 0)
      return IRMutator::visit(op);
    return mutate(product->a) % make_const(op->type, *whole / *step) * product->b + sum->b;
  }
};

// hoist_word(a[i], a[i + 1], a[i + 2], a[i + 3]) with i a multiple of 4 is a load of a word, as is hoist_word(a[i],
// a[i + 1]) with i even; anything else stays the call of a function that puts numbers together.
class LoadWords : public WithUsedLets {
  using WithUsedLets::visit;

  // Where bytes come from: of which array, at which indices.
  struct Bytes {
    HExpr load;
    HExpr index;

    const Load* operator->() const { return load.as<Load>(); }
  };

  // Of parts side by side, where each goes on where the one before it ends.
  Bytes joined(const Shuffle* parts) const {
    Bytes out;
    for (const HExpr& part : parts->vectors) {
      const Bytes next = source(part);
      const Ramp *to = next.load.defined() ? next.index.as<Ramp>() : nullptr,
                 *from = out.load.defined() ? out.index.as<Ramp>() : nullptr;
      if (to == nullptr) return {};
      if (from == nullptr) {
        out = next;
        continue;
      }
      const HExpr end = from->base + from->stride * from->lanes;
      if (next->name != out->name || !equal(from->stride, to->stride) || !is_const_zero(simplify(to->base - end)))
        return {};
      out.index = Ramp::make(from->base, from->stride, from->lanes + to->lanes);
    }
    return out;
  }

  // Halide stages strided loads as wider dense ones whose lanes it picks.
  Bytes source(const HExpr& byte) const {
    HExpr e = expanded(byte);
    if (const Load* load = e.as<Load>()) {
      if (!is_const_one(load->predicate)) return {};
      return {e, simplify(PlainRemainders().mutate(simplify(expanded(load->index))))};
    }
    const Shuffle* shuffle = e.as<Shuffle>();
    if (shuffle != nullptr && shuffle->is_concat() && shuffle->vectors.size() > 1) return joined(shuffle);
    if (shuffle == nullptr || shuffle->vectors.size() != 1 || shuffle->indices.size() < 2) return {};
    Bytes inner = source(shuffle->vectors[0]);
    const Ramp* ramp = inner.load.defined() ? inner.index.as<Ramp>() : nullptr;
    if (ramp == nullptr) return {};
    const int first = shuffle->indices[0], step = shuffle->indices[1] - first;
    for (size_t i = 0; i < shuffle->indices.size(); ++i) {
      if (shuffle->indices[i] != first + static_cast<int>(i) * step) return {};
    }
    inner.index = simplify(
        Ramp::make(ramp->base + ramp->stride * first, ramp->stride * step, static_cast<int>(shuffle->indices.size())));
    return inner;
  }

  HExpr visit(const Call* op) override {
    if (op->name != word_marker) return WithLets::visit(op);
    std::vector<Bytes> bytes;
    for (const HExpr& a : op->args) {
      bytes.push_back(source(a));
      if (!bytes.back().load.defined()) return WithLets::visit(op);
    }
    HExpr first = bytes[0].index;
    for (size_t i = 0; i < bytes.size(); ++i) {
      HExpr distance = simplify(bytes[i].index - first);
      if (const Broadcast* b = distance.as<Broadcast>()) distance = b->value;
      if (bytes[i]->name != bytes[0]->name || !is_const(distance, static_cast<int64_t>(i))) return WithLets::visit(op);
    }
    HExpr together = make_const(first.type(), static_cast<int64_t>(bytes.size()));
    if (!is_const_zero(simplify(first % together))) return WithLets::visit(op);
    return Load::make(op->type, bytes[0]->name, simplify(first / together), bytes[0]->image, bytes[0]->param,
                      const_true(op->type.lanes()), ModulusRemainder());
  }
};

bool loads(const Stmt& s) {
  struct Finder : IRGraphVisitor {
    using IRGraphVisitor::visit;
    bool found = false;
    void visit(const Load*) override { found = true; }
  } finder;
  s.accept(&finder);
  return finder.found;
}

// Halide decides in front of the kernel whether a fold is used at all, where a selection says so, and computes there
// what is the same for all work-items. The host can neither read what kernels read nor call what they call, and has no
// numbers to give them: kernels take arrays alone. So all but the arrays themselves is done where it is needed.
class KeepInside : public IRMutator {
  using IRMutator::visit;

  static bool belongs_inside(const HExpr& e) {
    if (e.type().is_handle()) return false;
    struct Finder : IRGraphVisitor {
      using IRGraphVisitor::visit;
      bool found = false;
      void visit(const Call* op) override {
        found = found || op->name.rfind("halide_", 0) == 0 || op->name.rfind("_halide_", 0) == 0;
        IRGraphVisitor::visit(op);
      }
    } of_host;
    e.accept(&of_host);
    return !of_host.found;
  }

  Stmt visit(const LetStmt* op) override {
    return belongs_inside(op->value) ? mutate(substitute(op->name, op->value, op->body)) : IRMutator::visit(op);
  }
  Stmt visit(const For* op) override {
    const bool kernel = op->for_type == ForType::GPUBlock || op->for_type == ForType::GPUThread;
    return kernel ? Stmt(op) : IRMutator::visit(op);
  }
};

bool produces(const Stmt& s) {
  struct Finder : IRGraphVisitor {
    using IRGraphVisitor::visit;
    bool found = false;
    void visit(const ProducerConsumer* op) override {
      found = found || op->is_producer;
      IRGraphVisitor::visit(op);
    }
  } finder;
  s.accept(&finder);
  return finder.found;
}

// A fold that a selection of data may not need is computed all the same. Where it is left out, the selection is between
// a value and memory that nobody wrote, and PoCL 3.1 (LLVM 14) takes the memory then.
class AlwaysFold : public WithLets {
  using WithLets::visit;

  Stmt visit(const IfThenElse* op) override {
    const bool skips = !op->else_case.defined() && produces(op->then_case);
    if (skips && loads(Evaluate::make(expanded(op->condition)))) return mutate(op->then_case);
    return WithLets::visit(op);
  }
};

// The same of a selection by indices, at a border say: there the fold may be left out, since its own indices are inside
// the array only where it is needed; its array is filled with zeros instead. For arrays of one work-item alone.
class FillSkipped : public IRMutator {
  using IRMutator::visit;
  struct Array {
    Halide::Type type;
    int64_t size = 1;
  };
  std::map<std::string, Array> arrays_;

  Stmt zeros(const std::string& name) const {
    const Array& array = arrays_.at(name);
    const std::string i = unique_name("skipped");
    Stmt store = Store::make(name, make_zero(array.type), Variable::make(Halide::Int(32), i), Halide::Parameter(),
                             const_true(), ModulusRemainder());
    return For::make(i, 0, static_cast<int32_t>(array.size), ForType::Serial, Halide::Partition::Never,
                     Halide::DeviceAPI::None, store);
  }

  // Before anything is stored: a condition around the fold's start, and not one inside its loops.
  Stmt filled_at_start(const Stmt& s, const std::string& name) const {
    if (const LetStmt* let = s.as<LetStmt>())
      return LetStmt::make(let->name, let->value, filled_at_start(let->body, name));
    if (const Block* block = s.as<Block>()) return Block::make(filled_at_start(block->first, name), block->rest);
    const IfThenElse* choice = s.as<IfThenElse>();
    if (choice == nullptr || choice->else_case.defined()) return s;
    return IfThenElse::make(choice->condition, choice->then_case, zeros(name));
  }

  Stmt visit(const Allocate* op) override {
    Array array{op->type, 1};
    bool known = op->memory_type == Halide::MemoryType::Stack;
    for (const HExpr& extent : op->extents) {
      auto n = as_const_int(extent);
      known = known && n && *n > 0;
      if (known) array.size *= *n;
    }
    if (!known) return IRMutator::visit(op);
    arrays_[op->name] = array;
    Stmt s = IRMutator::visit(op);
    arrays_.erase(op->name);
    return s;
  }
  Stmt visit(const ProducerConsumer* op) override {
    Stmt s = IRMutator::visit(op);
    const ProducerConsumer* made = s.as<ProducerConsumer>();
    if (!op->is_producer || made == nullptr || arrays_.count(op->name) == 0) return s;
    return ProducerConsumer::make(op->name, true, filled_at_start(made->body, op->name));
  }
  Stmt visit(const IfThenElse* op) override {
    if (op->else_case.defined()) return IRMutator::visit(op);
    struct Finder : IRGraphVisitor {
      using IRGraphVisitor::visit;
      std::set<std::string> names;
      void visit(const ProducerConsumer* op) override {
        if (op->is_producer) names.insert(op->name);
        IRGraphVisitor::visit(op);
      }
    } finder;
    op->then_case.accept(&finder);
    std::vector<Stmt> fills;
    for (const std::string& name : finder.names) {
      if (arrays_.count(name) != 0) fills.push_back(zeros(name));
    }
    Stmt then_case = mutate(op->then_case);
    return IfThenElse::make(op->condition, then_case, fills.empty() ? Stmt() : Block::make(fills));
  }
};

bool is_barrier(const Stmt& s) {
  const Evaluate* evaluate = s.as<Evaluate>();
  const Call* call = evaluate != nullptr ? evaluate->value.as<Call>() : nullptr;
  return call != nullptr && call->is_intrinsic(Call::gpu_thread_barrier);
}

// A tuple in local memory that some work-items compute: Halide reads the old components in all of them and guards
// each store by itself, so that the idle ones read while the others write. One guard goes around all. The barriers
// between the stores go too, which nothing needs: what is stored was read before.
class GuardReads : public IRMutator {
  using IRMutator::visit;

  static void flatten(const Stmt& s, std::vector<Stmt>& out) {
    const Block* block = s.as<Block>();
    if (block == nullptr) return out.push_back(s);
    flatten(block->first, out);
    flatten(block->rest, out);
  }

  Stmt visit(const LetStmt* op) override {
    std::vector<const LetStmt*> lets;
    Stmt body = op;
    for (const LetStmt* let; (let = body.as<LetStmt>()) != nullptr; body = let->body) lets.push_back(let);
    std::vector<Stmt> parts, guarded;
    flatten(body, parts);
    HExpr condition;
    for (const Stmt& part : parts) {
      if (is_barrier(part)) continue;
      const IfThenElse* guard = part.as<IfThenElse>();
      if (guard == nullptr || guard->else_case.defined() || loads(guard->then_case)) return IRMutator::visit(op);
      if (condition.defined() && !equal(condition, guard->condition)) return IRMutator::visit(op);
      condition = guard->condition;
      guarded.push_back(guard->then_case);
    }
    if (guarded.size() < 2) return IRMutator::visit(op);
    Stmt all = Block::make(guarded);
    for (size_t i = lets.size(); i-- > 0;) {
      if (expr_uses_var(condition, lets[i]->name)) return IRMutator::visit(op);
      all = LetStmt::make(lets[i]->name, lets[i]->value, all);
    }
    Stmt guard = IfThenElse::make(condition, all);
    return is_barrier(parts.back()) ? Block::make(guard, parts.back()) : guard;
  }
};

// The loops over groups become one over a range of their numbers, which whoever calls the kernel chooses. A loop of one
// step may be gone already.
class GroupRange : public IRMutator {
 public:
  GroupRange(const std::vector<std::string>& loops, uint64_t* groups)
      : loops_(loops.begin(), loops.end()), groups_(*groups) {
    groups_ = 1;
  }

 private:
  using IRMutator::visit;
  std::set<std::string> loops_;
  uint64_t& groups_;
  std::string number_;

  Stmt visit(const For* op) override {
    if (loops_.count(op->name) == 0) return IRMutator::visit(op);
    const auto extent = as_const_int(op->extent);
    if (!extent || *extent < 1 || !is_const_zero(op->min)) unsupported("a group map whose extent is not known");
    const bool outermost = number_.empty();
    if (outermost) number_ = unique_name("group");
    Stmt body = mutate(op->body);
    const HExpr number = Variable::make(Halide::Int(32), number_);
    HExpr place = groups_ == 1 ? number : number / static_cast<int32_t>(groups_);
    if (!outermost) place = place % static_cast<int32_t>(*extent);
    groups_ *= static_cast<uint64_t>(*extent);
    if (groups_ >= uint64_t{1} << 31) unsupported("more than 2147483647 groups");
    body = LetStmt::make(op->name, place, body);
    if (!outermost) return body;
    return For::make(number_, Variable::make(Halide::Int(32), first_group),
                     Variable::make(Halide::Int(32), group_count), ForType::Serial, Halide::Partition::Never,
                     Halide::DeviceAPI::None, body);
  }
};

// Halide's printer of OpenCL keeps the values of a block by their text, and that of a number in a vector is the
// number's, however many lanes the vector has. It makes such vectors of its own, too, of 0 and 1 where truth values
// become numbers. In kernels with vectors of several lengths all of them get texts that say the length.
class NumbersByLanes : public IRMutator {
 public:
  Stmt mutate(const Stmt& s) override {
    if (!counted_) {
      counted_ = true;
      Count count(lanes_);
      s.accept(&count);
    }
    return IRMutator::mutate(s);
  }

 protected:
  using IRMutator::mutate;
  using IRMutator::visit;

 private:
  class Count : public IRVisitor {
   public:
    explicit Count(std::set<int>& lanes) : lanes_(lanes) {}

   private:
    using IRVisitor::visit;
    void visit(const Broadcast* op) override {
      lanes_.insert(op->type.lanes());
      IRVisitor::visit(op);
    }
    void visit(const Cast* op) override {
      if (op->type.lanes() > 1) lanes_.insert(op->type.lanes());
      IRVisitor::visit(op);
    }
    std::set<int>& lanes_;
  };

  HExpr visit(const Broadcast* op) override {
    if (lanes_.size() < 2 || op->value.type().lanes() > 1 || op->type.is_bool()) return IRMutator::visit(op);
    return in_lanes(op->type, mutate(op->value));
  }

  HExpr visit(const Cast* op) override {
    const bool of_truth = op->value.type().is_bool() && op->type.lanes() > 1 && !op->type.is_bool();
    if (lanes_.size() < 2 || !of_truth) return IRMutator::visit(op);
    const Halide::Type element = op->type.element_of();
    return Select::make(mutate(op->value), in_lanes(op->type, make_const(element, 1)),
                        in_lanes(op->type, make_const(element, 0)));
  }

  static HExpr in_lanes(const Halide::Type& type, const HExpr& value) {
    const char* whole = type.bits() == 8 ? "char" : type.bits() == 16 ? "short" : type.bits() == 32 ? "int" : "long";
    const char* part = type.bits() == 16 ? "half" : type.bits() == 32 ? "float" : "double";
    const std::string name =
        fmt::format("({}{}{})", type.is_uint() ? "u" : "", type.is_float() ? part : whole, type.lanes());
    return Call::make(type, name, {value}, Call::PureExtern);
  }

  bool counted_ = false;
  std::set<int> lanes_;
};

// Halide allocates stack arrays of more than 16 KiB with halide_malloc, which native kernels do not have. An array in
// MemoryType::Register stays on the stack whatever its size.
class StayOnStack : public IRMutator {
  using IRMutator::visit;

  Stmt visit(const Allocate* op) override {
    const Stmt body = mutate(op->body);
    const bool moves = op->memory_type == Halide::MemoryType::Stack;
    return Allocate::make(op->name, op->type, moves ? Halide::MemoryType::Register : op->memory_type, op->extents,
                          op->condition, body, op->new_expr, op->free_function, op->padding);
  }
};

}  // namespace

std::vector<std::unique_ptr<IRMutator>> native_passes(const std::string& result_name,
                                                      const std::vector<std::string>& loops, const InputArrays& inputs,
                                                      const NativeTarget& target, uint64_t* groups,
                                                      std::set<std::string>* prefetched) {
  std::vector<std::unique_ptr<IRMutator>> passes;
  passes.push_back(std::make_unique<AlwaysFold>());
  passes.push_back(std::make_unique<FillSkipped>());
  passes.push_back(rare_branches());
  passes.push_back(std::make_unique<StoreAtIndex>(result_name));
  passes.push_back(std::make_unique<LoadWords>());
  passes.push_back(std::make_unique<PlainDifferences>());
  passes.push_back(std::make_unique<LoadKnownLanes>());
  passes.push_back(std::make_unique<LoadInside>());
  passes.push_back(quantised_sums());
  if (target.architecture == std::string_view("x86_64")) {
    passes.push_back(std::make_unique<LoadSeconds>());
    passes.push_back(std::make_unique<BlendSeconds>());
    passes.push_back(transposed_blocks());
  }
  passes.push_back(sums_of_products());
  if (target.matrix_tile > 0) passes.push_back(matrix_products());
  if (!inputs.cold.empty()) passes.push_back(prefetches(inputs, loops, true, prefetched));  // in what is still a loop
  passes.push_back(std::make_unique<GroupRange>(loops, groups));
  passes.push_back(native_functions(target));
  passes.push_back(std::make_unique<StayOnStack>());
  return passes;
}

std::vector<std::unique_ptr<IRMutator>> lowering_passes(const std::string& result_name,
                                                        const std::vector<std::string>& loops,
                                                        const InputArrays& inputs, std::set<std::string>* prefetched) {
  std::vector<std::unique_ptr<IRMutator>> passes;
  passes.push_back(std::make_unique<KeepInside>());
  passes.push_back(std::make_unique<AlwaysFold>());
  passes.push_back(std::make_unique<FillSkipped>());
  passes.push_back(rare_branches());
  passes.push_back(std::make_unique<StoreAtIndex>(result_name));
  passes.push_back(std::make_unique<CompactRegisters>());
  passes.push_back(std::make_unique<LoadWords>());
  passes.push_back(std::make_unique<PlainDifferences>());
  passes.push_back(std::make_unique<LoadKnownLanes>());
  passes.push_back(std::make_unique<LoadInside>());
  passes.push_back(std::make_unique<LoadLanes>());
  passes.push_back(std::make_unique<StoreLanes>());
  passes.push_back(std::make_unique<GuardReads>());
  if (!inputs.cold.empty()) passes.push_back(prefetches(inputs, loops, false, prefetched));
  passes.push_back(index_bases());
  passes.push_back(quantised_sums());
  passes.push_back(std::make_unique<NumbersByLanes>());
  return passes;
}

}  // namespace hoist::emission
