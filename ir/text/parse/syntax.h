// The output of the parser before typing: tokens and a syntax tree. Internal to parsing; the rest of hoist uses terms
// only. Nesting, text length and the magnitude of sizes are limited, so that untrusted text ends in an error and not in
// a stack overflow.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/language/expression.h"
#include "ir/text/program_text.h"

namespace hoist {

inline constexpr size_t text_limit = size_t{256} << 20;  ///< bytes of a text; constants may be large
inline constexpr int nesting_limit = 500;                ///< nesting limit of parentheses and functions
inline constexpr int depth_limit = 2000;                 ///< depth limit of a term, from its root to a leaf
inline constexpr int64_t size_limit = int64_t{1} << 40;  ///< limit of an integer in a size

struct Token {
  enum Kind : uint8_t { name, number, parameter, symbol, payload, string, end } kind = end;
  std::string text;    ///< of a parameter: without the %; of a number: without its suffix
  std::string suffix;  ///< of a number: its type, or "" if untyped; of a payload: the scalar before the #
  int line = 1, column = 1;
  bool adjacent = false;  ///< directly after the previous token
};
Result<std::vector<Token>> tokenise(const std::string& text);
Diagnostic fault_at(const Token& token, const std::string& what, const std::string& hint = {});

/// A function's parameter: a name, or parts that destructure a tuple. In operators' definitions, names of its extents
/// may follow: `row[n]`.
struct Binder {
  std::string name;
  std::vector<Binder> parts;
  std::vector<std::string> extents = {};
};

struct Syntax;
using Syn = const Syntax*;

struct Syntax {
  enum Kind : uint8_t {
    application,  ///< text: the head; children: arguments; the attributes that the head's pattern takes
    parameter,    ///< text: its name; type
    number,       ///< text, suffix
    bits,         ///< text: hexadecimal digits; suffix: the scalar
    constant,     ///< tensor
    tuple,        ///< children
    component,    ///< children[0] . integers[0]
    prefix,       ///< function, children[0]
    infix,        ///< function, children[0], children[1]
    section,      ///< function; children: none, or the right operand
    lambda,       ///< binders, children[0]: the body
    compose,      ///< children[0] >> children[1]
    pipe,         ///< children[0] |> children[1]
    let,          ///< text = children[0] in children[1]
    where,        ///< children[0] where names[i] = children[i + 1]
    operation,    ///< children: the present operands; call
    string,       ///< text
  } kind = application;
  std::string text, suffix;  ///< suffix: of a host op, the function
  std::vector<Syn> children;
  std::vector<Binder> binders;
  std::vector<std::string> names;
  std::vector<Nat> sizes;
  std::vector<int64_t> integers;
  Function function = Function::add;
  Mode mode = Mode::view;
  int dimension = 0;
  Memory memory = Memory::global;
  Border border = Border::value;
  Type type = nullptr;
  Tensor tensor;
  OperatorCall call;
  std::map<std::string, std::string> attribute_names;  ///< of a rule's call: attribute -> the name that denotes it
  std::string rest;                                    ///< the name that denotes all other attributes
  Token token;                                         ///< its first token
  int depth = 1;
};

/// Owns syntax; a tree lives as long as its store.
class SyntaxStore {
 public:
  Syntax& add(Syntax::Kind kind, const Token& token) {
    Syntax& s = nodes_.emplace_back();
    s.kind = kind;
    s.token = token;
    return s;
  }

 private:
  std::deque<Syntax> nodes_;
};

/// Parses tokens; one instance per text. `parameters` gives the types of %names; declarations in the text are added.
class SyntaxParser {
 public:
  SyntaxParser(std::vector<Token> tokens, SyntaxStore& store, std::map<std::string, Type> parameters)
      : tokens_(std::move(tokens)), store_(store), parameters_(std::move(parameters)) {}

  Result<Syn> term();
  /// A text that is a program; `attribute` parses the body inside a term.
  Result<Program> whole_program(const Sidecar& sidecar, bool withhold);
  Result<Attribute> attribute();
  /// In rules, names denote attributes: `key = name`, `*rest`.
  void allow_attribute_names() { attribute_names_ = true; }
  /// Operators' definitions may also contain strings, the names of a parameter's extents, `reshape [a][b]`, steps of a
  /// slice by name, and `each x y. e`, which abbreviates `each (\x y. e) x y`.
  void allow_forms() { forms_ = true; }
  Result<Type> type();
  Result<Nat> size();
  Result<std::vector<Nat>> dimensions();  ///< [n][m], or none
  Result<Nothing> end();                  ///< fails if tokens are left
  bool at_end() const { return peek().kind == Token::end; }
  bool take(std::string_view symbol);  ///< consumes the symbol or word if it is next
  Result<Nothing> expect(std::string_view symbol);
  Result<std::string> new_name(std::string_view purpose);  ///< a name that is neither a pattern nor a keyword
  const Token& peek(size_t ahead = 0) const;

