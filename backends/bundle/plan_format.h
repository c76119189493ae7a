// plan.bin, check.bin and preprocessing.bin as bytes: little-endian, flat, one record after the other, between a header
// (magic, version, own size) and the hash of everything before it. backends/runtime/plan/plan_fields.h lists the
// fields, and the C runtime (backends/runtime/plan/plan_file.c) reads them. Internal to backends/bundle.
//
// There is no table of offsets: a bounded cursor is the whole reader, and every field is checked where it is read. The
// hash is XXH64, which is fast and implemented in the runtime, so that the runtime depends on OpenCL alone; the writer
// uses libxxhash, so that each tests the other. The reader accepts one format version and refuses older ones too: a
// bundle contains the runtime of its version, and compiling again takes seconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/plan/plan.h"

namespace hoist {

/// A file of the bundle as listed in plan.bin.
struct HashedFile {
  std::string path;
  uint64_t bytes = 0;
  uint64_t hash = 0;
};

/// The bytes of weights.bin: up to the end of the last array, rounded up to 64.
int64_t weights_bytes(const Plan& plan);

/// The folder of a specialisation's plan in the bundle; "" for the first, whose plan is the bundle's.
std::string specialisation_folder(size_t index);

/// One set of sizes that the model is compiled for.
struct ListedSpecialisation {
  std::string folder;                        ///< "" for the first
  std::vector<int64_t> sizes;                ///< one per name
  std::vector<std::vector<int64_t>> shapes;  ///< of the inputs
};

/// The specialisations listed in plan.bin; empty for a bundle with one set of sizes, and in all plans but the first.
struct ListedSpecialisations {
  std::vector<std::string> names;  ///< of the sizes
  std::vector<ListedSpecialisation> specialisations;
};

/// `weights` is the size of weights.bin if it is shared with other plans, else 0.
std::string encode_plan(const Plan& plan, const std::vector<HashedFile>& files, int64_t weights = 0,
                        const ListedSpecialisations& listed = {});
std::string encode_checks(const Plan& plan);
/// preprocessing.bin, for plans with preprocessing.
std::string encode_preprocessing(const Plan& plan);

}  // namespace hoist
