#include <cstdio>

#include "tools/cli/command_line.h"

int main(int argument_count, char** arguments) {
  // The lines of a long command appear at once in pipes and files too.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  return static_cast<int>(hoist::run_command_line(argument_count, arguments));
}
