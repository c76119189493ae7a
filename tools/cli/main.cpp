#include "tools/cli/command_line.h"

int main(int argument_count, char** arguments) {
  return static_cast<int>(hoist::run_command_line(argument_count, arguments));
}
