// The changes of passes, one definition at a time and without decisions: passes call these functions after they have
// decided, and replay calls them for the steps of a derivation. Each keeps the meaning of the program.
//
// Steps record changes, not reasons: a step names the definition and the operands of the change, so replay needs
// neither budgets nor estimates. Constants whose values decide a term are in the step with their values, because
// inlining with zeros in their place gives another term; all others are hashes, so a derivation is small whatever the
// weights are. Storage is chosen again, from the target description.
#pragma once

#include <string>

#include "ir/program/program.h"
#include "ir/rules/program_index.h"
#include "ir/rules/rewrite.h"

namespace hoist {

/// The derivation starts with the current program, unless it has started already. Steps before the start are printed
/// and do not replay.
void begin_derivation(Program& program);

/// A rule of lowering/rules/rules.h that was applied in the definition's term.
ProgramStep rule_step(const Definition& definition, const Application& application);

/// Splits the call into several with less work in all (OperatorRow::decompose), each a definition; false if it stays.
/// Records "decompose-calls".
bool decompose_call(ProgramIndex& index, const std::string& value);

/// Replaces the call by an equivalent host op; false if there is none. Records "compute-on-host".
Result<bool> compute_on_host(Program& program, Definition& definition);

/// Replaces the call by its definition, and collects the facts that storage needs. Records `inline-definitions`, with
/// the constants whose values decide the term.
Result<Nothing> inline_definition(Program& program, Definition& definition);

/// The term of the definition, or a part of it, in which tuples are replaced by their components: a candidate for a
/// constant. Null if it reads anything but constants.
Expr constant_term(const Program& program, const Definition& definition, Expr e);
/// True for an array without elements, which is a constant whatever computes it.
bool has_no_elements(Type type);
/// The definition becomes a constant of that value. Records "fold-constants"; the definition itself stays for the
/// caller to remove.
void fold_definition(Program& program, const Definition& definition, Tensor value);
/// Every occurrence of the closed term at the place becomes a read of the constant with that name and value. Records
/// "fold-constants".
void fold_subterm(Program& program, Definition& definition, const Path& place, const std::string& name, Tensor value);

/// Replaces every read of the producer by its term, and adds its layers to the layers of the consumer. Records the
/// pass.
void merge_into(Program& program, const std::string& pass, const Definition& producer, Definition& consumer);
/// The consumer reads the original instead of a copy of it; `first` defines the original, null for an input or a
/// constant. A copy of a constant gives its layers to the evaluated ones. Records "drop-copies".
void read_instead(Program& program, Definition& copy, const std::string& original, Definition* first,
                  Definition& consumer);
/// Replaces the definition of an 8-bit value and its producers by a look-up table; false if that is impossible.
bool use_integer_table(Program& program, const std::string& value);
/// Calls remove_unused; records it if a definition was removed.
void drop_unused(Program& program);

}  // namespace hoist
