// What the reader of a model says of values that are as large as data decide, where neither the model nor the standard
// bounds them: their arrays have room for so much.
#pragma once

#include <cstdint>
#include <optional>

namespace hoist {

struct DataBounds {
  /// How often a Loop whose end is up to data runs at most; where it has scan outputs, they have room for so many rows.
  /// Nothing: 1,048,576 and 1,024 times.
  std::optional<int64_t> loop_iterations = {};

  /// How many pieces a string is cut into at most, by a StringSplit without maxsplit or by a Tokenizer, whose marks
  /// count. Nothing: 64 and 1,024.
  std::optional<int64_t> string_pieces = {};
};

}  // namespace hoist
