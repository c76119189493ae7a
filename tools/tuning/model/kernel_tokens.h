// A kernel's term as a sequence of statements, each a few small numbers, for a model that reads it as a text
// (train_lstm.py): one statement for each loop, operation, view and array, outermost first, with what it is, the extent
// that it has, how far a view steps or where an array is kept, and how often the loops around it repeat it. Not a way
// to print terms: it leaves out who reads what.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/language/expression.h"
#include "ir/target/profile.h"
#include "tools/tuning/model/cost_model.h"

namespace hoist::tuning {

constexpr size_t tokens_a_statement = 6;
/// 0 is no token.
using Statement = std::array<int, tokens_a_statement>;

/// Larger than every token.
int token_count();
/// Of a low-level term with numbers for its sizes. The first statement is the device and what else goes on there.
std::vector<Statement> kernel_tokens(Expr term, const Profile& profile, const Circumstances& circumstances = {});

}  // namespace hoist::tuning
