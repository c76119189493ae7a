// Tests the JSON form of a record: every bit is read back, and other texts are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "ir/base/temporary_folder.h"
#include "tools/study/record_json.h"

namespace hoist::record_test {

using testing::HasSubstr;

// Doubles of every magnitude, including the special ones; names of any bytes.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  double number() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double special[] = {0.0, -0.0, 1, -1, 0.1, infinity, -infinity, 5e-324, 1.7976931348623157e308};
    if (below(4) == 0) return special[below(std::size(special))];
    const double out = std::bit_cast<double>(engine_());
    return std::isnan(out) ? std::numeric_limits<double>::quiet_NaN() : out;
  }
  double finite() {
    const double out = number();
    return std::isfinite(out) ? out : 1.0 / 3;
  }
  std::string name() {
    std::string out = std::to_string(counter_++) + " ";  // makes them unique
    for (size_t i = below(8); i > 0; --i) out += static_cast<char>(below(2) == 0 ? below(256) : 'a' + below(26));
    return out;
  }
  size_t below(size_t n) { return engine_() % n; }
  uint64_t word() { return engine_(); }

 private:
  std::mt19937_64 engine_;
  int counter_ = 0;
};

RecordedPoint random_point(Random& random, const Assignment& assignment) {
  RecordedPoint out;
  StudyPoint& point = out.point;
  point.name = random.name();
  point.assignment = assignment;
  point.verified = true;
  point.on_front = random.below(2) == 0;
  for (double* number :
       {&point.size, &point.error, &point.sqnr, &point.psnr, &point.worst_class_drop, &point.user_metric,
        &point.time.low, &point.time.high, &point.agreement.value, &point.top1.low})
    *number = random.number();
  point.time.value = std::abs(random.finite()) + 1e-9;
  point.samples = 1000;
  for (int64_t* count : {&point.both_right, &point.lost, &point.gained, &point.both_wrong, &point.flips})
    *count = static_cast<int64_t>(random.below(1000));
  point.worst_class = static_cast<int64_t>(random.below(9)) - 1;
  if (random.below(3) == 0) {
    Retraining trained;
    trained.weights = {{random.name(), RetrainedPart::weights, Tensor::of<int64_t>(Scalar::i4, {3}, {-7, 0, 5})},
                       {random.name(), RetrainedPart::scales, Tensor::of<float>(Scalar::f32, {1}, {0.5F})},
                       {random.name(), RetrainedPart::range, Tensor::of<float>(Scalar::f32, {1}, {0.25F})},
                       {random.name(), RetrainedPart::bias, Tensor::of<float>(Scalar::f32, {2}, {0.1F, -3e-9F})}};
    trained.epochs = 3, trained.steps = 90, trained.samples = 1000, trained.seed = random.word();
    trained.data_hash = random.name(), trained.weights_hash = random.name(), trained.loss = random.name();
    trained.curve = {random.finite(), random.finite()};
    point.retraining = std::make_shared<const Retraining>(std::move(trained));
  }
  out.digest = {0, {static_cast<int64_t>(random.below(9))}, {random.number()}};
  return out;
}

