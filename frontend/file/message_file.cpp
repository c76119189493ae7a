#include "frontend/file/message_file.h"

#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace hoist {
namespace {

class Pieces {
 public:
  explicit Pieces(const OpenedFile& file) : file_(file), memory_(std::min<size_t>(piece, file.size())) {}

  // The bytes after the position that are in the buffer; empty at the end of the file and after a read error.
  std::string_view from(size_t position) {
    if (position < start_ || position >= start_ + size_) {
      start_ = position;
      size_ = file_.read(memory_.data(), memory_.size(), static_cast<int64_t>(position)).value_or(0);
    }
    return {memory_.data() + (position - start_), size_ - (position - start_)};
  }

 private:
  static constexpr size_t piece = size_t{1} << 18;  // fits into the cache between reading, hashing and parsing

  const OpenedFile& file_;
  std::vector<char> memory_;
  size_t start_ = 0, size_ = 0;
};

class Stream : public google::protobuf::io::ZeroCopyInputStream {
 public:
  Stream(Pieces& pieces, ModelHash* hash) : pieces_(pieces), hash_(hash) {}

  bool Next(const void** data, int* size) override {
    const std::string_view next = pieces_.from(position_);
    if (next.empty()) return false;
    position_ += next.size();
    if (hash_ != nullptr && position_ > hashed_) {
      const size_t fresh = position_ - hashed_;  // bytes that were returned come first
      hash_->add(next.data() + (next.size() - fresh), fresh);
      hashed_ = position_;
    }
    *data = next.data();
    *size = static_cast<int>(next.size());
    return true;
  }
  void BackUp(int count) override { position_ -= static_cast<size_t>(count); }
  bool Skip(int count) override {
    const void* data = nullptr;
    for (int size = 0; count > 0; count -= size) {
      if (!Next(&data, &size)) return false;
      if (size > count) BackUp(size - count), size = count;
    }
    return true;
  }
  int64_t ByteCount() const override { return static_cast<int64_t>(position_); }

 private:
  Pieces& pieces_;
  ModelHash* hash_;
  size_t position_ = 0, hashed_ = 0;
};

}  // namespace

Result<bool> read_message(const std::filesystem::path& path, int64_t maximum_bytes, const ScanLimits& limits,
                          const std::string& kind, ModelHash* hash, google::protobuf::Message& message) {
  const std::string name = path.string();
  HOIST_TRY(const OpenedFile file, OpenedFile::open(path, maximum_bytes));
  Pieces pieces(file);
  const auto from = [&](size_t position) { return pieces.from(position); };
  if (from(0).starts_with("version https://git-lfs.github.com/spec/"))
    return Diagnostic{name, "is a pointer of git-lfs, not " + kind, "fetch the file that it stands for: git lfs pull"};
  HOIST_TRY_VOID(scan_wire_format(from, file.size(), *message.GetDescriptor(), limits, name, kind));
  Stream stream(pieces, hash);
  const bool parsed = message.ParseFromZeroCopyStream(&stream);
  if (parsed && stream.ByteCount() != static_cast<int64_t>(file.size()))
    return Diagnostic{name, "cannot be read to its end", "it may be written at the moment"};
  return parsed;
}

}  // namespace hoist
