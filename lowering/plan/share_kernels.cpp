#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "ir/evaluate/evaluate.h"
#include "ir/properties/index_ranges.h"
#include "ir/properties/properties.h"
#include "lowering/cost/work.h"
#include "lowering/plan/rows.h"
#include "lowering/terms/materialised.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// The region of the value in its array. Panels of weights are the whole array.
Region region_of(const Storage& s) {
  const std::vector<int64_t> array = s.array_shape();
  if (s.panel > 0) return {array, std::vector<int64_t>(array.size(), 0), array};
  return {array, s.before, s.stored_shape()};
}

// True if every finite element of the constant lies in the domain, which may come from untrusted text.
bool lies_in(const Tensor& constant, Domain domain) {
  if (constant.scalar() == Scalar::string) return false;
  for (int64_t i = 0; i < constant.size(); ++i) {
    const double x = is_float(constant.scalar()) ? constant.float_at(i) : static_cast<double>(constant.integer_at(i));
    if (std::isfinite(x) && (x < domain.low || x > domain.high)) return false;
  }
  return true;
}

// The elements of tables lie in their domain; other parameters may have any value of their type.
std::string unproved(const Program& program, Expr expression, const std::vector<std::string>& arrays) {
  std::map<std::string, IntegerRange> known;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Tensor* table = find_constant(program, arrays[i]);
    const auto domain = program.domains.find(arrays[i]);
    if (table == nullptr || domain == program.domains.end()) continue;
    const auto [low, high] = domain->second;
    if (std::abs(low) < 0x1p53 && std::abs(high) < 0x1p53 && lies_in(*table, domain->second))
      known["p" + std::to_string(i)] = {static_cast<int64_t>(low), static_cast<int64_t>(high)};
  }
  const std::vector<UnprovedPosition> found = unproved_positions(expression, known);
  if (found.empty()) return {};
  return fmt::format("{} may be {} to {} in an array of {}", pattern_text(found[0].position), found[0].range.low,
                     found[0].range.high, found[0].size);
}

// The range of an array that the kernel reads, for seeded checks.
Domain domain_of(const Program& program, const std::string& array, const Definition& kernel) {
  for (const std::string& value : *kernel.reads) {
    const auto domain = program.domains.find(value);
    if (domain != program.domains.end() && program.storage.at(value).array == array) return domain->second;
  }
  return {};
}

class SharedKernels {
 public:
  explicit SharedKernels(LoweredModel& model) : model_(model) {}

  // Parameters are renamed to their positions, so that blocks with other weights are equal.
  int index_of(const Definition& definition) {
    const Storage& storage = storage_of(definition.value);
    LoweredKernel kernel;
    std::vector<std::string> arrays;
    for (Expr p : parameters_of(definition.expression)) {
      kernel.parameters.push_back(parameter("p" + std::to_string(arrays.size()), p->type));
      arrays.push_back(p->name);
      std::vector<Region> regions;
      for (const std::string& value : *definition.reads) {
        if (storage_of(value).array == p->name) regions.push_back(region_of(storage_of(value)));
      }
      kernel.reads.push_back(std::move(regions));
    }
    kernel.expression = with_numbered_parameters(definition.expression);
    kernel.region = storage.is_packed() ? storage.written_region() : region_of(storage);
    if (auto found = known_.find(kernel.expression); found != known_.end()) {
      LoweredKernel& known = model_.kernels[static_cast<size_t>(found->second)];
      if (known.reads == kernel.reads && known.region == kernel.region) {
        if (known.unproved.empty()) known.unproved = unproved(model_.program, known.expression, arrays);
        return found->second;
      }
    }
    if (is_host_step(definition.expression)) kernel.host = definition.expression->name;
    kernel.layers = definition.layers;
    if (kernel.layers.empty()) kernel.layers = {definition.value};
    kernel.name = names_.make(kernel.layers.front());
    for (const std::string& array : arrays) kernel.domains.push_back(domain_of(model_.program, array, definition));
    kernel.operations = executed_work(kernel.expression).arithmetic();
    kernel.unproved = unproved(model_.program, kernel.expression, arrays);
    const int index = static_cast<int>(model_.kernels.size());
    known_[kernel.expression] = index;
    model_.kernels.push_back(std::move(kernel));
    return index;
  }

 private:
  const Storage& storage_of(const std::string& value) const { return model_.program.storage.at(value); }

  LoweredModel& model_;
  FunctionNames names_;
  std::unordered_map<Expr, int> known_;
};

// Every layer of the model, with the reason if it has no kernel.
void list_layers(LoweredModel& model) {
  const Program& program = model.program;
  std::set<std::string> computed, evaluated(program.evaluated.begin(), program.evaluated.end());
  for (const PlanStep& step : model.steps) computed.insert(step.layers.begin(), step.layers.end());
  for (const Control& control : program.controls) computed.insert(control.layers.begin(), control.layers.end());
  for (const ModelLayer& layer : program.layers) {
    std::string absence;
    if (computed.count(layer.name) == 0) {
      absence = evaluated.count(layer.name) != 0 ? "evaluated at compile time" : "no output of the model depends on it";
    }
    model.layers.push_back({layer.name, layer.operation, absence});
  }
}

}  // namespace

Result<Nothing> share_kernels(LoweredModel& model, const PassOptions&) {
  SharedKernels kernels(model);
  for (const Definition& definition : model.program.definitions) {
    if (!definition.reads) return Diagnostic{layer_name(definition), "is not a kernel", "run strategies before it"};
    PlanStep step;
    step.layers = definition.layers;
    step.kernel = kernels.index_of(definition);
    if (model.steps.size() < model.groups.size()) model.groups[model.steps.size()].kernel = step.kernel;
    model.steps.push_back(std::move(step));
  }
  model.items = model.program.items;
  list_layers(model);
  return Nothing{};
}

}  // namespace hoist
