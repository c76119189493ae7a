#include "neural_rules/neural_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "neural_rules/formats/formats.h"
#include "neural_rules/formats/product_weights.h"
#include "neural_rules/formats/rounding.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/functions/sums.h"
#include "neural_rules/model/flow.h"

namespace hoist {
namespace {

constexpr RuleFamily storage = RuleFamily::storage, weights = RuleFamily::weights;
constexpr RuleFamily quantisation = RuleFamily::quantisation;
constexpr SiteKind value = SiteKind::value, product = SiteKind::product;
constexpr ErrorModel noise = ErrorModel::noise;

constexpr std::string_view any_array = "a value of type f32 between kernels";
constexpr std::string_view constant_weights = "constant weights of type f32";
constexpr std::string_view wide_range = "largest magnitude on calibration data below 32752, half of f16's maximum";
constexpr std::string_view fits_i32 = "constant weights; the input is stored in u8; sums are proved to fit in i32";

constexpr std::string_view corrected =
    "as for the rule that it improves; a constant bias with one element per output channel, or none";
constexpr std::string_view adaptive =
    "as for the rule that it improves; sums of at most 2048 terms; second moments of the input";
constexpr std::string_view short_sums =
    "constant weights; sums of at most 64 terms that stay below 32752 on calibration data; arithmetic in f16";
constexpr std::string_view integer_source = "Jacob et al. 2018, arXiv 1712.05877";
constexpr std::string_view corrected_source = "Nagel et al. 2019, arXiv 1906.04721";
constexpr std::string_view adaptive_source = "purpose: Nagel et al. 2020, arXiv 2004.10568";

constexpr WeightFormat f16_weights{.scalar = Scalar::f16}, bf16_weights{.scalar = Scalar::bf16};
constexpr WeightFormat e4m3_weights{.scalar = Scalar::f8e4m3fn}, e5m2_weights{.scalar = Scalar::f8e5m2};
constexpr WeightFormat bfp8_weights{.scalar = Scalar::i8, .block = 32, .power_of_two = true};
constexpr WeightFormat w8{.scalar = Scalar::i8};
constexpr WeightFormat w4(int64_t block) { return {.scalar = Scalar::i4, .block = block, .search_clipping = true}; }
constexpr WeightFormat u4(int64_t block) {
  return {.scalar = Scalar::u4, .block = block, .symmetric = false, .search_clipping = true};
}
constexpr ProductScheme integer_product(Scalar input) {
  return {.weights = w8, .activation = ActivationUse::quantised, .input = input};
}
constexpr ProductScheme with_correction(ProductScheme scheme) {
  scheme.corrected = true;
  return scheme;
}
constexpr ProductScheme with_data(ProductScheme scheme) {
  scheme.adaptive = true;
  return scheme;
}

// clang-format off
constexpr auto own_rows = std::to_array<NeuralRule>({
    {"f16", storage, value, noise, "stored in f16, arithmetic in f32", wide_range, "", true, ValueFormat{Scalar::f16}},
    {"bf16", storage, value, noise, "stored in bf16, arithmetic in f32", any_array, "", false, ValueFormat{Scalar::bf16}},
    {"e4m3", storage, value, noise, "stored in float8 e4m3 with one scale", any_array, "Micikevicius et al. 2022, arXiv 2209.05433", true, ValueFormat{Scalar::f8e4m3fn}},
    {"e5m2", storage, value, noise, "stored in float8 e5m2 with one scale", any_array, "Micikevicius et al. 2022, arXiv 2209.05433", true, ValueFormat{Scalar::f8e5m2}},
    {"bfp8", storage, value, noise, "stored in blocks of 32 channels: 8 bits and a common power of two, found in each run", "a value of type f32 with channels", "Rouhani et al. 2023, arXiv 2310.10537", false, ValueFormat{Scalar::i8, RangeChoice::min_max, true, block_channels}},
    {"u8", quantisation, value, noise, "unsigned 8 bits with a zero point, range from minimum to maximum", any_array, "Jacob et al. 2018, arXiv 1712.05877", true, ValueFormat{Scalar::u8}},
    {"u8-percentile", quantisation, value, noise, "unsigned 8 bits with a zero point, all but 0.01 % at each end of the range", any_array, "Wu et al. 2020, arXiv 2004.09602", true, ValueFormat{Scalar::u8, RangeChoice::percentile}},
    {"u8-mse", quantisation, value, noise, "unsigned 8 bits with a zero point, range of least squared error", any_array, "Nagel et al. 2021, arXiv 2106.08295", true, ValueFormat{Scalar::u8, RangeChoice::squared_error}},
    {"i8", quantisation, value, noise, "signed 8 bits without a zero point, range from the largest magnitude", any_array, "Wu et al. 2020, arXiv 2004.09602", true, ValueFormat{Scalar::i8, RangeChoice::min_max, true}},
    {"i8-mse", quantisation, value, noise, "signed 8 bits without a zero point, range of least squared error", any_array, "Nagel et al. 2021, arXiv 2106.08295", true, ValueFormat{Scalar::i8, RangeChoice::squared_error, true}},
    {"i16", quantisation, value, noise, "signed 16 bits without a zero point", any_array, "", true, ValueFormat{Scalar::i16, RangeChoice::min_max, true}},
    {"f16-weights", weights, product, noise, "weights stored in f16", "constant weights below 65504", "", false, {}, ProductScheme{f16_weights}},
    {"bf16-weights", weights, product, noise, "weights stored in bf16", constant_weights, "", false, {}, ProductScheme{bf16_weights}},
    {"e4m3-weights", weights, product, noise, "weights stored in float8 e4m3, one scale per output channel", constant_weights, "Micikevicius et al. 2022, arXiv 2209.05433", false, {}, ProductScheme{e4m3_weights}},
    {"e5m2-weights", weights, product, noise, "weights stored in float8 e5m2, one scale per output channel", constant_weights, "Micikevicius et al. 2022, arXiv 2209.05433", false, {}, ProductScheme{e5m2_weights}},
    {"bfp8-weights", weights, product, noise, "weights in blocks of 32 terms of a sum: 8 bits and a common power of two", constant_weights, "Rouhani et al. 2023, arXiv 2310.10537", false, {}, ProductScheme{bfp8_weights}},
    {"w8", weights, product, noise, "weights in 8 bits, one scale per output channel", constant_weights, "Jacob et al. 2018, arXiv 1712.05877", false, {}, ProductScheme{w8}},
    {"w4-g32", weights, product, noise, "weights in 4 bits, one scale per 32 terms of a sum", constant_weights, "", false, {}, ProductScheme{w4(32)}},
    {"w4-g64", weights, product, noise, "weights in 4 bits, one scale per 64 terms of a sum", constant_weights, "", false, {}, ProductScheme{w4(64)}},
    {"w4-g128", weights, product, noise, "weights in 4 bits, one scale per 128 terms of a sum", constant_weights, "", false, {}, ProductScheme{w4(128)}},
    {"u4-g32", weights, product, noise, "weights in 4 bits, one scale and zero point per 32 terms of a sum", constant_weights, "", false, {}, ProductScheme{u4(32)}},
    {"u4-g64", weights, product, noise, "weights in 4 bits, one scale and zero point per 64 terms of a sum", constant_weights, "", false, {}, ProductScheme{u4(64)}},
    {"u4-g128", weights, product, noise, "weights in 4 bits, one scale and zero point per 128 terms of a sum", constant_weights, "", false, {}, ProductScheme{u4(128)}},
    {"w4-g32-corrected", weights, product, noise, "w4-g32 with the mean error corrected in the bias", corrected, corrected_source, true, {}, with_correction({w4(32)})},
    {"w4-g32-adaptive", weights, product, noise, "w4-g32, rounded for the least error on calibration data", adaptive, adaptive_source, true, {}, with_data({w4(32)})},
    {"w4-g128-adaptive", weights, product, noise, "w4-g128, rounded for the least error on calibration data", adaptive, adaptive_source, true, {}, with_data({w4(128)})},
    {half_rule, RuleFamily::arithmetic, product, noise, "factors, products and their sum in f16", short_sums, "", true, {}, ProductScheme{.weights = f16_weights, .half = true}},
    {"bf16-products", RuleFamily::arithmetic, product, noise, "factors in bf16, products and their sum in f32", "constant weights; the input is stored in bf16", "Kalamkar et al. 2019, arXiv 1905.12322", false, {}, ProductScheme{.weights = bf16_weights, .input = Scalar::bf16}},
    {"w8a8", quantisation, product, noise, "integer contraction of 8-bit weights, one scale per output channel, and an input stored in u8", fits_i32, integer_source, false, {}, integer_product(Scalar::u8)},
    {"w8a8-corrected", quantisation, product, noise, "w8a8 with the mean error corrected in the bias", corrected, corrected_source, true, {}, with_correction(integer_product(Scalar::u8))},
    {"w8a8-adaptive", quantisation, product, noise, "w8a8 with weights rounded for the least error on calibration data", adaptive, adaptive_source, true, {}, with_data(integer_product(Scalar::u8))},
    {"w8a8-signed", quantisation, product, noise, "integer contraction of 8-bit weights and an input stored in i8", "constant weights; the input is stored in i8; sums are proved to fit in i32", "Wu et al. 2020, arXiv 2004.09602", false, {}, integer_product(Scalar::i8)},
    {"w8a16", quantisation, product, noise, "integer contraction of 8-bit weights and an input stored in i16", "constant weights; the input is stored in i16; sums are proved to fit in i32", "", false, {}, integer_product(Scalar::i16)},
    {"w8a8-dynamic", quantisation, product, noise, "integer contraction of 8-bit weights and an input that each run quantises to u8 over its own range", "constant weights; sums are proved to fit in i32", "", false, {}, ProductScheme{.weights = w8, .activation = ActivationUse::dynamic}},
});
// clang-format on

const std::vector<NeuralRule>* scoped_rows = nullptr;  // the rows of a ScopedNeuralRules

const std::vector<NeuralRule>& all_rows() {
  static const std::vector<NeuralRule> rows = [] {
    std::vector<NeuralRule> all(own_rows.begin(), own_rows.end());
    all.insert(all.end(), function_rules().begin(), function_rules().end());
    return all;
  }();
  return scoped_rows != nullptr ? *scoped_rows : rows;
}

// The first version of ai.onnx that can express the rule.
int64_t first_opset(const NeuralRule& rule) {
  if (const auto& format = rule.stored) {
    if (format->scalar == Scalar::i16 || format->block != 0) return 21;
    return is_float(format->scalar) ? 19 : 13;
  }
  if (!rule.product) return 0;
  const WeightFormat& format = rule.product->weights;
  if (format.block != 0 || row(format.scalar).bits == 4) return 21;
  return is_float(format.scalar) ? 19 : 13;
}

// The largest magnitude; not finite if an element is not. The bits of magnitudes are ordered like the magnitudes, with
// infinity and NaN last, and compilers vectorise integer maxima: this runs for every rule at every site.
float largest_magnitude(std::span<const float> numbers) {
  uint32_t largest = 0;
  for (const float x : numbers) largest = std::max(largest, std::bit_cast<uint32_t>(x) & 0x7fffffffU);
  return std::bit_cast<float>(largest);
}

std::optional<std::string> why_not_half(const Product& product) {
  if (!product.whole_sums) return "the sums of a transposed convolution differ in length";
  if (product.terms() > half_terms)
    return fmt::format("its sums have {} terms, at most {} can be computed in f16", product.terms(), half_terms);
  return std::nullopt;
}

std::optional<std::string> why_not_product(const NeuralRule& rule, const Site& site, const Program& program) {
  const auto& scheme = rule.product;
  const Definition* layer = find_layer(program, site.layer);
  const auto found = layer == nullptr ? std::nullopt : product_of(program, *layer);
  if (!scheme || !found) return "the layer has no constant weights of type f32";
  const Tensor& numbers = program.constants.at(found->weights);
  const double largest = largest_magnitude(numbers.floats());
  if (!std::isfinite(largest)) return "a weight is not finite";
  const WeightFormat& format = scheme->weights;
  if (format.scalar == Scalar::f16 && largest >= largest_of(Scalar::f16))
    return fmt::format("a weight has magnitude {}, and f16 ends at 65504", largest);
  if (scheme->corrected) {
    if (auto reason = why_no_bias(program, *layer)) return reason;
  }
  if (scheme->adaptive) {
    if (auto reason = why_not_adaptive(program, *layer)) return reason;
  }
  if (scheme->half) return why_not_half(*found);
  if (scheme->activation == ActivationUse::as_is) return std::nullopt;
  // No weight exceeds 127, so most layers do not need the exact sum.
  const double largest_term = largest_activation(*scheme);
  if (127 * largest_term * static_cast<double>(found->terms()) >= 0x1p31 &&
      largest_term * largest_sum(*found, pack_weights(*found, numbers, format)) >= 0x1p31)
    return fmt::format("sums of {} products may overflow i32", found->terms());
  return std::nullopt;
}

std::optional<std::string> why_not_value(const NeuralRule& rule, const Site& site, const Program& program) {
  if (rule.stored->block == 0) return std::nullopt;
  const Type type = find_type(program, site.value);
  if (type == nullptr) return "the value's shape is not known";
  const std::vector<int64_t> shape = shape_of(type);
  if (shape.size() < 2) return "the value has no channels";
  if (std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 1; })) return "the value's shape is not known";
  return std::nullopt;
}

