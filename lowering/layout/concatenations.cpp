#include "lowering/layout/concatenations.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "lowering/cost/launch_cost.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// Copies of adjacent parts share a kernel up to this number of parts, of which each element of the result selects one,
// and while they are so small that a kernel of their own would take longer to compile and to launch.
constexpr size_t most_copied_together = 16;
constexpr int64_t most_elements_together = 4096;

Expr concatenated(int64_t dimension, const std::vector<Expr>& arrays) {
  if (dimension == 0) return concat(arrays);
  std::vector<int64_t> first(sizes_of(arrays[0]->type).size()), back(first.size());
  std::iota(first.begin(), first.end(), 0);
  std::rotate(first.begin(), first.begin() + dimension, first.begin() + dimension + 1);
  for (size_t i = 0; i < first.size(); ++i) back[static_cast<size_t>(first[i])] = static_cast<int64_t>(i);
  std::vector<Expr> transposed;
  for (Expr array : arrays) transposed.push_back(transpose(first, array));
  return transpose(back, concat(transposed));
}

// The parts of a concatenation that are copied, joined to kernels.
class Copies {
 public:
  explicit Copies(const Definition& whole) : whole_(whole) {}

  bool holds(Expr part) const {
    return arrays_.size() < most_copied_together &&
           (arrays_.empty() || elements_ + element_count(shape_of(part->type)) <= most_elements_together);
  }
  void add(size_t k, Expr part) {
    if (arrays_.empty()) first_ = k;
    arrays_.push_back(part);
    elements_ += element_count(shape_of(part->type));
  }
  bool any() const { return !arrays_.empty(); }
  /// The definition that copies the parts added since the last call.
  Definition take(ValueNames& names) {
    Definition copy;
    copy.value = names.make(whole_.value + ".part" + std::to_string(first_));
    copy.layers = whole_.layers;
    copy.expression = concatenated(whole_.parts_dimension, arrays_);
    arrays_.clear();
    elements_ = 0;
    return copy;
  }

 private:
  const Definition& whole_;
  std::vector<Expr> arrays_;
  size_t first_ = 0;
  int64_t elements_ = 0;
};

// The concatenations of a program with their parts. A part that is itself a concatenation along the same dimension is
// replaced by its parts. A concatenation whose parts follow each other in a later one is a region of the later one's
// array, as in dense blocks, so that no part is copied from one into the other.
class Concatenations {
 public:
  Concatenations(const Program& program, const StoragePlan& plan, const std::set<std::string>& on_host) : plan_(plan) {
    std::map<std::string, std::vector<const Whole*>> containing;
    for (const Definition& d : program.definitions) {
      if (d.parts.empty() || plan.values.at(d.value).is_packed()) continue;  // packed parts would share bytes
      Whole& whole = wholes_[d.value];
      whole.value = d.value;
      whole.dimension = d.parts_dimension;
      whole.is_free = !is_output(program, d.value) && on_host.count(d.value) == 0;
      for (const std::string& part : d.parts) {
        const Whole* inner = find(part);
        const bool flattens = inner != nullptr && fits(*inner, whole) && inner->parts.size() < most_flattened;
        if (flattens)
          whole.parts.insert(whole.parts.end(), inner->parts.begin(), inner->parts.end());
        else
          whole.parts.push_back(part);
        whole.operands.emplace_back(part, flattens ? inner->parts.size() : 1);
      }
      for (const std::string& part : std::set<std::string>(whole.parts.begin(), whole.parts.end()))
        containing[part].push_back(&whole);
    }
    for (auto& [value, inner] : wholes_) {
      const std::vector<const Whole*>& outer = containing.at(inner.parts[0]);
      for (auto it = outer.rbegin(); it != outer.rend() && *it != &inner; ++it) {
        const auto place =
            std::search((*it)->parts.begin(), (*it)->parts.end(), inner.parts.begin(), inner.parts.end());
        if (place == (*it)->parts.end() || !fits(inner, **it)) continue;
        inner.around = *it;
        inner.first = static_cast<size_t>(place - (*it)->parts.begin());
        break;
      }
    }
  }

  struct Whole {
    std::string value;
    int64_t dimension = 0;
    bool is_free = false;                                  // no output, and no array of the host
    std::vector<std::string> parts;                        // flat: inner concatenations are replaced
    std::vector<std::pair<std::string, size_t>> operands;  // each with its number of parts
    const Whole* around = nullptr;  // the concatenation in whose array it is; null: it has an array
    size_t first = 0;               // its first part in `around`
  };
  /// Null for other values.
  const Whole* find(const std::string& value) const {
    const auto found = wholes_.find(value);
    return found == wholes_.end() ? nullptr : &found->second;
  }

 private:
  static constexpr size_t most_flattened = 1024;  // chains of nested concatenations have a quadratic number of parts

  // True if the array of the outer concatenation can be the array of the inner one.
  bool fits(const Whole& inner, const Whole& outer) const {
    const Storage &in = plan_.values.at(inner.value), &out = plan_.values.at(outer.value);
    if (!inner.is_free || inner.dimension != outer.dimension || in.permutation != out.permutation) return false;
    if (!in.border) return true;
    for (size_t i = 0; i < in.permutation.size(); ++i) {
      const bool differs = in.before[i] != out.before[i] || in.after[i] != out.after[i];
      if (in.permutation[i] != inner.dimension && differs) return false;
    }
    return in.border == out.border;
  }

  const StoragePlan& plan_;
  std::map<std::string, Whole> wholes_;
};

