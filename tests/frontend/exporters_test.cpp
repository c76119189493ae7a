// Exporters write constants of all kinds, repeated names, layers of many inputs and loops of no iterations.
// tools/compare/exporters.py makes such models at random.
#include "tests/frontend/text_models.h"

namespace hoist {
namespace {

using testing::HasSubstr;
using testing::Pointwise;

struct ExportedGraph {
  const char* graph;
  std::vector<std::vector<double>> inputs;
  std::vector<double> expected;
};

// clang-format off
const ExportedGraph exported_graphs[] = {
    // Bodies of two layers, and branches of one, use the same names.
    {"g (bool c, float[2] x) => (float[2] y, float[2] z) {"
     " y = If (c) <then_branch = t () => (float[2] r) { n = Neg (x) r = Abs (n) }, else_branch = e () => (float[2] r) { n = Shape (x) m = Cast <to = 1> (n) r = Add (m, x) }>"
     " z = If (c) <then_branch = t () => (float[2] r) { n = Add (x, x) r = Abs (n) }, else_branch = e () => (float[2] r) { r = Identity (x) }> }",
     {{0}, {1, -3}}, {3, -1, 1, -3}},
    {"g (float[2] x) => (float[2] y, float[2] z) <int64 two = {2}> {"
     " y = Loop (two, , x) <body = b (int64 i, bool p, float[2] v) => (bool q, float[2] w) { q = Identity (p) w = Add (v, x) }>"
     " z = Loop (two, , x) <body = b (int64 i, bool p, float[2] v) => (bool q, float[2] w) { q = Identity (p) k = Cast <to = 1> (i) w = Add (v, k) }> }",
     {{1, 2}}, {3, 6, 2, 3}},
    // Ellipses of different numbers of dimensions broadcast from the right.
    {"g (float[2,2] x, float[2,2,2] z) => (float[a,b,c] y) { y = Einsum <equation = \"...i,...->...i\"> (z, x) }",
     {{1, 2, 3, 4}, {1}}, {1, 1, 2, 2, 3, 3, 4, 4}},
    {"g (float[2] x, float[2,2] z) => (float[a,b] y) { y = Einsum <equation = \"...i,...->...i\"> (x, z) }",
     {{1, 2}, {1, 2, 3, 4}}, {1, 2, 2, 4, 3, 6, 4, 8}},
    {"g (float[2,2] x, float[2,1,2] z) => (float[a,b,c] y) { y = Einsum <equation = \"...ij,...jk\"> (z, x) }",
     {{1, 2, 3, 4}, {1, 0, 0, 1}}, {1, 2, 3, 4}},
    {"g (float[2,2] x, float[2] z) => (float[a,b] y) { y = Einsum <equation = \"...i,i->...i\"> (x, z) }",
     {{1, 2, 3, 4}, {1, 10}}, {1, 20, 3, 40}},
    // Statistics of an undefined type have the default one.
    {"g (float16[1,2] x, float16[2] s) => (float16[1,2] y, float[1,1] m, float[1,1] d) "
     "{ y, m, d = LayerNormalization <epsilon = 0.0, stash_type = 0> (x, s) }", {{1, 3}, {1, 2}}, {-1, 2, 2, 1}},
    {"g (float[1,2] x, float[2] s) => (float[1,2] y) { y = com.microsoft.SimplifiedLayerNormalization <epsilon = 0.0, stash_type = 0> (x, s) }",
     {{3, 3}, {1, 2}}, {1, 2}},
    // Losses of no samples.
    {"g (float[0,3] x, int64[0] l) => (float y, float[0,3] p) { y, p = SoftmaxCrossEntropyLoss (x, l) }", {{}, {}}, {std::nan("")}},
    {"g (float[0,3] x, int64[0] l, float[3] w) => (float y) { y = SoftmaxCrossEntropyLoss <reduction = \"sum\", ignore_index = 1> (x, l, w) }",
     {{}, {}, {1}}, {0}},
    {"g (float[0,3] x, int64[0] l) => (float[0] y) { y = SoftmaxCrossEntropyLoss <reduction = \"none\"> (x, l) }", {{}, {}}, {}},
    {"g (float[2,3,0] x, int64[2,0] l) => (float y) { y = SoftmaxCrossEntropyLoss (x, l) }", {{}, {}}, {std::nan("")}},
    {"g (float[0,3] x, int64[0] l) => (float y) { y = NegativeLogLikelihoodLoss (x, l) }", {{}, {}}, {std::nan("")}},
    // An output that is listed twice.
    {"g (float[2] x) => (float[2] y, float[2] z, float[2] y) { y = Neg (x) z = Abs (x) }", {{1, -2}}, {-1, 2, 1, 2, -1, 2}},
    // Loops and scans without iterations return their initial states and no rows.
    {"g (float[2] x) => (float[2] y, float[k,2] s) <int64 none = {0}> {"
     " y, s = Loop (none, , x) <body = b (int64 i, bool p, float[2] v) => (bool q, float[2] w, float[2] r) { q = Identity (p) w = Add (v, x) r = Neg (v) }> }",
     {{1, 2}}, {1, 2}},
    {"g (float[2] x, float[0,2] e) => (float[2] y, float[0,2] s) {"
     " y, s = Scan (x, e) <num_scan_inputs = 1, body = b (float[2] v, float[2] u) => (float[2] w, float[2] r) { w = Add (v, u) r = Neg (w) }> }",
     {{1, 2}, {0}}, {1, 2}},
};
// clang-format on

TEST(Exporters, WriteGraphsThatMeanThis) {
  for (const ExportedGraph& one : exported_graphs) {
    SCOPED_TRACE(one.graph);
    const auto program = read_graph(21, one.graph);
    ASSERT_TRUE(program.ok()) << messages(program);
    EXPECT_THAT(results_of(*program, one.inputs), Pointwise(IsNear(), one.expected));
  }
}

// The sum overflows 16 bits on the way, its result and the mean do not.
TEST(Exporters, GiveManySmallFloatsToOneLayer) {
  for (const int pairs : {17, 20, 100}) {
    for (const auto& [type, operation, second] :
         {std::tuple("float16", "Mean", "x"), std::tuple("float16", "Sum", "z"), std::tuple("bfloat16", "Sum", "z")}) {
      const std::string list = std::string(type) + "[1] ";
      std::string text = "g (" + list + "x, " + list + "z) => (" + list + "y) { y = " + operation + " (x";
      for (int i = 1; i < 2 * pairs; ++i) text += i < pairs ? ", x" : std::string(", ") + second;
      const auto program = read_graph(13, text + ") }");
      ASSERT_TRUE(program.ok()) << messages(program);
      const double expected = operation == std::string("Mean") ? 60000 : 0;
      EXPECT_THAT(results_of(*program, {{60000}, {-60000}}), Pointwise(IsNear(), std::vector<double>{expected}))
          << operation << " of " << 2 * pairs << " " << type;
    }
  }
}

TEST(Exporters, GiveManyInputsToOneLayer) {
  for (const auto& [operation, result] : {std::pair("Sum", 80.0), std::pair("Mean", 2.0), std::pair("Max", 39.0)}) {
    std::string text = "g (float[1] x, float[1] m) => (float[1] y) { y = " + std::string(operation) + " (m";
    for (int i = 1; i < 40; ++i) text += ", x";
    const auto program = read_graph(13, text + ") }");
    ASSERT_TRUE(program.ok()) << messages(program);
    const double m = operation == std::string("Max") ? 39 : 41;
    EXPECT_THAT(results_of(*program, {{1}, {m}}), Pointwise(IsNear(), std::vector<double>{result})) << operation;
  }
}

onnx::SparseTensorProto sparse_tensor(const std::string& name, std::vector<int64_t> dims,
                                      const std::vector<int64_t>& places, bool linear) {
  onnx::SparseTensorProto out;
  for (const int64_t extent : dims) out.add_dims(extent);
  out.mutable_values()->set_name(name);
  out.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  out.mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  const size_t count = linear ? places.size() : places.size() / dims.size();
  out.mutable_values()->add_dims(static_cast<int64_t>(count));
  out.mutable_indices()->add_dims(static_cast<int64_t>(count));
  if (!linear) out.mutable_indices()->add_dims(static_cast<int64_t>(dims.size()));
  for (size_t i = 0; i < count; ++i) out.mutable_values()->add_float_data(static_cast<float>(i + 1));
  for (const int64_t place : places) out.mutable_indices()->add_int64_data(place);
  return out;
}

Result<Program> read_bytes(const onnx::ModelProto& model) {
  const Folder folder;
  ReadOptions options;
  options.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, newest_version) != nullptr;
  };
  return read_model(folder.write("m.onnx", model.SerializeAsString()), options);
}

