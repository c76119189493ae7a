#include "ir/operators/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numbers>
#include <numeric>

#include "ir/operators/precision.h"
#include "ir/operators/support.h"
#include "ir/operators/windows.h"

namespace hoist::operators {
namespace {

// A call of a form in a definition.
class FormCall {
 public:
  FormCall(Elaborator& elaborator, Syn syntax, const std::vector<Elaborator::Argument>& arguments,
           const OperatorContext& call_context)
      : context(call_context), elaborator_(elaborator), syntax_(syntax), arguments_(arguments) {}

  const OperatorContext& context;

  size_t count() const { return arguments_.size(); }
  Result<Nothing> want(size_t wanted) const {
    if (count() == wanted) return Nothing{};
    return fault_at(syntax_->token, fmt::format("{} takes {} arguments, found {}", syntax_->text, wanted, count()));
  }
  Result<Expr> value(size_t i, Type number = nullptr) const { return elaborator_.argument(arguments_[i], number); }
  /// The function that stands there, for arguments of these types.
  Result<Expr> function(size_t i, const std::vector<Type>& types) const {
    return rounded_once(types, [&](const std::vector<Type>& used) {
      return elaborator_.function_argument(arguments_[i], used, nullptr);
    });
  }
  template <class T>
  Result<T> known(size_t i, const char* what) const {
    const Syn s = arguments_[i].syntax;
    const auto found = s == nullptr ? std::nullopt : elaborator_.known(s);
    if (found && std::holds_alternative<T>(*found)) return std::get<T>(*found);
    return fault_at(syntax_->token, fmt::format("argument {} of {} has to be {}", i + 1, syntax_->text, what));
  }
  Result<Scalar> scalar(size_t i) const { return known<Scalar>(i, "an element type"); }
  Result<int64_t> integer(size_t i) const { return known<int64_t>(i, "a whole number that is known"); }
  /// A list, or one number.
  Result<Shape> integers(size_t i) const {
    if (auto one = integer(i); one.ok()) return Shape{*one};
    return known<Shape>(i, "whole numbers that are known");
  }
  /// Whether an attribute that the call leaves out stands there.
  bool is_absent(size_t i) const {
    const auto found = arguments_[i].syntax == nullptr ? std::nullopt : elaborator_.known(arguments_[i].syntax);
    return found && std::holds_alternative<Absent>(*found);
  }
  Result<Shape> sizes() const {
    Shape out;
    for (const Nat& n : syntax_->sizes) {
      const Nat size = elaborator_.size(n);
      if (!size.is_constant()) return fault_at(syntax_->token, "the size " + size.text() + " is not known");
      out.push_back(size.value());
    }
    return out;
  }

