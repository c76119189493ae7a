// hoist test: compiles models, runs them over recorded data on the device, compares.
#include <memory>
#include <nlohmann/json.hpp>

#include "backends/bundle/bundle.h"
#include "ir/base/temporary_folder.h"
#include "ir/program/states.h"
#include "lowering/pipeline/passes.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/data/data.h"
#include "tools/driver/model.h"
#include "tools/driver/opened_bundle.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name;
  fs::path model;
  std::vector<fs::path> data;  ///< folders that hold data sets
};

struct Verdict {
  std::string name, message;  ///< the message is empty if the case passed
  size_t data_sets = 0;
  double largest_error = 0;
  ExitCode code = ExitCode::done;
};

Result<std::vector<Case>> cases_of(const Options& command) {
  std::vector<Case> out;
  Diagnostics problems;
  std::error_code ignored;
  for (const std::string& text : command.cases) {
    fs::path path = fs::path(text).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    if (fs::is_directory(path, ignored)) {
      if (!command.data_folders.empty())
        return usage_error(text, "is a folder, and --data requires a model", "name the .onnx file");
      if (!fs::exists(path / "model.onnx", ignored))
        problems.push_back({text, "holds no model.onnx", is_bundle(path) ? "hoist verify checks a bundle" : ""});
      else
        out.push_back({path.filename().string(), path / "model.onnx", {path}});
    } else if (!fs::exists(path, ignored)) {
      problems.push_back({text, "no such file or folder", ""});
    } else {
      Case one{path.stem().string(), path, {}};
      for (const std::string& folder : command.data_folders) one.data.emplace_back(folder);
      if (one.data.empty()) one.data.push_back(path.parent_path().empty() ? "." : path.parent_path());
      out.push_back(std::move(one));
    }
  }
  for (const std::string& folder : command.data_folders) {
    if (!fs::is_directory(folder, ignored)) problems.push_back({"--data " + folder, "there is no such folder", ""});
  }
  if (!command.data_folders.empty() && out.size() > 1)
    return usage_error("--data", "requires a single model", "test the models one by one");
  if (!problems.empty()) return problems;
  return out;
}

// The model with the data's extents for open extents, and the data's values for inputs that determine shapes.
Result<FittedModel> read_for(const Case& one, const ModelOptions& options, const DataSet& data) {
  HOIST_TRY(ReadOptions reading, read_options(options));
  HOIST_TRY(FittedModel out, read_model_for(one.model, reading, data.inputs, data.layout));
  for (const std::string& name : out.fixed)
    print_message("note",
                  fmt::format("{}: input '{}' has to be known: compiled for the value in the data", one.name, name));
  for (const std::string& note : out.notes) print_message("note", one.name + ": " + note);
  return out;
}

// The first few in a line; hoist check has all of them.
std::string joined(const Diagnostics& problems) {
  constexpr size_t most = 3;
  std::string out;
  for (size_t i = 0; i < std::min(problems.size(), most); ++i) out += (i == 0 ? "" : "; ") + problems[i].text();
  if (problems.size() > most) out += fmt::format("; and {} more", problems.size() - most);
  return out;
}

// A model that is ready to run: a bundle on a device, or its program under the evaluator. With states the data sets are
// the runs of a sequence, which begins with the states in the first one.
struct Runnable {
  std::optional<BundleRunner> bundle;
  std::shared_ptr<const Program> program;
  std::optional<RunSequence> sequence;  ///< of the program, once it runs
  std::vector<StateValue> states;
  std::vector<std::string> outputs;  ///< in the order of the data
  std::vector<size_t> taken;         ///< index into the data set for each input and then each state
  bool has_run = false;

