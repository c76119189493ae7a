// The parts of the CUDA engine that need no device: the text of programs, and the order of a run's graph. A mock that
// records calls replaces CUDA's driver.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/bundle/bundle.h"
#include "backends/runtime/cuda/cuda_parts.h"
#include "tests/bundle/small_plan.h"

namespace hoist {
namespace {

std::string cuda_text(const std::string& program) {
  const std::unique_ptr<char, decltype(&std::free)> text(hoist_cuda_text(program.data(), program.size()), &std::free);
  return text ? text.get() : "no text";
}

const char* const head = ".version 9.0\n.target sm_90, texmode_independent\n.address_size 64\n";

TEST(CudaText, TakesOpenClsWordsOutOfAProgram) {
  const std::string program = std::string(head) +
                              "\n"
                              ".entry scale(\n"
                              "\t.param .u64 .ptr .global .align 4 scale_param_0,\n"
                              "\t.param .u64 .ptr .const .align 16 scale_param_1,\n"
                              "\t.param .u64 .ptr .shared .align 64 scale_param_10,\n"
                              "\t.param .u32 scale_param_3\n"
                              ")\n"
                              "{\n"
                              "\tld.param.u64 \t%rd1, [scale_param_1];\n"
                              "\tld.param.u64 \t%rd2, [scale_param_10];\n"
                              "\tmov.b32 \t%r1, %envreg12;\n"
                              "\tadd.s32 \t%r2, %envreg0, %r1;\n"
                              "}\n"
                              ".metadata_section {\n\n.metadata 0 {\n\t\"cl_kernel_attributes\"\n}\n\n"
                              "} // end of .metadata_section\n"
                              "// after\n";
  EXPECT_EQ(cuda_text(program),
            ".version 9.0\n.target sm_90\n.address_size 64\n.extern .shared .align 128 .b8 hoist_dynamic[];\n"
            "\n"
            ".entry scale(\n"
            "\t.param .u64 scale_param_0,\n"
            "\t.param .u64 scale_param_1,\n"
            "\t.param .u64 scale_param_10,\n"
            "\t.param .u32 scale_param_3\n"
            ")\n"
            "{\n"
            "\tld.param.u64 \t%rd1, [scale_param_1];\n"
            "mov.u64 \t%rd2, hoist_dynamic;\n"
            "\tmov.b32 \t%r1, 0;\n"
            "\tadd.s32 \t%r2, 0, %r1;\n"
            "}\n"
            "// after\n");
}

TEST(CudaText, AnotherKernelsParametersStay) {
  const std::string program = std::string(head) +
                              ".entry a(\n\t.param .u64 .ptr .shared .align 8 p\n)\n"
                              ".entry b(\n\t.param .u64 .ptr .global .align 8 p\n)\n"
                              "\tld.param.u64 \t%rd1, [p];\n";
  EXPECT_NE(cuda_text(program).find("\tld.param.u64 \t%rd1, [p];\n"), std::string::npos);
}

TEST(CudaText, RefusesWhatIsNoProgram) {
  for (const char* text : {"",
                           "\x7f"
                           "ELF",
                           ".version 9.0\n", ".version 9.0\n.target sm_90\n"}) {
    EXPECT_EQ(cuda_text(text), "no text") << text;
  }
}

// Every prefix of a program is read without an access outside it, which sanitizer builds would detect.
TEST(CudaText, ReadsAnyPrefix) {
  const std::string program = std::string(head) +
                              ".entry k(\n\t.param .u64 .ptr .shared .align 64 k_param_0\n)\n{\n"
                              "\tld.param.u64 \t%rd2, [k_param_0];\n\tmov.b32 %r1, %envreg3;\n}\n"
                              ".metadata_section {\n} // end of .metadata_section\n";
  for (size_t bytes = 0; bytes < program.size(); ++bytes) {
    const std::vector<char> exact(program.begin(), program.begin() + static_cast<std::ptrdiff_t>(bytes));
    std::free(hoist_cuda_text(exact.data(), exact.size()));
  }
}

// ---- the graph of a run ----

// A launch as passed to the driver: the nodes that it waits for, and its addresses.
struct Launch {
  std::vector<size_t> after;
  std::vector<hoist_cuda_address> addresses;
};
std::vector<Launch> recorded;

int record_node(void** node, void* /*graph*/, void* const* after, size_t count, const hoist_cuda_node* parameters) {
  Launch launch;
  for (size_t i = 0; i < count; ++i) launch.after.push_back(reinterpret_cast<size_t>(after[i]) - 1);
  const size_t arguments = reinterpret_cast<size_t>(parameters->function);
  for (size_t i = 0; i < arguments; ++i)
    launch.addresses.push_back(*static_cast<hoist_cuda_address*>(parameters->arguments[i]));
  recorded.push_back(launch);
  *node = reinterpret_cast<void*>(recorded.size());  // NOLINT(performance-no-int-to-ptr): a name, no pointer
  return 0;
}

// The launches of the plan's run. Functions of kernels are their numbers of parameters here, and addresses of arrays
// are indices.
std::vector<Launch> launches_of(const hoist_plan& plan) {
  hoist_cuda_functions driver{};
  driver.graph_create = [](void** graph, unsigned) { return *graph = &recorded, 0; };
  driver.graph_add = record_node;
  driver.graph_instantiate = [](void** ready, void* graph, unsigned long long) { return *ready = graph, 0; };
  driver.graph_destroy = [](void*) { return 0; };
  std::vector<void*> functions(plan.kernel_count);
  std::vector<hoist_cuda_address> arrays(plan.array_count);
  for (size_t i = 0; i < functions.size(); ++i)
    functions[i] = reinterpret_cast<void*>(plan.kernels[i].parameter_count);  // NOLINT(performance-no-int-to-ptr)
  for (size_t i = 0; i < arrays.size(); ++i) arrays[i] = i;
  hoist_cuda cuda{};
  cuda.call = &driver;
  cuda.functions = functions.data();
  cuda.arrays = arrays.data();
  hoist_opencl opencl{};
  opencl.cuda = &cuda;
  hoist_bundle bundle{};
  bundle.plan = plan;
  bundle.opencl = &opencl;
  void* ready = nullptr;
  recorded.clear();
  EXPECT_EQ(hoist_cuda_graph_of_run(&bundle, &ready), HOIST_OK) << bundle.error.message;
  EXPECT_NE(ready, nullptr);
  return recorded;
}

// ends[i][k]: step k ends before step i begins.
std::vector<std::vector<bool>> order_of(const std::vector<Launch>& launches) {
  std::vector ends(launches.size(), std::vector<bool>(launches.size()));
  for (size_t i = 0; i < launches.size(); ++i) {
    for (const size_t before : launches[i].after) {
      ends[i][before] = true;
      for (size_t k = 0; k < before; ++k) ends[i][k] = ends[i][k] || ends[before][k];
    }
  }
  return ends;
}

// The bytes of an array in the memory of the device; arrays outside the arena are disjoint.
std::pair<uint64_t, uint64_t> place(const hoist_plan& plan, uint32_t array) {
  const hoist_plan_array& a = plan.arrays[array];
  const uint64_t begin = a.place == HOIST_PLACE_ARENA ? a.offset : (uint64_t{array} + 1) << 40;
  return {begin, begin + a.bytes};
}

bool must_wait(const hoist_plan& plan, size_t later, size_t earlier) {
  const auto &a = plan.steps[later], &b = plan.steps[earlier];
  for (size_t i = 0; i < a.argument_count; ++i) {
    for (size_t k = 0; k < b.argument_count; ++k) {
      const bool writes = plan.kernels[a.kernel].parameters[i].written || plan.kernels[b.kernel].parameters[k].written;
      const auto [begin, end] = place(plan, a.arguments[i]);
      const auto [other_begin, other_end] = place(plan, b.arguments[k]);
      if (writes && begin < other_end && other_begin < end) return true;
    }
  }
  return false;
}

class CudaGraph : public testing::Test {
 protected:
  void read(const Plan& plan) {
    const std::filesystem::path bundle = folder_ / (std::to_string(read_++) + ".hoist");
    ASSERT_TRUE(write_bundle(plan, bundle).ok());
    hoist_error error{};
    ASSERT_EQ(hoist_plan_read(bundle.c_str(), &plan_, &error), HOIST_OK) << error.message;
  }
  void TearDown() override { hoist_plan_free(&plan_); }

