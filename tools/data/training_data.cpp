#include "tools/data/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "ir/base/seeded.h"
#include "tools/data/data.h"
#include "tools/data/npy.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

std::vector<ValueInfo> one_sample(std::vector<ValueInfo> inputs) {
  for (ValueInfo& input : inputs) {
    if (!input.shape.empty()) input.shape[0] = 1;
  }
  return inputs;
}

// The array of targets in the .npz; nothing if it has none.
Result<std::optional<Tensor>> targets_in(const fs::path& data, bool is_classes) {
  std::optional<Tensor> out;
  if (data.extension() != ".npz") return out;
  HOIST_TRY(const NpzFile file, NpzFile::open(data));
  for (const char* name : {is_classes ? "labels" : "target", "labels"}) {
    if (!file.arrays().contains(name)) continue;
    HOIST_TRY(out, file.read(name));
    return out;
  }
  return out;
}

// The class of a sample, or the error.
Result<int64_t> checked_label(int64_t label, int64_t sample, int64_t classes, const std::string& where) {
  if (label >= -1 && label < classes) return label;
  return Diagnostic{where, fmt::format("sample {} has label {}, and there are {} classes", sample, label, classes),
                    "classes count from 0; -1 is no label"};
}

Result<std::vector<Tensor>> split_targets(const Tensor& all, int64_t count, const BatchShape& shape,
                                          const std::string& where) {
  std::vector<int64_t> wanted = shape.target.shape;
  if (wanted.empty()) wanted = {1};
  wanted[0] = count;
  const bool is_labels = shape.classes > 0;
  if (all.shape() != wanted || (is_labels ? !is_integer(all.scalar()) : !is_float(all.scalar())))
    return Diagnostic{where,
                      "is " + type_text(all.scalar(), all.shape()) + ", expected " +
                          (is_labels ? "integers, " : "floats, ") + extents_text(wanted),
                      "its first axis counts the samples"};
  std::vector<int64_t> one = wanted;
  one[0] = 1;
  const int64_t each = element_count(one);
  std::vector<Tensor> out;
  for (int64_t i = 0; i < count; ++i) {
    Tensor target(shape.target.scalar, one);
    for (int64_t k = 0; k < each; ++k) {
      if (is_labels) {
        HOIST_TRY(const int64_t label, checked_label(all.integer_at(i * each + k), i, shape.classes, where));
        target.set_integer(k, label);
      } else {
        const double value = all.float_at(i * each + k);
        if (!std::isfinite(value))
          return Diagnostic{where, fmt::format("sample {} holds a value that is not finite", i), "clean the data"};
        target.set_float(k, value);
      }
    }
    out.push_back(std::move(target));
  }
  return out;
}

uint64_t mixed(uint64_t seed, uint64_t a, uint64_t b = 0) {
  uint64_t state = seed * 0x9E3779B97F4A7C15u + a;
  state = next_random(state) + b;
  return next_random(state);
}

// Copies one image of [C][H][W] elements, flipped and moved by (y, x); zeros come from outside.
void copy_image(const std::byte* from, std::byte* to, const std::vector<int64_t>& shape, size_t bytes, bool flip,
                int64_t y, int64_t x) {
  const int64_t height = shape[2], width = shape[3];
  for (int64_t c = 0; c < shape[1]; ++c) {
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const int64_t row = i + y, column = (flip ? width - 1 - j : j) + x;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        std::memcpy(to + static_cast<size_t>((c * height + i) * width + j) * bytes,
                    from + static_cast<size_t>((c * height + row) * width + column) * bytes, bytes);
      }
    }
  }
}

// The samples side by side; `copy` writes one of them.
template <class Copy>
Tensor side_by_side(const ValueInfo& info, size_t count, const Copy& copy) {
  Tensor out(info.scalar, info.shape);
  const size_t bytes = out.bytes().size() / static_cast<size_t>(std::max<int64_t>(1, info.shape[0]));
  std::byte* to = out.data();
  for (size_t i = 0; i < static_cast<size_t>(info.shape[0]); ++i)
    copy(std::min(i, count - 1), i >= count, to + i * bytes, bytes);
  return out;
}

}  // namespace

Result<TrainingData> read_training_data(const fs::path& data, const std::string& labels, const BatchShape& shape,
                                        const ImageOptions& images, bool is_judged) {
  const std::vector<ValueInfo> inputs = one_sample(shape.inputs);
  HOIST_TRY(Samples samples, read_samples(data, inputs, {.numbers = true, .images = images}));
  TrainingData out;
  out.hash = samples.hash;
  out.inputs = std::move(samples.runs);
  if (!is_judged) return out;
  const int64_t count = out.count();
  std::optional<Tensor> targets;
  std::string where = labels;
  if (!labels.empty()) {
    HOIST_TRY(targets, read_tensor(labels));
  } else {
    where = data.string() + (shape.classes > 0 ? ", labels" : ", target");
    HOIST_TRY(targets, targets_in(data, shape.classes > 0));
    if (!targets && shape.classes > 0 && !samples.labels.empty())
      targets = Tensor::of(Scalar::i64, {std::ssize(samples.labels)}, samples.labels);
  }
  if (!targets) return Diagnostic{where, "is not there", "--labels FILE gives it, --distill needs none"};
  HOIST_TRY(out.targets, split_targets(*targets, count, shape, where));
  return out;
}

