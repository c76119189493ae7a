#include "tools/training/training_session.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "backends/bundle/bundle.h"
#include "frontend/replace_weights.h"
#include "ir/base/cancellation.h"
#include "ir/gradient/gradient.h"
#include "ir/gradient/losses.h"
#include "ir/gradient/training/attention.h"
#include "ir/gradient/training/initial_weights.h"
#include "ir/gradient/training/training_mode.h"
#include "ir/gradient/training/training_step.h"
#include "ir/gradient/training/trunk.h"
#include "lowering/pipeline/passes.h"
#include "tools/base/files.h"
#include "tools/data/data.h"
#include "tools/driver/opened_bundle.h"
#include "tools/training/evolution.h"
#include "tools/training/masks.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

Result<std::string> judged_value(const Program& program, const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  if (program.outputs.size() == 1) return program.outputs[0];
  return Diagnostic{program.name, fmt::format("has {} outputs", program.outputs.size()), "name one: --of NAME"};
}

bool matches(const std::vector<std::string>& patterns, const std::string& name, std::set<std::string>& used) {
  bool out = false;
  for (const std::string& pattern : patterns) {
    if (::fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
    used.insert(pattern);
    out = true;
  }
  return out;
}

// Initialisers of the file that the value depends on; averages apart, frozen ones left out.
Result<Nothing> find_weights(const Program& program, const fs::path& model, const TrainingOptions& options,
                             TrainingRequest& request) {
  HOIST_TRY(const std::vector<std::string> stored, float_initialisers(model));
  const std::set<std::string> in_file(stored.begin(), stored.end());
  const std::vector<std::string> averages = running_averages(program);
  std::set<std::string> used;
  for (const std::string& name : weights_of(program, request.value)) {
    if (!in_file.contains(name) || matches(options.frozen, name, used)) continue;
    const bool is_average = std::find(averages.begin(), averages.end(), name) != averages.end();
    (is_average ? request.averages : request.weights).push_back(name);
  }
  for (const std::string& pattern : options.frozen) {
    if (!used.contains(pattern)) return usage_error("--freeze " + pattern, "fits no weight", "* stands for any text");
  }
  return Nothing{};
}

// The text after the colon is the number of classes.
constexpr char transfer[] = "attention-transfer";
bool is_transfer(const std::string& loss) { return loss.starts_with(transfer); }

// Adds attention maps to the judged value if the loss needs them.
Result<TrainingOptions> with_attention(Program& program, TrainingOptions options) {
  if (!is_transfer(options.loss)) return options;
  if (options.loss != transfer) return usage_error("--loss " + options.loss, "has no parameters", transfer);
  if (!options.distill) return usage_error("--loss " + options.loss, "learns from the model itself", "add --distill");
  HOIST_TRY(const std::string logits, judged_value(program, options.value));
  HOIST_TRY(options.value, add_attention(program, logits));
  options.loss = fmt::format("{}:{}", transfer, shape_of(value_types(program).at(logits)).at(1));
  return options;
}

bool is_term(const TrainingOptions& options) { return options.loss.ends_with(".lift"); }

// A file holds a term.
Result<std::string> loss_of(const TrainingOptions& options) {
  if (!is_term(options)) return options.loss;
  HOIST_TRY(const std::string term, read_file(options.loss, size_t{1} << 20));
  return term_loss + term;
}

Result<TrainingRequest> request_for(const Program& program, const fs::path& model, const TrainingOptions& options) {
  TrainingRequest out;
  HOIST_TRY(out.value, judged_value(program, options.value));
  HOIST_TRY(out.loss, loss_of(options));
  if (options.distill) {
    const size_t colon = options.loss.find(':');
    const std::string axis = colon == std::string::npos ? "1" : options.loss.substr(colon + 1);
    out.loss =
        fmt::format("{}:{},{}", is_transfer(options.loss) ? transfer : "distillation", axis, options.temperature);
  }
  HOIST_TRY(out.optimiser, with_kind(ErrorKind::usage, optimiser_named(options.optimiser)));
  if (options.decay > 0) out.optimiser.parameters["decay"] = options.decay;
  out.clip = options.clip;
  out.smoothing = options.smoothing;
  for (const HyperParameterRow& row : hyper_parameter_rows()) {
    const bool is_open =
        std::find(options.automatic.begin(), options.automatic.end(), row.name) != options.automatic.end();
    if (is_open && !row.input.empty()) out.open.emplace(row.input);
  }
  out.accumulated = options.accumulated;
  out.seed = options.seed;
  out.gradients = find_gradient_format(options.gradients);
  HOIST_TRY_VOID(find_weights(program, model, options, out));
  if (!options.masks.empty()) {
    HOIST_TRY(out.masks, read_masks(options.masks, program, out.weights));
  }
  return out;
}

Result<ModelOnDevice> compiled(Program program, const ModelOptions& options, const RunOptions& run, SelfCheck* check) {
  HOIST_TRY(OpenedModel opened, open_model(std::move(program), options));
  PrepareOptions prepare;
  prepare.profile = opened.profile;
  prepare.run = run;
  prepare.lower = compile_options(options).lower;
  prepare.targets = opened.targets;
  const std::vector<LoweredGroup> derivations = opened.lowered.groups;
  HOIST_TRY(ModelOnDevice out, open_on_device(std::move(opened.lowered), prepare, opened.profile));
  if (check == nullptr) return out;
  HOIST_TRY(*check, self_check(out.folder.path() / "bundle", out.plan, derivations, 1, lowering_rules(), run));
  if (check->agrees()) return out;
  const std::string what = check->mismatch ? check->mismatch->comparison.message : check->launch_mismatch->message;
  return Diagnostic{"self-check", "a kernel of the training step differs from the interpreter: " + what,
                    "send it to the project: this is a bug of hoist or of the driver", ErrorKind::difference};
}

Result<Nothing> check_samples(const Program& head, const TrainingOptions& training) {
  const ValueInfo value = input_infos(head).front();
  if (!value.shape.empty() && value.shape[0] == training.batch) return Nothing{};
  return Diagnostic{"--trunk " + training.trunk, "has no axis of samples in front: " + extents_text(value.shape),
                    "name another value"};
}

// The classes of a value with this shape, by the text of the loss.
ClassAxis classes_of(const std::string& loss, const std::vector<int64_t>& shape) {
  const size_t colon = loss.find(':');
  const int64_t number = colon == std::string::npos ? 1 : std::stoll(loss.substr(colon + 1));
  if (is_transfer(loss)) return {1, number};
  const int64_t axis = number < 0 ? number + std::ssize(shape) : number;
  return {axis, shape[static_cast<size_t>(axis)]};
}

double mean_of_squares(const Tensor& value, const Tensor& target, int64_t samples) {
  const int64_t count = value.size() / value.shape()[0] * samples;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double difference = value.float_at(i) - target.float_at(i);
    sum += difference * difference;
  }
  return sum / static_cast<double>(count);
}

}  // namespace

