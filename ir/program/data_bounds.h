// The user's upper bounds for dynamic shapes that neither the model nor the standard bounds: they determine the
// capacity of arrays.
#pragma once

#include <cstdint>
#include <optional>

namespace hoist {

struct DataBounds {
  /// Maximum trip count of a Loop with a data-dependent end; with scan outputs, also their capacity in rows. Default:
  /// 1,048,576, or 1,024 with scan outputs.
  std::optional<int64_t> loop_iterations = {};

  /// Maximum number of pieces per string of a StringSplit without maxsplit or of a Tokenizer, including its marks.
  /// Defaults: 64 and 1,024.
  std::optional<int64_t> string_pieces = {};
};

}  // namespace hoist
