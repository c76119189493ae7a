#include "tools/report/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/template.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

std::string kernel_text(const std::string& from) { return safe_in_html(printable(from)); }

std::string microseconds(double seconds) { return fmt::format("{:.4g} us", seconds * 1e6); }

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
    out.push_back({&each, total, 0, roof_of(peaks, each.operations, each.bytes)});
    total += each.seconds;
  }
  for (PlacedKernel& each : out) each.share = total > 0 ? each.kernel->seconds / total : 0;
  return out;
}

std::string bound_class(Bound bound) { return "bound-" + std::string(name_of(bound)); }

// A row a kernel, a bar from its beginning to its end; the dark part is the least that the device needs.
std::string timeline(const std::vector<PlacedKernel>& kernels) {
  constexpr double width = 900, row = 20, left = 210, right = 780;
  const double total = kernels.back().start + kernels.back().kernel->seconds;
  const auto x_of = [&](double seconds) { return left + (total > 0 ? seconds / total : 0) * (right - left); };
  std::string out = fmt::format(
      "<svg class=\"compared\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"the kernels of a run, one after the "
      "other\">\n",
      width, row * static_cast<double>(kernels.size()) + 30);
  for (int i = 0; i <= 4; ++i) {
    const double x = left + (right - left) * i / 4;
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"{1}\"/><text x=\"{0}\" y=\"{2}\" "
        "text-anchor=\"middle\">{3}</text>\n",
        x, row * static_cast<double>(kernels.size()), row * static_cast<double>(kernels.size()) + 18,
        microseconds(total * i / 4));
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    const PlacedKernel& each = kernels[i];
    const double y = row * static_cast<double>(i), x = x_of(each.start);
    const double length = std::max(x_of(each.start + each.kernel->seconds) - x, 1.0);
    const double least = std::min(each.roof.seconds / std::max(each.kernel->seconds, 1e-12), 1.0) * length;
    const std::string& name = each.kernel->name;
    const std::string shown = name.size() > 32 ? name.substr(0, 31) + "..." : name;
    out += fmt::format(
        "<g class=\"{}\"><title>{}: {}, {:.0f} % of the run, bound by {} ({})</title><text x=\"{}\" y=\"{}\" "
        "text-anchor=\"end\">{}</text><rect class=\"whole\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" "
        "height=\"14\"/><rect "
        "x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"14\"/><text x=\"{:.2f}\" y=\"{}\">{:.0f} %</text></g>\n",
        bound_class(each.roof.bound), kernel_text(name), microseconds(each.kernel->seconds), 100 * each.share,
        name_of(each.roof.bound), microseconds(each.roof.seconds), left - 8, y + 13, kernel_text(shown), x, y + 2,
        length, x, y + 2, least, x + length + 6, y + 13, 100 * each.share);
  }
  return out + "</svg>\n";
}

// Operations a second over operations a byte, both logarithmic; the roof is what the device does at its best.
std::string roofline(const std::vector<PlacedKernel>& kernels, const Peaks& peaks) {
  constexpr double width = 900, height = 440, left = 70, right = 880, top = 20, bottom = 390;
  double low_x = HUGE_VAL, high_x = 0, low_y = HUGE_VAL, high_y = peaks.operations;
  const auto is_shown = [](const TimedKernel& each) {
    return each.operations > 0 && each.bytes > 0 && each.seconds > 0;
  };
  const auto intensity = [](const TimedKernel& each) {
    return static_cast<double>(each.operations) / static_cast<double>(each.bytes);
  };
  const auto rate = [](const TimedKernel& each) { return static_cast<double>(each.operations) / each.seconds; };
  for (const PlacedKernel& each : kernels) {
    if (!is_shown(*each.kernel)) continue;
    low_x = std::min(low_x, intensity(*each.kernel)), high_x = std::max(high_x, intensity(*each.kernel));
    low_y = std::min(low_y, rate(*each.kernel)), high_y = std::max(high_y, rate(*each.kernel));
  }
  if (high_x == 0) return "<p class=\"note\">No kernel computes numbers.</p>\n";
  // To where the slowest memory meets the roof, so that both parts of it are seen.
  for (const Peaks::Copy& copy : peaks.copies)
    high_x = std::max(high_x, 2 * peaks.operations / std::max(copy.rate, 1.0));
  const double from_x = std::log10(low_x) - 0.2, to_x = std::log10(high_x) + 0.1, from_y = std::log10(low_y) - 0.2,
               to_y = std::log10(high_y) + 0.15;
  const auto x_of = [&](double value) {
    return left + (std::log10(value) - from_x) / (to_x - from_x) * (right - left);
  };
  const auto y_of = [&](double value) {
    return std::min(bottom - (std::log10(value) - from_y) / (to_y - from_y) * (bottom - top), bottom);
  };
  std::string out = fmt::format(
      "<svg class=\"compared\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"operations a second over operations a "
      "byte\">\n",
      width, height);
  for (int power = static_cast<int>(std::ceil(from_x)); power <= to_x; ++power)
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4:g}</text>\n",
        x_of(std::pow(10.0, power)), top, bottom, bottom + 18, std::pow(10.0, power));
  for (int power = static_cast<int>(std::ceil(from_y)); power <= to_y; ++power)
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5:g}</text>\n",
        left, right, y_of(std::pow(10.0, power)), left - 8, y_of(std::pow(10.0, power)) + 4, std::pow(10.0, power - 9));
  out += fmt::format(
      "<text class=\"axis-name\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">operations a byte; upwards GFLOP/s (both "
      "logarithmic)</text>\n",
      (left + right) / 2, height - 8);
  for (const Peaks::Copy& copy : peaks.copies) {
    const double corner = peaks.operations / std::max(copy.rate, 1.0), start = std::pow(10.0, from_x);
    out += fmt::format(
        "<path class=\"roof\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}H{}\"><title>{:.3g} GB/s where {:.3g} MB are copied, "
        "{:.3g} "
        "GFLOP/s</title></path>\n",
        x_of(start), y_of(start * copy.rate), x_of(corner), y_of(peaks.operations), right, copy.rate / 1e9,
        static_cast<double>(copy.bytes) / 1e6, peaks.operations / 1e9);
  }
  std::vector<const PlacedKernel*> by_time;
  for (const PlacedKernel& each : kernels) {
    if (is_shown(*each.kernel)) by_time.push_back(&each);
  }
  std::stable_sort(by_time.begin(), by_time.end(), [](const auto* a, const auto* b) { return a->share > b->share; });
  for (size_t i = 0; i < by_time.size(); ++i) {
    const PlacedKernel& each = *by_time[i];
    const double x = x_of(intensity(*each.kernel)), y = y_of(rate(*each.kernel));
    out += fmt::format(
        "<g class=\"{}\"><title>{}: {:.3g} GFLOP/s, {:.0f} % of the run, {:.0f} % of its bound, {}</title><circle "
        "cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/></g>\n",
        bound_class(each.roof.bound), kernel_text(each.kernel->name), rate(*each.kernel) / 1e9, 100 * each.share,
        100 * each.roof.seconds / each.kernel->seconds, name_of(each.roof.bound), x, y, 4 + 14 * std::sqrt(each.share));
    if (i < 3)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                         x + (x > right - 200 ? -14 : 14), y + (i % 2 == 0 ? -14 : 24),
                         x > right - 200 ? "end" : "start", kernel_text(each.kernel->name.substr(0, 40)));
  }
  return out + "</svg>\n";
}

