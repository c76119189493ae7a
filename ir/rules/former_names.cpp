#include "ir/rules/former_names.h"

#include <algorithm>

namespace hoist {
namespace {

constexpr FormerName names[] = {
    // Passes.
    {"cut-kernels", "outline-kernels"},
    {"fuse-launch", "fuse-chains"},
    {"integer-products", "integer-contractions"},
    {"join-steps", "fuse-launches"},
    {"keep-padded-views", "materialise-padded-views"},
    {"keep-phases", "materialise-phases"},
    {"keep-resampled", "materialise-resampled"},
    {"keep-shared-folds", "materialise-shared-folds"},
    {"keep-shuffled-folds", "materialise-shuffled-folds"},
    {"keep-transposed-operands", "materialise-transposed-operands"},
    {"perform-bodies", "execute-bodies"},
    {"signs-of-products", "signs-of-contractions"},
    {"split-phases", "polyphase-convolutions"},
    {"split-short-phases", "short-polyphase-convolutions"},
    {"unfold", "inline-definitions"},
    // Rules between operator calls.
    {"phases-of-transposed-convolution", "polyphase-transposed-convolution"},
    {"phases-of-transposed-convolution-bias", "polyphase-transposed-convolution-bias"},
    {"short-phases-of-transposed-convolution", "short-polyphase-transposed-convolution"},
    {"short-phases-of-transposed-convolution-bias", "short-polyphase-transposed-convolution-bias"},
    {"zero-point-of-pictures", "zero-point-of-images"},
    // Rules within terms.
    {"fold-joined-pairs", "fold-collapsed-pairs"},
    {"fold-of-kept", "fold-of-materialised"},
    {"fold-of-kept-map", "fold-of-materialised-map"},
    {"kept-rows-in-vectors", "materialised-rows-in-vectors"},
    {"open-joined-3-global", "open-collapsed-3-global"},
    {"open-joined-3-group", "open-collapsed-3-group"},
    {"open-joined-3-local", "open-collapsed-3-local"},
    {"open-joined-3-row-tiles", "open-collapsed-3-row-tiles"},
    {"open-joined-4-global", "open-collapsed-4-global"},
    {"open-joined-4-group", "open-collapsed-4-group"},
    {"open-joined-4-local", "open-collapsed-4-local"},
    {"open-joined-5-global", "open-collapsed-5-global"},
    {"open-joined-6-global", "open-collapsed-6-global"},
    {"open-joined-global", "open-collapsed-global"},
    {"open-joined-group", "open-collapsed-group"},
    {"open-joined-local", "open-collapsed-local"},
    {"open-joined-row-tiles", "open-collapsed-row-tiles"},
    {"open-picture-tiles-channels-second-global", "open-image-tiles-nchw-global"},
    {"open-picture-tiles-channels-second-group", "open-image-tiles-nchw-group"},
    {"open-picture-tiles-global", "open-image-tiles-global"},
    {"open-picture-tiles-group", "open-image-tiles-group"},
    {"planes-by-phases", "polyphase-planes"},
    {"share-fold", "work-group-fold"},
    {"share-fold-float", "work-group-fold-float"},
    {"share-sum", "work-group-sum"},
    {"softmax-kept", "softmax-materialised"},
    {"softmax-kept-global", "softmax-materialised-global"},
    // Strategies.
    {"kept-planes", "materialised-planes"},
    {"kept-tiles", "materialised-tiles"},
};

}  // namespace

std::span<const FormerName> former_names() { return names; }

std::string present_name(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(names), std::end(names), [&](const FormerName& row) { return row.former == name; });
  return found == std::end(names) ? name : std::string(found->present);
}

}  // namespace hoist