Record random_record(uint64_t seed) {
  Random random(seed);
  Record out;
  out.hoist_version = random.name();
  out.origin = {random.name(), random.name(), "",           random.name(), random.name(),
                random.name(), random.name(), random.word()};
  out.complete = random.below(2) == 0;
  out.all_timed = random.below(2) == 0;
  out.calibration_samples = static_cast<int64_t>(random.below(1000));
  for (size_t i = random.below(3); i > 0; --i) out.notes.push_back(random.name());
  out.output_power = random.number();
  for (size_t i = random.below(3); i > 0; --i) out.factors[random.name()] = {random.number(), random.number()};
  for (size_t i = random.below(4); i > 0; --i) {
    ValueStatistics of;
    of.count = static_cast<int64_t>(random.word() >> 1);
    of.low = random.finite();
    of.high = random.finite();
    if (of.low > of.high) std::swap(of.low, of.high);
    of.mean = random.number();
    of.mean_square = random.number();
    for (size_t bin = random.below(5); bin > 0; --bin) of.histogram.push_back(random.word() >> 8);
    for (size_t channel = random.below(3); channel > 0; --channel)
      of.channels.push_back({of.low, of.high, random.number(), random.number()});
    of.count = std::numeric_limits<int64_t>::max();
    of.zeros = static_cast<int64_t>(random.word() >> 1);
    of.channel_axis = random.below(2) == 0 ? 1 : -1;
    for (size_t layer = random.below(3); layer > 0; --layer) {
      Tensor numbers(random.below(2) == 0 ? Scalar::i4 : Scalar::i8, {3, static_cast<int64_t>(1 + random.below(9))});
      for (int64_t k = 0; k < numbers.size(); ++k) numbers.set_integer(k, static_cast<int64_t>(random.word()));
      of.rounded[random.name()][random.name()] = std::make_shared<const Tensor>(std::move(numbers));
    }
    out.statistics[random.name()] = of;
  }
  for (size_t i = random.below(5); i > 0; --i) {
    RecordedSite& site = out.sites.emplace_back();
    site = {random.name(), random.number(), random.number(), random.number(), {}};
    for (size_t c = random.below(4); c > 0; --c) {
      Candidate candidate;
      candidate.rule = random.name();
      candidate.predicted_error = random.number();
      candidate.error_alone = random.number();
      candidate.local_error = random.number();
      candidate.time = random.number();
      candidate.bytes = random.number();
      candidate.clipped_share = random.number();
      candidate.clip_low = random.number();
      candidate.clip_high = random.number();
      candidate.proof = random.name();
      candidate.cost_class = random.name();
      candidate.stands = random.below(2) == 0;
      site.candidates.push_back(std::move(candidate));
    }
  }
  Assignment assignment;
  for (const RecordedSite& site : out.sites) {
    if (!site.candidates.empty()) assignment[site.key] = site.candidates[0].rule;
  }
  for (size_t i = random.below(3); i > 0; --i) {
    out.times.push_back({random.name(), random.name(), assignment, {}});
    for (size_t k = 0; k <= out.sites.size(); ++k) out.times.back().site_seconds.push_back(std::abs(random.finite()));
    out.choices.push_back({random.name(), random.name(), random.name(), assignment, random.name()});
  }
  if (!out.times.empty()) out.times[0].cost_class.clear();
  for (size_t i = random.below(3); i > 0; --i) out.points.push_back(random_point(random, assignment));
  if (!out.points.empty()) out.points[0].point.assignment.clear();
  return out;
}

bool same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

