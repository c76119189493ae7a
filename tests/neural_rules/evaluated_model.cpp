#include "tests/neural_rules/evaluated_model.h"

#include "ir/program/program_values.h"
#include "lowering/graph/program.h"
#include "neural_rules/functions/functions.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/support/lower_model.h"

namespace hoist {
namespace {

double bytes_of(Type type) { return static_cast<double>(byte_size(leaf_of(type)->scalar, shape_of(type))); }

class EvaluatedModel : public RunnableModel {
 public:
  EvaluatedModel(Program program) : program_(std::move(program)) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    return program_outputs(program_, inputs);
  }

  Result<std::vector<StepTime>> step_times() override {
    std::vector<StepTime> out;
    for (const Definition& definition : program_.definitions) {
      double bytes = bytes_of(definition.expression->type);
      for (Expr p : parameters_of(definition.expression)) bytes += bytes_of(p->type);
      out.push_back({definition.layers, bytes * 1e-9});
    }
    return out;
  }

  Result<std::vector<double>> run_times(int count) override {
    HOIST_TRY(std::vector<StepTime> steps, step_times());
    double sum = 0;
    for (const StepTime& step : steps) sum += step.seconds;
    return std::vector<double>(static_cast<size_t>(count), sum);
  }

 private:
  Program program_;
};

}  // namespace

PrepareModel evaluated_models() {
  return [](const RewrittenModel& model) -> Result<std::unique_ptr<RunnableModel>> {
    HOIST_TRY(Program program, lower_calls(model.program, true));
    for (Definition& definition : program.definitions) {
      HOIST_TRY(UnderFunctions under, under_functions(definition.expression, definition.layers, model.functions));
      definition.expression = under.term;
    }
    return std::unique_ptr<RunnableModel>(std::make_unique<EvaluatedModel>(std::move(program)));
  };
}

ChooseOptions options_for(const std::string& budget) {
  ChooseOptions out;
  auto parsed = parse_budget(budget);
  HOIST_CHECK(parsed.ok(), parsed.errors()[0].text());
  out.budget = *parsed;
  out.sensitivity.measure_all = false;
  return out;
}

Samples normal_samples(const Program& program, int64_t count, uint64_t seed) {
  Samples out;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Tensor> run;
    for (const ValueInfo& input : input_infos(program)) run.push_back(normal_tensor(input.shape, 1, 0.2, seed++));
    out.runs.push_back(std::move(run));
  }
  out.count = count;
  return out;
}

}  // namespace hoist
