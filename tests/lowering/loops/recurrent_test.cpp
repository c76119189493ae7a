// Compares RNN, GRU, LSTM and DynamicQuantizeLSTM with loops in C++, for random attributes; and compiled layers, whose
// steps share their kernels, with the definitions.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/lowering/operators/operators_layer.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"

namespace hoist::recurrent_test {

using testing::HasSubstr;

using Row = std::vector<double>;

double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

// A random layer; null tensors are omitted inputs.
struct Cell {
  std::string operation;
  int64_t gates = 1, steps = 1, batch = 1, inputs = 1, hidden = 1;
  std::vector<bool> reversed = {false};
  bool batch_first = false, input_forget = false, linear = false;
  double clip = 0;
  std::optional<Tensor> x, w, r, b, lengths, h, c, p;
  std::vector<std::string> activations;
  std::vector<Tensor> quantised;  // W, R, W_scale, W_zero_point, R_scale and R_zero_point; w and r are their values

  bool has_cells() const { return operation == "LSTM" || operation == "DynamicQuantizeLSTM"; }
};

// Weights of [d][rows][n] with random elements of 8 bits, as the operator stores them: [d][n][rows]. Returns their
// values.
Tensor draw_quantised(Cell& cell, int64_t n, std::mt19937_64& random) {
  const auto upto = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  const auto d = static_cast<int64_t>(cell.reversed.size()), rows = cell.gates * cell.hidden;
  const bool is_signed = upto(2) == 0, per_row = upto(2) == 0;
  const Scalar scalar = is_signed ? Scalar::i8 : Scalar::u8;
  const std::vector<int64_t> shape = per_row ? std::vector<int64_t>{d, rows} : std::vector<int64_t>{d};
  Tensor stored(scalar, {d, n, rows}), scales(Scalar::f32, shape), zeros(scalar, shape),
      values(Scalar::f32, {d, rows, n});
  for (int64_t k = 0; k < d; ++k) {
    const int64_t zero = is_signed ? upto(2) : 120 + upto(9);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t own = per_row ? k * rows + row : k;
      if (per_row || row == 0)
        scales.set_float(own, static_cast<double>(1 + upto(8)) / 1024), zeros.set_integer(own, zero);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t element = upto(256) - (is_signed ? 128 : 0);
        stored.set_integer((k * n + i) * rows + row, element);
        values.set_float((k * rows + row) * n + i, static_cast<double>(element - zero) * scales.float_at(own));
      }
    }
  }
  for (Tensor* each : {&stored, &scales, &zeros}) cell.quantised.push_back(std::move(*each));
  return values;
}

Cell drawn_cell(const std::string& operation, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto upto = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  const auto array = [&](std::vector<int64_t> shape) {
    std::vector<double> values;
    for (int64_t i = 0; i < element_count(shape); ++i) values.push_back((static_cast<double>(upto(33)) - 16) / 16);
    return floats(std::move(shape), values);
  };
  Cell cell;
  cell.operation = operation;
  cell.gates = operation == "RNN" ? 1 : operation == "GRU" ? 3 : 4;
  const bool quantised = operation == "DynamicQuantizeLSTM";
  cell.steps = 1 + upto(4), cell.batch = 1 + upto(3), cell.inputs = 1 + upto(4), cell.hidden = 1 + upto(4);
  const int64_t direction = upto(3);
  cell.reversed = direction == 2 ? std::vector<bool>{false, true} : std::vector<bool>{direction == 1};
  const auto d = static_cast<int64_t>(cell.reversed.size()), n = cell.hidden;
  cell.batch_first = !quantised && upto(2) == 1;
  cell.x = array({cell.steps, cell.batch, cell.inputs});
  cell.w = quantised ? draw_quantised(cell, cell.inputs, random) : array({d, cell.gates * n, cell.inputs});
  cell.r = quantised ? draw_quantised(cell, n, random) : array({d, cell.gates * n, n});
  if (upto(3) > 0) cell.b = array({d, 2 * cell.gates * n});
  if (upto(2) == 1) {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < cell.batch; ++i) lengths.push_back(1 + upto(cell.steps));
    cell.lengths = Tensor::of(Scalar::i32, {cell.batch}, lengths);
  }
  if (upto(2) == 1) cell.h = array({d, cell.batch, n});
  if (cell.has_cells() && upto(2) == 1) cell.c = array({d, cell.batch, n});
  if (cell.has_cells() && upto(2) == 1) cell.p = array({d, 3 * n});
  cell.input_forget = cell.has_cells() && upto(3) == 0;
  cell.linear = operation == "GRU" && upto(2) == 1;
  if (upto(3) == 0) cell.clip = 0.5;
  for (int64_t i = 0; i < d; ++i) {
    if (operation != "RNN") cell.activations.push_back(upto(2) == 0 ? "Sigmoid" : "HardSigmoid");
    cell.activations.push_back(upto(2) == 0 ? "Tanh" : "Affine");
    if (cell.has_cells()) cell.activations.push_back(upto(2) == 0 ? "Tanh" : "Softsign");
  }
  return cell;
}