  Result<std::vector<Tensor>> run(std::vector<Tensor> inputs) {
    if (program != nullptr && !sequence) sequence.emplace(*program);
    const std::vector<ValueInfo> wanted = bundle ? inputs_of(*bundle) : input_infos(*program);
    for (size_t i = wanted.size(); i < inputs.size() && !has_run; ++i)
      HOIST_TRY_VOID(begin_with(i - wanted.size(), inputs[i]));
    has_run = true;
    inputs.resize(wanted.size());
    // Recorded data may have an array of one element for a scalar, which engines accept.
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (wanted[i].shape.empty() && inputs[i].size() == 1) inputs[i] = inputs[i].reshaped({});
    }
    HOIST_TRY(const std::vector<Tensor> got, bundle ? of_run(*bundle, bundle->run(inputs)) : sequence->run(inputs));
    return in_order(got);
  }

 private:
  Result<Nothing> begin_with(size_t state, const Tensor& value) {
    if (bundle) return bundle->set_state(state, value);
    if (type_of(value) != type_of(sequence->states()[state]))
      return Diagnostic{"state " + states[state].name, "has another type in the data", ""};
    sequence->set_state(state, value);
    return Nothing{};
  }

  // The outputs of the model and the next values of states, in the order of the data.
  Result<std::vector<Tensor>> in_order(const std::vector<Tensor>& got) {
    std::vector<Tensor> out;
    size_t next = 0;
    for (const std::string& name : outputs) {
      const auto state =
          std::find_if(states.begin(), states.end(), [&](const StateValue& each) { return each.next == name; });
      const auto index = static_cast<size_t>(state - states.begin());
      if (state == states.end()) {
        out.push_back(got[next++]);
      } else if (bundle) {
        HOIST_TRY(Tensor value, bundle->state(index));
        out.push_back(std::move(value));
      } else {
        out.push_back(sequence->states()[index]);
      }
    }
    return out;
  }
};

// Runs the same passes as a compilation, up to the point where terms become kernels.
Result<Runnable> interpretable(Program program, const ModelOptions& options) {
  PassOptions passes = pass_options(compile_options(options).lower, Profile{});
  passes.execute = false;  // terms alone are interpreted
  for (const Pass::Part part : {Pass::calls, Pass::terms}) HOIST_TRY_VOID(run_passes(program, part, passes));
  Runnable out;
  out.program = std::make_shared<const Program>(std::move(program));
  return out;
}

Result<Runnable> compiled(Program program, const Options& command, const fs::path& folder) {
  Runnable out;
  HOIST_TRY(CompiledModel model, compile_model(std::move(program), command.model));
  HOIST_TRY_VOID(write_bundle(model.plan, folder, {true}));
  HOIST_TRY(out.bundle, with_kind(ErrorKind::device, BundleRunner::open(folder, command.run)));
  return out;
}

// The first output that differs, or "".
Result<std::string> run_data_set(Runnable& model, const DataSet& data, const Options& command, double& largest_error) {
  if (data.outputs.size() > model.outputs.size()) {
    return Diagnostic{data.folder.string(),
                      fmt::format("has {} outputs, the model {}", data.outputs.size(), model.outputs.size())};
  }
  std::vector<Tensor> inputs;
  for (size_t place : model.taken) inputs.push_back(data.inputs[place]);
  HOIST_TRY(const std::vector<Tensor> got, model.run(std::move(inputs)));
  std::string message;
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    const Comparison comparison = compare(got[i], data.outputs[i], command.relative, command.absolute);
    largest_error = std::max(largest_error, comparison.largest_error);
    if (!comparison.agrees() && message.empty()) message = "output " + model.outputs[i] + " " + comparison.difference;
  }
  return message;
}

// True if a program that was compiled for some data accepts other data: the same types, and the same compile-time
// values.
bool fits(const Runnable& model, const DataSet& compiled_for, const DataSet& data) {
  if (compiled_for.layout != data.layout) return false;
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    const Tensor &a = compiled_for.inputs[i], &b = data.inputs[i];
    const bool taken = std::find(model.taken.begin(), model.taken.end(), i) != model.taken.end();
    if (a.scalar() != b.scalar() || a.shape() != b.shape() || (!taken && !(a == b))) return false;
  }
  return true;
}

