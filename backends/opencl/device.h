// OpenCL devices in the hoist program, and target descriptions derived from them. Including this header requires no
// OpenCL header. Devices are numbered over all platforms in the loader's order, as in the C runtime.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/target/profile.h"

namespace hoist {

struct Device {
  int index = 0;  ///< accepted by --device, as is a name or a part of one
  std::string platform, name, vendor, driver;
  bool is_cpu = false;
  int64_t compute_units = 0;
  int64_t global_memory = 0, local_memory = 0, largest_allocation = 0;  ///< bytes
  int64_t maximum_group = 0;                                            ///< work-items
  int64_t vector_width = 1;                                             ///< native float lanes
  bool half = false;              ///< f16 arithmetic rounds to nearest and keeps denormals, infinities and NaN
  bool doubles = false;           ///< arithmetic in f64
  bool computes_exactly = false;  ///< f32 rounds to nearest and keeps denormals and infinities
  bool divides_exactly = false;   ///< f32 division and square root are correctly rounded, with the build option
  bool dot_instructions = false;  ///< for dot products of bytes; the runtime selects the instructions by a build option
  std::vector<std::string> extensions;
};

/// All devices. Without any device the error states the packages to install.
Result<std::vector<Device>> list_devices();

/// An index, a name, or a part of a name or platform in any letter case; "" is the first.
Result<Device> find_device(const std::string& wanted);

/// The target description for strategies.
Profile profile_of(const Device& device);

/// The processor as a device for native code of one of these targets; its index is -1. Errors: it supports none of
/// them.
Result<Device> native_device(const std::vector<std::string>& targets);

}  // namespace hoist
