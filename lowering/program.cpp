#include "lowering/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/evaluate.h"
#include "lowering/grouping.h"
#include "lowering/operators.h"
#include "lowering/terms.h"

namespace hoist {
namespace {

Type type_of(const Tensor& tensor) {
  Type t = scalar_type(tensor.scalar());
  for (size_t i = tensor.shape().size(); i-- > 0;) t = array_type(tensor.shape()[i], t);
  return t;
}

Type type_of(const ValueInfo& info) {
  Type t = scalar_type(info.scalar);
  for (size_t i = info.shape.size(); i-- > 0;) t = array_type(info.shape[i], t);
  return t;
}

// Where onnx's own inference and our types disagree, one of the two is wrong; the user has to know.
void cross_check(const Graph& graph, const std::string& value, Type type, const std::string& layer,
                 std::vector<std::string>& notes) {
  auto place = graph.inferred.find(value);
  if (place == graph.inferred.end() || !leaf_of(type)->is_scalar()) return;
  std::vector<int64_t> shape = shape_of(type);
  const auto& inferred = place->second.shape;
  bool agrees = shape.size() == inferred.size() && place->second.scalar == leaf_of(type)->scalar;
  for (size_t i = 0; agrees && i < shape.size(); ++i) agrees = inferred[i] < 0 || inferred[i] == shape[i];
  if (!agrees) {
    notes.push_back(fmt::format("{}: onnx's shape inference says {} for {}, hoist computes {}", layer,
                                text(type_of(place->second)), value, text(type)));
  }
}

// What storage wants to know of a layer beyond its expression.
void describe(const Layer& layer, const std::map<std::string, Type>& types, Definition& definition) {
  static const std::set<std::string> pictures = {"Conv",
                                                 "ConvInteger",
                                                 "QLinearConv",
                                                 "ConvTranspose",
                                                 "MaxPool",
                                                 "AveragePool",
                                                 "LpPool",
                                                 "GlobalMaxPool",
                                                 "GlobalAveragePool",
                                                 "GlobalLpPool",
                                                 "BatchNormalization",
                                                 "InstanceNormalization",
                                                 "LRN",
                                                 "Resize",
                                                 "Upsample",
                                                 "DepthToSpace",
                                                 "SpaceToDepth"};
  definition.channels_first = pictures.count(layer.operation) != 0;
  if (layer.operation == "Concat" && definition.expression->type->is_array()) {
    definition.parts = layer.inputs;
    definition.parts_dimension = integer_attribute(layer, "axis", 0);
    if (definition.parts_dimension < 0) {
      definition.parts_dimension += static_cast<int64_t>(sizes_of(definition.expression->type).size());
    }
  }
  const size_t factor = layer.operation == "QLinearConv" || layer.operation == "QLinearMatMul" ? 3 : 1;
  if (layer.inputs.size() <= factor || types.count(layer.inputs[factor]) == 0) return;
  const std::string& weights = layer.inputs[factor];
  const std::vector<int64_t> extents = shape_of(types.at(weights));
  const auto rank = static_cast<int64_t>(extents.size());
  if (layer.operation == "Conv" || layer.operation == "ConvInteger" || layer.operation == "QLinearConv") {
    definition.weights.push_back({weights, extents, 0, integer_attribute(layer, "group", 1), true});
  }
  const bool product =
      layer.operation == "MatMul" || layer.operation == "MatMulInteger" || layer.operation == "QLinearMatMul";
  if (product && rank >= 2) definition.weights.push_back({weights, extents, rank - 1, 1, true});
  if (layer.operation == "Gemm") {
    definition.weights.push_back({weights, extents, integer_attribute(layer, "transB", 0) != 0 ? 0 : 1, 1, true});
  }
}

// Spends a FoldingBudget. Small results, shapes above all, may be what a layer cannot be lowered without: half of the
// budget is theirs alone.
class Folding {
 public:
  explicit Folding(const FoldingBudget& budget) : budget_(budget) {}

