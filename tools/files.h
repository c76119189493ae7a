// Files that appear whole or not at all: content goes into a hidden sibling that takes the final name at the end. Also
// folders for the time of one command. Not for bundles, which are folders that appear at once (backends/bundle).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/result.h"

namespace hoist {

/// The whole file. Errors: it cannot be read, it is not a file, or it has more bytes than `limit`.
Result<std::string> read_file(const std::filesystem::path& path, size_t limit = size_t{1} << 32);

/// Replaces the file in one step. What is not a regular file (/dev/null, a pipe) is written in place; "-" is standard
/// output.
Result<Nothing> write_file(const std::filesystem::path& path, std::string_view content);

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

/// A folder in the place for temporary files that goes with the object.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&&) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder() = default;
  std::filesystem::path path_;
};

}  // namespace hoist
