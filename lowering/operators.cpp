#include "lowering/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "lowering/operators/families.h"
#include "lowering/operators/support.h"

namespace hoist {
namespace {

std::vector<OperatorRow> joined() {
  std::vector<OperatorRow> rows;
  for (auto family : {operators::elementwise_operators, operators::activation_operators, operators::matrix_operators,
                      operators::convolution_operators, operators::pooling_operators, operators::reduction_operators,
                      operators::normalisation_operators, operators::shape_operators, operators::movement_operators,
                      operators::gather_operators, operators::resize_operators, operators::quantisation_operators}) {
    for (const OperatorRow& r : family()) rows.push_back(r);
  }
  std::sort(rows.begin(), rows.end(), [](const OperatorRow& a, const OperatorRow& b) {
    return std::tie(a.domain, a.name) < std::tie(b.domain, b.name);
  });
  return rows;
}

std::string_view plain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

bool takes(Takes what, Scalar s) {
  switch (what) {
    case Takes::anything:
      return true;
    case Takes::numbers:
      return s != Scalar::boolean;
    case Takes::floats:
      return is_float(s);
    case Takes::integers:
      return is_integer(s);
    case Takes::booleans:
      return s == Scalar::boolean;
  }
  return false;
}

// What every operator may rely on: its inputs are arrays of scalars with constant extents, as many as the row says.
Result<Nothing> check_inputs(const OperatorContext& c, const OperatorRow& row) {
  HOIST_CHECK(c.inputs.size() == c.layer.inputs.size() && c.constants.size() == c.inputs.size(),
              "one expression and one constant for each input of the layer");
  auto count = static_cast<int>(c.inputs.size());
  if (count < row.least_inputs || (row.most_inputs >= 0 && count > row.most_inputs)) {
    return operators::fault(fmt::format("{} takes {} to {} inputs, found {}", row.name, row.least_inputs,
                                        row.most_inputs < 0 ? "any number of" : std::to_string(row.most_inputs),
                                        count));
  }
  for (int i = 0; i < count; ++i) {
    Expr x = c.inputs[static_cast<size_t>(i)];
    if (x == nullptr) {
      if (i < row.least_inputs)
        return operators::fault(fmt::format("input {} of {} is left out, but needed", i, row.name));
      continue;
    }
    for (const Nat& n : sizes_of(x->type)) {
      if (!n.is_constant()) {
        return operators::fault(fmt::format("input {} has a dimension of unknown extent {}", i, n.text()),
                                "give it with --dim");
      }
    }
    if (!leaf_of(x->type)->is_scalar())
      return operators::fault(fmt::format("input {} is {}, not a tensor", i, text(x->type)));
  }
  if (count > 0 && c.inputs[0] != nullptr && !takes(row.takes, operators::element_of(c.inputs[0]))) {
    return operators::fault(fmt::format("{} takes {}, found {}", row.name, name_of(row.takes),
                                        hoist::row(operators::element_of(c.inputs[0])).name));
  }
  return Nothing{};
}

Result<std::vector<Expr>> lower_row(const OperatorContext& c) {
  const OperatorRow* row = find_operator(c.layer.domain, c.layer.operation, c.opset);
  if (row == nullptr) {
    std::string domain = c.layer.domain.empty() ? "" : c.layer.domain + ".";
    return operators::fault(
        fmt::format("operator {}{} of version {} is not supported", domain, c.layer.operation, c.opset),
        "hoist operators lists what is");
  }
  HOIST_TRY_VOID(check_inputs(c, *row));
  HOIST_TRY(auto results, row->lower(c));
  if (results.size() < c.layer.outputs.size()) {
    return operators::fault(
        fmt::format("{} gives {} outputs here, the layer names {}", row->name, results.size(), c.layer.outputs.size()));
  }
  results.resize(c.layer.outputs.size());
  return results;
}

}  // namespace

std::string_view name_of(Takes takes) {
  constexpr std::string_view names[] = {"anything", "numbers", "floats", "integers", "booleans"};
  return names[static_cast<size_t>(takes)];
}

std::span<const OperatorRow> operator_table() {
  static const std::vector<OperatorRow> rows = joined();
  return rows;
}

const OperatorRow* find_operator(std::string_view domain, std::string_view name, int64_t opset) {
  domain = plain(domain);
  std::span<const OperatorRow> rows = operator_table();
  auto place = std::lower_bound(rows.begin(), rows.end(), std::tie(domain, name),
                                [](const OperatorRow& r, const auto& key) { return std::tie(r.domain, r.name) < key; });
  if (place == rows.end() || place->domain != domain || place->name != name || opset < place->since) return nullptr;
  return &*place;
}

Result<std::vector<Expr>> lower_layer(const OperatorContext& context) {
  auto results = lower_row(context);
  if (results.ok()) return results;
  Diagnostics problems = results.errors();
  for (Diagnostic& d : problems) {
    if (d.where.empty()) d.where = context.layer.name;
  }
  return problems;
}

}  // namespace hoist
