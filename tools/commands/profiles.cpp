// hoist profiles: the starter profiles, as a list or one as a file.
#include <nlohmann/json.hpp>

#include "ir/target/starter_profiles.h"
#include "ir/text/parse/near_miss.h"
#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/terminal.h"

namespace hoist {
namespace {

struct ProfilesCommand {
  std::string name, json;
};

Attempt<> profiles(const ProfilesCommand& command) {
  std::vector<const StarterProfile*> chosen;
  std::vector<std::string> names;
  for (const StarterProfile& row : starter_profiles()) {
    names.emplace_back(row.name);
    if (command.name.empty() || row.name == command.name) chosen.push_back(&row);
  }
  if (chosen.empty()) {
    const std::string close = near_miss(command.name, names);
    return usage_failure(command.name, "is no starter target description",
                         close.empty() ? "hoist profiles lists them" : "did you mean " + close + "?");
  }
  if (!command.json.empty()) {
    auto out = nlohmann::ordered_json::array();
    for (const StarterProfile* row : chosen)
      out.push_back({{"name", row->name}, {"devices", row->devices}, {"profile", print(row->profile)}});
    HOIST_STEP_VOID(ExitCode::bad_input, write_json(command.json, out));
  } else if (!command.name.empty()) {
    say(fmt::format("# {}\n{}", chosen[0]->devices, print(chosen[0]->profile)));
  } else {
    for (const StarterProfile* row : chosen) say_line("{:17}{}", row->name, row->devices);
  }
  return ExitCode::done;
}

}  // namespace

void add_profiles(CLI::App& program, Action& action) {
  auto options = std::make_shared<ProfilesCommand>();
  CLI::App& command = add_command(
      program, action, "profiles", "list target descriptions of common devices, or write one, for compile --profile",
      "  hoist profiles\n  hoist profiles nvidia-a100 > mine.profile\n  hoist compile model.onnx --profile nvidia-a100",
      options, profiles);
  command.add_option("profile", options->name, "print this one as a file")->type_name("PROFILE");
  add_json_option(command, options->json, "the list");
}

}  // namespace hoist
