// Data for models: test cases in the layout of the ONNX backend tests, and the comparison of outputs with expected
// values.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {

/// test_data_set_K of a case: input_I.pb and output_I.pb (or .npy). Members of a sequence are separate entries, as
/// among the inputs and outputs of a program.
struct DataSet {
  std::filesystem::path folder;
  std::vector<Tensor> inputs, outputs;
  RecordedLayout layout = {};  ///< layout of the inputs, one per file
};

/// The folders test_data_set_K in `folder`, in the order of K, or `folder` itself if it holds input_0 or output_0.
Result<std::vector<std::filesystem::path>> data_sets_in(const std::filesystem::path& folder);
/// Reads one data set. With `need_outputs`, a folder without output_0 is an error. `kinds` are the model's; without
/// them every file holds a tensor.
Result<DataSet> read_data_set(const std::filesystem::path& folder, bool need_outputs = true,
                              const ValueKinds& kinds = {});

/// The result of a comparison. An element agrees if |got - expected| <= absolute + relative * |expected|; NaN agrees
/// with NaN, and an infinity with the same infinity.
struct Comparison {
  int64_t elements = 0, different = 0, first = -1;  ///< flat position of the first difference
  double largest_error = 0;                         ///< absolute, over finite pairs
  std::string difference;                           ///< readable text; "" if all agree
  bool agrees() const { return difference.empty(); }
};
Comparison compare(const Tensor& got, const Tensor& expected, double relative, double absolute);

std::string extents_text(const std::vector<int64_t>& shape);              ///< "[1][3]"
std::string type_text(Scalar scalar, const std::vector<int64_t>& shape);  ///< "[1][3]f32"
std::string element_text(const Tensor& tensor, int64_t flat);
std::string position_text(int64_t flat, const std::vector<int64_t>& shape);  ///< "[0, 2]"

}  // namespace hoist
