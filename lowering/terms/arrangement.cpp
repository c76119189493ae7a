#include "lowering/terms/arrangement.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "ir/properties/properties.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// A part of a dimension of the array: `extent` elements at a distance of `stride`.
struct Run {
  size_t dimension;
  int64_t extent, stride;

  bool operator==(const Run&) const = default;
};
using Dimension = std::vector<Run>;  // the innermost run last
using Arrangement = std::vector<Dimension>;

// Splits a dimension into an outer and an inner one of `inner` elements; empty if that divides a run unevenly.
std::optional<std::pair<Dimension, Dimension>> parted(Dimension whole, int64_t inner) {
  Dimension inside;
  while (inner > 1 && !whole.empty()) {
    Run run = whole.back();
    whole.pop_back();
    const int64_t taken = std::min(inner, run.extent);
    if (taken == 0 || run.extent % taken != 0 || inner % taken != 0) return std::nullopt;
    if (run.extent != taken) whole.push_back({run.dimension, run.extent / taken, run.stride * taken});
    inside.insert(inside.begin(), {run.dimension, taken, run.stride});
    inner /= taken;
  }
  return inner == 1 ? std::optional(std::pair(whole, inside)) : std::nullopt;
}

bool is_moved_array(Expr e) {
  switch (e->pattern) {
    case Pattern::transpose:
    case Pattern::split:
    case Pattern::join:
    case Pattern::slice:
      return true;
    case Pattern::map:
      return e->mode == Mode::view && moves_only(e->children[0]);
    default:
      return false;
  }
}

// The arrangement of an array's elements in a term that only moves them and may drop elements at the ends; empty for
// any other term.
std::optional<Arrangement> arranged(Expr e, const std::function<bool(Expr)>& is_array, const Arrangement& array) {
  if (is_array(e)) return array;
  if (!is_moved_array(e)) return std::nullopt;
  auto out = arranged(e->children.back(), is_array, array);
  if (!out) return out;
  switch (e->pattern) {
    case Pattern::transpose: {
      Arrangement transposed = *out;
      for (size_t i = 0; i < e->integers.size(); ++i) transposed[i] = (*out)[static_cast<size_t>(e->integers[i])];
      return transposed;
    }
    case Pattern::split: {
      const auto parts = parted((*out)[0], e->sizes[0].value());
      if (!parts) return std::nullopt;
      (*out)[0] = parts->second;
      out->insert(out->begin(), parts->first);
      return out;
    }
    case Pattern::slice:  // the remaining elements keep their order
      return e->integers[0] == 1 ? out : std::nullopt;
    case Pattern::join: {
      Dimension joined = (*out)[0];
      joined.insert(joined.end(), (*out)[1].begin(), (*out)[1].end());
      out->erase(out->begin());
      (*out)[0] = joined;
      return out;
    }
    default: {
      const auto is_element = [](Expr n) { return n->pattern == Pattern::bound && n->integers[0] == 0; };
      auto element = arranged(e->children[0]->children[0], is_element, Arrangement(out->begin() + 1, out->end()));
      if (element) element->insert(element->begin(), (*out)[0]);
      return element;
    }
  }
}

// Merges adjacent runs that continue each other.
Dimension merged(const Dimension& runs) {
  Dimension out;
  for (const Run& run : runs) {
    if (run.extent == 1) continue;
    if (!out.empty() && out.back().dimension == run.dimension && out.back().stride == run.stride * run.extent) {
      out.back().extent *= run.extent;
      out.back().stride = run.stride;
    } else {
      out.push_back(run);
    }
  }
  return out;
}

// The arrangement of an array in its own order: one run per dimension.
Arrangement plain(const std::vector<int64_t>& shape) {
  Arrangement out;
  for (size_t i = 0; i < shape.size(); ++i) out.push_back({{i, shape[i], 1}});
  return out;
}

// The path to the largest closed term that only moves the named array.
std::optional<Path> moved_array(Expr term, const std::string& name) {
  return first_closed(term, [&](Expr e) {
    if (!e->type->is_array() || !moves_only(e)) return false;
    const std::vector<Expr> reads = parameters_of(e);
    return reads.size() == 1 && reads[0]->name == name;
  });
}

