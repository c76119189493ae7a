// Computes the amounts and features of a kernel for the cost model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/interpret_cost.h"
#include "ir/properties/properties.h"
#include "ir/text/text.h"
#include "lowering/terms/terms.h"
#include "tools/tuning/model/cost_model.h"

namespace hoist::tuning {
namespace {

/// Sums over a term, each node weighted by the trip counts of its loops.
enum Sum : size_t {
  cheap,        // additions, multiplications, comparisons, selections of floats
  of_integers,  // the same for integers
  divisions,    // and square roots
  functions,    // exp and similar functions
  conversions,
  gathers,  // elements read at a computed position
  fold_steps,
  window_steps,  // elements of windows
  borders,       // elements that may be out of bounds
  joins,         // elements whose position needs a quotient and a remainder
  sum_count
};

/// Products along the deepest path.
enum Product : size_t {
  groups,    // in all dimensions
  items,     // work-items of a group, sequential or parallel
  in_order,  // loops in mode seq
  unrolled,
  lanes,
  folded,
  product_count
};

constexpr std::string_view names[] = {
    // The logarithms of the amounts of work.
    "cheap operations", "integer operations", "divisions", "functions", "conversions", "gathers", "fold steps",
    "window steps", "border steps", "joined elements",
    // The loop nest.
    "groups", "items", "steps in order", "unrolled", "lanes", "folded", "nodes", "loops",
    // Arrays.
    "parameters", "bytes read at most", "bytes of the largest", "bytes of the second", "bytes of the result",
    "bits of an element", "bits of the largest's elements", "transpositions", "kept arrays",
    // The register tile of a work-item.
    "rows of a tile", "vectors of a row", "registers of a tile", "computed for each result",
    "steps of the innermost fold", "steps of all tiles",
    // The elements that one result reads, compared with the reads of the adjacent result.
    "elements read", "reused", "reused by the next", "adjacent to the next", "strides of the next", "adjacent in order",
    // Derived quantities.
    "operations a group", "operations a vector register", "operations an element", "operations a byte",
    "groups a compute unit", "unused lanes", "result elements",
    // Work-group reductions.
    "work-items a sum", "steps of a work-item", "work-items a compute unit",
    // The device.
    "gpu", "vector width", "vector registers", "compute units", "dot instructions", "native code", "contention"};

// The amounts that take time, each weighted by its trip count. "By lanes": divided by the vector width if vectors do
// the work.
constexpr std::string_view amount_names[] = {"kernels",
                                             "operations",
                                             "cheap operations",
                                             "cheap operations by lanes",
                                             "integer operations by lanes",
                                             "divisions by lanes",
                                             "functions",
                                             "functions by lanes",
                                             "conversions by lanes",
                                             "gathers",
                                             "border steps",
                                             "joined elements",
                                             "groups",
                                             "groups a compute unit",
                                             "steps of all tiles",
                                             "steps of all tiles by lanes",
                                             "steps of a work-item",
                                             "steps of a compute unit's work-items",
                                             "bytes",
                                             "bytes read",
                                             "bytes written"};

struct Totals {
  double sums[sum_count] = {};
  double products[product_count] = {1, 1, 1, 1, 1, 1};
  double loops = 0;
  double row = 0;   // the extent of the innermost unrolled loop; 0 if there is none
  double fold = 0;  // extent of the innermost fold
};

void add_node(Expr e, Totals& totals) {
  auto& sums = totals.sums;
  switch (e->pattern) {
    case Pattern::call:
      if (e->function == Function::divide || e->function == Function::sqrt || e->function == Function::modulo ||
          e->function == Function::remainder)
        ++sums[divisions];
      else if (row(e->function).ulp > 0)  // library functions of the driver
        ++sums[functions];
      else
        ++sums[e->type->is_scalar() && is_float(e->type->scalar) ? cheap : of_integers];
      break;
    case Pattern::select:
      ++sums[cheap];
      break;
    case Pattern::cast:
    case Pattern::reinterpret:
      ++sums[conversions];
      break;
    case Pattern::index:
      ++sums[gathers];
      break;
    case Pattern::slide:
      sums[window_steps] += elements_of(e->type);
      break;
    case Pattern::pad:
      sums[borders] += elements_of(e->type);
      break;
    case Pattern::join:
    case Pattern::split:
      sums[joins] += elements_of(e->type);
      break;
    default:
      break;
  }
}

class Walk {
 public:
  const Totals& of(Expr e) {
    if (const auto found = known_.find(e); found != known_.end()) return found->second;
    Totals totals;
    add_node(e, totals);
    for (const Expr child : usual_children(e)) {
      const Totals& inner = of(child);
      const bool repeats = child->pattern == Pattern::function && e->pattern != Pattern::let;
      const double times = repeats ? static_cast<double>(applications(e)) : 1;
      for (size_t i = 0; i < sum_count; ++i) totals.sums[i] += times * inner.sums[i];
      for (size_t i = 0; i < product_count; ++i) {
        const bool here = child->pattern == Pattern::function && multiplies(e, static_cast<Product>(i));
        totals.products[i] = std::max(totals.products[i], inner.products[i] * (here ? times : 1));
      }
      totals.loops += inner.loops;
      totals.row = std::max(totals.row, inner.row);
      totals.fold = std::max(totals.fold, inner.fold);
      if (child->pattern == Pattern::function && is_loop(e)) {
        totals.loops += 1;
        if (e->pattern != Pattern::map) totals.sums[fold_steps] += times;
        if (multiplies(e, unrolled) && inner.row == 0) totals.row = std::max(totals.row, times);
        if (is_fold(e) && inner.fold == 0) totals.fold = std::max(totals.fold, times);
      }
    }
    return known_[e] = totals;
  }

