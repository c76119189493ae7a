// What a command answers as JSON: the --json option and its file. In one place, so that every command has the same
// form.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ir/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hoist {

/// --json FILE; `what` is what is written: "the answer".
CLI::Option* add_json_option(CLI::App& command, std::string& path, const std::string& what = "the answer");

/// Two spaces a level and a line at the end; "-" is standard output. Names come from models and need not be UTF-8: what
/// is not becomes the replacement character.
Result<Nothing> write_json(const std::string& path, const nlohmann::ordered_json& answer);

}  // namespace hoist
