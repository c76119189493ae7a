// Programs as text: one grammar for what `hoist inspect --stage graph` prints, what passes print, goldens, and the text
// that `hoist rewrite` reads. parse_program(print_program(p)) is the same program as p (same_program). The values of
// large constants stand in a sidecar, by name; the text has their type and hash, which reading compares.
//
//   program %mnist version 21
//   input %image : [1][1][28][28]f32
//   constant %w : [8][1][5][5]f32 = #58b0c92ad0f1a2b3
//   constant %b : [2]f32 = {0.5, 1}
//   define %y : [1][8][24][24]f32 = Conv(%image, %w; strides = [1, 1]) from "conv1"
//   output %y
//
// Sizes that have no number yet stand before the inputs; from and to may be left out:
//
//   size batch from 1 to 512
//   input %image : [batch][1][28][28]f32
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/program/program.h"

namespace hoist {

struct ProgramPrintOptions {
  int width = 120;
  int64_t written_out = 16;  ///< elements of a constant that is printed as numbers; larger ones go into the sidecar
};
std::string print_program(const Program& program, const ProgramPrintOptions& options = {});

/// The value of a constant whose text has only its hash; nothing where the sidecar lacks it.
using Sidecar = std::function<std::optional<Tensor>(const std::string& name, const std::string& hash)>;
/// Errors name line and column: what does not parse or type, a value that is defined twice or read before it is
/// defined, a constant that the sidecar lacks or whose hash differs.
Result<Program> parse_program(const std::string& text, const Sidecar& sidecar = {});
/// The same where only the hash of a large constant is to be had: the program has it withheld.
Result<Program> parse_program_without_values(const std::string& text);

/// Of type and bytes, in hexadecimal: what stands in a program's text for a large constant.
std::string constant_hash(const Tensor& tensor);

}  // namespace hoist
