#include "lowering/tiling/tiled_results.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/properties/properties.h"
#include "ir/target/machine.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/terms.h"
#include "lowering/tiling/contractions.h"

namespace hoist {
namespace {

// The stored extents including computed padding, with the columns as one dimension; at least two dimensions.
std::vector<int64_t> computed_shape(const Storage& s, int64_t collapsed) {
  std::vector<int64_t> shape = s.stored_shape();
  for (; collapsed > 0; --collapsed) {
    shape[shape.size() - 2] *= shape.back();
    shape.pop_back();
  }
  if (!shape.empty()) shape.back() += s.vector_padding;
  while (shape.size() < 2) shape.insert(shape.begin(), 1);
  return shape;
}

// The collapsed columns of a definition whose contraction has a view after it, if they are adjacent in memory.
std::optional<int64_t> stored_columns(const Definition& d, const Storage& s) {
  const auto is_zero = [](int64_t n) { return n == 0; };
  const bool is_plain = std::is_sorted(s.permutation.begin(), s.permutation.end()) && !s.is_packed() &&
                        std::all_of(s.before.begin(), s.before.end(), is_zero) &&
                        std::all_of(s.after.begin(), s.after.end(), is_zero);
  return is_plain && !is_product(d) ? collapsed_columns(d) : std::nullopt;
}

// The step of the windows of `size` elements in the term; empty if it has none.
std::optional<int64_t> step_of_windows(Expr e, int64_t size) {
  std::optional<int64_t> step;
  any_node(e, [&](Expr n) {
    if (n->pattern == Pattern::slide && n->sizes[0].value() == size) step = n->sizes[1].value();
    return step.has_value();
  });
  return step;
}

CpuResults tiled_on_cpu(const Program& program, const Definition& d, const std::map<std::string, Type>& types,
                        const Storage& s, bool transposed, const Profile& profile) {
  const std::optional<int64_t> collapsed = stored_columns(d, s);
  const bool shares_matrix = is_product(d) || collapsed;
  const std::vector<int64_t> shape = computed_shape(s, collapsed.value_or(0));
  CpuResults out;
  out.rows = transposed ? shape.back() : shape[shape.size() - 2];
  out.columns = transposed ? shape[1] : shape.back();
  if (!transposed) out.count = element_count(shape) / out.rows / out.columns;
  const bool by_channels = d.channels_first && (transposed || (s.permutation.size() > 1 && s.permutation.back() == 1));
  const size_t rank = shape.size();
  if (by_channels && is_product(d) && (rank == 4 || rank == 5)) {
    out.lines = transposed ? shape[rank - 2] : shape[rank - 3];
    if (rank == 5) out.lines *= transposed ? shape[2] : shape[1];
  }
  // One right matrix for all left matrices: their rows are the rows of one contraction.
  const bool one_matrix =
      !d.channels_first && !transposed && (rank == 3 || rank == 4) && shares_matrix &&
      std::all_of(d.weights.begin(), d.weights.end(), [](const Weights& w) { return w.extents.size() == 2; });
  if (one_matrix) out.lines = out.count;
  out.planes = !by_channels && rank == 4 && d.channels_first && is_product(d);
  if (by_channels && d.weights.size() == 1 && d.weights[0].groups > 1 && d.weights[0].extents[1] > 1) {
    const int64_t group = d.weights[0].extents[0] / d.weights[0].groups;
    out.group = group > 1 ? group : 0;
  }
  if (by_channels && !transposed && rank == 4 && d.weights.size() == 1 && d.weights[0].groups > 1 &&
      d.weights[0].groups == d.weights[0].extents[0] && d.weights[0].extents[1] == 1) {
    const int64_t window = d.weights[0].extents.back();
    const auto step = window > 1 ? step_of_windows(d.expression, window) : std::nullopt;
    if (step) {
      // Up to 1.5 times the cache, computing along the lines is still faster.
      const int64_t f32 = 4, line = out.rows * *step * out.columns * f32;
      out.window = window;
      out.window_step = *step;
      out.crosses_lines = profile.launch > 0 && 2 * d.weights[0].extents[2] * line > 3 * profile.first_cache;
    }
  }
  out.packed = (transposed || !d.channels_first) &&
               std::any_of(d.weights.begin(), d.weights.end(),
                           [&](const Weights& w) { return program.constants.count(w.value) != 0; });
  if (d.weights.size() == 1) {
    const int64_t small = profile.first_cache / 2;
    const int64_t right = element_count(d.weights[0].extents), columns = std::max<int64_t>(1, out.columns);
    // A part of the cache is for the left operand and the results.
    const int64_t f32 = 4, cache = profile.second_caches / profile.compute_units * 3 / 4;
    out.columns_in_cache = std::max<int64_t>(1, cache / (f32 * terms_of_sum(d, d.weights[0])));
    out.small_right = d.weights[0].groups > 1 || (4 * right <= small && right / columns >= columns);
    // A tile's columns of bytes are a part of a cache line, which each pass over the results would write again.
    const Type leaf = leaf_of(d.expression->type);
    const WordProducts products = products_in_word(d, types, d.weights[0], profile);
    if (leaf->is_scalar() && row(leaf->scalar).bits < 32 && products.of_vectors && products.together == 2)
      out.small_right |= right <= small;
    // Vectors of a transposed result cover other elements than the columns of the weights.
    const bool by_columns = d.channels_first || !rows_are_strided(d.expression);
    if (products.of_matrices && s.permutation.size() >= 2 && by_columns) {
      const std::vector<int64_t> extents = shape_of(types.at(d.weights[0].value));
      out.word = products.together;
      out.in_words = products.of_vectors;
      out.terms = element_count(extents) / extents[static_cast<size_t>(d.weights[0].output_dimension)];
      out.inner = contiguous_terms(d, d.weights[0], extents);
    }
  }
  return out;
}

// The number of dimensions before the last two of an image that count as its rows: rules collapse up to three.
int64_t collapsed_rows(const std::vector<int64_t>& shape) { return std::clamp<int64_t>(std::ssize(shape) - 3, 0, 2); }

// On a GPU all positions of an image are one dimension, so that small images fill work-groups too.
std::optional<GpuResults> tiled_on_gpu(const Definition& d, const Storage& s, bool transposed) {
  const std::optional<int64_t> collapsed = stored_columns(d, s);
  if (!is_product(d) && !collapsed) return std::nullopt;
  const std::vector<int64_t> shape = computed_shape(s, collapsed.value_or(0));
  GpuResults out;
  for (const Weights& w : d.weights) {
    if (w.extents.size() < 2) return std::nullopt;
    // The innermost fold runs over input channels, or over the rows of a matrix.
    out.steps = d.channels_first ? w.extents[1] : w.extents[w.output_dimension == 0 ? 1 : w.extents.size() - 2];
    if (d.channels_first) out.folds = element_count(w.extents) / w.extents[0] / w.extents[1];
  }
  if (out.steps == 0) return std::nullopt;
  out.rows = shape[shape.size() - 2];
  out.columns = shape.back();
  if (d.channels_first && transposed) {
    out.columns = shape[1];
    out.rows = element_count(shape) / shape[0] / out.columns;
  } else if (d.channels_first) {
    for (int64_t i = 0; i < collapsed_rows(shape); ++i) out.rows *= shape[shape.size() - 3 - static_cast<size_t>(i)];
  }
  out.count = element_count(shape) / out.rows / out.columns;
  return out;
}

}  // namespace

std::optional<TiledResults> tiled_results(const Program& program, const Definition& d,
                                          const std::map<std::string, Type>& types, const Storage& s, bool transposed,
                                          const Profile& profile) {
  if (!lanes_are_work_items(profile)) return tiled_on_cpu(program, d, types, s, transposed, profile);
  const auto on_gpu = tiled_on_gpu(d, s, transposed);
  return on_gpu ? std::optional<TiledResults>(*on_gpu) : std::nullopt;
}

CpuResults for_typical_sizes(CpuResults results, const OpenExtents& open, const Profile& profile) {
  for (int64_t* extent : {&results.count, &results.rows, &results.lines}) *extent = open.typical(*extent);
  if (!open.contain(results.columns)) return results;
  results.columns = profile.vector_width;
  results.packed = true;
  return results;
}

int64_t columns_collapsed(const Definition& d, const Storage& s) { return stored_columns(d, s).value_or(0); }

Tile tile_of(const Definition& d, const TiledResults& results, const Storage& s, bool transposed,
             const Profile& profile) {
  const auto known = d.knobs.empty() ? std::nullopt : tile_with(results, d.knobs, profile);
  Tile tile = known ? *known : choose_tile(results, profile);
  tile.channels_last = transposed ? 1 : 0;
  tile.columns_collapsed = columns_collapsed(d, s);
  // For images the spatial dimensions are collapsed, for matrices the rows of all matrices.
  const std::vector<int64_t> shape = computed_shape(s, tile.columns_collapsed);
  const bool through_lines = tile.on_gpu() == nullptr && tile.cpu().loop_order == CpuTile::through_lines;
  if (d.channels_first && (tile.on_gpu() != nullptr || through_lines))
    tile.rows_collapsed = collapsed_rows(shape);
  else if (through_lines)
    tile.rows_collapsed = std::ssize(shape) - 2;
  return tile;
}

Tile tile_of_statement(const Definition& d, const Storage& s, const Profile& profile) {
  if (lanes_are_work_items(profile)) return {.machine = GpuTile()};
  std::vector<int64_t> shape = computed_shape(s, 0);
  int64_t rows = 1, columns = shape.back();
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  if (folds(d.expression)) return choose_tile(CpuResults{.rows = rows, .columns = columns, .packed = true}, profile);
  int64_t width = profile.vector_width;
  while (columns % width != 0) width /= 2;
  return {1, width, width};
}

}  // namespace hoist
