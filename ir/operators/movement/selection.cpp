// Operators that choose among elements: the largest, the elements that a condition selects, distinct elements, boxes
// that do not overlap. The number of chosen elements often depends on data: then the result has the capacity for the
// largest number, the chosen elements come first, one more result is their number (ExtentRow), and the rest is 0.
//
// The chosen elements are collected in blocks, and the block of the j-th one is found by bisecting the running count,
// which never decreases. The few largest are found in sequence, each below the one before. Elements are sorted by a
// network of comparisons, whose steps are kernels over all elements (O(n log^2 n) in all). Every order is total, by the
// position in case of ties, so that results are the same everywhere.
#include "ir/operators/movement/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/operators/definitions/host_forms.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

using Dimensions = std::vector<std::pair<int64_t, int64_t>>;

Expr whole_number(int64_t value) { return literal_integer(Scalar::i64, value); }

// A place that is there, of n.
Expr place_inside(Number i, int64_t n) { return max(min(i, static_cast<double>(std::max<int64_t>(n - 1, 0))), 0.0).e; }

// ---- Counting ------------------------------------------------------------------------------------------------------

// A kernel that adds up numbers one after the other keeps all sums in the memory of one work-item.
constexpr int64_t longest_sum = 1024;

// In the memory of one work-item.
Expr running_sums_of(Expr row, Expr zero) {
  return scan([](Expr total, Expr number) { return (Number(total) + number).e; }, zero, row);
}

// numbers : [n]. The sums of those up to each place, that one included: of blocks, then of the blocks before.
Expr running_sums(Expr numbers) {
  const Expr zero = literal_integer(element_of(numbers), 0);
  const auto sums = [&](Expr row) { return running_sums_of(row, zero); };
  const int64_t n = extents(numbers)[0];
  if (n <= longest_sum) return in_memory(sums(numbers));
  const int64_t blocks = (n + longest_sum - 1) / longest_sum;
  const Expr inside = in_memory(map(sums, split(longest_sum, pad_with(0, blocks * longest_sum - n, zero, numbers))));
  const Expr up_to = running_sums(map([](Expr row) { return at_position(longest_sum - 1, row); }, inside));
  const Expr all = map_zip({inside, iota(blocks, element_of(numbers))}, [&](const std::vector<Expr>& block) {
    const Number before =
        choose(Number(block[1]) == 0.0, 0.0, index(place_inside(Number(block[1]) - 1.0, blocks), up_to));
    return map([&](Expr sum) { return (before + sum).e; }, block[0]);
  });
  return in_memory(slice(0, n, join(all)));
}

Expr last_of(Expr row) { return at_position(extents(row)[0] - 1, row); }

// flags : [n]bool. The number of set flags up to each position, inclusive.
Expr running_count(Expr flags) {
  return running_sums(map([](Expr flag) { return convert(Scalar::i64, flag); }, flags));
}

// The number of positions 0 .. n-1 that pass, if the passing ones come first, as a number of that type. Found by
// bisection.
Expr passing_places(int64_t n, Scalar scalar, const std::function<Expr(Expr place)>& passes) {
  Shape steps;
  for (int64_t step = 1; step <= n; step *= 2) steps.insert(steps.begin(), step);
  return fold(
      [&](Expr at, Expr step) {
        const Number next = Number(at) + step;
        return choose((next <= static_cast<double>(n)) & passes(place_inside(next - 1.0, n)), next, at).e;
      },
      literal_integer(scalar, 0), constant(Tensor::of(scalar, {static_cast<int64_t>(steps.size())}, steps)));
}

// The position of the counted element with number `which`; the number of elements if there is none.
Expr place_of_counted(Expr counts, Expr which) {
  return passing_places(extents(counts)[0], element_of(counts),
                        [&](Expr place) { return (Number(index(place, counts)) <= which).e; });
}

// ---- Sorting -------------------------------------------------------------------------------------------------------

/// True if the element of a row at one position comes before the element at another one.
using Before = std::function<Expr(const std::vector<Expr>& row, Expr place, Expr other)>;

// Up to so many elements are compared with all others: one kernel, and a scatter that a kernel takes.
constexpr int64_t few_elements = 64;
constexpr int64_t most_sorted = int64_t{1} << 30;

// arrays : of [r] rows each, of n elements. The places of each row in order, [r][n]i32: `before` decides, then the
// places themselves.
Expr sorted_places(const std::vector<Expr>& arrays, int64_t n, const Before& before) {
  const Scalar place = Scalar::i32;
  const int64_t rows = extents(arrays[0])[0];
  const auto stands_before = [&](const std::vector<Expr>& row, Expr a, Expr b) {
    return (Number(before(row, a, b)) | ((!Number(before(row, b, a))) & (Number(a) < b))).e;
  };
  if (n <= few_elements) {
    return in_memory(map_zip(arrays, [&](const std::vector<Expr>& row) {
      const Expr ranks = map(
          [&](Expr own) {
            return reduce(
                Function::add, literal_integer(place, 0),
                map([&](Expr other) { return convert(place, stands_before(row, other, own)); }, iota(n, place)));
          },
          iota(n, place));
      return scatter(in_memory(ranks), iota(n, place), repeat(n, literal_integer(place, 0)));
    }));
  }
  // A bitonic network over the next power of two. Elements beyond the row come after all of it.
  int64_t width = 1;
  while (width < n) width *= 2;
  Shape blocks, distances;
  for (int64_t block = 2; block <= width; block *= 2) {
    for (int64_t distance = block / 2; distance > 0; distance /= 2)
      blocks.push_back(block), distances.push_back(distance);
  }
  const auto count = static_cast<int64_t>(blocks.size());
  const Expr steps =
      zip({constant(Tensor::of(place, {count}, blocks)), constant(Tensor::of(place, {count}, distances))});
  const auto step = [&](Expr state, Expr sizes) {
    std::vector<Expr> all = arrays;
    all.push_back(state);
    return in_memory(map_zip(all, [&](const std::vector<Expr>& of_row) {
      const std::vector<Expr> row(of_row.begin(), of_row.end() - 1);
      const Expr places = of_row.back();
      return map_zip({places, iota(width, place)}, [&](const std::vector<Expr>& p) {
        const Number block = get(0, sizes), distance = get(1, sizes), own = p[1];
        const auto is_odd = [](Number i) { return apply(Function::remainder, i, 2.0) == 1.0; };
        const Number upper = is_odd(own / distance), descending = is_odd(own / block);
        const Expr mine = p[0];
        const Expr theirs = index(place_inside(choose(upper, own - distance, own + distance), width), places);
        const Number there = (Number(mine) < static_cast<double>(n)) & (Number(theirs) < static_cast<double>(n));
        const Expr a = place_inside(mine, n), b = place_inside(theirs, n);
        const Number mine_first = choose(there, stands_before(row, a, b), Number(mine) < theirs);
        return choose(mine_first == (upper == descending), mine, theirs).e;
      });
    }));
  };
  const Expr sorted = fold(step, repeat(rows, iota(width, place)), steps);
  return map([&](Expr row) { return slice(0, n, row); }, sorted);
}

