#include "tools/data/samples.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <sstream>
#include <unordered_set>

#include "ir/text/parse/near_miss.h"
#include "tools/base/files.h"
#include "tools/data/data.h"
#include "tools/data/npy.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;
using Headers = std::map<std::string, NpyHeader>;

constexpr char labels_name[] = "labels";

/// The layout of an input's data: samples are contiguous, and `samples_a_run` of them fill the input.
struct Feed {
  Tensor data;
  int64_t samples = 0;
  int64_t samples_a_run = 1;
};

Diagnostic no_array(const Headers& arrays, const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  std::string listed;
  for (const auto& [known, header] : arrays) {
    names.push_back(known);
    listed += (listed.empty() ? "" : ", ") + known;
  }
  return {where, "has no array " + name,
          did_you_mean(name, names, "it has " + listed + "; name the arrays as the model's inputs")};
}

/// The layout that the data of this input will have; reads no data.
Result<Feed> feed_for(const ValueInfo& input, const Headers& arrays, const std::string& where) {
  const auto found = arrays.find(input.name);
  if (found == arrays.end()) return no_array(arrays, input.name, where);
  const NpyHeader& data = found->second;
  const std::vector<int64_t>& shape = data.shape;
  if (shape.empty())
    return Diagnostic{where + ", " + input.name, "is a single number", "its first axis is the samples"};
  const std::vector<int64_t> sample(shape.begin() + 1, shape.end());
  const bool batched = !input.shape.empty() && input.shape[0] > 0 &&
                       std::vector<int64_t>(input.shape.begin() + 1, input.shape.end()) == sample;
  if (data.scalar != input.scalar || (!batched && sample != input.shape)) {
    return Diagnostic{
        where + ", " + input.name,
        "is " + type_text(data.scalar, shape) + ", the model takes " + type_text(input.scalar, input.shape),
        "convert the data; the leading axis counts samples"};
  }
  return Feed{{}, shape[0], batched ? input.shape[0] : 1};
}

Tensor slice_of(const Feed& feed, const ValueInfo& input, int64_t first) {
  Tensor out(input.scalar, input.shape);
  const size_t bytes = out.bytes().size() / static_cast<size_t>(feed.samples_a_run);
  std::byte* to = out.data();
  for (int64_t i = 0; i < feed.samples_a_run; ++i) {
    const int64_t from = std::min(first + i, feed.samples - 1);
    if (bytes != 0)
      std::memcpy(to + static_cast<size_t>(i) * bytes, feed.data.data() + static_cast<size_t>(from) * bytes, bytes);
  }
  return out;
}

Result<std::vector<int64_t>> read_labels(const NpzFile& file, int64_t samples, const SampleNeeds& needs,
                                         const std::string& where) {
  const auto found = file.arrays().find(labels_name);
  if (found == file.arrays().end()) {
    if (!needs.labels) return std::vector<int64_t>{};
    return Diagnostic{where, "has no array labels", "save the right classes as labels, one integer per sample"};
  }
  const NpyHeader& header = found->second;
  const std::string name = where + ", " + labels_name;
  if (!is_integer(header.scalar) || header.shape.size() != 1) {
    return Diagnostic{name, "is " + type_text(header.scalar, header.shape) + ", expected one integer per sample", ""};
  }
  if (header.shape[0] != samples) {
    return Diagnostic{name, fmt::format("has {} labels for {} samples", header.shape[0], samples),
                      "give one label per sample"};
  }
  HOIST_TRY(const Tensor labels, file.read(labels_name));
  std::vector<int64_t> out = labels.as_integers();
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] < 0) return Diagnostic{name, fmt::format("sample {} has label {}", i, out[i]), "classes count from 0"};
  }
  return out;
}

Result<Samples> from_arrays(const NpzFile& file, std::span<const ValueInfo> inputs, const SampleNeeds& needs,
                            const std::string& where) {
  std::vector<Feed> feeds;
  for (const ValueInfo& input : inputs) {
    HOIST_TRY(Feed feed, feed_for(input, file.arrays(), where));
    feeds.push_back(feed);
    if (feed.samples != feeds[0].samples) {
      return Diagnostic{where + ", " + input.name,
                        fmt::format("has {} samples, input {} has {}", feed.samples, inputs[0].name, feeds[0].samples),
                        ""};
    }
    if (feed.samples_a_run != feeds[0].samples_a_run) {
      return Diagnostic{"input " + input.name, "takes another number of samples than input " + inputs[0].name, ""};
    }
  }
  Samples out;
  out.count = feeds[0].samples;
  out.samples_a_run = feeds[0].samples_a_run;
  if (out.count == 0) return Diagnostic{where, "has no samples", ""};
  HOIST_TRY(out.labels, read_labels(file, out.count, needs, where));
  for (size_t i = 0; i < feeds.size(); ++i) {
    HOIST_TRY(feeds[i].data, file.read(inputs[i].name));
  }
  for (int64_t first = 0; first < out.count; first += out.samples_a_run) {
    std::vector<Tensor> run;
    for (size_t i = 0; i < feeds.size(); ++i) run.push_back(slice_of(feeds[i], inputs[i], first));
    out.runs.push_back(std::move(run));
  }
  return out;
}

