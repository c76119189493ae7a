#include "tools/tuning/model/cost_model.h"

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
#include "ir/evaluate/interpreter/interpret_cost.h"
#include "ir/properties/properties.h"
#include "ir/text/text.h"
#include "lowering/terms/terms.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/records/shipped.h"

namespace hoist::tuning {
namespace {

bool has_open_size(Expr e) {
  for (Type type = e->type; type != nullptr && type->is_array(); type = type->element)
    if (!type->size.is_constant()) return true;
  return std::any_of(e->sizes.begin(), e->sizes.end(), [](const Nat& size) { return !size.is_constant(); });
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The rank of each value; equal values share the mean rank.
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
  // The launch time is the part of a run outside its kernels, which other programs on the machine can only lengthen: a
  // low quantile excludes their effect.
  return static_cast<float>(quantile(std::move(launches), 0.1));
}

/// Splits the networks into at most `parts` parts and calls `take` for each part with the examples of all other
/// networks and the indices of the part's examples. With fewer than two networks it does nothing.
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

/// The weighted median of numbers with their weights; 1 if there are none.
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

// The training data of a model, one line per device.
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

// Parses a number exactly as fmt prints it; the whole text must be one finite number.
template <class Number = float>
std::optional<Number> parse_number(const std::string& text) {
  Number out = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool whole = code == std::errc() && end == text.data() + text.size() && std::isfinite(out);
  return whole ? std::optional<Number>(out) : std::nullopt;
}

// Non-negative least squares: the x >= 0, one per column, that minimises the sum of squares of (row times x - 1) over
// the rows, by coordinate descent (Franc, Hlavac, Navara: Sequential Coordinate-wise Algorithm for the Non-negative
// Least Squares Problem, CAIP 2005). x is 0 for a zero column.
std::vector<double> non_negative_least_squares(const std::vector<std::vector<double>>& rows) {
  constexpr int most_rounds = 10'000;
  constexpr double enough = 1e-9;  // change of a column's mean share that ends the iteration
  const size_t columns = kernel_amount_names().size();
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

Result<std::vector<KernelTime>> read_kernel_times(const std::filesystem::path& file) {
  std::ifstream lines(file);
  if (!lines) return Diagnostics{{file.string(), "it cannot be read", ""}};
  std::vector<KernelTime> times;
  std::vector<double> references;
  std::map<std::string, double> least_reference;  // by device
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}, line {}", file.string(), ++number);
    const Diagnostics refused = {{where, "it is not a measurement of a kernel", "kernel_times writes them"}};
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
    if (!(time.seconds > 0 && reference > 0)) continue;  // below the resolution of the device's clock
    double& least = least_reference.emplace(time.device, reference).first->second;
    least = std::min(least, reference);
    references.push_back(reference);
    times.push_back(std::move(time));
  }
  for (size_t i = 0; i < times.size(); ++i)
    times[i].circumstances.contention = references[i] / least_reference[times[i].device];
  return times;
}

// A measurement in the form in which the model learns it.
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
  constexpr double least = 1e-9;  // lower bound of a kernel's time, in seconds
  const std::vector<double>& prices = kernel.native ? native : driver;
  double sum = 0;
  for (size_t i = 0; i < prices.size(); ++i) sum += prices[i] * kernel.amounts[i];
  return std::max(sum, least);
}

CostModel::Prices CostModel::learn_prices(const std::vector<const Example*>& examples) {
  Prices out;
  for (const bool native : {true, false}) {
    std::vector<std::vector<double>> shares;  // shares of the measured time, at a price of one
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
  // The trees are fitted to logarithms, whose mean does not minimise the mean relative error: a prediction of twice the
  // time has an error of 100 %, one of half the time an error of 50 %. The scale that corrects this is learnt from
  // networks that are left out.
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
    // Features are logarithmic: less than twice the largest trained value is accepted. A 0/1 feature must have its
    // trained value.
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
  for (size_t i = 0; i < kernel_amount_names().size(); ++i)
    out["prices"].push_back({{"amount", kernel_amount_names()[i]},
                             {"native", fmt::format("{}", prices_.native[i])},
                             {"driver", fmt::format("{}", prices_.driver[i])}});
  for (const Feature& feature : features_)
    out["features"].push_back({{"name", kernel_feature_names()[feature.place]},
                               {"least", fmt::format("{}", feature.least)},
                               {"most", fmt::format("{}", feature.most)}});
  std::istringstream trees(trees_.save());
  for (std::string tree; std::getline(trees, tree);) out["trees"].push_back(tree);
  return out.dump(1) + "\n";
}

Result<CostModel> CostModel::load(std::string_view text, const std::string& where) {
  const auto file = nlohmann::json::parse(text, nullptr, false);
  const Diagnostics refused = {
      {where, "it is not a cost model of this version of hoist", "cost_model_quality writes one"}};
  const auto amount_names = kernel_amount_names();
  try {
    const auto& features = file.at("features");
    std::string lines;
    for (const auto& tree : file.at("trees")) lines += tree.get<std::string>() + "\n";
    auto trees = BoostedTrees::load(lines, features.size());
    if (!trees) return refused;
    Prices prices = {std::vector<double>(amount_names.size()), std::vector<double>(amount_names.size())};
    for (const auto& price : file.at("prices")) {
      const auto name = std::find(amount_names.begin(), amount_names.end(), price.at("amount").get<std::string>());
      const auto of_native = parse_number<double>(price.at("native").get<std::string>());
      const auto of_driver = parse_number<double>(price.at("driver").get<std::string>());
      if (name == amount_names.end() || !of_native || !of_driver) return refused;
      const auto place = static_cast<size_t>(name - amount_names.begin());
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
      const auto name = std::find(std::begin(kernel_feature_names()), std::end(kernel_feature_names()),
                                  feature.at("name").get<std::string>());
      const auto least = parse_number(feature.at("least").get<std::string>());
      const auto most = parse_number(feature.at("most").get<std::string>());
      if (name == std::end(kernel_feature_names()) || !least || !most) return refused;
      model.features_.push_back({static_cast<size_t>(name - std::begin(kernel_feature_names())), *least, *most});
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
