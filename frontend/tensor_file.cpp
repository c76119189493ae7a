#include "frontend/tensor_file.h"

#include <onnx/onnx-data.pb.h>
#include <onnx/onnx_pb.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>

#include "frontend/model_file.h"
#include "frontend/tensor_proto.h"
#include "frontend/wire_scan.h"
#include "ir/operators/composition.h"

namespace hoist {
namespace {

constexpr int64_t maximum_bytes = (int64_t{1} << 31) - 1;  // where protobuf itself ends

// The file as a message of this kind, walked before it is parsed.
template <class Message>
Result<Message> parse_file(const std::filesystem::path& path, const std::string& kind) {
  const std::string name = path.string();
  HOIST_TRY(const std::string bytes, read_whole_file(path, maximum_bytes));
  HOIST_TRY_VOID(scan_wire_format(bytes, *Message::descriptor(), {}, name, kind));
  Message out;
  if (!out.ParseFromString(bytes)) return Diagnostic{name, "is not " + kind, "the model declares this value so"};
  return out;
}

Result<std::vector<Tensor>> members_of(const onnx::SequenceProto& proto, const std::string& name) {
  const bool holds_tensors = proto.elem_type() == onnx::SequenceProto::TENSOR;
  const bool holds_others = proto.sparse_tensor_values_size() > 0 || proto.sequence_values_size() > 0 ||
                            proto.map_values_size() > 0 || proto.optional_values_size() > 0;
  if (holds_others || (!holds_tensors && proto.elem_type() != onnx::SequenceProto::UNDEFINED))
    return Diagnostic{name, "holds a sequence of other values than tensors", "hoist takes sequences of tensors"};
  if (static_cast<size_t>(proto.tensor_values_size()) > most_members)
    return Diagnostic{name,
                      "holds " + std::to_string(proto.tensor_values_size()) + " tensors, past the limit of " +
                          std::to_string(most_members) + " members",
                      ""};
  std::vector<Tensor> out;
  for (int i = 0; i < proto.tensor_values_size(); ++i) {
    const std::string owner = name + ", member " + std::to_string(i);
    HOIST_TRY(Tensor member, tensor_from_proto(proto.tensor_values(i), owner, maximum_bytes, nullptr));
    out.push_back(std::move(member));
  }
  return out;
}

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

Result<std::optional<std::vector<Tensor>>> read_recorded_value(const std::filesystem::path& path, ValueKind kind) {
  using Recorded = std::optional<std::vector<Tensor>>;
  const std::string name = path.string();
  try {
    if (kind == ValueKind::tensor) {
      HOIST_TRY(Tensor tensor, read_tensor_proto(path));
      return Recorded({std::move(tensor)});
    }
    if (kind == ValueKind::sequence) {
      HOIST_TRY(const auto proto, parse_file<onnx::SequenceProto>(path, "a SequenceProto"));
      HOIST_TRY(std::vector<Tensor> members, members_of(proto, name));
      return Recorded(std::move(members));
    }
    HOIST_TRY(const auto proto, parse_file<onnx::OptionalProto>(path, "an OptionalProto"));
    if (proto.has_sparse_tensor_value() || proto.has_map_value() || proto.has_optional_value())
      return Diagnostic{name, "holds an optional value that is neither a tensor nor a sequence", ""};
    if (kind == ValueKind::optional_sequence) {
      if (!proto.has_sequence_value()) return Recorded();
      HOIST_TRY(std::vector<Tensor> members, members_of(proto.sequence_value(), name));
      return Recorded(std::move(members));
    }
    if (!proto.has_tensor_value()) return Recorded();
    HOIST_TRY(Tensor tensor, tensor_from_proto(proto.tensor_value(), name, maximum_bytes, nullptr));
    return Recorded({std::move(tensor)});
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
