// Operator calls, their attributes, and programs: the grammar above terms.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "ir/operators/operators.h"
#include "ir/text/parse/elaborate.h"
#include "ir/text/parse/syntax.h"
#include "ir/text/program_text.h"

namespace hoist {
namespace {

// Withheld values are replaced by zeros; this limits the memory that a text can allocate.
constexpr int64_t most_withheld_bytes = int64_t{8} << 30;

constexpr int64_t any_version = std::numeric_limits<int64_t>::max();

std::optional<double> float_of(const Token& token, bool negative) {
  const std::string text = (negative ? "-" : "") + token.text;
  // A float attribute of ONNX is an f32; a value that f32 cannot represent is written with its type.
  const Scalar scalar = token.suffix == "f64" ? Scalar::f64 : Scalar::f32;
  const auto bits = number_bits(scalar, text);
  return bits ? std::optional(float_from_bits(scalar, *bits)) : std::nullopt;
}

bool is_float_text(const Token& token) {
  return token.suffix == "f64" || token.text.find_first_of(".e") != std::string::npos;
}

template <class T, class Element>
Result<Attribute> list_of(const std::vector<Attribute>& parts, const Token& token, Element kind) {
  std::vector<T> out;
  for (const Attribute& part : parts) {
    const T* value = std::get_if<T>(&part);
    if (value == nullptr) return fault_at(token, fmt::format("a list of {} holds another value", kind));
    out.push_back(*value);
  }
  return Attribute(std::move(out));
}

}  // namespace

// An operator's name with an adjacent opening parenthesis; a domain may precede the name.
bool SyntaxParser::at_operator_call() const {
  size_t last = 0;
  std::string domain;
  while (peek(last).kind == Token::name && at(".", last + 1) && peek(last + 1).adjacent &&
         peek(last + 2).kind == Token::name && peek(last + 2).adjacent) {
    domain += (domain.empty() ? "" : ".") + peek(last).text;
    last += 2;
  }
  if (peek(last).kind != Token::name || !at("(", last + 1) || !peek(last + 1).adjacent) return false;
  // In rules a name may denote several operators; the reader of the rules resolves it.
  const bool is_capital = std::isupper(static_cast<unsigned char>(peek(last).text.front())) != 0;
  return (attribute_names_ && is_capital) || find_operator(domain, peek(last).text, any_version) != nullptr;
}

Result<Syn> SyntaxParser::operator_call() {
  Nest nest{nesting_};
  HOIST_TRY_VOID(deeper());
  Syntax& s = store_.add(Syntax::operation, peek());
  for (s.call.name = next().text; take("."); s.call.name = next().text)
    s.call.domain += (s.call.domain.empty() ? "" : ".") + s.call.name;
  s.call.version = version_;
  HOIST_TRY_VOID(expect("("));
  for (int64_t place = 0; !at(";") && !at(")"); ++place) {
    if (place > 0) HOIST_TRY_VOID(expect(","));
    if (take("_")) continue;
    HOIST_TRY(Syn operand, term());
    s.children.push_back(operand);
    s.call.operands.push_back(place);
    if (s.children.size() > 4096) return fault_at(s.token, "more than 4096 operands");
  }
  if (take(";")) {
    do {
      if (attribute_names_ && take("*")) {
        HOIST_TRY(s.rest, new_name("the name of attributes"));
        continue;
      }
      const Token key = next();
      if (key.kind != Token::name && key.kind != Token::string)
        return fault_at(key, "expected the name of an attribute");
      HOIST_TRY_VOID(expect("="));
      const bool is_name = peek().kind == Token::name && !at("constant") && !at("[", 1);
      if (attribute_names_ && is_name) {
        s.attribute_names[key.text] = next().text;
        continue;
      }
      HOIST_TRY(Attribute value, attribute());
      const auto* number = std::get_if<int64_t>(&value);
      const bool reserved = key.kind == Token::name && (key.text == "version" || key.text == "results");
      if (reserved && (number == nullptr || *number < 1 || *number > 4096))
        return fault_at(key, key.text + " has to be a number from 1 to 4096");
      if (reserved)
        (key.text == "version" ? s.call.version : s.call.results) = *number;
      else if (!s.call.attributes.emplace(key.text, std::move(value)).second)
        return fault_at(key, "the attribute " + key.text + " appears here twice");
    } while (take(","));
  }
  HOIST_TRY_VOID(expect(")"));
  return sealed(s);
}

Result<Attribute> SyntaxParser::attribute() {
  Nest nest{nesting_};
  HOIST_TRY_VOID(deeper());
  const Token token = peek();
  if (token.kind == Token::string) return Attribute(next().text);
  if (take("{")) {
    HOIST_TRY(Program body, program({}));
    HOIST_TRY_VOID(expect("}"));
    return Attribute(Body{std::make_shared<const Program>(std::move(body))});
  }
  if (at("constant")) {
    HOIST_TRY(Syn tensor, constant(next()));
    return Attribute(tensor->tensor);
  }
  if (token.kind == Token::payload && token.suffix == "f64") {
    ++position_;
    const bool hexadecimal = !token.text.empty() && token.text.size() <= 16 &&
                             token.text.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!hexadecimal) return fault_at(token, "expected 16 hexadecimal digits after f64#");
    return Attribute(std::bit_cast<double>(static_cast<uint64_t>(std::stoull(token.text, nullptr, 16))));
  }
  for (std::string_view kind : {"integers", "floats", "strings"}) {
    if (!at(kind) || !at("[", 1)) continue;
    position_ += 2;
    HOIST_TRY_VOID(expect("]"));
    if (kind == "integers") return Attribute(std::vector<int64_t>());
    return kind == "floats" ? Attribute(std::vector<double>()) : Attribute(std::vector<std::string>());
  }
  if (take("[")) {
    std::vector<Attribute> parts;
    do {
      HOIST_TRY(Attribute part, attribute());
      parts.push_back(std::move(part));
    } while (take(","));
    HOIST_TRY_VOID(expect("]"));
    if (std::holds_alternative<int64_t>(parts[0])) return list_of<int64_t>(parts, token, "integers");
    if (std::holds_alternative<double>(parts[0])) return list_of<double>(parts, token, "floats");
    if (std::holds_alternative<std::string>(parts[0])) return list_of<std::string>(parts, token, "strings");
    return fault_at(token, "a list holds integers, floats or strings");
  }
  const bool negative = take("-");
  const Token number = next();
  if (number.kind != Token::number)
    return fault_at(token, "expected an attribute: a number, a string, a list, constant or { program }");
  if (is_float_text(number)) {
    const auto value = float_of(number, negative);
    if (!value) return fault_at(number, number.text + " is not a float");
    return Attribute(*value);
  }
  const auto bits = number_bits(Scalar::i64, (negative ? "-" : "") + number.text);
  if (!bits || !number.suffix.empty()) return fault_at(number, number.text + number.suffix + " is not an integer");
  return Attribute(static_cast<int64_t>(*bits));
}