TEST(Exporters, WriteSparseTensors) {
  const auto model = [](const onnx::SparseTensorProto& first, const onnx::SparseTensorProto& second) {
    onnx::ModelProto out;
    out.ParseFromString(graph_bytes(13, "g (float[2,2] x) => (float[2,2] y) { s = Add (x, a) y = Add (s, b) }"));
    *out.mutable_graph()->add_sparse_initializer() = first;
    onnx::NodeProto& node = *out.mutable_graph()->add_node();  // after its consumer
    node.set_op_type("Constant");
    node.add_output("b");
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("sparse_value");
    attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
    *attribute.mutable_sparse_tensor() = second;
    return read_bytes(out);
  };
  const auto program = model(sparse_tensor("a", {2, 2}, {1, 2}, true), sparse_tensor("", {2, 2}, {0, 0, 1, 1}, false));
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_THAT(results_of(*program, {{10, 20, 30, 40}}), Pointwise(IsNear(), std::vector<double>{11, 21, 32, 42}));
  const auto empty = sparse_tensor("", {2, 2}, {}, true);
  EXPECT_THAT(messages(model(sparse_tensor("a", {2, 2}, {4}, true), empty)),
              HasSubstr("value 0 lies outside of its shape"));
  EXPECT_THAT(messages(model(sparse_tensor("a", {2, 2}, {0, -1}, false), empty)),
              HasSubstr("lies outside of its shape"));
  EXPECT_THAT(messages(model(sparse_tensor("a", {1 << 20, 1 << 20, 1 << 20}, {4}, true), empty)),
              HasSubstr("is past the limit of"));
}

