// read_model, read_model_for and check_model: the order of the steps. Each step reports all its problems; later steps
// rely on the checks of earlier ones, so the onnx library never receives a model that could break its passes.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/file/bounded_size.h"
#include "frontend/file/model_tensors.h"
#include "frontend/file/plain_constants.h"
#include "frontend/file/tensor_proto.h"
#include "frontend/frontend.h"
#include "frontend/layer_calls.h"
#include "frontend/model/check_nodes.h"
#include "frontend/model/deciding_inputs.h"
#include "frontend/model/dimensions.h"
#include "frontend/model/functions.h"
#include "frontend/model/inference.h"
#include "frontend/model/input_value.h"
#include "frontend/model/local_names.h"
#include "frontend/model/maps.h"
#include "frontend/model/sequences.h"
#include "frontend/model/structure.h"
#include "frontend/model/training_step.h"
#include "frontend/model_header.h"
#include "frontend/model_inputs.h"
#include "ir/program/onnx_type.h"
#include "ir/program/program_builder.h"
#include "ir/text/counted.h"

namespace hoist {
namespace {

class Reader {
 public:
  Reader(std::filesystem::path path, const ReadOptions& options, const std::vector<Tensor>* data = nullptr,
         const RecordedLayout& layout = {})
      : path_(std::move(path)),
        options_(options),
        inputs_(options, data, layout),
        external_(path_.parent_path(), options.hashes_weights ? &hash_ : nullptr) {}

  /// All steps but the last.
  Result<Nothing> check() {
    HOIST_TRY(model_, parse_model(path_, options_, &hash_));
    notes_ = notes_on_training_step(model_, options_.training_step);
    if (Diagnostics problems = check_header(model_, path_.string()); !problems.empty()) return problems;
    normalise_domains(model_);
    if (Diagnostics problems = make_constants_plain(model_, options_.maximum_tensor_bytes, external_);
        !problems.empty())
      return problems;
    input_problems_ = take_map_inputs(graph(), notes_);
    append(input_problems_, inputs_.list(graph()));
    if (Diagnostics problems = inputs_.give_values(graph()); !problems.empty()) return problems;
    if (Diagnostics problems = check_names_and_order(); !problems.empty()) return problems;
    if (Diagnostics problems = check_contents(); !problems.empty()) return problems;
    if (Diagnostics problems = check_shapes(); !problems.empty()) return problems;
    if (Diagnostics problems = replace_functions(); !problems.empty()) return problems;
    return Nothing{};
  }

  Result<Program> read() {
    HOIST_TRY_VOID(check());
    return build();
  }

  const ModelInputs& inputs() const { return inputs_; }
  /// The outputs of the model, before some become states.
  const std::vector<std::string>& outputs() const { return outputs_; }
  /// After a failure: the inputs whose values must be known at compile time.
  const std::set<std::string>& deciding() const { return deciding_; }

 private:
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  Diagnostics check_names_and_order() {
    name_layers(graph());
    if (Diagnostics problems = expand_model_functions(model_, options_.maximum_layers); !problems.empty())
      return problems;
    for (std::string& note : copy_repeated_outputs(graph())) notes_.push_back(std::move(note));
    name_layers(graph());
    make_names_unique(graph());
    maps_.hide(graph(), notes_);
    if (graph().node_size() > options_.maximum_layers) {
      return {{path_.string(), "has more than " + std::to_string(options_.maximum_layers) + " layers", ""}};
    }
    if (Diagnostics problems = check_names(graph()); !problems.empty()) return problems;
    if (const Result<Nothing> sorted = sort_layers(graph()); !sorted.ok()) return sorted.errors();
    if (const int removed = remove_unused_layers(graph()); removed > 0) {
      notes_.push_back(counted(static_cast<uint64_t>(removed), "layer") + " that no output needs " +
                       (removed == 1 ? "is" : "are") + " left out");
    }
    return {};
  }

  Diagnostics check_contents() {
    Diagnostics problems = check_operators(model_, options_.has_operator);
    append(problems, take_constants(graph(), options_.maximum_tensor_bytes, external_, constants_));
    append(problems, input_problems_);
    append(problems, inputs_.bind(graph(), constants_, notes_));
    append(problems, check_outputs());
    // Initialisers are not inputs as well, which onnx's passes expect of new models only.
    model_.set_ir_version(onnx::Version::IR_VERSION);
    return problems;
  }

