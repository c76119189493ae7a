// Terms that read elements of an array repeatedly: fused into them, its elements would be computed repeatedly.
#pragma once

#include <cstdint>
#include <string>

#include "ir/language/expression.h"

namespace hoist {

/// The position of a row that is gathered is read once for the row, or, if the order of loops divides the row, once for
/// each of its elements.
enum class PositionsOfRows : uint8_t { once, repeated };

/// True if evaluating every element of `e` once may read an element of parameter `name` more than once.
bool rereads(Expr e, const std::string& name, PositionsOfRows positions = PositionsOfRows::once);

}  // namespace hoist