  /// The value, where the budget reaches; nothing where the term stays for the device.
  Result<std::optional<Tensor>> value(Expr e, const std::map<std::string, Tensor>& constants) {
    if (!leaf_of(e->type)->is_scalar()) return std::optional<Tensor>();
    const Scalar scalar = leaf_of(e->type)->scalar;
    int64_t elements = 1;
    for (int64_t extent : shape_of(e->type)) {
      if (__builtin_mul_overflow(elements, extent, &elements) || elements > budget_.bytes)
        return std::optional<Tensor>();
    }
    int64_t work = 0;
    if (__builtin_add_overflow(count_operations(e), elements, &work)) return std::optional<Tensor>();
    const int64_t bytes = byte_size(scalar, shape_of(e->type)), share = work > few_operations ? 2 : 1;
    if (work > budget_.operations / share - operations_ || bytes > budget_.bytes / share - bytes_) {
      ++left_;
      return std::optional<Tensor>();
    }
    Bindings bindings;
    for (Expr p : parameters_of(e)) bindings[p->name] = constants.at(p->name);
    HOIST_TRY(std::optional<Tensor> value, evaluate_within(e, bindings, budget_.bytes));
    operations_ += work;
    if (value) bytes_ += bytes;
    if (!value) ++left_;
    return value;
  }

  /// How many terms stay that would have been folded.
  int64_t left() const { return left_; }

