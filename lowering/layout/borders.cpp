// Borders: a convolution pads its operand with zeros or with a zero point. If the operand's array has such a border,
// the padding is a larger slice of the array, and the inner loops need no comparison.
#include <optional>

#include "ir/properties/properties.h"
#include "lowering/layout/storage.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// The byte that all bytes of the literal repeat: any 8-bit value, or zero.
std::optional<uint8_t> repeated_byte(Expr e) {
  if (e->pattern != Pattern::literal) return std::nullopt;
  if (e->bits != 0 && row(e->type->scalar).bits != 8) return std::nullopt;
  return static_cast<uint8_t>(e->bits);
}

// map^depth (pad l r number). `array` is the operand, child number `child` of the term.
struct PaddedDimension {
  int depth;
  int64_t before, after;
  Expr number;
  Expr array;
  int child;
};

std::optional<PaddedDimension> padding_layer(Expr e) {
  int depth = 0;
  Expr array = nullptr;
  Expr inner = e;
  while (inner->pattern == Pattern::map && inner->mode == Mode::view) {
    if (depth == 0)
      array = inner->children[1];
    else if (inner->children[1]->pattern != Pattern::bound || inner->children[1]->integers[0] != 0)
      return std::nullopt;
    inner = inner->children[0]->children[0];
    ++depth;
  }
  if (inner->pattern != Pattern::pad || inner->border != Border::value) return std::nullopt;
  // For outer dimensions the value is an array that repeats the scalar.
  Expr value = inner->children[1];
  while (value->pattern == Pattern::repeat) value = value->children[0];
  if (depth == 0)
    array = inner->children[0];
  else if (inner->children[0]->pattern != Pattern::bound || inner->children[0]->integers[0] != 0)
    return std::nullopt;
  return PaddedDimension{depth, inner->sizes[0].value(), inner->sizes[1].value(), value, array, depth == 0 ? 0 : 1};
}

struct Padded {
  std::string value;
  Padding padding;
};

// Nested paddings by one scalar, one dimension each, outermost first.
std::vector<PaddedDimension> padding_layers(Expr e) {
  std::vector<PaddedDimension> layers;
  while (auto layer = padding_layer(e)) {
    const std::optional<uint8_t> byte = repeated_byte(layer->number);
    if (!byte || (!layers.empty() && byte != repeated_byte(layers[0].number))) break;
    layers.push_back(*layer);
    e = layer->array;
  }
  return layers;
}

// A parameter with such paddings around it; empty for any other term.
std::optional<Padded> padded_parameter(Expr e) {
  Padded out;
  const std::vector<PaddedDimension> layers = padding_layers(e);
  if (layers.empty()) return std::nullopt;
  e = layers.back().array;
  if (e->pattern != Pattern::parameter) return std::nullopt;
  out.value = e->name;
  out.padding.byte = *repeated_byte(layers[0].number);
  out.padding.before.assign(sizes_of(e->type).size(), 0);
  out.padding.after = out.padding.before;
  for (const PaddedDimension& layer : layers) {
    out.padding.before[static_cast<size_t>(layer.depth)] += layer.before;
    out.padding.after[static_cast<size_t>(layer.depth)] += layer.after;
  }
  return out;
}

}  // namespace

std::optional<Path> padded_view(Expr term) {
  std::vector<PaddedDimension> layers;
  std::optional<Path> place = first_closed(term, [&](Expr e) {
    layers = padding_layers(e);
    return !layers.empty() && layers.back().array->pattern != Pattern::parameter && moves_only(layers.back().array);
  });
  if (!place) return std::nullopt;
  for (const PaddedDimension& layer : layers) place->push_back(layer.child);
  return place;
}

std::optional<Path> computed_padding(Expr term) {
  return first_closed(term, [](Expr e) {
    const auto layer = padding_layer(e);
    return layer && layer->number->pattern != Pattern::literal;
  });
}

std::map<std::string, Padding> constant_paddings(Expr e) {
  std::map<std::string, Padding> found;
  replace_closed(e, [&](Expr n) -> Expr {
    auto padded = padded_parameter(n);
    if (!padded) return nullptr;
    auto [place, fresh] = found.emplace(padded->value, padded->padding);
    if (place->second.byte != padded->padding.byte) return nullptr;
    for (size_t i = 0; !fresh && i < padded->padding.before.size(); ++i) {
      place->second.before[i] = std::max(place->second.before[i], padded->padding.before[i]);
      place->second.after[i] = std::max(place->second.after[i], padded->padding.after[i]);
    }
    return n;
  });
  return found;
}

Expr over_storage(Expr e, const std::map<std::string, Storage>& values) {
  auto stored = [](const Storage& s) { return parameter(s.array, s.array_type()); };
  return replace_closed(e, [&](Expr n) -> Expr {
    if (auto padded = padded_parameter(n)) {
      const Storage& s = values.at(padded->value);
      bool provided = s.border == padded->padding.byte;
      for (size_t i = 0; provided && i < s.permutation.size(); ++i) {
        auto dimension = static_cast<size_t>(s.permutation[i]);
        provided = padded->padding.before[dimension] <= s.before[i] && padded->padding.after[dimension] <= s.after[i];
      }
      if (provided) return read_with_border(s, stored(s), padded->padding);
    }
    return n->pattern == Pattern::parameter ? read_storage(values.at(n->name), stored(values.at(n->name))) : nullptr;
  });
}

}  // namespace hoist