Result<Program> read_for_batch(const fs::path& model, ModelOptions options, int64_t batch) {
  HOIST_TRY_VOID(refuse_bundle(model));
  options.inference_form = true;
  HOIST_TRY(const ReadOptions reading, read_options(options));
  HOIST_TRY(const Program alone, read_model(model, reading));
  for (const ValueInfo& input : input_infos(alone)) {
    if (input.shape.empty())
      return Diagnostic{"input " + input.name, "is a single number, and data need an axis of samples",
                        "--value fixes an input"};
    if (input.shape[0] != batch) options.dimensions.push_back(fmt::format("{}.0={}", input.name, batch));
  }
  auto program = read_program(model, options);
  if (!program.ok()) return program.errors();
  for (const ValueInfo& input : input_infos(*program)) {
    if (input.shape[0] != batch)
      return Diagnostic{"input " + input.name, fmt::format("has {} samples in every run", input.shape[0]),
                        fmt::format("--batch {}, with --accumulate for larger batches", input.shape[0])};
  }
  PassOptions passes;
  passes.unrolled_steps = options.unrolled_steps;
  HOIST_TRY_VOID(find_pass("inline-bodies")->run(*program, passes));
  separate_copies(*program);
  return program;
}

Result<TrainingSession> TrainingSession::open(const fs::path& model, const ModelOptions& options,
                                              const TrainingOptions& training, const RunOptions& run, bool is_checked,
                                              MakeRunnable share) {
  HOIST_TRY(Program program, read_for_batch(model, options, training.batch));
  const std::vector<ValueInfo> model_inputs = input_infos(program);
  std::optional<ModelOnDevice> trunk;
  std::vector<std::string> of_head;
  if (!training.trunk.empty()) {
    HOIST_TRY(const std::string judged, judged_value(program, training.value));
    HOIST_TRY(TrunkAndHead parts, split_model(program, training.trunk, judged));
    of_head = weights_of(parts.head, judged);
    if (training.freeze_trunk) {
      HOIST_TRY_VOID(check_samples(parts.head, training));
      HOIST_TRY(ModelOnDevice made, compiled(std::move(parts.trunk), options, run, nullptr));
      trunk.emplace(std::move(made));
      program = std::move(parts.head);
    }
  }
  HOIST_TRY(const TrainingOptions judging, with_attention(program, training));
  HOIST_TRY(const TrainingRequest request, request_for(program, model, judging));
  const Program own = program;
  if (!training.initialise.empty()) HOIST_TRY_VOID(initialise_weights(program, request, training.initialise));
  HOIST_TRY(TrainingSession out, of(std::move(program), request, options, run,
                                    {is_checked, true, training.step, std::move(of_head), std::move(share)}));
  if (trunk) out.trunk_.emplace(std::move(*trunk));
  out.data_shape_.inputs = model_inputs;
  if (training.distill) {
    HOIST_TRY(BundleRunner teacher, BundleRunner::open(out.judge_->folder.path() / "bundle", run));
    for (const std::string& name : out.weights_) HOIST_TRY_VOID(teacher.set_input(name, own.constants.at(name)));
    out.teacher_ = std::move(teacher);
  }
  return out;
}

