#include "frontend/file/tensor_proto.h"

#include <charconv>
#include <cstring>
#include <utility>

#include "frontend/file/bounded_size.h"
#include "ir/base/strings.h"
#include "ir/program/onnx_type.h"
#include "ir/text/counted.h"

namespace hoist {
namespace {

// The typed fields hold each value in a word that is at least as wide; `bytes_each` of it are kept (little-endian).
template <class Field>
Result<std::vector<std::byte>> narrowed(const Field& field, int64_t bytes, size_t bytes_each,
                                        const std::string& owner) {
  const int64_t held = static_cast<int64_t>(field.size()) * static_cast<int64_t>(bytes_each);
  if (held != bytes) {
    return Diagnostic{owner,
                      "claims " + counted(bytes / static_cast<int64_t>(bytes_each), "value") + ", holds " +
                          std::to_string(field.size()),
                      "the model may be damaged"};
  }
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  std::byte* at = out.data();
  for (const auto value : field) {
    std::memcpy(at, &value, bytes_each);
    at += bytes_each;
  }
  return out;
}

bool parse_integer(const std::string& text, int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 0;
}

Result<ExternalPlace> external_place(const onnx::TensorProto& proto, const std::string& owner) {
  ExternalPlace place;
  for (const auto& entry : proto.external_data()) {
    int64_t number = 0;
    if (entry.key() == "location") {
      place.location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      if (!parse_integer(entry.value(), number)) {
        return Diagnostic{owner, "the " + entry.key() + " of its external data is not a number from 0 up", ""};
      }
      if (entry.key() == "offset")
        place.offset = number;
      else
        place.length = number;
    }
  }
  return place;
}

// Strings have a field of their own and are stored nowhere else.
Result<Tensor> strings_from_proto(const onnx::TensorProto& proto, std::vector<int64_t> shape,
                                  const std::string& owner) {
  const int64_t size = element_count(shape);
  if (proto.string_data_size() != size) {
    return Diagnostic{owner,
                      "claims " + counted(size, "string") + ", holds " + std::to_string(proto.string_data_size()),
                      "the model may be damaged"};
  }
  auto made = tensor_of_strings(std::move(shape), {proto.string_data().begin(), proto.string_data().end()});
  if (!made.ok()) return Diagnostic{owner, made.errors()[0].what, made.errors()[0].hint};
  return made;
}

}  // namespace

std::string onnx_type_name(int data_type) {
  return onnx::TensorProto::DataType_IsValid(data_type)
             ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(data_type))
             : "type " + std::to_string(data_type);
}

Result<Tensor> tensor_from_proto(onnx::TensorProto proto, const std::string& owner, int64_t maximum_bytes,
                                 const ExternalData* external) {
  const std::optional<Scalar> scalar = scalar_of_onnx_type(proto.data_type());
  if (!scalar)
    return Diagnostic{owner, "has values of " + onnx_type_name(proto.data_type()) + ", which hoist lacks", ""};
  if (proto.has_segment()) return Diagnostic{owner, "is stored in segments", "export the model with whole tensors"};
  std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  const std::optional<int64_t> size = bounded_byte_size(*scalar, shape, maximum_bytes);
  if (!size) {
    return Diagnostic{owner, "claims the shape " + shape_text(shape),
                      "extents must not be negative, and a tensor has at most " + std::to_string(maximum_bytes) +
                          " bytes and 64 axes"};
  }
  if (*scalar == Scalar::string) return strings_from_proto(proto, std::move(shape), owner);
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    if (external == nullptr) return Diagnostic{owner, "has external data, which have no place here", ""};
    HOIST_TRY(const ExternalPlace place, external_place(proto, owner));
    return external->read(place, *scalar, std::move(shape), owner);
  }
  if (proto.has_raw_data() && !(proto.raw_data().empty() && *size != 0)) {
    const std::string& raw = proto.raw_data();
    if (static_cast<int64_t>(raw.size()) != *size) {
      return Diagnostic{owner,
                        "claims the shape " + shape_text(shape) + ", which is " + counted(*size, "byte") +
                            ", and holds " + std::to_string(raw.size()),
                        "the model may be damaged"};
    }
    return Tensor(*scalar, std::move(shape), std::move(*proto.mutable_raw_data()));
  }
  const auto typed = [&]() -> Result<std::vector<std::byte>> {
    switch (*scalar) {
      case Scalar::f32:
        return narrowed(proto.float_data(), *size, 4, owner);
      case Scalar::f64:
        return narrowed(proto.double_data(), *size, 8, owner);
      case Scalar::i64:
        return narrowed(proto.int64_data(), *size, 8, owner);
      case Scalar::u64:
        return narrowed(proto.uint64_data(), *size, 8, owner);
      case Scalar::u32:
        return narrowed(proto.uint64_data(), *size, 4, owner);
      default:  // packed values are laid out as in raw data, one byte in each word
        return narrowed(proto.int32_data(), *size, static_cast<size_t>(std::max(row(*scalar).bits / 8, 1)), owner);
    }
  };
  HOIST_TRY(std::vector<std::byte> bytes, typed());
  return Tensor(*scalar, std::move(shape), std::move(bytes));
}

onnx::TensorProto tensor_to_proto(const Tensor& tensor, const std::string& name) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx_type(tensor.scalar()));
  for (const int64_t extent : tensor.shape()) proto.add_dims(extent);
  if (tensor.scalar() == Scalar::string) {
    for (int64_t i = 0; i < tensor.size(); ++i) proto.add_string_data(string_at(tensor, i));
    return proto;
  }
  proto.set_raw_data(tensor.data(), tensor.bytes().size());
  return proto;
}

}  // namespace hoist
