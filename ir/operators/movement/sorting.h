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

/// The limit of a running sum in one work-item, whose memory holds all sums.
constexpr int64_t longest_sum = 1024;
/// Running sums, in the memory of one work-item.
Expr running_sums_of(Expr row, Expr zero);
/// numbers : [n]. Inclusive running sums: within blocks, then over the preceding blocks.
Expr running_sums(Expr numbers);
Expr last_of(Expr row);
/// flags : [n]bool. The number of set flags up to each position, inclusive.
Expr running_count(Expr flags);
/// The position of the counted element with number `which`; the number of elements if there is none.
Expr place_of_counted(Expr counts, Expr which);

/// The number of elements up to which each is compared with all others, in one kernel and a scatter.
constexpr int64_t few_elements = 64;
/// True if the element of a row at one position comes before the element at another one.
using Before = std::function<Expr(const std::vector<Expr>& row, Expr place, Expr other)>;
/// arrays : of [r] rows each, of n elements. The positions of each row in sorted order, [r][n]i32: ordered by `before`,
/// ties by position.
Expr sorted_places(const std::vector<Expr>& arrays, int64_t n, const Before& before);
Result<Nothing> check_sorted(int64_t n, const std::string& what);
/// True if a comes before b. All NaNs are equal and larger than every number; bools count as 0 and 1.
Number in_order(Expr a, Expr b);
/// The scalar as an unsigned integer with the order of in_order(), u64 for 64 bits and otherwise u32.
Expr as_ordered_bits(Expr a);

/// The number of elements up to which one kernel chooses them; its length grows with the number.
constexpr int64_t most_in_one_kernel = 16;
/// True if choosing k of n elements costs less than sorting them.
bool are_few(int64_t k, int64_t n);
/// rows : [r][n]. The positions of the first k elements of each row, [r][k]i32.
Expr places_of_few(Expr rows, int64_t k, bool largest);
/// The same as a host op.
Result<Expr> places_on_host(Expr rows, int64_t k, bool largest);

}  // namespace hoist::operators
