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
  /// Takes over bytes in ONNX raw-data layout; their number must be byte_size(scalar, shape).
  Tensor(Scalar scalar, std::vector<int64_t> shape, std::vector<std::byte> bytes);
  Tensor(Scalar scalar, std::vector<int64_t> shape, std::string bytes);
  /// The same of just so many bytes.
  Tensor(Scalar scalar, std::vector<int64_t> shape, std::unique_ptr<std::byte[]> bytes);

  Scalar scalar() const { return scalar_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t size() const;  ///< number of elements
  std::span<const std::byte> bytes() const { return {bytes_.get(), byte_count_}; }
  /// Writable bytes; copies first when they are shared.
  std::byte* data();
  const std::byte* data() const { return bytes_.get(); }

  /// Any scalar type widened: floats (and bool as 0 or 1) to double, integers to int64 (u64 keeps its bits).
  double float_at(int64_t i) const;
  int64_t integer_at(int64_t i) const;
  void set_float(int64_t i, double value);     ///< rounds half to even into the scalar type
  void set_integer(int64_t i, int64_t value);  ///< keeps the low bits
  std::vector<int64_t> as_integers() const;    ///< whole tensor
  /// The elements of an f32 tensor, for loops over millions of them. Goes with the tensor.
  std::span<const float> floats() const;

  Tensor reshaped(std::vector<int64_t> shape) const;  ///< same bytes, same number of elements
  bool operator==(const Tensor& other) const;         ///< scalar, shape and bytes

  template <class T>
  static Tensor of(Scalar scalar, std::vector<int64_t> shape, const std::vector<T>& values);
  static Tensor of_floats(std::vector<int64_t> shape,
                          std::span<const float> values);  ///< the same of f32, copied whole

 private:
  template <class Container>
  void take(Container bytes);

  Scalar scalar_;
  std::vector<int64_t> shape_;
  std::shared_ptr<std::byte> bytes_;  // of whatever owns them
  size_t byte_count_;
};

/// Bytes of a tensor of this scalar type and shape.
int64_t byte_size(Scalar scalar, const std::vector<int64_t>& shape);
int64_t element_count(const std::vector<int64_t>& shape);
/// The first `count` elements along a dimension, of those that are there.
Tensor first_elements(const Tensor& tensor, size_t dimension, int64_t count);

/// Element `i` of values of so many bits in the layout of a tensor's bytes: its bits, and how they are written.
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

/// A scalar of the given type as a double or an int64, from and to its bits (low bits of the word). Rounds half to
/// even; f8e8m0 takes the power of two at or above the magnitude. What lies beyond the range is the largest number, or
/// the infinity where the type has one; f4e2m1 has -0 for NaN, f8e8m0 NaN for the infinities.
double float_from_bits(Scalar scalar, uint64_t bits);
uint64_t bits_from_float(Scalar scalar, double value);

}  // namespace hoist
