// Samples of arrays at places that data say: between their elements, at regions of interest, and under kernels whose
// places move. Places are numbers, so all of these are functions: how far elements lie apart, and which of them a place
// lies between, is arithmetic on extents and data. No place leads outside an array.
#include <fmt/format.h>

#include <array>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

Number rounded(Number x) { return apply(Function::round, x); }
Number as(Scalar scalar, const Number& x) { return x.e == nullptr ? x : Number(convert(scalar, x.e)); }

// ---- One place -----------------------------------------------------------------------------------------------------

enum class Outside : uint8_t { zeros, border, reflection };
enum class Between : uint8_t { nearest, linear, cubic };

// How arrays of this many spatial extents are sampled.
struct Sampler {
  Shape extents;
  Outside outside = Outside::zeros;
  Between between = Between::linear;
  bool corners = true;  // the outermost places are the middles of the outermost elements, not their edges
  Scalar place = Scalar::f32, value = Scalar::f32;

  double low() const { return corners ? 0.0 : -0.5; }
  double high(size_t axis) const { return static_cast<double>(extents[axis]) - (corners ? 1.0 : 0.5); }

  // Back and forth between the borders.
  Number reflected(const Number& x, size_t axis) const {
    const double range = high(axis) - low();
    if (range == 0) return x * 0.0;
    const Number distance = abs(x - low()), times = floor(distance / range), rest = distance - times * range;
    const Number half = times / 2.0;
    return choose(half == floor(half), rest + low(), Number(high(axis)) - rest);
  }

  // A position clamped near the array, so that its conversion to an integer stays small.
  Number bounded(const Number& x, size_t axis) const {
    const double far = 4;  // no weight reaches so far
    if (outside == Outside::zeros) return min(max(x, -far), static_cast<double>(extents[axis]) + far);
    const Number inside =
        outside == Outside::border ? min(max(x, 0.0), static_cast<double>(extents[axis] - 1)) : reflected(x, axis);
    return choose((x < low()) | (x > high(axis)), inside, x);
  }

  // The element at an integer position, which may be out of range.
  Expr element(Expr plane, const std::vector<Number>& at) const {
    Number inside = literal_integer(Scalar::boolean, 1);
    for (size_t axis = 0; axis < at.size(); ++axis) {
      Number i = at[axis];
      if (outside == Outside::reflection) i = apply(Function::truncate, reflected(i, axis));
      if (outside == Outside::zeros) inside = inside & (i >= 0.0) & (i <= static_cast<double>(extents[axis] - 1));
      const Number near = min(max(i, 0.0), static_cast<double>(extents[axis] - 1));
      plane = index(clamped_position(convert(Scalar::i32, near.e), extents[axis]), plane);
    }
    return outside == Outside::zeros ? choose(inside, plane, zero(element_of(plane))).e : plane;
  }

