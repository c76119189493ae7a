// Data for training: samples with what the model should give for each, and batches of them in a seeded order, with
// seeded changes of images. The same seed gives the same batches on every machine. For calibration use samples.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/program/program.h"
#include "tools/data/samples.h"

namespace hoist {

/// The inputs of one step: their first axis runs over the samples of a batch.
struct BatchShape {
  std::vector<ValueInfo> inputs;
  ValueInfo target;     ///< labels are i64; -1 stands for no label
  int64_t classes = 0;  ///< of labels; 0: targets are numbers
};

struct TrainingData {
  std::vector<std::vector<Tensor>> inputs;  ///< by sample, then by input; the first axis has extent 1
  std::vector<Tensor> targets;              ///< by sample; empty if there are none
  std::string hash;
  int64_t count() const { return static_cast<int64_t>(inputs.size()); }
};

/// Reads an .npz, or a folder of images or sounds, as read_samples does; targets are the array `labels` or `target` of
/// the .npz, the folder's labels, or the file `labels` (.npy or .pb) with a first axis over the samples. Errors: all
/// errors of read_samples, other shapes or counts, labels that are not below the number of classes, numbers that are
/// not finite. With `is_judged` false there are no targets.
Result<TrainingData> read_training_data(const std::filesystem::path& data, const std::string& labels,
                                        const BatchShape& shape, const ImageOptions& images, bool is_judged = true);

/// The last of the samples in a seeded order are kept apart; both parts have at least one sample.
struct SplitTrainingData {
  TrainingData first, kept_apart;
};
Result<SplitTrainingData> split_training_data(TrainingData data, double share, uint64_t seed);

/// Changes of images, drawn for each sample and epoch.
struct Augmentation {
  bool flip = false;  ///< left and right, for half of the samples
  int64_t crop = 0;   ///< a window of the image's size after this number of zeros on each side
};
/// Reads the words flip and crop=N. Errors: other words; inputs that are no images of [N][C][H][W].
Result<Augmentation> augmentation_of(const std::vector<std::string>& words, const BatchShape& shape);

/// A seeded order of all samples for an epoch.
std::vector<int64_t> order_of_epoch(int64_t count, uint64_t seed, int64_t epoch);

/// One sample of a tensor whose first axis runs over samples, with a first axis of one element.
Tensor sample_of(const Tensor& tensor, int64_t sample);

/// The inputs of a batch of these samples, followed by the target if there are any. If they do not fill the batch, the
/// last sample is repeated, without a label.
std::vector<Tensor> batch_of(const TrainingData& data, const std::vector<int64_t>& samples, const BatchShape& shape);
/// The same with changes of images for this epoch.
std::vector<Tensor> batch_of(const TrainingData& data, const std::vector<int64_t>& samples, const BatchShape& shape,
                             const Augmentation& augmentation, uint64_t seed, int64_t epoch);

}  // namespace hoist
