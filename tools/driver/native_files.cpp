#include "tools/driver/native_files.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <map>

#include "backends/halide/emit.h"
#include "backends/halide/native/native_target.h"
#include "ir/base/temporary_folder.h"
#include "tools/base/child_program.h"
#include "tools/base/files.h"

namespace hoist {
namespace {

constexpr double most_seconds = 300;
constexpr const char* table_file = "native/kernels.c";

// The C compiler for an architecture: the machine's own, or the cross compiler by Debian's name.
std::string compiler_for(const std::string& architecture) {
#if defined(__x86_64__)
  const bool own = architecture == "x86_64";
#elif defined(__aarch64__)
  const bool own = architecture == "aarch64";
#else
  const bool own = false;
#endif
  return own ? "cc" : architecture + "-linux-gnu-gcc";
}

// Empty if there is no compiler to link with.
Result<std::string> shared_library(const std::string& static_library, const std::string& architecture) {
  HOIST_TRY(const TemporaryFolder folder, TemporaryFolder::make());
  const std::filesystem::path from = folder.path() / "kernels.a", to = folder.path() / "kernels.so",
                              said = folder.path() / "said";
  HOIST_TRY_VOID(write_file(from, static_library));
  // The flags keep the output independent of the machine: no start-up files, build identifier or file names.
  const std::vector<std::string> words = {compiler_for(architecture),
                                          "-shared",
                                          "-nostdlib",
                                          "-Wl,--build-id=none",
                                          "-Wl,--hash-style=gnu",
                                          "-Wl,--strip-all",
                                          "-Wl,-z,defs,-z,now,-z,noexecstack",
                                          "-Wl,-soname,kernels-" + architecture + ".so",
                                          "-Wl,--whole-archive",
                                          from.string(),
                                          "-Wl,--no-whole-archive",
                                          "-Wl,--as-needed",
                                          "-lm",
                                          "-lc",
                                          "-o",
                                          to.string()};
  ProgramOptions how{folder.path() / "out", said, most_seconds};
  how.environment =
      with_variable(own_environment(), "TMPDIR", folder.path().string());  // the compiler's temporary files are removed
                                                                           // with the folder
  auto status = run_program(words, how);
  if (!status) {
    spdlog::info("no shared library of kernels for {}: {}", architecture, status.errors().front().text());
    return std::string();
  }
  if (*status != 0) {
    auto complaint = read_file(said);
    return Diagnostic{words.front(), "cannot link the kernels: " + (complaint ? *complaint : ""), ""};
  }
  return read_file(to);
}

std::string table_text(const std::vector<PlanKernel>& kernels, const std::vector<const NativeTarget*>& targets) {
  std::string declarations, rows;
  for (const NativeTarget* target : targets) {
    const std::string condition = fmt::format("#ifdef __{}__\n", target->architecture);
    declarations += condition;
    rows += condition;
    for (const PlanKernel& kernel : kernels) {
      if (!kernel.host.empty()) continue;
      const std::string symbol = native_symbol(kernel.name, target->name);
      declarations += fmt::format("int {}(void** arguments);\n", symbol);
      rows += fmt::format("    {{\"{}\", \"{}\", {}}},\n", target->name, kernel.name, symbol);
    }
    declarations += "#endif\n";
    rows += "#endif\n";
  }
  return "/* The functions of the kernels, for programs that link them: hoist_options.linked_kernels. */\n#include "
         "\"../runtime/hoist_runtime.h\"\n\n" +
         declarations +
         "\nextern const hoist_linked_kernel hoist_linked_kernels[];\n"
         "const hoist_linked_kernel hoist_linked_kernels[] = {\n" +
         rows + "    {NULL, NULL, NULL}};\n";
}

}  // namespace

Result<std::vector<PlanFile>> native_files(const std::vector<PlanKernel>& kernels,
                                           const std::vector<std::vector<std::string>>& objects,
                                           const std::vector<std::string>& targets) {
  std::vector<PlanFile> out;
  std::vector<const NativeTarget*> rows;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> members;
  std::map<std::string, std::string> target_of;
  for (size_t i = 0; i < targets.size(); ++i) {
    HOIST_TRY(const NativeTarget* target, native_target(targets[i]));
    rows.push_back(target);
    target_of[target->architecture] = target->name;
    for (size_t k = 0; k < kernels.size(); ++k) {
      if (!kernels[k].host.empty()) continue;
      members[target->architecture].emplace_back(fmt::format("{}.{}.o", kernels[k].name, target->name), objects[k][i]);
    }
  }
  for (const auto& [architecture, files] : members) {
    HOIST_TRY(const std::string library, static_library(files, target_of[architecture]));
    HOIST_TRY(const std::string shared, shared_library(library, architecture));
    out.push_back({"native/kernels-" + architecture + ".a", library});
    if (!shared.empty()) out.push_back({"native/kernels-" + architecture + ".so", shared});
  }
  out.push_back({table_file, table_text(kernels, rows)});
  return out;
}

Result<Nothing> join_tables(const std::vector<Plan*>& plans) {
  std::vector<const NativeTarget*> rows;
  for (const std::string& name : plans.front()->targets) {
    HOIST_TRY(const NativeTarget* target, native_target(name));
    rows.push_back(target);
  }
  std::vector<PlanKernel> kernels;
  for (Plan* plan : plans) {
    for (const PlanKernel& kernel : plan->kernels) kernels.emplace_back().name = kernel.name;
    if (plan != plans.front())
      std::erase_if(plan->native_files, [](const PlanFile& file) { return file.path == table_file; });
  }
  for (PlanFile& file : plans.front()->native_files) {
    if (file.path == table_file) file.bytes = table_text(kernels, rows);
  }
  return Nothing{};
}

}  // namespace hoist
