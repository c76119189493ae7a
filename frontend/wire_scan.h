// A walk over protobuf's wire format before anything is parsed: it bounds how many objects a file makes and how deep
// they nest, so that a small hostile file cannot take gigabytes, and it says where a damaged file breaks. Borders
// protobuf.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/result.h"

namespace google::protobuf {
class Descriptor;
}

namespace hoist {

struct ScanLimits {
  int64_t objects = 4'000'000;  ///< messages, strings and unknown fields
  int depth = 60;               ///< messages inside messages; one nested graph takes three
};

/// Walks `bytes` as one message of the described type. `file` and `kind` ("an ONNX model") go into the messages.
Result<Nothing> scan_wire_format(std::string_view bytes, const google::protobuf::Descriptor& type,
                                 const ScanLimits& limits, const std::string& file, const std::string& kind);

}  // namespace hoist
