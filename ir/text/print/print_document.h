// Text that may be laid out on one line or on several: documents in Wadler's sense. Internal to printing.
#pragma once

#include <deque>
#include <string>
#include <vector>

namespace hoist {

struct DocumentNode;
using Document = const DocumentNode*;

struct DocumentNode {
  enum Kind : uint8_t {
    text,     ///< as it is
    line,     ///< `text` (a space or nothing) where the group fits on a line, else a new line
    hard,     ///< always a new line; the groups around it never fit
    nest,     ///< the child's new lines are indented by `indent` more
    group,    ///< the child on one line where it fits
    join,     ///< children one after the other
    comment,  ///< put at the end of the output line that it lands on
  } kind = text;
  std::string content;
  int indent = 0;
  std::vector<Document> children;
  bool breaks = false;  ///< holds a hard line
};

/// Makes documents and owns them.
class DocumentStore {
 public:
  Document text(std::string content);
  Document line();  ///< a space or a new line
  Document soft();  ///< nothing or a new line
  Document hard();
  Document nest(int indent, Document d);
  Document group(Document d);
  Document join(std::vector<Document> parts);
  Document comment(std::string content);

 private:
  Document add(DocumentNode node);
  std::deque<DocumentNode> nodes_;
};

std::string lay_out(Document document, int width);

}  // namespace hoist
