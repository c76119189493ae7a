#include "ir/gradient/call_adjoints.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "ir/gradient/linear_terms.h"

namespace hoist::gradients {
namespace {

using Shape = std::vector<int64_t>;

// Each phase is a kernel. Beyond this number the phases have too few taps to pay for the launches.
constexpr int64_t most_phases = 16;

// The spatial dimensions of a convolution.
struct Geometry {
  Shape extents, kernel, strides, dilations, begin, results;

  size_t rank() const { return extents.size(); }
  int64_t phases() const {
    return std::accumulate(strides.begin(), strides.end(), int64_t{1}, std::multiplies<int64_t>());
  }
  bool has_strides() const {
    return std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s != 1; });
  }
  bool is_dilated() const {
    return std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; });
  }
};

Shape spatial(Type type) {
  const Shape all = shape_of(type);
  return {all.begin() + 2, all.end()};
}

Geometry geometry_of(const Spec& call, Type result) {
  Geometry g{spatial(call.children[0]->type), spatial(call.children[1]->type), {}, {}, {}, spatial(result)};
  const Attributes& given = call.operation->attributes;
  const auto list = [&](const char* name, int64_t otherwise) {
    const auto found = given.find(name);
    const auto* values = found == given.end() ? nullptr : std::get_if<Shape>(&found->second);
    return values == nullptr ? Shape(g.rank(), otherwise) : *values;
  };
  g.strides = list("strides", 1);
  g.dilations = list("dilations", 1);
  g.begin = list("pads", 0);
  const auto found = given.find("auto_pad");
  const auto* automatic = found == given.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (automatic == nullptr || *automatic == "NOTSET" || automatic->empty()) return g;
  for (size_t i = 0; i < g.rank(); ++i) {
    const int64_t span = (g.kernel[i] - 1) * g.dilations[i] + 1;
    const int64_t total = std::max<int64_t>((g.results[i] - 1) * g.strides[i] + span - g.extents[i], 0);
    g.begin[i] = *automatic == "SAME_UPPER" ? total / 2 : *automatic == "SAME_LOWER" ? total - total / 2 : 0;
  }
  return g;
}

Expr transposed_convolution(const Spec& call, Expr adjoint, Expr filters, Attributes attributes) {
  OperatorCall out{"", "ConvTranspose", call.operation->version, 1, {}, std::move(attributes)};
  const Attributes& given = call.operation->attributes;
  if (auto group = given.find("group"); group != given.end()) out.attributes.insert(*group);
  auto made = operator_call(std::move(out), {adjoint, filters});
  return made.ok() ? *made : nullptr;
}

// Applies f to the rows of the arrays along dimension `axis`, inside maps over the dimensions before it.
Expr map_rows(const std::vector<Expr>& arrays, size_t axis, const std::function<Expr(const std::vector<Expr>&)>& f) {
  if (axis == 0) return f(arrays);
  std::vector<Running> parts;
  std::vector<Expr> rows;
  for (Expr a : arrays) {
    rows.push_back(fresh_variable(a->type->element));
    parts.push_back({rows.back(), a});
  }
  return map_over(parts, arrays[0]->type->size, map_rows(rows, axis - 1, f));
}

// Interleaves s arrays: elements 0, s, 2 s, ... are from the first array, 1, 1 + s, ... from the second, and so on.
Expr interleaved(const std::vector<Expr>& arrays) {
  std::vector<Expr> rows;
  for (Expr a : arrays) rows.push_back(repeat(1, a));
  return join(transpose(concat(rows)));
}

// `extent` elements of the row from `begin` on, with zeros after the end of the row.
Expr part_of_row(Expr row, int64_t begin, int64_t extent) {
  const int64_t found = row->type->size.value(), end = std::min(found, begin + extent);
  return pad_zeros(0, begin + extent - end, slice(begin, end - begin, row));
}

// The taps begin, begin + s, ... of the filters in each dimension, as a call that a pass can compute at compile time.
Expr taps(const Spec& call, const Geometry& g, const Shape& begin) {
  Shape axes, ends;
  for (size_t i = 0; i < g.rank(); ++i) {
    axes.push_back(static_cast<int64_t>(i) + 2);
    ends.push_back(g.kernel[i]);
  }
  OperatorCall out{"", "Slice", call.operation->version, 1, {}, {}};
  out.attributes = {{"starts", begin}, {"ends", ends}, {"axes", axes}, {"steps", g.strides}};
  auto made = operator_call(std::move(out), {call.children[1]});
  HOIST_CHECK(made.ok(), made.errors()[0].text());
  return *made;
}