  std::vector<Number> weights(const Number& f) const {
    if (between == Between::linear) return {1.0 - f, f};
    constexpr double a = -0.75;
    const auto outer = [&](const Number& d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    const auto inner = [&](const Number& d) { return ((a + 2) * d - (a + 3)) * d * d + 1.0; };
    return {outer(f + 1.0), inner(f), inner(1.0 - f), outer(2.0 - f)};
  }

  // The value at a position with one coordinate per axis, first axis first.
  Expr at(Expr plane, const std::vector<Number>& place_of) const {
    if (between == Between::nearest) {
      std::vector<Number> whole;
      for (size_t axis = 0; axis < place_of.size(); ++axis) whole.push_back(bounded(rounded(place_of[axis]), axis));
      return element(plane, whole);
    }
    return along(plane, place_of, {});
  }

 private:
  // The sum over the elements around the place along the axes that are left.
  Expr along(Expr plane, const std::vector<Number>& place_of, const std::vector<Number>& found) const {
    const size_t axis = found.size();
    if (axis == place_of.size()) return convert(value, element(plane, found));
    return let(bounded(place_of[axis], axis).e, [&](Expr x) {
      const Number first = floor(x);
      const std::vector<Number> factors = weights(Number(x) - first);
      Number total = 0.0;
      for (size_t i = 0; i < factors.size(); ++i) {
        std::vector<Number> next = found;
        next.push_back(first + (static_cast<double>(i) - (between == Between::cubic ? 1.0 : 0.0)));
        const Number part = as(value, factors[i]) * along(plane, place_of, next);
        total = i == 0 ? part : total + part;
      }
      return total.e;
    });
  }
};

Scalar wider_of(Scalar a, Scalar b) { return row(a).bits < row(b).bits ? b : a; }

// ---- GridSample ----------------------------------------------------------------------------------------------------

Lowered lower_grid_sample(const OperatorContext& c) {
  Expr x = c.inputs[0], grid = c.inputs[1];
  const Shape shape = extents(x), places = extents(grid);
  if (shape.size() < 3 || places.size() != shape.size())
    return fault(
        fmt::format("the input {} and the grid {} have to be of the same rank, at least 3", text(shape), text(places)));
  const size_t dimensions = shape.size() - 2;
  if (places[0] != shape[0] || places.back() != static_cast<int64_t>(dimensions))
    return fault(fmt::format("the grid is {}, expected [{}], extents of the result and [{}]", text(places), shape[0],
                             dimensions));
  if (dimensions > 3) return fault(fmt::format("{} spatial dimensions, at most 3 are supported", dimensions));
  if (!is_float(element_of(grid))) return fault("the grid has to be of floats");
  HOIST_TRY(std::string mode, choice_attribute(c, "mode", "linear", {"linear", "nearest", "cubic"}));
  HOIST_TRY(std::string padding, choice_attribute(c, "padding_mode", "zeros", {"zeros", "border", "reflection"}));
  HOIST_TRY(int64_t corners, integer_attribute(c, "align_corners", 0));
  Sampler sampler;
  sampler.extents.assign(shape.begin() + 2, shape.end());
  for (int64_t n : sampler.extents) {
    if (n == 0 && product(places) > 0) return fault(fmt::format("the input {} has no elements to sample", text(shape)));
  }
  sampler.between = mode == "nearest" ? Between::nearest : mode == "linear" ? Between::linear : Between::cubic;
  sampler.outside = padding == "zeros" ? Outside::zeros : padding == "border" ? Outside::border : Outside::reflection;
  sampler.corners = corners != 0;
  const Scalar scalar = element_of(x);
  if (sampler.between != Between::nearest && !is_float(scalar))
    return fault(fmt::format("the input is {}, and only floats can be interpolated", row(scalar).name));
  sampler.place = wide_float(element_of(grid));
  sampler.value = is_float(scalar) ? wider_of(wide_float(scalar), sampler.place) : scalar;
  // The last number of a place belongs to the first axis.
  const auto sampled = [&](Expr plane, Expr point) {
    std::vector<Number> at;
    for (size_t axis = 0; axis < dimensions; ++axis) {
      const auto n = static_cast<double>(sampler.extents[axis]);
      const Number p = convert(sampler.place, at_position(static_cast<int64_t>(dimensions - 1 - axis), point));
      at.push_back(sampler.corners ? (p + 1.0) / 2.0 * (n - 1.0) : ((p + 1.0) * n - 1.0) / 2.0);
    }
    return convert(scalar, sampler.at(plane, at));
  };
  return one(map_zip({x, grid}, [&](const std::vector<Expr>& p) {
    return map(
        [&](Expr plane) {
          return map_at(
              static_cast<int>(dimensions), [&](Expr point) { return sampled(plane, point); }, p[1]);
        },
        p[0]);
  }));
}

// ---- RoiAlign ------------------------------------------------------------------------------------------------------

// A place along one axis of n elements: nothing counts more than one element outside, and the rest is moved inside.
struct Near {
  Number counts, low, high, fraction;
};

Near near(const Number& place, int64_t n) {
  const auto last = static_cast<double>(n - 1);
  const Number inside = max(place, 0.0), low = min(floor(inside), last);
  return {(place >= -1.0) & (place <= static_cast<double>(n)), low, min(low + 1.0, last),
          choose(low >= last, 0.0, inside - low)};
}

// The places of regions, in elements of the array.
struct Regions {
  Scalar wide;
  double scale;
  bool half_pixel;  // elements lie at the middles of pixels; otherwise regions have at least the size of one

