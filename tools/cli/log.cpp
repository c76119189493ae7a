#include "tools/cli/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>

#include "tools/base/terminal.h"

namespace hoist {
namespace {

// Names in models may contain any bytes, so every line is escaped like all messages.
class TerminalSink : public spdlog::sinks::base_sink<std::mutex> {
  void sink_it_(const spdlog::details::log_msg& line) override {
    const auto level = spdlog::level::to_string_view(line.level);
    print_message(std::string_view(level.data(), level.size()), std::string(line.payload.data(), line.payload.size()));
  }
  void flush_() override {}
};

}  // namespace

const std::vector<std::string>& log_levels() {
  static const std::vector<std::string> names = {"debug", "info", "warning", "error"};
  return names;
}

void start_log() {
  auto logger = std::make_shared<spdlog::logger>("hoist", std::make_shared<TerminalSink>());
  logger->set_level(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(const std::string& level) { spdlog::set_level(spdlog::level::from_str(level)); }

}  // namespace hoist
