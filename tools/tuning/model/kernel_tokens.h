// Encodes a kernel's term as a sequence of statements of a few small integers, for a sequence model (train_lstm.py):
// one statement per loop, operation, view and array, outermost first, with its kind, its extent, the stride of a view
// or the memory of an array, and the trip count of the surrounding loops. The encoding drops the data flow, so it
// cannot print terms.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/language/expression.h"
#include "ir/target/profile.h"
#include "tools/tuning/model/cost_model.h"

namespace hoist::tuning {

constexpr size_t tokens_a_statement = 6;
/// 0 is padding.
using Statement = std::array<int, tokens_a_statement>;

/// The number of tokens; every token is smaller.
int token_count();
/// The statements of a low-level term whose sizes are constants. The first statement describes the device and the
/// circumstances.
std::vector<Statement> kernel_tokens(Expr term, const Profile& profile, const Circumstances& circumstances = {});

}  // namespace hoist::tuning
