// A protobuf message in an untrusted file: the file is walked (wire_scan.h), then parsed, piece by piece, so that the
// file and its parsed form are never in memory together. Borders protobuf.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "frontend/file/model_file.h"
#include "frontend/file/wire_scan.h"
#include "ir/base/result.h"

namespace google::protobuf {
class Message;
}

namespace hoist {

/// Parses a message of this kind ("an ONNX model") from the file into `message`; returns whether the file holds one.
/// All bytes of the file are added to `hash`, unless it is null. Errors: errors of OpenedFile::open and of
/// scan_wire_format; a file that cannot be read to its end.
Result<bool> read_message(const std::filesystem::path& path, int64_t maximum_bytes, const ScanLimits& limits,
                          const std::string& kind, ModelHash* hash, google::protobuf::Message& message);

}  // namespace hoist
