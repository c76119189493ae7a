// A program to which parts of rewritten programs are added under new names. For programs that hold several variants of
// a layer at once (multi_variant.h). The layers of the program that it starts from stay and keep their names.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/program/program_builder.h"
#include "neural_rules/model/site.h"
#include "neural_rules/rewrite/difference.h"

namespace hoist {

struct SiteRule;

class Splice {
 public:
  /// The value to read instead of a value of the original program, for spliced layers.
  using Resolver = std::function<std::string(const std::string&)>;

  explicit Splice(const Program& program);

  Program& program() { return program_; }
  void add(NamedCall layer);
  bool has_layer(const std::string& name) const { return places_.count(name) != 0; }
  NamedCall& layer(const std::string& name);                 ///< The layer in its present form.
  const NamedCall& original(const std::string& name) const;  ///< as it was

  /// Adds a value of the rewritten program (the result of `change`) with all layers that compute it, with `prefix`
  /// before each name. Returns its name in this program; values that both programs have are shared.
  std::string value(const std::string& prefix, const ProgramDifference& change, const std::string& name,
                    const Resolver& resolve);

  /// Layers in topological order, without unused ones. Errors: errors of with_calls.
  Result<Program> finish();

 private:
  Program program_;
  std::vector<NamedCall> original_;
  std::vector<NamedCall> calls_;
  std::map<std::string, size_t> places_;
};

/// The layers that a rule replaces as a whole, by the names of their operands: contractions, functions, and layers with
/// another operator. Contractions belong to them even if only their weights change, since constants are packed for a
/// kernel and the result of a switch is not.
std::vector<NamedCall> replaced_by(const Splice& splice, const Site& site, const SiteRule& rule);

}  // namespace hoist