Result<Nothing> check_sorted(int64_t n, const std::string& what) {
  if (n <= most_sorted) return Nothing{};
  return fault(fmt::format("{} has {} elements to sort, at most {} are supported", what, n, most_sorted));
}

// NaN is one number, larger than all others, and bools are numbers.
Number in_order(Expr a, Expr b) {
  const Scalar scalar = element_of(a);
  if (scalar == Scalar::boolean) return Number(convert(Scalar::u8, a)) < convert(Scalar::u8, b);
  if (!is_float(scalar)) return Number(a) < b;
  return (Number(a) < b) | (apply(Function::is_nan, b) & (Number(a) == a));
}

// ---- The few largest -----------------------------------------------------------------------------------------------

// How many bits of an unsigned number have the order of a scalar's values; all that it has, but for floats of 8 bits.
int64_t ordered_bits(Scalar scalar) {
  const int64_t bits = std::max<int64_t>(8, row(scalar).bits);
  return is_float(scalar) && bits < 16 ? 32 : bits;
}

Expr whole_literal(Scalar scalar, uint64_t value) { return literal_integer(scalar, static_cast<int64_t>(value)); }

// A number as an unsigned one of ordered_bits() in the order of in_order(), u64 for one of 64 bits and else u32: the
// bits of floats, turned where the sign is set.
Expr as_ordered_bits(Expr a) {
  const Scalar scalar = element_of(a);
  const int64_t bits = ordered_bits(scalar);
  const Scalar words = bits == 64 ? Scalar::u64 : Scalar::u32;
  const Number sign = whole_literal(words, uint64_t{1} << (bits - 1));
  const auto turned = [&](const Number& x) { return apply(Function::logical_xor, x, sign).e; };
  if (!is_float(scalar)) {
    if (!row(scalar).is_signed) return convert(words, a);
    const Number wide = convert(bits == 64 ? Scalar::i64 : Scalar::i32, a);
    // One below 32 bits is moved into the unsigned ones.
    return bits < 32 ? reinterpret(words, (wide + static_cast<double>(int64_t{1} << (bits - 1))).e)
                     : turned(reinterpret(words, wide.e));
  }
  const Number wide = bits == 16 ? a : convert(bits == 64 ? Scalar::f64 : Scalar::f32, a);
  // -0 and 0 are one number.
  const Expr number = choose(wide == 0.0, 0.0, wide).e;
  const Number word = bits == 16 ? convert(words, reinterpret(Scalar::u16, number)) : reinterpret(words, number);
  const Expr all = whole_literal(words, ~uint64_t{0} >> (64 - bits));
  return choose(apply(Function::is_nan, wide), all, choose(word >= sign, Number(all) - word, turned(word))).e;
}

// An element and its place as one number, of 32 bits where that is enough: so many of them are the place's.
struct Ranks {
  Scalar words;
  int64_t place_bits;
  // The element to rank; the largest integer of all stays free.
  uint64_t last_place() const { return (uint64_t{1} << place_bits) - 2; }
};

Ranks ranks_of(Scalar scalar, int64_t n) {
  const int64_t left = 32 - ordered_bits(scalar);
  return left > 0 && n < int64_t{1} << left ? Ranks{Scalar::u32, left} : Ranks{Scalar::u64, 32};
}

// Elements and their positions as one integer each: the largest one belongs to the element that comes first.
Expr as_ranked(const Ranks& ranks, Expr a, Expr place, bool largest) {
  const Expr all = whole_literal(Scalar::u32, ~uint64_t{0} >> (64 - ordered_bits(element_of(a))));
  const Number bits = as_ordered_bits(a);
  const Expr upper = convert(ranks.words, largest ? bits.e : (Number(all) - bits).e);
  const Number lower =
      Number(whole_literal(ranks.words, ranks.last_place())) - convert(ranks.words, reinterpret(Scalar::u32, place));
  const Expr moved = apply(Function::shift_left, upper, literal_integer(ranks.words, ranks.place_bits)).e;
  return apply(Function::logical_or, moved, lower).e;
}

// Undoes as_ranked.
Expr place_of_ranked(const Ranks& ranks, Expr ranked) {
  const Number lower = Number(whole_literal(ranks.words, ranks.last_place())) - ranked;
  const Expr mask = whole_literal(ranks.words, ranks.last_place() + 1);
  return reinterpret(Scalar::i32, convert(Scalar::u32, apply(Function::logical_and, lower, mask).e));
}

Expr largest_of(Expr ranked) { return reduce(Function::maximum, literal_integer(element_of(ranked), 0), ranked); }

// The integers below one of them; 0 instead of the others.
Expr below(Expr ranked, Expr before) {
  return map([&](Expr number) { return choose(Number(number) < before, number, 0.0).e; }, ranked);
}

