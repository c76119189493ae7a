// Builds a program from operator calls that name what they read, as model files have them, and gives the calls of a
// program by name: for frontends, exporters, and rewrites that put other calls in the place of a program's. Calls are
// typed as they are added. Inputs that decide shapes become attributes: shape arithmetic is evaluated here, and nothing
// else is. Sequences and optional values end here, too: what they hold is known, and the program has that.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/operators/data_extents.h"
#include "ir/program/data_bounds.h"
#include "ir/program/program.h"

namespace hoist {

struct OperatorRow;

/// Whether a shape is as expected, where an expected extent below 0 stands for any.
bool extents_agree(const std::vector<int64_t>& expected, const std::vector<int64_t>& found);

struct NamedCall;

/// A body by names. A name that it reads and does not define is a value of the program around it: what it captures.
struct NamedBody {
  std::string attribute, name;
  std::vector<std::string> inputs;
  std::map<std::string, Tensor> constants;
  std::vector<NamedCall> calls;
  std::vector<std::string> outputs;
};

/// A call by names.
struct NamedCall {
  std::string name;       ///< of the layer that it is in the model; unique
  std::string operation;  ///< ONNX op_type: "Conv"
  std::string domain;     ///< "" is ai.onnx
  Attributes attributes;
  std::vector<std::string> inputs;         ///< value names; "" where an optional input is left out
  std::vector<std::string> outputs;        ///< value names; "" where an optional output is not wanted
  std::vector<std::string> absorbed = {};  ///< layers of the model that the call computes beside its own
  std::vector<NamedBody> bodies = {};      ///< attributes that are programs
  int64_t version = 0;  ///< of ai.onnx, whose meaning the call has (ir/operators/versions.h); 0 is the program's
};

/// Less its operands.
OperatorCall call_of(const NamedCall& named, int64_t version);

class ProgramBuilder {
 public:
  /// `version` of ai.onnx, for all calls.
  ProgramBuilder(std::string name, int64_t version);

  void add_input(const ValueInfo& input);
  void add_constant(const std::string& name, Tensor value);
  /// A value that is a list of tensors, which are there already.
  void add_list(const std::string& name, TensorList list);
  /// What something else believes of a value's type; -1 for an extent that it does not know. Where the definition of
  /// the operator says otherwise, one of the two is wrong: the program gets a note.
  void expect(const ValueInfo& value);
  /// Value names that calls to come define, so that names made up here do not take them.
  void reserve(const std::set<std::string>& names) {
    for (const std::string& name : names) names_.take(name);
  }
  /// From now on calls are over all that their operands have room for: what becomes of counts is said elsewhere.
  void take_bounds() { bounded_ = true; }
  /// Calls that none of their attributes bounds say so from then on, each in an attribute `most`.
  void set_bounds(const DataBounds& bounds) { bounds_ = bounds; }
  /// Calls come in topological order. Those of older versions are brought up to the program's.
  void add_call(const NamedCall& call);
  /// The members of a list become outputs called after it: y.0, y.1, ...
  void add_output(const std::string& value);
  /// Whether a call, an input or a constant has given this value, as a tensor.
  bool is_tensor(const std::string& value) const { return types_.count(value) != 0; }
  /// The dimensions of a value whose extent data decide, and the values that count them.
  std::map<int64_t, std::string> counts_of(const std::string& value) const;

  /// Errors: every layer that has no definition, in one go; each names the layer. Readers of such a layer are silent.
  Result<Program> finish();

 private:
  class CallComposer;
  struct BodyList {  // a result of a body that is no tensor, and how many outputs of its program stand for it
    size_t result;
    TensorList list;
  };
  Result<Expr> call_for(const NamedCall& call, std::vector<BodyList>& lists);
  Result<Nothing> compose(const NamedCall& call, const OperatorRow& row);
  Result<bool> compose_counted(const NamedCall& call);
  Result<bool> splice_branches(const NamedCall& call);
  Result<Nothing> define_counted(const NamedCall& call);
  Result<NamedCall> with_equal_bounds(const NamedCall& call, bool of_all_counts);
  Result<Nothing> follow_numbers(const NamedCall& call);
  bool reads_data_extents(const NamedCall& call) const;
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
  struct CountedBody;
  Result<bool> goes_on(const NamedBody& body);
  Result<std::string> define_open_loop(const NamedCall& call);
  void define_appended(const NamedCall& call, const NamedCall& loop, size_t state, int64_t axis);
  bool define_appended_lists(const NamedCall& call);
  Result<std::string> with_room(CallComposer& composer, const std::string& value, const std::vector<int64_t>& room);
  Result<CountedBody> counted_body(const NamedCall& call, int64_t most, const std::vector<WholeNumbers>& states);
  Result<Nothing> capture_counted(const NamedCall& call, ProgramBuilder& inside, std::vector<std::string>& captured);
  Result<std::string> define_counted_loop(const NamedCall& call);
  void splice_rows(const NamedCall& call, size_t output, const std::vector<std::string>& rows);
  Result<Nothing> add_bodies(const NamedCall& named, const OperatorRow& row, OperatorCall& call,
                             std::vector<Expr>& operands, std::vector<BodyList>& lists);
  void define(const std::string& value, Expr e, const NamedCall& call);
  Result<const Tensor*> known_value(const std::string& value);
  void compare_expected(const std::string& value, Type type, const std::string& layer);

  Program program_;
  Diagnostics problems_;
  std::map<std::string, Type> types_;
  std::map<std::string, TensorList> lists_;  // values that are no tensors; no name is in both
  std::map<std::string, ValueInfo> expected_;
  ValueNames names_;
  std::set<std::string> failed_;
  std::map<std::string, std::map<int64_t, std::string>> counts_;  // by value and dimension: what counts its elements
  std::map<std::string, WholeNumbers> numbers_;  // elements of values that extents are made of, some of them not known
  std::map<std::string, std::string> made_once_;
  std::map<std::string, NumberRange> ranges_;  // of values that somebody has asked about
  std::map<std::string, size_t> places_;       // of definitions, by value
  ProgramBuilder* around_ = nullptr;           // of the program that a body stands in, while it is built
  bool bounded_ = false;
  DataBounds bounds_;
  struct Known {
    size_t place;  // of the definition
    Expr term;     // without calls
  };
  std::map<std::string, Known> known_;  // definitions that read nothing but constants
};

/// The calls of a program of one operator call a definition, in order. What decides a shape is an attribute; a result
/// that no definition takes is "".
std::vector<NamedCall> named_calls(const Program& program);

/// The call as model files have it: what decides a shape is an input again, a constant called after a result and the
/// input ("y.shape"), unless the operator has the attribute itself in this version.
void shapes_to_inputs(NamedCall& call, int64_t version, std::map<std::string, Tensor>& constants);

/// `program` with these calls, in topological order, in the place of its definitions: its inputs, the outputs that it
/// names, what was done to it, and the constants that are read. Errors: those of ProgramBuilder.
Result<Program> with_calls(const Program& program, const std::vector<NamedCall>& calls);

}  // namespace hoist
