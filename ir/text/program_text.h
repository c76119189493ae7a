// Programs as text: one grammar for `hoist inspect --stage graph`, for the output of passes, for goldens, and for the
// input of `hoist rewrite`. parse_program(print_program(p)) is the same program as p (same_program). The values of
// large constants are in a sidecar, by name; the text has their type and hash, which the parser checks.
//
//   program %mnist version 21
//   input %image : [1][1][28][28]f32
//   constant %w : [8][1][5][5]f32 = #58b0c92ad0f1a2b3
//   constant %b : [2]f32 = {0.5, 1}
//   define %y : [1][8][24][24]f32 = Conv(%image, %w; strides = [1, 1]) from "conv1"
//   output %y
//
// States come after the inputs, and their next values after the outputs. The initial value is zeros, or a constant:
//
//   state %h : [1][64]f32 = zeros
//   next %h is %hn
//
// Symbolic sizes are declared before the inputs; from and to may be omitted:
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
  int64_t written_out =
      16;  ///< maximum number of elements of a constant in the text; larger constants go into the sidecar
};
std::string print_program(const Program& program, const ProgramPrintOptions& options = {});

/// The value of a constant of which the text has only the hash; nothing if the sidecar does not contain it.
using Sidecar = std::function<std::optional<Tensor>(const std::string& name, const std::string& hash)>;
/// Errors name line and column: syntax and type errors, a value that is defined twice or used before its definition, a
/// constant that is missing in the sidecar or whose hash differs.
Result<Program> parse_program(const std::string& text, const Sidecar& sidecar = {});
/// The same without a sidecar: large constants are withheld in the program.
Result<Program> parse_program_without_values(const std::string& text);

/// The hash of type and bytes, in hexadecimal: it represents a large constant in a program's text.
std::string constant_hash(const Tensor& tensor);

}  // namespace hoist
