// Places of a rule's texts in the file that it was read from: messages about the texts name file, line and column.
// Rows that C++ makes have no places.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hoist {

/// From this offset of a text until the next part, characters are contiguous at this place of a file; all characters of
/// an expanded part have the place of its first character, the `$` of a reference.
struct TextPart {
  size_t offset = 0;
  int line = 0, column = 0;
  bool expanded = false;
};

struct RuleOrigin {
  std::string file;
  std::map<std::string, std::vector<TextPart>> keys;  ///< by the key of the row; "rule" is its name

  /// "FILE:LINE:COLUMN" of a character of a key's text; the rule's own place where the row has no such key.
  std::string place(const std::string& key, size_t offset) const;
};
using RuleOriginPointer = std::shared_ptr<const RuleOrigin>;

/// "FILE:LINE:COLUMN: NAME", or the name alone where the row is of no file.
std::string place_of_rule(const RuleOriginPointer& origin, const std::string& name, const std::string& key = "rule",
                          size_t offset = 0);
/// The offset that a message of the parser names as "1:COLUMN"; 0 where it names none.
size_t offset_in_line(const std::string& where);

}  // namespace hoist