Result<Samples> from_folders(const fs::path& folder, std::span<const ValueInfo> inputs, const SampleNeeds& needs) {
  if (needs.labels) {
    return Diagnostic{folder.string(), "is a folder, not an .npz",
                      "labels are an array in the same .npz as the inputs"};
  }
  HOIST_TRY(std::vector<fs::path> sets, data_sets_in(folder));
  Samples out;
  for (const fs::path& path : sets) {
    HOIST_TRY(DataSet set, read_data_set(path, false));
    if (set.inputs.size() != inputs.size()) {
      return Diagnostic{path.string(), fmt::format("has {} inputs, the model {}", set.inputs.size(), inputs.size()),
                        ""};
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& given = set.inputs[i];
      if (given.scalar() == inputs[i].scalar && given.shape() == inputs[i].shape) continue;
      return Diagnostic{path.string() + fmt::format(", input_{}", i),
                        "is " + type_text(given.scalar(), given.shape()) + ", the model takes " +
                            type_text(inputs[i].scalar, inputs[i].shape),
                        ""};
    }
    out.runs.push_back(std::move(set.inputs));
  }
  out.count = static_cast<int64_t>(out.runs.size());
  return out;
}

// ---- Folders of images and sounds -----------------------------------------------------------------------------------

struct LabelledFile {
  fs::path file;
  std::string label;  // "" if unlabelled
};

bool is_media(const fs::path& file) { return is_image(file) || is_sound(file); }

Result<std::vector<fs::path>> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed))
    out.push_back(entry->path());
  if (failed) return Diagnostic{folder.string(), "cannot be read: " + failed.message(), ""};
  std::sort(out.begin(), out.end());
  return out;
}

// Lines like "cat.jpg 3" and "cat.jpg,tabby cat": the file name ends at the first comma, or at a space if there is
// none.
Result<std::map<std::string, std::string>> read_label_lines(const fs::path& path) {
  HOIST_TRY(const std::string text, read_file(path, size_t{1} << 28));
  std::map<std::string, std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const size_t comma = line.find(','), cut = comma != std::string::npos ? comma : line.find_first_of(" \t");
    const size_t label = cut == std::string::npos ? cut : line.find_first_not_of(" \t", cut + 1);
    if (label == std::string::npos) return Diagnostic{path.string(), "has the line " + line, "write FILE LABEL"};
    out[line.substr(0, cut)] = line.substr(label);
  }
  return out;
}

// Empty if the folder has no labels.
Result<std::vector<LabelledFile>> labelled_files(const fs::path& folder) {
  std::vector<LabelledFile> out;
  std::map<std::string, std::string> labels;
  std::error_code ignored;
  HOIST_TRY(const std::vector<fs::path> entries, sorted_entries(folder));
  if (fs::exists(folder / "labels.txt", ignored)) {
    HOIST_TRY(labels, read_label_lines(folder / "labels.txt"));
  }
  for (const fs::path& entry : entries) {
    if (is_media(entry) && fs::is_regular_file(entry, ignored)) {
      const auto found = labels.find(entry.filename().string());
      if (!labels.empty() && found == labels.end())
        return Diagnostic{entry.string(), "has no line in labels.txt", "write FILE LABEL for each file"};
      out.push_back({entry, found == labels.end() ? "" : found->second});
    }
    if (!fs::is_directory(entry, ignored)) continue;
    HOIST_TRY(const std::vector<fs::path> inside, sorted_entries(entry));
    for (const fs::path& file : inside) {
      if (is_media(file) && fs::is_regular_file(file, ignored)) out.push_back({file, entry.filename().string()});
    }
  }
  return out;
}

bool is_label_number(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
}

