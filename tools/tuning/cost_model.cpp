#include "tools/tuning/cost_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <unordered_map>

#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpret_cost.h"
#include "ir/properties.h"
#include "ir/text/text.h"
#include "lowering/terms.h"
#include "neural_rules/choice/interval.h"
#include "tools/tuning/shipped.h"

namespace hoist::tuning {
namespace {

/// What is added up over a term, each node as often as the loops around it say.
enum Sum : size_t {
  cheap,        // sums, products, comparisons, selections of floats
  of_integers,  // the same of integers
  divisions,    // and square roots
  functions,    // exp and its like
  conversions,
  gathers,  // elements that a computed position chooses
  fold_steps,
  window_steps,  // elements of windows
  borders,       // elements that may lie outside
  joins,         // elements whose place is a quotient and a remainder
  sum_count
};

/// What is multiplied along the deepest path.
enum Product : size_t {
  groups,    // of any dimension
  items,     // work-items of a group, one after the other or side by side
  in_order,  // loops in mode seq
  unrolled,
  lanes,
  folded,
  product_count
};

constexpr std::string_view names[] = {
    // Work, by the logarithm.
    "cheap operations", "integer operations", "divisions", "functions", "conversions", "gathers", "fold steps",
    "window steps", "border steps", "joined elements",
    // The nest.
    "groups", "items", "steps in order", "unrolled", "lanes", "folded", "nodes", "loops",
    // Arrays.
    "parameters", "bytes read at most", "bytes of the largest", "bytes of the second", "bytes of the result",
    "bits of an element", "bits of the largest's elements", "transpositions", "kept arrays",
    // The tile that a work-item keeps in registers.
    "rows of a tile", "vectors of a row", "registers of a tile", "computed for each result",
    "steps of the innermost fold", "steps of all tiles",
    // What one element of the result reads, and what its neighbour does.
    "elements read", "read again", "read again by the next", "neighbours of the next", "strides of the next",
    "neighbours in order",
    // What follows from them.
    "operations a group", "operations a vector register", "operations an element", "operations a byte",
    "groups a compute unit", "unused lanes", "result elements",
    // Where work-items share a sum.
    "work-items a sum", "steps of a work-item", "work-items a compute unit",
    // The device.
    "gpu", "vector width", "vector registers", "compute units", "dot instructions", "native code", "contention"};

// What takes time, each as often as it happens. By lanes: divided by the lanes of a vector, where vectors do it at
// once.
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
  double row = 0;   // the extent of the innermost unrolled loop; 0 where there is none
  double fold = 0;  // of the innermost fold
};

bool has_open_size(Expr e) {
  for (Type type = e->type; type != nullptr && type->is_array(); type = type->element)
    if (!type->size.is_constant()) return true;
  return std::any_of(e->sizes.begin(), e->sizes.end(), [](const Nat& size) { return !size.is_constant(); });
}

void add_node(Expr e, Totals& totals) {
  auto& sums = totals.sums;
  switch (e->pattern) {
    case Pattern::call:
      if (e->function == Function::divide || e->function == Function::sqrt || e->function == Function::modulo ||
          e->function == Function::remainder)
        ++sums[divisions];
      else if (row(e->function).ulp > 0)  // what drivers take from a library
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

/// What an element in the middle of the result reads of arrays, and what its neighbour in memory does, counted as the
/// interpreter reads: where vectors run over neighbours, these are vectors, the same number for all lanes, or numbers
/// that each lane fetches by itself.
struct Reads {
  double count = 0;
  double again = 0;     ///< shares of these: elements read before
  double same = 0;      ///< what the neighbour reads as well
  double adjacent = 0;  ///< what lies beside that which the neighbour reads
  double apart = 0;     ///< neither
  double in_order = 0;  ///< what lies beside that which was read before of the same array
};

Reads reads_of(Expr term) {
  constexpr int64_t most_steps = 200'000;
  Reads out;
  const auto results = static_cast<int64_t>(elements_of(term->type));
  if (results < 2 || interpretation_steps(term) > most_steps) return out;
  // Where a launch computes several layers, one element asks for much of those before it.
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

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The place of each value among all, equal ones sharing theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t j = i; j < end; ++j) ranks[order[j]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return ranks;
}

double correlation_of(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean(a), mean_b = mean(b);
  double product = 0, square_a = 0, square_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += (a[i] - mean_a) * (b[i] - mean_b);
    square_a += (a[i] - mean_a) * (a[i] - mean_a);
    square_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return square_a > 0 && square_b > 0 ? product / std::sqrt(square_a * square_b) : 0;
}

float undisturbed_launch(const std::vector<KernelTime>& times, bool native) {
  std::vector<double> launches;
  for (const KernelTime& time : times)
    if (time.circumstances.native == native) launches.push_back(time.launch);
  if (launches.empty()) return 0;
  // It is what a whole run takes beside its kernels, which other programs on the machine only make longer.
  return static_cast<float>(quantile(std::move(launches), 0.1));
}

/// The networks in so many parts, or one each where there are fewer: what is not of a part's networks, and the places
/// of what is. Parts are left out where nothing else is there.
template <class Example, class Take>
void for_each_part(const std::vector<const Example*>& examples, size_t parts, const Take& take) {
  std::set<std::string> all;
  for (const Example* example : examples) all.insert(example->network);
  const std::vector<std::string> networks(all.begin(), all.end());
  parts = std::min(parts, networks.size());
  if (parts < 2) return;
  for (size_t part = 0; part < parts; ++part) {
    std::set<std::string> of_part;
    for (size_t i = part; i < networks.size(); i += parts) of_part.insert(networks[i]);
    std::vector<const Example*> known;
    std::vector<size_t> left_out;
    for (size_t i = 0; i < examples.size(); ++i) {
      if (of_part.contains(examples[i]->network))
        left_out.push_back(i);
      else
        known.push_back(examples[i]);
    }
    take(known, left_out);
  }
}

/// Of numbers with their weights; 1 of none.
float weighted_median(std::vector<std::pair<double, double>> numbers) {
  std::sort(numbers.begin(), numbers.end());
  double left = 0;
  for (const auto& [number, weight] : numbers) left += weight / 2;
  for (const auto& [number, weight] : numbers) {
    left -= weight;
    if (left <= 0) return static_cast<float>(number);
  }
  return 1;
}

// What a model has learned from, a line for each device.
std::vector<std::string> sources_of(const std::vector<KernelTime>& times) {
  struct Source {
    size_t kernels = 0;
    std::set<std::string> models;
  };
  std::map<std::string, Source> sources;
  for (const KernelTime& time : times) {
    Source& source = sources[fmt::format("{} ({})", time.device, time.driver)];
    ++source.kernels;
    source.models.insert(time.model);
  }
  std::vector<std::string> out;
  for (const auto& [device, source] : sources)
    out.push_back(fmt::format("{}: {} kernels of {}", device, source.kernels, fmt::join(source.models, ", ")));
  return out;
}

// Exactly, as fmt writes it.
template <class Number = float>
std::optional<Number> parse_number(const std::string& text) {
  Number out = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool whole = code == std::errc() && end == text.data() + text.size() && std::isfinite(out);
  return whole ? std::optional<Number>(out) : std::nullopt;
}

// The numbers x from 0 on, one a column, for which the rows times x differ least from 1, by the sum of squares: one
// coordinate after the other (Franc, Hlavac, Navara: Sequential Coordinate-wise Algorithm for the Non-negative
// Least Squares Problem, CAIP 2005). 0 where a column is.
std::vector<double> non_negative_least_squares(const std::vector<std::vector<double>>& rows) {
  constexpr int most_rounds = 10'000;
  constexpr double enough = 1e-9;  // of a column's share
  const size_t columns = std::size(amount_names);
  std::vector<double> products(columns * columns), sums(columns), x(columns);
  for (const std::vector<double>& row : rows)
    for (size_t i = 0; i < columns; ++i) {
      sums[i] += row[i];
      for (size_t j = 0; j < columns; ++j) products[i * columns + j] += row[i] * row[j];
    }
  for (int round = 0; round < most_rounds; ++round) {
    double most_changed = 0;
    for (size_t i = 0; i < columns; ++i) {
      const double square = products[i * columns + i];
      if (square == 0) continue;
      double rest = sums[i];
      for (size_t j = 0; j < columns; ++j) rest -= products[i * columns + j] * x[j];
      const double next = std::max(x[i] + rest / square, 0.0);
      most_changed = std::max(most_changed, std::abs(next - x[i]) * sums[i]);
      x[i] = next;
    }
    if (most_changed < enough * static_cast<double>(rows.size())) break;
  }
  return x;
}

}  // namespace

double elements_of(Type type) {
  if (!type->is_array()) return 1;
  return static_cast<double>(type->size.value()) * elements_of(type->element);
}

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

  double read = 0, transposed = 0, kept = 0, sharers = 1;
  std::vector<std::pair<double, double>> arrays;  // bytes, bits of an element
  for (const Expr parameter : parameters_of(term)) {
    const double bytes = bytes_of_type(parameter->type);
    read += bytes;
    arrays.emplace_back(bytes, 8 * bytes / std::max(elements_of(parameter->type), 1.0));
  }
  std::sort(arrays.rbegin(), arrays.rend());
  arrays.resize(std::max<size_t>(arrays.size(), 2));
  for (const auto& [node, sums] : walk.known()) {
    transposed += node->pattern == Pattern::transpose ? 1 : 0;
    kept += node->pattern == Pattern::materialise ? 1 : 0;
    if (node->pattern == Pattern::materialise && node->children[0]->mode == Mode::local)
      sharers = std::max(sharers, elements_of(node->type));
  }
  const double results = elements_of(term->type), written = bytes_of_type(term->type);
  features.push_back(static_cast<float>(parameters_of(term).size()));
  features.push_back(logarithm(read));
  features.push_back(logarithm(arrays[0].first));
  features.push_back(logarithm(arrays[1].first));
  features.push_back(logarithm(written));
  features.push_back(static_cast<float>(8 * written / std::max(results, 1.0)));
  features.push_back(static_cast<float>(arrays[0].second));
  features.push_back(logarithm(transposed));
  features.push_back(logarithm(kept));

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
  features.push_back(logarithm(operations / (read + written)));
  features.push_back(logarithm(unit_groups));
  features.push_back(static_cast<float>(std::log2(width / std::max(totals.products[lanes], 1.0))));
  features.push_back(logarithm(results));
  features.push_back(logarithm(sharers));
  const double item_steps = totals.products[folded] * totals.products[in_order];
  features.push_back(logarithm(item_steps));
  features.push_back(logarithm(unit_groups * totals.products[items] * sharers));

  features.push_back(profile.gpu ? 1.0F : 0.0F);
  features.push_back(logarithm(width));
  features.push_back(logarithm(static_cast<double>(profile.vector_registers)));
  features.push_back(logarithm(static_cast<double>(profile.compute_units)));
  features.push_back(profile.dot_instructions ? 1.0F : 0.0F);
  features.push_back(circumstances.native ? 1.0F : 0.0F);
  features.push_back(static_cast<float>(std::log2(circumstances.contention)));
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
                     read + written,
                     read,
                     written};
  HOIST_CHECK(numbers.amounts.size() == std::size(amount_names), "a name for each amount");
  return numbers;
}