 private:
  Elaborator& elaborator_;
  Syn syntax_;
  const std::vector<Elaborator::Argument>& arguments_;
};

Type element_type(Expr x) { return scalar_type(element_of(x)); }
Type row_type(const Nat& n, Expr x) { return array_type(n, element_type(x)); }

// The type of what lies under the first dimensions.
Type type_under(Expr x, int64_t depth) {
  Type block = x->type;
  for (int64_t i = 0; i < depth; ++i) block = block->element;
  return block;
}

std::function<Expr(Expr)> calling(Expr function) {
  return [function](Expr x) { return hoist::apply(function, {x}); };
}

// each f x y...: the function of one element of each, for arrays that broadcast. A tuple of arrays, which stands for
// operands of any number, gives a tuple of elements.
Result<Expr> form_each(const FormCall& c) {
  std::vector<Expr> arrays;
  std::vector<Type> types;
  std::vector<size_t> widths;
  for (size_t i = 1; i < c.count(); ++i) {
    HOIST_TRY(Expr x, c.value(i));
    if (!x->type->is_tuple()) {
      arrays.push_back(x), types.push_back(element_type(x)), widths.push_back(0);
      continue;
    }
    std::vector<Type> parts;
    for (size_t k = 0; k < x->type->parts.size(); ++k) {
      arrays.push_back(get(static_cast<int64_t>(k), x));
      parts.push_back(element_type(arrays.back()));
    }
    types.push_back(tuple_type(parts)), widths.push_back(parts.size());
  }
  HOIST_TRY_VOID(broadcast_sizes(arrays));
  HOIST_TRY(Expr f, c.function(0, types));
  return elementwise(arrays, [&](const std::vector<Expr>& elements) {
    std::vector<Expr> arguments;
    auto next = elements.begin();
    for (size_t width : widths) {
      if (width == 0) {
        arguments.push_back(*next++);
        continue;
      }
      arguments.push_back(tuple(std::vector<Expr>(next, next + static_cast<std::ptrdiff_t>(width))));
      next += static_cast<std::ptrdiff_t>(width);
    }
    return hoist::apply(f, arguments);
  });
}

// combined f x: the components of a tuple, combined from the left; one alone is itself.
Result<Expr> form_combined(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr x, c.value(1));
  if (!x->type->is_tuple()) return x;
  Expr total = get(0, x);
  HOIST_TRY(Expr f, c.function(0, {total->type, total->type}));
  for (size_t i = 1; i < x->type->parts.size(); ++i) total = hoist::apply(f, {total, get(static_cast<int64_t>(i), x)});
  return total;
}

Nat extent_along(Expr x, const Shape& axes) {
  const Sizes sizes = sizes_of(x->type);
  Nat n = 1;
  for (int64_t a : axes) n = n * sizes[static_cast<size_t>(a)];
  return n;
}

// over axes keep f x: f of the flattened elements along the axes; their dimensions stay with extent 1 if asked for.
Result<Expr> form_over(const FormCall& c) {
  HOIST_TRY_VOID(c.want(4));
  HOIST_TRY(Expr x, c.value(3));
  HOIST_TRY(Shape named, c.integers(0));
  HOIST_TRY(int64_t keep, c.integer(1));
  HOIST_TRY(Shape axes, normalise_axes(named, rank_of(x)));
  HOIST_TRY(Expr f, c.function(2, {row_type(extent_along(x, axes), x)}));
  return reduce_axes(x, axes, keep != 0, calling(f));
}

// reduced f x: the same as ONNX's reductions name their axes; no axes are all of them, or none.
Result<Expr> form_reduced(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr x, c.value(1));
  HOIST_TRY(auto named, integers_of(c.context, "axes", 1));
  HOIST_TRY(int64_t keep, integer_attribute(c.context, "keepdims", 1));
  HOIST_TRY(int64_t keep_all, integer_attribute(c.context, "noop_with_empty_axes", 0));
  HOIST_TRY(Shape axes, normalise_axes(named.value_or(Shape{}), rank_of(x)));
  if (axes.empty() && keep_all != 0) {
    HOIST_TRY(Expr f, c.function(0, {row_type(1, x)}));
    return elementwise({x}, [&](const std::vector<Expr>& v) { return hoist::apply(f, {repeat(1, v[0])}); });
  }
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank_of(x)));
    std::iota(axes.begin(), axes.end(), 0);
  }
  HOIST_TRY(Expr f, c.function(0, {row_type(extent_along(x, axes), x)}));
  return reduce_axes(x, axes, keep != 0, calling(f));
}

// along axis f x: f on each row along the axis, which gives a row again.
Result<Expr> form_along(const FormCall& c) {
  HOIST_TRY_VOID(c.want(3));
  HOIST_TRY(Expr x, c.value(2));
  HOIST_TRY(Shape named, c.integers(0));
  if (named.size() != 1) return fault(fmt::format("axis has {} values, expected 1", named.size()));
  HOIST_TRY(int64_t axis, normalise_axis(named[0], rank_of(x)));
  HOIST_TRY(Expr f, c.function(1, {row_type(extent_along(x, {axis}), x)}));
  return map_rows(x, axis, calling(f));
}

// from_axis axis f x: f on everything from the axis on, as one row.
Result<Expr> form_from_axis(const FormCall& c) {
  HOIST_TRY_VOID(c.want(3));
  HOIST_TRY(Expr x, c.value(2));
  HOIST_TRY(int64_t named, c.integer(0));
  const int64_t rank = rank_of(x);
  if (named == rank) named = rank - 1;  // one element a row would be all that is left
  HOIST_TRY(int64_t axis, normalise_axis(named, rank));
  const Shape shape = extents(x);
  const Shape lead(shape.begin(), shape.begin() + axis), rest(shape.begin() + axis, shape.end());
  HOIST_TRY(Expr f, c.function(1, {row_type(product(rest), x)}));
  return reshape(map(f, reshape(x, {product(lead), product(rest)})), shape);
}

// under depth f x: f on what lies under the first dimensions.
Result<Expr> form_under(const FormCall& c) {
  HOIST_TRY_VOID(c.want(3));
  HOIST_TRY(Expr x, c.value(2));
  HOIST_TRY(int64_t depth, c.integer(0));
  if (depth < 0 || depth > rank_of(x)) return fault(fmt::format("{} of {} dimensions", depth, rank_of(x)));
  HOIST_TRY(Expr f, c.function(1, {type_under(x, depth)}));
  return map_at(static_cast<int>(depth), calling(f), x);
}

