#include "ir/text/parse/near_miss.h"

#include <algorithm>
#include <cctype>

namespace hoist {
namespace {

constexpr size_t longest = 200;

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Twice the edit distance, so that a change of case can count as one half.
int distance(const std::string& a, const std::string& b) {
  const size_t rows = a.size() + 1, columns = b.size() + 1;
  std::vector<std::vector<int>> cost(rows, std::vector<int>(columns));
  for (size_t i = 0; i < rows; ++i) cost[i][0] = 2 * static_cast<int>(i);
  for (size_t j = 0; j < columns; ++j) cost[0][j] = 2 * static_cast<int>(j);
  for (size_t i = 1; i < rows; ++i) {
    for (size_t j = 1; j < columns; ++j) {
      const int replace = a[i - 1] == b[j - 1] ? 0 : same_letter(a[i - 1], b[j - 1]) ? 1 : 2;
      cost[i][j] = std::min({cost[i - 1][j] + 2, cost[i][j - 1] + 2, cost[i - 1][j - 1] + replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 2);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string near_miss(const std::string& word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > longest) return "";
  std::string best;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || candidate.size() > longest) continue;
    const int found = distance(word, candidate);
    const int allowed = 2 * static_cast<int>(std::max(word.size(), candidate.size())) / 3;
    if (found <= allowed && (best.empty() || found < best_distance)) {
      best = candidate;
      best_distance = found;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& otherwise) {
  const std::string near = near_miss(word, candidates);
  return near.empty() ? otherwise : "did you mean " + near + "?";
}

}  // namespace hoist
