// Tests bad input of every kind: one clear message, the right exit code, and no half-written files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <sys/resource.h>

#include <fstream>

#include "tests/frontend/model_builder.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"

namespace hoist::bad_input_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

// Runs compile with an empty output folder, which must stay empty.
void expect_refused(const fs::path& model, const std::string& message, int code = 3,
                    const std::vector<std::string>& options = {}) {
  const Folder output;
  std::vector<std::string> words = {"compile", model.string(), "-o", (output.path() / "m.hoist").string()};
  words.insert(words.end(), options.begin(), options.end());
  const Ran ran = run_hoist(words);
  EXPECT_EQ(ran.code, code) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("hoist: error: "));
  EXPECT_THAT(ran.err, HasSubstr(message));
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(files_below(output.path()).empty());
}

void expect_refused(const onnx::ModelProto& model, const std::string& message, int code = 3) {
  const Folder folder;
  expect_refused(folder.write("model.onnx", model.SerializeAsString()), message, code);
}

TEST(BadModel, NotOnnxOrTruncated) {
  const Folder folder;
  expect_refused(folder.path() / "none.onnx", "none.onnx");
  expect_refused(folder.write("text.onnx", "hello"), "is not an ONNX model");
  const std::string bytes = convolution_model().SerializeAsString();
  expect_refused(folder.write("cut.onnx", bytes.substr(0, bytes.size() / 2)), "truncated");
}

// Seeded data do not end the loop either, which is not a fault of the bundle.
TEST(BadModel, ALoopWithoutEndEndsAtItsLimit) {
  onnx::ModelProto model;
  const auto status =
      onnx::OnnxParser::Parse(model,
                              "<ir_version: 10, opset_import: [\"\" : 20]>\n"
                              "g (float[1] x, bool more) => (float[1] y) {\n"
                              "  y = Loop <body = b (int64 i, bool given, float[1] v) => (bool next, float[1] sum) {\n"
                              "    next = Or (given, more)\n    sum = Add (v, v)\n  }> (, , x)\n}");
  ASSERT_TRUE(status.IsOK()) << status.ErrorMessage();
  const Folder folder;
  const std::string path = folder.write("model.onnx", model.SerializeAsString()).string(),
                    bundle = (folder.path() / "m.hoist").string();
  ASSERT_TRUE(write_npy(folder.path() / "x.npy", Tensor::of(Scalar::f32, {1}, std::vector<double>{1})).ok());
  ASSERT_TRUE(write_npy(folder.path() / "more.npy", Tensor::of(Scalar::boolean, {}, std::vector<int64_t>{1})).ok());
  for (const char* target : {"", "native"}) {
    std::vector<std::string> words = {"compile", path, "-o", bundle, "--force", "--bound", "loop-iterations=50"};
    if (*target != '\0') words.insert(words.end(), {"--target", target});
    const Ran compiled = run_hoist(words);
    ASSERT_EQ(compiled.code, 0) << compiled.err;
    EXPECT_THAT(compiled.err, HasSubstr("with seeded inputs the run ends at"));
    const Ran ran = run_hoist({"run", bundle, "--input", "x=" + (folder.path() / "x.npy").string(), "--input",
                               "more=" + (folder.path() / "more.npy").string()});
    EXPECT_EQ(ran.code, 3);
    EXPECT_THAT(ran.err, HasSubstr("does not end within 50 iterations"));
    EXPECT_THAT(ran.err, HasSubstr("--bound loop-iterations"));
  }
}

