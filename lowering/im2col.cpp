#include "lowering/im2col.h"

#include <algorithm>

#include "ir/properties.h"
#include "lowering/grouping.h"
#include "lowering/steps.h"
#include "lowering/terms.h"

namespace hoist {
namespace {

const char* const image_name = "\2image";  // no value of a model is named so

// The largest view of the image that holds windows, in a body whose image is a parameter; null when there is none, or
// when the image is read in another way as well.
Expr windows_in(Expr body) {
  Expr found = nullptr;
  Expr rest = replace_closed(body, [&](Expr n) -> Expr {
    bool view = n->type->is_array() && moves_only(n) && has_windows(n);
    std::vector<Expr> reads = parameters_of(n);
    if (!view || reads.size() != 1 || reads[0]->name != image_name) return nullptr;
    if (found == nullptr) found = n;
    return n == found ? parameter("\2windows", n->type) : nullptr;
  });
  return found != nullptr && !mentions(rest, image_name) ? found : nullptr;
}

// [N][out...][C][k...] as rows [N][out...] of columns [k...][C]; with groups [N][G][out...][C][k...] as rows
// [N][out...] of columns [G][k...][C].
std::vector<int64_t> rows_of_windows(size_t rank) {
  const size_t groups = rank % 2, spatial = (rank - 2 - groups) / 2, channels = 1 + groups + spatial;
  std::vector<int64_t> order = {0};
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(1 + groups + i));
  if (groups != 0) order.push_back(1);
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(channels + 1 + i));
  order.push_back(static_cast<int64_t>(channels));
  return order;
}

}  // namespace

void materialise_windows(Program& program, const std::string& value) {
  Definition* definition = find_definition(program, value);
  if (definition == nullptr || definition->weights.empty()) return;
  std::vector<Definition> before;
  ValueNames names(program);
  Expr cut = replace_closed(definition->expression, [&](Expr n) -> Expr {
    if (n->pattern != Pattern::map || n->mode != Mode::view) return nullptr;
    Expr image = parameter(image_name, n->children[0]->parameters[0]);
    Expr body = apply(n->children[0], {image});
    Expr view = windows_in(body);
    if (view == nullptr) return nullptr;
    Definition windows;
    windows.value = names.make(value + ".windows" + (before.empty() ? "" : std::to_string(before.size())));
    windows.layers = {definition->layers.front()};
    windows.expression = map([&](Expr x) { return substitute_parameters(view, {{image_name, x}}); }, n->children[1]);
    windows.order = rows_of_windows(sizes_of(windows.expression->type).size());
    Expr matrix = parameter(windows.value, windows.expression->type);
    before.push_back(windows);
    return map([&](Expr row) { return replace_closed(body, [&](Expr m) { return m == view ? row : nullptr; }); },
               matrix);
  });
  if (before.empty()) return;
  ProgramStep step = replayed_step("materialise-windows", *definition);
  step.note = "the windows of " + step.layer + " are an array of their own";
  program.steps.push_back(std::move(step));
  definition->expression = cut;
  program.definitions.insert(program.definitions.begin() + (definition - program.definitions.data()), before.begin(),
                             before.end());
}

void materialise_windows(Program& program) {
  std::vector<std::string> values;
  for (const Definition& definition : program.definitions) {
    if (!definition.weights.empty()) values.push_back(definition.value);
  }
  for (const std::string& value : values) materialise_windows(program, value);
}

}  // namespace hoist
