// Programs in files: the text, and beside it a folder with the values of large constants, named by their hashes
// (TensorProto files, which hold every type). For inspect, rewrite and whatever prints programs between passes.
#pragma once

#include <filesystem>
#include <string>

#include "ir/program/program.h"
#include "tools/cli/attempt.h"

namespace hoist {

/// The folder of a file's constants: FILE.constants.
std::filesystem::path constants_folder(const std::filesystem::path& file);
/// Text and constants; nothing is left behind after an error.
Attempt<> write_program(const Program& program, const std::filesystem::path& file);
/// Writes the program there, or shows it where no file is named, and answers as JSON where that is asked for.
Attempt<> show_program(const Program& program, const std::string& file, const std::string& json);
Attempt<Program> read_program(const std::filesystem::path& file);

}  // namespace hoist