// planes f x: f of the elements of each channel of each image; every spatial dimension stays with extent 1.
Result<Expr> form_planes(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr x, c.value(1));
  Shape axes;
  for (int64_t i = 2; i < rank_of(x); ++i) axes.push_back(i);
  if (axes.empty())
    return fault(fmt::format("the input has to be [N][C] and spatial dimensions, found {}", text(extents(x))));
  HOIST_TRY(Expr f, c.function(0, {row_type(extent_along(x, axes), x)}));
  return reduce_axes(x, axes, true, calling(f));
}

// flat f x: f on the elements as one row, which gives a row of the same length.
Result<Expr> form_flat(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr x, c.value(1));
  HOIST_TRY(Expr f, c.function(0, {row_type(product(extents(x)), x)}));
  Expr row = hoist::apply(f, {flatten(x)});
  if (extents(row) != Shape{product(extents(x))}) return fault("flat wants a row of the same length");
  return reshape(row, extents(x));
}

// How many elements each window of a dimension counts: those inside the input, or inside input and padding.
Shape counts_along(const Geometry& g, size_t i, int64_t n, bool with_padding) {
  Shape counts;
  int64_t low = with_padding ? 0 : g.begin[i];
  int64_t high = with_padding ? g.begin[i] + n + g.end[i] : g.begin[i] + n;
  for (int64_t o = 0; o < g.out[i]; ++o) {
    int64_t count = 0;
    for (int64_t k = 0; k < g.kernel[i]; ++k) {
      int64_t place = o * g.strides[i] + k * g.dilations[i];
      count += place >= low && place < high;
    }
    counts.push_back(count);
  }
  return counts;
}

struct Windowed {
  Shape kernel;
  Geometry geometry;
};

Result<Windowed> windows_of(const FormCall& c, Expr x) {
  Windowed w;
  HOIST_TRY(Shape spatial, spatial_extents(x));
  if (!has_attribute(c.context, "kernel_shape")) return fault("attribute kernel_shape is missing");
  HOIST_TRY(w.kernel, integers_attribute(c.context, "kernel_shape", {}));
  HOIST_TRY(w.geometry, window_geometry(c.context, spatial, w.kernel));
  return w;
}

// windows border... f x...: f of the elements of each window of each plane of all arrays, each with its own border; the
// attributes say where windows lie.
Result<Expr> form_windows(const FormCall& c) {
  const size_t count = c.count() / 2;
  HOIST_TRY_VOID(c.want(2 * count + 1));
  std::vector<Expr> arrays, borders;
  for (size_t i = 0; i < count; ++i) {
    HOIST_TRY(Expr x, c.value(count + 1 + i));
    HOIST_TRY(Expr border, c.value(i, element_type(x)));
    arrays.push_back(x), borders.push_back(border);
  }
  HOIST_TRY(Windowed w, windows_of(c, arrays[0]));
  std::vector<Type> rows;
  for (Expr x : arrays) rows.push_back(row_type(product(w.kernel), x));
  HOIST_TRY(Expr f, c.function(count, rows));
  return map_zip_at(2, arrays, [&](const std::vector<Expr>& planes) {
    std::vector<Expr> views;
    for (size_t i = 0; i < count; ++i) views.push_back(windows(planes[i], 0, w.geometry, borders[i]));
    return map_zip_at(static_cast<int64_t>(w.kernel.size()), views, [&](const std::vector<Expr>& parts) {
      std::vector<Expr> flat;
      for (Expr part : parts) flat.push_back(flatten(part));
      return hoist::apply(f, flat);
    });
  });
}