Result<TrainingSession> TrainingSession::of(Program program, const TrainingRequest& request,
                                            const ModelOptions& options, const RunOptions& run,
                                            const SessionParts& parts) {
  HOIST_TRY(TrainingStep step, training_step(program, request));
  BatchShape shape;
  for (const ValueInfo& input : input_infos(step.program)) {
    if (input.name == step.target) shape.target = input;
    if (std::find(step.inputs.begin(), step.inputs.end(), input.name) != step.inputs.end())
      shape.inputs.push_back(input);
  }
  const std::vector<int64_t> value = shape_of(value_types(program).at(request.value));
  SelfCheck check, check_of_update;
  std::optional<SharedRuns> shared;
  if (parts.share) {
    HOIST_TRY(StepParts halves, split_step(std::move(step)));
    HOIST_TRY(ModelOnDevice runs, compiled(halves.run, options, run, parts.is_checked ? &check : nullptr));
    shared.emplace(parts.share(std::move(runs)), halves);
    step = std::move(halves.update);
  }
  SelfCheck* const checked = shared ? &check_of_update : &check;
  HOIST_TRY(ModelOnDevice compiled_step,
            compiled(std::move(step.program), options, run, parts.is_checked ? checked : nullptr));
  if (!parts.step.empty()) HOIST_TRY_VOID(write_bundle(compiled_step.plan, parts.step));
  TrainingSession out(std::move(compiled_step));
  out.shared_ = std::move(shared);
  if (parts.has_judge) {
    ModelOptions quiet = options;
    quiet.with_notes = false;
    HOIST_TRY(Program judged, judged_program(std::move(program), request, step.weights));
    HOIST_TRY(ModelOnDevice judge, compiled(std::move(judged), quiet, run, nullptr));
    out.judge_.emplace(std::move(judge));
  }
  for (size_t i = 0; i < out.step_.runner.states().size(); ++i) {
    const auto owner = step.owners.find(out.step_.runner.states()[i].name);
    const std::vector<std::string>& of_head = parts.head_weights;
    if (owner != step.owners.end() && std::find(of_head.begin(), of_head.end(), owner->second) != of_head.end())
      out.head_states_.push_back(i);
  }
  out.is_squares_ = request.loss.starts_with("mse");
  if (!out.is_squares_ && !request.loss.starts_with(term_loss)) {
    out.classes_ = classes_of(request.loss, value);
    if (is_integer(shape.target.scalar)) shape.classes = out.classes_->count;
  }
  out.data_shape_ = shape;
  out.shape_ = std::move(shape);
  out.weights_ = step.weights;
  out.input_names_ = step.inputs;
  out.target_ = step.target;
  out.rate_ = step.rate;
  out.open_ = step.open;
  out.check_ = check;
  if (!step.factors.empty()) {
    const std::map<std::string, double>& parameters = request.optimiser.parameters;
    out.roots_ = KroneckerRoots(step.factors, parameters.at("ridge"),
                                static_cast<int64_t>(parameters.at("every")) * request.accumulated);
    HOIST_TRY_VOID(out.roots_.refresh(out.step_.runner));
  }
  return out;
}

