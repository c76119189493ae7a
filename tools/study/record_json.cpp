#include "tools/study/record_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/text/text.h"
#include "tools/base/files.h"

namespace hoist {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t largest_record = size_t{1} << 30;  // bytes; the record of a large model has some megabytes
constexpr const char* kind = "hoist record";

// JSON text is UTF-8, names of models are bytes: a name that is not UTF-8 is written as its bytes.
Json text_json(const std::string& text) {
  try {
    (void)Json(text).dump();
    return text;
  } catch (const Json::type_error&) {
    return std::vector<uint8_t>(text.begin(), text.end());
  }
}

// JSON has no infinities and no NaN.
Json number_json(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

Json factors_json(const std::vector<double>& factors) {
  Json out = Json::array();
  for (const double factor : factors) out.push_back(number_json(factor));
  return out;
}

// Weights are written as the language writes constants.
Json rounded_json(const ValueStatistics& of) {
  Json out = Json::array();
  for (const auto& [layer, rules] : of.rounded) {
    for (const auto& [rule, numbers] : rules)
      out.push_back({{"layer", text_json(layer)}, {"rule", text_json(rule)}, {"numbers", print(constant(*numbers))}});
  }
  return out;
}

Json statistics_json(const std::string& name, const ValueStatistics& of) {
  Json channels = Json::array();
  for (const auto& channel : of.channels)
    channels.push_back({number_json(channel.low), number_json(channel.high), number_json(channel.mean),
                        number_json(channel.mean_square)});
  return {{"value", text_json(name)},
          {"count", of.count},
          {"zeros", of.zeros},
          {"low", number_json(of.low)},
          {"high", number_json(of.high)},
          {"mean", number_json(of.mean)},
          {"mean_square", number_json(of.mean_square)},
          {"histogram", of.histogram},
          {"channel_axis", of.channel_axis},
          {"channels", std::move(channels)},
          {"rounded", rounded_json(of)}};
}

Json site_json(const RecordedSite& site) {
  Json candidates = Json::array();
  for (const Candidate& of : site.candidates) {
    candidates.push_back({{"rule", text_json(of.rule)},
                          {"predicted_error", number_json(of.predicted_error)},
                          {"error_alone", number_json(of.error_alone)},
                          {"local_error", number_json(of.local_error)},
                          {"time", number_json(of.time)},
                          {"bytes", number_json(of.bytes)},
                          {"clipped_share", number_json(of.clipped_share)},
                          {"clip_low", number_json(of.clip_low)},
                          {"clip_high", number_json(of.clip_high)},
                          {"proof", text_json(of.proof)},
                          {"cost_class", text_json(of.cost_class)},
                          {"stands", of.stands}});
  }
  return {{"site", text_json(site.key)},
          {"sensitivity", number_json(site.sensitivity)},
          {"time", number_json(site.time)},
          {"bytes", number_json(site.bytes)},
          {"candidates", std::move(candidates)}};
}

Json assignment_json(const Assignment& assignment) {
  Json out = Json::array();
  for (const auto& [site, rule] : assignment) out.push_back({{"site", text_json(site)}, {"rule", text_json(rule)}});
  return out;
}

Json times_json(const RecordedTimes& of) {
  return {{"name", text_json(of.name)},
          {"cost_class", text_json(of.cost_class)},
          {"assignment", assignment_json(of.assignment)},
          {"site_seconds", factors_json(of.site_seconds)}};
}

Json interval_json(const Interval& of) { return factors_json({of.value, of.low, of.high}); }

Json retraining_json(const Retraining& of) {
  Json weights = Json::array();
  for (const RetrainedConstant& each : of.weights) {
    weights.push_back({{"layer", text_json(each.layer)},
                       {"bias", each.part == RetrainedPart::bias},
                       {"value", print(constant(each.value))}});
    if (each.part == RetrainedPart::scales) weights.back()["scales"] = true;
    if (each.part == RetrainedPart::range) weights.back()["range"] = true;
  }
  return {{"epochs", of.epochs},
          {"steps", of.steps},
          {"samples", of.samples},
          {"seed", of.seed},
          {"data_hash", text_json(of.data_hash)},
          {"weights_hash", text_json(of.weights_hash)},
          {"loss", text_json(of.loss)},
          {"curve", factors_json(of.curve)},
          {"weights", std::move(weights)}};
}

Json point_json(const RecordedPoint& of) {
  const StudyPoint& point = of.point;
  Json out = {{"name", text_json(point.name)},
              {"assignment", assignment_json(point.assignment)},
              {"size", number_json(point.size)},
              {"on_front", point.on_front},
              {"time", interval_json(point.time)},
              {"error", number_json(point.error)},
              {"sqnr", number_json(point.sqnr)},
              {"psnr", number_json(point.psnr)},
              {"agreement", interval_json(point.agreement)},
              {"top1", interval_json(point.top1)},
              {"samples", point.samples},
              {"both_right", point.both_right},
              {"lost", point.lost},
              {"gained", point.gained},
              {"both_wrong", point.both_wrong},
              {"flips", point.flips},
              {"worst_class", point.worst_class},
              {"worst_class_drop", number_json(point.worst_class_drop)},
              {"user_metric", number_json(point.user_metric)},
              {"main_output", of.digest.main},
              {"mean_squares", factors_json(of.digest.mean_squares)},
              {"classes", of.digest.classes}};
  if (point.retraining != nullptr) out["retraining"] = retraining_json(*point.retraining);
  return out;
}

Json choice_json(const RecordedChoice& of) {
  Json out = {{"budget", text_json(of.budget)},
              {"objective", text_json(of.objective)},
              {"preferences_hash", text_json(of.preferences_hash)},
              {"chosen", assignment_json(of.chosen)},
              {"certificate", text_json(of.certificate)}};
  if (!of.retraining.empty()) out["retraining"] = text_json(of.retraining);
  if (of.retrained) out["retrained"] = true;
  return out;
}

Json origin_json(const RecordOrigin& of) {
  return {{"model_hash", text_json(of.model_hash)},
          {"calibration_hash", text_json(of.calibration_hash)},
          {"verification_hash", text_json(of.verification_hash)},
          {"profile_hash", text_json(of.profile_hash)},
          {"device", text_json(of.device)},
          {"objective", text_json(of.objective)},
          {"metric", text_json(of.metric)},
          {"seed", of.seed}};
}

// One element per line, so that records can be compared line by line.
std::string lines_text(const std::vector<Json>& elements) {
  std::string out = "[";
  for (size_t i = 0; i < elements.size(); ++i) out += (i == 0 ? "\n    " : ",\n    ") + elements[i].dump();
  return out + (elements.empty() ? "]" : "\n  ]");
}

/// A fault in the text; caught by the function that receives the text.
struct Fault {
  std::string what;
};

// Reads the parts of one JSON object; every key must be there, and no other.
class Fields {
 public:
  Fields(const Json& object, std::string name) : object_(object), name_(std::move(name)) {
    if (!object.is_object()) throw Fault{name_ + " is not an object"};
  }

  const Json& at(const char* key) {
    ++read_;
    const auto found = object_.find(key);
    if (found == object_.end()) throw Fault{fmt::format("{} has no {}", name_, key)};
    return *found;
  }
  bool has(const char* key) const { return object_.contains(key); }
  std::string text(const char* key) { return text_of(at(key), key); }
  std::string text_of(const Json& of, const char* key) const {
    if (of.is_string()) return of.get<std::string>();
    if (!of.is_array()) throw wrong(key, "a text");
    std::string out;
    for (const Json& byte : of) {
      if (!byte.is_number_unsigned() || byte.get<uint64_t>() > 255) throw wrong(key, "a text");
      out += static_cast<char>(byte.get<uint8_t>());
    }
    return out;
  }
  double number(const char* key) { return number_of(at(key), key); }
  bool truth(const char* key) {
    const Json& of = at(key);
    if (!of.is_boolean()) throw wrong(key, "true or false");
    return of.get<bool>();
  }
  std::vector<double> numbers(const char* key) {
    std::vector<double> out;
    for (const Json& of : list(key)) out.push_back(number_of(of, key));
    return out;
  }
  uint64_t natural(const char* key) {
    const Json& of = at(key);
    if (!of.is_number_unsigned()) throw wrong(key, "an integer from 0");
    return of.get<uint64_t>();
  }
  const Json& list(const char* key) {
    const Json& of = at(key);
    if (!of.is_array()) throw wrong(key, "a list");
    return of;
  }
  double number_of(const Json& of, const char* key) const {
    if (of.is_number()) return of.get<double>();
    if (of == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (of == "inf") return std::numeric_limits<double>::infinity();
    if (of == "-inf") return -std::numeric_limits<double>::infinity();
    throw wrong(key, "a number");
  }
  Fault wrong(const char* key, const char* expected) const {
    return Fault{fmt::format("{} of {} is not {}", key, name_, expected)};
  }
  void end() const {
    if (read_ != object_.size()) throw Fault{fmt::format("{} has {} parts, expected {}", name_, object_.size(), read_)};
  }

 private:
  const Json& object_;
  std::string name_;
  size_t read_ = 0;
};

int64_t count_of(Fields& fields, const char* key) {
  const uint64_t count = fields.natural(key);
  if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) throw fields.wrong(key, "a count");
  return static_cast<int64_t>(count);
}

Tensor tensor_of(Fields& fields, const char* key) {
  const Result<Expr> term = parse(fields.text(key));
  if (!term || (*term)->pattern != Pattern::constant) throw fields.wrong(key, "a constant");
  return (*term)->constant;
}

void add_rounded(const Json& json, const std::string& value, ValueStatistics& of) {
  Fields fields(json, "rounded weights of the layer that reads " + value);
  const std::string layer = fields.text("layer"), rule = fields.text("rule");
  auto numbers = std::make_shared<const Tensor>(tensor_of(fields, "numbers"));
  if (!of.rounded[layer].emplace(rule, std::move(numbers)).second)
    throw Fault{fmt::format("the rounded weights of {} under {} appear twice", layer, rule)};
  fields.end();
}

std::pair<std::string, ValueStatistics> statistics_of(const Json& json, size_t index) {
  Fields fields(json, fmt::format("statistics {}", index));
  std::pair<std::string, ValueStatistics> out;
  ValueStatistics& of = out.second;
  out.first = fields.text("value");
  of.count = count_of(fields, "count");
  of.zeros = count_of(fields, "zeros");
  of.low = fields.number("low");
  of.high = fields.number("high");
  of.mean = fields.number("mean");
  of.mean_square = fields.number("mean_square");
  for (const Json& bin : fields.list("histogram")) {
    if (!bin.is_number_unsigned()) throw fields.wrong("histogram", "a list of counts");
    of.histogram.push_back(bin.get<uint64_t>());
  }
  for (const Json& channel : fields.list("channels")) {
    if (!channel.is_array() || channel.size() != 4)
      throw fields.wrong("channels", "a list of [low, high, mean, mean square]");
    const auto at = [&](size_t i) { return fields.number_of(channel[i], "channels"); };
    of.channels.push_back({at(0), at(1), at(2), at(3)});
  }
  const Json& axis = fields.at("channel_axis");
  if (!axis.is_number_integer()) throw fields.wrong("channel_axis", "an integer");
  of.channel_axis = axis.get<int64_t>();
  for (const Json& rounded : fields.list("rounded")) add_rounded(rounded, out.first, of);
  fields.end();
  return out;
}

Candidate candidate_of(const Json& json, const std::string& site, size_t index) {
  Fields fields(json, fmt::format("candidate {} of site {}", index, site));
  Candidate out;
  out.rule = fields.text("rule");
  out.predicted_error = fields.number("predicted_error");
  out.error_alone = fields.number("error_alone");
  out.local_error = fields.number("local_error");
  out.time = fields.number("time");
  out.bytes = fields.number("bytes");
  out.clipped_share = fields.number("clipped_share");
  out.clip_low = fields.number("clip_low");
  out.clip_high = fields.number("clip_high");
  out.proof = fields.text("proof");
  out.cost_class = fields.text("cost_class");
  out.stands = fields.truth("stands");
  fields.end();
  return out;
}

RecordedSite site_of(const Json& json, size_t index) {
  Fields fields(json, fmt::format("site {}", index));
  RecordedSite out;
  out.key = fields.text("site");
  out.sensitivity = fields.number("sensitivity");
  out.time = fields.number("time");
  out.bytes = fields.number("bytes");
  for (const Json& candidate : fields.list("candidates"))
    out.candidates.push_back(candidate_of(candidate, out.key, out.candidates.size()));
  fields.end();
  return out;
}

Assignment assignment_of(Fields& fields, const char* key, const std::string& of_what) {
  Assignment out;
  for (const Json& choice : fields.list(key)) {
    Fields of(choice, fmt::format("choice {} of {}", out.size(), of_what));
    std::string site = of.text("site");
    if (!out.emplace(site, of.text("rule")).second)
      throw Fault{fmt::format("site {} has two choices in {}", site, of_what)};
    of.end();
  }
  return out;
}

RecordedTimes times_of(const Json& json, size_t index) {
  const std::string what = fmt::format("times {}", index);
  Fields fields(json, what);
  RecordedTimes out;
  out.name = fields.text("name");
  out.cost_class = fields.text("cost_class");
  out.assignment = assignment_of(fields, "assignment", what);
  out.site_seconds = fields.numbers("site_seconds");
  fields.end();
  return out;
}

Interval interval_of(Fields& fields, const char* key) {
  const std::vector<double> numbers = fields.numbers(key);
  if (numbers.size() != 3) throw fields.wrong(key, "a value with its limits");
  return {numbers[0], numbers[1], numbers[2]};
}

Retraining retraining_of(const Json& json, const std::string& of_what) {
  Fields fields(json, "the retraining of " + of_what);
  Retraining out;
  out.epochs = count_of(fields, "epochs");
  out.steps = count_of(fields, "steps");
  out.samples = count_of(fields, "samples");
  out.seed = fields.natural("seed");
  out.data_hash = fields.text("data_hash");
  out.weights_hash = fields.text("weights_hash");
  out.loss = fields.text("loss");
  out.curve = fields.numbers("curve");
  for (const Json& weights : fields.list("weights")) {
    Fields of(weights, "a weight of the retraining of " + of_what);
    std::string layer = of.text("layer");
    RetrainedPart part = of.truth("bias") ? RetrainedPart::bias : RetrainedPart::weights;
    if (of.has("scales") && of.truth("scales")) part = RetrainedPart::scales;
    if (of.has("range") && of.truth("range")) part = RetrainedPart::range;
    out.weights.push_back({std::move(layer), part, tensor_of(of, "value")});
    of.end();
  }
  fields.end();
  return out;
}

RecordedPoint point_of(const Json& json, size_t index) {
  const std::string what = fmt::format("point {}", index);
  Fields fields(json, what);
  RecordedPoint out;
  StudyPoint& point = out.point;
  point.verified = true;
  point.name = fields.text("name");
  point.assignment = assignment_of(fields, "assignment", what);
  point.size = fields.number("size");
  point.on_front = fields.truth("on_front");
  point.time = interval_of(fields, "time");
  point.error = fields.number("error");
  point.sqnr = fields.number("sqnr");
  point.psnr = fields.number("psnr");
  point.agreement = interval_of(fields, "agreement");
  point.top1 = interval_of(fields, "top1");
  point.samples = count_of(fields, "samples");
  point.both_right = count_of(fields, "both_right");
  point.lost = count_of(fields, "lost");
  point.gained = count_of(fields, "gained");
  point.both_wrong = count_of(fields, "both_wrong");
  point.flips = count_of(fields, "flips");
  const Json& worst = fields.at("worst_class");
  if (!worst.is_number_integer()) throw fields.wrong("worst_class", "an integer");
  point.worst_class = worst.get<int64_t>();
  point.worst_class_drop = fields.number("worst_class_drop");
  point.user_metric = fields.number("user_metric");
  out.digest.main = fields.natural("main_output");
  out.digest.mean_squares = fields.numbers("mean_squares");
  for (const Json& of : fields.list("classes")) {
    if (!of.is_number_integer()) throw fields.wrong("classes", "a list of integers");
    out.digest.classes.push_back(of.get<int64_t>());
  }
  if (fields.has("retraining"))
    point.retraining = std::make_shared<const Retraining>(retraining_of(fields.at("retraining"), what));
  fields.end();
  return out;
}

RecordedChoice choice_of(const Json& json, size_t index) {
  const std::string what = fmt::format("choice {}", index);
  Fields fields(json, what);
  RecordedChoice out;
  out.budget = fields.text("budget");
  out.objective = fields.text("objective");
  out.preferences_hash = fields.text("preferences_hash");
  out.chosen = assignment_of(fields, "chosen", what);
  out.certificate = fields.text("certificate");
  if (fields.has("retraining")) out.retraining = fields.text("retraining");
  if (fields.has("retrained")) out.retrained = fields.truth("retrained");
  fields.end();
  return out;
}

RecordOrigin origin_of(const Json& json) {
  Fields fields(json, "origin");
  RecordOrigin out;
  out.model_hash = fields.text("model_hash");
  out.calibration_hash = fields.text("calibration_hash");
  out.verification_hash = fields.text("verification_hash");
  out.profile_hash = fields.text("profile_hash");
  out.device = fields.text("device");
  out.objective = fields.text("objective");
  out.metric = fields.text("metric");
  out.seed = fields.natural("seed");
  fields.end();
  return out;
}

// Records of older versions have 0 for times that were never measured.
bool has_no_times(const RecordedChoice& choice) {
  const Json certificate = Json::parse(choice.certificate, nullptr, false);
  if (!certificate.is_object() || !certificate.contains("points") || !certificate["points"].is_array()) return false;
  return std::any_of(certificate["points"].begin(), certificate["points"].end(), [](const Json& point) {
    return point.is_object() && point.contains("milliseconds") && point["milliseconds"].is_number() &&
           !(point["milliseconds"].get<double>() > 0);
  });
}

// Times of 0 become unknown, and choices made from them are dropped.
void forget_times_of_nothing(Record& record) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  for (RecordedPoint& of : record.points) {
    if (of.point.is_timed()) continue;
    of.point.time = {unknown, unknown, unknown};
    record.complete = false;
  }
  std::erase_if(record.choices, has_no_times);
}

Record record_of(const Json& json) {
  Fields fields(json, "the record");
  if (fields.text("kind") != kind) throw Fault{"is JSON, but not a record of hoist"};
  const uint64_t format = fields.natural("format");
  if (format != static_cast<uint64_t>(record_format))
    throw Fault{fmt::format("is a record of format {}, this hoist reads format {}", format, record_format)};
  Record out;
  out.hoist_version = fields.text("hoist_version");
  out.origin = origin_of(fields.at("origin"));
  out.complete = fields.truth("complete");
  out.all_timed = fields.truth("all_timed");
  out.output_power = fields.number("output_power");
  out.calibration_samples = count_of(fields, "calibration_samples");
  for (const Json& choice : fields.list("choices")) out.choices.push_back(choice_of(choice, out.choices.size()));
  for (const Json& note : fields.list("notes")) {
    out.notes.push_back(fields.text_of(note, "notes"));
  }
  for (const Json& point : fields.list("points")) out.points.push_back(point_of(point, out.points.size()));
  for (const Json& site : fields.list("sites")) out.sites.push_back(site_of(site, out.sites.size()));
  for (const Json& scaled : fields.list("scaled")) {
    Fields of(scaled, fmt::format("scaled value {}", out.factors.size()));
    std::string value = of.text("value");
    std::vector<double> factors;
    for (const Json& factor : of.list("factors")) factors.push_back(of.number_of(factor, "factors"));
    of.end();
    if (!out.factors.emplace(value, std::move(factors)).second) throw Fault{"value " + value + " is scaled twice"};
  }
  for (const Json& statistics : fields.list("statistics")) {
    auto [name, of] = statistics_of(statistics, out.statistics.size());
    if (!out.statistics.emplace(name, std::move(of)).second) throw Fault{"value " + name + " has statistics twice"};
  }
  for (const Json& times : fields.list("times")) out.times.push_back(times_of(times, out.times.size()));
  fields.end();
  return out;
}

}  // namespace

