#include "backends/halide/passes/mutators.h"

namespace hoist::emission {

bool loads(const Stmt& s) {
  struct Finder : IRGraphVisitor {
    using IRGraphVisitor::visit;
    bool found = false;
    void visit(const Load*) override { found = true; }
  } finder;
  s.accept(&finder);
  return finder.found;
}

}  // namespace hoist::emission
