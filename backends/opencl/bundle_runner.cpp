#include "backends/opencl/bundle_runner.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "backends/runtime/hoist_runtime.h"
#include "ir/base/cancellation.h"
#include "ir/base/strings.h"

namespace hoist {
namespace {

ArrayInfo array_info(const hoist_array& array) {
  const auto scalar = scalar_named(array.scalar);
  HOIST_CHECK(scalar.has_value(), std::string("the runtime knows a scalar type that hoist does not: ") + array.scalar);
  return {array.name, *scalar, {array.shape, array.shape + array.rank}};
}

std::string described(Scalar scalar, const std::vector<int64_t>& shape) {
  std::string out;
  for (int64_t extent : shape) out += "[" + std::to_string(extent) + "]";
  return out + std::string(row(scalar).name);
}

// ", in numpy array.astype(numpy.float32)"; "" for a type that numpy lacks.
std::string numpy_example(Scalar scalar) {
  const ScalarRow& type = row(scalar);
  if (scalar == Scalar::string || type.bits < 8 || (type.is_float && type.name != "f" + std::to_string(type.bits)))
    return "";
  const std::string name = scalar == Scalar::boolean ? "bool_"
                                                     : (type.is_float    ? "float"
                                                        : type.is_signed ? "int"
                                                                         : "uint") +
                                                           std::to_string(type.bits);
  return ", in numpy array.astype(numpy." + name + ")";
}

Result<Tensor> tensor_of(const std::vector<hoist_string>& strings, const std::vector<int64_t>& shape) {
  std::vector<std::string> texts;
  for (const hoist_string& string : strings) texts.emplace_back(string.data, string.length);
  return tensor_of_strings(shape, texts);
}

}  // namespace

void BundleRunner::Close::operator()(hoist_bundle* bundle) const { hoist_close(bundle); }

Diagnostic BundleRunner::failure() const { return {folder_, hoist_error_message(bundle_.get()), ""}; }

Result<Nothing> BundleRunner::outcome(int status) const {
  if (status != HOIST_OK) return failure();
  return Nothing{};
}

Diagnostic BundleRunner::failed_run(int status) {
  refuses_data_ = status == HOIST_BAD_EXTENT || status == HOIST_BAD_VALUE || status == HOIST_TOO_MANY_ITERATIONS;
  return failure();
}

Result<BundleRunner> BundleRunner::open(const std::filesystem::path& folder, const RunOptions& options) {
  BundleRunner out;
  out.folder_ = folder.string();
  hoist_options given = {};
  if (!options.device.empty()) given.device = options.device.c_str();
  given.threads = options.threads;
  given.separate_buffers = options.separate_buffers ? 0xFF : 0;
  given.no_cache = !options.use_cache;
  if (!options.cache_folder.empty()) given.cache_folder = options.cache_folder.c_str();
  if (options.progress) {
    out.progress_ = std::make_unique<DriverProgress>(options.progress);
    given.user = out.progress_.get();
    given.progress = [](void* user, size_t done, size_t total, const char* kernel) {
      (*static_cast<DriverProgress*>(user))(done, total, kernel);
    };
  }
  hoist_bundle* bundle = nullptr;
  const hoist_status status = hoist_open(folder.c_str(), &given, &bundle);
  out.bundle_.reset(bundle);
  if (status != HOIST_OK) return out.failure();
  spdlog::info("{} on {}: compiled kernels: {}", out.model_name(), out.device_name(), out.cache_outcome());
  for (size_t i = 0; i < hoist_specialisation_count(bundle); ++i) {
    hoist_specialisation one;
    if (hoist_describe_specialisation(bundle, i, &one) != HOIST_OK) return out.failure();
    out.specialisations_.emplace_back();
    for (size_t k = 0; k < one.size_count; ++k) out.specialisations_.back().emplace_back(one.names[k], one.sizes[k]);
  }
  HOIST_TRY_VOID(out.describe());
  HOIST_TRY_VOID(out.choose_sizes(options.sizes));
  return out;
}

// Describes the specialisation in use.
Result<Nothing> BundleRunner::describe() {
  hoist_bundle* bundle = bundle_.get();
  arrays_.clear(), inputs_.clear(), outputs_.clear(), states_.clear(), steps_.clear();
  hoist_array array;
  for (size_t i = 0; i < hoist_array_count(bundle); ++i) {
    if (hoist_describe_array(bundle, i, &array) != HOIST_OK) return failure();
    arrays_.push_back(array_info(array));
  }
  for (size_t i = 0; i < hoist_input_count(bundle); ++i) {
    if (hoist_input(bundle, i, &array) != HOIST_OK) return failure();
    inputs_.push_back(array_info(array));
  }
  for (size_t i = 0; i < hoist_output_count(bundle); ++i) {
    if (hoist_output(bundle, i, &array) != HOIST_OK) return failure();
    outputs_.push_back(array_info(array));
  }
  for (size_t i = 0; i < hoist_state_count(bundle); ++i) {
    if (hoist_state(bundle, i, &array) != HOIST_OK) return failure();
    states_.push_back(array_info(array));
  }
  for (size_t i = 0; i < hoist_step_count(bundle); ++i) {
    hoist_step step;
    if (hoist_describe_step(bundle, i, &step) != HOIST_OK) return failure();
    steps_.push_back({step.kernel,
                      step.kernel_index,
                      {step.layers, step.layers + step.layer_count},
                      {step.arguments, step.arguments + step.argument_count},
                      step.operations,
                      step.on_host != 0});
  }
  return Nothing{};
}

bool BundleRunner::has_sizes() const { return specialisations_.size() > 1 || hoist_open_size_count(bundle_.get()) > 0; }
size_t BundleRunner::specialisation() const { return hoist_specialisation_in_use(bundle_.get()); }

Result<Nothing> BundleRunner::choose(size_t specialisation) {
  const size_t before = this->specialisation();
  if (hoist_choose(bundle_.get(), specialisation) != HOIST_OK) return failure();
  return this->specialisation() == before ? Nothing{} : describe();
}

Result<Nothing> BundleRunner::choose_sizes(const Sizes& sizes) {
  for (const auto& [name, size] : sizes) {
    if (hoist_choose_size(bundle_.get(), name.c_str(), size) != HOIST_OK) return failure();
  }
  return sizes.empty() ? Nothing{} : describe();
}

Result<Nothing> BundleRunner::choose_input_shape(size_t input, const std::vector<int64_t>& shape) {
  const size_t before = specialisation();
  if (hoist_choose_input_shape(bundle_.get(), input, shape.data(), shape.size()) != HOIST_OK) return failure();
  return specialisation() == before && hoist_open_size_count(bundle_.get()) == 0 ? Nothing{} : describe();
}

std::string BundleRunner::model_name() const { return hoist_model_name(bundle_.get()); }
std::string BundleRunner::device_name() const { return hoist_device_name(bundle_.get()); }
std::string BundleRunner::engine_name() const { return hoist_engine_name(bundle_.get()); }
int BundleRunner::device_index() const { return hoist_device_index(bundle_.get()); }
std::string BundleRunner::profile_name() const { return hoist_profile_name(bundle_.get()); }
bool BundleRunner::profile_is_cpu() const { return hoist_profile_is_cpu(bundle_.get()) != 0; }
bool BundleRunner::fits_profile() const { return hoist_fits_profile(bundle_.get()) != 0; }
int BundleRunner::threads() const { return hoist_threads(bundle_.get()); }
std::string BundleRunner::cache_outcome() const { return hoist_cache_outcome(bundle_.get()); }

std::optional<hoist_preprocessing> BundleRunner::preprocessing(size_t input) const {
  hoist_preprocessing how = {};
  if (hoist_input_preprocessing(bundle_.get(), input, &how) != HOIST_OK) return std::nullopt;
  return how;
}

Result<Nothing> BundleRunner::set_input(size_t index, const Tensor& tensor) {
  if (index >= inputs_.size()) {
    return Diagnostic{
        folder_, "there is no input " + std::to_string(index) + ", there are " + std::to_string(inputs_.size()), ""};
  }
  const ArrayInfo& input = inputs_[index];
  if (tensor.scalar() != input.scalar || tensor.shape() != input.shape) {
    return Diagnostic{
        "input " + input.name,
        "is " + described(input.scalar, input.shape) + ", given " + described(tensor.scalar(), tensor.shape()),
        tensor.scalar() == input.scalar
            ? "convert the data, or compile for other dimensions with --dim"
            : "convert the elements to " + std::string(row(input.scalar).name) + numpy_example(input.scalar)};
  }
  if (tensor.scalar() == Scalar::string) {
    std::vector<std::string> texts;
    std::vector<hoist_string> strings;
    for (int64_t i = 0; i < tensor.size(); ++i) texts.push_back(string_at(tensor, i));
    for (const std::string& text : texts) strings.push_back({text.data(), text.size()});
    if (hoist_set_input_strings(bundle_.get(), index, strings.data(), strings.size()) != HOIST_OK) return failure();
    return Nothing{};
  }
  if (hoist_set_input(bundle_.get(), index, tensor.data(), tensor.bytes().size()) != HOIST_OK) return failure();
  return Nothing{};
}

Result<Nothing> BundleRunner::set_input(const std::string& name, const Tensor& tensor) {
  const int index = hoist_input_index(bundle_.get(), name.c_str());
  if (index >= 0) return set_input(static_cast<size_t>(index), tensor);
  std::string names;
  for (const ArrayInfo& input : inputs_) names += (names.empty() ? "" : ", ") + input.name;
  return Diagnostic{folder_, "no input is called " + name, "there are: " + names};
}

Result<Nothing> BundleRunner::share_memory() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].scalar == Scalar::string) continue;
    void* memory = nullptr;
    if (hoist_input_memory(bundle_.get(), i, &memory) != HOIST_OK) return failure();
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].scalar == Scalar::string) continue;
    const void* memory = nullptr;
    if (hoist_output_memory(bundle_.get(), i, &memory) != HOIST_OK) return failure();
  }
  return Nothing{};
}

