// The build runs this program: it reads and types the embedded rules, so that a wrong rule is a build error with the
// line of its file.
#include <cstdio>

#include "lowering/rules/rules.h"

int main() {
  const auto checked = hoist::check_own_rules();
  if (checked.ok()) return 0;
  for (const hoist::Diagnostic& d : checked.errors()) std::fprintf(stderr, "%s\n", d.text().c_str());
  return 1;
}