std::string record_text(const Record& record) {
  std::vector<Json> choices, notes, points, scaled, sites, statistics, times;
  for (const RecordedChoice& of : record.choices) choices.push_back(choice_json(of));
  for (const std::string& note : record.notes) notes.push_back(text_json(note));
  for (const RecordedPoint& of : record.points) points.push_back(point_json(of));
  for (const RecordedSite& site : record.sites) sites.push_back(site_json(site));
  for (const auto& [value, factors] : record.factors)
    scaled.push_back({{"value", text_json(value)}, {"factors", factors_json(factors)}});
  for (const auto& [name, of] : record.statistics) statistics.push_back(statistics_json(name, of));
  for (const RecordedTimes& of : record.times) times.push_back(times_json(of));
  const std::pair<const char*, std::string> parts[] = {
      {"kind", Json(kind).dump()},
      {"format", Json(record_format).dump()},
      {"hoist_version", text_json(record.hoist_version).dump()},
      {"origin", origin_json(record.origin).dump()},
      {"complete", Json(record.complete).dump()},
      {"all_timed", Json(record.all_timed).dump()},
      {"output_power", number_json(record.output_power).dump()},
      {"calibration_samples", Json(record.calibration_samples).dump()},
      {"choices", lines_text(choices)},
      {"notes", lines_text(notes)},
      {"points", lines_text(points)},
      {"scaled", lines_text(scaled)},
      {"sites", lines_text(sites)},
      {"statistics", lines_text(statistics)},
      {"times", lines_text(times)},
  };
  std::string out = "{";
  for (const auto& [key, text] : parts) out += fmt::format("{}\n  \"{}\": {}", out.size() > 1 ? "," : "", key, text);
  return out + "\n}\n";
}

Result<Record> parse_record(const std::string& text, const std::string& where) {
  const std::string hint = "compile without the record to make another one";
  if (text.empty()) return Diagnostic{where, "is empty", hint};
  try {
    Record out = record_of(Json::parse(text));
    HOIST_TRY_VOID(check_record(out, where));
    forget_times_of_nothing(out);
    return out;
  } catch (const Fault& fault) {
    return Diagnostic{where, fault.what, hint};
  } catch (const Json::parse_error& error) {
    return Diagnostic{where, fmt::format("is not JSON: the first error is at byte {} of {}", error.byte, text.size()),
                      hint};
  } catch (const Json::exception& error) {
    return Diagnostic{where, std::string("is not a record: ") + error.what(), hint};
  }
}

Result<Nothing> write_record(const std::filesystem::path& path, const Record& record) {
  return write_file(path, record_text(record));
}

Result<Record> read_record(const std::filesystem::path& path) {
  HOIST_TRY(const std::string text, read_file(path, largest_record));
  return parse_record(text, path.string());
}

}  // namespace hoist
