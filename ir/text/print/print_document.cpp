#include "ir/text/print/print_document.h"

#include <algorithm>

namespace hoist {

Document DocumentStore::add(DocumentNode node) {
  for (Document c : node.children) node.breaks |= c->breaks;
  return &nodes_.emplace_back(std::move(node));
}

Document DocumentStore::text(std::string content) {
  return add({DocumentNode::text, std::move(content), 0, {}, false});
}
Document DocumentStore::line() { return add({DocumentNode::line, " ", 0, {}, false}); }
Document DocumentStore::soft() { return add({DocumentNode::line, "", 0, {}, false}); }
Document DocumentStore::hard() { return add({DocumentNode::hard, "", 0, {}, true}); }
Document DocumentStore::nest(int indent, Document d) { return add({DocumentNode::nest, "", indent, {d}, false}); }
Document DocumentStore::group(Document d) { return add({DocumentNode::group, "", 0, {d}, false}); }
Document DocumentStore::join(std::vector<Document> parts) {
  return add({DocumentNode::join, "", 0, std::move(parts), false});
}
Document DocumentStore::comment(std::string content) {
  return add({DocumentNode::comment, std::move(content), 0, {}, false});
}

namespace {

struct Item {
  int indent;
  bool flat;
  Document document;
};

// True if the item and the text up to the next possible line break fit into `room` columns.
bool fits(const std::vector<Item>& stack, Item first, long room) {
  std::vector<Item> todo = {first};
  size_t rest = stack.size();
  while (room >= 0) {
    if (todo.empty()) {
      if (rest == 0) return true;
      todo.push_back(stack[--rest]);
    }
    Item item = todo.back();
    todo.pop_back();
    const DocumentNode& d = *item.document;
    switch (d.kind) {
      case DocumentNode::text:
        room -= static_cast<long>(d.content.size());
        break;
      case DocumentNode::line:
        if (!item.flat) return true;
        room -= static_cast<long>(d.content.size());
        break;
      case DocumentNode::hard:
        return true;
      case DocumentNode::comment:
        break;
      case DocumentNode::group:
        todo.push_back({item.indent, item.flat && !d.breaks, d.children[0]});
        break;
      case DocumentNode::nest:
      case DocumentNode::join:
        for (size_t i = d.children.size(); i-- > 0;) todo.push_back({item.indent, item.flat, d.children[i]});
        break;
    }
  }
  return false;
}

}  // namespace

std::string lay_out(Document document, int width) {
  std::string out, comment;
  long column = 0;
  auto new_line = [&](int indent) {
    while (!out.empty() && out.back() == ' ') out.pop_back();
    if (!comment.empty()) out += "  -- " + comment;
    comment.clear();
    out += "\n" + std::string(static_cast<size_t>(indent), ' ');
    column = indent;
  };
  std::vector<Item> stack = {{0, false, document}};
  while (!stack.empty()) {
    Item item = stack.back();
    stack.pop_back();
    const DocumentNode& d = *item.document;
    switch (d.kind) {
      case DocumentNode::text:
        out += d.content;
        column += static_cast<long>(d.content.size());
        break;
      case DocumentNode::line:
        if (!item.flat) {
          new_line(item.indent);
          break;
        }
        out += d.content;
        column += static_cast<long>(d.content.size());
        break;
      case DocumentNode::hard:
        new_line(item.indent);
        break;
      case DocumentNode::comment:
        comment = d.content;
        break;
      case DocumentNode::nest:
        stack.push_back({item.indent + d.indent, item.flat, d.children[0]});
        break;
      case DocumentNode::group: {
        Item flat{item.indent, true, d.children[0]};
        bool on_one_line = !d.breaks && (item.flat || fits(stack, flat, width - column));
        stack.push_back({item.indent, on_one_line, d.children[0]});
        break;
      }
      case DocumentNode::join:
        for (size_t i = d.children.size(); i-- > 0;) stack.push_back({item.indent, item.flat, d.children[i]});
        break;
    }
  }
  if (!comment.empty()) out += "  -- " + comment;
  return out;
}

}  // namespace hoist
