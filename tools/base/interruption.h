// Once long work has a first result, the first Ctrl-C or SIGTERM does not end the program: the work ends at its next
// check, and its result is used. The second one, or one before there is a result, ends the program as usual
// (end_on_signals in command_line.cpp).
#pragma once

namespace hoist {

class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  /// An interrupted run has a result from here on; `note` tells the user which result, and outlives the object.
  void arm(const char* note = "the choice is made from the points verified so far");
  /// Until then an interruption ends the program; `note` tells the user what is kept, and outlives the object.
  void explain_end(const char* note);
  bool interrupted() const;
};

/// For the thread that waits for signals: true if an Interruptible has handled this one.
bool taken_as_interruption(int signal_number);

}  // namespace hoist
