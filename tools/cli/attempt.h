// The result of a command of the hoist program: a value, or a Failure with the exit code for scripts and the messages.
// Commands return these to main.cpp, the only place that prints failures. The libraries below tools know nothing of
// exit codes and return Result.
#pragma once

#include <string>
#include <utility>
#include <variant>

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

struct Failure {
  ExitCode code = ExitCode::bad_input;
  Diagnostics problems;
};

inline Failure usage_failure(std::string where, std::string what, std::string hint = "") {
  return {ExitCode::usage, {{std::move(where), std::move(what), std::move(hint)}}};
}
inline Failure input_failure(std::string where, std::string what, std::string hint = "") {
  return {ExitCode::bad_input, {{std::move(where), std::move(what), std::move(hint)}}};
}

template <class T = ExitCode>
class [[nodiscard]] Attempt {
 public:
  Attempt(T value) : content_(std::move(value)) {}            // NOLINT: implicit by design
  Attempt(Failure failure) : content_(std::move(failure)) {}  // NOLINT: implicit by design

  bool ok() const { return content_.index() == 0; }
  T& operator*() { return std::get<0>(content_); }
  const T& operator*() const { return std::get<0>(content_); }
  T* operator->() { return &std::get<0>(content_); }
  const T* operator->() const { return &std::get<0>(content_); }
  const Failure& failure() const { return std::get<1>(content_); }

 private:
  std::variant<T, Failure> content_;
};

}  // namespace hoist

/// HOIST_STEP(auto graph, ExitCode::bad_input, read_model(path)): binds a Result's value, or returns its errors from
/// the enclosing function as a Failure with this exit code.
#define HOIST_STEP(declaration, code, expression)                                                    \
  auto HOIST_JOIN(step_, __LINE__) = (expression);                                                   \
  if (!HOIST_JOIN(step_, __LINE__).ok()) return Failure{code, HOIST_JOIN(step_, __LINE__).errors()}; \
  declaration = std::move(*HOIST_JOIN(step_, __LINE__))

#define HOIST_STEP_VOID(code, expression)                      \
  if (auto step_ = (expression); !step_.ok()) return Failure { \
      code, step_.errors()                                     \
    }

/// HOIST_ATTEMPT(auto model, compile_model(options)): the same for an Attempt.
#define HOIST_ATTEMPT(declaration, expression)                                               \
  auto HOIST_JOIN(attempt_, __LINE__) = (expression);                                        \
  if (!HOIST_JOIN(attempt_, __LINE__).ok()) return HOIST_JOIN(attempt_, __LINE__).failure(); \
  declaration = std::move(*HOIST_JOIN(attempt_, __LINE__))
