// hoist run: one run of a bundle, or a sequence; inputs from files, outputs shown and, if requested, written to files.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "frontend/file/tensor_file.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/data/data.h"
#include "tools/data/media.h"
#include "tools/data/npy.h"
#include "tools/data/scores.h"
#include "tools/driver/opened_bundle.h"

namespace hoist {
namespace {

// NAME=FILE; names may hold "=", so the split is the one that leaves an input's name.
std::pair<std::string, std::string> split_input(const std::string& text, const BundleRunner& bundle) {
  for (size_t i = text.find('='); i != std::string::npos; i = text.find('=', i + 1)) {
    for (const ArrayInfo& input : bundle.inputs()) {
      if (input.name == text.substr(0, i)) return {text.substr(0, i), text.substr(i + 1)};
    }
  }
  const size_t first = text.find('=');
  return {text.substr(0, first), first == std::string::npos ? "" : text.substr(first + 1)};
}

Result<Tensor> read_input(const std::string& file, const ArrayInfo& input, const ImageOptions& images) {
  const ValueInfo info = {input.name, input.scalar, input.shape};
  if (!is_image(file) && !is_sound(file) && !is_stream(file, info)) return read_tensor(file);
  return read_media(file, info, images);
}

void warn_of_numbers(const std::string& where, const Tensor& tensor) {
  const int64_t bad = count_not_finite(tensor);
  if (bad > 0)
    print_message("warning", fmt::format("{} has {} NaN or infinities among {} elements", where, bad, tensor.size()));
}

// The files as tensors, by input; images and sounds take the shape of the specialisation in use.
Result<std::vector<std::optional<Tensor>>> read_inputs(const BundleRunner& bundle, const Options& command,
                                                       Diagnostics& problems) {
  std::vector<std::optional<Tensor>> out(bundle.inputs().size());
  std::vector<bool> given(out.size(), false);
  for (const std::string& text : command.inputs) {
    const bool is_alone = text.find('=') == std::string::npos && bundle.inputs().size() == 1;
    if (text.find('=') == std::string::npos && !is_alone)
      return usage_error("--input " + text, "is not NAME=FILE",
                         fmt::format("there are {} inputs; hoist inspect lists them", bundle.inputs().size()));
    const auto [name, file] = is_alone ? std::pair(bundle.inputs().front().name, text) : split_input(text, bundle);
    auto index = input_called(bundle, name);
    if (!index.ok()) {
      problems.push_back(index.errors().front());
      continue;
    }
    if (given[*index]) return usage_error("--input " + name, "is given twice");
    if (file.empty()) return usage_error("--input " + text, "names no file");
    given[*index] = true;
    auto tensor = read_input(file, bundle.inputs()[*index], as_stored(bundle, *index, command.images));
    if (tensor)
      out[*index] = std::move(*tensor);
    else
      problems.insert(problems.end(), tensor.errors().begin(), tensor.errors().end());
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const ArrayInfo& input = bundle.inputs()[i];
    if (!given[i])
      problems.push_back({"input " + input.name, "is not given",
                          "add --input " + input.name + "=FILE with " + type_text(input.scalar, input.shape)});
  }
  return out;
}

using Inputs = std::vector<std::optional<Tensor>>;

// The number of runs: the extent of the first axis that an input has beyond its own; 1 without --sequence.
Result<int64_t> count_runs(const BundleRunner& bundle, const Options& command, const Inputs& inputs,
                           std::vector<bool>& varies) {
  varies.assign(inputs.size(), false);
  if (!command.sequence) return 1;
  std::optional<int64_t> runs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int64_t>& shape = inputs[i]->shape();
    varies[i] = shape.size() == bundle.inputs()[i].shape.size() + 1;
    if (!varies[i]) continue;
    if (runs.value_or(shape[0]) != shape[0])
      return Diagnostic{"input " + bundle.inputs()[i].name,
                        fmt::format("has {} runs, and another input {}", shape[0], *runs), ""};
    runs = shape[0];
  }
  if (!runs)
    return Diagnostic{"--sequence", "no input has an axis more than the bundle's, which counts the runs",
                      "stack the inputs of the runs along a first axis"};
  if (*runs < 1) return Diagnostic{"--sequence", "the inputs have no runs", ""};
  return *runs;
}

// Part `index` of the first axis.
Result<Tensor> part_of(const Tensor& whole, int64_t index, const std::string& where) {
  Tensor part(whole.scalar(), {whole.shape().begin() + 1, whole.shape().end()});
  const size_t bytes = part.bytes().size();
  if (bytes * static_cast<size_t>(whole.shape()[0]) != whole.bytes().size() || whole.scalar() == Scalar::string)
    return Diagnostic{where, "its parts are no whole bytes, or strings", "run them one by one with --load-states"};
  std::copy_n(whole.data() + bytes * static_cast<size_t>(index), bytes, part.data());
  return part;
}

Result<Tensor> stacked(const std::vector<Tensor>& parts, const std::string& where) {
  std::vector<int64_t> shape = parts.front().shape();
  shape.insert(shape.begin(), static_cast<int64_t>(parts.size()));
  Tensor out(parts.front().scalar(), shape);
  const size_t bytes = parts.front().bytes().size();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].shape() != parts.front().shape() || bytes * parts.size() != out.bytes().size() ||
        out.scalar() == Scalar::string)
      return Diagnostic{where, "cannot be stacked: its shape depends on data, or its elements are no whole bytes",
                        "run them one by one with --load-states"};
    std::copy_n(parts[i].data(), bytes, out.data() + i * bytes);
  }
  return out;
}

