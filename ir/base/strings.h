// The strings of this process by their handles (ir/host/host_strings.h): a tensor of strings holds handles, and one
// table maps handles to strings. The table lives as long as the process, as do terms, which contain handles.
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

/// The handle of a string of arbitrary bytes. Errors: another known string has the same handle, or the string is longer
/// than 1 GiB.
Result<uint64_t> word_of_string(std::string_view text);
/// The string of a handle, or nothing if the handle is unknown.
std::optional<std::string> string_of_word(uint64_t word);

Result<Tensor> tensor_of_strings(std::vector<int64_t> shape, const std::vector<std::string>& strings);
/// Element `i` of a tensor of strings; an unknown handle is printed as #hexadecimal.
std::string string_at(const Tensor& tensor, int64_t i);

/// The table with its lock: exclusive access while this object lives.
class StringTable {
 public:
  StringTable();
  hoist_string_table* table() const;

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace hoist
