#include "tools/study/certificate.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "ir/base/cancellation.h"
#include "ir/base/temporary_folder.h"
#include "tools/base/child_program.h"
#include "tools/base/files.h"
#include "tools/data/samples.h"
#include "tools/data/scores.h"
#include "tools/driver/opened_bundle.h"

namespace hoist {
namespace {

using Json = nlohmann::ordered_json;

// The tolerated difference of the output's power between devices: well below the effect of any rule.
constexpr double power_tolerance = 1e-3;

Json finite_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json certified_interval(const Interval& value) {
  return {finite_json(value.value), finite_json(value.low), finite_json(value.high)};
}

// How weights came to be, without the weights.
Json retraining_json(const Retraining& of) {
  return {{"epochs", of.epochs},
          {"steps", of.steps},
          {"seed", of.seed},
          {"loss", of.loss},
          {"teacher", "the unchanged model"},
          {"samples", of.samples},
          {"data_hash", of.data_hash},
          {"weights_hash", of.weights_hash},
          {"curve", of.curve}};
}

Json point_json(const StudyPoint& point) {
  Json out = {{"name", point.name},
              {"samples", point.samples},
              {"lost", point.lost},
              {"gained", point.gained},
              {"both_right", point.both_right},
              {"both_wrong", point.both_wrong},
              {"flips", point.flips},
              {"sqnr_db", finite_json(point.sqnr)},
              {"psnr_db", finite_json(point.psnr)},
              {"metric", finite_json(point.user_metric)},
              {"top1", certified_interval(point.top1)},
              {"agreement", certified_interval(point.agreement)},
              {"predicted_error", finite_json(point.predicted_error)},
              {"measured_error", finite_json(point.error)},
              {"milliseconds", finite_json(point.time.value * 1e3)},
              {"weight_bytes", finite_json(point.size)},
              {"chosen", point.chosen}};
  if (point.retraining != nullptr) out["retraining"] = retraining_json(*point.retraining);
  return out;
}

// Classes as one line of text: a manifest with one line per sample would be unreadable.
std::string classes_text(const std::vector<int64_t>& classes) { return fmt::format("{}", fmt::join(classes, " ")); }

std::vector<int64_t> parse_classes(const std::string& text) {
  std::vector<int64_t> out;
  const char* at = text.c_str();
  for (char* end = nullptr; *at != '\0'; at = end) {
    out.push_back(std::strtoll(at, &end, 10));
    if (end == at) break;
  }
  return out;
}

struct Counts {
  int64_t flips = 0, right = 0;
};

Counts count(const std::vector<int64_t>& classes, const std::vector<int64_t>& reference,
             const std::vector<int64_t>& labels) {
  Counts out;
  for (size_t i = 0; i < classes.size(); ++i) {
    if (i < reference.size() && classes[i] != reference[i]) ++out.flips;
    if (i < labels.size() && classes[i] == labels[i]) ++out.right;
  }
  return out;
}

Result<Nothing> compare_with(const Json& certificate, const Samples& samples, const RunOutputs& outputs,
                             Finding& finding) {
  const Json& expected = certificate.at("outputs");
  const auto powers = expected.at("mean_squares").get<std::vector<double>>();
  OutputKinds kinds{std::vector<OutputKind>(powers.size(), OutputKind::values), expected.at("main").get<size_t>()};
  if (powers.size() != outputs[0].size() || kinds.main >= powers.size())
    return Diagnostic{"manifest.json", "certifies other outputs than the model's", ""};
  const bool scores = !expected.at("classes").get<std::string>().empty();
  if (scores) kinds.of[kinds.main] = OutputKind::logits;
  const OutputDigest digest = digest_of(kinds, samples, outputs);
  finding.compared = static_cast<uint64_t>(samples.count);
  finding.passed = true;
  for (size_t i = 0; i < powers.size() && finding.passed; ++i) {
    const double error = std::abs(digest.mean_squares[i] - powers[i]);
    finding.largest_error = std::max(finding.largest_error, error);
    finding.passed = error <= power_tolerance * std::abs(powers[i]);
    if (!finding.passed) {
      finding.message =
          fmt::format("output {} has a mean square of {:.6g}, certified {:.6g}", i, digest.mean_squares[i], powers[i]);
    }
  }
  if (!finding.passed || !scores) return Nothing{};
  const std::vector<int64_t> reference = parse_classes(expected.at("reference_classes").get<std::string>());
  const std::vector<int64_t> certified = parse_classes(expected.at("classes").get<std::string>());
  const Counts now = count(digest.classes, reference, samples.labels);
  const Counts then = count(certified, reference, samples.labels);
  finding.passed = now.flips == then.flips && now.right == then.right;
  if (!finding.passed) {
    finding.message = fmt::format("{} of {} classes changed and {} answers right, certified {} and {}", now.flips,
                                  samples.count, now.right, then.flips, then.right);
  }
  return Nothing{};
}

}  // namespace

std::string certificate_text(const Choosing& found) {
  const Study& study = found.study;
  Json out = {{"budget", study.budget},
              {"objective", study.objective},
              {"met", study.budget_met},
              {"summary", study.summary},
              {"confidence", study.confidence},
              {"seed", study.seed},
              {"calibration", {{"hash", study.calibration_hash}, {"samples", study.calibration_samples}}},
              {"verification", {{"hash", study.verification_hash}, {"samples", study.verification_samples}}}};
  if (const ReferenceScore score = reference_score(study); score.samples > 0)
    out["reference"] = {{"right", score.right}, {"samples", score.samples}, {"guessing", finite_json(score.guessing)}};
  out["rules"] = Json::object();
  for (const auto& [site, rule] : found.chosen) out["rules"][site] = rule;
  if (found.retraining != nullptr) out["weights"] = retraining_json(*found.retraining);
  out["points"] = Json::array();
  for (const StudyPoint& point : study.points) {
    if (point.verified) out["points"].push_back(point_json(point));
  }
  out["outputs"] = {{"mean_squares", found.chosen_outputs.mean_squares},
                    {"main", found.chosen_outputs.main},
                    {"classes", classes_text(found.chosen_outputs.classes)},
                    {"reference_classes", classes_text(found.reference_outputs.classes)}};
  // Names come from models and need not be UTF-8.
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ReferenceScore reference_score(const Study& study) {
  ReferenceScore out;
  if (study.points.empty()) return out;
  const StudyPoint& reference = study.points.front();
  out.right = reference.both_right;
  out.samples = reference.both_right + reference.both_wrong;
  out.guessing = study.guessing;
  return out;
}

std::string ReferenceScore::text() const {
  const Interval share = wilson(right, samples);
  return fmt::format("the unchanged model: {} of {} right, {:.2f} % (95 % interval {:.2f} to {:.2f} %)", right, samples,
                     100 * share.value, 100 * share.low, 100 * share.high);
}

std::string ReferenceScore::warning() const {
  return samples > 0 && std::isfinite(guessing) ? chance_warning(right, samples, guessing) : "";
}

bool ReferenceScore::is_chance() const {
  // With few samples the interval includes guessing, however many answers are right.
  constexpr double near = 0.25;  // fraction of the range from guessing to always right
  return !warning().empty() && wilson(right, samples).value <= guessing + near * (1 - guessing);
}

double guessing_in(const std::string& certificate) {
  const Json parsed = Json::parse(certificate, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("reference") || !parsed["reference"].is_object()) return std::nan("");
  const Json& reference = parsed["reference"];
  const bool is_known = reference.contains("guessing") && reference["guessing"].is_number();
  return is_known ? reference["guessing"].get<double>() : std::nan("");
}

Result<bool> certificate_states_met(const std::string& text, const std::string& where) {
  const Json certificate = Json::parse(text, nullptr, false);
  if (!certificate.is_object() || !certificate.contains("met") || !certificate["met"].is_boolean())
    return Diagnostic{where, "holds no certificate", "compile again without it"};
  return certificate["met"].get<bool>();
}

Result<std::optional<Finding>> check_certificate(BundleRunner& bundle, const std::string& text,
                                                 const std::string& data) {
  HOIST_TRY(Samples samples, read_samples(data, inputs_of(bundle), {.images = as_stored(bundle, 0, {})}));
  const Json certificate = Json::parse(text, nullptr, false);
  Finding finding;
  finding.subject = "certificate";
  try {
    const bool whole = certificate.at("verification").at("hash") == samples.hash;
    if (!whole) {
      // The part of calibration data that was reserved for verification.
      auto split = keep_apart(samples, data);
      if (!split || certificate.at("verification").at("hash") != split->kept_apart.hash)
        return std::optional<Finding>();
      samples = std::move(split->kept_apart);
    }
    // The study may have had time for the first samples only.
    const int64_t verified = std::min(samples.count, certificate.at("verification").at("samples").get<int64_t>());
    samples.runs.resize(static_cast<size_t>((verified + samples.samples_a_run - 1) / samples.samples_a_run));
    samples.labels.resize(std::min(samples.labels.size(), static_cast<size_t>(std::max<int64_t>(verified, 0))));
    samples.count = verified;
    RunOutputs outputs;
    for (const std::vector<Tensor>& inputs : samples.runs) {
      HOIST_TRY(std::vector<Tensor> all, with_kind(ErrorKind::device, bundle.run(inputs)));
      outputs.push_back(std::move(all));
    }
    HOIST_TRY_VOID(compare_with(certificate, samples, outputs, finding));
  } catch (const nlohmann::json::exception& error) {
    return Diagnostic{"manifest.json", "holds no readable certificate", error.what()};
  }
  return std::optional<Finding>(std::move(finding));
}

Result<double> number_of_command(const std::string& command, const std::filesystem::path& folder, double seconds) {
  HOIST_TRY(const TemporaryFolder place, TemporaryFolder::make());
  const std::filesystem::path out = place.path() / "number";
  // The folder is the shell's first argument, so that its name is never interpreted.
  auto ran = run_program({"/bin/sh", "-c", command + " \"$1\"", "metric", folder.string()},
                         {.out = out, .err = {}, .seconds = seconds, .meanwhile = cancellation_point});
  if (!ran) return Diagnostic{"metric " + command, ran.errors().front().what, "--time gives each run more"};
  const int status = *ran;
  HOIST_TRY(const std::string text, read_beginning(out, size_t{1} << 16));
  if (status != 0) {
    const std::string how = WIFEXITED(status) ? fmt::format("ends with exit code {}", WEXITSTATUS(status))
                                              : fmt::format("was ended by signal {}", WTERMSIG(status));
    return Diagnostic{"metric " + command, how, "it receives the folder of outputs and has to print one number"};
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool is_number =
      end != text.c_str() &&
      text.find_first_not_of(" \t\r\n", static_cast<size_t>(end - text.c_str())) == std::string::npos;
  if (!is_number || !std::isfinite(value)) {
    const std::string shown = text.substr(0, 60);
    return Diagnostic{"metric " + command, "prints " + (shown.empty() ? "nothing" : "\"" + shown + "\""),
                      "expected one finite number"};
  }
  return value;
}

}  // namespace hoist
