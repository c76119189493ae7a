#include "neural_rules/choice/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/base/cancellation.h"
#include "ir/base/stopwatch.h"
#include "neural_rules/choice/candidates.h"
#include "neural_rules/choice/cost.h"
#include "neural_rules/choice/point_choice.h"
#include "neural_rules/choice/study_description.h"
#include "neural_rules/choice/verification.h"
#include "neural_rules/formats/rounding_plan.h"
#include "neural_rules/learning/retrained_points.h"

namespace hoist {
namespace {

// SQNR at both ends of the front, from no loss to no remaining signal, and the number of points between.
constexpr double finest = 60, coarsest = 6;
constexpr int front_points = 16;
// The SQNR of the first proposal for a budget in samples: at 20 dB some 3 % of answers change.
constexpr double reference_sqnr = 20, reference_flips = 0.03;

// Shares of the time limit by which uniform-precision baselines, measured errors and proposals have to be finished; the
// rest is for run times.
constexpr double uniform_share = 0.5, error_share = 0.75, proposal_share = 0.9;
// Runs are timed until both halves of the rounds choose the same point, for at most this multiple of the minimum time.
constexpr double most_turns = 8;
// Rules are prepared until this share of the time limit has passed, or after a slow calibration for this share of the
// rest; the others are left out.
constexpr double rules_share = 0.35, rules_share_of_rest = 0.3;
// Shares of the seconds that are left once calibration and a changed model are compiled.
constexpr double calibration_share = 0.35, rounding_share = 0.2;
// A uniform-precision baseline that takes longer than this share is dropped.
constexpr double latest_uniform_share = 0.7, latest_proposal_share = 0.95;

class Chooser {
 public:
  Chooser(const Program& program, const Samples& calibration, const Samples& verification, const PrepareModel& prepare,
          const ChooseOptions& options, Measured known)
      : program_(program),
        calibration_(calibration),
        verification_(verification),
        prepare_(prepare),
        options_(options),
        kinds_(output_kinds(program)),
        measured_(std::move(known)) {}

  Result<Choosing> run() {
    HOIST_TRY_VOID(check());
    verifier_.emplace(sensitivity_, kinds_, verification_, prepare_, options_);
    verifier_->points = std::move(measured_.points);
    verifier_->digests = std::move(measured_.digests);
    if (!options_.decided) HOIST_TRY_VOID(measure());
    if (measured_.uniform.empty() || verifier_->points.empty()) return as_it_is();
    predict_points();
    if (!options_.decided) {
      if (can_verify()) {
        HOIST_TRY_VOID(search());
        HOIST_TRY_VOID(take_times());
        HOIST_TRY_VOID(add_retrained_points(
            {sensitivity_, costs_, *verifier_, options_, [this] { return ensure_reference(); }, [this] { keep(); }}));
      }
    }
    correct_costs();
    return finish();
  }

 private:
  Result<Nothing> check() {
    const BudgetMeasure measure = options_.budget.measure;
    const bool of_scores = measure == BudgetMeasure::top1 || measure == BudgetMeasure::agreement;
    if (of_scores && kinds_.main_kind() == OutputKind::values) {
      return Diagnostic{"budget " + options_.budget.text(),
                        "requires classes, and no output has one row of scores per sample",
                        "use sqnr=NdB or metric=CMD"};
    }
    if (measure == BudgetMeasure::top1 && can_verify() && verification_.labels.empty()) {
      return Diagnostic{"budget " + options_.budget.text(), "needs labels, and the verification data has none",
                        "add an array labels, or use agreement=N%"};
    }
    HOIST_CHECK(measure != BudgetMeasure::metric || options_.metric, "a budget by metric without one");
    // Reports contradictory preferences before any work.
    const SensitivityOptions& asked = options_.sensitivity;
    HOIST_TRY(const CandidateRules candidates,
              candidate_rules(program_, find_sites(program_), asked.preferences, asked.device));
    may_all_stay_ = std::all_of(candidates.may_stay.begin(), candidates.may_stay.end(), [](bool may) { return may; });
    return Nothing{};
  }

  PointChoice choice() const { return {sensitivity_, costs_, *verifier_, options_}; }
  bool can_verify() const { return !verification_.runs.empty(); }