  // A declared type with values for named dimensions; -1 for an open extent.
  std::vector<int64_t> declared_shape(const onnx::TensorShapeProto& shape) const {
    std::vector<int64_t> out;
    for (const auto& dim : shape.dim()) {
      const auto named = inputs_.named_dimensions().find(dim.dim_param());
      if (dim.has_dim_value())
        out.push_back(dim.dim_value() >= 0 ? dim.dim_value() : -1);
      else
        out.push_back(named == inputs_.named_dimensions().end() ? -1 : named->second);
    }
    return out;
  }

  Diagnostics check_outputs() {
    Diagnostics problems;
    for (onnx::ValueInfoProto& value : *graph().mutable_output()) {
      const std::string where = "output '" + value.name() + "'";
      const DeclaredValue declared = declared_value_of(value.type());
      if (value.has_type() && declared.element == nullptr) {
        problems.push_back({where, "is neither a tensor nor a sequence of tensors",
                            "maps need a DictVectorizer, CastMap or ZipMap that states their keys; sparse tensors and "
                            "sequences of sequences are not supported"});
        continue;
      }
      const auto& type = declared.element == nullptr ? value.type().tensor_type() : *declared.element;
      if (type.elem_type() != 0 && !scalar_of_onnx_type(type.elem_type())) {
        problems.push_back({where, "has values of " + onnx_type_name(type.elem_type()) + ", which hoist lacks", ""});
      }
    }
    // Declared shapes are compared, not trusted: inference receives names and types only.
    for (const auto* list : {&graph().value_info(), &graph().output()}) {
      for (const onnx::ValueInfoProto& value : *list) {
        const auto& type = value.type().tensor_type();
        if (value.type().has_tensor_type() && type.has_shape()) declared_[value.name()] = declared_shape(type.shape());
      }
    }
    graph().clear_value_info();
    for (onnx::ValueInfoProto& value : *graph().mutable_output()) {
      if (value.type().has_tensor_type()) value.mutable_type()->mutable_tensor_type()->clear_shape();
    }
    return problems;
  }

  // onnx's inference with the sizes filled in finds contradictions.
  Diagnostics check_shapes() {
    ValueTypes types;
    if (Diagnostics problems = check_types(model_, types); !problems.empty())
      return maps_.of_originals(std::move(problems));
    return note_types(types);
  }

  // Compares declared shapes with the shapes of the definitions. onnx's inference may differ: it keeps windows of a
  // pool that would start beyond the input. A data-dependent extent is at most the definition's. Exporters declare
  // wrong shapes, and onnxruntime ignores them too.
  std::vector<std::string> compare_declared(const Program& program, const ProgramBuilder& builder) const {
    const std::map<std::string, Type> types = value_types(program);
    std::vector<std::string> notes;
    for (const auto& [name, shape] : declared_) {
      const auto at = types.find(name);
      if (at == types.end() || at->second->is_tuple()) continue;
      const std::vector<int64_t> found = shape_of(at->second);
      std::vector<int64_t> declared = shape;
      for (const auto& [dimension, count] : builder.counts_of(name)) {
        const auto d = static_cast<size_t>(dimension);
        if (d < declared.size() && d < found.size() && declared[d] <= found[d]) declared[d] = -1;
      }
      if (!extents_agree(declared, found))
        notes.push_back("value '" + name + "' is declared with shape " + shape_text(shape) + " and comes out as " +
                        shape_text(found) + " (the model may be damaged, or fixes a size that --dim changes)");
    }
    return notes;
  }

