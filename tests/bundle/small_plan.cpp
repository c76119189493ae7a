#include "tests/bundle/small_plan.h"

#include <stdlib.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "ir/base/extremes.h"
#include "ir/base/result.h"
#include "ir/base/seeded.h"
#include "ir/base/strings.h"
#include "ir/host/host_strings.h"

namespace hoist {
namespace {

constexpr int side = 14, padded = side + 2;

const char* const shift_source =
    "__attribute__((reqd_work_group_size(1, 1, 1)))\n"
    "__kernel void shift_x(__global const float* restrict p0, __global const float* restrict p1,\n"
    "                      __global float* restrict result) {\n"
    "  const int row = get_group_id(0);\n"
    "  for (int j = 0; j < 14; ++j) result[row * 14 + j] = plus(2.0f * p0[row * 14 + j], p1[j]);\n"
    "}\n";
const char* const border_source =
    "__kernel void border(__global const float* restrict p0, __global float* restrict result) {\n"
    "  result[(get_global_id(1) + 1) * 16 + get_global_id(0) + 1] = p0[get_global_id(1) * 14 + get_global_id(0)];\n"
    "}\n";
const char* const blur_source =
    "__kernel void blur(__global const float* restrict p0, __global float* restrict result, __local float* rows) {\n"
    "  const int i = get_group_id(1), lane = get_local_id(0);\n"
    "  for (int k = lane; k < 48; k += 14) rows[k] = p0[(i + k / 16) * 16 + k % 16];\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  float sum = 0.0f;\n"
    "  for (int k = 0; k < 9; ++k) sum = plus(sum, rows[k / 3 * 16 + lane + k % 3]);\n"
    "  result[i * 14 + lane] = sum;\n"
    "}\n";

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> out(static_cast<size_t>(tensor.size()));
  std::memcpy(out.data(), tensor.data(), out.size() * sizeof(float));
  return out;
}

Tensor tensor(std::vector<int64_t> shape, const std::vector<float>& values) {
  return Tensor::of(Scalar::f32, std::move(shape), values);
}

// `scaled` is a statement of its own, so that the compiler does not contract it to an fma.
std::vector<float> shifted(const std::vector<float>& x, const std::vector<float>& w) {
  std::vector<float> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float scaled = 2.0f * x[i];
    out[i] = scaled + w[i % side];
  }
  return out;
}

std::vector<float> bordered(const std::vector<float>& x) {
  std::vector<float> out(padded * padded);
  for (size_t i = 0; i < side; ++i) {
    for (size_t j = 0; j < side; ++j) out[(i + 1) * padded + j + 1] = x[i * side + j];
  }
  return out;
}

std::vector<float> blurred(const std::vector<float>& x) {
  std::vector<float> out(side * side);
  for (size_t i = 0; i < side; ++i) {
    for (size_t j = 0; j < side; ++j) {
      float sum = 0;
      for (size_t k = 0; k < 9; ++k) sum += x[(i + k / 3) * padded + j + k % 3];
      out[i * side + j] = sum;
    }
  }
  return out;
}

void add_checks(PlanKernel& kernel, uint64_t seed, const std::vector<float>& expected) {
  kernel.check_seed = seed;
  for (size_t i = 0; i < expected.size(); i += 5) {
    kernel.check_positions.push_back(static_cast<int64_t>(i));
    const auto* bytes = reinterpret_cast<const std::byte*>(&expected[i]);
    kernel.check_values.insert(kernel.check_values.end(), bytes, bytes + sizeof(float));
  }
}

std::vector<float> seeded(const KernelParameter& parameter, uint64_t seed, uint32_t number) {
  return floats(seeded_tensor(parameter.scalar, parameter.shape, seed, number, parameter.low, parameter.high));
}

std::vector<float> seeded_with_extremes(const KernelParameter& parameter, uint64_t seed, uint32_t number,
                                        const Extremes& extremes) {
  std::vector<float> out = seeded(parameter, seed, number);
  for (size_t i = 0; i < out.size(); ++i) {
    if (const auto bits = seeded_extreme(Scalar::f32, seed, number, static_cast<int64_t>(i), extremes))
      out[i] = static_cast<float>(float_from_bits(Scalar::f32, *bits));
  }
  return out;
}

