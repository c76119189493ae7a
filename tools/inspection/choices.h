// The orders of dimensions in which values are stored, with their costs and the best alternatives, the layers that run
// for a few samples of a batch at a time, and the values that are computed again. For hoist explain --choices.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lowering/layout/orders.h"
#include "lowering/plan/recompute.h"
#include "tools/driver/model.h"

namespace hoist {

struct LayoutChoices {
  struct Choice {
    std::string value, layer;  ///< the first layer that the kernel computes
    ChosenOrder chosen;
  };
  std::vector<Choice> choices;       ///< of values with at least two dimensions, in the order of the program
  double cost = 0;                   ///< of all values, in vector instructions of one core
  double least = 0;                  ///< of the orders that are chosen by cost
  double bound = 0;                  ///< no choice costs less
  double unit = 0;                   ///< seconds of a vector instruction of one core; 0 without measured rates
  std::vector<std::string> batches;  ///< loops over parts of the batch, each a sentence with its cost
  std::vector<Recomputation> again;  ///< values that are computed again to stay within --memory
};

/// The orders that a compilation with these options uses. `layer`: only values of kernels that compute it; "" for all.
/// Errors: no kernel computes the layer, or the device is a GPU, whose loads have no costs.
Result<LayoutChoices> layout_choices(Program program, const ModelOptions& options, const std::string& layer);
/// One line for each value, one for the program, and one for each loop and each value that is computed again.
std::string choices_text(const LayoutChoices& choices);
nlohmann::ordered_json to_json(const LayoutChoices& choices);

}  // namespace hoist
