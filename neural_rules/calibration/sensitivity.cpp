#include "neural_rules/calibration/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "ir/base/cancellation.h"
#include "ir/base/stopwatch.h"
#include "ir/base/threads.h"
#include "neural_rules/calibration/gradient_sensitivity.h"
#include "neural_rules/calibration/site_statistics.h"
#include "neural_rules/choice/candidates.h"
#include "neural_rules/formats/formats.h"
#include "neural_rules/model/flow.h"
#include "neural_rules/model/product.h"

namespace hoist {
namespace {

// The noise for measuring sensitivities, relative to the root mean square of the value: small enough for a linear
// response of the output, large enough to exceed rounding errors.
constexpr double noise_share = 0.05;
constexpr uint64_t noise_draws = 4;
constexpr int64_t least_alone_samples = 8;
// A gradient takes about as much longer to compile than the program with noise, and to run than a run with noise. The
// numbers are large enough that estimates which prove wrong cost little. At these many sites noise is measured too.
constexpr double backward_kernels = 2.5, backward_passes = 4;
constexpr size_t checked_sites = 8;

// The first half: statistics of the model's values, and the applicable rules.
class RuleFinder {
 public:
  RuleFinder(const Program& program, const Samples& samples, const PrepareModel& prepare,
             const SensitivityOptions& options)
      : program_(program), samples_(samples), prepare_(prepare), options_(options), kinds_(output_kinds(program)) {}

  Result<Sensitivity> run() {
    out_.sites = find_sites(program_);
    out_.samples = samples_.count;
    HOIST_TRY(const CandidateRules candidates,
              candidate_rules(program_, out_.sites, options_.preferences, options_.device));
    HOIST_TRY_VOID(gather_statistics(candidates));
    HOIST_TRY_VOID(find_rules(candidates));
    out_.program = std::move(program_);
    return std::move(out_);
  }

 private:
  Result<Nothing> gather_statistics(const CandidateRules& candidates) {
    options_.progress("preparing calibration", share_of_study(StudyPart::calibrating, 0, 1));
    CalibrationWatch watch;
    watch.seconds = options_.calibration_seconds;
    watch.seconds_left = options_.seconds_left;
    watch.progress = [&](size_t done, size_t all) {
      options_.progress(fmt::format("calibrating: run {} of {}, over {} samples", done, all, samples_.count),
                        share_of_study(StudyPart::calibrating, done, all));
    };
    const RoundingPlan plan =
        plan_rounding(program_, out_.sites, candidates, samples_.runs.size(), options_.rounding_seconds);
    out_.notes.insert(out_.notes.end(), plan.notes.begin(), plan.notes.end());
    HOIST_TRY(CalibratedProgram calibrated,
              calibrate(
                  program_, out_.sites, samples_, prepare_, plan, options_.scaling,
                  [&](const std::vector<Tensor>& outputs) { out_.reference.push_back(outputs); }, watch));
    program_ = std::move(calibrated.program);
    out_.factors = std::move(calibrated.factors);
    out_.statistics = std::move(calibrated.statistics);
    if (calibrated.runs < samples_.runs.size()) {
      out_.samples = static_cast<int64_t>(calibrated.runs) * samples_.samples_a_run;
      out_.notes.push_back(fmt::format("calibrated on the first {} of {} samples: the time limit allows no more",
                                       out_.samples, samples_.count));
    }
    if (calibrated.unscaled)
      out_.notes.emplace_back("channels are not rescaled: the time limit allows no second calibration");
    if (!out_.factors.empty())
      out_.notes.push_back(
          fmt::format("the channels of {} values are rescaled to fit 8 bits better", out_.factors.size()));
    HOIST_TRY(OutputMetrics same, compare_runs(kinds_, samples_, out_.reference, out_.reference));
    out_.output_power = same.signal_power;
    return Nothing{};
  }