void add_extremes(PlanKernel& kernel, const Extremes& extremes, const std::vector<float>& expected) {
  kernel.extremes = extremes;
  for (const int64_t position : kernel.check_positions) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&expected[static_cast<size_t>(position)]);
    kernel.extreme_values.insert(kernel.extreme_values.end(), bytes, bytes + sizeof(float));
  }
}

}  // namespace

Tensor small_plan_result(const Tensor& x) {
  const Plan plan = small_plan();
  return tensor({1, side, side}, blurred(bordered(shifted(floats(x), floats(plan.arrays[1].constant)))));
}

Plan small_plan() {
  const std::vector<int64_t> inner = {side, side}, outer = {padded, padded};
  Plan plan;
  plan.model_name = "small";
  plan.model_hash = 0x0123456789abcdef;
  plan.options = "--strict";
  plan.profile = "name = test\n";
  plan.preamble = "#pragma OPENCL FP_CONTRACT OFF\nfloat plus(float a, float b) { return a + b; }\n";
  plan.build_options = "-cl-std=CL1.2";
  plan.arena_bytes = 3 * 4096;
  std::vector<float> weights(side), unused(20, 3.0f);
  for (int j = 0; j < side; ++j) weights[static_cast<size_t>(j)] = 0.1f * static_cast<float>(j) - 0.5f;
  plan.arrays = {
      {"x", Scalar::f32, {1, side, side}, Place::input, 0, {}},
      {"w", Scalar::f32, {side}, Place::weights, 0, tensor({side}, weights)},
      {"constant", Scalar::f32, {20}, Place::weights, 128, tensor({20}, unused)},
      {"shifted", Scalar::f32, inner, Place::arena, 4096, {}},
      {"bordered", Scalar::f32, outer, Place::cleared, 0, {}},
      {"y", Scalar::f32, {1, side, side}, Place::output, 0, {}},
  };
  plan.kernels.resize(3);
  PlanKernel& shift = plan.kernels[0];
  shift.name = "shift_x";
  shift.layers = {"Mul_0", "Add \"1\"\n*/"};
  shift.source = shift_source;
  shift.global = {side, 1, 1};
  shift.parameters = {{"p0", Scalar::f32, inner, false, -1, 1},
                      {"p1", Scalar::f32, {side}, false, -2, 3},
                      {"result", Scalar::f32, inner, true, -1, 1}};
  shift.expression = "zip(p0, p1) |> map (\\(x, w). x * 2 + w)\n";
  shift.operations = 2 * side * side;
  add_checks(shift, 7, shifted(seeded(shift.parameters[0], 7, 0), seeded(shift.parameters[1], 7, 1)));
  const Extremes often = {4, 0xFF};
  add_extremes(shift, often,
               shifted(seeded_with_extremes(shift.parameters[0], 7, 0, often),
                       seeded_with_extremes(shift.parameters[1], 7, 1, often)));
  PlanKernel& border = plan.kernels[1];
  border.name = "border";
  border.layers = {"Pad_0"};
  border.source = border_source;
  border.global = {side, side, 1};
  border.local = {7, 2, 1};
  border.parameters = {{"p0", Scalar::f32, inner, false, -1, 1}, {"result", Scalar::f32, outer, true, -1, 1}};
  border.expression = "p0 |> pad2d 1 1 0";
  border.parameters[0].regions = {{inner, {0, 0}, {side, 7}}, {inner, {0, 7}, {side, 7}}};
  add_checks(border, 8, bordered(seeded(border.parameters[0], 8, 0)));
  PlanKernel& blur = plan.kernels[2];
  blur.name = "blur";
  blur.layers = {"Conv_0"};
  blur.source = blur_source;
  blur.global = {side, side, 1};
  blur.local = {side, 1, 1};
  blur.local_bytes = 48 * sizeof(float);
  blur.parameters = {{"p0", Scalar::f32, outer, false, -1, 1}, {"result", Scalar::f32, inner, true, -1, 1}};
  blur.expression = "p0 |> slide2d 3 1 |> map2d (map join >> join >> reduce (+) 0)";
  blur.operations = 9 * side * side;
  add_checks(blur, 9, blurred(seeded(blur.parameters[0], 9, 0)));
  plan.steps = {{0, {"Mul_0", "Add \"1\"\n*/"}, {0, 1, 3}}, {1, {"Pad_0"}, {3, 4}}, {2, {"Conv_0"}, {4, 5}}};
  plan.inputs = {0};
  plan.input_domains = {{0, 1}};
  plan.outputs = {5, 0, 2};
  plan.layers = {{"Mul_0", "Mul", ""},
                 {"Add \"1\"\n*/", "Add", ""},
                 {"Pad_0", "Pad", ""},
                 {"Conv_0", "Conv", ""},
                 {"Shape_0", "Shape", "evaluated at compile time"}};
  plan.derivation = "program version 21\nsteps\nmap-fusion at %x\n";
  plan.check_seed = 11;
  const Tensor x = seeded_tensor(Scalar::f32, {1, side, side}, 11, 0, 0, 1);
  const std::vector<float> y = blurred(bordered(shifted(floats(x), weights)));
  Plan::ModelCheck check;
  for (size_t i = 0; i < y.size(); i += 3) {
    check.positions.push_back(static_cast<int64_t>(i));
    const auto* bytes = reinterpret_cast<const std::byte*>(&y[i]);
    check.values.insert(check.values.end(), bytes, bytes + sizeof(float));
  }
  plan.model_check = {check};
  plan.model_tolerance = {false, false, 1e-5, 1e-6};
  return plan;
}

