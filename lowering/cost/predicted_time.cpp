#include "lowering/cost/predicted_time.h"

#include <algorithm>
#include <numeric>

namespace hoist {
namespace {

// The time of a part is `factor` times that at the full rate. Fitted to 18,819 kernels of 134 networks and blocks on
// two threads of a Xeon, by the error of whole networks, and weighed against 16 networks and 87 blocks on one thread of
// a Zen 5. On the Xeon, with the peaks of the same process, the sums of kernels are within 15 % of the measured ones
// for 68 % of all and 74 % of the 90 published architectures, within 20 % for 83 % and 87 %; on the Zen 5 for 55 % and
// 66 %. One fit for the Xeon alone has 72 % and 81 % within 15 % in cross-validation over networks, boosted trees on
// 100 features of terms have 77 % and 84 %. The rest is layouts that defeat a kernel's form (narrow groups of channels,
// up to 10 times), small recurrent steps, numbers that a term does not show (subnormals), and the machine: a run
// differs from the sum of its kernels by more than 15 % for a fifth of the networks.
constexpr double factors[time_parts] = {
    1.03,  // contractions: tiles reach 97 % of the best product
    3,     // operations: loads, stores and positions take as much as they do
    1.1,   // functions
    0.35,  // weights: a part stays in caches, and a copy also writes
    0.5,   // arrays in caches: a kernel reads or writes more than it copies
    0.6,   // arrays beyond caches, some of them just written
    1.2,   // steps
};

double factor_of(TimePart part) { return factors[static_cast<size_t>(part)]; }

double seconds_at(double amount, int64_t millions) {
  return millions > 0 ? amount / (1e6 * static_cast<double>(millions)) : 0;
}

}  // namespace

std::string_view name_of(TimePart part) {
  constexpr std::string_view names[] = {"contractions", "operations", "functions", "weights",
                                        "arrays",       "memory",     "step"};
  return names[static_cast<size_t>(part)];
}

double PredictedTime::seconds() const { return std::accumulate(parts.begin(), parts.end(), 0.0); }

PredictedTime predicted_time(const KernelLoad& load, const Profile& profile) {
  const Rates& rates = profile.rates;
  PredictedTime out;
  if (!rates.known()) return out;
  const auto set = [&](TimePart part, double seconds) {
    out.parts[static_cast<size_t>(part)] = factor_of(part) * seconds;
  };
  const Work& work = load.work;
  const auto of = [&](OperationClass kind, int64_t inside) {
    return static_cast<double>(std::max<int64_t>(0, work.of(kind) - inside));
  };
  // A product of bytes widens both operands, multiplies and adds; its instruction does all of it.
  const int64_t products = load.on_bytes ? work.products : work.fused, whole = load.on_bytes ? 2 * products : 0;
  set(TimePart::contractions,
      seconds_at(static_cast<double>(products), load.on_bytes ? rates.byte_products : rates.multiply_adds));
  set(TimePart::operations, seconds_at(of(OperationClass::multiply_add, work.fused), rates.multiply_adds) +
                                seconds_at(of(OperationClass::comparison, 0), rates.comparisons) +
                                seconds_at(of(OperationClass::integer, whole), rates.integers) +
                                seconds_at(of(OperationClass::conversion, whole), rates.conversions));
  set(TimePart::functions, seconds_at(of(OperationClass::division, 0), rates.divisions) +
                               seconds_at(of(OperationClass::transcendental, 0), rates.transcendentals));
  // The part of arrays that exceeds a level is moved by the next one. Weights never take less from memory than they
  // would from caches.
  const auto near = static_cast<double>(profile.first_cache * rates.threads),
             caches = std::max(static_cast<double>(profile.second_caches), near);
  const double weights = static_cast<double>(load.all_weights) > caches ? static_cast<double>(load.weights) : 0;
  const double arrays = static_cast<double>(work.bytes()) - weights;
  out.parts[static_cast<size_t>(TimePart::weights)] =
      std::max(factor_of(TimePart::weights) * seconds_at(weights, rates.memory),
               factor_of(TimePart::arrays) * seconds_at(weights, rates.second_caches));
  set(TimePart::arrays, seconds_at(std::min(arrays, near), rates.first_cache) +
                            seconds_at(std::clamp(arrays - near, 0.0, caches - near), rates.second_caches));
  set(TimePart::memory, seconds_at(std::max(0.0, arrays - caches), rates.memory));
  set(TimePart::step, 1e-9 * static_cast<double>(rates.step + (load.shared ? rates.barrier : 0)));
  return out;
}

}  // namespace hoist
