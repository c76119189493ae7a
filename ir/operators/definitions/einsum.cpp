#include "ir/operators/definitions/einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <set>

#include "ir/operators/definitions/support.h"

namespace hoist::operators {
namespace {

Result<EinsumLabels> labels_in(const std::string& term, int64_t rank) {
  EinsumLabels out;
  size_t dots = term.find("...");
  std::string letters = term;
  if (dots != std::string::npos) letters.erase(dots, 3);
  for (char letter : letters) {
    if (!std::isalpha(static_cast<unsigned char>(letter)))
      return fault("equation holds an unexpected character in " + term);
    out.push_back(letter);
  }
  if (rank < 0) return out;  // labels of the output, into which the caller inserts the ellipsis
  int64_t hidden = rank - static_cast<int64_t>(out.size());
  if (hidden < 0 || (hidden > 0 && dots == std::string::npos)) {
    return fault(fmt::format("term {} names {} dimensions, its input has {}", term, out.size(), rank));
  }
  EinsumLabels ellipsis;
  for (int64_t i = hidden; i > 0; --i) ellipsis.push_back(static_cast<int>(-i));
  if (dots != std::string::npos)
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(dots), ellipsis.begin(), ellipsis.end());
  return out;
}

// Takes the diagonal along two dimensions of equal extent; the second one is removed.
Expr diagonal(Expr x, int64_t first, int64_t second) {
  int64_t rank = rank_of(x);
  Shape permutation = {first, second};
  for (int64_t i = 0; i < rank; ++i) {
    if (i != first && i != second) permutation.push_back(i);
  }
  Expr front = permute(permutation, x);
  Expr line = map_zip({front, iota(front->type->size, Scalar::i32)},
                      [](const std::vector<Expr>& p) { return index(p[1], p[0]); });
  Shape back;  // the diagonal comes first; move it to the position of `first`
  for (int64_t i = 0; i < rank - 1; ++i) back.push_back(i < first ? i + 1 : i == first ? 0 : i);
  return permute(back, line);
}

// The remaining labels, outermost first: labels of the output are maps, the rest are sums.
Expr contract(std::vector<Expr> operands, std::vector<EinsumLabels> labels, EinsumLabels order, size_t outputs) {
  if (order.empty()) {
    Expr value = operands[0];
    for (size_t i = 1; i < operands.size(); ++i) value = operator_multiply(value, operands[i]);
    return value;
  }
  int label = order.front();
  std::vector<size_t> moving;
  int64_t n = 1;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!labels[i].empty() && labels[i].front() == label && operands[i]->type->size != Nat(1))
      n = operands[i]->type->size.value();
  }
  std::vector<Expr> arrays;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (labels[i].empty() || labels[i].front() != label) continue;
    labels[i].erase(labels[i].begin());
    if (operands[i]->type->size != Nat(n))
      operands[i] = at_position(0, operands[i]);
    else
      moving.push_back(i), arrays.push_back(operands[i]);
  }
  order.erase(order.begin());
  Expr mapped = map_zip(arrays, [&](const std::vector<Expr>& parts) {
    std::vector<Expr> inner = operands;
    for (size_t k = 0; k < moving.size(); ++k) inner[moving[k]] = parts[k];
    return contract(inner, labels, order, outputs > 0 ? outputs - 1 : 0);
  });
  return outputs > 0 ? mapped : sum(mapped);
}

}  // namespace

