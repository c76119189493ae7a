#include "ir/evaluate/interpreter/interpret_layout.h"

#include "ir/evaluate/interpreter/interpret_check.h"

namespace hoist::interpretation {

const Layout* Layouts::of(Type type) {
  auto found = made_.find(type);
  if (found != made_.end()) return found->second.get();
  auto layout = std::make_unique<Layout>();
  layout->count = scalar_count_of(type).value();
  if (type->is_array()) layout->element = of(type->element);
  int64_t begin = 0;
  for (Type part : type->parts) {
    layout->parts.emplace_back(begin, of(part));
    begin += layout->parts.back().second->count;
  }
  return made_.emplace(type, std::move(layout)).first->second.get();
}

int64_t offset_of(const Layout* layout, const Cell* path) {
  int64_t offset = 0;
  for (; path != nullptr; path = path->rest) {
    if (layout->element != nullptr) {
      layout = layout->element;
      offset += path->value * layout->count;
    } else {
      const auto& [begin, part] = layout->parts[static_cast<size_t>(path->value)];
      offset += begin;
      layout = part;
    }
  }
  return offset;
}

const Cell* path_to(const Layout* layout, int64_t offset, std::vector<Cell>& cells) {
  cells.clear();
  while (layout->element != nullptr || !layout->parts.empty()) {
    if (layout->element != nullptr) {
      layout = layout->element;
      cells.push_back({offset / layout->count, nullptr});
      offset %= layout->count;
    } else {
      size_t i = layout->parts.size() - 1;  // the last non-empty part that begins at or before the offset
      while (layout->parts[i].first > offset || layout->parts[i].second->count == 0) --i;
      cells.push_back({static_cast<int64_t>(i), nullptr});
      offset -= layout->parts[i].first;
      layout = layout->parts[i].second;
    }
  }
  for (size_t i = 1; i < cells.size(); ++i) cells[i - 1].rest = &cells[i];
  return cells.empty() ? nullptr : cells.data();
}

}  // namespace hoist::interpretation
