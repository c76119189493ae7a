#include "tools/report/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/text/counted.h"
#include "tools/base/terminal.h"
#include "tools/inspection/model_summary.h"
#include "tools/report/template.h"

namespace hoist {
namespace {

std::string kernel_text(const std::string& from) { return safe_in_html(printable(from)); }

// A round step of at least a quarter of the total.
double round_step(double total) {
  const double wanted = total / 4, power = std::pow(10.0, std::floor(std::log10(wanted)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= wanted) return factor * power;
  }
  return 10 * power;
}

// The grid lines of a logarithmic axis: powers of ten, and 2 and 5 times them on short axes.
std::vector<double> logarithmic_ticks(double from, double to) {
  std::vector<double> out;
  for (int power = static_cast<int>(std::floor(from)); power <= to; ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, power);
      if ((factor == 1 || to - from < 2) && std::log10(value) >= from && std::log10(value) <= to) out.push_back(value);
    }
  }
  return out;
}

struct PlacedKernel {
  const TimedKernel* kernel;
  double start = 0;  // seconds into the run
  double share = 0;
  Roof roof;
};

std::vector<PlacedKernel> placed(const std::vector<TimedKernel>& kernels, const Peaks& peaks) {
  std::vector<PlacedKernel> out;
  double total = 0;
  for (const TimedKernel& each : kernels) {
    out.push_back({&each, total, 0, roof_of(peaks, each.work)});
    total += each.seconds;
  }
  for (PlacedKernel& each : out) each.share = total > 0 ? each.kernel->seconds / total : 0;
  return out;
}

double end_of(const std::vector<PlacedKernel>& kernels) {
  return kernels.empty() ? 0 : kernels.back().start + kernels.back().kernel->seconds;
}

// The kernels of one form of a model, with the parameters of the drawing.
struct DrawnKernels {
  std::vector<PlacedKernel> kernels;
  double scale = 0;        // seconds between the left and the right end of the timeline
  bool has_links = false;  // from a kernel to the page's section on its first layer
};

std::string linked(const DrawnKernels& drawn, const TimedKernel& kernel, const std::string& inside) {
  if (!drawn.has_links || kernel.layers.empty()) return inside;
  std::string address;
  for (const char c : kernel.layers.front()) {
    const auto code = static_cast<unsigned char>(c);
    address += std::isalnum(code) != 0 ? std::string(1, c) : fmt::format("%{:02X}", code);
  }
  return "<a href=\"#layer=" + address + "\">" + inside + "</a>";
}

std::string bound_class(Bound bound) { return "bound-" + std::string(name_of(bound)); }

// One row per kernel, with a bar from start to end; the dark part is the kernel's lower bound on the device.
std::string timeline(const DrawnKernels& drawn) {
  const std::vector<PlacedKernel>& kernels = drawn.kernels;
  constexpr double width = 900, row = 20, left = 210, right = 780, axis = 24;
  const double total = drawn.scale;
  const auto x_of = [&](double seconds) { return left + (total > 0 ? seconds / total : 0) * (right - left); };
  std::string out = fmt::format(
      "<svg class=\"compared\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"the kernels of a run, one after the "
      "other\">\n",
      width, axis + row * static_cast<double>(kernels.size()));
  const double step = total > 0 ? round_step(total) : 1;
  for (int i = 0; i * step <= total * (1 + 1e-9); ++i) {
    const double x = x_of(i * step);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}</text>\n",
        x, axis - 6, axis + row * static_cast<double>(kernels.size()), axis - 10,
        i == 0 ? "0" : round_time_on_page(i * step));
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    const PlacedKernel& each = kernels[i];
    const double y = axis + row * static_cast<double>(i), x = x_of(each.start);
    const double length = std::max(x_of(each.start + each.kernel->seconds) - x, 1.0);
    const double least = std::min(each.roof.seconds / std::max(each.kernel->seconds, 1e-12), 1.0) * length;
    const std::string& name = each.kernel->name;
    const std::string shown = name.size() > 28 ? name.substr(0, 26) + "..." : name;
    const std::string bar = fmt::format(
        "<g class=\"{}\"><title>{}: {}, {:.0f} % of the run, bound by {} ({})</title><text x=\"{}\" y=\"{}\" "
        "text-anchor=\"end\">{}</text><rect class=\"whole\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" "
        "height=\"14\"/><rect "
        "x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"14\"/><text x=\"{:.2f}\" y=\"{}\">{:.0f} %</text></g>\n",
        bound_class(each.roof.bound), kernel_text(name), time_on_page(each.kernel->seconds), 100 * each.share,
        name_of(each.roof.bound), time_on_page(each.roof.seconds), left - 8, y + 13, kernel_text(shown), x, y + 2,
        length, x, y + 2, least, x + length + 6, y + 13, 100 * each.share);
    out += linked(drawn, *each.kernel, bar);
  }
  return out + "</svg>\n";
}

