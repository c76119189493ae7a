// Writes files atomically: the content goes into a hidden file in the same folder, which is renamed at the end. For
// bundles, which are folders, use backends/bundle.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/base/result.h"

namespace hoist {

/// Reads the whole file. Errors: it cannot be read, is not a regular file (reading a pipe would block), or has more
/// bytes than `limit`.
Result<std::string> read_file(const std::filesystem::path& path, size_t limit = size_t{1} << 32);
/// The first `count` bytes of a file, or all if it has fewer.
Result<std::string> read_beginning(const std::filesystem::path& path, size_t count);

/// Replaces the file atomically. A file that is not regular (/dev/null, a pipe) is written in place; "-" is standard
/// output.
Result<Nothing> write_file(const std::filesystem::path& path, std::string_view content);

/// An error if write_file would fail for this file, as far as that can be known in advance: for work that takes
/// minutes. "" and "-" are accepted.
Result<Nothing> refuse_unwritable(const std::filesystem::path& path);

/// The default path of a result: in the current folder, with the source's name and `ending` in place of its own.
std::string output_named_after(const std::filesystem::path& source, const std::string& ending);

/// Several files that are renamed together. Files that are not committed are removed, along with the folder that was
/// made for them.
class FileSet {
 public:
  /// Makes `folder` if it does not exist; its parent must exist.
  static Result<FileSet> begin(const std::filesystem::path& folder);
  FileSet(FileSet&&) noexcept;
  FileSet& operator=(FileSet&&) = delete;
  ~FileSet();

  /// The path to write the file `name` to until the commit.
  std::filesystem::path reserve(const std::string& name);
  Result<Nothing> commit();

 private:
  FileSet() = default;
  std::filesystem::path folder_;
  std::filesystem::path made_;                                                  ///< empty if the folder existed
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> files_;  ///< temporary and final name
};

}  // namespace hoist
