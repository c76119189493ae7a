// Files that appear whole or not at all: content goes into a hidden sibling that takes the final name at the end.
// Not for bundles, which are folders that appear at once (backends/bundle).
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

/// The whole file. Errors: it cannot be read, it is not a regular file (a pipe would be waited for), or it has more
/// bytes than `limit`.
Result<std::string> read_file(const std::filesystem::path& path, size_t limit = size_t{1} << 32);
/// Its first `count` bytes, or all where it has fewer.
Result<std::string> read_beginning(const std::filesystem::path& path, size_t count);

/// Replaces the file in one step. What is not a regular file (/dev/null, a pipe) is written in place; "-" is standard
/// output.
Result<Nothing> write_file(const std::filesystem::path& path, std::string_view content);

/// Whether write_file could make this file, as far as that shows before: for work that takes minutes. "" and "-" can.
Result<Nothing> refuse_unwritable(const std::filesystem::path& path);

/// Where a result goes whose place was not named: the current folder, under the name of what it is made of, with
/// `ending` instead of its own.
std::string output_named_after(const std::filesystem::path& source, const std::string& ending);

/// Several files that get their names together. What was not committed is removed, with the folder that was made for
/// it.
class FileSet {
 public:
  /// Makes `folder` when it does not exist (its parent has to).
  static Result<FileSet> begin(const std::filesystem::path& folder);
  FileSet(FileSet&&) noexcept;
  FileSet& operator=(FileSet&&) = delete;
  ~FileSet();

  /// Where to write the file that will be called `name`.
  std::filesystem::path reserve(const std::string& name);
  Result<Nothing> commit();

 private:
  FileSet() = default;
  std::filesystem::path folder_;
  std::filesystem::path made_;                                                  ///< empty when the folder was there
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> files_;  ///< temporary and final name
};

}  // namespace hoist
