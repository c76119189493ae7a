// Arrays in numpy's own format: .npy, one array a file, and .npz, a zip file of them by name. Reads versions 1.0
// to 3.0, C and Fortran order, little-endian numbers of the types that both sides have; everything else is an error
// that names what was found. Files come from strangers: no size in them is believed before the bytes are there. Other
// tensor files: frontend/tensor_file.h.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "ir/result.h"
#include "ir/tensor.h"

namespace hoist {

/// Whether numpy has this scalar type: not so for the 4-bit, float8 and bfloat16 ones.
bool numpy_has(Scalar scalar);

/// `where` names the file in messages.
Result<Tensor> parse_npy(std::string_view bytes, const std::string& where);
Result<Tensor> read_npy(const std::filesystem::path& path);
/// The bytes of a version 1.0 file, the header padded as numpy does; numpy_has(tensor.scalar()) must hold.
std::string npy_bytes(const Tensor& tensor);
/// Writes at `path` as it is, for the caller to rename.
Result<Nothing> write_npy(const std::filesystem::path& path, const Tensor& tensor);

/// All arrays by name, the ".npy" of the members' names left out.
Result<std::map<std::string, Tensor>> read_npz(const std::filesystem::path& path);

/// Either format of a single tensor by the file's ending: .npy or .pb.
Result<Tensor> read_tensor(const std::filesystem::path& path);

}  // namespace hoist
