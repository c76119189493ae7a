#include "npz_file.h"

#include <zip.h>

#include <vector>

#include "ir/result.h"
#include "tools/npy.h"

namespace hoist {

std::filesystem::path write_npz(const std::filesystem::path& folder, const std::map<std::string, Tensor>& arrays) {
  const std::filesystem::path path = folder / "data.npz";
  int error = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  HOIST_CHECK(archive != nullptr, "cannot write " + path.string());
  std::vector<std::string> contents;
  for (const auto& [name, tensor] : arrays) contents.push_back(npy_bytes(tensor));
  size_t next = 0;
  for (const auto& [name, tensor] : arrays) {
    zip_source_t* source = zip_source_buffer(archive, contents[next].data(), contents[next].size(), 0);
    ++next;
    HOIST_CHECK(zip_file_add(archive, (name + ".npy").c_str(), source, ZIP_FL_OVERWRITE) >= 0, "cannot add " + name);
  }
  HOIST_CHECK(zip_close(archive) == 0, "cannot close " + path.string());
  return path;
}

}  // namespace hoist
