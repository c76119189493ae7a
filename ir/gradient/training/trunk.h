// A model in two parts: the trunk, which computes a value of all samples once, and the head, which reads that value.
#pragma once

#include <string>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

struct TrunkAndHead {
  Program trunk;  ///< the model up to the value, which is its only output
  Program head;   ///< the rest up to the judged value, with the value in the place of the model's inputs
};

/// Errors: no such value, a value that no layer computes, a judged value that does not depend on it, or that also
/// depends on an input of the model in another way.
Result<TrunkAndHead> split_model(const Program& program, const std::string& value, const std::string& judged);

}  // namespace hoist