void expect_same(const Record& a, const Record& b) {
  EXPECT_EQ(a.origin, b.origin);
  EXPECT_EQ(a.hoist_version, b.hoist_version);
  EXPECT_EQ(a.choices, b.choices);
  EXPECT_EQ(a.times, b.times);
  EXPECT_EQ(a.notes, b.notes);
  EXPECT_TRUE(a.complete == b.complete && a.all_timed == b.all_timed);
  EXPECT_EQ(a.calibration_samples, b.calibration_samples);
  ASSERT_EQ(a.points.size(), b.points.size());
  for (size_t i = 0; i < a.points.size(); ++i) {
    const StudyPoint &p = a.points[i].point, &q = b.points[i].point;
    EXPECT_EQ(p.assignment, q.assignment);
    EXPECT_TRUE(p.name == q.name && p.lost == q.lost && p.flips == q.flips && p.worst_class == q.worst_class);
    EXPECT_TRUE(same(p.error, q.error) && same(p.time.low, q.time.low) && same(p.agreement.value, q.agreement.value));
    EXPECT_EQ(a.points[i].digest.classes, b.points[i].digest.classes);
    ASSERT_EQ(p.retraining == nullptr, q.retraining == nullptr);
    if (p.retraining != nullptr) {
      EXPECT_EQ(p.retraining->weights, q.retraining->weights);
      EXPECT_TRUE(p.retraining->seed == q.retraining->seed && p.retraining->curve == q.retraining->curve);
    }
  }
  EXPECT_TRUE(same(a.output_power, b.output_power));
  ASSERT_EQ(a.sites.size(), b.sites.size());
  for (size_t i = 0; i < a.sites.size(); ++i) {
    const RecordedSite &x = a.sites[i], &y = b.sites[i];
    EXPECT_EQ(x.key, y.key);
    EXPECT_TRUE(same(x.sensitivity, y.sensitivity) && same(x.time, y.time) && same(x.bytes, y.bytes));
    ASSERT_EQ(x.candidates.size(), y.candidates.size());
    for (size_t c = 0; c < x.candidates.size(); ++c) {
      const Candidate &p = x.candidates[c], &q = y.candidates[c];
      EXPECT_EQ(p.rule, q.rule);
      EXPECT_EQ(p.proof, q.proof);
      EXPECT_TRUE(p.cost_class == q.cost_class && p.stands == q.stands);
      EXPECT_TRUE(same(p.predicted_error, q.predicted_error) && same(p.error_alone, q.error_alone) &&
                  same(p.local_error, q.local_error) && same(p.time, q.time) && same(p.bytes, q.bytes) &&
                  same(p.clipped_share, q.clipped_share));
    }
  }
  ASSERT_EQ(a.factors.size(), b.factors.size());
  for (const auto& [value, factors] : a.factors) {
    ASSERT_TRUE(b.factors.contains(value));
    EXPECT_TRUE(std::equal(factors.begin(), factors.end(), b.factors.at(value).begin(), same)) << value;
  }
  ASSERT_EQ(a.statistics.size(), b.statistics.size());
  for (const auto& [name, x] : a.statistics) {
    ASSERT_TRUE(b.statistics.contains(name));
    const ValueStatistics& y = b.statistics.at(name);
    EXPECT_EQ(x.count, y.count);
    EXPECT_EQ(x.zeros, y.zeros);
    EXPECT_EQ(x.channel_axis, y.channel_axis);
    ASSERT_EQ(x.rounded.size(), y.rounded.size());
    for (const auto& [layer, rules] : x.rounded) {
      ASSERT_TRUE(y.rounded.contains(layer));
      ASSERT_EQ(rules.size(), y.rounded.at(layer).size());
      for (const auto& [rule, numbers] : rules) {
        ASSERT_TRUE(y.rounded.at(layer).contains(rule));
        EXPECT_EQ(*numbers, *y.rounded.at(layer).at(rule));
      }
    }
    EXPECT_EQ(x.histogram, y.histogram);
    EXPECT_TRUE(same(x.low, y.low) && same(x.high, y.high) && same(x.mean, y.mean) &&
                same(x.mean_square, y.mean_square));
    ASSERT_EQ(x.channels.size(), y.channels.size());
    for (size_t c = 0; c < x.channels.size(); ++c) {
      EXPECT_TRUE(same(x.channels[c].low, y.channels[c].low) && same(x.channels[c].high, y.channels[c].high) &&
                  same(x.channels[c].mean, y.channels[c].mean) &&
                  same(x.channels[c].mean_square, y.channels[c].mean_square));
    }
  }
}

TEST(RecordText, ComesBackToTheLastBit) {
  int read = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Record record = random_record(seed);
    const Result<Record> back = parse_record(record_text(record), "text");
    ASSERT_TRUE(back.ok()) << seed << ": " << back.errors()[0].text();
    expect_same(record, *back);
    EXPECT_EQ(record_text(*back), record_text(record));
    read += record.choices.empty() ? 0 : 1;
  }
  EXPECT_GT(read, 100);
}