  Result<Nothing> find_rules(const CandidateRules& candidates) {
    options_.progress("preparing rules", share_of_study(StudyPart::calibrating, 1, 1));
    const std::vector<std::vector<WeighedRule>> weighed =
        weigh_rules(program_, out_.sites, candidates, out_.statistics, options_.predictions_over);
    drop_second_moments(out_.statistics);
    out_.may_stay = candidates.may_stay;
    for (size_t i = 0; i < out_.sites.size(); ++i) {
      StudySite studied;
      studied.site = out_.sites[i];
      const Definition* layer = find_layer(program_, studied.site.layer);
      if (layer != nullptr) studied.operation = layer->expression->operation->name;
      if (auto known = out_.statistics.find(studied.site.value); known != out_.statistics.end())
        studied.statistics = known->second;
      studied.bytes = bytes_of(studied.site);
      studied.sensitivity = studied.time = studied.accumulated_error = std::nan("");
      out_.studied.push_back(std::move(studied));
    }
    add_candidates(weighed);
    const std::vector<std::vector<size_t>> consumers = consumer_sites(program_, out_.sites);
    for (size_t i = 0; i < consumers.size(); ++i) {
      for (size_t consumer : consumers[i]) out_.studied[i].successors.push_back(out_.sites[consumer].key());
    }
    if (late_ > 0) out_.notes.push_back(fmt::format("{} rules are left out: there was no time to prepare them", late_));
    return Nothing{};
  }

  // Integer contractions come first, as in the uniform-precision baselines, and the first rule of every site before the
  // second one of any: if the time ends, a baseline still has a rule at every site.
  void add_candidates(const std::vector<std::vector<WeighedRule>>& weighed) {
    size_t most = 0;
    std::vector<std::vector<Proposed>> proposed(weighed.size());
    for (size_t site = 0; site < weighed.size(); ++site) {
      for (const WeighedRule& rule : weighed[site]) proposed[site].push_back({site, &rule, std::nullopt});
      most = std::max(most, proposed[site].size());
    }
    std::vector<std::vector<Proposed*>> by_site(weighed.size());
    std::vector<Proposed*> order;
    for (size_t site = 0; site < weighed.size(); ++site) {
      for (Proposed& each : proposed[site]) by_site[site].push_back(&each);
      std::stable_partition(by_site[site].begin(), by_site[site].end(), [](const Proposed* each) {
        return each->rule->kept && multiplies_integers(each->rule->candidate.rule);
      });
    }
    for (size_t i = 0; i < most; ++i) {
      for (const std::vector<Proposed*>& rules : by_site) {
        if (i < rules.size()) order.push_back(rules[i]);
      }
    }
    const auto is_over = latched(options_.out_of_time);
    for_each_in_threads(order.size(), [&](size_t i) {
      cancellation_point();
      const size_t site = order[i]->site;
      const WeighedRule* rule = order[i]->rule;
      if (!rule->kept || (is_over() && out_.may_stay[site])) return;
      order[i]->prepared =
          rewrite_alone(program_, out_.sites, site, rule->candidate.rule, rule->candidate.needs, out_.statistics);
    });
    for (std::vector<Proposed>& rules : proposed) {
      for (Proposed& each : rules) add_candidate(each);
    }
  }

  // A rule at a site; nothing is prepared for a rule that is not kept, or if the time is over.
  struct Proposed {
    size_t site = 0;
    const WeighedRule* rule = nullptr;
    std::optional<Result<SiteRule>> prepared;
  };

  void add_candidate(Proposed& proposed) {
    const WeighedRule& weighed = *proposed.rule;
    StudySite& studied = out_.studied[proposed.site];
    Candidate described;
    described.rule = weighed.candidate.rule;
    described.bytes = weighed.bytes;
    described.local_error = weighed.predicted_noise;
    described.predicted_error = described.error_alone = described.time = std::nan("");
    described.proof = weighed.kept ? "" : "predicted from statistics";
    described.cost_class = weighed.cost_class;
    described.stands = weighed.kept;
    describe_clip(described, studied);
    if (weighed.kept && !proposed.prepared) {
      described.stands = false;
      ++late_;
    } else if (weighed.kept) {
      Result<SiteRule>& rule = *proposed.prepared;
      if (!rule) {
        out_.notes.push_back(studied.site.key() + ": " + weighed.candidate.rule + ": " + rule.errors()[0].text());
        return;
      }
      rule->cost_class = weighed.cost_class;
      described.clipped_share = rule->use.clipped_share;
      described.proof = rule->use.proof;
      out_.rules.push_back(std::move(*rule));
    }
    studied.candidates.push_back(std::move(described));
  }

