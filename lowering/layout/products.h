// What layouts know of a definition that is a product: which of its terms lie side by side, and in which words
// instructions read them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "ir/target/profile.h"

namespace hoist {

/// Do all results of a row share one operand, and all of a column the other?
bool is_product(const Definition& d);

/// How many products of a sum lie side by side: those over input channels, or over the rows of a matrix.
int64_t neighbouring_terms(const Definition& d, const std::vector<int64_t>& extents);

/// Products of numbers that lie side by side in words of four bytes, which one instruction adds to a sum.
struct WordProducts {
  int64_t together = 0;      ///< in a word; 0 where no instruction forms the sums
  bool of_vectors = false;   ///< dot instructions form sums of vectors
  bool of_matrices = false;  ///< and matrix instructions those of tiles
};

/// Four of unsigned bytes and signed ones, two of 16 bits (the right ones may be stored in 8), two of bf16.
WordProducts products_in_word(const Definition& d, const std::map<std::string, Type>& types, const Weights& w,
                              const Profile& profile);

/// The numbers that dot instructions read in words: their channels have to lie side by side.
std::set<std::string> read_interleaved(const Program& program, const std::map<std::string, Type>& types,
                                       const Profile& profile);

}  // namespace hoist
