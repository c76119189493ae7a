#include "lowering/cost/winograd.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lowering/cost/launch_cost.h"
#include "lowering/rules/rules.h"
#include "lowering/terms/terms.h"
#include "lowering/tiling/tile.h"

namespace hoist {
namespace {

// A form with tiles of `results` results in both directions, for windows of that size.
struct WinogradForm {
  int64_t results, window;
  const char *rule, *rule_with_bias;
  double amplification = 0;  ///< amplification of rounding errors, see the comment above amplification_of
  bool of_bytes = false;     ///< integers: exact

  double launches_more() const { return of_bytes ? 2 : 5; }
};
constexpr WinogradForm winograd_forms[] = {
    {4, 3, "winograd-f4x4-3x3", "winograd-f4x4-3x3-bias", 14.3125},
    {2, 3, "winograd-f2x2-3x3", "winograd-f2x2-3x3-bias", 4},
    {2, 5, "winograd-f2x2-5x5", "winograd-f2x2-5x5-bias", 14.3125},
    {4, 3, "winograd-bytes-f4x4-3x3", "winograd-bytes-f4x4-3x3-bias", 0, true},
    {2, 3, "winograd-bytes-f2x2-3x3", "winograd-bytes-f2x2-3x3-bias", 0, true},
};

// Costs in multiply-adds of the same duration. element_cost: transform, write and read back one element of the tiles or
// of the products, if all elements fit in the caches of one or two cores (first number), and otherwise (second number).
// weight_cost: read one element of a transformed filter from the caches, and from memory. The first is about 5 on one
// Zen 5 core; it is larger on two cores, which share a small stencil better than the three short kernels, and in PoCL's
// code. For bytes it is 14 to 17. The others were measured on two Zen 4 cores: 50, 3 and 7. On two Xeon cores (Emerald
// Rapids), which execute more multiply-adds per cycle, the last is about 25; the constant is a compromise. The form has
// two more kernels than the stencil, and for floats three more, which find the tiles that may not be transformed. These
// read the image once, at about one multiply-add of vectors for each vector.
constexpr double element_cost[] = {7, 50}, byte_element_cost[] = {15, 50}, weight_cost[] = {3, 12};
constexpr double cached_elements = 1 << 20, cached_weights = 1 << 18;

// On GPUs costs are in cycles of a compute unit: it transforms this many elements of tiles and products per cycle, and
// a launch takes this many cycles, including the gap before the next one (H100).
constexpr double elements_each_cycle = 3, launch_cycles = 8500;

// For images [n][c][h][w] that become [n][o][h][w].
void estimate_on_gpu(WinogradChoice& choice, Expr convolution, const WinogradForm& form, const Profile& profile) {
  const std::vector<int64_t> result = shape_of(convolution->type);
  const int64_t channels = shape_of(convolution->children[1]->type)[1], side = form.results + form.window - 1;
  GpuResults direct;
  direct.count = result[0];
  direct.rows = result[2] * result[3];
  direct.columns = result[1];
  direct.steps = channels;
  direct.folds = form.window * form.window;
  const auto tiles = [&](int64_t n) { return round_up(n, form.results) / form.results; };
  GpuResults products = direct;
  products.count = side * side;
  products.rows = result[0] * tiles(result[2]) * tiles(result[3]);
  products.folds = 1;
  const auto elements = static_cast<double>(products.count * products.rows * (channels + result[1]));
  choice.direct = estimated_cycles(direct, profile);
  choice.cost = estimated_cycles(products, profile) + form.launches_more() * launch_cycles +
                elements / (elements_each_cycle * static_cast<double>(profile.compute_units));
}

// For images [n][c][...] that become [n][o][h][w].
void estimate(WinogradChoice& choice, Expr convolution, const WinogradForm& form, const Profile& profile, bool fused) {
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const auto tiles = [&](int64_t n) { return number(round_up(n, form.results) / form.results); };
  const std::vector<int64_t> result = shape_of(convolution->type);
  const double inputs = number(shape_of(convolution->children[1]->type)[1]), outputs = number(result[1]);
  const double side = number(form.results + form.window - 1), products = inputs * outputs;
  const double all_tiles = number(result[0]) * tiles(result[2]) * tiles(result[3]);
  const double elements = side * side * all_tiles * (inputs + outputs), weights = side * side * products;
  // For integers both forms multiply 16-bit values in pairs, and arrays are smaller in proportion to their types:
  // transformed tiles and filters half, products the same, the stencil's weights a quarter.
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
                (form.of_bytes ? 0 : number(element_count(shape_of(convolution->children[1]->type)))) +
                form.launches_more() * launch_cost(profile, fused);
  const double window = number(form.window * form.window), results = number(result[0] * result[2] * result[3]);
  choice.direct = window * (results / rate + each(weight_cost, weights, cached_weights, weight_size)) * products;
  if (form.of_bytes && profile.pair_products == 0) choice.direct = 0;
}

// The approximate number of operations of the filters' transform.
int64_t filter_transform(Expr convolution, const WinogradForm& form) {
  const int64_t side = form.results + form.window - 1, window = form.window * form.window;
  const int64_t filters = shape_of(convolution->children[1]->type)[1] * shape_of(convolution->type)[1];
  return side * side * filters * (3 * window + 2 * form.window);
}

// Let a_k, b_k and g_k be the magnitudes of the entries of the output's, the input's and the filter's matrix for a
// point k. The error of a result of one dimension is at most u times the largest sum over k of a_k (sum of b_k) g_k,
// the amplification. u is the sum of the roundings of each product: one for each channel, and at most 24 in the
// transforms. A tile's largest magnitude is at most 2^winograd_ratio times the window's.
double error_of(const WinogradForm& form, int64_t channels) {
  constexpr double unit = 0x1p-24, of_transforms = 24;
  const double ratio = static_cast<double>(int64_t{1} << winograd_ratio);
  return form.amplification * form.amplification * ratio * (static_cast<double>(channels) + of_transforms) * unit;
}

// True if all elements of each filter [o] are finite, and none exceeds 2^10 times the root mean square of the others.
bool have_even_magnitudes(const Tensor& filters) {
  constexpr double most = 0x1p32, most_over_others = 1024;
  const int64_t count = filters.shape()[0], size = count == 0 ? 0 : filters.size() / count;
  for (int64_t filter = 0; filter < count; ++filter) {
    double largest = 0, squares = 0;
    for (int64_t i = filter * size; i < (filter + 1) * size; ++i) {
      const double magnitude = std::abs(filters.float_at(i));
      if (!(magnitude < most)) return false;
      largest = std::max(largest, magnitude);
      squares += magnitude * magnitude;
    }
    const double others = std::sqrt(std::max(0.0, squares - largest * largest) / static_cast<double>(size - 1));
    if (largest > most_over_others * others) return false;
  }
  return true;
}

std::optional<WinogradChoice> in_form(Expr term, const WinogradForm& form, const Profile& profile, bool fused) {
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
      choice.error = error_of(form, shape_of(convolution->children[1]->type)[1]);
      // No measurements exist for bytes on GPUs, which have no pairs of products either.
      if (profile.gpu && !form.of_bytes)
        estimate_on_gpu(choice, convolution, form, profile);
      else
        estimate(choice, convolution, form, profile, fused);
      return choice;
    }
  }
  return std::nullopt;
}

