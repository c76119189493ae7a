// plan.bin and check.bin as bytes: little-endian, flat, one record after the other, between a header (magic, version,
// own size) and the hash of everything before it. The C runtime (backends/runtime/plan_file.c) is the reader. Internal
// to backends/bundle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace hoist {

/// A file of the bundle with what plan.bin says about it.
struct HashedFile {
  std::string path;
  uint64_t bytes = 0;
  uint64_t hash = 0;
};

/// Bytes that weights.bin has: up to the end of the last array, rounded up to 64.
int64_t weights_bytes(const Plan& plan);

std::string encode_plan(const Plan& plan, const std::vector<HashedFile>& files);
std::string encode_checks(const Plan& plan);

/// Aborts with the offender's name where the plan breaks an invariant of ir/plan.h.
void check_plan(const Plan& plan);

}  // namespace hoist
