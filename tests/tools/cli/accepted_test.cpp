// Tests that models which check accepts also compile: models that need tables of positions and weights, unused parts,
// all models of the project, random graphs. HOIST_RANDOM_GRAPHS sets the number of random graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/bundle/bundle.h"
#include "ir/base/temporary_folder.h"
#include "ir/text/text.h"
#include "tests/lowering/random_graphs.h"
#include "tests/support/gpu_profile.h"
#include "tests/support/lower_model.h"
#include "tests/tools/program.h"
#include "tools/driver/self_check.h"

namespace hoist::accepted_test {

namespace fs = std::filesystem;
using Ints = std::vector<int64_t>;
using Attributes = std::map<std::string, Attribute>;

NamedModel case_model(const Ints& shape, std::vector<NamedCall> layers, std::map<std::string, Tensor> constants = {}) {
  NamedModel out;
  out.name = "case";
  out.opset = 21;
  out.inputs = {{"x", Scalar::f32, shape}};
  out.outputs = {{"y", Scalar::f32, {}}};
  out.layers = std::move(layers);
  out.constants = std::move(constants);
  return out;
}

NamedModel resize(const Ints& from, const Ints& to, const std::string& mode, const Attributes& more = {}) {
  Attributes attributes = more;
  attributes["mode"] = mode;
  return case_model(from, {{"resize", "Resize", "", attributes, {"x", "", "", "sizes"}, {"y"}}},
                    {{"sizes", Tensor::of(Scalar::i64, {static_cast<int64_t>(to.size())}, to)}});
}

// Two selections by the same condition: one value of the inner selection is never chosen.
NamedModel twice_selected(const Ints& shape) {
  const Tensor k = Tensor::of(Scalar::f32, {1}, std::vector<double>{0.3}),
               c = Tensor::of(Scalar::f32, {1}, std::vector<double>{-0.5});
  return case_model(shape,
                    {{"above", "Greater", "", {}, {"x", "k"}, {"b"}},
                     {"inner", "Where", "", {}, {"b", "k", "x"}, {"r"}},
                     {"outer", "Where", "", {}, {"b", "c", "r"}, {"s"}},
                     {"sums", "CumSum", "", {{"exclusive", int64_t{1}}}, {"s", "axis"}, {"y"}}},
                    {{"k", k}, {"c", c}, {"axis", Tensor::of(Scalar::i64, {}, Ints{1})}});
}

// More updates than one expression can hold. Some positions repeat, some are out of bounds.
NamedModel scatter(const std::string& operation, const Ints& data, const Ints& positions, const Ints& updates,
                   Scalar scalar, const Attributes& attributes) {
  Tensor at(scalar, positions), by(Scalar::f32, updates);
  for (int64_t i = 0; i < at.size(); ++i) at.set_integer(i, i * 7 % 11 % data[i % 2 == 0 ? 0 : 1]);
  for (int64_t i = 0; i < by.size(); ++i) by.set_float(i, static_cast<double>(i) / 4);
  return case_model(
      data, {{"scatter", operation, "", attributes, {"x", "at", "by"}, {"s"}}, {"relu", "Relu", "", {}, {"s"}, {"y"}}},
      {{"at", at}, {"by", by}});
}

struct Case {
  std::string name;
  NamedModel model;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  const auto add = [&](const std::string& name, NamedModel model) { out.push_back({name, std::move(model)}); };
  add("a sum of nothing", case_model({0, 3}, {{"sum", "ReduceSum", "", {{"keepdims", int64_t{0}}}, {"x"}, {"y"}}}));
  add("linear 33x7", resize({1, 2, 9, 5}, {1, 2, 33, 7}, "linear"));
  add("linear 37x41", resize({1, 2, 11, 20}, {1, 2, 37, 41}, "linear"));
  add("cubic 64x64", resize({1, 1, 9, 9}, {1, 1, 64, 64}, "cubic"));
  add("cubic down", resize({1, 3, 40, 30}, {1, 3, 11, 20}, "cubic", {{"antialias", int64_t{1}}}));
  add("nearest by table", resize({1, 2, 30, 7}, {1, 2, 71, 100}, "nearest"));
  add("cropped",
      case_model({1, 1, 20, 20},
                 {{"resize",
                   "Resize",
                   "",
                   {{"mode", std::string("linear")},
                    {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                    {"extrapolation_value", 7.0}},
                   {"x", "roi", "", "sizes"},
                   {"y"}}},
                 {{"roi", Tensor::of(Scalar::f32, {8}, std::vector<double>{0, 0, -0.2, 0.1, 1, 1, 1.3, 0.9})},
                  {"sizes", Tensor::of(Scalar::i64, {4}, Ints{1, 1, 90, 70})}}));
  add("pool with counts", case_model({1, 8, 7, 8, 4}, {{"pool",
                                                        "AveragePool",
                                                        "",
                                                        {{"ceil_mode", int64_t{1}},
                                                         {"kernel_shape", Ints{2, 1, 4}},
                                                         {"pads", Ints{0, 0, 2, 0, 0, 1}},
                                                         {"strides", Ints{2, 1, 1}}},
                                                        {"x"},
                                                        {"y"}}}));
  add("pool of images",
      case_model({1, 3, 40, 50}, {{"pool",
                                   "AveragePool",
                                   "",
                                   {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 2}}},
                                   {"x"},
                                   {"y"}}}));
  // After another layer, and before one: the tables are in the middle of a fused kernel.
  NamedModel joined = resize({1, 2, 9, 5}, {1, 2, 33, 70}, "linear");
  joined.layers[0].inputs[0] = "r";
  joined.layers[0].outputs[0] = "s";
  joined.layers.insert(joined.layers.begin(), {"relu", "Relu", "", {}, {"x"}, {"r"}});
  joined.layers.push_back({"tanh", "Tanh", "", {}, {"s"}, {"y"}});
  add("resize between layers", joined);
  add("scatter of rows", scatter("ScatterND", {7, 130, 3}, {200, 2}, {200, 3}, Scalar::i64, {}));
  add("scatter along rows",
      scatter("ScatterElements", {9, 120}, {9, 100}, {9, 100}, Scalar::i32, {{"axis", int64_t{1}}}));
  add("scatter along columns", scatter("ScatterElements", {90, 12}, {80, 11}, {80, 11}, Scalar::i64, {}));
  add("scatter that adds", scatter("ScatterElements", {9, 120}, {9, 100}, {9, 100}, Scalar::i64,
                                   {{"axis", int64_t{1}}, {"reduction", std::string("add")}}));
  add("product inside a sum",
      case_model({31, 15},
                 {{"einsum", "Einsum", "", {{"equation", std::string("ij,jk,kl->lj")}}, {"v", "x", "w"}, {"y"}}},
                 {{"v", Tensor::of(Scalar::f32, {1, 31}, std::vector<double>(31, 0.5))},
                  {"w", Tensor::of(Scalar::f32, {15, 3}, std::vector<double>(45, 0.25))}}));
  for (int64_t n : {1, 8, 17}) add("twice selected " + std::to_string(n), twice_selected({1, n}));
  // Two folds of a row share a value, along rows and columns.
  for (int64_t axis : {0, 1}) {
    add("logarithm of sums along " + std::to_string(axis),
        case_model({128, 80}, {{"sums", "ReduceLogSumExp", "", {}, {"x", "axis"}, {"y"}}},
                   {{"axis", Tensor::of(Scalar::i64, {1}, Ints{axis})}}));
  }
  // Interleaved pairs are read with stride two.
  NamedModel pairs = case_model({60, 70}, {{"gather", "GatherND", "", {}, {"x", "at"}, {"y"}}});
  pairs.inputs.push_back({"at", Scalar::i64, {33, 32, 2}});
  add("gather by pairs", pairs);
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    NamedModel sampled =
        case_model({1, 3, 20, 30}, {{"sample", "GridSample", "", {{"mode", std::string(mode)}}, {"x", "at"}, {"y"}}});
    sampled.inputs.push_back({"at", Scalar::f32, {1, 32, 33, 2}});
    add(std::string("samples by pairs, ") + mode, sampled);
  }
  NamedModel colours = case_model({500, 3},
                                  {{"gather", "Gather", "", {{"axis", int64_t{0}}}, {"x", "at"}, {"g"}},
                                   {"grey", "ReduceMax", "", {{"keepdims", int64_t{0}}}, {"g", "axis"}, {"y"}}},
                                  {{"axis", Tensor::of(Scalar::i64, {1}, Ints{1})}});
  colours.inputs[0].scalar = Scalar::u8;
  colours.inputs.push_back({"at", Scalar::i64, {160}});
  add("colours by position", colours);
  return out;
}

