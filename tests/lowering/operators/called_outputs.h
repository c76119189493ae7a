// Makes programs from calls by name over the inputs x0, x1, ..., and computes their outputs by the interpreter and from
// their kernels. For tests of operators with dynamic results.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/program/program_values.h"
#include "lowering/pipeline/lower.h"
#include "tests/lowering/operators/operators_layer.h"
#include "tests/lowering/stored_run.h"

namespace hoist {

using NamedTensors = std::map<std::string, Tensor>;

inline ProgramBuilder builder_of(const std::vector<Tensor>& inputs, const std::vector<NamedCall>& calls,
                                 const NamedTensors& constants = {}) {
  ProgramBuilder builder("chosen", newest_version);
  for (size_t i = 0; i < inputs.size(); ++i)
    builder.add_input({"x" + std::to_string(i), inputs[i].scalar(), inputs[i].shape()});
  for (const auto& [name, value] : constants) builder.add_constant(name, value);
  for (const NamedCall& call : calls) builder.add_call(call);
  return builder;
}

inline Bindings bindings_of(const std::vector<Tensor>& inputs) {
  Bindings out;
  for (size_t i = 0; i < inputs.size(); ++i) out["x" + std::to_string(i)] = inputs[i];
  return out;
}

inline Program program_of_calls(const std::vector<Tensor>& inputs, const std::vector<NamedCall>& calls,
                                const std::vector<std::string>& outputs, const NamedTensors& constants) {
  ProgramBuilder builder = builder_of(inputs, calls, constants);
  for (const std::string& output : outputs) builder.add_output(output);
  auto program = builder.finish();
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

/// The outputs of a program, cut to their actual lengths, from known values.
inline std::vector<Tensor> cut_values(const Program& program, const Bindings& values) {
  auto outputs = program_outputs(program, values);
  HOIST_CHECK(outputs.ok(), outputs.errors()[0].text());
  return *outputs;
}

/// The same, interpreted from the calls.
inline std::vector<Tensor> interpreted_outputs(const Program& program, const std::vector<Tensor>& inputs) {
  auto outputs = program_outputs(program, inputs);
  HOIST_CHECK(outputs.ok(), outputs.errors()[0].text());
  return *outputs;
}

/// The cut outputs of a program: interpreted from its calls, and from its kernels, which must agree.
inline std::vector<Tensor> outputs_of_calls(const std::vector<Tensor>& inputs, const std::vector<NamedCall>& calls,
                                            const std::vector<std::string>& outputs,
                                            const NamedTensors& constants = {}) {
  const Program program = program_of_calls(inputs, calls, outputs, constants);
  std::vector<Tensor> interpreted = interpreted_outputs(program, inputs);
  for (const LaunchFusion fusion : {LaunchFusion::none, LaunchFusion::launch}) {
    LowerOptions options;
    options.fusion = fusion;
    const auto lowered = lower_model(program, options, {});
    HOIST_CHECK(lowered.ok(), lowered.errors()[0].text());
    EXPECT_EQ(cut_values(program, outputs_of(*lowered, bindings_of(inputs))), interpreted);
  }
  return interpreted;
}

inline NamedCall call_named(const std::string& operation, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs, Attributes attributes = {}) {
  return {outputs[0] + "_layer", operation, "", std::move(attributes), inputs, outputs};
}

inline Tensor whole(std::vector<int64_t> shape, const std::vector<double>& values) {
  return Tensor::of(Scalar::f32, std::move(shape), values);
}

// Few distinct values, so that many are equal.
inline Tensor drawn_numbers(std::vector<int64_t> shape, uint64_t seed, uint64_t different = 7) {
  std::mt19937_64 random(seed);
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(shape); ++i) values.push_back(static_cast<double>(random() % different) - 2);
  return whole(std::move(shape), values);
}

}  // namespace hoist