// The teacher's value for the inputs of a batch.
Result<Tensor> TrainingSession::taught(const std::vector<Tensor>& batch) {
  BundleRunner& teacher = *teacher_;
  for (size_t i = 0; i < input_names_.size(); ++i) HOIST_TRY_VOID(teacher.set_input(input_names_[i], batch[i]));
  HOIST_TRY_VOID(teacher.set_input(target_, Tensor(shape_.target.scalar, shape_.target.shape)));
  HOIST_TRY_VOID(of_run(teacher, teacher.run()));
  return teacher.output(1);
}

Result<Nothing> TrainingSession::set_inputs(std::vector<Tensor> batch, double rate) {
  if (teacher_) {
    HOIST_TRY(Tensor target, taught(batch));
    batch.push_back(std::move(target));
  }
  BundleRunner& runner = step_.runner;
  for (size_t i = 0; i < input_names_.size(); ++i) HOIST_TRY_VOID(runner.set_input(input_names_[i], batch[i]));
  HOIST_TRY_VOID(runner.set_input(target_, batch.back()));
  return set_rate(rate);
}

Result<Nothing> TrainingSession::set_rate(double rate) {
  Tensor of_rate(Scalar::f32, {});
  of_rate.set_float(0, rate);
  return step_.runner.set_input(rate_, of_rate);
}

Result<double> TrainingSession::run_step() {
  HOIST_TRY_VOID(of_run(step_.runner, step_.runner.run()));
  HOIST_TRY(const Tensor loss, step_.runner.output(0));
  HOIST_TRY_VOID(roots_.after_run(step_.runner));
  return loss.float_at(0);
}

Result<double> TrainingSession::step(std::vector<Tensor> batch, double rate) {
  HOIST_TRY(const std::vector<double> losses, steps({std::move(batch)}, {rate}));
  return losses[0];
}

Result<NamedTensors> TrainingSession::states_of_run() {
  NamedTensors out;
  const std::vector<std::string>& wanted = shared_->states();
  for (size_t i = 0; i < step_.runner.states().size(); ++i) {
    const std::string& name = step_.runner.states()[i].name;
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    HOIST_TRY(out[name], step_.runner.state(i));
  }
  return out;
}

