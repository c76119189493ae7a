// A model as a program: inputs, constants, and definitions in topological order whose parameters are named after the
// values that they read. What a frontend makes holds one operator call a definition; passes put other terms in their
// place, merge definitions and choose how values are stored, and the meaning of every value that an output needs stays.
// A call of several results defines a tuple, and each result that somebody reads is a definition of its own that takes
// a component of it. Invariants: value names are unique; a definition reads inputs, constants and earlier definitions.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/expression.h"
#include "ir/rules/rule_class.h"
#include "ir/seeded.h"

namespace hoist {

/// A constant that a step computes, or whose values decide what the step gives.
struct StepConstant {
  std::string name;
  Type type = nullptr;
  std::string hash;             ///< constant_hash
  std::optional<Tensor> value;  ///< where it is small, or decides

  bool operator==(const StepConstant&) const = default;
};

/// One step of the derivation that leads from an imported model to its kernels: a rule of a table, applied to a
/// definition or at a place in its term, or a pass that did something to one definition or to the program.
struct ProgramStep {
  std::string rule;   ///< of a rule or of a pass
  std::string layer;  ///< the first of those that the definition computes, for people
  RuleClass rule_class = RuleClass::exact;
  std::string note;                        ///< one plain sentence
  std::vector<std::string> absorbed = {};  ///< layers that are gone now: `layer` computes them too
  /// What replay goes by. A step without it tells what was done in another way, before the program was imported say.
  bool replays = false;
  std::string value = {};  ///< of the definition; "" where the step is about the whole program
  Path place = {};         ///< in the definition's term
  std::map<std::string, std::string> parameters = {};
  std::vector<StepConstant> constants = {};
};

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
  std::vector<std::string> layers;  ///< what it computes, in model order; the first one names its kernel
  Expr expression = nullptr;        ///< closed; parameters are named by values
  // What storage wants to know beside the term; neither printed nor compared.
  std::vector<Weights> weights = {};  ///< the right-hand operands of its products, constant or not
  bool channels_first = false;        ///< a picture: dimension 1 holds channels, those after it are spatial
  /// A concatenation only: the values that it joins, and along which dimension. Its parts may be written in place.
  std::vector<std::string> parts = {};
  int64_t parts_dimension = 0;
  /// The order in which dimensions are stored, where it is not the usual one for the shape.
  std::vector<int64_t> order = {};
  /// Choices of its kernel by name, where they are made otherwise than by an estimate (lowering/tuning.h).
  std::map<std::string, int64_t> knobs = {};
};

/// A layer of the model that a program was made from.
struct ModelLayer {
  std::string name;
  std::string operation;  ///< ONNX op_type
};

struct ValueInfo {
  std::string name;
  Scalar scalar = Scalar::f32;
  std::vector<int64_t> shape;
};

/// An output of which data decide how long it is along a dimension; its type says how long it is at most. The elements
/// that count stand first, and what is behind them is there, but means nothing.
struct DataExtent {
  std::string value;  ///< an output
  int64_t dimension = 0;
  std::string count;  ///< the value that says how many, an i64 scalar; an output too, behind those of the model

  bool operator==(const DataExtent&) const = default;
};

/// A call of If or Loop that the program performs as it runs: only the branch that data choose, or a body until data
/// end it. What its bodies compute are definitions of the program around them, in which values that only the run knows
/// are inputs: the results, and for a loop the number of its iteration and what it carries. Those stand behind the
/// inputs of the model, and every value that the call needs is an output behind the model's. What belongs to a body
/// follows from who reads what (lowering/schedule.h).
struct Control {
  enum class Kind : uint8_t { branch, loop };
  /// A value that a loop carries: as it enters, as an iteration takes it and gives it, and as it is behind the loop.
  struct Carried {
    std::string initial, before, after, result;
  };
  /// What each iteration gives, and the result that has them side by side.
  struct Rows {
    std::string row, result;
  };
  /// A result of a branch, and what either side gives for it.
  struct Choice {
    std::string yes, no, result;
  };

  Kind kind = Kind::loop;
  std::string value;                ///< that the call defined
  std::vector<std::string> layers;  ///< that it computed
  std::string condition;            ///< one bool: which branch, or whether a loop begins; "" where it does
  std::vector<Choice> choices;      ///< of a branch
  // Of a loop.
  std::string trips;   ///< one i64: no more iterations than that; "" where no data say so
  std::string number;  ///< of the iteration, one i64
  std::string next;    ///< one bool that the body gives: whether there is another iteration; "" where there is
  int64_t most = 0;    ///< iterations; a loop that would go on ends there
  bool fails = false;  ///< and that is an error, since the model names no such bound
  std::vector<Carried> carried;
  std::vector<Rows> rows;
  std::string count;  ///< a result, one i64: how many iterations there were, and so rows that count; "" if nobody asks

  /// A member that is one value or "": the word that the text has for it, and what it is.
  struct OneValue {
    std::string_view word;
    std::string Control::*value;
    Scalar scalar;
  };
  static const std::array<OneValue, 5> one_values;

  /// The inputs and outputs of the program that are there for it, in order.
  std::vector<std::string> given() const;
  std::vector<std::string> wanted() const;
};

