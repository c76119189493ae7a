// Runs every reader of untrusted files on mutations of its corpus, for a moment each: flipped bytes, unusual numbers,
// and pieces dropped, doubled or inserted from other files. HOIST_FUZZ_ROUNDS sets the number of rounds instead.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/fuzz/targets.h"

namespace hoist {
namespace {

class Mutator {
 public:
  Mutator(const FuzzTarget& target, uint64_t seed) : target_(target), corpus_(corpus_of(target)), random_(seed) {}

  const std::vector<CorpusFile>& corpus() const { return corpus_; }

  std::string next() {
    std::string out = any();
    for (size_t changes = 1 + below(4); changes > 0; --changes) change(out);
    return out;
  }

 private:
  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }
  const std::string& any() { return corpus_[below(corpus_.size())].bytes; }

  // A piece of a file; for text, a line or a word.
  std::string piece() {
    const std::string& from = any();
    size_t start = below(from.size()), size = 1 + below(target_.is_text ? 40 : 24);
    if (target_.is_text && below(2) == 0) {
      start = from.rfind('\n', start);
      start = start == std::string::npos ? 0 : start + 1;
      size = std::min(from.find('\n', start), from.size()) - start + 1;
    }
    return from.substr(start, size);
  }

  std::string number() {
    static const std::vector<int64_t> odd = {0,
                                             1,
                                             -1,
                                             2,
                                             127,
                                             128,
                                             255,
                                             256,
                                             32767,
                                             65535,
                                             INT32_MAX,
                                             INT32_MIN,
                                             int64_t{1} << 32,
                                             int64_t{1} << 58,
                                             INT64_MAX,
                                             INT64_MIN};
    const int64_t value = odd[below(odd.size())];
    if (target_.is_text) return std::to_string(value);
    return {reinterpret_cast<const char*>(&value), size_t{1} << below(4)};
  }

  void change(std::string& bytes) {
    const size_t at = below(bytes.size() + 1), left = bytes.size() - at;
    switch (below(7)) {
      case 0:
        if (left > 0) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (left > 0) bytes[at] = static_cast<char>(random_());
        break;
      case 2:
        bytes.erase(at, below(std::min<size_t>(left, 32) + 1));
        break;
      case 3:
        bytes.insert(at, piece());
        break;
      case 4:
        bytes.replace(at, std::min<size_t>(left, 1 + below(16)), piece());
        break;
      case 5: {
        const std::string value = number();
        bytes.replace(at, std::min(left, target_.is_text ? 1 : value.size()), value);
        break;
      }
      default:
        if (below(8) == 0) bytes.resize(at);
    }
  }

  const FuzzTarget& target_;
  std::vector<CorpusFile> corpus_;
  std::mt19937_64 random_;
};

class Fuzz : public testing::TestWithParam<FuzzTarget> {};

TEST_P(Fuzz, AnswersWhateverComes) {
  Mutator mutator(GetParam(), 20261122);
  ASSERT_FALSE(mutator.corpus().empty());
  for (const CorpusFile& file : mutator.corpus()) EXPECT_EQ(GetParam().run(file.bytes), file.is_sound()) << file.name;
  const char* wanted = std::getenv("HOIST_FUZZ_ROUNDS");
  const long rounds = wanted != nullptr ? std::atol(wanted) : 2000;
  for (long round = 0; round < rounds; ++round) GetParam().run(mutator.next());
}

INSTANTIATE_TEST_SUITE_P(Targets, Fuzz, testing::ValuesIn(fuzz_targets().begin(), fuzz_targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace hoist