Result<std::vector<KernelTime>> read_kernel_times(const std::filesystem::path& file) {
  std::ifstream lines(file);
  if (!lines) return Diagnostics{{file.string(), "it cannot be read", ""}};
  std::vector<KernelTime> times;
  std::vector<double> references;
  std::map<std::string, double> least_reference;  // by device
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}, line {}", file.string(), ++number);
    const Diagnostics refused = {{where, "it is no measurement of a kernel", "kernel_times writes them"}};
    const auto record = nlohmann::json::parse(line, nullptr, false);
    KernelTime time;
    std::string profile, expression;
    double reference = 0;
    try {
      time.model = record.at("model").get<std::string>();
      time.kernel = record.at("kernel").get<std::string>();
      time.device = record.at("device").get<std::string>();
      time.driver = record.at("driver").get<std::string>();
      time.circumstances.native = !record.at("target").get<std::string>().empty();
      time.seconds = record.at("seconds").get<double>();
      time.launch = record.at("launch").get<double>();
      reference = record.at("reference").get<double>();
      profile = record.at("profile").get<std::string>();
      expression = record.at("expression").get<std::string>();
    } catch (const nlohmann::json::exception&) {
      return refused;
    }
    HOIST_TRY(time.profile, parse_profile(profile, where));
    auto term = parse(expression);
    if (!term || (*term)->has_meta || any_node(*term, has_open_size)) return refused;
    time.term = *term;
    if (!(time.seconds > 0 && reference > 0)) continue;  // below what the device's clock tells
    double& least = least_reference.emplace(time.device, reference).first->second;
    least = std::min(least, reference);
    references.push_back(reference);
    times.push_back(std::move(time));
  }
  for (size_t i = 0; i < times.size(); ++i)
    times[i].circumstances.contention = references[i] / least_reference[times[i].device];
  return times;
}

