#include "backends/opencl/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "backends/opencl/kernel_runner.h"
#include "backends/runtime/opencl/opencl_device.h"
#include "ir/base/seeded.h"

namespace hoist {
namespace {

using testing::HasSubstr;

TEST(DeviceTest, DevicesAreListedAndFound) {
  auto devices = list_devices();
  ASSERT_TRUE(devices.ok()) << devices.errors().front().text();
  ASSERT_FALSE(devices->empty());
  const Device& first = devices->front();
  EXPECT_FALSE(first.name.empty());
  EXPECT_GT(first.compute_units, 0);
  EXPECT_GT(first.global_memory, 0);
  EXPECT_GT(first.maximum_group, 0);
  EXPECT_EQ(find_device("")->name, first.name);
  EXPECT_EQ(find_device("0")->index, 0);
  EXPECT_EQ(find_device(first.name)->name, first.name);
  std::string shouted = first.platform.substr(0, 6);
  for (char& c : shouted) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_EQ(find_device(shouted)->index, 0);
}

TEST(DeviceTest, UnknownDevicesAreNamed) {
  const auto wrong = find_device("warp drive");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.errors().front().text(), HasSubstr("no device is called warp drive (there are: 0 "));
  EXPECT_THAT(find_device("1000").errors().front().text(), HasSubstr("device 1000: there are"));
  EXPECT_THAT(find_device("99999999999999999999").errors().front().text(), HasSubstr("counted from 0"));
}

hoist_device a_device(const char* name, bool is_cpu) {
  hoist_device out = {};
  std::snprintf(out.name, sizeof out.name, "%s", name);
  out.is_cpu = is_cpu ? 1 : 0;
  return out;
}

// The default device is the one that a bundle was compiled for, else one of the same kind, else any.
TEST(DeviceTest, TheDefaultDeviceIsOneThatFits) {
  const std::vector<hoist_device> devices = {a_device("cpu 0", true), a_device("gpu 0", false), a_device("cpu 1", true),
                                             a_device("gpu 1", false)};
  const auto chosen = [&](const char* name, bool is_cpu, size_t count) {
    const hoist_plan_made_for made_for = {name, is_cpu ? 1 : 0, 0};
    return hoist_default_device(devices.data(), count, &made_for);
  };
  EXPECT_EQ(chosen("another", true, 4), 0u);
  EXPECT_EQ(chosen("another", false, 4), 1u);
  EXPECT_EQ(chosen("cpu 1", true, 4), 2u);
  EXPECT_EQ(chosen("gpu 1", false, 4), 3u);
  EXPECT_EQ(chosen("gpu 1", true, 4), 0u);  // the right name, but another kind
  EXPECT_EQ(chosen("gpu 1", false, 1), 0u);
}

TEST(DeviceTest, AProfileSurvivesItsText) {
  auto device = find_device("");
  ASSERT_TRUE(device.ok());
  const Profile profile = profile_of(*device);
  auto read = parse_profile(print(profile), "device.profile");
  ASSERT_TRUE(read.ok()) << read.errors().front().text();
  EXPECT_EQ(print(*read), print(profile));
  EXPECT_EQ(read->gpu, !device->is_cpu);
}

TEST(DeviceTest, CostsOfWorkGroupsAreKeysOfGpus) {
  auto read =
      parse_profile("kind = gpu\nunit_registers = 32768\nmemory_cycles = 100\nbarrier_cycles = 100\n", "gpu.profile");
  ASSERT_TRUE(read.ok()) << read.errors().front().text();
  EXPECT_EQ(read->costs.unit_registers, 32768);
  EXPECT_THAT(print(*read), HasSubstr("memory_cycles = 100\n"));
  EXPECT_EQ(print(*read).find("barrier_cycles"), std::string::npos) << "a key that there was before";
  EXPECT_EQ(print(*parse_profile(print(*read), "")), print(*read));
  Profile other = *read;
  other.costs = {};
  EXPECT_TRUE(same_device(*read, other));
  other.compute_units += 1;
  EXPECT_FALSE(same_device(*read, other));
  EXPECT_EQ(print(Profile()).find("memory_cycles"), std::string::npos);
  auto wrong = parse_profile("subgroup = 0\nmemory_cyles = 64\n", "gpu.profile");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.errors()[0].text(), HasSubstr("subgroup is a number from 1 to"));
  EXPECT_THAT(wrong.errors()[1].text(), HasSubstr("did you mean memory_cycles"));
  const auto mixed = parse_profile("kind = gpu\nmatrix_tile = 16\n", "gpu.profile");
  ASSERT_FALSE(mixed.ok());
  EXPECT_THAT(mixed.errors()[0].text(), HasSubstr("keys of CPUs"));
}