std::string kernel_table(const std::vector<PlacedKernel>& kernels) {
  std::string out =
      "<table><thead><tr><th scope=\"col\">Kernel</th><th scope=\"col\">Time</th><th scope=\"col\">Share</th><th "
      "scope=\"col\">Bound</th><th scope=\"col\">At least</th><th scope=\"col\">Reaches</th><th "
      "scope=\"col\">Operations"
      "</th><th scope=\"col\">Bytes</th><th scope=\"col\">Layers</th></tr></thead><tbody>\n";
  for (const PlacedKernel& each : kernels) {
    const TimedKernel& kernel = *each.kernel;
    out += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{:.1f} %</td><td>{}</td><td>{}</td><td>{:.0f} "
        "%</td><td>{}</td><td>"
        "{}</td><td>{}</td></tr>\n",
        kernel_text(kernel.name), microseconds(kernel.seconds), 100 * each.share, name_of(each.roof.bound),
        microseconds(each.roof.seconds), kernel.seconds > 0 ? 100 * each.roof.seconds / kernel.seconds : 0,
        kernel.operations, kernel.bytes, kernel_text(fmt::format("{}", fmt::join(kernel.layers, ", "))));
  }
  return out + "</tbody></table>\n";
}

}  // namespace

std::string kernels_page(const std::string& model, const std::string& device, const std::vector<TimedKernel>& kernels,
                         const Peaks& peaks) {
  const auto framed = [](const std::string& label, const std::string& inside) {
    return "<div class=\"wide-table\" tabindex=\"0\" role=\"region\" aria-label=\"" + label + "\">\n" + inside +
           "</div>\n";
  };
  std::string out = page_head() +
                    "<div class=\"page\">\n<header class=\"top\"><div class=\"brand\"><span>hoist · the kernels of a "
                    "run</span></div>\n<h1>" +
                    kernel_text(model) + "</h1>\n<p class=\"lead\">" + kernel_text(device) + "</p></header>\n<main>\n";
  if (kernels.empty()) return out + "<p>There are no kernels.</p>\n</main>\n</div>\n</body>\n</html>\n";
  const std::vector<PlacedKernel> all = placed(kernels, peaks);
  out +=
      "<section><h2>When each kernel runs</h2><p class=\"note\"><span class=\"bound-arithmetic\">■ bound by "
      "arithmetic</span> <span class=\"bound-memory\">■ by memory</span> <span class=\"bound-launch\">■ by the "
      "launch</span>; the full part of a bar is the least that the device needs, as it was measured at its "
      "best.</p>\n" +
      framed("Timeline", timeline(all)) + "</section>\n";
  out +=
      "<section><h2>What bounds them</h2><p class=\"note\">The lines are what the device does at its best, one for "
      "each "
      "memory that arrays fit in; a circle is as large as its share of the run.</p>\n" +
      framed("Roofline", roofline(all, peaks)) + "</section>\n";
  out += "<section><h2>Kernels</h2>\n" + framed("Kernels", kernel_table(all)) +
         "</section>\n</main>\n</div>\n</body>\n</html>\n";
  return out;
}

}  // namespace hoist
