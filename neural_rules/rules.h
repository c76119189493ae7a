// The table of neural rules: each row changes values on purpose and says by how much. `hoist rules` lists it, tests run
// every row, the budget solver chooses among the rows that apply at a site.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "neural_rules/site.h"

namespace hoist {

enum class RuleFamily : uint8_t { storage, weights, arithmetic, quantisation, function };
/// bound: a certified largest error. noise: a mean squared error predicted from statistics. measured: by running it.
enum class ErrorModel : uint8_t { bound, noise, measured };
std::string_view name_of(RuleFamily family);
std::string_view name_of(ErrorModel model);

struct NeuralRule {
  std::string_view name;  ///< "w8a8", "f16", "tanh-rational"
  RuleFamily family;
  SiteKind kind;
  ErrorModel error;
  std::string_view what;          ///< one line
  std::string_view precondition;  ///< one line, for people; applies() decides
  std::string_view source;        ///< paper or section; "" where it is ours
  bool calibrated = false;        ///< needs statistics of the values concerned
  std::string_view input_format;  ///< product rules that read a quantised activation: the prefix of value rules that
                                  ///< give it ("u8"); "" where any will do
  bool half = false;              ///< worth it only where the device computes in f16 (Profile::half)
};

std::span<const NeuralRule> neural_rules();
const NeuralRule* find_neural_rule(std::string_view name);  ///< null when there is none
/// Whether the precondition holds; the reason when not, for people.
std::optional<std::string> why_not(const NeuralRule& rule, const Site& site, const Graph& graph);

}  // namespace hoist
