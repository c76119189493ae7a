// Files of rows: rules (*.rules, rule_text.h) and operators (*.op, operator_text.h). They lie in the folder of the code
// that owns them, and the build embeds them.
//
//   section folds                                  a heading, with keys that its rows share; any key of a row
//     library for steps of a user
//
//   rule fold-halves(k) exact: in two parts        the first line of a row
//     given x: [2*k]T, z: S, f: S, T -> S          its keys; a line without a key belongs to the row's own text
//     fold f z x => fold f (fold f z (slice 0 k x)) (slice k k x)
//
// A line that begins with -- is a comment; a line that is indented deeper than the key before continues its text, after
// one blank.
//
// Shared parts of texts are lets of the file; the lets of a file without rows hold for the files that are read after
// it:
//
//   let missing(n, k) = $k*(($n+$k-1)//$k) - $n    $missing(h*w, R) is this text with h*w and R
//   let suffix(2) =                                of several, the first whose numbers and words in quotes are those
//   let suffix(n) = -$n                            of the reference
//   $(n+1), $(name)                                a number or the sum or difference of two, as arguments may be too;
//                                                  the text of a name in front of more letters
//
// `for n in 2..4` or `for kind in group, global` makes a family: a row for each value of $n.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/result.h"
#include "ir/text/row_origin.h"

namespace hoist {

struct RowFile {
  std::string_view name;  ///< messages begin with it; the family of its rows is its last part, without the ending
  std::string_view text;
};

/// The embedded files, or, if the environment variable HOIST_RULES_FOLDER is set, the files of the same names in that
/// folder, the root of hoist's sources: rows change without a build. The texts are never freed. Errors: missing files.
Result<std::vector<RowFile>> own_row_files(std::span<const RowFile> embedded);

/// A text with the places of its characters.
struct PlacedText {
  std::string text;
  std::vector<TextPart> parts;

  void add(std::string_view more, int line, int column, bool expanded = false) {
    parts.push_back({text.size(), line, column, expanded});
    text += more;
  }
  void add(const PlacedText& more);
  TextPart at(size_t offset) const;
  /// The part from `begin` to `end` without surrounding blanks.
  PlacedText part(size_t begin, size_t end) const;
};

struct RowEntry {
  std::string key;  ///< "" for a line without a key
  PlacedText text;
  size_t indent = 0;
};

/// A row: its first line, then its own keys and its section's, in the file's order, with all references expanded.
struct ReadRow {
  std::string file, family;
  std::vector<RowEntry> entries;

  /// A diagnostic with the place, and with the row's name if it is given.
  Diagnostic fault(const TextPart& place, const std::string& what, const std::string& hint = "",
                   const std::string& name = "") const;
};

/// The keywords of one kind of rows.
struct RowWords {
  std::string word;                                            ///< keyword that begins a row
  std::string head;                                            ///< form of a row's first line, for messages
  std::vector<std::string> keys;                               ///< allowed keys, including "for"
  std::set<std::string> several;                               ///< keys that may be repeated
  std::set<std::string> alternatives;                          ///< keys of which a row's own replaces its section's
  std::function<std::string(const RowEntry& entry)> fault_of;  ///< fault of an indented line; "" if there is none
};

/// The rows of files of one kind. `lets` are visible in all files. Faults are added to `faults`.
std::vector<ReadRow> read_rows(std::span<const RowFile> files, const RowWords& words,
                               const std::map<std::string, std::string>& lets, Diagnostics& faults);

/// The position after the parenthesis that closes the one at `open`; npos if there is none.
size_t after_parentheses(std::string_view text, size_t open);

}  // namespace hoist
