// Confines the process of a job: limits memory, file sizes, and the files and connections that it may use. Jobs bring
// kernels, which are untrusted programs. Linux's Landlock enforces the limits, for any user, without a container. Only
// for a process that runs a single job: confinement cannot be undone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "ir/base/result.h"

namespace hoist::queue {

/// True if this system supports confinement.
bool can_confine();

/// Confines this process and its children: they write only below `writable` and to the devices of OpenCL drivers; read
/// only these, the system's folders, the folders of loaded libraries, and `readable`; open no connections and signal no
/// process outside, as far as the kernel supports each limit.
Result<Nothing> confine(const std::vector<std::filesystem::path>& writable,
                        const std::vector<std::filesystem::path>& readable);
/// Limits the process's own memory only.
void limit_memory(int64_t bytes);

}  // namespace hoist::queue
