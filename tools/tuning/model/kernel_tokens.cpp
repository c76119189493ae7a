#include "tools/tuning/model/kernel_tokens.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "lowering/terms/terms.h"

namespace hoist::tuning {
namespace {

// Numbers are quantised to half octaves; the kinds of statements follow.
constexpr int number_tokens = 100;
constexpr int mode_tokens = 8 * 3 * 2;  // with the dimension, for maps and folds

int number_token(double number) {
  return 1 + std::min(static_cast<int>(std::lround(2 * std::log2(std::max(number, 1.0)))), number_tokens - 2);
}

int pattern_tokens() { return static_cast<int>(pattern_table().size()); }
int function_tokens() { return static_cast<int>(function_table().size()); }

/// The kind of a node: its pattern; for loops the mode, for calls the function.
int kind_token(Expr e) {
  const int kinds = number_tokens;
  switch (e->pattern) {
    case Pattern::map:
    case Pattern::fold:
      return kinds + pattern_tokens() + function_tokens() + (static_cast<int>(e->mode) * 3 + e->dimension) * 2 +
             (e->pattern == Pattern::fold ? 1 : 0);
    case Pattern::call:
      return kinds + pattern_tokens() + static_cast<int>(e->function);
    default:
      return kinds + static_cast<int>(e->pattern);
  }
}

int type_token(Type type) {
  const Type leaf = leaf_of(type);
  const int scalars = number_tokens + pattern_tokens() + function_tokens() + mode_tokens;
  return leaf->is_scalar() ? scalars + static_cast<int>(leaf->scalar) : scalars + 32;
}

/// The stride or the cut of a view, or the memory of an array.
int detail_token(Expr e) {
  switch (e->pattern) {
    case Pattern::materialise:
      return 1 + static_cast<int>(e->memory);
    case Pattern::pad:
      return 1 + static_cast<int>(e->border);
    case Pattern::slice:
      return number_token(static_cast<double>(std::abs(e->integers[0])));
    case Pattern::transpose:
      return 1 + static_cast<int>(e->integers.size() - 1 - static_cast<size_t>(e->integers.back()));
    default:
      return e->sizes.empty() ? 1 : number_token(static_cast<double>(e->sizes.back().value()));
  }
}

double innermost_of(Type type) {
  double size = 1;
  for (; type->is_array(); type = type->element) size = static_cast<double>(type->size.value());
  return size;
}

class Writer {
 public:
  explicit Writer(std::vector<Statement>& statements) : statements_(statements) {}

  void write(Expr e, double repeated) {
    if (!met_.insert(e).second) return;
    if (says_something(e)) {
      const bool loop = !e->children.empty() && e->children[0]->pattern == Pattern::function;
      const double extent = loop ? static_cast<double>(applications(e)) : innermost_of(e->type);
      statements_.push_back({kind_token(e), type_token(e->type), number_token(extent),
                             number_token(elements_of(e->type)), detail_token(e), number_token(repeated)});
    }
    for (const Expr child : e->children) {
      const bool body = child->pattern == Pattern::function && e->pattern != Pattern::let;
      write(child, body ? repeated * static_cast<double>(applications(e)) : repeated);
    }
  }

 private:
  static bool says_something(Expr e) {
    switch (e->pattern) {
      case Pattern::bound:
      case Pattern::literal:
      case Pattern::constant:
      case Pattern::function:
      case Pattern::get:
      case Pattern::tuple:
      case Pattern::zip:
      case Pattern::let:
      case Pattern::identity:
        return false;
      case Pattern::map:
        return e->mode != Mode::view;
      default:
        return true;
    }
  }

  std::vector<Statement>& statements_;
  std::unordered_set<Expr> met_;
};

}  // namespace

int token_count() { return number_tokens + pattern_tokens() + function_tokens() + mode_tokens + 33; }

std::vector<Statement> kernel_tokens(Expr term, const Profile& profile, const Circumstances& circumstances) {
  std::vector<Statement> statements = {{profile.gpu            ? 1
                                        : circumstances.native ? 2
                                                               : 3,
                                        number_token(static_cast<double>(profile.vector_width)),
                                        number_token(static_cast<double>(profile.vector_registers)),
                                        number_token(static_cast<double>(profile.compute_units)),
                                        profile.dot_instructions ? 1 : 2,
                                        number_token(std::pow(circumstances.contention, 4))}};
  Writer(statements).write(term, 1);
  return statements;
}

}  // namespace hoist::tuning
