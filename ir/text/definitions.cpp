#include "ir/text/definitions.h"

#include <algorithm>
#include <array>

#include "ir/text/parse/elaborate.h"
#include "ir/text/parse/syntax.h"

namespace hoist {
namespace {

// clang-format off
constexpr auto definition_rows = std::to_array<DefinitionRow>({
  {"map3d", "f: A -> B, x: [d][h][w]A", "map (map (map f)) x", "the function on each element of three dimensions"},
  {"map2d", "f: A -> B, x: [h][w]A", "map (map f) x", "the function on each element of two dimensions"},
  {"zip2d", "x: [h][w]A, y: [h][w]B", "zip(x, y) |> map (\\(a, b). zip(a, b))", "element by element in two dimensions"},
  {"slide2d", "size: size, step: size, x: [h][w]A", "x |> map (slide size step) |> slide size step |> map transpose", "square windows: [h'][w'][size][size]"},
  {"pad2d", "l: size, r: size, v: A, x: [h][w]A", "x |> map (pad l r v) |> pad l r (repeat (l + w + r) v)", "a border of one value around two dimensions"},
  {"flatten", "x: [a][b][c][d][e]A", "join (join (join (join x)))", "all dimensions collapsed into one"},
  {"flatten", "x: [a][b][c][d]A", "join (join (join x))", "all dimensions collapsed into one"},
  {"flatten", "x: [a][b][c]A", "join (join x)", "all dimensions collapsed into one"},
  {"flatten", "x: [a][b]A", "join x", "all dimensions collapsed into one"},
  {"reverse", "x: [n]A", "slice (n - 1) n step -1 x", "last element first"},
  {"gather", "indices: [m]I, x: [n]A", "map (\\i. index i x) indices", "the elements at computed positions"},
  {"relu", "x: A", "max(x, 0)", "x, or zero below"},
  {"clip", "low: A, high: A, x: A", "min(max(x, low), high)", "x kept between two bounds"},
  {"sigmoid", "x: A", "1 / (1 + exp(-x))", "the logistic function"},
});
// clang-format on

struct Book {
  std::vector<NamedDefinition> definitions;
  std::vector<std::string> names;
};

const Book& arguments_book() {
  static const Book* book = [] {
    auto* b = new Book;
    for (const DefinitionRow& r : definition_rows) {
      auto arguments = hoist::parse_arguments(std::string(r.given));
      HOIST_CHECK(arguments.ok(), std::string(r.name) + ": " + arguments.errors()[0].text());
      b->definitions.push_back({&r, std::move(*arguments), nullptr});
      if (std::find(b->names.begin(), b->names.end(), r.name) == b->names.end()) b->names.emplace_back(r.name);
    }
    return b;
  }();
  return *book;
}

const Book& book() {
  static const Book* full = [] {
    auto* b = new Book(arguments_book());
    static auto* store = new SyntaxStore;  // never destroyed: the bodies are used until the process ends
    for (NamedDefinition& d : b->definitions) {
      auto tokens = tokenise(std::string(d.row->definition));
      HOIST_CHECK(tokens.ok(), std::string(d.row->name));
      SyntaxParser parser(std::move(*tokens), *store, {});
      auto body = parser.term();
      HOIST_CHECK(body.ok() && parser.at_end(), std::string(d.row->name) + ": not a term");
      d.body = *body;
    }
    return b;
  }();
  return *full;
}

std::vector<const NamedDefinition*> named(const Book& book, std::string_view name) {
  std::vector<const NamedDefinition*> found;
  for (const NamedDefinition& d : book.definitions) {
    if (d.row->name == name) found.push_back(&d);
  }
  return found;
}

}  // namespace

std::span<const DefinitionRow> definition_table() { return definition_rows; }
std::vector<const NamedDefinition*> definition_arguments(std::string_view name) {
  return named(arguments_book(), name);
}
std::vector<const NamedDefinition*> definitions_named(std::string_view name) { return named(book(), name); }
std::vector<std::string> definition_names() { return arguments_book().names; }

const NamedDefinition* fitting_definition(const std::vector<const NamedDefinition*>& rows_of_name,
                                          const std::vector<Type>& types) {
  for (const NamedDefinition* d : rows_of_name) {
    size_t i = 0;
    bool fits = true;
    for (const auto& a : d->arguments) {
      if (a.is_size || a.is_function()) continue;
      size_t formal = sizes_of(a.meta.result).size(), actual = sizes_of(types[i++]).size();
      fits &= rows_of_name.size() > 1 ? actual == formal : actual >= formal;
    }
    if (fits) return d;
  }
  return nullptr;
}

std::span<const DefinitionTerm> definition_terms() {
  static const auto* terms = [] {
    auto* made = new std::vector<DefinitionTerm>;
    for (const NamedDefinition& d : book().definitions) {
      Elaborator elaborator;
      elaborator.numbers_as_metas = true;
      for (const auto& a : d.arguments) {
        if (!a.is_size) elaborator.declare(a.name, a.meta);
      }
      auto term = elaborator.run(d.body);
      HOIST_CHECK(term.ok(), std::string(d.row->name) + ": " + term.errors()[0].text());
      made->push_back({&d, *term});
    }
    return made;
  }();
  return *terms;
}

Result<std::vector<NamedDefinition::Argument>> parse_arguments(const std::string& text) {
  HOIST_TRY(auto tokens, tokenise(text));
  SyntaxStore store;
  SyntaxParser parser(std::move(tokens), store, {});
  std::vector<NamedDefinition::Argument> arguments;
  while (!parser.at_end()) {
    NamedDefinition::Argument a;
    Token token = parser.peek();
    HOIST_TRY(a.name, parser.new_name("the name of an argument"));
    for (const auto& other : arguments) {
      if (other.name == a.name) return fault_at(token, a.name + " is declared twice");
    }
    HOIST_TRY_VOID(parser.expect(":"));
    if (parser.take("size")) {
      a.is_size = true;
    } else {
      std::vector<Type> types;
      do {
        HOIST_TRY(Type t, parser.type());
        types.push_back(t);
        if (parser.peek(1).kind == Token::name && parser.peek(2).text == ":") break;  // the comma ends this declaration
      } while (parser.take(","));
      if (parser.take("->")) {
        a.meta.arguments = std::move(types);
        HOIST_TRY(a.meta.result, parser.type());
      } else if (types.size() == 1) {
        a.meta.result = types[0];
      } else {
        return fault_at(parser.peek(), "expected -> and the type of the result of " + a.name);
      }
    }
    arguments.push_back(std::move(a));
    if (!parser.take(",")) break;
  }
  HOIST_TRY_VOID(parser.end());
  return arguments;
}

// The size arguments of a named composition; for fill also its value and its dimensions.
Result<Nothing> SyntaxParser::definition_attributes(Syntax& s) {
  if (s.text == "fill") {
    HOIST_TRY(Syn value, atom());
    s.children.push_back(value);
    HOIST_TRY(s.sizes, dimensions());
    if (s.sizes.empty()) return expected("the dimensions of fill, such as [4][8]");
    return Nothing{};
  }
  if (forms_ && s.text == "reshape") {
    HOIST_TRY(s.sizes, dimensions());
    return Nothing{};
  }
  auto rows_of_name = definition_arguments(s.text);
  if (rows_of_name.empty()) return Nothing{};
  for (const auto& a : rows_of_name[0]->arguments) {
    if (!a.is_size) continue;
    HOIST_TRY(Nat n, size_atom());
    s.sizes.push_back(n);
  }
  return Nothing{};
}

}  // namespace hoist
