// Programs in files: the text, and a folder next to it with the values of large constants as TensorProto files, which
// hold every type, named by their hashes. For inspect, rewrite and every command that prints programs between passes.
#pragma once

#include <filesystem>
#include <string>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

/// The folder of a file's constants: FILE.constants.
std::filesystem::path constants_folder(const std::filesystem::path& file);
/// Writes text and constants; leaves no files after an error.
Result<Nothing> write_program(const Program& program, const std::filesystem::path& file);
/// Writes the program to `file`, or shows it if `file` is empty; writes JSON if `json` is not empty.
Result<Nothing> show_program(const Program& program, const std::string& file, const std::string& json);
Result<Program> read_program(const std::filesystem::path& file);

}  // namespace hoist
