#include "backends/opencl/device.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "backends/runtime/native/native_device.h"
#include "backends/runtime/opencl/opencl_device.h"

namespace hoist {
namespace {

/// Queries a device and keeps the first error.
struct Inquiry {
  cl_device_id id;
  cl_int code = CL_SUCCESS;

  void ask(cl_device_info what, size_t room, void* value, size_t* bytes) {
    if (code == CL_SUCCESS) code = clGetDeviceInfo(id, what, room, value, bytes);
  }

  template <class T>
  int64_t integer(cl_device_info what) {
    T value = 0;
    ask(what, sizeof value, &value, nullptr);
    return static_cast<int64_t>(value);
  }

  std::string text(cl_device_info what) {
    size_t bytes = 0;
    ask(what, 0, nullptr, &bytes);
    std::string text(bytes, '\0');
    if (bytes > 0) ask(what, bytes, text.data(), nullptr);
    return text.substr(0, text.find('\0'));
  }
};

/// True if f16 arithmetic gives the interpreter's bits. The query belongs to the extension, and headers of OpenCL 1.2
/// do not define it.
bool computes_halves(Inquiry& device) {
  constexpr cl_device_info half_fp_config = 0x1033;
  constexpr cl_device_fp_config exact = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST;
  const auto floats = static_cast<cl_device_fp_config>(device.integer<cl_device_fp_config>(half_fp_config));
  return (floats & exact) == exact;
}

Result<Device> describe(const hoist_target& target, int index) {
  Inquiry device{target.device};
  Device out;
  out.index = index;
  out.platform = target.platform_name;
  out.name = target.name;
  out.driver = target.driver;
  out.vendor = device.text(CL_DEVICE_VENDOR);
  out.is_cpu = target.is_cpu != 0;
  out.compute_units = target.compute_units;
  out.global_memory = device.integer<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE);
  out.local_memory = static_cast<int64_t>(target.local_memory);
  out.largest_allocation = static_cast<int64_t>(target.largest_allocation);
  out.maximum_group = device.integer<size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE);
  out.vector_width = std::max<int64_t>(1, device.integer<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT));
  out.computes_exactly = target.computes_exactly != 0;
  out.divides_exactly = target.divides_exactly != 0;
  out.dot_instructions = *hoist_dot_option(&target) != 0;
  std::istringstream extensions(device.text(CL_DEVICE_EXTENSIONS));
  for (std::string extension; extensions >> extension;) out.extensions.push_back(extension);
  const auto has = [&](const char* name) {
    return std::find(out.extensions.begin(), out.extensions.end(), name) != out.extensions.end();
  };
  out.half = has("cl_khr_fp16") && computes_halves(device);
  out.doubles = has("cl_khr_fp64");
  // The kernels depend on the target description, so it must be complete.
  if (device.code != CL_SUCCESS) {
    return Diagnostic{target.name, std::string("does not identify itself: ") + hoist_cl_name(device.code), ""};
  }
  return out;
}

/// The largest power of two up to the value, within the limit of OpenCL vectors.
int64_t vector_lanes(int64_t width) {
  int64_t lanes = 1;
  while (lanes * 2 <= std::min<int64_t>(width, 16)) lanes *= 2;
  return lanes;
}

}  // namespace

Result<Device> native_device(const std::vector<std::string>& targets) {
  std::string all;
  std::vector<const char*> names;
  for (const std::string& target : targets) {
    all += (all.empty() ? "" : ", ") + target;
    names.push_back(target.c_str());
  }
  hoist_plan plan = {};
  plan.targets = names.data();
  plan.target_count = names.size();
  hoist_error error = {};
  const char* chosen = nullptr;
  if (hoist_native_choose(&plan, &chosen, &error) != HOIST_OK)
    return Diagnostic{"", "this processor does not run native code for " + all, ""};
  Device out;
  out.index = -1;
  out.name = std::string("native ") + chosen;
  out.is_cpu = out.computes_exactly = out.divides_exactly = out.doubles = true;
  return out;
}

Result<std::vector<Device>> list_devices() {
  cl_device_id* ids = nullptr;
  size_t count = 0;
  hoist_error error = {};
  if (hoist_all_devices(0, &ids, &count, &error) != HOIST_OK) return Diagnostic{"", error.message, ""};
  std::free(ids);
  std::vector<Device> out;
  for (size_t i = 0; i < count; ++i) {
    HOIST_TRY(Device device, find_device(std::to_string(i)));
    out.push_back(std::move(device));
  }
  return out;
}

Result<Device> find_device(const std::string& wanted) {
  hoist_target target = {};
  hoist_error error = {};
  if (hoist_target_open(wanted.c_str(), nullptr, 0, &target, &error) != HOIST_OK) {
    return Diagnostic{"", error.message, "hoist devices lists them"};
  }
  Result<Device> out = describe(target, static_cast<int>(target.index));
  hoist_target_close(&target);
  return out;
}

Profile profile_of(const Device& device) {
  Profile out;
  out.name = device.name;
  out.gpu = !device.is_cpu;
  if (out.gpu) {
    // A work-item computes scalars, loads up to 16 bytes at once, and has up to 255 registers on the GPUs measured.
    out.vector_width = std::max<int64_t>(4, vector_lanes(device.vector_width));
    out.vector_registers = 255;
  } else {
    out.vector_width = vector_lanes(device.vector_width);
    // 512-bit vectors come with 32 registers, narrower ones with 16.
    out.vector_registers = out.vector_width >= 16 ? 32 : 16;
  }
  out.local_memory = std::min<int64_t>(device.local_memory, int64_t{1} << 30);
  out.compute_units = std::max<int64_t>(1, device.compute_units);
  out.maximum_group = std::clamp<int64_t>(device.maximum_group, 1, 1 << 20);
  out.half = device.half;
  out.doubles = device.doubles;
  out.dot_instructions = device.dot_instructions || (out.gpu && device.vendor.find("NVIDIA") != std::string::npos);
  return out;
}

}  // namespace hoist
