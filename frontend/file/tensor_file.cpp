#include "frontend/file/tensor_file.h"

#include <onnx/onnx-data.pb.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>

#include "frontend/file/message_file.h"
#include "frontend/file/tensor_proto.h"
#include "ir/operators/definitions/composition.h"

namespace hoist {
namespace {

constexpr int64_t maximum_bytes = (int64_t{1} << 31) - 1;  // the limit of protobuf itself

// The file as a message of this kind; wire_scan.h checks it before it is parsed.
template <class Message>
Result<Message> parse_file(const std::filesystem::path& path, const std::string& kind) {
  const std::string name = path.string();
  Message out;
  HOIST_TRY(const bool parsed, read_message(path, maximum_bytes, {}, kind, nullptr, out));
  if (!parsed) return Diagnostic{name, "is not " + kind, "the model declares this type"};
  return out;
}

Result<std::vector<Tensor>> members_of(const onnx::SequenceProto& proto, const std::string& name) {
  const bool holds_tensors = proto.elem_type() == onnx::SequenceProto::TENSOR;
  const bool holds_others = proto.sparse_tensor_values_size() > 0 || proto.sequence_values_size() > 0 ||
                            proto.map_values_size() > 0 || proto.optional_values_size() > 0;
  if (holds_others || (!holds_tensors && proto.elem_type() != onnx::SequenceProto::UNDEFINED))
    return Diagnostic{name, "holds a sequence of other values than tensors", "hoist accepts only sequences of tensors"};
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

using Entries = std::vector<std::pair<std::string, Tensor>>;

// A map's keys as text and its values, sorted by key if keys are integers.
Result<Entries> entries_of(const onnx::MapProto& proto, const std::string& name) {
  const bool strings = proto.key_type() == onnx::TensorProto::STRING;
  const int count = strings ? proto.string_keys_size() : proto.keys_size();
  if (proto.values().tensor_values_size() != count)
    return Diagnostic{name,
                      "holds a map of " + std::to_string(count) + " keys and " +
                          std::to_string(proto.values().tensor_values_size()) + " values that are tensors",
                      ""};
  std::vector<int> order;
  for (int i = 0; i < count; ++i) order.push_back(i);
  if (!strings)
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return proto.keys(a) < proto.keys(b); });
  Entries out;
  for (const int i : order) {
    const std::string key = strings ? proto.string_keys(i) : std::to_string(proto.keys(i));
    HOIST_TRY(Tensor value,
              tensor_from_proto(proto.values().tensor_values(i), name + ", key " + key, maximum_bytes, nullptr));
    if (value.size() != 1)
      return Diagnostic{name, "holds " + std::to_string(value.size()) + " values of key " + key, ""};
    if (!out.empty() && value.scalar() != out[0].second.scalar())
      return Diagnostic{name, "holds a map whose values are of several types", ""};
    out.emplace_back(key, std::move(value));
  }
  return out;
}

Result<Tensor> rows_of_maps(const std::vector<const onnx::MapProto*>& maps, const MapKeys& keys,
                            const std::string& name) {
  std::vector<Entries> all;
  std::optional<Scalar> scalar;
  for (const onnx::MapProto* map : maps) {
    HOIST_TRY(Entries entries, entries_of(*map, name));
    if (!entries.empty() && scalar.value_or(entries[0].second.scalar()) != entries[0].second.scalar())
      return Diagnostic{name, "holds maps whose values are of several types", ""};
    if (!entries.empty()) scalar = entries[0].second.scalar();
    all.push_back(std::move(entries));
  }
  std::map<std::string, int64_t> places;
  for (const std::string& key : keys) places.emplace(key, static_cast<int64_t>(places.size()));
  if (keys.empty() && !all.empty()) {
    for (const auto& [key, value] : all[0]) places.emplace(key, static_cast<int64_t>(places.size()));
  }
  const int64_t columns = keys.empty() ? static_cast<int64_t>(places.size()) : static_cast<int64_t>(keys.size());
  constexpr int64_t most_values = int64_t{1} << 26;
  if (columns > 0 && static_cast<int64_t>(all.size()) > most_values / columns)
    return Diagnostic{
        name, "holds " + std::to_string(all.size()) + " maps of " + std::to_string(columns) + " keys, too many", ""};
  Tensor out(scalar.value_or(Scalar::f32), {static_cast<int64_t>(all.size()), columns});
  for (size_t row = 0; row < all.size(); ++row) {
    for (const auto& [key, value] : all[row]) {
      const auto place = places.find(key);
      if (place == places.end())
        return Diagnostic{name, "holds the key " + key + ", which the model does not name", ""};
      const int64_t at = static_cast<int64_t>(row) * columns + place->second;
      if (is_float(out.scalar()))
        out.set_float(at, value.float_at(0));
      else
        out.set_integer(at, value.integer_at(0));
    }
  }
  return out;
}

}  // namespace

Result<Tensor> read_tensor_proto(const std::filesystem::path& path) {
  const std::string name = path.string();
  try {
    onnx::TensorProto proto;
    HOIST_TRY(const bool parsed, read_message(path, maximum_bytes, {}, "a TensorProto", nullptr, proto));
    if (!parsed || !proto.has_data_type()) {
      return Diagnostic{name, "is not a TensorProto", "inputs are .npy files or TensorProto .pb files"};
    }
    return tensor_from_proto(std::move(proto), name, maximum_bytes, nullptr);
  } catch (const std::exception& error) {
    return Diagnostic{name, std::string("cannot be read: ") + error.what(), ""};
  }
}

Result<std::optional<std::vector<Tensor>>> read_recorded_value(const std::filesystem::path& path, ValueKind kind,
                                                               const MapKeys& keys) {
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
    if (kind == ValueKind::map) {
      HOIST_TRY(const auto proto, parse_file<onnx::MapProto>(path, "a MapProto"));
      HOIST_TRY(Tensor row, rows_of_maps({&proto}, keys, name));
      return Recorded({std::move(row)});
    }
    if (kind == ValueKind::sequence_of_maps) {
      HOIST_TRY(const auto proto, parse_file<onnx::SequenceProto>(path, "a SequenceProto"));
      std::vector<const onnx::MapProto*> maps;
      for (const onnx::MapProto& map : proto.map_values()) maps.push_back(&map);
      HOIST_TRY(Tensor rows, rows_of_maps(maps, keys, name));
      return Recorded({std::move(rows)});
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
  // A device such as /dev/full is written to in place; everything else by a temporary file that is renamed.
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
