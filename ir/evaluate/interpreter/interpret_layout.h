// The numbering of the scalars of a value in the interpreter: a path of indices and components corresponds to an offset
// in a flat row of words, for accumulators and memoised values. Internal to the interpreter.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/language/type.h"

namespace hoist::interpretation {

/// Paths and environments are linked lists whose cells are on the stack of the functions that create them.
struct Cell {
  int64_t value = 0;
  const Cell* rest = nullptr;
};

/// A type as offsets in a flat row of words: arrays row-major, the components of a tuple in sequence.
struct Layout {
  int64_t count = 1;
  const Layout* element = nullptr;
  std::vector<std::pair<int64_t, const Layout*>> parts;  ///< with its offset
};

/// Layouts by type, each created once.
class Layouts {
 public:
  const Layout* of(Type type);

 private:
  std::unordered_map<Type, std::unique_ptr<Layout>> made_;
};

int64_t offset_of(const Layout* layout, const Cell* path);
/// The path to the scalar at an offset. Its cells are stored in `cells`, which is cleared first.
const Cell* path_to(const Layout* layout, int64_t offset, std::vector<Cell>& cells);

}  // namespace hoist::interpretation
