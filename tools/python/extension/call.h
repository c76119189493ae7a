// Calls from Python into the compiler. The work runs in a thread of its own without the GIL, while the calling thread
// waits and lets Python handle signals: Ctrl-C ends the work at its next cancellation point, or, if it already has a
// result (tools/base/interruption.h), makes it finish early. One call runs at a time; others wait. Failures become
// Python exceptions.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "ir/base/result.h"

namespace hoist {

/// Sets the class of the exceptions of raise_failure: (exit code, ((where, what, hint), ...)).
void set_failure_class(const pybind11::object& failure);
[[noreturn]] void raise_failure(const Diagnostics& problems);

/// Text for Python, which allows only UTF-8: other bytes are written as \x1b.
pybind11::str text_of(std::string_view text);
/// The problems as ((where, what, hint), ...).
pybind11::tuple problems_of(const Diagnostics& problems);

/// Runs the work and waits for its end. `listener` receives messages as (kind, where, what, hint), and progress with
/// the kind "progress"; None receives nothing. Exceptions of the listener are reported and go no further. Results and
/// the content of files "-" are appended to the two texts.
struct Heard {
  std::string results, files;
};
void perform(const pybind11::object& listener, Heard& heard, const std::function<void()>& work);

/// The same, with the value of the work; its errors are raised.
template <class Value>
Value perform_or_raise(const pybind11::object& listener, const std::function<Result<Value>()>& work) {
  Heard heard;
  Result<Value> out = Diagnostics{};
  perform(listener, heard, [&] { out = work(); });
  if (!out.ok()) raise_failure(out.errors());
  return std::move(*out);
}

}  // namespace hoist
