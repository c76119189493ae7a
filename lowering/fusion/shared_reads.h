// Sharing inside fused kernels: a value that a consumer reads several times at one position is computed once.
#pragma once

#include <string>

#include "ir/language/expression.h"

namespace hoist {

/// The term as one nest of maps over the distinct arrays that it reads element by element, so that the element of each
/// is one variable of the nest. Views of an array remain around it: x |> transpose occurs once for all its uses.
/// Subterms other than maps, zips and repetitions stay unchanged.
Expr with_shared_elements(Expr term);

/// The consumer's term with the producer's term in place of its value. If `is_costly`, uses of the value at one
/// position share its computation.
Expr merged_term(Expr producer, const std::string& value, Expr consumer, bool is_costly);

/// The consumer's term with the producer's term in place of its value, as one nest of maps in which lets around each
/// row hold the sums that its elements share. Null if an array of the nest would be computed by folds, or if a fold
/// computes an array (scans, scatters), since rows do not share those.
Expr merged_rows(Expr producer, const std::string& value, Expr consumer);

/// The consumer's term with the producer's term in place of its value, as one nest of maps over the producer's rows
/// (the elements of all its dimensions but the last), in which a let around each row materialises the producer's row in
/// private memory. Null if elements of the consumer read other rows too, or if an array of the nest would be computed.
Expr materialised_rows(Expr producer, const std::string& value, Expr consumer);

/// The cost of storing an element and loading it again, in instructions.
inline constexpr int64_t instructions_of_element = 4;
/// True if the merged rows take less time than the two kernels: rows are short, and recomputed values cost less than
/// storing and loading the producer's array.
bool gains_by_rows(Expr merged, Expr producer, Expr consumer);

/// True if the merged term executes no more operations than the two alone, up to the work of a launch.
bool conserves_work(Expr merged, Expr producer, Expr consumer);

/// The number of uses of a parameter in the tree of a term, at most 2^40.
size_t count_reads(Expr term, const std::string& name);

}  // namespace hoist
