// The table of neural rules. Each row changes values deliberately with a stated error, and contains all properties of
// the rule: texts, error model, requirements, and the format or scheme that it applies. `hoist rules` lists the table,
// tests run every row, and the budget solver chooses among the rows that apply at a site. A new rule is a new row; no
// code compares names of rules.
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
/// bound: a certified largest error. noise: a mean squared error predicted from statistics. measured: found by running
/// the model.
enum class ErrorModel : uint8_t { bound, noise, measured };
std::string_view name_of(RuleFamily family);
std::string_view name_of(ErrorModel model);

enum class ActivationUse : uint8_t { as_is, quantised, dynamic };

/// The scheme of a contraction: storage of its weights, type of its activation, and corrections that improve the
/// weights.
struct ProductScheme {
  WeightFormat weights;
  ActivationUse activation = ActivationUse::as_is;
  std::optional<Scalar> input =
      {};                  ///< the required storage type of the activation; always set for integer contractions
  bool corrected = false;  ///< the bias compensates the mean error
  bool adaptive = false;   ///< weights are rounded for the smallest error on calibration data
  bool half = false;       ///< products and sums in f16 (sums.h): only on devices with f16 arithmetic
};

/// The float types, besides f32, that a device multiplies in.
struct DeviceArithmetic {
  bool half = false;  ///< f16 (Profile::half)
  bool bf16 = false;  ///< bf16 matrix instructions (Profile::matrix_tile)

  bool has(std::optional<Scalar> scalar) const;  ///< True if the device has the type; true if none is required.
};
DeviceArithmetic arithmetic_of(const Profile& profile);

struct NeuralRule {
  std::string_view name;  ///< "w8a8", "f16", "tanh-rational"
  RuleFamily family;
  SiteKind kind;
  ErrorModel error;
  std::string_view what;                      ///< one line
  std::string_view precondition;              ///< one line of text; why_not() decides
  std::string_view source;                    ///< paper or section; "" for hoist's own rules
  bool calibrated = false;                    ///< needs statistics of the affected values
  std::optional<ValueFormat> stored = {};     ///< format of a rule for values
  std::optional<ProductScheme> product = {};  ///< scheme of a rule for contractions

  /// The required storage type of the contraction's activation; nothing if every type is accepted.
  std::optional<Scalar> input() const { return product ? product->input : std::nullopt; }
  bool half() const { return product && product->half; }
  /// The arithmetic type of a rule that only pays off on devices that support it; otherwise nothing.
  std::optional<Scalar> arithmetic() const;
};

std::span<const NeuralRule> neural_rules();

/// Test helper: registers additional rows for the lifetime of this object. Create it before any study; destroy it
/// after.
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

const NeuralRule* find_neural_rule(std::string_view name);  ///< null if there is none
/// The scheme or format of the rule of that name; null if the rule is unknown or of another kind.
const ProductScheme* find_scheme(std::string_view rule);
const ValueFormat* find_value_format(std::string_view rule);
/// True for rules whose contractions multiply and add integers.
bool multiplies_integers(std::string_view rule);
/// True if values under the rule are stored in the form that integer contractions with this input type read: numbers of
/// the type with one scale per tensor.
bool gives(std::string_view rule, Scalar input);
/// The largest magnitude of (number - zero point) of the activation of an integer contraction.
double largest_activation(const ProductScheme& scheme);
/// The reason why the precondition does not hold, for users; nothing if it holds.
std::optional<std::string> why_not(const NeuralRule& rule, const Site& site, const Program& program);

}  // namespace hoist