// rows : [r][n] of ranked elements, k of them. The k largest of each row, [r][k], in one kernel: each is the largest of
// those below the one before.
Expr largest_in_one_kernel(Expr rows, int64_t k) {
  const std::function<Expr(Expr, std::vector<Expr>)> next = [&](Expr row, std::vector<Expr> found) -> Expr {
    if (static_cast<int64_t>(found.size()) == k) {
      return map(
          [&](Expr i) {
            Number which = found.back();
            for (size_t j = found.size() - 1; j-- > 0;)
              which = choose(Number(i) == static_cast<double>(j), found[j], which);
            return which.e;
          },
          iota(k, Scalar::i32));
    }
    return let(largest_of(found.empty() ? row : below(row, found.back())), [&](Expr one) {
      std::vector<Expr> more = found;
      more.push_back(one);
      return next(row, more);
    });
  };
  return in_memory(map([&](Expr row) { return next(row, {}); }, rows));
}

// So many are chosen in one kernel, whose length grows with them.
constexpr int64_t most_in_one_kernel = 16;
// Shorter rows are read as fast as their blocks.
constexpr int64_t least_in_blocks = 4096;

// rows : [r][n]. The places of the k first ones of each row, [r][k]i32: the k largest elements lie in the k blocks that
// have the largest ones.
Expr places_by_blocks(Expr rows, int64_t k, bool largest) {
  const int64_t n = extents(rows)[1];
  const Ranks ranks = ranks_of(element_of(rows), n);
  int64_t block = 1;  // so that there are about as many blocks as elements in k of them
  while (4 * block * block * k <= n) block *= 2;
  const int64_t blocks = (n + block - 1) / block;
  const auto ranked_blocks = [&](Expr row) {
    const Expr ranked = map_zip({row, iota(n, Scalar::i32)}, [&](const std::vector<Expr>& element) {
      return as_ranked(ranks, element[0], element[1], largest);
    });
    return split(block, pad_with(0, blocks * block - n, literal_integer(ranks.words, 0), ranked));
  };
  const Expr maxima = in_memory(map([&](Expr row) { return map(largest_of, ranked_blocks(row)); }, rows));
  const Expr candidates = in_memory(map_zip({rows, largest_in_one_kernel(maxima, k)}, [&](const std::vector<Expr>& p) {
    const Expr all = ranked_blocks(p[0]);
    return join(map(
        [&](Expr ranked) {
          return index(place_inside(Number(place_of_ranked(ranks, ranked)) / static_cast<double>(block), blocks), all);
        },
        p[1]));
  }));
  return in_memory(map_at(
      2, [&](Expr ranked) { return place_of_ranked(ranks, ranked); }, largest_in_one_kernel(candidates, k)));
}

// For elements and positions that do not fit in one integer: rows : [r][n], the positions of the k first elements of
// each row, [r][k]i32. Each is the first of the largest elements after the one before, in the order of the result.
Expr places_of_few_wide(Expr rows, int64_t k, bool largest) {
  const int64_t r = extents(rows)[0], n = extents(rows)[1];
  const Scalar place = Scalar::i32;
  const auto key = [&](Expr a) {
    const Number bits = as_ordered_bits(a);
    return largest ? bits : !bits;
  };
  const auto next = [&](Expr before, Expr) {
    return in_memory(map_zip({rows, before}, [&](const std::vector<Expr>& p) {
      return let(key(index(place_inside(p[1], n), p[0])).e, [&](Expr last) {
        const auto follows = [&](Number own, Number at) {
          return (Number(p[1]) < 0.0) | (own < last) | ((own == last) & (at > p[1]));
        };
        const auto over_row = [&](const std::function<Number(Number own, Number at)>& f) {
          return map_zip({p[0], iota(n, place)},
                         [&](const std::vector<Expr>& element) { return f(key(element[0]), element[1]).e; });
        };
        return let(largest_of(over_row([&](Number own, Number at) { return choose(follows(own, at), own, 0.0); })),
                   [&](Expr best) {
                     return reduce(Function::minimum, literal_integer(place, INT32_MAX),
                                   over_row([&](Number own, Number at) {
                                     return choose(follows(own, at) & (own == best), at, double{INT32_MAX});
                                   }));
                   });
      });
    }));
  };
  return in_memory(transpose({1, 0}, scan(next, repeat(r, literal_integer(place, -1)), iota(k, place))));
}

// rows : [r][n]. The places of the k first ones of each row, [r][k]i32: each is the largest of those below the one
// before, so every row is read k times, whole vectors at once.
Expr places_of_few(Expr rows, int64_t k, bool largest) {
  const int64_t r = extents(rows)[0], n = extents(rows)[1];
  if (row(element_of(rows)).bits > 32) return places_of_few_wide(rows, k, largest);
  if (k <= most_in_one_kernel && n >= least_in_blocks) return places_by_blocks(rows, k, largest);
  const Ranks ranks = ranks_of(element_of(rows), n);
  const auto next = [&](Expr before, Expr) {
    return in_memory(map_zip({rows, before}, [&](const std::vector<Expr>& p) {
      const Expr ranked = map_zip({p[0], iota(n, Scalar::i32)}, [&](const std::vector<Expr>& element) {
        return as_ranked(ranks, element[0], element[1], largest);
      });
      return largest_of(below(ranked, p[1]));
    }));
  };
  const Expr all = scan(next, repeat(r, literal_integer(ranks.words, -1)), iota(k, Scalar::i32));
  return in_memory(map_at(
      2, [&](Expr ranked) { return place_of_ranked(ranks, ranked); }, transpose({1, 0}, all)));
}

// Reading a row repeatedly costs less than a step of a network, in which elements may be anywhere.
bool are_few(int64_t k, int64_t n) {
  int64_t log = 1;
  while ((int64_t{1} << log) < n) ++log;
  return n > few_elements && k <= log * (log + 1) / 2;
}

// The same by a function of the host.
Result<Expr> places_on_host(Expr rows, int64_t k, bool largest) {
  const Expr keys = in_memory(map_at(
      2,
      [&](Expr a) {
        const Number bits = as_ordered_bits(a);
        return (largest ? bits : !bits).e;
      },
      rows));
  return host("largest_places", {keys}, array_type({extents(rows)[0], k}, scalar_type(Scalar::i32)));
}

// ---- Those that a condition keeps ----------------------------------------------------------------------------------

}  // namespace

