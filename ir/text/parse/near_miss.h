// Finds the probable intention of a misspelt word, for hints such as "did you mean batch?". Not for search: the result
// is one word or none.
#pragma once

#include <string>
#include <vector>

namespace hoist {

/// The candidate closest to `word` by edit distance (insertion, deletion, replacement, swap of adjacent letters; letter
/// case counts one half), or "" if none is close: at most a third of the longer word's letters may differ. The earliest
/// of equal candidates wins. Words of more than 200 bytes have no near miss.
std::string near_miss(const std::string& word, const std::vector<std::string>& candidates);

/// The hint of an error about an unknown word: "did you mean batch?", or `otherwise` if no candidate is close.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& otherwise = "");

}  // namespace hoist
