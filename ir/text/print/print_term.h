// The printer: terms to documents. Internal to printing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/text/parse/syntax.h"
#include "ir/text/print/print_document.h"
#include "ir/text/print/print_sharing.h"
#include "ir/text/text.h"

namespace hoist {

/// Precedence levels; a form inside a form of higher level is put in parentheses. Infix operators lie between.
enum Level : int { loose = 0, piped = 1, composed = 2, infixed = 3, prefixed = 10, applied_level = 11, atomic = 12 };

class Printer {
 public:
  Printer(Expr root, const PrintOptions& options);
  std::string run();

 private:
  /// A subterm below `skipped` variables for which the printer has no names; it uses none of them.
  struct Place {
    Expr e = nullptr;
    int skipped = 0;
  };
  /// One pattern with all arguments but the last.
  struct Stage {
    Expr node = nullptr;           ///< for its type
    std::string head;              ///< name and attributes
    std::vector<Place> arguments;  ///< arguments before the last one: functions or values
    bool bare = false;             ///< an untyped literal among the arguments takes the type of the last argument
    bool section = false;          ///< (+ b)
    Place main;                    ///< the last argument
  };
  struct Named {
    std::string name;
    Expr e = nullptr;
    std::vector<Binder> names;
    std::vector<Sharing::Step> path;
  };

  int depth() const { return static_cast<int>(names_.size()); }
  Document text(std::string s) { return documents_.text(std::move(s)); }
  Document join(std::vector<Document> parts) { return documents_.join(std::move(parts)); }
  Document parenthesised_if(bool wanted, Document d);
  Document list(const std::string& head, const std::vector<Document>& parts, int least);

  Document term(Expr e, int least, bool bare = false);
  Document term_at(const Place& p, int least, bool bare = false);
  Document unshared(Expr e, int least, bool bare);
  Document reference(Expr e);
  Document with_definitions(Document body, int owner, bool parenthesised);
  Document parameter_name(Expr e, int least);
  Document variable(Expr e);
  Document literal(Expr e, int least, bool bare);
  Document constant(Expr e);
  Document operator_call(Expr e);
  Document meta_application(Expr e, int least);
  Document call(Expr e, int least);
  Document let(Expr e, int least);
  std::vector<Document> same_type(const std::vector<Expr>& terms, const std::vector<int>& least);
  std::optional<Stage> stage(const Place& p, bool in_function = false);
  std::optional<Stage> pattern_stage(const Place& p);
  std::optional<Stage> named_stage(const Place& p);
  Document chain(Expr e, std::vector<Stage> stages, int least);
  Document stage_head(const Stage& s);
  Document function_at(const Place& p);
  Document function(Expr f, bool parentheses);
  std::optional<Document> short_function(Expr f);
  std::optional<std::string> applied_directly(Expr f);
  std::vector<Stage> stages_of_function(Expr f);
  Binder binder(Expr body, int64_t position, Type type);
  std::string new_name();
  bool is_shared(const Place& p) const { return sharing_.is_shared(p.e, depth() + p.skipped); }

  Expr root_;
  PrintOptions options_;
  Sharing sharing_;
  DocumentStore documents_;
  std::vector<Binder> names_;    ///< names of the variables, outermost first
  int named_ = 0;                ///< number of names in use
  std::set<std::string> taken_;  ///< names of metavariables
  std::map<std::string, Type> declared_;
  std::map<int, std::vector<Named>> pending_;  ///< by owner
  std::map<std::tuple<int, uint64_t, int>, std::string> definition_names_;
  int definitions_ = 0;
};

/// The level of an infix operator, or 0 for other functions. Shifts are written by name: >> composes functions.
int infix_level(Function f);
/// A number without its type; nothing if no decimal text reproduces these bits.
std::optional<std::string> number_text(Scalar scalar, uint64_t bits);
/// A size as one argument: parenthesised unless it is a constant or a name.
std::string size_argument(const Nat& n);
std::string quoted_parameter(const std::string& name);
std::string constant_text(const Tensor& tensor);
/// "{1, 2, 3}", for constants of any size.
std::string elements_text(const Tensor& tensor);
std::string quoted(const std::string& content);
/// A string handle as a quoted string, or as #hexadecimal if its string is unknown.
std::string string_text(uint64_t word);
std::string text(const Attribute& attribute);

}  // namespace hoist
