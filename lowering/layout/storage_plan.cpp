#include "lowering/layout/storage_plan.h"

#include <algorithm>
#include <vector>

#include "ir/properties/properties.h"
#include "ir/target/machine.h"
#include "lowering/cost/cache_sets.h"
#include "lowering/graph/program.h"
#include "lowering/layout/concatenations.h"
#include "lowering/layout/constant_storage.h"
#include "lowering/layout/input_copies.h"
#include "lowering/layout/orders.h"
#include "lowering/layout/planes.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/materialised.h"
#include "lowering/terms/statements.h"
#include "lowering/terms/terms.h"
#include "lowering/tiling/contractions.h"
#include "lowering/tiling/tiled_results.h"

namespace hoist {
namespace {

// The border that the consumers of each value need: the largest of each side.
std::map<std::string, Padding> wanted_borders(const Program& program) {
  const std::set<std::string> on_host = values_on_host(program), defined = defined_values(program);
  std::map<std::string, Padding> borders;
  for (const Definition& d : program.definitions) {
    for (const auto& [value, padding] : constant_paddings(d.expression)) {
      if (defined.count(value) == 0 || is_output(program, value) || is_statement(value)) continue;
      if (on_host.count(value) != 0) continue;
      auto [place, fresh] = borders.emplace(value, padding);
      for (size_t i = 0; !fresh && i < padding.before.size(); ++i) {
        place->second.before[i] = std::max(place->second.before[i], padding.before[i]);
        place->second.after[i] = std::max(place->second.after[i], padding.after[i]);
      }
    }
  }
  return borders;
}

void round_last(Storage& s, const Profile& profile) {
  std::vector<int64_t> shape = s.stored_shape();
  if (shape.empty()) return;
  int64_t more = padded_row(shape.back(), profile) - shape.back();
  s.after.back() = more;
  s.vector_padding = more;
}

bool reads_channels_last(const Definition& d, const StoragePlan& plan) {
  const std::vector<Expr> reads = parameters_of(d.expression);
  return std::any_of(reads.begin(), reads.end(), [&](Expr p) {
    auto found = plan.values.find(p->name);
    if (found == plan.values.end() || !any_usual_node(d.expression, [&](Expr e) { return e == p; })) return false;
    const std::vector<int64_t>& order = found->second.permutation;
    return order.size() > 2 && order == channels_last(order.size());
  });
}

// The definitions with several statements.
std::set<std::string> launches_of(const Program& program) {
  std::set<std::string> values;
  for (const Definition& d : program.definitions) {
    if (count_statements(d.expression) > 0) values.insert(d.value);
  }
  return values;
}

// True if the weights are a copy of a matrix for this contraction alone, and fill whole panels.
bool is_copy_for(const Program& program, const Definition& d, const Weights& weights, const Tile& tile,
                 const Profile& profile) {
  const Definition* copy = find_definition(program, weights.value);
  if (copy == nullptr || lanes_are_work_items(profile) || !moves_only(copy->expression)) return false;
  const std::vector<int64_t> shape = shape_of(copy->expression->type);
  if (shape.size() != 2 || d.channels_first) return false;
  const int64_t columns = shape[static_cast<size_t>(weights.output_dimension)];
  const auto reads = [&](const Definition& other) {
    return other.value != d.value && mentions(other.expression, weights.value);
  };
  return columns % tile.columns == 0 && columns > tile.columns &&
         std::none_of(program.definitions.begin(), program.definitions.end(), reads);
}

}  // namespace

bool chosen_layout(const Definition& d, const char* knob, bool estimate, StoragePlan& plan) {
  const auto found = d.knobs.find(knob);
  const bool chosen = found == d.knobs.end() ? estimate : found->second != 0;
  plan.layouts[d.value][knob] = chosen ? 1 : 0;
  return chosen;
}

std::set<std::string> values_on_host(const Program& program) {
  std::set<std::string> values;
  for (const Definition& d : program.definitions) {
    if (!is_host_step(d.expression)) continue;
    values.insert(d.value);
    for (Expr array : d.expression->children) values.insert(array->name);
  }
  return values;
}

namespace {

void add_border(Storage& s, const Padding& border) {
  s.border = border.byte;
  for (size_t i = 0; i < s.permutation.size(); ++i) {
    s.before[i] += border.before[static_cast<size_t>(s.permutation[i])];
    s.after[i] += border.after[static_cast<size_t>(s.permutation[i])];
  }
  // A border directly after a row excludes padding, whose elements would be undefined.
  if (!s.permutation.empty() && s.after.back() > s.vector_padding) {
    s.after.back() -= s.vector_padding;
    s.vector_padding = 0;
  }
}

}  // namespace

StoragePlan choose_storage(Program& program, const Profile& profile, const OpenExtents& open) {
  StoragePlan plan;
  copy_inputs(program, plan, profile);
  const std::set<std::string> launches = launches_of(program);
  Program apart = with_statements_apart(program);
  std::map<std::string, Type> types = value_types(apart);
  std::set<std::string> images = images_of(apart, profile);
  std::map<std::string, Padding> borders = wanted_borders(apart);
  const std::set<std::string> crossed = lanes_are_work_items(profile) ? std::set<std::string>() : crossed_planes(apart);
  const std::set<std::string> on_host = values_on_host(apart);
  for (const auto& [name, type] : program.inputs) plan.values[name] = plain_storage(name, type);
  for (const Definition& d : apart.definitions) {
    Storage s = plain_storage(d.value, d.expression->type);
    const bool is_free = !is_output(program, d.value) && on_host.count(d.value) == 0 && !s.is_packed();
    if (is_free) {
      if (images.count(d.value) != 0) s.permutation = channels_last(s.permutation.size());
      if (!d.order.empty()) s.permutation = d.order;
      // A vector in the tail of a strided operand would be loaded lane by lane. Padding would separate the columns that
      // tiles treat as one dimension.
      if (!moves_in_steps(d.expression) && columns_collapsed(d, s) == 0) round_last(s, profile);
      if (auto border = borders.find(d.value); border != borders.end()) add_border(s, border->second);
    }
    if (crossed.count(d.value) != 0 && is_free && !s.border) move_planes_apart(s, profile);
    // Loops over tiles can run through all rows of a materialised array, or through all its elements, if these are one
    // dimension. Rows that share a fold stay rows.
    if (is_statement(d.value)) {
      const bool elements = lanes_are_work_items(profile) && !shares_folds(d.expression);
      s.joined = std::max<int64_t>(static_cast<int64_t>(s.permutation.size()) - (elements ? 1 : 2), 0);
    }
    plan.values[d.value] = s;
  }
  place_concatenations(program, plan);
  if (launches.empty()) apart.definitions = program.definitions;
  for (const Definition& d : apart.definitions) {
    if (is_host_step(d.expression)) continue;
    if (is_statement(d.value) || launches.count(d.value) != 0) {
      plan.tiles[d.value] = tile_of_statement(d, plan.values.at(d.value), profile);
      continue;
    }
    const bool reads_transposed = reads_channels_last(d, plan), turns = reads_transposed || !keeps_planes(d, profile);
    const bool is_edge = is_output(program, d.value) && runs_over_channels(d, images) && !shares_folds(d.expression);
    const bool transposed =
        is_edge && (folds(d.expression) ? chosen_layout(d, output_layout_knob, turns, plan) : turns);
    // The remainder of a split convolution reads NHWC, as the convolution did.
    if (!folds(d.expression) && !(transposed && d.channels_first && reads_transposed)) continue;
    const Storage& storage = plan.values.at(d.value);
    Tile& tile = plan.tiles[d.value];
    auto results = tiled_results(program, d, types, storage, transposed, profile);
    if (!results) continue;
    if (auto* on_cpu = std::get_if<CpuResults>(&*results)) *on_cpu = for_typical_sizes(*on_cpu, open, profile);
    tile = tile_of(d, *results, storage, transposed, profile);
    plan.tiled[d.value] = *results;
  }
  for (const auto& [name, tensor] : program.constants) {
    plan.values[name] = is_output(program, name) || on_host.count(name) != 0
                            ? plain_storage(name, types.at(name))
                            : constant_storage(name, tensor, types.at(name), profile.vector_width);
  }
  for (const Definition& d : apart.definitions) {
    for (const Weights& w : d.weights) {
      auto tile = plan.tiles.find(d.value);
      if (tile == plan.tiles.end() || is_output(program, w.value)) continue;
      if (program.constants.count(w.value) == 0 && !is_copy_for(apart, d, w, tile->second, profile)) continue;
      if (on_host.count(w.value) != 0) continue;
      if (sizes_of(types.at(w.value)).size() < 2) continue;
      const WordProducts products = products_in_word(d, types, w, profile);
      const bool in_words =
          products.of_vectors || (tile->second.on_gpu() == nullptr && tile->second.cpu().matrix_words > 0);
      plan.values[w.value] =
          weights_storage(w.value, types.at(w.value), w.output_dimension, d.channels_first && w.groups == 1,
                          tile->second, !lanes_are_work_items(profile), in_words ? products.together : 0);
    }
  }
  return plan;
}

}  // namespace hoist
