// Which convolutions Winograd's forms (rules/winograd.rules) make faster, and which form. Fewer products are paid for
// with transforms, whose tiles and products go through memory, and with launches: with few channels, or little to
// compute, the stencil stays. On GPUs the stencil and the products are estimated as other tiles are. Of bytes the form
// is one of 16 bits, so it is chosen where a profile says what products of pairs of those cost (pair_products): an
// instruction for bytes multiplies twice as many.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "ir/rules/rewrite.h"
#include "lowering/pipeline/passes.h"

namespace hoist {

struct WinogradChoice {
  int64_t results = 0;  ///< of a tile, along a side
  std::string rule;
  RuleArguments arguments;
  Path place;             ///< of the convolution
  double cost = 0;        ///< in multiply-adds of f32 that take as long (CPU), or cycles of compute units (GPU)
  double direct = 0;      ///< what the stencil costs; 0 where nothing is known of it
  int64_t transform = 0;  ///< operations that the filters' transform takes, about
  /// Of floats: how far a sum may be from the exact one, over the largest sum of magnitudes over the channels at one
  /// position of its window times the sum over the positions of the largest magnitude of its filter there.
  double error = 0;
};

/// A tile of floats is transformed where the largest sum of magnitudes over the channels at one of its positions is
/// below 2^winograd_magnitude and at most 2^winograd_ratio times the largest one of each of its windows; elsewhere its
/// results are sums of the window's own products. In six trained networks one tile in 200 of one layer is unfit, and
/// none of the other layers.
inline constexpr int64_t winograd_magnitude = 60, winograd_ratio = 3;

/// The stencil stays unless a form costs at most so much of it.
inline constexpr double clearly_less = 0.85;
inline bool is_clearly_less(const WinogradChoice& choice) { return choice.cost <= clearly_less * choice.direct; }

/// The knob of a definition that says which form its convolutions take: the results of a tile along a side, 0 for none.
inline constexpr std::string_view winograd_knob = "winograd";

/// Whether the filters can be transformed at compile time.
bool has_known_weights(const Program& program, const Definition& definition);
/// Whether known filters of floats have numbers that a transform would spoil: one that is not finite, or one so far
/// beyond the others of its filter that their part of a result would be lost in its rounding.
bool has_unfit_filters(const Program& program, const Definition& definition);
/// The forms of the first convolution in the term that has any; under `strict` of those that keep every bit.
std::vector<WinogradChoice> winograd_choices(Expr term, const PassOptions& options);
/// Of these the one that costs least; null where there are none.
const WinogradChoice* cheapest(const std::vector<WinogradChoice>& choices);

}  // namespace hoist