Result<std::vector<int64_t>> numbers_of_labels(const std::vector<LabelledFile>& files,
                                               const std::vector<std::string>& classes) {
  std::vector<std::string> known = classes;
  if (known.empty() &&
      !std::all_of(files.begin(), files.end(), [](const auto& each) { return is_label_number(each.label); })) {
    for (const LabelledFile& each : files) known.push_back(each.label);
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
  }
  std::vector<int64_t> out;
  for (const LabelledFile& each : files) {
    if (const auto found = std::find(known.begin(), known.end(), each.label); found != known.end())
      out.push_back(found - known.begin());
    else if (is_label_number(each.label))
      out.push_back(std::stoll(each.label));
    else
      return Diagnostic{each.file.string(), "is of class " + each.label + ", which is unknown",
                        did_you_mean(each.label, known)};
  }
  return out;
}

Result<Samples> from_media(const std::vector<LabelledFile>& files, std::span<const ValueInfo> inputs,
                           const SampleNeeds& needs, const std::string& where) {
  if (inputs.size() != 1)
    return Diagnostic{where, fmt::format("is a folder of images or sounds, and the model has {} inputs", inputs.size()),
                      "give an .npz with an array for each input"};
  const bool labelled = std::none_of(files.begin(), files.end(), [](const auto& each) { return each.label.empty(); });
  if (needs.labels && !labelled)
    return Diagnostic{where, "has files without a label",
                      "put them into one folder per class, or name them in labels.txt"};
  Samples out;
  out.count = static_cast<int64_t>(files.size());
  if (labelled) {
    HOIST_TRY(out.labels, numbers_of_labels(files, needs.classes));
  }
  const ValueInfo& input = inputs[0];
  ValueInfo one = input;
  const bool images = is_image(files.front().file);  // an image may have three dimensions and is one sample then
  const bool batched = input.shape.size() > (images ? 3 : 1);
  out.samples_a_run = batched ? input.shape[0] : 1;
  if (batched) one.shape[0] = 1;
  for (int64_t first = 0; first < out.count; first += out.samples_a_run) {
    Tensor run(input.scalar, input.shape);
    const size_t bytes = run.bytes().size() / static_cast<size_t>(out.samples_a_run);
    for (int64_t i = 0; i < out.samples_a_run; ++i) {
      const auto at = static_cast<size_t>(std::min(first + i, out.count - 1));
      HOIST_TRY(const Tensor sample, read_media(files[at].file, one, needs.images));
      std::memcpy(run.data() + static_cast<size_t>(i) * bytes, sample.data(), bytes);
    }
    out.runs.push_back({std::move(run)});
  }
  return out;
}

Result<Nothing> check_numbers(const Samples& samples, std::span<const ValueInfo> inputs, const std::string& where) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_float(inputs[i].scalar)) continue;
    bool zeros = true;
    for (size_t r = 0; r < samples.runs.size(); ++r) {
      const Tensor& tensor = samples.runs[r][i];
      for (int64_t k = 0; k < tensor.size(); ++k) {
        const double value = tensor.float_at(k);
        zeros = zeros && value == 0;
        if (std::isfinite(value)) continue;
        const auto first = static_cast<int64_t>(r) * samples.samples_a_run;
        return Diagnostic{
            where + ", " + inputs[i].name,
            fmt::format("sample {} holds {}", first + k / std::max<int64_t>(1, tensor.size() / samples.samples_a_run),
                        std::isnan(value) ? "NaN" : "an infinity"),
            "clean the data: ranges and errors would be meaningless"};
      }
    }
    if (zeros) return Diagnostic{where + ", " + inputs[i].name, "is zero throughout", "give real data"};
  }
  return Nothing{};
}

std::string hash_of(const Samples& samples) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  HOIST_CHECK(state != nullptr && XXH3_64bits_reset(state.get()) == XXH_OK, "no memory for a hash");
  for (const std::vector<Tensor>& run : samples.runs) {
    for (const Tensor& tensor : run) XXH3_64bits_update(state.get(), tensor.data(), tensor.bytes().size());
  }
  XXH3_64bits_update(state.get(), samples.labels.data(), samples.labels.size() * sizeof(int64_t));
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

// The inputs of each counted sample.
std::vector<uint64_t> content_hashes(const Samples& samples) {
  std::vector<uint64_t> out;
  for (const std::vector<Tensor>& run : samples.runs) {
    for (int64_t i = 0; i < samples.samples_a_run && static_cast<int64_t>(out.size()) < samples.count; ++i) {
      uint64_t hash = 0;
      for (const Tensor& tensor : run) {
        const size_t bytes = tensor.bytes().size() / static_cast<size_t>(samples.samples_a_run);
        hash = XXH3_64bits_withSeed(tensor.data() + static_cast<size_t>(i) * bytes, bytes, hash);
      }
      out.push_back(hash);
    }
  }
  return out;
}

}  // namespace

