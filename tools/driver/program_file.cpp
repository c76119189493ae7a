#include "tools/driver/program_file.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "frontend/file/tensor_file.h"
#include "ir/text/program_text.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"

namespace hoist {

std::filesystem::path constants_folder(const std::filesystem::path& file) { return file.string() + ".constants"; }

Result<Nothing> write_program(const Program& program, const std::filesystem::path& file) {
  const ProgramPrintOptions options;
  const std::filesystem::path folder = constants_folder(file);
  bool large = false;
  for (const auto& [name, tensor] : program.constants) large |= tensor.size() > options.written_out;
  if (large) {
    HOIST_TRY(FileSet files, FileSet::begin(folder));
    std::set<std::string> written;
    for (const auto& [name, tensor] : program.constants) {
      const std::string hash = constant_hash(tensor);
      if (tensor.size() <= options.written_out || !written.insert(hash).second) continue;
      HOIST_TRY_VOID(write_tensor_proto(files.reserve(hash + ".pb"), name, tensor));
    }
    HOIST_TRY_VOID(files.commit());
  }
  HOIST_TRY_VOID(write_file(file, print_program(program, options)));
  return Nothing{};
}

Result<Nothing> show_program(const Program& program, const std::string& file, const std::string& json) {
  if (!file.empty()) {
    HOIST_TRY_VOID(write_program(program, file));
    return answer_json(json, {{"file", file}});
  }
  const std::string text = print_program(program);
  say(text);
  return answer_json(json, {{"program", text}});
}

Result<Program> read_program(const std::filesystem::path& file) {
  HOIST_TRY(const std::string text, read_file(file, size_t{256} << 20));
  const std::filesystem::path folder = constants_folder(file);
  auto sidecar = [&](const std::string&, const std::string& hash) -> std::optional<Tensor> {
    // The hash comes from the text, so only hexadecimal digits may become a file name.
    if (hash.empty() || hash.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
    auto tensor = read_tensor_proto(folder / (hash + ".pb"));
    return tensor.ok() ? std::optional(*tensor) : std::nullopt;
  };
  auto program = parse_program(text, sidecar);
  if (program.ok()) return *program;
  Diagnostics problems = program.errors();
  for (Diagnostic& d : problems) d.where = file.string() + ":" + d.where;
  return problems;
}

}  // namespace hoist
