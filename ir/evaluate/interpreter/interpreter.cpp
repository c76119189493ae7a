#include "ir/evaluate/interpreter/interpreter.h"

#include <fmt/format.h>

#include "ir/base/cancellation.h"
#include "ir/evaluate/scalar_math.h"

namespace hoist::interpretation {

void Interpreter::run(Expr e, const std::vector<int64_t>& positions, Tensor& out) {
  find_shared(e);
  const Layout* layout = layouts_.of(e->type);
  std::vector<Cell> cells;
  std::byte* bytes = out.data();
  for (size_t i = 0; i < positions.size() && !stopped(); ++i) {
    cancellation_point();
    uint64_t word = at(e, nullptr, path_to(layout, positions[i], cells));
    write_column(&word, out.scalar(), bytes, static_cast<int64_t>(i), 1);
  }
}

uint64_t Interpreter::fault(const Spec& e, const std::string& what, const std::string& hint) {
  if (!stopped()) faults_.push_back({"", fmt::format("{}: {}", row(e.pattern).name, what), hint});
  return 0;
}

uint64_t Interpreter::at(Expr e, const Frame* env, const Cell* path) {
  if (!shared_.empty() && shared_.count(e) > 0) {
    auto memo = memo_of(e, e->free == 0 ? nullptr : env);
    return remembered(*memo, e, env, path);
  }
  return looked_up(e, env, path);
}

uint64_t Interpreter::looked_up(Expr e, const Frame* env, const Cell* path) {
  char here;
  if (base_ - reinterpret_cast<uintptr_t>(&here) > stack_) too_deep_ = true;
  if (stopped()) return 0;
  auto child = [&](size_t i) { return e->children[i]; };
  switch (e->pattern) {
    case Pattern::parameter:
      return element_of_parameter(e, path);
    case Pattern::constant:
      return element_of(e->constant, e->type, path);
    case Pattern::bound: {
      const Frame* frame = env;
      for (int64_t i = e->integers[0]; i > 0; --i) frame = frame->outer;
      return variable(*frame, e->type, path);
    }
    case Pattern::literal:
      return word_of_bits(e->type->scalar, e->bits);
    case Pattern::iota:
      return word_of_integer(e->type->element->scalar, path->value);
    case Pattern::call: {
      uint64_t a[3] = {};
      for (size_t i = 0; i < e->children.size(); ++i) a[i] = at(child(i), env, nullptr);
      if (parameters_.observer != nullptr) (*parameters_.observer)(e, {a, a + e->children.size()});
      return compute(e->function, child(0)->type->scalar, a[0], a[1], a[2]);
    }
    case Pattern::select:
      return at(child(at(child(0), env, nullptr) != 0 ? 1 : 2), env, path);
    case Pattern::cast: {
      const uint64_t from = at(child(0), env, nullptr);
      if (parameters_.observer != nullptr) (*parameters_.observer)(e, {from});
      return convert(child(0)->type->scalar, e->type->scalar, from);
    }
    case Pattern::reinterpret:
      return reinterpret(child(0)->type->scalar, at(child(0), env, nullptr));
    case Pattern::let:
      return let(e, env, path);
    case Pattern::tuple:
      return at(child(static_cast<size_t>(path->value)), env, path->rest);
    case Pattern::get: {
      Cell component{e->integers[0], path};
      return at(child(0), env, &component);
    }
    case Pattern::identity:
      return at(child(0), env, path);
    case Pattern::materialise:
      return materialised(e, env, path);
    case Pattern::map: {
      Frame element{env, env, child(1), path->value, nullptr, 0, nullptr};
      ElementMemo memo;
      if (ElementMemo::holds(child(1)->type->element)) element.element = &memo;
      return at(child(0)->children[0], &element, path->rest);
    }
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::iterate:
      return folded(e, env, path);
    case Pattern::scan:
      return scanned(e, env, path);
    case Pattern::scatter:
      return scattered(e, env, path);
    case Pattern::host:
      return called_on_host(e, env, path);
    default:
      return viewed(e, env, path);
  }
}

uint64_t Interpreter::viewed(Expr e, const Frame* env, const Cell* path) {
  auto child = [&](size_t i) { return e->children[i]; };
  switch (e->pattern) {
    case Pattern::zip: {
      Cell inner{path->value, path->rest->rest};
      return at(child(static_cast<size_t>(path->rest->value)), env, &inner);
    }
    case Pattern::repeat:
      return at(child(0), env, path->rest);
    case Pattern::transpose:
      return transposed(e, env, path);
    case Pattern::pad:
      return padded(e, env, path);
    case Pattern::concat: {
      size_t i = 0;
      int64_t position = path->value;
      for (; position >= extent(child(i)); ++i) position -= extent(child(i));
      Cell inner{position, path->rest};
      return at(child(i), env, &inner);
    }
    case Pattern::index: {
      int64_t position = integer_of_word(child(0)->type->scalar, at(child(0), env, nullptr));
      if (position < 0 || position >= extent(child(1))) {
        return fault(*e, fmt::format("position {} lies outside 0..{}", position, extent(child(1)) - 1));
      }
      Cell inner{position, path};
      return at(child(1), env, &inner);
    }
    case Pattern::split: {
      Cell inner{path->value * e->sizes[0].value() + path->rest->value, path->rest->rest};
      return at(child(0), env, &inner);
    }
    case Pattern::join: {
      int64_t k = extent_of(child(0)->type->element);
      Cell column{path->value % k, path->rest}, row{path->value / k, &column};
      return at(child(0), env, &row);
    }
    case Pattern::slide: {
      Cell inner{path->value * e->sizes[1].value() + path->rest->value * e->sizes[2].value(), path->rest->rest};
      return at(child(0), env, &inner);
    }
    case Pattern::slice: {
      Cell inner{e->sizes[0].value() + path->value * e->integers[0], path->rest};
      return at(child(0), env, &inner);
    }
    case Pattern::tile: {
      int64_t k = e->sizes[0].value();
      Cell inner{std::min(path->value * k, extent(child(0)) - k) + path->rest->value, path->rest->rest};
      return at(child(0), env, &inner);
    }
    case Pattern::untile: {
      int64_t k = extent_of(child(0)->type->element), n = e->sizes[0].value();
      int64_t tile = path->value / k;
      Cell column{path->value - std::min(tile * k, n - k), path->rest}, row{tile, &column};
      return at(child(0), env, &row);
    }
    default:  // operator calls are inlined before
      break;
  }
  HOIST_CHECK(false, "a term that has no value: " + std::string(row(e->pattern).name));
  return 0;
}

uint64_t Interpreter::variable(const Frame& frame, Type type, const Cell* path) {
  if (frame.forced != nullptr) return frame.forced[offset_of(layouts_.of(type), path)];
  if (frame.position >= 0) {
    Cell inner{frame.position, path};
    if (frame.element == nullptr) return at(frame.value, frame.env, &inner);
    const int64_t i = path == nullptr ? 0 : path->value;
    if (!frame.element->known[i]) {
      frame.element->words[i] = at(frame.value, frame.env, &inner);
      frame.element->known[i] = true;
    }
    return frame.element->words[i];
  }
  if (frame.memo != nullptr) return remembered(*frame.memo, frame.value, frame.env, path);
  return at(frame.value, frame.env, path);
}

uint64_t Interpreter::element_of_parameter(Expr e, const Cell* path) {
  if (parameters_.elements != nullptr)
    return word_of_bits(leaf_of(e->type)->scalar, (*parameters_.elements)(e->name, position_of(e->type, path)));
  const Tensor*& tensor = tensors_[e];
  if (tensor == nullptr) tensor = &parameters_.bindings->at(e->name);
  return element_of(*tensor, e->type, path);
}

int64_t Interpreter::position_of(Type type, const Cell* path) {
  int64_t position = 0;
  for (; type->is_array(); type = type->element, path = path->rest) position = position * extent_of(type) + path->value;
  return position;
}

uint64_t Interpreter::element_of(const Tensor& tensor, Type type, const Cell* path) {
  return word_at(tensor, position_of(type, path));
}

uint64_t Interpreter::transposed(Expr e, const Frame* env, const Cell* path) {
  const size_t n = e->integers.size();
  Cell few[8];
  std::vector<Cell> many(n > 8 ? n : 0);
  Cell* cells = n > 8 ? many.data() : few;
  for (size_t i = 0; i < n; ++i, path = path->rest) cells[e->integers[i]].value = path->value;
  for (size_t i = 0; i < n; ++i) cells[i].rest = i + 1 < n ? &cells[i + 1] : path;
  return at(e->children[0], env, cells);
}

uint64_t Interpreter::padded(Expr e, const Frame* env, const Cell* path) {
  const int64_t n = extent(e->children[0]);
  Cell inner{path->value - e->sizes[0].value(), path->rest};
  int64_t& i = inner.value;
  if (i < 0 || i >= n) {
    if (e->border == Border::value) return at(e->children[1], env, path->rest);
    if (e->border == Border::undefined) return 0;
    if (n == 0) return fault(*e, fmt::format("{} has no element to take", text(e->children[0]->type)));
    if (e->border == Border::clamp)
      i = i < 0 ? 0 : n - 1;
    else if (e->border == Border::mirror)
      i = i < 0 ? -i : 2 * (n - 1) - i;
    else
      i = (i % n + n) % n;
  }
  return at(e->children[0], env, &inner);
}

}  // namespace hoist::interpretation
