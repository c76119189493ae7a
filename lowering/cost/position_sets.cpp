#include "lowering/cost/position_sets.h"

#include <algorithm>
#include <iterator>

#include "lowering/terms/saturated.h"

namespace hoist {

PositionSet PositionSets::interned(std::vector<AtomId> atoms) {
  auto [place, is_new] = numbers_.emplace(std::move(atoms), static_cast<PositionSet>(sets_.size()));
  if (is_new) sets_.push_back(place->first);
  return place->second;
}

PositionSet PositionSets::united(PositionSet a, PositionSet b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  const std::pair<PositionSet, PositionSet> both = std::minmax(a, b);
  if (auto found = unions_.find(both); found != unions_.end()) return found->second;
  const std::vector<AtomId>&x = sets_[static_cast<size_t>(a)], &y = sets_[static_cast<size_t>(b)];
  std::vector<AtomId> all;
  std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(all));
  return unions_[both] = interned(std::move(all));
}

PositionSet PositionSets::of_atom(AtomId id) {
  const Atom atom = indices_.atom(id);
  switch (atom.kind) {
    case Atom::variable:
      return interned({id});
    case Atom::quotient:
    case Atom::modulus:
      // A quotient or remainder of a position that depends on no loop depends on none.
      return of(atom.argument) == 0 ? 0 : interned({id});
    case Atom::computed:
      return scalars_[static_cast<size_t>(atom.a)];
    case Atom::clamped:
    case Atom::mirrored:
      break;
  }
  // Elements inside a border along one loop; windows read an element several times.
  const PositionSet argument = of(atom.argument);
  const bool is_one_loop = atom.kind == Atom::clamped && sets_[static_cast<size_t>(argument)].size() == 1;
  return is_one_loop ? interned({id}) : argument;
}

PositionSet PositionSets::of(IndexId index) {
  if (auto found = of_indices_.find(index); found != of_indices_.end()) return found->second;
  const auto terms = indices_[index].terms;
  PositionSet out = 0;
  for (const auto& [atom, coefficient] : terms) out = united(out, of_atom(atom));
  return of_indices_[index] = out;
}

PositionSet PositionSets::of(const std::vector<IndexId>& path) {
  PositionSet out = 0;
  for (IndexId i : path) out = united(out, of(i));
  return out;
}

PositionSet PositionSets::repeating(PositionSet own, PositionSet around, PositionSet spread) {
  if (own == 0 || around == 0) return own;
  const std::vector<AtomId> positions = sets_[static_cast<size_t>(own)], loops = sets_[static_cast<size_t>(around)];
  const std::vector<AtomId> inside = sets_[static_cast<size_t>(spread)];
  AtomId innermost = 0;
  std::map<AtomId, int64_t> variables;
  for (AtomId id : positions) {
    innermost = std::max(innermost, order_of(id));
    variables.insert(variables_of(id).begin(), variables_of(id).end());
  }
  const auto follows = [&](AtomId id) {
    const std::map<AtomId, int64_t>& from = variables_of(id);
    return std::all_of(from.begin(), from.end(), [&](const auto& v) { return variables.count(v.first) != 0; });
  };
  std::vector<AtomId> outside;
  std::copy_if(loops.begin(), loops.end(), std::back_inserter(outside), [&](AtomId id) {
    return order_of(id) < innermost && !follows(id) && !std::binary_search(inside.begin(), inside.end(), id);
  });
  return united(own, interned(std::move(outside)));
}

const std::map<AtomId, int64_t>& PositionSets::variables_of(AtomId id) {
  if (auto found = variables_.find(id); found != variables_.end()) return found->second;
  std::map<AtomId, int64_t> out;
  const Atom atom = indices_.atom(id);
  const int64_t range = atom.high - atom.low + 1;
  if (atom.kind == Atom::variable) {
    out[id] = range;
  } else {
    const std::vector<AtomId> under = sets_[static_cast<size_t>(of(atom.argument))];
    for (AtomId inner : under) {
      for (const auto& [variable, values] : variables_of(inner)) out[variable] = std::max(out[variable], values);
    }
    if (atom.kind == Atom::clamped && out.size() == 1) out.begin()->second = std::min(out.begin()->second, range);
  }
  return variables_[id] = std::move(out);
}

std::map<AtomId, int64_t> PositionSets::bases_of(AtomId id) {
  const Atom atom = indices_.atom(id);
  std::map<AtomId, int64_t> out;
  if (atom.kind == Atom::quotient || atom.kind == Atom::modulus) {
    const std::vector<AtomId> under = sets_[static_cast<size_t>(of(atom.argument))];
    const bool is_derived = std::any_of(under.begin(), under.end(),
                                        [&](AtomId inner) { return indices_.atom(inner).kind != Atom::variable; });
    if (is_derived) {
      for (AtomId inner : under) out.merge(bases_of(inner));
      return out;
    }
  }
  out[id] = atom.high - atom.low + 1;
  return out;
}

int64_t PositionSets::combinations(PositionSet set) {
  if (auto found = combinations_.find(set); found != combinations_.end()) return found->second;
  struct Group {
    std::map<AtomId, int64_t> variables, bases;
    int64_t positions = 1;
  };
  std::vector<Group> groups;
  const std::vector<AtomId> atoms = sets_[static_cast<size_t>(set)];
  for (AtomId id : atoms) {
    const Atom atom = indices_.atom(id);
    Group joined{variables_of(id), bases_of(id), atom.high - atom.low + 1};
    std::vector<Group> others;
    for (Group& group : groups) {
      const bool meet = std::any_of(group.variables.begin(), group.variables.end(),
                                    [&](const auto& v) { return joined.variables.count(v.first) != 0; });
      if (!meet) {
        others.push_back(std::move(group));
        continue;
      }
      for (const auto& [variable, values] : group.variables)
        joined.variables[variable] = std::max(joined.variables[variable], values);
      joined.bases.merge(group.bases);
      joined.positions = saturated_product(joined.positions, group.positions);
    }
    others.push_back(std::move(joined));
    groups = std::move(others);
  }
  const auto all = [](const std::map<AtomId, int64_t>& ranges) {
    int64_t out = 1;
    for (const auto& [atom, values] : ranges) out = saturated_product(out, values);
    return out;
  };
  int64_t out = 1;
  for (const Group& group : groups)
    out = saturated_product(out, std::min({group.positions, all(group.variables), all(group.bases)}));
  return combinations_[set] = out;
}

}  // namespace hoist