// ---- Programs ------------------------------------------------------------------------------------------------------

Result<Nothing> SyntaxParser::program_constant(Program& program, const Sidecar& sidecar, bool withhold) {
  const Token name = next();
  HOIST_TRY_VOID(expect(":"));
  HOIST_TRY(Type declared, type());
  const Type leaf = leaf_of(declared);
  std::vector<int64_t> shape;
  for (const Nat& n : sizes_of(declared)) {
    if (!n.is_constant() || n.value() < 0) return fault_at(name, "a constant's sizes have to be numbers");
    shape.push_back(n.value());
  }
  if (!leaf->is_scalar()) return fault_at(name, "a constant is an array of scalars, found " + text(declared));
  HOIST_TRY_VOID(expect("="));
  if (at("{")) {
    HOIST_TRY(program.constants[name.text], listed(leaf->scalar, shape));
  } else {
    const Token hash = next();
    if (hash.kind != Token::payload) return fault_at(hash, "expected {values} or #hash");
    std::optional<Tensor> value = sidecar ? sidecar(name.text, hash.text) : std::nullopt;
    if (withhold) {
      int64_t bytes = 0;
      for (const auto& [other, hidden] : program.withheld)
        bytes += static_cast<int64_t>(program.constants.at(other).bytes().size());
      const double more = std::accumulate(shape.begin(), shape.end(), 8.0, std::multiplies<>());
      if (static_cast<double>(bytes) + more > static_cast<double>(most_withheld_bytes))
        return fault_at(name, fmt::format("constants of more than {} bytes", most_withheld_bytes));
      program.constants[name.text] = Tensor(leaf->scalar, shape);
      program.withheld[name.text] = hash.text;
      parameters_[name.text] = declared;
      return Nothing{};
    }
    if (!value) return fault_at(name, "the values of %" + name.text + " are not in the file of constants");
    if (value->scalar() != leaf->scalar || value->shape() != shape || constant_hash(*value) != hash.text)
      return fault_at(name, "the values of %" + name.text + " differ from the text in type or hash");
    program.constants[name.text] = std::move(*value);
  }
  parameters_[name.text] = declared;
  return Nothing{};
}

