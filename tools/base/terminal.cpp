#include "tools/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "ir/rules/former_names.h"

namespace hoist {
namespace {

int output_error = 0;
bool quiet_results = false;
bool only_errors = false;
std::atomic<bool> progress_shown = false;  // atomic, since another thread reports signals

std::recursive_mutex hearing;  // the receiver of a message may send another message meanwhile
const Audience* audience = nullptr;

// True if there is an audience, which `tell` has then received.
template <class Tell>
bool told(const Tell& tell) {
  const std::lock_guard lock(hearing);
  if (audience != nullptr) tell(*audience);
  return audience != nullptr;
}

void clear_progress() {
  if (!progress_shown) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  progress_shown = false;
}

struct Character {
  size_t bytes = 1;
  bool shows = false;  // printing it has no other effect
};

// The lines of a non-empty text, as valid UTF-8.
Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead >= 0x20 && lead != 0x7f};
  const size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return {};
  uint32_t code = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  const bool control = code < 0xa0 || code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x061c || (code >= 0x200e && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  return {length, !control && !turns};
}

}  // namespace

WithAudience::WithAudience(const Audience& now) {
  const std::lock_guard lock(hearing);
  before_ = std::exchange(audience, &now);
}

WithAudience::~WithAudience() {
  const std::lock_guard lock(hearing);
  audience = before_;
}

void print_only_errors() { only_errors = true; }

bool prints_summaries() {
  return !only_errors || told([](const Audience&) {});
}

void keep_results_quiet() {
  if (!told([](const Audience&) {})) quiet_results = true;
}

bool heard_as_file(std::string_view content) {
  return told([&](const Audience& hearer) { hearer.file(content); });
}

void say(std::string_view lines) {
  clear_progress();
  if (quiet_results) return;
  std::string text;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    text += printable(lines.substr(0, end));
    if (end < lines.size()) text += '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  if (told([&](const Audience& hearer) { hearer.result(text); })) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && output_error == 0) output_error = errno;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character next = first_character(text);
    if (next.shows) {
      out += text.substr(0, next.bytes);
    } else {
      for (char c : text.substr(0, next.bytes)) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

void print_message(std::string_view kind, const std::string& text) { print_message(kind, Diagnostics{{"", text, ""}}); }

void print_old_name(const std::string& name, const std::string& present) {
  print_message("note", name + " is an old name: write " + present);
}

std::string with_present_name(const std::string& name) {
  std::string present = present_name(name);
  if (present != name) print_old_name(name, present);
  return present;
}

void print_message(std::string_view kind, const Diagnostics& problems) {
  for (const Diagnostic& problem : problems) {
    if (told([&](const Audience& hearer) { hearer.message(kind, problem); })) continue;
    if (only_errors && kind != "error") continue;
    clear_progress();
    fmt::print(stderr, "hoist: {}: {}\n", kind, printable(problem.text()));
  }
}

Result<Nothing> finish_output() {
  clear_progress();
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno;
  if (output_error == EPIPE) return Nothing{};  // the reader has seen enough: `hoist rules | head`
  if (output_error != 0)
    return Diagnostic{"standard output", std::string("cannot be written: ") + std::strerror(output_error), ""};
  return Nothing{};
}

size_t output_width() {
  constexpr int least = 20, most = 10000;
  int columns = 0;
  if (const char* asked = std::getenv("COLUMNS"); asked != nullptr) columns = std::atoi(asked);
  winsize window{};
  if (columns == 0 && ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0)
    columns = window.ws_col;
  return columns < least || columns > most ? 0 : static_cast<size_t>(columns);
}

std::string wrapped(std::string_view text, size_t width, size_t indent) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    size_t room = width;
    while (width > indent && line.size() > room) {
      const size_t start = line.find_first_not_of(' ');
      size_t cut = line.rfind(' ', room);
      if (cut == std::string_view::npos || cut <= start) cut = room;  // a word longer than the line
      out += line.substr(0, cut);
      out += "\n" + std::string(indent, ' ');
      line.remove_prefix(cut);
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      room = width - indent;
    }
    out += line;
    out += '\n';
  }
  return out;
}

