// Pooling of regions of interest at data-dependent positions: means or maxima of interpolated samples, and maxima of
// elements. No position leads outside an array.
#include <fmt/format.h>

#include <array>
#include <limits>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

// ---- RoiAlign ------------------------------------------------------------------------------------------------------

// A position along one axis of n elements. A position more than one element outside does not count; any other is
// clamped to the inside.
struct Near {
  Number counts, low, high, fraction;
};

Near near(const Number& place, int64_t n) {
  const auto last = static_cast<double>(n - 1);
  const Number inside = max(place, 0.0), low = min(floor(inside), last);
  return {(place >= -1.0) & (place <= static_cast<double>(n)), low, min(low + 1.0, last),
          choose(low >= last, 0.0, inside - low)};
}

// The positions of regions, in units of elements.
struct Regions {
  Scalar wide = Scalar::f32;
  double scale = 1;
  bool half_pixel = true;  // elements are at pixel centres; otherwise regions have at least the size of one element

  Number begin_of(Expr region, int64_t i) const {
    return Number(convert(wide, at_position(i, region))) * scale - (half_pixel ? 0.5 : 0.0);
  }
  // The length of each part of the region.
  Number part_of(Expr region, int64_t i, int64_t parts) const {
    const Number length = begin_of(region, i + 2) - begin_of(region, i);
    return (half_pixel ? length : max(length, 1.0)) / static_cast<double>(parts);
  }
};

// A part has as many samples as its length, rounded up. Each row of each part combines the samples that touch it, and
// each part combines its rows, along one axis after the other. A row is touched by a bounded number of samples, since
// samples are more than half a row apart.
class AdaptiveRegions {
 public:
  AdaptiveRegions(const Regions& regions, bool most) : regions_(regions), most_(most) {}

  // [R][parts][n]: for the mean the weights of the lines; for the maximum pairs of the smallest and the largest weight,
  // the largest below 0 if no sample touches the line.
  Expr along(Expr all, int64_t axis, int64_t parts, int64_t n) const {
    return in_memory(map(
        [&](Expr region) {
          return map(
              [&](Expr part) {
                return map([&](Expr line) { return of_line(region, axis, parts, part, line, n); },
                           iota(n, Scalar::i32));
              },
              iota(parts, Scalar::i32));
        },
        all));
  }

  // Interpolates between the rows of a part, given the value of each row.
  Expr combined(Expr weights, Expr values) const {
    const Scalar wide = regions_.wide;
    if (!most_)
      return sum(map_zip({weights, values}, [&](const std::vector<Expr>& p) { return (Number(p[0]) * p[1]).e; }));
    const double none = -std::numeric_limits<double>::infinity();
    return reduce(
        Function::maximum, literal(wide, none), map_zip({weights, values}, [&](const std::vector<Expr>& p) {
          const Number least = at_position(0, p[0]), largest = at_position(1, p[0]), value = p[1];
          return choose((largest < 0.0) | (value == none), literal(wide, none), max(least * value, largest * value)).e;
        }));
  }

  // True if a sample of the part lies outside, where the value is 0, or if the part has no sample.
  Number has_nothing(Expr region, int64_t axis, int64_t parts, Expr part, int64_t n) const {
    const Number length = regions_.part_of(region, axis, parts), count = apply(Function::ceiling, length);
    const Number from = start_of(region, axis, part, length), half = length / max(count, 1.0) * 0.5;
    return (count < 1.0) | (from + half < -1.0) | (from + length - half > static_cast<double>(n));
  }

 private:
  Number start_of(Expr region, int64_t axis, Expr part, const Number& length) const {
    return regions_.begin_of(region, axis) + Number(convert(regions_.wide, part)) * length;
  }

  Expr of_line(Expr region, int64_t axis, int64_t parts, Expr part, Expr line, int64_t n) const {
    constexpr int64_t touching = 9;
    const Scalar wide = regions_.wide;
    const Number length = regions_.part_of(region, axis, parts), count = apply(Function::ceiling, length);
    const Number step = length / max(count, 1.0), from = start_of(region, axis, part, length);
    const Number row = convert(wide, line), nothing = literal(wide, 0);
    // Positions before the first row are clamped to it, so the search for its samples starts earlier.
    const Number first =
        max(floor((choose(row <= 1.0, Number(literal(wide, -1)), row - 1.0) - from) / step - 0.5), 0.0);
    // At the end of an axis both lines of a sample are the same, once with weight 0.
    const auto sampled = [&](Expr k, const Number& otherwise, bool least) {
      const Number i = first + Number(convert(wide, k));
      const Near found = near(from + (i + 0.5) * step, n);
      const Number is_low = found.low == row, is_high = found.high == row;
      const Number weight = choose(is_low, 1.0 - found.fraction, nothing) + choose(is_high, found.fraction, nothing);
      const Number counts = found.counts & (i < count) & (is_low | is_high);
      return choose(counts, least ? choose(is_low & is_high, nothing, weight) : weight, otherwise).e;
    };
    const Expr numbers = iota(touching, Scalar::i32);
    if (!most_) {
      const Expr weights = map([&](Expr k) { return sampled(k, nothing, false); }, numbers);
      return (Number(sum(weights)) / max(count, 1.0)).e;
    }
    const Expr least = map([&](Expr k) { return sampled(k, literal(wide, 2), true); }, numbers);
    const Expr largest = map([&](Expr k) { return sampled(k, literal(wide, -1), false); }, numbers);
    return concat({repeat(1, reduce(Function::minimum, literal(wide, 2), least)),
                   repeat(1, reduce(Function::maximum, literal(wide, -1), largest))});
  }

