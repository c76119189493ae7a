// Tests a bundle in a user's CMake project: C and C++ programs that link the runtime and find the folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "ir/base/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"

namespace hoist::cmake_test {

using testing::HasSubstr;

const std::string models = std::string(HOIST_SOURCE_DIR) + "/models/";

constexpr char project[] = R"(cmake_minimum_required(VERSION 3.13)
project(programs LANGUAGES C CXX)
add_subdirectory(native.hoist)
set(HOIST_BUNDLE_TARGET digits)
add_subdirectory(opencl.hoist)
set(CMAKE_C_STANDARD 99)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_EXTENSIONS OFF)
add_compile_options(-Wall -Wextra -Wpedantic -Werror)
add_executable(in_c program.c)
target_link_libraries(in_c PRIVATE hoist::native)
add_executable(in_c_linked program.c)
target_link_libraries(in_c_linked PRIVATE hoist::native_linked)
add_executable(in_cpp program.cpp)
target_link_libraries(in_cpp PRIVATE hoist::native hoist::digits)
)";

constexpr char c_program[] = R"(#include <hoist_runtime.h>
#include <stdio.h>
#ifdef HOIST_LINKED_KERNELS
extern const hoist_linked_kernel hoist_linked_kernels[];
#endif
int main(void) {
  hoist_options options = {0};
#ifdef HOIST_LINKED_KERNELS
  options.linked_kernels = hoist_linked_kernels;
#endif
  hoist_bundle* bundle;
  hoist_status status = hoist_open(HOIST_BUNDLE_FOLDER_native, &options, &bundle);
  if (!status) status = hoist_verify(bundle, NULL, NULL);
  printf("%s\n", status ? hoist_error_message(bundle) : hoist_model_name(bundle));
  hoist_close(bundle);
  return (int)status;
}
)";

// Calls every function of the wrapper; returns 0 on success, else the line.
constexpr char cpp_program[] = R"(#include <hoist_runtime.hpp>

#include <iostream>

#define EXPECT(condition) \
  if (!(condition)) return __LINE__ % 256

template <class Call>
hoist_status thrown(const Call& call) {
  try {
    call();
  } catch (const hoist::Error& error) {
    std::cout << error.what() << "\n";
    return error.status();
  }
  return HOIST_OK;
}

int main() {
  for (const char* folder : {HOIST_BUNDLE_FOLDER_native, HOIST_BUNDLE_FOLDER_digits}) {
    hoist::Bundle opened(folder);
    hoist::Bundle bundle = std::move(opened);
    std::cout << bundle.model_name() << " on " << bundle.device_name() << "\n";
    EXPECT(bundle.fits_profile());
    const hoist::Array in = bundle.inputs().at(0), out = bundle.outputs().at(0);
    EXPECT(in.scalar == "f32" && in.shape.size() == 4 && in.bytes == 256);
    EXPECT(thrown([&] { bundle.run(); }) == HOIST_BAD_ARGUMENT);  // its input was never set
    int findings = 0;
    EXPECT(bundle.verify([&](const hoist_finding& finding) { findings += finding.passed; }));
    EXPECT(findings > 5);
    bool passed_on = false;
    try {
      bundle.verify([](const hoist_finding&) { throw 7; });
    } catch (int number) {
      passed_on = number == 7;
    }
    EXPECT(passed_on);
    for (float& pixel : bundle.input<float>(in.name)) pixel = 0.5f;
    bundle.run();
    const hoist::View<const float> first = bundle.output<float>(out.name);
    EXPECT(first.size() == 10);
    const std::vector<float> kept(first.begin(), first.end());
    std::vector<float> half(in.bytes / sizeof(float), 0.5f);
    bundle.set_input<float>(in.name, half);
    bundle.run();
    const hoist::View<const float> second = bundle.output<float>(out.name);
    for (std::size_t i = 0; i < second.size(); ++i) EXPECT(second[i] == kept[i]);
    EXPECT(thrown([&] { bundle.output<double>(out.name); }) == HOIST_BAD_ARGUMENT);
    EXPECT(thrown([&] { bundle.input<float>("nothing"); }) == HOIST_BAD_ARGUMENT);
    half.pop_back();
    EXPECT(thrown([&] { bundle.set_input<float>(in.name, half); }) == HOIST_BAD_ARGUMENT);
  }
  EXPECT(thrown([] { hoist::Bundle("nowhere"); }) == HOIST_BAD_BUNDLE);
  return 0;
}
)";

