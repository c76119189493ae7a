#include "tools/data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <optional>

#include "frontend/file/bounded_size.h"
#include "frontend/file/tensor_file.h"
#include "tools/base/files.h"

namespace hoist {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
// An .npy header is a short dictionary; numpy also refuses longer headers by default.
constexpr size_t longest_header = longest_npy_start - 12;
constexpr size_t most_dimensions = 32;

struct NumpyType {
  std::string_view code;  ///< without the byte order
  Scalar scalar;
};
constexpr std::array<NumpyType, 12> numpy_types = {{{"b1", Scalar::boolean},
                                                    {"i1", Scalar::i8},
                                                    {"u1", Scalar::u8},
                                                    {"i2", Scalar::i16},
                                                    {"u2", Scalar::u16},
                                                    {"i4", Scalar::i32},
                                                    {"u4", Scalar::u32},
                                                    {"i8", Scalar::i64},
                                                    {"u8", Scalar::u64},
                                                    {"f2", Scalar::f16},
                                                    {"f4", Scalar::f32},
                                                    {"f8", Scalar::f64}}};

// Parses the Python dictionary of an .npy header, and no other Python.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  Result<NpyHeader> read() {
    std::optional<std::string> type;
    std::optional<bool> order;
    std::optional<std::vector<int64_t>> shape;
    if (!take('{')) return fault("expected {");
    while (!take('}')) {
      HOIST_TRY(std::string key, quoted());
      if (!take(':')) return fault("expected :");
      if (key == "descr" && !type) {
        if (peek() == '[') return Diagnostic{where_, "holds records", "save one plain array per file"};
        HOIST_TRY(type, quoted());
      } else if (key == "fortran_order" && !order) {
        if (take_word("True"))
          order = true;
        else if (take_word("False"))
          order = false;
        else
          return fault("expected True or False");
      } else if (key == "shape" && !shape) {
        HOIST_TRY(shape, extents());
      } else {
        return fault("unexpected key " + key.substr(0, 40));
      }
      if (!take(',') && peek() != '}') return fault("expected , or }");
    }
    if (peek() != '\0') return fault("text after the dictionary");
    if (!type || !order || !shape) return fault("descr, fortran_order or shape is missing");
    NpyHeader out;
    HOIST_TRY(out.scalar, scalar(*type));
    out.fortran_order = *order;
    out.shape = *shape;
    return out;
  }

 private:
  Diagnostic fault(const std::string& what) const {
    return {where_, fmt::format("damaged .npy header at byte {}: {}", place_, what), "save the array again"};
  }
  char peek() {
    while (place_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[place_])) != 0) ++place_;
    return place_ < text_.size() ? text_[place_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || place_ >= text_.size()) return false;
    ++place_;
    return true;
  }
  bool take_word(std::string_view word) {
    peek();
    if (text_.substr(place_, word.size()) != word) return false;
    place_ += word.size();
    return true;
  }
  Result<std::string> quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return fault("expected a string");
    const size_t end = text_.find(quote, place_ + 1);
    if (end == std::string_view::npos) return fault("a string is not closed");
    std::string out(text_.substr(place_ + 1, end - place_ - 1));
    place_ = end + 1;
    return out;
  }
  Result<std::vector<int64_t>> extents() {
    std::vector<int64_t> out;
    if (!take('(')) return fault("expected (");
    while (!take(')')) {
      if (std::isdigit(static_cast<unsigned char>(peek())) == 0) return fault("expected an extent");
      int64_t extent = 0;
      while (place_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[place_])) != 0) {
        if (__builtin_mul_overflow(extent, int64_t{10}, &extent) ||
            __builtin_add_overflow(extent, int64_t{text_[place_] - '0'}, &extent)) {
          return fault("an extent of more than 63 bits");
        }
        ++place_;
      }
      take('L');  // Python 2 wrote it after long integers
      out.push_back(extent);
      if (out.size() > most_dimensions) return fault(fmt::format("more than {} dimensions", most_dimensions));
      if (!take(',') && peek() != ')') return fault("expected , or )");
    }
    return out;
  }
  Result<Scalar> scalar(const std::string& type) const {
    const std::string code = type.empty() ? "" : type.substr(1);
    const auto found =
        std::find_if(numpy_types.begin(), numpy_types.end(), [&](const NumpyType& t) { return t.code == code; });
    const std::string shown = type.substr(0, 40);
    if (found == numpy_types.end()) {
      if (type == "|O" || type == "O") return Diagnostic{where_, "holds Python objects", "save an array of numbers"};
      return Diagnostic{where_, "holds numbers of type " + shown + ", which hoist does not support",
                        "convert them, with array.astype(numpy.float32) for instance"};
    }
    if (type[0] == '>') {
      return Diagnostic{where_, "holds big-endian numbers (" + shown + ")",
                        "convert them with array.astype('<" + code + "')"};
    }
    if (type[0] != '<' && type[0] != '|' && type[0] != '=') {
      return Diagnostic{where_, "holds numbers of unknown type " + shown, ""};
    }
    return found->scalar;
  }

  std::string_view text_;
  std::string where_;
  size_t place_ = 0;
};