Lowered lower_einsum(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY(std::string equation, string_attribute(c, "equation", ""));
  std::vector<Expr> operands = c.inputs;
  std::vector<Shape> shapes;
  for (Expr operand : operands) {
    if (operand == nullptr) return fault("an input is missing");
    shapes.push_back(extents(operand));
  }
  HOIST_TRY(Einsum parsed, parse_einsum(equation, shapes));
  std::vector<EinsumLabels>& labels = parsed.operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    EinsumLabels& own = labels[i];
    for (size_t k = 0; k < own.size(); ++k) {
      for (size_t l = own.size(); l-- > k + 1;) {
        if (own[l] != own[k]) continue;
        operands[i] = diagonal(operands[i], static_cast<int64_t>(k), static_cast<int64_t>(l));
        own.erase(own.begin() + static_cast<std::ptrdiff_t>(l));
      }
    }
  }
  EinsumLabels order = parsed.result;
  const size_t outputs = order.size();
  for (const auto& [label, n] : parsed.extents) {
    if (std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    Shape permutation(labels[i].size());
    for (size_t k = 0; k < permutation.size(); ++k) permutation[k] = static_cast<int64_t>(k);
    auto place = [&](int64_t k) { return std::find(order.begin(), order.end(), labels[i][static_cast<size_t>(k)]); };
    std::sort(permutation.begin(), permutation.end(), [&](int64_t a, int64_t b) { return place(a) < place(b); });
    EinsumLabels sorted;
    for (int64_t k : permutation) sorted.push_back(labels[i][static_cast<size_t>(k)]);
    operands[i] = permute(permutation, operands[i]);
    labels[i] = sorted;
  }
  return one(contract(operands, labels, order, outputs));
}

}  // namespace hoist::operators

