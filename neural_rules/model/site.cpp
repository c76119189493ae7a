#include "neural_rules/model/site.h"

#include "neural_rules/functions/functions.h"
#include "neural_rules/model/flow.h"
#include "neural_rules/model/product.h"

namespace hoist {
namespace {

std::string first_output(const NamedCall& layer) {
  for (const std::string& output : layer.outputs) {
    if (!output.empty()) return output;
  }
  return "";
}

}  // namespace

std::string_view name_of(SiteKind kind) {
  switch (kind) {
    case SiteKind::product:
      return "product";
    case SiteKind::value:
      return "value";
    case SiteKind::function:
      return "function";
  }
  return "";
}

std::string site_key(SiteKind kind, const std::string& name) { return std::string(name_of(kind)) + " " + name; }

std::string Site::key() const { return site_key(kind, kind == SiteKind::value ? value : layer); }

std::vector<Site> find_sites(const Program& program) {
  const Flow flow = flow_of(program);
  std::map<std::string, std::vector<Site>> values;  // sites of values by the producing layer
  std::vector<Site> sites;
  for (const ValueFamily& family : value_families(program, flow)) {
    auto made = flow.producer.find(family.name);
    if (made == flow.producer.end()) {
      sites.push_back({SiteKind::value, family.name, family.name, "", ""});
    } else {
      const std::string& layer = flow.calls[made->second].name;
      values[layer].push_back({SiteKind::value, layer, family.name, "", ""});
    }
  }
  for (size_t i = 0; i < flow.calls.size(); ++i) {
    const NamedCall& layer = flow.calls[i];
    if (auto product = product_of(program, program.definitions[flow.places[i]]);
        product && flow.known.count(product->input) == 0)
      sites.push_back({SiteKind::product, layer.name, product->output, product->input, product->weights});
    const auto definition = flow.definitions.find(first_output(layer));
    if (definition != flow.definitions.end() && flow.floats.count(first_output(layer)) != 0 &&
        !function_rules_in(definition->second).empty())
      sites.push_back({SiteKind::function, layer.name, first_output(layer), layer.inputs[0], ""});
    if (auto found = values.find(layer.name); found != values.end())
      sites.insert(sites.end(), found->second.begin(), found->second.end());
  }
  return sites;
}

}  // namespace hoist
