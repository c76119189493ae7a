// Runs libFuzzer on one of the targets, which is named by the first argument.
//
//   cmake --preset fuzz && ninja -C build/fuzz hoist_fuzz
//   build/fuzz/tests/hoist_fuzz onnx_model -max_total_time=60 -rss_limit_mb=2048 NEW_INPUTS
//   tests/fuzz/corpus/onnx_model
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace {
const hoist::FuzzTarget* target = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argument_count, char*** arguments) {
  if (*argument_count > 1) target = hoist::find_fuzz_target((*arguments)[1]);
  if (target == nullptr) {
    std::fprintf(stderr, "usage: hoist_fuzz TARGET [options of libFuzzer] [folders]\n");
    for (const hoist::FuzzTarget& t : hoist::fuzz_targets())
      std::fprintf(stderr, "  %-12s %s\n", t.name.data(), t.reads.data());
    std::exit(2);
  }
  for (int i = 1; i + 1 < *argument_count; ++i) (*arguments)[i] = (*arguments)[i + 1];
  --*argument_count;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