// The plane of a roofline: both axes are logarithmic.
struct Plane {
  static constexpr double width = 900, height = 440, left = 70, right = 880, top = 20, bottom = 390;
  double from_x, to_x, from_y, to_y;  // powers of ten

  double x_of(double value) const { return left + (std::log10(value) - from_x) / (to_x - from_x) * (right - left); }
  double y_of(double value) const {
    return std::min(bottom - (std::log10(value) - from_y) / (to_y - from_y) * (bottom - top), bottom);
  }
  // The opening tag, the lines of the grid, and the names of the axes.
  std::string grid() const {
    std::string out = fmt::format(
        "<svg class=\"compared\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"operations a second over operations a "
        "byte\">\n",
        width, height);
    for (const double tick : logarithmic_ticks(from_x, to_x))
      out += fmt::format(
          "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
          "text-anchor=\"middle\">{4:g}</text>\n",
          x_of(tick), top, bottom, bottom + 18, tick);
    for (const double tick : logarithmic_ticks(from_y, to_y))
      out += fmt::format(
          "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5:g}</text>\n",
          left, right, y_of(tick), left - 8, y_of(tick) + 4, tick / 1e9);
    out += fmt::format(
        "<text class=\"axis-name\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">operations a byte; upwards GFLOP/s (both "
        "logarithmic)</text>\n",
        (left + right) / 2, height - 8);
    return out;
  }
};

// Operations per second over operations per byte, both logarithmic; the roof is the device's measured peak.
std::string roofline(const DrawnKernels& drawn, const Peaks& peaks) {
  const std::vector<PlacedKernel>& kernels = drawn.kernels;
  // Kernels on bytes may exceed the f32 roof; they have a roof of their own over the fastest memory.
  const bool on_bytes = std::any_of(kernels.begin(), kernels.end(), [&](const PlacedKernel& each) {
    return each.kernel->work.on_bytes && peaks.byte_operations > peaks.operations;
  });
  double low_x = HUGE_VAL, high_x = 0, low_y = HUGE_VAL, high_y = on_bytes ? peaks.byte_operations : peaks.operations;
  const auto is_shown = [](const TimedKernel& each) {
    return each.work.operations > 0 && each.work.bytes > 0 && each.seconds > 0;
  };
  const auto intensity = [](const TimedKernel& each) {
    return static_cast<double>(each.work.operations) / static_cast<double>(each.work.bytes);
  };
  const auto rate = [](const TimedKernel& each) { return static_cast<double>(each.work.operations) / each.seconds; };
  for (const PlacedKernel& each : kernels) {
    if (!is_shown(*each.kernel)) continue;
    low_x = std::min(low_x, intensity(*each.kernel)), high_x = std::max(high_x, intensity(*each.kernel));
    low_y = std::min(low_y, rate(*each.kernel)), high_y = std::max(high_y, rate(*each.kernel));
  }
  if (high_x == 0) return "<p class=\"note\">No kernel computes numbers.</p>\n";
  // The axis extends beyond the point where the slowest memory meets the roof, so that both parts of the roof are
  // visible.
  for (const Peaks::Copy& copy : peaks.copies)
    high_x = std::max(high_x, 2 * peaks.operations / std::max(copy.rate, 1.0));
  const Peaks::Copy fastest = *std::max_element(peaks.copies.begin(), peaks.copies.end(),
                                                [](const auto& a, const auto& b) { return a.rate < b.rate; });
  if (on_bytes) high_x = std::max(high_x, 2 * peaks.byte_operations / std::max(fastest.rate, 1.0));
  const Plane plane{std::log10(low_x) - 0.2, std::log10(high_x) + 0.1, std::log10(low_y) - 0.2,
                    std::log10(high_y) + 0.15};
  std::string out = plane.grid();
  const auto draw_roof = [&](const Peaks::Copy& copy, double peak, const std::string& operands) {
    const double start = std::pow(10.0, plane.from_x), corner = std::max(peak / std::max(copy.rate, 1.0), start);
    out += fmt::format(
        "<path class=\"roof\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}H{}\"><title>{:.3g} GB/s where {:.3g} MB are copied, "
        "{:.3g} GFLOP/s{}</title></path>\n",
        plane.x_of(start), plane.y_of(std::min(start * copy.rate, peak)), plane.x_of(corner), plane.y_of(peak),
        Plane::right, copy.rate / 1e9, static_cast<double>(copy.bytes) / 1e6, peak / 1e9, operands);
  };
  for (const Peaks::Copy& copy : peaks.copies) draw_roof(copy, peaks.operations, "");
  if (on_bytes) draw_roof(fastest, peaks.byte_operations, " of bytes");
  std::vector<const PlacedKernel*> by_time;
  for (const PlacedKernel& each : kernels) {
    if (is_shown(*each.kernel)) by_time.push_back(&each);
  }
  std::stable_sort(by_time.begin(), by_time.end(), [](const auto* a, const auto* b) { return a->share > b->share; });
  std::string labels;  // drawn above all circles
  for (size_t i = 0; i < by_time.size(); ++i) {
    const PlacedKernel& each = *by_time[i];
    const double x = plane.x_of(intensity(*each.kernel)), y = plane.y_of(rate(*each.kernel));
    const std::string circle = fmt::format(
        "<g class=\"{}\"><title>{}: {:.3g} GFLOP/s, {:.0f} % of the run, {:.0f} % of its bound, {}</title><circle "
        "cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/></g>\n",
        bound_class(each.roof.bound), kernel_text(each.kernel->name), rate(*each.kernel) / 1e9, 100 * each.share,
        100 * each.roof.seconds / each.kernel->seconds, name_of(each.roof.bound), x, y, 4 + 14 * std::sqrt(each.share));
    out += linked(drawn, *each.kernel, circle);
    if (i < 3)
      labels += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                            x + (x > Plane::right - 200 ? -14 : 14), y + (i % 2 == 0 ? -14 : 24),
                            x > Plane::right - 200 ? "end" : "start", kernel_text(each.kernel->name.substr(0, 40)));
  }
  return out + labels + "</svg>\n";
}