double activated(const std::string& name, double v, double clip) {
  if (clip > 0) v = std::min(std::max(v, -clip), clip);
  if (name == "Sigmoid") return sigmoid(v);
  if (name == "HardSigmoid") return std::max(0.0, std::min(1.0, 0.25 * v + 0.5));
  if (name == "Affine") return 0.75 * v + 0.125;
  if (name == "Softsign") return v / (1 + std::abs(v));
  return std::tanh(v);
}

// The values of the elements as 8-bit integers by their range, which includes 0.
void quantise(const std::vector<double*>& elements) {
  float low = 0, high = 0;
  for (const double* v : elements)
    low = std::min(low, static_cast<float>(*v)), high = std::max(high, static_cast<float>(*v));
  const float step = low == high ? 1 : (high - low) / 255;
  const float zero = std::nearbyint(std::min(std::max(-low / step, 0.0F), 255.0F));
  for (double* v : elements) {
    const float steps = std::min(std::max(static_cast<float>(*v) / step, -zero), 255 - zero);
    *v = std::nearbyint(steps) * static_cast<double>(step);
  }
}

// The inputs as the operator quantises them: by the range of all steps up to the longest sequence.
Tensor quantised_inputs(const Cell& cell) {
  Row values;
  int64_t longest = cell.lengths ? 0 : cell.steps;
  for (int64_t b = 0; cell.lengths && b < cell.batch; ++b) longest = std::max(longest, cell.lengths->integer_at(b));
  Tensor out = *cell.x;
  const int64_t count = longest * cell.batch * cell.inputs;
  for (int64_t i = 0; i < count; ++i) values.push_back(out.float_at(i));
  std::vector<double*> all;
  for (double& v : values) all.push_back(&v);
  quantise(all);
  for (int64_t i = 0; i < count; ++i) out.set_float(i, values[static_cast<size_t>(i)]);
  return out;
}

double element_or_zero(const std::optional<Tensor>& t, int64_t i) { return t ? t->float_at(i) : 0.0; }

// One direction of a layer, computed by loops.
struct DirectionLoops {
  const Cell& cell;
  const Tensor& x;  // the input as the contractions read it
  int64_t k;        // index of the direction
  int64_t n = cell.hidden, g = cell.gates;

  std::vector<Row> first(const std::optional<Tensor>& given) const {
    std::vector<Row> out(static_cast<size_t>(cell.batch));
    for (int64_t b = 0; b < cell.batch; ++b) {
      for (int64_t j = 0; j < n; ++j)
        out[static_cast<size_t>(b)].push_back(element_or_zero(given, (k * cell.batch + b) * n + j));
    }
    return out;
  }
  int64_t length_of(int64_t b) const { return cell.lengths ? cell.lengths->integer_at(b) : cell.steps; }
  const std::string& activation(int64_t which) const {
    const int64_t per_direction = std::ssize(cell.activations) / std::ssize(cell.reversed);
    return cell.activations[static_cast<size_t>(k * per_direction + which)];
  }
  double act(int64_t which, double v) const { return activated(activation(which), v, cell.clip); }

