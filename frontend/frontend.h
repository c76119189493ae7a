// The import of models: an ONNX file becomes a program of operator calls, or a list of all its problems. The program is
// safe to trust: sizes are bounded, names resolve, calls are typed and in topological order, at one version of the
// standard. Only this folder includes onnx or protobuf headers. Tensors alone: tensor_file.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/tensor.h"
#include "ir/program/data_bounds.h"
#include "ir/program/program.h"

namespace hoist {

/// The kind of an input or an output of a model. A program has only tensors: a sequence x is x.0, x.1, ..., and an
/// optional value x is its content, or nothing. A map is the row of its values by key; a sequence of maps has one row
/// for each.
enum class ValueKind : uint8_t { tensor, sequence, optional_tensor, optional_sequence, map, sequence_of_maps };

/// The keys of a map in the order of its columns, integers as text; none if they are the keys of the data, ascending.
using MapKeys = std::vector<std::string>;

struct ValueKinds {
  std::vector<ValueKind> inputs, outputs;        ///< inputs without an initialiser, in the model's order
  std::vector<MapKeys> input_keys, output_keys;  ///< keys of maps and sequences of maps, one entry per input (output)
};
/// The declarations of the file. Errors: no file, not an ONNX model.
Result<ValueKinds> value_kinds(const std::filesystem::path& path);

/// The value of a symbolic dimension. `name` is the dimension's own name, or INPUT.AXIS with AXIS counted from 0; INPUT
/// may also be a result with a data-dependent size that the model leaves open (OperatorRow::declared_extents). For an
/// input that is a sequence, INPUT is the number of members and INPUT.MEMBER.AXIS an extent of a member; for an
/// optional input INPUT is 0 if it is absent.
struct DimensionValue {
  std::string name;
  int64_t extent = 1;
};

/// Reads NAME=N as --dim takes it; NAME may hold "=" and ".", N is 0 or more.
Result<DimensionValue> parse_dimension_value(const std::string& text);

/// A value that an input of the model gets at compile time. An `untyped` value (i64 or f64) takes the type that the
/// model declares, which has to represent its numbers; floats are rounded.
struct InputValue {
  std::string name;
  Tensor value;
  bool untyped = false;
};

struct ReadOptions {
  std::vector<DimensionValue> dimensions;

  /// Values of inputs that become constants of the program: inputs that determine shapes, or that never change.
  std::vector<InputValue> values;

  /// Pairs of an input and an output that become states, as in StateRequest (ir/program/states.h), and the initial
  /// values of some of them.
  std::vector<std::string> states;
  std::vector<InputValue> initial;

  DataBounds bounds;  ///< bounds of a data-dependent dimension

  /// The training step, from 1, that is read in place of the inference graph; 0: none. Initialisers that it updates
  /// become inputs, and their next values are outputs.
  int64_t training_step = 0;

  /// True: layers that were exported for training are read in their form for inference.
  bool inference_form = false;

  /// True if hoist has an operator of this domain ("" is ai.onnx) and name. Operators without one are replaced by their
  /// function body where the standard or the model gives one, and reported otherwise. If the function is empty, every
  /// operator of the standard passes and only the model's own functions are replaced.
  std::function<bool(const std::string& domain, const std::string& operation)> has_operator;

  /// False: Program::hash leaves out external data, whose large tensors are read only by passes that need their values.
  bool hashes_weights = true;

  /// Limits for untrusted models: bytes of the model file (protobuf itself ends at 2 GiB), bytes of one tensor,
  /// messages and strings in the file, layers after functions are inlined.
  int64_t maximum_file_bytes = (int64_t{1} << 31) - 1;
  int64_t maximum_tensor_bytes = int64_t{1} << 34;
  int64_t maximum_objects = 4'000'000;
  int64_t maximum_layers = 500'000;
};

/// Reads, checks and normalises a model. External data are read from the folder that `path` names, never from outside
/// it. Errors: all faults of the model, or everything unsupported in it, in model order.
Result<Program> read_model(const std::filesystem::path& path, const ReadOptions& options = {});

struct FittedModel {
  Program program;
  std::vector<size_t> inputs;        ///< indices of the data that become the program's inputs, in its order
  std::vector<std::string> outputs;  ///< outputs in the model's order, including the next values of states
  std::vector<std::string> fixed;    ///< inputs whose values the data give because they determine shapes
  std::vector<std::string> notes;    ///< other facts from the data: the number of members of a sequence
};

/// The number of tensors that recorded data have for each input of a model, in order; nothing for an absent optional
/// input. Empty if each input is a tensor.
using RecordedLayout = std::vector<std::optional<size_t>>;

/// The model for recorded data, in the model's order: one tensor for each input without an initialiser, or the number
/// in `layout`. The data determine the number of members of sequences and the presence of optional inputs, the extents
/// that the model leaves open (options.dimensions overrides them, and a run reports a mismatch), and the values of
/// inputs that the program has to know. Errors: errors of read_model, another number of data.
Result<FittedModel> read_model_for(const std::filesystem::path& path, const ReadOptions& options,
                                   const std::vector<Tensor>& data, const RecordedLayout& layout = {});

/// Checks that the model is valid, whether or not hoist has its operators. Errors: all its problems.
Result<Nothing> check_model(const std::filesystem::path& path, ReadOptions options = {});

/// The list of `hoist check`.
enum class Support : uint8_t {
  operation,  ///< hoist has the operator
  function,   ///< it is replaced by its function body; read_model reports problems in the body
  constant,   ///< it becomes a constant
  none,
};

struct OperatorUse {
  std::string domain, operation;
  int64_t count = 0;
  Support support = Support::none;
};

/// The operators a model's graph uses, as the file has them, by domain and name. Works on models that read_model
/// refuses as long as the file can be parsed; nodes inside subgraphs and functions are counted too.
Result<std::vector<OperatorUse>> list_operators(const std::filesystem::path& path, const ReadOptions& options = {});

/// An operator as the standard defines it.
struct StandardOperator {
  std::string domain, name;   ///< the domain "ai.onnx" is ""
  std::vector<int> versions;  ///< versions of the domain in which the operator's definition changed; ascending
  /// Type of its first input, or of its first result if it has no input: "float", "seq(int64)".
  std::vector<std::string> types;
  bool has_body = false;         ///< a function of other operators
  bool becomes_another = false;  ///< read as the operator that replaced it
  bool is_constant = false;      ///< read as its content
};
/// All operators by domain and name, then the operators of onnxruntime whose bodies use the standard's; operators that
/// the standard has removed are left out.
std::vector<StandardOperator> standard_operators();

}  // namespace hoist
