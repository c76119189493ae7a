// hoist run: one run of a bundle, inputs from files, outputs shown and, if requested, written to files.
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

Result<Nothing> set_inputs(BundleRunner& bundle, const Options& command) {
  Diagnostics problems;
  HOIST_TRY(const auto inputs, read_inputs(bundle, command, problems));
  if (bundle.specialisations().size() > 1) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i]) HOIST_TRY_VOID(bundle.choose_input_shape(i, inputs[i]->shape()));
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    warn_of_numbers("input " + bundle.inputs()[i].name, *inputs[i]);
    auto accepted = bundle.set_input(i, *inputs[i]);
    if (!accepted) problems.insert(problems.end(), accepted.errors().begin(), accepted.errors().end());
  }
  if (!problems.empty()) return problems;
  return Nothing{};
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
  HOIST_TRY_VOID(set_inputs(bundle, command));
  HOIST_TRY_VOID(of_run(bundle, bundle.run()));
  std::optional<FileSet> files;
  if (!command.output.empty()) {
    HOIST_TRY(FileSet begun, FileSet::begin(command.output));
    files.emplace(std::move(begun));
  }
  std::string lines;
  nlohmann::ordered_json answer = {{"device", bundle.device_name()}, {"outputs", nlohmann::json::array()}};
  for (size_t i = 0; i < names.size(); ++i) {
    HOIST_TRY(Tensor tensor, of_run(bundle, bundle.output(i)));
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
