// What keeps a job in its place: limits on memory, files and what may be read, written and reached. Jobs bring kernels,
// which are programs; a job that was made to do harm should find nothing to do it to. Linux's Landlock does the
// keeping, for any user, without a container. Only for a process that does nothing but one job: there is no way back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "ir/base/result.h"

namespace hoist::queue {

/// Whether this system can keep jobs in their place.
bool can_confine();

/// From now on this process and what it starts write only below `writable` and to the devices of OpenCL drivers, read
/// only these, what belongs to the system, its libraries and `readable`, open no connections, signal nobody outside, as
/// far as the kernel knows of each, and use so many bytes of memory of their own.
Result<Nothing> confine(const std::vector<std::filesystem::path>& writable,
                        const std::vector<std::filesystem::path>& readable);
/// The limit on memory alone.
void limit_memory(int64_t bytes);

}  // namespace hoist::queue