constexpr int64_t least_moved_rows = 8;
constexpr int64_t least_cut_rows = 4096;  // with fewer elements, moving the rows takes longer

Arrangement merged(Arrangement dimensions) {
  for (Dimension& runs : dimensions) runs = merged(runs);
  return dimensions;
}

// The term below the views of a whole term, its path, and the runs that the term's dimensions consist of.
struct MovedTerm {
  Expr computed;
  Path path;
  Arrangement dimensions;
};

std::optional<MovedTerm> moved_term(Expr term) {
  MovedTerm out = {term, {}, {}};
  while (is_moved_array(out.computed)) {
    out.path.push_back(static_cast<int>(out.computed->children.size()) - 1);
    out.computed = out.computed->children.back();
  }
  if (out.path.empty() || leaf_of(out.computed->type)->is_tuple()) return std::nullopt;
  const auto found = arranged(
      term, [&](Expr e) { return e == out.computed; }, plain(shape_of(out.computed->type)));
  if (!found || found->empty()) return std::nullopt;
  out.dimensions = merged(*found);
  return out;
}

}  // namespace

bool keeps_places(Expr term) {
  const std::vector<Expr> reads = parameters_of(term);
  if (reads.size() != 1 || reads[0]->type != term->type) return false;
  const Expr array = reads[0];
  if (term == array) return true;
  if (!array->type->is_array() || !leaf_of(array->type)->is_scalar()) return false;
  const Arrangement places = plain(shape_of(array->type));
  const auto found = arranged(
      term, [&](Expr e) { return e == array; }, places);
  return found && merged(*found) == merged(places);
}

std::optional<TransposedOperand> transposed_operand(Expr term,
                                                    const std::function<bool(const std::string&)>& is_constant) {
  const auto product = product_form(term);
  if (!product || product->left == product->right || is_constant(product->right)) return std::nullopt;
  const std::vector<int64_t> shape = shape_of(term->type);
  if (shape.size() < 2 || product->output_dimension + 1 != shape.size() || shape[shape.size() - 2] < least_moved_rows)
    return std::nullopt;
  const auto path = moved_array(term, product->right);
  if (!path) return std::nullopt;
  const Expr moved = at(term, *path), array = parameters_of(moved)[0];
  const std::vector<int64_t> read = shape_of(array->type);
  const auto found = arranged(
      moved, [&](Expr e) { return e == array; }, plain(read));
  if (!found || found->size() < 2) return std::nullopt;
  const auto is_columns = [&](const Dimension& runs) {
    return runs.size() == 1 && runs[0].dimension == product->channel_dimension && runs[0].dimension + 1 != read.size();
  };
  const auto is_rows = [&](const Dimension& runs) {
    return runs.size() == 1 && runs[0].dimension + 1 == read.size() && runs[0].stride == 1;
  };
  const Dimension last = merged(found->back()), before = merged((*found)[found->size() - 2]);
  if (is_columns(last) && is_rows(before)) return TransposedOperand{*path, "to-global"};
  static const char* const in_columns[] = {"to-global-transposed-2d", "to-global-transposed-3d",
                                           "to-global-transposed-4d"};
  if (is_columns(before) && is_rows(last) && found->size() <= 1 + std::size(in_columns))
    return TransposedOperand{*path, in_columns[found->size() - 2]};
  return std::nullopt;
}

namespace {

// The array under nested maps of scalars: each element of the map is computed from the array's element at the same
// position. Null if the term is no such map.
Expr mapped_elements(Expr e) {
  if (e->pattern != Pattern::map || e->mode != Mode::view || e->children.size() != 2) return nullptr;
  const Expr body = e->children[0]->children[0], array = e->children[1];
  if (body->type->is_scalar()) return array;
  const Expr row = mapped_elements(body);
  return row != nullptr && row->pattern == Pattern::bound && row->integers[0] == 0 ? array : nullptr;
}

// The array that a term pads along some dimension; null for another term.
Expr padded_array(Expr e) {
  if (e->pattern == Pattern::pad) return e->children[0];
  if (e->pattern != Pattern::map || e->mode != Mode::view || e->children.size() != 2) return nullptr;
  const Expr row = padded_array(e->children[0]->children[0]);
  return row != nullptr && row->pattern == Pattern::bound && row->integers[0] == 0 ? e->children[1] : nullptr;
}

}  // namespace

