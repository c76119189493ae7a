// Look-ups in a program whose definitions change one after the other, each in constant time. Passes and rules that
// search the program once per definition take quadratic time.
#pragma once

#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/program/program.h"

namespace hoist {

/// While an index exists, definitions and inputs change only through it; constants, outputs and steps may change, but
/// outputs that are added are not found.
class ProgramIndex {
 public:
  explicit ProgramIndex(Program& program);

  Program& program() const { return program_; }
  /// The definition of the value, or null. Valid until definitions are inserted or erased.
  Definition* find(const std::string& value) const;
  /// The position of the definition, which has to exist.
  size_t place_of(const std::string& value) const;
  bool is_output(const std::string& value) const { return outputs_.count(value) != 0; }
  /// The positions of the definitions that use the value, in order.
  std::vector<size_t> uses_of(const std::string& value) const;
  /// True if the value is an output, or an operand of a definition other than `by`.
  bool is_used_elsewhere(const std::string& value, const std::set<std::string>& by) const;
  /// The first definition with this term before the position; null if there is none.
  const Definition* find_equal(Expr term, size_t before) const;
  /// True if a value or a layer of the program has the name.
  bool has_name(const std::string& name) const;

  void set_term(Definition& definition, Expr term);
  void set_layers(Definition& definition, std::vector<std::string> layers);
  void insert(size_t place, std::vector<Definition> added);
  void erase(const std::string& value);
  /// Moves the definition at `from` to just before the one at `to`, which comes later.
  void move(size_t from, size_t to);
  void add_inputs(std::span<const std::pair<std::string, Type>> inputs);

 private:
  // A position when `shift_` had this value. Unless changes before and after the definition alternate, it is still
  // there, or has moved by the difference of the shifts.
  struct Place {
    size_t at = 0;
    ptrdiff_t shift = 0;
  };

  void add(const Definition& definition);
  void remove(const Definition& definition);
  void add_term(const Definition& definition);
  void remove_term(const Definition& definition);
  void release(const std::string& name);

  Program& program_;
  std::unordered_set<std::string> outputs_;
  mutable std::unordered_map<std::string, Place> places_;
  ptrdiff_t shift_ = 0;  // definitions inserted, less those erased
  std::unordered_map<std::string, std::unordered_set<std::string>> uses_;
  std::unordered_map<Expr, std::unordered_set<std::string>> by_term_;
  std::unordered_map<std::string, int> names_;  // how often definitions, inputs and layers have them
};

/// Names that the program lacks. Names are taken from here until the values that have them are in the program.
class NewNames {
 public:
  explicit NewNames(const ProgramIndex& index) : index_(&index) {}

  /// `wanted`, followed by as many "_" as it takes to be unique.
  std::string make(std::string wanted) {
    while (index_->has_name(wanted) || !made_.insert(wanted).second) wanted += "_";
    return wanted;
  }
  void take(const std::string& name) { made_.insert(name); }

 private:
  const ProgramIndex* index_;
  std::unordered_set<std::string> made_;
};

}  // namespace hoist
