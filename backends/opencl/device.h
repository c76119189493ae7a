// OpenCL devices as the hoist program sees them, and the profile of one. No OpenCL header is needed to use this.
// Devices are numbered over all platforms in the loader's order, as the C runtime does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/target/profile.h"

namespace hoist {

struct Device {
  int index = 0;  ///< what --device takes, besides a name or a part of one
  std::string platform, name, vendor, driver;
  bool is_cpu = false;
  int64_t compute_units = 0;
  int64_t global_memory = 0, local_memory = 0, largest_allocation = 0;  ///< bytes
  int64_t maximum_group = 0;                                            ///< work-items
  int64_t vector_width = 1;                                             ///< native float lanes
  bool half = false;              ///< arithmetic in f16 that rounds to nearest and keeps denormals, infinities and NaN
  bool doubles = false;           ///< arithmetic in f64
  bool computes_exactly = false;  ///< f32 rounds to nearest and keeps denormals and infinities
  bool divides_exactly = false;   ///< f32 division and square root correctly rounded, with the build option
  bool dot_instructions = false;  ///< for products of bytes: the runtime says by an option which ones
  std::vector<std::string> extensions;
};

/// All devices; none is an error that says what to install.
Result<std::vector<Device>> list_devices();

/// An index, a name, or a part of a name or platform in any letter case; "" is the first.
Result<Device> find_device(const std::string& wanted);

/// What strategies need to know of it.
Profile profile_of(const Device& device);

/// The processor as what runs native code for one of these targets; its index is -1. An error where it runs none.
Result<Device> native_device(const std::vector<std::string>& targets);

}  // namespace hoist
