// The reads of parameters in an element of a term: the position in the array as a function of the element's position
// and of the steps of the folds around the read. Layouts are chosen by the distance of consecutive reads in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/evaluate/evaluate_compile.h"
#include "ir/language/expression.h"

namespace hoist {

struct ElementRead {
  std::string parameter;
  std::vector<size_t> loops;     ///< the folds whose steps change the position, outermost first
  std::vector<IndexId> at;       ///< indices for ElementReads::position
  bool depends_on_data = false;  ///< true for a gather, for example
};

/// Positions of a formula as functions of the element and of the steps of its folds. The formula must outlive it.
class FormulaPositions {
 public:
  explicit FormulaPositions(const ElementFormula& formula);
  /// Bounds are not applied: a position in the padding continues the array. A position that depends on data is 0.
  int64_t at(IndexId id, const std::vector<int64_t>& element, const std::vector<int64_t>& steps) const;
  /// The fold whose step the atom is; -1: none.
  int loop_of(AtomId atom) const;
  /// The number that a computed position is, if a literal states it.
  std::optional<int64_t> stated(const Atom& atom) const;

 private:
  const ElementFormula* formula_;
  std::vector<int> dimension_of_, loop_of_;  // index of a dimension or loop by atom; -1: none
};

class ElementReads {
 public:
  /// Empty if the term has no formula of an element: scans, scatters, tuples.
  static std::unique_ptr<ElementReads> of(Expr term);

  const std::vector<ElementRead>& reads() const { return reads_; }
  /// The step counts of the folds.
  const std::vector<int64_t>& loop_counts() const { return counts_; }
  /// The position that the element reads at these steps of the folds, as FormulaPositions gives it.
  std::vector<int64_t> position(const ElementRead& read, const std::vector<int64_t>& element,
                                const std::vector<int64_t>& steps) const;

 private:
  explicit ElementReads(std::unique_ptr<ElementFormula> formula);
  void find_loops(IndexId id, ElementRead& read) const;

  std::unique_ptr<ElementFormula> formula_;
  FormulaPositions positions_;
  std::vector<ElementRead> reads_;
  std::vector<int64_t> counts_;
};

/// The distance in memory of adjacent elements along each dimension of an array; its stored dimension i is the
/// dimension stored[i].
std::vector<int64_t> strides_in(const std::vector<int64_t>& shape, const std::vector<int64_t>& stored);
/// The place in memory of the element at a position.
int64_t address_of(const std::vector<int64_t>& position, const std::vector<int64_t>& strides);

/// True if each array that the folds of a term read serves adjacent elements of the result along one of its last two
/// dimensions of more than one element, as the operands of a matrix product serve rows and columns: tiles then load an
/// operand once for many elements. False for a term without folds or without a formula of an element.
bool shares_operands(Expr term);

/// True if `count` adjacent elements of a row, counted from a multiple of `count`, read adjacent elements of every
/// array, or all the same one. False without a formula of an element.
bool reads_vectors(Expr term, int64_t count);

/// True if adjacent steps of a fold read adjacent elements of an array in which adjacent elements of the result read
/// distant ones: the sums of the rows of a matrix.
bool folds_along_rows(Expr term);

}  // namespace hoist
