// Finds what a misspelt word was probably meant to be, for hints such as "did you mean batch?". Not for search: it
// answers with one word or none.
#pragma once

#include <string>
#include <vector>

namespace hoist {

/// The candidate closest to `word` by edit distance (insert, delete, replace, swap of neighbours; letter case counts
/// half), or "" where none is near: at most a third of the longer word's letters may differ. The earliest of equals
/// wins. Words of more than 200 bytes have no near miss.
std::string near_miss(const std::string& word, const std::vector<std::string>& candidates);

/// The hint of an error about an unknown word: "did you mean batch?", or `otherwise` where no candidate is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& otherwise = "");

}  // namespace hoist
