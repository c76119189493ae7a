// Arrays in numpy's formats: .npy, one array per file, and .npz, a zip file of named arrays. Reads versions 1.0 to 3.0,
// C and Fortran order, little-endian elements of the types that hoist and numpy share; any other file is an error that
// names the unsupported property. Files are untrusted: headers are read first, so a shape that is not needed or does
// not fit the file allocates nothing. For other tensor files use frontend/file/tensor_file.h.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {

/// True if numpy has this scalar type; it lacks the 4-bit types, float8 and bfloat16.
bool numpy_has(Scalar scalar);

/// The largest size of an array, and of all arrays of an .npz together; the same as for a tensor of a model.
inline constexpr int64_t most_array_bytes = int64_t{1} << 34;

/// The header of an array in a file.
struct NpyHeader {
  Scalar scalar = Scalar::f32;
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t start = 0;  ///< offset of the data in the file, in bytes
  size_t bytes = 0;  ///< size of the data, at most most_array_bytes
};
/// The largest supported size of a header.
inline constexpr size_t longest_npy_start = 12 + 10000;
/// Parses the first bytes of a file: longest_npy_start bytes, or the whole file if it is shorter. `where` names the
/// file in messages.
Result<NpyHeader> parse_npy_header(std::string_view beginning, const std::string& where);

/// The tensor from the data after a header. Errors: another number of bytes than the header states.
Result<Tensor> tensor_from_npy(const NpyHeader& header, std::vector<std::byte> data, const std::string& where);

Result<Tensor> parse_npy(std::string_view bytes, const std::string& where);
Result<Tensor> read_npy(const std::filesystem::path& path);
/// The bytes of a version 1.0 file, with the header padded as by numpy. Requires numpy_has(tensor.scalar()).
std::string npy_bytes(const Tensor& tensor);
/// Writes directly to `path`; the caller renames the file.
Result<Nothing> write_npy(const std::filesystem::path& path, const Tensor& tensor);

/// An open .npz file: the headers are read on opening, the elements on demand.
class NpzFile {
 public:
  /// Reads every header. Errors: not an .npz of plain arrays, two arrays with one name, more than most_array_bytes in
  /// all.
  static Result<NpzFile> open(const std::filesystem::path& path);
  NpzFile(NpzFile&&) noexcept;
  NpzFile& operator=(NpzFile&&) noexcept;
  ~NpzFile();

  /// By name, without the ".npy" of the members' names.
  const std::map<std::string, NpyHeader>& arrays() const { return arrays_; }
  Result<Tensor> read(const std::string& name) const;

 private:
  struct Archive;
  NpzFile();
  std::unique_ptr<Archive> archive_;
  std::map<std::string, NpyHeader> arrays_;
};
/// Writes directly to `path`, uncompressed; the caller renames the file. Equal arrays give equal bytes. numpy must have
/// their types.
Result<Nothing> write_npz(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays);

/// Reads a single tensor from .npy or .pb, by the file's ending.
Result<Tensor> read_tensor(const std::filesystem::path& path);

}  // namespace hoist
