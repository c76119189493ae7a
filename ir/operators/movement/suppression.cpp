// NonMaxSuppression: boxes that do not overlap. Only as many boxes as may be taken are in the result; one more result
// is their number (ExtentRow), and the rest is 0.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/operators/definitions/host_forms.h"
#include "ir/operators/families.h"
#include "ir/operators/movement/selection.h"
#include "ir/operators/movement/sorting.h"

namespace hoist::operators {
namespace {

Result<std::vector<std::pair<int64_t, int64_t>>> suppressed_dimensions(const OperatorContext&) {
  return std::vector<std::pair<int64_t, int64_t>>{{0, 0}};
}

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
// as many steps as boxes may be selected per class, and each step reads all boxes. The state of a box is one number:
// its score while it remains, then 0, or the number of the step that selected it.
constexpr int64_t most_taken = int64_t{1} << 16;
// The state of remaining boxes is at least this value: NaN, which orders below all numbers, and scores in their order.
constexpr double remaining = 2.0 * most_taken;

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
    return fault(fmt::format("{} boxes per class may be selected, at most {} are supported", out.most, most_taken),
                 "give max_output_boxes_per_class as a constant");
  }
  return out;
}

// The same as a host op, which visits boxes only until enough are selected, and compares each box only with the
// selected ones.
Lowered suppress_on_host(const OperatorContext& c) {
  HOIST_TRY(const Suppressing how, suppressing_of(c));
  const int64_t room = how.images * how.classes * how.most;
  if (room == 0) return std::vector<Expr>{repeat({0, 3}, integer_value(0)), integer_value(0)};
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
  // A host op rather than a kernel, so that a value between two host ops is not copied to the device and back.
  HOIST_TRY(const Expr triples, host("first_numbers", {all}, array_type({room, 3}, scalar_type(Scalar::i64))));
  HOIST_TRY(const Expr count, host("last_numbers", {all}, scalar_type(Scalar::i64)));
  return std::vector<Expr>{triples, count};
}

// [images][4][length] of boxes [images][n][4]: the smaller y and x of the boxes, then the larger ones; `behind` empty
// boxes complete the length.
Expr corners_of(Expr boxes, bool centred, int64_t behind) {
  return in_memory(map(
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
                                    if (!centred) return choose(larger, max(one, other), min(one, other)).e;
                                    const Number middle = coordinate(Number(1.0) - axis, box),
                                                 half = coordinate(Number(3.0) - axis, box) * 0.5;
                                    return choose(larger, middle + half, middle - half).e;
                                  },
                                  of_image));
            },
            iota(4, Scalar::i32));
      },
      boxes));
}

// True if two boxes, as corners, overlap by more than the part `overlap` of their union.
Number overlaps(const std::vector<Number>& p, const std::vector<Number>& q, Expr overlap) {
  // Boxes with a NaN have no area, so that one comparison suffices.
  const auto smaller = [](Number a, Number b) { return choose(a < b, a, b); };
  const auto larger = [](Number a, Number b) { return choose(a > b, a, b); };
  const Number height = smaller(p[2], q[2]) - larger(p[0], q[0]), width = smaller(p[3], q[3]) - larger(p[1], q[1]);
  const auto area = [](const std::vector<Number>& box) { return (box[2] - box[0]) * (box[3] - box[1]); };
  const Number shared = height * width, of_p = area(p), of_q = area(q), joined = of_p + of_q - shared;
  const Number meet = (height > 0.0) & (width > 0.0) & (of_p > 0.0) & (of_q > 0.0) & (joined > 0.0);
  return meet & (shared / joined > overlap);
}

// The result for one row of boxes from their last states: `taken_as` maps a state to the step that took the box, or to
// a negative number.
std::vector<Expr> boxes_of_one_row(Expr states, const std::function<Expr(Expr)>& taken_as, Expr wanted, int64_t room) {
  const int64_t length = extents(states)[0];
  const Scalar place = Scalar::i32;
  const Expr targets = map(
      [&](Expr state) {
        const Number at = convert(Scalar::i64, taken_as(state));
        return choose(at < wanted, at, -1.0).e;
      },
      states);
  const Expr found = map(
      [&](Expr box) { return map([&](Expr i) { return choose(Number(i) == 2.0, box, 0.0).e; }, iota(3, Scalar::i64)); },
      iota(length, Scalar::i64));
  const Expr count = reduce(Function::add, literal_integer(place, 0),
                            map([&](Expr at) { return convert(place, (Number(at) >= 0.0).e); }, targets));
  return {scatter(targets, found, repeat({room, 3}, integer_value(0))), convert(Scalar::i64, count)};
}

