// Run by the build: reads and types the rules that were embedded, so that a wrong one is an error at build, with the
// line of its file.
#include <cstdio>

#include "lowering/rules/rules.h"

int main() {
  const auto checked = hoist::check_own_rules();
  if (checked.ok()) return 0;
  for (const hoist::Diagnostic& d : checked.errors()) std::fprintf(stderr, "%s\n", d.text().c_str());
  return 1;
}
