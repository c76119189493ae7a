// A graph whose layers have become expressions: definitions in topological order, whose parameters are named after the
// values that they read. Passes over a Program (grouping.h, storage.h) merge definitions and choose how values are
// stored; the meaning of every definition stays. Values of constants are kept beside, under their value names.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/expression.h"
#include "ir/graph.h"
#include "ir/rewrite.h"
#include "lowering/integer_table.h"

namespace hoist {

/// A matrix of weights in a definition and the dimension that runs over output channels (columns): packing makes that
/// one the innermost.
struct Weights {
  std::string value;             ///< grouping may put what computes it in its place
  std::vector<int64_t> extents;  ///< of that value
  int64_t output_dimension = 0;
  int64_t groups = 1;    ///< of output channels, each of which reads input channels of its own
  bool in_place = true;  ///< the result still has the product's dimensions, nothing was reshaped since
};

struct Definition {
  std::string value;                ///< the value that it defines; unique
  std::vector<std::string> layers;  ///< what it computes, in graph order; the first one names its kernel
  Expr expression = nullptr;        ///< closed; parameters are named by values
  std::vector<Weights> weights;     ///< the right-hand operands of its products, constant or not
  bool channels_first = false;      ///< a picture: dimension 1 holds channels, those after it are spatial
  /// A concatenation only: the values that it joins, and along which dimension. Its parts may be written in place.
  std::vector<std::string> parts;
  int64_t parts_dimension = 0;
  /// The order in which dimensions are stored, where it is not the usual one for the shape.
  std::vector<int64_t> order;
};

struct Program {
  std::string name;
  std::vector<std::pair<std::string, Type>> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, Tensor> constants;  ///< those that definitions read or that are outputs
  std::vector<Definition> definitions;
  std::vector<GraphStep> steps;
  std::vector<std::string> evaluated;  ///< layers whose outputs are constants, known at compile time
  std::vector<std::string> notes;
};

/// The type of every input, constant and definition by value name.
std::map<std::string, Type> value_types(const Program& program);
/// How many definitions and outputs read each value (a definition counts once however often it does).
std::map<std::string, int> use_counts(const Program& program);

/// Layers that make a larger array of constants alone, f32 of weights in 4 bits say: computed at compile time, which is
/// fast, or part of the kernels, so that the bundle has the constants as the model stores them.
enum class ConstantUse : uint8_t { computed, stored };

/// What layers may cost that are computed at compile time since all their inputs are known, over the whole model. What
/// exceeds it stays for the device, as if its inputs were not known.
struct FoldingBudget {
  int64_t operations = 2'000'000'000;  ///< calls, casts and selections, and elements that only move
  int64_t bytes = int64_t{4} << 30;    ///< of results together, and of the values in between of any one

  bool operator==(const FoldingBudget&) const = default;
};

/// Every layer as an expression. Layers whose inputs are all known at compile time are evaluated, within the budget.
/// Reports all layers that cannot be lowered, in one go. `strict` keeps to exact rules: batch-norm stays a layer of its
/// own.
Result<Program> lower_graph(const Graph& graph, bool strict, const TableOptions& tables = {},
                            ConstantUse constants = ConstantUse::computed, const FoldingBudget& folding = {});

/// Removes definitions and constants that no output needs.
void remove_unused(Program& program);

/// Folds each BatchNormalization with constant statistics into the Conv or Gemm before it, where nothing else reads
/// that layer's output: weights and bias are scaled, the layer goes. Rounding class; recorded in the graph's steps.
void fold_batch_norm(Graph& graph);

/// 8-bit values that only quantise and dequantise layers see become unsigned, which is what products of 8-bit numbers
/// want. Exact; recorded in the graph's steps.
void store_unsigned(Graph& graph);

/// Conv, Gemm and MatMul of dequantised numbers become integer products, scaled once, where the weights are constant in
/// 8 bits without zero point and no sum can leave i32. Rounding class; recorded in the graph's steps.
void use_integer_products(Graph& graph);

}  // namespace hoist