TEST(RecordText, GoesThroughAFile) {
  const Result<TemporaryFolder> folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const Record record = random_record(3);
  ASSERT_TRUE(write_record(folder->path() / "record.json", record).ok());
  const Result<Record> back = read_record(folder->path() / "record.json");
  ASSERT_TRUE(back.ok());
  expect_same(record, *back);
  EXPECT_FALSE(read_record(folder->path() / "other.json").ok());
}

std::string error(const std::string& text) {
  const Result<Record> found = parse_record(text, "file");
  return found.ok() ? "" : found.errors()[0].text();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return place == std::string::npos ? text : text.replace(place, from.size(), to);
}

Candidate candidate(const std::string& rule) {
  Candidate out;
  out.rule = rule;
  return out;
}

Record small() {
  Record out;
  out.origin.model_hash = "m";
  ValueStatistics& statistics = out.statistics["x"];
  statistics.count = 3;
  statistics.low = -1;
  statistics.high = 1.5;
  statistics.histogram = {2, 1};
  statistics.channels = {{-1, 1, 0, 0.5}};
  statistics.rounded["conv1"]["w8a8-adaptive"] =
      std::make_shared<const Tensor>(Tensor::of(Scalar::i8, {3}, std::vector<int>{1, -2, 127}));
  out.sites = {{"value x", 1, 2, 3, {candidate("f16")}}};
  out.choices = {{"sqnr=30dB", "time", "", {{"value x", "f16"}}, "{}"}};
  return out;
}

TEST(RecordText, IsReadable) {
  EXPECT_THAT(record_text(small()), HasSubstr("\n    {\"site\":\"value x\",\"sensitivity\":1.0,\"time\":2.0,"));
}

TEST(RecordText, TruncatedTextIsRefused) {
  const std::string text = record_text(small());
  EXPECT_THAT(error(""), HasSubstr("file: is empty"));
  for (size_t length = 1; length + 2 < text.size(); ++length)
    EXPECT_THAT(error(text.substr(0, length)), HasSubstr("file: is not JSON: the first error is at byte")) << length;
}

TEST(RecordText, ChangedTextIsRefused) {
  const std::string text = record_text(small());
  ASSERT_EQ(error(text), "");
  EXPECT_THAT(error(replaced(text, "hoist record", "other")), HasSubstr("not a record of hoist"));
  EXPECT_THAT(error(replaced(text, "\"format\": 5", "\"format\": 1")),
              HasSubstr("format 1, this hoist reads format 5"));
  EXPECT_THAT(error(replaced(text, "\"format\": 5", "\"format\": -1")), HasSubstr("format of the record"));
  EXPECT_THAT(error(replaced(text, "\"format\"", "\"fromat\"")), HasSubstr("has no format"));
  EXPECT_THAT(error(replaced(text, "\"high\":1.5", "\"high\":\"much\"")),
              HasSubstr("high of statistics 0 is not a number"));
  EXPECT_THAT(error(replaced(text, "\"high\":1.5", "\"high\":1e999")), HasSubstr("is not a record"));
  EXPECT_THAT(error(replaced(text, "[2,1]", "[2,-1]")), HasSubstr("list of counts"));
  EXPECT_THAT(error(replaced(text, "[2,1]", "[2,1.5]")), HasSubstr("list of counts"));
  EXPECT_THAT(error(replaced(text, "[2,1]", "[2,9]")), HasSubstr("histogram"));
  EXPECT_THAT(error(replaced(text, "[2,1]", "7")), HasSubstr("is not a list"));
  EXPECT_THAT(error(replaced(text, "[-1.0,1.0,0.0,0.5]", "[-1.0,1.0,0.0]")),
              HasSubstr("[low, high, mean, mean square]"));
  EXPECT_THAT(error(replaced(text, "\"count\":3", "\"count\":18446744073709551615")), HasSubstr("not a count"));
  EXPECT_THAT(error(replaced(text, "\"seed\":0", "\"seed\":0,\"more\":1")),
              HasSubstr("origin has 9 parts, expected 8"));
  EXPECT_THAT(error(replaced(text, "\"site\":\"value x\",\"rule\":\"f16\"", "\"site\":\"value x\",\"rule\":\"f8\"")),
              HasSubstr("f8, which is not a candidate"));
  EXPECT_THAT(error(replaced(text, "\"model_hash\":\"m\"", "\"model_hash\":[300]")), HasSubstr("is not a text"));
  EXPECT_THAT(error(replaced(text, "\"zeros\":0", "\"zeros\":-1")), HasSubstr("zeros of statistics 0"));
  EXPECT_THAT(error(replaced(text, "\"zeros\":0", "\"zeros\":4")), HasSubstr("4 zeros among 3 elements"));
  EXPECT_THAT(error(replaced(text, "\"channel_axis\":1", "\"channel_axis\":1.5")), HasSubstr("not an integer"));
  EXPECT_THAT(error("[]"), HasSubstr("the record is not an object"));
  EXPECT_THAT(error(std::string(100000, '[')), HasSubstr("is not JSON"));
}

