// The table of neural rules: each row changes values on purpose and says by how much, and holds all that is known of
// the rule: what people read, its error model, what it needs, and the format or scheme that it puts in place. `hoist
// rules` lists it, tests run every row, the budget solver chooses among the rows that apply at a site. A new rule is a
// new row; nobody compares names of rules.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/target/profile.h"
#include "neural_rules/formats/formats.h"
#include "neural_rules/formats/weights.h"
#include "neural_rules/model/site.h"

namespace hoist {

enum class RuleFamily : uint8_t { storage, weights, arithmetic, quantisation, function };
/// bound: a certified largest error. noise: a mean squared error predicted from statistics. measured: by running it.
enum class ErrorModel : uint8_t { bound, noise, measured };
std::string_view name_of(RuleFamily family);
std::string_view name_of(ErrorModel model);

enum class ActivationUse : uint8_t { as_is, quantised, dynamic };

/// How a product computes: how its weights are stored, which activation it reads, which helpers improve the weights
/// first.
struct ProductScheme {
  WeightFormat weights;
  ActivationUse activation = ActivationUse::as_is;
  std::optional<Scalar> input = {};  ///< the type that the activation has to be stored in, of integer products always
  bool corrected = false;            ///< the bias takes up the mean error
  bool adaptive = false;             ///< weights are rounded for the least error on calibration data
  bool half = false;                 ///< products and sums are formed in f16 (sums.h): only where the device does so
};

/// What floats a device multiplies in beside f32.
struct DeviceArithmetic {
  bool half = false;  ///< f16 (Profile::half)
  bool bf16 = false;  ///< matrices of bf16 (Profile::matrix_tile)

  bool has(std::optional<Scalar> scalar) const;  ///< always, where it is nothing
};
DeviceArithmetic arithmetic_of(const Profile& profile);

struct NeuralRule {
  std::string_view name;  ///< "w8a8", "f16", "tanh-rational"
  RuleFamily family;
  SiteKind kind;
  ErrorModel error;
  std::string_view what;                      ///< one line
  std::string_view precondition;              ///< one line, for people; applies() decides
  std::string_view source;                    ///< paper or section; "" where it is ours
  bool calibrated = false;                    ///< needs statistics of the values concerned
  std::optional<ValueFormat> stored = {};     ///< of a rule for values
  std::optional<ProductScheme> product = {};  ///< of a rule for products

  /// The type in which the product's activation has to be stored; nothing where any will do.
  std::optional<Scalar> input() const { return product ? product->input : std::nullopt; }
  bool half() const { return product && product->half; }
  /// The type that only some devices multiply in, where the rule is worth it on those alone.
  std::optional<Scalar> arithmetic() const;
};

std::span<const NeuralRule> neural_rules();

/// Rows beside those of the table, as long as this lives. For tests of what one more row does: no study may have begun
/// before, and none may outlive it.
class ScopedNeuralRules {
 public:
  explicit ScopedNeuralRules(const std::vector<NeuralRule>& rows);
  ~ScopedNeuralRules();
  ScopedNeuralRules(const ScopedNeuralRules&) = delete;
  ScopedNeuralRules& operator=(const ScopedNeuralRules&) = delete;

 private:
  std::vector<NeuralRule> rows_;
  const std::vector<NeuralRule>* outer_;
};

const NeuralRule* find_neural_rule(std::string_view name);  ///< null when there is none
/// What the rule of that name puts in place; null where there is none, or it is for something else.
const ProductScheme* find_scheme(std::string_view rule);
const ValueFormat* find_value_format(std::string_view rule);
/// Whether values under the rule are stored as integer products with this input read them: numbers of the type with one
/// scale for the tensor.
bool gives(std::string_view rule, Scalar input);
/// The largest magnitude of (number - zero point) of the activation that an integer product reads.
double largest_activation(const ProductScheme& scheme);
/// Whether the precondition holds; the reason when not, for people.
std::optional<std::string> why_not(const NeuralRule& rule, const Site& site, const Program& program);

}  // namespace hoist
