// Text that can be laid out on one line or on several: Wadler's documents. Internal to printing.
#pragma once

#include <deque>
#include <string>
#include <vector>

namespace hoist {

struct DocumentNode;
using Document = const DocumentNode*;

struct DocumentNode {
  enum Kind : uint8_t {
    text,     ///< verbatim
    line,     ///< `text` (a space or nothing) if the group fits on a line, otherwise a line break
    hard,     ///< always a line break; enclosing groups never fit
    nest,     ///< line breaks of the child are indented by `indent` more
    group,    ///< the child on one line if it fits
    join,     ///< concatenated children
    comment,  ///< placed at the end of its output line
  } kind = text;
  std::string content;
  int indent = 0;
  std::vector<Document> children;
  bool breaks = false;  ///< contains a hard line
};

/// Creates documents and owns them.
class DocumentStore {
 public:
  Document text(std::string content);
  Document line();  ///< a space or a line break
  Document soft();  ///< nothing or a line break
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
