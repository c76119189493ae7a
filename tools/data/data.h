// Data beside models: test cases in the layout of the ONNX backend tests, and comparing what came out with what should.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {

/// test_data_set_K of a case: input_I.pb and output_I.pb (or .npy). The members of a sequence stand side by side, as
/// they do among the inputs and outputs of a program.
struct DataSet {
  std::filesystem::path folder;
  std::vector<Tensor> inputs, outputs;
  RecordedLayout layout = {};  ///< of the inputs, one a file
};

/// The folders test_data_set_K inside `folder` by K, or `folder` itself when it holds input_0 or output_0.
Result<std::vector<std::filesystem::path>> data_sets_in(const std::filesystem::path& folder);
/// With `need_outputs` a folder without output_0 is an error. `kinds` are those of the model: without them every file
/// holds a tensor.
Result<DataSet> read_data_set(const std::filesystem::path& folder, bool need_outputs = true,
                              const ValueKinds& kinds = {});

/// An element agrees where |got - expected| <= absolute + relative * |expected|; NaNs agree with NaNs, infinities with
/// themselves.
struct Comparison {
  int64_t elements = 0, different = 0, first = -1;  ///< flat position of the first difference
  double largest_error = 0;                         ///< absolute, of finite pairs
  std::string difference;                           ///< for people; "" when all agree
  bool agrees() const { return difference.empty(); }
};
Comparison compare(const Tensor& got, const Tensor& expected, double relative, double absolute);

std::string extents_text(const std::vector<int64_t>& shape);              ///< "[1][3]"
std::string type_text(Scalar scalar, const std::vector<int64_t>& shape);  ///< "[1][3]f32"
std::string element_text(const Tensor& tensor, int64_t flat);
std::string position_text(int64_t flat, const std::vector<int64_t>& shape);  ///< "[0, 2]"

}  // namespace hoist
