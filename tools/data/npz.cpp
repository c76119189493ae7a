#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <memory>

#include "tools/data/npy.h"

namespace hoist {
namespace {

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};

Diagnostic cannot_unpack(const std::string& where, const char* reason) {
  return {where, std::string("cannot be unpacked: ") + reason, "the file is damaged"};
}

// A zip member that is being decompressed.
class Member {
 public:
  static Result<Member> open(zip_t* archive, zip_uint64_t index, const std::string& where) {
    Member out;
    out.where_ = where;
    out.file_.reset(zip_fopen_index(archive, index, 0));
    if (!out.file_) return cannot_unpack(where, zip_strerror(archive));
    return out;
  }

  /// Reads up to `size` bytes; fewer at the end of the member.
  Result<size_t> read(void* into, size_t size) {
    size_t filled = 0;
    while (filled < size) {
      const zip_int64_t count = zip_fread(file_.get(), static_cast<char*>(into) + filled, size - filled);
      if (count < 0) return cannot_unpack(where_, zip_file_strerror(file_.get()));
      if (count == 0) break;
      filled += static_cast<size_t>(count);
    }
    return filled;
  }

 private:
  struct Close {
    void operator()(zip_file_t* member) const { zip_fclose(member); }
  };
  std::unique_ptr<zip_file_t, Close> file_;
  std::string where_;
};

}  // namespace

struct NpzFile::Archive {
  std::unique_ptr<zip_t, CloseArchive> zip;
  std::string path;
  std::map<std::string, zip_uint64_t> index;  ///< index of the member, by array name
};

NpzFile::NpzFile() = default;
NpzFile::NpzFile(NpzFile&&) noexcept = default;
NpzFile& NpzFile::operator=(NpzFile&&) noexcept = default;
NpzFile::~NpzFile() = default;

Result<NpzFile> NpzFile::open(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Diagnostic{path.string(), "is a folder, not an .npz file", ""};
  // Opening a pipe would block libzip until a process writes to it.
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    return Diagnostic{path.string(), "is not a regular file", ""};
  NpzFile out;
  out.archive_ = std::make_unique<Archive>();
  Archive& archive = *out.archive_;
  archive.path = path.string();
  int code = 0;
  archive.zip.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive.zip) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    return Diagnostic{path.string(), "cannot be read as .npz: " + reason, "save the arrays with numpy.savez"};
  }
  size_t left = static_cast<size_t>(most_array_bytes);
  const zip_int64_t count = zip_get_num_entries(archive.zip.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* stored = zip_get_name(archive.zip.get(), index, 0);
    std::string name = stored == nullptr ? "" : stored;
    const std::string where = archive.path + ", " + name;
    if (!name.ends_with(".npy")) return Diagnostic{where, "is not an .npy member", "save the arrays with numpy.savez"};
    name.resize(name.size() - 4);
    HOIST_TRY(Member member, Member::open(archive.zip.get(), index, where));
    std::string beginning(longest_npy_start, '\0');
    HOIST_TRY(const size_t got, member.read(beginning.data(), beginning.size()));
    HOIST_TRY(NpyHeader header, parse_npy_header(std::string_view(beginning).substr(0, got), where));
    if (header.bytes > left)
      return Diagnostic{where, fmt::format("the arrays have more than {} bytes in all", most_array_bytes), ""};
    left -= header.bytes;
    if (!out.arrays_.emplace(name, std::move(header)).second) return Diagnostic{where, "is there twice", ""};
    archive.index[name] = index;
  }
  return out;
}

Result<Tensor> NpzFile::read(const std::string& name) const {
  const NpyHeader& header = arrays_.at(name);
  const std::string where = archive_->path + ", " + name + ".npy";
  HOIST_TRY(Member member, Member::open(archive_->zip.get(), archive_->index.at(name), where));
  std::vector<std::byte> beginning(header.start), data;
  HOIST_TRY(const size_t started, member.read(beginning.data(), beginning.size()));
  // Memory is allocated in pieces as data arrive, so that a false header costs none.
  constexpr size_t piece = size_t{1} << 24;
  for (size_t filled = 0; started == header.start && filled < header.bytes;) {
    data.resize(filled + std::min(piece, header.bytes - filled));
    HOIST_TRY(const size_t got, member.read(data.data() + filled, data.size() - filled));
    const bool ends = got < data.size() - filled;
    data.resize(filled += got);
    if (ends) break;
  }
  // libzip compares the checksum when the end is reached.
  std::byte more{};
  HOIST_TRY(const size_t rest, member.read(&more, 1));
  if (rest != 0) {
    return Diagnostic{where, fmt::format("has more than the {} bytes of its shape", header.bytes),
                      "the file is damaged; save it again"};
  }
  return tensor_from_npy(header, std::move(data), where);
}

Result<Nothing> write_npz(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays) {
  constexpr zip_uint16_t first_day = (1U << 5U) | 1U;  // first day of 1980, the first year of zip's calendar
  const auto failed = [&](const char* reason) {
    return Diagnostic{path.string(), std::string("cannot be written: ") + reason, ""};
  };
  int code = 0;
  std::unique_ptr<zip_t, CloseArchive> zip(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!zip) return failed("the archive cannot be written there");
  std::vector<std::string> members;  // libzip reads them when it closes the archive
  members.reserve(arrays.size());
  for (const auto& [name, tensor] : arrays) {
    members.push_back(npy_bytes(tensor));
    zip_source_t* source = zip_source_buffer(zip.get(), members.back().data(), members.back().size(), 0);
    const zip_int64_t index =
        source == nullptr ? -1 : zip_file_add(zip.get(), (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    if (source != nullptr && index < 0) zip_source_free(source);
    if (index < 0 || zip_set_file_compression(zip.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(zip.get(), static_cast<zip_uint64_t>(index), 0, first_day, 0) != 0)
      return failed(zip_strerror(zip.get()));
  }
  if (zip_close(zip.get()) != 0) return failed(zip_strerror(zip.get()));
  (void)zip.release();  // zip_close has freed it
  return Nothing{};
}

}  // namespace hoist
