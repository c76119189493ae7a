// Untrusted files: whole regular files up to a limit, and the external data of a model, which must lie inside the
// model's folder however the path is written or linked. Knows nothing of ONNX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/tensor.h"

struct XXH3_state_s;

namespace hoist {

/// A whole regular file, open for reading.
class OpenedFile {
 public:
  /// Errors: missing, not readable, a folder, a device or pipe, empty, larger than the limit.
  static Result<OpenedFile> open(const std::filesystem::path& path, int64_t maximum_bytes);
  /// Owns a file descriptor, which it closes at the end; a negative one means no file.
  explicit OpenedFile(int number) : number_(number) {}
  OpenedFile(OpenedFile&& other) noexcept;
  OpenedFile(const OpenedFile&) = delete;
  ~OpenedFile();

  int number() const { return number_; }
  size_t size() const { return size_; }  ///< size in bytes at the time of opening
  /// Up to this number of bytes at an offset; fewer if the file ends first, nothing on an error.
  std::optional<size_t> read(void* into, size_t size, int64_t offset) const;

 private:
  int number_;
  size_t size_ = 0;
};

/// The place of a tensor's bytes, as the model states it.
struct ExternalPlace {
  std::string location;  ///< relative to the model's folder
  int64_t offset = 0;
  std::optional<int64_t> length;
};

/// XXH3 (64 bits) over all bytes of a model, in the order in which they are read.
class ModelHash {
 public:
  ModelHash();
  void add(const void* bytes, size_t size);
  uint64_t digest() const;

 private:
  struct Release {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Release> state_;
};

class ExternalData {
 public:
  /// All bytes read are added to `hash`, which outlives this object; null: large tensors are read on first use.
  ExternalData(std::filesystem::path model_folder, ModelHash* hash) : folder_(std::move(model_folder)), hash_(hash) {}

  /// The tensor, as a mapping of the file if it is large. `owner` ("tensor 'w'") goes into the messages. Errors: an
  /// absolute location or one that leads out of the folder, also through links; a missing or special file; too few
  /// bytes; a length that is not the tensor's.
  Result<Tensor> read(const ExternalPlace& place, Scalar scalar, std::vector<int64_t> shape,
                      const std::string& owner) const;

 private:
  std::filesystem::path folder_;
  ModelHash* hash_;
};

}  // namespace hoist
