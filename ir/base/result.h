// Errors as values. A Result holds a value or the Diagnostics that explain its absence: the offender, the fault and the
// remedy. HOIST_CHECK is for broken invariants of hoist, never for bad input: it prints a message and aborts, in every
// build.
#pragma once

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hoist {

/// The side that a caller has to repair. A command ends with the exit code of the kind.
enum class ErrorKind {
  input,       ///< a file that is missing, damaged or does not fit, or one that cannot be written
  usage,       ///< wrong use of the command line
  device,      ///< no device, or it fails; memory runs out
  difference,  ///< the compiled program computes other values than the model
  negative,    ///< a negative answer: a rule does not apply, there is nothing to reduce
};

/// One message, lower case without a full stop. `where` names the offender (a file, a layer, a path inside a term);
/// `hint` gives the remedy and may be empty.
struct Diagnostic {
  std::string where;
  std::string what;
  std::string hint = {};
  ErrorKind kind = ErrorKind::input;

  /// "where: what (hint)"
  std::string text() const {
    std::string out = where.empty() ? what : where + ": " + what;
    return hint.empty() ? out : out + " (" + hint + ")";
  }
};

/// A message about wrong use of a command line.
inline Diagnostic usage_error(std::string where, std::string what, std::string hint = "") {
  return {std::move(where), std::move(what), std::move(hint), ErrorKind::usage};
}

/// All problems of one step in the order of their discovery; never empty in a failed Result.
using Diagnostics = std::vector<Diagnostic>;

/// Gives all problems that kind.
inline Diagnostics with_kind(ErrorKind kind, Diagnostics problems) {
  for (Diagnostic& problem : problems) problem.kind = kind;
  return problems;
}

struct Nothing {};

template <class T = Nothing>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}                                  // NOLINT: implicit by design
  Result(Diagnostic diagnostic) : content_(Diagnostics{std::move(diagnostic)}) {}  // NOLINT: implicit by design
  Result(Diagnostics diagnostics) : content_(std::move(diagnostics)) {}            // NOLINT: implicit by design

  bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() { return std::get<0>(content_); }
  const T& value() const { return std::get<0>(content_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Diagnostics& errors() const { return std::get<1>(content_); }

 private:
  std::variant<T, Diagnostics> content_;
};

/// The result, whose errors are of that kind.
template <class T>
Result<T> with_kind(ErrorKind kind, Result<T> result) {
  if (result.ok()) return result;
  return with_kind(kind, result.errors());
}

/// Thrown by a failed HOIST_CHECK during the lifetime of a FaultsAreErrors.
struct InternalFault {
  std::string text;
};

/// During the lifetime of an instance, HOIST_CHECK throws InternalFault on this thread instead of aborting; the owner
/// catches it. For replaying derivations: an untrusted file drives the compiler into states that hoist never produces
/// otherwise.
class FaultsAreErrors {
 public:
  FaultsAreErrors() { ++count(); }
  ~FaultsAreErrors() { --count(); }
  FaultsAreErrors(const FaultsAreErrors&) = delete;
  FaultsAreErrors& operator=(const FaultsAreErrors&) = delete;
  static bool any() { return count() > 0; }

 private:
  static int& count() {
    thread_local int count = 0;
    return count;
  }
};

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  if (FaultsAreErrors::any()) throw InternalFault{message};
  std::fprintf(stderr, "hoist: internal error at %s:%d: %s: %s\n", file, line, condition, message.c_str());
  std::signal(SIGABRT, SIG_DFL);  // handlers of the embedding program are for other aborts
  std::abort();
}

}  // namespace hoist

/// HOIST_CHECK(condition, message): `message` is any expression that converts to std::string.
#define HOIST_CHECK(condition, message) \
  ((condition) ? (void)0 : ::hoist::check_failed(__FILE__, __LINE__, #condition, (message)))

#define HOIST_JOIN_(a, b) a##b
#define HOIST_JOIN(a, b) HOIST_JOIN_(a, b)

/// HOIST_TRY(auto x, step()): binds the value of a Result, or returns its errors from the enclosing function.
#define HOIST_TRY(declaration, expression)                                                \
  auto HOIST_JOIN(result_, __LINE__) = (expression);                                      \
  if (!HOIST_JOIN(result_, __LINE__).ok()) return HOIST_JOIN(result_, __LINE__).errors(); \
  declaration = std::move(*HOIST_JOIN(result_, __LINE__))

/// HOIST_TRY_VOID(step()): the same for a Result whose value is not needed.
#define HOIST_TRY_VOID(expression) \
  if (auto result_ = (expression); !result_.ok()) return result_.errors()