namespace hoist {

EinsumTerms einsum_terms(std::string equation) {
  std::erase(equation, ' ');
  EinsumTerms out{{""}, std::nullopt};
  const size_t arrow = equation.find("->");
  for (char letter : equation.substr(0, arrow)) {
    if (letter == ',')
      out.operands.emplace_back();
    else
      out.operands.back() += letter;
  }
  if (arrow != std::string::npos) out.result = equation.substr(arrow + 2);
  return out;
}

Result<Einsum> parse_einsum(const std::string& equation, const std::vector<std::vector<int64_t>>& shapes) {
  Einsum out;
  const auto [terms, result] = einsum_terms(equation);
  if (terms.size() != shapes.size())
    return operators::fault(
        fmt::format("equation {} has {} terms for {} inputs", equation, terms.size(), shapes.size()));
  std::map<int, int> uses;
  for (size_t i = 0; i < shapes.size(); ++i) {
    HOIST_TRY(EinsumLabels own, operators::labels_in(terms[i], static_cast<int64_t>(shapes[i].size())));
    std::map<int, int64_t> extents_here;
    for (size_t k = 0; k < own.size(); ++k) {
      const int64_t here = shapes[i][k];
      if (extents_here.try_emplace(own[k], here).first->second != here)
        return operators::fault("a diagonal needs equal extents in " + terms[i]);
      int64_t& n = out.extents.try_emplace(own[k], 1).first->second;
      ++uses[own[k]];
      if (n != here && n != 1 && here != 1)
        return operators::fault(
            fmt::format("equation {}: a dimension is {} in one input and {} in another", equation, n, here));
      if (n == 1) n = here;
    }
    out.operands.push_back(std::move(own));
  }
  EinsumLabels hidden;
  for (const auto& [label, n] : out.extents) {
    if (label < 0) hidden.push_back(label);
  }
  if (!result) {
    out.result = hidden;
    for (const auto& [label, count] : uses) {
      if (label > 0 && count == 1) out.result.push_back(label);
    }
  } else {
    HOIST_TRY(out.result, operators::labels_in(*result, -1));
    const size_t dots = result->find("...");
    if (dots != std::string::npos)
      out.result.insert(out.result.begin() + static_cast<std::ptrdiff_t>(dots), hidden.begin(), hidden.end());
  }
  for (int label : out.result) {
    if (out.extents.count(label) == 0 || std::count(out.result.begin(), out.result.end(), label) > 1)
      return operators::fault(fmt::format("equation {}: an output dimension is unknown or named twice", equation));
  }
  return out;
}

namespace {

// An operand that remains to be multiplied.
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

// The two factors whose product is cheapest; of many factors the last two, since comparing all pairs takes longer than
// it saves.
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

// A product of two operands, or sums over one operand, and the dimensions that are still needed.
struct Contraction {
  size_t first = 0;
  std::optional<size_t> second;
  EinsumLabels result;
};

struct Order {
  std::vector<Contraction> contractions;
  double work = 0;
};

// The labels that also occur in the result or in other factors.
EinsumLabels still_needed(const Einsum& einsum, const std::vector<EinsumLabels>& factors, const std::set<int>& labels,
                          size_t first, size_t second) {
  std::set<int> needed(einsum.result.begin(), einsum.result.end());
  for (size_t i = 0; i < factors.size(); ++i) {
    if (i != first && i != second) needed.insert(factors[i].begin(), factors[i].end());
  }
  EinsumLabels out;
  std::set_intersection(labels.begin(), labels.end(), needed.begin(), needed.end(), std::back_inserter(out));
  return out;
}

// Dimensions of one operand alone are summed first. Then the product replaces the first factor, and the second one is
// removed.
Order cheapest_order(const Einsum& einsum) {
  Order out;
  std::vector<EinsumLabels> factors = einsum.operands;
  for (size_t i = 0; i < factors.size(); ++i) {
    const std::set<int> own(factors[i].begin(), factors[i].end());
    EinsumLabels left = still_needed(einsum, factors, own, i, i);
    if (left.size() == own.size()) continue;
    out.work += work(einsum, own);
    out.contractions.push_back({i, std::nullopt, left});
    factors[i] = std::move(left);
  }
  while (factors.size() > 1) {
    const auto [first, second] = next_pair(einsum, factors);
    const std::set<int> both = labels_of_both(factors[first], factors[second]);
    out.work += work(einsum, both);
    const EinsumLabels left = factors.size() == 2 ? einsum.result : still_needed(einsum, factors, both, first, second);
    out.contractions.push_back({first, second, left});
    factors[first] = left;
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(second));
  }
  return out;
}

constexpr std::string_view index_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// The labels of a product of two operands by their use, each in the order of the result or of the first operand.
struct ProductLabels {
  EinsumLabels arrays, rows, columns, sums;
};

std::optional<ProductLabels> product_labels(const EinsumLabels& left, const EinsumLabels& right,
                                            const EinsumLabels& result) {
  const auto holds = [](const EinsumLabels& labels, int label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  };
  ProductLabels out;
  for (int label : result)
    (!holds(right, label) ? out.rows : holds(left, label) ? out.arrays : out.columns).push_back(label);
  for (int label : left) {
    if (holds(result, label)) continue;
    if (!holds(right, label)) return std::nullopt;
    out.sums.push_back(label);
  }
  // No diagonals, and no sums over one operand alone.
  const bool all = left.size() == out.arrays.size() + out.rows.size() + out.sums.size() &&
                   right.size() == out.arrays.size() + out.columns.size() + out.sums.size();
  if (!all || out.rows.empty() || out.columns.empty() || out.sums.empty()) return std::nullopt;
  return out;
}

Expr call_of(const OperatorCall& like, const char* name, Attributes attributes, const std::vector<Expr>& operands) {
  OperatorCall call = like;
  call.name = name;
  call.operands.clear();
  call.attributes = std::move(attributes);
  const auto made = operator_call(std::move(call), operands);
  HOIST_CHECK(made.ok(), made.errors()[0].text());
  return *made;
}

// The array with its labels in another order.
Expr transposed(const OperatorCall& like, Expr array, const EinsumLabels& own, const EinsumLabels& order) {
  if (own == order) return array;
  std::vector<int64_t> permutation;
  for (int label : order) permutation.push_back(std::distance(own.begin(), std::find(own.begin(), own.end(), label)));
  return call_of(like, "Transpose", {{"perm", permutation}}, {array});
}

// The array with its labels in the order of the groups, and each group but the arrays' as one dimension.
Expr grouped(const Einsum& einsum, const OperatorCall& like, Expr array, const EinsumLabels& own,
             const std::vector<EinsumLabels>& groups) {
  EinsumLabels order;
  std::vector<int64_t> shape;
  for (size_t i = 0; i < groups.size(); ++i) {
    order.insert(order.end(), groups[i].begin(), groups[i].end());
    if (i > 0) shape.push_back(1);
    for (int label : groups[i]) {
      if (i > 0)
        shape.back() *= einsum.extents.at(label);
      else
        shape.push_back(einsum.extents.at(label));
    }
  }
  array = transposed(like, array, own, order);
  return shape == shape_of(array->type) ? array : call_of(like, "Reshape", {{"shape", shape}}, {array});
}

// A product of two operands as a call of MatMul, between views of its operands and of its result; null if the equation
// is no such product. Layouts, rules and fusion then see one form of a product.
Expr as_product(const OperatorCall& like, Factor left, Factor right, const EinsumLabels& result, const Einsum& einsum) {
  const Scalar scalar = leaf_of(left.array->type)->scalar;
  if (!is_float(scalar) && row(scalar).bits < 32) return nullptr;
  for (const Factor* factor : {&left, &right}) {
    const std::vector<int64_t> shape = shape_of(factor->array->type);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != einsum.extents.at(factor->labels[i])) return nullptr;  // repeated along that dimension
    }
  }
  // The operand with the result's last dimension has the columns.
  if (!result.empty() && std::find(right.labels.begin(), right.labels.end(), result.back()) == right.labels.end())
    std::swap(left, right);
  const auto labels = product_labels(left.labels, right.labels, result);
  if (!labels) return nullptr;
  const Expr rows = grouped(einsum, like, left.array, left.labels, {labels->arrays, labels->rows, labels->sums});
  const Expr columns =
      grouped(einsum, like, right.array, right.labels, {labels->arrays, labels->sums, labels->columns});
  Expr product = call_of(like, "MatMul", {}, {rows, columns});
  EinsumLabels order = labels->arrays;
  order.insert(order.end(), labels->rows.begin(), labels->rows.end());
  order.insert(order.end(), labels->columns.begin(), labels->columns.end());
  std::vector<int64_t> shape;
  for (int label : order) shape.push_back(einsum.extents.at(label));
  if (shape != shape_of(product->type)) product = call_of(like, "Reshape", {{"shape", shape}}, {product});
  return transposed(like, product, order, result);
}

}  // namespace

