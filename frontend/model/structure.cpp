#include "frontend/model/structure.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/language/expression.h"
#include "ir/text/parse/near_miss.h"

namespace hoist {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Every name that a node reads. For nodes with subgraphs also the names that the subgraphs read, which may be more than
// the captured ones; recursion is bounded by the parser's own limit on nesting.
void add_reads(const onnx::NodeProto& node, std::vector<std::string>& out) {
  for (const std::string& name : node.input()) {
    if (!name.empty()) out.push_back(name);
  }
  const auto add_graph = [&](const onnx::GraphProto& graph) {
    for (const onnx::NodeProto& inner : graph.node()) add_reads(inner, out);
    for (const onnx::ValueInfoProto& output : graph.output()) out.push_back(output.name());
  };
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) add_graph(attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) add_graph(graph);
    // The differentiated value is no input.
    const bool names_value = node.op_type() == "Gradient" && node.domain() == "ai.onnx.preview.training";
    if (names_value && attribute.name() == "y" && !attribute.s().empty()) out.push_back(attribute.s());
  }
}

std::unordered_map<std::string, int> producers(const onnx::GraphProto& graph) {
  std::unordered_map<std::string, int> out;
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& name : graph.node(i).output()) {
      if (!name.empty()) out.emplace(name, i);
    }
  }
  return out;
}

void keep_nodes(onnx::GraphProto& graph, const std::vector<int>& order) {
  Nodes kept;
  kept.Reserve(static_cast<int>(order.size()));
  for (const int i : order) kept.Add()->Swap(graph.mutable_node(i));
  graph.mutable_node()->Swap(&kept);
}

std::string quoted(const std::string& name) { return "'" + name + "'"; }

}  // namespace

std::string layer_place(const onnx::NodeProto& node) {
  if (node.op_type().empty()) return "layer " + quoted(node.name());
  return "layer " + quoted(node.name()) + " (" + (node.domain().empty() ? "" : node.domain() + ".") + node.op_type() +
         ")";
}

namespace {

constexpr char version_key[] = "hoist.version";

}  // namespace

int version_of(const onnx::NodeProto& node, int opset) {
  for (const onnx::StringStringEntryProto& entry : node.metadata_props()) {
    if (entry.key() == version_key) return std::stoi(entry.value());
  }
  return opset;
}

void set_version(onnx::NodeProto& node, int version) {
  forget_version(node);
  onnx::StringStringEntryProto& entry = *node.add_metadata_props();
  entry.set_key(version_key);
  entry.set_value(std::to_string(version));
}

void forget_version(onnx::NodeProto& node) {
  auto& entries = *node.mutable_metadata_props();
  for (int i = entries.size() - 1; i >= 0; --i) {
    if (entries.Get(i).key() == version_key) entries.DeleteSubrange(i, 1);
  }
}

void for_each_node(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                   const std::function<void(onnx::NodeProto&)>& f) {
  for (onnx::NodeProto& node : nodes) {
    f(node);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) for_each_node(*attribute.mutable_g()->mutable_node(), f);
      for (onnx::GraphProto& graph : *attribute.mutable_graphs()) for_each_node(*graph.mutable_node(), f);
    }
  }
}

std::vector<std::string> reads_of(const onnx::NodeProto& node) {
  std::vector<std::string> out;
  add_reads(node, out);
  return out;
}

bool has_subgraph(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(), [](const onnx::AttributeProto& attribute) {
    return attribute.has_g() || attribute.graphs_size() > 0;
  });
}

void name_layers(onnx::GraphProto& graph) {
  std::unordered_set<std::string> taken;
  for (const onnx::NodeProto& node : graph.node()) taken.insert(node.name());
  std::unordered_set<std::string> seen;
  for (int i = 0; i < graph.node_size(); ++i) {
    onnx::NodeProto& node = *graph.mutable_node(i);
    std::string name = node.name();
    if (!name.empty() && seen.insert(name).second) continue;
    const std::string stem = name.empty() ? node.op_type() + "_" + std::to_string(i) : name;
    name = stem;
    for (int suffix = node.name().empty() ? 1 : 2; taken.count(name); ++suffix)
      name = stem + "_" + std::to_string(suffix);
    taken.insert(name);
    seen.insert(name);
    node.set_name(name);
  }
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) name_layers(*attribute.mutable_g());
    }
  }
}

