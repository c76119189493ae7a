#include "tools/base/json_answer.h"

#include <nlohmann/json.hpp>

#include "ir/language/tensor.h"
#include "tools/base/files.h"
#include "tools/base/terminal.h"

namespace hoist {

Result<Nothing> write_json(const std::string& path, const nlohmann::ordered_json& answer) {
  const bool only_ascii = path == "-";  // standard output may be a terminal, which must not interpret names
  return write_file(path, answer.dump(2, ' ', only_ascii, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

Result<Nothing> answer_json(const std::string& path, const nlohmann::ordered_json& answer) {
  if (!path.empty()) HOIST_TRY_VOID(write_json(path, answer));
  return Nothing{};
}

Result<Nothing> refuse_two_outputs(const std::string& json, const std::string& option, const std::string& path) {
  if (json != "-" || path != "-") return Nothing{};
  return usage_error("--json -", "and " + option + " - both write to standard output", "name a file for one of them");
}

nlohmann::ordered_json array_json(const std::string& name, Scalar scalar, const std::vector<int64_t>& shape) {
  return {{"name", name}, {"type", row(scalar).name}, {"shape", shape}, {"bytes", byte_size(scalar, shape)}};
}

nlohmann::ordered_json problems_json(const Diagnostics& problems) {
  nlohmann::ordered_json out = nlohmann::json::array();
  for (const Diagnostic& d : problems) out.push_back({{"where", d.where}, {"what", d.what}, {"hint", d.hint}});
  return out;
}

}  // namespace hoist
