// hoist profiles: the starter target descriptions, as a list, or one of them as a file.
#include <nlohmann/json.hpp>

#include "ir/target/starter_profiles.h"
#include "ir/text/parse/near_miss.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"

namespace hoist {

Result<ExitCode> commands::profiles(const Options& command) {
  std::vector<const StarterProfile*> chosen;
  std::vector<std::string> names;
  for (const StarterProfile& row : starter_profiles()) {
    names.emplace_back(row.name);
    if (command.subject.empty() || row.name == command.subject) chosen.push_back(&row);
  }
  if (chosen.empty()) {
    const std::string close = near_miss(command.subject, names);
    return usage_error(command.subject, "is not a starter target description",
                       close.empty() ? "hoist profiles lists them" : "did you mean " + close + "?");
  }
  if (!command.json.empty()) {
    auto out = nlohmann::ordered_json::array();
    for (const StarterProfile* row : chosen)
      out.push_back({{"name", row->name}, {"devices", row->devices}, {"profile", print(row->profile)}});
    HOIST_TRY_VOID(write_json(command.json, out));
  } else if (!command.subject.empty()) {
    say(fmt::format("# {}\n{}", chosen[0]->devices, print(chosen[0]->profile)));
  } else {
    for (const StarterProfile* row : chosen) print_line("{:17}{}", row->name, row->devices);
  }
  return ExitCode::done;
}

}  // namespace hoist
