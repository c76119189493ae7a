// The module hoist._core: the compiler for the Python package hoist, which passes arguments as strings and gets text
// back. Commands are the program's, with its options, checks and answers. A model stays open, so that further layers
// are shown without lowering it again. hoist/_core.pyi lists names and types; only the package imports this module.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "tools/base/child_program.h"
#include "tools/cli/command_line.h"
#include "tools/cli/log.h"
#include "tools/cli/parse_options.h"
#include "tools/driver/model.h"
#include "tools/inspection/derivation.h"
#include "tools/inspection/explanation.h"
#include "tools/inspection/layer_stages.h"
#include "tools/inspection/layers.h"
#include "tools/inspection/model_summary.h"
#include "tools/inspection/show_passes.h"
#include "tools/python/extension/call.h"

namespace hoist {
namespace {

namespace py = pybind11;

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

std::string json_text(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

// (exit code, problems, results, content of the file "-")
py::tuple command(const Words& words, const py::object& listener) {
  Heard heard;
  Result<ExitCode> out = ExitCode::done;
  perform(listener, heard, [&] { out = do_command(words); });
  const ExitCode code = out.ok() ? *out : exit_code(out.errors());
  const Diagnostics problems = out.ok() ? Diagnostics{} : out.errors();
  return py::make_tuple(static_cast<int>(code), problems_of(problems), text_of(heard.results), py::bytes(heard.files));
}

class Model {
 public:
  Model(const std::string& path, const Words& words, const py::object& listener) {
    model_ = perform_or_raise<std::shared_ptr<const OpenedModel>>(
        listener, [&]() -> Result<std::shared_ptr<const OpenedModel>> {
          Words all = {"inspect"};
          all.insert(all.end(), words.begin(), words.end());
          all.insert(all.end(), {"--", path});
          HOIST_TRY(ParsedCommand parsed, parse_command(all));
          options_ = std::move(parsed.options.model);
          HOIST_TRY_VOID(read_schedule_scripts(options_));
          HOIST_TRY(OpenedModel model, open_model(path, options_));
          return std::make_shared<const OpenedModel>(std::move(model));
        });
  }

  // The JSON of `hoist inspect MODEL --json`.
  std::string summary() const {
    const LoweredModel& lowered = model_->lowered;
    Json out = to_json(summary_of(lowered));
    out["layers"] = layers_json(lowered.layers, lowered.steps, names_of(lowered.kernels));
    return json_text(out);
  }
  py::str sentence() const { return text_of(sentence_of(summary_of(model_->lowered))); }
  py::str program() const { return text_of(print_program(model_->program)); }
  py::str rewritten() const {
    return performed([&]() -> Result<std::string> {
      HOIST_TRY(const Program program, rewritten_calls(model_->program, options_));
      return print_program(program);
    });
  }
  py::str stages(const std::string& layer, const Words& stages, bool types) const {
    return performed([&]() -> Result<std::string> {
      HOIST_TRY(const LayerStages found, stages_of(*model_, layer, {stages, types}));
      if (!found.refused.empty()) return found.refused;
      return json_text(to_json(found));
    });
  }
  py::str explanation(const std::string& layer, bool terms) const {
    return performed([&]() -> Result<std::string> {
      const LoweredModel& lowered = model_->lowered;
      HOIST_TRY(const Derived from, derived(lowered.derivation, model_->profile));
      HOIST_TRY(const Explanation found,
                explanation_of(layer, from, lowered.layers, lowered.steps, names_of(lowered.kernels), terms));
      return json_text(to_json(found));
    });
  }
  // [{"name", "layers", "operations", "term", "host"}], with the first layers of each kernel.
  std::string kernels() const {
    Json out = Json::array();
    for (const LoweredKernel& kernel : model_->lowered.kernels) {
      out.push_back({{"name", kernel.name},
                     {"layers", kernel.layers},
                     {"operations", kernel.operations},
                     {"term", print(kernel.expression)},
                     {"host", kernel.host}});
    }
    return json_text(out);
  }

 private:
  static py::str performed(const std::function<Result<std::string>()>& work) {
    return text_of(perform_or_raise<std::string>(py::none(), work));
  }

  ModelOptions options_;
  std::shared_ptr<const OpenedModel> model_;
};

}  // namespace
}  // namespace hoist

PYBIND11_MODULE(_core, module) {
  using hoist::Model;
  namespace py = pybind11;
  hoist::start_log();
  module.doc() = "The compiler, for the package hoist alone.";
  module.attr("version") = HOIST_VERSION;
  const py::object failure = py::reinterpret_steal<py::object>(
      PyErr_NewExceptionWithDoc("hoist._core.Failure", "(exit code, ((where, what, hint), ...))", nullptr, nullptr));
  module.attr("Failure") = failure;
  hoist::set_failure_class(failure);
  module.def("command", &hoist::command, py::arg("words"), py::arg("listener"));
  module.def("set_program", &hoist::set_this_program, py::arg("words"));
  py::class_<Model>(module, "Model")
      .def(py::init<const std::string&, const hoist::Words&, const py::object&>(), py::arg("path"), py::arg("words"),
           py::arg("listener"))
      .def("summary", &Model::summary)
      .def("sentence", &Model::sentence)
      .def("program", &Model::program)
      .def("rewritten", &Model::rewritten)
      .def("stages", &Model::stages, py::arg("layer"), py::arg("stages"), py::arg("types"))
      .def("explanation", &Model::explanation, py::arg("layer"), py::arg("terms"))
      .def("kernels", &Model::kernels);
}