bool keeps_dimension(Expr term, const std::string& name, size_t dimension) {
  const auto path = moved_array(term, name);
  if (!path) return true;
  Expr moved = at(term, *path);
  while (const Expr array = padded_array(moved)) moved = array;
  const Expr array = parameters_of(moved)[0];
  const auto found = arranged(
      moved, [&](Expr e) { return e == array; }, plain(shape_of(array->type)));
  const auto is_whole = [&](const Dimension& runs) {
    const Dimension own = merged(runs);
    return own.size() == 1 && own[0].dimension == dimension && own[0].extent == shape_of(array->type)[dimension];
  };
  return !found || std::any_of(found->begin(), found->end(), is_whole);
}

bool rows_are_strided(Expr term) {
  while (const Expr array = padded_array(term)) term = array;
  while (const Expr array = mapped_elements(term)) term = array;
  const auto moved = moved_term(term);
  return moved && !moved->dimensions.back().empty() &&
         moved->dimensions.back().back().dimension + 1 != shape_of(moved->computed->type).size();
}

std::optional<size_t> dimension_in_lines(Expr term) {
  while (const Expr array = mapped_elements(term)) term = array;
  const auto moved = moved_term(term);
  if (!moved) return std::nullopt;
  const size_t innermost = shape_of(moved->computed->type).size() - 1;
  for (size_t i = 0; i < moved->dimensions.size(); ++i) {
    const Dimension& runs = moved->dimensions[i];
    if (!runs.empty() && runs.back().dimension == innermost && runs.back().stride == 1) return i;
  }
  return std::nullopt;
}

bool moves_in_steps(Expr term) {
  const auto moved = moved_term(term);
  return moved && !moved->dimensions.back().empty() && moved->dimensions.back().back().stride > 1;
}

namespace {

// The number of terms of each sum if the elements of a map are sums that gather at computed positions; otherwise 0.
int64_t resampling_terms(Expr e) {
  if (e->pattern != Pattern::map || e->mode != Mode::view) return 0;
  const bool at_positions = any_node(e->children[0], [](Expr part) {
    return part->pattern == Pattern::index && part->children[0]->pattern != Pattern::literal;
  });
  int64_t terms = 0;
  any_node(e->children[0], [&](Expr part) {
    const bool sums = part->pattern == Pattern::fold || part->pattern == Pattern::reduce;
    if (sums) terms = std::max(terms, part->children[2]->type->size.value());
    return false;
  });
  return at_positions ? terms : 0;
}

}  // namespace

std::optional<Path> resampled_sums(Expr term) {
  const auto resamples = [](Expr e) { return resampling_terms(e) > 0; };
  auto place = first_closed(term, resamples);
  if (!place) return std::nullopt;
  const Expr outer = at(term, *place);
  const auto below = first_closed(outer->children[1], resamples);
  if (!below) return std::nullopt;
  const auto elements = [](Expr e) { return element_count(shape_of(e->type)); };
  const Expr inner = at(outer->children[1], *below);
  if (elements(outer) * resampling_terms(outer) < 2 * elements(inner)) return std::nullopt;
  place->push_back(1);
  place->insert(place->end(), below->begin(), below->end());
  return place;
}

std::optional<Path> shuffled_fold(Expr term, int64_t vector_width) {
  const auto moved = moved_term(term);
  if (!moved || moved->dimensions.back().empty()) return std::nullopt;
  const Dimension& innermost = moved->dimensions.back();
  // A few rows that consist of short runs stay in place, because a copy costs as much as it saves.
  if (innermost.size() == 1 && element_count(shape_of(term->type)) < least_cut_rows) return std::nullopt;
  if (moved->computed->pattern == Pattern::constant || !folds(moved->computed)) return std::nullopt;
  const Run& run = innermost.back();
  const bool is_part = run.extent < shape_of(moved->computed->type)[run.dimension];
  return is_part && run.extent < vector_width ? std::optional(moved->path) : std::nullopt;
}

}  // namespace hoist
