// A model as a program: inputs, constants, and definitions in topological order whose parameters are named after the
// values that they use. A frontend creates one operator call per definition; passes replace terms, merge definitions
// and choose layouts, while the meaning of every value that an output depends on stays the same. A call with several
// results defines a tuple, and each result with a use is a definition that takes a component of the tuple. Invariants:
// value names are unique; a definition uses inputs, constants and earlier definitions.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/base/seeded.h"
#include "ir/language/expression.h"
#include "ir/plan/plan.h"
#include "ir/program/storage.h"
#include "ir/rules/rule_class.h"

namespace hoist {

/// A constant that a step computes, or whose values determine the result of the step.
struct StepConstant {
  std::string name;
  Type type = nullptr;
  std::string hash;             ///< constant_hash
  std::optional<Tensor> value;  ///< if it is small or determines the result

  bool operator==(const StepConstant&) const = default;
};

/// One step of the derivation from an imported model to its kernels: a rule of a table, applied to a definition or at a
/// position in its term, or a pass that changed a definition or the program.
struct ProgramStep {
  std::string rule;   ///< the name of a rule or of a pass
  std::string layer;  ///< the first layer that the definition computes, for display
  RuleClass rule_class = RuleClass::exact;
  std::string note;  ///< one sentence
  std::vector<std::string> absorbed =
      {};  ///< layers without a definition of their own from here on: `layer` also computes them
  /// For replay. A step without this flag describes a change that is not replayed, for example one before the import.
  bool replays = false;
  std::string value = {};  ///< value of the definition; "" if the step concerns the whole program
  Path place = {};         ///< the position in the definition's term
  std::map<std::string, std::string> parameters = {};
  std::vector<StepConstant> constants = {};
};

/// A matrix of weights in a definition and the dimension of its output channels (columns), which packing makes
/// innermost.
struct Weights {
  std::string value;             ///< grouping may inline its definition
  std::vector<int64_t> extents;  ///< extents of that value
  int64_t output_dimension = 0;
  int64_t groups = 1;    ///< groups of output channels, each with its own input channels
  bool in_place = true;  ///< the result has the contraction's dimensions: no reshape follows

  bool operator==(const Weights&) const = default;
};

struct Definition {
  std::string value;                ///< the defined value; unique
  std::vector<std::string> layers;  ///< the computed layers in model order; the first one names the kernel
  Expr expression = nullptr;        ///< closed; parameters are named by values
  // Facts and decisions about the term for later passes; the text has them after `with`.
  std::vector<Weights> weights = {};  ///< the right-hand operands of its contractions, constant or not
  /// A feature map: dimension 1 holds channels, the dimensions after it are spatial (`nchw`).
  bool channels_first = false;
  /// For a pure concatenation: the concatenated values and the dimension. The parts may be written in place.
  std::vector<std::string> parts = {};
  int64_t parts_dimension = 0;
  /// The storage order of dimensions if it differs from the rule for images (lowering/layout/orders.h). An output of
  /// the model is stored as in ONNX; its order is that of the loops.
  std::vector<int64_t> order = {};
  /// Knobs of its kernel by name, if they are not chosen by the cost model (lowering/search/tuning.h).
  std::map<std::string, int64_t> knobs = {};
  /// The tile of its kernel, once storage is chosen: the members of lowering/tiling/tile.h that differ from the
  /// default.
  std::map<std::string, int64_t> tile = {};
  /// A kernel: the term is over stored arrays, and these values lie in them (Program::storage).
  std::optional<std::vector<std::string>> reads = {};

  bool operator==(const Definition&) const = default;
};

/// A layer of the model from which the program was made.
struct ModelLayer {
  std::string name;
  std::string operation;  ///< ONNX op_type
};

struct ValueInfo {
  std::string name;
  Scalar scalar = Scalar::f32;
  std::vector<int64_t> shape;
};

/// A bounded dynamic dimension of an output; the output's type has the upper bound. Valid elements come first; elements
/// beyond the actual extent are undefined.
struct DynamicExtent {
  std::string value;  ///< an output
  int64_t dimension = 0;
  std::string count;  ///< the value with the actual extent, an i64 scalar; also an output, after the model's

