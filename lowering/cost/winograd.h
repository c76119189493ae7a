// Decides for which convolutions Winograd's forms (rules/winograd.rules) are faster, and which form. Fewer products
// cost transforms, whose tiles and products go through memory, and launches: with few channels or little work the
// stencil stays. On GPUs the stencil and the products are estimated like other tiles. For bytes the form computes in 16
// bits, so it is chosen only if a target description states the cost of pairs of 16-bit products (pair_products): an
// instruction for bytes multiplies twice as many.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "ir/rules/rewrite.h"
#include "ir/target/profile.h"

namespace hoist {

/// The rule that makes a dilated convolution an undilated one of more images, which a form can then compute.
inline constexpr const char* dilated_phases = "phases-of-dilated-windows";

struct WinogradChoice {
  int64_t results = 0;  ///< along a side of a tile
  std::string rule;
  RuleArguments arguments;
  Path place;                 ///< place of the undilated convolution
  RuleArguments phases = {};  ///< of dilated_phases, which is applied first at `dilated`; empty without dilation
  Path dilated = {};          ///< place of the dilated convolution
  double cost = 0;            ///< in f32 multiply-adds of the same duration (CPU), or cycles of compute units (GPU)
  double direct = 0;          ///< the stencil's cost; 0 if it is unknown
  int64_t transform = 0;      ///< the approximate number of operations of the filters' transform
  /// For floats: the largest error of a sum, divided by the largest sum of magnitudes over the channels at one position
  /// of its window times the sum over the positions of the largest magnitude of its filter there.
  double error = 0;
};

/// The stencil stays unless a form costs at most this part of it.
inline constexpr double clearly_less = 0.85;
inline bool is_clearly_less(const WinogradChoice& choice) { return choice.cost <= clearly_less * choice.direct; }

/// The knob of a definition that selects the form of its convolutions: the results along a side of a tile, 0 for the
/// stencil.
inline constexpr std::string_view winograd_knob = "winograd";

/// True if the filters can be transformed at compile time.
bool has_known_weights(const Program& program, const Definition& definition);
/// False if filters of floats may have elements that a transform would spoil: one that is not finite, or one so much
/// larger than the other elements of its filter that rounding would lose their contribution to a result. Filters that
/// the run computes may have such elements.
bool has_fit_filters(const Program& program, const Definition& definition);
/// The forms of the first convolution in the term that has any; unless it `may_round`, only forms that keep every bit.
/// `fused`: kernels share launches.
std::vector<WinogradChoice> winograd_choices(Expr term, const Profile& profile, bool fused, bool may_round);
/// True if a form of a convolution of images is clearly less than the stencil, although its images and results are
/// copied: the frames of volumes.
bool pays_for_copies(Expr convolution, const Profile& profile, bool fused);
/// The cheapest of these forms; null if there is none.
const WinogradChoice* cheapest(const std::vector<WinogradChoice>& choices);

}  // namespace hoist