  // Integer contractions do not clip: their input is a value with its own format.
  static void describe_clip(Candidate& described, const StudySite& studied) {
    const ValueFormat* format = find_value_format(described.rule);
    if (studied.site.kind != SiteKind::value || format == nullptr || format->block != 0) return;
    if (studied.statistics.count == 0) return;
    const Range range = range_of(grid_of(*format, studied.statistics));
    described.clip_low = range.low;
    described.clip_high = range.high;
  }

  double bytes_of(const Site& site) const {
    if (site.kind == SiteKind::function) return 0;
    if (site.kind == SiteKind::product) return static_cast<double>(program_.constants.at(site.weights).bytes().size());
    const Type type = find_type(program_, site.value);
    return static_cast<double>(byte_size(leaf_of(type)->scalar, shape_of(type)));
  }

  Program program_;
  const Samples& samples_;
  const PrepareModel& prepare_;
  const SensitivityOptions& options_;
  const OutputKinds kinds_;
  Sensitivity out_;
  int late_ = 0;  ///< number of rules that were skipped for lack of time
};

// The second half: measures all errors that are not known yet.
class ErrorStudy {
 public:
  ErrorStudy(Sensitivity& found, const Samples& samples, const PrepareModel& prepare, const SensitivityOptions& options)
      : out_(found),
        program_(found.program),
        samples_(samples),
        prepare_(prepare),
        options_(options),
        kinds_(output_kinds(found.program)) {}

  Result<Nothing> run() {
    out_.complete = true;
    out_.left_out.clear();
    if (knows_all()) return Nothing{};
    HOIST_TRY_VOID(in_time([this] { return measure_sensitivities(); }, [this] { without_sensitivities(); }));
    HOIST_TRY_VOID(in_time([this] { return measure_local_errors(); }, [this] { out_.complete = false; }));
    for (StudySite& site : out_.studied) {
      for (Candidate& found : site.candidates) found.predicted_error = site.sensitivity * found.local_error;
    }
    return in_time([this] { return measure_alone(); }, [this] { without_rules_alone(ended_first); });
  }

 private:
  static constexpr const char* ended_first = "the run ended first";

  template <class Work, class Otherwise>
  static Result<Nothing> in_time(const Work& work, const Otherwise& otherwise) {
    try {
      return work();
    } catch (const TimeIsOver&) {
      otherwise();
      return Nothing{};
    }
  }

  // A study that ended in a later phase has nothing left to measure here.
  bool knows_all() {
    const bool all_sites = std::all_of(out_.studied.begin(), out_.studied.end(),
                                       [](const StudySite& site) { return std::isfinite(site.sensitivity); });
    return all_sites && std::all_of(out_.rules.begin(), out_.rules.end(), [&](const SiteRule& rule) {
             const Candidate& known = candidate(rule);
             return std::isfinite(known.error_alone) && std::isfinite(known.local_error);
           });
  }

  size_t runs_for(int64_t samples) const {
    const int64_t runs = (samples + samples_.samples_a_run - 1) / samples_.samples_a_run;
    return std::min(samples_.runs.size(), static_cast<size_t>(std::max<int64_t>(1, runs)));
  }
  int64_t samples_in(size_t runs) const {
    return std::min(samples_.count, static_cast<int64_t>(runs) * samples_.samples_a_run);
  }

