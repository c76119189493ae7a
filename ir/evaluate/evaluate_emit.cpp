// From values to a program: each required value goes into the list of the innermost loop on which it depends, so that
// loop-invariant values are computed outside the loop.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/base/result.h"
#include "ir/evaluate/evaluate_program.h"

namespace hoist {
namespace {

class Marker {
 public:
  explicit Marker(const Compiled& c) : c_(c), seen_(c.values.size()) {}

  Reach run(const std::vector<int>& roots) {
    for (int root : roots) mark(root);
    while (!waiting_.empty()) {
      const int id = waiting_.back();
      waiting_.pop_back();
      const Value& v = c_.values[static_cast<size_t>(id)];
      if (v.index >= 0) mark_index(v.index);
      if (v.kind == Value::operation || v.kind == Value::conversion || v.kind == Value::selection) {
        for (int operand : {v.a, v.b, v.c}) {
          if (operand >= 0) mark(operand);
        }
      } else if (v.kind == Value::result || v.kind == Value::accumulator) {
        for (const Loop::Slot& slot : c_.loops[static_cast<size_t>(v.a)].slots) {
          mark(slot.initial);
          mark(slot.body);
        }
      }
    }
    std::sort(reach_.values.begin(), reach_.values.end());
    return std::move(reach_);
  }

 private:
  void mark(int id) {
    if (seen_[static_cast<size_t>(id)]) return;
    seen_[static_cast<size_t>(id)] = true;
    reach_.values.push_back(id);
    waiting_.push_back(id);
  }

  void mark_index(IndexId id) {
    for (auto [atom_id, coefficient] : c_.indices[id].terms) {
      const Atom& a = c_.indices.atom(atom_id);
      if (a.kind == Atom::variable) {
        if (a.scope == 0) reach_.variables.insert(atom_id);
      } else if (a.kind == Atom::computed) {
        mark(static_cast<int>(a.a));
      } else if (atoms_.insert(atom_id).second) {
        mark_index(a.argument);
      }
    }
  }

  const Compiled& c_;
  std::vector<bool> seen_;
  std::set<AtomId> atoms_;
  std::vector<int> waiting_;
  Reach reach_;
};

class Emitter {
 public:
  explicit Emitter(const Compiled& c) : c_(c) {}

  CompiledTerm run(int root, const std::vector<int64_t>& extents, const std::vector<IndexId>& variables) {
    p_.lists.resize(2);
    p_.extents = extents;
    p_.scalar = c_.values[static_cast<size_t>(root)].scalar;
    for (int64_t extent : extents) p_.count *= extent;
    lists_[0] = 1;
    for (IndexId v : variables) {
      const Index& index = c_.indices[v];
      const int r = index.terms.empty() ? -1 : p_.position_registers++;
      if (r >= 0) atom_registers_[index.terms[0].first] = r;
      p_.variables.push_back(r);
    }
    for (int id : reach_of(c_, {root}).values) emit(id);
    p_.root = column(root);
    p_.work = 0;
    for (size_t i = 1; i < p_.lists.size(); ++i)
      p_.work += work_of(static_cast<int>(i)) * static_cast<double>(p_.lists[i].size());
    return std::move(p_);
  }

 private:
  // The number of executions of a list per block.
  double work_of(int list) {
    double times = 1;
    for (int l = list; l > 1; l = parents_[l]) {
      for (const ProgramLoop& loop : p_.loops) {
        if (loop.list == l) times *= static_cast<double>(loop.count);
      }
    }
    return times;
  }

  int list_of(int scope) {
    auto found = lists_.find(scope);
    if (found != lists_.end()) return found->second;
    const int parent = list_of(c_.indices.scope(scope).parent);
    p_.lists.emplace_back();
    const int list = static_cast<int>(p_.lists.size()) - 1;
    parents_[list] = parent;
    return lists_[scope] = list;
  }

  void append(int list, Instruction i) { p_.lists[static_cast<size_t>(list)].push_back(std::move(i)); }

  int column(int value) const { return columns_.at(value); }

  // ---- Positions ---------------------------------------------------------------------------------------------------

  int position(IndexId id) {
    auto found = index_registers_.find(id);
    if (found != index_registers_.end()) return found->second;
    const Index& index = c_.indices[id];
    if (index.constant == 0 && index.terms.size() == 1 && index.terms[0].second == 1) {
      return index_registers_[id] = atom(index.terms[0].first);
    }
    Instruction sum;
    // Only the part that changes in the innermost loop is added there; the rest is summed outside.
    std::map<int, std::vector<std::pair<AtomId, int64_t>>> by_depth;
    for (const auto& term : index.terms)
      by_depth[c_.indices.scope(c_.indices.atom(term.first).scope).depth].push_back(term);
    int rest = -1;
    int64_t constant = index.constant;
    int list = 1;
    for (auto& [depth, terms] : by_depth) {
      Instruction part;
      part.low = constant;
      constant = 0;
      if (rest >= 0) part.terms.emplace_back(rest, 1);
      for (auto [a, coefficient] : terms) part.terms.emplace_back(atom(a), coefficient);
      list = list_of(c_.indices.atom(terms[0].first).scope);
      part.out = rest = p_.position_registers++;
      append(list, std::move(part));
    }
    if (rest < 0) {
      sum.low = constant;
      sum.out = rest = p_.position_registers++;
      append(0, std::move(sum));
    }
    return index_registers_[id] = rest;
  }