Result<std::vector<double>> TrainingSession::steps(std::vector<std::vector<Tensor>> batches,
                                                   const std::vector<double>& rates) {
  cancellation_point();
  std::vector<double> losses;
  if (!shared_) {
    for (size_t run = 0; run < batches.size(); ++run) {
      HOIST_TRY_VOID(set_inputs(std::move(batches[run]), rates[run]));
      HOIST_TRY(losses.emplace_back(), run_step());
    }
    return losses;
  }
  std::vector<NamedTensors> named(batches.size());
  for (size_t run = 0; run < batches.size(); ++run) {
    if (teacher_) {
      HOIST_TRY(Tensor target, taught(batches[run]));
      batches[run].push_back(std::move(target));
    }
    for (size_t i = 0; i < input_names_.size(); ++i) named[run].emplace(input_names_[i], batches[run][i]);
    named[run].emplace(target_, batches[run].back());
  }
  HOIST_TRY(const NamedTensors states, states_of_run());
  HOIST_TRY(const std::vector<NamedTensors> found, shared_->contributions(states, named));
  for (size_t run = 0; run < batches.size(); ++run) {
    for (const auto& [name, value] : found[run]) HOIST_TRY_VOID(step_.runner.set_input(name, value));
    HOIST_TRY_VOID(set_rate(rates[run]));
    HOIST_TRY(losses.emplace_back(), run_step());
  }
  return losses;
}

Result<Nothing> TrainingSession::set_parameter(const std::string& name, double value) {
  for (const HyperParameterRow& row : hyper_parameter_rows()) {
    const auto open = open_.find(std::string(row.input));
    if (row.name != name || open == open_.end()) continue;
    Tensor number(Scalar::f32, {});
    number.set_float(0, value);
    return step_.runner.set_input(open->second, number);
  }
  return Nothing{};
}

Result<Nothing> TrainingSession::set_weights(const WeightValues& weights) {
  const std::vector<ArrayInfo>& states = step_.runner.states();
  for (size_t i = 0; i < states.size(); ++i) {
    const auto given = weights.find(states[i].name);
    if (given != weights.end()) HOIST_TRY_VOID(step_.runner.set_state(i, given->second));
  }
  return Nothing{};
}

Result<double> TrainingSession::gradient_norm() {
  HOIST_TRY(const Tensor norm, step_.runner.output(1));
  return norm.float_at(0);
}

Result<std::vector<Tensor>> TrainingSession::states() {
  std::vector<Tensor> out;
  for (size_t i = 0; i < step_.runner.states().size(); ++i) {
    HOIST_TRY(Tensor value, step_.runner.state(i));
    out.push_back(std::move(value));
  }
  return out;
}

Result<Nothing> TrainingSession::set_states(const std::vector<Tensor>& states) {
  for (size_t i = 0; i < states.size(); ++i) HOIST_TRY_VOID(step_.runner.set_state(i, states[i]));
  return roots_.refresh(step_.runner);
}

Result<std::vector<Tensor>> TrainingSession::head_states() {
  std::vector<Tensor> out;
  for (const size_t i : head_states_) {
    HOIST_TRY(Tensor value, step_.runner.state(i));
    out.push_back(std::move(value));
  }
  return out;
}

Result<Nothing> TrainingSession::set_head_states(const std::vector<Tensor>& states) {
  for (size_t i = 0; i < states.size(); ++i) HOIST_TRY_VOID(step_.runner.set_state(head_states_[i], states[i]));
  return Nothing{};
}

Result<TrainingData> TrainingSession::through_trunk(TrainingData data) {
  if (!trunk_) return data;
  BundleRunner& runner = trunk_->runner;
  const int64_t most = data_shape_.inputs[0].shape[0];
  for (int64_t first = 0; first < data.count(); first += most) {
    std::vector<int64_t> samples;
    for (int64_t i = first; i < std::min(first + most, data.count()); ++i) samples.push_back(i);
    const std::vector<Tensor> batch = batch_of(data, samples, data_shape_);
    for (size_t k = 0; k < data_shape_.inputs.size(); ++k)
      HOIST_TRY_VOID(runner.set_input(data_shape_.inputs[k].name, batch[k]));
    HOIST_TRY_VOID(of_run(runner, runner.run()));
    HOIST_TRY(const Tensor value, runner.output(0));
    for (size_t i = 0; i < samples.size(); ++i)
      data.inputs[static_cast<size_t>(samples[i])] = {sample_of(value, static_cast<int64_t>(i))};
  }
  return data;
}

