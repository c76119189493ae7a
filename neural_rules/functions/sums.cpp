#include "neural_rules/functions/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/program/onnx_type.h"
#include "ir/program/program_builder.h"

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

Result<Program> with_half_products(const Program& program, const std::vector<std::string>& layers) {
  if (layers.empty()) return program;
  ValueNames names(program);
  std::vector<NamedCall> out;
  const auto cast = [&](Scalar to, const std::string& from, const std::string& result) {
    out.push_back({names.make(result + "/cast"), "Cast", "", {{"to", onnx_type(to)}}, {from}, {result}});
  };
  for (NamedCall& call : named_calls(program)) {
    if (std::find(layers.begin(), layers.end(), call.name) == layers.end()) {
      out.push_back(std::move(call));
      continue;
    }
    for (std::string& input : call.inputs) {
      if (input.empty()) continue;
      const std::string half = names.make(call.name + "/" + input + "/f16");
      cast(Scalar::f16, input, half);
      input = half;
    }
    const std::string result = call.outputs[0];
    call.outputs[0] = names.make(result + "/f16");
    out.push_back(call);
    cast(Scalar::f32, call.outputs[0], result);
  }
  return with_calls(program, out);
}

}  // namespace hoist