TEST(BadModel, UnknownOperatorsComeAllAtOnce) {
  onnx::ModelProto model = convolution_model();
  add_node(model, "Frobnicate", {"result"}, {"odd"}, "first");
  auto& custom = add_node(model, "Mystery", {"result"}, {"odder"}, "second");
  custom.set_domain("com.example");
  auto* import = model.add_opset_import();
  import->set_domain("com.example");
  import->set_version(1);
  add_output(model, "odd", {"4"});
  add_output(model, "odder", {"4"});
  expect_refused(model, "Frobnicate");
  expect_refused(model, "Mystery");
  const Folder folder;
  const Ran ran = run_hoist({"check", folder.write("model.onnx", model.SerializeAsString()).string()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("Frobnicate"));
  EXPECT_THAT(ran.err, HasSubstr("Mystery"));
}

// Names may contain control sequences of terminals, or line breaks that fake a second message; neither stream prints
// them.
TEST(BadModel, NamesThatATerminalWouldActOn) {
  const std::vector<std::string> names = {"\x1b[31mred",
                                          "bell\a",
                                          "\xc2\x9b"
                                          "31m",
                                          "back\x08",
                                          "a\nhoist: error: b",
                                          "\xe2\x80\xae"
                                          "turned",
                                          "\xff"};
  onnx::ModelProto model = convolution_model();
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string odd = "odd" + std::to_string(i), odder = "odder" + std::to_string(i);
    add_node(model, names[i], {"result"}, {odd}, names[i]);
    add_node(model, "Mystery" + std::to_string(i), {"result"}, {odder}, odder).set_domain(names[i]);
    auto* import = model.add_opset_import();
    import->set_domain(names[i]);
    import->set_version(1);
    add_output(model, odd, {"4"});
    add_output(model, odder, {"4"});
  }
  const Folder folder;
  const std::string path = folder.write("model.onnx", model.SerializeAsString()).string();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"check", path},
                                                {"check", path, "--json", "-"},
                                                {"compile", path, "-o", folder.path() / "o"}}) {
    SCOPED_TRACE(words[0]);
    const Ran ran = run_hoist(words);
    const std::string all = ran.out + ran.err;
    for (const char* raw : {"\x1b", "\a", "\xc2\x9b", "\x08", "\nhoist: error: b", "\xe2\x80\xae", "\xff"}) {
      EXPECT_THAT(all, testing::Not(HasSubstr(raw)));
    }
    // Shows that the names are printed at all, in escaped form.
    for (const char* shown : {"\\x1b[31mred", "bell\\x07", "\\xc2\\x9b31m", "back\\x08", "a\\x0ahoist: error: b",
                              "\\xe2\\x80\\xaeturned", "\\xff"}) {
      EXPECT_THAT(ran.err, HasSubstr(shown));
    }
  }
}

// A model of 154 bytes with sums of 1.6 billion computed elements: constants that are left to the device must cost the
// compiler neither time nor memory.
TEST(BadModel, ConstantsOfGigabytes) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"1", "2"});
  auto* extents = model.mutable_graph()->add_initializer();
  extents->set_name("extents");
  extents->set_data_type(onnx::TensorProto::INT64);
  extents->add_dims(2);
  for (int i = 0; i < 2; ++i) extents->add_int64_data(40000);
  add_node(model, "ConstantOfShape", {"extents"}, {"zeros"}, "fill");
  add_node(model, "Exp", {"zeros"}, {"ones"}, "exponentials");
  add_node(model, "ReduceSum", {"ones"}, {"sum"}, "sum");
  add_node(model, "Transpose", {"ones"}, {"turned"}, "turn");
  add_node(model, "Add", {"x", "sum"}, {"y"}, "add");
  add_output(model, "y", {"1", "2"});
  add_output(model, "turned", {"40000", "40000"});
  const Folder folder;
  const std::string path = folder.write("model.onnx", model.SerializeAsString()).string();
  const auto used = [] {
    rusage usage = {};
    getrusage(RUSAGE_CHILDREN, &usage);
    return usage;
  };
  const rusage before = used();
  const Ran ran = run_hoist({"compile", path, "-o", folder.path() / "o.hoist"});
  const rusage after = used();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("computed on the device"));
  EXPECT_THAT(ran.out, HasSubstr("not checked: "));
  EXPECT_LT(after.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_utime.tv_sec - before.ru_stime.tv_sec, 30);
  EXPECT_LT(after.ru_maxrss, 2 << 20) << "KiB";
}

TEST(BadModel, WrongAttributeType) {
  onnx::ModelProto model = convolution_model();
  set_float(*model.mutable_graph()->mutable_node(0), "group", 2.5f);
  expect_refused(model, "group");
}

TEST(BadModel, InconsistentShapes) {
  onnx::ModelProto model = convolution_model();
  *model.mutable_graph()->mutable_initializer(0) = float_tensor("weights", {4, 5, 3, 3});
  expect_refused(model, "conv1");
}

TEST(BadModel, Cycle) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"4"});
  add_node(model, "Add", {"x", "b"}, {"a"}, "left");
  add_node(model, "Relu", {"a"}, {"b"}, "right");
  add_output(model, "b", {"4"});
  expect_refused(model, "left");
}

TEST(BadModel, ExternalData) {
  onnx::ModelProto model = convolution_model();
  auto* weights = model.mutable_graph()->mutable_initializer(0);
  weights->clear_float_data();
  weights->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* entry = weights->add_external_data();
  entry->set_key("location");
  entry->set_value("weights.bin");
  const Folder folder, outside;
  const fs::path path = folder.write("model.onnx", model.SerializeAsString());
  expect_refused(path, "weights.bin");
  outside.write("weights.bin", std::string(4 * 3 * 9 * 4, '\0'));
  fs::create_symlink(outside.path() / "weights.bin", folder.path() / "weights.bin");
  expect_refused(path, "weights.bin");
  entry->set_value("../" + outside.path().filename().string() + "/weights.bin");
  expect_refused(folder.write("model.onnx", model.SerializeAsString()), "weights.bin");
}

