#include "ir/language/tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <optional>

#include "ir/base/result.h"

namespace hoist {
namespace {

// A binary float format of at most 16 bits. Codes are compared without their sign bit.
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  uint32_t largest;       // code of the largest finite value
  uint32_t not_a_number;  // code of NaN, including the sign bit if NaN has one
  uint32_t overflow;      // code of values that round beyond the largest
  bool has_infinity;
  bool unsigned_zero;  // the fnuz formats: minus zero's code is NaN
};

// ONNX's Cast with its default saturate=1: float8 saturates, f16 and bf16 overflow to infinity.
constexpr SmallFloat format_f16 = {5, 10, 15, 0x7bff, 0x7e00, 0x7c00, true, false};
constexpr SmallFloat format_bf16 = {8, 7, 127, 0x7f7f, 0x7fc0, 0x7f80, true, false};
constexpr SmallFloat format_f8e4m3fn = {4, 3, 7, 0x7e, 0x7f, 0x7e, false, false};
constexpr SmallFloat format_f8e4m3fnuz = {4, 3, 8, 0x7f, 0x80, 0x7f, false, true};
constexpr SmallFloat format_f8e5m2 = {5, 2, 15, 0x7b, 0x7f, 0x7b, true, false};
constexpr SmallFloat format_f8e5m2fnuz = {5, 2, 16, 0x7f, 0x80, 0x7f, false, true};
constexpr SmallFloat format_f4e2m1 = {2, 1, 1, 0x7, 0x8, 0x7, false, false};

const SmallFloat& small_float(Scalar scalar) {
  switch (scalar) {
    case Scalar::f16:
      return format_f16;
    case Scalar::bf16:
      return format_bf16;
    case Scalar::f8e4m3fn:
      return format_f8e4m3fn;
    case Scalar::f8e4m3fnuz:
      return format_f8e4m3fnuz;
    case Scalar::f8e5m2:
      return format_f8e5m2;
    case Scalar::f8e5m2fnuz:
      return format_f8e5m2fnuz;
    case Scalar::f4e2m1:
      return format_f4e2m1;
    default:
      HOIST_CHECK(false, "not a float of at most 16 bits: " + std::string(row(scalar).name));
  }
  return format_f16;
}

double decode(const SmallFloat& format, uint32_t code) {
  const int width = 1 + format.exponent_bits + format.mantissa_bits;
  const uint32_t sign_bit = 1u << (width - 1);
  code &= (sign_bit << 1) - 1;
  if (format.unsigned_zero && code == sign_bit) return std::numeric_limits<double>::quiet_NaN();
  const bool negative = (code & sign_bit) != 0;
  code &= sign_bit - 1;
  double magnitude;
  if (code > format.largest) {
    // Infinity is the code right after the largest finite value; the codes after it are NaN.
    magnitude = format.has_infinity && code == format.largest + 1 ? std::numeric_limits<double>::infinity()
                                                                  : std::numeric_limits<double>::quiet_NaN();
  } else {
    const uint32_t mantissa = code & ((1u << format.mantissa_bits) - 1);
    const int exponent = static_cast<int>(code >> format.mantissa_bits);
    const uint32_t significand = exponent == 0 ? mantissa : mantissa | (1u << format.mantissa_bits);
    const int power = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
    // Exact: 2^power is a normal double for every format here.
    magnitude = significand * std::bit_cast<double>(static_cast<uint64_t>(power + 1023) << 52);
  }
  return negative ? -magnitude : magnitude;
}

// Rounds once, directly from the double: an intermediate float would round twice.
uint32_t encode(const SmallFloat& format, double value) {
  if (std::isnan(value)) return format.not_a_number;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint32_t sign = static_cast<uint32_t>(bits >> 63) << (format.exponent_bits + format.mantissa_bits);
  const int double_exponent = static_cast<int>(bits >> 52 & 0x7ff);
  uint32_t code = 0;
  if (double_exponent == 0x7ff) {
    code = format.overflow;
  } else if (double_exponent != 0) {  // a subnormal double is below half of every format's smallest value
    const int exponent = double_exponent - 1023;
    const int smallest = 1 - format.bias;
    const uint64_t significand = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
    const int shift = std::max(exponent, smallest) - exponent + 52 - format.mantissa_bits;
    uint64_t rounded = 0;
    if (shift < 54) {
      rounded = significand >> shift;
      const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
      const uint64_t half = uint64_t{1} << (shift - 1);
      if (rest > half || (rest == half && (rounded & 1))) ++rounded;
    }
    // A carry out of the mantissa increments the exponent.
    const uint64_t wide =
        rounded + (exponent > smallest ? static_cast<uint64_t>(exponent - smallest) << format.mantissa_bits : 0);
    code = wide > format.largest ? format.overflow : static_cast<uint32_t>(wide);
  }
  if (code == 0 && format.unsigned_zero) return 0;
  return code | sign;
}

// f8e8m0 is the exponent of a power of two; 0xff is NaN.
constexpr uint32_t power_not_a_number = 0xff;

double decode_power(uint64_t code) {
  if ((code & 0xff) == power_not_a_number) return std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<double>(((code & 0xff) + 1023 - 127) << 52);
}

uint32_t encode_power(double value) {
  if (!std::isfinite(value)) return power_not_a_number;
  const uint64_t magnitude = std::bit_cast<uint64_t>(value) & ~(uint64_t{1} << 63);
  const bool is_power = (magnitude & ((uint64_t{1} << 52) - 1)) == 0;
  const int exponent = static_cast<int>(magnitude >> 52) + (is_power ? 0 : 1) - 1023 + 127;
  return static_cast<uint32_t>(std::clamp(exponent, 0, 0xfe));
}

uint64_t low_bits(int bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

int64_t sign_extended(const ScalarRow& type, uint64_t bits) {
  bits &= low_bits(type.bits);
  if (type.is_signed && type.bits < 64 && (bits >> (type.bits - 1) & 1)) bits |= ~low_bits(type.bits);
  return static_cast<int64_t>(bits);
}

// Rounds half to even, saturates, NaN becomes 0.
int64_t integer_bits_from_float(const ScalarRow& type, double value) {
  if (std::isnan(value)) return 0;
  const int magnitude_bits = type.is_signed ? type.bits - 1 : type.bits;
  const double limit = std::ldexp(1.0, magnitude_bits);  // first value beyond the range
  const double rounded = std::nearbyint(value);
  if (rounded >= limit) return static_cast<int64_t>(low_bits(magnitude_bits));
  if (type.is_signed)
    return rounded <= -limit ? -static_cast<int64_t>(low_bits(magnitude_bits)) - 1 : static_cast<int64_t>(rounded);
  return rounded <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(rounded));
}

int64_t truncated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value <= -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

uint64_t load_element(const std::byte* bytes, int bits, int64_t i) {
  if (bits < 8) return static_cast<uint64_t>(bytes[i * bits / 8]) >> (i * bits % 8) & low_bits(bits);
  uint64_t word = 0;  // low bytes first: hoist supports little-endian machines only
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&word, bytes + i * (bits / 8), static_cast<size_t>(bits / 8));
  return word;
}

