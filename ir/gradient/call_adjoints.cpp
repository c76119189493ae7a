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

struct CallAdjointRow {
  std::string_view operation;
  int64_t operand;
  Expr (*adjoint)(const Spec& call, Expr adjoint, const StoreTerm& store);
};

constexpr auto rows = std::to_array<CallAdjointRow>({
    {"Conv", 0, image_of_convolution},
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
