#include "ir/operators/definitions/operator_syntax.h"

namespace hoist::operators {
namespace {

class TextParser {
 public:
  TextParser(std::vector<Token> tokens, OperatorText& text) : text_(text), parser_(std::move(tokens), text.store, {}) {
    parser_.allow_forms();
  }

  Result<Nothing> run() {
    HOIST_TRY_VOID(parser_.expect("("));
    if (parser_.peek().text != ";") {
      do {
        HOIST_TRY_VOID(operand());
      } while (parser_.take(","));
    }
    if (parser_.take(";")) {
      do {
        HOIST_TRY_VOID(attribute());
      } while (parser_.take(","));
    }
    HOIST_TRY_VOID(parser_.expect(")"));
    while (parser_.take("refuse")) {
      Refusal r{};
      HOIST_TRY(r.condition, parser_.term());
      HOIST_TRY_VOID(parser_.expect(":"));
      HOIST_TRY(r.what, quoted());
      if (parser_.peek().kind == Token::string) {
        HOIST_TRY(r.hint, quoted());
      }
      text_.refusals.push_back(std::move(r));
    }
    HOIST_TRY_VOID(parser_.expect("="));
    HOIST_TRY(Syn body, parser_.term());
    take_results(body);
    return parser_.end();
  }

 private:
  // A tuple has one term per result; the definitions of its where apply to each.
  void take_results(Syn body) {
    const bool with_definitions = body->kind == Syntax::where;
    const Syn tuple = with_definitions ? body->children[0] : body;
    if (with_definitions) text_.definitions = body;
    if (tuple->kind != Syntax::tuple) {
      text_.results = {body};
      return;
    }
    for (Syn result : tuple->children) {
      if (with_definitions) {
        Syntax& s = text_.store.add(Syntax::where, body->token);
        s = *body;
        s.children[0] = result;
        result = &s;
      }
      text_.results.push_back(result);
    }
  }

  Result<std::string> quoted() {
    if (parser_.peek().kind != Token::string) return fault_at(parser_.peek(), "expected a text in quotes");
    HOIST_TRY(Syn s, parser_.term());
    return s->text;
  }

  bool dots() {
    if (!parser_.take(".")) return false;
    while (parser_.take(".")) continue;
    return true;
  }

  Result<Nothing> operand() {
    Operand o;
    HOIST_TRY(o.name, parser_.new_name("the name of an operand"));
    o.optional = parser_.take("?");
    o.variadic = dots();
    if (parser_.take(":")) {
      for (Takes takes : {Takes::anything, Takes::numbers, Takes::floats, Takes::integers, Takes::booleans}) {
        if (!o.own_type && parser_.take(name_of(takes))) o.takes = takes, o.own_type = true;
      }
      HOIST_TRY(o.extents, parser_.dimensions());
      o.more_extents = dots();
    }
    text_.operands.push_back(std::move(o));
    return Nothing{};
  }

  Result<Nothing> attribute() {
    AttributeRow a;
    HOIST_TRY(a.name, parser_.new_name("the name of an attribute"));
    a.optional = parser_.take("?");
    if (parser_.take("at")) {
      const Token token = parser_.peek();
      HOIST_TRY(const int64_t input, whole());
      if (input < 0 || input > 9) return fault_at(token, "expected the place of an input, 0 to 9");
      a.input = static_cast<int>(input);
    }
    if (parser_.take(":")) {
      if (parser_.take("type")) {
        a.kind = AttributeRow::type;
        if (parser_.take("=")) {
          HOIST_TRY(a.otherwise, parser_.term());
        } else if (parser_.take("|")) {
          const Token token = parser_.peek();
          HOIST_TRY(int64_t zero, whole());
          if (zero != 0) return fault_at(token, "expected 0");
          a.zero_is_absent = true;
        }
      } else if (parser_.take("float")) {
        a.kind = AttributeRow::number;
      }
      if (a.kind != AttributeRow::list) {
        text_.attributes.push_back(std::move(a));
        return Nothing{};
      }
      HOIST_TRY(Syn choices, parser_.term());
      take_choices(choices, a);
      a.kind = AttributeRow::text;
    } else if (parser_.take("=")) {
      HOIST_TRY(a.otherwise, parser_.term());
      Syn first = a.otherwise;
      while (first->kind == Syntax::infix && first->function == Function::logical_or) first = first->children[0];
      a.kind = first->kind == Syntax::string ? AttributeRow::text : AttributeRow::number;
      if (first != a.otherwise) take_choices(a.otherwise, a);
      a.otherwise = first;
    }
    if (parser_.take("from")) {
      a.kind = AttributeRow::number;
      HOIST_TRY(a.least, whole());
      if (parser_.take("to")) {
        HOIST_TRY(a.most, whole());
      }
    }
    text_.attributes.push_back(std::move(a));
    return Nothing{};
  }

  Result<int64_t> whole() {
    const Token token = parser_.peek();
    HOIST_TRY(Nat n, parser_.size());
    if (!n.is_constant()) return fault_at(token, "expected an integer");
    return n.value();
  }

  static void take_choices(Syn s, AttributeRow& a) {
    if (s->kind == Syntax::infix) {
      for (Syn c : s->children) take_choices(c, a);
      return;
    }
    a.choices.push_back(s->text);
  }

  OperatorText& text_;
  SyntaxParser parser_;
};

}  // namespace

Result<std::unique_ptr<OperatorText>> parse_operator_text(const std::string& text) {
  auto read = std::make_unique<OperatorText>();
  HOIST_TRY(auto tokens, tokenise(text));
  HOIST_TRY_VOID(TextParser(std::move(tokens), *read).run());
  return read;
}

}  // namespace hoist::operators
