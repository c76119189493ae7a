#include "lowering/copies.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "ir/operators/operators.h"
#include "ir/properties.h"
#include "lowering/arrangement.h"
#include "lowering/steps.h"
#include "lowering/terms.h"

namespace hoist {
namespace {

// Exporters nest few views; longer chains stay, which costs nothing but their names.
constexpr int most_views = 8;

// A value as a view of the one value that its definition reads.
struct View {
  std::string of;
  Expr term;
};

int64_t size_of(Type type) { return element_count(shape_of(type)); }

// No constants decide such a term, since its call reads nothing else.
std::optional<View> view_of(const Definition& definition) {
  Expr e = definition.expression;
  const std::vector<Expr> reads = parameters_of(e);
  if (reads.size() != 1 || e->pattern != Pattern::operator_call || has_body(*e->operation)) return std::nullopt;
  const Type from = reads[0]->type;
  if (e->type->is_tuple() || from->is_tuple() || leaf_of(e->type) != leaf_of(from) || size_of(e->type) != size_of(from))
    return std::nullopt;
  auto term = unfold(*e);
  // What cannot be unfolded is told by the pass that has to.
  if (!term.ok() || !moves_only(*term)) return std::nullopt;
  return View{reads[0]->name, *term};
}

}  // namespace

void drop_copies(Program& program, bool share_equal) {
  std::map<std::string, size_t> places;
  std::map<std::string, View> views;
  std::map<std::string, std::string> originals;
  std::unordered_map<Expr, std::string> known;
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    Definition& definition = program.definitions[i];
    for (Expr p : parameters_of(definition.expression)) {
      if (auto found = originals.find(p->name); found != originals.end())
        read_instead(program, program.definitions[places.at(p->name)], found->second, definition);
    }
    places[definition.value] = i;
    if (auto [first, is_new] = known.emplace(definition.expression, definition.value); share_equal && !is_new) {
      originals[definition.value] = first->second;
      continue;
    }
    const auto view = view_of(definition);
    if (!view) continue;
    views[definition.value] = *view;
    View whole = *view;
    for (int length = 1; !keeps_places(whole.term) && length < most_views; ++length) {
      const auto before = views.find(whole.of);
      if (before == views.end()) break;
      whole = {before->second.of, substitute_parameters(whole.term, {{whole.of, before->second.term}})};
    }
    if (keeps_places(whole.term)) originals[definition.value] = whole.of;
  }
  drop_unused(program);
}

bool repeats(const Program& program, const std::string& value, const std::string& original) {
  const Definition *repeated = find_definition(program, value), *first = find_definition(program, original);
  if (repeated == nullptr || repeated == first) return false;
  if (first != nullptr && first < repeated && first->expression == repeated->expression) return true;
  auto view = view_of(*repeated);
  for (int length = 1; view && view->of != original && length < most_views; ++length) {
    const Definition* before = find_definition(program, view->of);
    const auto outer = before == nullptr ? std::nullopt : view_of(*before);
    if (!outer) return false;
    view = View{outer->of, substitute_parameters(view->term, {{view->of, outer->term}})};
  }
  return view && view->of == original && keeps_places(view->term);
}

void read_instead(Program& program, const Definition& copy, const std::string& original, Definition& reader) {
  ProgramStep step = replayed_step("drop-copies", reader);
  step.parameters["copy"] = copy.value;
  step.parameters["of"] = original;
  program.steps.push_back(std::move(step));
  Definition* first = find_definition(program, original);
  // A layer that stands twice is computed where it stands first, a copy nowhere but in its readers.
  Definition& owner = first != nullptr && first->expression == copy.expression ? *first : reader;
  std::vector<std::string> layers = &owner == &reader ? copy.layers : owner.layers;
  for (const std::string& layer : &owner == &reader ? owner.layers : copy.layers) {
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  owner.layers = std::move(layers);
  reader.expression =
      substitute_parameters(reader.expression, {{copy.value, parameter(original, copy.expression->type)}});
}

}  // namespace hoist