std::vector<WinogradChoice> undilated_choices(Expr term, const Profile& profile, bool fused, bool may_round) {
  std::vector<WinogradChoice> out;
  for (const WinogradForm& form : winograd_forms) {
    if (!may_round && !form.of_bytes) continue;
    if (auto choice = in_form(term, form, profile, fused)) out.push_back(std::move(*choice));
  }
  return out;
}

// The arguments of dilated_phases for a convolution [n][o][h][w] of images [n][c][...] with windows of this size. They
// follow from the shapes; the rule applies only if they are the dilations.
RuleArguments phases_of(Expr convolution, int64_t window) {
  const std::vector<int64_t> shape = shape_of(convolution->type), image = shape_of(convolution->children[1]->type);
  const auto dilation = [&](size_t d) { return std::max<int64_t>((image[d] - shape[d]) / (window - 1), 1); };
  const int64_t down = dilation(2), across = dilation(3);
  return {{"p", down},
          {"q", across},
          {"i", round_up(shape[2], down) - shape[2]},
          {"j", round_up(shape[3], across) - shape[3]}};
}

// The costs of copying the images and the results.
void add_copies(WinogradChoice& choice, Expr convolution, const Profile& profile, bool fused) {
  const auto elements = static_cast<double>(element_count(shape_of(convolution->type)) +
                                            element_count(shape_of(convolution->children[1]->type)));
  constexpr double copies = 2;
  if (profile.gpu)
    choice.cost +=
        copies * launch_cycles + elements / (elements_each_cycle * static_cast<double>(profile.compute_units));
  else
    choice.cost += copies * launch_cost(profile, fused) + elements * element_cost[elements <= cached_elements ? 0 : 1];
}