// In blocks: each block counts and collects its selected elements; the block of a wanted element is found by bisection.
Chosen chosen_places(Expr flags, int64_t room) {
  const Scalar place = Scalar::i32;
  const int64_t n = extents(flags)[0], size = std::min(n, longest_sum), blocks = (n + size - 1) / size;
  const Expr rows = split(size, pad_with(0, blocks * size - n, literal_integer(Scalar::boolean, 0), flags));
  const Expr counts = in_memory(map(
      [&](Expr row) {
        return running_sums_of(map([&](Expr flag) { return convert(place, flag); }, row), literal_integer(place, 0));
      },
      rows));
  const Expr up_to = running_sums(map(last_of, counts));
  // Unselected elements have no position.
  const Expr kept = in_memory(map_zip({counts, rows}, [&](const std::vector<Expr>& row) {
    const Expr targets = map_zip({row[0], row[1]}, [&](const std::vector<Expr>& element) {
      return choose(element[1], Number(element[0]) - 1.0, static_cast<double>(size)).e;
    });
    return scatter(targets, iota(size, place), repeat(size, literal_integer(place, 0)));
  }));
  const auto place_of = [&](Expr which) {
    return let(place_of_counted(up_to, which), [&](Expr block) {
      const Expr inside = place_inside(block, blocks);
      const Number before = choose(Number(block) == 0.0, 0.0, index(place_inside(Number(block) - 1.0, blocks), up_to));
      const Number at = index(place_inside(Number(which) - before, size), index(inside, kept));
      const Number found = Number(inside) * static_cast<double>(size) + at;
      return choose(Number(block) < static_cast<double>(blocks), found, static_cast<double>(n)).e;
    });
  };
  const Expr places = in_memory(map(place_of, iota(room, place)));
  return {map([](Expr at) { return convert(Scalar::i64, at); }, places), convert(Scalar::i64, last_of(up_to))};
}

namespace {

Lowered lower_non_zero(const OperatorContext& c) {
  const Expr x = c.inputs[0];
  const Shape shape = extents(x);
  const auto rank = static_cast<int64_t>(shape.size());
  const Expr flat = rank == 0 ? repeat(1, x) : flatten(x);
  const int64_t n = extents(flat)[0];
  if (n == 0) return std::vector<Expr>{repeat({rank, 0}, whole_number(0)), whole_number(0)};
  const Chosen chosen = chosen_places(map([](Expr v) { return convert(Scalar::boolean, v); }, flat), n);
  if (rank == 0) return std::vector<Expr>{repeat({0, n}, whole_number(0)), chosen.count};
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  // Divisions by constants in the kernel become multiplications, divisions by table entries do not.
  const auto position = [&](Number at, size_t i) {
    return apply(Function::remainder, at / static_cast<double>(strides[i]), static_cast<double>(shape[i]));
  };
  const Expr places = map(
      [&](Expr dimension) {
        return map(
            [&](Expr p) {
              const Number at = convert(Scalar::i32, p);
              Number found = position(at, shape.size() - 1);
              for (size_t i = shape.size() - 1; i-- > 0;)
                found = choose(Number(dimension) == static_cast<double>(i), position(at, i), found);
              return convert(Scalar::i64, choose(at < static_cast<double>(n), found, 0.0).e);
            },
            chosen.places);
      },
      iota(rank, Scalar::i32));
  return std::vector<Expr>{places, chosen.count};
}

Result<Dimensions> non_zero_dimensions(const OperatorContext&) { return Dimensions{{0, 1}}; }

// The extents of a call whose last result is the count depend on data.
bool is_counted(const OperatorContext& c, const ExtentRow& extents_row) { return c.call.results > extents_row.count; }

Result<int64_t> compressed_axis(const OperatorContext& c) {
  if (!has_attribute(c, "axis")) return 0;
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 0));
  return normalise_axis(named, rank_of(c.inputs[0]));
}

bool is_known(const OperatorContext& c, size_t i, const std::string& role) {
  if (has_attribute(c, role)) return true;
  return i < c.inputs.size() && (c.inputs[i] == nullptr || c.inputs[i]->pattern == Pattern::constant);
}

Result<Dimensions> compressed_dimensions(const OperatorContext& c) {
  if (is_known(c, 1, "condition")) return Dimensions{};
  HOIST_TRY(const int64_t axis, compressed_axis(c));
  return Dimensions{{0, axis}};
}
constexpr ExtentRow compressed_extents = {1, compressed_dimensions};

}  // namespace

Expr elements_along(Expr x, int64_t axis, Expr places) {
  const int64_t n = extents(x)[static_cast<size_t>(axis)];
  return map_rows(x, axis, [&](Expr row) {
    return map(
        [&](Expr p) {
          return choose(Number(p) < static_cast<double>(n), index(place_inside(p, n), row), zero(element_of(x))).e;
        },
        places);
  });
}