// A measurement as the model sees it.
struct CostModel::Example {
  KernelNumbers numbers;
  double seconds = 0;
  std::string network;
};

std::vector<CostModel::Example> CostModel::examples_of(const std::vector<KernelTime>& times) {
  std::vector<Example> out;
  for (const KernelTime& time : times)
    out.push_back({kernel_numbers(time.term, time.profile, time.circumstances), time.seconds, time.model});
  return out;
}

double CostModel::Prices::of(const KernelNumbers& kernel) const {
  constexpr double least = 1e-9;  // no kernel takes less
  const std::vector<double>& prices = kernel.native ? native : driver;
  double sum = 0;
  for (size_t i = 0; i < prices.size(); ++i) sum += prices[i] * kernel.amounts[i];
  return std::max(sum, least);
}

CostModel::Prices CostModel::learn_prices(const std::vector<const Example*>& examples) {
  Prices out;
  for (const bool native : {true, false}) {
    std::vector<std::vector<double>> shares;  // of what was measured, for a price of one
    for (const Example* example : examples) {
      if (example->numbers.native != native) continue;
      shares.push_back(example->numbers.amounts);
      for (double& share : shares.back()) share /= example->seconds;
    }
    (native ? out.native : out.driver) = non_negative_least_squares(shares);
  }
  return out;
}