// size NAME from LEAST to MOST; both bounds may be left out.
Result<Nothing> SyntaxParser::program_sizes(Program& program) {
  while (at("size")) {
    const Token word = next();
    if (programs_ > 1) return fault_at(word, "a body has no sizes of its own", "declare them in the program around it");
    const Token name = peek();
    HOIST_TRY(const std::string declared, new_name("the name of a size"));
    SizeBounds bounds;
    if (take("from")) {
      HOIST_TRY(bounds.least, integer());
    }
    if (take("to")) {
      HOIST_TRY(bounds.most, integer());
    }
    const SizeBounds limits;
    if (bounds.least < limits.least || bounds.most > limits.most || bounds.least > bounds.most) {
      return fault_at(name, fmt::format("the size {} from {} to {}", declared, bounds.least, bounds.most),
                      fmt::format("sizes lie between {} and {}", limits.least, limits.most));
    }
    if (!program.sizes.emplace(declared, bounds).second)
      return fault_at(name, "the size " + declared + " is declared twice");
    sizes_.insert(declared);
  }
  return Nothing{};
}

// extent DIMENSION of %OUTPUT is %COUNT; both outputs are already declared.
Result<Nothing> SyntaxParser::program_extent(Program& program) {
  const Token word = next();
  if (programs_ > 1) return fault_at(word, "a body may only give arrays of known extents");
  DynamicExtent extent;
  HOIST_TRY(extent.dimension, integer());
  const auto output = [&](const char* before) -> Result<std::string> {
    HOIST_TRY_VOID(expect(before));
    const Token name = next();
    const auto& outputs = program.outputs;
    if (name.kind != Token::parameter || std::find(outputs.begin(), outputs.end(), name.text) == outputs.end())
      return fault_at(name, "expected an output");
    return name.text;
  };
  HOIST_TRY(extent.value, output("of"));
  HOIST_TRY(extent.count, output("is"));
  const Type type = parameters_.at(extent.value);
  if (extent.dimension < 0 || extent.dimension >= std::ssize(sizes_of(type)) || !leaf_of(type)->is_scalar())
    return fault_at(word,
                    fmt::format("%{} is {}, which has no dimension {}", extent.value, text(type), extent.dimension));
  if (parameters_.at(extent.count) != scalar_type(Scalar::i64) || extent.count == extent.value)
    return fault_at(word, "%" + extent.count + " is not an i64 scalar");
  for (const DynamicExtent& other : program.extents) {
    if (other.value == extent.count || other.count == extent.value ||
        (other.value == extent.value && other.dimension == extent.dimension))
      return fault_at(word, "%" + extent.value + " has two lengths for a dimension, or itself as length");
  }
  program.extents.push_back(std::move(extent));
  return Nothing{};
}

