// How the interpreter numbers the scalars of a value: a path of indices and components against an offset in a flat row
// of words, for accumulators and whatever else is computed once. Internal to interpret.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/language/type.h"

namespace hoist::interpretation {

/// Paths and environments are lists whose cells live on the stack of the functions that made them.
struct Cell {
  int64_t value = 0;
  const Cell* rest = nullptr;
};

/// A type as offsets in a flat row of words: arrays row-major, the components of a tuple one after the other.
struct Layout {
  int64_t count = 1;
  const Layout* element = nullptr;
  std::vector<std::pair<int64_t, const Layout*>> parts;  ///< where each begins
};

/// Layouts by type, each made once.
class Layouts {
 public:
  const Layout* of(Type type);

 private:
  std::unordered_map<Type, std::unique_ptr<Layout>> made_;
};

int64_t offset_of(const Layout* layout, const Cell* path);
/// The path to the scalar at an offset; its cells are those of `cells`, which it empties first.
const Cell* path_to(const Layout* layout, int64_t offset, std::vector<Cell>& cells);

}  // namespace hoist::interpretation
