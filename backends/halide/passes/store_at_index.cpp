// result[...] = hoist_store(index, condition, value) becomes if (condition) result[index] = value. Marked stores to
// other arrays, the parts of a scatter, become stores to the result too, and the other statements of these arrays are
// dropped.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

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
  std::set<std::string> writers_;  // arrays with marked stores, besides the result
  Halide::Parameter parameter_;    // parameter of the result

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

  // The two scalars of ramp(first, second - first, 2), as Halide's simplifier writes a vector of two scalars. Its lanes
  // as a ramp would be rounded once more.
  static std::vector<HExpr> lanes_of_pair(const HExpr& value) {
    const Ramp* ramp = value.as<Ramp>();
    const Sub* difference = ramp != nullptr && ramp->lanes == 2 ? ramp->stride.as<Sub>() : nullptr;
    if (difference == nullptr) return {};
    return {ramp->base, difference->a};
  }

  static bool is_marked(const HExpr& value) {
    if (const Shuffle* shuffle = value.as<Shuffle>()) return is_marked(shuffle->vectors[0]);
    const std::vector<HExpr> pair = lanes_of_pair(value);
    if (!pair.empty()) return is_marked(pair[0]) || is_marked(pair[1]);
    const Call* marker = value.as<Call>();
    return marker != nullptr && marker->name == store_marker;
  }

  Stmt visit(const Store* op) override {
    const bool writes = writers_.count(op->name) != 0;
    if (op->name != result_ && !writes) return WithLets::visit(op);
    if (!is_const_one(op->predicate)) unsupported("a result that is stored under a predicate");
    HExpr value = op->value;
    std::vector<std::pair<std::string, HExpr>> inner;
    const std::map<std::string, HExpr> saved = lets_;
    while (const Let* let = value.as<Let>()) {
      inner.emplace_back(let->name, mutate(without_mark(let->value)));
      lets_[let->name] = let->value;
      value = let->body;
    }
    Stmt out = Evaluate::make(0);
    if (writers_.empty() || is_marked(value)) {
      std::vector<HExpr> parts = lanes_of_pair(value);
      if (parts.empty()) parts = {value};
      std::vector<Stmt> stores;
      for (const HExpr& part : parts) {
        const HExpr mark = mark_of(part);
        stores.push_back(store(marked(mark, 0), marked(mark, 1), mutate(mark.same_as(part) ? marked(mark, 2) : part),
                               writes ? parameter_ : op->param, inner));
      }
      out = Block::make(stores);
    }
    lets_ = saved;
    return out;
  }

  Stmt visit(const LetStmt* op) override {
    if (!is_marked(op->value)) return WithLets::visit(op);
    const HExpr value = mutate(marked(op->value, 2));
    lets_[op->name] = op->value;
    const Stmt body = mutate(op->body);
    lets_.erase(op->name);
    return LetStmt::make(op->name, value, body);
  }

  static HExpr without_mark(const HExpr& value) { return is_marked(value) ? marked(value, 2) : value; }

  // The marked value that a name stands for, if a let binds it.
  HExpr mark_of(const HExpr& value) const {
    const Variable* variable = value.as<Variable>();
    const auto bound = variable == nullptr ? lets_.end() : lets_.find(variable->name);
    return bound == lets_.end() ? value : bound->second;
  }

  // The marked index, condition or value. Halide may split vectors around the marker call, for instance to treat even
  // and odd 4-bit elements separately, and recombine them.
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
    const std::string name = unique_name("lanes");
    return wrap(
        LetStmt::make(name, value, stores_by_lanes(Variable::make(value.type(), name), whole, known, parameter)),
        inner);
  }

  // Stores under a condition that differs between the lanes. Adjacent lanes with the same condition are stored as
  // vectors: LLVM's SLP pass would join single stores with stores of the next row, and with them the sums of all rows,
  // across their vectors (products with 12 columns take 4 times as long).
  Stmt stores_by_lanes(const HExpr& vector, const HExpr& whole, const HExpr& known,
                       const Halide::Parameter& parameter) const {
    const Ramp* ramp = whole.as<Ramp>();
    const bool is_dense = ramp != nullptr && is_const_one(ramp->stride);
    const int lanes = vector.type().lanes();
    std::vector<HExpr> conditions;
    for (int i = 0; i < lanes; ++i) conditions.push_back(simplify(lane_of(known, i)));
    const auto alike = [&](int first, int count) {
      const auto begin = conditions.begin() + first;
      return is_dense && first + count <= lanes &&
             std::all_of(begin, begin + count, [&](const HExpr& condition) { return equal(condition, *begin); });
    };
    std::vector<Stmt> stores;
    for (int i = 0, width = 1; i < lanes; i += width) {
      for (width = 1; alike(i, 2 * width);) width *= 2;
      const HExpr part = width == 1 ? lane_of(vector, i) : Shuffle::make_slice(vector, i, 1, width);
      const HExpr place = width == 1 ? simplify(lane_of(whole, i)) : Ramp::make(simplify(ramp->base + i), 1, width);
      stores.push_back(
          IfThenElse::make(conditions[static_cast<size_t>(i)],
                           Store::make(result_, part, place, parameter, const_true(width), ModulusRemainder())));
    }
    return Block::make(stores);
  }

  // A vector's index is expanded so that Halide recognises a dense ramp; a scalar's index keeps its shared parts.
  static HExpr kept(const HExpr& whole, const HExpr& index) { return whole.type().lanes() > 1 ? whole : index; }

  static ModulusRemainder alignment(const HExpr& index) {
    const Ramp* ramp = index.as<Ramp>();
    return modulus_remainder(ramp != nullptr ? ramp->base : index.type().lanes() == 1 ? index : HExpr(0));
  }
};

}  // namespace

MadePass store_at_index(const PassInput& input) { return std::make_unique<StoreAtIndex>(input.result); }

}  // namespace hoist::emission