  // Measures everything that is unknown: the reference first, so that a failing metric is reported early; then
  // uniform-precision baselines, which are points themselves; then errors. Parts that do not fit into the time are left
  // out.
  Result<Nothing> measure() {
    if (!can_verify()) return Nothing{};
    const bool finds_rules = measured_.empty();
    if (finds_rules || !is_complete() || verifier_->points.empty()) {
      HOIST_TRY(const bool has, within(options_.seconds_for_first(), [this] { return ensure_reference(); }));
      if (!has) return Nothing{};
    }
    if (finds_rules) {
      // Calibration takes at least as long as the reference, and is useless if no time is left for a changed model.
      const double seconds = options_.seconds_until(1) - reference_seconds_;
      lacks_time_ = seconds < reference_seconds_;
      if (lacks_time_) return Nothing{};
      HOIST_TRY(const bool has, within(seconds, [this, seconds]() -> Result<Nothing> {
                  SensitivityOptions timed = options_.sensitivity;
                  // Calibration and the first changed model are compiled like the reference.
                  const double rest = seconds - reference_seconds_;
                  timed.calibration_seconds = std::min(timed.calibration_seconds, calibration_share * rest);
                  timed.rounding_seconds = std::min(timed.rounding_seconds, rounding_share * rest);
                  timed.seconds_left = [this] { return options_.seconds_until(1) - reference_seconds_; };
                  double begin = 0;  // after calibration
                  const auto is_over = [&](double share) {
                    if (begin == 0) begin = options_.spent();
                    return options_.spent() >
                           std::max(share * rules_share, begin + share * rules_share_of_rest * (1 - begin));
                  };
                  timed.predictions_over = [&] { return is_over(0.5); };
                  timed.out_of_time = [&] { return is_over(1); };
                  HOIST_TRY(sensitivity_, find_rules(program_, calibration_, prepare_, timed));
                  return Nothing{};
                }));
      if (!has) return Nothing{};
      sensitivity_.complete = false;
      keep();
    }
    HOIST_TRY_VOID(time_uniform_baselines());
    if (!sensitivity_.complete && !calibration_.runs.empty()) {
      SensitivityOptions timed = options_.sensitivity;
      timed.measured = [this] { keep(); };
      timed.out_of_time = [this] { return over(error_share); };
      HOIST_TRY(const bool is_done, within(options_.seconds_until(error_share), [&] {
                  return measure_errors(sensitivity_, calibration_, prepare_, timed);
                }));
      sensitivity_.complete = sensitivity_.complete && is_done;
    }
    keep();
    return Nothing{};
  }

  bool is_complete() {
    measured_.points = verifier_->points;
    return measured_.complete();
  }

  // The first baseline may use all of the time limit, because the model would stay unchanged without it.
  Result<Nothing> time_uniform_baselines() {
    SensitivityOptions timed = options_.sensitivity;
    const auto has_one = [this] { return verifier_->points.size() > 1; };
    timed.measured = [this] { keep(); };
    timed.out_of_time = [&] { return options_.stopped() || (has_one() && over(uniform_share)); };
    // Rules are applied to the reference itself, unless its channels are scaled.
    if (measured_.uniform.empty() && !reference_steps_.empty() && sensitivity_.factors.empty())
      measured_.uniform.push_back(unchanged_model(sensitivity_, reference_steps_));
    double begin = options_.spent();
    // The models before the first verified point may take more time than later models.
    for (const bool first : {true, false}) {
      if (first && has_one()) continue;
      const auto take = [&](UniformBaseline& model) { return verify(model, begin); };
      const auto stop_after_first = [&] { return timed.out_of_time() || (first && has_one()); };
      SensitivityOptions part = timed;
      part.out_of_time = stop_after_first;
      const auto work = [&]() -> Result<Nothing> {
        if (!measured_.all_timed) {
          HOIST_TRY(measured_.all_timed, add_uniform_baselines(measured_.uniform, sensitivity_, prepare_, part, take));
        }
        for (UniformBaseline& model : measured_.uniform) {
          measured_.points = verifier_->points;
          if (part.out_of_time() || !measured_.is_missing(model)) continue;
          HOIST_TRY_VOID(verify(model, begin));
          keep();
        }
        return Nothing{};
      };
      const double seconds = options_.seconds_until(first ? 1 : latest_uniform_share);
      HOIST_TRY([[maybe_unused]] const bool done, within(seconds, work));
    }
    keep();
    return Nothing{};
  }

