#include "neural_rules/functions/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ir/base/special_values.h"
#include "ir/evaluate/evaluate.h"
#include "ir/properties/properties.h"
#include "ir/text/parse/near_miss.h"
#include "ir/text/text.h"
#include "neural_rules/functions/k_tanh.h"
#include "neural_rules/functions/sums.h"

namespace hoist {
namespace {

constexpr std::string_view ours = "best approximation (Remez), bounded for f32 by interval arithmetic over the term";
constexpr std::string_view any_f32 = "the layer calls tanh or a sigmoid on f32";

constexpr NeuralRule function_rule(std::string_view name, std::string_view what, std::string_view precondition,
                                   std::string_view source) {
  return {name, RuleFamily::function, SiteKind::function, ErrorModel::bound, what, precondition, source};
}

constexpr auto rules = std::to_array<NeuralRule>({
    function_rule("tanh-rational-3", "tanh and sigmoid as a quotient of degrees 3/2, within 4e-3", any_f32, ours),
    function_rule("tanh-rational-5", "tanh and sigmoid as a quotient of degrees 5/4, within 8e-5", any_f32, ours),
    function_rule("tanh-rational-7", "tanh and sigmoid as a quotient of degrees 7/6, within 3e-6", any_f32, ours),
    function_rule("k-tanh", "tanh and sigmoid of bf16 by a table of 32 entries over the number's bits, within 1.1e-2",
                  "the layer calls tanh or a sigmoid on bf16, or on f32 that may be rounded to it",
                  "K-TanH, arXiv 1909.07729; the table is searched here"),
    function_rule("erf-rational-3", "erf as a quotient of degrees 3/2, within 3e-3", "the layer calls erf on f32",
                  ours),
    function_rule("erf-rational-5", "erf as a quotient of degrees 5/4, within 4e-4", "the layer calls erf on f32",
                  ours),
    function_rule("erf-rational-7", "erf as a quotient of degrees 7/6, within 5e-6", "the layer calls erf on f32",
                  ours),
    function_rule("exp-polynomial-3", "exp as 2^n times a cubic, within 8e-5 of its value",
                  "the layer calls exp on f32 (sigmoid and softmax do)", ours),
    function_rule("exp-polynomial-5", "exp as 2^n times a quintic, within 3e-7 of its value",
                  "the layer calls exp on f32 (sigmoid and softmax do)", ours),
});

// ---- Rows ----------------------------------------------------------------------------------------------------------

struct RowOfRule {
  std::string rule;  ///< the neural rule to which it belongs
  RuleRow row;
  Certificate certificate;
};

double exact_tanh(double x) { return std::tanh(x); }
double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The term by which layers compute the function.
std::string left_side(std::string_view function, std::string_view type) {
  if (function == "sigmoid") return fmt::format("1{0} / (1{0} + exp(-x))", type);
  return fmt::format("{}(x)", function);
}

RowOfRule row_of(const std::string& rule, const std::string& name, std::string_view function, Scalar type,
                 const Approximation& a) {
  const std::string scalar(row(type).name);
  return {rule,
          {name, "", "x: " + scalar, left_side(function, scalar), a.formula, "", RuleClass::neural, a.certificate.how},
          a.certificate};
}

RowOfRule fitted_row(const std::string& rule, std::string_view function, int degree) {
  const std::string name = fmt::format("{}-{}-{}", function, function == "exp" ? "polynomial" : "rational", degree);
  auto made = approximation(function, degree);
  HOIST_CHECK(made.ok(), name + ": " + (made.ok() ? "" : made.errors()[0].text()));
  return row_of(rule, name, function, Scalar::f32, *made);
}

// ---- Tables over the bits of bf16 ----------------------------------------------------------------------------------

// All numbers of bf16 in order, including infinities, multiplied by `stretch`: the inputs that the formula rounds to
// them.
std::vector<double> all_numbers(double stretch) {
  std::vector<double> numbers;
  for (uint64_t bits = 0; bits < 1 << 16; ++bits) {
    const double v = float_from_bits(Scalar::bf16, bits);
    if (!std::isnan(v)) numbers.push_back(v * stretch);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// The largest error over all inputs of a formula on `type` that rounds its input to bf16: from f32, each result holds
// between the midpoints of adjacent bf16 numbers, and the function is monotone there.
double largest_error(const std::string& formula, Scalar type, double (*function)(double), double stretch) {
  const std::vector<double> x = all_numbers(stretch);
  const auto n = static_cast<int64_t>(x.size());
  auto term = parse(fmt::format("map (\\x. {}) (%x : [{}]{})", formula, n, row(type).name));
  HOIST_CHECK(term.ok(), formula + ": " + (term.ok() ? "" : term.errors()[0].text()));
  auto y = evaluate(*term, {{"x", Tensor::of(type, {n}, x)}});
  HOIST_CHECK(y.ok(), formula + ": " + (y.ok() ? "" : y.errors()[0].text()));
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    auto k = static_cast<size_t>(i);
    double from = x[k], to = x[k];
    if (type == Scalar::f32) {
      if (i > 0 && std::isfinite(x[k])) from = x[k - 1] / 2 + x[k] / 2;
      if (i + 1 < n && std::isfinite(x[k])) to = x[k] / 2 + x[k + 1] / 2;
    }
    for (double end : {from, to}) largest = std::max(largest, std::fabs(y->float_at(i) - function(end)));
  }
  return largest;
}

Approximation table_formula(const std::string& formula, Scalar type, double (*function)(double), double stretch) {
  const double error = largest_error(formula, type, function, stretch);
  return {formula,
          {error, false, -infinity, infinity,
           fmt::format("a table over exponent and mantissa of bf16: {:.3g}, found by trying all 65,536 inputs{}", error,
                       type == Scalar::f32 ? " and both ends of the interval that rounds to each" : "")}};
}

std::vector<RowOfRule> table_rows() {
  const MantissaTable table = search_mantissa_table(exact_tanh, Scalar::bf16);
  const std::string of_f32 = fmt::format("let r = cast bf16 x in cast f32 ({})", formula_of(table, "r"));
  // A sigmoid is a tanh of half the input; in f32 the half is taken before rounding.
  const std::string half_bf16 =
      fmt::format("let h = 0.5bf16 * x in cast bf16 (fma(0.5f32, cast f32 ({}), 0.5f32))", formula_of(table, "h"));
  const std::string half_f32 =
      fmt::format("let h = cast bf16 (0.5f32 * x) in fma(0.5f32, cast f32 ({}), 0.5f32)", formula_of(table, "h"));
  return {
      row_of("k-tanh", "k-tanh", "tanh", Scalar::bf16,
             table_formula(formula_of(table, "x"), Scalar::bf16, exact_tanh, 1)),
      row_of("k-tanh", "k-sigmoid", "sigmoid", Scalar::bf16, table_formula(half_bf16, Scalar::bf16, exact_sigmoid, 1)),
      row_of("k-tanh", "k-tanh-of-f32", "tanh", Scalar::f32, table_formula(of_f32, Scalar::f32, exact_tanh, 1)),
      row_of("k-tanh", "k-sigmoid-of-f32", "sigmoid", Scalar::f32,
             table_formula(half_f32, Scalar::f32, exact_sigmoid, 2)),
  };
}

// ---- All rows ------------------------------------------------------------------------------------------------------

std::vector<RowOfRule> make_rows() {
  std::vector<RowOfRule> all;
  for (int degree : {3, 5, 7}) {
    const std::string rule = fmt::format("tanh-rational-{}", degree);
    all.push_back(fitted_row(rule, "tanh", degree));
    all.push_back(fitted_row(rule, "sigmoid", degree));
  }
  for (RowOfRule& r : table_rows()) all.push_back(std::move(r));
  for (int degree : {3, 5, 7}) all.push_back(fitted_row(fmt::format("erf-rational-{}", degree), "erf", degree));
  for (int degree : {3, 5}) all.push_back(fitted_row(fmt::format("exp-polynomial-{}", degree), "exp", degree));
  return all;
}

const std::vector<RowOfRule>& rows_of_rules() {
  static const std::vector<RowOfRule> rows = make_rows();
  return rows;
}

struct Rows {
  const RuleTable* table = nullptr;
  std::vector<std::string> names;
};

Result<Rows> rows_of(const std::string& rule) {
  if (rule == half_rule) return Rows{&sum_rule_table(), {std::string(half_rule)}};
  std::vector<std::string> known = {std::string(half_rule)};
  for (const NeuralRule& r : rules) known.emplace_back(r.name);
  if (std::find(known.begin(), known.end(), rule) == known.end()) {
    return Diagnostic{rule, "there is no such rule for functions", did_you_mean(rule, known)};
  }
  Rows rows{&function_rule_table(), {}};
  for (const RowOfRule& r : rows_of_rules()) {
    if (r.rule == rule) rows.names.push_back(r.row.name);
  }
  return rows;
}

}  // namespace

std::span<const NeuralRule> function_rules() { return rules; }

std::span<const RuleRow> function_rule_rows() {
  static const std::vector<RuleRow> rows = [] {
    std::vector<RuleRow> out;
    for (const RowOfRule& r : rows_of_rules()) out.push_back(r.row);
    return out;
  }();
  return rows;
}

const RuleTable& function_rule_table() {
  static const RuleTable table = [] {
    auto loaded = RuleTable::load(function_rule_rows());
    std::string messages;
    if (!loaded.ok()) {
      for (const Diagnostic& d : loaded.errors()) messages += "\n  " + d.text();
    }
    HOIST_CHECK(loaded.ok(), "the table of function rules is wrong:" + messages);
    return *loaded;
  }();
  return table;
}

std::optional<Certificate> certificate_of(std::string_view rule) {
  std::optional<Certificate> found;
  for (const RowOfRule& r : rows_of_rules()) {
    if (r.row.name == rule) return r.certificate;
    if (r.rule == rule && (!found || r.certificate.error > found->error)) found = r.certificate;
  }
  return found;
}

std::string promise_of(const Certificate& certificate) {
  return fmt::format("within {:.2g}{} for arguments in [{:.4g}, {:.4g}]", certificate.error,
                     certificate.relative ? " of the function's value" : "", certificate.low, certificate.high);
}

const std::set<std::string>& function_rules_in(Expr term) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<Expr, std::set<std::string>>;  // never destroyed, as terms
  const std::lock_guard lock(mutex);
  const auto [place, fresh] = known->try_emplace(term);
  const std::set<Function> called = fresh ? functions_in(term) : std::set<Function>();
  const bool replaceable = called.count(Function::tanh) + called.count(Function::exp) + called.count(Function::erf) > 0;
  for (const RowOfRule& r : replaceable ? std::span<const RowOfRule>(rows_of_rules()) : std::span<const RowOfRule>()) {
    if (place->second.count(r.rule) == 0 && Rewriter(function_rule_table(), term).apply_everywhere({r.row.name}) > 0)
      place->second.insert(r.rule);
  }
  return place->second;
}

Result<Approximated> approximate(Expr term, const std::string& rule) {
  HOIST_TRY(const Rows rows, rows_of(rule));
  Rewriter rewriter(*rows.table, term);
  if (rewriter.apply_everywhere(rows.names) == 0) {
    return Diagnostic{rule, "the layer has no function that the rule approximates",
                      std::string(find_neural_rule(rule)->precondition)};
  }
  return Approximated{rewriter.term(), rewriter.derivation()};
}

Result<UnderFunctions> under_functions(Expr term, const std::vector<std::string>& layers,
                                       const std::map<std::string, std::string>& functions) {
  UnderFunctions out{term, {}};
  for (const std::string& layer : layers) {
    const auto rule = functions.find(layer);
    if (rule == functions.end()) continue;
    HOIST_TRY(Approximated approximated, approximate(out.term, rule->second));
    HOIST_TRY(const Rows rows, rows_of(rule->second));
    out.term = approximated.term;
    for (const Application& call : approximated.derivation.steps) {
      const auto certificate = certificate_of(call.rule);
      const RuleRow& replaced = row(*rows.table->find(call.rule));
      ProgramStep step = replayed_step(call.rule);
      step.layer = layer;
      step.rule_class = RuleClass::neural;
      step.place = call.place;
      step.note = fmt::format("{}: {}", replaced.left, certificate ? promise_of(*certificate) : replaced.meaning);
      out.steps.push_back(std::move(step));
    }
  }
  return out;
}

}  // namespace hoist
