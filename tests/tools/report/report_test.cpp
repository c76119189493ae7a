// Tests the report of a study: JSON, terminal text and the page, also with malicious names; and clicks through the page
// if a browser is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "ir/base/temporary_folder.h"
#include "tests/tools/program.h"
#include "tests/tools/study/synthetic_study.h"
#include "tools/base/files.h"
#include "tools/report/compare.h"
#include "tools/report/kernels.h"
#include "tools/study/record_json.h"

namespace hoist::report_test {

using testing::HasSubstr;
using testing::Not;

constexpr const char* attack = "</script><script>window.hostile=1</script><img src=x onerror=window.hostile=1><!--";

size_t occurrences(const std::string& text, const std::string& of) {
  size_t count = 0;
  for (size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++count;
  return count;
}

// Every text that a model or a user can influence.
SyntheticStudy untrusted_study() {
  SyntheticStudy made = synthetic_study();
  const std::string name = attack;
  Study& study = made.study;
  study.model = study.summary = study.device = study.budget = study.model_hash = name;
  study.notes = {name, "\x1b[2J\xff\xfe"};
  StudySite& site = study.sites[1];
  site.site.layer = site.site.value = site.operation = name;
  site.candidates[0].rule = site.candidates[0].proof = site.chosen = name;
  study.points[2].name = name;
  study.points[2].assignment[name] = name;
  const std::string before = made.network[1].name;
  made.network[1].name = made.layers[1].name = made.layers[1].operation = name;
  made.layers[1].chosen.source = name;
  return made;
}

// One kernel for each contraction, twice as fast in the chosen model.
ReportKernels kernels_of(const SyntheticStudy& made) {
  ReportKernels out;
  out.peaks = {4e11, {{1 << 16, 2e11}, {1 << 26, 2e10}}, 5e-6};
  for (const ReportLayer& layer : made.layers) {
    if (layer.reads.empty()) continue;
    const auto number = static_cast<int64_t>(out.chosen.size());
    const int64_t operations = 30'000'000 >> number % 5 * 2, bytes = 1 << (20 - number % 7);
    const double seconds =
        roof_of(out.peaks, {operations, bytes}).seconds * (1.2 + 0.1 * static_cast<double>(number % 4));
    out.reference.push_back({layer.name, {layer.name}, 2 * seconds, operations, bytes});
    out.chosen.push_back({layer.name, {layer.name}, seconds, operations, bytes});
  }
  return out;
}

std::string page_of(const SyntheticStudy& made, size_t most_nodes = 1500) {
  const auto picture = lay_out(made.network, most_nodes);
  EXPECT_TRUE(picture.ok()) << picture.errors()[0].text();
  return report_page(made.study, made.layers, picture.ok() ? *picture : NetworkPicture{}, kernels_of(made));
}

TEST(Report, JsonHasTheNumbersOfTheStudy) {
  const SyntheticStudy made = synthetic_study();
  const nlohmann::ordered_json json = to_json(made.study);
  ASSERT_EQ(json["points"].size(), made.study.points.size());
  for (size_t i = 0; i < made.study.points.size(); ++i) {
    const StudyPoint& point = made.study.points[i];
    EXPECT_EQ(json["points"][i]["name"], point.name);
    EXPECT_EQ(json["points"][i]["time"]["low"], point.time.low);
    EXPECT_EQ(json["points"][i]["lost"], point.lost);
    if (point.samples > 0) {
      const double drop = static_cast<double>(point.lost - point.gained) / static_cast<double>(point.samples);
      EXPECT_DOUBLE_EQ(json["points"][i]["drop"]["value"].get<double>(), drop);
    }
    EXPECT_EQ(json["points"][i]["assignment"].size(), point.assignment.size());
  }
  ASSERT_EQ(json["sites"].size(), made.study.sites.size());
  const StudySite& site = made.study.sites[2];
  EXPECT_EQ(json["sites"][2]["key"], site.site.key());
  EXPECT_EQ(json["sites"][2]["candidates"][1]["predicted_error"], site.candidates[1].predicted_error);
  EXPECT_EQ(json["sites"][2]["statistics"]["histogram"].size(), site.statistics.histogram.size());
  EXPECT_EQ(json["seed"], made.study.seed);
}

TEST(Report, WhatIsNoFiniteNumberIsNull) {
  Study study;
  study.output_power = std::nan("");
  study.points.emplace_back();
  study.points[0].sqnr = HUGE_VAL;
  study.points[0].top1 = {std::nan(""), 0, 1};
  const nlohmann::ordered_json json = to_json(study);
  EXPECT_TRUE(json["output_power"].is_null());
  EXPECT_TRUE(json["points"][0]["sqnr"].is_null());
  EXPECT_TRUE(json["points"][0]["top1"]["value"].is_null());
  EXPECT_EQ(json["points"][0]["top1"]["high"], 1);
}

TEST(Report, SummaryNamesPointsSitesAndTheBudget) {
  SyntheticStudy made = synthetic_study();
  std::string text = summary_text(made.study);
  EXPECT_THAT(text, HasSubstr("budget top1=0.5% met"));
  EXPECT_THAT(text, HasSubstr("* front 6"));
  EXPECT_THAT(text, HasSubstr("21 of 24 sites changed"));
  EXPECT_THAT(text, HasSubstr("note: calibration data are training images"));
  made.study.budget_met = false;
  text = summary_text(made.study);
  EXPECT_THAT(text, HasSubstr("budget top1=0.5% not met; best point is front 6"));
}

TEST(Report, SummaryHasTheColumnsThatHaveNumbers) {
  SyntheticStudy made = synthetic_study();
  const std::string of_scores = summary_text(made.study);
  EXPECT_THAT(of_scores, HasSubstr("agreement (95 % interval)"));
  EXPECT_THAT(of_scores, Not(HasSubstr("PSNR")));
  for (StudyPoint& point : made.study.points) {
    point.top1 = point.agreement = {};
    point.psnr = 41.25;
  }
  const std::string of_pictures = summary_text(made.study);
  EXPECT_THAT(of_pictures, Not(HasSubstr("agreement")));
  EXPECT_THAT(of_pictures, Not(HasSubstr("worst class")));
  EXPECT_THAT(of_pictures, HasSubstr("41.2 dB"));
}

TEST(Report, SummaryLeavesTheTerminalAlone) {
  const std::string text = summary_text(untrusted_study().study);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("\\x1b[2J"));
}

TEST(Report, PageNeedsNothingBesideItself) {
  const std::string page = page_of(synthetic_study());
  // The SVG namespace looks like an address.
  EXPECT_EQ(occurrences(page, "http://") + occurrences(page, "https://"),
            occurrences(page, "http://www.w3.org/2000/svg"));
  for (const char* outside : {"src=", "@import", "url(//", "<link", "<iframe"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_EQ(occurrences(page, "<!--"), 0U) << "marks of the template";
  EXPECT_THAT(page, HasSubstr("18446744073709551557")) << "the seed has more digits than JavaScript's numbers";
}

TEST(Report, HostileNamesStayText) {
  const std::string page = page_of(untrusted_study());
  EXPECT_EQ(occurrences(page, "</script>"), 2U) << "of the data and of the program";
  EXPECT_EQ(occurrences(page, "<script"), 2U);
  EXPECT_EQ(occurrences(page, "<img"), 0U);
  EXPECT_EQ(occurrences(page, "<!--"), 0U);
}

TEST(Report, PageHoldsEachTextOnce) {
  SyntheticStudy made = synthetic_study();
  for (ReportLayer& layer : made.layers) layer.chosen.source = "a kernel of many layers";
  EXPECT_EQ(occurrences(page_of(made), "a kernel of many layers"), 1U);
}

TEST(Report, AnEmptyStudyIsAPage) {
  EXPECT_THAT(report_page(Study{}, {}), HasSubstr("</html>"));
  EXPECT_THAT(summary_text(Study{}), HasSubstr("0 of 0 sites changed"));
}

TEST(Picture, EveryLayerHasAPlaceBelowWhatItReads) {
  const std::vector<NamedCall> network = synthetic_study().network;
  const auto picture = lay_out(network);
  ASSERT_TRUE(picture.ok()) << picture.errors()[0].text();
  ASSERT_EQ(picture->nodes.size(), network.size());
  size_t reads = 0;  // from other layers: all but the first layer's input
  for (const NamedCall& layer : network) reads += layer.inputs.size();
  EXPECT_EQ(picture->edges.size(), reads - 1);
  for (const auto& node : picture->nodes) {
    EXPECT_GE(node.x - node.width / 2, -1);
    EXPECT_LE(node.x + node.width / 2, picture->width + 1);
  }
  for (const auto& edge : picture->edges) {
    EXPECT_LT(picture->nodes[edge.from].y, picture->nodes[edge.to].y);
    EXPECT_EQ(edge.points.size() % 3, 1U);
  }
}

TEST(Picture, LargeModelsAreCollapsed) {
  std::vector<NamedCall> network;
  for (int i = 0; i < 5000; ++i) {
    const std::string last = i == 0 ? "input" : "value " + std::to_string(i - 1);
    const std::string older = i < 5 ? "input" : "value " + std::to_string(i - 5);
    network.push_back({"layer " + std::to_string(i), "Add", "", {}, {last, older}, {"value " + std::to_string(i)}});
  }
  const auto picture = lay_out(network, 300);
  ASSERT_TRUE(picture.ok()) << picture.errors()[0].text();
  EXPECT_LE(picture->nodes.size(), 300U);
  size_t layers = 0;
  for (const auto& node : picture->nodes) layers += node.layers.size();
  EXPECT_EQ(layers, network.size());
}

TEST(Picture, WithoutGraphvizTheMessageSaysWhatToInstall) {
  const std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  setenv("PATH", "/nonexistent", 1);
  const auto picture = lay_out(synthetic_study().network);
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(picture.ok());
  EXPECT_THAT(picture.errors()[0].text(), HasSubstr("dot: cannot be started"));
  EXPECT_THAT(picture.errors()[0].text(), HasSubstr("install graphviz"));
}

// A record of the corpus, and one of the same model on another device, without a choice.
std::pair<Record, Record> two_records() {
  auto text = read_file(HOIST_SOURCE_DIR "/tests/fuzz/corpus/record/choice.json");
  EXPECT_TRUE(text.ok());
  auto record = parse_record(text.ok() ? *text : "", "choice.json");
  EXPECT_TRUE(record.ok()) << record.errors()[0].text();
  if (!record.ok()) return {};
  Record other = *record;
  other.origin.device = other.origin.model_hash = attack;
  for (RecordedPoint& each : other.points) each.point.time.value *= 2;
  for (RecordedChoice& each : other.choices) each.chosen.clear();
  RecordedSite alone = other.sites[0];
  alone.key = attack;
  other.sites.push_back(alone);
  return {*record, other};
}

NamedRecord with_last_choice(const std::string& name, const Record& record) {
  return {name, &record, record.choices.empty() ? nullptr : &record.choices.back()};
}

TEST(Compare, PointsAndSitesStandBesideEachOther) {
  const auto [a, b] = two_records();
  ASSERT_FALSE(a.points.empty());
  const nlohmann::ordered_json json = to_json(with_last_choice("a.json", a), with_last_choice("b.json", b));
  ASSERT_EQ(json["points"].size(), a.points.size());
  for (size_t i = 0; i < a.points.size(); ++i) {
    EXPECT_EQ(json["points"][i]["name"], a.points[i].point.name);
    EXPECT_EQ(json["points"][i]["seconds"][1].get<double>(), 2 * json["points"][i]["seconds"][0].get<double>());
  }
  ASSERT_EQ(json["sites"].size(), b.sites.size());
  size_t changed = 0;
  for (const auto& [key, rule] : a.choices.back().chosen) changed += rule.empty() ? 0 : 1;
  ASSERT_GT(changed, 0U);
  for (size_t i = 0; i < changed; ++i)
    EXPECT_NE(json["sites"][i]["rules"][0], json["sites"][i]["rules"][1]) << "what differs stands first";
  EXPECT_NE(json["records"][0]["chosen"], json["records"][1]["chosen"]);
  for (const auto& site : json["sites"]) {
    if (site["key"] != attack) continue;
    EXPECT_TRUE(site["rules"][0].is_null());
    EXPECT_EQ(site["rules"][1], "");
  }
}

TEST(Compare, ThePageTrustsNoText) {
  const auto [a, b] = two_records();
  const std::string page = comparison_page(with_last_choice(attack, a), with_last_choice("b.json", b));
  EXPECT_EQ(occurrences(page, "<script"), 0U);
  EXPECT_EQ(occurrences(page, "<img"), 0U);
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("The studies are of different models."));
  EXPECT_THAT(page, HasSubstr("chosen in A"));
  EXPECT_THAT(page, HasSubstr("</html>"));
  const Record nothing;
  EXPECT_THAT(comparison_page(with_last_choice("a", nothing), with_last_choice("b", nothing)),
              HasSubstr("No point was timed."));
}

TEST(Compare, TheCommandTakesTwoRecords) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string record = HOIST_SOURCE_DIR "/tests/fuzz/corpus/record/choice.json",
                    page = (folder->path() / "c.html").string(), json = (folder->path() / "c.json").string();
  Ran ran = run_hoist({"report", "--compare", record, record, "-o", page, "--json", json});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(read_file(page).ok());
  EXPECT_EQ(nlohmann::json::parse(*read_file(json))["records"].size(), 2U);
  EXPECT_EQ(run_hoist({"report", "--compare", record, page, "-o", page}).code, 3);
  const std::string alone = (folder->path() / "alone.html").string();
  EXPECT_EQ(run_hoist({"report", "--compare", record, record, "-o", alone, "--json", folder->path().string()}).code, 3);
  EXPECT_FALSE(read_file(alone).ok()) << "nothing is half-written";
  EXPECT_EQ(run_hoist({"report", "--compare", record}).code, 2);
  EXPECT_EQ(run_hoist({"report", "m.onnx", "--compare", record, record}).code, 2);
  ran = run_hoist({"report"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("model"));
}

std::string page_of_kernels() {
  Peaks peaks{4e11, {{1 << 16, 2e11}, {1 << 26, 2e10}}, 5e-6};
  return kernels_page("resnet.onnx", "cpu-example",
                      {{"conv1", {"conv1", "relu1"}, 2e-4, 60'000'000, 1 << 20},
                       {attack, {attack}, 1e-4, 1'000'000, 4 << 20},
                       {"softmax", {"softmax"}, 6e-6, 5000, 8000},
                       {"host step", {"text"}, 1e-6, 0, 0}},
                      peaks);
}

TEST(Kernels, EachHasItsPlaceInTheRunAndUnderTheRoof) {
  const std::string page = page_of_kernels();
  EXPECT_EQ(occurrences(page, "<rect class=\"whole\""), 4U) << "all of them in the timeline";
  EXPECT_EQ(occurrences(page, "<circle"), 3U) << "those that compute under the roof";
  EXPECT_EQ(occurrences(page, "class=\"roof\""), 2U) << "a line for each memory";
  // 60 million operations in at least 150 us, of 200: arithmetic. 4 MiB in at least 0.21 ms: memory.
  EXPECT_THAT(page, HasSubstr("conv1: 200 µs, 65 % of the run, bound by arithmetic (150 µs)"));
  EXPECT_THAT(page, HasSubstr("bound by memory (210 µs)"));
  EXPECT_THAT(page, HasSubstr("softmax: 6.00 µs, 2 % of the run, bound by launch (5.00 µs)"));
  EXPECT_EQ(occurrences(page, "<script") + occurrences(page, "<img"), 0U);
  EXPECT_THAT(kernels_page("m", "d", {}, {1, {{1, 1}}, 1}), HasSubstr("There are no kernels."));
}

TEST(Kernels, NoneIsQuickerThanTheDeviceAtItsBest) {
  const Peaks peaks{4e11, {{1 << 16, 2e11}}, 5e-6};
  EXPECT_EQ(peaks_along_with(peaks, {{"a", {"a"}, 6e-6, 10, 10}}).launch, 5e-6);
  EXPECT_EQ(peaks_along_with(peaks, {{"a", {"a"}, 6e-6, 10, 10}, {"b", {"b"}, 1e-6, 10, 10}}).launch, 1e-6);
  EXPECT_EQ(peaks_along_with(peaks, {{"of the host", {"c"}, 1e-7, 0, 0}}).launch, 5e-6);

  const Peaks levels{4e11, {{1 << 16, 2e11}, {1 << 26, 2e10}}, 5e-6, 2e12};
  const std::vector<TimedKernel> kernels = {{"products", {"p"}, 1e-3, {500'000'000, 1 << 10}},
                                            {"in a cache", {"c"}, 1e-4, {1, 1 << 23}},
                                            {"of bytes", {"b"}, 1e-4, {300'000'000, 1 << 10, true}},
                                            {"beyond all", {"d"}, 1e-3, {1, 1 << 27}}};
  const Peaks raised = peaks_along_with(levels, kernels);
  for (const TimedKernel& kernel : kernels)
    EXPECT_LE(roof_of(raised, kernel.work).seconds, kernel.seconds * (1 + 1e-12)) << kernel.name;
  EXPECT_EQ(raised.operations, 5e11);
  EXPECT_EQ(roof_of(raised, {1, 1 << 12}).seconds, 5e-6);
  EXPECT_DOUBLE_EQ(roof_of(raised, {1, 1 << 22}).seconds, (1 << 22) / (8.388608e10));
}

TEST(Kernels, ProductsOfBytesHaveARoofOfTheirOwn) {
  const Peaks peaks{4e11, {{1 << 16, 2e11}, {1 << 26, 2e10}}, 5e-6, 2e12};
  const KernelWork floats{60'000'000, 1 << 10}, bytes{60'000'000, 1 << 10, true};
  EXPECT_DOUBLE_EQ(roof_of(peaks, floats).seconds, 150e-6);
  EXPECT_DOUBLE_EQ(roof_of(peaks, bytes).seconds, 30e-6);
  const auto roofs = [&](const KernelWork& work) {
    return occurrences(kernels_page("m", "d", {{"conv", {"conv"}, 2e-4, work}}, peaks), "class=\"roof\"");
  };
  EXPECT_EQ(roofs(floats), 2U);
  EXPECT_EQ(roofs(bytes), 3U);
  // If products of bytes are not faster, their roof is that of floats.
  EXPECT_DOUBLE_EQ(roof_of({4e11, {{1 << 16, 2e11}}, 5e-6, 1e11}, bytes).seconds, 150e-6);
}

TEST(Kernels, AReportHasThoseOfBothForms) {
  const SyntheticStudy made = synthetic_study();
  const ReportKernels kernels = kernels_of(made);
  const std::string section = kernels_section(kernels);
  EXPECT_EQ(occurrences(section, "<rect class=\"whole\""), 2 * made.layers.size());
  EXPECT_EQ(occurrences(section, "<circle"), 2 * made.layers.size());
  EXPECT_THAT(section, HasSubstr("<a href=\"#layer=stage2%2Fconv1\">"));
  const auto json = to_json(kernels);
  ASSERT_EQ(json["chosen"].size(), made.layers.size());
  EXPECT_EQ(json["chosen"][0]["seconds"], kernels.chosen[0].seconds);
  EXPECT_EQ(json["reference"][0]["bound"], "arithmetic");
  EXPECT_EQ(json["reference"][4]["bound"], "launch");
  EXPECT_THAT(kernels_section({}), HasSubstr("not timed"));
}

TEST(Kernels, WhatTuningBoughtStandsBesideWhatRulesBought) {
  ReportKernels kernels;
  kernels.peaks = {4e11, {{1 << 16, 2e11}}, 5e-6};
  // The model's matmul is one kernel, and fused with its activation in the chosen model; tuned it is three kernels, one
  // of which contains the sum.
  kernels.reference = {{"a", {"a"}, 8e-6, 10, 10}, {"r", {"r"}, 2e-6, 10, 10}, {"b<", {"b<"}, 4e-6, 10, 10}};
  kernels.chosen = {{"a", {"a", "r"}, 5e-6, 10, 10}, {"b<", {"b<"}, 4e-6, 10, 10}};
  EXPECT_EQ(occurrences(kernels_section(kernels), "bought"), 0u);
  EXPECT_FALSE(to_json(kernels).contains("bought"));
  kernels.tuned = {{"a", {"a"}, 1e-6, 10, 10}, {"a_2", {"a", "r"}, 1e-6, 10, 10}, {"b<", {"b<"}, 4e-6, 10, 10}};
  const std::vector<BoughtTime> bought = bought_times(kernels);
  ASSERT_EQ(bought.size(), 2u);
  EXPECT_THAT(bought[0].layers, testing::ElementsAre("a", "r"));
  EXPECT_DOUBLE_EQ(bought[0].reference, 10e-6);
  EXPECT_DOUBLE_EQ(bought[0].chosen, 5e-6);
  EXPECT_DOUBLE_EQ(bought[0].tuned, 2e-6);
  EXPECT_DOUBLE_EQ(bought[1].tuned, 4e-6);
  const std::string section = kernels_section(kernels);
  EXPECT_THAT(section, HasSubstr("<th scope=\"row\">a, r</th>"));
  EXPECT_THAT(section, HasSubstr("<td>0.50</td><td>0.40</td></tr>"));
  EXPECT_THAT(section, HasSubstr("<th scope=\"row\">b&lt;</th>"));
  EXPECT_THAT(section, HasSubstr("<td>0.64</td><td>0.67</td></tr>")) << "of all kernels: 14 us, 9 and 6";
  EXPECT_THAT(section, HasSubstr("id=\"kernels-tuned\""));
  EXPECT_EQ(occurrences(section, "<rect class=\"whole\""), 8u);
  EXPECT_EQ(to_json(kernels)["bought"][0]["tuned_seconds"], bought[0].tuned);
  EXPECT_EQ(to_json(kernels)["tuned"].size(), 3u);
}

// The page of the built program, with kernels that the device has run.
TEST(Report, TheCommandTimesKernels) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string models = HOIST_SOURCE_DIR "/models/digits_fully_connected",
                    page = (folder->path() / "r.html").string();
  const Ran ran = run_hoist({"report", models + ".onnx", "--target", "native", "--budget", "agreement=99%",
                             "--calibrate", models + "_calibration.npz", "--time", "10", "-o", page, "--json", "-"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto kernels = nlohmann::json::parse(ran.out)["kernels"];
  ASSERT_FALSE(kernels["chosen"].empty());
  size_t operations = 0;
  for (const char* form : {"chosen", "reference"}) {
    for (const auto& kernel : kernels[form]) {
      EXPECT_GT(kernel["seconds"].get<double>(), 0);
      operations += kernel["operations"].get<size_t>();
    }
  }
  EXPECT_GT(operations, 2 * 6000U) << "of three products";
  EXPECT_GT(kernels["peaks"]["operations_per_second"].get<double>(), 1e9);
  const auto text = read_file(page);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(occurrences(*text, "<rect class=\"whole\""), kernels["chosen"].size() + kernels["reference"].size());
}

TEST(Report, ABrowserClicksThroughThePage) {
  const Ran browser = run_shell("command -v chromium || command -v chromium-browser || command -v google-chrome");
  if (browser.code != 0) GTEST_SKIP() << "there is no Chromium; the Debian package chromium has one";
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const auto page = folder->path() / "report.html", hostile = folder->path() / "hostile.html",
             empty = folder->path() / "empty.html", collapsed = folder->path() / "collapsed.html";
  ASSERT_TRUE(write_file(page, page_of(synthetic_study())).ok());
  ASSERT_TRUE(write_file(hostile, page_of(untrusted_study())).ok());
  ASSERT_TRUE(write_file(empty, report_page(Study{}, {})).ok());
  ASSERT_TRUE(write_file(collapsed, page_of(synthetic_study(), 8)).ok());
  const auto comparison = folder->path() / "comparison.html";
  const auto [a, b] = two_records();
  ASSERT_TRUE(
      write_file(comparison, comparison_page(with_last_choice("cpu.json", a), with_last_choice("gpu.json", b))).ok());
  const auto kernels = folder->path() / "kernels.html";
  ASSERT_TRUE(write_file(kernels, page_of_kernels()).ok());
  const char* pictures = std::getenv("HOIST_REPORT_PICTURES");  // a folder for the browser's screenshots
  std::string command = "python3 '" HOIST_SOURCE_DIR "/tests/tools/report_browser.py'";
  for (const std::string& word :
       {browser.out.substr(0, browser.out.find('\n')), page.string(), hostile.string(), empty.string(),
        collapsed.string(), comparison.string(), kernels.string(), std::string(pictures != nullptr ? pictures : "")}) {
    command += " '" + word + "'";
  }
  const Ran ran = run_shell(command);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

}  // namespace hoist::report_test
