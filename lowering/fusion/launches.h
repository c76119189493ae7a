// Chains of small layers as one kernel. A definition whose only consumer is another definition (or several that become
// one) is merged into it as a statement (statements.h), if all arrays that live at the same time fit into the local
// memory of a work-group. Nothing is computed twice and no bit changes. Such a launch is one work-group, which uses a
// single compute unit, so chains are made only on request; a fused launch of separate kernels (fused_launches.h) is the
// usual form.
//
// The capacity test follows Halide's reuse of dead arrays; the kernel's actual need is compared with the target
// description again when it is emitted. A materialised array has no border and is read through the comparison of its
// padding. A model input gets no bordered copy, which would be another launch.
//
// On PoCL (two busy cores, interleaved, lower quartiles) the ad autoencoder takes 36 % less time with one launch than
// with ten, and micro_kws 2.0x the time: its convolutions lose the second core and their borders. On an H200 one
// work-group uses one of 132 compute units: mnist-8 takes 15.9 ms with one launch and 0.24 ms with six, the autoencoder
// 1.4 ms and 0.27 ms.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "ir/target/profile.h"
#include "lowering/graph/program.h"

namespace hoist {

/// Inlines the producer as the first statement of the consumer. Records "fuse-chains". The producer must come before
/// the consumer; the caller removes the producer's definition.
void materialise_in_launch(Program& program, const Definition& producer, Definition& consumer);

/// A definition and the producers merged into its launch, by position, the last producer first.
struct LaunchChain {
  size_t result = 0;
  std::vector<size_t> producers;
};

/// The chains of the program, from its end to its start. Each remaining definition takes in its producers, the last
/// first, as long as they have no other consumer and fit. `kept` limits the number of producers of a chain.
std::vector<LaunchChain> launch_chains(
    const Program& program, const Profile& profile,
    const std::function<size_t(const LaunchChain& chain)>& kept = [](const LaunchChain& chain) {
      return chain.producers.size();
    });
/// Makes each chain one definition.
void fuse_launch_chains(Program& program, const std::vector<LaunchChain>& chains);

/// The knob of a definition that sets the number of producers in its launch.
inline constexpr std::string_view launch_knob = "layers_before";

}  // namespace hoist