  const Regions& regions_;
  const bool most_;
};

// A checked call.
struct Alignment {
  Shape shape;  // shape of the input
  Regions places;
  bool most = false;              // maximum of the samples of a part; otherwise the mean
  int64_t height = 1, width = 1;  // parts of a region
  int64_t samples = 0;            // samples of a part along each axis; 0: as many as its length
};

Result<Alignment> read_alignment(const OperatorContext& c) {
  Alignment a;
  const Expr x = c.inputs[0], regions = c.inputs[1], images = c.inputs[2];
  a.shape = extents(x);
  const Shape r = extents(regions);
  if (a.shape.size() != 4) return fault(fmt::format("the input is {}, expected [N][C][H][W]", text(a.shape)));
  if (r.size() != 2 || r[1] != 4 || extents(images) != Shape{r[0]})
    return fault(
        fmt::format("the regions are {} and their images {}, expected [R][4] and [R]", text(r), text(extents(images))));
  if (element_of(regions) != element_of(x)) return fault("the regions have another element type than the input");
  if (element_of(images) != Scalar::i64) return fault("batch_indices have to be i64");
  if (product(a.shape) == 0) return fault(fmt::format("the input {} has no elements to sample", text(a.shape)));
  HOIST_TRY(std::string mode, choice_attribute(c, "mode", "avg", {"avg", "max"}));
  HOIST_TRY(std::string transformation,
            choice_attribute(c, "coordinate_transformation_mode", "half_pixel", {"half_pixel", "output_half_pixel"}));
  HOIST_TRY(a.height, integer_attribute(c, "output_height", 1));
  HOIST_TRY(a.width, integer_attribute(c, "output_width", 1));
  HOIST_TRY(a.samples, integer_attribute(c, "sampling_ratio", 0));
  HOIST_TRY(double scale, float_attribute(c, "spatial_scale", 1.0));
  if (a.samples < 0 || a.samples > 64) return fault(fmt::format("sampling_ratio is {}, expected 0 to 64", a.samples));
  a.most = mode == "max";
  a.places = {wide_float(element_of(x)), scale, transformation == "half_pixel"};
  if (a.samples == 0) {
    HOIST_TRY_VOID(check_extents({r[0], a.shape[1], a.shape[2], a.width}));
    HOIST_TRY_VOID(check_extents({r[0], a.height, a.shape[2], 2}));
    HOIST_TRY_VOID(check_extents({r[0], a.shape[1], a.height, a.width}));
  } else {
    HOIST_TRY_VOID(check_extents({r[0], a.shape[1], a.height, a.width, a.samples, a.samples}));
  }
  return a;
}

Expr adaptive_regions(const OperatorContext& c, const Alignment& a) {
  const Expr x = c.inputs[0], regions = c.inputs[1], images = c.inputs[2];
  const Shape& shape = a.shape;
  const int64_t height = a.height, width = a.width;
  const AdaptiveRegions samples(a.places, a.most);
  const Scalar scalar = element_of(x), wide = a.places.wide;
  const Expr lines = samples.along(regions, 1, height, shape[2]), columns = samples.along(regions, 0, width, shape[3]);
  return map_zip({regions, lines, columns, images}, [&](const std::vector<Expr>& p) {
    return map(
        [&](Expr plane) {
          // The values of each row for each part of the columns.
          const Expr of_lines = in_memory(map(
              [&](Expr weights) {
                return map(
                    [&](Expr line) {
                      return samples.combined(weights, map([&](Expr v) { return convert(wide, v); }, line));
                    },
                    plane);
              },
              p[2]));
          return map_zip({p[1], iota(height, Scalar::i32)}, [&](const std::vector<Expr>& line) {
            return map_zip({of_lines, iota(width, Scalar::i32)}, [&](const std::vector<Expr>& column) {
              const Number value = samples.combined(line[0], column[0]);
              if (!a.most) return convert(scalar, value.e);
              const Number nothing = samples.has_nothing(p[0], 1, height, line[1], shape[2]) |
                                     samples.has_nothing(p[0], 0, width, column[1], shape[3]);
              return convert(scalar, choose(nothing, max(value, 0.0), value).e);
            });
          });
        },
        index(clamped_position(p[3], shape[0]), x));
  });
}

