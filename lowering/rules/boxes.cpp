#include <algorithm>
#include <optional>

#include "lowering/graph/program.h"
#include "lowering/rules/call_conditions.h"

namespace hoist {
namespace {

struct Box {
  std::vector<int64_t> first, extents;
};

// The box of which the rows of `positions` are all places, the last dimension fastest; nothing if they are another set
// or in another order.
std::optional<Box> box_of(const Tensor& positions, const std::vector<int64_t>& shape) {
  const auto count = static_cast<size_t>(positions.shape().back());
  const int64_t rows = positions.size() / positions.shape().back();
  const auto at = [&](int64_t row, size_t k) {
    const int64_t place = positions.integer_at(row * static_cast<int64_t>(count) + static_cast<int64_t>(k));
    return place < 0 ? place + shape[k] : place;
  };
  Box out;
  int64_t places = 1;
  for (size_t k = 0; k < count; ++k) {
    out.first.push_back(at(0, k));
    out.extents.push_back(at(rows - 1, k) - at(0, k) + 1);
    if (out.first[k] < 0 || out.extents[k] < 1 || out.first[k] + out.extents[k] > shape[k]) return std::nullopt;
    places *= out.extents[k];
    if (places > rows) return std::nullopt;
  }
  if (places != rows) return std::nullopt;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row;
    for (size_t k = count; k-- > 0; rest /= out.extents[k]) {
      if (at(row, k) != out.first[k] + rest % out.extents[k]) return std::nullopt;
    }
  }
  return out;
}

// Positions along one dimension that count in equal steps while some dimensions of their array run, in row-major order;
// along the others they repeat.
struct Count {
  int64_t first = 0, step = 1, number = 1;
  std::vector<size_t> running;  // dimensions, ascending
};

// `at` gives the position by the row-major index into an array of that shape.
template <typename At>
std::optional<Count> count_of(const At& at, const std::vector<int64_t>& shape, int64_t extent) {
  Count out;
  out.first = at(0);
  const int64_t size = element_count(shape);
  std::vector<int64_t> apart(shape.size()), strides(shape.size(), 0);
  for (size_t d = shape.size(), elements = 1; d-- > 0; elements *= static_cast<size_t>(shape[d])) {
    apart[d] = static_cast<int64_t>(elements);
    if (shape[d] == 1 || at(apart[d]) == out.first) continue;
    if (out.number == 1) out.step = at(apart[d]) - out.first;
    strides[d] = out.number;
    out.number *= shape[d];
    out.running.insert(out.running.begin(), d);
  }
  if (out.step < 1 || out.first < 0 || out.first + (out.number - 1) * out.step >= extent) return std::nullopt;
  for (int64_t i = 0; i < size; ++i) {
    int64_t counted = 0;
    for (size_t d = 0; d < shape.size(); ++d) counted += i / apart[d] % shape[d] * strides[d];
    if (at(i) != out.first + counted * out.step) return std::nullopt;
  }
  return out;
}

}  // namespace

bool gathers_view(ProgramMatch& match, Positions kind, bool from_all) {
  const Tensor* positions = match.known("i");
  if (positions == nullptr || positions->size() < 2) return false;
  const Attributes& given = match.rests["A"];
  const std::vector<int64_t> shape = shape_of(match.values.at("x")->type);
  std::vector<int64_t> places = positions->shape();
  const auto integer = [&](const std::string& name) {
    const auto found = given.find(name);
    return found == given.end() ? 0 : std::get<int64_t>(found->second);
  };
  size_t axis = 0, along = 1;
  if (kind == Positions::along_axis) {
    const int64_t number = integer("axis");
    axis = static_cast<size_t>(number < 0 ? number + static_cast<int64_t>(shape.size()) : number);
  } else {
    if (integer("batch_dims") != 0) return false;
    along = static_cast<size_t>(places.back());
    places.pop_back();
  }
  std::vector<int64_t> axes, first, end, steps, ones(places.size(), 1);
  size_t free = 0;  // dimensions of places that run for an earlier dimension of x are before this one
  bool is_all = true;
  for (size_t k = 0; k < along; ++k) {
    const auto at = [&](int64_t row) {
      const int64_t place = positions->integer_at(row * static_cast<int64_t>(along) + static_cast<int64_t>(k));
      return place < 0 ? place + shape[axis + k] : place;
    };
    const std::optional<Count> count = count_of(at, places, shape[axis + k]);
    if (!count || (!count->running.empty() && count->running.front() < free)) return false;
    for (size_t d : count->running) ones[d] = places[d], free = d + 1;
    axes.push_back(static_cast<int64_t>(axis + k));
    first.push_back(count->first);
    end.push_back(count->first + (count->number - 1) * count->step + 1);
    steps.push_back(count->step);
    is_all &= count->number == shape[axis + k];
  }
  if (is_all != from_all) return false;
  const auto around = [&](std::vector<int64_t> middle) {
    middle.insert(middle.begin(), shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
    middle.insert(middle.end(), shape.begin() + static_cast<std::ptrdiff_t>(axis + along), shape.end());
    return middle;
  };
  match.attributes.insert({{"axes", axes},
                           {"first", first},
                           {"end", end},
                           {"steps", steps},
                           {"once", around(ones)},
                           {"whole", around(places)}});
  return true;
}

bool scatters_to_box(ProgramMatch& match, bool everything) {
  const Tensor* positions = match.known("i");
  const Attributes& given = match.rests["A"];
  const auto reduction = given.find("reduction");
  if (reduction != given.end() && reduction->second != Attribute(std::string("none"))) return false;
  const std::vector<int64_t> shape = shape_of(match.values.at("x")->type);
  if (positions == nullptr || positions->size() == 0 || positions->shape().back() > static_cast<int64_t>(shape.size()))
    return false;
  const std::optional<Box> box = box_of(*positions, shape);
  if (!box) return false;
  const size_t rank = shape.size();
  std::vector<int64_t> extents = shape, marks(rank, 1), around(2 * rank, 0);
  for (size_t k = 0; k < box->first.size(); ++k) {
    extents[k] = marks[k] = box->extents[k];
    around[k] = box->first[k];
    around[rank + k] = shape[k] - box->first[k] - box->extents[k];
  }
  if ((extents == shape) != everything) return false;
  match.attributes.insert({{"whole", shape}, {"box", extents}, {"around", around}, {"marks", marks}});
  return true;
}

}  // namespace hoist
