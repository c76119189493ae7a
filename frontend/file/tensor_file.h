// One value per file, as in ONNX's test data (input_0.pb): a TensorProto in protobuf's wire format, or a message of a
// sequence or an optional value. Not for .npy.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {

/// Errors: no such file, not a TensorProto, sizes that disagree, types that hoist lacks. External data are refused.
Result<Tensor> read_tensor_proto(const std::filesystem::path& path);

/// The tensors in a file of recorded data for a value of that kind: one tensor, the members of a sequence, or nothing
/// for an absent optional value. A list of maps is one tensor, [maps][keys], with 0 or "" for a missing key. The
/// message does not state its kind. Errors: errors of read_tensor_proto, members that are not tensors, more members
/// than a sequence may have, keys that are not among `keys`.
Result<std::optional<std::vector<Tensor>>> read_recorded_value(const std::filesystem::path& path, ValueKind kind,
                                                               const MapKeys& keys = {});

/// Replaces the file at `path` in one step: after an error the old file is still there.
Result<Nothing> write_tensor_proto(const std::filesystem::path& path, const std::string& name, const Tensor& tensor);

}  // namespace hoist