  Candidate& candidate(const SiteRule& rule) {
    for (Candidate& known : out_.studied[rule.site].candidates) {
      if (known.rule == rule.rule) return known;
    }
    HOIST_CHECK(false, "no candidate " + rule.rule);
  }

  Result<Nothing> measure_local_errors() {
    if (options_.out_of_time()) {
      out_.complete = false;
      return Nothing{};
    }
    const double fitting = options_.alone_seconds / variant_seconds(out_.rules);
    const bool all = options_.measure_all && fitting >= static_cast<double>(runs_for(least_alone_samples));
    std::vector<SiteRule> measured;
    for (const SiteRule& rule : out_.rules) {
      if (all || std::isnan(candidate(rule).local_error)) measured.push_back(rule);
    }
    if (measured.empty()) return Nothing{};
    options_.progress(fmt::format("local errors of {} rules at {} sites", measured.size(), out_.sites.size()),
                      share_of_study(StudyPart::local_errors, 0, 1));
    HOIST_TRY(const LocalErrors local, make_local_errors(program_, out_.sites, measured));
    HOIST_TRY(std::unique_ptr<RunnableModel> runnable, prepare_(local.model));
    const size_t runs = std::min(runs_for(options_.local_samples), static_cast<size_t>(std::max(1.0, fitting)));
    std::vector<double> sums(measured.size(), 0);
    for (size_t run = 0; run < runs; ++run) {
      HOIST_TRY(std::vector<Tensor> outputs, runnable->run(samples_.runs[run]));
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += outputs[i].float_at(0);
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      candidate(measured[i]).local_error = sums[i] / static_cast<double>(runs) / static_cast<double>(local.elements[i]);
    }
    return Nothing{};
  }

  Result<Nothing> measure_sensitivities() {
    options_.progress("preparing sensitivities", share_of_study(StudyPart::sensitivities, 0, 1));
    std::vector<double> scales;
    for (const StudySite& studied : out_.studied) {
      const double rms = std::sqrt(studied.statistics.mean_square);
      scales.push_back(rms > 0 ? noise_share * rms : noise_share);
    }
    if (options_.out_of_time()) {
      without_sensitivities();
      return Nothing{};
    }
    HOIST_TRY(const MultiVariantProgram variants, make_noise_variants(program_, out_.sites, out_.rules, scales));
    const Stopwatch preparing;
    HOIST_TRY(std::unique_ptr<RunnableModel> runnable, prepare_(variants.model));
    const double preparation = preparing.seconds();
    // Shared by sites and used cyclically by runs, since generating noise takes longer than a run.
    std::vector<std::vector<Tensor>> noises;
    for (uint64_t i = 0; i < noise_draws; ++i) noises.push_back(variants.noise(options_.seed + i));
    HOIST_TRY(noise_seconds_, measure_all_off(*runnable, variants, runs_for(options_.noise_samples), noises[0]));
    const double fitting = options_.noise_seconds / (noise_seconds_ * static_cast<double>(out_.sites.size()));
    const size_t runs = std::min(all_off_.size(), static_cast<size_t>(std::max(1.0, fitting)));
    const auto measure = [&](size_t i) -> Result<Nothing> {
      if (std::isfinite(out_.studied[i].sensitivity)) return Nothing{};
      options_.progress(fmt::format("sensitivity of site {} of {}", i + 1, out_.sites.size()),
                        share_of_study(StudyPart::sensitivities, i, out_.sites.size()));
      const auto noisy = [&](size_t run) { return variants.inputs(out_.sites, {}, i, noises[run % noise_draws]); };
      HOIST_TRY(double error, error_with(*runnable, runs, noisy));
      out_.studied[i].sensitivity = error / (scales[i] * scales[i]);
      options_.measured();
      return Nothing{};
    };
    HOIST_TRY_VOID(estimate_sensitivities(runs, preparation, measure));
    for (size_t i = 0; i < out_.sites.size(); ++i) {
      if (options_.out_of_time() && !std::isfinite(out_.studied[i].sensitivity)) {
        without_sensitivities();
        return Nothing{};
      }
      HOIST_TRY_VOID(measure(i));
    }
    return Nothing{};
  }