  size_t nodes() const { return known_.size(); }
  const std::unordered_map<Expr, Totals>& known() const { return known_; }

 private:
  static bool is_fold(Expr e) {
    return e->pattern == Pattern::fold || e->pattern == Pattern::reduce || e->pattern == Pattern::scan;
  }
  static bool is_loop(Expr e) { return is_fold(e) || (e->pattern == Pattern::map && e->mode != Mode::view); }
  static bool multiplies(Expr e, Product product) {
    if (is_fold(e)) return product == folded;
    if (e->pattern != Pattern::map) return false;
    switch (e->mode) {
      case Mode::group:
        return product == groups;
      case Mode::local:
      case Mode::global:
        return product == items;
      case Mode::seq:
        return product == in_order;
      case Mode::unroll:
      case Mode::matrix:
        return product == unrolled;
      case Mode::vec:
        return product == lanes;
      case Mode::view:
        return false;
    }
    return false;
  }

  std::unordered_map<Expr, Totals> known_;
};

float logarithm(double number) { return static_cast<float>(std::log2(1 + std::max(number, 0.0))); }

double bytes_of_type(Type type) {
  const Type leaf = leaf_of(type);
  if (!leaf->is_scalar()) return elements_of(type) * 8;
  return elements_of(type) * row(leaf->scalar).bits / 8;
}

/// The array elements that a result element in the middle reads, compared with the reads of the adjacent result,
/// counted by the interpreter. In a vectorised loop, adjacent reads are vector loads, equal reads are broadcasts, and
/// all others are gathers.
struct Reads {
  double count = 0;
  double again = 0;     ///< share of elements that were read before
  double same = 0;      ///< share of elements that the adjacent result reads too
  double adjacent = 0;  ///< share of elements next to an element that the adjacent result reads
  double apart = 0;     ///< share of all other reads
  double in_order = 0;  ///< share adjacent to the previous read of the same array
};

Reads reads_of(Expr term) {
  constexpr int64_t most_steps = 200'000;
  Reads out;
  const auto results = static_cast<int64_t>(elements_of(term->type));
  if (results < 2 || interpretation_steps(term) > most_steps) return out;
  // In a fused launch, one element may need many elements of the layers before it.
  if (term->pattern == Pattern::let && count_operations(term) > most_steps) return out;
  int64_t middle = 0;
  for (Type type = term->type; type->is_array(); type = type->element)
    middle = middle * type->size.value() + (type->size.value() - 1) / 2;
  using Read = std::pair<std::string, int64_t>;
  const auto read_at = [&](int64_t position) {
    std::vector<Read> reads;
    const auto note = [&](const std::string& parameter, int64_t at) {
      reads.emplace_back(parameter, at);
      return uint64_t{0};
    };
    const bool done = interpret_made_at(term, note, {position}).ok();
    return done ? reads : std::vector<Read>();
  };
  const std::vector<Read> here = read_at(middle), next = read_at(std::min(middle + 1, results - 1));
  if (here.empty()) return out;
  std::map<std::string, int64_t> last;
  std::set<Read> met;
  for (size_t i = 0; i < here.size(); ++i) {
    const auto& [parameter, at] = here[i];
    if (!met.insert(here[i]).second) out.again += 1;
    const auto [place, first] = last.emplace(parameter, at);
    if (!first) out.in_order += std::abs(at - place->second) <= 1 ? 1 : 0;
    place->second = at;
    if (i >= next.size() || next[i].first != parameter) {
      out.apart += 1;
      continue;
    }
    const int64_t step = std::abs(next[i].second - at);
    (step == 0 ? out.same : step == 1 ? out.adjacent : out.apart) += 1;
  }
  out.count = static_cast<double>(here.size());
  for (double* share : {&out.again, &out.same, &out.adjacent, &out.apart, &out.in_order}) *share /= out.count;
  return out;
}

}  // namespace

double elements_of(Type type) {
  if (!type->is_array()) return 1;
  return static_cast<double>(type->size.value()) * elements_of(type->element);
}

namespace {

struct Arrays {
  double bytes = 0;                                // bytes of all parameters
  std::vector<std::pair<double, double>> largest;  // bytes, bits of an element; at least two
};

Arrays arrays_of(Expr term) {
  Arrays out;
  for (const Expr parameter : parameters_of(term)) {
    const double bytes = bytes_of_type(parameter->type);
    out.bytes += bytes;
    out.largest.emplace_back(bytes, 8 * bytes / std::max(elements_of(parameter->type), 1.0));
  }
  std::sort(out.largest.rbegin(), out.largest.rend());
  out.largest.resize(std::max<size_t>(out.largest.size(), 2));
  return out;
}

struct Rearrangements {
  double transposed = 0, materialised = 0;
  double sharers = 1;  // work-items that share a local array
};

Rearrangements rearrangements_of(const Walk& walk) {
  Rearrangements out;
  for (const auto& [node, sums] : walk.known()) {
    out.transposed += node->pattern == Pattern::transpose ? 1 : 0;
    out.materialised += node->pattern == Pattern::materialise ? 1 : 0;
    if (node->pattern == Pattern::materialise && node->children[0]->mode == Mode::local)
      out.sharers = std::max(out.sharers, elements_of(node->type));
  }
  return out;
}

void add_device(std::vector<float>& features, const Profile& profile, const Circumstances& circumstances) {
  features.push_back(profile.gpu ? 1.0F : 0.0F);
  features.push_back(logarithm(static_cast<double>(profile.vector_width)));
  features.push_back(logarithm(static_cast<double>(profile.vector_registers)));
  features.push_back(logarithm(static_cast<double>(profile.compute_units)));
  features.push_back(profile.dot_instructions ? 1.0F : 0.0F);
  features.push_back(circumstances.native ? 1.0F : 0.0F);
  features.push_back(static_cast<float>(std::log2(circumstances.contention)));
}

}  // namespace

std::span<const std::string_view> kernel_feature_names() { return names; }
std::span<const std::string_view> kernel_amount_names() { return amount_names; }

KernelNumbers kernel_numbers(Expr term, const Profile& profile, const Circumstances& circumstances) {
  Walk walk;
  const Totals totals = walk.of(term);
  KernelNumbers numbers;
  numbers.native = circumstances.native;
  numbers.of_layers = term->pattern == Pattern::let;
  std::vector<float>& features = numbers.features;
  for (const double sum : totals.sums) features.push_back(logarithm(sum));
  for (const double product : totals.products) features.push_back(logarithm(product));
  features.push_back(logarithm(static_cast<double>(walk.nodes())));
  features.push_back(logarithm(totals.loops));

  const Arrays arrays = arrays_of(term);
  const Rearrangements rearrangements = rearrangements_of(walk);
  const double results = elements_of(term->type), written = bytes_of_type(term->type);
  features.push_back(static_cast<float>(parameters_of(term).size()));
  features.push_back(logarithm(arrays.bytes));
  features.push_back(logarithm(arrays.largest[0].first));
  features.push_back(logarithm(arrays.largest[1].first));
  features.push_back(logarithm(written));
  features.push_back(static_cast<float>(8 * written / std::max(results, 1.0)));
  features.push_back(static_cast<float>(arrays.largest[0].second));
  features.push_back(logarithm(rearrangements.transposed));
  features.push_back(logarithm(rearrangements.materialised));

  const double vectors = std::max(totals.row, 1.0), rows = totals.products[unrolled] / vectors;
  const double tiles = totals.products[groups] * totals.products[items] * totals.products[in_order];
  const double in_registers = profile.gpu ? rows * vectors * totals.products[lanes] : rows * vectors + rows + vectors;
  features.push_back(logarithm(rows));
  features.push_back(logarithm(vectors));
  features.push_back(static_cast<float>(std::log2(in_registers / static_cast<double>(profile.vector_registers))));
  features.push_back(logarithm(tiles * rows * vectors * totals.products[lanes] / std::max(results, 1.0)));
  features.push_back(logarithm(totals.fold));
  const double tile_steps = tiles * totals.products[folded] * std::max(rows * vectors, 8.0);
  features.push_back(logarithm(tile_steps));

  const Reads reads = reads_of(term);
  features.push_back(logarithm(reads.count));
  for (const double share : {reads.again, reads.same, reads.adjacent, reads.apart, reads.in_order})
    features.push_back(static_cast<float>(share));

  const auto operations = static_cast<double>(count_operations(term));
  const auto width = static_cast<double>(profile.vector_width);
  const double all_groups = totals.products[groups],
               unit_groups = all_groups / static_cast<double>(profile.compute_units);
  features.push_back(logarithm(operations / all_groups));
  features.push_back(logarithm(operations / width));
  features.push_back(logarithm(operations / std::max(results, 1.0)));
  features.push_back(logarithm(operations / (arrays.bytes + written)));
  features.push_back(logarithm(unit_groups));
  features.push_back(static_cast<float>(std::log2(width / std::max(totals.products[lanes], 1.0))));
  features.push_back(logarithm(results));
  features.push_back(logarithm(rearrangements.sharers));
  const double item_steps = totals.products[folded] * totals.products[in_order];
  features.push_back(logarithm(item_steps));
  features.push_back(logarithm(unit_groups * totals.products[items] * rearrangements.sharers));

  add_device(features, profile, circumstances);
  HOIST_CHECK(features.size() == std::size(names), "a name for each feature");

  const auto& sums = totals.sums;
  const double of_lanes = totals.products[lanes];
  numbers.amounts = {1,
                     operations,
                     sums[cheap],
                     sums[cheap] / of_lanes,
                     sums[of_integers] / of_lanes,
                     sums[divisions] / of_lanes,
                     sums[functions],
                     sums[functions] / of_lanes,
                     sums[conversions] / of_lanes,
                     sums[gathers],
                     sums[borders],
                     sums[joins],
                     all_groups,
                     unit_groups,
                     tile_steps,
                     tile_steps / of_lanes,
                     item_steps,
                     item_steps * unit_groups,
                     arrays.bytes + written,
                     arrays.bytes,
                     written};
  HOIST_CHECK(numbers.amounts.size() == std::size(amount_names), "a name for each amount");
  return numbers;
}

}  // namespace hoist::tuning
