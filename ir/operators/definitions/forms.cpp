#include "ir/operators/definitions/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numbers>
#include <numeric>

#include "ir/operators/definitions/form_call.h"
#include "ir/operators/definitions/movement_forms.h"
#include "ir/operators/definitions/product_forms.h"
#include "ir/operators/definitions/windows.h"
#include "ir/operators/elementwise/random.h"

namespace hoist::operators {
namespace {

constexpr int64_t most_list = 1 << 16;  // maximum length of a known list

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

// combined f x: the components of a tuple, combined from the left; a single component is returned.
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

// over axes keep f x: f of the flattened elements along the axes; their dimensions stay with extent 1 if `keep` is set.
Result<Expr> form_over(const FormCall& c) {
  HOIST_TRY_VOID(c.want(4));
  HOIST_TRY(Expr x, c.value(3));
  HOIST_TRY(Shape named, c.integers(0));
  HOIST_TRY(int64_t keep, c.integer(1));
  HOIST_TRY(Shape axes, normalise_axes(named, rank_of(x)));
  HOIST_TRY(Expr f, c.function(2, {row_type(extent_along(x, axes), x)}));
  return reduce_axes(x, axes, keep != 0, calling(f));
}

// reduced f x: the same with axes as in ONNX's reductions; an empty list means all axes or none.
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

// along axis f x: f on each row along the axis; f returns a row.
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
  if (named == rank) named = rank - 1;  // otherwise rows of one element would remain
  HOIST_TRY(int64_t axis, normalise_axis(named, rank));
  const Shape shape = extents(x);
  const Shape lead(shape.begin(), shape.begin() + axis), rest(shape.begin() + axis, shape.end());
  HOIST_TRY(Expr f, c.function(1, {row_type(product(rest), x)}));
  return reshape(map(f, reshape(x, {product(lead), product(rest)})), shape);
}

// under depth f x: f on the elements under the first dimensions.
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

// flat f x: f on the elements as one row; f returns a row of the same length.
Result<Expr> form_flat(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr x, c.value(1));
  HOIST_TRY(Expr f, c.function(0, {row_type(product(extents(x)), x)}));
  Expr row = hoist::apply(f, {flatten(x)});
  if (extents(row) != Shape{product(extents(x))}) return fault("flat needs a row of the same length");
  return reshape(row, extents(x));
}

// beside_channels size f x: f of each element and of the row of elements at the same position in the `size` channels
// around it.
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

// statistic axis f x: a scalar for all elements from the axis on; these dimensions stay with extent 1.
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

// convert(T, x): a scalar converted as in ONNX, or a literal of this type.
Result<Expr> form_convert(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Scalar to, c.scalar(0));
  HOIST_TRY(Expr x, c.value(1, scalar_type(to)));
  return convert(to, x);
}

// A scalar in the type that the first argument names.
template <Expr (*make)(Scalar, Expr)>
Result<Expr> form_to_type(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Scalar to, c.scalar(0));
  HOIST_TRY(Expr x, c.value(1));
  return make(to, x);
}

// in_text T x: strings converted to numbers of the type, or numbers converted to strings, by a host op.
Result<Expr> form_in_text(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(const Scalar to, c.scalar(0));
  HOIST_TRY(const Expr x, c.value(1));
  const Scalar from = element_of(x);
  if (from == to) return x;
  const auto like = [&](Scalar scalar) { return array_type(sizes_of(x->type), scalar_type(scalar)); };
  const auto converted = [&](Scalar scalar, Expr array) {
    return map_at(
        static_cast<int>(rank_of(x)), [&](Expr v) { return convert(scalar, v); }, array);
  };
  if (to != Scalar::string) {
    HOIST_TRY(const Expr read, host("string_to_number", {x}, like(is_float(to) ? Scalar::f64 : Scalar::i64)));
    return converted(to, read);
  }
  const Scalar wide = !is_float(from) ? Scalar::i64 : from == Scalar::f64 ? Scalar::f64 : Scalar::f32;
  return host("number_to_string", {converted(wide, x)}, like(Scalar::string));
}

// positions T x: 0, 1, ... for the elements of an array.
Result<Expr> form_positions(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Scalar scalar, c.scalar(0));
  HOIST_TRY(Expr x, c.value(1));
  return iota(x->type->size, scalar);
}

