#include "tools/json_answer.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/files.h"

namespace hoist {

CLI::Option* add_json_option(CLI::App& command, std::string& path, const std::string& what) {
  return command.add_option("--json", path, "write " + what + " here (- for standard output)")->type_name("FILE");
}

Result<Nothing> write_json(const std::string& path, const nlohmann::ordered_json& answer) {
  const bool only_ascii = path == "-";  // it may be a terminal, which must not act on names
  return write_file(path, answer.dump(2, ' ', only_ascii, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace hoist
