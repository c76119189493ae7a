// Calls from Python into the compiler. Work runs in a thread of its own, without Python's lock, while the thread that
// called waits and lets Python handle signals: Ctrl-C ends the work at its next cancellation point, or where there is
// something to show already (tools/cli/interruption.h) makes it come to an end. One call works at a time, others wait
// for it. What it fails of is an exception of Python.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "tools/cli/attempt.h"

namespace hoist {

/// The class of what raise_failure raises: (exit code, ((where, what, hint), ...)).
void set_failure_class(const pybind11::object& failure);
[[noreturn]] void raise_failure(const Failure& failure);

/// Python has no text that is not UTF-8: other bytes are written as \x1b.
pybind11::str text_of(std::string_view text);
/// ((where, what, hint), ...)
pybind11::tuple problems_of(const Diagnostics& problems);

/// Does the work and waits for its end. `listener` hears messages: (kind, where, what, hint), of progress with the kind
/// "progress"; None for nobody. What it raises is reported and goes no further. Results and files "-" are added to the
/// two texts.
struct Heard {
  std::string results, files;
};
void perform(const pybind11::object& listener, Heard& heard, const std::function<void()>& work);

/// The same with the value of an attempt.
template <class Value>
Value perform_attempt(const pybind11::object& listener, const std::function<Attempt<Value>()>& work) {
  Heard heard;
  Attempt<Value> out = Failure{};
  perform(listener, heard, [&] { out = work(); });
  if (!out.ok()) raise_failure(out.failure());
  return std::move(*out);
}

}  // namespace hoist