// Sets the inputs of a run. `varies` says which are parts of the given tensors.
Result<Nothing> set_inputs(BundleRunner& bundle, const Inputs& inputs, const std::vector<bool>& varies, int64_t run) {
  Diagnostics problems;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string where = "input " + bundle.inputs()[i].name;
    auto part = varies[i] ? part_of(*inputs[i], run, where) : Result<Tensor>(*inputs[i]);
    auto accepted = part ? bundle.set_input(i, *part) : Result<Nothing>(part.errors());
    if (!accepted) problems.insert(problems.end(), accepted.errors().begin(), accepted.errors().end());
  }
  if (!problems.empty()) return problems;
  return Nothing{};
}

// The outputs of the run, or of the runs of a sequence.
Result<std::vector<Tensor>> outputs_of_runs(BundleRunner& bundle, const Options& command) {
  Diagnostics problems;
  HOIST_TRY(const Inputs inputs, read_inputs(bundle, command, problems));
  for (size_t i = 0; i < inputs.size() && !problems.empty() && !command.sequence; ++i) {
    auto accepted = inputs[i] ? bundle.set_input(i, *inputs[i]) : Result<Nothing>(Nothing{});
    if (!accepted) problems.insert(problems.end(), accepted.errors().begin(), accepted.errors().end());
  }
  if (!problems.empty()) return problems;
  std::vector<bool> varies;
  HOIST_TRY(const int64_t runs, count_runs(bundle, command, inputs, varies));
  for (size_t i = 0; i < inputs.size(); ++i) {
    warn_of_numbers("input " + bundle.inputs()[i].name, *inputs[i]);
    const std::vector<int64_t>& shape = inputs[i]->shape();
    if (bundle.has_sizes())
      HOIST_TRY_VOID(bundle.choose_input_shape(i, {shape.begin() + (varies[i] ? 1 : 0), shape.end()}));
  }
  if (!command.load_states.empty()) HOIST_TRY_VOID(bundle.load_states(command.load_states));
  std::vector<std::vector<Tensor>> parts(bundle.outputs().size());
  for (int64_t run = 0; run < runs; ++run) {
    HOIST_TRY_VOID(set_inputs(bundle, inputs, varies, run));
    HOIST_TRY_VOID(of_run(bundle, bundle.run()));
    for (size_t i = 0; i < parts.size(); ++i) {
      HOIST_TRY(Tensor output, of_run(bundle, bundle.output(i)));
      parts[i].push_back(std::move(output));
    }
  }
  if (!command.save_states.empty()) HOIST_TRY_VOID(bundle.save_states(command.save_states));
  std::vector<Tensor> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    HOIST_TRY(Tensor whole, command.sequence ? stacked(parts[i], "output " + bundle.outputs()[i].name)
                                             : Result<Tensor>(std::move(parts[i].front())));
    out.push_back(std::move(whole));
  }
  return out;
}