// The image's adjoint for a strided convolution, in phases. A phase consists of the elements whose positions have the
// same remainders modulo the strides. It is a convolution without strides that has some of the taps. All phases
// together have as many multiplications as the forward pass.
class Phases {
 public:
  Phases(const Spec& call, const Geometry& g, Expr adjoint, const StoreTerm& store)
      : call_(call), g_(g), adjoint_(adjoint), store_(store) {
    for (size_t i = 0; i < g.rank(); ++i)
      extents_.push_back(g.results[i] + (g.kernel[i] + g.strides[i] - 1) / g.strides[i] - 1);
  }

  Expr image() { return all_from(0); }

 private:
  // All phases of the dimensions from i on; begin_ holds the phases of the dimensions before.
  Expr all_from(size_t i) {
    if (i == g_.rank()) return phase();
    std::vector<Expr> parts;
    for (int64_t begin = 0; begin < g_.strides[i]; ++begin) {
      begin_.push_back(begin);
      parts.push_back(all_from(i + 1));
      begin_.pop_back();
    }
    return map_rows(parts, i + 2, [&](const std::vector<Expr>& rows) {
      return part_of_row(interleaved(rows), g_.begin[i], g_.extents[i]);
    });
  }

  Expr phase() {
    Shape all = shape_of(call_.children[0]->type);
    std::copy(extents_.begin(), extents_.end(), all.begin() + 2);
    for (size_t i = 0; i < g_.rank(); ++i) {
      if (begin_[i] >= g_.kernel[i]) return zeros(array_type({all.begin(), all.end()}, leaf_of(adjoint_->type)));
    }
    const std::string& name = call_.children[0]->name;
    const Expr filters = store_(name + ".gradient.filters", taps(call_, g_, begin_));
    Expr found = store_(name + ".gradient.phase", transposed_convolution(call_, adjoint_, filters, {}));
    for (size_t i = 0; i < g_.rank(); ++i) {
      found =
          map_rows({found}, i + 2, [&](const std::vector<Expr>& rows) { return part_of_row(rows[0], 0, extents_[i]); });
    }
    return found;
  }

  const Spec& call_;
  const Geometry& g_;
  Expr adjoint_;
  const StoreTerm& store_;
  Shape extents_, begin_;
};

// The adjoint of a convolution's image: a transposed convolution of the result's adjoint with the same filters.
Expr image_of_convolution(const Spec& call, Expr adjoint, const StoreTerm& store) {
  const Geometry g = geometry_of(call, adjoint->type);
  if (g.has_strides())
    return g.is_dilated() || g.phases() > most_phases ? nullptr : Phases(call, g, adjoint, store).image();
  Shape pads = g.begin;
  pads.resize(g.rank());
  for (size_t i = 0; i < g.rank(); ++i)
    pads.push_back(g.results[i] - 1 + (g.kernel[i] - 1) * g.dilations[i] + 1 - g.extents[i] - g.begin[i]);
  const Expr found =
      transposed_convolution(call, adjoint, call.children[1], {{"pads", pads}, {"dilations", g.dilations}});
  return found != nullptr && found->type == call.children[0]->type ? found : nullptr;
}

// The windows of the image that the filters multiply: [C], the filter's extents, [N], and the result's extents.
Expr windows_of_image(const Geometry& g, Expr image) {
  for (size_t i = 0; i < g.rank(); ++i) {
    const int64_t span = (g.results[i] - 1) * g.strides[i] + (g.kernel[i] - 1) * g.dilations[i] + 1;
    const int64_t end = std::max<int64_t>(0, span - g.begin[i] - g.extents[i]);
    image = map_rows({image}, 2 + i, [&](const auto& rows) { return pad_zeros(g.begin[i], end, rows[0]); });
  }
  for (size_t i = 0; i < g.rank(); ++i) {
    image = map_rows({image}, 2 + 2 * i,
                     [&](const auto& rows) { return slide(g.kernel[i], g.strides[i], g.dilations[i], rows[0]); });
  }
  std::vector<int64_t> order = {1};
  const auto rank = static_cast<int64_t>(g.rank());
  for (int64_t i = 0; i < rank; ++i) order.push_back(3 + 2 * i);
  order.push_back(0);
  for (int64_t i = 0; i < rank; ++i) order.push_back(2 + 2 * i);
  return transpose(order, image);
}

