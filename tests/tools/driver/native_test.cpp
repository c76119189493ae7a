// Tests native code as a user makes and runs it: named targets, reproducible bytes, bundles without OpenCL, and other
// processors' code under an emulator.
#include <gmock/gmock.h>

#include <algorithm>

#include "backends/runtime/hoist_runtime.h"
#include "ir/base/process_folder.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"

namespace hoist::native_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_attention.onnx";

bool is_there(const std::string& program) { return run_shell("command -v " + program).code == 0; }

class Native : public InTemporaryFolder {
 protected:
  Ran compile(const std::string& name, const std::string& target) {
    return run_hoist({"compile", model, "-o", in(name), "--dim", "N=1", "--target", target});
  }
};

TEST_F(Native, KernelsAgreeWithTheInterpreterAndNeedNoDriver) {
  const Ran compiled = compile("a.hoist", "native");
  if (compiled.err.find("no target is for this processor") != std::string::npos) GTEST_SKIP() << compiled.err;
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("agree with the interpreter"));
  // No platform: the OpenCL loader searches an empty folder.
  const std::string no_driver = "export OCL_ICD_VENDORS=" + in("none") + "; ";
  const Ran verified = run_hoist({"verify", in("a.hoist"), "--all"}, no_driver);
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("checks passed on native "));
  EXPECT_EQ(run_hoist({"verify", in("a.hoist"), "--derivation", "--model", model}, no_driver).code, 0);
  const std::string data = std::string(HOIST_SOURCE_DIR) + "/models/digits_attention_test.npz";
  const Ran evaluated = run_hoist({"evaluate", in("a.hoist"), "--data", data, "--threads", "1"}, no_driver);
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out, HasSubstr("of 500 right"));
  EXPECT_THAT(run_hoist({"bench", in("a.hoist"), "--seconds", "0.05"}, no_driver).out, HasSubstr("native"));
  const Ran on_device = run_hoist({"bench", in("a.hoist"), "--device", "0"});
  EXPECT_EQ(on_device.code, 4);
  EXPECT_THAT(on_device.err, HasSubstr("runs on no OpenCL device"));
}

TEST_F(Native, OneTargetGivesTheSameBytesInAnyFolder) {
  ASSERT_EQ(compile("a.hoist", "native:x86-64-v3,native:x86-64-v4").code, 0);
  ASSERT_EQ(run_shell("mkdir " + in("other")).code, 0);
  ASSERT_EQ(compile("other/b.hoist", "native:x86-64-v3,native:x86-64-v4").code, 0);
  const Ran differences = run_shell("diff -r " + in("a.hoist") + " " + in("other/b.hoist"));
  EXPECT_EQ(differences.code, 0) << differences.out;
  auto manifest = read_file(in("a.hoist/manifest.json"));
  ASSERT_TRUE(manifest.ok());
  EXPECT_THAT(*manifest, HasSubstr("\"x86-64-v3\",\n    \"x86-64-v4\""));
  auto table = read_file(in("a.hoist/native/kernels.c"));
  ASSERT_TRUE(table.ok());
  EXPECT_THAT(*table, HasSubstr("{\"x86-64-v4\", "));
}

TEST_F(Native, ProgramsLoadOrLinkTheKernelsWithoutOpenCL) {
  const Ran compiled = compile("a.hoist", "native");
  if (compiled.code != 0) GTEST_SKIP() << compiled.err;
  const Ran made = run_shell("make -C " + in("a.hoist") + " CFLAGS='-O1 -Wall -Wextra -Werror' example example-static");
  ASSERT_EQ(made.code, 0) << made.out << made.err;
  for (const char* program : {"/example", "/example-static"}) {
    const Ran ran = run_shell(in("a.hoist") + program + " --verify");
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("verified"));
    EXPECT_THAT(run_shell("ldd " + in("a.hoist") + program).out, Not(HasSubstr("OpenCL")));
  }
  // The static program contains its kernels; the other program checks the library that it loads.
  ASSERT_EQ(run_shell("for f in " + in("a.hoist") + "/native/*.so; do printf x >> $f; done").code, 0);
  const Ran changed = run_shell(in("a.hoist") + "/example --runs 1");
  EXPECT_EQ(changed.code, 3);
  EXPECT_THAT(changed.out + changed.err, HasSubstr(".so: has "));
  EXPECT_EQ(run_shell(in("a.hoist") + "/example-static --runs 1").code, 0);
}