  bool operator==(const DynamicExtent&) const = default;
};

/// A value that lives between runs: an input of the program after the model's, which a run reads, and an output after
/// the model's, which is the input's value in the next run.
struct StateValue {
  std::string name;     ///< the input
  std::string next;     ///< the output, of the same type
  std::string initial;  ///< the value before the first run: a constant of that type, also an output; "": zeros

  bool operator==(const StateValue&) const = default;
};

/// A call of If or Loop with dynamic control flow: only the branch that data selects, or a body until data ends it. The
/// values that its bodies compute are definitions of the enclosing program, in which values that are known only at run
/// time are inputs: the call's results, and for a loop the iteration number and the carried values. These inputs come
/// after the model's, and every value that the call uses is an output after the model's. The definitions of a body are
/// determined by their dependencies (lowering/loops/schedule.h).
struct Control {
  enum class Kind : uint8_t { branch, loop };
  /// A loop-carried value: initially, before and after an iteration, and after the loop.
  struct Carried {
    std::string initial, before, after, result;
  };
  /// A result of each iteration, and the array of these rows.
  struct Rows {
    std::string row, result;
  };
  /// A result of a branch, and its value on either side.
  struct Choice {
    std::string yes, no, result;
  };

  Kind kind = Kind::loop;
  std::string value;                ///< the value that the call defined
  std::vector<std::string> layers;  ///< the layers that it computed
  std::string condition;            ///< one bool: selects the branch, or enables the loop; "": the loop always starts
  std::vector<Choice> choices;      ///< for a branch
  // For a loop:
  std::string trips;   ///< one i64: the maximum trip count; "": no limit in the data
  std::string number;  ///< the iteration number, one i64
  std::string next;    ///< one bool computed by the body: continue; "": the loop continues
  int64_t most = 0;    ///< the maximum number of iterations; a longer loop ends there
  bool fails = false;  ///< exceeding the limit is an error, since the model does not specify it
  std::vector<Carried> carried;
  std::vector<Rows> rows;
  std::string count;  ///< a result, one i64: the number of iterations, hence of valid rows; "" without a use

  /// A member that is one value or "": its keyword in the text and its scalar type.
  struct OneValue {
    std::string_view word;
    std::string Control::*value;
    Scalar scalar;
  };
  static const std::array<OneValue, 5> one_values;

  /// The inputs and outputs of the program that belong to the control, in order.
  std::vector<std::string> given() const;
  std::vector<std::string> wanted() const;
};

/// The bounds of a symbolic size.
struct SizeBounds {
  int64_t least = 1,
          most = int64_t{1} << 31;  ///< never below 1 or above 2^31, as for all sizes of the language (nat.h)

