// Runs one case of the ONNX project's backend tests at the level of expressions: the model is read, its calls unfolded
// and evaluated in order, and the results compared with the recorded ones. No kernels are involved.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/base/result.h"
#include "ir/language/tensor.h"
#include "ir/program/program.h"

namespace hoist::conformance {

struct Agreement {
  double relative = 1e-3, absolute = 1e-7;
  bool values = true;  ///< else element types and shapes alone: random numbers are nobody's to expect
};

/// As ONNX's own run of its cases compares the case of that name (onnx/test/test_backend_reference.py): 1e-3 and 1e-7,
/// but 1e-6 absolute for the transforms, and what Bernoulli draws is not compared.
Agreement agreement_of(const std::string& name);

/// Nothing when every output of every data set of the case agrees within |a - b| <= absolute + relative * |b| (integers
/// and bools exactly, NaN with NaN, f16 and bf16 within one unit of their last place); else why not. Without `passes`
/// the program is evaluated as it is read, which also goes where no kernel exists.
Result<Nothing> run_case(const std::filesystem::path& folder, const Agreement& agreement, bool passes = true);

/// As every compilation reads models: with hoist's operators.
ReadOptions reading_options();
/// ROLE_0.pb, ROLE_1.pb, ... of a data set, for values of these kinds.
struct RecordedTensors {
  std::vector<Tensor> tensors;  ///< members of sequences side by side
  RecordedLayout layout;
};
Result<RecordedTensors> read_tensors(const std::filesystem::path& folder, const std::string& role,
                                     const std::vector<ValueKind>& kinds);
/// Nothing where they agree as run_case says it.
Result<Nothing> compare(const std::string& name, const Tensor& actual, const Tensor& wanted,
                        const Agreement& agreement);

/// The model with its symbolic dimensions as the data have them, and the inputs that it takes of the first data set:
/// those that decide shapes are constants of the program.
struct Case {
  Program program;
  std::vector<Tensor> inputs;
};
Result<Case> read_case(const std::filesystem::path& folder);

/// Folders with a model.onnx and recorded data, sorted by name.
std::vector<std::filesystem::path> cases_in(const std::filesystem::path& folder);

/// A gap file: lines "NAME: REASON", # begins a comment line. Sorted by name.
Result<std::map<std::string, std::string>> read_gaps(const std::filesystem::path& path);
std::string write_gaps(const std::string& heading, const std::map<std::string, std::string>& gaps);

}  // namespace hoist::conformance
