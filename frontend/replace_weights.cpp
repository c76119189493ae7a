#include "frontend/replace_weights.h"

#include <onnx/onnx_pb.h>

#include <functional>
#include <string_view>

#include "frontend/file/model_file.h"

namespace hoist {
namespace {

using onnx::GraphProto;
using onnx::ModelProto;
using onnx::TensorProto;

enum Wire : uint32_t { varint = 0, eight_bytes = 1, counted_bytes = 2, four_bytes = 5 };

// A field of a message: all its bytes, and its content if they are counted.
struct Field {
  uint64_t number = 0, wire = 0;
  std::string_view whole, content;
  uint64_t value = 0;
};

bool read_varint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool read_field(std::string_view& bytes, Field& out) {
  const std::string_view begin = bytes;
  uint64_t tag = 0, size = 0;
  if (!read_varint(bytes, tag)) return false;
  out.number = tag >> 3, out.wire = tag & 7, out.content = {};
  if (out.wire == varint) {
    if (!read_varint(bytes, out.value)) return false;
  } else {
    if (out.wire == eight_bytes || out.wire == four_bytes)
      size = out.wire == eight_bytes ? 8 : 4;
    else if (out.wire != counted_bytes || !read_varint(bytes, size))
      return false;
    if (size > bytes.size()) return false;
    out.content = bytes.substr(0, size);
    bytes.remove_prefix(size);
  }
  out.whole = begin.substr(0, begin.size() - bytes.size());
  return true;
}

// False for bytes that are no message.
bool each_field(std::string_view bytes, const std::function<bool(const Field&)>& f) {
  for (Field field; !bytes.empty();) {
    if (!read_field(bytes, field) || !f(field)) return false;
  }
  return true;
}

void add_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

void add_counted(std::string& out, uint64_t number, std::string_view content) {
  add_varint(out, number << 3 | counted_bytes);
  add_varint(out, content.size());
  out += content;
}

// The places of a tensor's values.
bool holds_values(uint64_t number) {
  switch (number) {
    case TensorProto::kFloatDataFieldNumber:
    case TensorProto::kDoubleDataFieldNumber:
    case TensorProto::kRawDataFieldNumber:
    case TensorProto::kExternalDataFieldNumber:
    case TensorProto::kDataLocationFieldNumber:
      return true;
    default:
      return false;
  }
}

std::string with_values(std::string_view tensor, const Tensor& values) {
  std::string out;
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  const std::string_view raw(bytes, values.bytes().size());
  bool is_written = false;
  each_field(tensor, [&](const Field& field) {
    if (!holds_values(field.number)) {
      out += field.whole;
    } else if (!is_written) {
      add_counted(out, TensorProto::kRawDataFieldNumber, raw);
      is_written = true;
    }
    return true;
  });
  if (!is_written) add_counted(out, TensorProto::kRawDataFieldNumber, raw);
  return out;
}

struct Header {
  std::string name;
  bool is_float = false, has_dimensions = false;
};

bool read_header(std::string_view tensor, Header& out) {
  return each_field(tensor, [&](const Field& field) {
    if (field.number == TensorProto::kNameFieldNumber) out.name = field.content;
    if (field.number == TensorProto::kDimsFieldNumber) out.has_dimensions = true;
    if (field.number == TensorProto::kDataTypeFieldNumber)
      out.is_float = field.value == TensorProto::FLOAT || field.value == TensorProto::DOUBLE;
    return true;
  });
}

// The message with the fields of this number replaced; nested messages are replaced from the inside.
using Replace = std::function<bool(std::string_view content, std::string& out)>;
bool replace_fields(std::string_view message, uint64_t number, const Replace& replace, std::string& out) {
  return each_field(message, [&](const Field& field) {
    if (field.number != number || field.wire != counted_bytes) {
      out += field.whole;
      return true;
    }
    std::string inside;
    if (!replace(field.content, inside)) return false;
    add_counted(out, number, inside);
    return true;
  });
}

Result<std::string> bytes_of(const std::filesystem::path& model) {
  HOIST_TRY(const OpenedFile file, OpenedFile::open(model, (int64_t{1} << 31) - 1));
  std::string bytes(file.size(), '\0');
  const std::optional<size_t> read = file.read(bytes.data(), bytes.size(), 0);
  if (!read || *read != bytes.size()) return Diagnostic{model.string(), "cannot be read to its end", ""};
  return bytes;
}

Diagnostic no_model(const std::filesystem::path& model) { return {model.string(), "is damaged, or no ONNX model", ""}; }

}  // namespace

Result<std::vector<std::string>> float_initialisers(const std::filesystem::path& model) {
  HOIST_TRY(const std::string bytes, bytes_of(model));
  std::vector<std::string> out;
  const bool is_model = each_field(bytes, [&](const Field& graph) {
    if (graph.number != ModelProto::kGraphFieldNumber) return true;
    return each_field(graph.content, [&](const Field& tensor) {
      if (tensor.number != GraphProto::kInitializerFieldNumber) return true;
      Header header;
      if (!read_header(tensor.content, header)) return false;
      if (header.is_float && header.has_dimensions) out.push_back(header.name);
      return true;
    });
  });
  if (!is_model) return no_model(model);
  return out;
}

Result<std::string> replace_weights(const std::filesystem::path& model, const std::map<std::string, Tensor>& weights) {
  HOIST_TRY(const std::string bytes, bytes_of(model));
  std::string out;
  size_t replaced = 0;
  const auto tensor = [&](std::string_view content, std::string& inside) {
    Header header;
    if (!read_header(content, header)) return false;
    const auto found = weights.find(header.name);
    if (found == weights.end()) return inside = content, true;
    ++replaced;
    return inside = with_values(content, found->second), true;
  };
  const auto graph = [&](std::string_view content, std::string& inside) {
    return replace_fields(content, GraphProto::kInitializerFieldNumber, tensor, inside);
  };
  if (!replace_fields(bytes, ModelProto::kGraphFieldNumber, graph, out)) return no_model(model);
  if (replaced != weights.size())
    return Diagnostic{model.string(), "has other initialisers than before the training", "train again"};
  if (out.size() >= (size_t{1} << 31)) return Diagnostic{model.string(), "with its weights inside is past 2 GiB", ""};
  return out;
}

}  // namespace hoist