Result<Nothing> BundleRunner::run() {
  cancellation_point();
  if (const hoist_status status = hoist_run(bundle_.get()); status != HOIST_OK) return failed_run(status);
  return Nothing{};
}

Result<Tensor> BundleRunner::output(size_t index) {
  HOIST_CHECK(index < outputs_.size(), "output " + std::to_string(index));
  Tensor out(outputs_[index].scalar, outputs_[index].shape);
  if (out.scalar() == Scalar::string) {
    std::vector<hoist_string> strings(static_cast<size_t>(out.size()));
    const hoist_status status = hoist_get_output_strings(bundle_.get(), index, strings.data(), strings.size());
    if (status != HOIST_OK) return failed_run(status);
    HOIST_TRY(out, tensor_of(strings, outputs_[index].shape));
  } else {
    const hoist_status status = hoist_get_output(bundle_.get(), index, out.data(), out.bytes().size());
    if (status != HOIST_OK) return failed_run(status);
  }
  std::vector<int64_t> shape(outputs_[index].shape);
  if (const hoist_status status = hoist_output_shape(bundle_.get(), index, shape.data(), shape.size());
      status != HOIST_OK)
    return failed_run(status);
  for (size_t i = 0; i < shape.size(); ++i) out = first_elements(out, i, shape[i]);
  return out;
}