TEST(BundleInCMake, CAndCppProgramsLinkIt) {
  auto made = TemporaryFolder::make();
  ASSERT_TRUE(made.ok());
  const auto in = [&](const std::string& name) { return (made->path() / name).string(); };
  const std::string model = models + "digits_fully_connected.onnx";
  ASSERT_EQ(run_hoist({"compile", model, "-o", in("opencl.hoist"), "--no-check"}).code, 0);
  const Ran native = run_hoist({"compile", model, "-o", in("native.hoist"), "--no-check", "--target", "native"});
  if (native.err.find("no target is for this processor") != std::string::npos) GTEST_SKIP() << native.err;
  ASSERT_EQ(native.code, 0) << native.err;
  for (const auto& [name, text] :
       {std::pair{"CMakeLists.txt", project}, {"program.c", c_program}, {"program.cpp", cpp_program}}) {
    ASSERT_TRUE(write_file(in(name), text).ok());
  }
  const Ran built =
      run_shell("cmake -S '" + in("") + "' -B '" + in("build") + "' && cmake --build '" + in("build") + "'");
  ASSERT_EQ(built.code, 0) << built.out << built.err;
  for (const char* program : {"in_c", "in_c_linked"}) {
    const Ran ran = run_shell("'" + in("build/") + program + "'");
    EXPECT_EQ(ran.code, 0) << program << ": " << ran.out;
    EXPECT_EQ(ran.out, "digits_fully_connected\n");
  }
  const Ran ran = run_shell("'" + in("build/in_cpp") + "'");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("digits_fully_connected on native "));
  EXPECT_THAT(ran.out, HasSubstr("no input is called nothing"));
  // Without a parent project, the folder builds its example.
  const Ran alone =
      run_shell("cmake -S '" + in("native.hoist") + "' -B '" + in("alone") + "' && cmake --build '" + in("alone") +
                "' && '" + in("alone/example") + "' --bundle '" + in("native.hoist") + "' --verify");
  EXPECT_EQ(alone.code, 0) << alone.out << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("verified"));
}

// Installed files work after they are moved, and do not refer to the build.
constexpr char installed_project[] = R"(cmake_minimum_required(VERSION 3.13)
project(programs LANGUAGES C)
find_package(hoist 0.1 REQUIRED)
hoist_add_bundle(digits ${MODEL} --no-check)
set(CMAKE_C_STANDARD 99)
add_executable(with_bundle with_bundle.c)
target_link_libraries(with_bundle PRIVATE hoist::digits)
add_executable(with_runtime with_runtime.c)
target_link_libraries(with_runtime PRIVATE hoist::runtime)
)";

std::string opening_program(const std::string& folder) {
  return "#include <hoist_runtime.h>\n#include <stdio.h>\nint main(int count, char** words) {\n"
         "  hoist_bundle* bundle;\n  (void)count, (void)words;\n"
         "  hoist_status status = hoist_open(" +
         folder +
         ", NULL, &bundle);\n  puts(status ? hoist_error_message(bundle) : hoist_model_name(bundle));\n"
         "  hoist_close(bundle);\n  return (int)status;\n}\n";
}

TEST(BundleInCMake, FindPackageFindsWhatIsInstalled) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "what is installed is not built with a sanitizer";
#endif
  auto made = TemporaryFolder::make();
  ASSERT_TRUE(made.ok());
  const auto in = [&](const std::string& name) { return (made->path() / name).string(); };
  const std::string build = std::filesystem::path(HOIST_PROGRAM).parent_path();
  const Ran installed = run_shell("cmake --install '" + build + "' --prefix '" + in("first") + "' && mv '" +
                                  in("first") + "' '" + in("hoist") + "'");
  ASSERT_EQ(installed.code, 0) << installed.out << installed.err;
  EXPECT_THAT(run_shell("'" + in("hoist/bin/hoist") + "' -V").out, HasSubstr("hoist 0.1"));
  EXPECT_THAT(run_shell("man -l '" + in("hoist/share/man/man1/hoist.1") + "' 2>&1 || grep SYNOPSIS '" +
                        in("hoist/share/man/man1/hoist.1") + "'")
                  .out,
              HasSubstr("SYNOPSIS"));
  EXPECT_EQ(run_shell("bash -n '" + in("hoist/share/bash-completion/completions/hoist") + "'").code, 0);
  ASSERT_TRUE(write_file(in("CMakeLists.txt"), installed_project).ok());
  ASSERT_TRUE(write_file(in("with_bundle.c"), opening_program("HOIST_BUNDLE_FOLDER_digits")).ok());
  ASSERT_TRUE(write_file(in("with_runtime.c"), opening_program("words[1]")).ok());
  const auto configure = [&](const std::string& model) {
    return run_shell("cmake -S '" + in("") + "' -B '" + in("build") + "' -DCMAKE_PREFIX_PATH='" + in("hoist") +
                     "' -DMODEL='" + model + "' 2>&1");
  };
  const std::string model = models + "digits_fully_connected.onnx";
  const Ran configured = configure(model);
  ASSERT_EQ(configured.code, 0) << configured.out;
  EXPECT_THAT(configured.out, HasSubstr("hoist: compiling"));
  EXPECT_THAT(configure(model).out, testing::Not(HasSubstr("hoist: compiling"))) << "nothing has changed";
  const Ran built = run_shell("cmake --build '" + in("build") + "' 2>&1");
  ASSERT_EQ(built.code, 0) << built.out;
  for (const std::string& program : {std::string("with_bundle'"), "with_runtime' '" + in("build/digits.hoist") + "'"}) {
    const Ran ran = run_shell("'" + in("build/") + program);
    EXPECT_EQ(ran.code, 0) << ran.out;
    EXPECT_EQ(ran.out, "digits_fully_connected\n");
  }
  const Ran wrong = configure(in("CMakeLists.txt"));
  EXPECT_NE(wrong.code, 0);
  EXPECT_THAT(wrong.out, HasSubstr("hoist compile"));
}

}  // namespace hoist::cmake_test
