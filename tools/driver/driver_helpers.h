// Helper processes that build a bundle's kernels into the driver's cache while this process builds too. PoCL builds one
// kernel at a time per process, whatever the number of cores, and reuses its cache. A user's program must not start
// processes, so the helpers belong to the hoist program and not to the C runtime.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "ir/base/result.h"

namespace hoist {

/// The part of a bundle's kernels that a helper builds: the kernels whose number is `index` modulo `count`.
struct HelperPart {
  size_t index = 0, count = 1;
};

std::string to_text(const HelperPart& part);
Result<HelperPart> parse_helper_part(const std::string& text);

/// The number of helpers that pay off for this number of kernels and cores; starting a process takes time.
size_t helper_count(size_t kernels, size_t cores);

class DriverHelpers {
 public:
  /// Starts helpers if they are of use: the bundle's kernels run on PoCL's CPU device, which has a cache.
  DriverHelpers(const std::filesystem::path& bundle, const RunOptions& options);
  DriverHelpers(const DriverHelpers&) = delete;
  DriverHelpers& operator=(const DriverHelpers&) = delete;
  /// Closes the helpers' input, which stops them, and waits until each has built its current kernel.
  ~DriverHelpers();

 private:
  std::vector<pid_t> running_;
  int alive_ = -1;  // helpers read the other end, which is closed when this process ends
};

/// The work of a helper: builds its kernels from the last to the first, since the main process begins with the first,
/// until standard input ends.
Result<Nothing> help_driver(const std::filesystem::path& bundle, const RunOptions& options, const HelperPart& part);

}  // namespace hoist