std::optional<std::string> why_not_function(const NeuralRule& rule, const Site& site, const Program& program) {
  const Definition* definition = find_definition(program, site.value);
  if (definition != nullptr && function_rules_in(term_of(program, *definition)).count(std::string(rule.name)) != 0)
    return std::nullopt;
  return "the layer does not call the function";
}

}  // namespace

bool DeviceArithmetic::has(std::optional<Scalar> scalar) const {
  return !scalar || (*scalar == Scalar::f16 && half) || (*scalar == Scalar::bf16 && bf16);
}

DeviceArithmetic arithmetic_of(const Profile& profile) {
  return {.half = profile.half, .bf16 = profile.matrix_tile > 0};
}

std::optional<Scalar> NeuralRule::arithmetic() const {
  if (half()) return Scalar::f16;
  return input() && is_float(*input()) ? input() : std::nullopt;
}

double largest_activation(const ProductScheme& scheme) { return scheme.input == Scalar::i16 ? 32768 : 255; }

const ProductScheme* find_scheme(std::string_view rule) {
  const NeuralRule* found = find_neural_rule(rule);
  return found != nullptr && found->product ? &*found->product : nullptr;
}

bool multiplies_integers(std::string_view rule) {
  const ProductScheme* scheme = find_scheme(rule);
  return scheme != nullptr && scheme->activation != ActivationUse::as_is;
}

