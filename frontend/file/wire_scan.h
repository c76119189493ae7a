// A walk over protobuf's wire format before anything is parsed: it bounds how many objects a file makes and how deep
// they nest, so that a small untrusted file cannot take gigabytes, and it finds the place where a damaged file breaks.
// Borders protobuf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ir/base/result.h"

namespace google::protobuf {
class Descriptor;
}

namespace hoist {

struct ScanLimits {
  int64_t objects = 4'000'000;  ///< messages, strings and unknown fields
  int depth = 60;               ///< messages inside messages; one nested graph takes three
};

/// The bytes from a position on that are in the buffer; none after a read error.
using BytesFrom = std::function<std::string_view(size_t position)>;

/// Walks this number of bytes as one message of the described type. Only the lengths of strings and raw data are read.
/// `file` and `kind` ("an ONNX model") go into the messages.
Result<Nothing> scan_wire_format(const BytesFrom& bytes, size_t size, const google::protobuf::Descriptor& type,
                                 const ScanLimits& limits, const std::string& file, const std::string& kind);

}  // namespace hoist