  // The states as the contractions of a step read them.
  std::vector<Row> multiplied(const std::vector<Row>& states, int64_t step) const {
    std::vector<Row> out = states;
    std::vector<double*> running;
    for (int64_t b = 0; b < cell.batch; ++b) {
      for (double& v : out[static_cast<size_t>(b)]) {
        if (step <= length_of(b)) running.push_back(&v);
      }
    }
    if (!cell.quantised.empty()) quantise(running);
    return out;
  }
  // The contribution of row `at` of the inputs to a gate.
  double of_input(int64_t at, int64_t gate, int64_t j) const {
    double sum = element_or_zero(cell.b, k * 2 * g * n + gate * n + j);
    for (int64_t i = 0; i < cell.inputs; ++i)
      sum += x.float_at(at * cell.inputs + i) * element_or_zero(cell.w, (k * g * n + gate * n + j) * cell.inputs + i);
    return sum;
  }
  double of_state(int64_t gate, int64_t j, const Row& state) const {
    double sum = element_or_zero(cell.b, k * 2 * g * n + g * n + gate * n + j);
    for (int64_t i = 0; i < n; ++i)
      sum += state[static_cast<size_t>(i)] * element_or_zero(cell.r, (k * g * n + gate * n + j) * n + i);
    return sum;
  }
  double peep(int64_t gate, int64_t j, double v) const { return element_or_zero(cell.p, k * 3 * n + gate * n + j) * v; }

  // One sequence's next state from row `at` of the inputs; `own` is the state as the contractions read it.
  Row next_of_rnn(int64_t at, const Row& own) const {
    Row next;
    for (int64_t j = 0; j < n; ++j) next.push_back(act(0, of_input(at, 0, j) + of_state(0, j, own)));
    return next;
  }
  Row next_of_gru(int64_t at, const Row& own, const Row& h) const {
    Row next, reset, reset_state;
    for (int64_t j = 0; j < n; ++j) reset.push_back(act(0, of_input(at, 1, j) + of_state(1, j, own)));
    for (size_t j = 0; j < h.size(); ++j) reset_state.push_back(reset[j] * h[j]);
    for (int64_t j = 0; j < n; ++j) {
      const auto q = static_cast<size_t>(j);
      const double z = act(0, of_input(at, 0, j) + of_state(0, j, own));
      const double hidden =
          act(1, of_input(at, 2, j) + (cell.linear ? reset[q] * of_state(2, j, own) : of_state(2, j, reset_state)));
      next.push_back((1 - z) * hidden + z * h[q]);
    }
    return next;
  }
  // Also updates the cell state c.
  Row next_of_lstm(int64_t at, const Row& own, Row& c) const {
    Row next;
    for (int64_t j = 0; j < n; ++j) {
      double& own_cell = c[static_cast<size_t>(j)];
      const double i = act(0, of_input(at, 0, j) + of_state(0, j, own) + peep(0, j, own_cell));
      const double f =
          cell.input_forget ? 1 - i : act(0, of_input(at, 2, j) + of_state(2, j, own) + peep(2, j, own_cell));
      own_cell = f * own_cell + i * act(1, of_input(at, 3, j) + of_state(3, j, own));
      next.push_back(act(0, of_input(at, 1, j) + of_state(1, j, own) + peep(1, j, own_cell)) *
                     activated(activation(2), own_cell, 0));
    }
    return next;
  }
};

