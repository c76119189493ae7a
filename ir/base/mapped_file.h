// Files that are mapped instead of read. A mapping shows a file as it is now: another program may change the file, and
// may truncate it, for which the system ends a process that reads the lost bytes. Here lost bytes read as zeros, and
// mapped_files_unchanged reports every change, so that the caller refuses the result. Not for small files, whose
// contents are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ir/base/result.h"

namespace hoist {

/// A private mapping of `size` bytes at an offset, which must lie in the open file; null on an error. Writes do not
/// reach the file. `name` goes into the messages.
std::shared_ptr<std::byte> map_file(int file, size_t size, int64_t offset, const std::string& name);

/// Error: a file of a mapping that still exists has changed since it was mapped, or a mapped byte could not be read.
Result<Nothing> mapped_files_unchanged();

}  // namespace hoist