  bool gradients_save_time(size_t runs, double preparation) const {
    const double unknown = static_cast<double>(std::count_if(
        out_.studied.begin(), out_.studied.end(), [](const StudySite& s) { return !std::isfinite(s.sensitivity); }));
    const double a_run = noise_seconds_ * static_cast<double>(runs);
    return backward_kernels * preparation + (backward_passes + checked_sites) * a_run < unknown * a_run;
  }

  // Estimates the sensitivities by gradients if that takes less time than noise at all sites, and compares them with
  // noise at some; without that, or if the two disagree, it changes nothing but the sites that it measured.
  Result<Nothing> estimate_sensitivities(size_t runs, double preparation,
                                         const std::function<Result<Nothing>(size_t site)>& measure) {
    if (!options_.always_gradients && !gradients_save_time(runs, preparation)) return Nothing{};
    options_.progress("preparing gradients", share_of_study(StudyPart::sensitivities, 0, 1));
    const auto gradients = GradientSensitivity::make(program_, out_.sites, out_.rules);
    if (!gradients.ok()) return Nothing{};  // no derivatives
    HOIST_TRY(const std::unique_ptr<RunnableModel> backward, prepare_(gradients->model()));
    HOIST_TRY(const std::vector<double> estimates,
              gradients->estimate(*backward, samples_, all_off_, runs, options_.seed));
    const size_t every = (estimates.size() + checked_sites - 1) / checked_sites;
    for (size_t i = 0; i < estimates.size() && !options_.out_of_time(); i += every) HOIST_TRY_VOID(measure(i));
    std::vector<double> measured;
    for (const StudySite& site : out_.studied) measured.push_back(site.sensitivity);
    const EstimateQuality quality = quality_of(estimates, measured);
    for (size_t i = 0; quality.is_good() && i < estimates.size(); ++i) {
      if (!std::isfinite(measured[i])) out_.studied[i].sensitivity = estimates[i];
    }
    out_.notes.push_back(quality.text());
    options_.measured();
    return Nothing{};
  }

  void without_sensitivities() {
    out_.complete = false;
    const auto known = std::count_if(out_.studied.begin(), out_.studied.end(),
                                     [](const StudySite& site) { return std::isfinite(site.sensitivity); });
    out_.left_out.push_back(
        known == 0
            ? "the run ended before the sensitivity of any site was measured: the choice is among uniform-precision "
              "baselines"
            : fmt::format("the run ended after {} of {} sites were measured: proposals leave the other sites unchanged",
                          known, out_.sites.size()));
  }

  void without_rules_alone(const std::string& why) {
    const auto measured = std::count_if(out_.rules.begin(), out_.rules.end(), [&](const SiteRule& rule) {
      return std::isfinite(candidate(rule).error_alone);
    });
    if (why == ended_first) out_.complete = false;
    out_.left_out.push_back(fmt::format("{} of {} rules were measured alone: {}; the others are predicted", measured,
                                        out_.rules.size(), why));
  }

  // Computes the outputs with all switches off: a device may round differently in other kernels, so disturbed outputs
  // are compared with the undisturbed outputs of the same program. Returns the seconds of a run; the first run, in
  // which devices warm up, is not timed.
  Result<double> measure_all_off(RunnableModel& runnable, const MultiVariantProgram& variants, size_t runs,
                                 const std::vector<Tensor>& noise = {}) {
    const std::vector<Tensor> off = variants.inputs(out_.sites, {}, MultiVariantProgram::npos, noise);
    const auto nothing = [&](size_t) { return std::vector<Tensor>(off); };
    HOIST_TRY_VOID(run_all(runnable, samples_, 1, nothing));
    const Stopwatch stopwatch;
    HOIST_TRY(all_off_, run_all(runnable, samples_, runs, nothing));
    return std::max(stopwatch.seconds() / static_cast<double>(runs), 1e-9);
  }