  Result<Nothing> ensure_reference() {
    if (verifier_->has_reference()) return Nothing{};
    const Stopwatch stopwatch;
    RewrittenModel reference;
    reference.program = program_;
    options_.sensitivity.progress("preparing the unchanged model", 0);
    HOIST_TRY(std::shared_ptr<RunnableModel> runnable, prepare_(reference));
    HOIST_TRY_VOID(verifier_->add_reference(runnable));
    if (measured_.uniform.empty()) {
      HOIST_TRY(reference_steps_, runnable->step_times());
    }
    reference_seconds_ = stopwatch.seconds();
    return Nothing{};
  }

  // Adds a model that was just timed; it began at the share `begin` of the time limit.
  Result<Nothing> verify(UniformBaseline& model, double& begin) {
    if (!model.name.empty() && can_verify()) {
      StudyPoint point;
      point.name = "uniform " + model.name;
      point.assignment = model.assignment;
      point.size = weight_bytes(sensitivity_, point.assignment);
      // An interrupt may stop a metric's command too.
      if (auto added = verifier_->add(std::move(point), std::move(model.runnable)); !added && !options_.stopped())
        return added.errors();
    }
    longest_ = std::max(longest_, options_.spent() - begin);
    begin = options_.spent();
    return Nothing{};
  }

  void keep() {
    measured_.points = verifier_->points;
    measured_.digests = verifier_->digests;
    options_.keep(measured_, choice().has_choice());
  }

  // The share of the time limit that has passed, or will have passed after a model that begins now and takes as long as
  // the slowest one.
  bool over(double share) const { return options_.stopped() || options_.spent() + longest_ > share; }

  // Proposals do not depend on the times of whole runs, so that a study that continues makes the same ones.
  void correct_costs() {
    scale_to_runs(measured_.uniform, verifier_->points);
    predict_points();
  }

  void predict_points() {
    costs_ = cost_model(sensitivity_, measured_.uniform, options_.objective);
    for (StudyPoint& point : verifier_->points) choice().predict(point);
    // The unchanged model is the reference of all comparisons even if pins forbid it as a choice.
    verifier_->points[0].predicted_error = 0;
    if (options_.objective == Objective::time)
      verifier_->points[0].predicted_time = measured_.uniform[0].seconds_of_run();
  }

  bool out_of_time() const { return over(proposal_share); }

  double error_at(double decibel) const { return error_at_sqnr(sensitivity_.output_power, decibel); }

  double first_error() const {
    const Budget& budget = options_.budget;
    if (budget.measure == BudgetMeasure::sqnr) return error_at(budget.limit);
    // About a third of a classifier's flips are lost answers, and gained answers compensate some of these.
    double share = budget.limit / 100;
    if (budget.measure == BudgetMeasure::agreement) share = 1 - share;
    if (budget.measure == BudgetMeasure::top1) share *= 3;
    if (share <= 0) return error_at(finest);
    return error_at(std::clamp(reference_sqnr + 20 * std::log10(reference_flips / share), coarsest, finest));
  }

  // Bisects the predicted error between points that keep the budget and points that break it. If nothing else can be
  // chosen, one proposal is verified even after the time limit; otherwise all measurements would be useless.
  Result<Nothing> search() {
    double kept = 0, broken = std::numeric_limits<double>::infinity();
    double error = first_error();
    const auto goes_on = [&](int i) {
      return !out_of_time() || (i == 0 && !options_.stopped() && !choice().has_choice());
    };
    for (int i = 0; i < options_.verifications && goes_on(i); ++i) {
      options_.sensitivity.progress(fmt::format("verifying proposal {}", i + 1),
                                    share_of_study(StudyPart::proposals, static_cast<size_t>(std::max(i, 0)),
                                                   static_cast<size_t>(options_.verifications)));
      auto solved = solve(costs_.problem, error, solver_options());
      if (!solved) {  // pins may require more error than this
        kept = std::max(kept, error);
        error = std::min(error * 4, std::sqrt(error * std::min(broken, error * 16)));
        if (error >= error_at(-20)) break;
        --i;
        continue;
      }
      Proposal proposal;
      Result<bool> in_time =
          within(options_.seconds_until(i == 0 && !choice().has_choice() ? 1 : latest_proposal_share),
                 [&]() -> Result<Nothing> {
                   HOIST_TRY(proposal, verify(assignment_of(sensitivity_, costs_, solved->options), i));
                   return Nothing{};
                 });
      if (!in_time && options_.stopped()) return Nothing{};
      HOIST_TRY(const bool is_verified, std::move(in_time));
      if (!is_verified) return Nothing{};
      if (proposal.keeps)
        kept = std::max(kept, error);
      else
        broken = std::min(broken, error);
      const double next = next_error(error, kept, broken, proposal);
      if (proposal.keeps && solved->error < error * 0.5 && std::isinf(broken) && next <= error) break;
      if (std::abs(std::log(next / error)) < 0.05) break;
      error = next;
    }
    return repair();
  }

