// Products of matrices: MatMul with numpy's batch dimensions, Gemm, Einsum. All take the form on which the strategies
// rely: rows of A against rows of the transposed B, a zip, a map of products, a reduce.
#include "ir/operators/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>

#include "ir/operators/einsum.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

using Product = std::function<Expr(Expr row, Expr column)>;

// Matrices or vectors without batch dimensions.
Expr plain_product(Expr a, Expr b, const Product& product) {
  if (rank_of(a) == 1 && rank_of(b) == 1) return product(a, b);
  if (rank_of(b) == 1) return map([&](Expr row) { return product(row, b); }, a);
  if (rank_of(a) == 1) return map([&](Expr column) { return product(a, column); }, transpose(b));
  return map([&](Expr row) { return map([&](Expr column) { return product(row, column); }, transpose(b)); }, a);
}

// Batch dimensions are maps outside; a side that lacks the dimension is closed over, not copied.
Expr batched_product(Expr a, Expr b, const Product& product) {
  int64_t batch_a = std::max<int64_t>(rank_of(a) - 2, 0), batch_b = std::max<int64_t>(rank_of(b) - 2, 0);
  if (batch_a == 0 && batch_b == 0) return plain_product(a, b, product);
  if (batch_a > batch_b) return map([&](Expr x) { return batched_product(x, b, product); }, a);
  if (batch_a < batch_b) return map([&](Expr y) { return batched_product(a, y, product); }, b);
  if (a->type->size == b->type->size) {
    return map_zip({a, b}, [&](const std::vector<Expr>& p) { return batched_product(p[0], p[1], product); });
  }
  if (a->type->size == Nat(1)) {
    Expr first = at_position(0, a);
    return map([&](Expr y) { return batched_product(first, y, product); }, b);
  }
  Expr first = at_position(0, b);
  return map([&](Expr x) { return batched_product(x, first, product); }, a);
}

Lowered lower_matmul(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY(Expr result, matrix_product(c.inputs[0], c.inputs[1]));
  return one(result);
}

Lowered lower_gemm(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY(double alpha, float_attribute(c, "alpha", 1));
  HOIST_TRY(double beta, float_attribute(c, "beta", 1));
  HOIST_TRY(int64_t transpose_a, integer_attribute(c, "transA", 0));
  HOIST_TRY(int64_t transpose_b, integer_attribute(c, "transB", 0));
  Expr a = c.inputs[0], b = c.inputs[1], bias = input(c, 2);
  if (rank_of(a) != 2 || rank_of(b) != 2) {
    return fault(fmt::format("A and B have to be matrices, found {} and {}", text(extents(a)), text(extents(b))));
  }
  Scalar scalar = element_of(a);
  if (!is_float(scalar)) {
    for (double factor : {alpha, beta}) {
      if (factor != static_cast<double>(static_cast<int64_t>(factor))) {
        return fault(fmt::format("factor {} on integers is not supported", factor));
      }
    }
  }
  if (transpose_a != 0) a = transpose(a);
  Expr columns = transpose_b != 0 ? b : transpose(b);  // [N][K]
  int64_t rows = extents(a)[0], inner = extents(a)[1], width = extents(columns)[0];
  if (inner != extents(columns)[1]) {
    return fault(fmt::format("inner dimensions differ: {} of A and {} of B", inner, extents(columns)[1]));
  }
  if (beta == 0) bias = nullptr;
  if (bias != nullptr) {
    Shape s = extents(bias);
    bool fits = s.size() <= 2 && (s.empty() || s.back() == 1 || s.back() == width) &&
                (s.size() < 2 || s[0] == 1 || s[0] == rows);
    if (!fits) return fault(fmt::format("C {} does not broadcast to [{}][{}]", text(s), rows, width));
  }
  if (bias != nullptr && rank_of(bias) == 2 && extents(bias)[0] == 1 && rows != 1) bias = at_position(0, bias);
  auto cell = [&](Expr row, Expr column, Expr added) {
    Number total = dot(row, column);
    if (alpha != 1) total = total * alpha;
    if (added != nullptr) total = total + (beta == 1 ? Number(added) : Number(added) * beta);
    return total.e;
  };
  auto line = [&](Expr row, Expr added) {
    if (added != nullptr && rank_of(added) == 1 && extents(added)[0] == 1 && width != 1) added = at_position(0, added);
    if (added != nullptr && rank_of(added) == 1) {
      return map_zip({columns, added}, [&](const std::vector<Expr>& p) { return cell(row, p[0], p[1]); });
    }
    return map([&](Expr column) { return cell(row, column, added); }, columns);
  };
  if (bias != nullptr && rank_of(bias) == 2) {
    return one(map_zip({a, bias}, [&](const std::vector<Expr>& p) { return line(p[0], p[1]); }));
  }
  return one(map([&](Expr row) { return line(row, bias); }, a));
}