TEST(BadModel, HugeTensor) {
  onnx::ModelProto model = convolution_model();
  auto* weights = model.mutable_graph()->mutable_initializer(0);
  weights->clear_dims();
  weights->add_dims(int64_t{1} << 40);
  expect_refused(model, "weights");
}

TEST(BadModel, UnknownDimension) {
  const Folder folder;
  const fs::path path = folder.write("model.onnx", convolution_model().SerializeAsString());
  expect_refused(path, "did you mean batch?", 3, {"--dim", "bacth=2"});
  expect_refused(path, "batch", 2, {"--dim", "batch=zero"});
}

TEST(WrongUse, LocalMemoryInNativeCode) {
  const Folder folder;
  expect_refused(folder.write("model.onnx", convolution_model().SerializeAsString()),
                 "--pass fusion=launch: needs work-groups that share memory", 2,
                 {"--target", "native", "--pass", "fusion=launch"});
}

TEST(WrongUse, IsHinted) {
  const auto told = [](const std::vector<std::string>& words) {
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 2) << ran.err;
    return ran.err;
  };
  EXPECT_THAT(told({"comple"}), HasSubstr("did you mean compile?"));
  EXPECT_THAT(told({"compile", "m.onnx", "--ouput", "d"}), HasSubstr("did you mean --output?"));
  EXPECT_THAT(told({"reduce", "m.onnx"}), HasSubstr("--output is required"));
  EXPECT_THAT(told({"compile", "m.onnx", "-o", "d", "--pass", "convolution=fourier"}), HasSubstr("fourier"));
  EXPECT_THAT(told({"compile", "m.onnx", "--resize", "0x7"}), HasSubstr("--resize: is not a size, write --resize 256"));
  EXPECT_THAT(told({"compile", "m.onnx", "--scale", "1/0"}), HasSubstr("--scale: is not a number"));
  EXPECT_THAT(told({"bench", "m.hoist", "--seconds", "1e9"}), HasSubstr("1e9 not in range 0.01 to 3600 ("));
  EXPECT_THAT(told({"net.onnx"}), HasSubstr("net.onnx: is not a command (hoist check net.onnx)"));
  EXPECT_THAT(told({}), HasSubstr("no command"));
}

class BadRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    std::filesystem::copy_file(fs::path(HOIST_SOURCE_DIR) / "models/digits_residual.onnx", in("model.onnx"));
    const Ran ran = run_hoist({"compile", in("model.onnx"), "-o", bundle()});
    ASSERT_EQ(ran.code, 0) << ran.err;
    ASSERT_TRUE(write_npy(folder_->path() / "image.npy", Tensor(Scalar::f32, {1, 1, 8, 8})).ok());
    ASSERT_TRUE(write_npy(folder_->path() / "small.npy", Tensor(Scalar::f32, {1, 1, 8, 7})).ok());
    ASSERT_TRUE(write_npy(folder_->path() / "double.npy", Tensor(Scalar::f64, {1, 1, 8, 8})).ok());
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string in(const std::string& name) { return (folder_->path() / name).string(); }
  static std::string bundle() { return in("m.hoist"); }

  static void expect_refused_run(const std::vector<std::string>& inputs, const std::string& message) {
    const Folder output;
    std::vector<std::string> words = {"run", bundle(), "--output-dir", (output.path() / "out").string()};
    for (const std::string& input : inputs) {
      words.push_back("--input");
      words.push_back(input);
    }
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 3) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(message));
    EXPECT_TRUE(files_below(output.path()).empty());
  }

  static Folder* folder_;
};
Folder* BadRun::folder_ = nullptr;

TEST_F(BadRun, InputOfWrongNameTypeOrShape) {
  expect_refused_run({"imgae=" + in("image.npy")}, "did you mean image?");
  expect_refused_run({"image=" + in("small.npy")}, "[1][1][8][8]f32, given [1][1][8][7]f32");
  expect_refused_run({"image=" + in("double.npy")},
                     "given [1][1][8][8]f64 (convert the elements to f32, in numpy array.astype(numpy.float32))");
  expect_refused_run({"image=" + in("none.npy")}, "none.npy");
  expect_refused_run({"image=" + in("model.onnx")}, "is neither .npy nor .pb");
  expect_refused_run({}, "input image: is not given");
}

