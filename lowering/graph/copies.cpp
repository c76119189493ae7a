#include "lowering/graph/copies.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>

#include "ir/operators/operators.h"
#include "ir/properties/properties.h"
#include "lowering/graph/steps.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// Exported models nest few views. A longer chain is not dropped, which costs only its names.
constexpr int most_views = 8;
// Each definition that recomputes a shared one has its layers too: n consumers of n equal layers would have n^2 names.
constexpr size_t most_equal_layers = 64;

// A definition as a view of the only value that it uses.
struct View {
  std::string of;
  Expr term;
};

bool has_layers(const Definition& definition, const std::vector<std::string>& layers) {
  return std::all_of(layers.begin(), layers.end(), [&](const std::string& layer) {
    return std::find(definition.layers.begin(), definition.layers.end(), layer) != definition.layers.end();
  });
}

int64_t size_of(Type type) { return element_count(shape_of(type)); }

// The view of a definition, if it is one. No constant affects such a term, since its call has a single operand.
std::optional<View> view_of(const Definition& definition) {
  Expr e = definition.expression;
  const std::vector<Expr> reads = parameters_of(e);
  if (reads.size() != 1 || e->pattern != Pattern::operator_call || has_body(*e->operation)) return std::nullopt;
  const Type from = reads[0]->type;
  if (e->type->is_tuple() || from->is_tuple() || leaf_of(e->type) != leaf_of(from) || size_of(e->type) != size_of(from))
    return std::nullopt;
  auto term = inline_call(*e);
  // A call that cannot be inlined is reported by the pass that requires it.
  if (!term.ok() || !moves_only(*term)) return std::nullopt;
  return View{reads[0]->name, *term};
}

// The original that the view repeats element by element and that `is_wanted` accepts, found along the chain of views.
std::optional<std::string> repeated_by(View view, const std::function<std::optional<View>(const std::string&)>& behind,
                                       const std::function<bool(const std::string&)>& is_wanted) {
  for (int length = 1;; ++length) {
    if (is_wanted(view.of) && keeps_places(view.term)) return view.of;
    const auto next = length < most_views ? behind(view.of) : std::nullopt;
    if (!next) return std::nullopt;
    view = {next->of, substitute_parameters(view.term, {{view.of, next->term}})};
  }
}

}  // namespace

void drop_copies(Program& program, bool share_equal) {
  std::map<std::string, size_t> places;
  std::map<std::string, View> views;
  std::map<std::string, std::string> originals;
  std::unordered_map<Expr, std::string> known;
  const auto definition_of = [&](const std::string& value) {
    const auto found = places.find(value);
    return found == places.end() ? nullptr : &program.definitions[found->second];
  };
  const auto known_view = [&](const std::string& value) {
    const auto found = views.find(value);
    return found == views.end() ? std::nullopt : std::optional(found->second);
  };
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    Definition& definition = program.definitions[i];
    for (Expr p : parameters_of(definition.expression)) {
      if (auto found = originals.find(p->name); found != originals.end())
        read_instead(program, *definition_of(p->name), found->second, definition_of(found->second), definition);
    }
    places[definition.value] = i;
    if (auto [first, is_new] = known.emplace(definition.expression, definition.value); share_equal && !is_new) {
      const auto behind = originals.find(first->second);
      originals[definition.value] = behind == originals.end() ? first->second : behind->second;
      continue;
    }
    const auto view = view_of(definition);
    if (!view) continue;
    views[definition.value] = *view;
    const auto any = [](const std::string&) { return true; };
    if (auto original = repeated_by(*view, known_view, any)) originals[definition.value] = std::move(*original);
  }
  drop_unused(program);
}

bool repeats(const Program& program, const std::string& value, const std::string& original) {
  const Definition *repeated = find_definition(program, value), *first = find_definition(program, original);
  if (repeated == nullptr || repeated == first) return false;
  if (first != nullptr && first < repeated && first->expression == repeated->expression) return true;
  const auto defined_view = [&](const std::string& of) {
    const Definition* definition = find_definition(program, of);
    return definition == nullptr ? std::nullopt : view_of(*definition);
  };
  const auto view = view_of(*repeated);
  return view && repeated_by(*view, defined_view, [&](const std::string& of) { return of == original; });
}

void read_instead(Program& program, Definition& copy, const std::string& original, Definition* first,
                  Definition& consumer) {
  ProgramStep step = replayed_step("drop-copies", consumer);
  step.parameters["copy"] = copy.value;
  step.parameters["of"] = original;
  program.steps.push_back(std::move(step));
  // An equal layer is computed once, in the first definition. A copy is computed in its consumers, and a copy of a
  // constant at compile time.
  const bool is_equal = first != nullptr && first->expression == copy.expression;
  if (is_equal && (first->layers.size() < most_equal_layers || has_layers(*first, copy.layers))) {
    add_layers(first->layers, copy.layers);
  } else if (program.constants.count(original) != 0 && !is_output(program, copy.value)) {
    std::move(copy.layers.begin(), copy.layers.end(), std::back_inserter(program.evaluated));
    copy.layers.clear();
  } else {
    std::vector<std::string> layers = copy.layers;
    add_layers(layers, consumer.layers);
    consumer.layers = std::move(layers);
  }
  for (Weights& weights : consumer.weights) {
    if (weights.value == copy.value) weights.value = original;
  }
  std::replace(consumer.parts.begin(), consumer.parts.end(), copy.value, original);
  consumer.expression =
      substitute_parameters(consumer.expression, {{copy.value, parameter(original, copy.expression->type)}});
}

}  // namespace hoist