CostModel CostModel::learn(const std::vector<const Example*>& examples) {
  HOIST_CHECK(!examples.empty(), "nothing to learn from");
  Prices prices = learn_prices(examples);
  FeatureTable table;
  std::vector<float> labels;
  bool layers = false;
  for (const Example* example : examples) {
    table.add(example->numbers.features);
    labels.push_back(static_cast<float>(std::log(example->seconds / prices.of(example->numbers))));
    layers |= example->numbers.of_layers;
  }
  BoostedTrees trees = BoostedTrees::fit(
      table, labels,
      {.rounds = 600, .depth = 5, .rate = 0.05, .rows_of_a_tree = 0.5, .columns_of_a_tree = 0.5, .seed = 1});
  CostModel model(std::move(prices), std::move(trees));
  model.layers_ = layers;
  for (size_t i = 0; i < table.columns; ++i) {
    float least = table.numbers[i], most = table.numbers[i];
    for (size_t at = i; at < table.numbers.size(); at += table.columns) {
      least = std::min(least, table.numbers[at]);
      most = std::max(most, table.numbers[at]);
    }
    model.features_.push_back({i, least, most});
  }
  return model;
}

CostModel CostModel::fit(const std::vector<const Example*>& examples) {
  constexpr size_t parts = 4;
  CostModel model = learn(examples);
  // Trees learn logarithms, whose middle is not the number that errs least in the mean: a time that is predicted twice
  // as long is wrong by a whole, one half as long by a half. By how much follows from networks that are left out.
  std::vector<std::pair<double, double>> ratios;  // measured over predicted, and its weight
  for_each_part(examples, parts, [&](const std::vector<const Example*>& known, const std::vector<size_t>& left_out) {
    const CostModel of_others = learn(known);
    for (const size_t i : left_out)
      if (const auto predicted = of_others.seconds(examples[i]->numbers))
        ratios.emplace_back(examples[i]->seconds / *predicted, *predicted / examples[i]->seconds);
  });
  model.scale_ = weighted_median(std::move(ratios));
  return model;
}

