// Data files for tests, in the format of numpy.savez.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "ir/base/result.h"
#include "tools/data/npy.h"

namespace hoist {

/// Writes data.npz to this folder, with one array per name.
inline std::filesystem::path data_file(const std::filesystem::path& folder,
                                       const std::map<std::string, Tensor>& arrays) {
  std::filesystem::path path = folder / "data.npz";
  const Result<Nothing> written = write_npz(path, arrays);
  HOIST_CHECK(written.ok(), "cannot write " + path.string());
  return path;
}

}  // namespace hoist