const ValueFormat* find_value_format(std::string_view rule) {
  const NeuralRule* found = find_neural_rule(rule);
  return found != nullptr && found->stored ? &*found->stored : nullptr;
}

bool gives(std::string_view rule, Scalar input) {
  const ValueFormat* format = find_value_format(rule);
  return format != nullptr && format->scalar == input && format->block == 0;
}

std::string_view name_of(RuleFamily family) {
  switch (family) {
    case RuleFamily::storage:
      return "storage";
    case RuleFamily::weights:
      return "weights";
    case RuleFamily::arithmetic:
      return "arithmetic";
    case RuleFamily::quantisation:
      return "quantisation";
    case RuleFamily::function:
      return "function";
  }
  return "";
}

std::string_view name_of(ErrorModel model) {
  switch (model) {
    case ErrorModel::bound:
      return "bound";
    case ErrorModel::noise:
      return "noise";
    case ErrorModel::measured:
      return "measured";
  }
  return "";
}

std::span<const NeuralRule> neural_rules() { return all_rows(); }

ScopedNeuralRules::ScopedNeuralRules(const std::vector<NeuralRule>& rows) : rows_(all_rows()), outer_(scoped_rows) {
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  scoped_rows = &rows_;
}
ScopedNeuralRules::~ScopedNeuralRules() { scoped_rows = outer_; }

const NeuralRule* find_neural_rule(std::string_view name) {
  const auto& rows = all_rows();
  auto found = std::find_if(rows.begin(), rows.end(), [&](const NeuralRule& rule) { return rule.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::optional<std::string> why_not(const NeuralRule& rule, const Site& site, const Program& program) {
  if (rule.kind != site.kind)
    return fmt::format("the rule is for a {}, not for a {}", name_of(rule.kind), name_of(site.kind));
  if (program.version < first_opset(rule))
    return fmt::format("the model is of version {} of ai.onnx, which cannot express it; version {} can",
                       program.version, first_opset(rule));
  if (site.kind == SiteKind::function) return why_not_function(rule, site, program);
  return site.kind == SiteKind::product ? why_not_product(rule, site, program) : why_not_value(rule, site, program);
}

}  // namespace hoist
