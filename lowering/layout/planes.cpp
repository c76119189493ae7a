#include "lowering/layout/planes.h"

#include <algorithm>
#include <vector>

#include "ir/language/tensor.h"
#include "ir/properties/properties.h"
#include "ir/target/machine.h"
#include "lowering/cost/access_cost.h"
#include "lowering/terms/terms.h"
#include "lowering/tiling/contractions.h"

namespace hoist {
namespace {

// The common step of all windows of the term, if it is greater than 1.
std::optional<int64_t> common_step(Expr term) {
  std::optional<int64_t> step;
  bool one = true;
  any_node(term, [&](Expr e) {
    if (e->pattern != Pattern::slide) return false;
    const int64_t own = e->sizes[1].value();
    one &= !step || *step == own;
    step = own;
    return false;
  });
  return one && step && *step > 1 ? step : std::nullopt;
}

// The term `pad l r v` of map^depth (pad l r v), or null.
Expr pad_inside(Expr e, int depth) {
  for (; depth > 0; --depth) {
    if (e->pattern != Pattern::map || e->mode != Mode::view) return nullptr;
    e = e->children[0]->children[0];
  }
  return e->pattern == Pattern::pad && e->border == Border::value ? e : nullptr;
}

}  // namespace

bool is_image_rank(Type type) {
  const size_t rank = sizes_of(type).size();
  return rank >= 3 && rank <= 5;
}

std::set<std::string> read_interleaved(const Program& program, const std::map<std::string, Type>& types,
                                       const Profile& profile) {
  std::set<std::string> values;
  for (const Definition& d : program.definitions) {
    if (std::none_of(d.weights.begin(), d.weights.end(),
                     [&](const Weights& w) { return products_in_word(d, types, w, profile).together > 0; }))
      continue;
    for (Expr p : parameters_of(d.expression)) {
      const Type leaf = leaf_of(p->type);
      if (d.channels_first && is_image_rank(p->type) &&
          (leaf == scalar_type(Scalar::u8) || leaf == scalar_type(Scalar::i16) || leaf == scalar_type(Scalar::bf16)))
        values.insert(p->name);
    }
  }
  return values;
}

// Planes pay off if each plane of the result depends on one plane and its own filters, as in poolings and depthwise
// convolutions: rows of half a vector are then faster than transposing operand and result. Strided windows are loaded
// element by element or with a shuffle, so they require rows of two vectors, or of eight lanes with a polyphase
// decomposition. For groups of several filters the choice of orders decides (orders.h). A convolution of few channels
// without windows is faster than transposing its result. One with windows is faster only if its filters fill at most
// one vector, since tiles of one vector of filters load an element for each product.
bool keeps_planes(const Definition& d, const Profile& profile, bool in_phases) {
  if (!d.channels_first || !folds(d.expression)) return false;
  const std::vector<int64_t> shape = shape_of(d.expression->type);
  const bool computes = any_node(d.expression, [](Expr e) {
    return e->pattern == Pattern::reduce &&
           any_node(e->children[2], [](Expr part) { return part->pattern == Pattern::call; });
  });
  const std::vector<Expr> reads = parameters_of(d.expression);
  in_phases = in_phases || any_node(d.expression, [](Expr e) {
                return e->pattern == Pattern::materialise && e->memory == Memory::private_;
              });
  const bool in_steps = !in_phases && std::any_of(reads.begin(), reads.end(), [&](Expr p) {
    return is_image_rank(p->type) && shape_of(p->type).size() == shape.size() &&
           shape_of(p->type).back() >= 2 * shape.back() - 1;
  });
  const bool half_a_vector = !lanes_are_work_items(profile) && !(computes && in_steps);
  constexpr int64_t lanes_of_phases = 8;
  const int64_t least = in_phases              ? std::min(profile.vector_width, lanes_of_phases)
                        : half_a_vector        ? profile.vector_width / 2
                        : computes && in_steps ? 2 * profile.vector_width
                                               : profile.vector_width;
  if (shape.size() < 3 || shape.back() < least) return false;
  // Tiles have up to sixteen rows, each in a line of its own.
  const int64_t few_terms = profile.first_cache / (16 * 64);
  const bool whole_vectors =
      !lanes_are_work_items(profile) && shape.size() == 4 && shape.back() % profile.vector_width == 0;
  return std::all_of(d.weights.begin(), d.weights.end(), [&](const Weights& w) {
    const bool is_chosen = !d.order.empty() && d.order == innermost_order(shape.size(), shape.size() - 1);
    const bool filters_planes = w.groups > 1 && (w.groups == shape[1] || is_chosen);
    const bool sums_planes = whole_vectors && !in_steps && w.groups == 1 && w.output_dimension == 0 &&
                             w.extents.size() == 4 && element_count(w.extents) <= few_terms * shape[1] &&
                             (w.extents[2] * w.extents[3] == 1 || shape[1] <= profile.vector_width);
    return w.in_place && (filters_planes || sums_planes);
  });
}

// A work-group splits its plane into phases and then computes the plane's results, so the copy costs no more than a
// bordered copy of an input.
std::optional<PlanePhases> plane_phases(const Definition& d, const Profile& profile,
                                        const std::function<bool(const std::string&)>& is_input) {
  if (lanes_are_work_items(profile) || !d.channels_first || d.weights.size() != 1) return std::nullopt;
  // Each plane of the result has one filter: with several filters the plane would be copied again for each.
  const std::vector<int64_t> result = shape_of(d.expression->type);
  if (result.size() != 4 || d.weights[0].groups != result[1]) return std::nullopt;
  const auto step = common_step(d.expression);
  if (!step) return std::nullopt;
  const auto place = first_closed(d.expression, [](Expr e) {
    return pad_inside(e, 3) != nullptr && sizes_of(e->type).size() == 4 && pad_inside(e->children[1], 2) != nullptr;
  });
  if (!place) return std::nullopt;
  const Expr padded = at(d.expression, *place), array = padded->children[1]->children[1];
  if (array->pattern != Pattern::parameter || !is_input(array->name) || !keeps_planes(d, profile, true))
    return std::nullopt;
  // Rows in private memory are whole vectors. Large planes would leave the cache, and could exceed the stack of a
  // driver's thread.
  const std::vector<int64_t> plane = shape_of(padded->type);
  const int64_t row = round_up(plane[3], *step * profile.vector_width), most_bytes = 4 * profile.first_cache;
  if (byte_size(leaf_of(array->type)->scalar, {plane[2], row}) > most_bytes) return std::nullopt;
  return PlanePhases{*place, {{"k", *step}, {"e", row - plane[3]}}};
}

}  // namespace hoist