// A record as earlier versions left it when they were killed between verifying and timing.
TEST(RecordText, TimesOfZeroWereNeverMeasured) {
  Record record = small();
  record.complete = true;
  record.points.resize(2);
  record.points[0].point.name = "reference";
  record.points[1].point.assignment = {{"value x", "f16"}};
  for (RecordedPoint& of : record.points) {
    of.point.time = {0, 0, 0};
    of.digest.mean_squares = {1};
  }
  record.choices[0].certificate = R"({"met": true, "points": [{"name": "reference", "milliseconds": 0.0}]})";
  record.choices.push_back(record.choices[0]);
  record.choices[1].budget = "sqnr=20dB";
  record.choices[1].certificate = R"({"met": true, "points": [{"name": "reference", "milliseconds": 0.5}]})";
  const auto read = parse_record(record_text(record), "file");
  ASSERT_TRUE(read.ok()) << read.errors()[0].text();
  EXPECT_FALSE(read->complete);
  EXPECT_FALSE(read->points[0].point.is_timed());
  EXPECT_TRUE(std::isnan(read->points[1].point.time.value));
  ASSERT_EQ(read->choices.size(), 1u);
  EXPECT_EQ(read->choices[0].budget, "sqnr=20dB");
}

TEST(RecordText, ChangedWeightsAreRefused) {
  const std::string text = record_text(small()), numbers = "constant [3]i8 {1, -2, 127}";
  const std::string whole = "{\"layer\":\"conv1\",\"rule\":\"w8a8-adaptive\",\"numbers\":\"" + numbers + "\"}";
  const std::string no_constant = "numbers of rounded weights of the layer that reads x is not a constant";
  for (const char* other : {"", "constant [3]i8 {1, -2, 128}", "constant [4]i8 {1, -2, 127}", "constant [3]i8 {1, -2",
                            "1f32", "constant [3000000]i8 #\\\"AAAA\\\"", "%x : [3]i8"})
    EXPECT_THAT(error(replaced(text, numbers, other)), HasSubstr(no_constant)) << other;
  EXPECT_THAT(error(replaced(text, "\"" + numbers + "\"", "7")), HasSubstr("is not a text"));
  EXPECT_THAT(error(replaced(text, whole, "7")), HasSubstr("is not an object"));
  EXPECT_THAT(error(replaced(text, whole, whole + "," + whole)),
              HasSubstr("of conv1 under w8a8-adaptive appear twice"));
  EXPECT_THAT(error(replaced(text, "\"rule\":\"w8a8-adaptive\",", "")), HasSubstr("has no rule"));
}

}  // namespace hoist::record_test