std::vector<std::string> copy_repeated_outputs(onnx::GraphProto& graph) {
  std::vector<std::string> notes;
  std::unordered_set<std::string> taken, listed;
  for (const onnx::ValueInfoProto& input : graph.input()) taken.insert(input.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) taken.insert(tensor.name());
  for (const onnx::NodeProto& node : graph.node()) taken.insert(node.output().begin(), node.output().end());
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
    const std::string name = output.name();
    if (listed.insert(name).second) continue;
    std::string copy;
    int number = 2;
    do copy = name + "_" + std::to_string(number++);
    while (!taken.insert(copy).second);
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Identity");
    node.add_input(name);
    node.add_output(copy);
    output.set_name(copy);
    notes.push_back("output " + quoted(name) + " is listed again: the copy is called " + quoted(output.name()));
  }
  return notes;
}

Diagnostics check_names(const onnx::GraphProto& graph) {
  Diagnostics problems;
  std::unordered_map<std::string, std::string> defined;  // value to its definition
  const auto check_name = [&](const std::string& value, const std::string& by) {
    if (is_internal_name(value))
      problems.push_back(
          {by, "names a value " + quoted(value) + ", which begins with a control character", "rename the value"});
  };
  const auto define = [&](const std::string& value, const std::string& by) {
    check_name(value, by);
    const auto [at, fresh] = defined.emplace(value, by);
    if (!fresh)
      problems.push_back({by, "defines value " + quoted(value) + ", which " + at->second + " defines too", ""});
  };
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (input.name().empty())
      problems.push_back({"graph inputs", "one has no name", ""});
    else
      define(input.name(), "input " + quoted(input.name()));
  }
  std::unordered_set<std::string> initialisers;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    const std::string by = "initialiser " + quoted(tensor.name());
    check_name(tensor.name(), by);
    if (tensor.name().empty())
      problems.push_back({"initialisers", "one has no name", ""});
    else if (!initialisers.insert(tensor.name()).second)
      problems.push_back({by, "is defined twice", ""});
    else
      defined.emplace(tensor.name(), by);  // an input of the same name holds its default
  }
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type().empty()) problems.push_back({layer_place(node), "names no operator", ""});
    for (const std::string& name : node.output()) {
      if (!name.empty()) define(name, layer_place(node));
    }
  }

  std::vector<std::string> names;
  const auto hint = [&](const std::string& missing) -> std::string {
    constexpr size_t worth_searching = 20'000;
    if (names.empty() && defined.size() < worth_searching) {
      for (const auto& [name, by] : defined) names.push_back(name);
      std::sort(names.begin(), names.end());
    }
    const std::string near = near_miss(missing, names);
    return near.empty() ? "" : "the nearest name that is defined is " + quoted(near);
  };
  constexpr size_t enough = 100;  // each further problem costs a search for a near miss
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& name : node.input()) {
      if (name.empty() || defined.count(name) || problems.size() > enough) continue;
      problems.push_back({layer_place(node), "reads value " + quoted(name) + ", which nothing defines", hint(name)});
    }
  }
  if (graph.output_size() == 0) problems.push_back({"graph", "has no outputs", ""});
  for (const onnx::ValueInfoProto& output : graph.output()) {
    const std::string where = "output " + quoted(output.name());
    if (!defined.count(output.name()) && problems.size() <= enough) {
      problems.push_back({where, "is not defined by any layer", hint(output.name())});
    }
  }
  return problems;
}

namespace {

// True if the operator means the same with fewer results. Split into fewer parts makes larger parts, and batch
// normalisations of versions before 14 are in training mode if they have several results.
bool leaves_out_results(const onnx::NodeProto& node) {
  if (node.domain().empty() && node.op_type() == "BatchNormalization") return false;
  const auto* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), node.domain());
  if (schema == nullptr || schema->outputs().empty()) return false;
  return schema->outputs().back().GetOption() != onnx::OpSchema::Variadic;
}

