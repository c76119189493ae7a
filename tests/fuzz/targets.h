// The readers of hoist for untrusted files, one row each, called by a fuzzer with bytes. A target passes if it returns
// within the reader's limits. The same rows run under libFuzzer (main.cpp, preset fuzz) and, with a plain random
// mutator, in every test run (fuzz_test.cpp).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hoist {

struct FuzzTarget {
  std::string_view name;  ///< also the name of its corpus folder
  std::string_view reads;
  bool (*run)(std::string_view bytes);  ///< returns true if the input was accepted
  bool is_text;                         ///< mutations insert words of the corpus in place of numbers
};

std::span<const FuzzTarget> fuzz_targets();
const FuzzTarget* find_fuzz_target(std::string_view name);

struct CorpusFile {
  std::string name, bytes;
  bool is_sound() const { return name.rfind("bad_", 0) != 0; }  ///< the target accepts the unchanged file
};
/// The target's corpus, tests/fuzz/corpus/NAME, in the order of names.
std::vector<CorpusFile> corpus_of(const FuzzTarget& target);

}  // namespace hoist
