// The way into hoist: an ONNX file becomes a program of operator calls, or all its problems at once. What comes out is
// safe to trust: sizes are bounded, names resolve, calls are typed and in topological order, at one version of the
// standard. Only this folder includes onnx or protobuf headers. Not for tensors alone: tensor_file.h reads those.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/program/program.h"
#include "ir/result.h"

namespace hoist {

/// The value of a symbolic dimension: `name` is the dimension's own name, or INPUT.AXIS with AXIS counted from 0.
struct DimensionValue {
  std::string name;
  int64_t extent = 1;
};

/// Reads NAME=N as --dim takes it; NAME may hold "=" and ".", N is 1 or more.
Result<DimensionValue> parse_dimension_value(const std::string& text);

struct ReadOptions {
  std::vector<DimensionValue> dimensions;

  /// Values of the model's first inputs, by position: they become constants, and the model is one for these values. For
  /// inputs that decide shapes, whose values a program has to know.
  std::vector<Tensor> known_inputs;

  /// Says whether hoist has an operator of this domain ("" is ai.onnx) and name. Operators without one are replaced by
  /// their function body where the standard or the model gives one, and reported otherwise. Left empty, every operator
  /// of the standard passes and only the model's own functions are replaced.
  std::function<bool(const std::string& domain, const std::string& operation)> has_operator;

  /// Limits against hostile models. Bytes of the model file (protobuf itself ends at 2 GiB), bytes that one tensor may
  /// claim, messages and strings in the file, layers after functions are replaced.
  int64_t maximum_file_bytes = (int64_t{1} << 31) - 1;
  int64_t maximum_tensor_bytes = int64_t{1} << 34;
  int64_t maximum_objects = 4'000'000;
  int64_t maximum_layers = 500'000;
};

/// Reads, checks and normalises a model. External data are read from the folder that `path` names, never from outside
/// it. Errors: everything that is wrong with the model, or everything in it that is not supported, in model order.
Result<Program> read_model(const std::filesystem::path& path, const ReadOptions& options = {});

/// Whether the model is right in itself, whatever hoist has operators for. Errors: everything that is wrong with it.
Result<Nothing> check_model(const std::filesystem::path& path, ReadOptions options = {});

/// What `hoist check` lists.
enum class Support : uint8_t {
  operation,  ///< hoist has the operator
  function,   ///< it is replaced by its function body; what that holds is reported by read_model
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

}  // namespace hoist
