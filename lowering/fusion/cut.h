// Kernels as a decision inside a term: what a definition keeps in global memory becomes a definition of its own before
// it, so one definition becomes as many kernels as its term says. Rules and people write `materialise global`; the cut
// only names what they wrote, so its value is the same bit for bit. What is kept inside a map and depends on its
// variable is computed for all elements at once, by a map of its own over the same array. That array, and what a let
// binds, is computed by both: a rule that minds keeps it as well.
//
// What is kept is stored in the order of dimensions that the term gives it, since the rule that wrote it knows how it
// is read. Arrays that read constants alone, transformed filters say, become constants.
#pragma once

#include <string>
#include <unordered_map>

#include "ir/program/program.h"

namespace hoist {

bool is_kept_in_global(Expr e);
/// A function on the host of arrays that are there: no kernel runs it, and nothing is left to cut.
bool is_host_step(Expr e);
/// Whether any part of a term is a function on the host.
bool calls_host(Expr e);

/// Whether a term keeps anything in global memory, what functions on the host read and give included. Looks at each
/// part of the terms that it is asked for once, however often it occurs.
class KeepsAny {
 public:
  bool operator()(Expr e);

 private:
  std::unordered_map<Expr, bool> known_;
};

/// Cuts the definition of that value at every `materialise global` in its term, and at every function on the host;
/// false where there is none. The arrays are named after the value (conv1.stage1, ...). A whole convolution is stored
/// like any other one, every other array in the order of dimensions that the term gives. Records "cut-kernels". Errors:
/// an array that depends on the variables of a fold or another loop, or that does not hold numbers. The program stays
/// as it is then.
Result<bool> cut_definition(Program& program, const std::string& value);

}  // namespace hoist
