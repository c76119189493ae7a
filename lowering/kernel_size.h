// What bounds a kernel however definitions are merged into it.
#pragma once

#include <cstddef>

namespace hoist {

/// How large a term is that stands for one kernel: its tree, in which what is shared counts as often as it occurs,
/// since code generators and drivers see it so. The largest of the models that were tried has some hundreds of nodes;
/// beyond the limit the time that a kernel costs grows faster than what it saves: 10,000 elementwise layers in a row
/// become several kernels, so that compile time grows with the layers and not with their square.
inline constexpr size_t most_nodes = 4000;

}  // namespace hoist
