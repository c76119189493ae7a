#include "lowering/layout/input_copies.h"

#include <algorithm>
#include <set>

#include "ir/properties/properties.h"
#include "ir/target/machine.h"
#include "lowering/cost/cache_sets.h"
#include "lowering/graph/program.h"
#include "lowering/graph/steps.h"
#include "lowering/layout/constant_storage.h"
#include "lowering/layout/orders.h"
#include "lowering/layout/planes.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/rereads.h"
#include "lowering/terms/statements.h"
#include "lowering/terms/terms.h"
#include "lowering/tiling/contractions.h"

namespace hoist {
namespace {

// True if the definition reduces overlapping windows, vectorised over channels as in poolings, and so reads elements of
// `value` several times.
bool pools_overlap(const Definition& d, const std::string& value, const Profile& profile) {
  const std::vector<int64_t> shape = shape_of(d.expression->type);
  return !is_product(d) && folds(d.expression) && has_windows(d.expression) && shape.size() > 2 &&
         2 * shape[1] >= profile.vector_width && rereads(d.expression, value) && !keeps_planes(d, profile);
}

// True if the definition may read a model input from an NHWC copy.
bool may_read_transposed_copy(const Definition& d, const std::string& value, const Profile& profile) {
  return !lanes_are_work_items(profile) && d.channels_first && count_statements(d.expression) == 0 &&
         (is_product(d) || pools_overlap(d, value, profile));
}

// True if an NHWC copy is worth its launch: the lines that the contractions read do not stay in the cache, and many
// columns are computed from them. `shape` includes the border.
bool is_worth_transposed_copy(const Definition& d, const std::vector<int64_t>& shape, const Profile& profile) {
  const int64_t plane = element_count(shape) / shape[0] / shape[1];
  return std::all_of(d.weights.begin(), d.weights.end(), [&](const Weights& w) {
    return w.extents[0] >= 16 * profile.vector_width && !lines_stay_in_cache(w.extents[1], plane, profile);
  });
}

// True if a bordered copy is worth its launch. A definition that reads each element once, or computes several
// statements, compares each index instead.
bool wants_border(const Definition& d) {
  return (folds(d.expression) || transforms_windows(d)) && count_statements(d.expression) == 0;
}

// Convolutions read vectors of output channels, which are far apart in filters that are a model's input. A definition
// that keeps planes has vectors along rows, and reads one element of its filter at a time.
void copy_filters(Program& program, const Profile& profile) {
  if (lanes_are_work_items(profile)) return;
  const std::map<std::string, Type> types = value_types(program);
  const std::set<std::string> on_host = values_on_host(program), defined = defined_values(program);
  std::map<std::pair<std::string, std::vector<int64_t>>, std::string> copies;
  ValueNames names(program);
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    const std::vector<Weights> all = program.definitions[i].weights;
    if (!program.definitions[i].channels_first || count_statements(program.definitions[i].expression) > 0 ||
        keeps_planes(program.definitions[i], profile))
      continue;
    for (size_t k = 0; k < all.size(); ++k) {
      const Weights& w = all[k];
      const bool is_input = types.count(w.value) != 0 && defined.count(w.value) == 0 &&
                            program.constants.count(w.value) == 0 && on_host.count(w.value) == 0;
      if (!is_input || w.extents.size() < 3 || w.extents != shape_of(types.at(w.value))) continue;
      const std::vector<int64_t> order = weights_order(w.extents.size(), w.output_dimension, w.groups == 1);
      auto [known, is_new] = copies.try_emplace({w.value, order}, "");
      if (is_new) {
        Definition copy;
        copy.value = known->second = names.make(w.value + ".filters");
        copy.layers = {copy.value};
        copy.expression = parameter(w.value, types.at(w.value));
        copy.order = order;
        program.definitions.insert(program.definitions.begin() + static_cast<ptrdiff_t>(i++), copy);
      }
      Definition& d = program.definitions[i];
      d.expression = substitute_parameters(d.expression, {{w.value, parameter(known->second, types.at(w.value))}});
      d.weights[k].value = known->second;
    }
  }
}

}  // namespace

std::string copy_name(const std::string& input) { return input + ".bordered"; }

void copy_inputs(Program& program, StoragePlan& plan, const Profile& profile) {
  std::map<std::string, Type> types = value_types(program);
  const std::set<std::string> interleaved = read_interleaved(program, types, profile);
  const std::set<std::string> on_host = values_on_host(program), defined = defined_values(program);
  std::set<std::string> wanted;
  const auto transposed = [&](const Definition& d, const std::string& value) {
    if (types.count(value) == 0) return false;
    const Type type = types.at(value);
    const bool is_input = defined.count(value) == 0 && program.constants.count(value) == 0;
    if (!is_input || !is_image_rank(type) || has_no_elements(type) || on_host.count(value) != 0) return false;
    const auto holds = [&](const Weights& w) { return w.value == value; };
    if (!may_read_transposed_copy(d, value, profile) || std::any_of(d.weights.begin(), d.weights.end(), holds))
      return false;
    std::vector<int64_t> shape = shape_of(type);
    const auto paddings = constant_paddings(d.expression);
    if (const auto padding = paddings.find(value); padding != paddings.end()) {
      for (size_t i = 0; i < shape.size(); ++i) shape[i] += padding->second.before[i] + padding->second.after[i];
    }
    return chosen_layout(d, input_layout_knob, is_worth_transposed_copy(d, shape, profile), plan);
  };
  for (const Definition& d : program.definitions) {
    for (Expr p : parameters_of(d.expression)) {
      if (transposed(d, p->name)) wanted.insert(p->name);
    }
    if (!wants_border(d)) continue;
    for (const auto& [value, padding] : constant_paddings(d.expression)) {
      if (defined.count(value) == 0 && program.constants.count(value) == 0) wanted.insert(value);
      const bool is_plain = is_output(program, value) || on_host.count(value) != 0;
      if (defined.count(value) != 0 && is_plain) wanted.insert(value);
    }
  }
  ValueNames names(program);
  for (const std::string& value : wanted) {
    Definition copy;
    copy.value = names.make(copy_name(value));
    copy.layers = {copy.value};
    copy.expression = parameter(value, types.at(value));
    copy.channels_first = sizes_of(types.at(value)).size() > 2;
    Expr renamed = parameter(copy.value, types.at(value));
    auto found = program.definitions.begin();
    bool plain = true;
    for (auto d = program.definitions.begin(); d != program.definitions.end(); ++d) {
      if (d->value == value) found = d + 1;
      const bool with_border = wants_border(*d) && constant_paddings(d->expression).count(value) != 0;
      const bool turns = mentions(d->expression, value) && transposed(*d, value);
      if (!with_border && !turns) continue;
      d->expression = substitute_parameters(d->expression, {{value, renamed}});
      plain &= (is_product(*d) && !turns) || (is_output(program, d->value) && keeps_planes(*d, profile));
    }
    // Contractions read single elements in any order, and definitions that keep planes read rows: the copy can stay in
    // NCHW.
    if (plain && interleaved.count(value) == 0)
      copy.order = plain_storage(copy.value, copy.expression->type).permutation;
    program.definitions.insert(found, copy);
  }
  copy_filters(program, profile);
}

}  // namespace hoist