// Y, Y_h and Y_c, computed by loops.
std::vector<std::vector<double>> expected(const Cell& cell) {
  const auto d = static_cast<int64_t>(cell.reversed.size());
  const int64_t n = cell.hidden;
  const Tensor x = cell.quantised.empty() ? *cell.x : quantised_inputs(cell);
  Row y(static_cast<size_t>(cell.steps * d * cell.batch * n)), last, cells;
  for (int64_t k = 0; k < d; ++k) {
    const DirectionLoops loops{cell, x, k};
    std::vector<Row> states = loops.first(cell.h), all_cells = loops.first(cell.c);
    for (int64_t step = 0; step < cell.steps; ++step) {
      const std::vector<Row> multiplied = loops.multiplied(states, step);
      for (int64_t b = 0; b < cell.batch; ++b) {
        const int64_t length = loops.length_of(b);
        if (step >= length) continue;
        const int64_t t = cell.reversed[static_cast<size_t>(k)] ? length - 1 - step : step, at = t * cell.batch + b;
        const Row& own = multiplied[static_cast<size_t>(b)];
        Row& h = states[static_cast<size_t>(b)];
        h = cell.operation == "RNN"   ? loops.next_of_rnn(at, own)
            : cell.operation == "GRU" ? loops.next_of_gru(at, own, h)
                                      : loops.next_of_lstm(at, own, all_cells[static_cast<size_t>(b)]);
        std::copy(h.begin(), h.end(), y.begin() + ((t * d + k) * cell.batch + b) * n);
      }
    }
    for (const Row& row : states) last.insert(last.end(), row.begin(), row.end());
    for (const Row& row : all_cells) cells.insert(cells.end(), row.begin(), row.end());
  }
  return {y, last, cells};
}

// Transposes the first two dimensions.
Tensor turned(const Tensor& t) {
  const std::vector<int64_t>& s = t.shape();
  Tensor out(t.scalar(), {s[1], s[0], s[2]});
  for (int64_t i = 0; i < s[0]; ++i) {
    for (int64_t j = 0; j < s[1]; ++j) {
      for (int64_t k = 0; k < s[2]; ++k)
        out.set_float((j * s[0] + i) * s[2] + k, t.float_at((i * s[1] + j) * s[2] + k));
    }
  }
  return out;
}

LayerCase layer_of(const Cell& cell) {
  const auto state = [&](const std::optional<Tensor>& t) {
    return t && cell.batch_first ? turned(*t) : t.value_or(Tensor());
  };
  std::map<std::string, Attribute> attributes = {{"hidden_size", cell.hidden},
                                                 {"direction", std::string(cell.reversed.size() == 2 ? "bidirectional"
                                                                           : cell.reversed[0]        ? "reverse"
                                                                                                     : "forward")},
                                                 {"layout", int64_t{cell.batch_first}},
                                                 {"activations", cell.activations}};
  if (cell.clip > 0) attributes["clip"] = cell.clip;
  if (cell.input_forget) attributes["input_forget"] = int64_t{1};
  if (cell.linear) attributes["linear_before_reset"] = int64_t{1};
  std::vector<double> alphas, betas;  // for functions that have parameters
  for (const std::string& name : cell.activations) {
    if (name != "HardSigmoid" && name != "Affine") continue;
    alphas.push_back(name == "Affine" ? 0.75 : 0.25);
    betas.push_back(name == "Affine" ? 0.125 : 0.5);
  }
  if (!alphas.empty()) attributes["activation_alpha"] = alphas, attributes["activation_beta"] = betas;
  std::vector<Tensor> tensors = {
      state(cell.x), *cell.w, *cell.r, cell.b.value_or(Tensor()), cell.lengths.value_or(Tensor()), state(cell.h)};
  if (cell.has_cells()) tensors.push_back(state(cell.c)), tensors.push_back(cell.p.value_or(Tensor()));
  if (!cell.quantised.empty()) {
    tensors[1] = cell.quantised[0], tensors[2] = cell.quantised[3];
    for (const size_t i : {1U, 2U, 4U, 5U}) tensors.push_back(cell.quantised[i]);
    attributes.erase("layout");
  }
  LayerCase layer(cell.operation, tensors, attributes, cell.has_cells() ? 3 : 2);
  if (!cell.quantised.empty()) layer.layer.domain = "com.microsoft";
  const std::vector<bool> given = {true,
                                   true,
                                   true,
                                   cell.b.has_value(),
                                   cell.lengths.has_value(),
                                   cell.h.has_value(),
                                   cell.c.has_value(),
                                   cell.p.has_value(),
                                   true,
                                   true,
                                   true,
                                   true};
  for (size_t i = 0; i < layer.layer.inputs.size(); ++i) {
    if (!given[i]) layer.layer.inputs[i].clear();
  }
  return layer;
}

