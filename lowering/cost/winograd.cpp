#include "lowering/cost/winograd.h"

#include <algorithm>
#include <optional>

#include "lowering/fusion/launches.h"
#include "lowering/rules/rules.h"
#include "lowering/strategies/terms.h"
#include "lowering/tiling/tile.h"

namespace hoist {
namespace {

// Tiles of so many results in both directions, for windows of that size.
struct WinogradForm {
  int64_t results, window;
  const char *rule, *rule_with_bias;
  bool of_bytes = false;  ///< whole numbers: exact
};
constexpr WinogradForm winograd_forms[] = {
    {4, 3, "winograd-f4x4-3x3", "winograd-f4x4-3x3-bias"},
    {2, 3, "winograd-f2x2-3x3", "winograd-f2x2-3x3-bias"},
    {2, 5, "winograd-f2x2-5x5", "winograd-f2x2-5x5-bias"},
    {4, 3, "winograd-bytes-f4x4-3x3", "winograd-bytes-f4x4-3x3-bias", true},
    {2, 3, "winograd-bytes-f2x2-3x3", "winograd-bytes-f2x2-3x3-bias", true},
};

// Multiply-adds that take as long as transforming an element of the tiles or of the products, writing it and reading it
// back, where all of them fit in the caches of a core or two, and where they do not; as reading a transformed filter's
// element from there, and from memory. The first is about 5 on a Zen 5 core, and more on two, which share out the steps
// of a small stencil, but not the three short ones in its place, and in PoCL's code; of bytes it is 14 to 17. The
// others were measured on two Zen 4 cores: 50, 3 and 7; on two of a Xeon (Emerald Rapids), which do more multiply-adds
// a cycle and read less, the last is about 25, and what stands here lies between. There are two kernels more than the
// stencil's.
constexpr double element_cost[] = {7, 50}, byte_element_cost[] = {15, 50}, weight_cost[] = {3, 12};
constexpr double cached_elements = 1 << 20, cached_weights = 1 << 18;

// On GPUs all is in cycles: so many elements of tiles and products are transformed in one of a compute unit, and so
// many cycles a launch takes, with the time until the next (H100).
constexpr double elements_each_cycle = 3, launch_cycles = 8500;

// Of images [n][c][h][w] that become [n][o][h][w].
void estimate_on_gpu(WinogradChoice& choice, Expr convolution, const WinogradForm& form, const PassOptions& options) {
  const Profile& profile = options.profile;
  const std::vector<int64_t> result = shape_of(convolution->type);
  const int64_t channels = shape_of(convolution->children[1]->type)[1], side = form.results + form.window - 1;
  TiledResults direct;
  direct.count = result[0];
  direct.rows = result[2] * result[3];
  direct.columns = result[1];
  direct.steps = channels;
  direct.folds = form.window * form.window;
  const auto tiles = [&](int64_t n) { return round_up(n, form.results) / form.results; };
  TiledResults products = direct;
  products.count = side * side;
  products.rows = result[0] * tiles(result[2]) * tiles(result[3]);
  products.folds = 1;
  const auto elements = static_cast<double>(products.count * products.rows * (channels + result[1]));
  choice.direct = estimated_cycles(direct, profile);
  choice.cost = estimated_cycles(products, profile) + 2 * launch_cycles +
                elements / (elements_each_cycle * static_cast<double>(profile.compute_units));
}

// Of images [n][c][...] that become [n][o][h][w].
void estimate(WinogradChoice& choice, Expr convolution, const WinogradForm& form, const PassOptions& options) {
  const Profile& profile = options.profile;
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const auto tiles = [&](int64_t n) { return number(round_up(n, form.results) / form.results); };
  const std::vector<int64_t> result = shape_of(convolution->type);
  const double inputs = number(shape_of(convolution->children[1]->type)[1]), outputs = number(result[1]);
  const double side = number(form.results + form.window - 1), products = inputs * outputs;
  const double all_tiles = number(result[0]) * tiles(result[2]) * tiles(result[3]);
  const double elements = side * side * all_tiles * (inputs + outputs), weights = side * side * products;
  // Of whole numbers the products are those of 16 bits, in pairs, either way, and arrays are as much shorter as their
  // types: transformed tiles and filters half, products as long, the stencil's weights a quarter.
  const double rate = form.of_bytes ? number(std::max<int64_t>(1, profile.pair_products)) : 1;
  const double tile_size = form.of_bytes ? 0.75 : 1, filter_size = form.of_bytes ? 0.5 : 1,
               weight_size = form.of_bytes ? 0.25 : 1;
  const auto each = [](const double(&costs)[2], double count, double cached, double size) {
    return size * costs[count * size <= cached ? 0 : 1];
  };
  const double each_element =
      each(form.of_bytes ? byte_element_cost : element_cost, elements, cached_elements, tile_size);
  choice.cost = side * side * all_tiles * products / rate + elements * each_element +
                weights * each(weight_cost, weights, cached_weights, filter_size) +
                2 * launch_cost(profile, options.joins_steps);
  const double window = number(form.window * form.window), results = number(result[0] * result[2] * result[3]);
  choice.direct = window * (results / rate + each(weight_cost, weights, cached_weights, weight_size)) * products;
  if (form.of_bytes && profile.pair_products == 0) choice.direct = 0;
}

// Operations that transforming the filters takes, about.
int64_t filter_transform(Expr convolution, const WinogradForm& form) {
  const int64_t side = form.results + form.window - 1, window = form.window * form.window;
  const int64_t filters = shape_of(convolution->children[1]->type)[1] * shape_of(convolution->type)[1];
  return side * side * filters * (3 * window + 2 * form.window);
}

std::optional<WinogradChoice> in_form(Expr term, const WinogradForm& form, const PassOptions& options) {
  Rewriter rewriter(lowering_rules(), term);
  const auto lacks = [&](int64_t n) { return round_up(n, form.results) - n; };
  for (const char* rule : {form.rule, form.rule_with_bias}) {
    for (const Path& place : rewriter.places_of_form(rule)) {
      const Expr convolution = at(term, place);
      const std::vector<int64_t> shape = shape_of(convolution->type);
      if (shape.size() != 4) continue;
      WinogradChoice choice{form.results, rule, {{"i", lacks(shape[2])}, {"j", lacks(shape[3])}}, place};
      if (!rewriter.apply(rule, place, choice.arguments)) continue;
      choice.transform = filter_transform(convolution, form);
      // Nothing is known of bytes on GPUs, where no pairs of products are either.
      (options.profile.gpu && !form.of_bytes ? estimate_on_gpu : estimate)(choice, convolution, form, options);
      return choice;
    }
  }
  return std::nullopt;
}

}  // namespace

bool has_known_weights(const Program& program, const Definition& definition) {
  return !definition.weights.empty() &&
         std::all_of(definition.weights.begin(), definition.weights.end(),
                     [&](const Weights& w) { return program.constants.count(w.value) != 0; });
}

std::vector<WinogradChoice> winograd_choices(Expr term, const PassOptions& options) {
  std::vector<WinogradChoice> out;
  for (const WinogradForm& form : winograd_forms) {
    if (options.strict && !form.of_bytes) continue;
    if (auto choice = in_form(term, form, options)) out.push_back(std::move(*choice));
  }
  return out;
}

const WinogradChoice* cheapest(const std::vector<WinogradChoice>& choices) {
  const auto best = std::min_element(choices.begin(), choices.end(),
                                     [](const WinogradChoice& a, const WinogradChoice& b) { return a.cost < b.cost; });
  return best == choices.end() ? nullptr : &*best;
}

}  // namespace hoist
