// What operators do that take or give more than tensors: sequences of them, and optional values. How many tensors there
// are is known while a program is built, as their shapes are, so that such a value is a list of the program's ordinary
// values and a call is a composition of other calls, or nothing but another list; a sequence that grows as often as
// data say is the array of its members, which are of one type then. No kernel ever sees one. Only for ir/operators,
// which says what compositions are, and for what builds programs.
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

/// A sequence, or an optional value that is absent; one that is present is what it holds.
struct TensorList {
  bool absent = false;
  std::vector<std::string> members = {};  ///< values of the program, tensors all
  std::optional<Scalar> scalar = {};      ///< of the elements of all members; nothing where nobody says it
  /// Where data decide how many members there are: the array whose elements they are. Then `members` has none.
  std::string rows = {};

  bool operator==(const TensorList&) const = default;
};

/// "a sequence of 3 tensors", "an optional value that is absent"
std::string text(const TensorList& list);

/// No sequence has more members.
inline constexpr size_t most_members = 4096;

/// A call whose place others take, and what is known of the values that it reads.
class Composer {
 public:
  virtual ~Composer() = default;

  virtual const NamedCall& call() const = 0;
  /// The version of ai.onnx.
  virtual int64_t version() const = 0;
  /// Whether an input is there.
  virtual bool has(size_t input) const = 0;
  /// Null where the input is a tensor, or left out.
  virtual const TensorList* list(size_t input) const = 0;
  /// Of a tensor.
  virtual Type type(const std::string& value) const = 0;
  /// Null where only data say it, or the value is no tensor.
  virtual Result<const Tensor*> known(const std::string& value) = 0;
  /// The dimensions of a value whose extent data decide, and what counts them.
  virtual std::map<int64_t, std::string> counts(const std::string& value) const = 0;

  /// A call in the place of this one, and the values that it gives.
  virtual std::vector<std::string> add(const std::string& operation, Attributes attributes,
                                       std::vector<std::string> inputs, size_t results = 1) = 0;
  /// The value that is this constant.
  virtual std::string constant(Tensor value) = 0;
  /// What a result of the call is: a tensor, or a list.
  virtual void give(size_t result, const std::string& value) = 0;
  virtual void give(size_t result, TensorList list) = 0;
};

/// For an operator with lists as operands or results, or with more inputs than its definition reads.
struct CompositionRow {
  Result<Nothing> (*compose)(Composer& composer);
  /// Otherwise the row's definition holds for calls that read tensors alone and have at most `most_inputs` inputs.
  bool always = true;
  size_t most_inputs = SIZE_MAX;
};

}  // namespace hoist