 private:
  static constexpr int64_t few_operations = 1 << 16;
  const FoldingBudget budget_;
  int64_t operations_ = 0, bytes_ = 0, left_ = 0;
};

// Whether constants of small types would become a larger one: weights of 4 bits, in f32. Shapes have to be known.
bool unfolds(Expr e, const std::map<std::string, Tensor>& constants) {
  size_t read = 0;
  for (Expr p : parameters_of(e)) read += constants.at(p->name).bytes().size();
  const Type leaf = leaf_of(e->type);
  return leaf->is_scalar() && is_float(leaf->scalar) &&
         static_cast<size_t>(byte_size(leaf->scalar, shape_of(e->type))) > read;
}

// Sums over constants inside a layer's term, of its weights say, are known: each becomes a constant of its own.
Result<Expr> fold_constant_sums(Expr e, const std::string& value, Program& program, std::map<std::string, Type>& types,
                                Folding& folding) {
  Diagnostics problems;
  int count = 0;
  auto known = [&](Expr n) {
    std::vector<Expr> reads = parameters_of(n);
    return !reads.empty() &&
           std::all_of(reads.begin(), reads.end(), [&](Expr p) { return program.constants.count(p->name) != 0; });
  };
  Expr folded = replace_closed(e, [&](Expr n) -> Expr {
    const bool array = n->pattern != Pattern::function && n->type->is_array() && leaf_of(n->type)->is_scalar();
    if (!array || moves_only(n) || !folds(n) || !known(n)) return nullptr;
    auto evaluated = folding.value(n, program.constants);
    if (!evaluated) {
      problems.insert(problems.end(), evaluated.errors().begin(), evaluated.errors().end());
      return nullptr;
    }
    if (!*evaluated) return nullptr;
    const std::string name = fmt::format("{}.known{}", value, count++);
    program.constants[name] = **evaluated;
    types[name] = n->type;
    return parameter(name, n->type);
  });
  if (!problems.empty()) return problems;
  return folded;
}

}  // namespace

std::map<std::string, Type> value_types(const Program& program) {
  std::map<std::string, Type> types;
  for (const auto& [name, type] : program.inputs) types[name] = type;
  for (const auto& [name, tensor] : program.constants) types[name] = type_of(tensor);
  for (const Definition& d : program.definitions) types[d.value] = d.expression->type;
  return types;
}

std::map<std::string, int> use_counts(const Program& program) {
  std::map<std::string, int> uses;
  for (const Definition& d : program.definitions) {
    for (Expr p : parameters_of(d.expression)) ++uses[p->name];
  }
  for (const std::string& output : program.outputs) ++uses[output];
  return uses;
}

Result<Program> lower_graph(const Graph& original, bool strict, const TableOptions& tables, ConstantUse constants,
                            const FoldingBudget& budget) {
  Folding folding(budget);
  Graph graph = original;
  Program program;
  program.name = graph.name;
  program.notes = graph.notes;
  if (!strict) {
    fold_batch_norm(graph);
    store_unsigned(graph);
  }
  // Before the rounding steps for quantised layers, so that a table holds what the model says.
  use_integer_tables(graph, tables);
  if (!strict) use_integer_products(graph);
  program.steps = graph.steps;
  program.constants = graph.constants;
  std::map<std::string, Type> types;
  for (const ValueInfo& input : graph.inputs) {
    Type t = type_of(input);
    program.inputs.emplace_back(input.name, t);
    types[input.name] = t;
  }
  for (const auto& [name, tensor] : graph.constants) types[name] = type_of(tensor);

  std::multimap<std::string, std::string> absorbed;  // layers that steps have put into another, by that one
  for (const GraphStep& step : program.steps) {
    if (!step.absorbed.empty()) absorbed.emplace(step.layer, step.absorbed);
  }
  Diagnostics problems;
  std::set<std::string> failed;  // values whose layer failed: their readers say nothing of their own
  for (const Layer& layer : graph.layers) {
    OperatorContext context{layer, graph.opset, {}, {}};
    bool reachable = true;
    for (const std::string& name : layer.inputs) {
      if (failed.count(name) != 0) reachable = false;
      auto type = types.find(name);
      bool known = !name.empty() && type != types.end();
      if (!name.empty() && !known && failed.count(name) == 0) {
        problems.push_back({layer.name, "reads " + name + ", which nothing defines", ""});
        reachable = false;
      }
      context.inputs.push_back(known ? parameter(name, type->second) : nullptr);
      auto constant = program.constants.find(name);
      context.constants.push_back(constant == program.constants.end() ? nullptr : &constant->second);
    }
    std::vector<std::string> computed = {layer.name};
    for (auto [step, end] = absorbed.equal_range(layer.name); step != end; ++step) computed.push_back(step->second);
    auto fail = [&] {
      for (const std::string& output : layer.outputs) failed.insert(output);
    };
    if (!reachable) {
      fail();
      continue;
    }
    auto lowered = lower_layer(context);
    if (!lowered) {
      problems.insert(problems.end(), lowered.errors().begin(), lowered.errors().end());
      fail();
      continue;
    }
    for (size_t i = 0; i < layer.outputs.size() && i < lowered->size(); ++i) {
      const std::string& value = layer.outputs[i];
      Expr e = (*lowered)[i];
      if (value.empty() || e == nullptr) continue;
      types[value] = e->type;
      cross_check(graph, value, e->type, layer.name, program.notes);
      std::vector<Expr> reads = parameters_of(e);
      bool known =
          std::all_of(reads.begin(), reads.end(), [&](Expr p) { return program.constants.count(p->name) != 0; });
      const bool stays = known && constants == ConstantUse::stored && unfolds(e, program.constants);
      if (known && !stays) {
        auto folded = folding.value(e, program.constants);
        if (!folded) {
          for (Diagnostic d : folded.errors()) {
            d.where = layer.name + (d.where.empty() ? "" : ", " + d.where);
            problems.push_back(d);
          }
          fail();
          continue;
        }
        if (*folded) {
          program.constants[value] = **folded;
          program.evaluated.insert(program.evaluated.end(), computed.begin(), computed.end());
          continue;
        }
      }
      auto simpler = fold_constant_sums(e, value, program, types, folding);
      if (!simpler) {
        for (const Diagnostic& d : simpler.errors()) problems.push_back({layer.name, d.what, d.hint});
        fail();
        continue;
      }
      e = *simpler;
      Definition definition;
      definition.value = value;
      definition.layers = computed;
      definition.expression = e;
      describe(layer, types, definition);
      program.definitions.push_back(std::move(definition));
    }
  }
  for (const ValueInfo& output : graph.outputs) {
    if (types.count(output.name) == 0 && failed.count(output.name) == 0) {
      problems.push_back({output.name, "a model output that nothing defines", ""});
    }
    program.outputs.push_back(output.name);
  }
  if (!problems.empty()) return problems;
  if (folding.left() > 0) {
    program.notes.push_back(
        fmt::format("{} constants are left to the device: computing them here exceeds {} operations or {} MiB "
                    "(--fold-operations, --fold-memory)",
                    folding.left(), budget.operations, budget.bytes >> 20));
  }
  remove_unused(program);
  return program;
}

void remove_unused(Program& program) {
  std::set<std::string> needed(program.outputs.begin(), program.outputs.end());
  for (size_t i = program.definitions.size(); i-- > 0;) {
    if (needed.count(program.definitions[i].value) == 0) continue;
    for (Expr p : parameters_of(program.definitions[i].expression)) needed.insert(p->name);
  }
  auto unused = [&](const Definition& d) { return needed.count(d.value) == 0; };
  program.definitions.erase(std::remove_if(program.definitions.begin(), program.definitions.end(), unused),
                            program.definitions.end());
  std::erase_if(program.constants, [&](const auto& entry) { return needed.count(entry.first) == 0; });
}

}  // namespace hoist
