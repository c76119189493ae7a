#include "ir/rules/program_index.h"

#include <algorithm>
#include <iterator>

#include "ir/base/result.h"

namespace hoist {

ProgramIndex::ProgramIndex(Program& program)
    : program_(program), outputs_(program.outputs.begin(), program.outputs.end()) {
  for (const auto& [name, type] : program.inputs) ++names_[name];
  for (const ModelLayer& layer : program.layers) ++names_[layer.name];
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    add(program.definitions[i]);
    places_[program.definitions[i].value] = {i, 0};
  }
}

Definition* ProgramIndex::find(const std::string& value) const {
  const auto found = places_.find(value);
  if (found == places_.end()) return nullptr;
  std::vector<Definition>& all = program_.definitions;
  const auto size = static_cast<ptrdiff_t>(all.size());
  const auto before = static_cast<ptrdiff_t>(found->second.at), after = before + shift_ - found->second.shift;
  // Changes after the definition left it in place; changes before it moved it by the whole shift.
  for (ptrdiff_t distance = 0;; ++distance) {
    HOIST_CHECK(distance <= 2 * size, value + " is not where the index says");
    for (const ptrdiff_t place : {before - distance, before + distance, after - distance, after + distance}) {
      if (place < 0 || place >= size || all[static_cast<size_t>(place)].value != value) continue;
      found->second = {static_cast<size_t>(place), shift_};
      return &all[static_cast<size_t>(place)];
    }
  }
}

size_t ProgramIndex::place_of(const std::string& value) const {
  const Definition* definition = find(value);
  HOIST_CHECK(definition != nullptr, "no definition of " + value);
  return static_cast<size_t>(definition - program_.definitions.data());
}

std::vector<size_t> ProgramIndex::uses_of(const std::string& value) const {
  std::vector<size_t> out;
  const auto found = uses_.find(value);
  if (found == uses_.end()) return out;
  for (const std::string& user : found->second) out.push_back(place_of(user));
  std::sort(out.begin(), out.end());
  return out;
}

bool ProgramIndex::is_used_elsewhere(const std::string& value, const std::set<std::string>& by) const {
  if (is_output(value)) return true;
  const auto found = uses_.find(value);
  return found != uses_.end() && std::any_of(found->second.begin(), found->second.end(),
                                             [&](const std::string& user) { return by.count(user) == 0; });
}

const Definition* ProgramIndex::find_equal(Expr term, size_t before) const {
  const auto found = by_term_.find(term);
  if (found == by_term_.end()) return nullptr;
  size_t first = before;
  for (const std::string& value : found->second) first = std::min(first, place_of(value));
  return first == before ? nullptr : &program_.definitions[first];
}

bool ProgramIndex::has_name(const std::string& name) const {
  return names_.count(name) != 0 || program_.constants.count(name) != 0;
}

void ProgramIndex::set_term(Definition& definition, Expr term) {
  remove_term(definition);
  definition.expression = term;
  add_term(definition);
}

void ProgramIndex::set_layers(Definition& definition, std::vector<std::string> layers) {
  for (const std::string& layer : definition.layers) release(layer);
  definition.layers = std::move(layers);
  for (const std::string& layer : definition.layers) ++names_[layer];
}

void ProgramIndex::insert(size_t place, std::vector<Definition> added) {
  if (added.empty()) return;
  shift_ += std::ssize(added);
  for (size_t i = 0; i < added.size(); ++i) {
    add(added[i]);
    places_[added[i].value] = {place + i, shift_};
  }
  program_.definitions.insert(program_.definitions.begin() + static_cast<ptrdiff_t>(place),
                              std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
}

void ProgramIndex::erase(const std::string& value) {
  const size_t place = place_of(value);
  remove(program_.definitions[place]);
  places_.erase(value);
  --shift_;
  program_.definitions.erase(program_.definitions.begin() + static_cast<ptrdiff_t>(place));
}

void ProgramIndex::move(size_t from, size_t to) {
  const auto begin = program_.definitions.begin() + static_cast<ptrdiff_t>(from);
  std::rotate(begin, begin + 1, program_.definitions.begin() + static_cast<ptrdiff_t>(to));
  places_[program_.definitions[to - 1].value] = {to - 1, shift_};
}

void ProgramIndex::add_inputs(std::span<const std::pair<std::string, Type>> inputs) {
  for (const auto& [name, type] : inputs) ++names_[name];
  program_.inputs.insert(program_.inputs.end(), inputs.begin(), inputs.end());
}

void ProgramIndex::add(const Definition& definition) {
  ++names_[definition.value];
  for (const std::string& layer : definition.layers) ++names_[layer];
  add_term(definition);
}

void ProgramIndex::remove(const Definition& definition) {
  release(definition.value);
  for (const std::string& layer : definition.layers) release(layer);
  remove_term(definition);
}

void ProgramIndex::add_term(const Definition& definition) {
  by_term_[definition.expression].insert(definition.value);
  for (Expr p : parameters_of(definition.expression)) uses_[p->name].insert(definition.value);
}

void ProgramIndex::remove_term(const Definition& definition) {
  if (const auto found = by_term_.find(definition.expression); found != by_term_.end()) {
    found->second.erase(definition.value);
    if (found->second.empty()) by_term_.erase(found);
  }
  for (Expr p : parameters_of(definition.expression)) {
    if (const auto found = uses_.find(p->name); found != uses_.end()) found->second.erase(definition.value);
  }
}

void ProgramIndex::release(const std::string& name) {
  const auto found = names_.find(name);
  if (found != names_.end() && --found->second == 0) names_.erase(found);
}

}  // namespace hoist