namespace {

Lowered lower_compress(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(const int64_t axis, compressed_axis(c));
  if (!has_attribute(c, "axis")) x = flatten(x);
  const int64_t n = extents(x)[static_cast<size_t>(axis)];
  const auto check = [&](Scalar scalar, const Shape& shape) -> Result<Nothing> {
    if (scalar != Scalar::boolean || shape.size() != 1) return fault("condition has to be a list of bools");
    if (shape[0] > n) return fault(fmt::format("condition has {} values, axis {} has {}", shape[0], axis, n));
    return Nothing{};
  };
  if (is_counted(c, compressed_extents)) {
    const Expr condition = input(c, 1);
    if (condition == nullptr) return fault("condition is known, so its elements are not counted");
    HOIST_TRY_VOID(check(element_of(condition), extents(condition)));
    const int64_t room = extents(condition)[0];
    if (room == 0)
      return std::vector<Expr>{map_rows(x, axis, [&](Expr row) { return slice(0, 0, row); }), whole_number(0)};
    const Chosen chosen = chosen_places(condition, room);
    const Expr places =
        map([&](Expr p) { return choose(Number(p) < static_cast<double>(room), p, static_cast<double>(n)).e; },
            chosen.places);
    return std::vector<Expr>{elements_along(x, axis, places), chosen.count};
  }
  HOIST_TRY(const Tensor condition, constant_input(c, 1, "condition"));
  HOIST_TRY_VOID(check(condition.scalar(), condition.shape()));
  Shape places;
  for (int64_t i = 0; i < condition.size(); ++i) {
    if (condition.integer_at(i) != 0) places.push_back(i);
  }
  Expr chosen = constant(Tensor::of(Scalar::i64, {static_cast<int64_t>(places.size())}, places));
  return one(map_at(
      static_cast<int>(axis), [&](Expr block) { return map([&](Expr i) { return index(i, block); }, chosen); }, x));
}

// ---- The largest ---------------------------------------------------------------------------------------------------

Result<Dimensions> largest_dimensions(const OperatorContext& c) {
  if (is_known(c, 1, "k")) return Dimensions{};
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", -1));
  HOIST_TRY(const int64_t axis, normalise_axis(named, rank_of(c.inputs[0])));
  return Dimensions{{0, axis}, {1, axis}};
}
constexpr ExtentRow largest_extents = {2, largest_dimensions};

// NaN is larger than all numbers, as numpy sorts, and the first of equal elements comes first. A computed k is the
// count, whatever its value: the check of the count reports one that is too large.
Lowered top_k(const OperatorContext& c, bool on_host) {
  const Expr x = c.inputs[0];
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", -1));
  HOIST_TRY(int64_t largest, integer_attribute(c, "largest", 1));
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(x)));
  const int64_t n = extents(x)[static_cast<size_t>(axis)];
  const Scalar scalar = element_of(x);
  int64_t room = n;
  Expr count = nullptr;
  if (is_counted(c, largest_extents)) {
    const Expr k = input(c, 1);
    if (k == nullptr || product(extents(k)) != 1 || !is_integer(element_of(k)))
      return fault("k has to be one integer that is not known");
    count = convert(Scalar::i64, rank_of(k) == 0 ? k : at_position(0, flatten(k)));
  } else {
    HOIST_TRY(const Tensor k, constant_input(c, 1, "k"));
    if (k.size() != 1 || !is_integer(k.scalar())) return fault("k has to be one integer");
    room = k.integer_at(0);
    if (room < 0 || room > n) return fault(fmt::format("k is {}, axis {} has {} elements", room, axis, n));
  }
  HOIST_TRY_VOID(check_sorted(n, fmt::format("axis {}", axis)));
  if (on_host && (n <= few_elements || room <= most_in_one_kernel)) return std::vector<Expr>();
  if (room == 0 || product(extents(x)) == 0) {
    const auto none = [&](Scalar of) { return map_rows(x, axis, [&](Expr) { return repeat(room, zero(of)); }); };
    return std::vector<Expr>{none(scalar), none(Scalar::i64), count};
  }
  const Shape permutation = with_last({axis}, rank_of(x));
  const Expr moved = permute(permutation, x);
  Shape shape = extents(moved);
  const Expr rows = reshape(moved, {product(shape) / n, n});
  const Before before = [&](const std::vector<Expr>& row, Expr a, Expr b) {
    const Expr of_a = index(a, row[0]), of_b = index(b, row[0]);
    return (largest != 0 ? in_order(of_b, of_a) : in_order(of_a, of_b)).e;
  };
  Expr places = nullptr;
  if (on_host) {
    HOIST_TRY(places, places_on_host(rows, room, largest != 0));
  } else {
    places = are_few(room, n) ? places_of_few(rows, room, largest != 0)
                              : map([&](Expr row) { return slice(0, room, row); }, sorted_places({rows}, n, before));
  }
  shape.back() = room;
  const auto back = [&](Expr result) { return permute(inverse(permutation), reshape(result, shape)); };
  const Expr values = map_zip({rows, places}, [&](const std::vector<Expr>& p) {
    return map([&](Expr i) { return index(place_inside(i, n), p[0]); }, p[1]);
  });
  return std::vector<Expr>{back(values),
                           back(map_at(
                               2, [](Expr i) { return convert(Scalar::i64, i); }, places)),
                           count};
}

Lowered lower_top_k(const OperatorContext& c) { return top_k(c, false); }
Lowered top_k_on_host(const OperatorContext& c) { return top_k(c, true); }

// ---- Those that differ ---------------------------------------------------------------------------------------------

Result<Dimensions> unique_dimensions(const OperatorContext& c) {
  HOIST_TRY(const int64_t axis, compressed_axis(c));
  return Dimensions{{0, axis}, {1, 0}, {3, 0}};
}