  // A multi-variant program computes each contraction once more per rule.
  double variant_seconds(const std::vector<SiteRule>& rules) const {
    double model = 0, all = 0;
    for (size_t site = 0; site < out_.sites.size(); ++site) {
      const Definition* layer = find_layer(program_, out_.sites[site].layer);
      const auto product = layer == nullptr ? std::nullopt : product_of(program_, *layer);
      const std::vector<int64_t> shape = shape_of(find_type(program_, out_.sites[site].value));
      const bool sums = out_.sites[site].kind == SiteKind::product && product.has_value();
      const double work = static_cast<double>(element_count(shape) * (sums ? product->terms() : 1));
      const auto here = [&](const SiteRule& rule) { return rule.site == site; };
      model += work;
      all += work * static_cast<double>(1 + std::count_if(rules.begin(), rules.end(), here));
    }
    return noise_seconds_ * (model > 0 ? all / model : 1);
  }

  // A program computes all of its variants in each run, so it contains at most one rule per site.
  static std::vector<std::vector<SiteRule>> programs_of(const std::vector<SiteRule>& rules) {
    std::vector<std::vector<SiteRule>> out;
    std::map<size_t, size_t> used;  // by site: number of programs with one of its rules
    for (const SiteRule& rule : rules) {
      const size_t program = used[rule.site]++;
      if (program == out.size()) out.emplace_back();
      out[program].push_back(rule);
    }
    return out;
  }

  // Seconds for measuring each rule in one run.
  double seconds_alone(const std::vector<SiteRule>& rules) const {
    double out = 0;
    for (const std::vector<SiteRule>& together : programs_of(rules))
      out += variant_seconds(together) * static_cast<double>(together.size());
    return out;
  }

  // The number of runs per rule that fit into the time limit, rounded down.
  size_t runs_that_fit(const std::vector<SiteRule>& rules) const {
    return std::min(runs_for(options_.alone_samples),
                    static_cast<size_t>(options_.alone_seconds / seconds_alone(rules)));
  }

  Result<Nothing> measure_alone() {
    if (out_.rules.empty() || noise_seconds_ == 0) return Nothing{};
    const size_t least = runs_for(least_alone_samples), runs = runs_that_fit(out_.rules);
    size_t measured = 0;
    if (runs >= least) {
      HOIST_TRY(measured, measure_alone(out_.rules, runs));
      out_.complete = out_.complete && measured == out_.rules.size();
    } else {
      HOIST_TRY(measured, measure_representatives());
      out_.complete = out_.complete && !options_.out_of_time();
    }
    if (measured == out_.rules.size()) return Nothing{};
    const double seconds = seconds_alone(out_.rules) * static_cast<double>(least);
    without_rules_alone(runs >= least ? ended_first : fmt::format("all would take about {:.0f} s", std::ceil(seconds)));
    return Nothing{};
  }

  // One weight rule per contraction represents the effect of weight errors on the output. Weight errors are correlated
  // with the layer's input, so later averages do not reduce them as they reduce noise.
  Result<size_t> measure_representatives() {
    std::vector<SiteRule> rules;
    for (const SiteRule& rule : out_.rules) {
      const ProductScheme* scheme = find_scheme(rule.rule);
      const bool stores = scheme != nullptr && scheme->activation == ActivationUse::as_is && !scheme->corrected;
      if (stores && candidate(rule).local_error > 0 && (rules.empty() || rules.back().site != rule.site))
        rules.push_back(rule);
    }
    const size_t runs = rules.empty() ? 0 : runs_that_fit(rules);
    if (runs == 0) return size_t{0};
    HOIST_TRY(const size_t measured, measure_alone(rules, runs));
    for (const SiteRule& rule : rules) {
      const double sensitivity = candidate(rule).error_alone / candidate(rule).local_error;
      if (std::isnan(sensitivity)) continue;
      for (Candidate& other : out_.studied[rule.site].candidates)
        other.predicted_error = sensitivity * other.local_error;
    }
    return measured;
  }

