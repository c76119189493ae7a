#include "tools/driver/driver_helpers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <set>
#include <string_view>
#include <thread>

#include "backends/bundle/bundle.h"
#include "tools/base/child_program.h"
#include "tools/driver/opened_bundle.h"

namespace hoist {
namespace {

// True if processes share the driver's cache of built kernels.
bool has_common_cache(const Plan& plan, const RunOptions& options) {
  if (!plan.targets.empty()) return false;
  const char* cache = std::getenv("POCL_KERNEL_CACHE");
  if (cache != nullptr && std::string_view(cache) == "0") return false;
  const auto profile = parse_profile(plan.profile, "plan.bin");
  if (!profile) return false;
  const auto device = device_for(*profile, options.device);
  return device && device->is_cpu && device->platform == "Portable Computing Language";
}

std::vector<std::string> words_of(const std::filesystem::path& bundle, const RunOptions& options,
                                  const HelperPart& part) {
  std::vector<std::string> words = this_program();
  words.insert(words.end(), {"verify", bundle.string(), "--help-driver", to_text(part)});
  if (!options.device.empty()) words.insert(words.end(), {"--device", options.device});
  if (options.threads > 0) words.insert(words.end(), {"--threads", std::to_string(options.threads)});
  for (const auto& [name, size] : options.sizes) words.insert(words.end(), {"--dim", fmt::format("{}={}", name, size)});
  return words;
}

bool standard_input_ended() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, 0) != 0;
}

}  // namespace

std::string to_text(const HelperPart& part) { return fmt::format("{}/{}", part.index, part.count); }

Result<HelperPart> parse_helper_part(const std::string& text) {
  HelperPart out;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, out.index);
  if (index.ec == std::errc() && index.ptr != end && *index.ptr == '/') {
    const auto count = std::from_chars(index.ptr + 1, end, out.count);
    if (count.ec == std::errc() && count.ptr == end && out.index < out.count) return out;
  }
  return usage_error("--help-driver " + text, "is not a part of a whole, such as 0/2", "");
}

size_t helper_count(size_t kernels, size_t cores) {
  constexpr size_t kernels_each = 8, most = 7;
  return std::min({cores > 0 ? cores - 1 : 0, kernels / kernels_each, most});
}

DriverHelpers::DriverHelpers(const std::filesystem::path& bundle, const RunOptions& options) {
  const size_t cores = std::thread::hardware_concurrency();
  const size_t allowed = options.threads > 0 ? std::min(cores, static_cast<size_t>(options.threads)) : cores;
  if (allowed < 2) return;
  const auto info = bundle_info(bundle, options.sizes);
  if (!info.ok() || !has_common_cache(info->plan, options)) return;
  // A fused launch is built as one unit.
  const size_t built = count_launches(info->plan.steps.size(), info->plan.launches);
  const size_t count = std::min(helper_count(info->plan.kernels.size(), allowed), std::max<size_t>(built, 1) - 1);
  int ends[2];
  if (count == 0 || ::pipe2(ends, O_CLOEXEC) != 0) return;
  alive_ = ends[1];
  ProgramStart start{"/dev/null", "/dev/null"};
  // PoCL's threads are pinned in the runtime; pinned helpers would build on cores that already build.
  start.environment = with_variable(own_environment(), "POCL_AFFINITY", "0");
  start.standard_input = ends[0];
  for (size_t i = 0; i < count; ++i) {
    const auto child = start_program(words_of(bundle, options, {i, count}), start);
    if (child.ok()) running_.push_back(*child);
  }
  ::close(ends[0]);
}

DriverHelpers::~DriverHelpers() {
  if (alive_ >= 0) ::close(alive_);
  for (const pid_t child : running_) {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<Nothing> help_driver(const std::filesystem::path& bundle, const RunOptions& given, const HelperPart& part) {
  RunOptions options = given;
  options.use_cache = false;
  HOIST_TRY(const BundleInfo info, bundle_info(bundle, options.sizes));
  HOIST_TRY(BundleRunner runner, with_kind(ErrorKind::device, BundleRunner::open(bundle, options)));
  const std::vector<Tensor> inputs = seeded_inputs(runner, info.plan, info.plan.model_hash);
  for (size_t i = 0; i < inputs.size(); ++i)
    HOIST_TRY_VOID(with_kind(ErrorKind::device, runner.set_input(i, inputs[i])));
  // A run launches kernels and fused launches; the latter are numbered after the kernels.
  std::set<size_t> seen;
  for (size_t end = info.plan.steps.size(); end > 0 && !standard_input_ended();) {
    size_t number = static_cast<size_t>(info.plan.steps[end - 1].kernel), count = 1;
    for (size_t k = 0; k < info.plan.launches.size(); ++k) {
      const PlanLaunch& launch = info.plan.launches[k];
      if (static_cast<size_t>(launch.first + launch.count) != end) continue;
      number = info.plan.kernels.size() + k;
      count = static_cast<size_t>(launch.count);
    }
    end -= count;
    if (number % part.count != part.index || !seen.insert(number).second) continue;
    // A step that refuses the arrays of an incomplete run builds nothing; the other process builds it.
    (void)runner.run_steps(end, count);
  }
  return Nothing{};
}

}  // namespace hoist