// Equal elements are adjacent after sorting, the first of them first. NaNs are equal, as in numpy.
Lowered unique(const OperatorContext& c, bool on_host) {
  Expr x = c.inputs[0];
  HOIST_TRY(const int64_t axis, compressed_axis(c));
  HOIST_TRY(const int64_t sorted, integer_attribute(c, "sorted", 1));
  if (!has_attribute(c, "axis")) x = rank_of(x) == 0 ? repeat(1, x) : flatten(x);
  const int64_t n = extents(x)[static_cast<size_t>(axis)];
  HOIST_TRY_VOID(check_sorted(n, fmt::format("axis {}", axis)));
  if (on_host && n <= few_elements) return std::vector<Expr>();
  if (n == 0) {
    const Expr none = repeat(0, whole_number(0));
    return std::vector<Expr>{x, none, none, none, whole_number(0)};
  }
  Shape first_axis = {axis};
  for (int64_t i = 0; i < rank_of(x); ++i) {
    if (i != axis) first_axis.push_back(i);
  }
  const int64_t width = product(extents(x)) / n;
  if (on_host && (width > 1 || element_of(x) == Scalar::string)) return std::vector<Expr>();
  const Expr slices = reshape(permute(first_axis, x), {n, width});
  // The elements of two slices are compared in order: -1 if the first slice comes before the second, else 1.
  const Scalar sign = Scalar::i32;
  const auto way = [&](Expr p, Expr q) {
    return choose(in_order(p, q), literal_integer(sign, -1),
                  choose(in_order(q, p), literal_integer(sign, 1), literal_integer(sign, 0)));
  };
  const auto compared = [&](Expr all, Expr a, Expr b) -> Number {
    if (width == 1) return way(at_position(0, index(a, all)), at_position(0, index(b, all)));
    return fold([&](Expr so_far,
                    Expr pair) { return choose(Number(so_far) == 0.0, way(get(0, pair), get(1, pair)), so_far).e; },
                literal_integer(sign, 0), zip({index(a, all), index(b, all)}));
  };
  const Before before = [&](const std::vector<Expr>& row, Expr a, Expr b) { return (compared(row[0], a, b) < 0.0).e; };
  Expr order = nullptr;
  if (on_host) {
    HOIST_TRY(const Expr places, places_on_host(repeat(1, flatten(slices)), n, false));
    order = in_memory(at_position(0, places));
  } else {
    order = in_memory(at_position(0, sorted_places({repeat(1, slices)}, n, before)));
  }
  const auto in_place = [&](Number p) { return index(place_inside(p, n), order); };  // of the order
  const Expr opens = map(
      [&](Expr p) {
        const Number differs =
            !(compared(slices, place_inside(in_place(p), n), place_inside(in_place(Number(p) - 1.0), n)) == 0.0);
        return ((Number(p) == 0.0) | differs).e;
      },
      iota(n, Scalar::i64));
  const Expr groups = running_count(opens);
  const Expr count = last_of(groups);
  const auto numbers = [&] { return iota(n, Scalar::i64); };
  // The beginning of each group in the order; n after the last one.
  const Expr starts =
      in_memory(map([&](Expr group) { return place_of_counted(groups, group); }, iota(n + 1, Scalar::i64)));
  // The group of each element by its place in the order: the places that sort the order itself.
  const Before by_order = [&](const std::vector<Expr>& row, Expr a, Expr b) {
    return (Number(index(a, row[0])) < index(b, row[0])).e;
  };
  Expr place_of = nullptr;
  if (on_host) {
    HOIST_TRY(const Expr places, places_on_host(repeat(1, order), n, false));
    place_of = at_position(0, places);
  } else {
    place_of = at_position(0, sorted_places({repeat(1, order)}, n, by_order));
  }
  const Expr group_of =
      in_memory(map([&](Expr place) { return (Number(index(place_inside(place, n), groups)) - 1.0).e; }, place_of));
  const auto first_of_group = [&](Expr group) {
    return convert(Scalar::i64, in_place(index(place_inside(group, n), starts)));
  };
  const auto size_of_group = [&](Expr group) {
    const Number at = place_inside(group, n);
    return (Number(index(place_inside(at + 1.0, n + 1), starts)) - index(at.e, starts)).e;
  };
  // The group of each result; groups are numbered in the order of their elements, or by their first ones.
  Expr wanted = numbers(), inverse_places = group_of;
  if (sorted == 0) {
    const Expr ahead = running_count(map_zip(
        {numbers(), group_of}, [&](const std::vector<Expr>& p) { return (Number(p[0]) == first_of_group(p[1])).e; }));
    wanted = in_memory(
        map([&](Expr which) { return index(place_inside(place_of_counted(ahead, which), n), group_of); }, numbers()));
    inverse_places = map(
        [&](Expr group) { return (Number(index(place_inside(first_of_group(group), n), ahead)) - 1.0).e; }, group_of);
  }
  // `counted` values for the existing groups, 0 after them.
  const auto of_groups = [&](const std::function<Expr(Expr)>& counted) {
    return map_zip({numbers(), wanted},
                   [&](const std::vector<Expr>& p) { return choose(Number(p[0]) < count, counted(p[1]), 0.0).e; });
  };
  const Expr firsts = in_memory(of_groups(first_of_group));
  const Expr behind = in_memory(map_zip({numbers(), firsts}, [&](const std::vector<Expr>& p) {
    return choose(Number(p[0]) < count, p[1], static_cast<double>(n)).e;
  }));
  return std::vector<Expr>{elements_along(x, axis, behind), firsts, inverse_places, of_groups(size_of_group), count};
}

Lowered lower_unique(const OperatorContext& c) { return unique(c, false); }
Lowered unique_on_host(const OperatorContext& c) { return unique(c, true); }

// ---- Boxes ---------------------------------------------------------------------------------------------------------

Result<Dimensions> suppressed_dimensions(const OperatorContext&) { return Dimensions{{0, 0}}; }

// The number that an optional operand holds, or `otherwise`.
Result<Expr> one_number(const OperatorContext& c, size_t i, const std::string& role, Scalar scalar, double otherwise) {
  if (has_attribute(c, role)) {
    HOIST_TRY(const Tensor value, constant_input(c, i, role));
    if (value.size() != 1) return fault(role + " has to be one number");
    return convert(scalar, is_float(value.scalar()) ? literal(value.scalar(), value.float_at(0))
                                                    : literal_integer(value.scalar(), value.integer_at(0)));
  }
  const Expr x = input(c, i);
  if (x == nullptr) return literal(scalar, otherwise);
  if (product(extents(x)) != 1) return fault(role + " has to be one number");
  return convert(scalar, rank_of(x) == 0 ? x : at_position(0, flatten(x)));
}

// Each step takes the best remaining box of every image and class, and removes the boxes that overlap it. So there are
// as many steps as boxes may be taken of one class, each of which reads all boxes. A step knows one number of a box:
// while the box remains its score, then 0, or the number of the step that has taken it.
constexpr int64_t most_taken = int64_t{1} << 16;

// The known facts of a call, and the capacity for boxes of each class.
struct Suppressing {
  int64_t centred = 0, images = 0, classes = 0, n = 0, most = 0;
  bool any_score = false;
};