// True if the operator has to name this result: TopK names both, even if only one is used.
bool names_result(const onnx::NodeProto& node, int place) {
  const auto* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), node.domain());
  if (schema == nullptr || place >= static_cast<int>(schema->outputs().size())) return false;
  return schema->outputs()[static_cast<size_t>(place)].GetOption() == onnx::OpSchema::Single;
}

}  // namespace

int remove_unused_layers(onnx::GraphProto& graph) {
  const auto producer = producers(graph);
  std::vector<bool> needed(static_cast<size_t>(graph.node_size()));
  std::unordered_set<std::string> read;
  std::vector<std::string> open;
  for (const onnx::ValueInfoProto& output : graph.output()) open.push_back(output.name());
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (!read.insert(name).second) continue;
    const auto at = producer.find(name);
    if (at == producer.end() || needed[static_cast<size_t>(at->second)]) continue;
    needed[static_cast<size_t>(at->second)] = true;
    add_reads(graph.node(at->second), open);
  }
  std::vector<int> kept;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (!needed[static_cast<size_t>(i)]) continue;
    kept.push_back(i);
    auto& outputs = *graph.mutable_node(i)->mutable_output();
    for (int k = 1; k < outputs.size(); ++k) {
      if (!read.count(outputs.Get(k)) && !names_result(graph.node(i), k)) outputs.Mutable(k)->clear();
    }
    if (!leaves_out_results(graph.node(i))) continue;
    while (outputs.size() > 1 && outputs.Get(outputs.size() - 1).empty()) outputs.RemoveLast();
  }
  const int removed = graph.node_size() - static_cast<int>(kept.size());
  if (removed > 0) keep_nodes(graph, kept);
  return removed;
}

Result<Nothing> sort_layers(onnx::GraphProto& graph) {
  const auto producer = producers(graph);
  const auto count = static_cast<size_t>(graph.node_size());
  std::vector<std::vector<int>> readers(count), sources(count);
  std::vector<int> waiting(count);
  for (int i = 0; i < graph.node_size(); ++i) {
    std::vector<std::string> reads;
    add_reads(graph.node(i), reads);
    const bool nested = reads.size() > static_cast<size_t>(graph.node(i).input_size());
    for (const std::string& name : reads) {
      const auto at = producer.find(name);
      // A name inside a subgraph may be the subgraph's own.
      if (at == producer.end() || (nested && at->second == i)) continue;
      readers[static_cast<size_t>(at->second)].push_back(i);
      sources[static_cast<size_t>(i)].push_back(at->second);
      ++waiting[static_cast<size_t>(i)];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;  // the earliest in the file first
  for (int i = 0; i < graph.node_size(); ++i) {
    if (waiting[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (const int reader : readers[static_cast<size_t>(i)]) {
      if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  if (order.size() == count) {
    if (!std::is_sorted(order.begin(), order.end())) keep_nodes(graph, order);
    for (onnx::NodeProto& node : *graph.mutable_node()) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) HOIST_TRY_VOID(sort_layers(*attribute.mutable_g()));
      }
    }
    return Nothing{};
  }

  // Every remaining node waits for a remaining node, so a walk backwards must reach a node twice.
  int at = 0;
  while (waiting[static_cast<size_t>(at)] == 0) ++at;
  std::vector<int> walk;
  std::unordered_map<int, size_t> place;
  while (place.emplace(at, walk.size()).second) {
    walk.push_back(at);
    const auto& from = sources[static_cast<size_t>(at)];
    at = *std::find_if(from.begin(), from.end(), [&](int source) { return waiting[static_cast<size_t>(source)] > 0; });
  }
  const std::vector<int> cycle(walk.rbegin(), walk.rend() - static_cast<std::ptrdiff_t>(place[at]));
  constexpr size_t shown = 8;
  std::string text;
  for (size_t k = 0; k < cycle.size() && k < shown; ++k) text += quoted(graph.node(cycle[k]).name()) + " -> ";
  if (cycle.size() > shown) text += "... -> ";
  text += quoted(graph.node(cycle[0]).name());
  return Diagnostic{layer_place(graph.node(cycle[0])), "depends on its own output: " + text,
                    "the layers of a model must not form a cycle"};
}

}  // namespace hoist
