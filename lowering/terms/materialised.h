// The parts of a term that a kernel cannot compute: arrays materialised in global memory, and host functions.
#pragma once

#include <unordered_map>

#include "ir/language/expression.h"

namespace hoist {

bool is_materialised_in_global(Expr e);
/// True for a host function whose operands are stored arrays: no kernel runs it, and nothing is left to split.
bool is_host_step(Expr e);
/// True if any part of the term is a host function.
bool calls_host(Expr e);

/// True if the term materialises anything in global memory, including operands and results of host functions. Visits
/// each shared part once over all calls.
class MaterialisesAny {
 public:
  bool operator()(Expr e);

 private:
  std::unordered_map<Expr, bool> known_;
};

}  // namespace hoist
