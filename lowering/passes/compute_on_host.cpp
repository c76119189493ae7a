#include "lowering/graph/steps.h"
#include "lowering/passes/rows.h"

namespace hoist {

Result<Nothing> compute_on_host(Program& program, const PassOptions&) {
  Diagnostics problems;
  for (Definition& definition : program.definitions) {
    const auto done = compute_on_host(program, definition);
    if (done.ok()) continue;
    for (const Diagnostic& d : done.errors()) problems.push_back({layer_name(definition), d.what, d.hint});
  }
  if (!problems.empty()) return problems;
  return Nothing{};
}

Done replay_compute_on_host(Program& program, Definition& definition, const ProgramStep&) {
  HOIST_TRY(const bool done, compute_on_host(program, definition));
  if (!done) return Diagnostic{"", "no host op computes the call", ""};
  return Nothing{};
}

}  // namespace hoist
