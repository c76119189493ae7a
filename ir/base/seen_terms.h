// The set of terms that a walk over a graph of terms has visited: an open-addressing hash table, since such sets are
// small and created often. Not for sets that outlive the walk.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

class SeenTerms {
 public:
  /// Inserts the term. True if the set did not contain it.
  bool insert(Expr e) {
    Expr& slot = slots_[place_of(e)];
    if (slot == e) return false;
    slot = e;
    if (2 * ++count_ > slots_.size()) grow();
    return true;
  }
  bool contains(Expr e) const { return slots_[place_of(e)] == e; }
  size_t size() const { return count_; }

 private:
  static constexpr size_t first_size = 64;

  // The index of the term's slot, or of the free slot for it.
  size_t place_of(Expr e) const {
    const size_t last = slots_.size() - 1;  // a power of two minus one
    size_t place = static_cast<size_t>(e->serial * 0x9e3779b97f4a7c15U >> 32) & last;
    while (slots_[place] != nullptr && slots_[place] != e) place = (place + 1) & last;
    return place;
  }
  void grow() {
    std::vector<Expr> before(2 * slots_.size());
    slots_.swap(before);
    for (Expr e : before) {
      if (e != nullptr) slots_[place_of(e)] = e;
    }
  }

  std::vector<Expr> slots_ = std::vector<Expr>(first_size);
  size_t count_ = 0;
};

}  // namespace hoist