  Number begin_of(Expr region, int64_t i) const {
    return Number(convert(wide, at_position(i, region))) * scale - (half_pixel ? 0.5 : 0.0);
  }
  // How long each of its parts is.
  Number part_of(Expr region, int64_t i, int64_t parts) const {
    const Number length = begin_of(region, i + 2) - begin_of(region, i);
    return (half_pixel ? length : max(length, 1.0)) / static_cast<double>(parts);
  }
};

// A part has as many samples as it is long: regions of any size share no samples, but the rows that the samples touch,
// at most seven rows each, since samples are more than half a row apart. So each row of each part of a region combines
// its samples, and a part combines its rows, along one axis after the other.
class AdaptiveRegions {
 public:
  AdaptiveRegions(const Regions& regions, bool most) : regions_(regions), most_(most) {}

  // [R][parts][n], of the mean the weights, of the largest the pairs of the least and the largest one; a largest one
  // below 0 where no sample touches the line.
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

  // Interpolates between the rows of a part, each with its value.
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

  // True if a sample of the part lies outside, where the value is 0, or there is none.
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
    // Positions before the first row are moved to it, so they touch the second one as well.
    const Number first =
        max(floor((choose(row <= 1.0, Number(literal(wide, -1)), row - 1.0) - from) / step - 0.5), 0.0);
    // At the end of an axis a sample lies on the same line twice, once with nothing of it.
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

Expr adaptive_regions(const OperatorContext& c, const Shape& shape, const Regions& places, bool most, int64_t height,
                      int64_t width) {
  const Expr x = c.inputs[0], regions = c.inputs[1], images = c.inputs[2];
  const AdaptiveRegions samples(places, most);
  const Scalar scalar = element_of(x), wide = places.wide;
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
              if (!most) return convert(scalar, value.e);
              const Number nothing = samples.has_nothing(p[0], 1, height, line[1], shape[2]) |
                                     samples.has_nothing(p[0], 0, width, column[1], shape[3]);
              return convert(scalar, choose(nothing, max(value, 0.0), value).e);
            });
          });
        },
        index(clamped_position(p[3], shape[0]), x));
  });
}

Lowered lower_roi_align(const OperatorContext& c) {
  Expr x = c.inputs[0], regions = c.inputs[1], images = c.inputs[2];
  const Shape shape = extents(x), r = extents(regions);
  if (shape.size() != 4) return fault(fmt::format("the input is {}, expected [N][C][H][W]", text(shape)));
  if (r.size() != 2 || r[1] != 4 || extents(images) != Shape{r[0]})
    return fault(
        fmt::format("the regions are {} and their images {}, expected [R][4] and [R]", text(r), text(extents(images))));
  if (element_of(regions) != element_of(x)) return fault("the regions have another element type than the input");
  if (element_of(images) != Scalar::i64) return fault("batch_indices have to be i64");
  if (product(shape) == 0) return fault(fmt::format("the input {} has no elements to sample", text(shape)));
  HOIST_TRY(std::string mode, choice_attribute(c, "mode", "avg", {"avg", "max"}));
  HOIST_TRY(std::string transformation,
            choice_attribute(c, "coordinate_transformation_mode", "half_pixel", {"half_pixel", "output_half_pixel"}));
  HOIST_TRY(int64_t height, integer_attribute(c, "output_height", 1));
  HOIST_TRY(int64_t width, integer_attribute(c, "output_width", 1));
  HOIST_TRY(int64_t samples, integer_attribute(c, "sampling_ratio", 0));
  HOIST_TRY(double scale, float_attribute(c, "spatial_scale", 1.0));
  if (samples < 0 || samples > 64) return fault(fmt::format("sampling_ratio is {}, expected 0 to 64", samples));
  const Scalar scalar = element_of(x), wide = wide_float(scalar);
  const bool most = mode == "max";
  const Regions places{wide, scale, transformation == "half_pixel"};
  if (samples == 0) {
    HOIST_TRY_VOID(check_extents({r[0], shape[1], shape[2], width}));
    HOIST_TRY_VOID(check_extents({r[0], height, shape[2], 2}));
    HOIST_TRY_VOID(check_extents({r[0], shape[1], height, width}));
    return one(adaptive_regions(c, shape, places, most, height, width));
  }
  HOIST_TRY_VOID(check_extents({r[0], shape[1], height, width, samples, samples}));
  const Expr numbers = iota(samples, Scalar::i32);
  // The sample i of part p.
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
          const Number begin = places.begin_of(region, axis), part = places.part_of(region, axis, parts);
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
    return most ? max(max(parts[0], parts[1]), max(parts[2], parts[3])).e
                : (parts[0] + parts[1] + parts[2] + parts[3]).e;
  };
  const Expr tops = places_along(1, height, shape[2]), lefts = places_along(0, width, shape[3]);
  const auto value = [&](Expr plane, Expr of_line, Expr of_column) {
    const Expr all = flatten(
        map([&](Expr y) { return map([&](Expr place) { return sample(plane, y, place); }, of_column); }, of_line));
    return most ? reduce(Function::maximum, literal(wide, -std::numeric_limits<double>::infinity()), all)
                : (Number(sum(all)) / static_cast<double>(samples * samples)).e;
  };
  return one(map_zip({tops, lefts, images}, [&](const std::vector<Expr>& p) {
    return map(
        [&](Expr plane) {
          return map(
              [&](Expr of_line) {
                return map([&](Expr of_column) { return convert(scalar, value(plane, of_line, of_column)); }, p[1]);
              },
              p[0]);
        },
        index(clamped_position(p[2], shape[0]), x));
  }));
}