Result<std::vector<Tensor>> BundleRunner::run(const std::vector<Tensor>& inputs) {
  if (inputs.size() != inputs_.size()) {
    return Diagnostic{
        folder_, std::to_string(inputs.size()) + " inputs given, the model has " + std::to_string(inputs_.size()), ""};
  }
  for (size_t i = 0; i < inputs.size(); ++i) HOIST_TRY_VOID(set_input(i, inputs[i]));
  HOIST_TRY_VOID(run());
  std::vector<Tensor> out;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    HOIST_TRY(Tensor tensor, output(i));
    out.push_back(std::move(tensor));
  }
  return out;
}

Result<Tensor> BundleRunner::state(size_t index) {
  HOIST_CHECK(index < states_.size(), "state " + std::to_string(index));
  Tensor out(states_[index].scalar, states_[index].shape);
  if (hoist_get_state(bundle_.get(), index, out.data(), out.bytes().size()) != HOIST_OK) return failure();
  return out;
}

Result<Nothing> BundleRunner::set_state(size_t index, const Tensor& tensor) {
  HOIST_CHECK(index < states_.size(), "state " + std::to_string(index));
  const ArrayInfo& state = states_[index];
  if (tensor.scalar() != state.scalar || tensor.shape() != state.shape) {
    return Diagnostic{
        "state " + state.name,
        "is " + described(state.scalar, state.shape) + ", given " + described(tensor.scalar(), tensor.shape()), ""};
  }
  return outcome(hoist_set_state(bundle_.get(), index, tensor.data(), tensor.bytes().size()));
}

