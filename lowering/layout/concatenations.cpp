#include "lowering/layout/concatenations.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

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

}  // namespace

void place_concatenations(Program& program, StoragePlan& plan) {
  const std::set<std::string> on_host = values_on_host(program);
  std::map<std::string, Type> types = value_types(program);
  std::set<std::string> placed;
  std::vector<Definition> kept;
  std::map<std::string, size_t> places;  // in `kept`
  const auto keep = [&](Definition definition) {
    places[definition.value] = kept.size();
    kept.push_back(std::move(definition));
  };
  ValueNames names(program);
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    Definition whole = program.definitions[i];
    if (plan.values.at(whole.value).is_packed()) whole.parts.clear();  // parts would share bytes
    if (whole.parts.empty()) {
      keep(std::move(whole));
      continue;
    }
    Storage& around = plan.values.at(whole.value);
    size_t axis =
        static_cast<size_t>(std::find(around.permutation.begin(), around.permutation.end(), whole.parts_dimension) -
                            around.permutation.begin());
    bool last = axis + 1 == around.permutation.size();
    if (last) {
      // A part padded to whole vectors would overwrite the next part.
      around.after.back() -= around.vector_padding;
      around.vector_padding = 0;
    }
    std::vector<int64_t> whole_shape = around.stored_shape();
    int64_t offset = 0;
    // Takes the place of the next part, which has this type.
    const auto place = [&](Type type) {
      Storage s = around;
      s.logical = type;
      const int64_t extent = s.stored_shape()[axis];
      s.before[axis] += offset;
      s.after[axis] += whole_shape[axis] - offset - extent;
      offset += extent;
      return s;
    };
    Copies copies(whole);
    const auto copy_parts = [&] {
      if (!copies.any()) return;
      keep(copies.take(names));
      plan.values[kept.back().value] = place(kept.back().expression->type);
    };
    for (size_t k = 0; k < whole.parts.size(); ++k) {
      const std::string& part = whole.parts[k];
      if (shape_of(types.at(part))[static_cast<size_t>(whole.parts_dimension)] == 0) continue;
      const auto producer = places.find(part);
      if (producer != places.end() && !is_output(program, part) && placed.count(part) == 0 &&
          on_host.count(part) == 0 && !plan.values.at(part).border) {
        std::vector<std::string>& layers = kept[producer->second].layers;
        layers.insert(layers.end(), whole.layers.begin(), whole.layers.end());
        copy_parts();
        plan.values[part] = place(types.at(part));
        placed.insert(part);
        continue;
      }
      const Expr array = parameter(part, types.at(part));
      if (!copies.holds(array)) copy_parts();
      copies.add(k, array);
    }
    copy_parts();
  }
  program.definitions = kept;
}

}  // namespace hoist