// Joins the first `count` dimensions.
Expr joined(size_t count, Expr array) {
  for (size_t i = 1; i < count; ++i) array = join(array);
  return array;
}

// The sum of the products of two arrays of `rank` dimensions.
Expr sum_of_products(size_t rank, Expr a, Expr b) {
  const Expr x = fresh_variable(leaf_of(a->type)), y = fresh_variable(leaf_of(b->type));
  const Expr left = joined(rank, a), right = joined(rank, b);
  return sum_over({{x, left}, {y, right}}, left->type->size, call(Function::multiply, {x, y}));
}

// The sums of the products of each element of one array with each element of the other.
Expr products(size_t rank, Expr rows, Expr columns) {
  return map([&](Expr row) { return map([&](Expr column) { return sum_of_products(rank, row, column); }, columns); },
             rows);
}

// The adjoint of a convolution's filters: for each tap a product of the result's adjoint and of the image's elements
// under this tap. It sums over images and positions. The columns of its stored form are the larger dimension, of input
// channels, output channels or groups; a dimension that gives a tile few rows is joined with the taps.
//
// Large images are summed in parts, which stay in the cache of a core while the products of all taps read them: 64
// channels of 224x224 take 35 ms instead of 73.
class FilterSums {
 public:
  FilterSums(const Spec& call, const Geometry& g, Expr adjoint, const StoreTerm& store)
      : g_(g), store_(store), name_(call.children[1]->name) {
    const Shape filters = shape_of(call.children[1]->type);
    channels_ = filters[1];
    groups_ = shape_of(call.children[0]->type)[1] / channels_;
    outputs_ = filters[0] / groups_;
    rank_ = g.rank() + 1;
    const Expr windows = windows_of_image(g, call.children[0]);
    windows_ = split(channels_, map([&](Expr channel) { return joined(g.rank(), channel); }, windows));
    adjoint_ = split(outputs_, transpose(adjoint));
  }

  Expr filters() {
    Expr sums = stored_sums();
    if (form() != Form::groups_inside && groups_ == 1) sums = repeat(1, sums);
    return map_rows({join(by_taps(sums))}, 2, [&](const std::vector<Expr>& rows) {
      Expr taps = rows[0];
      for (size_t i = g_.rank(); i-- > 1;) taps = split(g_.kernel[i], taps);
      return taps;
    });
  }

 private:
  enum class Form : uint8_t { groups_inside, taps_outside, rows_of_inputs, rows_of_outputs };

  Form form() const {
    if (groups_ > 1 && std::max(channels_, outputs_) < few) return Form::groups_inside;
    if (std::min(channels_, outputs_) >= few) return Form::taps_outside;
    return channels_ < outputs_ ? Form::rows_of_inputs : Form::rows_of_outputs;
  }

  Expr stored_sums() {
    if (!divide()) return store_(name_ + ".gradient.part", sums(windows_, adjoint_));
    const Expr windows = fresh_variable(windows_->type->element), adjoint = fresh_variable(adjoint_->type->element);
    const Nat& parts = windows_->type->size;
    const Expr each = store_(name_ + ".gradient.parts",
                             map_over({{windows, windows_}, {adjoint, adjoint_}}, parts, sums(windows, adjoint)));
    const Expr part = fresh_variable(each->type->element);
    return store_(name_ + ".gradient.part", sum_over({{part, each}}, parts, part));
  }

  // Gives the windows and the adjoint a first dimension of parts, of whole images or of lines of an image; false if all
  // is one part.
  bool divide() {
    const int64_t images = adjoint_->type->element->element->size.value(), lines = g_.results[0];
    const int64_t elements = groups_ * (channels_ * product(g_.strides) + outputs_) * product(g_.results) * images;
    if (elements <= 2 * part_elements) return false;
    const int64_t line = elements / images / lines;
    const bool by_lines = line * lines > part_elements;
    const int64_t together = divisor(by_lines ? lines : images, part_elements / (by_lines ? line : line * lines));
    windows_ = divided(windows_, 3, by_lines, together);
    adjoint_ = divided(adjoint_, 2, by_lines, together);
    if (by_lines) --rank_;
    return true;
  }

