// Base classes of several passes over Halide's lowered program. For the files of this folder only, which use Halide's
// internal terms throughout.
#pragma once

#include <map>
#include <string>

#include "backends/halide/emitter.h"

namespace hoist::emission {

using namespace Halide::Internal;  // NOLINT: these files are about nothing else
using HExpr = Halide::Expr;

/// True if the statement loads from any array.
bool loads(const Stmt& s);

/// A lane of a vector, as a scalar. Halide's extract_lane refuses shuffles of scalars, which loops over lanes leave.
HExpr lane_of(const HExpr& vector, int lane);

/// Tracks the values of the enclosing lets, so that a pass can expand an index.
class WithLets : public IRMutator {
 protected:
  using IRMutator::visit;
  std::map<std::string, HExpr> lets_;

  Stmt visit(const LetStmt* op) override {
    HExpr value = mutate(op->value);
    lets_[op->name] = value;
    Stmt body = mutate(op->body);
    lets_.erase(op->name);
    return LetStmt::make(op->name, value, body);
  }
  HExpr visit(const Let* op) override {
    HExpr value = mutate(op->value);
    lets_[op->name] = value;
    HExpr body = mutate(op->body);
    lets_.erase(op->name);
    return Let::make(op->name, value, body);
  }
  HExpr expanded(HExpr e) const {
    for (;;) {
      HExpr next = substitute(lets_, e);
      if (next.same_as(e)) return e;
      e = next;
    }
  }
};

/// Drops lets without a use.
class WithUsedLets : public WithLets {
 protected:
  using WithLets::visit;

  Stmt visit(const LetStmt* op) override {
    Stmt s = WithLets::visit(op);
    const LetStmt* let = s.as<LetStmt>();
    return let != nullptr && !stmt_uses_var(let->body, let->name) ? let->body : s;
  }
  HExpr visit(const Let* op) override {
    HExpr e = WithLets::visit(op);
    const Let* let = e.as<Let>();
    return let != nullptr && !expr_uses_var(let->body, let->name) ? let->body : e;
  }
};

}  // namespace hoist::emission