// Compiles everything that a bundle needs, without a device, with both mappings.
std::string compile_fault(const NamedModel& model) {
  for (const Profile& profile : {Profile(), gpu_profile(2)}) {
    auto lowered = lower_model(model, {}, profile);
    if (!lowered) return lowered.errors()[0].text();
    auto plan = make_plan(std::move(*lowered), {}, profile);
    if (!plan) return (profile.gpu ? "for GPUs: " : "") + plan.errors()[0].text();
    // The reader of a bundle only has the plan.
    for (const PlanKernel& kernel : plan->kernels) {
      auto term = parse(kernel.expression);
      if (!term) return term.errors()[0].text();
      for (Expr p : parameters_of(*term)) {
        const bool known = std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                                       [&](const KernelParameter& k) { return k.name == p->name; });
        if (!known) return kernel.name + ": its term reads " + p->name + ", which is not an argument";
      }
    }
  }
  return "";
}

TEST(Accepted, TablesAndPartsThatNothingReads) {
  auto device = find_device("");
  ASSERT_TRUE(device.ok()) << device.errors()[0].text();
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  for (const Case& c : cases()) {
    EXPECT_EQ(compile_fault(c.model), "") << c.name;
    const Program program = *program_of(c.model);
    auto compiled = compile_model(program, ModelOptions{});
    ASSERT_TRUE(compiled.ok()) << c.name << ": " << compiled.errors()[0].text();
    const fs::path path = folder->path() / "a.hoist";
    ASSERT_TRUE(write_bundle(compiled->plan, path, {.force = true}).ok());
    auto check = self_check(path, compiled->plan, compiled->groups);
    ASSERT_TRUE(check.ok()) << c.name << ": " << check.errors()[0].text();
    EXPECT_FALSE(check->mismatch.has_value()) << c.name << ": " << check->mismatch->comparison.message;
    auto runner = BundleRunner::open(path);
    ASSERT_TRUE(runner.ok());
    auto findings = runner->verify();
    ASSERT_TRUE(findings.ok());
    for (const Finding& finding : *findings) EXPECT_TRUE(finding.passed) << c.name << ": " << finding.message;
  }
}