void store_element(std::byte* bytes, int bits, int64_t i, uint64_t word) {
  if (bits < 8) {
    std::byte& place = bytes[i * bits / 8];
    const auto shift = static_cast<int>(i * bits % 8);
    const uint64_t keep = static_cast<uint64_t>(place) & ~(low_bits(bits) << shift);
    place = static_cast<std::byte>(keep | (word & low_bits(bits)) << shift);
  } else {
    std::memcpy(bytes + i * (bits / 8), &word, static_cast<size_t>(bits / 8));
  }
}

int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    HOIST_CHECK(extent >= 0, "negative extent " + std::to_string(extent));
    HOIST_CHECK(!__builtin_mul_overflow(count, extent, &count), "the number of elements exceeds 64 bits");
  }
  return count;
}

Tensor first_elements(const Tensor& tensor, size_t dimension, int64_t count) {
  std::vector<int64_t> shape = tensor.shape();
  HOIST_CHECK(dimension < shape.size() && count >= 0 && count <= shape[dimension], "elements that are there");
  if (count == shape[dimension]) return tensor;
  int64_t inner = 1;
  for (size_t i = dimension + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t row_before = shape[dimension] * inner, row_after = count * inner;
  shape[dimension] = count;
  Tensor out(tensor.scalar(), shape);
  const int bits = row(tensor.scalar()).bits;
  for (int64_t first = 0, from = 0; first < out.size(); first += row_after, from += row_before) {
    if (bits % 8 == 0) {
      const auto width = static_cast<size_t>(bits / 8);
      std::memcpy(out.data() + static_cast<size_t>(first) * width, tensor.data() + static_cast<size_t>(from) * width,
                  static_cast<size_t>(row_after) * width);
      continue;
    }
    for (int64_t i = 0; i < row_after; ++i) out.set_integer(first + i, tensor.integer_at(from + i));
  }
  return out;
}

int64_t byte_size(Scalar scalar, const std::vector<int64_t>& shape) {
  const int64_t count = element_count(shape);
  const int bits = row(scalar).bits;
  if (bits < 8) return count / (8 / bits) + (count % (8 / bits) != 0 ? 1 : 0);
  int64_t bytes = 0;
  HOIST_CHECK(!__builtin_mul_overflow(count, bits / 8, &bytes), "the number of bytes exceeds 64 bits");
  return bytes;
}

double float_from_bits(Scalar scalar, uint64_t bits) {
  switch (scalar) {
    case Scalar::f64:
      return std::bit_cast<double>(bits);
    case Scalar::f32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case Scalar::bf16:
      return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
    case Scalar::boolean:
      return (bits & 0xff) != 0 ? 1 : 0;
    case Scalar::u64:
      return static_cast<double>(bits);
    case Scalar::f8e8m0:
      return decode_power(bits);
    default:
      break;
  }
  const ScalarRow& type = row(scalar);
  return type.is_float ? decode(small_float(scalar), static_cast<uint32_t>(bits))
                       : static_cast<double>(sign_extended(type, bits));
}

uint64_t bits_from_float(Scalar scalar, double value) {
  switch (scalar) {
    case Scalar::f64:
      return std::bit_cast<uint64_t>(value);
    case Scalar::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case Scalar::boolean:
      return value != 0 ? 1 : 0;
    case Scalar::f8e8m0:
      return encode_power(value);
    default:
      break;
  }
  const ScalarRow& type = row(scalar);
  if (type.is_float) return encode(small_float(scalar), value);
  return static_cast<uint64_t>(integer_bits_from_float(type, value)) & low_bits(type.bits);
}

namespace {

// calloc: memory that the system provides zeroed is not cleared again.
std::shared_ptr<std::byte> cleared(size_t bytes) {
  void* memory = std::calloc(std::max<size_t>(bytes, 1), 1);
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

std::shared_ptr<std::byte> owned(std::unique_ptr<std::byte[]> bytes) {
  const std::shared_ptr<std::byte[]> owner = std::move(bytes);
  return {owner, owner.get()};
}

}  // namespace

Tensor::Tensor(Scalar scalar, std::vector<int64_t> shape)
    : scalar_(scalar), shape_(std::move(shape)), byte_count_(static_cast<size_t>(byte_size(scalar, shape_))) {
  bytes_ = cleared(byte_count_);
}

Tensor::Tensor(Scalar scalar, std::vector<int64_t> shape, std::vector<std::byte> bytes)
    : scalar_(scalar), shape_(std::move(shape)) {
  take(std::move(bytes));
}

Tensor::Tensor(Scalar scalar, std::vector<int64_t> shape, std::string bytes)
    : scalar_(scalar), shape_(std::move(shape)) {
  take(std::move(bytes));
}

Tensor::Tensor(Scalar scalar, std::vector<int64_t> shape, std::unique_ptr<std::byte[]> bytes)
    : Tensor(scalar, std::move(shape), owned(std::move(bytes))) {}

Tensor::Tensor(Scalar scalar, std::vector<int64_t> shape, std::shared_ptr<std::byte> bytes)
    : scalar_(scalar),
      shape_(std::move(shape)),
      bytes_(std::move(bytes)),
      byte_count_(static_cast<size_t>(byte_size(scalar, shape_))) {}

Tensor Tensor::of_mapping(Scalar scalar, std::vector<int64_t> shape, std::shared_ptr<std::byte> bytes) {
  Tensor out(scalar, std::move(shape), std::move(bytes));
  out.is_mapped_ = true;
  return out;
}

void Tensor::release_pages() const {
  if (!is_mapped_) return;
  // The mapping begins with a page, the tensor perhaps inside it.
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes_.get()) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(bytes_.get()) + byte_count_;
  // Advice: after a failure the pages stay.
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED));
}