std::string kernel_table(const DrawnKernels& drawn) {
  std::string out =
      "<table class=\"kernel-table\"><thead><tr><th scope=\"col\">Kernel</th><th scope=\"col\">Time</th><th "
      "scope=\"col\">Share</th><th "
      "scope=\"col\">Predicted</th><th "
      "scope=\"col\">Bound</th><th scope=\"col\">At least</th><th scope=\"col\">Reaches</th><th "
      "scope=\"col\">Operations"
      "</th><th scope=\"col\">Bytes</th><th scope=\"col\">Layers</th></tr></thead><tbody>\n";
  for (const PlacedKernel& each : drawn.kernels) {
    const TimedKernel& kernel = *each.kernel;
    out += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{:.1f} %</td><td>{}</td><td>{}</td><td>{}</td><td>{:.0f} "
        "%</td><td>{}</td><td>"
        "{}</td><td>{}</td></tr>\n",
        linked(drawn, kernel, kernel_text(kernel.name)), time_on_page(kernel.seconds), 100 * each.share,
        time_on_page(kernel.predicted), name_of(each.roof.bound), time_on_page(each.roof.seconds),
        kernel.seconds > 0 ? 100 * each.roof.seconds / kernel.seconds : 0, number_text(kernel.work.operations),
        bytes_text(kernel.work.bytes), kernel_text(fmt::format("{}", fmt::join(kernel.layers, ", "))));
  }
  return out + "</tbody></table>\n";
}

std::string framed(const std::string& label, const std::string& inside) {
  return "<div class=\"wide-table\" tabindex=\"0\" role=\"region\" aria-label=\"" + label + "\">\n" + inside +
         "</div>\n";
}