// The form computes the results that phases lack to equal sizes too.
void add_phases(WinogradChoice& choice, Expr convolution, const Profile& profile, bool fused) {
  const std::vector<int64_t> shape = shape_of(convolution->type);
  const auto whole = [&](size_t d, const char* dilation) {
    return static_cast<double>(round_up(shape[d], choice.phases.at(dilation).value())) / static_cast<double>(shape[d]);
  };
  choice.direct /= whole(2, "p") * whole(3, "q");
  add_copies(choice, convolution, profile, fused);
}

}  // namespace

bool has_known_weights(const Program& program, const Definition& definition) {
  return !definition.weights.empty() &&
         std::all_of(definition.weights.begin(), definition.weights.end(),
                     [&](const Weights& w) { return program.constants.count(w.value) != 0; });
}

bool has_fit_filters(const Program& program, const Definition& definition) {
  return has_known_weights(program, definition) &&
         std::all_of(definition.weights.begin(), definition.weights.end(), [&](const Weights& w) {
           const Tensor& known = program.constants.at(w.value);
           return known.scalar() != Scalar::f32 || known.shape().size() != 4 || have_even_magnitudes(known);
         });
}

std::vector<WinogradChoice> winograd_choices(Expr term, const Profile& profile, bool fused, bool may_round) {
  std::vector<WinogradChoice> out = undilated_choices(term, profile, fused, may_round);
  if (!out.empty()) return out;
  Rewriter rewriter(lowering_rules(), term);
  for (const Path& place : rewriter.places_of_form(dilated_phases)) {
    const Expr convolution = at(term, place);
    for (const int64_t window : {3, 5}) {
      const RuleArguments phases = phases_of(convolution, window);
      if (!rewriter.apply(dilated_phases, place, phases)) continue;
      out = undilated_choices(rewriter.term(), profile, fused, may_round);
      for (WinogradChoice& choice : out) {
        choice.phases = phases;
        choice.dilated = place;
        add_phases(choice, convolution, profile, fused);
      }
      return out;
    }
  }
  return out;
}

bool pays_for_copies(Expr convolution, const Profile& profile, bool fused) {
  std::vector<WinogradChoice> choices = undilated_choices(convolution, profile, fused, true);
  for (WinogradChoice& choice : choices) add_copies(choice, at(convolution, choice.place), profile, fused);
  const WinogradChoice* best = cheapest(choices);
  return best != nullptr && is_clearly_less(*best);
}

const WinogradChoice* cheapest(const std::vector<WinogradChoice>& choices) {
  const auto best = std::min_element(choices.begin(), choices.end(),
                                     [](const WinogradChoice& a, const WinogradChoice& b) { return a.cost < b.cost; });
  return best == choices.end() ? nullptr : &*best;
}

}  // namespace hoist
