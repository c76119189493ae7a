#include "tools/python/extension/call.h"

#include <chrono>
#include <csignal>
#include <exception>
#include <future>
#include <mutex>
#include <thread>

#include "ir/base/cancellation.h"
#include "tools/base/child_program.h"
#include "tools/base/exit_code.h"
#include "tools/base/interruption.h"
#include "tools/base/terminal.h"

namespace hoist {
namespace {

namespace py = pybind11;

constexpr auto between_looks = std::chrono::milliseconds(50);

std::timed_mutex at_work;

// Called without the GIL. If it returns true, Python has an exception set in this thread.
bool signal_raised() {
  const py::gil_scoped_acquire held;
  return PyErr_CheckSignals() != 0;
}

// Clears a KeyboardInterrupt if the work handles Ctrl-C by ending early.
bool taken_by_work() {
  const auto is_interrupt = [] {
    const py::gil_scoped_acquire held;
    return PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
  };
  // The work may be calling a Python listener, so the GIL is not held during the query.
  if (!is_interrupt() || !taken_as_interruption(SIGINT)) return false;
  const py::gil_scoped_acquire held;
  PyErr_Clear();
  return true;
}

void tell(const py::object& listener, std::string_view kind, const Diagnostic& problem) {
  const py::gil_scoped_acquire held;
  const py::error_scope pending;  // a note for interrupts is printed while the interrupt is set
  if (listener.is_none()) return;
  try {
    listener(text_of(kind), text_of(problem.where), text_of(problem.what), text_of(problem.hint));
  } catch (py::error_already_set& raised) {
    raised.discard_as_unraisable("a listener of hoist");
  }
}

PyObject* failure_class = nullptr;  // owned by the module, which lives until the process ends

}  // namespace

py::str text_of(std::string_view text) {
  PyObject* out = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (out == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(out);
}

py::tuple problems_of(const Diagnostics& problems) {
  py::list out;
  for (const Diagnostic& problem : problems)
    out.append(py::make_tuple(text_of(problem.where), text_of(problem.what), text_of(problem.hint)));
  return py::tuple(out);
}

void set_failure_class(const py::object& failure) { failure_class = failure.inc_ref().ptr(); }

void raise_failure(const Diagnostics& problems) {
  const py::tuple arguments = py::make_tuple(static_cast<int>(exit_code(problems)), problems_of(problems));
  PyErr_SetObject(failure_class, arguments.ptr());
  throw py::error_already_set();
}

void perform(const py::object& listener, Heard& heard, const std::function<void()>& work) {
  const Audience audience = {
      [&](std::string_view lines) { heard.results += lines; },
      [&](std::string_view content) { heard.files += content; },
      [&](std::string_view kind, const Diagnostic& problem) { tell(listener, kind, problem); },
      [&](const std::string& text) {
        tell(listener, "progress", {"", text, ""});
      },
  };
  std::packaged_task<void()> task([&] {
    // An internal fault becomes an exception, so that it does not end the user's Python process.
    const FaultsAreErrors faults;
    try {
      work();
    } catch (const InternalFault& fault) {
      throw std::runtime_error("internal error of hoist: " + fault.text);
    }
  });
  std::future<void> done = task.get_future();
  bool raised = false;
  {
    const py::gil_scoped_release released;
    std::unique_lock<std::timed_mutex> alone(at_work, std::defer_lock);
    while (!raised && !alone.try_lock_for(between_looks)) raised = signal_raised();
    if (!raised) {
      const WithAudience hears(audience);
      std::thread thread(std::move(task));
      while (done.wait_for(between_looks) != std::future_status::ready) {
        if (raised || !signal_raised() || taken_by_work()) continue;
        raised = true;
        request_cancellation();
        end_programs();
      }
      thread.join();
      withdraw_cancellation();
    }
  }
  if (raised) throw py::error_already_set();
  done.get();
}

}  // namespace hoist