// counted_windows border with_padding f x: f of the elements of each window and how many of them count. The count is
// one number where all windows have the same.
Result<Expr> form_counted_windows(const FormCall& c) {
  HOIST_TRY_VOID(c.want(4));
  HOIST_TRY(Expr x, c.value(3));
  HOIST_TRY(Expr border, c.value(0, element_type(x)));
  HOIST_TRY(int64_t with_padding, c.integer(1));
  HOIST_TRY(Windowed w, windows_of(c, x));
  const Geometry& g = w.geometry;
  const Scalar scalar = element_of(x);
  HOIST_TRY(Expr f, c.function(2, {row_type(product(w.kernel), x), scalar_type(scalar)}));
  int64_t entries = 1;
  for (size_t i = 0; i < g.out.size(); ++i) {
    if (g.out[i] > most_table_entries / entries || g.out[i] > most_table_entries / g.kernel[i]) {
      return fault(fmt::format("{} windows, at most {} are supported", text(g.out), most_table_entries));
    }
    entries *= g.out[i];
  }
  const Shape shape = extents(x);
  Tensor counts(scalar, {1});
  counts.set_float(0, 1);
  for (size_t i = 0; i < g.kernel.size(); ++i) {  // the outer product of the counts along each dimension
    const Shape along = counts_along(g, i, shape[i + 2], with_padding != 0);
    Tensor next(scalar, {counts.size() * g.out[i]});
    for (int64_t k = 0; k < next.size(); ++k) {
      next.set_float(k, counts.float_at(k / g.out[i]) * static_cast<double>(along[static_cast<size_t>(k % g.out[i])]));
    }
    counts = next;
  }
  bool uniform = true;
  for (int64_t k = 0; k < counts.size(); ++k) uniform = uniform && counts.float_at(k) == counts.float_at(0);
  const auto depth = static_cast<int64_t>(g.out.size());
  if (uniform) {
    const Expr count = literal(scalar, counts.size() > 0 ? counts.float_at(0) : 1);
    return map_at(
        2,
        [&](Expr plane) {
          return map_at(
              static_cast<int>(depth),
              [&](Expr window) {
                return hoist::apply(f, {flatten(window), count});
              },
              windows(plane, 0, g, border));
        },
        x);
  }
  const Expr divisors = constant(counts.reshaped(g.out));
  return map_at(
      2,
      [&](Expr plane) {
        return map_zip_at(depth, {windows(plane, 0, g, border), divisors}, [&](const std::vector<Expr>& parts) {
          return hoist::apply(f, {flatten(parts[0]), parts[1]});
        });
      },
      x);
}

// places_in_planes order x: the positions of the elements of x, flat and row-major, or with the spatial dimensions
// reversed where the order is 1.
Result<Expr> form_places_in_planes(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr x, c.value(1));
  HOIST_TRY(int64_t column_major, c.integer(0));
  const Shape shape = extents(x);
  Expr flat = iota(product(shape), Scalar::i64);
  if (column_major == 0 || shape.size() < 2) return reshape(flat, shape);
  Shape reversed = shape;
  std::reverse(reversed.begin() + 2, reversed.end());
  Shape permutation = {0, 1};
  for (size_t i = shape.size(); i-- > 2;) permutation.push_back(static_cast<int64_t>(i));
  return permute(permutation, reshape(flat, reversed));
}

// beside_channels size f x: f of each element and of those at the same place in `size` channels around it.
Result<Expr> form_beside_channels(const FormCall& c) {
  HOIST_TRY_VOID(c.want(3));
  HOIST_TRY(Expr x, c.value(2));
  HOIST_TRY(int64_t size, c.integer(0));
  HOIST_TRY(Expr f, c.function(1, {element_type(x), row_type(size, x)}));
  if (product(extents(x)) == 0) return x;
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  return map(
      [&](Expr image) {
        // [C][size][spatial...] to [C][spatial...][size]
        Expr view = slide(size, 1, 1, pad_with(before, after, zero(element_of(x)), image));
        view = permute(with_last({1}, rank_of(view)), view);
        return map_zip_at(rank_of(image), {image, view}, [&](const std::vector<Expr>& p) {
          return hoist::apply(f, {p[0], p[1]});
        });
      },
      x);
}

// after axis f x: f on the dimensions from the axis on.
Result<Expr> form_after(const FormCall& c) {
  HOIST_TRY_VOID(c.want(3));
  HOIST_TRY(Expr x, c.value(2));
  HOIST_TRY(int64_t named, c.integer(0));
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(x)));
  HOIST_TRY(Expr f, c.function(1, {type_under(x, axis)}));
  return map_at(static_cast<int>(axis), calling(f), x);
}

// statistic axis f x: one number for the elements from the axis on; these dimensions stay with extent 1.
Result<Expr> form_statistic(const FormCall& c) {
  HOIST_TRY_VOID(c.want(3));
  HOIST_TRY(Expr x, c.value(2));
  HOIST_TRY(int64_t named, c.integer(0));
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(x)));
  Sizes kept = sizes_of(x->type);
  Nat n = 1;
  for (auto i = static_cast<size_t>(axis); i < kept.size(); ++i) n = n * kept[i], kept[i] = 1;
  HOIST_TRY(Expr f, c.function(1, {row_type(n, x)}));
  return reshape_to(map_at(
                        static_cast<int>(axis), [&](Expr block) { return hoist::apply(f, {flatten(block)}); }, x),
                    kept);
}

