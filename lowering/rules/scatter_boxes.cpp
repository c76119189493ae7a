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

}  // namespace

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