template <class Container>
void Tensor::take(Container bytes) {
  const auto owner = std::make_shared<Container>(std::move(bytes));
  byte_count_ = owner->size();
  bytes_ = {owner, reinterpret_cast<std::byte*>(owner->data())};
  HOIST_CHECK(static_cast<int64_t>(byte_count_) == byte_size(scalar_, shape_),
              std::to_string(byte_count_) + " bytes for a tensor of " + std::to_string(byte_size(scalar_, shape_)));
}

int64_t Tensor::size() const { return element_count(shape_); }

std::byte* Tensor::data() {
  if (bytes_.use_count() > 1) {
    const std::shared_ptr<std::byte[]> own = std::make_shared_for_overwrite<std::byte[]>(byte_count_);
    std::memcpy(own.get(), bytes_.get(), byte_count_);
    bytes_ = {own, own.get()};
  }
  is_mapped_ = false;
  return bytes_.get();
}

double Tensor::float_at(int64_t i) const {
  if (scalar_ == Scalar::f32) {  // fast path of the most common type
    float value;
    std::memcpy(&value, bytes_.get() + i * 4, 4);
    return value;
  }
  return float_from_bits(scalar_, load_element(bytes_.get(), row(scalar_).bits, i));
}

int64_t Tensor::integer_at(int64_t i) const {
  const ScalarRow& type = row(scalar_);
  const uint64_t bits = load_element(bytes_.get(), type.bits, i);
  if (type.is_float) return truncated(float_from_bits(scalar_, bits));
  return scalar_ == Scalar::boolean ? bits != 0 : sign_extended(type, bits);
}