Plan large_plan() {
  Plan plan = small_plan();
  const std::vector<int64_t> shape = {1 << 20};
  plan.arrays.push_back({"large", Scalar::f32, shape, Place::weights, 256, Tensor(Scalar::f32, shape)});
  return plan;
}

Plan counted_plan() {
  Plan plan;
  plan.model_name = "counted";
  plan.build_options = "-cl-std=CL1.2";
  PlanKernel twice, count;
  twice.name = "twice";
  twice.layers = {"twice"};
  twice.source =
      "__attribute__((reqd_work_group_size(1, 1, 1)))\n"
      "__kernel void twice(__global const float* restrict p0, __global float* restrict result) {\n"
      "  result[get_group_id(0)] = 2.0f * p0[get_group_id(0)];\n"
      "}\n";
  twice.global = {8, 1, 1};
  twice.parameters = {{"p0", Scalar::f32, {2, 4}, false, -1, 1}, {"result", Scalar::f32, {2, 4}, true, -1, 1}};
  count.name = "count";
  count.layers = {"twice"};
  count.source =
      "__attribute__((reqd_work_group_size(1, 1, 1)))\n"
      "__kernel void count(__global const float* restrict p0, __global long* restrict result) {\n"
      "  result[0] = (long)p0[0];\n"
      "}\n";
  count.parameters = {{"p0", Scalar::f32, {2, 4}, false, -1, 1}, {"result", Scalar::i64, {}, true, 0, 1}};
  plan.kernels = {twice, count};
  plan.arrays = {{"x", Scalar::f32, {2, 4}, Place::input, 0, {}},
                 {"y", Scalar::f32, {2, 4}, Place::output, 0, {}},
                 {"y.extent", Scalar::i64, {}, Place::output, 0, {}}};
  plan.steps = {{0, {"twice"}, {0, 1}}, {1, {"twice"}, {0, 2}}};
  plan.inputs = {0};
  plan.outputs = {1, 0, 2};
  plan.extents = {{0, 1, 2}};
  return plan;
}

