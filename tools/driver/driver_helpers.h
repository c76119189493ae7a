// Other processes that build a bundle's kernels into the driver's own cache, while this one does. PoCL builds one
// kernel after the other in a process, however many cores there are, and takes what its cache has. A program's own
// process must not start others, so this is the hoist program's, not the C runtime's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "tools/cli/attempt.h"

namespace hoist {

/// Which of a bundle's kernels a helper builds: those whose number is `index` modulo `count`.
struct HelperPart {
  size_t index = 0, count = 1;
};

std::string to_text(const HelperPart& part);
Attempt<HelperPart> parse_helper_part(const std::string& text);

/// How many are worth it for so many kernels on so many cores; a process takes its time to start.
size_t helper_count(size_t kernels, size_t cores);

class DriverHelpers {
 public:
  /// Starts them where they are of use: where the bundle's kernels run on PoCL's CPU device, which has a cache.
  DriverHelpers(const std::filesystem::path& bundle, const RunOptions& options);
  DriverHelpers(const DriverHelpers&) = delete;
  DriverHelpers& operator=(const DriverHelpers&) = delete;
  /// Tells them that nothing is left to do, and waits until each has built what it is at.
  ~DriverHelpers();

 private:
  std::vector<pid_t> running_;
  int alive_ = -1;  // they read from the other end, which ends when this process does
};

/// What a helper does: from the last kernel to the first, since the other process begins with the first, until standard
/// input ends.
Attempt<> help_driver(const std::filesystem::path& bundle, const RunOptions& options, const HelperPart& part);

}  // namespace hoist