  struct Proposal {
    size_t point = 0;
    bool keeps = false;
  };

  Result<Proposal> verify(const Assignment& assignment, int number) {
    for (size_t i = 0; i < verifier_->points.size(); ++i) {
      const StudyPoint& known = verifier_->points[i];
      if (known.assignment == assignment && known.retraining == nullptr) return Proposal{i, verifier_->keeps_budget(i)};
    }
    StudyPoint point;
    point.name = name_of_proposal(number + 1);
    point.assignment = assignment;
    point.on_front = true;
    choice().predict(point);
    HOIST_TRY_VOID(ensure_reference());
    HOIST_TRY(size_t place, verifier_->add(std::move(point)));
    keep();
    return Proposal{place, verifier_->keeps_budget(place)};
  }

  // Other proposals may have been made for another budget.
  std::string name_of_proposal(int number) const {
    for (;; ++number) {
      std::string name = fmt::format("front {}", number);
      const auto same = [&](const StudyPoint& point) { return point.name == name; };
      if (std::none_of(verifier_->points.begin(), verifier_->points.end(), same)) return name;
    }
  }

  double next_error(double error, double kept, double broken, const Proposal& proposal) const {
    const StudyPoint& point = verifier_->points[proposal.point];
    if (options_.budget.measure == BudgetMeasure::sqnr && point.error > 0 && point.predicted_error > 0) {
      // The ratio of actual to predicted error also holds for similar assignments.
      const double scale = point.error / point.predicted_error;
      const double next = error_at(options_.budget.limit) / scale;
      return proposal.keeps ? std::min(next, broken * 0.97) : std::min(next * 0.98, error * 0.95);
    }
    if (std::isinf(broken)) return error * 4;
    if (kept == 0) return broken / 4;
    return std::sqrt(kept * broken);
  }

  // If no proposal of the solver keeps the budget: undoes the choice with the most error per time saved.
  Result<Nothing> repair() {
    if (choice().best(true) != 0 || choice().may_stay()) return Nothing{};
    for (int step = 0; step < options_.verifications && !out_of_time(); ++step) {
      const size_t worst = choice().best(false);
      Assignment assignment = verifier_->points[worst].assignment;
      const std::string site = worst_site(assignment);
      if (site.empty()) return Nothing{};
      assignment.erase(site);
      Proposal proposal;
      HOIST_TRY(const bool is_verified, within(options_.seconds_until(latest_proposal_share), [&]() -> Result<Nothing> {
                  HOIST_TRY(proposal, verify(assignment, options_.verifications + step));
                  return Nothing{};
                }));
      if (!is_verified || proposal.keeps) return Nothing{};
    }
    return Nothing{};
  }

  std::string worst_site(const Assignment& assignment) const {
    std::string out;
    double most = 0;
    const std::vector<size_t> options = options_of(sensitivity_, costs_, assignment);
    for (size_t i = 0; i < options.size(); ++i) {
      if (options[i] == 0 || !sensitivity_.may_stay[i]) continue;
      const ChoiceOption& chosen = costs_.problem.nodes[i].options[options[i]];
      const double saved = std::max(costs_.problem.nodes[i].options[0].cost - chosen.cost, 1e-9);
      if (chosen.error / saved <= most) continue;
      std::vector<size_t> without = options;
      without[i] = 0;
      if (!choice().allowed(without)) continue;
      most = chosen.error / saved;
      out = sensitivity_.sites[i].key();
    }
    return out;
  }

