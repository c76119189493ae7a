// Places of a row's texts in the file that it was read from: messages about the texts name file, line and column. Rows
// made in C++ have no places.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hoist {

/// From this offset in a text to the next part, characters are consecutive in the file, starting at this place; all
/// characters of an expanded part have the place of the `$` of its reference.
struct TextPart {
  size_t offset = 0;
  int line = 0, column = 0;
  bool expanded = false;
};

struct RowOrigin {
  std::string file;
  std::map<std::string, std::vector<TextPart>> keys;  ///< parts of texts by the key of the row; "" for its name

  /// "FILE:LINE:COLUMN" of a character of a key's text; the row's own place if the row has no such key.
  std::string place(const std::string& key, size_t offset) const;
};
using RowOriginPointer = std::shared_ptr<const RowOrigin>;

/// "FILE:LINE:COLUMN: NAME", or only the name if the row is not from a file.
std::string place_of_row(const RowOriginPointer& origin, const std::string& name, const std::string& key = "",
                         size_t offset = 0);
/// The offset that a message of the parser names as "1:COLUMN"; 0 if it names none.
size_t offset_in_line(const std::string& where);

}  // namespace hoist
