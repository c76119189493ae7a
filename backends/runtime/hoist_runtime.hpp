// The runtime of a hoist bundle for C++17 and later: hoist_runtime.h with owners, views and exceptions. Header-only;
// link the object of hoist_runtime.c.
//
//   hoist::Bundle bundle("digits.hoist");
//   for (float& pixel : bundle.input<float>("image")) pixel = 0.5f;
//   bundle.run();
//   hoist::View<const float> logits = bundle.output<float>("logits");
//
// Functions that fail throw hoist::Error with the status and the runtime's message; constructors open, destructors
// close. Views refer to the handle's own memory, without a copy: they live as long as the bundle, and may be used
// between runs, wherever a std::span may. A Bundle may move between threads, but two threads must not use it at the
// same time. Programs without exceptions use hoist_runtime.h directly.
#ifndef HOIST_RUNTIME_HPP
#define HOIST_RUNTIME_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hoist_runtime.h"

namespace hoist {

/// A call of the runtime that failed. what() names the offender, as hoist_error_message does.
class Error : public std::runtime_error {
 public:
  Error(hoist_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  hoist_status status() const noexcept { return status_; }

 private:
  hoist_status status_;
};

/// Elements with another owner.
template <class T>
class View {
 public:
  View() = default;
  View(T* data, std::size_t size) : data_(data), size_(size) {}
  /// A vector, an array, a std::span or another view of the same elements.
  template <class Range, class = decltype(static_cast<T*>(std::declval<Range&>().data()))>
  View(Range&& range) : data_(range.data()), size_(range.size()) {}  // NOLINT: implicit as for std::span

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T& operator[](std::size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// An input or an output.
struct Array {
  std::string name;
  std::string scalar;               ///< "f32", "i8", ..., "string": Bundle::set_strings and strings
  std::vector<std::int64_t> shape;  ///< outermost extent first, row-major
  std::size_t bytes = 0;
};

/// True if elements of the scalar type are accessed as T. Halves (f16, bf16) are accessed as their bits in
/// std::uint16_t; std::byte accesses every type, including packed 4-bit types.
template <class T>
bool is_element(const std::string& scalar) {
  using Element = std::remove_cv_t<T>;
  static_assert(std::is_trivially_copyable_v<Element>, "elements are numbers");
  if constexpr (std::is_same_v<Element, std::byte>) return true;
  if constexpr (std::is_same_v<Element, float>) return scalar == "f32";
  if constexpr (std::is_same_v<Element, double>) return scalar == "f64";
  if constexpr (std::is_same_v<Element, bool>) return scalar == "bool";
  if constexpr (std::is_same_v<Element, std::int8_t>) return scalar == "i8";
  if constexpr (std::is_same_v<Element, std::uint8_t>) return scalar == "u8" || scalar == "bool";
  if constexpr (std::is_same_v<Element, std::int16_t>) return scalar == "i16";
  if constexpr (std::is_same_v<Element, std::uint16_t>) return scalar == "u16" || scalar == "f16" || scalar == "bf16";
  if constexpr (std::is_same_v<Element, std::int32_t>) return scalar == "i32";
  if constexpr (std::is_same_v<Element, std::uint32_t>) return scalar == "u32";
  if constexpr (std::is_same_v<Element, std::int64_t>) return scalar == "i64";
  if constexpr (std::is_same_v<Element, std::uint64_t>) return scalar == "u64";
  return false;
}

/// Sizes by name, for example "batch".
using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

class Bundle {
 public:
  /// Opens the bundle in `folder`; `options` as for hoist_open. Throws Error.
  explicit Bundle(const std::string& folder, const hoist_options& options = hoist_options()) {
    const hoist_status status = hoist_open(folder.c_str(), &options, &handle_);
    if (status == HOIST_OK) return;
    const Error error = failure(status);
    hoist_close(handle_);
    throw error;
  }
  Bundle(Bundle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Bundle& operator=(Bundle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;
  ~Bundle() {
    if (handle_ != nullptr) hoist_close(handle_);
  }

  /// The handle, for further functions of hoist_runtime.h.
  hoist_bundle* handle() const { return handle_; }

  std::string model_name() const { return hoist_model_name(handle_); }
  std::string device_name() const { return hoist_device_name(handle_); }
  std::string engine_name() const { return hoist_engine_name(handle_); }
  /// False if kernels run on another kind of device than they are compiled for: correct, but far slower.
  bool fits_profile() const { return hoist_fits_profile(handle_) != 0; }

  /// The sizes of each specialisation; one entry without sizes if there is nothing to choose.
  std::vector<Sizes> specialisations() const {
    std::vector<Sizes> out(hoist_specialisation_count(handle_));
    for (std::size_t i = 0; i < out.size(); ++i) {
      hoist_specialisation one;
      check(hoist_describe_specialisation(handle_, i, &one));
      for (std::size_t k = 0; k < one.size_count; ++k) out[i].emplace_back(one.names[k], one.sizes[k]);
    }
    return out;
  }
  /// Choose another specialisation, by the name of a size or by an input's shape; the other sizes stay. All functions
  /// below then refer to it; views of inputs and outputs taken before belong to the previous one. Throw if the bundle
  /// is not compiled for these sizes (HOIST_BAD_SIZE), and then nothing changes.
  void choose_size(const std::string& name, std::int64_t size) {
    check(hoist_choose_size(handle_, name.c_str(), size));
  }
  void choose_input_shape(const std::string& name, const std::vector<std::int64_t>& shape) {
    const std::size_t index = index_of(hoist_input_index(handle_, name.c_str()), "input", name);
    check(hoist_choose_input_shape(handle_, index, shape.data(), shape.size()));
  }

  std::vector<Array> inputs() const { return arrays(hoist_input_count(handle_), hoist_input); }
  std::vector<Array> outputs() const { return arrays(hoist_output_count(handle_), hoist_output); }

  /// Memory that holds the input of the following runs. Throws if there is no such input, or its elements are no T.
  template <class T>
  View<T> input(const std::string& name) {
    const std::size_t index = index_of(hoist_input_index(handle_, name.c_str()), "input", name);
    const Array array = described(index, hoist_input);
    void* memory = nullptr;
    check(hoist_input_memory(handle_, index, &memory));
    return elements<T>(array, memory, "input");
  }

  /// Memory that receives the output of runs.
  template <class T>
  View<const T> output(const std::string& name) {
    const std::size_t index = index_of(hoist_output_index(handle_, name.c_str()), "output", name);
    const Array array = described(index, hoist_output);
    const void* memory = nullptr;
    check(hoist_output_memory(handle_, index, &memory));
    return elements<const T>(array, memory, "output");
  }

  /// Copies the elements; their number must be the input's.
  template <class T>
  void set_input(const std::string& name, View<const T> values) {
    const std::size_t index = index_of(hoist_input_index(handle_, name.c_str()), "input", name);
    check_element<T>(described(index, hoist_input), "input");
    check(hoist_set_input(handle_, index, values.data(), values.size() * sizeof(T)));
  }

  /// Whole images, resized, cropped and scaled as the bundle defines it; one, or as many as the input has.
  void set_pixels(const std::string& name, View<const hoist_pixels> images) {
    const std::size_t index = index_of(hoist_input_index(handle_, name.c_str()), "input", name);
    check(hoist_set_input_pixels(handle_, index, images.data(), images.size()));
  }
  void set_pixels(const std::string& name, const hoist_pixels& image) {
    set_pixels(name, View<const hoist_pixels>(&image, 1));
  }
  /// The preprocessing of images for the input. Throws if the bundle defines none.
  hoist_preprocessing preprocessing(const std::string& name) const {
    const std::size_t index = index_of(hoist_input_index(handle_, name.c_str()), "input", name);
    hoist_preprocessing out;
    check(hoist_input_preprocessing(handle_, index, &out));
    return out;
  }

  /// Sets an input of strings; their number must be the input's.
  void set_strings(const std::string& name, const std::vector<std::string>& strings) {
    const std::size_t index = index_of(hoist_input_index(handle_, name.c_str()), "input", name);
    std::vector<hoist_string> given;
    for (const std::string& string : strings) given.push_back({string.data(), string.size()});
    check(hoist_set_input_strings(handle_, index, given.data(), given.size()));
  }

  /// Copies of all elements of an output of strings, as many as its array has.
  std::vector<std::string> strings(const std::string& name) const {
    const std::size_t index = index_of(hoist_output_index(handle_, name.c_str()), "output", name);
    std::vector<hoist_string> held(described(index, hoist_output).bytes / 8);
    check(hoist_get_output_strings(handle_, index, held.data(), held.size()));
    std::vector<std::string> out;
    for (const hoist_string& string : held) out.emplace_back(string.data, string.length);
    return out;
  }

  /// Values that live between runs; each run reads them and gives them their next value.
  std::vector<Array> states() const { return arrays(hoist_state_count(handle_), hoist_state); }
  /// A copy of the elements. Throws if there is no such state, or its elements are no T.
  template <class T>
  std::vector<T> state(const std::string& name) const {
    const std::size_t index = index_of(hoist_state_index(handle_, name.c_str()), "state", name);
    const Array array = described(index, hoist_state);
    check_element<T>(array, "state");
    std::vector<T> out(array.bytes / sizeof(T));
    check(hoist_get_state(handle_, index, out.data(), array.bytes));
    return out;
  }
  template <class T>
  void set_state(const std::string& name, View<const T> values) {
    const std::size_t index = index_of(hoist_state_index(handle_, name.c_str()), "state", name);
    check_element<T>(described(index, hoist_state), "state");
    check(hoist_set_state(handle_, index, values.data(), values.size() * sizeof(T)));
  }
  void reset_states() { check(hoist_reset_states(handle_)); }
  void save_states(const std::string& path) { check(hoist_save_states(handle_, path.c_str())); }
  void load_states(const std::string& path) { check(hoist_load_states(handle_, path.c_str())); }

  /// Another session of the bundle, with states, inputs and outputs of its own; both share weights and kernels
  /// (hoist_open_session).
  Bundle session(int threads = 0) const {
    Bundle out;
    const hoist_status status = hoist_open_session(handle_, threads, &out.handle_);
    if (status != HOIST_OK) throw out.failure(status);
    return out;
  }

  /// Runs and waits. Throws if an input was never set.
  void run() { check(hoist_run(handle_)); }

  /// The self-check, which overwrites the inputs; false if a comparison fails. `report` receives every finding.
  bool verify(const std::function<void(const hoist_finding&)>& report = {}) {
    Reporting reporting{report, nullptr};
    const hoist_status status = hoist_verify(handle_, pass_on, &reporting);
    if (reporting.thrown) std::rethrow_exception(reporting.thrown);
    if (status != HOIST_MISMATCH) check(status);
    return status == HOIST_OK;
  }

 private:
  Bundle() = default;

  struct Reporting {
    const std::function<void(const hoist_finding&)>& report;
    std::exception_ptr thrown;  // exceptions must not pass through C
  };

  static void pass_on(void* user, const hoist_finding* finding) {
    Reporting& reporting = *static_cast<Reporting*>(user);
    if (!reporting.report || reporting.thrown) return;
    try {
      reporting.report(*finding);
    } catch (...) {
      reporting.thrown = std::current_exception();
    }
  }

  Error failure(hoist_status status) const {
    const std::string message = handle_ != nullptr ? hoist_error_message(handle_) : "";
    return Error(status, message.empty() ? hoist_status_name(status) : message);
  }
  void check(hoist_status status) const {
    if (status != HOIST_OK) throw failure(status);
  }

  static std::size_t index_of(int index, const char* kind, const std::string& name) {
    if (index < 0) throw Error(HOIST_BAD_ARGUMENT, "no " + std::string(kind) + " is called " + name);
    return static_cast<std::size_t>(index);
  }

  using Describe = hoist_status (*)(hoist_bundle*, std::size_t, hoist_array*);
  Array described(std::size_t index, Describe describe) const {
    hoist_array array;
    check(describe(handle_, index, &array));
    return {array.name, array.scalar, std::vector<std::int64_t>(array.shape, array.shape + array.rank), array.bytes};
  }
  std::vector<Array> arrays(std::size_t count, Describe describe) const {
    std::vector<Array> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(described(i, describe));
    return out;
  }

  template <class T>
  static void check_element(const Array& array, const char* kind) {
    if (is_element<T>(array.scalar)) return;
    throw Error(HOIST_BAD_ARGUMENT,
                std::string(kind) + " " + array.name + " holds " + array.scalar + ", which is not the requested type");
  }
  template <class T, class Memory>
  static View<T> elements(const Array& array, Memory* memory, const char* kind) {
    check_element<T>(array, kind);
    return View<T>(static_cast<T*>(memory), array.bytes / sizeof(T));
  }

  hoist_bundle* handle_ = nullptr;
};

}  // namespace hoist

#endif