// ---- MaxRoiPool ----------------------------------------------------------------------------------------------------

// Half away from zero.
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

// ---- DeformConv ----------------------------------------------------------------------------------------------------

Lowered lower_deform_conv(const OperatorContext& c) {
  Expr x = c.inputs[0], w = c.inputs[1], offset = c.inputs[2], bias = input(c, 3), mask = input(c, 4);
  HOIST_TRY_VOID(check_same_element(c));
  const Shape image = extents(x), filters = extents(w), moved = extents(offset);
  if (image.size() != 4 || filters.size() != 4 || moved.size() != 4)
    return fault(fmt::format("the input {}, the weights {} and the offsets {} have to be of two spatial dimensions",
                             text(image), text(filters), text(moved)));
  HOIST_TRY(int64_t group, integer_attribute(c, "group", 1));
  HOIST_TRY(int64_t offset_group, integer_attribute(c, "offset_group", 1));
  HOIST_TRY(Shape strides, integers_attribute(c, "strides", {1, 1}));
  HOIST_TRY(Shape dilations, integers_attribute(c, "dilations", {1, 1}));
  HOIST_TRY(Shape pads, integers_attribute(c, "pads", {0, 0, 0, 0}));
  const Shape kernel(filters.begin() + 2, filters.end());
  HOIST_TRY(Shape named, integers_attribute(c, "kernel_shape", kernel));
  if (named != kernel)
    return fault(fmt::format("kernel_shape {} disagrees with the weights {}", text(named), text(filters)));
  if (strides.size() != 2 || dilations.size() != 2 || pads.size() != 4)
    return fault("strides, dilations and pads have to be for two spatial dimensions");
  for (const Shape* list : {&strides, &dilations, &pads}) {
    for (int64_t v : *list) {
      if (v < (list == &pads ? 0 : 1) || v > INT32_MAX) return fault(fmt::format("{} holds {}", text(*list), v));
    }
  }
  const int64_t n = image[0], channels = image[1], outputs = filters[0], taps = product(kernel);
  if (group < 1 || offset_group < 1 || channels % group != 0 || outputs % group != 0 || channels % offset_group != 0 ||
      filters[1] * group != channels || product(filters) == 0 || product(image) == 0)
    return fault(fmt::format("{} groups and {} of offsets do not divide the input {} and the weights {}", group,
                             offset_group, text(image), text(filters)));
  Shape out;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t room = image[i + 2] + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilations[i] - 1;
    if (room < 0) return fault(fmt::format("the kernel {} does not fit into the input {}", text(kernel), text(image)));
    out.push_back(room / strides[i] + 1);
  }
  if (moved != Shape{n, offset_group * taps * 2, out[0], out[1]})
    return fault(fmt::format("the offsets are {}, expected {}", text(moved),
                             text(Shape{n, offset_group * taps * 2, out[0], out[1]})));
  if (bias != nullptr && extents(bias) != Shape{outputs})
    return fault(fmt::format("the bias is {}, expected [{}]", text(extents(bias)), outputs));
  if (mask != nullptr && extents(mask) != Shape{n, offset_group * taps, out[0], out[1]})
    return fault(fmt::format("the mask is {}, expected {}", text(extents(mask)),
                             text(Shape{n, offset_group * taps, out[0], out[1]})));
  const Scalar scalar = element_of(x), wide = wide_float(scalar);
  Sampler sampler;
  sampler.extents = {image[2], image[3]};
  sampler.place = sampler.value = wide;
  // The position of each element of the kernel without its offset, before the window moves.
  Tensor steps(wide, {taps, 2});
  for (int64_t k = 0; k < taps; ++k) {
    const int64_t line = k / kernel[1], column = k % kernel[1];
    steps.set_float(2 * k, static_cast<double>(line * dilations[0] - pads[0]));
    steps.set_float(2 * k + 1, static_cast<double>(column * dilations[1] - pads[1]));
  }
  const Expr at_rest = constant(steps);
  // [batch][line][column][group of offsets][element of the kernel][axis]
  offset = permute({0, 4, 5, 1, 2, 3}, reshape(offset, {n, offset_group, taps, 2, out[0], out[1]}));
  if (mask == nullptr) mask = constant_like(scalar, {n, offset_group * taps, out[0], out[1]}, 1);
  mask = permute({0, 3, 4, 1, 2}, reshape(mask, {n, offset_group, taps, out[0], out[1]}));
  const auto start = [&](Expr place, size_t axis) {
    return Number(convert(wide, place)) * static_cast<double>(strides[axis]);
  };
  // [channels][taps] at one place of the result.
  const auto window = [&](Expr picture, Expr offsets, Expr masks, Expr line, Expr column) {
    Expr planes = split(channels / offset_group, picture);
    return join(map_zip({planes, offsets, masks}, [&](const std::vector<Expr>& g) {
      return map(
          [&](Expr plane) {
            return map_zip({g[1], g[2], at_rest}, [&](const std::vector<Expr>& k) {
              const auto place = [&](int64_t axis) {
                return (axis == 0 ? start(line, 0) : start(column, 1)) + at_position(axis, k[2]) +
                       convert(wide, at_position(axis, k[0]));
              };
              return (Number(sampler.at(plane, {place(0), place(1)})) * convert(wide, k[1])).e;
            });
          },
          g[0]);
    }));
  };
  // Each sample is computed once and read by all filters: [batch][group][its channels and taps][places].
  const Expr samples = map_zip({x, offset, mask}, [&](const std::vector<Expr>& b) {
    return map_zip({b[1], b[2], iota(out[0], Scalar::i32)}, [&](const std::vector<Expr>& l) {
      return map_zip({l[0], l[1], iota(out[1], Scalar::i32)},
                     [&](const std::vector<Expr>& p) { return window(b[0], p[0], p[1], l[2], p[2]); });
    });
  });
  const int64_t places = product(out), summed = channels / group * taps;
  const Expr rows = reshape(in_memory(permute({0, 3, 4, 1, 2}, samples)), {n, group, summed, places});
  const Expr grouped = reshape(w, {group, outputs / group, summed});
  const auto dot = [&](Expr part, Expr filter) {
    return sum(
        map_zip({part, filter}, [&](const std::vector<Expr>& p) { return (Number(p[0]) * convert(wide, p[1])).e; }));
  };
  Expr result = map(
      [&](Expr groups) {
        return map_zip({groups, grouped}, [&](const std::vector<Expr>& g) {
          return map(
              [&](Expr filter) { return map([&](Expr column) { return dot(column, filter); }, transpose(g[0])); },
              g[1]);
        });
      },
      rows);
  result = reshape(result, {n, outputs, out[0], out[1]});
  const auto rounded_once = [&](const Number& total) { return convert(scalar, total.e); };
  if (bias == nullptr)
    return one(map_at(
        4, [&](Expr v) { return rounded_once(v); }, result));
  return one(map(
      [&](Expr planes) {
        return map_zip({planes, bias}, [&](const std::vector<Expr>& p) {
          return map_at(
              2, [&](Expr v) { return rounded_once(Number(v) + convert(wide, p[1])); }, p[0]);
        });
      },
      result));
}

