// The exit codes of the hoist program, for scripts. Commands return one of them or Diagnostics, whose kind has a code;
// command_line.cpp alone prints the problems. The libraries below the command line know nothing of exit codes.
#pragma once

#include "ir/base/result.h"

namespace hoist {

enum class ExitCode : int {
  done = 0,
  no = 1,         ///< a negative answer: a test failed, a model is not supported
  usage = 2,      ///< wrong use of the command line
  bad_input = 3,  ///< a file that is missing, damaged or does not fit, or one that cannot be written
  device = 4,     ///< no OpenCL device, or it fails; memory runs out
  differs = 5,    ///< the compiled program computes other values than the model
};

/// The code of the first problem.
inline ExitCode exit_code(const Diagnostics& problems) {
  switch (problems.front().kind) {
    case ErrorKind::input:
      return ExitCode::bad_input;
    case ErrorKind::usage:
      return ExitCode::usage;
    case ErrorKind::device:
      return ExitCode::device;
    case ErrorKind::difference:
      return ExitCode::differs;
    case ErrorKind::negative:
      return ExitCode::no;
  }
  return ExitCode::bad_input;
}

/// ExitCode::done after a step without a value, or its problems.
inline Result<ExitCode> done(const Result<Nothing>& step) {
  if (!step.ok()) return step.errors();
  return ExitCode::done;
}

}  // namespace hoist
