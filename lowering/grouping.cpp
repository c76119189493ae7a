#include "lowering/grouping.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "lowering/terms.h"

namespace hoist {
namespace {

// A concatenation read in an inner loop is a chain of selections; it is better written part by part.
bool has_concat(Expr e) {
  return any_node(e, [](Expr n) { return n->pattern == Pattern::concat; });
}

Definition* find(Program& program, const std::string& value) {
  for (Definition& d : program.definitions) {
    if (d.value == value) return &d;
  }
  return nullptr;
}

void merge_into(Program& program, const std::string& producer_value, Definition& reader) {
  Definition* producer = find(program, producer_value);
  reader.expression = substitute_parameters(reader.expression, {{producer_value, producer->expression}});
  std::vector<std::string> layers = producer->layers;
  for (const std::string& layer : reader.layers) {
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  reader.layers = layers;
  // A reshape after a convolution no longer has channels where the convolution had them.
  const bool same_dimensions = sizes_of(producer->expression->type) == sizes_of(reader.expression->type);
  for (Weights weights : producer->weights) {
    weights.in_place &= same_dimensions;
    reader.weights.push_back(weights);
  }
  reader.channels_first |= producer->channels_first && same_dimensions;
}

// A dequantised array is computed again from fewer bytes, in place of being read, by every reader that reads each
// element once.
bool widens(Expr e) {
  if (folds(e) || has_concat(e) || !leaf_of(e->type)->is_scalar()) return false;
  const auto bits_of = [](Type type) { return element_count(shape_of(type)) * row(leaf_of(type)->scalar).bits; };
  int64_t read = 0;
  for (Expr p : parameters_of(e)) {
    if (p->type->is_array() && leaf_of(p->type)->is_scalar()) read += bits_of(p->type);
  }
  return read > 0 && 2 * read <= bits_of(e->type);
}

bool may_merge(const Program& program, const std::map<std::string, int>& uses, const Definition& producer,
               const Definition& reader) {
  if (uses.at(producer.value) != 1) return false;
  if (std::find(program.outputs.begin(), program.outputs.end(), producer.value) != program.outputs.end()) return false;
  if (rereads(reader.expression, producer.value)) return false;
  if (has_concat(reader.expression) || has_concat(producer.expression)) return false;
  if (folds(producer.expression) && folds(reader.expression)) return false;
  // Rows that share a fold stay rows: a reshape in the same kernel would compute it for every element again.
  if (shares_folds(producer.expression) && sizes_of(producer.expression->type) != sizes_of(reader.expression->type))
    return false;
  return true;
}

}  // namespace

bool folds(Expr e) {
  return any_node(e, [](Expr n) {
    switch (n->pattern) {
      case Pattern::reduce:
      case Pattern::fold:
      case Pattern::scan:
      case Pattern::iterate:
      case Pattern::scatter:
        return true;
      default:
        return false;
    }
  });
}

bool shares_folds(Expr e) {
  return any_node(e, [](Expr n) { return n->pattern == Pattern::let && folds(n->children[0]); });
}

bool moves_only(Expr e) {
  return !any_node(e, [](Expr n) {
    switch (n->pattern) {
      case Pattern::parameter:
      case Pattern::bound:
      case Pattern::function:
      case Pattern::literal:
      case Pattern::let:
        return false;
      case Pattern::map:
        return n->mode != Mode::view;
      case Pattern::constant:
      case Pattern::iota:
      case Pattern::index:
        return true;
      default:
        return !row(n->pattern).is_view;
    }
  });
}

bool rereads(Expr e, const std::string& name) {
  // Once inside a function body that does not get it through its parameter, an array is read again for every element.
  std::function<bool(Expr, bool)> walk = [&](Expr n, bool repeated) -> bool {
    if (n->pattern == Pattern::parameter) return n->name == name && repeated;
    bool again = repeated;
    switch (n->pattern) {
      case Pattern::slide:
      case Pattern::repeat:
      case Pattern::index:
      case Pattern::iterate:
      case Pattern::scatter:
      case Pattern::tile:
        again = true;
        break;
      case Pattern::pad:
        again = again || n->border == Border::clamp || n->border == Border::mirror || n->border == Border::wrap;
        break;
      default:
        break;
    }
    for (size_t i = 0; i < n->children.size(); ++i) {
      Expr c = n->children[i];
      bool inside = c->pattern == Pattern::function && n->pattern != Pattern::let;
      // The bound array of a let is as good as its uses; a function body that mentions the parameter rereads it.
      if (walk(c, again || inside || (n->pattern == Pattern::let && i == 0))) return true;
    }
    return false;
  };
  // A bound element that is used as a whole array under another loop is reread as well: x |> map (\row. B |> map (\c.
  // row...)).
  std::function<bool(Expr, int64_t, bool)> escapes = [&](Expr n, int64_t position, bool repeated) -> bool {
    if (n->open <= position) return false;
    if (n->pattern == Pattern::bound) return n->integers[0] == position && repeated;
    const bool again = repeated || n->pattern == Pattern::slide || n->pattern == Pattern::repeat;
    for (Expr c : n->children) {
      // A position is read once, the array that it looks into for every position.
      const bool looked_into = n->pattern == Pattern::index && c == n->children.back();
      int64_t inner = c->pattern == Pattern::function ? static_cast<int64_t>(c->parameters.size()) : 0;
      const bool loop = c->pattern == Pattern::function && n->pattern != Pattern::let;
      Expr body = c->pattern == Pattern::function ? c->children[0] : c;
      if (escapes(body, position + inner, again || looked_into || loop)) return true;
    }
    return false;
  };
  std::function<bool(Expr)> functions = [&](Expr n) -> bool {
    if (!mentions(n, name)) return false;
    if ((n->pattern == Pattern::map || n->pattern == Pattern::fold || n->pattern == Pattern::reduce) &&
        mentions(n->children.back(), name) && escapes(n->children[0]->children[0], 0, false)) {
      return true;
    }
    return std::any_of(n->children.begin(), n->children.end(), functions);
  };
  return walk(e, false) || functions(e);
}

void inline_views(Program& program) {
  std::set<std::string> outputs(program.outputs.begin(), program.outputs.end());
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    const Definition view = program.definitions[i];
    if (outputs.count(view.value) != 0 || !moves_only(view.expression) || has_concat(view.expression)) continue;
    for (Definition& reader : program.definitions) {
      // A concatenation keeps its parts by name: each is computed in its place.
      if (reader.parts.empty() && mentions(reader.expression, view.value)) merge_into(program, view.value, reader);
    }
  }
  remove_unused(program);
}

void inline_widening(Program& program) {
  std::set<std::string> outputs(program.outputs.begin(), program.outputs.end());
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    const Definition wide = program.definitions[i];
    if (outputs.count(wide.value) != 0 || !widens(wide.expression)) continue;
    for (Definition& reader : program.definitions) {
      if (!reader.parts.empty() || !mentions(reader.expression, wide.value)) continue;
      if (!rereads(reader.expression, wide.value)) merge_into(program, wide.value, reader);
    }
  }
  remove_unused(program);
}

void merge_producers(Program& program) {
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    for (bool changed = true; changed;) {
      changed = false;
      std::map<std::string, int> uses = use_counts(program);
      // Later producers first: the deepest branch carries the most work to hide the others' reads behind.
      for (size_t j = i; j-- > 0;) {
        if (!mentions(program.definitions[i].expression, program.definitions[j].value)) continue;
        if (!may_merge(program, uses, program.definitions[j], program.definitions[i])) continue;
        merge_into(program, program.definitions[j].value, program.definitions[i]);
        program.definitions.erase(program.definitions.begin() + static_cast<std::ptrdiff_t>(j));
        --i;
        changed = true;
        break;
      }
    }
  }
}

}  // namespace hoist
