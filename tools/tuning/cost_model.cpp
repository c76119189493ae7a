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

#include "ir/properties.h"
#include "ir/text/text.h"
#include "lowering/terms.h"
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
    // What follows from them.
    "operations a group", "operations a vector register", "operations an element", "operations a byte",
    "groups a compute unit", "unused lanes", "result elements",
    // The device.
    "gpu", "vector width", "vector registers", "compute units", "dot instructions", "native code", "contention"};

struct Totals {
  double sums[sum_count] = {};
  double products[product_count] = {1, 1, 1, 1, 1, 1};
  double loops = 0;
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
    for (const Expr child : e->children) {
      const Totals& inner = of(child);
      const bool repeats = child->pattern == Pattern::function && e->pattern != Pattern::let;
      const double times = repeats ? static_cast<double>(applications(e)) : 1;
      for (size_t i = 0; i < sum_count; ++i) totals.sums[i] += times * inner.sums[i];
      for (size_t i = 0; i < product_count; ++i) {
        const bool here = child->pattern == Pattern::function && multiplies(e, static_cast<Product>(i));
        totals.products[i] = std::max(totals.products[i], inner.products[i] * (here ? times : 1));
      }
      totals.loops += inner.loops;
      if (child->pattern == Pattern::function && is_loop(e)) {
        totals.loops += 1;
        if (e->pattern != Pattern::map) totals.sums[fold_steps] += times;
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

float usual_launch(const std::vector<KernelTime>& times, bool native) {
  std::vector<double> launches;
  for (const KernelTime& time : times)
    if (time.circumstances.native == native) launches.push_back(time.launch);
  if (launches.empty()) return 0;
  std::sort(launches.begin(), launches.end());
  return static_cast<float>(launches[launches.size() / 2]);
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
std::optional<float> parse_number(const std::string& text) {
  float out = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool whole = code == std::errc() && end == text.data() + text.size() && std::isfinite(out);
  return whole ? std::optional<float>(out) : std::nullopt;
}

}  // namespace

double elements_of(Type type) {
  if (!type->is_array()) return 1;
  return static_cast<double>(type->size.value()) * elements_of(type->element);
}

double kernel_work(Expr term) {
  double bytes = bytes_of_type(term->type);
  for (const Expr parameter : parameters_of(term)) bytes += bytes_of_type(parameter->type);
  return static_cast<double>(count_operations(term)) + bytes / 4 + 256;
}

std::span<const std::string_view> kernel_feature_names() { return names; }

std::vector<float> kernel_features(Expr term, const Profile& profile, const Circumstances& circumstances) {
  Walk walk;
  const Totals totals = walk.of(term);
  std::vector<float> features;
  for (const double sum : totals.sums) features.push_back(logarithm(sum));
  for (const double product : totals.products) features.push_back(logarithm(product));
  features.push_back(logarithm(static_cast<double>(walk.nodes())));
  features.push_back(logarithm(totals.loops));

  double read = 0, transposed = 0, kept = 0;
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

  const auto operations = static_cast<double>(count_operations(term));
  const auto width = static_cast<double>(profile.vector_width);
  const double all_groups = totals.products[groups];
  features.push_back(logarithm(operations / all_groups));
  features.push_back(logarithm(operations / width));
  features.push_back(logarithm(operations / std::max(results, 1.0)));
  features.push_back(logarithm(operations / (read + written)));
  features.push_back(logarithm(all_groups / static_cast<double>(profile.compute_units)));
  features.push_back(static_cast<float>(std::log2(width / std::max(totals.products[lanes], 1.0))));
  features.push_back(logarithm(results));

  features.push_back(profile.gpu ? 1.0F : 0.0F);
  features.push_back(logarithm(width));
  features.push_back(logarithm(static_cast<double>(profile.vector_registers)));
  features.push_back(logarithm(static_cast<double>(profile.compute_units)));
  features.push_back(profile.dot_instructions ? 1.0F : 0.0F);
  features.push_back(circumstances.native ? 1.0F : 0.0F);
  features.push_back(static_cast<float>(std::log2(circumstances.contention)));
  HOIST_CHECK(features.size() == std::size(names), "a name for each feature");
  return features;
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

CostModel CostModel::fit(const std::vector<KernelTime>& times) {
  HOIST_CHECK(!times.empty(), "nothing to learn from");
  FeatureTable table;
  std::vector<float> labels;
  for (const KernelTime& time : times) {
    table.add(kernel_features(time.term, time.profile, time.circumstances));
    labels.push_back(static_cast<float>(std::log(time.seconds / kernel_work(time.term))));
  }
  CostModel model(BoostedTrees::fit(
      table, labels,
      {.rounds = 250, .depth = 4, .rate = 0.05, .rows_of_a_tree = 0.5, .columns_of_a_tree = 0.5, .seed = 1}));
  model.learned_from_ = sources_of(times);
  model.native_launch_ = usual_launch(times, true);
  model.driver_launch_ = usual_launch(times, false);
  for (size_t i = 0; i < table.columns; ++i) {
    float least = table.numbers[i], most = table.numbers[i];
    for (size_t at = i; at < table.numbers.size(); at += table.columns) {
      least = std::min(least, table.numbers[at]);
      most = std::max(most, table.numbers[at]);
    }
    model.least_.push_back(least), model.most_.push_back(most);
  }
  return model;
}

std::optional<double> CostModel::seconds(Expr term, const Profile& profile, const Circumstances& circumstances) const {
  FeatureTable table;
  table.add(kernel_features(term, profile, circumstances));
  // Less than twice as much as ever seen is near enough; what is there or not has to have been there.
  for (size_t i = 0; i < table.columns; ++i)
    if (table.numbers[i] <= least_[i] - 1 || table.numbers[i] >= most_[i] + 1) return std::nullopt;
  return std::exp(static_cast<double>(trees_.predict(table)[0])) * kernel_work(term);
}

std::string CostModel::save() const {
  nlohmann::ordered_json out = {{"learned_from", learned_from_},
                                {"native_launch", fmt::format("{}", native_launch_)},
                                {"driver_launch", fmt::format("{}", driver_launch_)},
                                {"features", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < std::size(names); ++i)
    out["features"].push_back(
        {{"name", names[i]}, {"least", fmt::format("{}", least_[i])}, {"most", fmt::format("{}", most_[i])}});
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
    if (features.size() != std::size(names)) return refused;
    std::string lines;
    for (const auto& tree : file.at("trees")) lines += tree.get<std::string>() + "\n";
    auto trees = BoostedTrees::load(lines, std::size(names));
    if (!trees) return refused;
    CostModel model(std::move(*trees));
    model.learned_from_ = file.at("learned_from").get<std::vector<std::string>>();
    const auto native = parse_number(file.at("native_launch").get<std::string>());
    const auto driver = parse_number(file.at("driver_launch").get<std::string>());
    if (!native || !driver) return refused;
    model.native_launch_ = *native, model.driver_launch_ = *driver;
    for (size_t i = 0; i < features.size(); ++i) {
      const auto least = parse_number(features[i].at("least").get<std::string>());
      const auto most = parse_number(features[i].at("most").get<std::string>());
      if (features[i].at("name") != names[i] || !least || !most) return refused;
      model.least_.push_back(*least), model.most_.push_back(*most);
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
  const CostModel* best = nullptr;
  std::ptrdiff_t most = -1;
  for (const CostModel& model : models) {
    const auto known = std::count_if(kernels.begin(), kernels.end(), [&](Expr kernel) {
      return model.seconds(kernel, profile, circumstances).has_value();
    });
    if (known > most) best = &model, most = known;
  }
  return *best;
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
  std::set<std::string> all_models;
  for (const KernelTime& time : times) all_models.insert(time.model);
  const std::vector<std::string> models(all_models.begin(), all_models.end());
  std::vector<std::optional<double>> predicted(times.size());
  for (size_t part = 0; part < parts; ++part) {
    std::set<std::string> left_out;
    for (size_t i = part; i < models.size(); i += parts) left_out.insert(models[i]);
    std::vector<KernelTime> known;
    for (const KernelTime& time : times)
      if (!left_out.contains(time.model)) known.push_back(time);
    if (known.empty()) continue;
    const CostModel model = CostModel::fit(known);
    for (size_t i = 0; i < times.size(); ++i)
      if (left_out.contains(times[i].model))
        predicted[i] = model.seconds(times[i].term, times[i].profile, times[i].circumstances);
  }
  return predicted;
}

}  // namespace hoist::tuning