CostModel CostModel::fit(const std::vector<KernelTime>& times) {
  const std::vector<Example> examples = examples_of(times);
  std::vector<const Example*> all;
  for (const Example& example : examples) all.push_back(&example);
  CostModel model = fit(all);
  model.learned_from_ = sources_of(times);
  model.native_launch_ = undisturbed_launch(times, true);
  model.driver_launch_ = undisturbed_launch(times, false);
  return model;
}

std::optional<double> CostModel::seconds(const KernelNumbers& kernel) const {
  if (kernel.of_layers && !layers_) return std::nullopt;
  FeatureTable table;
  std::vector<float> numbers;
  for (const Feature& feature : features_) {
    const float number = kernel.features[feature.place];
    // Less than twice as much as ever seen is near enough; what is there or not has to have been there.
    if (number <= feature.least - 1 || number >= feature.most + 1) return std::nullopt;
    numbers.push_back(number);
  }
  table.add(numbers);
  return std::exp(static_cast<double>(trees_.predict(table)[0])) * prices_.of(kernel) * scale_;
}

std::optional<double> CostModel::seconds(Expr term, const Profile& profile, const Circumstances& circumstances) const {
  return seconds(kernel_numbers(term, profile, circumstances));
}

std::string CostModel::save() const {
  nlohmann::ordered_json out = {{"learned_from", learned_from_},
                                {"native_launch", fmt::format("{}", native_launch_)},
                                {"driver_launch", fmt::format("{}", driver_launch_)},
                                {"scale", fmt::format("{}", scale_)},
                                {"launches_of_layers", layers_},
                                {"prices", nlohmann::ordered_json::array()},
                                {"features", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < std::size(amount_names); ++i)
    out["prices"].push_back({{"amount", amount_names[i]},
                             {"native", fmt::format("{}", prices_.native[i])},
                             {"driver", fmt::format("{}", prices_.driver[i])}});
  for (const Feature& feature : features_)
    out["features"].push_back({{"name", names[feature.place]},
                               {"least", fmt::format("{}", feature.least)},
                               {"most", fmt::format("{}", feature.most)}});
  std::istringstream trees(trees_.save());
  for (std::string tree; std::getline(trees, tree);) out["trees"].push_back(tree);
  return out.dump(1) + "\n";
}

Result<CostModel> CostModel::load(std::string_view text, const std::string& where) {
  const auto file = nlohmann::json::parse(text, nullptr, false);
  const Diagnostics refused = {
      {where, "it is no cost model of this version of hoist", "cost_model_quality writes one"}};
  try {
    const auto& features = file.at("features");
    std::string lines;
    for (const auto& tree : file.at("trees")) lines += tree.get<std::string>() + "\n";
    auto trees = BoostedTrees::load(lines, features.size());
    if (!trees) return refused;
    Prices prices = {std::vector<double>(std::size(amount_names)), std::vector<double>(std::size(amount_names))};
    for (const auto& price : file.at("prices")) {
      const auto name =
          std::find(std::begin(amount_names), std::end(amount_names), price.at("amount").get<std::string>());
      const auto of_native = parse_number<double>(price.at("native").get<std::string>());
      const auto of_driver = parse_number<double>(price.at("driver").get<std::string>());
      if (name == std::end(amount_names) || !of_native || !of_driver) return refused;
      const auto place = static_cast<size_t>(name - std::begin(amount_names));
      prices.native[place] = *of_native, prices.driver[place] = *of_driver;
    }
    CostModel model(std::move(prices), std::move(*trees));
    model.learned_from_ = file.at("learned_from").get<std::vector<std::string>>();
    const auto native = parse_number(file.at("native_launch").get<std::string>());
    const auto driver = parse_number(file.at("driver_launch").get<std::string>());
    const auto scale = parse_number(file.at("scale").get<std::string>());
    if (!native || !driver || !scale) return refused;
    model.native_launch_ = *native, model.driver_launch_ = *driver, model.scale_ = *scale;
    model.layers_ = file.at("launches_of_layers").get<bool>();
    for (const auto& feature : features) {
      const auto name = std::find(std::begin(names), std::end(names), feature.at("name").get<std::string>());
      const auto least = parse_number(feature.at("least").get<std::string>());
      const auto most = parse_number(feature.at("most").get<std::string>());
      if (name == std::end(names) || !least || !most) return refused;
      model.features_.push_back({static_cast<size_t>(name - std::begin(names)), *least, *most});
    }
    return model;
  } catch (const nlohmann::json::exception&) {
    return refused;
  }
}

std::span<const CostModel> CostModel::shipped() {
  static const std::vector<CostModel> models = [] {
    std::vector<CostModel> all;
    for (const std::string_view text : shipped_cost_models) {
      auto loaded = load(text, "a cost model that comes with hoist");
      HOIST_CHECK(loaded, "a cost model that comes with hoist has features of another version: cost_model_quality");
      all.push_back(std::move(*loaded));
    }
    return all;
  }();
  return models;
}

const CostModel& model_for(std::span<const CostModel> models, std::span<const Expr> kernels, const Profile& profile,
                           const Circumstances& circumstances) {
  HOIST_CHECK(!models.empty(), "no cost model");
  std::vector<size_t> known(models.size());
  for (const Expr kernel : kernels) {
    const KernelNumbers numbers = kernel_numbers(kernel, profile, circumstances);
    for (size_t i = 0; i < models.size(); ++i) known[i] += models[i].seconds(numbers) ? 1 : 0;
  }
  return models[static_cast<size_t>(std::max_element(known.begin(), known.end()) - known.begin())];
}

CostModelQuality quality_of(const std::vector<KernelTime>& times, const std::vector<std::optional<double>>& predicted) {
  CostModelQuality quality;
  quality.kernels = times.size();
  std::vector<double> errors, measured, estimated;
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<size_t>> variants;
  for (size_t i = 0; i < times.size(); ++i) {
    if (!predicted[i]) {
      ++quality.outside;
      continue;
    }
    errors.push_back(std::abs(*predicted[i] - times[i].seconds) / times[i].seconds);
    measured.push_back(times[i].seconds);
    estimated.push_back(*predicted[i]);
    variants[{times[i].device, times[i].model, times[i].kernel}].push_back(i);
  }
  quality.mean_error = mean(errors);
  if (!errors.empty()) {
    std::sort(errors.begin(), errors.end());
    quality.median_error = errors[errors.size() / 2];
  }
  quality.rank_correlation = correlation_of(ranks_of(measured), ranks_of(estimated));
  size_t ordered = 0;
  for (const auto& [kernel, members] : variants)
    for (size_t i = 0; i < members.size(); ++i)
      for (size_t j = 0; j < members.size(); ++j)
        if (times[members[i]].seconds > 1.1 * times[members[j]].seconds) {
          ++quality.pairs;
          ordered += *predicted[members[i]] > *predicted[members[j]] ? 1 : 0;
        }
  quality.ordered_pairs = quality.pairs > 0 ? static_cast<double>(ordered) / static_cast<double>(quality.pairs) : 0;
  return quality;
}

std::vector<std::optional<double>> held_out_predictions(const std::vector<KernelTime>& times, size_t parts) {
  const std::vector<CostModel::Example> examples = CostModel::examples_of(times);
  std::vector<const CostModel::Example*> all;
  for (const CostModel::Example& example : examples) all.push_back(&example);
  std::vector<std::optional<double>> predicted(times.size());
  for_each_part(all, parts, [&](const auto& known, const std::vector<size_t>& left_out) {
    const CostModel model = CostModel::fit(known);
    for (const size_t i : left_out) predicted[i] = model.seconds(examples[i].numbers);
  });
  return predicted;
}

}  // namespace hoist::tuning
