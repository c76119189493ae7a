#include "frontend/model/dimensions.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>

#include "frontend/file/bounded_size.h"
#include "ir/text/parse/near_miss.h"

namespace hoist {
namespace {

constexpr int64_t largest_extent = (int64_t{1} << 31) - 1;

std::string axis_name(const DeclaredInput& input, size_t axis) { return input.name + "." + std::to_string(axis); }

// The name of this axis in the option --dim.
std::string option_name(const DeclaredInput& input, size_t axis) {
  return input.axes[axis].name.empty() ? axis_name(input, axis) : input.axes[axis].name;
}

bool says_batch(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == "n" || name.find("batch") != std::string::npos;
}

class Binder {
 public:
  explicit Binder(const std::vector<DeclaredInput>& inputs) : inputs_(inputs) {
    for (const DeclaredInput& input : inputs_) {
      for (size_t axis = 0; axis < input.axes.size(); ++axis) {
        if (input.axes[axis].extent >= 0) continue;
        const std::string name = option_name(input, axis);
        if (std::find(open_.begin(), open_.end(), name) == open_.end()) open_.push_back(name);
        if (axis > 0 || !input.may_have_batch) later_.insert(name);
        if (axis == 0 && (input.axes.size() > 1 || says_batch(input.axes[0].name))) batch_.insert(name);
      }
    }
  }

  void assign(const DimensionValue& value) {
    const std::string where = "--dim " + value.name + "=" + std::to_string(value.extent);
    if (value.extent < 0 || value.extent > largest_extent) {
      problems_.push_back({where, "a dimension is from 0 to " + std::to_string(largest_extent), ""});
      return;
    }
    const std::optional<std::string> name = resolve(value.name, value.extent, where);
    if (!name) return;
    const auto [at, fresh] = said_.emplace(value.name, value.extent);
    if (!fresh && at->second != value.extent) {
      problems_.push_back({where, "the same dimension is set to " + std::to_string(at->second) + " as well", ""});
    }
    if (value.name == *name)
      values_[*name] = value.extent;
    else
      values_.emplace(*name, value.extent);  // axes of one name share an extent, unless an axis has its own
  }

  Result<BoundDimensions> finish(int64_t maximum_bytes) {
    BoundDimensions out;
    for (const std::string& name : open_) {
      if (values_.count(name)) continue;
      if (batch_.count(name) && !later_.count(name)) {
        values_[name] = 1;
        out.notes.push_back("dimension " + name + " has no size in the model: compiled for 1 (--dim " + name +
                            "=8 compiles for 8)");
      } else {
        problems_.push_back({"dimension " + name, "has no size in the model", "set it with --dim " + name + "=N"});
      }
    }
    if (!problems_.empty()) return problems_;
    std::set<std::string> ambiguous;
    for (const DeclaredInput& input : inputs_) {
      std::vector<int64_t> shape;
      for (size_t axis = 0; axis < input.axes.size(); ++axis) {
        const std::string name = option_name(input, axis);
        int64_t extent = input.axes[axis].extent;
        if (const auto own = said_.find(axis_name(input, axis)); extent < 0 && own != said_.end()) extent = own->second;
        if (extent < 0) extent = values_.at(name);
        if (const auto named = values_.find(name);
            input.axes[axis].extent < 0 && named != values_.end() && named->second != extent)
          ambiguous.insert(name);
        shape.push_back(extent);
      }
      if (!bounded_byte_size(input.scalar, shape, maximum_bytes)) {
        problems_.push_back(
            {"input '" + input.name + "'",
             "its shape " + shape_text(shape) + " is past the limit of " + std::to_string(maximum_bytes) + " bytes",
             ""});
      }
      out.shapes.push_back(std::move(shape));
    }
    if (!problems_.empty()) return problems_;
    out.named = std::move(values_);
    for (const std::string& name : ambiguous) out.named.erase(name);
    return out;
  }

 private:
  // The open dimension that the user means: by its own name, or by INPUT.AXIS.
  std::optional<std::string> resolve(const std::string& name, int64_t extent, const std::string& where) {
    if (std::find(open_.begin(), open_.end(), name) != open_.end()) return name;
    for (const DeclaredInput& input : inputs_) {
      for (size_t axis = 0; axis < input.axes.size(); ++axis) {
        if (axis_name(input, axis) != name) continue;
        const int64_t fixed = input.axes[axis].extent;
        if (fixed < 0) return option_name(input, axis);
        if (fixed != extent) {
          problems_.push_back({where, "the model fixes this axis at " + std::to_string(fixed), "leave the option out"});
        }
        return std::nullopt;
      }
    }
    const std::string near = near_miss(name, open_);
    std::string hint = "all dimensions of the model have a size";
    if (!near.empty()) {
      hint = "did you mean " + near + "?";
    } else if (!open_.empty()) {
      hint = "it has:";
      for (size_t i = 0; i < open_.size() && i < 20; ++i) hint += (i ? ", " : " ") + open_[i];
    }
    problems_.push_back({where, "the model has no input dimension of this name", hint});
    return std::nullopt;
  }

  const std::vector<DeclaredInput>& inputs_;
  std::vector<std::string> open_;  // dimensions without an extent, by option name, in the model's order
  std::set<std::string> later_, batch_;
  std::map<std::string, int64_t> said_;    // extents set by the user, by names and by axes
  std::map<std::string, int64_t> values_;  // extents by dimension name
  Diagnostics problems_;
};

}  // namespace

Result<DimensionValue> parse_dimension_value(const std::string& text) {
  const size_t equals = text.rfind('=');
  DimensionValue out;
  if (equals != std::string::npos && equals != 0) {
    out.name = text.substr(0, equals);
    const char* begin = text.data() + equals + 1;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, out.extent);
    if (error == std::errc() && stop == end && out.extent >= 0 && out.extent <= largest_extent) return out;
  }
  return Diagnostic{"--dim " + text, "is not NAME=N with N from 0 to " + std::to_string(largest_extent),
                    "for example --dim batch=4, or --dim input.0=4 for axis 0 of an input"};
}

Result<BoundDimensions> bind_dimensions(const std::vector<DeclaredInput>& inputs,
                                        const std::vector<DimensionValue>& values, int64_t maximum_bytes) {
  Binder binder(inputs);
  for (const DimensionValue& value : values) binder.assign(value);
  return binder.finish(maximum_bytes);
}

}  // namespace hoist
