#include "lowering/winograd.h"

#include "lowering/rules.h"
#include "lowering/terms.h"

namespace hoist {
namespace {

// Tiles of so many results in both directions, for windows of that size.
struct WinogradForm {
  int64_t results, window;
  const char *rule, *rule_with_bias;
};
constexpr WinogradForm winograd_forms[] = {
    {4, 3, "winograd-f4x4-3x3", "winograd-f4x4-3x3-bias"},
    {2, 3, "winograd-f2x2-3x3", "winograd-f2x2-3x3-bias"},
    {2, 5, "winograd-f2x2-5x5", "winograd-f2x2-5x5-bias"},
};

// Multiply-adds that take as long as transforming an element of the tiles or of the products, writing it and reading it
// back; as reading a weight that no cache has kept since the last run; and as one of the two launches more than the
// stencil's. Two Zen 4 cores take 8 to 14, 7, and 100,000 to 400,000, where tiles fit in their third cache; processors
// with more multiply-adds a cycle pay more of them for a byte.
constexpr double element_cost = 20, weight_cost = 10, launch_cost = 250000;

// Of images [n][c][...] that become [n][o][h][w].
void estimate(WinogradChoice& choice, Expr convolution, const WinogradForm& form) {
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const auto tiles = [&](int64_t n) { return number(round_up(n, form.results) / form.results); };
  const std::vector<int64_t> result = shape_of(convolution->type);
  const double inputs = number(shape_of(convolution->children[1]->type)[1]), outputs = number(result[1]);
  const double products = inputs * outputs;
  const double side = number(form.results + form.window - 1),
               all_tiles = number(result[0]) * tiles(result[2]) * tiles(result[3]);
  choice.cost = side * side * (all_tiles * (products + element_cost * (inputs + outputs)) + weight_cost * products) +
                2 * launch_cost;
  const double window = number(form.window * form.window), results = number(result[0] * result[2] * result[3]);
  choice.direct = window * (results + weight_cost) * products;
}

std::optional<WinogradChoice> in_form(Expr term, const WinogradForm& form) {
  for (const char* rule : {form.rule, form.rule_with_bias}) {
    for (int64_t i = 0; i < form.results; ++i) {
      for (int64_t j = 0; j < form.results; ++j) {
        WinogradChoice choice{rule, {{"i", i}, {"j", j}}, {}};
        Rewriter rewriter(lowering_rules(), term);
        const auto place = rewriter.apply_first(rule, choice.arguments);
        if (!place) continue;
        choice.place = *place;
        estimate(choice, at(term, *place), form);
        return choice;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<WinogradChoice> cheapest_winograd(Expr term) {
  std::optional<WinogradChoice> best;
  for (const WinogradForm& form : winograd_forms) {
    auto choice = in_form(term, form);
    if (choice && (!best || choice->cost < best->cost)) best = std::move(choice);
  }
  return best;
}

}  // namespace hoist