TEST_F(BadRun, NoPlatform) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"devices"},
        {"compile", in("model.onnx"), "-o", in("no.hoist")},
        {"run", bundle(), "--input", "image=" + in("image.npy"), "--output-dir", in("no")},
        {"verify", bundle()},
        {"bench", bundle()}}) {
    const Ran ran = run_hoist(words, "OCL_ICD_VENDORS=/nowhere ");
    EXPECT_EQ(ran.code, 4) << words[0] << ": " << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("OpenCL")) << words[0];
  }
  EXPECT_FALSE(fs::exists(in("no.hoist")));
  EXPECT_FALSE(fs::exists(in("no")));
  EXPECT_EQ(run_hoist({"compile", in("model.onnx"), "-o", in("no.hoist"), "--device", "no such device"}).code, 4);
}

TEST_F(BadRun, AChangedByteInAnyHashedFile) {
  for (const char* name :
       {"plan.bin", "weights.bin", "kernels.cl", "check.bin", "expressions.lift", "derivation.lift", "manifest.json",
        "runtime/hoist_runtime.h", "runtime/hoist_runtime.hpp", "runtime/hoist_runtime.c"}) {
    const Folder copy;
    fs::copy(bundle(), copy.path() / "m.hoist", fs::copy_options::recursive);
    const fs::path file = copy.path() / "m.hoist" / name;
    auto bytes = read_file(file);
    ASSERT_TRUE(bytes.ok()) << name;
    ASSERT_FALSE(bytes->empty()) << name;
    for (size_t place : {size_t{0}, bytes->size() / 2, bytes->size() - 1}) {
      std::string changed = *bytes;
      changed[place] = static_cast<char>(changed[place] ^ 1);
      std::ofstream(file, std::ios::binary) << changed;
      for (const char* command : {"verify", "inspect"}) {
        const Ran ran = run_hoist({command, (copy.path() / "m.hoist").string()});
        EXPECT_EQ(ran.code, 3) << command << " " << name << " byte " << place << ": " << ran.err;
        EXPECT_THAT(ran.err, StartsWith("hoist: error: "));
      }
    }
  }
}

TEST_F(BadRun, ANewerFormat) {
  const Folder copy;
  fs::copy(bundle(), copy.path() / "m.hoist", fs::copy_options::recursive);
  const fs::path file = copy.path() / "m.hoist/plan.bin";
  auto bytes = read_file(file);
  ASSERT_TRUE(bytes.ok());
  (*bytes)[8] = static_cast<char>(100);
  std::ofstream(file, std::ios::binary) << *bytes;
  const Ran ran = run_hoist({"verify", (copy.path() / "m.hoist").string()});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("100"));
}

TEST_F(BadRun, WritesThatFailLeaveNothing) {
  EXPECT_EQ(run_shell("'" HOIST_PROGRAM "' operators >/dev/full").code, 3);
  EXPECT_EQ(run_hoist({"operators", "--json", "/dev/full"}).code, 3);
  const Folder output;
  // 4 blocks of 512 bytes (1024 in bash): less than a bundle needs.
  Ran ran = run_hoist({"compile", in("model.onnx"), "-o", (output.path() / "m.hoist").string()}, "ulimit -f 4; ");
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("hoist: error: "));
  EXPECT_TRUE(files_below(output.path()).empty());
  // An output of 16 MB with a limit of 4 or 8; drivers write only small files.
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"4194304"});
  add_node(model, "Relu", {"x"}, {"y"});
  add_output(model, "y", {"4194304"});
  const Folder large;
  const std::string file = large.write("relu.onnx", model.SerializeAsString()).string();
  ASSERT_TRUE(write_npy(large.path() / "x.npy", Tensor(Scalar::f32, {4194304})).ok());
  const std::string relu = (large.path() / "relu.hoist").string();
  ran = run_hoist({"compile", file, "-o", relu});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run_hoist({"run", relu, "--input", "x=" + (large.path() / "x.npy").string(), "--output-dir",
                   (output.path() / "out").string()},
                  "ulimit -f 8000; ");
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("y.npy: cannot be written: File too large"));
  EXPECT_TRUE(files_below(output.path()).empty());
}

