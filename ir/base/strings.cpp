#include "ir/base/strings.h"

#include <fmt/format.h>

namespace hoist {
namespace {

struct ProgramStrings {
  std::mutex mutex;
  hoist_string_table table = {};
};

ProgramStrings& program_strings() {
  static auto* strings = new ProgramStrings;  // never destroyed: terms live as long as the process
  return *strings;
}

}  // namespace

StringTable::StringTable() : lock_(program_strings().mutex) {}
hoist_string_table* StringTable::table() const { return &program_strings().table; }

Result<uint64_t> word_of_string(std::string_view text) {
  uint64_t word = 0;
  const StringTable strings;
  switch (hoist_string_add(strings.table(), text.data(), text.size(), &word)) {
    case HOIST_STRING_KNOWN:
      return word;
    case HOIST_STRING_NO_MEMORY:
      throw std::bad_alloc();
    case HOIST_STRING_TOO_LONG:
      return Diagnostic{
          "", fmt::format("a string of {} bytes exceeds the limit of {}", text.size(), HOIST_LONGEST_STRING), ""};
    default:
      return Diagnostic{
          "", fmt::format("the string \"{}\" has the same hash of 64 bits as another one", text.substr(0, 60)),
          "change one of them by a character"};
  }
}

std::optional<std::string> string_of_word(uint64_t word) {
  const StringTable strings;
  const hoist_string_entry* entry = hoist_string_find(strings.table(), word);
  if (entry == nullptr) return std::nullopt;
  return std::string(entry->data, entry->length);
}

Result<Tensor> tensor_of_strings(std::vector<int64_t> shape, const std::vector<std::string>& strings) {
  Tensor out(Scalar::string, std::move(shape));
  HOIST_CHECK(out.size() == static_cast<int64_t>(strings.size()), "a string for each element");
  for (size_t i = 0; i < strings.size(); ++i) {
    HOIST_TRY(const uint64_t word, word_of_string(strings[i]));
    store_element(out.data(), 64, static_cast<int64_t>(i), word);
  }
  return out;
}

std::string string_at(const Tensor& tensor, int64_t i) {
  const uint64_t word = load_element(tensor.data(), 64, i);
  return string_of_word(word).value_or(fmt::format("#{:x}", word));
}

}  // namespace hoist