// The classes with the highest scores of each sample. With names, the output has one class per name; without names, its
// last dimension has the classes. Returns false for another output.
bool show_best(const Options& command, const std::vector<std::string>& names, const Tensor& scores, std::string& lines,
               nlohmann::ordered_json& answer) {
  const bool is_number = scores.scalar() != Scalar::string && !scores.shape().empty();
  const int64_t classes = !names.empty() ? static_cast<int64_t>(names.size()) : is_number ? scores.shape().back() : 0;
  if (classes == 0) return false;
  const bool fits = !scores.shape().empty() && scores.size() > 0 && scores.size() % classes == 0 &&
                    std::find(scores.shape().begin(), scores.shape().end(), classes) != scores.shape().end();
  if (!fits) return false;
  for (int64_t first = 0; first < scores.size(); first += classes) {
    nlohmann::ordered_json best = nlohmann::json::array();
    for (const ScoredClass& each : best_classes(scores, first, classes, command.best)) {
      lines += fmt::format("  {:10.4g}  {}\n", each.score, printable(class_text(each.label, names)));
      best.push_back({{"label", each.label}, {"score", each.score}});
      if (!names.empty()) best.back()["name"] = names[static_cast<size_t>(each.label)];
    }
    answer["best"].push_back(std::move(best));
  }
  return true;
}

Result<std::vector<std::string>> output_files(const BundleRunner& bundle) {
  std::vector<std::string> out;
  std::map<std::string, std::string> owners;
  for (const ArrayInfo& output : bundle.outputs()) {
    std::string file = file_name(output.name) + (numpy_has(output.scalar) ? ".npy" : ".pb");
    auto [place, first] = owners.emplace(file, output.name);
    if (!first)
      return Diagnostic{"outputs " + place->second + " and " + output.name, "would both be written to " + file,
                        "rename one in the model"};
    out.push_back(std::move(file));
  }
  return out;
}

}  // namespace

Result<ExitCode> commands::run(const Options& command) {
  HOIST_TRY(BundleRunner bundle, open_bundle(command.subject, command.run));
  HOIST_TRY(std::vector<std::string> names, output_files(bundle));
  std::vector<std::string> classes;
  bool any_best = false;
  if (!command.labels.empty()) {
    HOIST_TRY(classes, read_class_names(command.labels));
  }
  HOIST_TRY(const std::vector<Tensor> outputs, outputs_of_runs(bundle, command));
  std::optional<FileSet> files;
  if (!command.output.empty()) {
    HOIST_TRY(FileSet begun, FileSet::begin(command.output));
    files.emplace(std::move(begun));
  }
  std::string lines;
  nlohmann::ordered_json answer = {{"device", bundle.device_name()}, {"outputs", nlohmann::json::array()}};
  for (size_t i = 0; i < names.size(); ++i) {
    const Tensor& tensor = outputs[i];
    const std::string& name = bundle.outputs()[i].name;
    lines += fmt::format("{}: {}", printable(name), type_text(tensor.scalar(), tensor.shape()));
    answer["outputs"].push_back(array_json(name, tensor.scalar(), tensor.shape()));
    if (files) {
      // The user knows the file by its final name only.
      const std::string file = (std::filesystem::path(command.output) / names[i]).string();
      const std::filesystem::path path = files->reserve(names[i]);
      auto written = numpy_has(tensor.scalar()) ? write_npy(path, tensor) : write_tensor_proto(path, name, tensor);
      if (!written) return Diagnostic{file, written.errors()[0].what};
      lines += " in " + file;
      answer["outputs"].back()["file"] = file;
    }
    lines += "\n";
    answer["outputs"].back()["not_finite"] = count_not_finite(tensor);
    warn_of_numbers("output " + name, tensor);
    if (!classes.empty() || command.is_given("--top"))
      any_best |= show_best(command, classes, tensor, lines, answer["outputs"].back());
  }
  if (files) HOIST_TRY_VOID(files->commit());
  say(lines);
  if (!classes.empty() && !any_best)
    print_message("warning",
                  fmt::format("{} names {} classes, and no output has as many scores", command.labels, classes.size()));
  return done(answer_json(command.json, answer));
}

}  // namespace hoist
