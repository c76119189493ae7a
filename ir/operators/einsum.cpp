#include "ir/operators/einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/expression.h"

namespace hoist {
namespace {

// An operand that is left to be multiplied.
struct Factor {
  Expr array;
  EinsumLabels labels;
};

double work(const Einsum& einsum, const std::set<int>& labels) {
  double out = 1;
  for (int label : labels) out *= static_cast<double>(einsum.extents.at(label));
  return out;
}

std::set<int> labels_of_both(const EinsumLabels& a, const EinsumLabels& b) {
  std::set<int> out(a.begin(), a.end());
  out.insert(b.begin(), b.end());
  return out;
}

// The two factors whose product is cheapest; of many the last two, since comparing all pairs takes longer than it
// saves.
std::pair<size_t, size_t> next_pair(const Einsum& einsum, const std::vector<EinsumLabels>& factors) {
  constexpr size_t many = 64;
  std::pair<size_t, size_t> best = {factors.size() - 2, factors.size() - 1};
  if (factors.size() > many) return best;
  double least = work(einsum, labels_of_both(factors[best.first], factors[best.second]));
  for (size_t i = 0; i < factors.size(); ++i) {
    for (size_t k = i + 1; k < factors.size(); ++k) {
      const double cost = work(einsum, labels_of_both(factors[i], factors[k]));
      if (cost < least) best = {i, k}, least = cost;
    }
  }
  return best;
}

// A product of two: which, and what of their dimensions somebody still needs.
struct Contraction {
  size_t first = 0, second = 0;
  EinsumLabels result;
};

struct Order {
  std::vector<Contraction> contractions;
  double work = 0;
};

// The second factor goes, its product with the first takes the first one's place.
Order cheapest_order(const Einsum& einsum) {
  Order out;
  std::vector<EinsumLabels> factors = einsum.operands;
  while (factors.size() > 1) {
    const auto [first, second] = next_pair(einsum, factors);
    const std::set<int> both = labels_of_both(factors[first], factors[second]);
    out.work += work(einsum, both);
    std::set<int> needed(einsum.result.begin(), einsum.result.end());
    for (size_t i = 0; i < factors.size(); ++i) {
      if (i != first && i != second) needed.insert(factors[i].begin(), factors[i].end());
    }
    EinsumLabels left;
    for (int label : both) {
      if (needed.count(label) != 0) left.push_back(label);
    }
    if (factors.size() == 2) left = einsum.result;
    out.contractions.push_back({first, second, left});
    factors[first] = left;
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(second));
  }
  return out;
}

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

}  // namespace

Expr einsum_in_pairs(const Spec& call) {
  if (call.children.size() < 3) return nullptr;
  auto equation = call.operation->attributes.find("equation");
  if (equation == call.operation->attributes.end()) return nullptr;
  std::vector<std::vector<int64_t>> shapes;
  for (Expr operand : call.children) shapes.push_back(shape_of(operand->type));
  const auto parsed = parse_einsum(std::get<std::string>(equation->second), shapes);
  if (!parsed || parsed->extents.size() > letters.size()) return nullptr;
  const Order order = cheapest_order(*parsed);
  std::set<int> all;
  for (const auto& [label, n] : parsed->extents) all.insert(label);
  if (order.work >= work(*parsed, all)) return nullptr;
  const auto term = [&](const EinsumLabels& labels) {
    std::string out;
    for (int label : labels) out += letters[static_cast<size_t>(std::distance(all.begin(), all.find(label)))];
    return out;
  };
  std::vector<Factor> factors;
  for (size_t i = 0; i < call.children.size(); ++i) factors.push_back({call.children[i], parsed->operands[i]});
  for (const Contraction& step : order.contractions) {
    Factor& first = factors[step.first];
    const Factor& second = factors[step.second];
    OperatorCall pair = *call.operation;
    pair.attributes = {
        {"equation", fmt::format("{},{}->{}", term(first.labels), term(second.labels), term(step.result))}};
    const auto product = operator_call(std::move(pair), {first.array, second.array});
    HOIST_CHECK(product.ok(), product.errors()[0].text());
    first = {*product, step.result};
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(step.second));
  }
  return factors[0].array;
}

}  // namespace hoist
