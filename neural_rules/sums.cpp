#include "neural_rules/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/onnx_type.h"
#include "neural_rules/fresh_names.h"

namespace hoist {

std::span<const RuleRow> sum_rule_rows() {
  static const std::array<RuleRow, 1> rows = {
      RuleRow{std::string(half_rule), "", "x: [n](f32, f32)", "reduce (\\a b. a + b) 0f32 (map (\\p. p.0 * p.1) x)",
              "cast f32 (reduce (\\a b. a + b) 0f16 (map (\\p. cast f16 p.0 * cast f16 p.1) x))",
              fmt::format("n <= {}", half_terms), RuleClass::neural, "factors, products and their sum in f16"}};
  return rows;
}

const RuleTable& sum_rule_table() {
  static const RuleTable table = [] {
    auto loaded = RuleTable::load(sum_rule_rows());
    HOIST_CHECK(loaded.ok(), "the table of rules for sums is wrong: " + (loaded.ok() ? "" : loaded.errors()[0].text()));
    return *loaded;
  }();
  return table;
}

void write_half_products(Graph& graph, const std::vector<std::string>& layers) {
  FreshNames names(graph);
  std::vector<Layer> out;
  const auto cast = [&](Scalar to, const std::string& from, const std::string& result) {
    out.push_back({names.fresh(result + "/cast"), "Cast", "", {{"to", onnx_type(to)}}, {from}, {result}});
  };
  for (Layer& layer : graph.layers) {
    if (std::find(layers.begin(), layers.end(), layer.name) == layers.end()) {
      out.push_back(std::move(layer));
      continue;
    }
    for (std::string& input : layer.inputs) {
      if (input.empty()) continue;
      const std::string half = names.fresh(layer.name + "/" + input + "/f16");
      cast(Scalar::f16, input, half);
      input = half;
    }
    const std::string result = layer.outputs[0];
    layer.outputs[0] = names.fresh(result + "/f16");
    out.push_back(layer);
    cast(Scalar::f32, layer.outputs[0], result);
  }
  graph.layers = std::move(out);
}

}  // namespace hoist
