// The readers of hoist that take files of strangers, one row each: what a fuzzer calls with bytes. What counts is that
// an answer comes back at all, within the reader's limits. The same rows run under libFuzzer (main.cpp, preset fuzz)
// and, with a plain random mutator, in every test run (fuzz_test.cpp).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hoist {

struct FuzzTarget {
  std::string_view name;  ///< and of the folder of its corpus
  std::string_view reads;
  bool (*run)(std::string_view bytes);  ///< whether it was taken
  bool is_text;                         ///< mutations insert words of the corpus rather than numbers
};

std::span<const FuzzTarget> fuzz_targets();
const FuzzTarget* find_fuzz_target(std::string_view name);

struct CorpusFile {
  std::string name, bytes;
  bool is_sound() const { return name.rfind("bad_", 0) != 0; }  ///< the target takes it as it is
};
/// The target's corpus, tests/fuzz/corpus/NAME, in the order of names.
std::vector<CorpusFile> corpus_of(const FuzzTarget& target);

}  // namespace hoist