  bool operator==(const SizeBounds&) const = default;
};

struct Program {
  std::string name;
  int64_t version = newest_version;  ///< version of ai.onnx that calls have by default; only relevant for the text
  /// Symbolic sizes by name, which types and terms may contain. Only programs that are printed, parsed and typed have
  /// any: with_sizes (program/sizes.h) substitutes values, which passes require. Bodies (of Loop, for example) use the
  /// sizes of the enclosing program and declare none.
  std::map<std::string, SizeBounds> sizes;
  std::vector<std::pair<std::string, Type>> inputs;  ///< the model's, followed by the states'
  /// The model's, followed by `next` and `initial` of each state, then by the actual extents that `extents` names.
  std::vector<std::string> outputs;
  std::vector<StateValue> states;
  std::vector<DynamicExtent> extents;
  /// Once chosen: the storage of every value, and of arrays in local memory (lowering/terms/statements.h).
  std::map<std::string, Storage> storage;
  std::vector<PlanItem> items;              ///< the order of definitions and controls; empty without controls
  std::vector<Control> controls;            ///< a pass converts calls to controls
  std::map<std::string, Tensor> constants;  ///< constants with a use, including outputs
  std::vector<Definition> definitions;
  std::vector<ProgramStep> steps;
  /// The program at the start of the first pass; null before.
  std::shared_ptr<const Program> imported;
  /// Constants of which only type and hash are known, by name, when a derivation is replayed without the model. Their
  /// values are zeros, and constants computed from them are withheld too ("" until the hash is known).
  std::map<std::string, std::string> withheld;
  std::vector<std::string> evaluated;  ///< layers whose outputs are compile-time constants
  std::vector<std::string> notes;      ///< for the user: "dimension N of input x is taken to be 1; use --dim N=..."
  /// Value ranges in which the consumers are defined, for seeded checks: positive elements for a logarithm. Known once
  /// calls are inlined.
  std::map<std::string, Domain> domains;
  /// Layers replaced by a call that computes the full capacity (ir/operators/dynamic/dynamic_extents.h); elements
  /// beyond the actual extents are undefined.
  std::vector<std::string> bounded;
  // The origin of the program; neither printed nor compared.
  std::vector<ModelLayer> layers;       ///< in the model's order
  uint64_t hash = 0;                    ///< hash of its bytes, external data included
  std::vector<RoundingBound> rounding;  ///< the error bounds of rounding rules that passes have applied
};

/// True if both programs have the same text (program_text.h).
bool same_program(const Program& a, const Program& b);
/// The values that the definition uses: its parameters, or the values in the arrays that its kernel reads.
std::vector<std::string> values_read(const Definition& definition);
Type type_of(const Tensor& tensor);
Type type_of(const ValueInfo& info);
/// The type of every input, constant and definition by value name.
std::map<std::string, Type> value_types(const Program& program);
/// The name, scalar type and shape of a value that is one array.
ValueInfo value_info(const std::string& name, Type type);
std::vector<ValueInfo> input_infos(const Program& program);  ///< infos of the model's inputs
/// The number of inputs of the model and of states.
size_t input_count(const Program& program);
/// The number of outputs of the model, of states and of actual extents.
size_t output_count(const Program& program);
/// The outputs of the program that belong to its states, in order.
std::vector<std::string> state_outputs(const Program& program);
/// The outputs of the model, without states, actual extents and outputs for controls.
std::vector<ValueInfo> output_infos(const Program& program);
size_t model_input_count(const Program& program);
size_t model_output_count(const Program& program);
/// The outputs of the model, cut to their actual extents; `outputs` has all outputs of the program, in order. Errors:
/// an extent below 0 or above the bound in the output's type.
Result<std::vector<Tensor>> cut_outputs(const Program& program, std::vector<Tensor> outputs);
/// The error for an actual extent that exceeds the capacity or is negative.
Diagnostic wrong_extent(const std::string& output, int64_t dimension, int64_t count, int64_t most);
/// The number of definitions and outputs that use each value (a definition counts once, even with several uses).
std::map<std::string, int> use_counts(const Program& program);
/// Appends the layers of `more` that are missing in `layers`.
void add_layers(std::vector<std::string>& layers, const std::vector<std::string>& more);
/// The definition of the value, or null if there is none.
const Definition* find_definition(const Program& program, const std::string& value);
Definition* find_definition(Program& program, const std::string& value);
/// True if a definition of the program defines the value; inputs and constants have none.
bool is_definition(const Program& program, const std::string& value);
/// The constant of that name; null if the value is computed.
const Tensor* find_constant(const Program& program, const std::string& value);
bool is_output(const Program& program, const std::string& value);
/// The type of an input, a constant or a defined value, or null. For many values: value_types.
Type find_type(const Program& program, const std::string& value);
/// The name of the definition in messages: its first layer, or its value if it computes no layer.
const std::string& layer_name(const Definition& definition);
/// A step that replays: an application of the rule or pass to the definition, or to the whole program.
ProgramStep replayed_step(const std::string& rule, const Definition& definition);
ProgramStep replayed_step(const std::string& rule);
/// The record of a constant in a step: its hash, and its values if they are few or `with_values` is set.
StepConstant step_constant(const Program& program, const std::string& name, bool with_values = false);
/// Removes definitions and constants that no output needs.
void remove_unused(Program& program);

/// Unique names for values that a pass or the program builder creates. A model's values and layers may have arbitrary
/// names ("conv1.windows" too), so all new names come from this class.
class ValueNames {
 public:
  ValueNames() = default;
  /// Excludes all names of values and layers of the program.
  explicit ValueNames(const Program& program);
  void take(const std::string& name) { taken_.insert(name); }
  /// `wanted`, followed by as many "_" as it takes to be unique; the name is taken afterwards.
  std::string make(std::string wanted);

 private:
  std::unordered_set<std::string> taken_;
};

}  // namespace hoist
