#include "frontend/file/wire_scan.h"

#include <google/protobuf/descriptor.h>

#include <optional>

namespace hoist {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

enum class WireType : uint8_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

// The wire type of a field of this type that is not packed.
WireType wire_type(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return WireType::fixed64;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return WireType::fixed32;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_MESSAGE:
      return WireType::length;
    default:
      return WireType::varint;
  }
}

class Scanner {
 public:
  Scanner(const BytesFrom& bytes, const ScanLimits& limits) : bytes_(bytes), limits_(limits) {}

  // All functions below return "" or the error.
  std::string message(const Descriptor& type, size_t end, int depth) {
    if (depth > limits_.depth) return "nests messages deeper than " + std::to_string(limits_.depth) + " levels";
    while (at_ < end) {
      const size_t start = at_;
      const std::optional<uint64_t> tag = varint(end);
      if (!tag || (*tag >> 3) == 0 || (*tag >> 3) > 0x1fffffff)
        return "has no valid field at byte " + std::to_string(start);
      const FieldDescriptor* field = type.FindFieldByNumber(static_cast<int>(*tag >> 3));
      const auto wire = static_cast<WireType>(*tag & 7);
      const bool known =
          field != nullptr && (wire == wire_type(*field) || (wire == WireType::length && field->is_packable()));
      if (known && depth == 0) any_known_ = true;
      if (!known && !count()) return too_many();
      if (std::string problem = value(known ? field : nullptr, wire, start, end, depth); !problem.empty())
        return problem;
    }
    return "";
  }

  bool any_known() const { return any_known_; }
  bool limited() const { return limited_; }

 private:
  std::string value(const FieldDescriptor* field, WireType wire, size_t start, size_t end, int depth) {
    const std::string place = (field ? "field " + field->full_name() : "a field") + " at byte " + std::to_string(start);
    uint64_t size = 0;
    switch (wire) {
      case WireType::varint:
        return varint(end) ? "" : "ends inside " + place;
      case WireType::fixed64:
        size = 8;
        break;
      case WireType::fixed32:
        size = 4;
        break;
      case WireType::length: {
        const std::optional<uint64_t> length = varint(end);
        if (!length) return "ends inside " + place;
        size = *length;
        break;
      }
      default:
        return "has no valid field at byte " + std::to_string(start);
    }
    if (size > end - at_) {
      return place + " wants " + std::to_string(size) + " bytes, " + std::to_string(end - at_) + " are left";
    }
    const size_t stop = at_ + size;
    if (field != nullptr && wire == WireType::length && !field->is_packable()) {
      if (!count()) return too_many();
      if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
        if (std::string problem = message(*field->message_type(), stop, depth + 1); !problem.empty()) return problem;
      }
    }
    at_ = stop;
    return "";
  }

  std::optional<uint64_t> varint(size_t end) {
    uint64_t out = 0;
    for (int shift = 0; shift < 70 && at_ < end; shift += 7) {
      if (at_ < start_ || at_ >= start_ + window_.size()) {
        window_ = bytes_(at_);
        start_ = at_;
        if (window_.empty()) return std::nullopt;
      }
      const auto byte = static_cast<uint8_t>(window_[at_++ - start_]);
      if (shift < 64) out |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return out;
    }
    return std::nullopt;
  }

  bool count() { return ++objects_ <= limits_.objects; }
  std::string too_many() {
    limited_ = true;
    return "holds more than " + std::to_string(limits_.objects) + " objects";
  }

  const BytesFrom& bytes_;
  std::string_view window_;  // from start_ on
  size_t start_ = 0;
  ScanLimits limits_;
  size_t at_ = 0;
  int64_t objects_ = 0;
  bool any_known_ = false;
  bool limited_ = false;
};

}  // namespace

Result<Nothing> scan_wire_format(const BytesFrom& bytes, size_t size, const Descriptor& type, const ScanLimits& limits,
                                 const std::string& file, const std::string& kind) {
  Scanner scanner(bytes, limits);
  const std::string problem = scanner.message(type, size, 0);
  if (problem.empty()) return Nothing{};
  if (scanner.limited()) return Diagnostic{file, problem, "the limit guards against untrusted files"};
  if (!scanner.any_known()) return Diagnostic{file, "is not " + kind, "it " + problem};
  return Diagnostic{file, "is truncated or damaged", problem};
}

}  // namespace hoist
