#include "tools/data/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "frontend/file/tensor_file.h"
#include "ir/base/strings.h"
#include "tools/data/npy.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> tensor_path(const fs::path& folder, const char* role, size_t index) {
  std::error_code ignored;
  for (const char* ending : {".pb", ".npy"}) {
    fs::path path = folder / fmt::format("{}_{}{}", role, index, ending);
    if (fs::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

bool is_wide(Scalar scalar) { return scalar == Scalar::i64 || scalar == Scalar::u64; }

bool agree(const Tensor& got, const Tensor& expected, int64_t i, double relative, double absolute, double& error) {
  if (got.scalar() == Scalar::string) return got.integer_at(i) == expected.integer_at(i);
  if (is_wide(got.scalar()) && got.integer_at(i) == expected.integer_at(i)) return true;
  const double a = is_float(got.scalar()) || got.scalar() == Scalar::boolean ? got.float_at(i)
                                                                             : static_cast<double>(got.integer_at(i));
  const double b = is_float(got.scalar()) || got.scalar() == Scalar::boolean
                       ? expected.float_at(i)
                       : static_cast<double>(expected.integer_at(i));
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  error = std::max(error, std::abs(a - b));
  return std::abs(a - b) <= absolute + relative * std::abs(b);
}

Result<std::optional<std::vector<Tensor>>> read_value(const fs::path& path, ValueKind kind, const MapKeys& keys) {
  if (path.extension() == ".pb") return read_recorded_value(path, kind, keys);
  HOIST_TRY(Tensor tensor, read_tensor(path));
  return std::optional<std::vector<Tensor>>({std::move(tensor)});
}

}  // namespace

Result<std::vector<fs::path>> data_sets_in(const fs::path& folder) {
  if (tensor_path(folder, "input", 0) || tensor_path(folder, "output", 0)) return std::vector<fs::path>{folder};
  constexpr std::string_view prefix = "test_data_set_";
  std::vector<std::pair<long, fs::path>> found;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !entry.is_directory(failed)) continue;
    found.emplace_back(std::strtol(name.c_str() + prefix.size(), nullptr, 10), entry.path());
  }
  if (failed) return Diagnostic{folder.string(), "cannot be listed: " + failed.message(), ""};
  if (found.empty())
    return Diagnostic{folder.string(), "holds no test_data_set_0",
                      "data are input_0.pb and output_0.pb in such a folder"};
  std::sort(found.begin(), found.end());
  std::vector<fs::path> out;
  for (auto& [number, path] : found) out.push_back(std::move(path));
  return out;
}

Result<DataSet> read_data_set(const fs::path& folder, bool need_outputs, const ValueKinds& kinds) {
  DataSet out;
  out.folder = folder;
  Diagnostics problems;
  const auto read = [&](const char* role, const std::vector<ValueKind>& of_model, const std::vector<MapKeys>& keys,
                        std::vector<Tensor>& tensors, RecordedLayout& layout) {
    for (size_t i = 0; auto path = tensor_path(folder, role, i); ++i) {
      auto value = read_value(*path, i < of_model.size() ? of_model[i] : ValueKind::tensor,
                              i < keys.size() ? keys[i] : MapKeys());
      if (!value) {
        problems.insert(problems.end(), value.errors().begin(), value.errors().end());
        continue;
      }
      layout.push_back(*value ? std::optional((*value)->size()) : std::nullopt);
      if (*value) std::move((*value)->begin(), (*value)->end(), std::back_inserter(tensors));
    }
  };
  read("input", kinds.inputs, kinds.input_keys, out.inputs, out.layout);
  RecordedLayout of_outputs;
  read("output", kinds.outputs, kinds.output_keys, out.outputs, of_outputs);
  if (!problems.empty()) return problems;
  if (need_outputs && of_outputs.empty())
    return Diagnostic{folder.string(), "holds no output_0.pb", "there is nothing to compare with"};
  return out;
}

std::string extents_text(const std::vector<int64_t>& shape) {
  std::string out;
  for (int64_t extent : shape) out += fmt::format("[{}]", extent);
  return out.empty() ? "[]" : out;
}

std::string type_text(Scalar scalar, const std::vector<int64_t>& shape) {
  return (shape.empty() ? "" : extents_text(shape)) + std::string(row(scalar).name);
}

std::string element_text(const Tensor& tensor, int64_t flat) {
  if (tensor.scalar() == Scalar::string) return '"' + string_at(tensor, flat) + '"';
  if (is_float(tensor.scalar())) {
    return tensor.scalar() == Scalar::f64 ? fmt::format("{:.17g}", tensor.float_at(flat))
                                          : fmt::format("{:.9g}", tensor.float_at(flat));
  }
  if (tensor.scalar() == Scalar::boolean) return tensor.float_at(flat) != 0 ? "true" : "false";
  if (tensor.scalar() == Scalar::u64) return fmt::format("{}", static_cast<uint64_t>(tensor.integer_at(flat)));
  return fmt::format("{}", tensor.integer_at(flat));
}

std::string position_text(int64_t flat, const std::vector<int64_t>& shape) {
  std::string out;
  for (size_t i = shape.size(); i-- > 0;) {
    out = fmt::format("{}{}{}", flat % shape[i], out.empty() ? "" : ", ", out);
    flat /= shape[i];
  }
  return "[" + out + "]";
}

Comparison compare(const Tensor& got, const Tensor& expected, double relative, double absolute) {
  Comparison out;
  if (got.scalar() != expected.scalar() || got.shape() != expected.shape()) {
    out.difference = fmt::format("is {}, expected {}", type_text(got.scalar(), got.shape()),
                                 type_text(expected.scalar(), expected.shape()));
    return out;
  }
  out.elements = expected.size();
  for (int64_t i = 0; i < out.elements; ++i) {
    if (agree(got, expected, i, relative, absolute, out.largest_error)) continue;
    if (out.different++ == 0) out.first = i;
  }
  if (out.different != 0) {
    out.difference = fmt::format("differs at {}: {}, expected {}; {} of {} elements; largest error {:.3g}",
                                 position_text(out.first, expected.shape()), element_text(got, out.first),
                                 element_text(expected, out.first), out.different, out.elements, out.largest_error);
  }
  return out;
}

}  // namespace hoist