// perform loop|branch %VALUE with the clauses listed in tools/pages/reference/language.md. A control defines inputs and
// uses outputs of the program, in its order, after the inputs and outputs of the model and of earlier controls.
Result<Nothing> SyntaxParser::program_control(Program& program) {
  const Token word = next();
  if (programs_ > 1) return fault_at(word, "a body has no controls: its calls have bodies of their own");
  Control control;
  if (take("branch"))
    control.kind = Control::Kind::branch;
  else
    HOIST_TRY_VOID(expect("loop"));
  const auto value = [&](std::string& out) -> Result<Nothing> {
    const Token name = next();
    if (name.kind != Token::parameter || name.text.empty()) return fault_at(name, "expected a value such as %x");
    out = name.text;
    return Nothing{};
  };
  HOIST_TRY_VOID(value(control.value));
  while (take(",")) {
    const Token part = next();
    std::vector<std::string*> names;
    if (part.text == "most") {
      HOIST_TRY(control.most, integer());
    } else if (part.text == "fails") {
      control.fails = true;
    } else if (const auto* one = std::find_if(Control::one_values.begin(), Control::one_values.end(),
                                              [&](const Control::OneValue& each) { return each.word == part.text; });
               one != Control::one_values.end()) {
      names = {&(control.*one->value)};
    } else if (part.text == "carry") {
      Control::Carried& carried = control.carried.emplace_back();
      names = {&carried.initial, &carried.before, &carried.after, &carried.result};
    } else if (part.text == "row") {
      Control::Rows& rows = control.rows.emplace_back();
      names = {&rows.row, &rows.result};
    } else if (part.text == "choose") {
      Control::Choice& choice = control.choices.emplace_back();
      names = {&choice.yes, &choice.no, &choice.result};
    } else {
      return fault_at(part, "expected a part of a loop or a branch");
    }
    for (std::string* name : names) HOIST_TRY_VOID(value(*name));
  }
  HOIST_TRY(control.layers, layers());
  const bool loops = control.kind == Control::Kind::loop;
  const bool has_loop = control.fails || control.most != 0 || !control.carried.empty() || !control.rows.empty() ||
                        !control.trips.empty() || !control.number.empty() || !control.next.empty() ||
                        !control.count.empty();
  if (loops ? !control.choices.empty() : has_loop || control.condition.empty() || control.choices.empty())
    return fault_at(word, "a branch has a condition and choices, a loop has no choices");
  if (control.most < 0) return fault_at(word, "a loop has 0 or more iterations");
  HOIST_TRY_VOID(check_control(program, control, word));
  program.controls.push_back(std::move(control));
  return Nothing{};
}

// Checks that the inputs and outputs of controls come last and in order.
Result<Nothing> SyntaxParser::controls_stand_last(const Program& program) {
  std::vector<std::string> given, wanted, inputs;
  for (const Control& control : program.controls) {
    for (const std::string& name : control.given()) given.push_back(name);
    for (const std::string& name : control.wanted()) wanted.push_back(name);
  }
  for (const auto& [name, type] : program.inputs) inputs.push_back(name);
  if (!std::equal(given.rbegin(), given.rend(), inputs.rbegin()) ||
      !std::equal(wanted.rbegin(), wanted.rend(), program.outputs.rbegin()))
    return fault_at(
        peek(), "the inputs and outputs of controls are the last inputs and outputs of the program, in their order");
  return Nothing{};
}

// Checks the types of a control's values.
Result<Nothing> SyntaxParser::check_control(const Program& program, const Control& control, const Token& word) {
  const auto type = [&](const std::string& name) {
    auto found = parameters_.find(name);
    return found == parameters_.end() ? nullptr : found->second;
  };
  bool good = true;
  for (const Control::OneValue& one : Control::one_values) {
    const std::string& name = control.*one.value;
    good &= name.empty() || type(name) == scalar_type(one.scalar);
  }
  const auto same = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names)
      good &= type(name) != nullptr && type(name) == type(names[0]) && leaf_of(type(name))->is_scalar();
  };
  for (const Control::Carried& each : control.carried) same({each.initial, each.before, each.after, each.result});
  for (const Control::Choice& each : control.choices) same({each.yes, each.no, each.result});
  for (const Control::Rows& each : control.rows) {
    good &= type(each.row) != nullptr && type(each.result) != nullptr && control.most > 0 &&
            type(each.result) == array_type(control.most, type(each.row));
  }
  if (!good) return fault_at(word, "its values have wrong types");
  size_t given = control.given().size(), wanted = control.wanted().size();
  for (const Control& before : program.controls) given += before.given().size(), wanted += before.wanted().size();
  if (given > program.inputs.size() || wanted > program.outputs.size())
    return fault_at(word, "its results have to be inputs of the program, and its operands outputs");
  return Nothing{};
}

Result<Program> SyntaxParser::whole_program(const Sidecar& sidecar, bool withhold) {
  whole_program_ = true;
  return program(sidecar, withhold);
}

