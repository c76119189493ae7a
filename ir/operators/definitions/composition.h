// Operators whose operands or results are not only tensors: sequences of tensors, and optional values. The number of
// tensors is known while a program is built, as their shapes are. So such a value is a list of the program's ordinary
// values, and a call is a composition of other calls, or just another list. A sequence whose growth depends on data is
// the array of its members, which then have one type. No kernel ever reads such a value. Only for ir/operators, which
// defines compositions, and for code that builds programs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/language/expression.h"
#include "ir/language/tensor.h"

namespace hoist {

struct NamedCall;

/// A sequence, or an absent optional value; a present optional value is its content.
struct TensorList {
  bool absent = false;
  std::vector<std::string> members = {};  ///< values of the program, tensors all
  std::optional<Scalar> scalar = {};      ///< scalar type of all members' elements; nothing if it is unknown
  /// If the number of members depends on data: the array of their elements. Then `members` is empty.
  std::string rows = {};

  bool operator==(const TensorList&) const = default;
};

/// "a sequence of 3 tensors", "an optional value that is absent"
std::string text(const TensorList& list);

/// No sequence has more members.
inline constexpr size_t most_members = 4096;

/// A call to be replaced by others, and the known facts about its operands.
class Composer {
 public:
  virtual ~Composer() = default;

  virtual const NamedCall& call() const = 0;
  /// The version of ai.onnx.
  virtual int64_t version() const = 0;
  /// True if the input is present.
  virtual bool has(size_t input) const = 0;
  /// Null if the input is a tensor or absent.
  virtual const TensorList* list(size_t input) const = 0;
  /// The type of a tensor.
  virtual Type type(const std::string& value) const = 0;
  /// Null if the value depends on data or is not a tensor.
  virtual Result<const Tensor*> known(const std::string& value) = 0;
  /// The data-dependent dimensions of a value, and the values that hold their lengths.
  virtual std::map<int64_t, std::string> counts(const std::string& value) const = 0;

  /// Adds a call that replaces this one; returns its results.
  virtual std::vector<std::string> add(const std::string& operation, Attributes attributes,
                                       std::vector<std::string> inputs, size_t results = 1) = 0;
  /// A value with this constant.
  virtual std::string constant(Tensor value) = 0;
  /// Adds the backward pass of the calls before this one; returns the gradients of the sum of the elements of `of` by
  /// these values.
  virtual Result<std::vector<std::string>> gradients(const std::string& of, const std::vector<std::string>& values) = 0;
  /// The kind of a result of the call: a tensor, or a list.
  virtual void give(size_t result, const std::string& value) = 0;
  virtual void give(size_t result, TensorList list) = 0;
};

/// For an operator with lists as operands or results, or with so many inputs that its definition reads them in parts.
struct CompositionRow {
  Result<Nothing> (*compose)(Composer& composer);
  /// True if other calls replace this one; they read only tensors, at most `most_inputs` each. Otherwise the row's
  /// definition is used.
  bool always = true;
  size_t most_inputs = SIZE_MAX;
};

}  // namespace hoist
