// A dense row-major array of scalars with its bytes: weights, model inputs and outputs, constants. Immutable once
// shared; copies share the bytes. Not for symbolic shapes: those are types (type.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/language/scalar.h"

namespace hoist {

class Tensor {
 public:
  Tensor() : Tensor(Scalar::f32, {0}) {}
  /// Zero-filled. `shape` has non-negative extents, row-major, outermost first; an empty shape is one scalar.
  Tensor(Scalar scalar, std::vector<int64_t> shape);
  /// Takes ownership of bytes in ONNX's raw-data layout; their count must be byte_size(scalar, shape).
  Tensor(Scalar scalar, std::vector<int64_t> shape, std::vector<std::byte> bytes);
  Tensor(Scalar scalar, std::vector<int64_t> shape, std::string bytes);
  /// As above; the buffer must have exactly that many bytes, writable ones, and no other writer.
  Tensor(Scalar scalar, std::vector<int64_t> shape, std::unique_ptr<std::byte[]> bytes);
  Tensor(Scalar scalar, std::vector<int64_t> shape, std::shared_ptr<std::byte> bytes);
  /// The same, of a private mapping of a file; `bytes` keeps the mapping.
  static Tensor of_mapping(Scalar scalar, std::vector<int64_t> shape, std::shared_ptr<std::byte> bytes);

  Scalar scalar() const { return scalar_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t size() const;  ///< number of elements
  std::span<const std::byte> bytes() const { return {bytes_.get(), byte_count_}; }
  /// Writable bytes; shared bytes are copied first.
  std::byte* data();
  const std::byte* data() const { return bytes_.get(); }
  /// Removes the pages of a mapped file from the memory of the process; the next access loads them. No effect on other
  /// tensors. Called after an access to every byte of large weights, so that a model's file does not stay in memory as
  /// a whole.
  void release_pages() const;

  /// An element converted to a wider type: floats (and bool as 0 or 1) to double, integers to int64 (u64 keeps its
  /// bits).
  double float_at(int64_t i) const;
  int64_t integer_at(int64_t i) const;
  void set_float(int64_t i, double value);     ///< rounds half to even into the scalar type
  void set_integer(int64_t i, int64_t value);  ///< keeps the low bits
  std::vector<int64_t> as_integers() const;    ///< the whole tensor
  /// The elements of an f32 tensor, for loops over millions of elements. Valid while the tensor lives.
  std::span<const float> floats() const;

  Tensor reshaped(std::vector<int64_t> shape) const;  ///< same bytes, same number of elements
  bool operator==(const Tensor& other) const;         ///< scalar, shape and bytes

  template <class T>
  static Tensor of(Scalar scalar, std::vector<int64_t> shape, const std::vector<T>& values);
  static Tensor of_floats(std::vector<int64_t> shape,
                          std::span<const float> values);  ///< the same for f32, copied at once

 private:
  template <class Container>
  void take(Container bytes);

  Scalar scalar_;
  std::vector<int64_t> shape_;
  std::shared_ptr<std::byte> bytes_;  // keeps the owner of the bytes alive
  size_t byte_count_;
  bool is_mapped_ = false;  // a mapped file has the bytes, and no write has changed a page
};

/// The size in bytes of a tensor of this scalar type and shape.
int64_t byte_size(Scalar scalar, const std::vector<int64_t>& shape);
int64_t element_count(const std::vector<int64_t>& shape);
/// The first `count` elements along a dimension; `count` is at most its extent.
Tensor first_elements(const Tensor& tensor, size_t dimension, int64_t count);

/// Reads and writes the bits of element `i` of an array of `bits`-bit elements in a tensor's layout.
uint64_t load_element(const std::byte* bytes, int bits, int64_t i);
void store_element(std::byte* bytes, int bits, int64_t i, uint64_t word);

template <class T>
Tensor Tensor::of(Scalar scalar, std::vector<int64_t> shape, const std::vector<T>& values) {
  Tensor out(scalar, std::move(shape));
  for (int64_t i = 0; i < out.size(); ++i) {
    if (is_float(scalar))
      out.set_float(i, static_cast<double>(values[static_cast<size_t>(i)]));
    else
      out.set_integer(i, static_cast<int64_t>(values[static_cast<size_t>(i)]));
  }
  return out;
}

/// The largest magnitude of the elements of an integer tensor, at most the largest int64; 0 without elements. The
/// elements of u64 are read as int64.
int64_t largest_magnitude(const Tensor& tensor);

/// Conversion between the bits of a scalar (in the low bits of the word) and a double or an int64. Rounds half to even;
/// f8e8m0 rounds up to the next power of two in magnitude. Values beyond the range become the largest value, or the
/// infinity if the type has one; f4e2m1 encodes NaN as -0, f8e8m0 the infinities as NaN.
double float_from_bits(Scalar scalar, uint64_t bits);
uint64_t bits_from_float(Scalar scalar, double value);

}  // namespace hoist
