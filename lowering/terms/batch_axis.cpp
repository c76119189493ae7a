#include "lowering/terms/batch_axis.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "ir/evaluate/evaluate_compile.h"
#include "lowering/terms/element_reads.h"

namespace hoist {
namespace {

constexpr int seeded_points = 16;

// Both formulas at one position of each: the values of an element are the same, operation by operation.
class Comparison {
 public:
  Comparison(const ElementFormula& whole, const ElementFormula& part, const std::map<std::string, BatchAxis>& operands,
             int64_t in_part)
      : whole_(whole), part_(part), at_whole_(whole), at_part_(part), operands_(operands), in_part_(in_part) {}

  // `first` is the number of the part's first sample.
  bool same(std::vector<int64_t> element, std::vector<int64_t> steps, BatchAxis result, int64_t first) {
    seen_.clear();
    element_of_part_ = element;
    element[result.dimension] += first * result.each;
    element_ = std::move(element);
    steps_ = std::move(steps);
    first_ = first;
    return same_values(whole_.root, part_.root);
  }

 private:
  bool same_values(int a, int b) {
    if (a < 0 || b < 0) return a == b;
    if (!seen_.insert({a, b}).second) return true;
    const Value &x = whole_.parts.values[static_cast<size_t>(a)], &y = part_.parts.values[static_cast<size_t>(b)];
    if (x.kind != y.kind || x.scalar != y.scalar) return false;
    switch (x.kind) {
      case Value::literal:
        return x.low == y.low;
      case Value::load: {
        const auto read = whole_.reads.find(a), other = part_.reads.find(b);
        if (read != whole_.reads.end() && other != part_.reads.end()) return same_reads(read->second, other->second);
        return read == whole_.reads.end() && other == part_.reads.end() && same_tables(x, y);
      }
      case Value::position:
        return same_positions(x.index, y.index);
      case Value::within:
        return x.low == y.low && x.high == y.high && same_positions(x.index, y.index);
      case Value::accumulator:
      case Value::result:
        return x.a == y.a && x.b == y.b && same_loops(static_cast<size_t>(x.a), static_cast<size_t>(x.b));
      default:
        return x.function == y.function && x.from == y.from && x.same_bits == y.same_bits && same_values(x.a, y.a) &&
               same_values(x.b, y.b) && same_values(x.c, y.c);
    }
  }

  bool same_loops(size_t loop, size_t slot) {
    const Loop &x = whole_.parts.loops[loop], &y = part_.parts.loops[loop];
    if (x.count != y.count || slot >= x.slots.size() || slot >= y.slots.size()) return false;
    return same_values(x.slots[slot].initial, y.slots[slot].initial) &&
           same_values(x.slots[slot].body, y.slots[slot].body);
  }

  bool same_positions(IndexId a, IndexId b) {
    return at_whole_.at(a, element_, steps_) == at_part_.at(b, element_of_part_, steps_) && same_data(a, b);
  }

  bool same_reads(const ElementFormula::Read& a, const ElementFormula::Read& b) {
    if (a.parameter != b.parameter || a.at.size() != b.at.size()) return false;
    const auto divided = operands_.find(a.parameter);
    for (size_t d = 0; d < a.at.size(); ++d) {
      if (divided == operands_.end() || divided->second.dimension != d) {
        if (!same_positions(a.at[d], b.at[d])) return false;
        continue;
      }
      const int64_t each = divided->second.each, in_whole = at_whole_.at(a.at[d], element_, steps_),
                    in_part = at_part_.at(b.at[d], element_of_part_, steps_);
      if (in_part < 0 || in_part >= in_part_ * each || in_whole != in_part + first_ * each) return false;
      if (!computed_in(whole_, at_whole_, a.at[d]).empty() || !computed_in(part_, at_part_, b.at[d]).empty())
        return false;
    }
    return true;
  }

  // Loads from constants inside the terms.
  bool same_tables(const Value& a, const Value& b) {
    const Buffer &x = whole_.parts.buffers[static_cast<size_t>(a.a)],
                 &y = part_.parts.buffers[static_cast<size_t>(b.a)];
    return x.data != nullptr && y.data != nullptr && x.scalar == y.scalar && x.count == y.count &&
           std::memcmp(x.data, y.data, x.bytes()) == 0 && same_positions(a.index, b.index);
  }

  // The values that compute the position, apart from literals.
  static std::vector<int> computed_in(const ElementFormula& formula, const FormulaPositions& positions, IndexId id) {
    std::vector<int> out;
    for (const auto& [atom_id, coefficient] : formula.parts.indices[id].terms) {
      const Atom& atom = formula.parts.indices.atom(atom_id);
      if (atom.kind == Atom::computed) {
        if (!positions.stated(atom)) out.push_back(static_cast<int>(atom.a));
      } else if (atom.kind != Atom::variable) {
        const std::vector<int> inside = computed_in(formula, positions, atom.argument);
        out.insert(out.end(), inside.begin(), inside.end());
      }
    }
    return out;
  }

  bool same_data(IndexId a, IndexId b) {
    const std::vector<int> x = computed_in(whole_, at_whole_, a), y = computed_in(part_, at_part_, b);
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](int p, int q) { return same_values(p, q); });
  }

  const ElementFormula &whole_, &part_;
  const FormulaPositions at_whole_, at_part_;
  const std::map<std::string, BatchAxis>& operands_;
  const int64_t in_part_;
  std::vector<int64_t> element_, element_of_part_, steps_;
  int64_t first_ = 0;
  std::set<std::pair<int, int>> seen_;
};

}  // namespace

bool computes_samples(Expr whole, Expr part, const std::map<std::string, BatchAxis>& operands, BatchAxis result,
                      int64_t samples, int64_t in_part) {
  const auto a = element_formula(whole), b = element_formula(part);
  if (a == nullptr || b == nullptr || a->parts.loops.size() != b->parts.loops.size()) return false;
  const std::vector<int64_t> shape = shape_of(part->type);
  Comparison comparison(*a, *b, operands, in_part);
  std::mt19937_64 random;
  for (int point = 0; point < seeded_points + 2; ++point) {
    // The first point is the first element and the first step, the second one the last.
    const auto drawn = [&](int64_t count) {
      if (point < 2) return point == 0 ? 0 : std::max<int64_t>(count - 1, 0);
      return static_cast<int64_t>(random() % static_cast<uint64_t>(std::max<int64_t>(count, 1)));
    };
    std::vector<int64_t> element, steps;
    for (int64_t extent : shape) element.push_back(drawn(extent));
    for (const Loop& loop : a->parts.loops) steps.push_back(drawn(loop.count));
    for (int64_t first : {int64_t{0}, samples - in_part}) {
      if (!comparison.same(element, steps, result, first)) return false;
    }
  }
  return true;
}

}  // namespace hoist