// random_words shape: random bits from the operator's seed.
Result<Expr> form_random_words(const FormCall& c) {
  HOIST_TRY_VOID(c.want(1));
  HOIST_TRY(const Shape shape, c.integers(0));
  HOIST_TRY_VOID(check_extents(shape));
  const auto whole = integer_attribute(c.context, "seed", 0);  // Dropout's seed is an integer
  if (whole.ok()) return reshape(random_words(product(shape), static_cast<float>(*whole)), shape);
  HOIST_TRY(const double seed, float_attribute(c.context, "seed", 0));
  return reshape(random_words(product(shape), static_cast<float>(seed)), shape);
}

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
    {"beside_channels", form_beside_channels},
    {"after", form_after},
    {"statistic", form_statistic},
    {"spread", form_spread},
    {"sum", form_sum},
    {"mean", form_mean},
    {"convert", form_convert},
    {"convert_without_saturation", form_to_type<convert_without_saturation>},
    {"saturated", form_to_type<cast>},  // the nearest number of the type
    {"same_bits", form_to_type<reinterpret>},
    {"positions", form_positions},
    {"in_text", form_in_text},
    {"random_words", form_random_words},
});

// Functions on numbers and lists of known integers.
std::optional<Known> known_list_call(Elaborator& elaborator, Syn s) {
  const auto argument = [&](size_t i) { return elaborator.known(s->children[i]); };
  const size_t count = s->children.size();
  if (s->text == "at" && (count == 2 || count == 3)) {  // at(list, i), at(list, i, where the list is left out)
    const auto list = argument(0), place = argument(1);
    if (count == 3 && list && std::holds_alternative<Absent>(*list)) return argument(2);
    const auto* all = list ? std::get_if<Shape>(&*list) : nullptr;
    const auto* i = place ? std::get_if<int64_t>(&*place) : nullptr;
    if (all == nullptr || i == nullptr || *i < 0 || *i >= static_cast<int64_t>(all->size())) return std::nullopt;
    return (*all)[static_cast<size_t>(*i)];
  }
  if ((s->text == "first" || s->text == "last") && count == 2) {  // first(n, list)
    const auto number = argument(0), list = argument(1);
    const auto* all = list ? std::get_if<Shape>(&*list) : nullptr;
    const auto* n = number ? std::get_if<int64_t>(&*number) : nullptr;
    if (all == nullptr || n == nullptr || *n < 0 || *n > std::ssize(*all)) return std::nullopt;
    return s->text == "last" ? Shape(all->end() - *n, all->end()) : Shape(all->begin(), all->begin() + *n);
  }
  if (s->text == "holds" && count == 2) {  // holds(list, n)
    const auto list = argument(0), number = argument(1);
    const auto* all = list ? std::get_if<Shape>(&*list) : nullptr;
    const auto* n = number ? std::get_if<int64_t>(&*number) : nullptr;
    if (all == nullptr || n == nullptr) return std::nullopt;
    return int64_t{std::find(all->begin(), all->end(), *n) != all->end()};
  }
  if (s->text == "range" && count == 2) {  // range(begin, end): begin, ..., end - 1
    const auto from = argument(0), to = argument(1);
    const auto *first = from ? std::get_if<int64_t>(&*from) : nullptr, *end = to ? std::get_if<int64_t>(&*to) : nullptr;
    if (first == nullptr || end == nullptr || *end - *first > most_list) return std::nullopt;
    Shape list(static_cast<size_t>(std::max<int64_t>(*end - *first, 0)));
    std::iota(list.begin(), list.end(), *first);
    return list;
  }
  if (s->text == "whole" && count == 1) {
    const auto rounded = argument(0) ? apply_known(Function::floor, {*argument(0)}) : std::nullopt;
    if (!rounded) return std::nullopt;
    return int64_t{std::holds_alternative<int64_t>(*rounded) && number_of(*rounded) == number_of(*argument(0))};
  }
  constexpr std::string_view names[] = {"least", "most", "length", "product"};
  if (count != 1 || std::find(std::begin(names), std::end(names), s->text) == std::end(names)) return std::nullopt;
  const auto list = argument(0);
  const auto* all = list ? std::get_if<Shape>(&*list) : nullptr;
  if (all == nullptr) return std::nullopt;
  if (s->text == "length") return static_cast<int64_t>(all->size());
  if (s->text == "product") return product(*all);
  int64_t extreme = s->text == "least" ? INT64_MAX : INT64_MIN;
  for (int64_t n : *all) extreme = s->text == "least" ? std::min(extreme, n) : std::max(extreme, n);
  return extreme;
}