TEST(DeviceTest, RareKeysArePrintedWhereTheyAreNotAsUsual) {
  EXPECT_EQ(print(Profile()).find("first_cache"), std::string::npos);
  EXPECT_EQ(print(Profile()).find("vector_functions"), std::string::npos);
  auto read = parse_profile("first_cache = 49152\nvector_functions = yes\n", "cpu.profile");
  ASSERT_TRUE(read.ok()) << read.errors().front().text();
  EXPECT_EQ(read->first_cache, 49152);
  EXPECT_THAT(print(*read), HasSubstr("first_cache = 49152\n"));
  EXPECT_THAT(print(*read), HasSubstr("vector_functions = yes\n"));
  EXPECT_FALSE(same_device(*read, Profile()));
  read = parse_profile("distant_lane_load = 5\n", "cpu.profile");
  ASSERT_TRUE(read.ok()) << read.errors().front().text();
  EXPECT_EQ(read->loads.distant_lane, 5);
  EXPECT_THAT(print(*read), HasSubstr("distant_lane_load = 5\n"));
  EXPECT_TRUE(same_device(*read, Profile()));
  read = parse_profile("lane_load = 0\n", "cpu.profile");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.errors()[0].text(), HasSubstr("cpu.profile:1: lane_load is a number from 1 to 1024, not 0"));
}

PlanKernel scaling_kernel() {
  PlanKernel kernel;
  kernel.name = "scale";
  kernel.source =
      "__kernel void scale(__global const float* restrict p0, __global const int* restrict p1,\n"
      "                    __global float* restrict result) {\n"
      "  const int i = get_global_id(0);\n"
      "  if (i != 5) result[i] = twice(p0[i]) * p1[0];\n"
      "}\n";
  kernel.global = {8, 1, 1};
  kernel.local = {4, 1, 1};
  kernel.parameters = {{"p0", Scalar::f32, {8}, false, -1, 1},
                       {"p1", Scalar::i32, {1}, false, 0, 9},
                       {"result", Scalar::f32, {8}, true, -1, 1}};
  return kernel;
}

const char* const preamble = "float twice(float x) { return x + x; }";

TEST(KernelRunnerTest, RunsOneKernel) {
  const Tensor x = seeded_tensor(Scalar::f32, {8}, 1, 0, -1, 1), three = Tensor::of<int>(Scalar::i32, {1}, {3});
  auto out = run_kernel(scaling_kernel(), preamble, "-cl-std=CL1.2", {x, three});
  ASSERT_TRUE(out.ok()) << out.errors().front().text();
  ASSERT_EQ(out->size(), 1u);
  for (int64_t i = 0; i < 8; ++i) {
    // Element 5 is not written, and unwritten elements are NaN.
    const double found = (*out)[0].float_at(i);
    EXPECT_TRUE(i == 5 ? std::isnan(found) : found == static_cast<float>(2 * x.float_at(i)) * 3.0f) << i;
  }
  KernelRun cleared;
  cleared.clear_result = true;
  EXPECT_EQ((*run_kernel(scaling_kernel(), preamble, "", {x, three}, cleared))[0].float_at(5), 0);
}

TEST(KernelRunnerTest, ADeviceWithoutHalvesIsNamed) {
  auto device = find_device("");
  ASSERT_TRUE(device.ok());
  if (std::count(device->extensions.begin(), device->extensions.end(), "cl_khr_fp16") != 0)
    GTEST_SKIP() << device->name << " has them";
  EXPECT_FALSE(device->half);
  const Tensor x(Scalar::f32, {8}), three = Tensor::of<int>(Scalar::i32, {1}, {3});
  PlanKernel kernel = scaling_kernel();
  kernel.source =
      "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n" + kernel.source + "half h(void) { return half_; }\n";
  auto out = run_kernel(kernel, preamble, "-cl-std=CL1.2", {x, three});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.errors().front().text(), HasSubstr("it computes in f16 and the device lacks cl_khr_fp16"));
}

TEST(KernelRunnerTest, WrongKernelsAreNamed) {
  const Tensor x(Scalar::f32, {8}), three = Tensor::of<int>(Scalar::i32, {1}, {3});
  PlanKernel kernel = scaling_kernel();
  kernel.source = "__kernel void scale(nothing";
  auto out = run_kernel(kernel, "", "", {x, three});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.errors().front().text(), HasSubstr("does not compile"));
  kernel = scaling_kernel();
  kernel.name = "other";
  out = run_kernel(kernel, preamble, "", {x, three});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.errors().front().text(), HasSubstr("kernel other: clCreateKernel: CL_INVALID_KERNEL_NAME"));
  out = run_kernel(scaling_kernel(), preamble, "", {Tensor(Scalar::f32, {7}), three});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.errors().front().text(), HasSubstr("p0 takes 32 bytes, given 28"));
}

}  // namespace
}  // namespace hoist
