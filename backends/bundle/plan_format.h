// plan.bin and check.bin as bytes: little-endian, flat, one record after the other, between a header (magic, version,
// own size) and the hash of everything before it. The C runtime (backends/runtime/plan/plan_file.c) is the reader.
// Internal to backends/bundle.
//
// Records stand one after the other, without a table of offsets: a bounded cursor is the whole reader, and every field
// is checked where it is read. The hash is XXH64, which is fast and written out in the runtime, so that it depends on
// OpenCL alone; the writer uses libxxhash, so that each tests the other. One format version is read, older ones are
// refused too: a bundle carries the runtime of its version, and compiling again costs seconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/plan/plan.h"

namespace hoist {

/// A file of the bundle with what plan.bin says about it.
struct HashedFile {
  std::string path;
  uint64_t bytes = 0;
  uint64_t hash = 0;
};

/// Bytes that weights.bin has: up to the end of the last array, rounded up to 64.
int64_t weights_bytes(const Plan& plan);

/// Where a specialisation's plan is in a bundle; "" for the first, whose plan is the bundle's.
std::string specialisation_folder(size_t index);

/// What plan.bin says of the specialisations of a bundle; nothing of one that is compiled for one set of sizes, nor in
/// the plans of others than the first.
struct ListedSpecialisations {
  std::vector<std::string> names;                         ///< of the sizes
  std::vector<std::string> folders;                       ///< "" of the first
  std::vector<std::vector<int64_t>> sizes;                ///< one a name
  std::vector<std::vector<std::vector<int64_t>>> shapes;  ///< of the inputs
};

/// `weights` are the bytes of weights.bin where it has those of other plans as well, else 0.
std::string encode_plan(const Plan& plan, const std::vector<HashedFile>& files, int64_t weights = 0,
                        const ListedSpecialisations& listed = {});
std::string encode_checks(const Plan& plan);
/// preprocessing.bin, for plans that have any.
std::string encode_preprocessing(const Plan& plan);

}  // namespace hoist
