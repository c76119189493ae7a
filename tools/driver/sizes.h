// Sizes that a model is compiled for, several at once: --dim batch=1,8,32. A bundle then holds a specialisation for
// each combination. Not for what a single --dim means: frontend/model/dimensions.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "backends/bundle/bundle.h"
#include "backends/opencl/bundle_runner.h"
#include "tools/cli/attempt.h"

namespace CLI {
class App;
}

namespace hoist {

/// One combination: what --dim says of it, and the sizes of which there are several.
struct SizeChoice {
  std::vector<std::string> dimensions;  ///< NAME=N
  Sizes sizes;
};

/// Every combination of the sizes, the first ones first; one without sizes where no --dim has several. Wrong use: more
/// than a bundle holds, a size given twice.
Attempt<std::vector<SizeChoice>> size_choices(const std::vector<std::string>& dimensions);

/// --dim of a command that takes a bundle.
void add_size_option(CLI::App& command, Sizes& sizes);
Attempt<Sizes> parse_sizes(const std::vector<std::string>& dimensions);

/// Which of a bundle's specialisations has these sizes, and of those that are not named the first one's.
Attempt<size_t> specialisation_of(const BundleInfo& bundle, const Sizes& sizes);

/// "batch=8, length=16", and for names of functions "_batch8_length16".
std::string sizes_text(const Sizes& sizes);
std::string sizes_suffix(const Sizes& sizes);
nlohmann::ordered_json sizes_json(const Sizes& sizes);  ///< {"batch": 8, "length": 16}

}  // namespace hoist
