// The strings of this program by their words (ir/host/host_strings.h): a tensor of strings holds words, and one table
// has what they stand for. It lives as long as the program, as terms do, which mention words.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/base/result.h"
#include "ir/host/host_strings.h"
#include "ir/language/tensor.h"

namespace hoist {

/// The word of a string of any bytes. Errors: another string that was met has the same word, or it is longer than 1
/// GiB.
Result<uint64_t> word_of_string(std::string_view text);
/// Nothing where no string of that word was ever met.
std::optional<std::string> string_of_word(uint64_t word);

Result<Tensor> tensor_of_strings(std::vector<int64_t> shape, const std::vector<std::string>& strings);
/// Element `i` of a tensor of strings; a word that stands for nothing is shown as #hexadecimal.
std::string string_at(const Tensor& tensor, int64_t i);

/// The table, and nobody else in it meanwhile.
class StringTable {
 public:
  StringTable();
  hoist_string_table* table() const;

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace hoist
