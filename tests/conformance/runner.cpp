#include "tests/conformance/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "frontend/file/tensor_file.h"
#include "frontend/frontend.h"
#include "ir/base/strings.h"
#include "ir/operators/operators.h"
#include "ir/program/program_values.h"
#include "lowering/pipeline/passes.h"

namespace hoist::conformance {
namespace {

namespace fs = std::filesystem;

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, "][")); }

// The ulp of 1 in a float type: results may always differ by one rounding.
double epsilon(Scalar scalar) {
  switch (scalar) {
    case Scalar::f16:
      return std::ldexp(1, -10);
    case Scalar::bf16:
      return std::ldexp(1, -7);
    default:
      return 0;
  }
}

// Evaluates every definition in order.
Result<std::vector<Tensor>> run_program(Program program, const std::vector<Tensor>& inputs, bool passes) {
  PassOptions exact;
  exact.strict = true;
  exact.folding = {0, 0};
  if (passes) {
    exact.execute = true;
    Program rewritten = program;
    HOIST_TRY_VOID(run_passes(rewritten, Pass::calls, exact));
    // The runtime executes control flow; the evaluator uses the original calls instead.
    if (rewritten.controls.empty()) program = std::move(rewritten);
  }
  return program_outputs(program, inputs);
}

Result<Nothing> run_data_set(const fs::path& model, const fs::path& data, const Agreement& agreement, bool passes) {
  HOIST_TRY(const ValueKinds kinds, value_kinds(model));
  HOIST_TRY(auto inputs, read_tensors(data, "input", kinds.inputs));
  HOIST_TRY(const auto recorded, read_tensors(data, "output", kinds.outputs));
  const std::vector<Tensor>& wanted = recorded.tensors;
  HOIST_TRY(FittedModel fitted, read_model_for(model, reading_options(), inputs.tensors, inputs.layout));
  std::vector<Tensor> taken;
  for (size_t place : fitted.inputs) taken.push_back(inputs.tensors[place]);
  HOIST_TRY(auto outputs, run_program(std::move(fitted.program), taken, passes));
  if (outputs.size() != wanted.size() || outputs.empty()) {
    return Diagnostic{"", fmt::format("the model has {} outputs, the data {}", outputs.size(), wanted.size()), ""};
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    HOIST_TRY_VOID(compare(fmt::format("output {}", i), outputs[i], wanted[i], agreement));
  return Nothing{};
}

}  // namespace

Agreement agreement_of(const std::string& name) {
  Agreement out;
  if (name.starts_with("test_dft")) out.absolute = 1e-6;
  if (name.starts_with("test_bernoulli")) out.values = false;
  return out;
}

Result<RecordedTensors> read_tensors(const fs::path& folder, const std::string& role,
                                     const std::vector<ValueKind>& kinds) {
  RecordedTensors out;
  for (size_t i = 0;; ++i) {
    fs::path path = folder / fmt::format("{}_{}.pb", role, i);
    if (!fs::exists(path)) return out;
    HOIST_TRY(auto value, read_recorded_value(path, i < kinds.size() ? kinds[i] : ValueKind::tensor));
    out.layout.push_back(value ? std::optional(value->size()) : std::nullopt);
    if (value) out.tensors.insert(out.tensors.end(), value->begin(), value->end());
  }
}

Result<Nothing> compare(const std::string& name, const Tensor& actual, const Tensor& wanted,
                        const Agreement& agreement) {
  if (actual.scalar() != wanted.scalar() || actual.shape() != wanted.shape()) {
    return Diagnostic{name,
                      fmt::format("is {}{}, recorded is {}{}", shape_text(actual.shape()), row(actual.scalar()).name,
                                  shape_text(wanted.shape()), row(wanted.scalar()).name),
                      ""};
  }
  for (int64_t i = 0; agreement.values && i < actual.size(); ++i) {
    if (!is_float(actual.scalar())) {
      if (actual.integer_at(i) == wanted.integer_at(i)) continue;
      if (actual.scalar() == Scalar::string)
        return Diagnostic{
            name,
            fmt::format("element {} is \"{}\", recorded is \"{}\"", i, string_at(actual, i), string_at(wanted, i)), ""};
      return Diagnostic{
          name, fmt::format("element {} is {}, recorded is {}", i, actual.integer_at(i), wanted.integer_at(i)), ""};
    }
    double a = actual.float_at(i), b = wanted.float_at(i);
    double allowed = agreement.absolute + std::max(agreement.relative, 1.01 * epsilon(actual.scalar())) * std::abs(b);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= allowed) continue;
    return Diagnostic{name, fmt::format("element {} is {}, recorded is {}", i, a, b), ""};
  }
  return Nothing{};
}

ReadOptions reading_options() {
  ReadOptions options;
  options.has_operator = [](const std::string& domain, const std::string& name) {
    return find_operator(domain, name, INT64_MAX) != nullptr;
  };
  return options;
}

Result<Nothing> run_case(const fs::path& folder, const Agreement& agreement, bool passes) {
  int sets = 0;
  for (;; ++sets) {
    fs::path data = folder / fmt::format("test_data_set_{}", sets);
    if (!fs::exists(data)) break;
    HOIST_TRY_VOID(run_data_set(folder / "model.onnx", data, agreement, passes));
  }
  if (sets == 0) return Diagnostic{"", "no recorded data", ""};
  return Nothing{};
}

Result<Case> read_case(const fs::path& folder) {
  HOIST_TRY(const ValueKinds kinds, value_kinds(folder / "model.onnx"));
  HOIST_TRY(const auto recorded, read_tensors(folder / "test_data_set_0", "input", kinds.inputs));
  const std::vector<Tensor>& inputs = recorded.tensors;
  HOIST_TRY(FittedModel fitted, read_model_for(folder / "model.onnx", reading_options(), inputs, recorded.layout));
  Case out;
  out.program = std::move(fitted.program);
  for (size_t place : fitted.inputs) out.inputs.push_back(inputs[place]);
  return out;
}

std::vector<fs::path> cases_in(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path() / "model.onnx") && fs::exists(entry.path() / "test_data_set_0"))
      out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::map<std::string, std::string>> read_gaps(const fs::path& path) {
  std::ifstream file(path);
  if (!file) return Diagnostic{path.filename().string(), "cannot be read", ""};
  std::map<std::string, std::string> gaps;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    size_t colon = line.find(": ");
    if (colon == std::string::npos || colon + 2 == line.size()) {
      return Diagnostic{fmt::format("{}:{}", path.filename().string(), number), "expected NAME: REASON", ""};
    }
    if (!gaps.emplace(line.substr(0, colon), line.substr(colon + 2)).second) {
      return Diagnostic{fmt::format("{}:{}", path.filename().string(), number),
                        line.substr(0, colon) + " is listed twice", ""};
    }
  }
  return gaps;
}

std::string write_gaps(const std::string& heading, const std::map<std::string, std::string>& gaps) {
  std::string out = heading;
  for (const auto& [name, reason] : gaps) out += name + ": " + reason + "\n";
  return out;
}

}  // namespace hoist::conformance
