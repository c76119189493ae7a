#include "backends/opencl/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/opencl/kernel_runner.h"
#include "ir/seeded.h"

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

TEST(DeviceTest, AProfileSurvivesItsText) {
  auto device = find_device("");
  ASSERT_TRUE(device.ok());
  const Profile profile = profile_of(*device);
  auto read = parse_profile(print(profile), "device.profile");
  ASSERT_TRUE(read.ok()) << read.errors().front().text();
  EXPECT_EQ(print(*read), print(profile));
  EXPECT_EQ(read->gpu, !device->is_cpu);
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
    // Element 5 is not written, and an unwritten element is a NaN.
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
