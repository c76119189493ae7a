// Runs one case of the ONNX backend tests on terms: reads the model, expands and evaluates its calls in order, and
// compares the results with the recorded ones. No kernels are involved.
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
  /// Compares values; otherwise only element types and shapes, since random values are not reproducible.
  bool values = true;
};

/// The tolerance of ONNX's own run of that case (onnx/test/test_backend_reference.py): 1e-3 and 1e-7, but 1e-6 absolute
/// for the transforms; the values that Bernoulli draws are not compared.
Agreement agreement_of(const std::string& name);

/// Empty if every output of every data set of the case agrees within |a - b| <= absolute + relative * |b| (integers and
/// booleans exactly, NaN with NaN, f16 and bf16 within one ulp); else the difference. Without `passes` the program is
/// evaluated as it is read, which also works if there is no kernel.
Result<Nothing> run_case(const std::filesystem::path& folder, const Agreement& agreement, bool passes = true);

/// The options with which every compilation reads models: with hoist's operators.
ReadOptions reading_options();
/// ROLE_0.pb, ROLE_1.pb, ... of a data set, for values of these kinds.
struct RecordedTensors {
  std::vector<Tensor> tensors;  ///< members of sequences are separate entries
  RecordedLayout layout;
};
Result<RecordedTensors> read_tensors(const std::filesystem::path& folder, const std::string& role,
                                     const std::vector<ValueKind>& kinds);
/// Nothing if the tensors agree as in run_case.
Result<Nothing> compare(const std::string& name, const Tensor& actual, const Tensor& wanted,
                        const Agreement& agreement);

/// The model with its symbolic dimensions from the data, and its inputs from the first data set; inputs that determine
/// shapes are constants of the program.
struct Case {
  Program program;
  std::vector<Tensor> inputs;
};
Result<Case> read_case(const std::filesystem::path& folder);

/// Folders with a model.onnx and recorded data, in the order of their names.
std::vector<std::filesystem::path> cases_in(const std::filesystem::path& folder);

/// Reads a gap file: lines "NAME: REASON", # begins a comment line. In the order of the names.
Result<std::map<std::string, std::string>> read_gaps(const std::filesystem::path& path);
std::string write_gaps(const std::string& heading, const std::map<std::string, std::string>& gaps);

}  // namespace hoist::conformance