// ---- AffineGrid ----------------------------------------------------------------------------------------------------

// Each position is an affine function of the element's place along the axes, last axis first: between -1 and 1, which
// are the middles of the outermost elements (align_corners) or their outer edges.
Lowered lower_affine_grid(const OperatorContext& c) {
  const Expr theta = c.inputs[0];
  const Shape t = extents(theta);
  HOIST_TRY(const auto size, integers_of(c, "size", 1));
  if (!size || (size->size() != 4 && size->size() != 5))
    return fault("size has to be the four or five extents of an image");
  const auto axes = static_cast<int64_t>(size->size()) - 2;
  if (t != Shape{size->front(), axes, axes + 1})
    return fault(fmt::format("theta is {}, expected {} for the size {}", text(t),
                             text(Shape{size->front(), axes, axes + 1}), text(*size)));
  const Shape picture(size->begin() + 2, size->end());
  if (*std::min_element(size->begin(), size->end()) < 0) return fault(fmt::format("size is {}", text(*size)));
  Shape grid = picture;
  grid.insert(grid.begin(), t[0]);
  grid.push_back(axes);
  HOIST_TRY_VOID(check_extents(grid));
  HOIST_TRY(const int64_t aligned, integer_attribute(c, "align_corners", 0));
  const Scalar scalar = element_of(theta), wide = wide_float(scalar);
  const auto coordinate = [&](int64_t axis, Expr i) {
    const int64_t n = picture[static_cast<size_t>(axis)];
    // A single element in depth is at -1.
    const bool single = aligned != 0 && axes == 3 && axis == 0 && n == 1;
    const Number steps = literal(wide, static_cast<double>(aligned != 0 ? n - 1 : n));
    const Number step = single ? Number(literal(wide, 0)) : Number(literal(wide, 2)) / steps;
    const Number start = aligned != 0 ? Number(literal(wide, -1)) : Number(literal(wide, -1)) + step / 2.0;
    return start + Number(convert(wide, i)) * step;
  };
  const std::function<Expr(Expr, std::vector<Number>)> places = [&](Expr rows, std::vector<Number> at) -> Expr {
    const auto axis = static_cast<int64_t>(at.size());
    if (axis < axes) {
      return map(
          [&](Expr i) {
            std::vector<Number> next = at;
            next.insert(next.begin(), coordinate(axis, i));
            return places(rows, next);
          },
          iota(picture[static_cast<size_t>(axis)], Scalar::i32));
    }
    return map(
        [&](Expr row) {
          const auto factor = [&](int64_t i) { return Number(convert(wide, at_position(i, row))); };
          Number sum = factor(0) * at[0];
          for (int64_t i = 1; i < axes; ++i) sum = sum + factor(i) * at[static_cast<size_t>(i)];
          return convert(scalar, (sum + factor(axes)).e);
        },
        rows);
  };
  return one(map([&](Expr rows) { return places(rows, {}); }, theta));
}

// clang-format off
constexpr auto sampling_rows = std::to_array<OperatorRow>({
  {"", "AffineGrid", 20, 2, 2, Takes::floats, lower_affine_grid,
   "positions of an image's elements as affine functions of their places; a function, since the size decides the number of axes",
   -1, 1, "1 size"},
  {"", "GridSample", 20, 2, 2, Takes::anything, lower_grid_sample,
   "the values at positions between the elements; a function, since positions come from data and their arithmetic from the extents", -1, 1},
  {"", "RoiAlign", 16, 3, 3, Takes::floats, lower_roi_align,
   "means or maxima of samples in the parts of regions; a function, since regions come from data"},
  {"", "MaxRoiPool", 1, 2, 2, Takes::floats, lower_max_roi_pool,
   "the maxima of the parts of regions; a function, since regions come from data"},
  {"", "DeformConv", 19, 3, 5, Takes::floats, lower_deform_conv,
   "a convolution whose windows are samples at positions moved by data; a function, since positions come from data"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> sampling_operators() { return sampling_rows; }

}  // namespace hoist::operators