// Transposes elements from column-major to row-major order.
Tensor from_fortran_order(Scalar scalar, const std::vector<int64_t>& shape, const std::vector<std::byte>& bytes) {
  Tensor out(scalar, shape);
  const auto width = static_cast<size_t>(row(scalar).bits / 8);
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    strides[i] = stride;
    stride *= shape[i];
  }
  std::vector<int64_t> position(shape.size(), 0);
  std::byte* to = out.data();
  int64_t from = 0;
  for (int64_t count = out.size(); count > 0; --count) {
    std::memcpy(to, bytes.data() + static_cast<size_t>(from) * width, width);
    to += width;
    for (size_t i = shape.size(); i-- > 0;) {
      from += strides[i];
      if (++position[i] < shape[i]) break;
      from -= strides[i] * shape[i];
      position[i] = 0;
    }
  }
  return out;
}

}  // namespace

bool numpy_has(Scalar scalar) {
  return std::any_of(numpy_types.begin(), numpy_types.end(), [&](const NumpyType& t) { return t.scalar == scalar; });
}

Result<NpyHeader> parse_npy_header(std::string_view bytes, const std::string& where) {
  if (bytes.substr(0, magic.size()) != magic) return Diagnostic{where, "is not an .npy file", ""};
  if (bytes.size() < 10)
    return Diagnostic{where, "ends inside the .npy header", "the file is truncated; save it again"};
  const auto at = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const size_t version = at(6);
  if (version < 1 || version > 3) {
    return Diagnostic{where, fmt::format("is of .npy version {}, hoist reads 1 to 3", version), ""};
  }
  const size_t start = version == 1 ? 10 : 12;
  size_t length = at(8) | at(9) << 8;
  if (version > 1 && bytes.size() >= start) length |= at(10) << 16 | at(11) << 24;
  if (length > longest_header) {
    return Diagnostic{where, fmt::format("has an .npy header of {} bytes, more than {}", length, longest_header), ""};
  }
  if (bytes.size() < start || length > bytes.size() - start) {
    return Diagnostic{where, "ends inside the .npy header", "the file is truncated; save it again"};
  }
  HOIST_TRY(NpyHeader header, HeaderReader(bytes.substr(start, length), where).read());
  const std::optional<int64_t> data = bounded_byte_size(header.scalar, header.shape, most_array_bytes);
  if (!data) {
    return Diagnostic{where,
                      fmt::format("its shape {} needs more than {} bytes", shape_text(header.shape), most_array_bytes),
                      "save a part of the array"};
  }
  header.start = start + length;
  header.bytes = static_cast<size_t>(*data);
  return header;
}

namespace {

Diagnostic wrong_size(const NpyHeader& header, size_t found, const std::string& where) {
  return {where, fmt::format("its shape needs {} bytes, the file has {}", header.bytes, found),
          "the file is truncated or damaged; save it again"};
}

}  // namespace

Result<Tensor> tensor_from_npy(const NpyHeader& header, std::vector<std::byte> data, const std::string& where) {
  if (data.size() != header.bytes) return wrong_size(header, data.size(), where);
  Tensor out = header.fortran_order && header.shape.size() > 1 ? from_fortran_order(header.scalar, header.shape, data)
                                                               : Tensor(header.scalar, header.shape, std::move(data));
  if (header.scalar == Scalar::boolean) {
    // numpy writes only 0 and 1; any other byte of a damaged file counts as true.
    std::byte* values = out.data();
    for (int64_t i = 0; i < out.size(); ++i) values[i] = static_cast<std::byte>(values[i] != std::byte{0});
  }
  return out;
}

Result<Tensor> parse_npy(std::string_view bytes, const std::string& where) {
  HOIST_TRY(const NpyHeader header, parse_npy_header(bytes, where));
  const std::string_view data = bytes.substr(header.start);
  if (data.size() != header.bytes) return wrong_size(header, data.size(), where);
  const auto* first = reinterpret_cast<const std::byte*>(data.data());
  return tensor_from_npy(header, std::vector<std::byte>(first, first + data.size()), where);
}

Result<Tensor> read_npy(const std::filesystem::path& path) {
  HOIST_TRY(const std::string beginning, read_beginning(path, longest_npy_start));
  HOIST_TRY(const NpyHeader header, parse_npy_header(beginning, path.string()));
  std::error_code failed;
  const uintmax_t size = std::filesystem::file_size(path, failed);
  if (!failed && size != header.start + header.bytes) return wrong_size(header, size - header.start, path.string());
  HOIST_TRY(std::string bytes, read_file(path, header.start + header.bytes));
  return parse_npy(bytes, path.string());
}

std::string npy_bytes(const Tensor& tensor) {
  const auto type = std::find_if(numpy_types.begin(), numpy_types.end(),
                                 [&](const NumpyType& t) { return t.scalar == tensor.scalar(); });
  HOIST_CHECK(type != numpy_types.end(), "numpy has no type " + std::string(row(tensor.scalar()).name));
  std::string shape;
  for (int64_t extent : tensor.shape()) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", extent);
  if (tensor.shape().size() == 1) shape += ",";
  const bool one_byte = row(tensor.scalar()).bits == 8;
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", one_byte ? '|' : '<',
                                   type->code, shape);
  // The padding aligns the data to 64 bytes.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out(magic);
  out += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  out += header;
  out.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes().size());
  return out;
}

Result<Nothing> write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  return write_file(path, npy_bytes(tensor));
}

Result<Tensor> read_tensor(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return Diagnostic{path.string(), "there is no such file", ""};
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  if (ending == ".npy") return read_npy(path);
  if (ending == ".pb") return read_tensor_proto(path);
  return Diagnostic{path.string(), "is neither .npy nor .pb", "save the array with numpy.save or as a TensorProto"};
}

}  // namespace hoist