TEST(Exporters, WriteConstantsOfStrings) {
  const auto program =
      read_graph(21,
                 "g (string[2] x) => (string[2] y) { c = Constant <value_string = \"z\"> () "
                 "d = Constant <value_strings = [\"a\", \"b\"]> () s = StringConcat (x, c) y = StringConcat (s, d) }");
  ASSERT_TRUE(program.ok()) << messages(program);
}

// onnx does not infer the types of the results of Reshape-1.
TEST(Exporters, CopyValuesOfTypesThatOnnxDoesNotKnow) {
  const auto program =
      read_graph(4, "g (float[2,2] x) => (float[4] y) { r = Reshape <shape = [-1]> (x) y = Identity (r) }");
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_THAT(results_of(*program, {{1, 2, 3, 4}}), Pointwise(IsNear(), std::vector<double>{1, 2, 3, 4}));
}

TEST(Exporters, NormaliseMeansAndVariancesOfAllFloats) {
  for (const char* type : {"float16", "bfloat16", "float", "double"}) {
    const auto program = read_graph(21, "g (" + std::string(type) + "[1,1,1,4] x) => (" + type +
                                            "[a,b,c,d] y) { y = MeanVarianceNormalization (x) }");
    ASSERT_TRUE(program.ok()) << type << ": " << messages(program);
    EXPECT_THAT(results_of(*program, {{1, 1, 3, 3}}), Pointwise(IsNear(), std::vector<double>{-1, -1, 1, 1})) << type;
  }
}

TEST(Exporters, AreToldOfEquationsWithTwoEllipses) {
  EXPECT_THAT(messages(read_graph(17,
                                  "g (float[3,3,3] x) => (float[a,b,c] y) "
                                  "{ y = Einsum <equation = \"......i->...i\"> (x) }")),
              HasSubstr("has two ellipses in one term of its equation"));
  EXPECT_TRUE(
      read_graph(17, "g (float[3,3] x) => (float[3] y) { y = Einsum <equation = \"...i,...i->...\"> (x, x) }").ok());
}

TEST(Exporters, AreToldOfTypesThatAreNoFloats) {
  for (const auto& [type, message] :
       {std::pair("7", "stash_type is i64, which is not a float type"),
        std::pair("99", "attribute stash_type: element type 99 of ONNX is not supported")}) {
    const std::string layer = std::string("{ y = LayerNormalization <stash_type = ") + type + "> (x, s) }";
    EXPECT_THAT(messages(read_graph(17, "g (float[1,2] x, float[2] s) => (float[1,2] y) " + layer)),
                HasSubstr(message));
  }
}

TEST(Exporters, AreToldOfEllipsesThatDoNotBroadcast) {
  EXPECT_THAT(messages(read_graph(17,
                                  "g (float[2,3,4] x, float[2] z) => (float[a,b,c] y) "
                                  "{ y = Einsum <equation = \"...i,...->...i\"> (x, z) }")),
              HasSubstr("a dimension is 3 in one input and 2 in another"));
}

}  // namespace
}  // namespace hoist
