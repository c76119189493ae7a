// Sizes that a model is compiled for, several at once: --dim batch=1,8,32. The bundle then holds a specialisation for
// each combination. For the meaning of a single --dim see frontend/model/dimensions.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "backends/bundle/bundle.h"
#include "backends/opencl/bundle_runner.h"
#include "ir/base/result.h"

namespace hoist {

/// One combination: its --dim options, and the sizes that have several values.
struct SizeChoice {
  std::vector<std::string> dimensions;  ///< NAME=N
  Sizes sizes;
};

/// Every combination of the sizes, the first sizes first; a single one without sizes if no --dim has several values.
/// Wrong use: more combinations than a bundle may hold, or a size given twice.
Result<std::vector<SizeChoice>> size_choices(const std::vector<std::string>& dimensions);

/// The size that a run chooses: --dim length=1..512, which leaves the other options. Wrong use: more than one, or an
/// empty range.
struct OpenSize {
  PlanSize size;
  std::vector<std::string> dimensions;  ///< the other options
};
Result<std::optional<OpenSize>> open_size(const std::vector<std::string>& dimensions);

Result<Sizes> parse_sizes(const std::vector<std::string>& dimensions);

/// The index of the bundle's specialisation with these sizes; sizes that are not named match the first
/// specialisation's.
Result<size_t> specialisation_of(const BundleInfo& bundle, const Sizes& sizes);

/// "batch=8, length=16"; the suffix of function names is "_batch8_length16".
std::string sizes_text(const Sizes& sizes);
std::string sizes_suffix(const Sizes& sizes);
nlohmann::ordered_json sizes_json(const Sizes& sizes);  ///< {"batch": 8, "length": 16}

}  // namespace hoist
