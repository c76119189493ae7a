#include "tools/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace hoist {
namespace {

int output_error = 0;
bool progress_shown = false;

void clear_progress() {
  if (!progress_shown) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  progress_shown = false;
}

struct Character {
  size_t bytes = 1;
  bool shows = false;  // and does nothing else
};

// Of text that is not empty, in UTF-8 where it is.
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

void say(std::string_view lines) {
  clear_progress();
  std::string text;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    text += printable(lines.substr(0, end));
    if (end < lines.size()) text += '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
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

void complain(std::string_view kind, const std::string& text) {
  clear_progress();
  fmt::print(stderr, "hoist: {}: {}\n", kind, printable(text));
}

void complain(std::string_view kind, const Diagnostics& problems) {
  for (const Diagnostic& problem : problems) complain(kind, problem.text());
}

Result<Nothing> finish_output() {
  clear_progress();
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno;
  if (output_error == EPIPE) return Nothing{};  // the reader has seen enough: `hoist rules | head`
  if (output_error != 0)
    return Diagnostic{"standard output", std::string("cannot be written: ") + std::strerror(output_error), ""};
  return Nothing{};
}

std::string table(const std::vector<std::vector<std::string>>& cells) {
  std::vector<std::vector<std::string>> rows = cells;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  }
  return out;
}

Progress::~Progress() { clear_progress(); }

void Progress::show(const std::string& text) {
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (!terminal) return;
  fmt::print(stderr, "\r\x1b[K{}", printable(text));
  std::fflush(stderr);
  progress_shown = true;
}

}  // namespace hoist