// The element in ONNX's order of dimensions, for the layer's layout.
double element(const Cell& cell, const Tensor& result, size_t which, int64_t t, int64_t k, int64_t b, int64_t j) {
  const auto d = static_cast<int64_t>(cell.reversed.size());
  if (which == 0)
    return result.float_at(cell.batch_first ? ((b * cell.steps + t) * d + k) * cell.hidden + j
                                            : ((t * d + k) * cell.batch + b) * cell.hidden + j);
  return result.float_at((cell.batch_first ? b * d + k : k * cell.batch + b) * cell.hidden + j);
}

class Recurrent : public testing::TestWithParam<const char*> {};

TEST_P(Recurrent, AgreesWithLoopsWrittenOut) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Cell cell = drawn_cell(GetParam(), seed);
    const LayerCase layer = layer_of(cell);
    const auto wanted = expected(cell);
    const auto d = static_cast<int64_t>(cell.reversed.size());
    for (size_t which = 0; which < layer.layer.outputs.size(); ++which) {
      const Tensor result = layer.run(which);
      size_t at = 0;
      for (int64_t t = 0; t < (which == 0 ? cell.steps : 1); ++t) {
        for (int64_t k = 0; k < d; ++k) {
          for (int64_t b = 0; b < cell.batch; ++b) {
            for (int64_t j = 0; j < cell.hidden; ++j)
              ASSERT_NEAR(element(cell, result, which, t, k, b, j), wanted[which][at++], 1e-4)
                  << GetParam() << ", seed " << seed << ", result " << which;
          }
        }
      }
    }
  }
}

