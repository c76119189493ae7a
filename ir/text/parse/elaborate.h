// Syntax to terms: names are resolved, sugar is expanded, bare numbers take their types from where they stand, and
// every node goes through make(). Internal to parsing.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/text/definitions.h"
#include "ir/text/parse/known.h"
#include "ir/text/parse/syntax.h"

namespace hoist {

class Vocabulary;

class Elaborator {
 public:
  /// An argument still to be made, or made.
  struct Argument {
    Syn syntax = nullptr;
    Expr made = nullptr;
  };

  /// A bare number of a type variable's type becomes the metavariable #number instead of an error: definitions that the
  /// printer looks for are terms of this kind.
  bool numbers_as_metas = false;

  void declare(const std::string& name, const MetaDeclaration& meta);
  /// A name that stands for a closed term, and a size that has a value.
  void declare_value(const std::string& name, Expr e);
  void declare_size(const std::string& name, const Nat& value) { scope_.sizes.emplace(name, value); }
  Result<Expr> run(Syn s) { return value(s, nullptr); }
  /// The same where bare numbers have this type.
  Result<Expr> typed(Syn s, Type numbers) { return value(s, numbers); }

  /// What a definition of an operator has beside the language; null elsewhere.
  const Vocabulary* vocabulary = nullptr;
  /// The value of a term that is known while an operator is defined.
  std::optional<Known> known(Syn s);
  /// The same where the definitions of a where have their names; null is none.
  std::optional<Known> known_within(Syn where, Syn s);
  std::optional<Nat> size_named(const std::string& name) const;
  /// A size whose names have the values that they have here: those of extents, and of what is known.
  Nat size(const Nat& n);
  Result<Expr> argument(const Argument& a, Type number);
  /// The function that stands there. Its last parameters are these known values, which are no arguments of what is
  /// made.
  Result<Expr> function_argument(const Argument& a, const std::vector<Type>& types, Type number,
                                 const std::vector<Known>& known = {});

  /// What names stand for in the attributes of operator calls.
  std::map<std::string, Attribute> attributes;
  std::map<std::string, Attributes> rests;
  /// The version of operator calls, where it is not that of the text.
  std::optional<int64_t> version;

 private:
  struct Scope;
  /// What a name means; the innermost one counts.
  struct Entry {
    enum Kind : uint8_t { variable, defined, closed_value, closed_function, meta, known_value } kind = variable;
    std::string name;
    int level = 0;  // of a variable: number of variables outside it; of a closed value: depth it was made at
    Type type = nullptr;
    std::vector<int64_t> path;  // of a variable: components that lead to it
    size_t definition = 0;
    Expr value = nullptr;
    Syn syntax = nullptr;
    std::shared_ptr<Scope> scope;
    MetaDeclaration declaration;
    Known known = {};
  };
  struct Scope {
    std::vector<Entry> entries;
    int depth = 0;
    std::map<std::string, Nat> sizes;
  };
  /// A definition of a where, made when it is first used, once for each type of arguments.
  struct Where {
    Syn syntax = nullptr;
    size_t entries = 0;
    int depth = 0;
    bool busy = false;
    Expr value = nullptr;
    std::map<std::vector<Type>, Expr> functions;
    std::optional<std::optional<Known>> known = {};  ///< once somebody asked whether it is
  };
  class Inside;

  // `number` is the type that bare numbers take, null where it is not known.
  Result<Expr> value(Syn s, Type number);
  Result<std::vector<Expr>> group(const std::vector<Argument>& arguments, Type number);
  Result<Expr> applied(Syn f, const std::vector<Expr>& arguments, Type number);
  Result<Expr> function(Syn f, const std::vector<Type>& types, Type number, const std::vector<Known>& known = {});
  Result<Expr> named(Syn s, const std::vector<Expr>& more, Type number);
  Result<Expr> entry(const Entry& e, Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Expr> where_value(size_t definition, Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Expr> pattern(Pattern p, Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Expr> scalar_call(Function f, Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Expr> composition(Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Expr> expand(const NamedDefinition& d, Syn s, const std::vector<Argument>& arguments,
                      const std::vector<std::optional<Expr>>& made);
  Result<Expr> number(Syn s, Type type);
  Result<Expr> bits(Syn s);
  Result<Expr> let(Syn s, Type number);
  Result<Expr> finish(Spec spec, Syn s);
  Result<Nothing> bind(const Binder& b, Type type, int level, const std::vector<int64_t>& path, Syn s);
  Expr variable(const Entry& e) const;
  const Entry* find(const std::string& name) const;
  Diagnostic unknown(Syn s) const;
  size_t declare_definitions(Syn where);
  std::optional<Nat> known_size(const std::string& name);
  std::optional<Known> known_entry(const Entry& e);
  bool bare(Syn s);
  Result<Expr> known_literal(const Known& value, Syn s, Type number);
  struct Weight {
    double elements;
    int64_t nodes;
  };
  Weight weight(Type type);

  Scope scope_;
  std::deque<Where> wheres_;
  std::unordered_map<Expr, int> depths_;
  std::unordered_map<Type, Weight> weights_;
  /// Refuses to go on where the recursion has become too deep, in steps or in bytes of the stack: how much a step takes
  /// depends on the build.
  Result<Nothing> deeper(Syn s);
  struct Nest {  // undoes deeper()
    int& recursion;
    ~Nest() { --recursion; }
  };

  int recursion_ = 0;
  const char* stack_ = static_cast<const char*>(__builtin_frame_address(0));
};

/// The names and functions that a definition of an operator has beside the language.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;
  /// What a name, or a call of a function on what is known, stands for; nothing where it is neither.
  virtual std::optional<Known> known(Elaborator& elaborator, Syn s) const = 0;
  /// A call of a form, which may take functions and arrays of any rank; nothing where there is no form of this name.
  virtual std::optional<Result<Expr>> form(Elaborator& elaborator, Syn s,
                                           const std::vector<Elaborator::Argument>& arguments, Type number) const = 0;
};

// Works in another scope for a while.
class Elaborator::Inside {
 public:
  Inside(Elaborator& e, Scope scope) : elaborator_(e), outer_(std::exchange(e.scope_, std::move(scope))) {}
  ~Inside() { elaborator_.scope_ = std::move(outer_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  const Scope& outer() const { return outer_; }

 private:
  Elaborator& elaborator_;
  Scope outer_;
};

/// The scalar (or type variable) at every leaf of a type; null where leaves differ.
Type leaf_scalar(Type type);
/// Whether a term holds nothing but numbers without types: it takes its type from its neighbours.
bool is_bare(Syn s);

}  // namespace hoist