// `heading` is the level: "h2" if the kernels are the whole page.
std::string parts_of(const DrawnKernels& drawn, const Peaks& peaks, const std::string& heading) {
  const auto part = [&](const char* title, const std::string& body) {
    return fmt::format("<section><{0}>{1}</{0}>{2}</section>\n", heading, title, body);
  };
  return part("When each kernel runs",
              "<p class=\"note\"><span class=\"bound-arithmetic\">■ bound by arithmetic</span> <span "
              "class=\"bound-memory\">■ by memory</span> <span class=\"bound-launch\">■ by the launch</span>; the full "
              "part of a bar is the least that the device needs, as it was measured at its best.</p>\n" +
                  framed("Timeline", timeline(drawn))) +
         part(
             "The bounds of kernels",
             "<p class=\"note\">The lines are what the device does at its best in f32, one for each memory that arrays "
             "fit in; products of 8 bits may lie above them. A circle is as large as its share of the run.</p>\n" +
                 framed("Roofline", roofline(drawn, peaks))) +
         part("Kernels", framed("Kernels", kernel_table(drawn)));
}

nlohmann::ordered_json to_json(const std::vector<TimedKernel>& kernels, const Peaks& peaks) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const TimedKernel& each : kernels) {
    const Roof roof = roof_of(peaks, each.work);
    out.push_back({{"name", each.name},
                   {"layers", each.layers},
                   {"seconds", each.seconds},
                   {"predicted_seconds", each.predicted},
                   {"operations", each.work.operations},
                   {"bytes", each.work.bytes},
                   {"bound", name_of(roof.bound)},
                   {"bound_seconds", roof.seconds}});
  }
  return out;
}

// The ratio of the times, "0.66"; "" if there was no time before.
std::string ratio_text(double now, double before) { return before > 0 ? fmt::format("{:.2f}", now / before) : ""; }

// The time that rules saved, and the time that tuning saved after them.
std::string bought_table(const ReportKernels& kernels) {
  std::string out =
      "<table><thead><tr><th scope=\"col\">Layers</th><th scope=\"col\">As the model is</th><th scope=\"col\">As "
      "chosen</th><th scope=\"col\">Tuned</th><th scope=\"col\">Rules</th><th "
      "scope=\"col\">Tuning</th></tr></thead><tbody>\n";
  const auto row = [&](const std::string& name, const BoughtTime& time) {
    out += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                       kernel_text(name), time_on_page(time.reference), time_on_page(time.chosen),
                       time_on_page(time.tuned), ratio_text(time.chosen, time.reference),
                       ratio_text(time.tuned, time.chosen));
  };
  BoughtTime all;
  for (const BoughtTime& time : bought_times(kernels)) {
    row(fmt::format("{}", fmt::join(time.layers, ", ")), time);
    all.reference += time.reference, all.chosen += time.chosen, all.tuned += time.tuned;
  }
  row("all kernels", all);
  return out + "</tbody></table>\n";
}

}  // namespace

nlohmann::ordered_json to_json(const Peaks& peaks) {
  nlohmann::ordered_json out = {{"operations_per_second", peaks.operations},
                                {"byte_operations_per_second", peaks.byte_operations},
                                {"launch_ms", peaks.launch * 1e3}};
  for (const Peaks::Copy& copy : peaks.copies)
    out["copies"].push_back({{"bytes", copy.bytes}, {"bytes_per_second", copy.rate}});
  return out;
}

std::vector<BoughtTime> bought_times(const ReportKernels& kernels) {
  // Layers of one kernel, in any form, belong to one class; the classes are the transitive closure.
  std::map<std::string, std::string> leader;
  const std::function<std::string(const std::string&)> find = [&](const std::string& layer) {
    const auto place = leader.emplace(layer, layer).first;
    if (place->second != layer) place->second = find(place->second);
    return place->second;
  };
  const auto forms = {&kernels.reference, &kernels.chosen, &kernels.tuned};
  for (const auto* form : forms) {
    for (const TimedKernel& each : *form) {
      for (const std::string& layer : each.layers) leader[find(layer)] = find(each.layers.front());
    }
  }
  std::vector<BoughtTime> out;
  std::map<std::string, size_t> places;
  const auto add = [&](const std::vector<TimedKernel>& form, double BoughtTime::*seconds) {
    for (const TimedKernel& each : form) {
      if (each.layers.empty()) continue;
      const auto [place, fresh] = places.emplace(find(each.layers.front()), out.size());
      if (fresh) out.emplace_back();
      BoughtTime& time = out[place->second];
      time.*seconds += each.seconds;
      // Names of layers that rules add mean nothing to a reader who has the model's names.
      for (const std::string& layer : each.layers) {
        if (&form != &kernels.reference && !fresh) break;
        if (std::find(time.layers.begin(), time.layers.end(), layer) == time.layers.end()) time.layers.push_back(layer);
      }
    }
  };
  add(kernels.reference, &BoughtTime::reference);
  add(kernels.chosen, &BoughtTime::chosen);
  add(kernels.tuned, &BoughtTime::tuned);
  return out;
}

