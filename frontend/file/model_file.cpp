#include "frontend/file/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ir/base/mapped_file.h"

namespace hoist {
namespace {

namespace files = std::filesystem;

// A mapping costs a few microseconds, and a process has at most 65,530 of them.
constexpr size_t least_mapped_bytes = 1 << 20;

bool is_inside(const files::path& folder, const files::path& file) {
  const auto [at_folder, at_file] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return at_folder == folder.end() && at_file != file.end();
}

}  // namespace

OpenedFile::OpenedFile(OpenedFile&& other) noexcept : number_(std::exchange(other.number_, -1)), size_(other.size_) {}

OpenedFile::~OpenedFile() {
  if (number_ >= 0) close(number_);
}

Result<OpenedFile> OpenedFile::open(const files::path& path, int64_t maximum_bytes) {
  const std::string name = path.string();
  // Without O_NONBLOCK, opening a pipe without a writer would wait for ever.
  OpenedFile file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.number() < 0) return Diagnostic{name, "cannot be opened: " + std::string(std::strerror(errno)), ""};
  struct stat status = {};
  if (fstat(file.number(), &status) != 0) return Diagnostic{name, std::strerror(errno), ""};
  if (S_ISDIR(status.st_mode)) return Diagnostic{name, "is a folder", "name the file inside it"};
  if (!S_ISREG(status.st_mode)) return Diagnostic{name, "is not a regular file", ""};
  if (status.st_size == 0) return Diagnostic{name, "is empty", ""};
  if (status.st_size > maximum_bytes) {
    return Diagnostic{name,
                      "has " + std::to_string(status.st_size) + " bytes, the limit is " + std::to_string(maximum_bytes),
                      "large models keep their weights in external data files"};
  }
  file.size_ = static_cast<size_t>(status.st_size);
  return file;
}

std::optional<size_t> OpenedFile::read(void* into, size_t size, int64_t offset) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t step = pread(number_, static_cast<char*>(into) + done, std::min<size_t>(size - done, 1u << 30),
                               static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) return std::nullopt;
    if (step == 0) break;
    done += static_cast<size_t>(step);
  }
  return done;
}

ModelHash::ModelHash() : state_(XXH3_createState()) {
  HOIST_CHECK(state_ && XXH3_64bits_reset(state_.get()) == XXH_OK, "no memory for a hash");
}

void ModelHash::add(const void* bytes, size_t size) { XXH3_64bits_update(state_.get(), bytes, size); }

uint64_t ModelHash::digest() const { return XXH3_64bits_digest(state_.get()); }

void ModelHash::Release::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Result<Tensor> ExternalData::read(const ExternalPlace& place, Scalar scalar, std::vector<int64_t> shape,
                                  const std::string& owner) const {
  const int64_t bytes = byte_size(scalar, shape);
  const std::string quoted = "'" + place.location + "'";
  const auto outside = [&] {
    return Diagnostic{owner, "its external data file " + quoted + " lies outside the model's folder",
                      "move the file next to the model"};
  };
  if (place.location.empty()) return Diagnostic{owner, "its external data have no location", ""};
  if (place.location.find('\0') != std::string::npos || place.location.size() > 4096) {
    return Diagnostic{owner, "the location of its external data is not a file name", ""};
  }
  const files::path relative = files::path(place.location).lexically_normal();
  if (relative.is_absolute() || *relative.begin() == "..") return outside();

  std::error_code error;
  const files::path folder = files::canonical(folder_.empty() ? "." : folder_, error);
  if (error) return Diagnostic{owner, "the model's folder cannot be opened: " + error.message(), ""};
  const files::path file_path = files::canonical(folder / place.location, error);
  if (error) {
    // A link that leads out is reported as such even where its target is missing.
    const files::path nearest = files::weakly_canonical(folder / place.location, error);
    if (!error && !is_inside(folder, nearest)) return outside();
    return Diagnostic{owner, "its external data file " + quoted + " is missing", "expected in " + folder.string()};
  }
  if (!is_inside(folder, file_path)) return outside();

  // The path has no links any more; one that appears later is refused.
  const OpenedFile file(::open(file_path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  struct stat status = {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) {
    return Diagnostic{owner, "its external data file " + quoted + " cannot be opened: " + std::strerror(errno), ""};
  }
  if (!S_ISREG(status.st_mode)) {
    return Diagnostic{owner, "its external data file " + quoted + " is not a regular file", ""};
  }
  if (place.length && *place.length != bytes) {
    return Diagnostic{
        owner,
        "its external data have " + std::to_string(*place.length) + " bytes, its shape needs " + std::to_string(bytes),
        ""};
  }
  if (place.offset < 0 || place.offset > status.st_size || bytes > status.st_size - place.offset) {
    return Diagnostic{owner,
                      "wants " + std::to_string(bytes) + " bytes at offset " + std::to_string(place.offset) +
                          " of its external data file " + quoted + ", which has " + std::to_string(status.st_size),
                      "the file may be truncated"};
  }
  const auto size = static_cast<size_t>(bytes);
  const auto hashed = [&](Tensor tensor) {
    if (hash_ != nullptr) {
      hash_->add(tensor.bytes().data(), size);
      tensor.release_pages();
    }
    return tensor;
  };
  const bool is_aligned = place.offset % std::max(row(scalar).bits / 8, 1) == 0;
  if (is_aligned && size >= least_mapped_bytes) {
    if (auto mapped = map_file(file.number(), size, place.offset, file_path.string()))
      return hashed(Tensor::of_mapping(scalar, std::move(shape), std::move(mapped)));
  }
  // Small, at an odd place, or in a file system that maps no files.
  auto own = std::make_unique_for_overwrite<std::byte[]>(size);
  if (file.read(own.get(), size, place.offset) != size)
    return Diagnostic{owner, "its external data file " + quoted + " cannot be read", ""};
  return hashed(Tensor(scalar, std::move(shape), std::move(own)));
}

}  // namespace hoist
