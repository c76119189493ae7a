// hoist sensitivity: the error tolerance of each layer of a model.
#include "neural_rules/calibration/sensitivity.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/data/samples.h"
#include "tools/driver/model.h"
#include "tools/report/report.h"
#include "tools/study/device_models.h"
#include "tools/study/queued_models.h"

namespace hoist {
namespace {

std::string number(double value) { return std::isnan(value) ? "-" : fmt::format("{:.3g}", value); }

double error_of(const Candidate& candidate) {
  return std::isnan(candidate.error_alone) ? candidate.predicted_error : candidate.error_alone;
}

std::string all_candidates(const Sensitivity& found) {
  std::vector<std::vector<std::string>> rows = {{"site", "sensitivity", "masked", "rule", "local error", "predicted",
                                                 "alone", "SQNR alone", "clipped", "proof or measurement"}};
  for (const StudySite& site : found.studied) {
    for (const Candidate& candidate : site.candidates) {
      const double error = error_of(candidate);
      rows.push_back({site.site.key(), number(site.sensitivity), site.sensitivity < 1 ? "yes" : "no", candidate.rule,
                      number(candidate.local_error), number(candidate.predicted_error), number(candidate.error_alone),
                      sqnr_text(sqnr_of(found.output_power, error)),
                      fmt::format("{:.2g} %", 100 * candidate.clipped_share), candidate.proof});
    }
  }
  return table(rows);
}

// A table of the sites where a rule, used alone, does the most harm.
std::string most_sensitive(const Sensitivity& found) {
  constexpr size_t most_sites = 7;
  const auto by_error = [](const Candidate& a, const Candidate& b) { return error_of(a) < error_of(b); };
  std::vector<const StudySite*> sites;
  size_t candidates = 0;
  for (const StudySite& site : found.studied) {
    candidates += site.candidates.size();
    if (!site.candidates.empty()) sites.push_back(&site);
  }
  std::stable_sort(sites.begin(), sites.end(),
                   [](const StudySite* a, const StudySite* b) { return a->sensitivity > b->sensitivity; });
  std::vector<std::vector<std::string>> rows = {{"site", "sensitivity", "least lossy", "SQNR", "most lossy", "SQNR"}};
  for (const StudySite* site : sites) {
    if (rows.size() > most_sites) break;
    const auto [best, worst] = std::minmax_element(site->candidates.begin(), site->candidates.end(), by_error);
    const auto sqnr = [&](const Candidate& of) { return sqnr_text(sqnr_of(found.output_power, error_of(of))); };
    rows.push_back({site->site.key(), number(site->sensitivity), best->rule, sqnr(*best), worst->rule, sqnr(*worst)});
  }
  return table(rows) +
         fmt::format("{} of {} sites, the most sensitive first; --all shows {} rules at all of them\n", rows.size() - 1,
                     sites.size(), candidates) +
         "sensitivity: mean squared change of the output for noise at the site, over that of the noise\n"
         "SQNR: power of the output over that of the error if this rule alone is used (20 dB: a hundredth)\n";
}

}  // namespace

Result<ExitCode> commands::sensitivity(const Options& command) {
  HOIST_TRY_VOID(refuse_unwritable(command.json));
  HOIST_TRY(MakeRunnable make_runnable, queue::models_on_queue(command.queue));
  HOIST_TRY(StudiedModel model, open_for_study(command.subject, command.model, std::move(make_runnable)));
  HOIST_TRY(Samples samples, read_samples(command.budget.calibration, input_infos(model.program),
                                          {.numbers = true, .images = command.images}));
  Progress progress;
  SensitivityOptions options;
  HOIST_TRY(options.scaling, with_kind(ErrorKind::usage, parse_channel_scaling(command.budget.scaling)));
  options.device = arithmetic_of(model.profile);
  options.measure_all = false;  // as in a study, so that both have the same result
  // The time limit excludes uniform-precision baselines and proposals.
  const double begin = share_of_study(StudyPart::sensitivities, 0, 1),
               end = share_of_study(StudyPart::rules_alone, 1, 1);
  options.progress = [&](const std::string& text, double share) {
    progress.show(text, std::max(share - begin, 0.0) / (end - begin));
  };
  HOIST_TRY(Sensitivity found,
            with_kind(ErrorKind::device, find_sensitivity(model.program, samples, model.prepare, options)));
  found.notes.insert(found.notes.end(), found.left_out.begin(), found.left_out.end());
  for (const std::string& note : found.notes) print_message("note", note);
  if (!command.json.empty()) {
    Study study;
    study.model = model.program.name;
    study.model_hash = fmt::format("{:016x}", model.program.hash);
    study.calibration_hash = samples.hash;
    study.device = model.device;
    study.version = HOIST_VERSION;
    study.seed = options.seed;
    study.calibration_samples = samples.count;
    study.output_power = found.output_power;
    study.sites = found.studied;
    study.notes = found.notes;
    HOIST_TRY_VOID(write_json(command.json, to_json(study)));
  }
  say(command.all ? all_candidates(found) : most_sensitive(found));
  return ExitCode::done;
}

}  // namespace hoist