/// What is known of a size that has no number yet.
struct SizeBounds {
  int64_t least = 1, most = int64_t{1} << 31;  ///< never below 1 nor above 2^31, as sizes of the language (nat.h)

  bool operator==(const SizeBounds&) const = default;
};

struct Program {
  std::string name;
  int64_t version = newest_version;  ///< of ai.onnx, which calls have unless they say otherwise; matters for text only
  /// Sizes without a number, by name, that types and terms may mention. Only programs that are printed, parsed and
  /// typed have any: with_sizes (program/sizes.h) puts numbers in their place, and passes ask for that. Bodies (of
  /// Loop, say) mention those of the program around them and have none of their own.
  std::map<std::string, SizeBounds> sizes;
  std::vector<std::pair<std::string, Type>> inputs;
  std::vector<std::string> outputs;  ///< the model's, and behind them the counts that `extents` names
  std::vector<DataExtent> extents;
  std::vector<Control> controls;            ///< a pass makes them of calls
  std::map<std::string, Tensor> constants;  ///< those that definitions read or that are outputs
  std::vector<Definition> definitions;
  std::vector<ProgramStep> steps;
  /// The program as it was when the first pass began; null before that.
  std::shared_ptr<const Program> imported;
  /// Constants of which only the type and the hash are known, by name: a derivation that is replayed without the model.
  /// Zeros stand for their values, and what would be computed from them is withheld too ("" until its hash is known).
  std::map<std::string, std::string> withheld;
  std::vector<std::string> evaluated;  ///< layers whose outputs are constants, known at compile time
  std::vector<std::string> notes;      ///< for the user: "dimension N of input x is taken to be 1; use --dim N=..."
  /// Where float values have to lie so that what reads them is defined there: positive numbers for a logarithm. Known
  /// once calls are unfolded, for seeded checks; neither printed nor compared.
  std::map<std::string, Domain> domains;
  // Of the model that it was made from; neither printed nor compared.
  /// Layers that are other calls here, over all that their operands have room for (ir/operators/data_extents.h): those
  /// calls mean nothing where arrays are as long as data decide.
  std::vector<std::string> bounded;
  std::vector<ModelLayer> layers;       ///< in the model's order
  uint64_t hash = 0;                    ///< of its bytes, external data included
  std::vector<RoundingBound> rounding;  ///< what passes know of the rules that they have applied
};

/// The same sizes, inputs, outputs, constants and definitions: names, types, layers and terms.
bool same_program(const Program& a, const Program& b);
Type type_of(const Tensor& tensor);
Type type_of(const ValueInfo& info);
/// The type of every input, constant and definition by value name.
std::map<std::string, Type> value_types(const Program& program);
/// A value that is one array.
ValueInfo value_info(const std::string& name, Type type);
std::vector<ValueInfo> input_infos(const Program& program);  ///< of the model
/// Outputs of the model and counts of their extents.
size_t output_count(const Program& program);
/// Those of the model: counts, and what controls need, are none.
std::vector<ValueInfo> output_infos(const Program& program);
size_t model_input_count(const Program& program);
size_t model_output_count(const Program& program);
/// The outputs of the model, cut to the extents that data have given them; `outputs` are all of the program's, in
/// order. Errors: a count below 0 or above what the output's type says.
Result<std::vector<Tensor>> cut_outputs(const Program& program, std::vector<Tensor> outputs);
/// The error where data give an output more elements along a dimension than there is room for, or fewer than none.
Diagnostic wrong_extent(const std::string& output, int64_t dimension, int64_t count, int64_t most);
/// How many definitions and outputs read each value (a definition counts once however often it does).
std::map<std::string, int> use_counts(const Program& program);
/// Puts those of `more` that are not among the layers behind them.
void add_layers(std::vector<std::string>& layers, const std::vector<std::string>& more);
/// The definition of that value; null when there is none.
const Definition* find_definition(const Program& program, const std::string& value);
Definition* find_definition(Program& program, const std::string& value);
/// The constant of that name; null where the value is computed.
const Tensor* find_constant(const Program& program, const std::string& value);
/// Whether the program gives the value.
bool is_output(const Program& program, const std::string& value);
/// The type of an input, a constant or a defined value; null when there is none. For many values: value_types.
Type find_type(const Program& program, const std::string& value);
/// What the definition is called to people: its first layer, or its value where it computes none.
const std::string& layer_name(const Definition& definition);
/// A step that replays: of the rule or pass, at the definition, or on the whole program.
ProgramStep replayed_step(const std::string& rule, const Definition& definition);
ProgramStep replayed_step(const std::string& rule);
/// What a step says of a constant of the program: its hash, and its values where there are few or all are wanted.
StepConstant step_constant(const Program& program, const std::string& name, bool with_values = false);
/// Removes definitions and constants that no output needs.
void remove_unused(Program& program);

/// Names for values that are made up: by a pass, or while a program is built. A model may call its own values and
/// layers anything, "conv1.windows" too, so every such name comes from here.
class ValueNames {
 public:
  ValueNames() = default;
  /// None that a value or a layer of the program has.
  explicit ValueNames(const Program& program);
  void take(const std::string& name) { taken_.insert(name); }
  /// `wanted`, with as many "_" behind it as it takes to be new; taken from then on.
  std::string make(std::string wanted);

 private:
  std::unordered_set<std::string> taken_;
};

}  // namespace hoist