  // Fills inferred_; a value past the limit on tensors is a problem.
  Diagnostics note_types(const ValueTypes& types) {
    Diagnostics problems;
    std::map<std::string, const onnx::TypeProto*> ordered;
    for (const auto& [name, type] : types) ordered[name] = &type;
    for (const auto& [name, type] : ordered) {
      if (!type->has_tensor_type() || !type->tensor_type().has_shape()) continue;
      const std::optional<Scalar> scalar = scalar_of_onnx_type(type->tensor_type().elem_type());
      if (!scalar) continue;
      ValueInfo value{name, *scalar, {}};
      std::vector<int64_t> least;
      for (const auto& dim : type->tensor_type().shape().dim()) {
        const bool known = dim.has_dim_value() && dim.dim_value() >= 0;
        value.shape.push_back(known ? dim.dim_value() : -1);
        least.push_back(known ? dim.dim_value() : 1);
      }
      if (!bounded_byte_size(*scalar, least, options_.maximum_tensor_bytes)) {
        const auto& nodes = graph().node();
        const auto layer = std::find_if(nodes.begin(), nodes.end(), [&](const onnx::NodeProto& node) {
          return std::find(node.output().begin(), node.output().end(), value.name) != node.output().end();
        });
        problems.push_back({(layer == nodes.end() ? "" : layer_place(*layer) + ", ") + "value '" + name + "'",
                            "comes out with shape " + shape_text(value.shape) + ", past the limit of " +
                                std::to_string(options_.maximum_tensor_bytes) + " bytes",
                            ""});
      }
      inferred_[name] = std::move(value);
    }
    return problems;
  }

  Diagnostics replace_functions() {
    if (options_.has_operator) {
      const int opset = opset_of(model_);
      std::map<std::string, std::string> lacking;
      Diagnostics problems =
          expand_standard_functions(model_, opset, options_.has_operator, options_.maximum_layers, lacking);
      if (!problems.empty()) return problems;
      remove_unused_layers(graph());
      problems = check_operators(model_, options_.has_operator);
      for (const onnx::NodeProto& node : graph().node()) {
        if (support_of(node, opset, options_.has_operator) != Support::function) continue;
        const std::string missing = lacking[node.name()];
        problems.push_back({layer_place(node), "operator " + node.op_type() + " is not supported",
                            missing.empty() ? "its definition by other operators does not fit this use"
                                            : "its definition by other operators needs " + missing +
                                                  ", which is not supported either"});
      }
      if (!problems.empty()) return problems;
    }
    // Inlined bodies bring constants of their own.
    if (Diagnostics problems = take_constants(graph(), options_.maximum_tensor_bytes, external_, constants_);
        !problems.empty()) {
      return problems;
    }
    return note_types(infer_types(model_));
  }

  Result<Program> build() {
    // Exporters give every graph the same name ("main_graph"); people name files.
    const std::string file = path_.stem().string();
    ProgramBuilder builder(file.empty() ? graph().name() : file, newest_opset());
    builder.set_bounds(options_.bounds);
    for (const ValueInfo& input : inputs_.tensors()) builder.add_input(input);
    for (const auto& [name, value] : inputs_.list_values()) builder.add_constant(name, value);
    for (const auto& [name, list] : inputs_.tensor_lists()) builder.add_list(name, list);
    std::set<std::string> used;
    for (const onnx::NodeProto& node : graph().node()) {
      const std::vector<std::string> reads = reads_of(node);
      used.insert(reads.begin(), reads.end());
      builder.reserve({node.output().begin(), node.output().end()});
    }
    for (const onnx::ValueInfoProto& value : graph().output()) used.insert(value.name());
    for (const auto& [name, tensor] : constants_) {
      if (used.count(name)) builder.add_constant(name, tensor);
    }
    for (const auto& [name, value] : inferred_) builder.expect(value);
    Diagnostics problems;
    std::vector<NamedCall> calls;
    const CallReader reader{maps_, external_, opset_of(model_), options_.maximum_tensor_bytes};
    for (const onnx::NodeProto& node : graph().node()) {
      calls.push_back(reader.call(node, problems));
      if (node.output_size() == 0) continue;
      if (const auto size = inputs_.sizes().find(node.output(0)); size != inputs_.sizes().end())
        calls.back().attributes["size"] = size->second;
    }
    for (const NamedCall& call : calls) builder.add_call(call);
    for (const onnx::ValueInfoProto& value : graph().output()) builder.add_output(value.name());
    auto program = builder.finish();
    if (!problems.empty() || !program) {
      if (!program) {
        append(problems, program.errors());
        note_deciding(calls, program.errors(), problems);
      }
      return problems;
    }
    if (program->outputs.empty())
      return Diagnostic{path_.string(), "has no output that is a tensor: its sequences are empty here", ""};
    for (std::string& note : compare_declared(*program, builder)) notes_.push_back(std::move(note));
    program->notes.insert(program->notes.begin(), notes_.begin(), notes_.end());
    program->hash = hash_.digest();
    outputs_.assign(program->outputs.begin(),
                    program->outputs.begin() + static_cast<std::ptrdiff_t>(model_output_count(*program)));
    return with_states(std::move(*program), options_);
  }

