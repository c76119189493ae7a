// The executed work of a term: scalar operations by class, bytes, products. check, inspect, roofline, the report and
// passes count by this file alone. A scalar is executed once in each iteration of the loops (maps, folds) around it up
// to the innermost one that it depends on. A subterm that several consumers read at the same position counts once; a
// subterm that is read at several positions (windows over computed elements, rows inside a loop over columns) counts
// each time. A fold counts once for each element of the maps around it. Scalars are computed in the place where a
// function or a let binds them, elements of arrays at their uses, materialised arrays once in their place. Positions
// and borders are not operations; both branches of a selection are executed, except for rarely(), which executes its
// usual branch.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "ir/language/expression.h"

namespace hoist {

enum class OperationClass : uint8_t { multiply_add, comparison, division, transcendental, integer, conversion };
inline constexpr size_t operation_classes = 6;
std::string_view name_of(OperationClass kind);
/// The class of a function on operands of a type. Comparisons and logic belong to `comparison`, remainders to
/// `division`, other operations on integers to `integer`, other operations on floats that are one instruction to
/// `multiply_add`.
OperationClass class_of(Function function, Scalar operands);

/// Counts are saturated at the largest integer.
struct Work {
  std::array<int64_t, operation_classes> operations{};
  int64_t products = 0;  ///< multiplications of any type among them; a fused multiply-add is one
  int64_t needed =
      0;  ///< at most arithmetic(): counts each scalar once per combination of the positions that it depends on
  int64_t fused = 0;                    ///< fused multiply-adds among them
  std::map<std::string, int64_t> read;  ///< bytes of each parameter, every element once
  int64_t written = 0;                  ///< bytes of the result
  bool is_exact = true;                 ///< false for a term that is too large to count: its tree is counted instead

  int64_t of(OperationClass kind) const { return operations[static_cast<size_t>(kind)]; }
  /// Operations without conversions; a fused multiply-add is two, as in the peak of a device.
  int64_t arithmetic() const;
  /// An estimate of instructions: 4 for a division or a root, 16 for another function, 1 for other operations
  /// (instruction_estimate() of a scalar).
  int64_t instructions() const;
  int64_t bytes() const;  ///< read and written
};
/// The sum; `read` adds up by name.
Work operator+(const Work& a, const Work& b);
Work operator*(int64_t times, const Work& work);  ///< of so many evaluations

/// The work of one evaluation of a closed term, high-level or low-level. Calls of operators count as their definitions.
Work executed_work(Expr term);

}  // namespace hoist