TEST(Accepted, RandomGraphs) {
  const char* wanted = std::getenv("HOIST_RANDOM_GRAPHS");
  const uint64_t count = wanted == nullptr ? 25 : std::strtoull(wanted, nullptr, 10);
  for (uint64_t seed = 0; seed < count; ++seed) {
    std::mt19937_64 random(seed * 7919 + 3);
    EXPECT_EQ(compile_fault(random_graph(random).graph), "") << "seed " << seed;
  }
}

// Runs both commands as a user does.
void expect_both(const fs::path& model, const fs::path& out) {
  const Ran checked = run_hoist({"check", model.string()});
  if (checked.code != 0) return;
  const Ran compiled = run_hoist({"compile", model.string(), "-o", out.string(), "--force", "--no-check"});
  EXPECT_EQ(compiled.code, 0) << model << "\n" << compiled.err;
}

TEST(Accepted, ModelsOfTheProject) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(HOIST_SOURCE_DIR) / "models")) {
    if (entry.path().extension() != ".onnx") continue;
    expect_both(entry.path(), folder->path() / "a.hoist");
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(Accepted, FilesThatWereOnceRefused) {
  const char* shared = std::getenv("HOIST_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  for (const char* name : {"graph2_min", "where_where_cumsum", "resize_cubic_11x20", "resize_cubic_64",
                           "resize_linear_33x7", "resize_linear_37x41", "graph28_avgpool_const", "mmi_scalar",
                           "cumsum_ex1_ax0", "cumsumx_2x3x8_ax0", "graph18_min"}) {
    const fs::path model = fs::path(shared) / "findings" / (std::string(name) + ".onnx");
    const fs::path bundle = folder->path() / "a.hoist";
    const Ran compiled = run_hoist({"compile", model.string(), "-o", bundle.string(), "--force"});
    ASSERT_EQ(compiled.code, 0) << name << "\n" << compiled.err;
    EXPECT_THAT(compiled.out, testing::HasSubstr(" with the interpreter (every element)")) << name;
    EXPECT_EQ(run_hoist({"verify", bundle.string(), "--all"}).code, 0) << name;
  }
}

}  // namespace hoist::accepted_test