namespace {

using TableRows = std::vector<std::vector<std::string>>;

constexpr size_t gap = 2, least_room = 24;  // gap between columns; minimum width of a broken last column

std::string line_of(const std::vector<std::string>& row, const std::vector<size_t>& widths, size_t width) {
  std::string line;
  for (size_t i = 0; i + 1 < row.size(); ++i) line += fmt::format("{:<{}}", row[i], widths[i] + gap);
  const size_t before = line.size();
  if (row.empty()) return "\n";
  const std::string& last = row.back();
  const bool fits = width == 0 || before + last.size() <= width;
  if (!fits && before + least_room > width) {
    constexpr size_t indent = 4;
    while (line.ends_with(' ')) line.pop_back();
    return wrapped(line, width, 0) + wrapped(std::string(indent, ' ') + last, width, indent);
  }
  line += last;
  while (line.ends_with(' ')) line.pop_back();
  return fits ? line + "\n" : wrapped(line, width, before);
}

// The columns from `first` on that fit next to column 0.
size_t columns_that_fit(const std::vector<size_t>& widths, size_t first, size_t width) {
  size_t used = first == 0 ? 0 : widths[0] + gap, end = first;
  while (end < widths.size() && (width == 0 || end == first || used + widths[end] <= width))
    used += widths[end++] + gap;
  // The last column may be broken.
  return end + 1 == widths.size() && used + least_room <= width ? end + 1 : end;
}

}  // namespace

std::string table(const TableRows& cells, size_t width) {
  TableRows rows = cells;
  std::vector<size_t> widths;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (size_t first = 0; first < widths.size();) {
    // With few columns the last column is broken between words; with many the table continues below.
    constexpr size_t few = 4;
    const size_t end = widths.size() <= few ? widths.size() : columns_that_fit(widths, first, width);
    if (first > 0) out += "\n";
    for (const auto& row : rows) {
      std::vector<std::string> part;
      std::vector<size_t> part_widths;
      for (size_t i = 0; i < std::min(end, row.size()); ++i) {
        if (i != 0 && i < first) continue;
        part.push_back(row[i]);
        part_widths.push_back(widths[i]);
      }
      out += line_of(part, part_widths, width);
    }
    first = end;
  }
  return out;
}

Progress::~Progress() {
  if (!told([](const Audience& hearer) { hearer.progress(""); })) clear_progress();
}

std::string rough_time(double seconds) {
  constexpr double minute = 60, hour = 3600;
  if (seconds < 100) return fmt::format("{:.0f} s", std::max(seconds, 1.0));
  if (seconds < 100 * minute) return fmt::format("{:.0f} min", seconds / minute);
  return fmt::format("{:.0f} h", seconds / hour);
}

std::string progress_bar(double share, size_t width) {
  const auto done = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  return std::string(done, '#') + std::string(width - done, '-');
}

// "40 %, about 12 s left", or "".
std::string Progress::how_far(double share) {
  if (std::isnan(share)) return "";
  share = std::clamp(share, 0.0, 1.0);
  if (!since_) {
    since_.emplace();
    first_share_ = share;
  }
  std::string out = fmt::format("{:.0f} %", std::floor(100 * share));
  // Before this the remaining time is unreliable.
  constexpr double least_seconds = 2, least_share = 0.02;
  const double seconds = since_->seconds(), done = share - first_share_;
  if (seconds >= least_seconds && done >= least_share && share < 1)
    out += fmt::format(", about {} left", rough_time(seconds / done * (1 - share)));
  return out;
}

void Progress::show(const std::string& text, double share) {
  const std::string far = how_far(share);
  const std::string line = far.empty() ? text : far + ": " + text;
  if (told([&](const Audience& hearer) { hearer.progress(line); })) return;
  if (only_errors) return;
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (!terminal) {
    if (line.empty()) return;  // there is no line to clear
    static Stopwatch since_line;
    static double least = seconds_before_lines;
    if (since_line.seconds() < least) return;
    if (since_ && since_->seconds() < least) return;  // for repeated short parts no line is printed
    since_line = Stopwatch();
    least = seconds_between_lines;
    fmt::print(stderr, "hoist: progress: {}\n", printable(line));
    return;
  }
  constexpr size_t bar_width = 20, usual_width = 80;
  winsize window{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
  std::string shown = printable(line);
  if (!far.empty()) shown = "[" + progress_bar(share, bar_width) + "] " + shown;
  // The part of a line beyond the terminal's width would stay when the line is replaced.
  const size_t width = (known ? window.ws_col : usual_width) - 1;
  if (shown.size() > width) {
    shown.resize(width);
    while (!shown.empty() && (shown.back() & 0xc0) == 0x80) shown.pop_back();
    if (!shown.empty() && (shown.back() & 0xc0) == 0xc0) shown.pop_back();
  }
  fmt::print(stderr, "\r\x1b[K{}", shown);
  std::fflush(stderr);
  progress_shown = true;
}

}  // namespace hoist