Result<Suppressing> suppressing_of(const OperatorContext& c) {
  const Shape b = extents(c.inputs[0]), s = extents(c.inputs[1]);
  if (b.size() != 3 || s.size() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2]) {
    return fault(fmt::format("boxes {} and scores {} have to be [images][boxes][4] and [images][classes][boxes]",
                             text(b), text(s)));
  }
  if (element_of(c.inputs[0]) != Scalar::f32 || element_of(c.inputs[1]) != Scalar::f32)
    return fault("boxes and scores have to be f32");
  Suppressing out;
  HOIST_TRY(out.centred, integer_attribute(c, "center_point_box", 0));
  if (out.centred != 0 && out.centred != 1)
    return fault(fmt::format("center_point_box is {}, expected 0 or 1", out.centred));
  out.images = s[0], out.classes = s[1], out.n = out.most = s[2];
  out.any_score = !is_given(c, 4, "score_threshold");
  if (const bool no_number = !is_given(c, 2, "max_output_boxes_per_class");
      has_attribute(c, "max_output_boxes_per_class") || no_number) {
    int64_t number = 0;
    if (!no_number) {
      HOIST_TRY(const Tensor value, constant_input(c, 2, "max_output_boxes_per_class"));
      number = value.integer_at(0);
    }
    out.most = std::clamp<int64_t>(number, 0, out.n);
  }
  HOIST_TRY_VOID(check_extents({out.images, out.classes, out.n, 4}));
  HOIST_TRY_VOID(check_extents({out.images * out.classes, out.most, 3}));
  if (out.n > INT32_MAX) return fault(fmt::format("{} boxes, at most {} are supported", out.n, INT32_MAX));
  if (out.most > most_taken) {
    return fault(fmt::format("{} boxes of a class may be taken, at most {} are supported", out.most, most_taken),
                 "give max_output_boxes_per_class as a constant");
  }
  return out;
}

// The same as a host op, which visits only as many boxes as it needs to find the wanted ones, and compares each box
// only with the taken ones.
Lowered suppress_on_host(const OperatorContext& c) {
  HOIST_TRY(const Suppressing how, suppressing_of(c));
  const int64_t room = how.images * how.classes * how.most;
  if (room == 0) return std::vector<Expr>{repeat({0, 3}, whole_number(0)), whole_number(0)};
  const auto array_of = [&](size_t i, const std::string& role, Scalar scalar) -> Result<Expr> {
    Expr x = has_attribute(c, role) ? nullptr : input(c, i);
    if (x != nullptr && product(extents(x)) != 1) return fault(role + " has to be one number");
    if (x != nullptr && element_of(x) == scalar) return x;
    HOIST_TRY(const Expr number, one_number(c, i, role, scalar, 0));
    return repeat(1, number);
  };
  HOIST_TRY(const Expr wanted, array_of(2, "max_output_boxes_per_class", Scalar::i64));
  HOIST_TRY(const Expr overlap, array_of(3, "iou_threshold", Scalar::f32));
  HOIST_TRY(const Expr threshold, array_of(4, "score_threshold", Scalar::f32));
  const Expr settings = constant(Tensor::of(Scalar::i64, {2}, Shape{how.centred, how.any_score}));
  HOIST_TRY(const Expr all, host("boxes_apart", {c.inputs[0], c.inputs[1], wanted, overlap, threshold, settings},
                                 array_type({room + 1, 3}, scalar_type(Scalar::i64))));
  // A host op too, rather than a kernel: a value between two host ops does not travel to the device and back.
  HOIST_TRY(const Expr triples, host("first_numbers", {all}, array_type({room, 3}, scalar_type(Scalar::i64))));
  HOIST_TRY(const Expr count, host("last_numbers", {all}, scalar_type(Scalar::i64)));
  return std::vector<Expr>{triples, count};
}

