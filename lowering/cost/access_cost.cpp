#include "lowering/cost/access_cost.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <unordered_map>

#include "ir/properties/properties.h"
#include "lowering/cost/cache_sets.h"
#include "lowering/cost/work.h"
#include "lowering/terms/element_reads.h"
#include "lowering/tiling/contractions.h"
#include "lowering/tiling/row_blocks.h"

namespace hoist {
namespace {

constexpr int64_t f32_bytes = 4, line_elements = 16;
// The maximum size of a window that a fold over channels and windows may run through before the next channel.
constexpr int64_t largest_window = 64;
// The smallest tile of a contraction in registers, on a CPU with 16 registers: rows share the loads of the right
// operand, vectors of a row share the loads of the left operand.
constexpr double tile_rows = 4, tile_vectors = 2;
// The time of a vector from the second cache, which a sum over the planes of a group streams again for each filter if
// they exceed the first. Groups of 28 and 36 channels of 28x28 take 1.9 times as long as with vectors of 4 channels in
// NHWC, groups of 12 as long (Zen 4).
constexpr double outer_load = 6;

bool is_array_of_scalars(Type type) { return type->is_array() && leaf_of(type)->is_scalar(); }

}  // namespace

DimensionOrder innermost_order(size_t rank, size_t dimension) {
  DimensionOrder out;
  for (size_t i = 0; i < rank; ++i) {
    if (i != dimension) out.push_back(static_cast<int64_t>(i));
  }
  if (rank > 0) out.push_back(static_cast<int64_t>(dimension));
  return out;
}

AccessCost::AccessCost(const Definition& definition, const Profile& profile)
    : profile_(profile),
      width_(profile.vector_width),
      channels_first_(definition.channels_first),
      group_lanes_(profile.vector_width) {
  int64_t groups = 1;
  for (const Weights& w : definition.weights) {
    group_lanes_ = std::min(group_lanes_, lanes_in_group(definition, w, width_));
    groups = std::max(groups, w.groups);
  }
  const Expr term = definition.expression;
  if (!is_array_of_scalars(term->type) || row_with_arrays(term) != nullptr) return;
  shape_ = shape_of(term->type);
  if (element_count(shape_) == 0) return;
  kind_ = !definition.weights.empty() ? Kind::products
          : shares_folds(term)        ? Kind::rows
          : folds(term)               ? Kind::sums
                                      : Kind::elements;
  const auto reads = ElementReads::of(term);
  if (reads == nullptr) return;
  is_known_ = true;
  std::unordered_map<std::string, size_t> numbers;
  for (Expr p : parameters_of(term)) {
    numbers.emplace(p->name, numbers.size());
    shapes_.push_back(is_array_of_scalars(p->type) ? shape_of(p->type) : std::vector<int64_t>());
    if (shapes_.back().size() == shape_.size())
      group_bytes_ = std::max(group_bytes_, element_count(shapes_.back()) / groups * f32_bytes);
  }
  loads_.resize(numbers.size());
  for (const ElementRead& read : reads->reads()) loads_[numbers.at(read.parameter)].push_back(load_of(*reads, read));
  // A product and the sum that it is added to are one instruction.
  const Work work = executed_work(term);
  const int64_t added = kind_ == Kind::elements ? 0 : work.products - work.fused;
  operations_ = static_cast<double>(std::max(work.instructions() - added, element_count(shape_)));
}

AccessCost::Load AccessCost::load_of(const ElementReads& reads, const ElementRead& read) const {
  const std::vector<int64_t> no_steps(reads.loop_counts().size(), 0);
  Load out;
  out.depends_on_data = read.depends_on_data;
  for (size_t d = 0; d < shape_.size(); ++d) {
    std::vector<int64_t> element(shape_.size(), 0);
    Positions lanes;
    for (element[d] = 0; element[d] < std::min(width_, shape_[d]); ++element[d])
      lanes.push_back(reads.position(read, element, no_steps));
    out.lanes.push_back(std::move(lanes));
  }
  const std::vector<int64_t> first(shape_.size(), 0);
  for (size_t loop : read.loops) {
    const int64_t count = reads.loop_counts()[loop];
    out.repeats *= static_cast<double>(count);
    out.innermost = count;
    std::vector<int64_t> steps = no_steps;
    out.steps.clear();
    for (steps[loop] = 0; steps[loop] < std::min(width_, count); ++steps[loop])
      out.steps.push_back(reads.position(read, first, steps));
    if (!channels_first_ || read.at.size() < 3 || read.depends_on_data) continue;
    steps[loop] = std::min(largest_window, count - 1);
    out.sums_channels |= reads.position(read, first, steps)[1] != reads.position(read, first, no_steps)[1];
  }
  return out;
}

AccessCost::Vectors AccessCost::vectors_of(const DimensionOrder& loops) const {
  Vectors out;
  const int64_t elements = element_count(shape_);
  size_t place = loops.size();
  // Dimensions of one element are skipped. Sums run over the last dimension, whatever its extent.
  const bool last = kind_ == Kind::products || kind_ == Kind::sums;
  while (place > 1 && !last && shape_[static_cast<size_t>(loops[place - 1])] == 1) --place;
  if (place == 0) return out;
  out.dimension = static_cast<size_t>(loops[place - 1]);
  const int64_t columns = shape_[out.dimension];
  const int64_t width = out.dimension == 1 ? group_lanes_ : width_;
  out.lanes = std::min(width, columns);
  const int64_t rows = elements / columns, vectors = (columns + width - 1) / width;
  out.rows = static_cast<double>(rows);
  out.count = static_cast<double>(rows * vectors);
  return out;
}

AccessCost::Runs AccessCost::runs_of(const Load& load, const Positions& positions,
                                     const std::vector<int64_t>& strides) const {
  if (load.depends_on_data) return {std::ssize(positions), false, line_elements};
  Runs out;
  int64_t before = address_of(positions.front(), strides);
  for (size_t i = 1; i < positions.size(); ++i) {
    const int64_t here = address_of(positions[i], strides);
    if (i == 1) out.stride = here - before;
    out.shared &= here == before;
    if (here != before && here != before + 1) ++out.count;
    before = here;
  }
  return out;
}

// Kernels without sums run over blocks of rows and columns, whose lines stay in the cache.
double AccessCost::lanes_time(const Runs& runs, int64_t lanes) const {
  if (runs.count == 1) return 1;
  const int64_t lines = lanes * static_cast<int64_t>(tile_vectors);
  const bool stay = kind_ == Kind::elements || lines_at_distance(std::abs(runs.stride) * f32_bytes, profile_) >= lines;
  return static_cast<double>((stay ? profile_.loads.lane : profile_.loads.distant_lane) * runs.count);
}

double AccessCost::load_time(const Load& load, const Vectors& vectors, const std::vector<int64_t>& strides) const {
  const Runs runs = runs_of(load, load.lanes[vectors.dimension], strides);
  const double by_elements = vectors.count * load.repeats * lanes_time(runs, vectors.lanes);
  if (load.innermost == 0) return by_elements;
  const Runs along = runs_of(load, load.steps, strides);
  if (kind_ == Kind::products) {
    // Along the rows of an image the tile has one filter of a group, so no rows share the load.
    if (group_lanes_ < width_ && vectors.dimension != 1 && !runs.shared)
      return by_elements * (runs.count == 1 && group_bytes_ > profile_.first_cache ? outer_load : 1);
    if (!runs.shared || vectors.lanes == 1) return by_elements / tile_rows;
    const int64_t stride = load.sums_channels ? strides[1] : along.stride;
    const bool is_near = std::abs(stride) < line_elements;
    const double each = is_near ? 1 : static_cast<double>(profile_.loads.distant_value);
    return vectors.count * load.repeats * each / tile_vectors;
  }
  // The vectors of a sum run along the sum, if the sum is long enough for the strategies (strategies/cpu.cpp), or along
  // the elements of the result.
  const int64_t lanes = std::ssize(load.steps);
  const double by_steps = load.repeats / static_cast<double>(lanes) * lanes_time(along, lanes);
  if (kind_ == Kind::rows && runs.shared) return vectors.rows * by_steps;
  const bool in_lines = kind_ == Kind::sums && load.innermost >= 2 * width_ && along.count == 1;
  return in_lines ? std::min(by_elements, static_cast<double>(element_count(shape_)) * by_steps) : by_elements;
}

double AccessCost::of_loops(const DimensionOrder& loops) const {
  if (!is_known()) return 0;
  // Vectors along a sum are full.
  const bool by_elements = kind_ == Kind::elements || kind_ == Kind::products;
  const double vectors = static_cast<double>(element_count(shape_)) / static_cast<double>(width_);
  return operations_ / static_cast<double>(width_) * (by_elements ? vectors_of(loops).count / vectors : 1);
}

double AccessCost::of_loads(const DimensionOrder& loops, size_t operand, const DimensionOrder& stored) const {
  if (!is_known() || shapes_[operand].size() != stored.size() || element_count(shapes_[operand]) == 0) return 0;
  const std::vector<int64_t> strides = strides_in(shapes_[operand], stored);
  const Vectors vectors = vectors_of(loops);
  double sum = 0;
  for (const Load& load : loads_[operand]) sum += load_time(load, vectors, strides);
  return sum;
}

double AccessCost::of_transposing(const DimensionOrder& loops) const {
  if (!is_known()) return 0;
  return vectors_of(loops).count * static_cast<double>(profile_.loads.lane * width_);
}

}  // namespace hoist