Plan text_plan() {
  const auto marks = tensor_of_strings({3}, {"!", "", "?"});
  HOIST_CHECK(marks.ok(), "three strings");
  Plan plan;
  plan.model_name = "text";
  plan.build_options = "-cl-std=CL1.2";
  plan.arena_bytes = 4096;
  PlanKernel join, reverse;
  join.name = "join";
  join.layers = {"join"};
  join.host = "string_concat";
  join.source = "// computed on the host: string_concat\n";
  join.expression = "host string_concat [3]string(%p0 : [3]string, %p1 : [3]string)";
  join.parameters = {{"p0", Scalar::string, {3}, false, 0, 1},
                     {"p1", Scalar::string, {3}, false, 0, 1},
                     {"result", Scalar::string, {3}, true, 0, 1}};
  reverse.name = "reverse";
  reverse.layers = {"reverse"};
  reverse.source =
      "__attribute__((reqd_work_group_size(1, 1, 1)))\n"
      "__kernel void reverse(__global const ulong* restrict p0, __global ulong* restrict result) {\n"
      "  result[get_group_id(0)] = p0[2 - get_group_id(0)];\n"
      "}\n";
  reverse.expression = "%p0 : [3]string |> slice 2 3 step -1";
  reverse.global = {3, 1, 1};
  reverse.parameters = {{"p0", Scalar::string, {3}, false, 0, 1}, {"result", Scalar::string, {3}, true, 0, 1}};
  plan.kernels = {join, reverse};
  plan.arrays = {{"x", Scalar::string, {3}, Place::input, 0, {}},
                 {"marks", Scalar::string, {3}, Place::weights, 0, *marks},
                 {"joined", Scalar::string, {3}, Place::arena, 0, {}},
                 {"y", Scalar::string, {3}, Place::output, 0, {}}};
  plan.steps = {{0, {"join"}, {0, 1, 2}}, {1, {"reverse"}, {2, 3}}};
  plan.inputs = {0};
  plan.input_domains = {{0, 0}};
  plan.outputs = {3, 1};
  plan.strings = {"!", "?"};
  return plan;
}

Plan sized_plan(int64_t batch, int64_t length) {
  Plan plan;
  plan.model_name = "sized";
  plan.build_options = "-cl-std=CL1.2";
  const std::string size = std::to_string(length);
  PlanKernel kernel;
  kernel.name = "scale_" + std::to_string(batch) + "_" + size;
  kernel.layers = {"scale"};
  kernel.source = "__attribute__((reqd_work_group_size(1, 1, 1)))\n__kernel void " + kernel.name +
                  "(__global const float* restrict p0, __global const float* restrict p1, __global const float* "
                  "restrict p2, __global float* restrict result) {\n"
                  "  const int i = get_group_id(0);\n"
                  "  for (int k = 0; k < " +
                  size + "; ++k) result[i * " + size + " + k] = p1[0] * p0[i * " + size +
                  " + k] + p2[i];\n"
                  "}\n";
  kernel.global = {static_cast<uint64_t>(batch), 1, 1};
  kernel.parameters = {{"p0", Scalar::f32, {batch, length}, false, -1, 1},
                       {"p1", Scalar::f32, {1}, false, -1, 1},
                       {"p2", Scalar::f32, {batch}, false, -1, 1},
                       {"result", Scalar::f32, {batch, length}, true, -1, 1}};
  plan.kernels = {kernel};
  std::vector<double> tens;
  for (int64_t i = 0; i < batch; ++i) tens.push_back(10.0 * static_cast<double>(i));
  plan.arrays = {{"x", Scalar::f32, {batch, length}, Place::input, 0, {}},
                 {"y", Scalar::f32, {batch, length}, Place::output, 0, {}},
                 {"three", Scalar::f32, {1}, Place::weights, 0, Tensor::of(Scalar::f32, {1}, std::vector<double>{3})},
                 {"tens", Scalar::f32, {batch}, Place::weights, 64, Tensor::of(Scalar::f32, {batch}, tens)}};
  plan.steps = {{0, {"scale"}, {0, 2, 3, 1}}};
  plan.inputs = {0};
  plan.outputs = {1};
  return plan;
}

