// Changes valid layers at random: each must be lowered or refused without a crash, and lowered layers must read no
// element outside their arrays. HOIST_MUTATIONS=N makes N variants of each layer.
#include <random>

#include "ir/evaluate/evaluate.h"
#include "ir/operators/operators.h"
#include "tests/conformance/archive.h"
#include "tests/conformance/runner.h"
#include "tests/support/named_model.h"

namespace hoist::conformance {
namespace {

using Ints = std::vector<int64_t>;

class Mutations {
 public:
  explicit Mutations(uint64_t seed) : random_(seed) {}

  int64_t below(size_t n) { return static_cast<int64_t>(random_() % n); }

  int64_t near(int64_t value) {
    const int64_t far[] = {0, 1, -1, INT64_MAX, INT64_MIN, int64_t{1} << 31, int64_t{1} << 40, 1000};
    return below(3) == 0 ? far[below(8)] : value + below(5) - 2;
  }

  void change(Ints& list) {
    if (list.empty() || below(4) == 0)
      list.push_back(near(1));
    else if (below(4) == 0)
      list.pop_back();
    else {
      int64_t& one = list[static_cast<size_t>(below(list.size()))];
      one = near(one);
    }
  }

  void change(NamedCall& layer) {
    const char* names[] = {"axis",      "pads",  "strides", "dilations", "keepdims",
                           "ceil_mode", "group", "mode",    "exclusive"};
    std::string name = names[below(9)];
    if (!layer.attributes.empty() && below(5) != 0) {
      name = std::next(layer.attributes.begin(), below(layer.attributes.size()))->first;
    }
    Attribute& a = layer.attributes[name];
    if (below(8) == 0)
      a = below(2) == 0 ? Attribute(1.5) : Attribute(std::string("SAME_UPPER"));
    else if (below(8) == 0)
      layer.attributes.erase(name);
    else if (auto* i = std::get_if<int64_t>(&a))
      *i = near(*i);
    else if (auto* list = std::get_if<Ints>(&a))
      change(*list);
    else if (auto* f = std::get_if<double>(&a))
      *f = static_cast<double>(near(static_cast<int64_t>(*f)));
  }

  void change(Tensor& t) {
    if (below(2) == 0 && t.size() > 0) {  // a value
      int64_t i = below(static_cast<size_t>(t.size()));
      if (is_float(t.scalar()))
        t.set_float(i, static_cast<double>(near(static_cast<int64_t>(std::clamp(t.float_at(i), -1e9, 1e9)))));
      else  // any other element of a string array may be empty
        t.set_integer(i, t.scalar() == Scalar::string ? 0 : near(t.integer_at(i)));
      return;
    }
    Ints shape = t.shape();
    size_t kind = static_cast<size_t>(below(4));
    if (kind == 0)
      shape.insert(shape.begin() + below(shape.size() + 1), 1 + below(2));
    else if (kind == 1 && !shape.empty())
      shape.erase(shape.begin() + below(shape.size()));
    else if (!shape.empty()) {
      int64_t& n = shape[static_cast<size_t>(below(shape.size()))];
      n = std::max<int64_t>(n + below(5) - 2, 0);
    }
    if (element_count(shape) > 100000) return;
    Scalar scalar = below(8) == 0 ? Scalar::i64 : t.scalar();
    Tensor other(scalar, shape);
    for (int64_t i = 0; i < other.size() && t.size() > 0; ++i) {
      if (is_float(scalar))
        other.set_float(i, t.float_at(i % t.size()));
      else if (!is_float(t.scalar()))
        other.set_integer(i, t.integer_at(i % t.size()));
    }
    t = other;
  }

 private:
  std::mt19937_64 random_;
};

// Empty if the layer is refused, or lowered and evaluated; else the fault.
std::string fault_of(const NamedCall& layer, int64_t opset, const std::vector<Tensor>& inputs,
                     const std::vector<bool>& known) {
  const OperatorCall call = call_of(layer, opset);
  OperatorContext context{call, {}, {}};
  Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool there = !layer.inputs[i].empty();
    std::vector<Nat> sizes(inputs[i].shape().begin(), inputs[i].shape().end());
    std::string name = "x" + std::to_string(i);
    context.inputs.push_back(there ? parameter(name, array_type(sizes, scalar_type(inputs[i].scalar()))) : nullptr);
    context.constants.push_back(there && known[i] ? &inputs[i] : nullptr);
    bindings[name] = inputs[i];
  }
  auto results = define(context);
  if (!results.ok()) return results.errors()[0].what.empty() ? "refused without a word" : "";
  for (Expr e : *results) {
    if (e == nullptr || element_count(shape_of(e->type)) > 300) continue;
    auto value = interpret(e, bindings);
    if (!value.ok()) return value.errors()[0].text();
  }
  return "";
}

TEST_F(OnnxCases, MutatedLayersAreRefusedOrHarmless) {
  const char* wanted = std::getenv("HOIST_MUTATIONS");
  const int rounds = wanted == nullptr ? 4 : std::atoi(wanted);
  Mutations mutations(11);
  int layers = 0;
  for (const fs::path& path : cases_in(folder_ / "data/node")) {
    auto read = read_case(path);
    if (!read.ok()) continue;
    const NamedModel graph = named_model(read->program);
    if (graph.layers.size() != 1) continue;
    const NamedCall& right = graph.layers[0];
    std::map<std::string, Tensor> values = graph.constants;
    for (size_t i = 0; i < graph.inputs.size(); ++i) values[graph.inputs[i].name] = read->inputs[i];
    ++layers;
    for (int round = 0; round < rounds; ++round) {
      NamedCall layer = right;
      std::vector<Tensor> inputs;
      std::vector<bool> known;
      for (const std::string& name : layer.inputs) {
        inputs.push_back(name.empty() ? Tensor() : values.at(name));
        known.push_back(mutations.below(4) != 0);
      }
      for (int64_t n = 1 + mutations.below(2); n > 0; --n) {
        size_t what = static_cast<size_t>(mutations.below(inputs.size() + 2));
        if (what >= inputs.size())
          mutations.change(layer);
        else if (mutations.below(10) == 0)
          layer.inputs[what].clear();
        else
          mutations.change(inputs[what]);
      }
      EXPECT_EQ(fault_of(layer, graph.opset, inputs, known), "") << path.filename() << " round " << round;
    }
  }
  EXPECT_GT(layers, 500);
}

}  // namespace
}  // namespace hoist::conformance
