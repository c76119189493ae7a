// From syntax to terms: resolves names, expands sugar, infers the types of untyped literals from their context, and
// makes every node with make(). Internal to parsing.
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
  /// An argument: syntax, or a term that is already made.
  struct Argument {
    Syn syntax = nullptr;
    Expr made = nullptr;
  };

  /// An untyped literal whose type is a type variable becomes the metavariable #number instead of an error: the printer
  /// matches such definitions.
  bool numbers_as_metas = false;

  void declare(const std::string& name, const MetaDeclaration& meta);
  /// Declares a name for a closed term, and a size with a known value.
  void declare_value(const std::string& name, Expr e);
  void declare_size(const std::string& name, const Nat& value) { scope_.sizes.emplace(name, value); }
  Result<Expr> run(Syn s) { return value(s, nullptr); }
  /// run() with a type for untyped literals.
  Result<Expr> typed(Syn s, Type numbers) { return value(s, numbers); }

  /// The additional names and functions in an operator's definition; otherwise null.
  const Vocabulary* vocabulary = nullptr;
  /// The value of a term that is known while an operator is defined.
  std::optional<Known> known(Syn s);
  /// The same in the scope of the definitions of a `where`; `where` may be null.
  std::optional<Known> known_within(Syn where, Syn s);
  std::optional<Nat> size_named(const std::string& name) const;
  /// A size with the known values in scope substituted: extents and known values.
  Nat size(const Nat& n);
  Result<Expr> argument(const Argument& a, Type number);
  /// The argument as a function. Its last parameters are bound to the known values.
  Result<Expr> function_argument(const Argument& a, const std::vector<Type>& types, Type number,
                                 const std::vector<Known>& known = {});

  /// Names that denote attributes of operator calls, with their values.
  std::map<std::string, Attribute> attributes;
  std::map<std::string, Attributes> rests;
  /// The version of operator calls, if it differs from the text's.
  std::optional<int64_t> version;

 private:
  struct Scope;
  /// The meaning of a name; the innermost entry is used.
  struct Entry {
    enum Kind : uint8_t { variable, defined, closed_value, closed_function, meta, known_value } kind = variable;
    std::string name;
    int level = 0;  // of a variable: number of variables outside it; of a closed value: depth of its creation
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
  /// A definition of a `where`, elaborated at its first use, once for each combination of argument types.
  struct Where {
    Syn syntax = nullptr;
    size_t entries = 0;
    int depth = 0;
    bool busy = false;
    Expr value = nullptr;
    std::map<std::vector<Type>, Expr> functions;
    std::optional<std::optional<Known>> known = {};  ///< set by the first query for a known value
  };
  class Inside;

  // `number` is the type of untyped literals, or null if it is unknown.
  Result<Expr> value(Syn s, Type number);
  Result<std::vector<Expr>> group(const std::vector<Argument>& arguments, Type number);
  Result<Expr> applied(Syn f, const std::vector<Expr>& arguments, Type number);
  Result<Expr> function(Syn f, const std::vector<Type>& types, Type number, const std::vector<Known>& known = {});
  Result<Expr> named(Syn s, const std::vector<Expr>& more, Type number);
  Result<Expr> entry(const Entry& e, Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Expr> where_value(size_t definition, Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Expr> pattern(Pattern p, Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Spec> pattern_attributes(Pattern p, Syn s);
  /// A pattern whose first argument is a function: its types follow from the other arguments.
  Result<Expr> pattern_of_function(Spec spec, Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Expr> scalar_call(Function f, Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Expr> composition(Syn s, const std::vector<Argument>& arguments, Type number);
  Result<Expr> expand(const NamedDefinition& d, Syn s, const std::vector<Argument>& arguments,
                      const std::vector<std::optional<Expr>>& made);
  Result<Expr> number(Syn s, Type type);
  Result<Expr> bits(Syn s);
  Result<Expr> operation(Syn s);
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
  /// Fails if the recursion is too deep, in levels or in bytes of stack: the stack used per level depends on the build.
  Result<Nothing> deeper(Syn s);
  struct Nest {  // undoes deeper()
    int& recursion;
    ~Nest() { --recursion; }
  };

  int recursion_ = 0;
  const char* stack_ = static_cast<const char*>(__builtin_frame_address(0));
};

/// The names and functions available in an operator's definition in addition to the language.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;
  /// The known value of a name or of a call on known values; nothing for other syntax.
  virtual std::optional<Known> known(Elaborator& elaborator, Syn s) const = 0;
  /// A call of a form, which may take functions and arrays of any rank; nothing if no form has this name.
  virtual std::optional<Result<Expr>> form(Elaborator& elaborator, Syn s,
                                           const std::vector<Elaborator::Argument>& arguments, Type number) const = 0;
};

// Switches to another scope during its lifetime.
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
/// True if a term consists of untyped literals only, so that its type comes from its context.
bool is_bare(Syn s);

}  // namespace hoist