Lowered lower_non_max_suppression(const OperatorContext& c) {
  const Expr boxes = c.inputs[0], scores = c.inputs[1];
  HOIST_TRY(const Suppressing how, suppressing_of(c));
  const int64_t centred = how.centred, images = how.images, classes = how.classes, n = how.n, most = how.most;
  const bool any_score = how.any_score;
  HOIST_TRY(const Expr wanted, one_number(c, 2, "max_output_boxes_per_class", Scalar::i64, 0));
  HOIST_TRY(const Expr overlap, one_number(c, 3, "iou_threshold", Scalar::f32, 0));
  HOIST_TRY(const Expr threshold, one_number(c, 4, "score_threshold", Scalar::f32, 0));
  const int64_t rows = images * classes, room = rows * most;
  if (room == 0) return std::vector<Expr>{repeat({0, 3}, whole_number(0)), whole_number(0)};
  // Rows of whole vectors; the elements after the boxes have no area and are never chosen.
  constexpr int64_t vector = 16;
  const int64_t behind = n > vector ? (n + vector - 1) / vector * vector - n : 0, length = n + behind;
  const Scalar place = Scalar::i32;
  // [images][4][length]: the smaller y and x of the boxes, then the larger ones.
  const Expr corners = in_memory(map(
      [&](Expr of_image) {
        return map(
            [&](Expr corner) {
              const Number axis = apply(Function::remainder, Number(corner), 2.0), larger = Number(corner) >= 2.0;
              const auto coordinate = [&](Number which, Expr box) {
                return Number(index(place_inside(which, 4), box));
              };
              return pad_with(0, behind, zero(Scalar::f32),
                              map(
                                  [&](Expr box) {
                                    const Number one = coordinate(axis, box), other = coordinate(axis + 2.0, box);
                                    if (centred == 0) return choose(larger, max(one, other), min(one, other)).e;
                                    const Number middle = coordinate(Number(1.0) - axis, box),
                                                 half = coordinate(Number(3.0) - axis, box) * 0.5;
                                    return choose(larger, middle + half, middle - half).e;
                                  },
                                  of_image));
            },
            iota(4, place));
      },
      boxes));
  const auto overlaps = [&](const std::vector<Number>& p, const std::vector<Number>& q) {
    // Boxes with a NaN have no area either, so that one comparison is enough.
    const auto smaller = [](Number a, Number b) { return choose(a < b, a, b); };
    const auto larger = [](Number a, Number b) { return choose(a > b, a, b); };
    const Number height = smaller(p[2], q[2]) - larger(p[0], q[0]), width = smaller(p[3], q[3]) - larger(p[1], q[1]);
    const auto area = [](const std::vector<Number>& box) { return (box[2] - box[0]) * (box[3] - box[1]); };
    const Number shared = height * width, of_p = area(p), of_q = area(q), joined = of_p + of_q - shared;
    const Number meet = (height > 0.0) & (width > 0.0) & (of_p > 0.0) & (of_q > 0.0) & (joined > 0.0);
    return meet & (shared / joined > overlap);
  };
  // Remaining boxes have this value or more: NaN, which is below all numbers, and scores in their order.
  constexpr auto left = 2.0 * most_taken;
  const auto key = [&](Expr score) {
    const Number bits = choose(apply(Function::is_nan, score), left, as_ordered_bits(score));
    const Number high = any_score ? Number(literal_integer(Scalar::boolean, 1)) : Number(score) > threshold;
    return choose(high, bits, 0.0).e;
  };
  const Expr none = literal_integer(Scalar::u32, 0);
  const Expr keys = map([&](Expr row) { return pad_with(0, behind, none, map(key, row)); }, reshape(scores, {rows, n}));
  const auto step = [&](Expr state, Expr number) {
    return in_memory(map_zip({iota(rows, place), state}, [&](const std::vector<Expr>& row) {
      const Expr of_image = index(place_inside(Number(row[0]) / static_cast<double>(classes), images), corners);
      const auto first_of = [&](Expr best) {
        return reduce(Function::minimum, literal_integer(place, length),
                      map_zip({row[1], iota(length, place)}, [&](const std::vector<Expr>& p) {
                        return choose(Number(p[0]) == best, p[1], static_cast<double>(length)).e;
                      }));
      };
      return let(reduce(Function::maximum, none, row[1]), [&](Expr best) {
        return let(first_of(best), [&](Expr at) {
          std::vector<Expr> together = {row[1], iota(length, place)};
          std::vector<Number> box;
          for (int64_t corner = 0; corner < 4; ++corner) {
            together.push_back(at_position(corner, of_image));
            box.emplace_back(index(place_inside(at, length), together.back()));
          }
          return map_zip(together, [&](const std::vector<Expr>& q) {
            const Number own = q[0], rest = choose(overlaps(box, {q[2], q[3], q[4], q[5]}), 0.0, own);
            const Number taken = convert(Scalar::u32, (Number(number) + 1.0).e);
            return choose(own >= left, choose(Number(q[1]) == at, taken, rest), own).e;
          });
        });
      });
    }));
  };
  const Expr steps = in_memory(fold(step, keys, iota(most, place)));
  // The position of a step's taken box among the boxes of its row, -1 for all others.
  const auto taken_as = [&](Expr state) {
    return choose(Number(state) < left, Number(convert(place, state)) - 1.0, -1.0).e;
  };
  if (rows == 1) {
    const Expr targets = map(
        [&](Expr state) {
          const Number at = convert(Scalar::i64, taken_as(state));
          return choose(at < wanted, at, -1.0).e;
        },
        join(steps));
    const Expr found = map(
        [&](Expr box) {
          return map([&](Expr i) { return choose(Number(i) == 2.0, box, 0.0).e; }, iota(3, Scalar::i64));
        },
        iota(length, Scalar::i64));
    const Expr count = reduce(Function::add, literal_integer(place, 0),
                              map([&](Expr at) { return convert(place, (Number(at) >= 0.0).e); }, targets));
    return std::vector<Expr>{scatter(targets, found, repeat({room, 3}, whole_number(0))), convert(Scalar::i64, count)};
  }
  // The taken boxes of each row, in order; n after them.
  const Expr taken = in_memory(map(
      [&](Expr row) {
        return scatter(map(taken_as, row), iota(length, place), repeat(most, literal_integer(place, n)));
      },
      steps));
  const Expr counted = map(
      [&](Expr row) {
        return map_zip({row, iota(most, Scalar::i64)}, [&](const std::vector<Expr>& p) {
          return ((Number(p[0]) < static_cast<double>(n)) & (Number(p[1]) < wanted)).e;
        });
      },
      taken);
  const Chosen chosen = chosen_places(join(counted), room);
  const Expr triples = map(
      [&](Expr p) {
        const Number row = Number(p) / static_cast<double>(most);
        const Expr of_row = index(place_inside(row, rows), taken);
        const Number box = convert(
            Scalar::i64,
            index(place_inside(apply(Function::remainder, Number(p), static_cast<double>(most)), most), of_row));
        const Number image = row / static_cast<double>(classes),
                     kind = apply(Function::remainder, row, static_cast<double>(classes));
        return map(
            [&](Expr i) {
              const Number number = choose(Number(i) == 0.0, image, choose(Number(i) == 1.0, kind, box));
              return choose(Number(p) < static_cast<double>(room), number, 0.0).e;
            },
            iota(3, Scalar::i64));
      },
      chosen.places);
  return std::vector<Expr>{triples, chosen.count};
}

constexpr ExtentRow non_zero_extents = {1, non_zero_dimensions}, unique_extents = {4, unique_dimensions},
                    suppressed_extents = {1, suppressed_dimensions};

// clang-format off
constexpr auto selection_rows = std::to_array<OperatorRow>({
  with_extents({"", "NonZero", 9, 1, 1, Takes::anything, lower_non_zero,
   "the positions of elements that are not 0; a function, since their number depends on data"}, non_zero_extents),
  with_extents({"", "Compress", 9, 2, 2, Takes::anything, lower_compress,
   "the elements that a condition selects; a function, since a known condition decides the shape",
   -2, 2, "1 condition"}, compressed_extents),
  with_extents({"", "TopK", 10, 2, 2, Takes::numbers, lower_top_k,
   "the k largest or smallest elements along an axis, in order, and their positions; a function, since a known k decides the shape",
   -2, 2, "1 k"}, largest_extents),
  with_extents({"", "Unique", 11, 1, 1, Takes::anything, lower_unique,
   "the distinct elements or slices, the position of the first of each, and their numbers; a function, since the number of results depends on data"},
   unique_extents),
  with_extents({"", "NonMaxSuppression", 10, 2, 5, Takes::floats, lower_non_max_suppression,
   "the boxes of each class with the highest scores that do not overlap; a function, since their number depends on data",
   -2, 2, "2 max_output_boxes_per_class"}, suppressed_extents),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> selection_operators() { return selection_rows; }

std::span<const HostFormRow> selection_on_host() {
  static constexpr HostFormRow rows[] = {
      {"NonMaxSuppression", suppress_on_host}, {"TopK", top_k_on_host}, {"Unique", unique_on_host}};
  return rows;
}

}  // namespace hoist::operators