Result<Verdict> judge(const Case& one, const Options& command, const fs::path& folder) {
  Verdict out{one.name, "", 0, 0, ExitCode::done};
  std::vector<fs::path> sets;
  for (const fs::path& place : one.data) {
    HOIST_TRY(std::vector<fs::path> found, data_sets_in(place));
    sets.insert(sets.end(), found.begin(), found.end());
  }
  std::optional<Runnable> model;
  DataSet compiled_for;
  HOIST_TRY(const ValueKinds kinds, value_kinds(one.model));
  for (const fs::path& set : sets) {
    HOIST_TRY(const DataSet data, read_data_set(set, true, kinds));
    if (!model || !fits(*model, compiled_for, data)) {
      model.reset();
      HOIST_TRY(FittedModel fitted, read_for(one, command.model, data));
      std::vector<StateValue> states = fitted.program.states;
      HOIST_TRY(model, command.interpret ? interpretable(std::move(fitted.program), command.model)
                                         : compiled(std::move(fitted.program), command, folder));
      model->states = std::move(states);
      model->outputs = std::move(fitted.outputs);
      model->taken = std::move(fitted.inputs);
      compiled_for = data;
    }
    HOIST_TRY(std::string message, run_data_set(*model, data, command, out.largest_error));
    if (!message.empty() && out.message.empty()) {
      out.message = sets.size() > 1 ? set.filename().string() + ", " + message : message;
      out.code = ExitCode::no;
    }
    ++out.data_sets;
  }
  return out;
}

Result<Nothing> write_verdicts(const std::string& path, const std::vector<Verdict>& verdicts, size_t failed) {
  nlohmann::ordered_json out = {
      {"passed", verdicts.size() - failed}, {"failed", failed}, {"cases", nlohmann::json::array()}};
  for (const Verdict& v : verdicts) {
    nlohmann::ordered_json one = {{"name", v.name},
                                  {"passed", v.message.empty()},
                                  {"data_sets", v.data_sets},
                                  {"largest_error", v.largest_error}};
    if (!v.message.empty()) one["message"] = v.message;
    out["cases"].push_back(std::move(one));
  }
  return write_json(path, out);
}

}  // namespace

Result<ExitCode> commands::test(const Options& given) {
  Options command = given;
  command.run.device = command.model.device;
  HOIST_TRY(std::vector<Case> cases, cases_of(command));
  if (command.model.profile.empty() && !command.interpret) {
    // Without a device every case would fail for the same reason.
    HOIST_TRY([[maybe_unused]] Profile profile, choose_profile(command.model));
  }
  HOIST_TRY(TemporaryFolder temporary, TemporaryFolder::make());
  std::vector<Verdict> verdicts;
  size_t failed = 0;
  Progress progress;
  for (const Case& one : cases) {
    progress.show(fmt::format("{} ({} of {})", one.name, verdicts.size() + 1, cases.size()),
                  static_cast<double>(verdicts.size()) / static_cast<double>(cases.size()));
    auto verdict = judge(one, command, temporary.path() / "case");
    if (verdict.ok())
      verdicts.push_back(std::move(*verdict));
    else
      verdicts.push_back({one.name, joined(verdict.errors()), 0, 0, exit_code(verdict.errors())});
    const Verdict& last = verdicts.back();
    if (!last.message.empty()) ++failed;
    if (last.message.empty())
      print_line("passed {}", last.name);
    else
      print_line("failed {}: {}", last.name, last.message);
  }
  print_line("{} of {} cases passed", verdicts.size() - failed, verdicts.size());
  if (!command.json.empty()) HOIST_TRY_VOID(write_verdicts(command.json, verdicts, failed));
  return failed == 0 ? ExitCode::done : ExitCode::no;
}

}  // namespace hoist