  // Divides the dimension of images, or of the lines after them, and moves the parts to the front.
  static Expr divided(Expr array, int64_t images, bool by_lines, int64_t together) {
    const auto rank = static_cast<int64_t>(shape_of(array->type).size()) + 1, divides = images + (by_lines ? 1 : 0);
    array = map_rows({array}, static_cast<size_t>(divides), [&](const auto& rows) { return split(together, rows[0]); });
    std::vector<int64_t> order;
    for (int64_t i = images; i <= divides; ++i) order.push_back(i);
    for (int64_t i = 0; i < rank; ++i) {
      if (i < images || i > divides) order.push_back(i);
    }
    array = transpose(order, array);
    return by_lines ? join(array) : array;
  }

  static int64_t product(const Shape& extents) {
    return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<int64_t>());
  }
  // The largest divisor of n that is at most `most`, and at least 1.
  static int64_t divisor(int64_t n, int64_t most) {
    int64_t k = std::clamp<int64_t>(most, 1, n);
    while (n % k != 0) --k;
    return k;
  }

  // The sums, in the form that is stored, from [groups][channels][taps] and [groups][outputs].
  Expr sums(Expr windows, Expr adjoint) const {
    if (form() == Form::groups_inside) return by_groups(transpose({2, 1, 0}, windows), transpose(adjoint));
    if (groups_ == 1) return in_group(join(windows), join(adjoint));
    const Expr w = fresh_variable(windows->type->element), a = fresh_variable(adjoint->type->element);
    return map_over({{w, windows}, {a, adjoint}}, groups_, in_group(w, a));
  }

  Expr in_group(Expr windows, Expr adjoint) const {
    const Expr taps = transpose(windows);
    if (form() == Form::rows_of_inputs) return products(rank_, join(taps), adjoint);
    const Expr all = map([&](Expr channels) { return products(rank_, adjoint, channels); }, taps);
    return form() == Form::rows_of_outputs ? join(all) : all;
  }

  // The lanes of a vector are groups.
  Expr by_groups(Expr taps, Expr outputs) const {
    const auto sums_of = [&](Expr output, Expr channel) {
      const Expr a = fresh_variable(output->type->element), b = fresh_variable(channel->type->element);
      return map_over({{a, output}, {b, channel}}, groups_, sum_of_products(rank_, a, b));
    };
    const auto of_tap = [&](Expr tap) {
      return map([&](Expr output) { return map([&](Expr channel) { return sums_of(output, channel); }, tap); },
                 outputs);
    };
    return join(join(map(of_tap, taps)));
  }

  // The stored sums as [groups][outputs][channels][taps].
  Expr by_taps(Expr sums) const {
    switch (form()) {
      case Form::groups_inside:
        return transpose({3, 1, 2, 0}, split(outputs_, split(channels_, sums)));
      case Form::taps_outside:
        return transpose({0, 2, 3, 1}, sums);
      case Form::rows_of_inputs:
        return transpose({0, 3, 2, 1}, map([&](Expr group) { return split(channels_, group); }, sums));
      case Form::rows_of_outputs:
        return transpose({0, 2, 3, 1}, map([&](Expr group) { return split(outputs_, group); }, sums));
    }
    return nullptr;
  }

  static constexpr int64_t few = 8;
  static constexpr int64_t part_elements = int64_t{1} << 17;  // half a MiB of f32

  const Geometry& g_;
  const StoreTerm& store_;
  std::string name_;
  int64_t groups_ = 1, channels_ = 1, outputs_ = 1;
  size_t rank_ = 1;         // of the summed dimensions
  Expr windows_ = nullptr;  // [groups][channels][taps] and the summed dimensions, after the parts
  Expr adjoint_ = nullptr;  // [groups][outputs] and the summed dimensions, after the parts
};

Expr filters_of_convolution(const Spec& call, Expr adjoint, const StoreTerm& store) {
  const Geometry g = geometry_of(call, adjoint->type);
  return FilterSums(call, g, adjoint, store).filters();
}

struct CallAdjointRow {
  std::string_view operation;
  int64_t operand;
  Expr (*adjoint)(const Spec& call, Expr adjoint, const StoreTerm& store);
};

constexpr auto rows = std::to_array<CallAdjointRow>({
    {"Conv", 0, image_of_convolution},
    {"Conv", 1, filters_of_convolution},
});

}  // namespace

Expr adjoint_as_call(const Spec& call, size_t i, Expr adjoint, const StoreTerm& store) {
  for (const CallAdjointRow& row : rows) {
    if (call.operation->domain.empty() && call.operation->name == row.operation &&
        call.operation->operands[i] == row.operand)
      return row.adjoint(call, adjoint, store);
  }
  return nullptr;
}

}  // namespace hoist::gradients