Result<SplitTrainingData> split_training_data(TrainingData data, double share, uint64_t seed) {
  const auto apart = static_cast<int64_t>(std::llround(share * static_cast<double>(data.count())));
  if (apart < 1 || apart >= data.count())
    return Diagnostic{"--validation", fmt::format("keeps {} of {} samples apart", apart, data.count()),
                      "both parts need samples"};
  SplitTrainingData out;
  const std::vector<int64_t> order = order_of_epoch(data.count(), seed, -1);
  for (int64_t i = 0; i < data.count(); ++i) {
    TrainingData& part = i < data.count() - apart ? out.first : out.kept_apart;
    const auto at = static_cast<size_t>(order[static_cast<size_t>(i)]);
    part.inputs.push_back(std::move(data.inputs[at]));
    if (!data.targets.empty()) part.targets.push_back(std::move(data.targets[at]));
  }
  out.first.hash = out.kept_apart.hash = data.hash;
  return out;
}

Result<Augmentation> augmentation_of(const std::vector<std::string>& words, const BatchShape& shape) {
  Augmentation out;
  for (const std::string& word : words) {
    if (word == "flip") {
      out.flip = true;
      continue;
    }
    const char* begin = word.data() + std::min<size_t>(word.size(), 5);
    const char* stop = word.data() + word.size();
    const bool is_number = std::from_chars(begin, stop, out.crop).ptr == stop && begin != stop;
    if (!word.starts_with("crop=") || !is_number || out.crop < 1)
      return usage_error("--augment " + word, "is neither flip nor crop=N", "--augment flip,crop=4");
  }
  if (!words.empty() && (shape.inputs.size() != 1 || shape.inputs[0].shape.size() != 4))
    return usage_error("--augment", "needs one input of images, [N][C][H][W]", "leave it out");
  return out;
}

std::vector<int64_t> order_of_epoch(int64_t count, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), int64_t{0});
  uint64_t state = mixed(seed, static_cast<uint64_t>(epoch) + 2);
  for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[next_random(state) % i]);
  return out;
}

Tensor sample_of(const Tensor& tensor, int64_t sample) {
  std::vector<int64_t> shape = tensor.shape();
  const size_t bytes = tensor.bytes().size() / static_cast<size_t>(shape[0]);
  shape[0] = 1;
  Tensor out(tensor.scalar(), shape);
  std::memcpy(out.data(), tensor.data() + static_cast<size_t>(sample) * bytes, bytes);
  return out;
}

std::vector<Tensor> batch_of(const TrainingData& data, const std::vector<int64_t>& samples, const BatchShape& shape) {
  return batch_of(data, samples, shape, {}, 0, 0);
}

std::vector<Tensor> batch_of(const TrainingData& data, const std::vector<int64_t>& samples, const BatchShape& shape,
                             const Augmentation& augmentation, uint64_t seed, int64_t epoch) {
  std::vector<Tensor> out;
  const bool is_changed = augmentation.flip || augmentation.crop > 0;
  for (size_t k = 0; k < shape.inputs.size(); ++k) {
    const ValueInfo& info = shape.inputs[k];
    out.push_back(side_by_side(info, samples.size(), [&](size_t i, bool, std::byte* to, size_t bytes) {
      const std::byte* from = data.inputs[static_cast<size_t>(samples[i])][k].data();
      if (!is_changed) {
        std::memcpy(to, from, bytes);
        return;
      }
      uint64_t state = mixed(seed, static_cast<uint64_t>(epoch) + 2, static_cast<uint64_t>(samples[i]) + 1);
      const bool flip = augmentation.flip && next_random(state) % 2 == 1;
      const auto moved = [&] {
        const auto range = static_cast<uint64_t>(2 * augmentation.crop + 1);
        return static_cast<int64_t>(next_random(state) % range) - augmentation.crop;
      };
      const int64_t y = moved(), x = moved();
      const auto elements = static_cast<size_t>(element_count(info.shape) / info.shape[0]);
      copy_image(from, to, info.shape, bytes / elements, flip, y, x);
    }));
  }
  if (data.targets.empty()) return out;
  ValueInfo target = shape.target;
  if (target.shape.empty()) target.shape = {1};
  Tensor targets = side_by_side(target, samples.size(), [&](size_t i, bool is_repeated, std::byte* to, size_t bytes) {
    if (is_repeated && shape.classes > 0)
      std::memset(to, 0xff, bytes);  // -1
    else
      std::memcpy(to, data.targets[static_cast<size_t>(samples[i])].data(), bytes);
  });
  out.push_back(targets.reshaped(shape.target.shape));
  return out;
}

}  // namespace hoist