  TestFolder folder_;
  int read_ = 0;
  hoist_plan plan_{};
};

TEST_F(CudaGraph, HasTheStepsOfThePlanWithTheirArrays) {
  read(small_plan());
  const std::vector<Launch> launches = launches_of(plan_);
  ASSERT_EQ(launches.size(), plan_.step_count);
  for (size_t i = 0; i < launches.size(); ++i) {
    const hoist_plan_step& step = plan_.steps[i];
    EXPECT_EQ(launches[i].addresses,
              std::vector<hoist_cuda_address>(step.arguments, step.arguments + step.argument_count));
  }
}

TEST_F(CudaGraph, OrdersStepsThatShareMemory) {
  for (const Plan& plan : {small_plan(), chain_plan(70), sized_plan(2, 3)}) {
    hoist_plan_free(&plan_);
    plan_ = {};
    read(plan);
    const auto ends = order_of(launches_of(plan_));
    for (size_t i = 0; i < ends.size(); ++i) {
      for (size_t k = 0; k < i; ++k) EXPECT_TRUE(ends[i][k] || !must_wait(plan_, i, k)) << i << " after " << k;
    }
  }
}

TEST_F(CudaGraph, WaitsForNothingElse) {
  read(chain_plan(5));
  // The same steps, each between separate arrays.
  for (size_t i = 0; i < plan_.array_count; ++i) {
    plan_.arrays[i].place = HOIST_PLACE_ARENA;
    plan_.arrays[i].offset = i << 20U;
  }
  for (size_t i = 0; i < plan_.step_count; ++i) {
    hoist_plan_step& step = plan_.steps[i];
    for (size_t k = 0; k < step.argument_count; ++k) {
      if (!plan_.kernels[step.kernel].parameters[k].written) step.arguments[k] = 0;
    }
  }
  // Steps alternate between two results; the last one has its own.
  const std::vector<Launch> launches = launches_of(plan_);
  const std::vector<std::vector<size_t>> expected = {{}, {}, {0}, {1}, {}};
  ASSERT_EQ(launches.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(launches[i].after, expected[i]) << i;
}

}  // namespace
}  // namespace hoist