Result<Nothing> TrainingSession::save_states(const fs::path& file) {
  HOIST_TRY_VOID(step_.runner.save_states(file));
  return roots_.refresh(step_.runner);
}

Result<Nothing> TrainingSession::load_states(const fs::path& file) {
  HOIST_TRY_VOID(step_.runner.load_states(file));
  return roots_.refresh(step_.runner);
}

Result<std::vector<std::string>> TrainingSession::layers_not_finite(std::vector<Tensor> batch, double rate) {
  if (shared_) return std::vector<std::string>{};
  HOIST_TRY_VOID(set_inputs(std::move(batch), rate));
  BundleRunner& runner = step_.runner;
  std::vector<std::string> out;
  for (size_t i = 0; i < runner.steps().size(); ++i) {
    HOIST_TRY_VOID(of_run(runner, runner.run_steps(i, 1)));
    const StepInfo& step = runner.steps()[i];
    if (step.arguments.empty() || step.layers.empty()) continue;
    HOIST_TRY(const Tensor result, runner.read_array(static_cast<size_t>(step.arguments.back())));
    if (!is_float(result.scalar())) continue;
    bool is_finite = true;
    for (int64_t k = 0; is_finite && k < result.size(); ++k) is_finite = std::isfinite(result.float_at(k));
    if (!is_finite) out.push_back(step.layers.front());
  }
  return out;
}

Result<Judgement> TrainingSession::judge(const TrainingData& data, const WeightValues& weights) {
  std::vector<int64_t> all(static_cast<size_t>(data.count()));
  std::iota(all.begin(), all.end(), int64_t{0});
  return judge(data, all, weights);
}

Result<Judgement> TrainingSession::judge(const TrainingData& data, const std::vector<int64_t>& samples,
                                         const WeightValues& weights) {
  BundleRunner& runner = judge_->runner;
  for (const auto& [name, value] : weights) HOIST_TRY_VOID(runner.set_input(name, value));
  RightAnswers counts;
  double sum = 0, of = 0;
  const int64_t most = shape_.inputs[0].shape[0];
  for (int64_t first = 0; first < std::ssize(samples); first += most) {
    const int64_t count = std::min(std::ssize(samples) - first, most);
    const auto begin = samples.begin() + first;
    std::vector<Tensor> batch = batch_of(data, {begin, begin + count}, shape_);
    if (teacher_) {
      HOIST_TRY(Tensor target, taught(batch));
      batch.push_back(std::move(target));
    }
    for (size_t i = 0; i < input_names_.size(); ++i) HOIST_TRY_VOID(runner.set_input(input_names_[i], batch[i]));
    HOIST_TRY_VOID(runner.set_input(target_, batch.back()));
    HOIST_TRY_VOID(of_run(runner, runner.run()));
    HOIST_TRY(const Tensor loss, runner.output(0));
    HOIST_TRY(const Tensor value, runner.output(1));
    double share = static_cast<double>(count), one = loss.float_at(0);
    if (is_squares_) {
      one = mean_of_squares(value, batch.back(), count);
    } else if (classes_) {
      const RightAnswers found = count_right(value, batch.back(), *classes_, count);
      counts.right += found.right, counts.all += found.all;
      if (is_integer(batch.back().scalar())) share = static_cast<double>(found.all);
    }
    if (share > 0) sum += one * share, of += share;
  }
  Judgement out;
  out.loss = of > 0 ? sum / of : 0;
  if (counts.all > 0) out.right = static_cast<double>(counts.right) / static_cast<double>(counts.all);
  return out;
}

Result<WeightValues> TrainingSession::weight_values() {
  WeightValues out;
  const std::vector<ArrayInfo>& states = step_.runner.states();
  for (size_t i = 0; i < states.size(); ++i) {
    if (std::find(weights_.begin(), weights_.end(), states[i].name) == weights_.end()) continue;
    HOIST_TRY(Tensor value, step_.runner.state(i));
    out.emplace(states[i].name, std::move(value));
  }
  return out;
}

}  // namespace hoist