// Parts with the same number of samples in all regions.
Expr sampled_regions(const OperatorContext& c, const Alignment& a) {
  const Expr x = c.inputs[0], regions = c.inputs[1], images = c.inputs[2];
  const Shape& shape = a.shape;
  const int64_t height = a.height, width = a.width, samples = a.samples;
  const Scalar scalar = element_of(x), wide = a.places.wide;
  const Expr numbers = iota(samples, Scalar::i32);
  // The position of sample i of part p.
  const auto place_of = [&](const Number& begin, const Number& part, Expr p, Expr i) {
    return begin + Number(convert(wide, p)) * part +
           (Number(convert(wide, i)) + 0.5) * part / static_cast<double>(samples);
  };
  // The reads of a sample along an axis: the two elements around it and their weights, 0 for an element out of range.
  const auto around = [&](const Number& place, int64_t n) {
    const Near found = near(place, n);
    const Number counts = choose(found.counts, literal(wide, 1), literal(wide, 0));
    const Number parts[] = {found.low, found.high, (1.0 - found.fraction) * counts, found.fraction * counts};
    return map(
        [&](Expr i) {
          return choose(Number(i) < 2.0, choose(Number(i) == 0.0, parts[0], parts[1]),
                        choose(Number(i) == 2.0, parts[2], parts[3]))
              .e;
        },
        iota(4, Scalar::i32));
  };
  // The samples of each region, [R][parts][samples][4]: the same in all channel planes.
  const auto places_along = [&](int64_t axis, int64_t parts, int64_t n) {
    return in_memory(map(
        [&](Expr region) {
          const Number begin = a.places.begin_of(region, axis), part = a.places.part_of(region, axis, parts);
          return map(
              [&](Expr p) { return map([&](Expr i) { return around(place_of(begin, part, p, i), n); }, numbers); },
              iota(parts, Scalar::i32));
        },
        regions));
  };
  const auto sample = [&](Expr plane, Expr y, Expr x_place) {
    const auto weighted = [&](int64_t line, int64_t column) {
      const auto position = [](Expr axis, int64_t which, int64_t n) {
        return clamped_position(convert(Scalar::i32, at_position(which, axis)), n);
      };
      const Expr element = index(position(x_place, column, shape[3]), index(position(y, line, shape[2]), plane));
      return Number(at_position(2 + line, y)) * at_position(2 + column, x_place) * convert(wide, element);
    };
    const Number parts[] = {weighted(0, 0), weighted(0, 1), weighted(1, 0), weighted(1, 1)};
    return a.most ? max(max(parts[0], parts[1]), max(parts[2], parts[3])).e
                  : (parts[0] + parts[1] + parts[2] + parts[3]).e;
  };
  const Expr tops = places_along(1, height, shape[2]), lefts = places_along(0, width, shape[3]);
  const auto value = [&](Expr plane, Expr of_line, Expr of_column) {
    const Expr all = flatten(
        map([&](Expr y) { return map([&](Expr place) { return sample(plane, y, place); }, of_column); }, of_line));
    return a.most ? reduce(Function::maximum, literal(wide, -std::numeric_limits<double>::infinity()), all)
                  : (Number(sum(all)) / static_cast<double>(samples * samples)).e;
  };
  return map_zip({tops, lefts, images}, [&](const std::vector<Expr>& p) {
    return map(
        [&](Expr plane) {
          return map(
              [&](Expr of_line) {
                return map([&](Expr of_column) { return convert(scalar, value(plane, of_line, of_column)); }, p[1]);
              },
              p[0]);
        },
        index(clamped_position(p[2], shape[0]), x));
  });
}

Lowered lower_roi_align(const OperatorContext& c) {
  HOIST_TRY(const Alignment a, read_alignment(c));
  return one(a.samples == 0 ? adaptive_regions(c, a) : sampled_regions(c, a));
}

// ---- MaxRoiPool ----------------------------------------------------------------------------------------------------

// Rounds half away from zero.
Number rounded_away(const Number& x) {
  const Number size = abs(x), whole = floor(size), up = choose(size - whole >= 0.5, whole + 1.0, whole);
  return choose(x < 0.0, -up, up);
}