Result<Nothing> BundleRunner::reset_states() { return outcome(hoist_reset_states(bundle_.get())); }

Result<Nothing> BundleRunner::save_states(const std::filesystem::path& file) {
  return outcome(hoist_save_states(bundle_.get(), file.c_str()));
}

Result<Nothing> BundleRunner::load_states(const std::filesystem::path& file) {
  return outcome(hoist_load_states(bundle_.get(), file.c_str()));
}

Result<Nothing> BundleRunner::run_steps(size_t first, size_t count) {
  cancellation_point();
  if (const hoist_status status = hoist_run_steps(bundle_.get(), first, count); status != HOIST_OK)
    return failed_run(status);
  return Nothing{};
}

uint64_t BundleRunner::step_runs(size_t index) const { return hoist_step_runs(bundle_.get(), index); }

Result<Tensor> BundleRunner::read_array(size_t index) {
  HOIST_CHECK(index < arrays_.size(), "array " + std::to_string(index));
  Tensor out(arrays_[index].scalar, arrays_[index].shape);
  if (hoist_read_array(bundle_.get(), index, out.data(), out.bytes().size()) != HOIST_OK) return failure();
  if (out.scalar() != Scalar::string) return out;
  std::vector<hoist_string> strings(static_cast<size_t>(out.size()));
  if (hoist_read_strings(bundle_.get(), index, strings.data(), strings.size()) != HOIST_OK) return failure();
  // The elements are string handles of the runtime; registering the strings makes them valid in hoist.
  for (const hoist_string& string : strings) {
    if (string.data != nullptr) HOIST_TRY_VOID(word_of_string({string.data, string.length}));
  }
  return out;
}

Result<std::vector<double>> BundleRunner::profile() {
  cancellation_point();
  std::vector<double> out(steps_.size());
  if (hoist_profile(bundle_.get(), out.data()) != HOIST_OK) return failure();
  return out;
}

namespace {

// A hoist_report whose user pointer is a list of findings.
void add_finding(void* user, const hoist_finding* finding) {
  static_cast<std::vector<Finding>*>(user)->push_back(
      {finding->subject, finding->passed != 0, finding->message, finding->compared, finding->largest_error});
}

}  // namespace

Result<std::vector<Finding>> BundleRunner::verify() {
  std::vector<Finding> findings;
  const hoist_status status = hoist_verify(bundle_.get(), add_finding, &findings);
  const bool all_passed = std::all_of(findings.begin(), findings.end(), [](const Finding& f) { return f.passed; });
  // A check that could not run has no finding.
  if (status != HOIST_OK && (all_passed || status == HOIST_DEVICE_ERROR || status == HOIST_OUT_OF_MEMORY)) {
    return failure();
  }
  return findings;
}

Result<std::vector<Finding>> BundleRunner::verify_launches(uint64_t seed) {
  std::vector<Finding> findings;
  const hoist_status status = hoist_verify_launches(bundle_.get(), seed, add_finding, &findings);
  if (status != HOIST_OK && status != HOIST_MISMATCH) return failed_run(status);
  return findings;
}

}  // namespace hoist
