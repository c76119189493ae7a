// Builds a program from operator calls that use values by name, as in model files, and converts a program back to named
// calls: for frontends, exporters, and rewrites that replace calls. Calls are typed as they are added. Inputs that
// determine shapes become attributes: shape arithmetic is evaluated here, but no other computation. Sequences and
// optional values are resolved here: their contents are known and become ordinary values.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/operators/dynamic/dynamic_extents.h"
#include "ir/program/data_bounds.h"
#include "ir/program/program.h"

namespace hoist {

struct OperatorRow;

/// True if the shapes agree; an expected extent below 0 matches any extent.
bool extents_agree(const std::vector<int64_t>& expected, const std::vector<int64_t>& found);

struct NamedCall;

/// A body by names. A name that it uses and does not define is a captured value of the enclosing program.
struct NamedBody {
  std::string attribute, name;
  std::vector<std::string> inputs;
  std::map<std::string, Tensor> constants;
  std::vector<NamedCall> calls;
  std::vector<std::string> outputs;
};

struct NamedCall {
  std::string name;       ///< name of the layer in the model; unique
  std::string operation;  ///< ONNX op_type: "Conv"
  std::string domain;     ///< "" is ai.onnx
  Attributes attributes;
  std::vector<std::string> inputs;         ///< value names; "" for an omitted optional input
  std::vector<std::string> outputs;        ///< value names; "" for an unused optional output
  std::vector<std::string> absorbed = {};  ///< further layers of the model that the call computes
  std::vector<NamedBody> bodies = {};      ///< attributes that are programs
  int64_t version =
      0;  ///< version of ai.onnx, whose meaning the call has (ir/operators/versions.h); 0 is the program's
};

/// The operator call without its operands.
OperatorCall call_of(const NamedCall& named, int64_t version);

class ProgramBuilder {
 public:
  /// `version` of ai.onnx, for all calls.
  ProgramBuilder(std::string name, int64_t version);

  void add_input(const ValueInfo& input);
  void add_constant(const std::string& name, Tensor value);
  /// Adds a value that is a list of existing tensors.
  void add_list(const std::string& name, TensorList list);
  /// A type that another source states for a value; -1 for an unknown extent. If the operator's definition disagrees,
  /// the program gets a note.
  void expect(const ValueInfo& value);
  /// Reserves the names that later calls define, so that generated names differ from them.
  void reserve(const std::set<std::string>& names) {
    for (const std::string& name : names) names_.take(name);
  }
  /// From now on, calls process the full capacity of their operands; the caller handles actual extents.
  void take_bounds() { bounded_ = true; }
  /// From now on, calls whose size no attribute bounds get an attribute `most` with the bound.
  void set_bounds(const DataBounds& bounds) { bounds_ = bounds; }
  /// Calls must be added in topological order. Calls of older versions are upgraded to the program's version.
  void add_call(const NamedCall& call);
  /// Adds an output; the members of a list become outputs with derived names: y.0, y.1, ...
  void add_output(const std::string& value);
  /// True if a call, an input or a constant has defined this value as a tensor.
  bool is_tensor(const std::string& value) const { return types_.count(value) != 0; }
  /// The dynamic dimensions of a value, with the values that contain their actual extents.
  std::map<int64_t, std::string> counts_of(const std::string& value) const;

  /// Returns the program. Errors: all layers that could not be defined, each by name; consumers of such a layer are not
  /// reported.
  Result<Program> finish();

