#include <algorithm>

#include "lowering/fusion/launches.h"
#include "lowering/passes/rows.h"

namespace hoist {

bool wants_launches(const PassOptions& options) {
  return options.fusion == LaunchFusion::launch || static_cast<bool>(options.records);
}

// All chains if the user requests the pass; otherwise the recorded ones.
Result<Nothing> fuse_chains(Program& program, const PassOptions& options) {
  const bool all = options.fusion == LaunchFusion::launch || !options.records;
  fuse_launch_chains(program, launch_chains(program, options.profile, [&](const LaunchChain& chain) -> size_t {
                       if (all) return chain.producers.size();
                       const Expr result = program.definitions[chain.result].expression;
                       if (const auto known = recorded(options, result, launch_knob))
                         return static_cast<size_t>(std::max<int64_t>(*known, 0));
                       return 0;
                     }));
  return Nothing{};
}

}  // namespace hoist