  int atom(AtomId id) {
    auto found = atom_registers_.find(id);
    if (found != atom_registers_.end()) return found->second;
    const Atom a = c_.indices.atom(id);
    Instruction i;
    switch (a.kind) {
      case Atom::variable: {
        const int r = p_.position_registers++;
        if (a.scope == 0) p_.uniform.emplace_back(id, r);
        return atom_registers_[id] = r;
      }
      case Atom::quotient:
        i.kind = Instruction::quotient;
        i.low = a.a;
        break;
      case Atom::modulus:
        i.kind = Instruction::modulus;
        i.low = a.a;
        break;
      case Atom::clamped:
        i.kind = Instruction::clamped;
        i.low = a.a;
        i.high = a.b;
        break;
      case Atom::mirrored:
        i.kind = Instruction::mirrored;
        i.low = a.a;
        break;
      case Atom::computed: {
        i.kind = Instruction::computed;
        i.a = column(static_cast<int>(a.a));
        i.low = a.b;
        i.scalar = c_.values[static_cast<size_t>(a.a)].scalar;
        i.convert = column_conversion(i.scalar, Scalar::i64);
        break;
      }
    }
    if (a.kind != Atom::computed) i.index = position(a.argument);
    i.out = p_.position_registers++;
    append(list_of(a.scope), std::move(i));
    return atom_registers_[id] = p_.position_registers - 1;
  }

  // ---- Columns -----------------------------------------------------------------------------------------------------

  void emit(int id) {
    const Value& v = c_.values[static_cast<size_t>(id)];
    if (v.kind == Value::accumulator) {
      columns_[id] = accumulator(v.a, v.b);
      return;
    }
    if (v.kind == Value::result) {
      columns_[id] = accumulator(v.a, v.b);
      loop(v.a);
      return;
    }
    Instruction i;
    i.scalar = v.scalar;
    int list = v.kind == Value::literal ? 0 : list_of(v.scope);
    switch (v.kind) {
      case Value::literal:
        i.kind = Instruction::literal;
        i.low = static_cast<int64_t>(v.low);
        break;
      case Value::load:
        i.kind = Instruction::load;
        i.a = v.a;
        i.index = position(v.index);
        break;
      case Value::position:
        i.kind = Instruction::position;
        i.index = position(v.index);
        i.convert = column_conversion(Scalar::i64, v.scalar);
        break;
      case Value::operation:
        i.kind = Instruction::operation;
        i.operate = column_operation(v.function, v.from);
        break;
      case Value::conversion:
        i.kind = Instruction::conversion;
        i.convert = v.same_bits ? column_reinterpretation(v.from) : column_conversion(v.from, v.scalar);
        break;
      case Value::selection:
        i.kind = Instruction::selection;
        break;
      case Value::within:
        i.kind = Instruction::within;
        i.index = position(v.index);
        i.low = static_cast<int64_t>(v.low);
        i.high = static_cast<int64_t>(v.high);
        break;
      default:
        HOIST_CHECK(false, "not a value of a program");
    }
    if (i.kind == Instruction::operation || i.kind == Instruction::conversion || i.kind == Instruction::selection) {
      if (v.a >= 0) i.a = column(v.a);
      if (v.b >= 0) i.b = column(v.b);
      if (v.c >= 0) i.c = column(v.c);
    }
    i.out = columns_[id] = p_.columns++;
    append(list, std::move(i));
  }

  int accumulator(int loop, int slot) {
    auto [place, is_new] = accumulators_.emplace(std::pair(loop, slot), p_.columns);
    if (is_new) ++p_.columns;
    return place->second;
  }

  void loop(int id) {
    if (!loops_.insert(id).second) return;
    const Loop& loop = c_.loops[static_cast<size_t>(id)];
    ProgramLoop out;
    out.count = loop.count;
    out.list = list_of(loop.scope);
    const Index& variable = c_.indices[loop.variable];
    out.variable = variable.terms.empty() ? -1 : atom(variable.terms[0].first);
    for (size_t i = 0; i < loop.slots.size(); ++i) {
      const Loop::Slot& slot = loop.slots[i];
      const Value& body = c_.values[static_cast<size_t>(slot.body)];
      const bool own = body.scope == loop.scope && (body.kind == Value::operation || body.kind == Value::conversion ||
                                                    body.kind == Value::selection);
      const bool shared = std::count_if(loop.slots.begin(), loop.slots.end(),
                                        [&](const Loop::Slot& other) { return other.body == slot.body; }) > 1;
      out.slots.push_back({column(slot.initial), accumulator(id, static_cast<int>(i)), column(slot.body),
                           own && !shared, column_bytes(slot.scalar)});
    }
    Instruction i;
    i.kind = Instruction::loop;
    i.a = static_cast<int>(p_.loops.size());
    for (const ProgramLoop& other : p_.loops) out.first_spare += other.slots.size();
    p_.loops.push_back(std::move(out));
    append(list_of(c_.indices.scope(loop.scope).parent), std::move(i));
  }

  const Compiled& c_;
  CompiledTerm p_;
  std::unordered_map<int, int> lists_;    // lists of a scope
  std::unordered_map<int, int> parents_;  // parents of a list
  std::unordered_map<int, int> columns_;  // columns of a value
  std::map<std::pair<int, int>, int> accumulators_;
  std::unordered_map<int, int> index_registers_, atom_registers_;
  std::set<int> loops_;
};

}  // namespace

Reach reach_of(const Compiled& compiled, const std::vector<int>& roots) { return Marker(compiled).run(roots); }

CompiledTerm emit(const Compiled& compiled, int root, const std::vector<int64_t>& extents,
                  const std::vector<IndexId>& variables) {
  return Emitter(compiled).run(root, extents, variables);
}

}  // namespace hoist