// spread p x: p broadcast to the extents of x, as one row.
Result<Expr> form_spread(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr p, c.value(0));
  HOIST_TRY(Expr x, c.value(1));
  const Shape from = extents(p), to = extents(x);
  bool fits = from.size() <= to.size();
  for (size_t k = 0; fits && k < from.size(); ++k) {
    const int64_t n = to[to.size() - from.size() + k];
    fits = from[k] == 1 || from[k] == n;
  }
  if (!fits)
    return fault(
        fmt::format("a parameter is {}, which does not broadcast to the normalised part {}", text(from), text(to)));
  return flatten(broadcast_to(p, to));
}

Result<Expr> form_sum(const FormCall& c) {
  HOIST_TRY_VOID(c.want(1));
  HOIST_TRY(Expr row, c.value(0));
  return sum(row);
}

Result<Expr> form_mean(const FormCall& c) {
  HOIST_TRY_VOID(c.want(1));
  HOIST_TRY(Expr row, c.value(0));
  return mean_of(row);
}

// convert(T, x): a scalar as ONNX converts, or a number of this type.
Result<Expr> form_convert(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Scalar to, c.scalar(0));
  HOIST_TRY(Expr x, c.value(1, scalar_type(to)));
  return convert(to, x);
}

Result<Expr> form_convert_without_saturation(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Scalar to, c.scalar(0));
  HOIST_TRY(Expr x, c.value(1));
  return convert_without_saturation(to, x);
}

// same_bits(T, x): the bits of a scalar as another type of the same width.
Result<Expr> form_same_bits(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Scalar to, c.scalar(0));
  HOIST_TRY(Expr x, c.value(1));
  return reinterpret(to, x);
}

// positions T x: 0, 1, ... for the elements of an array.
Result<Expr> form_positions(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Scalar scalar, c.scalar(0));
  HOIST_TRY(Expr x, c.value(1));
  return iota(x->type->size, scalar);
}

Result<Expr> form_reshape(const FormCall& c) {
  HOIST_TRY_VOID(c.want(1));
  HOIST_TRY(Expr x, c.value(0));
  HOIST_TRY(Shape to, c.sizes());
  if (product(to) != product(extents(x)))
    return fault(fmt::format("{} does not have the elements of {}", text(to), text(extents(x))));
  return reshape(x, to);
}

// scalar x: the element of an array that has one.
Result<Expr> form_scalar(const FormCall& c) {
  HOIST_TRY_VOID(c.want(1));
  HOIST_TRY(Expr x, c.value(0));
  if (product(extents(x)) != 1) return fault(text(extents(x)) + " is not one number");
  return reshape(x, {});
}

// permute p x: dimension i of the result is dimension p[i], counted from the end where it is negative; all in
// reverse order where p is left out.
Result<Expr> form_permute(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr x, c.value(1));
  Shape permutation;
  for (int64_t i = rank_of(x); i-- > 0;) permutation.push_back(i);
  if (!c.is_absent(0)) {
    HOIST_TRY(permutation, c.integers(0));
  }
  HOIST_TRY(Shape sorted, normalise_axes(permutation, rank_of(x)));
  if (static_cast<int64_t>(sorted.size()) != rank_of(x))
    return fault(fmt::format("perm has {} values for {} dimensions", sorted.size(), rank_of(x)));
  for (int64_t& p : permutation) p = p < 0 ? p + rank_of(x) : p;
  return permute(permutation, x);
}

struct Form {
  std::string_view name;
  Result<Expr> (*make)(const FormCall&);
};

constexpr auto forms = std::to_array<Form>({
    {"each", form_each},
    {"combined", form_combined},
    {"over", form_over},
    {"reduced", form_reduced},
    {"along", form_along},
    {"from_axis", form_from_axis},
    {"under", form_under},
    {"planes", form_planes},
    {"flat", form_flat},
    {"windows", form_windows},
    {"counted_windows", form_counted_windows},
    {"places_in_planes", form_places_in_planes},
    {"beside_channels", form_beside_channels},
    {"after", form_after},
    {"statistic", form_statistic},
    {"spread", form_spread},
    {"sum", form_sum},
    {"mean", form_mean},
    {"convert", form_convert},
    {"convert_without_saturation", form_convert_without_saturation},
    {"same_bits", form_same_bits},
    {"positions", form_positions},
    {"reshape", form_reshape},
    {"scalar", form_scalar},
    {"permute", form_permute},
});

