#include <fmt/format.h>
#include <zip.h>

#include <memory>

#include "tools/npy.h"

namespace hoist {
namespace {

// What all members of one file may come to when unpacked: a small file can claim, and hold, any number of zeros.
constexpr size_t most_bytes = size_t{1} << 34;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

Result<std::string> unpack(zip_t* archive, zip_uint64_t index, const std::string& where, size_t limit) {
  std::unique_ptr<zip_file_t, CloseMember> member(zip_fopen_index(archive, index, 0));
  if (!member) return Diagnostic{where, std::string("cannot be unpacked: ") + zip_strerror(archive), ""};
  std::string out;
  size_t filled = 0;
  for (;;) {
    out.resize(filled + (size_t{1} << 20));
    const zip_int64_t count = zip_fread(member.get(), out.data() + filled, out.size() - filled);
    if (count < 0)
      return Diagnostic{where, std::string("cannot be unpacked: ") + zip_file_strerror(member.get()),
                        "the file is damaged"};
    if (count == 0) break;
    filled += static_cast<size_t>(count);
    if (filled > limit) return Diagnostic{where, fmt::format("unpacks to more than {} bytes", limit), ""};
  }
  out.resize(filled);
  return out;
}

}  // namespace

Result<std::map<std::string, Tensor>> read_npz(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Diagnostic{path.string(), "is a folder, not an .npz file", ""};
  int code = 0;
  std::unique_ptr<zip_t, CloseArchive> archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    return Diagnostic{path.string(), "cannot be read as .npz: " + reason, "save the arrays with numpy.savez"};
  }
  std::map<std::string, Tensor> out;
  size_t left = most_bytes;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* stored = zip_get_name(archive.get(), static_cast<zip_uint64_t>(i), 0);
    std::string name = stored == nullptr ? "" : stored;
    const std::string where = path.string() + ", " + name;
    if (!name.ends_with(".npy")) return Diagnostic{where, "is not an .npy member", "save the arrays with numpy.savez"};
    name.resize(name.size() - 4);
    HOIST_TRY(std::string bytes, unpack(archive.get(), static_cast<zip_uint64_t>(i), where, left));
    left -= bytes.size();
    HOIST_TRY(Tensor tensor, parse_npy(bytes, where));
    if (!out.emplace(name, std::move(tensor)).second) return Diagnostic{where, "is there twice", ""};
  }
  return out;
}

}  // namespace hoist
