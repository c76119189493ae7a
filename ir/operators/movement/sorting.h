// Counting, sorting and ranking elements, for operators that choose among them. Only for ir/operators.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/operators/definitions/support.h"

namespace hoist::operators {

Expr integer_value(int64_t value);
/// The position of an array of n that is nearest to i.
Expr place_inside(Number i, int64_t n);

/// A kernel that adds up numbers one after the other keeps all sums in the memory of one work-item.
constexpr int64_t longest_sum = 1024;
/// In the memory of one work-item.
Expr running_sums_of(Expr row, Expr zero);
/// numbers : [n]. The sums of those up to each place, that one included: of blocks, then of the blocks before.
Expr running_sums(Expr numbers);
Expr last_of(Expr row);
/// flags : [n]bool. The number of set flags up to each position, inclusive.
Expr running_count(Expr flags);
/// The position of the counted element with number `which`; the number of elements if there is none.
Expr place_of_counted(Expr counts, Expr which);

/// Up to so many elements are compared with all others: one kernel, and a scatter that a kernel takes.
constexpr int64_t few_elements = 64;
/// True if the element of a row at one position comes before the element at another one.
using Before = std::function<Expr(const std::vector<Expr>& row, Expr place, Expr other)>;
/// arrays : of [r] rows each, of n elements. The places of each row in order, [r][n]i32: `before` decides, then the
/// places themselves.
Expr sorted_places(const std::vector<Expr>& arrays, int64_t n, const Before& before);
Result<Nothing> check_sorted(int64_t n, const std::string& what);
/// True if a comes before b. NaN is one number, larger than all others, and bools are numbers.
Number in_order(Expr a, Expr b);
/// A number as an unsigned one in the order of in_order(), u64 for one of 64 bits and else u32.
Expr as_ordered_bits(Expr a);

/// So many are chosen in one kernel, whose length grows with them.
constexpr int64_t most_in_one_kernel = 16;
/// True if choosing k of n elements costs less than sorting them.
bool are_few(int64_t k, int64_t n);
/// rows : [r][n]. The places of the k first ones of each row, [r][k]i32.
Expr places_of_few(Expr rows, int64_t k, bool largest);
/// The same as a host op.
Result<Expr> places_on_host(Expr rows, int64_t k, bool largest);

}  // namespace hoist::operators