Result<Program> SyntaxParser::program(const Sidecar& sidecar, bool withhold) {
  const std::map<std::string, Type> outer = std::exchange(parameters_, {}), outer_arrays = std::exchange(arrays_, {});
  const int64_t outer_version = version_;
  Program program;
  std::set<std::string> defined;
  auto fresh = [&](const Token& name) -> Result<Nothing> {
    if (name.kind != Token::parameter || name.text.empty() || is_internal_name(name.text))
      return fault_at(name, "expected a value such as %x");
    if (!defined.insert(name.text).second) return fault_at(name, "%" + name.text + " is defined twice");
    return Nothing{};
  };
  HOIST_TRY_VOID(expect("program"));
  const int outer_programs = programs_++;
  if (peek().kind == Token::parameter) program.name = next().text;
  if (take("version")) {
    HOIST_TRY(version_, integer());
    program.version = version_;
  }
  HOIST_TRY_VOID(program_sizes(program));
  while (!at_end() && !at("}")) {
    if (take("input")) {
      const Token name = peek();
      HOIST_TRY_VOID(fresh(name));
      ++position_;
      HOIST_TRY_VOID(expect(":"));
      HOIST_TRY(Type declared, type());
      program.inputs.emplace_back(name.text, declared);
      parameters_[name.text] = declared;
    } else if (take("state")) {
      HOIST_TRY_VOID(fresh(peek()));
      HOIST_TRY_VOID(program_state(program));
    } else if (take("constant")) {
      HOIST_TRY_VOID(fresh(peek()));
      HOIST_TRY_VOID(program_constant(program, sidecar, withhold));
    } else if (take("output")) {
      const Token name = next();
      if (parameters_.count(name.text) == 0 || name.kind != Token::parameter)
        return fault_at(name, "an undefined output");
      program.outputs.push_back(name.text);
    } else if (at("next")) {
      HOIST_TRY_VOID(program_next(program));
    } else if (at("extent")) {
      HOIST_TRY_VOID(program_extent(program));
    } else if (at("perform")) {
      HOIST_TRY_VOID(program_control(program));
    } else if (take("bounded")) {
      HOIST_TRY(program.bounded, quoted_names("a layer"));
    } else if (take("domain")) {
      HOIST_TRY_VOID(program_domain(program));
    } else if (take("store")) {
      HOIST_TRY_VOID(program_storage(program));
    } else if (take("schedule")) {
      HOIST_TRY_VOID(program_schedule(program));
    } else {
      if (at("size")) return expected("input, state, constant, define, output, next or extent: sizes come before them");
      const bool is_kernel = take("kernel");
      if (!is_kernel && !take("define"))
        return expected(
            "input, state, constant, define, output, next, extent, perform, bounded, domain, store, schedule or "
            "kernel");
      HOIST_TRY_VOID(fresh(peek()));
      HOIST_TRY_VOID(program_definition(program, is_kernel));
    }
  }
  HOIST_TRY_VOID(controls_stand_last(program));
  HOIST_TRY_VOID(check_states(program));
  HOIST_TRY_VOID(check_storage(program));
  // The actual lengths come after the model's outputs.
  for (const DynamicExtent& extent : program.extents) {
    for (size_t i = 0; i < model_output_count(program); ++i) {
      if (program.outputs[i] == extent.count)
        return fault_at(
            peek(), "%" + extent.count + " is the length of an output, so it appears once, after the other outputs");
    }
  }
  parameters_ = outer;
  arrays_ = outer_arrays;
  version_ = outer_version;
  programs_ = outer_programs;
  return program;
}

namespace {

Result<Program> whole_program(const std::string& text, const Sidecar& sidecar, bool withhold) {
  HOIST_TRY(auto tokens, tokenise(text));
  SyntaxStore store;
  SyntaxParser parser(std::move(tokens), store, {});
  HOIST_TRY(Program program, parser.whole_program(sidecar, withhold));
  HOIST_TRY_VOID(parser.end());
  return program;
}

}  // namespace

Result<Program> parse_program(const std::string& text, const Sidecar& sidecar) {
  return whole_program(text, sidecar, false);
}

Result<Program> parse_program_without_values(const std::string& text) { return whole_program(text, {}, true); }

}  // namespace hoist
