// A folder that appears whole or not at all: files go into a hidden sibling, which takes the folder's name at the end
// and is removed when anything fails before, or a signal comes; what a killed process left of this name goes when the
// next one begins. Internal to backends/bundle.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "backends/bundle/plan_format.h"
#include "ir/base/result.h"
#include "ir/base/temporary_folder.h"

namespace hoist {

class FolderWriter {
 public:
  /// Makes the sibling; the parent folder must exist.
  static Result<FolderWriter> begin(const std::filesystem::path& folder);

  /// Writes one file, making folders inside as needed, and returns its size and hash.
  Result<HashedFile> write(const std::string& path, std::string_view content);
  /// The same, from pieces; each is called with a sink that takes bytes.
  Result<HashedFile> write_pieces(const std::string& path, std::span<const std::string_view> pieces);

  /// Where the files are until then.
  const std::filesystem::path& path() const { return temporary_.path(); }

  /// Gives the folder its name. With `replace` an existing one is exchanged and removed.
  Result<Nothing> commit(bool replace);

 private:
  FolderWriter(std::filesystem::path folder, TemporaryFolder temporary)
      : folder_(std::move(folder)), temporary_(std::move(temporary)) {}
  std::filesystem::path folder_;
  TemporaryFolder temporary_;
};

}  // namespace hoist
