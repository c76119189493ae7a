#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/base/result.h"
#include "tools/report/report.h"
#include "tools/report/template.h"

namespace hoist {

std::string page_head() {
  constexpr std::string_view body = "<body>";
  const size_t end = report_template.find(body);
  HOIST_CHECK(end != std::string_view::npos, "the report's template has no body");
  return std::string(report_template.substr(0, end + body.size())) + "\n";
}

namespace {

struct TimeOnPage {
  double size = 0;
  const char* unit = "µs";
};
TimeOnPage in_its_unit(double seconds) {
  for (const auto& [unit, scale] : {std::pair{"s", 1.0}, {"ms", 1e3}, {"µs", 1e6}, {"ns", 1e9}}) {
    if (seconds > 0 && (seconds * scale >= 1 || scale == 1e9)) return {seconds * scale, unit};
  }
  return {};
}

}  // namespace

std::string time_on_page(double seconds) {
  constexpr int digits = 3, most_decimals = 6;
  const auto [size, unit] = in_its_unit(seconds);
  if (size == 0) return "0 µs";
  const int whole = static_cast<int>(std::floor(std::log10(size))) + 1;
  return fmt::format("{:.{}f} {}", size, std::clamp(digits - whole, 0, most_decimals), unit);
}

std::string round_time_on_page(double seconds) {
  const auto [size, unit] = in_its_unit(seconds);
  return fmt::format("{:.4g} {}", size, unit);
}

std::string safe_in_html(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

namespace {

using Json = nlohmann::ordered_json;

// In a script element, only "<" can end the element or open a comment. In JSON it occurs in strings only, where an
// escape is allowed.
std::string safe_in_script(const Json& data) {
  std::string out;
  for (char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<' || c == '>' || c == '&')
      out += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    else
      out += c;
  }
  return out;
}

// Stores equal texts of layers once, by number, since layers of one kernel have the same texts; -1 means no text.
class Texts {
 public:
  Json add(const LayerForms& forms) {
    return {{"high", index_of(forms.high)},     {"derivation", index_of(forms.derivation)},
            {"low", index_of(forms.low)},       {"schedule", index_of(forms.schedule)},
            {"source", index_of(forms.source)}, {"operations", forms.operations}};
  }
  const Json& all() const { return all_; }

 private:
  int64_t index_of(const std::string& text) {
    if (text.empty()) return -1;
    const auto [found, added] = indices_.emplace(text, static_cast<int64_t>(all_.size()));
    if (added) all_.push_back(text);
    return found->second;
  }

  std::map<std::string, int64_t> indices_;
  Json all_ = Json::array();
};

Json to_json(const NetworkPicture& picture) {
  Json nodes = Json::array(), edges = Json::array();
  for (const auto& node : picture.nodes) {
    nodes.push_back(
        {{"layers", node.layers}, {"x", node.x}, {"y", node.y}, {"width", node.width}, {"height", node.height}});
  }
  for (const auto& edge : picture.edges)
    edges.push_back({{"from", edge.from}, {"to", edge.to}, {"points", edge.points}});
  return {{"width", picture.width}, {"height", picture.height}, {"nodes", nodes}, {"edges", edges}};
}

Json page_data(const Study& study, const std::vector<ReportLayer>& layers, const NetworkPicture& picture) {
  Texts texts;
  Json listed = Json::array();
  for (const ReportLayer& layer : layers) {
    listed.push_back({{"name", layer.name},
                      {"operation", layer.operation},
                      {"reads", layer.reads},
                      {"gives", layer.gives},
                      {"reference", texts.add(layer.reference)},
                      {"chosen", texts.add(layer.chosen)}});
  }
  Json of_study = to_json(study);
  of_study["seed"] = std::to_string(study.seed);  // JavaScript's integers have 53 bits
  return {{"study", of_study}, {"layers", listed}, {"texts", texts.all()}, {"picture", to_json(picture)}};
}

}  // namespace

std::string report_page(const Study& study, const std::vector<ReportLayer>& layers, const NetworkPicture& picture,
                        const ReportKernels& kernels) {
  const std::pair<std::string_view, std::string> parts[] = {
      {"<!--SUMMARY-->", safe_in_html(summary_text(study))},
      {"<!--KERNELS-->", kernels_section(kernels)},
      {"<!--DATA-->", safe_in_script(page_data(study, layers, picture))}};
  std::string out;
  std::string_view rest = report_template;
  for (const auto& [mark, text] : parts) {
    const size_t at = rest.find(mark);
    HOIST_CHECK(at != std::string_view::npos, "the report's template lacks a mark");
    out.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return out.append(rest);
}

}  // namespace hoist
