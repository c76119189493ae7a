// Chains of small layers as one kernel: a definition that only one other reads (or several that become one) goes into
// it as a statement (statements.h), where all that is kept at a time fits in the local memory of a work-group. Nothing
// is computed twice and no bit changes. A launch is one work-group then, which cannot use more than one compute unit,
// so it is made only where asked for; kernels that share a launch as they are (joined_steps.h) are the usual form.
//
// Whether a chain fits is decided by how Halide gives the memory of dead arrays to later ones; what a kernel really
// needs is compared with the profile once more when it is emitted. What is kept stays without borders and is read
// through the comparison that a padding is, and a model input gets no bordered copy, which would be a launch.
//
// On PoCL (two busy cores, interleaved, lower quartiles) the ad autoencoder's ten launches as one take 0.64 of the
// time, micro_kws' ten as one 2.0 times as long: its convolutions lose the second core and their borders. On an H200
// one work-group is one of 132 compute units: mnist-8 takes 15.9 ms as one launch against 0.24 as six, the
// autoencoder 1.4 against 0.27.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "ir/target/profile.h"
#include "lowering/graph/program.h"

namespace hoist {

/// Multiply-adds of a CPU that take as long as a launch, or, if `joined`, as a step of one that performs several.
double launch_cost(const Profile& profile, bool joined = false);
/// Whether the term computes so much that a launch, which keeps an array for it in memory, is a small part of that.
bool is_worth_an_array(Expr term, const Profile& profile);

/// The producer's term as the first statement of the reader, which reads it from there. Records "fuse-launch". The
/// producer's own definition stays for the caller to remove; it has to stand before the reader.
void keep_in_launch(Program& program, const Definition& producer, Definition& reader);

/// A definition and those that its launch takes in, by their places in the program, the latest first.
struct LaunchChain {
  size_t result = 0;
  std::vector<size_t> producers;
};

/// The chains of the program, from its end to its start: each definition that is left takes in what it reads, the
/// latest first, as long as nobody else reads that and it fits, of which `kept` says how many stay.
std::vector<LaunchChain> launch_chains(
    const Program& program, const Profile& profile,
    const std::function<size_t(const LaunchChain& chain)>& kept = [](const LaunchChain& chain) {
      return chain.producers.size();
    });
/// Makes each of the chains one definition.
void fuse_launches(Program& program, const std::vector<LaunchChain>& chains);

/// The knob of a definition that says how many of those before it its launch takes in.
inline constexpr std::string_view launch_knob = "layers_before";

}  // namespace hoist