// PoCL writes compiled kernels to files: on a full disk it aborts, exits or reports an error, depending on its
// progress.
TEST_F(BadRun, ADriverWithoutRoomForItsFilesIsDeviceTrouble) {
  const Folder output;
  ASSERT_TRUE(write_npy(output.path() / "image.npy", Tensor(Scalar::f32, {1, 3, 8, 8})).ok());
  for (const char* blocks : {"0", "16", "1000"}) {
    const Folder cache;
    const Ran ran = run_hoist({"run", bundle(), "--input", "image=" + (output.path() / "image.npy").string(),
                               "--output-dir", (output.path() / "out").string()},
                              "export XDG_CACHE_HOME='" + cache.path().string() + "'; ulimit -f " + blocks + "; ");
    // This process's standard error is a file too, which cannot be written with a limit of 0 blocks.
    EXPECT_EQ(ran.code, 4) << blocks << ": " << ran.err;
    EXPECT_EQ(files_below(output.path()), std::vector<std::string>{"image.npy"});
    if (std::string(blocks) == "0") continue;
    EXPECT_THAT(ran.err, HasSubstr("hoist: error: "));
    EXPECT_THAT(ran.err, HasSubstr("ulimit -f"));
  }
}

TEST_F(BadRun, ModelsAndBundlesMistakenForEachOther) {
  const Folder other;
  const std::string none = (other.path() / "none").string(), model = in("model.onnx");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"verify"}, {"bench"}, {"run", "--output-dir", none}, {"evaluate", "--data", none}}) {
    std::vector<std::string> with = words;
    const auto refusal = [&](const std::string& bundle) {
      with = words;
      with.insert(with.begin() + 1, bundle);
      const Ran ran = run_hoist(with);
      EXPECT_EQ(ran.code, 3) << words[0];
      return ran.err;
    };
    EXPECT_THAT(refusal(model), HasSubstr("model.onnx: is a file, and a bundle is a folder (hoist compile "));
    EXPECT_THAT(refusal(none), HasSubstr("none: there is no such folder"));
    EXPECT_THAT(refusal(other.path().string()), HasSubstr("is not a bundle: it holds no plan.bin"));
  }
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"check", bundle()}, {"compile", bundle(), "-o", none}}) {
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 3);
    EXPECT_THAT(ran.err, HasSubstr("is a bundle, and a model is needed"));
  }
  EXPECT_THAT(run_hoist({"test", bundle()}).err, HasSubstr("holds no model.onnx (hoist verify checks a bundle)"));
  for (const char* command : {"inspect", "explain"}) {
    const Ran ran = run_hoist({command, bundle(), "conv1", "--strict"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("--strict: applies to models"));
  }
  EXPECT_TRUE(files_below(other.path()).empty());
}

TEST_F(BadRun, FilesThatAreNotThereOrOfAnotherKind) {
  const Folder other;
  const std::string empty = other.write("empty", "").string(), none = (other.path() / "none").string();
  const auto refusal = [](const std::vector<std::string>& words, int code = 3) {
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, code) << words[0];
    return ran.err;
  };
  EXPECT_THAT(refusal({"compile", in("model.onnx"), "-o", none, "--profile", empty}), HasSubstr("empty: is empty"));
  EXPECT_THAT(refusal({"compile", in("model.onnx"), "-o", none + "/m.hoist"}), HasSubstr("none is not a folder"));
  EXPECT_THAT(refusal({"compile", in("model.onnx"), "-o", ""}, 2), HasSubstr("--output: is empty"));
  EXPECT_THAT(refusal({"run", bundle(), "--input", "image=" + none, "--output-dir", none + "/out"}),
              HasSubstr("none: there is no such file"));
  EXPECT_THAT(refusal({"run", bundle(), "--input", "image="}, 2), HasSubstr("--input image=: names no file"));
  EXPECT_EQ(refusal({"check", ""}, 2), "hoist: error: model: is empty (hoist check --help shows how)\n");
  EXPECT_THAT(refusal({"evaluate", bundle(), "--data", ""}, 2), HasSubstr("--data: is empty"));
  EXPECT_THAT(refusal({"evaluate", bundle(), "--data", other.path().string()}), HasSubstr("is a folder, not an .npz"));
  EXPECT_THAT(refusal({"test", in("model.onnx"), "--data", none}), HasSubstr("none: there is no such folder"));
  EXPECT_EQ(files_below(other.path()), std::vector<std::string>{"empty"});
}

TEST_F(BadRun, ExistingFolders) {
  Ran ran = run_hoist({"compile", in("model.onnx"), "-o", bundle()});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("--force"));
  const Folder other;
  other.write("precious.txt", "keep");
  ran = run_hoist({"compile", in("model.onnx"), "-o", other.path().string(), "--force"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(files_below(other.path()), std::vector<std::string>{"precious.txt"});
}

}  // namespace hoist::bad_input_test