  void note_deciding(const std::vector<NamedCall>& calls, const Diagnostics& errors, Diagnostics& problems) {
    Program header;
    header.version = newest_opset();
    for (const ValueInfo& input : inputs_.tensors()) header.inputs.emplace_back(input.name, type_of(input));
    header.constants = constants_;
    header.constants.insert(inputs_.list_values().begin(), inputs_.list_values().end());
    std::set<std::string> places;
    for (const Diagnostic& error : errors) places.insert(error.where);
    for (const NamedCall& call : calls) {  // an error of an output is an error of its layer
      if (std::any_of(call.outputs.begin(), call.outputs.end(),
                      [&](const std::string& output) { return !output.empty() && places.count(output) != 0; }))
        places.insert(call.name);
    }
    deciding_ = deciding_inputs(std::move(header), inputs_.tensor_lists(), calls, places);
    if (deciding_.empty()) return;
    std::string names;
    for (const std::string& name : deciding_) names += (names.empty() ? "--value " : " and --value ") + name + "=...";
    problems.push_back({path_.string(), counted(deciding_.size(), "input") + " may determine these shapes",
                        "compile for one value with " + names});
  }

  const std::filesystem::path path_;
  const ReadOptions& options_;
  ModelInputs inputs_;
  std::set<std::string> deciding_;
  ModelHash hash_;
  ExternalData external_;
  onnx::ModelProto model_;
  Constants constants_;
  Diagnostics input_problems_;
  MapLayers maps_;
  std::map<std::string, std::vector<int64_t>> declared_;
  std::map<std::string, ValueInfo> inferred_;
  std::vector<std::string> notes_, outputs_;
};

}  // namespace

Result<Program> read_model(const std::filesystem::path& path, const ReadOptions& options) {
  return guarded(path, [&] { return Reader(path, options).read(); });
}

// Each round gives values to inputs that had none, so the rounds terminate.
Result<FittedModel> read_model_for(const std::filesystem::path& path, const ReadOptions& options,
                                   const std::vector<Tensor>& data, const RecordedLayout& layout) {
  return guarded(path, [&]() -> Result<FittedModel> {
    ReadOptions reading = options;
    FittedModel out;
    for (;;) {
      Reader reader(path, reading, &data, layout);
      auto program = reader.read();
      const std::vector<std::string>& names = reader.inputs().names();
      if (!program) {
        const size_t before = reading.values.size();
        for (size_t i = 0; i < std::min(names.size(), data.size()); ++i) {
          if (reader.deciding().count(names[i]) == 0) continue;
          reading.values.push_back({names[i], data[i]});
          out.fixed.push_back(names[i]);
        }
        if (reading.values.size() == before) return program.errors();
        continue;
      }
      if (names.size() != data.size()) {
        return Diagnostic{path.string(),
                          "has " + counted(names.size(), "input") + ", the data " + std::to_string(data.size()), ""};
      }
      for (const auto& [name, type] : program->inputs) {
        const auto place = std::find(names.begin(), names.end(), name);
        HOIST_CHECK(place != names.end(), "the model has no input " + name);
        out.inputs.push_back(static_cast<size_t>(place - names.begin()));
      }
      out.program = std::move(*program);
      out.outputs = reader.outputs();
      out.notes = reader.inputs().data_notes();
      return out;
    }
  });
}

Result<Nothing> check_model(const std::filesystem::path& path, ReadOptions options) {
  options.has_operator = nullptr;
  return guarded(path, [&] { return Reader(path, options).check(); });
}

}  // namespace hoist