 private:
  struct Nest {  // undoes deeper()
    int& nesting;
    ~Nest() { --nesting; }
  };
  bool at(std::string_view symbol, size_t ahead = 0) const;
  Token next();
  Diagnostic expected(const std::string& what) const;
  Result<Syn> sealed(Syntax& s) const;
  Result<Nothing> deeper();
  Result<Syn> core();
  Result<Syn> let_term();
  Result<Syn> lambda();
  Result<Syn> each();
  Result<Binder> binder();
  Result<Syn> where(Syn body);
  Result<Syn> pipe();
  Result<Syn> compose();
  Result<Syn> infix(int least);
  Result<Syn> prefix();
  Result<Syn> application();
  Result<Syn> atom();
  Result<Syn> plain_atom();
  Result<Syn> parenthesised();
  Result<Syn> constant(const Token& token);
  bool at_operator_call() const;
  Result<Syn> operator_call();
  Result<Program> program(const Sidecar& sidecar, bool withhold = false);
  Result<Nothing> program_sizes(Program& program);
  Result<Nothing> program_extent(Program& program);
  Result<Nothing> program_state(Program& program);
  Result<Nothing> program_next(Program& program);
  Result<Nothing> check_states(const Program& program);
  Result<Nothing> program_control(Program& program);
  Result<Nothing> check_control(const Program& program, const Control& control, const Token& word);
  Result<Nothing> controls_stand_last(const Program& program);
  Result<Nothing> program_constant(Program& program, const Sidecar& sidecar, bool withhold);
  Result<std::vector<std::string>> quoted_names(const std::string& what);
  Result<std::vector<std::string>> layers();
  Result<std::vector<int64_t>> integer_list();
  Result<Nothing> fact(Definition& definition);
  Result<Nothing> program_domain(Program& program);
  Result<Nothing> program_definition(Program& program, bool is_kernel);
  Result<Nothing> program_storage(Program& program);
  Result<Nothing> check_storage(const Program& program);
  void define_whole(const Program& program, const std::string& part);
  Result<Nothing> program_schedule(Program& program);
  Result<Nothing> check_kernel(const Program& program, const Definition& definition, const Token& name);
  Result<Tensor> listed(Scalar scalar, const std::vector<int64_t>& shape);
  // parse_attributes.cpp
  Result<Nothing> attributes(Syntax& s);
  Result<Nothing> definition_attributes(Syntax& s);
  Result<Nothing> mode(Syntax& s);
  Result<Nothing> border(Syntax& s);
  Result<Nothing> order(Syntax& s);  ///< order of the dimensions of a transpose
  bool starts_atom() const;
  bool begins_statement() const;
  Result<Nat> size_sum();
  Result<Nat> size_product();
  Result<Nat> size_factor();
  Result<Nat> size_atom();
  Result<int64_t> integer();
  Result<Type> scalar();

  std::vector<Token> tokens_;
  SyntaxStore& store_;
  std::map<std::string, Type> parameters_;
  std::map<std::string, Type> arrays_;  ///< arrays of the program's storage, by name
  struct Unwritten {
    std::string name;
    int64_t elements;  ///< of the value that no definition has written
  };
  std::map<std::string, std::vector<Unwritten>> unwritten_;  ///< the values in each array
  size_t position_ = 0;
  int nesting_ = 0;
  bool attribute_names_ = false;
  bool forms_ = false;
  std::set<std::string> sizes_;       ///< sizes of the outermost program; bodies may use no others
  int programs_ = 0;                  ///< nesting depth of programs: inside, the keywords of statements end a term
  bool whole_program_ = false;        ///< the text is a program, not a term that contains bodies
  int64_t version_ = newest_version;  ///< version of calls without an explicit version
};

/// True for names that no variable may have: patterns and let, in, where, true, false.
bool is_reserved(std::string_view name);
std::optional<Pattern> pattern_named(std::string_view name);
/// A number as a literal of the type; nothing if it is out of range or not an integer for an integer type.
std::optional<uint64_t> number_bits(Scalar scalar, const std::string& text);

}  // namespace hoist
