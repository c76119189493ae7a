// read_model and list_operators: the order of the steps. Each step reports all its problems; later steps rely on the
// checks of earlier ones, so the onnx library never receives a model that could break its passes.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <set>

#include "frontend/file/bounded_size.h"
#include "frontend/file/message_file.h"
#include "frontend/file/model_tensors.h"
#include "frontend/file/plain_constants.h"
#include "frontend/file/tensor_proto.h"
#include "frontend/frontend.h"
#include "frontend/model/check_nodes.h"
#include "frontend/model/contributed_functions.h"
#include "frontend/model/deciding_inputs.h"
#include "frontend/model/dimensions.h"
#include "frontend/model/functions.h"
#include "frontend/model/inference.h"
#include "frontend/model/input_value.h"
#include "frontend/model/local_names.h"
#include "frontend/model/maps.h"
#include "frontend/model/sequences.h"
#include "frontend/model/structure.h"
#include "ir/operators/operators.h"
#include "ir/program/onnx_type.h"
#include "ir/program/program_builder.h"
#include "ir/text/counted.h"
#include "ir/text/parse/near_miss.h"

namespace hoist {
namespace {

void append(Diagnostics& to, const Diagnostics& from) { to.insert(to.end(), from.begin(), from.end()); }

Result<onnx::ModelProto> parse_model(const std::filesystem::path& path, const ReadOptions& options, ModelHash* hash) {
  const std::string name = path.string();
  const ScanLimits limits{options.maximum_objects, ScanLimits().depth};
  onnx::ModelProto model;
  HOIST_TRY(const bool parsed, read_message(path, options.maximum_file_bytes, limits, "an ONNX model", hash, model));
  if (!parsed) return Diagnostic{name, "is truncated or damaged", ""};
  if (!model.has_graph()) return Diagnostic{name, "is not an ONNX model", "it holds no graph"};
  return model;
}

Diagnostics check_header(const onnx::ModelProto& model, const std::string& file) {
  Diagnostics out;
  if (!model.has_ir_version() || model.ir_version() < 1) {
    out.push_back({file, "does not say its ONNX version", "it may be damaged, or no ONNX model"});
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
                     "asks for two opsets of " + domain + ", " + std::to_string(at->second) + " and " +
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
  // Models older than opsets mean the first one.
  if (model.ir_version() >= 3 && model.opset_import_size() == 0) {
    out.push_back({file, "does not say which opset it is for", "it may be damaged"});
  }
  return out;
}

// Engines that write a model with operators of onnxruntime's leave the domain or its import out.
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

// "" and "ai.onnx" are one domain; below it is always "".
void normalise_domains(onnx::ModelProto& model) {
  const auto plain = [](onnx::NodeProto& node) {
    if (node.domain() == "ai.onnx") node.clear_domain();
    forget_version(node);
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

class Reader {
 public:
  Reader(std::filesystem::path path, const ReadOptions& options, const std::vector<Tensor>* data = nullptr,
         const RecordedLayout& layout = {})
      : path_(std::move(path)),
        options_(options),
        data_(data),
        layout_(layout),
        external_(path_.parent_path(), hash_) {}

  /// All steps but the last.
  Result<Nothing> check() {
    HOIST_TRY(model_, parse_model(path_, options_, &hash_));
    if (Diagnostics problems = check_header(model_, path_.string()); !problems.empty()) return problems;
    normalise_domains(model_);
    if (Diagnostics problems = make_constants_plain(model_, options_.maximum_tensor_bytes, external_);
        !problems.empty())
      return problems;
    input_problems_ = take_map_inputs(graph(), notes_);
    list_inputs();
    if (Diagnostics problems = give_values(); !problems.empty()) return problems;
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

  /// Tensors that no initialiser of the model stands for, in its order: members for an input that is a sequence.
  const std::vector<std::string>& input_names() const { return input_names_; }
  /// Values that the data give for inputs that are no tensors.
  std::vector<std::string> data_notes() const {
    std::vector<std::string> out;
    for (const ListInput& list : lists_) {
      if (!list.note.empty()) out.push_back(list.note);
    }
    return out;
  }
  /// After a failure: those whose values the program would have to know.
  const std::set<std::string>& deciding() const { return deciding_; }

 private:
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  // Inputs without an initialiser. Their problems are reported together with the problems of their types.
  void list_inputs() {
    std::set<std::string> initialised;
    for (const onnx::TensorProto& tensor : graph().initializer()) initialised.insert(tensor.name());
    size_t recorded = 0;
    for (const onnx::ValueInfoProto& input : graph().input()) {
      if (initialised.count(input.name()) != 0) continue;
      const size_t place = recorded++;
      const DeclaredValue declared = declared_value_of(input.type());
      if (declared.kind == ValueKind::tensor || declared.element == nullptr) {
        input_names_.push_back(input.name());
        if (place < layout_.size() && layout_[place].value_or(0) != 1)
          input_problems_.push_back(
              {"input '" + input.name() + "'",
               "is a tensor, and the data have " + counted(layout_[place].value_or(0), "tensor") + " for it", ""});
        continue;
      }
      const std::optional<size_t> one = 1;  // without a layout
      const std::optional<size_t>* in_data = place < layout_.size() ? &layout_[place]
                                             : layout_.empty()      ? &one
                                                                    : nullptr;
      auto list = list_input(input.name(), declared, options_.dimensions, data_ == nullptr ? nullptr : in_data);
      if (!list) {
        append(input_problems_, list.errors());
        unsettled_.insert(input.name());
        continue;
      }
      input_names_.insert(input_names_.end(), list->members.begin(), list->members.end());
      lists_.push_back(std::move(*list));
    }
    append(input_problems_, check_member_names());
  }

  // x.0 of a sequence x may be the name of another value.
  Diagnostics check_member_names() {
    Diagnostics problems;
    if (lists_.empty()) return problems;
    std::set<std::string> taken;
    for (const onnx::ValueInfoProto& input : graph().input()) taken.insert(input.name());
    for (const onnx::TensorProto& tensor : graph().initializer()) taken.insert(tensor.name());
    for (const onnx::NodeProto& node : graph().node()) taken.insert(node.output().begin(), node.output().end());
    for (const ListInput& list : lists_) {
      if (list.kind == ValueKind::optional_tensor) continue;
      for (const std::string& member : list.members) {
        if (!taken.insert(member).second)
          problems.push_back({"input '" + list.name + "'",
                              "is a sequence, and its member would be called '" + member + "', as another value is",
                              "rename one of the two"});
      }
    }
    return problems;
  }

  // The list that a tensor is a member of; null if it is an input of its own.
  const ListInput* list_of(const std::string& member) const {
    const auto found = std::find_if(lists_.begin(), lists_.end(), [&](const ListInput& list) {
      return std::find(list.members.begin(), list.members.end(), member) != list.members.end();
    });
    return found == lists_.end() ? nullptr : &*found;
  }

  // Inputs with values become initialisers like the model's own.
  Diagnostics give_values() {
    Diagnostics problems;
    std::set<std::string> given;
    for (const InputValue& value : options_.values) {
      if (const ListInput* list = list_of(value.name)) {
        auto fitting = declared_value(value, list->element);
        if (!fitting)
          append(problems, fitting.errors());
        else if (!list_values_.emplace(value.name, *fitting).second)
          problems.push_back({"--value " + value.name, "the input has a value already", ""});
        continue;
      }
      const auto input = std::find_if(graph().input().begin(), graph().input().end(),
                                      [&](const auto& declared) { return declared.name() == value.name; });
      if (input == graph().input().end() ||
          std::find(input_names_.begin(), input_names_.end(), value.name) == input_names_.end()) {
        problems.push_back({"--value " + value.name, "the model has no such input", input_hint(value.name)});
      } else if (!given.insert(value.name).second) {
        problems.push_back({"--value " + value.name, "the input has a value already", ""});
      } else if (auto fitting = declared_value(value, input->type().tensor_type()); !fitting.ok()) {
        append(problems, fitting.errors());
      } else {
        const auto& shape = input->type().tensor_type().shape();
        for (int axis = 0; axis < std::min(shape.dim_size(), static_cast<int>(fitting->shape().size())); ++axis) {
          const int64_t extent = fitting->shape()[static_cast<size_t>(axis)];
          of_values_[value.name + "." + std::to_string(axis)] = extent;
          if (!shape.dim(axis).dim_param().empty()) of_values_[shape.dim(axis).dim_param()] = extent;
        }
        *graph().add_initializer() = tensor_to_proto(*fitting, value.name);
      }
    }
    return problems;
  }

  std::string input_hint(const std::string& name) const {
    std::string all = "it has:";
    for (size_t i = 0; i < input_names_.size() && i < 20; ++i) all += (i ? ", " : " ") + input_names_[i];
    return did_you_mean(name, input_names_, all);
  }

  // The options, and the extents of the data for axes that the options do not set.
  std::vector<DimensionValue> dimensions_of(const std::vector<DeclaredInput>& declared) const {
    std::vector<DimensionValue> out = options_.dimensions;
    std::erase_if(out, [&](const DimensionValue& value) {  // how many members there are is settled
      return std::any_of(lists_.begin(), lists_.end(), [&](const ListInput& list) { return list.name == value.name; });
    });
    std::erase_if(out, [&](const DimensionValue& value) {
      return std::any_of(unsettled_.begin(), unsettled_.end(),
                         [&](const std::string& name) { return value.name.starts_with(name + "."); });
    });
    std::set<std::string> open;
    for (const DeclaredInput& input : declared) {
      for (const auto& axis : input.axes) open.insert(axis.name);
    }
    std::erase_if(out, [&](const DimensionValue& value) {  // the input with a value says the same
      const auto found = of_values_.find(value.name);
      return found != of_values_.end() && found->second == value.extent && open.count(value.name) == 0;
    });
    if (data_ == nullptr) return out;
    std::set<std::string> said;
    for (const DimensionValue& value : out) said.insert(value.name);
    for (const DeclaredInput& input : declared) {
      const auto place = std::find(input_names_.begin(), input_names_.end(), input.name);
      const auto position = static_cast<size_t>(place - input_names_.begin());
      if (position >= data_->size() || (*data_)[position].shape().size() != input.axes.size()) continue;
      for (size_t axis = 0; axis < input.axes.size(); ++axis) {
        const std::string by_place = input.name + "." + std::to_string(axis), &by_name = input.axes[axis].name;
        if (input.axes[axis].extent >= 0 || said.count(by_place) != 0 || said.count(by_name) != 0) continue;
        out.push_back({by_place, (*data_)[position].shape()[axis]});
      }
    }
    return out;
  }

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
    append(problems, bind_inputs());
    append(problems, check_outputs());
    // Initialisers are no longer inputs, which onnx's passes expect of new models only.
    model_.set_ir_version(onnx::Version::IR_VERSION);
    return problems;
  }

  Diagnostics bind_inputs() {
    Diagnostics problems;
    std::vector<DeclaredInput> declared;
    std::vector<onnx::ValueInfoProto*> places;
    for (onnx::ValueInfoProto& value : *graph().mutable_input()) {
      if (constants_.count(value.name()) != 0 || unsettled_.count(value.name()) != 0) continue;
      const auto list =
          std::find_if(lists_.begin(), lists_.end(), [&](const ListInput& one) { return one.name == value.name(); });
      if (list != lists_.end()) {
        append(problems, declare_members(*list, declared));
        places.resize(declared.size(), nullptr);
        continue;
      }
      const std::string where = "input '" + value.name() + "'";
      const auto& type = value.type().tensor_type();
      const std::optional<Scalar> scalar = scalar_of_onnx_type(type.elem_type());
      if (!value.type().has_tensor_type()) {
        problems.push_back({where, "is neither a tensor nor a sequence of tensors",
                            "maps need a DictVectorizer, CastMap or ZipMap that states their keys; sparse tensors and "
                            "sequences of sequences are not supported"});
      } else if (!scalar) {
        problems.push_back({where, "has values of " + onnx_type_name(type.elem_type()) + ", which hoist lacks", ""});
      } else if (!type.has_shape()) {
        problems.push_back({where, "has no shape, not even a number of axes", "export the model with input shapes"});
      } else {
        DeclaredInput input{value.name(), *scalar, {}};
        for (const auto& dim : type.shape().dim()) {
          const int64_t extent = dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1;
          input.axes.push_back({extent, extent < 0 ? dim.dim_param() : ""});
        }
        declared.push_back(std::move(input));
        places.push_back(&value);
      }
    }
    const std::vector<DimensionValue> values = dimensions_of(declared);
    const size_t input_count = declared.size();
    const std::vector<DeclaredInput> results = results_sized_by_data();
    declared.insert(declared.end(), results.begin(), results.end());
    const Result<BoundDimensions> bound = bind_dimensions(declared, values, options_.maximum_tensor_bytes);
    if (!bound.ok()) {
      append(problems, bound.errors());
      return problems;
    }
    for (size_t i = input_count; i < declared.size(); ++i) sizes_[declared[i].name] = bound->shapes[i];
    for (size_t i = 0; i < input_count; ++i) {
      inputs_.push_back({declared[i].name, declared[i].scalar, bound->shapes[i]});
      if (places[i] != nullptr) set_tensor_type(*places[i], declared[i].scalar, bound->shapes[i]);
    }
    named_dimensions_ = bound->named;
    notes_.insert(notes_.end(), bound->notes.begin(), bound->notes.end());
    return problems;
  }

  // Results with data-dependent extents that the model declares: for the user they are inputs with
  // symbolic dimensions.
  std::vector<DeclaredInput> results_sized_by_data() const {
    std::vector<DeclaredInput> out;
    for (const onnx::NodeProto& node : model_.graph().node()) {
      const OperatorRow* row = find_operator(node.domain(), node.op_type(), newest_opset());
      if (!options_.has_operator || row == nullptr || row->declared_extents == 0 || node.output_size() == 0) continue;
      DeclaredInput result{node.output(0), Scalar::u8, {}, false};
      result.axes.resize(static_cast<size_t>(row->declared_extents));
      for (const auto* list : {&model_.graph().value_info(), &model_.graph().output()}) {
        for (const onnx::ValueInfoProto& value : *list) {
          if (value.name() != result.name) continue;
          const auto& shape = value.type().tensor_type().shape();
          for (int axis = 0; axis < std::min(row->declared_extents, shape.dim_size()); ++axis) {
            const auto& dim = shape.dim(axis);
            const bool is_number = dim.has_dim_value() && dim.dim_value() >= 0;
            result.axes[static_cast<size_t>(axis)] = {is_number ? dim.dim_value() : -1, dim.dim_param()};
          }
        }
      }
      out.push_back(std::move(result));
    }
    return out;
  }

  // The members of an input that have no value yet.
  Diagnostics declare_members(const ListInput& list, std::vector<DeclaredInput>& declared) const {
    const std::optional<Scalar> scalar = scalar_of_onnx_type(list.element.elem_type());
    if (!scalar) {
      return {{"input '" + list.name + "'",
               "has values of " + onnx_type_name(list.element.elem_type()) + ", which hoist lacks", ""}};
    }
    Diagnostics problems;
    for (size_t k = 0; k < list.members.size(); ++k) {
      if (list_values_.count(list.members[k]) != 0) continue;
      const auto place = std::find(input_names_.begin(), input_names_.end(), list.members[k]);
      const auto position = static_cast<size_t>(place - input_names_.begin());
      const Tensor* data = data_ != nullptr && position < data_->size() ? &(*data_)[position] : nullptr;
      auto member = declared_member(list, k, *scalar, options_.dimensions, data);
      if (member.ok())
        declared.push_back(std::move(*member));
      else
        append(problems, member.errors());
    }
    return problems;
  }

  // A declared type after names have values: -1 for an open extent.
  std::vector<int64_t> declared_shape(const onnx::TensorShapeProto& shape) const {
    std::vector<int64_t> out;
    for (const auto& dim : shape.dim()) {
      const auto named = named_dimensions_.find(dim.dim_param());
      if (dim.has_dim_value())
        out.push_back(dim.dim_value() >= 0 ? dim.dim_value() : -1);
      else
        out.push_back(named == named_dimensions_.end() ? -1 : named->second);
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
    // Declared shapes are compared, not believed: inference sees names and types only.
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
    // Bodies and the converter bring constants of their own.
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
    for (const ValueInfo& input : inputs_) builder.add_input(input);
    for (const auto& [name, value] : list_values_) builder.add_constant(name, value);
    for (const auto& [name, list] : tensor_lists()) builder.add_list(name, list);
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
    for (const onnx::NodeProto& node : graph().node()) {
      calls.push_back(named_call(node, problems));
      if (node.output_size() == 0) continue;
      if (const auto size = sizes_.find(node.output(0)); size != sizes_.end())
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
    return program;
  }

  // Inputs that are no tensors; an optional one that is there is.
  std::map<std::string, TensorList> tensor_lists() const {
    std::map<std::string, TensorList> out;
    for (const ListInput& list : lists_) {
      if (list.kind == ValueKind::optional_tensor && !list.absent) continue;
      out[list.name] = {list.absent, list.members, scalar_of_onnx_type(list.element.elem_type())};
    }
    return out;
  }

  void note_deciding(const std::vector<NamedCall>& calls, const Diagnostics& errors, Diagnostics& problems) {
    Program header;
    header.version = newest_opset();
    for (const ValueInfo& input : inputs_) header.inputs.emplace_back(input.name, type_of(input));
    header.constants = constants_;
    header.constants.insert(list_values_.begin(), list_values_.end());
    std::set<std::string> places;
    for (const Diagnostic& error : errors) places.insert(error.where);
    for (const NamedCall& call : calls) {  // an error of an output is an error of its layer
      if (std::any_of(call.outputs.begin(), call.outputs.end(),
                      [&](const std::string& output) { return !output.empty() && places.count(output) != 0; }))
        places.insert(call.name);
    }
    deciding_ = deciding_inputs(std::move(header), tensor_lists(), calls, places);
    if (deciding_.empty()) return;
    std::string names;
    for (const std::string& name : deciding_) names += (names.empty() ? "--value " : " and --value ") + name + "=...";
    problems.push_back({path_.string(), counted(deciding_.size(), "input") + " may decide these shapes",
                        "compile for one value with " + names});
  }

  NamedCall named_call(const onnx::NodeProto& node, Diagnostics& problems) {
    const onnx::NodeProto& said = maps_.original(node);
    NamedCall call{node.name(), said.op_type(), said.domain(), {}, {}, {}};
    call.version = version_of(node, opset_of(model_));
    call.inputs.assign(node.input().begin(), node.input().end());
    while (!call.inputs.empty() && call.inputs.back().empty()) call.inputs.pop_back();
    call.outputs.assign(node.output().begin(), node.output().end());
    for (const onnx::AttributeProto& attribute : said.attribute()) {
      if (attribute.has_g()) {
        call.bodies.push_back(named_body(attribute, layer_place(node), problems));
        continue;
      }
      if (attribute.type() == onnx::AttributeProto::TYPE_PROTO) continue;  // types follow from the operands of layers
      Result<Attribute> value = attribute_value(attribute, layer_place(node));
      if (value.ok())
        call.attributes[attribute.name()] = std::move(*value);
      else
        append(problems, value.errors());
    }
    // Layers that leave it open draw different numbers, the same in every run and every import.
    if (auto seed = seed_of_name(node)) call.attributes["seed"] = std::move(*seed);
    return call;
  }

  // A graph that a layer holds. Its constants stay in it, whatever their size: onnx's passes have seen them there.
  NamedBody named_body(const onnx::AttributeProto& attribute, const std::string& where, Diagnostics& problems) {
    const onnx::GraphProto& from = attribute.g();
    NamedBody body{attribute.name(), from.name(), {}, {}, {}, {}};
    std::set<std::string> initialised;
    for (const onnx::TensorProto& proto : from.initializer()) {
      const std::string owner = where + ", initialiser '" + proto.name() + "'";
      auto value = tensor_from_proto(proto, owner, options_.maximum_tensor_bytes, &external_);
      if (value.ok())
        body.constants[proto.name()] = std::move(*value);
      else
        append(problems, value.errors());
    }
    for (const onnx::ValueInfoProto& input : from.input()) {
      if (body.constants.count(input.name()) == 0) body.inputs.push_back(input.name());
    }
    for (const onnx::NodeProto& node : from.node()) body.calls.push_back(named_call(node, problems));
    for (const onnx::ValueInfoProto& output : from.output()) body.outputs.push_back(output.name());
    return body;
  }

  Result<Attribute> attribute_value(const onnx::AttributeProto& attribute, const std::string& where) {
    switch (attribute.type()) {
      case onnx::AttributeProto::INT:
        return Attribute(int64_t{attribute.i()});
      case onnx::AttributeProto::FLOAT:
        return Attribute(double{attribute.f()});
      case onnx::AttributeProto::STRING:
        return Attribute(attribute.s());
      case onnx::AttributeProto::INTS:
        return Attribute(std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
      case onnx::AttributeProto::FLOATS:
        return Attribute(std::vector<double>(attribute.floats().begin(), attribute.floats().end()));
      case onnx::AttributeProto::STRINGS:
        return Attribute(std::vector<std::string>(attribute.strings().begin(), attribute.strings().end()));
      case onnx::AttributeProto::TENSOR: {
        HOIST_TRY(Tensor tensor, tensor_from_proto(attribute.t(), where, options_.maximum_tensor_bytes, &external_));
        return Attribute(std::move(tensor));
      }
      default:
        return Diagnostic{where, "attribute '" + attribute.name() + "' is of a kind that is not supported",
                          "numbers, strings, lists of them and tensors are"};
    }
  }

  const std::filesystem::path path_;
  const ReadOptions& options_;
  const std::vector<Tensor>* data_;  // may be null
  const RecordedLayout layout_;
  std::vector<std::string> input_names_;
  std::set<std::string> deciding_;
  ModelHash hash_;
  ExternalData external_;
  onnx::ModelProto model_;
  Constants constants_;
  std::vector<ValueInfo> inputs_;
  Diagnostics input_problems_;
  std::set<std::string> unsettled_;            // inputs with an unknown number of members
  std::vector<ListInput> lists_;               // inputs that are no tensors
  std::map<std::string, Tensor> list_values_;  // of members that have theirs from the compilation on
  MapLayers maps_;
  std::map<std::string, int64_t> named_dimensions_;
  std::map<std::string, int64_t> of_values_;           // dimensions of inputs that have values
  std::map<std::string, std::vector<int64_t>> sizes_;  // of results that data would decide
  std::map<std::string, std::vector<int64_t>> declared_;
  std::map<std::string, ValueInfo> inferred_;
  std::vector<std::string> notes_;
};

void count_operators(const onnx::NodeProto& node, int opset, const HasOperator& has_operator,
                     std::map<std::pair<std::string, std::string>, OperatorUse>& uses) {
  const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
  OperatorUse& use = uses[{domain, node.op_type()}];
  const Support support = support_of(node, opset, has_operator);
  // One node that cannot be taken speaks for all of its kind.
  if (use.count++ == 0 || support == Support::none) use.support = support;
  use.domain = domain;
  use.operation = node.op_type();
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    for (const onnx::NodeProto& inner : attribute.g().node()) count_operators(inner, opset, has_operator, uses);
    for (const onnx::GraphProto& graph : attribute.graphs()) {
      for (const onnx::NodeProto& inner : graph.node()) count_operators(inner, opset, has_operator, uses);
    }
  }
}

}  // namespace

namespace {

// Runs a step of reading, and catches exceptions of the libraries.
template <class F>
auto guarded(const std::filesystem::path& path, F step) -> decltype(step()) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return Diagnostic{path.string(), "does not fit into memory", ""};
  } catch (const std::exception& error) {
    return Diagnostic{path.string(), std::string("cannot be read: ") + error.what(), ""};
  }
}

}  // namespace

Result<Program> read_model(const std::filesystem::path& path, const ReadOptions& options) {
  return guarded(path, [&] { return Reader(path, options).read(); });
}

// Each round gives values to inputs that had none, so the rounds have an end.
Result<FittedModel> read_model_for(const std::filesystem::path& path, const ReadOptions& options,
                                   const std::vector<Tensor>& data, const RecordedLayout& layout) {
  return guarded(path, [&]() -> Result<FittedModel> {
    ReadOptions reading = options;
    FittedModel out;
    for (;;) {
      Reader reader(path, reading, &data, layout);
      auto program = reader.read();
      const std::vector<std::string>& names = reader.input_names();
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
      out.notes = reader.data_notes();
      return out;
    }
  });
}

Result<ValueKinds> value_kinds(const std::filesystem::path& path) {
  return guarded(path, [&]() -> Result<ValueKinds> {
    HOIST_TRY(const onnx::ModelProto model, parse_model(path, {}, nullptr));
    std::set<std::string> initialised;
    for (const onnx::TensorProto& tensor : model.graph().initializer()) initialised.insert(tensor.name());
    for (const onnx::SparseTensorProto& tensor : model.graph().sparse_initializer())
      initialised.insert(tensor.values().name());
    ValueKinds out;
    const auto add = [&](const onnx::ValueInfoProto& value, std::vector<ValueKind>& kinds, std::vector<MapKeys>& keys) {
      kinds.push_back(declared_value_of(value.type()).kind);
      const bool maps = kinds.back() == ValueKind::map || kinds.back() == ValueKind::sequence_of_maps;
      auto said = maps ? keys_of(model.graph(), value) : Result<MapKeys>(MapKeys());
      keys.push_back(said.ok() ? std::move(*said) : MapKeys());  // reading the model reports the error
    };
    for (const onnx::ValueInfoProto& input : model.graph().input()) {
      if (initialised.count(input.name()) == 0) add(input, out.inputs, out.input_keys);
    }
    for (const onnx::ValueInfoProto& output : model.graph().output()) add(output, out.outputs, out.output_keys);
    return out;
  });
}

Result<Nothing> check_model(const std::filesystem::path& path, ReadOptions options) {
  options.has_operator = nullptr;
  return guarded(path, [&] { return Reader(path, options).check(); });
}

Result<std::vector<OperatorUse>> list_operators(const std::filesystem::path& path, const ReadOptions& options) {
  return guarded(path, [&]() -> Result<std::vector<OperatorUse>> {
    HOIST_TRY(onnx::ModelProto model, parse_model(path, options, nullptr));
    if (Diagnostics problems = check_header(model, path.string()); !problems.empty()) return problems;
    normalise_domains(model);
    std::map<std::pair<std::string, std::string>, OperatorUse> uses;
    std::set<std::pair<std::string, std::string>> own;  // calls of the model's functions
    const int opset = opset_of(model);
    for (const onnx::FunctionProto& function : model.functions()) {
      own.insert({function.domain() == "ai.onnx" ? "" : function.domain(), function.name()});
      for (const onnx::NodeProto& node : function.node()) count_operators(node, opset, options.has_operator, uses);
    }
    for (const onnx::NodeProto& node : model.graph().node()) count_operators(node, opset, options.has_operator, uses);
    std::vector<OperatorUse> out;
    for (auto& [key, use] : uses) {
      if (own.count(key)) use.support = Support::function;
      out.push_back(use);
    }
    return out;
  });
}

}  // namespace hoist
