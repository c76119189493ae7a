// The derivation of a whole model: the program as it was imported, and every step from there to the terms of the
// kernels, as a bundle stores them. Its text has the values of constants that the steps need and the hashes of all
// others, so that the terms can be replayed without the model, and with it also the constants
// (lowering/pipeline/replay.h).
//
//     program version 21
//     ...
//     steps
//     batch-norm-folding at %normalize1 rounding
//       constant %"normalize1.weights" : [16][1][3][3]f32 = #58b0c92ad0f1a2b3
//     inline-definitions at %normalize1
//     merge-producers(producer = "normalize1") at %relu1
//     open-vectors(k = 16) at %relu1:1.1.0
#pragma once

#include <string>
#include <vector>

#include "ir/program/program.h"

namespace hoist {

struct ProgramDerivation {
  Program start;
  std::vector<ProgramStep> steps;
  std::string rules;  ///< the text of the user's rules that the steps use, or ""
};

/// Equal derivations have equal texts.
std::string print_derivation(const ProgramDerivation& derivation);
/// A constant of which only the hash is known is withheld in the program. Former names of passes and rules are replaced
/// by the present ones. Errors name line and column of the program, or the line of the step.
Result<ProgramDerivation> parse_derivation(const std::string& text);

/// "open-vectors(k = 16) at %relu1:1.1.0 rounding": the step without its constants.
std::string text(const ProgramStep& step);
/// "(k = 16, R = 8)"; "" without parameters.
std::string parameters_text(const ProgramStep& step);

}  // namespace hoist
