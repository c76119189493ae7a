#include "tools/report/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "ir/base/temporary_folder.h"
#include "tools/base/child_program.h"
#include "tools/base/files.h"

namespace hoist {
namespace {

constexpr double units_per_inch = 72;  // dot uses inches
constexpr double node_height = 38;
constexpr double most_drawing_seconds = 120;  // time limit for dot, whose work grows with the square of the layers on a
                                              // level
constexpr size_t widest_name = 22;            // characters; the page cuts longer names to the width of their node

struct Collapsed {
  std::vector<NetworkPicture::Node> nodes;
  std::set<std::pair<size_t, size_t>> edges;
};

double node_width(const std::vector<std::string>& layers) {
  const size_t characters = layers.size() == 1 ? layers[0].size() : widest_name;
  return 20 + 6.6 * static_cast<double>(std::clamp(characters, size_t{16}, widest_name));
}

// Layers are in topological order, so edges between runs of consecutive layers only go forward.
Collapsed collapse(const std::vector<NamedCall>& layers, size_t most_nodes) {
  Collapsed out;
  const size_t together = (layers.size() + most_nodes - 1) / std::max<size_t>(most_nodes, 1);
  std::map<std::string, size_t> makers;
  for (size_t i = 0; i < layers.size(); ++i) {
    const NamedCall& layer = layers[i];
    const size_t node = i / together;
    if (node == out.nodes.size()) out.nodes.emplace_back();
    out.nodes[node].layers.push_back(layer.name);
    for (const std::string& input : layer.inputs) {
      const auto maker = makers.find(input);
      if (maker != makers.end() && maker->second != node) out.edges.emplace(maker->second, node);
    }
    for (const std::string& output : layer.outputs) {
      if (!output.empty()) makers[output] = node;
    }
  }
  for (auto& node : out.nodes) {
    node.width = node_width(node.layers);
    node.height = node_height;
  }
  return out;
}

std::string dot_text(const Collapsed& graph) {
  std::string out =
      "digraph {\n  rankdir=TB; ranksep=0.3; nodesep=0.25;\n  node [shape=box, fixedsize=true, label=\"\"];\n";
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    out += fmt::format("  {} [width={:.3f}, height={:.3f}];\n", i, graph.nodes[i].width / units_per_inch,
                       graph.nodes[i].height / units_per_inch);
  }
  for (const auto& [from, to] : graph.edges) out += fmt::format("  {} -> {};\n", from, to);
  return out + "}\n";
}

Result<std::string> run_dot(const std::string& text) {
  HOIST_TRY(TemporaryFolder folder, TemporaryFolder::make());
  const std::string graph = folder.path() / "graph.dot", out = folder.path() / "layout",
                    err = folder.path() / "messages";
  HOIST_TRY_VOID(write_file(graph, text));
  HOIST_TRY(const int status, run_program({"dot", "-Tplain", graph}, out, err, most_drawing_seconds,
                                          "install graphviz (the Debian package graphviz)"));
  if (status != 0) {
    HOIST_TRY(std::string messages, read_file(err));
    return Diagnostic{"dot", "failed: " + messages.substr(0, messages.find('\n')), ""};
  }
  return read_file(out);
}

const Diagnostic no_layout{"dot", "did not answer with a layout",
                           "its version may be too old; graphviz 2.43 is known to work"};

bool read_node(std::istringstream& words, NetworkPicture& picture) {
  size_t node = 0;
  double x = 0, y = 0;
  if (!(words >> node >> x >> y) || node >= picture.nodes.size()) return false;
  picture.nodes[node].x = x * units_per_inch;
  picture.nodes[node].y = picture.height - y * units_per_inch;
  return true;
}

bool read_edge(std::istringstream& words, NetworkPicture& picture) {
  NetworkPicture::Edge edge;
  size_t count = 0;
  if (!(words >> edge.from >> edge.to >> count) || count % 3 != 1) return false;
  if (edge.from >= picture.nodes.size() || edge.to >= picture.nodes.size()) return false;
  for (size_t i = 0; i < count; ++i) {
    double x = 0, y = 0;
    if (!(words >> x >> y)) return false;
    edge.points.emplace_back(x * units_per_inch, picture.height - y * units_per_inch);
  }
  picture.edges.push_back(std::move(edge));
  return true;
}

// Lines of dot's plain format: "graph SCALE WIDTH HEIGHT", "node NAME X Y ...", "edge TAIL HEAD N X1 Y1 ...", "stop".
Result<NetworkPicture> read_layout(const std::string& text, std::vector<NetworkPicture::Node> nodes) {
  NetworkPicture out;
  out.nodes = std::move(nodes);
  size_t placed = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    double scale = 0;
    if (kind == "graph") {
      if (!(words >> scale >> out.width >> out.height)) return no_layout;
      out.width *= units_per_inch;
      out.height *= units_per_inch;
    } else if (kind == "node") {
      if (!read_node(words, out)) return no_layout;
      ++placed;
    } else if (kind == "edge" && !read_edge(words, out)) {
      return no_layout;
    }
  }
  if (placed != out.nodes.size()) return no_layout;
  return out;
}

}  // namespace

Result<NetworkPicture> lay_out(const std::vector<NamedCall>& layers, size_t most_nodes) {
  if (layers.empty()) return NetworkPicture{};
  Collapsed collapsed = collapse(layers, most_nodes);
  HOIST_TRY(std::string text, run_dot(dot_text(collapsed)));
  return read_layout(text, std::move(collapsed.nodes));
}

}  // namespace hoist
