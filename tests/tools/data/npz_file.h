// Data files for tests, in the format of numpy.savez.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

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

/// All arrays by name.
inline Result<std::map<std::string, Tensor>> read_npz(const std::filesystem::path& path) {
  HOIST_TRY(const NpzFile file, NpzFile::open(path));
  std::map<std::string, Tensor> out;
  for (const auto& [name, header] : file.arrays()) {
    HOIST_TRY(Tensor tensor, file.read(name));
    out.emplace(name, std::move(tensor));
  }
  return out;
}

}  // namespace hoist
