#include "frontend/tensor_file.h"

#include <onnx/onnx_pb.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>

#include "frontend/model_file.h"
#include "frontend/tensor_proto.h"
#include "frontend/wire_scan.h"

namespace hoist {
namespace {

constexpr int64_t maximum_bytes = (int64_t{1} << 31) - 1;  // where protobuf itself ends

}  // namespace

Result<Tensor> read_tensor_proto(const std::filesystem::path& path) {
  const std::string name = path.string();
  try {
    HOIST_TRY(const std::string bytes, read_whole_file(path, maximum_bytes));
    HOIST_TRY_VOID(scan_wire_format(bytes, *onnx::TensorProto::descriptor(), {}, name, "a TensorProto"));
    onnx::TensorProto proto;
    if (!proto.ParseFromString(bytes) || !proto.has_data_type()) {
      return Diagnostic{name, "is not a TensorProto", "inputs are .npy files or TensorProto .pb files"};
    }
    return tensor_from_proto(proto, name, maximum_bytes, nullptr);
  } catch (const std::exception& error) {
    return Diagnostic{name, std::string("cannot be read: ") + error.what(), ""};
  }
}

Result<Nothing> write_tensor_proto(const std::filesystem::path& path, const std::string& name, const Tensor& tensor) {
  if (static_cast<int64_t>(tensor.bytes().size()) > maximum_bytes - 4096) {
    return Diagnostic{
        path.string(),
        "a TensorProto has at most 2 GiB, this tensor " + std::to_string(tensor.bytes().size()) + " bytes",
        "write .npy"};
  }
  std::string bytes;
  try {
    if (!tensor_to_proto(tensor, name).SerializeToString(&bytes)) {
      return Diagnostic{path.string(), "cannot be written as a TensorProto", ""};
    }
  } catch (const std::exception& error) {
    return Diagnostic{path.string(), std::string("cannot be written: ") + error.what(), ""};
  }
  // A device such as /dev/full is written to in place; everything else by way of a neighbour.
  std::error_code error;
  const bool special = std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
  const std::filesystem::path target = special ? path : std::filesystem::path(path.string() + ".part");
  errno = 0;
  std::ofstream file(target, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  const int reason = errno;
  bool done = !file.fail();
  if (!special) {
    if (done) std::filesystem::rename(target, path, error);
    done = done && !error;
    if (!done) std::filesystem::remove(target, error);
  }
  if (!done) {
    return Diagnostic{path.string(), "cannot be written" + (reason ? ": " + std::string(std::strerror(reason)) : ""),
                      ""};
  }
  return Nothing{};
}

}  // namespace hoist
