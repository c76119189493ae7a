#include "frontend/model_header.h"

#include <algorithm>
#include <map>

#include "frontend/file/message_file.h"
#include "frontend/inference_form.h"
#include "frontend/model/contributed/functions.h"
#include "frontend/model/inference.h"
#include "frontend/model/structure.h"
#include "frontend/model/training_step.h"

namespace hoist {

Result<onnx::ModelProto> parse_model(const std::filesystem::path& path, const ReadOptions& options, ModelHash* hash) {
  const std::string name = path.string();
  const ScanLimits limits{options.maximum_objects, ScanLimits().depth};
  onnx::ModelProto model;
  HOIST_TRY(const bool parsed, read_message(path, options.maximum_file_bytes, limits, "an ONNX model", hash, model));
  if (!parsed) return Diagnostic{name, "is truncated or damaged", ""};
  if (!model.has_graph()) return Diagnostic{name, "is not an ONNX model", "it holds no graph"};
  if (options.training_step != 0) HOIST_TRY_VOID(take_training_step(model, options.training_step, name));
  if (options.inference_form) use_inference_form(*model.mutable_graph());
  return model;
}

Diagnostics check_header(const onnx::ModelProto& model, const std::string& file) {
  Diagnostics out;
  if (!model.has_ir_version() || model.ir_version() < 1) {
    out.push_back({file, "does not state its ONNX version", "it may be damaged, or no ONNX model"});
  } else if (model.ir_version() > onnx::Version::IR_VERSION) {
    out.push_back({file,
                   "is of ONNX IR version " + std::to_string(model.ir_version()) + ", the newest that hoist reads is " +
                       std::to_string(onnx::Version::IR_VERSION),
                   "export it for an older version"});
  }
  std::map<std::string, int64_t> seen;
  for (const onnx::OperatorSetIdProto& opset : model.opset_import()) {
    const std::string domain = opset.domain().empty() ? "ai.onnx" : opset.domain();
    const auto [at, fresh] = seen.emplace(domain, opset.version());
    if (!fresh && at->second != opset.version()) {
      out.push_back({file,
                     "imports two opsets of " + domain + ", " + std::to_string(at->second) + " and " +
                         std::to_string(opset.version()),
                     ""});
    }
    if (domain == "ai.onnx" && (opset.version() < 1 || opset.version() > newest_opset())) {
      out.push_back(
          {file,
           "asks for opset " + std::to_string(opset.version()) + ", hoist reads 1 to " + std::to_string(newest_opset()),
           "export it for another opset"});
    }
  }
  // Models from before opset imports use opset 1.
  if (model.ir_version() >= 3 && model.opset_import_size() == 0) {
    out.push_back({file, "does not state its opset", "it may be damaged"});
  }
  return out;
}

namespace {

// Engines that write models with operators of onnxruntime omit the domain or its import.
void take_contributed_operators(onnx::ModelProto& model) {
  constexpr char domain[] = "com.microsoft";
  bool any = false, imported = false;
  for_each_node(*model.mutable_graph()->mutable_node(), [&](onnx::NodeProto& node) {
    if (is_contributed_without_domain(node)) node.set_domain(domain);
    any = any || node.domain() == domain;
  });
  for (const onnx::OperatorSetIdProto& opset : model.opset_import()) imported = imported || opset.domain() == domain;
  if (!any || imported) return;
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain(domain);
  opset.set_version(1);
}

// onnxruntime has had LayerNormalization among the operators of the standard since before the standard did.
void take_early_operators(onnx::ModelProto& model) {
  constexpr int standard_since = 17;
  if (opset_of(model) >= standard_since) return;
  for_each_node(*model.mutable_graph()->mutable_node(), [](onnx::NodeProto& node) {
    if (node.domain().empty() && node.op_type() == "LayerNormalization") set_version(node, standard_since);
  });
}

// A normalisation whose type of computation is onnx's 0, "undefined", as exporters write it, has the default type.
void forget_undefined_type(onnx::NodeProto& node) {
  auto& attributes = *node.mutable_attribute();
  const auto is_undefined = [](const onnx::AttributeProto& attribute) {
    return attribute.name() == "stash_type" && attribute.type() == onnx::AttributeProto::INT && attribute.i() == 0;
  };
  attributes.erase(std::remove_if(attributes.begin(), attributes.end(), is_undefined), attributes.end());
}

}  // namespace

// "" and "ai.onnx" are one domain; below it is always "".
void normalise_domains(onnx::ModelProto& model) {
  const auto plain = [](onnx::NodeProto& node) {
    if (node.domain() == "ai.onnx") node.clear_domain();
    forget_version(node);
    forget_undefined_type(node);
  };
  for_each_node(*model.mutable_graph()->mutable_node(), plain);
  for (onnx::FunctionProto& function : *model.mutable_functions()) for_each_node(*function.mutable_node(), plain);
  take_contributed_operators(model);
  bool any = false;
  for (onnx::OperatorSetIdProto& opset : *model.mutable_opset_import()) {
    if (opset.domain() == "ai.onnx") opset.clear_domain();
    any = any || opset.domain().empty();
  }
  if (!any) {
    onnx::OperatorSetIdProto& opset = *model.add_opset_import();
    opset.set_domain("");
    opset.set_version(model.ir_version() < 3 ? 1 : newest_opset());
  }
  take_early_operators(model);
}

}  // namespace hoist