nlohmann::ordered_json to_json(const ReportKernels& kernels) {
  nlohmann::ordered_json out = {{"chosen", to_json(kernels.chosen, kernels.peaks)},
                                {"reference", to_json(kernels.reference, kernels.peaks)},
                                {"peaks", to_json(kernels.peaks)}};
  if (kernels.tuned.empty()) return out;
  out["tuned"] = to_json(kernels.tuned, kernels.peaks);
  for (const BoughtTime& time : bought_times(kernels))
    out["bought"].push_back({{"layers", time.layers},
                             {"reference_seconds", time.reference},
                             {"chosen_seconds", time.chosen},
                             {"tuned_seconds", time.tuned}});
  return out;
}

std::string kernels_section(const ReportKernels& kernels) {
  if (kernels.chosen.empty() || kernels.reference.empty()) return "<p class=\"note\">The kernels were not timed.</p>\n";
  DrawnKernels chosen{placed(kernels.chosen, kernels.peaks), 0, true};
  DrawnKernels reference{placed(kernels.reference, kernels.peaks), 0, true};
  DrawnKernels tuned{placed(kernels.tuned, kernels.peaks), 0, true};
  chosen.scale = reference.scale = tuned.scale =
      std::max({end_of(chosen.kernels), end_of(reference.kernels), end_of(tuned.kernels)});
  const auto folded = [&](const char* id, const char* title, const DrawnKernels& drawn) {
    return fmt::format("<details id=\"{}\"><summary>{}</summary>\n{}</details>\n", id, title,
                       parts_of(drawn, kernels.peaks, "h3"));
  };
  std::string out = fmt::format(
      "<p class=\"note\">{} in {} as chosen, {} in {} as the model is{}. Click a kernel for its layer.</p>\n",
      counted(kernels.chosen.size(), "step"), time_on_page(end_of(chosen.kernels)), kernels.reference.size(),
      time_on_page(end_of(reference.kernels)),
      kernels.tuned.empty() ? ""
                            : fmt::format(", {} in {} with the knobs of records", kernels.tuned.size(),
                                          time_on_page(end_of(tuned.kernels))));
  if (!kernels.tuned.empty())
    out +=
        "<section><h3>The gains of rules and of tuning</h3><p class=\"note\">Seconds of a run in the kernels of these "
        "layers, and what rules left of the model's and tuning of what was chosen.</p>\n" +
        framed("The gains of rules and of tuning", bought_table(kernels)) + "</section>\n";
  out += parts_of(chosen, kernels.peaks, "h3");
  if (!kernels.tuned.empty()) out += folded("kernels-tuned", "As chosen, tuned", tuned);
  return out + folded("kernels-reference", "As the model is", reference);
}

std::string kernels_page(const std::string& model, const std::string& device, const std::vector<TimedKernel>& kernels,
                         const Peaks& peaks) {
  std::string out = page_head() +
                    "<div class=\"page\">\n<header class=\"top\"><div class=\"brand\"><span>hoist · the kernels of a "
                    "run</span></div>\n<h1>" +
                    kernel_text(model) + "</h1>\n<p class=\"lead\">" + kernel_text(device) + "</p></header>\n<main>\n";
  if (kernels.empty())
    out += "<p>There are no kernels.</p>\n";
  else {
    DrawnKernels drawn{placed(kernels, peaks), 0, false};
    drawn.scale = end_of(drawn.kernels);
    out += parts_of(drawn, peaks, "h2");
  }
  return out + "</main>\n</div>\n</body>\n</html>\n";
}

}  // namespace hoist