// ---- Einsum
// ------------------------------------------------------------------------------------------------------------

using Labels = EinsumLabels;

Result<Labels> labels_of(const std::string& term, int64_t rank) {
  Labels out;
  size_t dots = term.find("...");
  std::string letters = term;
  if (dots != std::string::npos) letters.erase(dots, 3);
  for (char letter : letters) {
    if (!std::isalpha(static_cast<unsigned char>(letter)))
      return fault("equation holds an unexpected character in " + term);
    out.push_back(letter);
  }
  if (rank < 0) return out;  // of the output, whose ellipsis the caller puts in
  int64_t hidden = rank - static_cast<int64_t>(out.size());
  if (hidden < 0 || (hidden > 0 && dots == std::string::npos)) {
    return fault(fmt::format("term {} names {} dimensions, its input has {}", term, out.size(), rank));
  }
  Labels ellipsis;
  for (int64_t i = hidden; i > 0; --i) ellipsis.push_back(static_cast<int>(-i));
  if (dots != std::string::npos)
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(dots), ellipsis.begin(), ellipsis.end());
  return out;
}

// Takes the diagonal along two dimensions of equal extent; the second one goes.
Expr diagonal(Expr x, int64_t first, int64_t second) {
  int64_t rank = rank_of(x);
  Shape permutation = {first, second};
  for (int64_t i = 0; i < rank; ++i) {
    if (i != first && i != second) permutation.push_back(i);
  }
  Expr front = permute(permutation, x);
  Expr line = map_zip({front, iota(front->type->size, Scalar::i32)},
                      [](const std::vector<Expr>& p) { return index(p[1], p[0]); });
  Shape back;  // the diagonal stands first; it belongs where `first` was
  for (int64_t i = 0; i < rank - 1; ++i) back.push_back(i < first ? i + 1 : i == first ? 0 : i);
  return permute(back, line);
}

// The labels that are left, outermost first: those of the output are maps, the rest are sums.
Expr contract(std::vector<Expr> operands, std::vector<Labels> labels, Labels order, size_t outputs) {
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

Lowered lower_einsum(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY(std::string equation, string_attribute(c, "equation", ""));
  std::vector<Expr> operands = c.inputs;
  std::vector<Shape> shapes;
  for (Expr operand : operands) {
    if (operand == nullptr) return fault("an input is left out");
    shapes.push_back(extents(operand));
  }
  HOIST_TRY(Einsum parsed, parse_einsum(equation, shapes));
  std::vector<Labels>& labels = parsed.operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    Labels& own = labels[i];
    for (size_t k = 0; k < own.size(); ++k) {
      for (size_t l = own.size(); l-- > k + 1;) {
        if (own[l] != own[k]) continue;
        operands[i] = diagonal(operands[i], static_cast<int64_t>(k), static_cast<int64_t>(l));
        own.erase(own.begin() + static_cast<std::ptrdiff_t>(l));
      }
    }
  }
  Labels order = parsed.result;
  const size_t outputs = order.size();
  for (const auto& [label, n] : parsed.extents) {
    if (std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    Shape permutation(labels[i].size());
    for (size_t k = 0; k < permutation.size(); ++k) permutation[k] = static_cast<int64_t>(k);
    auto place = [&](int64_t k) { return std::find(order.begin(), order.end(), labels[i][static_cast<size_t>(k)]); };
    std::sort(permutation.begin(), permutation.end(), [&](int64_t a, int64_t b) { return place(a) < place(b); });
    Labels sorted;
    for (int64_t k : permutation) sorted.push_back(labels[i][static_cast<size_t>(k)]);
    operands[i] = permute(permutation, operands[i]);
    labels[i] = sorted;
  }
  return one(contract(operands, labels, order, outputs));
}

// clang-format off
constexpr auto matrix_rows = std::to_array<OperatorRow>({
  {"", "MatMul", 1, 2, 2, Takes::numbers, lower_matmul,
   "rows of A against columns of B, batch dimensions broadcast; a function, since which dimensions are maps depends on both ranks"},
  {"", "Gemm", 7, 2, 3, Takes::numbers, lower_gemm,
   "alpha * A * B + beta * C, with transposes; a function, since where C stands depends on its extents, and factors of 1 vanish"},
  {"", "Einsum", 12, 1, -1, Takes::numbers, lower_einsum,
   "a sum of products over named dimensions; a function, since its equation is a language of its own", -2, 2, "", 0, einsum_in_pairs},
});
// clang-format on

}  // namespace

