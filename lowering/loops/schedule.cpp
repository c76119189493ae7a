#include "lowering/loops/schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "lowering/terms/materialised.h"

namespace hoist {
namespace {

// Nodes are the definitions followed by the controls. Block 0 is the program; each control adds two blocks: its body or
// true branch, and its false branch.
class Scheduler {
 public:
  explicit Scheduler(Program& program) : program_(program), definitions_(static_cast<int>(program.definitions.size())) {
    const auto end = program.outputs.begin() + static_cast<std::ptrdiff_t>(output_count(program));
    outputs_.insert(program.outputs.begin(), end);
  }

  std::vector<PlanItem> run() {
    find_makers();
    const auto count = static_cast<size_t>(definitions_) + program_.controls.size();
    reads_.resize(count), loops_.resize(count), wanted_by_.resize(count), block_of_.assign(count, 0);
    for (int node = 0; node < static_cast<int>(count); ++node) find_reads(node);
    std::vector<int> seen(count, 0);
    for (int node = 0; node < static_cast<int>(count); ++node) put_in_order(node, seen);
    // In `order_` a node comes after all nodes that it uses and before all of its consumers.
    for (int node : order_) find_loops(node);
    parent_.assign(2 * program_.controls.size() + 1, 0);
    for (size_t i = order_.size(); i-- > 0;) choose_block(order_[i]);
    members_.resize(parent_.size());
    for (int node = 0; node < static_cast<int>(count); ++node)
      members_[static_cast<size_t>(block_of_[static_cast<size_t>(node)])].push_back(node);
    emitted_.assign(count, false);
    emit_block(0);
    program_.definitions = std::move(made_);
    program_.controls = std::move(made_controls_);
    return std::move(items_);
  }

 private:
  struct Reader {
    int node = 0;
    int block = -1;  // for a control that uses the value at the end of this block; -1: the node's own block
  };

  bool is_control(int node) const { return node >= definitions_; }
  const Control& control(int node) const { return program_.controls[static_cast<size_t>(node - definitions_)]; }
  int node_of_control(int block) const { return definitions_ + (block - 1) / 2; }
  int first_block(int node) const { return 1 + 2 * (node - definitions_); }
  bool is_loop_body(int block) const {
    return block != 0 && control(node_of_control(block)).kind == Control::Kind::loop;
  }

  void find_makers() {
    for (int i = 0; i < definitions_; ++i)
      writers_[program_.storage.at(program_.definitions[static_cast<size_t>(i)].value).array].push_back(i);
    for (size_t c = 0; c < program_.controls.size(); ++c) {
      const int node = definitions_ + static_cast<int>(c);
      const Control& each = program_.controls[c];
      if (!each.number.empty()) inside_[each.number] = node;
      for (const Control::Carried& carried : each.carried) {
        inside_[carried.before] = node;
        results_[carried.result] = node;
      }
      for (const Control::Rows& rows : each.rows) results_[rows.result] = node;
      if (!each.count.empty()) results_[each.count] = node;
      for (const Control::Choice& choice : each.choices) results_[choice.result] = node;
    }
  }

  // Records that the node uses the value. Only definitions before `before` can write it.
  void read(int node, const std::string& value, int before, int block) {
    const auto index = static_cast<size_t>(node);
    if (auto found = inside_.find(value); found != inside_.end()) {
      if (found->second != node) loops_[index].insert(found->second);
      return;
    }
    const auto add = [&](int maker) {
      reads_[index].push_back(maker);
      wanted_by_[static_cast<size_t>(maker)].push_back({node, block});
    };
    if (auto found = results_.find(value); found != results_.end()) return add(found->second);
    const auto stored = program_.storage.find(value);
    const auto writers = stored == program_.storage.end() ? writers_.end() : writers_.find(stored->second.array);
    if (writers == writers_.end()) return;  // an input or a constant
    for (int maker : writers->second) {
      if (maker < before) add(maker);
    }
  }

  void find_reads(int node) {
    if (!is_control(node)) {
      for (Expr p : parameters_of(program_.definitions[static_cast<size_t>(node)].expression))
        read(node, p->name, node, -1);
      return;
    }
    const Control& each = control(node);
    const int body = first_block(node);
    for (const std::string* value : {&each.condition, &each.trips}) {
      if (!value->empty()) read(node, *value, definitions_, -1);
    }
    if (!each.next.empty()) read(node, each.next, definitions_, body);
    for (const Control::Carried& carried : each.carried) {
      read(node, carried.initial, definitions_, -1);
      read(node, carried.after, definitions_, body);
    }
    for (const Control::Rows& rows : each.rows) read(node, rows.row, definitions_, body);
    for (const Control::Choice& choice : each.choices) {
      read(node, choice.yes, definitions_, body);
      read(node, choice.no, definitions_, body + 1);
    }
  }

