#include "tests/tools/study/synthetic_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "neural_rules/neural_rules.h"

namespace hoist {
namespace {

constexpr int64_t samples = 744;
constexpr double power = 14.2;

void add_layer(std::vector<NamedCall>& layers, const std::string& name, const std::string& operation,
               const std::vector<std::string>& inputs) {
  layers.push_back({name, operation, "", {}, inputs, {name + "_out"}});
}

std::vector<NamedCall> residual_network() {
  std::vector<NamedCall> layers;
  add_layer(layers, "stem/conv", "Conv", {"image"});
  add_layer(layers, "stem/relu", "Relu", {"stem/conv_out"});
  std::string last = "stem/relu_out";
  for (int stage = 1; stage <= 3; ++stage) {
    const auto name = [&](const std::string& part) { return fmt::format("stage{}/{}", stage, part); };
    add_layer(layers, name("conv1"), "Conv", {last});
    add_layer(layers, name("relu1"), "Relu", {name("conv1_out")});
    add_layer(layers, name("conv2"), "Conv", {name("relu1_out")});
    if (stage > 1) add_layer(layers, name("shortcut"), "Conv", {last});
    add_layer(layers, name("add"), "Add", {name("conv2_out"), stage > 1 ? name("shortcut_out") : last});
    add_layer(layers, name("relu2"), "Relu", {name("add_out")});
    last = name("relu2_out");
  }
  add_layer(layers, "head/pool", "GlobalAveragePool", {last});
  add_layer(layers, "head/flatten", "Flatten", {"head/pool_out"});
  add_layer(layers, "head/gelu", "Gelu", {"head/flatten_out"});
  add_layer(layers, "head/dense", "Gemm", {"head/gelu_out"});
  add_layer(layers, "head/softmax", "Softmax", {"head/dense_out"});
  return layers;
}

// Noise 0: the format is exact. Speed 0: it was not measured.
struct Format {
  const char* rule;
  double noise, speed, size;
  const char* proof;
};

std::vector<Format> formats_of(SiteKind kind) {
  switch (kind) {
    case SiteKind::product:
      return {{"f16-weights", 2e-8, 0.97, 0.5, "256 samples"},
              {"w8a16", 4e-6, 0.71, 0.25, "sums stay below 2^31: 9.1e8"},
              {"w8a8", 9e-5, 0.42, 0.25, "sums stay below 2^31: 4.2e6"},
              {"w8a8-dynamic", 6e-5, 0.58, 0.25, "sums stay below 2^31: 4.2e6"},
              {"w4g32a16", 8e-4, 0.66, 0.14, "256 samples"},
              {"bf16-weights", 3e-6, 0, 0.5, "predicted from statistics"}};
    case SiteKind::value:
      return {{"f16", 0, 0.9, 0.5, "largest 9.4, f16 holds 65504"},
              {"bf16", 5e-6, 0.9, 0.5, "256 samples"},
              {"u8-percentile", 8e-5, 0.72, 0.25, "256 samples"},
              {"u8-mse", 5e-5, 0.72, 0.25, "256 samples"}};
    case SiteKind::function:
      return {{"gelu-rational", 1e-9, 0.6, 1, "within 6.1e-5 everywhere"},
              {"k-tanh", 4e-5, 0.4, 1, "within 8.9e-3 on [-6, 6]"}};
  }
  return {};
}

ValueStatistics statistics_of(bool positive, double spread, std::mt19937& random) {
  std::normal_distribution<double> normal(positive ? 0.3 * spread : 0.0, spread);
  ValueStatistics out;
  out.count = 4'194'304;
  out.low = positive ? 0 : -5.2 * spread;
  out.high = 6.4 * spread;
  out.histogram.assign(histogram_bins, 0);
  for (int i = 0; i < 40000; ++i) {
    double value = normal(random);
    if (positive && value < 0) value = 0;
    const auto bin = static_cast<int64_t>((value - out.low) / (out.high - out.low) * histogram_bins);
    if (bin >= 0 && bin < histogram_bins) out.histogram[static_cast<size_t>(bin)] += 105;
  }
  out.histogram[histogram_bins - 2] += 12;
  out.mean = positive ? 0.5 * spread : 0.01;
  out.mean_square = spread * spread;
  return out;
}

StudySite site_of(const NamedCall& layer, SiteKind kind, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  StudySite out;
  out.site = {kind, layer.name, layer.outputs[0], "", ""};
  if (kind == SiteKind::product) out.site.weights = layer.name + "_weights", out.site.input = layer.inputs[0];
  out.operation = layer.operation;
  out.sensitivity = std::exp(2.5 * uniform(random) - 2.2);
  out.time = (kind == SiteKind::product ? 4e-5 : 2e-6) * (0.4 + 1.8 * uniform(random));
  out.bytes = std::floor(kind == SiteKind::product ? 9216 + 140000 * uniform(random) : 65536);
  const double spread = 0.4 + 2 * uniform(random);
  out.statistics = statistics_of(layer.operation == "Relu", spread, random);
  for (const Format& format : formats_of(kind)) {
    Candidate candidate;
    candidate.rule = format.rule;
    candidate.local_error = format.noise * power * (0.5 + uniform(random));
    candidate.predicted_error = candidate.local_error * out.sensitivity;
    candidate.error_alone = candidate.predicted_error * std::exp(0.4 * (uniform(random) - 0.5));
    candidate.time = out.time * format.speed * (0.95 + 0.1 * uniform(random));
    if (format.speed == 0) candidate.time = candidate.error_alone = std::nan("");
    candidate.bytes = std::floor(out.bytes * format.size);
    candidate.proof = format.proof;
    if (const ValueFormat* stored = find_value_format(candidate.rule); stored != nullptr && kind == SiteKind::value) {
      const Range range = range_of(grid_of(*stored, out.statistics));
      candidate.clip_low = range.low;
      candidate.clip_high = range.high;
      candidate.clipped_share = clipped_share(out.statistics, range);
    }
    out.candidates.push_back(candidate);
  }
  return out;
}

Interval share_of(int64_t part) {
  const double share = static_cast<double>(part) / samples;
  const double half = 1.96 * std::sqrt(share * (1 - share) / samples) + 0.5 / samples;
  return {share, share - half, std::min(1.0, share + half)};
}

StudyPoint point_of(const Study& study, const std::string& name, double level, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  StudyPoint out;
  out.name = name;
  out.predicted_time = 2e-5;
  for (const StudySite& site : study.sites) {
    const Candidate* best = nullptr;
    const bool delicate =
        &site == &study.sites.front() || site.operation == "Softmax" || site.operation == "GlobalAveragePool";
    for (const Candidate& each : site.candidates) {
      if (!delicate && std::isfinite(each.time) && each.predicted_error < level &&
          (best == nullptr || each.time < best->time))
        best = &each;
    }
    out.predicted_time += best != nullptr ? best->time : site.time;
    out.size += site.site.kind != SiteKind::product ? 0 : best != nullptr ? best->bytes : site.bytes;
    if (best == nullptr) continue;
    out.assignment[site.site.key()] = best->rule;
    out.predicted_error += best->predicted_error;
  }
  out.on_front = !name.starts_with("uniform");
  if (name.starts_with("uniform")) out.predicted_time *= 1.12, out.predicted_error *= 1.6;
  const double measured = out.predicted_time * (0.98 + 0.06 * uniform(random));
  out.time = {measured, measured * 0.985, measured * 1.02};
  out.error = out.predicted_error * (0.85 + 0.4 * uniform(random));
  out.sqnr = 10 * std::log10(power / out.error);
  out.verified = true;
  out.samples = samples;
  out.flips = static_cast<int64_t>(6200 * std::sqrt(out.error / power) / 10);
  out.agreement = share_of(samples - out.flips);
  out.gained = out.flips / 3;
  out.lost = out.flips / 2;
  out.both_right = 651 - out.lost;
  out.both_wrong = samples - out.both_right - out.lost - out.gained;
  out.top1 = share_of(out.both_right + out.gained);
  out.worst_class = 3;
  out.worst_class_drop = static_cast<double>(out.lost) / samples * 2.3;
  out.user_metric = std::nan("");
  return out;
}

void add_points(Study& study, std::mt19937& random) {
  StudyPoint reference = point_of(study, "reference", 0, random);
  reference.error = reference.predicted_error = 0;
  reference.sqnr = HUGE_VAL;
  study.points.push_back(reference);
  study.points.push_back(point_of(study, "uniform f16", 1e-4, random));
  study.points.push_back(point_of(study, "uniform w8a16", 3e-3, random));
  study.points.push_back(point_of(study, "uniform w8a8", 4e-2, random));
  Retraining trained;
  trained.epochs = 3, trained.steps = 93, trained.samples = 1000, trained.seed = 1;
  trained.data_hash = "ab", trained.weights_hash = "cd", trained.loss = "distillation:1,4";
  trained.curve = {0.9, 0.4, 0.3};
  study.points.back().retraining = std::make_shared<const Retraining>(std::move(trained));
  for (int i = 1; i <= 8; ++i) {
    StudyPoint point = point_of(study, fmt::format("front {}", i), 1e-7 * std::pow(4.0, i), random);
    point.verified = i >= 3 && i <= 7;
    point.chosen = i == 6;
    if (!point.verified) point.samples = point.both_right = point.lost = point.gained = point.both_wrong = 0;
    study.points.push_back(point);
  }
}

void choose(Study& study) {
  double accumulated = 0;
  for (const StudyPoint& point : study.points) {
    if (!point.chosen) continue;
    for (StudySite& site : study.sites) {
      const auto rule = point.assignment.find(site.site.key());
      if (rule != point.assignment.end()) site.chosen = rule->second;
      for (const Candidate& each : site.candidates) {
        if (each.rule == site.chosen) accumulated += each.error_alone;
      }
      site.accumulated_error = accumulated;
    }
  }
}

LayerForms forms_of(const NamedCall& layer, const std::string& scalar) {
  LayerForms out;
  out.high = fmt::format(
      "layer {} : [64][32][32]{} from {}(\"{}\") =\n  let windows = x |> map (pad2d 1 1 0 >> slide2d 3 1)\n            "
      "  "
      "|> transpose (1 2 0 3 4)\n  in zip(weights, bias) |> map (\\(filter, b).\n       windows |> map2d (\\w. "
      "zip(flatten w, flatten filter) |> map (*) |> reduce (+) 0 |> (+ b) |> relu))\n",
      layer.name, scalar, layer.operation, layer.name);
  out.derivation =
      "1. reduce-to-fold            at body/0/1        exact\n2. tile-map(64)              at root            "
      "exact     64 divides 1024\n3. map-of-fold               at body            exact\n";
  if (scalar != "f32")
    out.derivation += "4. quantise-weights          at weights         neural    predicted 3.1e-4, measured 2.9e-4\n";
  out.low =
      "A |> split 8 |> map group(1) (\\rows.\n  B |> map group(0) (\\panel.\n    zip(transpose rows, panel) |> fold "
      "...))\n";
  out.schedule = "out.split(x, xo, xi, 64).reorder(xi, y, xo).vectorize(xi, 16).gpu_blocks(xo);\n";
  out.source = fmt::format(
      "// {}\n__kernel void k(__global const {}* restrict x, __global float* restrict y) {{\n  int group = "
      "get_group_id(0);\n  if (x[group] < 0 && group > 1) y[group] = 0;\n}}\n",
      layer.name, scalar == "f32" ? "float" : "char");
  return out;
}

}  // namespace

SyntheticStudy synthetic_study() {
  std::mt19937 random(7);
  SyntheticStudy out;
  out.network = residual_network();
  Study& study = out.study;
  study.model = "residual_network.onnx";
  study.model_hash = "xxh3:9f2c61d07ab3e518";
  study.calibration_hash = "xxh3:1b44a90ee07d2c63";
  study.verification_hash = "xxh3:c0ffee5511aa9d20";
  study.device = "cpu-example, 2 compute units (PoCL 3.1, driver 3.1+debian)";
  study.profile = "vector 16, local memory none, dot instructions vpdpbusd";
  study.version = "0.1.0";
  study.budget = "top1=0.5%";
  study.confidence = "met on 500 samples; 95 % bound: 1.1 points of top-1 lost";
  study.objective = "time";
  study.seed = 18446744073709551557ULL;
  study.calibration_samples = 256;
  study.verification_samples = samples;
  study.classes = 10;
  study.output_power = power;
  study.notes = {
      "calibration data are training images: good for the loss that a rewrite causes, not for absolute accuracy",
      "dimension N of input image is taken to be 1; use --dim N=..."};
  for (const NamedCall& layer : out.network) {
    if (layer.operation == "Conv" || layer.operation == "Gemm")
      study.sites.push_back(site_of(layer, SiteKind::product, random));
    if (layer.operation == "Relu" || layer.operation == "Add" || layer.operation == "GlobalAveragePool" ||
        layer.operation == "Flatten")
      study.sites.push_back(site_of(layer, SiteKind::value, random));
    if (layer.operation == "Gelu" || layer.operation == "Softmax")
      study.sites.push_back(site_of(layer, SiteKind::function, random));
    out.layers.push_back({layer.name,
                          layer.operation,
                          forms_of(layer, "f32"),
                          forms_of(layer, layer.operation == "Conv" ? "i8" : "f32"),
                          {layer.inputs[0] + " [1][64][32][32]f32"},
                          {layer.outputs[0] + " [1][64][32][32]f32"}});
    out.layers.back().reference.operations = 1234567;
    out.layers.back().chosen.operations = layer.operation == "Conv" ? 2345678 : 1234567;
  }
  for (StudySite& value : study.sites) {
    for (const StudySite& reader : study.sites) {
      if (value.site.kind == SiteKind::value && reader.site.input == value.site.value)
        value.successors.push_back(reader.site.key());
    }
  }
  add_points(study, random);
  choose(study);
  study.summary = fmt::format(
      "{} of {} sites compute or store in fewer bits: a run takes about half the time.",
      std::count_if(study.sites.begin(), study.sites.end(), [](const StudySite& site) { return !site.chosen.empty(); }),
      study.sites.size());
  return out;
}

}  // namespace hoist