  // Returns the number of rules that were measured in time, with `most_runs` runs or fewer if a program is slower than
  // estimated.
  Result<size_t> measure_alone(const std::vector<SiteRule>& rules, size_t most_runs) {
    size_t measured = 0;
    std::vector<SiteRule> unknown;
    for (const SiteRule& rule : rules) {
      if (std::isfinite(candidate(rule).error_alone))
        ++measured;
      else
        unknown.push_back(rule);
    }
    for (const std::vector<SiteRule>& together : programs_of(unknown)) {
      if (options_.out_of_time()) return measured;
      options_.progress(fmt::format("preparing a program of {} variants", together.size()),
                        share_of_study(StudyPart::rules_alone, measured, rules.size()));
      HOIST_TRY(const MultiVariantProgram variants, make_multi_variant(program_, out_.sites, together));
      HOIST_TRY(std::unique_ptr<RunnableModel> runnable, prepare_(variants.model));
      HOIST_TRY(const double seconds, measure_all_off(*runnable, variants, most_runs));
      const double fitting = options_.alone_seconds / (seconds * static_cast<double>(rules.size()));
      const size_t runs = std::clamp(static_cast<size_t>(fitting), size_t{1}, most_runs);
      for (const SiteRule& rule : together) {
        if (options_.out_of_time()) return measured;
        options_.progress(fmt::format("rule {} of {} alone", measured + 1, rules.size()),
                          share_of_study(StudyPart::rules_alone, measured, rules.size()));
        const Assignment alone = {{out_.sites[rule.site].key(), rule.rule}};
        const std::vector<Tensor> fed = variants.inputs(out_.sites, alone);
        HOIST_TRY(double error, error_with(*runnable, runs, [&](size_t) { return std::vector<Tensor>(fed); }));
        Candidate& found = candidate(rule);
        found.error_alone = error;
        if (found.proof.empty()) found.proof = fmt::format("{} samples", samples_in(runs));
        ++measured;
        options_.measured();
      }
    }
    return measured;
  }

  Result<double> error_with(RunnableModel& runnable, size_t runs,
                            const std::function<std::vector<Tensor>(size_t)>& more) {
    HOIST_TRY(const RunOutputs changed, run_all(runnable, samples_, runs, more));
    HOIST_TRY(OutputMetrics metrics, compare_runs(kinds_, samples_, all_off_, changed));
    return metrics.mean_squared_error;
  }

  Sensitivity& out_;
  const Program& program_;
  const Samples& samples_;
  const PrepareModel& prepare_;
  const SensitivityOptions& options_;
  const OutputKinds kinds_;
  RunOutputs all_off_;
  double noise_seconds_ = 0;  ///< seconds of a run of the program with noise
};

}  // namespace

double share_of_study(StudyPart part, size_t done, size_t all) {
  // Shares measured on a convolutional network with two cores through OpenCL.
  constexpr double ends[] = {0.05, 0.45, 0.6, 0.65, 0.85, 1};
  const auto index = static_cast<size_t>(part);
  const double begin = index == 0 ? 0 : ends[index - 1];
  return begin + (ends[index] - begin) * static_cast<double>(done) / static_cast<double>(std::max<size_t>(all, 1));
}

Result<Sensitivity> find_rules(const Program& program, const Samples& samples, const PrepareModel& prepare,
                               const SensitivityOptions& options) {
  return RuleFinder(program, samples, prepare, options).run();
}

Result<Nothing> measure_errors(Sensitivity& found, const Samples& samples, const PrepareModel& prepare,
                               const SensitivityOptions& options) {
  return ErrorStudy(found, samples, prepare, options).run();
}

Result<Sensitivity> find_sensitivity(const Program& program, const Samples& samples, const PrepareModel& prepare,
                                     const SensitivityOptions& options) {
  HOIST_TRY(Sensitivity out, find_rules(program, samples, prepare, options));
  HOIST_TRY_VOID(measure_errors(out, samples, prepare, options));
  return out;
}

}  // namespace hoist