Result<Expr> matrix_product(Expr a, Expr b, std::optional<Scalar> wide) {
  const Sizes s = sizes_of(a->type), t = sizes_of(b->type);
  if (s.empty() || t.empty()) return fault("a scalar cannot be a factor of a matrix product", "use Mul");
  const Nat inner_a = s.back(), inner_b = t[t.size() < 2 ? 0 : t.size() - 2];
  if (inner_a != inner_b) {
    return fault(fmt::format("inner dimensions differ: {} of {} and {} of {}", inner_a.text(), text(s), inner_b.text(),
                             text(t)));
  }
  for (size_t i = 3; i <= std::min(s.size(), t.size()); ++i) {
    const Nat n = s[s.size() - i], m = t[t.size() - i];
    if (n != m && n != Nat(1) && m != Nat(1)) {
      return fault(fmt::format("batch dimensions differ: {} of {} and {} of {}", n.text(), text(s), m.text(), text(t)));
    }
  }
  return batched_product(a, b,
                         [&](Expr row, Expr column) { return wide ? wide_dot(*wide, row, column) : dot(row, column); });
}

std::span<const OperatorRow> matrix_operators() { return matrix_rows; }

}  // namespace hoist::operators

namespace hoist {

Result<Einsum> parse_einsum(std::string equation, const std::vector<std::vector<int64_t>>& shapes) {
  using operators::fault;
  Einsum out;
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (char letter : equation.substr(0, arrow)) {
    if (letter == ',')
      terms.emplace_back();
    else
      terms.back() += letter;
  }
  if (terms.size() != shapes.size())
    return fault(fmt::format("equation {} has {} terms for {} inputs", equation, terms.size(), shapes.size()));
  std::map<int, int> uses;
  for (size_t i = 0; i < shapes.size(); ++i) {
    HOIST_TRY(EinsumLabels own, operators::labels_of(terms[i], static_cast<int64_t>(shapes[i].size())));
    std::map<int, int64_t> extents_here;
    for (size_t k = 0; k < own.size(); ++k) {
      const int64_t here = shapes[i][k];
      if (extents_here.try_emplace(own[k], here).first->second != here)
        return fault("a diagonal needs equal extents in " + terms[i]);
      int64_t& n = out.extents.try_emplace(own[k], 1).first->second;
      ++uses[own[k]];
      if (n != here && n != 1 && here != 1)
        return fault(fmt::format("equation {}: a dimension is {} in one input and {} in another", equation, n, here));
      if (n == 1) n = here;
    }
    out.operands.push_back(std::move(own));
  }
  EinsumLabels hidden;
  for (const auto& [label, n] : out.extents) {
    if (label < 0) hidden.push_back(label);
  }
  if (arrow == std::string::npos) {
    out.result = hidden;
    for (const auto& [label, count] : uses) {
      if (label > 0 && count == 1) out.result.push_back(label);
    }
  } else {
    const std::string term = equation.substr(arrow + 2);
    HOIST_TRY(out.result, operators::labels_of(term, -1));
    const size_t dots = term.find("...");
    if (dots != std::string::npos)
      out.result.insert(out.result.begin() + static_cast<std::ptrdiff_t>(dots), hidden.begin(), hidden.end());
  }
  for (int label : out.result) {
    if (out.extents.count(label) == 0 || std::count(out.result.begin(), out.result.end(), label) > 1)
      return fault(fmt::format("equation {}: an output dimension is unknown or named twice", equation));
  }
  return out;
}

}  // namespace hoist
