// What passes do, one definition at a time and without deciding anything: the passes call these where they have
// decided, replay calls them where a derivation says so. Each leaves a program that means the same.
//
// Steps record what was done, not why: a step names the definition and what went into it, so replay needs neither
// budgets nor estimates. Constants whose values decide a term stand in the step with their values, since unfolding with
// zeros in their place gives another term; all others are hashes, so a derivation is small whatever the weights are.
// Storage is chosen again, from the profile.
#pragma once

#include <string>

#include "ir/program/program.h"
#include "ir/rules/rewrite.h"

namespace hoist {

/// The program as it is now is where its derivation starts, unless it has started already. Steps from before are told
/// and do not replay.
void begin_derivation(Program& program);

/// A rule of lowering/rules/rules.h that was applied in the definition's term.
ProgramStep rule_step(const Definition& definition, const Application& application);

/// The call becomes several that are less work together (OperatorRow::decompose), each a definition; false where it
/// stays. Records "decompose-calls".
bool decompose_call(Program& program, const std::string& value);

/// A function of the host in the place of the call that does the same; false where there is none. Records
/// "compute-on-host".
Result<bool> compute_on_host(Program& program, Definition& definition);

/// The definition of the call in its place, and what storage wants to know of it. Records "unfold", with the constants
/// whose values decide the term.
Result<Nothing> unfold_definition(Program& program, Definition& definition);

/// A term that reads nothing but constants, with results of several parts put in the place of their components: what a
/// constant may stand for. Null where it reads anything else.
Expr constant_term(const Program& program, Expr e);
/// An array without elements is a constant whatever it is computed from.
bool has_no_elements(Type type);
/// The definition becomes a constant of that value. Records "fold-constants"; the definition itself stays for the
/// caller to remove.
void fold_definition(Program& program, const Definition& definition, Tensor value);
/// Every occurrence of the closed term at the place reads the constant of that name and value instead. Records
/// "fold-constants".
void fold_subterm(Program& program, Definition& definition, const Path& place, const std::string& name, Tensor value);

/// The producer's term in the place of every read of it, and its layers with those of the reader. Records the pass.
void merge_into(Program& program, const std::string& pass, const Definition& producer, Definition& reader);
/// The reader reads the original in the place of a copy of it; `first` defines the original, null where that is an
/// input or a constant. Records "drop-copies".
void read_instead(Program& program, const Definition& copy, const std::string& original, Definition* first,
                  Definition& reader);
/// The definition of an 8-bit value and what it is computed by become a look-up; false where it cannot.
bool use_integer_table(Program& program, const std::string& value);
/// remove_unused; records it where anything goes.
void drop_unused(Program& program);

}  // namespace hoist
