// Operators that choose among elements: the largest, the elements that a condition selects, distinct elements. The
// number of chosen elements often depends on data: then the result has the capacity for the largest number, the chosen
// elements come first, one more result is their number (ExtentRow), and the rest is 0. The chosen elements are
// collected in blocks, and the block of the j-th one is found by bisecting the running count, which never decreases.
#include "ir/operators/movement/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/operators/definitions/host_forms.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/operators/movement/sorting.h"

namespace hoist::operators {

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

using Dimensions = std::vector<std::pair<int64_t, int64_t>>;

Lowered lower_non_zero(const OperatorContext& c) {
  const Expr x = c.inputs[0];
  const Shape shape = extents(x);
  const auto rank = static_cast<int64_t>(shape.size());
  const Expr flat = rank == 0 ? repeat(1, x) : flatten(x);
  const int64_t n = extents(flat)[0];
  if (n == 0) return std::vector<Expr>{repeat({rank, 0}, integer_value(0)), integer_value(0)};
  const Chosen chosen = chosen_places(map([](Expr v) { return convert(Scalar::boolean, v); }, flat), n);
  if (rank == 0) return std::vector<Expr>{repeat({0, n}, integer_value(0)), chosen.count};
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  // Divisions by constants become multiplications in the kernel; divisions by table entries do not.
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
    if (condition == nullptr) return fault("condition is known, so the result has no count");
    HOIST_TRY_VOID(check(element_of(condition), extents(condition)));
    const int64_t room = extents(condition)[0];
    if (room == 0)
      return std::vector<Expr>{map_rows(x, axis, [&](Expr row) { return slice(0, 0, row); }), integer_value(0)};
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
// count even if it is too large: the check of the count reports one that is too large.
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
      return fault("k has to be one integer that is unknown at compile time");
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

// The comparison of two slices of [n][width], as -1, 0 or 1: their elements are compared in order.
Number compared_slices(Expr all, Expr a, Expr b) {
  const Scalar sign = Scalar::i32;
  const auto way = [&](Expr p, Expr q) {
    return choose(in_order(p, q), literal_integer(sign, -1),
                  choose(in_order(q, p), literal_integer(sign, 1), literal_integer(sign, 0)));
  };
  if (extents(all)[1] == 1) return way(at_position(0, index(a, all)), at_position(0, index(b, all)));
  return fold(
      [&](Expr so_far, Expr pair) { return choose(Number(so_far) == 0.0, way(get(0, pair), get(1, pair)), so_far).e; },
      literal_integer(sign, 0), zip({index(a, all), index(b, all)}));
}

// The sorted order of n elements as positions, [n]i32; a host op sorts `keys`, [n], instead.
Result<Expr> order_of(Expr row, Expr keys, int64_t n, const Before& before, bool on_host) {
  if (!on_host) return at_position(0, sorted_places({repeat(1, row)}, n, before));
  HOIST_TRY(const Expr places, places_on_host(repeat(1, keys), n, false));
  return at_position(0, places);
}

// Kernels have no order of strings, so they compare ranks.
Result<Expr> with_order(Expr x) {
  if (element_of(x) != Scalar::string) return x;
  HOIST_TRY(const Expr ranks,
            host("string_ranks", {flatten(x)}, array_type(product(extents(x)), scalar_type(Scalar::i64))));
  return reshape(ranks, extents(x));
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
    const Expr none = repeat(0, integer_value(0));
    return std::vector<Expr>{x, none, none, none, integer_value(0)};
  }
  Shape first_axis = {axis};
  for (int64_t i = 0; i < rank_of(x); ++i) {
    if (i != axis) first_axis.push_back(i);
  }
  const int64_t width = product(extents(x)) / n;
  if (on_host && width > 1) return std::vector<Expr>();
  HOIST_TRY(const Expr compared, with_order(x));
  const Expr slices = reshape(permute(first_axis, compared), {n, width});
  const Before before = [&](const std::vector<Expr>& row, Expr a, Expr b) {
    return (compared_slices(row[0], a, b) < 0.0).e;
  };
  HOIST_TRY(Expr order, order_of(slices, flatten(slices), n, before, on_host));
  order = in_memory(order);
  const auto in_place = [&](Number p) {
    return index(place_inside(p, n), order);
  };  // element at a position of the order
  const Expr opens = map(
      [&](Expr p) {
        const Number differs =
            !(compared_slices(slices, place_inside(in_place(p), n), place_inside(in_place(Number(p) - 1.0), n)) == 0.0);
        return ((Number(p) == 0.0) | differs).e;
      },
      iota(n, Scalar::i64));
  const Expr groups = running_count(opens);
  const Expr count = last_of(groups);
  const auto numbers = [&] { return iota(n, Scalar::i64); };
  // The beginning of each group in the order; n after the last one.
  const Expr starts =
      in_memory(map([&](Expr group) { return place_of_counted(groups, group); }, iota(n + 1, Scalar::i64)));
  // The group of each element by its position in the order: the positions that sort the order itself.
  const Before by_order = [&](const std::vector<Expr>& row, Expr a, Expr b) {
    return (Number(index(a, row[0])) < index(b, row[0])).e;
  };
  HOIST_TRY(const Expr place_of, order_of(order, order, n, by_order, on_host));
  const Expr group_of =
      in_memory(map([&](Expr place) { return (Number(index(place_inside(place, n), groups)) - 1.0).e; }, place_of));
  const auto first_of_group = [&](Expr group) {
    return convert(Scalar::i64, in_place(index(place_inside(group, n), starts)));
  };
  const auto size_of_group = [&](Expr group) {
    const Number at = place_inside(group, n);
    return (Number(index(place_inside(at + 1.0, n + 1), starts)) - index(at.e, starts)).e;
  };
  // The group of each result; groups are numbered in the order of their elements, or of their first elements.
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

constexpr ExtentRow non_zero_extents = {1, non_zero_dimensions}, unique_extents = {4, unique_dimensions};

// clang-format off
constexpr auto selection_rows = std::to_array<OperatorRow>({
  with_extents({"", "NonZero", 9, 1, 1, Takes::anything, lower_non_zero,
   "the positions of elements that are not 0; in C++, since their number depends on data"}, non_zero_extents),
  with_extents({"", "Compress", 9, 2, 2, Takes::anything, lower_compress,
   "the elements that a condition selects; in C++, since a known condition decides the shape",
   -2, 2, "1 condition"}, compressed_extents),
  with_extents({"", "TopK", 10, 2, 2, Takes::numbers, lower_top_k,
   "the k largest or smallest elements along an axis, in order, and their positions; in C++, since a known k decides the shape",
   -2, 2, "1 k"}, largest_extents),
  with_extents({"", "Unique", 11, 1, 1, Takes::anything, lower_unique,
   "the distinct elements or slices, the position of the first of each, and their numbers; in C++, since the number of results depends on data"},
   unique_extents),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> selection_operators() { return selection_rows; }

std::span<const HostFormRow> selection_on_host() {
  static constexpr HostFormRow rows[] = {{"TopK", top_k_on_host}, {"Unique", unique_on_host}};
  return rows;
}

}  // namespace hoist::operators
