// Work that has something to show for itself before it is done: from then on the first Ctrl-C or SIGTERM is noted
// instead of ending the program, and the work ends when it next asks. The second one, or one before there is anything
// to show, ends the program as ever (end_on_signals in command_line.cpp).
#pragma once

namespace hoist {

class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  /// There is something to show; `note` says to whoever interrupts what comes of it, and outlives the object.
  void arm(const char* note = "what is verified by now is chosen from");
  /// Until then an interruption ends the program; `note` says to whoever interrupts what is kept, and outlives the
  /// object.
  void explain_end(const char* note);
  bool interrupted() const;
};

/// What the thread that waits for signals asks: whether this one was taken by an Interruptible.
bool taken_as_interruption(int signal_number);

}  // namespace hoist