// Functions on arrays and types whose values are known.
std::optional<Known> known_call(Elaborator& elaborator, Syn s) {
  constexpr std::string_view names[] = {"type",     "rank",   "length",  "floats",     "integers",
                                        "booleans", "wide",   "wider",   "one_number", "broadcasts",
                                        "bits",     "extent", "extents", "elements",   "spatial"};
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
    // The extent of a missing axis is 1: the function that uses the axis reports it.
    const auto named = elaborator.known(s->children[0]);
    const auto* i = named ? std::get_if<int64_t>(&*named) : nullptr;
    const auto axis = i == nullptr ? Result<int64_t>(int64_t{0}) : normalise_axis(*i, rank_of(arrays[0]));
    if (!axis.ok() || rank_of(arrays[0]) == 0) return int64_t{1};
    const Nat n = sizes_of(arrays[0]->type)[static_cast<size_t>(*axis)];
    return n.is_constant() ? std::optional<Known>(n.value()) : std::nullopt;
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
  if (s->text == "extents") return extents(arrays[0]);
  if (s->text == "spatial") {  // the extents after images and channels
    const Sizes sizes = sizes_of(arrays[0]->type);
    Shape spatial;
    for (size_t i = 2; i < sizes.size(); ++i) spatial.push_back(sizes[i].value());
    return spatial;
  }
  if (s->text == "one_number") return int64_t{product(extents(arrays[0])) == 1};
  return std::nullopt;
}

}  // namespace

// Functions on the operands' values.
std::optional<Known> Forms::known_value(Syn s) const {
  if (s->children.size() != 1) return std::nullopt;
  auto found = constants_.find(s->children[0]->text);
  const Tensor* tensor = found == constants_.end() ? nullptr : found->second;
  if (s->text == "is_known") return int64_t{tensor != nullptr};
  if (tensor == nullptr) return s->text == "zeros" ? std::optional<Known>(int64_t{0}) : std::nullopt;
  const bool whole = !is_float(tensor->scalar());
  if (s->text == "value") {  // of an array of one element
    if (tensor->size() != 1) return std::nullopt;
    return whole ? Known(tensor->integer_at(0)) : Known(tensor->float_at(0));
  }
  if (!whole) return std::nullopt;
  if (s->text == "zeros") return int64_t{largest_magnitude(*tensor) == 0};
  return s->text == "largest" ? std::optional<Known>(largest_magnitude(*tensor)) : std::nullopt;
}

std::optional<Known> Forms::known(Elaborator& elaborator, Syn s) const {
  if (s->text == "given" && s->children.size() == 1) {
    auto found = values_.find(s->children[0]->text);
    return int64_t{found == values_.end() || !std::holds_alternative<Absent>(found->second)};
  }
  if (!s->children.empty()) {
    if (auto value = known_value(s)) return value;
    if (auto value = known_list_call(elaborator, s)) return value;
    return known_call(elaborator, s);
  }
  if (auto place = values_.find(s->text); place != values_.end()) return place->second;
  if (s->text == "lowest" || s->text == "highest") return Extreme{s->text == "highest"};
  if (s->text == "results") return context_.call.results;
  if (s->text == "pi") return std::numbers::pi;
  if (auto scalar = scalar_named(s->text)) return *scalar;
  return std::nullopt;
}

std::optional<Result<Expr>> Forms::form(Elaborator& elaborator, Syn s,
                                        const std::vector<Elaborator::Argument>& arguments, Type) const {
  for (std::span<const Form> group :
       {std::span<const Form>(forms), movement_forms(), window_forms(), product_forms()}) {
    for (const Form& f : group) {
      if (f.name == s->text) return f.make(FormCall(elaborator, s, arguments, context_));
    }
  }
  return std::nullopt;
}

}  // namespace hoist::operators
