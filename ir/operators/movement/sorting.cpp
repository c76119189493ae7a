// Counting, sorting and ranking. A few largest elements are found in sequence, each below the previous one. Elements
// are sorted by a network of comparisons, whose steps are kernels over all elements (O(n log^2 n) in all). Every order
// is total, by the position in case of ties, so that results are the same everywhere.
#include "ir/operators/movement/sorting.h"

#include <fmt/format.h>

#include <algorithm>

namespace hoist::operators {

Expr integer_value(int64_t value) { return literal_integer(Scalar::i64, value); }

Expr place_inside(Number i, int64_t n) { return max(min(i, static_cast<double>(std::max<int64_t>(n - 1, 0))), 0.0).e; }

// ---- Counting ------------------------------------------------------------------------------------------------------

// Running sums, in the memory of one work-item.
Expr running_sums_of(Expr row, Expr zero) {
  return scan([](Expr total, Expr number) { return (Number(total) + number).e; }, zero, row);
}

// numbers : [n]. Inclusive running sums: within blocks, then over the preceding blocks.
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

namespace {

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

}  // namespace

// The position of the counted element with number `which`; the number of elements if there is none.
Expr place_of_counted(Expr counts, Expr which) {
  return passing_places(extents(counts)[0], element_of(counts),
                        [&](Expr place) { return (Number(index(place, counts)) <= which).e; });
}

// ---- Sorting -------------------------------------------------------------------------------------------------------

namespace {

constexpr int64_t most_sorted = int64_t{1} << 30;

}  // namespace

// arrays : of [r] rows each, of n elements. The positions of each row in sorted order, [r][n]i32: ordered by `before`,
// ties by position.
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
  // A bitonic network over the next power of two. Padding elements come after all elements of the row.
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

namespace {

// The number of bits of an unsigned integer that has the order of the scalar's values: the scalar's own, and 32 for
// small floats.
int64_t ordered_bits(Scalar scalar) {
  const int64_t bits = std::max<int64_t>(8, row(scalar).bits);
  return is_float(scalar) && bits < 16 ? 32 : bits;
}

Expr whole_literal(Scalar scalar, uint64_t value) { return literal_integer(scalar, static_cast<int64_t>(value)); }

}  // namespace

// The scalar as an unsigned integer of ordered_bits() bits with the order of in_order(), u64 for 64 bits and otherwise
// u32; for floats their bits, inverted if the sign is set.
Expr as_ordered_bits(Expr a) {
  const Scalar scalar = element_of(a);
  const int64_t bits = ordered_bits(scalar);
  const Scalar words = bits == 64 ? Scalar::u64 : Scalar::u32;
  const Number sign = whole_literal(words, uint64_t{1} << (bits - 1));
  const auto turned = [&](const Number& x) { return apply(Function::logical_xor, x, sign).e; };
  if (!is_float(scalar)) {
    if (!row(scalar).is_signed) return convert(words, a);
    const Number wide = convert(bits == 64 ? Scalar::i64 : Scalar::i32, a);
    // A signed type below 32 bits is shifted into the unsigned range.
    return bits < 32 ? reinterpret(words, (wide + static_cast<double>(int64_t{1} << (bits - 1))).e)
                     : turned(reinterpret(words, wide.e));
  }
  const Number wide = bits == 16 ? a : convert(bits == 64 ? Scalar::f64 : Scalar::f32, a);
  // -0 equals 0.
  const Expr number = choose(wide == 0.0, 0.0, wide).e;
  const Number word = bits == 16 ? convert(words, reinterpret(Scalar::u16, number)) : reinterpret(words, number);
  const Expr all = whole_literal(words, ~uint64_t{0} >> (64 - bits));
  return choose(apply(Function::is_nan, wide), all, choose(word >= sign, Number(all) - word, turned(word))).e;
}

namespace {

// The format of an element and its position as one integer, of 32 bits if that suffices; `place_bits` are the
// position's.
struct Ranks {
  Scalar words;
  int64_t place_bits;
  // The last position; the largest integer stays unused.
  uint64_t last_place() const { return (uint64_t{1} << place_bits) - 2; }
};

Ranks ranks_of(Scalar scalar, int64_t n) {
  const int64_t left = 32 - ordered_bits(scalar);
  return left > 0 && n < int64_t{1} << left ? Ranks{Scalar::u32, left} : Ranks{Scalar::u64, 32};
}

// Elements and their positions as one integer each: the largest integer belongs to the element that comes first.
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

// Keeps integers below a bound; replaces all others by 0.
Expr values_below(Expr ranked, Expr before) {
  return map([&](Expr number) { return choose(Number(number) < before, number, 0.0).e; }, ranked);
}

// rows : [r][n] of ranked elements, k of them. The k largest of each row, [r][k], in one kernel: each is the largest of
// the elements below the previous result.
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
    return let(largest_of(found.empty() ? row : values_below(row, found.back())), [&](Expr one) {
      std::vector<Expr> more = found;
      more.push_back(one);
      return next(row, more);
    });
  };
  return in_memory(map([&](Expr row) { return next(row, {}); }, rows));
}

// Shorter rows are as fast without blocks.
constexpr int64_t least_in_blocks = 4096;

// rows : [r][n]. The positions of the first k elements of each row, [r][k]i32: the k largest elements are in the k
// blocks with the largest maxima.
Expr places_by_blocks(Expr rows, int64_t k, bool largest) {
  const int64_t n = extents(rows)[1];
  const Ranks ranks = ranks_of(element_of(rows), n);
  int64_t block = 1;  // about as many blocks as elements in k blocks
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

// For elements and positions that do not fit in one integer: rows : [r][n], the positions of the first k elements of
// each row, [r][k]i32. Each is the first of the largest elements that come after the previous result.
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

}  // namespace

// rows : [r][n]. The positions of the first k elements of each row, [r][k]i32: each is the largest below the previous
// result, so every row is read k times in whole vectors.
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
      return largest_of(values_below(ranked, p[1]));
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

// The same as a host op.
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

}  // namespace hoist::operators
