// Arrays in numpy's own format: .npy, one array a file, and .npz, a zip file of them by name. Reads versions 1.0
// to 3.0, C and Fortran order, little-endian numbers of the types that both sides have; everything else is an error
// that names what was found. Files come from strangers: headers are read first, so that a shape that nobody wants, or
// that does not fit the file, costs nothing. Other tensor files: frontend/file/tensor_file.h.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {

/// Whether numpy has this scalar type: not so for the 4-bit, float8 and bfloat16 ones.
bool numpy_has(Scalar scalar);

/// No array, and no .npz in all, may have more bytes: as for a tensor of a model.
inline constexpr int64_t most_array_bytes = int64_t{1} << 34;

/// What a file says of its array.
struct NpyHeader {
  Scalar scalar = Scalar::f32;
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t start = 0;  ///< of the data, in bytes of the file
  size_t bytes = 0;  ///< of the data, at most most_array_bytes
};
/// No header is longer.
inline constexpr size_t longest_npy_start = 12 + 10000;
/// From the file's first bytes, longest_npy_start of them or all. `where` names the file in messages.
Result<NpyHeader> parse_npy_header(std::string_view beginning, const std::string& where);

/// The data that follow a header, as many as it says or an error.
Result<Tensor> tensor_from_npy(const NpyHeader& header, std::vector<std::byte> data, const std::string& where);

Result<Tensor> parse_npy(std::string_view bytes, const std::string& where);
Result<Tensor> read_npy(const std::filesystem::path& path);
/// The bytes of a version 1.0 file, the header padded as numpy does; numpy_has(tensor.scalar()) must hold.
std::string npy_bytes(const Tensor& tensor);
/// Writes at `path` as it is, for the caller to rename.
Result<Nothing> write_npy(const std::filesystem::path& path, const Tensor& tensor);

/// The arrays of an .npz: what they are at once, their numbers when they are asked for.
class NpzFile {
 public:
  /// Reads every header. Errors: not an .npz of plain arrays, two of one name, more than most_array_bytes in all.
  static Result<NpzFile> open(const std::filesystem::path& path);
  NpzFile(NpzFile&&) noexcept;
  NpzFile& operator=(NpzFile&&) noexcept;
  ~NpzFile();

  /// By name, the ".npy" of the members' names left out.
  const std::map<std::string, NpyHeader>& arrays() const { return arrays_; }
  Result<Tensor> read(const std::string& name) const;

 private:
  struct Archive;
  NpzFile();
  std::unique_ptr<Archive> archive_;
  std::map<std::string, NpyHeader> arrays_;
};
/// All arrays by name.
Result<std::map<std::string, Tensor>> read_npz(const std::filesystem::path& path);
/// Writes at `path` as it is, for the caller to rename: not compressed, and the same bytes for the same arrays, whose
/// types numpy has to have.
Result<Nothing> write_npz(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays);

/// Either format of a single tensor by the file's ending: .npy or .pb.
Result<Tensor> read_tensor(const std::filesystem::path& path);

}  // namespace hoist