// The shared libraries of the bundles have no soname and equal function names.
TEST_F(Native, BundlesInOneProgramKeepTheirOwnCode) {
  const std::string models = std::string(HOIST_SOURCE_DIR) + "/models/";
  std::vector<hoist_bundle*> opened;
  for (const char* name : {"digits_fully_connected", "digits_residual", "digits_attention"}) {
    const Ran compiled = run_hoist({"compile", models + name + ".onnx", "-o", in(name), "--target", "native"});
    if (compiled.err.find("no target is for this processor") != std::string::npos) GTEST_SKIP() << compiled.err;
    ASSERT_EQ(compiled.code, 0) << compiled.err;
    hoist_bundle* bundle = nullptr;
    EXPECT_EQ(hoist_open(in(name).c_str(), nullptr, &bundle), HOIST_OK) << hoist_error_message(bundle);
    opened.push_back(bundle);
    if (HasFailure()) break;
  }
  for (hoist_bundle* bundle : opened) {
    const hoist_status verified = HasFailure() ? HOIST_OK : hoist_verify(bundle, nullptr, nullptr);
    EXPECT_EQ(verified, HOIST_OK) << hoist_error_message(bundle);
  }
  for (hoist_bundle* bundle : opened) hoist_close(bundle);
}

TEST_F(Native, WhatDoesNotFitIsSaid) {
  const Ran unknown = compile("a.hoist", "native:x86-64-v9");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean x86-64-v"));
  EXPECT_EQ(compile("a.hoist", "metal").code, 2);
  EXPECT_EQ(run_hoist({"compile", model, "-o", in("a.hoist"), "--target", "native", "--device", "0"}).code, 2);
}

// Chosen by timing native code, which the record names: an OpenCL device needs another study.
TEST_F(Native, BudgetsAndRooflines) {
  const std::string models = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected";
  const std::vector<std::string> budget = {
      "compile",  models + ".onnx", "-o",          in("a.hoist"), "--calibrate", models + "_calibration.npz",
      "--budget", "sqnr=20dB",      "--objective", "size",        "--record",    in("a.json")};
  std::vector<std::string> native = budget;
  native.insert(native.end(), {"--target", "native"});
  const Ran compiled = run_hoist(native);
  if (compiled.err.find("no target is for this processor") != std::string::npos) GTEST_SKIP() << compiled.err;
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("for native "));
  EXPECT_EQ(run_hoist({"verify", in("a.hoist"), "--all"}).code, 0);
  EXPECT_EQ(run_hoist({"verify", in("a.hoist"), "--derivation", "--model", models + ".onnx"}).code, 0);
  std::vector<std::string> again = budget;
  again.push_back("--force");
  EXPECT_THAT(run_hoist(again).err, HasSubstr("a.json"));
  const Ran roofline = run_hoist({"bench", in("a.hoist"), "--seconds", "0.05", "--roofline"});
  EXPECT_EQ(roofline.code, 0) << roofline.err;
  EXPECT_THAT(roofline.out, HasSubstr("measured peak: "));
  EXPECT_THAT(roofline.out, HasSubstr("on native "));
}

TEST_F(Native, CodeForOtherProcessorsRunsThere) {
  const Ran compiled = compile("a.hoist", "native:aarch64");
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_TRUE(fs::exists(in("a.hoist/native/kernels-aarch64.a")));
#ifndef __aarch64__
  EXPECT_THAT(compiled.out, HasSubstr("not checked: this processor does not run native code for aarch64"));
  const Ran here = run_hoist({"bench", in("a.hoist")});
  EXPECT_EQ(here.code, 4);
  EXPECT_THAT(here.err, HasSubstr("native code for aarch64, which this processor does not run"));
#endif
  if (!is_there("qemu-aarch64") || !is_there("aarch64-linux-gnu-gcc"))
    GTEST_SKIP() << "no qemu-aarch64 or aarch64-linux-gnu-gcc is installed";
  const std::string program = in("a.hoist/on-arm");
  const Ran made = run_shell("cd " + in("a.hoist") +
                             " && aarch64-linux-gnu-gcc -O1 -static -std=c99 -DHOIST_WITHOUT_OPENCL "
                             "-DHOIST_LINKED_KERNELS -o on-arm example.c runtime/hoist_runtime.c native/kernels.c "
                             "native/kernels-aarch64.a -lpthread -lm");
  ASSERT_EQ(made.code, 0) << made.out << made.err;
  const Ran ran = run_shell("qemu-aarch64 " + program + " --verify");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("verified"));
  EXPECT_THAT(ran.out, HasSubstr("bit-identical"));
  EXPECT_THAT(ran.out, Not(HasSubstr("FAIL")));
}

}  // namespace hoist::native_test