  void put_in_order(int node, std::vector<int>& seen) {
    int& mark = seen[static_cast<size_t>(node)];
    HOIST_CHECK(mark != 1, "a control depends on its own result");
    if (mark != 0) return;
    mark = 1;
    for (int maker : reads_[static_cast<size_t>(node)]) put_in_order(maker, seen);
    seen[static_cast<size_t>(node)] = 2;
    order_.push_back(node);
  }

  // Collects the loops whose iterations affect the node.
  void find_loops(int node) {
    std::set<int>& loops = loops_[static_cast<size_t>(node)];
    for (int maker : reads_[static_cast<size_t>(node)])
      loops.insert(loops_[static_cast<size_t>(maker)].begin(), loops_[static_cast<size_t>(maker)].end());
    if (is_control(node)) loops.erase(node);
  }

  std::vector<int> path_to(int block) const {
    std::vector<int> path = {block};
    while (path.back() != 0) path.push_back(parent_[static_cast<size_t>(path.back())]);
    std::reverse(path.begin(), path.end());
    return path;
  }

  // Chooses the innermost block around all consumers of the node, then leaves every loop that the node does not depend
  // on.
  void choose_block(int node) {
    const auto index = static_cast<size_t>(node);
    bool any = false;
    std::vector<int> path = {0};
    const auto meet = [&](int block) {
      const std::vector<int> other = path_to(block);
      if (!any) path = other;
      any = true;
      size_t common = 0;
      while (common < std::min(path.size(), other.size()) && path[common] == other[common]) ++common;
      path.resize(common);
    };
    for (const Reader& reader : wanted_by_[index])
      meet(reader.block >= 0 ? reader.block : block_of_[static_cast<size_t>(reader.node)]);
    if (!is_control(node) && outputs_.count(program_.definitions[index].value) != 0) meet(0);
    int block = path.back();
    // A host op can fail, so it never moves out of a body that may not execute.
    const bool stays = !is_control(node) && is_host_step(program_.definitions[index].expression);
    for (int at = block; at != 0 && !stays; at = parent_[static_cast<size_t>(at)]) {
      if (!is_loop_body(at)) continue;
      if (loops_[index].count(node_of_control(at)) != 0) break;
      block = parent_[static_cast<size_t>(at)];
    }
    block_of_[index] = block;
    if (!is_control(node)) return;
    for (int own : {first_block(node), first_block(node) + 1}) parent_[static_cast<size_t>(own)] = block;
  }

  void emit_block(int block) {
    for (int node : members_[static_cast<size_t>(block)]) emit(node, block);
  }

  // Emits the operands of the node that belong to the block. For a control this includes the operands of its body.
  void emit_reads(int node, int block) {
    for (int maker : reads_[static_cast<size_t>(node)]) {
      if (block_of_[static_cast<size_t>(maker)] == block) emit(maker, block);
    }
    if (!is_control(node)) return;
    for (int own : {first_block(node), first_block(node) + 1}) {
      for (int inner : members_[static_cast<size_t>(own)]) emit_reads(inner, block);
    }
  }

  void emit(int node, int block) {
    if (emitted_[static_cast<size_t>(node)]) return;
    emit_reads(node, block);
    emitted_[static_cast<size_t>(node)] = true;
    if (!is_control(node)) {
      items_.push_back({PlanItem::Kind::step, static_cast<int>(made_.size())});
      made_.push_back(std::move(program_.definitions[static_cast<size_t>(node)]));
      return;
    }
    const auto index = static_cast<int>(made_controls_.size());
    made_controls_.push_back(control(node));
    items_.push_back({PlanItem::Kind::enter, index});
    emit_block(first_block(node));
    if (control(node).kind == Control::Kind::branch) items_.push_back({PlanItem::Kind::otherwise, index});
    emit_block(first_block(node) + 1);
    items_.push_back({PlanItem::Kind::leave, index});
  }

  Program& program_;
  const int definitions_;
  std::set<std::string> outputs_;                    // without those for controls
  std::map<std::string, std::vector<int>> writers_;  // by array
  std::map<std::string, int> inside_, results_;      // values that a control provides to its body, and its results
  std::vector<std::vector<int>> reads_;
  std::vector<std::set<int>> loops_;
  std::vector<std::vector<Reader>> wanted_by_;
  std::vector<int> order_, parent_, block_of_;
  std::vector<std::vector<int>> members_;
  std::vector<bool> emitted_;
  std::vector<Definition> made_;
  std::vector<Control> made_controls_;
  std::vector<PlanItem> items_;
};

}  // namespace

void schedule(Program& program) {
  if (program.controls.empty()) return;
  program.items = Scheduler(program).run();
  for (const Control& control : program.controls) {
    for (const Control::Carried& carried : control.carried)
      program.storage.at(carried.before).array = program.storage.at(carried.result).array;
  }
  program.steps.push_back(replayed_step("schedule"));
}

}  // namespace hoist