Plan open_plan() {
  Plan plan;
  plan.model_name = "open";
  plan.targets = {"x86-64-v3"};
  PlanKernel kernel;
  kernel.name = "triple";
  kernel.layers = {"triple"};
  kernel.global = {8, 1, 1};
  kernel.operations = 32;
  kernel.parameters = {{"p0", Scalar::f32, {8, 4}, false, -1, 1}, {"result", Scalar::f32, {8, 4}, true, -1, 1}};
  plan.kernels = {kernel};
  plan.arrays = {{"x", Scalar::f32, {8, 4}, Place::input, 0, {}}, {"y", Scalar::f32, {8, 4}, Place::output, 0, {}}};
  plan.steps = {{0, {"triple"}, {0, 1}}};
  plan.inputs = {0};
  plan.outputs = {1};
  plan.open_sizes = {{"n", 1, 8}};
  const PlanNumber::Operation size = {1, 0}, four = {0, 4}, times = {3, 0};
  plan.open_numbers = {{PlanNumber::Kind::extent, 0, 0, {size}},
                       {PlanNumber::Kind::extent, 1, 0, {size}},
                       {PlanNumber::Kind::global, 0, 0, {size}},
                       {PlanNumber::Kind::operations, 0, 0, {size, four, times}}};
  return plan;
}

Plan chain_plan(int depth) {
  Plan plan;
  plan.model_name = "chain";
  plan.build_options = "-cl-std=CL1.2";
  plan.arena_bytes = 2 * 4096;
  PlanKernel kernel;
  kernel.name = "increment";
  kernel.layers = {"increment"};
  kernel.source =
      "__attribute__((reqd_work_group_size(1, 1, 1)))\n"
      "__kernel void increment(__global const float* restrict p0, __global float* restrict result) {\n"
      "  const int i = get_group_id(0) * 16;\n"
      "  vstore16(vload16(0, p0 + i) + 1.0f, 0, result + i);\n"
      "}\n";
  kernel.global = {4, 1, 1};
  kernel.parameters = {{"p0", Scalar::f32, {64}, false, -1, 1}, {"result", Scalar::f32, {64}, true, -1, 1}};
  plan.kernels = {kernel};
  plan.arrays = {{"x", Scalar::f32, {64}, Place::input, 0, {}},
                 {"y", Scalar::f32, {64}, Place::output, 0, {}},
                 {"even", Scalar::f32, {64}, Place::arena, 0, {}},
                 {"odd", Scalar::f32, {64}, Place::arena, 4096, {}}};
  for (int i = 0; i < depth; ++i) {
    const int from = i == 0 ? 0 : 2 + (i - 1) % 2, to = i == depth - 1 ? 1 : 2 + i % 2;
    plan.steps.push_back({0, {"increment_" + std::to_string(i)}, {from, to}});
  }
  plan.inputs = {0};
  plan.outputs = {1};
  return plan;
}

Plan joined_plan() {
  Plan plan = chain_plan(4);
  plan.model_name = "joined";
  plan.kernels[0].source =
      "void hoist_group_increment(int group_0, int group_1, int group_2, __global const float* restrict p0,\n"
      "                     __global float* restrict result) {\n"
      "  const int i = group_0 * 16;\n"
      "  vstore16(vload16(0, p0 + i) + 1.0f, 0, result + i);\n"
      "}\n"
      "__attribute__((reqd_work_group_size(1, 1, 1)))\n"
      "__kernel void increment(__global const float* restrict p0, __global float* restrict result) {\n"
      "  hoist_group_increment(get_group_id(0), get_group_id(1), get_group_id(2), p0, result);\n"
      "}\n";
  plan.launches = {{"three", 0, 3}};
  return plan;
}