  // Measured run times, because every proposed point is timed (once the unchanged model has a time), and predicted
  // times cannot be compared with measured ones.
  Result<Nothing> take_times() {
    const auto is_open = [](const StudyPoint& point) { return !point.is_timed(); };
    const std::vector<StudyPoint>& points = verifier_->points;
    if (!verifier_->has_reference() && std::none_of(points.begin(), points.end(), is_open)) return Nothing{};
    options_.sensitivity.progress("timing whole runs", proposal_share);
    const std::vector<bool> timed = worth_timing();
    const auto wanted = [&](size_t point) { return timed[point]; };
    HOIST_TRY_VOID(within(options_.seconds_until(1), [&]() -> Result<Nothing> {
      HOIST_TRY_VOID(ensure_reference());
      return verifier_->prepare_untimed(wanted);
    }));
    double seconds = options_.least_timing_seconds, taken = 0;
    for (;;) {
      const Stopwatch stopwatch;
      HOIST_TRY_VOID(within(options_.seconds_until(1), [&] { return verifier_->take_times(seconds, wanted); }));
      verifier_->set_times(Verifier::Rounds::all);
      taken += stopwatch.seconds();
      if (options_.objective != Objective::time || !verifier_->can_halve()) return Nothing{};
      const size_t one = chosen_by(Verifier::Rounds::first_half), other = chosen_by(Verifier::Rounds::second_half);
      verifier_->set_times(Verifier::Rounds::all);
      if (one == other && choice().is_clear()) return Nothing{};
      seconds *= 2;
      const double most = std::min(most_turns * options_.least_timing_seconds, options_.timing_seconds);
      if (!options_.stopped() && taken + seconds <= most && seconds < options_.seconds_until(1)) continue;
      describe_unsteady(one, other);
      return Nothing{};
    }
  }

  size_t chosen_by(Verifier::Rounds rounds) {
    verifier_->set_times(rounds);
    return choice().best(true);
  }

  // If the halves of the rounds choose points with different times, the machine was busy in one of them.
  void describe_unsteady(size_t one, size_t other) {
    const StudyPoint &a = verifier_->points[one], &b = verifier_->points[other];
    if (std::abs(a.time.value - b.time.value) <= same_time * std::max(a.time.value, b.time.value)) return;
    unsteady_ = fmt::format(
        "this machine is too busy to time runs: one half of the rounds chooses {} ({} a run, {} to {}), the other {} "
        "({}, {} to {}); another run may choose differently",
        a.name, time_text(a.time.value), time_text(a.time.low), time_text(a.time.high), b.name, time_text(b.time.value),
        time_text(b.time.low), time_text(b.time.high));
  }

  // All points, or only the points that may be chosen if there is no time for all.
  std::vector<bool> worth_timing() const {
    constexpr double least_runs = 20;
    double round = 0;
    for (const StudyPoint& point : verifier_->points)
      round += std::isfinite(point.predicted_time) ? point.predicted_time : 0;
    std::vector<bool> out(verifier_->points.size(), true);
    if (least_runs * round < options_.seconds_until(1)) return out;
    const double reference = verifier_->points[0].predicted_time;
    for (size_t i = 1; i < out.size(); ++i) {
      const StudyPoint& point = verifier_->points[i];
      out[i] = choice().allowed(point) && verifier_->keeps_budget(i) && !(point.predicted_time > reference);
    }
    return out;
  }

  SolverOptions solver_options() const {
    SolverOptions out;
    out.out_of_time = [this] { return out_of_time(); };
    return out;
  }

  Result<size_t> find_chosen() const {
    for (size_t i = 0; options_.decided && i < verifier_->points.size(); ++i) {
      const StudyPoint& point = verifier_->points[i];
      if (point.assignment == *options_.decided && (point.retraining != nullptr) == options_.decided_retrained)
        return i;
    }
    size_t chosen = choice().best(true);
    if (!choice().allowed(verifier_->points[chosen]) || !verifier_->keeps_budget(chosen)) chosen = choice().best(false);
    if (options_.stopped() && !choice().has_choice())
      return Diagnostic{"stopped", "before a choice within the budget was verified",
                        "with --record FILE the next run continues with these measurements"};
    if (!choice().allowed(verifier_->points[chosen])) {
      return Diagnostic{options_.sensitivity.preferences.where,
                        "leaves no choice that was verified, and the model may not stay unchanged",
                        can_verify() ? "give more --time, or pin less" : "give --calibrate DATA to verify others"};
    }
    return chosen;
  }

