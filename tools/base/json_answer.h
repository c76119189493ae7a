// The answer of a command as JSON: its file, and the common parts of several commands' answers, so that every command
// has the same form; json.md lists the keys.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/scalar.h"

namespace hoist {

/// Two spaces per level and a newline at the end; "-" is standard output. Names come from models and need not be UTF-8:
/// invalid bytes become the replacement character.
Result<Nothing> write_json(const std::string& path, const nlohmann::ordered_json& answer);

/// The answer of a command, if a path is given: without a path nothing is done.
Result<Nothing> answer_json(const std::string& path, const nlohmann::ordered_json& answer);

/// Wrong use if both would be on standard output.
Result<Nothing> refuse_two_outputs(const std::string& json, const std::string& option, const std::string& path);

/// An input or an output: {"name", "type", "shape", "bytes"}.
nlohmann::ordered_json array_json(const std::string& name, Scalar scalar, const std::vector<int64_t>& shape);
/// [{"where", "what", "hint"}, ...]
nlohmann::ordered_json problems_json(const Diagnostics& problems);

}  // namespace hoist
