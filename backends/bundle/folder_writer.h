// A folder that appears complete or not at all. Files are written into a hidden sibling, which is renamed at the end
// and removed on failure or on a signal; the remains of a killed process are removed by the next writer of the same
// name. Internal to backends/bundle.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "backends/bundle/plan_format.h"
#include "ir/base/result.h"
#include "ir/base/temporary_folder.h"

namespace hoist {

class FolderWriter {
 public:
  /// Creates the sibling; the parent folder must exist.
  static Result<FolderWriter> begin(const std::filesystem::path& folder);

  /// Writes one file, creating folders as needed, and returns its size and hash.
  Result<HashedFile> write(const std::string& path, std::string_view content);
  /// The same, from consecutive pieces; calls `written` with the index of each after it.
  Result<HashedFile> write_pieces(const std::string& path, std::span<const std::string_view> pieces,
                                  const std::function<void(size_t)>& written = {});

  /// The sibling, which holds the files until commit.
  const std::filesystem::path& path() const { return temporary_.path(); }

  /// Renames the sibling to the folder. With `replace` an existing folder is exchanged and removed.
  Result<Nothing> commit(bool replace);

 private:
  FolderWriter(std::filesystem::path folder, TemporaryFolder temporary)
      : folder_(std::move(folder)), temporary_(std::move(temporary)) {}
  std::filesystem::path folder_;
  TemporaryFolder temporary_;
};

}  // namespace hoist
