#include "lowering/tiling/contractions.h"

#include <algorithm>
#include <cstdlib>

#include "ir/properties/properties.h"
#include "ir/target/machine.h"
#include "lowering/terms/element_reads.h"
#include "lowering/tiling/tile.h"

namespace hoist {

bool is_product(const Definition& d) {
  return !d.weights.empty() &&
         std::all_of(d.weights.begin(), d.weights.end(), [](const Weights& w) { return w.groups == 1 && w.in_place; });
}

std::optional<int64_t> collapsed_columns(const Definition& d) {
  if (d.channels_first || d.weights.size() != 1 || d.weights[0].groups != 1) return std::nullopt;
  const Weights& w = d.weights[0];
  const std::vector<int64_t> shape = shape_of(d.expression->type);
  const auto output = static_cast<size_t>(w.output_dimension);
  if (shape.empty() || std::ssize(shape) > most_collapsed_rank || w.extents.size() < 2) return std::nullopt;
  const auto reads = ElementReads::of(d.expression);
  if (reads == nullptr) return std::nullopt;
  const std::vector<int64_t> steps(reads->loop_counts().size(), 0);
  // The distance of the read column, or of any other position that is read, between the first and the last element
  // along a dimension.
  const auto distance = [&](const ElementRead& read, size_t dimension, bool of_column) {
    std::vector<int64_t> element(shape.size(), 0);
    const std::vector<int64_t> first = reads->position(read, element, steps);
    element[dimension] = shape[dimension] - 1;
    const std::vector<int64_t> last = reads->position(read, element, steps);
    int64_t out = 0;
    for (size_t i = 0; i < first.size(); ++i) {
      if ((i == output) == of_column) out += std::abs(last[i] - first[i]);
    }
    return out;
  };
  int64_t columns = 1;
  size_t first = shape.size();  // the outermost dimension of columns
  for (const ElementRead& read : reads->reads()) {
    if (read.loops.empty() || read.parameter != w.value) continue;
    if (first != shape.size() || read.at.size() != w.extents.size()) return std::nullopt;
    while (first > 0 && columns < w.extents[output]) {
      --first;
      if (distance(read, first, true) != (shape[first] - 1) * columns) return std::nullopt;
      columns *= shape[first];
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      if (distance(read, i, false) != 0 || (i < first && distance(read, i, true) != 0)) return std::nullopt;
    }
  }
  if (columns != w.extents[output] || first == 0 || first == shape.size()) return std::nullopt;
  for (const ElementRead& read : reads->reads()) {
    if (read.loops.empty() || read.parameter == w.value) continue;
    for (size_t i = first; i < shape.size(); ++i) {
      if (read.depends_on_data || distance(read, i, true) + distance(read, i, false) != 0) return std::nullopt;
    }
  }
  return static_cast<int64_t>(shape.size() - 1 - first);
}

int64_t lanes_dividing(int64_t n, int64_t width) {
  while (n % width != 0) width /= 2;
  return width;
}

int64_t lanes_in_group(const Definition& d, const Weights& w, int64_t width) {
  const Type type = d.expression->type;
  if (w.groups <= 1 || !type->is_array() || sizes_of(type).size() < 2) return width;
  const int64_t filters = sizes_of(type)[1].value() / w.groups;
  return filters == 1 ? width : lanes_dividing(filters, width);
}

int64_t contiguous_terms(const Definition& d, const Weights& w, const std::vector<int64_t>& extents) {
  const bool outputs_first = extents.size() == 2 && w.output_dimension == 0;
  return extents[d.channels_first || outputs_first ? 1 : extents.size() - 2];
}

int64_t terms_of_sum(const Definition& d, const Weights& w) {
  if (d.channels_first) return element_count(w.extents) / w.extents[0];
  return w.extents.size() < 2 ? element_count(w.extents) : contiguous_terms(d, w, w.extents);
}

WordProducts products_in_word(const Definition& d, const std::map<std::string, Type>& types, const Weights& w,
                              const Profile& profile) {
  auto type = types.find(w.value);
  if (lanes_are_work_items(profile) || w.groups != 1 || type == types.end()) return {};
  const std::vector<int64_t> extents = shape_of(type->second);
  if (extents.size() < 2) return {};
  const auto multiplies = [&](Scalar left, Scalar right, int64_t together) {
    return contiguous_terms(d, w, extents) % together == 0 && any_node(d.expression, [&](Expr n) {
             if (n->pattern != Pattern::zip || n->children.size() != 2) return false;
             auto holds = [&](size_t i, Scalar scalar) { return n->children[i]->type->element == scalar_type(scalar); };
             return holds(0, left) && holds(1, right);
           });
  };
  const bool matrices = profile.matrix_tile > 0;
  if (profile.dot_instructions && multiplies(Scalar::u8, Scalar::i8, 4)) return {4, true, matrices};
  if (matrices && multiplies(Scalar::bf16, Scalar::bf16, 2)) return {2, false, true};
  const bool in_pairs = multiplies(Scalar::i16, Scalar::i16, 2) || multiplies(Scalar::i16, Scalar::i8, 2);
  if (profile.pair_products > 0 && in_pairs) return {2, true, false};
  return {};
}

}  // namespace hoist