// Functions on arrays and types whose values are known.
std::optional<Known> known_call(Elaborator& elaborator, Syn s) {
  constexpr std::string_view names[] = {"type",  "rank",       "length",     "floats", "integers", "booleans", "wide",
                                        "wider", "one_number", "broadcasts", "bits",   "extent",   "elements"};
  if (std::find(std::begin(names), std::end(names), s->text) == std::end(names)) return std::nullopt;
  std::vector<Expr> arrays;
  std::vector<Scalar> scalars;
  for (Syn argument : s->children) {
    if (auto known = elaborator.known(argument); known && std::holds_alternative<Scalar>(*known)) {
      scalars.push_back(std::get<Scalar>(*known));
      continue;
    }
    if (s->text == "extent" && arrays.empty() && argument == s->children[0]) continue;
    auto made = elaborator.argument({argument, nullptr}, nullptr);
    if (!made.ok()) return std::nullopt;
    arrays.push_back(*made);
    if (!(*made)->type->is_tuple()) scalars.push_back(element_of(*made));
  }
  if (s->text == "length" && arrays.size() == 1) {
    const Type type = arrays[0]->type;
    if (type->is_tuple()) return static_cast<int64_t>(type->parts.size());
    return type->is_array() ? type->size.value() : int64_t{1};
  }
  if (s->text == "extent" && arrays.size() == 1 && s->children.size() == 2) {
    // Of an axis that there is not, 1: what takes the axis says so.
    const auto named = elaborator.known(s->children[0]);
    const auto* i = named ? std::get_if<int64_t>(&*named) : nullptr;
    const auto axis = i == nullptr ? Result<int64_t>(int64_t{0}) : normalise_axis(*i, rank_of(arrays[0]));
    return axis.ok() && rank_of(arrays[0]) > 0 ? extents(arrays[0])[static_cast<size_t>(*axis)] : int64_t{1};
  }
  if (s->text == "wider" && scalars.size() == 2)
    return row(scalars[0]).bits < row(scalars[1]).bits ? scalars[1] : scalars[0];
  if (s->text == "broadcasts" && arrays.size() == 2) {
    const auto both = broadcast_extents(arrays);
    return int64_t{both.ok() && *both == extents(arrays[1])};
  }
  if (scalars.size() != 1) return std::nullopt;
  if (s->text == "type") return scalars[0];
  if (s->text == "bits") return int64_t{row(scalars[0]).bits};
  if (s->text == "wide") return wide_float(scalars[0]);
  if (s->text == "floats") return int64_t{is_float(scalars[0])};
  if (s->text == "integers") return int64_t{is_integer(scalars[0])};
  if (s->text == "booleans") return int64_t{scalars[0] == Scalar::boolean};
  if (arrays.size() != 1) return std::nullopt;
  if (s->text == "rank") return rank_of(arrays[0]);
  if (s->text == "elements") return product(extents(arrays[0]));
  if (s->text == "one_number") return int64_t{product(extents(arrays[0])) == 1};
  return std::nullopt;
}

}  // namespace

std::optional<Known> Forms::known(Elaborator& elaborator, Syn s) const {
  if (s->text == "given" && s->children.size() == 1) {
    auto place = values_.find(s->children[0]->text);
    return int64_t{place == values_.end() || !std::holds_alternative<Absent>(place->second)};
  }
  if (!s->children.empty()) return known_call(elaborator, s);
  if (auto place = values_.find(s->text); place != values_.end()) return place->second;
  if (s->text == "lowest" || s->text == "highest") return Extreme{s->text == "highest"};
  if (s->text == "version") return context_.call.version;
  if (s->text == "pi") return std::numbers::pi;
  if (auto scalar = scalar_named(s->text)) return *scalar;
  return std::nullopt;
}

std::optional<Result<Expr>> Forms::form(Elaborator& elaborator, Syn s,
                                        const std::vector<Elaborator::Argument>& arguments, Type) const {
  const auto* found = std::find_if(forms.begin(), forms.end(), [&](const Form& f) { return f.name == s->text; });
  if (found == forms.end()) return std::nullopt;
  return found->make(FormCall(elaborator, s, arguments, context_));
}

}  // namespace hoist::operators