  // The choice if the time ends before rules are known.
  Result<Choosing> as_it_is() {
    if (!may_all_stay_)
      return Diagnostic{options_.sensitivity.preferences.where,
                        "leaves no choice: the time is over before a pinned rule is measured, and the model may not "
                        "stay unchanged",
                        "give more --time, or pin less"};
    if (verifier_->points.empty()) {
      StudyPoint reference;
      reference.name = "reference";
      reference.sqnr = std::numeric_limits<double>::infinity();
      reference.predicted_time = reference.size = std::nan("");
      verifier_->points.push_back(std::move(reference));
      verifier_->digests.emplace_back();
    }
    verifier_->points[0].chosen = true;
    Choosing out;
    out.study = described(0);
    out.study.notes = {unchanged_note(verifier_->points[0].verified, lacks_time_ ? reference_seconds_ : 0)};
    out.study.summary = "nothing changed: the time was not enough to measure a rule";
    if (!verifier_->points[0].verified) out.study.confidence = "met without a run, since nothing is changed";
    out.reference_outputs = out.chosen_outputs = verifier_->digests[0];
    out.measured = std::move(measured_);
    return out;
  }

  Result<Choosing> finish() {
    HOIST_TRY(const size_t chosen, find_chosen());
    Choosing out;
    keep();
    for (StudyPoint& point : verifier_->points) point.chosen = false;
    verifier_->points[chosen].chosen = true;
    out.chosen = verifier_->points[chosen].assignment;
    out.retraining = verifier_->points[chosen].retraining;
    out.study = described(chosen);
    out.study.budget_met = verifier_->keeps_budget(chosen);
    add_front(out.study);
    out.reference_outputs = verifier_->digests[0];
    out.chosen_outputs = verifier_->digests[chosen];
    out.factors = sensitivity_.factors;
    out.statistics = sensitivity_.statistics;
    keep_rounded(out.chosen, out.statistics);
    out.measured = std::move(measured_);
    return out;
  }

  Study described(size_t chosen) const {
    return describe_study({program_, options_, calibration_, verification_, sensitivity_, *verifier_, unsteady_},
                          chosen);
  }

  // Adds the rest of the front with predicted values.
  void add_front(Study& study) const {
    std::vector<double> budgets;
    for (int i = 0; i < front_points; ++i)
      budgets.push_back(error_at(finest + (coarsest - finest) * i / (front_points - 1)));
    const auto front = solve_front(costs_.problem, budgets, solver_options());
    if (!front) return;
    for (const Choice& solved : *front) {
      StudyPoint point;
      point.assignment = assignment_of(sensitivity_, costs_, solved.options);
      const auto same = [&](const StudyPoint& known) { return known.assignment == point.assignment; };
      if (const auto known = std::find_if(study.points.begin(), study.points.end(), same);
          known != study.points.end()) {
        known->on_front = true;
        continue;
      }
      point.name = fmt::format("predicted at {:.0f} dB", sqnr_of(sensitivity_.output_power, solved.error));
      point.on_front = true;
      choice().predict(point);
      const double nothing = std::nan("");
      point.error = point.sqnr = point.user_metric = nothing;
      point.time = point.agreement = point.top1 = {nothing, nothing, nothing};
      study.points.push_back(std::move(point));
    }
  }

  const Program& program_;
  const Samples& calibration_;
  const Samples& verification_;
  const PrepareModel& prepare_;
  const ChooseOptions& options_;
  const OutputKinds kinds_;
  Measured measured_;
  Sensitivity& sensitivity_ = measured_.sensitivity;
  bool may_all_stay_ = true;               ///< no pin forbids the unchanged model
  std::vector<StepTime> reference_steps_;  ///< step times of the reference, as prepared here
  double reference_seconds_ = 0;           ///< seconds to prepare and verify the reference
  bool lacks_time_ = false;                ///< calibration and a model under rules would take longer than is left
  std::string unsteady_;                   ///< a note, or ""
  double longest_ = 0;                     ///< the share of the time limit that preparing, timing and verifying one
                                           ///< model took
  CostModel costs_;
  std::optional<Verifier> verifier_;
};

}  // namespace

Result<Choosing> choose(const Program& program, const Samples& calibration, const Samples& verification,
                        const PrepareModel& prepare, const ChooseOptions& options, Measured known) {
  return Chooser(program, calibration, verification, prepare, options, std::move(known)).run();
}

}  // namespace hoist
