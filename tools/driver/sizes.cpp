#include "tools/driver/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "frontend/frontend.h"

namespace hoist {
namespace {

// "batch=1,8" gives "batch" and {"1", "8"}. Text without a size is passed on for the frontend to refuse.
std::pair<std::string, std::vector<std::string>> listed_sizes(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return {text, {}};
  std::vector<std::string> out;
  for (size_t begin = equals + 1; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return {text.substr(0, equals), out};
}

}  // namespace

Result<std::vector<SizeChoice>> size_choices(const std::vector<std::string>& dimensions) {
  std::vector<SizeChoice> out = {{}};
  for (const std::string& text : dimensions) {
    const auto [name, sizes] = listed_sizes(text);
    if (sizes.size() < 2) {
      for (SizeChoice& choice : out) choice.dimensions.push_back(text);
      continue;
    }
    if (sizes.size() > most_specialisations() / out.size())
      return usage_error("--dim " + text,
                         fmt::format("makes {} combinations of sizes, and a bundle holds at most {} "
                                     "(most_specialisations)",
                                     sizes.size() * out.size(), most_specialisations()),
                         "name fewer sizes, or write several bundles");
    std::vector<SizeChoice> more;
    for (const SizeChoice& choice : out) {
      for (const std::string& size : sizes) {
        HOIST_TRY(DimensionValue value, with_kind(ErrorKind::usage, parse_dimension_value(name + "=" + size)));
        more.push_back(choice);
        more.back().dimensions.push_back(name + "=" + size);
        more.back().sizes.emplace_back(name, value.extent);
      }
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (more[i].sizes.back() == more[k].sizes.back())
          return usage_error("--dim " + text, "has " + sizes[i] + " twice", "name each size once");
      }
    }
    for (const auto& [other, size] : out.front().sizes) {
      if (other == name) return usage_error("--dim " + text, "is the second list of sizes for " + name);
    }
    out = std::move(more);
  }
  return out;
}

Result<std::optional<OpenSize>> open_size(const std::vector<std::string>& dimensions) {
  std::optional<OpenSize> out;
  std::vector<std::string> others;
  for (const std::string& text : dimensions) {
    const size_t equals = text.rfind('='), dots = text.find("..", equals == std::string::npos ? text.size() : equals);
    if (dots == std::string::npos) {
      others.push_back(text);
      continue;
    }
    const std::string name = text.substr(0, equals);
    HOIST_TRY(const DimensionValue least, with_kind(ErrorKind::usage, parse_dimension_value(text.substr(0, dots))));
    HOIST_TRY(const DimensionValue most,
              with_kind(ErrorKind::usage, parse_dimension_value(name + "=" + text.substr(dots + 2))));
    if (least.extent < 1 || most.extent < least.extent)
      return usage_error("--dim " + text, "is an empty range", "write " + name + "=1..512");
    if (out) return usage_error("--dim " + text, "leaves a second size open", "a bundle leaves one size open");
    out = OpenSize{{name, least.extent, most.extent}, {}};
  }
  if (out) out->dimensions = std::move(others);
  return out;
}

Result<Sizes> parse_sizes(const std::vector<std::string>& dimensions) {
  Sizes out;
  for (const std::string& text : dimensions) {
    HOIST_TRY(DimensionValue value, with_kind(ErrorKind::usage, parse_dimension_value(text)));
    out.emplace_back(value.name, value.extent);
  }
  return out;
}

Result<size_t> specialisation_of(const BundleInfo& bundle, const Sizes& sizes) {
  if (sizes.empty()) return size_t{0};
  if (bundle.sizes.empty())
    return Diagnostic{"--dim " + sizes_text(sizes), "names a size, and the bundle is compiled for one set of sizes",
                      "compile the model with --dim NAME=N,M"};
  Sizes wanted = bundle.sizes.front();
  std::string there;
  for (const Sizes& one : bundle.sizes) there += (there.empty() ? "" : "; ") + sizes_text(one);
  for (const auto& [name, size] : sizes) {
    const auto found =
        std::find_if(wanted.begin(), wanted.end(), [&name = name](const auto& one) { return one.first == name; });
    if (found == wanted.end())
      return Diagnostic{"--dim " + name, "is not a size that the bundle leaves open", "it has " + there};
    found->second = size;
  }
  const auto found = std::find(bundle.sizes.begin(), bundle.sizes.end(), wanted);
  if (found != bundle.sizes.end()) return static_cast<size_t>(found - bundle.sizes.begin());
  return Diagnostic{"--dim " + sizes_text(wanted), "is not among the sizes of the bundle", "it has " + there};
}

std::string sizes_text(const Sizes& sizes) {
  std::string out;
  for (const auto& [name, size] : sizes) out += fmt::format("{}{}={}", out.empty() ? "" : ", ", name, size);
  return out;
}

nlohmann::ordered_json sizes_json(const Sizes& sizes) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [name, size] : sizes) out[name] = size;
  return out;
}

std::string sizes_suffix(const Sizes& sizes) {
  std::string out;
  for (const auto& [name, size] : sizes) {
    out += '_';
    for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    out += std::to_string(size);
  }
  return out;
}

}  // namespace hoist