TEST_P(Recurrent, CompilesToStepsThatShareTheirKernels) {
  for (const std::string name : {"cpu", "gpu", "pairs"}) {
    Profile profile;
    profile.vector_width = 4;
    profile.gpu = name == "gpu";
    if (name == "pairs") profile.pair_products = 2;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const LayerCase layer = layer_of(drawn_cell(GetParam(), seed));
      ProgramBuilder builder("steps", layer.opset);
      Bindings inputs;
      for (size_t i = 0; i < layer.inputs.size(); ++i) {
        const std::string& value = layer.layer.inputs[i];
        if (value.empty()) continue;
        const bool weights = i == 1 || i == 2 || i > 7;
        if (weights) builder.add_constant(value, layer.inputs[i]);
        if (!weights) builder.add_input({value, layer.inputs[i].scalar(), layer.inputs[i].shape()});
        if (!weights) inputs[value] = layer.inputs[i];
      }
      builder.add_call(layer.layer);
      for (const std::string& output : layer.layer.outputs) builder.add_output(output);
      auto program = builder.finish();
      ASSERT_TRUE(program.ok()) << program.errors()[0].text();
      const auto lowered = lower_model(*program, {}, profile);
      ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
      const Bindings found = outputs_of(*lowered, inputs);
      for (size_t i = 0; i < layer.layer.outputs.size(); ++i)
        EXPECT_TRUE(close(found.at(layer.layer.outputs[i]), layer.run(i), 1e-5))
            << name << ", seed " << seed << ", " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Recurrent, testing::Values("RNN", "GRU", "LSTM", "DynamicQuantizeLSTM"),
                         [](const auto& test) { return std::string(test.param); });

TEST(RecurrentLayers, StepsShareTheirKernels) {
  const auto kernels = [](int64_t steps) {
    ProgramBuilder builder("steps", 21);
    builder.add_input({"x", Scalar::f32, {steps, 1, 4}});
    builder.add_constant("w", counting({1, 12, 4}));
    builder.add_constant("r", counting({1, 12, 3}));
    builder.add_call({"cell", "LSTM", "", {{"hidden_size", int64_t{3}}}, {"x", "w", "r"}, {"y"}});
    builder.add_output("y");
    auto program = builder.finish();
    HOIST_CHECK(program.ok(), program.errors()[0].text());
    const auto lowered = lower_model(*program, {}, {});
    HOIST_CHECK(lowered.ok(), lowered.errors()[0].text());
    return std::pair(lowered->kernels.size(), lowered->steps.size());
  };
  const auto [few, short_run] = kernels(4);
  const auto [many, long_run] = kernels(14);
  EXPECT_LE(many, few + 1);
  EXPECT_EQ(long_run, short_run + 30);
}

// Without steps the final states are the initial states; without sequences there are no states.
TEST(RecurrentLayers, RunOverNothing) {
  const auto ones = [](std::vector<int64_t> shape) {
    const auto count = static_cast<size_t>(element_count(shape));
    return floats(std::move(shape), std::vector<double>(count, 1));
  };
  for (const auto& [operation, gates] : {std::pair("RNN", 1), std::pair("GRU", 3), std::pair("LSTM", 4)}) {
    for (const int64_t steps : {0, 3}) {
      const int64_t batch = steps == 0 ? 2 : 0;
      std::vector<Tensor> operands = {ones({steps, batch, 3}), ones({1, gates * 4, 3}), ones({1, gates * 4, 4})};
      LayerCase none(operation, operands);
      auto results = none.lower();
      ASSERT_TRUE(results.ok()) << results.errors()[0].text();
      EXPECT_EQ(shape_of((*results)[0]->type), (std::vector<int64_t>{steps, 1, batch, 4}));
      const Bindings values = {{"x0", operands[0]}, {"x1", operands[1]}, {"x2", operands[2]}};
      const auto last = evaluate((*results)[1], values);
      ASSERT_TRUE(last.ok()) << last.errors()[0].text();
      EXPECT_EQ(*last, floats({1, batch, 4}, std::vector<double>(static_cast<size_t>(batch * 4), 0)));
    }
  }
}

TEST(RecurrentLayers, WhatDoesNotFitIsSaid) {
  const auto error = [](std::map<std::string, Attribute> attributes, std::vector<int64_t> r = {1, 4, 4}) {
    return LayerCase("RNN", {counting({2, 1, 3}), counting({1, 4, 3}), counting(std::move(r))}, std::move(attributes))
        .error();
  };
  const std::string any = error({{"hidden_size", int64_t{4}}});
  EXPECT_EQ(any, "");
  EXPECT_THAT(error({{"hidden_size", int64_t{5}}}), HasSubstr("hidden_size is 5, and R is [1][4][4]"));
  EXPECT_THAT(error({{"direction", std::string("bidirectional")}}), HasSubstr("W is [1][4][3], expected [2][4][3]"));
  EXPECT_THAT(error({}, {1, 4, 5}), HasSubstr("W is [1][4][3], expected [1][5][3]"));
  EXPECT_THAT(error({{"activations", std::vector<std::string>{"Swish"}}}), HasSubstr("activations names Swish"));
  EXPECT_THAT(error({{"activations", std::vector<std::string>{"Relu", "Tanh"}}}),
              HasSubstr("activations names 2 functions, expected 1"));
  EXPECT_THAT(error({{"layout", int64_t{2}}}), HasSubstr("layout is 2, expected 0 or 1"));
}

TEST(RecurrentLayers, WhatDoesNotFitQuantisedWeightsIsSaid) {
  const auto error = [](size_t place, const Tensor& instead) {
    LayerCase layer = layer_of(drawn_cell("DynamicQuantizeLSTM", 3));
    layer.inputs[place] = instead;
    return layer.error();
  };
  EXPECT_THAT(error(1, counting({1, 3, 8})), HasSubstr("W is [1][3][8] of f32, expected 3 dimensions of i8 or u8"));
  EXPECT_THAT(error(8, counting({7})), HasSubstr("W_scale is [7] of f32, expected ["));
  EXPECT_THAT(error(11, counting({1})), HasSubstr("R_zero_point is [1] of f32, expected ["));
}

}  // namespace hoist::recurrent_test