Expr einsum_as_products(const Spec& call) {
  if (call.children.size() < 2) return nullptr;
  auto equation = call.operation->attributes.find("equation");
  if (equation == call.operation->attributes.end()) return nullptr;
  std::vector<std::vector<int64_t>> shapes;
  for (Expr operand : call.children) shapes.push_back(shape_of(operand->type));
  const auto parsed = parse_einsum(std::get<std::string>(equation->second), shapes);
  if (!parsed || parsed->extents.size() > index_letters.size()) return nullptr;
  const Order order = cheapest_order(*parsed);
  std::set<int> all;
  for (const auto& [label, n] : parsed->extents) all.insert(label);
  if (order.work >= work(*parsed, all)) {
    if (call.children.size() > 2) return nullptr;
    return as_product(*call.operation, {call.children[0], parsed->operands[0]}, {call.children[1], parsed->operands[1]},
                      parsed->result, *parsed);
  }
  const auto term = [&](const EinsumLabels& labels) {
    std::string out;
    for (int label : labels) out += index_letters[static_cast<size_t>(std::distance(all.begin(), all.find(label)))];
    return out;
  };
  std::vector<Factor> factors;
  for (size_t i = 0; i < call.children.size(); ++i) factors.push_back({call.children[i], parsed->operands[i]});
  for (const Contraction& step : order.contractions) {
    Factor& first = factors[step.first];
    std::string terms = term(first.labels);
    std::vector<Expr> operands = {first.array};
    if (step.second) {
      terms += "," + term(factors[*step.second].labels);
      operands.push_back(factors[*step.second].array);
    }
    Expr sums = step.second ? as_product(*call.operation, first, factors[*step.second], step.result, *parsed) : nullptr;
    if (sums == nullptr) {
      const std::string equation = fmt::format("{}->{}", terms, term(step.result));
      sums = call_of(*call.operation, "Einsum", {{"equation", equation}}, operands);
    }
    first = {sums, step.result};
    if (step.second) factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(*step.second));
  }
  return factors[0].array;
}

}  // namespace hoist