 private:
  class CallComposer;
  struct BodyList {  // a result of a body that is a list, and the outputs of its program that represent it
    size_t result;
    TensorList list;
  };
  Result<Expr> call_for(const NamedCall& call, std::vector<BodyList>& lists);
  std::optional<Diagnostics> obstacles(const NamedCall& call) const;
  Result<Nothing> define_with_lists(const NamedCall& named, Expr call, const std::vector<BodyList>& lists);
  Result<Nothing> compose(const NamedCall& call, const OperatorRow& row);
  Result<bool> compose_dynamic(const NamedCall& call);
  Result<bool> splice_branches(const NamedCall& call);
  Result<Nothing> define_dynamic(const NamedCall& call);
  Result<NamedCall> with_equal_bounds(const NamedCall& call, bool of_all_counts);
  Result<Nothing> follow_numbers(const NamedCall& call);
  bool reads_dynamic_extents(const NamedCall& call) const;
  Result<bool> bounded_data_decide(const NamedCall& call);
  NumberRange range_of_value(const std::string& value);
  NumberRange given_range(const std::string& value);
  std::optional<NamedCall> maker_of(const std::string& value) const;
  Result<Nothing> check_tensors(const NamedCall& call) const;
  NamedCall with_members(const NamedCall& call, const std::vector<BodyList>& lists);
  std::vector<std::string> tensors_read(const NamedCall& call) const;
  void add_body_output(size_t result, const std::string& value, std::vector<BodyList>& lists);
  Result<const NamedBody*> picked_body(const NamedCall& call);
  void splice(const NamedCall& call, const NamedBody& body, std::map<std::string, std::string> names = {});
  Result<std::vector<std::map<int64_t, std::string>>> carried_counts(const NamedCall& named, Expr call,
                                                                     bool same) const;
  Result<Nothing> define_results(const NamedCall& named, Expr call, bool same_counts = false);
  void add_extents();
  Result<bool> cut_known(const std::string& value);
  Result<std::string> splice_iterations(const NamedCall& call);
  struct DynamicBody;
  Result<bool> goes_on(const NamedBody& body);
  Result<std::string> define_open_loop(const NamedCall& call);
  void define_appended(const NamedCall& call, const NamedCall& loop, size_t state, int64_t axis);
  bool define_appended_lists(const NamedCall& call);
  Result<std::string> with_room(CallComposer& composer, const std::string& value, const std::vector<int64_t>& room);
  Result<DynamicBody> dynamic_body(const NamedCall& call, int64_t most, const std::vector<ShapeValues>& states);
  Result<Nothing> capture_dynamic(const NamedCall& call, ProgramBuilder& inside, std::vector<std::string>& captured);
  Result<std::string> define_dynamic_loop(const NamedCall& call);
  void splice_rows(const NamedCall& call, size_t output, const std::vector<std::string>& rows);
  struct Captured {  // by the bodies of a call
    std::map<std::string, Tensor> constants;
    std::vector<std::pair<std::string, Type>> values;
    std::map<std::string, TensorList> lists;
  };
  Result<Captured> captured_values(const NamedCall& named);
  static std::vector<BodyList> common_lists(const std::map<std::string, std::vector<BodyList>>& given_lists,
                                            Diagnostics& problems);
  Result<Nothing> add_bodies(const NamedCall& named, const OperatorRow& row, OperatorCall& call,
                             std::vector<Expr>& operands, std::vector<BodyList>& lists);
  void define(const std::string& value, Expr e, const NamedCall& call);
  Result<std::vector<std::string>> add_gradients(const std::string& of, const std::vector<std::string>& values);
  Result<const Tensor*> known_value(const std::string& value);
  void compare_expected(const std::string& value, Type type, const std::string& layer);

  Program program_;
  Diagnostics problems_;
  std::map<std::string, Type> types_;
  std::map<std::string, TensorList> lists_;  // values that are lists; no name is in both maps
  std::map<std::string, ValueInfo> expected_;
  ValueNames names_;
  std::set<std::string> failed_;
  // By value and dimension: the value with the actual extent.
  std::map<std::string, std::map<int64_t, std::string>> counts_;
  std::map<std::string, ShapeValues> numbers_;  // elements of values from which extents are computed; some are unknown
  std::map<std::string, std::string> made_once_;
  std::map<std::string, NumberRange> ranges_;  // ranges of values, computed on demand
  std::map<std::string, size_t> places_;       // places of definitions, by value
  ProgramBuilder* around_ = nullptr;           // the builder of the enclosing program, for a body
  bool bounded_ = false;
  DataBounds bounds_;
  struct Known {
    size_t place;  // place of the definition
    Expr term;     // with calls inlined
  };
  std::map<std::string, Known> known_;  // definitions that depend on constants only
};

/// The values that the bodies of a call capture, in order of use.
std::vector<std::string> captured_by(const NamedCall& call);

/// The calls of a program with one operator call per definition, in order. Shape values are attributes; a result
/// without a use is "".
std::vector<NamedCall> named_calls(const Program& program);
/// Errors: every layer whose definition is no call, as in a backward pass; such a program has no named calls.
Result<Nothing> check_calls(const Program& program);

/// Converts a call to the form of model files: shape values that are no attribute in this version of the operator
/// become inputs. These are constants, named after a result and the input ("y.shape").
void shapes_to_inputs(NamedCall& call, int64_t version, std::map<std::string, Tensor>& constants);

/// `program` with these calls, in topological order, in place of its definitions; keeps its inputs, outputs, steps and
/// the constants in use. Errors: the errors of ProgramBuilder.
Result<Program> with_calls(const Program& program, const std::vector<NamedCall>& calls);

}  // namespace hoist