// The state of the rows of boxes after the step of this number, which takes the best remaining box of each row:
// `corners` is [images][4][length], as corners_of gives it, and `state` [images*classes][length].
Expr state_after(Expr state, Expr number, const Suppressing& how, Expr corners, Expr overlap) {
  const int64_t length = extents(state)[1];
  const Scalar place = Scalar::i32;
  const Expr none = literal_integer(Scalar::u32, 0);
  return in_memory(map_zip({iota(extents(state)[0], place), state}, [&](const std::vector<Expr>& row) {
    const Expr of_image = index(place_inside(Number(row[0]) / static_cast<double>(how.classes), how.images), corners);
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
          const Number own = q[0], rest = choose(overlaps(box, {q[2], q[3], q[4], q[5]}, overlap), 0.0, own);
          const Number taken = convert(Scalar::u32, (Number(number) + 1.0).e);
          return choose(own >= remaining, choose(Number(q[1]) == at, taken, rest), own).e;
        });
      });
    });
  }));
}

// The result for several rows of boxes in their last states, as boxes_of_one_row.
std::vector<Expr> boxes_of_rows(Expr states, const std::function<Expr(Expr)>& taken_as, Expr wanted,
                                const Suppressing& how) {
  const int64_t rows = extents(states)[0], length = extents(states)[1], n = how.n, most = how.most;
  const int64_t room = rows * most, classes = how.classes;
  const Scalar place = Scalar::i32;
  // The positions of the selected boxes of each row, in order; the rest is n.
  const Expr taken = in_memory(map(
      [&](Expr row) {
        return scatter(map(taken_as, row), iota(length, place), repeat(most, literal_integer(place, n)));
      },
      states));
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
  return {triples, chosen.count};
}

Lowered lower_non_max_suppression(const OperatorContext& c) {
  const Expr boxes = c.inputs[0], scores = c.inputs[1];
  HOIST_TRY(const Suppressing how, suppressing_of(c));
  const int64_t n = how.n, most = how.most, rows = how.images * how.classes, room = rows * most;
  HOIST_TRY(const Expr wanted, one_number(c, 2, "max_output_boxes_per_class", Scalar::i64, 0));
  HOIST_TRY(const Expr overlap, one_number(c, 3, "iou_threshold", Scalar::f32, 0));
  HOIST_TRY(const Expr threshold, one_number(c, 4, "score_threshold", Scalar::f32, 0));
  if (room == 0) return std::vector<Expr>{repeat({0, 3}, integer_value(0)), integer_value(0)};
  // Rows of whole vectors; the elements after the boxes have no area and are never chosen.
  constexpr int64_t vector = 16;
  const int64_t behind = n > vector ? (n + vector - 1) / vector * vector - n : 0;
  const Scalar place = Scalar::i32;
  const Expr corners = corners_of(boxes, how.centred != 0, behind);
  const auto key = [&](Expr score) {
    const Number bits = choose(apply(Function::is_nan, score), remaining, as_ordered_bits(score));
    const Number high = how.any_score ? Number(literal_integer(Scalar::boolean, 1)) : Number(score) > threshold;
    return choose(high, bits, 0.0).e;
  };
  const Expr none = literal_integer(Scalar::u32, 0);
  const Expr keys = map([&](Expr row) { return pad_with(0, behind, none, map(key, row)); }, reshape(scores, {rows, n}));
  const auto step = [&](Expr state, Expr number) { return state_after(state, number, how, corners, overlap); };
  const Expr steps = in_memory(fold(step, keys, iota(most, place)));
  // The position of a step's taken box among the boxes of its row, -1 for all others.
  const auto taken_as = [&](Expr state) {
    return choose(Number(state) < remaining, Number(convert(place, state)) - 1.0, -1.0).e;
  };
  if (rows == 1) {
    return boxes_of_one_row(join(steps), taken_as, wanted, room);
  }
  return boxes_of_rows(steps, taken_as, wanted, how);
}

constexpr ExtentRow suppressed_extents = {1, suppressed_dimensions};

// clang-format off
constexpr auto suppression_rows = std::to_array<OperatorRow>({
  with_extents({"", "NonMaxSuppression", 10, 2, 5, Takes::floats, lower_non_max_suppression,
   "the boxes of each class with the highest scores that do not overlap; in C++, since their number depends on data",
   -2, 2, "2 max_output_boxes_per_class"}, suppressed_extents),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> suppression_operators() { return suppression_rows; }

std::span<const HostFormRow> suppression_on_host() {
  static constexpr HostFormRow rows[] = {{"NonMaxSuppression", suppress_on_host}};
  return rows;
}

}  // namespace hoist::operators
