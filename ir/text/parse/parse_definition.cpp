// Definitions of a program: the term, the layers that it computes, and the facts that passes have recorded.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/text/parse/elaborate.h"
#include "ir/text/parse/syntax.h"

namespace hoist {

// "NAME", "NAME", ...
Result<std::vector<std::string>> SyntaxParser::quoted_names(const std::string& what) {
  std::vector<std::string> out;
  do {
    const Token name = next();
    if (name.kind != Token::string) return fault_at(name, "expected the name of " + what + " in quotes");
    out.push_back(name.text);
  } while (take(","));
  return out;
}

// from "LAYER", "LAYER", ...; it may be omitted.
Result<std::vector<std::string>> SyntaxParser::layers() {
  if (!take("from")) return std::vector<std::string>();
  return quoted_names("a layer");
}

// [1, 2, 3]
Result<std::vector<int64_t>> SyntaxParser::integer_list() {
  std::vector<int64_t> out;
  HOIST_TRY_VOID(expect("["));
  do {
    HOIST_TRY(out.emplace_back(), integer());
  } while (take(","));
  HOIST_TRY_VOID(expect("]"));
  return out;
}

// Facts index shapes without further checks, so they are validated here.
Result<Nothing> SyntaxParser::fact(Definition& definition) {
  const Token word = next();
  const Type type = definition.expression->type;
  const auto rank = static_cast<int64_t>(sizes_of(type).size());
  const auto wrong = [&](const std::string& what) {
    return fault_at(word, fmt::format("{}: {} of {}", word.text, what, text(type)));
  };
  const auto value = [&]() -> Result<std::string> {
    const Token name = next();
    if (name.kind != Token::parameter || name.text.empty()) return fault_at(name, "expected a value such as %x");
    return name.text;
  };
  if (word.text == "nchw") {
    if (rank < 3) return wrong("needs three dimensions or more, found the dimensions");
    definition.channels_first = true;
  } else if (word.text == "weights") {
    Weights w;
    HOIST_TRY(w.value, value());
    HOIST_TRY(w.extents, integer_list());
    HOIST_TRY_VOID(expect("output"));
    HOIST_TRY(w.output_dimension, integer());
    if (take("groups")) {
      HOIST_TRY(w.groups, integer());
    }
    w.in_place = !take("reshaped");
    const bool extents = w.extents.size() >= 2 && *std::min_element(w.extents.begin(), w.extents.end()) >= 0;
    if (!extents || w.output_dimension < 0 || w.output_dimension >= std::ssize(w.extents) || w.groups < 1)
      return fault_at(word, "weights have two extents or more, an output dimension among them, and a group or more");
    definition.weights.push_back(std::move(w));
  } else if (word.text == "parts") {
    while (peek().kind == Token::parameter) {
      HOIST_TRY(definition.parts.emplace_back(), value());
    }
    HOIST_TRY_VOID(expect("along"));
    HOIST_TRY(definition.parts_dimension, integer());
    if (definition.parts_dimension < 0 || definition.parts_dimension >= rank) return wrong("no such dimension");
    for (const std::string& part : definition.parts) {
      const auto found = parameters_.find(part);
      if (found == parameters_.end() || std::ssize(sizes_of(found->second)) != rank)
        return fault_at(word, "%" + part + " is not a part of " + text(type));
    }
  } else if (word.text == "order") {
    HOIST_TRY(definition.order, integer_list());
    std::vector<int64_t> sorted = definition.order, all(static_cast<size_t>(rank));
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all) return wrong("not an order of the dimensions");
  } else if (word.text == "knob") {
    const Token name = next();
    if (name.kind != Token::name) return fault_at(name, "expected the name of a knob");
    HOIST_TRY(definition.knobs[name.text], integer());
  } else if (word.text == "tile") {
    while (peek().kind == Token::name && peek(1).kind == Token::number && !begins_statement()) {
      const std::string member = next().text;
      HOIST_TRY(definition.tile[member], integer());
    }
  } else if (word.text == "reads" && definition.reads) {
    while (peek().kind == Token::parameter) {
      HOIST_TRY(definition.reads->emplace_back(), value());
    }
  } else {
    return fault_at(word, "expected nchw, weights, parts, order, knob, tile, or reads for a kernel");
  }
  return Nothing{};
}

// domain %VALUE from LOW to HIGH
Result<Nothing> SyntaxParser::program_domain(Program& program) {
  const Token name = next();
  const auto found = parameters_.find(name.text);
  if (name.kind != Token::parameter || found == parameters_.end())
    return fault_at(name, "expected a value of the program");
  const auto bound = [&](const char* before) -> Result<double> {
    HOIST_TRY_VOID(expect(before));
    const Token token = peek();
    HOIST_TRY(const Attribute number, attribute());
    const double* value = std::get_if<double>(&number);
    if (value == nullptr) return fault_at(token, "expected a float");
    return *value;
  };
  Domain domain;
  HOIST_TRY(domain.low, bound("from"));
  HOIST_TRY(domain.high, bound("to"));
  if (!(domain.low <= domain.high)) return fault_at(name, "the domain of %" + name.text + " is empty");
  program.domains[name.text] = domain;
  return Nothing{};
}

Result<Nothing> SyntaxParser::program_definition(Program& program, bool is_kernel) {
  const Token name = next();
  HOIST_TRY_VOID(expect(":"));
  HOIST_TRY(Type declared, type());
  HOIST_TRY_VOID(expect("="));
  if (is_kernel) parameters_.swap(arrays_);
  auto syntax = term();
  if (is_kernel) parameters_.swap(arrays_);
  if (!syntax.ok()) return syntax.errors();
  Elaborator elaborator;
  HOIST_TRY(Expr e, elaborator.run(*syntax));
  if (e->type != declared)
    return fault_at(
        name, fmt::format("%{} is declared as {}, its term has type {}", name.text, text(declared), text(e->type)));
  Definition definition{name.text, {}, e};
  if (is_kernel) definition.reads.emplace();
  HOIST_TRY(definition.layers, layers());
  if (take("with")) {
    do {
      HOIST_TRY_VOID(fact(definition));
    } while (take(","));
  }
  if (is_kernel) HOIST_TRY_VOID(check_kernel(program, definition, name));
  parameters_[name.text] = is_kernel ? program.storage.at(name.text).logical : declared;
  define_whole(program, name.text);
  program.definitions.push_back(std::move(definition));
  return Nothing{};
}

}  // namespace hoist