// The place of a region depends on data, so each part reads the whole plane: the maximum of each column between two
// rows, for all columns in parallel, then the maximum between two columns. An empty part gives 0.
Lowered lower_max_roi_pool(const OperatorContext& c) {
  Expr x = c.inputs[0], regions = c.inputs[1];
  HOIST_TRY_VOID(check_same_element(c));
  const Shape shape = extents(x), r = extents(regions);
  if (shape.size() != 4) return fault(fmt::format("the input is {}, expected [N][C][H][W]", text(shape)));
  if (r.size() != 2 || r[1] != 5)
    return fault(fmt::format("the regions are {}, expected [R][5]: an image and two corners each", text(r)));
  if (product(shape) == 0) return fault(fmt::format("the input {} has no elements to pool", text(shape)));
  HOIST_TRY(const Shape pooled, integers_attribute(c, "pooled_shape", {}));
  HOIST_TRY(const double scale, float_attribute(c, "spatial_scale", 1.0));
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1)
    return fault(fmt::format("pooled_shape is {}, expected a height and a width", text(pooled)));
  HOIST_TRY_VOID(check_extents({r[0], shape[1], pooled[0], pooled[1]}));
  HOIST_TRY_VOID(check_extents({r[0], shape[1], pooled[0], shape[3]}));
  const Scalar scalar = element_of(x), wide = wide_float(scalar), place = Scalar::i32;
  const int64_t lines = pooled[0], columns = pooled[1];
  const Expr none = literal(scalar, -std::numeric_limits<double>::infinity());
  // The beginnings and ends of a region's parts, along the rows first; computed in floats for any region.
  const auto limits_of_region = [&](Expr region) {
    return map(
        [&](Expr number) {
          const Number is_line = Number(number) < static_cast<double>(lines);
          const auto of_axis = [&](int64_t line, int64_t column) {
            return choose(is_line, Number(literal(wide, static_cast<double>(line))), static_cast<double>(column));
          };
          const auto corner = [&](int64_t line, int64_t column) {
            const Number at = choose(is_line, at_position(line, region), at_position(column, region));
            return rounded_away(Number(convert(wide, at.e)) * scale);
          };
          const Number begin = corner(2, 1), end = corner(4, 3);
          const Number size = max(end - begin + 1.0, 1.0) / of_axis(lines, columns);
          const Number part = convert(wide, choose(is_line, number, Number(number) - static_cast<double>(lines)).e);
          const auto inside = [&](const Number& at) {
            return convert(place, min(max(at + begin, 0.0), of_axis(shape[2], shape[3])).e);
          };
          return map(
              [&](Expr which) {
                return choose(Number(which) == 0.0, inside(floor(part * size)),
                              inside(apply(Function::ceiling, (part + 1.0) * size)))
                    .e;
              },
              iota(2, place));
        },
        iota(lines + columns, place));
  };
  const auto is_empty = [](Expr limits) { return Number(at_position(1, limits)) <= at_position(0, limits); };
  const auto largest_between = [&](Expr limits, Expr row) {
    return reduce(Function::maximum, none,
                  map_zip({row, iota(row->type->size, place)}, [&](const std::vector<Expr>& p) {
                    const Number at = p[1];
                    return choose((at >= at_position(0, limits)) & (at < at_position(1, limits)), p[0], none).e;
                  }));
  };
  const auto region_of_plane = [&](Expr limits, Expr plane) {
    const Expr of_lines = slice(0, lines, limits), of_columns = slice(lines, columns, limits);
    const Expr across = transpose({1, 0}, plane);
    const Expr between_lines = in_memory(map(
        [&](Expr line) { return map([&](Expr column) { return largest_between(line, column); }, across); }, of_lines));
    return map_zip({between_lines, of_lines}, [&](const std::vector<Expr>& p) {
      return map(
          [&](Expr column) {
            return choose(is_empty(p[1]) | is_empty(column), zero(scalar), largest_between(column, p[0])).e;
          },
          of_columns);
    });
  };
  return one(map_zip({regions, in_memory(map(limits_of_region, regions))}, [&](const std::vector<Expr>& p) {
    const Expr image = convert(place, at_position(0, p[0]));
    return map([&](Expr plane) { return region_of_plane(p[1], plane); }, index(clamped_position(image, shape[0]), x));
  }));
}

// clang-format off
constexpr auto region_rows = std::to_array<OperatorRow>({
  {"", "RoiAlign", 16, 3, 3, Takes::floats, lower_roi_align,
   "means or maxima of samples in the parts of regions; in C++, since regions come from data"},
  {"", "MaxRoiPool", 1, 2, 2, Takes::floats, lower_max_roi_pool,
   "the maxima of the parts of regions; in C++, since regions come from data"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> region_operators() { return region_rows; }

}  // namespace hoist::operators