void Tensor::set_float(int64_t i, double value) {
  store_element(data(), row(scalar_).bits, i, bits_from_float(scalar_, value));
}

void Tensor::set_integer(int64_t i, int64_t value) {
  const ScalarRow& type = row(scalar_);
  if (type.is_float) return set_float(i, static_cast<double>(value));
  store_element(data(), type.bits, i, scalar_ == Scalar::boolean ? value != 0 : static_cast<uint64_t>(value));
}

namespace {

template <class T>
int64_t largest_magnitude_of(const Tensor& tensor) {
  T low = 0, high = 0;
  const std::byte* bytes = tensor.data();
  for (int64_t i = 0, count = tensor.size(); i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return std::max<int64_t>(high, -static_cast<int64_t>(low));
}

}  // namespace

int64_t largest_magnitude(const Tensor& tensor) {
  switch (tensor.scalar()) {  // the types of weights, whose tensors are large
    case Scalar::i8:
      return largest_magnitude_of<int8_t>(tensor);
    case Scalar::u8:
      return largest_magnitude_of<uint8_t>(tensor);
    case Scalar::i16:
      return largest_magnitude_of<int16_t>(tensor);
    case Scalar::i32:
      return largest_magnitude_of<int32_t>(tensor);
    default:
      break;
  }
  int64_t largest = 0;
  for (int64_t i = 0, count = tensor.size(); i < count; ++i) {
    const int64_t n = tensor.integer_at(i);
    largest = std::max(largest, n == INT64_MIN ? INT64_MAX : std::abs(n));
  }
  return largest;
}

std::vector<int64_t> Tensor::as_integers() const {
  std::vector<int64_t> out(static_cast<size_t>(size()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = integer_at(static_cast<int64_t>(i));
  return out;
}

std::span<const float> Tensor::floats() const {
  HOIST_CHECK(scalar_ == Scalar::f32, "elements of another type read as f32");
  // The bytes come from operator new, malloc or a string, all of which are aligned for every scalar type.
  return {reinterpret_cast<const float*>(bytes_.get()), byte_count_ / sizeof(float)};
}

Tensor Tensor::of_floats(std::vector<int64_t> shape, std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return Tensor(Scalar::f32, std::move(shape), std::vector<std::byte>(bytes.begin(), bytes.end()));
}

Tensor Tensor::reshaped(std::vector<int64_t> shape) const {
  HOIST_CHECK(element_count(shape) == size(),
              "reshape from " + std::to_string(size()) + " elements to " + std::to_string(element_count(shape)));
  Tensor out = *this;
  out.shape_ = std::move(shape);
  return out;
}

bool Tensor::operator==(const Tensor& other) const {
  return scalar_ == other.scalar_ && shape_ == other.shape_ &&
         (bytes_ == other.bytes_ || std::ranges::equal(bytes(), other.bytes()));
}

}  // namespace hoist