Plan sums_plan(bool fused) {
  Plan plan;
  plan.model_name = "sums";
  plan.model_hash = 0x5175;
  plan.build_options = "-cl-std=CL1.2";
  PlanKernel kernel;
  kernel.name = "add";
  kernel.layers = {"add"};
  kernel.source =
      "void hoist_group_add(int group_0, int group_1, int group_2, __global const float* p0, __global const float* "
      "p1,\n"
      "                     __global float* result) {\n"
      "  const int i = group_0 * 16;\n"
      "  vstore16(vload16(0, p0 + i) + vload16(0, p1 + i), 0, result + i);\n"
      "}\n"
      "__attribute__((reqd_work_group_size(1, 1, 1)))\n"
      "__kernel void add(__global const float* p0, __global const float* p1, __global float* result) {\n"
      "  hoist_group_add(get_group_id(0), get_group_id(1), get_group_id(2), p0, p1, result);\n"
      "}\n";
  kernel.global = {4, 1, 1};
  kernel.expression = "zip(%p0 : [64]f32, %p1 : [64]f32) |> map (+)";
  kernel.parameters = {{"p0", Scalar::f32, {64}, false, -1, 1},
                       {"p1", Scalar::f32, {64}, false, -1, 1},
                       {"result", Scalar::f32, {64}, true, -1, 1}};
  plan.kernels = {kernel};
  std::vector<float> start(64);
  for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<float>(i + 1);
  plan.arrays = {{"x", Scalar::f32, {64}, Place::input, 0, {}},  {"s", Scalar::f32, {64}, Place::input, 0, {}},
                 {"c", Scalar::f32, {64}, Place::input, 0, {}},  {"start", Scalar::f32, {64}, Place::weights, 0, {}},
                 {"t", Scalar::f32, {64}, Place::output, 0, {}}, {"y", Scalar::f32, {64}, Place::output, 0, {}}};
  plan.arrays[3].constant = tensor({64}, start);
  plan.steps = {{0, {"t"}, {1, 0, 4}}, {0, {"y"}, {4, 2, 5}}};
  plan.inputs = {0, 1, 2};
  plan.outputs = {5, 4, 3, 5};
  plan.states = {{1, 4, 3}, {2, 5, -1}};
  if (fused) plan.launches = {{"both", 0, 2}};
  return plan;
}

Plan controlled_plan() {
  Plan plan = chain_plan(1);
  plan.model_name = "controlled";
  plan.arrays = {{"x", Scalar::f32, {64}, Place::input, 0, {}},        {"y", Scalar::f32, {64}, Place::output, 0, {}},
                 {"next", Scalar::f32, {64}, Place::arena, 0, {}},     {"n", Scalar::i64, {}, Place::input, 0, {}},
                 {"rows", Scalar::f32, {4, 64}, Place::output, 0, {}}, {"count", Scalar::i64, {}, Place::output, 0, {}},
                 {"c", Scalar::boolean, {}, Place::input, 0, {}},      {"z", Scalar::f32, {64}, Place::output, 0, {}},
                 {"more", Scalar::f32, {64}, Place::arena, 4096, {}}};
  plan.steps = {{0, {"again"}, {1, 2}}, {0, {"once more"}, {1, 8}}};
  PlanControl loop, branch;
  loop.is_loop = true;
  loop.name = "loop";
  loop.layers = {"loop"};
  loop.trips = 3;
  loop.count = 5;
  loop.most = 4;
  loop.fails = true;
  loop.before = {{0, 1}};
  loop.after = {{2, 4, true}, {2, 1}};
  branch.name = "branch";
  branch.layers = {"branch"};
  branch.condition = 6;
  branch.after = {{8, 7}};
  branch.otherwise = {{0, 7}};
  plan.controls = {loop, branch};
  plan.items = {{PlanItem::Kind::enter, 0}, {PlanItem::Kind::step, 0}, {PlanItem::Kind::leave, 0},
                {PlanItem::Kind::enter, 1}, {PlanItem::Kind::step, 1}, {PlanItem::Kind::otherwise, 1},
                {PlanItem::Kind::leave, 1}};
  plan.inputs = {0, 3, 6};
  plan.input_domains = {{-1, 1}, {2, 4}, {1, 1}};
  plan.outputs = {1, 4, 7, 5};
  plan.extents = {{1, 0, 3}};
  return plan;
}

TestFolder::TestFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "hoist_test.XXXXXX").string();
  HOIST_CHECK(::mkdtemp(name.data()) != nullptr, "no temporary folder");
  path_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream out;
  out << stream.rdbuf();
  return out.str();
}

void write_text(const std::filesystem::path& file, const std::string& content) {
  // Truncating and rewriting a file may cause a flush; a new file does not.
  std::filesystem::remove(file);
  std::ofstream(file, std::ios::binary) << content;
}

void write_sealed(const std::filesystem::path& file, std::string content) {
  for (size_t i = 0; i < 8; ++i) content[16 + i] = static_cast<char>(content.size() >> (8 * i));
  const uint64_t hash = hoist_hash(content.data(), content.size() - 8);
  for (size_t i = 0; i < 8; ++i) content[content.size() - 8 + i] = static_cast<char>(hash >> (8 * i));
  write_text(file, content);
}

}  // namespace hoist