int64_t count_samples_among(const Samples& samples, const Samples& others) {
  const std::vector<uint64_t> there = content_hashes(others), here = content_hashes(samples);
  const std::unordered_set<uint64_t> known(there.begin(), there.end());
  return std::count_if(here.begin(), here.end(), [&](uint64_t hash) { return known.contains(hash); });
}

Result<Samples> read_samples(const fs::path& data, std::span<const ValueInfo> inputs, const SampleNeeds& needs) {
  if (inputs.empty()) return Diagnostic{data.string(), "cannot be used: the model has no inputs", ""};
  std::error_code ignored;
  Samples out;
  if (fs::is_directory(data, ignored)) {
    HOIST_TRY(const std::vector<LabelledFile> files, labelled_files(data));
    HOIST_TRY(out, files.empty() ? from_folders(data, inputs, needs) : from_media(files, inputs, needs, data.string()));
  } else {
    HOIST_TRY(const NpzFile file, NpzFile::open(data));
    HOIST_TRY(out, from_arrays(file, inputs, needs, data.string()));
  }
  if (needs.numbers) HOIST_TRY_VOID(check_numbers(out, inputs, data.string()));
  out.hash = hash_of(out);
  return out;
}

Result<Nothing> check_labels(const Samples& samples, int64_t classes, const std::string& output,
                             const std::string& data) {
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    if (samples.labels[i] < classes) continue;
    return Diagnostic{
        data + ", " + labels_name,
        fmt::format("sample {} has label {}, output {} has {} classes", i, samples.labels[i], output, classes), ""};
  }
  return Nothing{};
}

Samples part_of(const Samples& samples, size_t first, size_t end) {
  Samples out;
  const auto at = [](size_t i) { return static_cast<std::ptrdiff_t>(i); };
  out.runs.assign(samples.runs.begin() + at(first), samples.runs.begin() + at(end));
  out.samples_a_run = samples.samples_a_run;
  const int64_t from = static_cast<int64_t>(first) * out.samples_a_run;
  const int64_t to = std::min(samples.count, static_cast<int64_t>(end) * out.samples_a_run);
  out.count = to - from;
  if (!samples.labels.empty()) out.labels.assign(samples.labels.begin() + from, samples.labels.begin() + to);
  out.hash = hash_of(out);
  return out;
}

Result<Nothing> write_samples(const fs::path& path, const Samples& samples, std::span<const ValueInfo> inputs) {
  std::map<std::string, Tensor> arrays;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo& input = inputs[i];
    if (!numpy_has(input.scalar))
      return Diagnostic{"input " + input.name, "is of a type that numpy does not have: " + type_text(input.scalar, {}),
                        ""};
    // The first axis holds the samples of a run; with one sample per run, all axes belong to the sample.
    std::vector<int64_t> shape = input.shape;
    if (samples.samples_a_run == 1) shape.insert(shape.begin(), 1);
    shape[0] = samples.count;
    Tensor all(input.scalar, shape);
    const size_t bytes = samples.count == 0 ? 0 : all.bytes().size() / static_cast<size_t>(samples.count);
    for (int64_t k = 0; k < samples.count && bytes != 0; ++k) {
      const Tensor& run = samples.runs[static_cast<size_t>(k / samples.samples_a_run)][i];
      std::memcpy(all.data() + static_cast<size_t>(k) * bytes,
                  run.data() + static_cast<size_t>(k % samples.samples_a_run) * bytes, bytes);
    }
    arrays.emplace(input.name, std::move(all));
  }
  if (!samples.labels.empty())
    arrays.insert_or_assign(labels_name,
                            Tensor::of(Scalar::i64, {static_cast<int64_t>(samples.labels.size())}, samples.labels));
  return write_npz(path, arrays);
}

Result<SplitSamples> keep_apart(const Samples& samples, const std::string& data) {
  const size_t runs = samples.runs.size();
  if (runs < 2) {
    return Diagnostic{data, "has too few samples to reserve some for verification",
                      "give more samples, or --verify-data"};
  }
  const size_t first = runs - std::max<size_t>(1, runs / 4);
  return SplitSamples{part_of(samples, 0, first), part_of(samples, first, runs)};
}

}  // namespace hoist
