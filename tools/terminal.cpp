#include "tools/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

}  // namespace

void say(std::string_view text) {
  clear_progress();
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && output_error == 0) output_error = errno;
}

std::string printable(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else
      out += fmt::format("\\x{:02x}", byte);
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

std::string table(const std::vector<std::vector<std::string>>& rows) {
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
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
  progress_shown = true;
}

}  // namespace hoist