// The array of a concatenation, in which parts take their places.
class PartsArray {
 public:
  PartsArray(const Concatenations::Whole& whole, const std::map<std::string, Type>& types, Storage& around)
      : around_(around), is_placed_(whole.parts.size()) {
    const auto axis = std::find(around.permutation.begin(), around.permutation.end(), whole.dimension);
    axis_ = static_cast<size_t>(axis - around.permutation.begin());
    if (axis_ + 1 == around.permutation.size()) {
      // A part padded to whole vectors would overwrite the next part.
      around.after.back() -= around.vector_padding;
      around.vector_padding = 0;
    }
    extent_ = around.stored_shape()[axis_];
    int64_t offset = 0;
    for (const std::string& part : whole.parts) {
      offsets_.push_back(offset);
      offset += shape_of(types.at(part))[static_cast<size_t>(whole.dimension)];
    }
  }

  /// The place of adjacent parts, from this one, as a value of this type.
  Storage place(size_t part, Type type) const {
    Storage out = around_;
    out.logical = type;
    const int64_t extent = out.stored_shape()[axis_];
    out.before[axis_] += offsets_[part];
    out.after[axis_] += extent_ - offsets_[part] - extent;
    return out;
  }
  /// The parts from `first` to `behind` that had no place yet.
  std::vector<size_t> place_all(size_t first, size_t behind) {
    std::vector<size_t> out;
    for (size_t k = first; k < behind; ++k) {
      if (!is_placed_[k]) out.push_back(k);
      is_placed_[k] = true;
    }
    return out;
  }

 private:
  const Storage& around_;
  size_t axis_ = 0;
  int64_t extent_ = 0;
  std::vector<int64_t> offsets_;
  std::vector<bool> is_placed_;
};

// A part, or an inner concatenation with all of its parts, and its place among the parts of the array.
struct Unplaced {
  std::string value;
  size_t first, count;
};

// The operands of the concatenation without a place so far. They are placed from now on.
std::vector<Unplaced> take_unplaced(const Concatenations::Whole& whole, const Concatenations::Whole& outer,
                                    PartsArray& array) {
  std::vector<Unplaced> out;
  size_t k = whole.first;
  for (const auto& [operand, count] : whole.operands) {
    const std::vector<size_t> free = array.place_all(k, k + count);
    if (free.size() == count)
      out.push_back({operand, k, count});
    else
      for (const size_t part : free) out.push_back({outer.parts[part], part, 1});
    k += count;
  }
  return out;
}

// The small parts of which so many have equal terms that they share a kernel. In its place in the whole each part would
// have a kernel of its own.
std::set<std::string> similar_parts(const std::vector<Unplaced>& parts, const std::vector<Definition>& definitions,
                                    const std::map<std::string, size_t>& places) {
  std::map<Expr, std::set<std::string>> by_term;
  std::set<std::string> out;
  for (const Unplaced& part : parts) {
    const auto found = places.find(part.value);
    if (found == places.end()) continue;
    const Expr term = definitions[found->second].expression;
    if (element_count(shape_of(term->type)) <= most_similar_elements)
      by_term[with_numbered_parameters(term)].insert(part.value);
  }
  for (const auto& [term, equal] : by_term) {
    if (equal.size() > most_similar_kernels) out.insert(equal.begin(), equal.end());
  }
  return out;
}

}  // namespace

void place_concatenations(Program& program, StoragePlan& plan) {
  const std::set<std::string> on_host = values_on_host(program);
  const std::map<std::string, Type> types = value_types(program);
  const Concatenations concatenations(program, plan, on_host);
  std::map<std::string, PartsArray> arrays;  // by the concatenation that has the array
  std::set<std::string> placed;
  std::vector<Definition> kept;
  std::map<std::string, size_t> places;  // in `kept`
  const auto keep = [&](Definition definition) {
    places[definition.value] = kept.size();
    kept.push_back(std::move(definition));
  };
  ValueNames names(program);
  for (Definition& definition : program.definitions) {
    const Concatenations::Whole* whole = concatenations.find(definition.value);
    if (whole == nullptr) {
      definition.parts.clear();
      keep(std::move(definition));
      continue;
    }
    const Concatenations::Whole& outer = whole->around == nullptr ? *whole : *whole->around;
    PartsArray& array = arrays.try_emplace(outer.value, outer, types, plan.values.at(outer.value)).first->second;
    const std::vector<Unplaced> unplaced = take_unplaced(*whole, outer, array);
    const std::set<std::string> similar = similar_parts(unplaced, kept, places);
    Copies copies(definition);
    size_t first_copied = 0, behind_copied = 0;
    const auto copy_parts = [&] {
      if (!copies.any()) return;
      keep(copies.take(names));
      plan.values[kept.back().value] = array.place(first_copied, kept.back().expression->type);
    };
    const auto take_place = [&](const std::string& part, size_t k, size_t count) {
      const Type type = types.at(part);
      if (shape_of(type)[static_cast<size_t>(whole->dimension)] == 0) return;
      const auto producer = places.find(part);
      if (producer != places.end() && !is_output(program, part) && placed.count(part) == 0 &&
          similar.count(part) == 0 && on_host.count(part) == 0 && !plan.values.at(part).border) {
        std::vector<std::string>& layers = kept[producer->second].layers;
        layers.insert(layers.end(), definition.layers.begin(), definition.layers.end());
        copy_parts();
        plan.values[part] = array.place(k, type);
        placed.insert(part);
        return;
      }
      const Expr copied = parameter(part, type);
      if (behind_copied != k || !copies.holds(copied)) copy_parts();
      if (!copies.any()) first_copied = k;
      behind_copied = k + count;
      copies.add(k, copied);
    };
    for (const Unplaced& part : unplaced) take_place(part.value, part.first, part.count);
    copy_parts();
    if (whole != &outer) plan.values[whole->value] = array.place(whole->first, types.at(whole->value));
  }
  program.definitions = std::move(kept);
}

}  // namespace hoist
