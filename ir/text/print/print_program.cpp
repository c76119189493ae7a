// Operator calls, their attributes, and programs as text.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <bit>
#include <cmath>

#include "ir/program/states.h"
#include "ir/text/print/print_term.h"
#include "ir/text/program_text.h"

namespace hoist {
namespace {

std::string attribute_text(int64_t value) { return std::to_string(value); }

std::string attribute_text(double value) {
  if (!std::isfinite(value)) return fmt::format("f64#{:016x}", std::bit_cast<uint64_t>(value));
  const bool narrow = static_cast<double>(static_cast<float>(value)) == value;
  std::string text = narrow ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return narrow ? text : text + "f64";
}

std::string attribute_text(const std::string& value) { return quoted(value); }
std::string attribute_text(const Tensor& value) { return constant_text(value); }

std::string attribute_text(const Body& value) {
  ProgramPrintOptions options;
  options.written_out = std::numeric_limits<int64_t>::max();
  const std::string text = print_program(*value.program, options);
  std::string out = "{ ";
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) out += "    ";
  }
  return out + "  }";
}

template <class T>
std::string attribute_text(const std::vector<T>& values) {
  if (values.empty())
    return std::is_same_v<T, int64_t> ? "integers []" : std::is_same_v<T, double> ? "floats []" : "strings []";
  std::string out;
  for (const T& value : values) out += (out.empty() ? "[" : ", ") + attribute_text(value);
  return out + "]";
}

bool is_word(const std::string& name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  bool word = !name.empty() && letter(name[0]);
  for (char c : name) word &= letter(c) || (c >= '0' && c <= '9');
  return word;
}

}  // namespace

std::string text(const Attribute& attribute) {
  return std::visit([](const auto& value) { return attribute_text(value); }, attribute);
}

std::string quoted(const std::string& content) {
  std::string out = "\"";
  for (char c : content) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 32 || c == 127)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

Document Printer::operator_call(Expr e) {
  const OperatorCall& call = *e->operation;
  std::vector<Document> inside = {documents_.soft()};
  auto separate = [&](const char* separator) {
    if (inside.size() > 1) inside.insert(inside.end(), {text(separator), documents_.line()});
  };
  int64_t place = 0;
  for (size_t i = 0; i < e->children.size(); ++i, ++place) {
    for (; place < call.operands[i]; ++place) {
      separate(",");
      inside.push_back(text("_"));
    }
    separate(",");
    inside.push_back(term(e->children[i], loose));
  }
  std::vector<std::string> attributes;
  for (const auto& [key, value] : call.attributes)
    attributes.push_back((is_word(key) && key != "version" && key != "results" ? key : quoted(key)) + " = " +
                         hoist::text(value));
  if (call.results != 1) attributes.push_back(fmt::format("results = {}", call.results));
  if (call.version != options_.version) attributes.push_back(fmt::format("version = {}", call.version));
  for (size_t i = 0; i < attributes.size(); ++i) {
    if (i == 0 && inside.size() == 1)
      inside.push_back(text("; "));
    else
      separate(i == 0 ? ";" : ",");
    inside.push_back(text(attributes[i]));
  }
  return documents_.group(join({text(full_name(call) + "("), documents_.nest(2, join(std::move(inside))), text(")")}));
}

std::string constant_hash(const Tensor& tensor) {
  const std::string type = hoist::text(type_of(tensor));
  const uint64_t hash =
      XXH3_64bits_withSeed(tensor.data(), tensor.bytes().size(), XXH3_64bits(type.data(), type.size()));
  tensor.release_pages();
  return fmt::format("{:016x}", hash);
}

namespace {

// ` from "layer", ...`, or "" without layers.
std::string from_layers(const std::vector<std::string>& layers) {
  std::string out;
  for (const std::string& layer : layers) out += (out.empty() ? " from " : ", ") + quoted(layer);
  return out;
}

std::string list_text(const std::vector<int64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

// ` with nchw, weights %w [8, 3, 3, 3] output 0 groups 2 reshaped, parts %a %b along 1, order [0, 2, 1], knob rows 6`,
// or "" without facts.
std::string with_facts(const Definition& definition) {
  std::vector<std::string> facts;
  if (definition.channels_first) facts.emplace_back("nchw");
  for (const Weights& w : definition.weights) {
    std::string& fact = facts.emplace_back(
        fmt::format("weights {} {} output {}", quoted_parameter(w.value), list_text(w.extents), w.output_dimension));
    if (w.groups != 1) fact += fmt::format(" groups {}", w.groups);
    if (!w.in_place) fact += " reshaped";
  }
  if (!definition.parts.empty()) {
    std::string& fact = facts.emplace_back("parts");
    for (const std::string& part : definition.parts) fact += " " + quoted_parameter(part);
    fact += fmt::format(" along {}", definition.parts_dimension);
  }
  if (!definition.order.empty()) facts.push_back("order " + list_text(definition.order));
  for (const auto& [name, value] : definition.knobs) facts.push_back(fmt::format("knob {} {}", name, value));
  if (!definition.tile.empty()) {
    std::string& fact = facts.emplace_back("tile");
    for (const auto& [name, value] : definition.tile) fact += fmt::format(" {} {}", name, value);
  }
  if (definition.reads && !definition.reads->empty()) {
    std::string& fact = facts.emplace_back("reads");
    for (const std::string& value : *definition.reads) fact += " " + quoted_parameter(value);
  }
  return facts.empty() ? "" : fmt::format(" with {}", fmt::join(facts, ", "));
}

// store %y : [8][3][3]f32 in %joined order [1, 2, 0] after [0, 0, 8] border 0, with what differs from a plain array.
std::string storage_line(const std::string& value, const Storage& s) {
  std::string out = fmt::format("store {} : {}", quoted_parameter(value), text(s.logical));
  const Storage plain = plain_storage(value, s.logical);
  if (s.array != value) out += " in " + quoted_parameter(s.array);
  if (s.permutation != plain.permutation) out += " order " + list_text(s.permutation);
  if (s.before != plain.before) out += " before " + list_text(s.before);
  if (s.after != plain.after) out += " after " + list_text(s.after);
  if (s.border) out += fmt::format(" border {}", *s.border);
  for (const auto& [word, number] : {std::pair{"computed", s.vector_padding},
                                     {"panel", s.panel},
                                     {"interleave", s.interleave},
                                     {"joined", s.joined}}) {
    if (number != 0) out += fmt::format(" {} {}", word, number);
  }
  return out + "\n";
}

// schedule step, enter, step, leave; or "" without controls.
std::string schedule_line(const std::vector<PlanItem>& items) {
  constexpr std::string_view words[] = {"step", "enter", "otherwise", "leave"};
  std::string out;
  for (const PlanItem& item : items)
    out += fmt::format("{}{}", out.empty() ? "schedule " : ", ", words[static_cast<size_t>(item.kind)]);
  return out.empty() ? out : out + "\n";
}

// perform loop %y, most 9, fails, condition %c, ..., carry %initial %before %after %result, row %r %rows from "layer"
std::string control_line(const Control& control) {
  const auto names = [](std::string_view word, const std::vector<std::string>& values) {
    std::string out = fmt::format(", {}", word);
    for (const std::string& value : values) out += " " + quoted_parameter(value);
    return out;
  };
  const bool loops = control.kind == Control::Kind::loop;
  std::string out = fmt::format("perform {} {}", loops ? "loop" : "branch", quoted_parameter(control.value));
  if (loops) out += fmt::format(", most {}", control.most);
  if (control.fails) out += ", fails";
  for (const Control::OneValue& one : Control::one_values) {
    if (!(control.*one.value).empty()) out += names(one.word, {control.*one.value});
  }
  for (const Control::Carried& each : control.carried)
    out += names("carry", {each.initial, each.before, each.after, each.result});
  for (const Control::Rows& each : control.rows) out += names("row", {each.row, each.result});
  for (const Control::Choice& each : control.choices) out += names("choose", {each.yes, each.no, each.result});
  return out + from_layers(control.layers) + "\n";
}

// input %x : T, or state %h : T = zeros, or the constant of its initial value.
std::string input_line(const Program& program, const std::string& name, Type type) {
  const StateValue* state = find_state(program, name);
  const std::string head =
      fmt::format("{} {} : {}", state == nullptr ? "input" : "state", quoted_parameter(name), text(type));
  if (state == nullptr) return head + "\n";
  return fmt::format("{} = {}\n", head, state->initial.empty() ? "zeros" : quoted_parameter(state->initial));
}

// output %y for each output, and next %h is %y for the outputs of states.
std::string output_lines(const Program& program) {
  const size_t first = model_output_count(program), behind = first + state_outputs(program).size();
  std::string out;
  const auto print = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) out += "output " + quoted_parameter(program.outputs[i]) + "\n";
  };
  print(0, first);
  for (const StateValue& state : program.states)
    out += fmt::format("next {} is {}\n", quoted_parameter(state.name), quoted_parameter(state.next));
  print(behind, program.outputs.size());
  return out;
}

}  // namespace

std::string print_program(const Program& program, const ProgramPrintOptions& options) {
  std::string out = "program";
  if (!program.name.empty()) out += " " + quoted_parameter(program.name);
  out += fmt::format(" version {}\n", program.version);
  const SizeBounds widest;
  for (const auto& [name, bounds] : program.sizes) {
    out += "size " + name;
    if (bounds.least != widest.least || bounds.most != widest.most) out += fmt::format(" from {}", bounds.least);
    if (bounds.most != widest.most) out += fmt::format(" to {}", bounds.most);
    out += "\n";
  }
  for (const auto& [name, type] : program.inputs) out += input_line(program, name, type);
  for (const auto& [name, tensor] : program.constants) {
    const std::string head = fmt::format("constant {} : {} = ", quoted_parameter(name), text(type_of(tensor)));
    auto withheld = program.withheld.find(name);
    if (withheld != program.withheld.end())
      out += head + "#" + withheld->second + "\n";
    else
      out += head +
             (tensor.size() > options.written_out && tensor.scalar() != Scalar::string ? "#" + constant_hash(tensor)
                                                                                       : elements_text(tensor)) +
             "\n";
  }
  for (const auto& [value, storage] : program.storage) out += storage_line(value, storage);
  PrintOptions terms;
  terms.width = options.width - 2;
  terms.version = program.version;
  terms.declare_parameters = false;
  for (const Definition& definition : program.definitions) {
    std::string term = print(definition.expression, terms);
    const std::string head = fmt::format("{} {} : {} =", definition.reads ? "kernel" : "define",
                                         quoted_parameter(definition.value), text(definition.expression->type));
    const std::string layers = from_layers(definition.layers) + with_facts(definition);
    const bool one_line = term.find('\n') == std::string::npos &&
                          static_cast<int>(head.size() + 1 + term.size() + layers.size()) <= options.width;
    for (size_t i = 0; !one_line && (i = term.find('\n', i)) != std::string::npos; i += 3) term.replace(i, 1, "\n  ");
    out += head + (one_line ? " " : "\n  ") + term + (one_line || layers.empty() ? "" : "\n ") + layers + "\n";
  }
  out += output_lines(program);
  for (const DynamicExtent& extent : program.extents) {
    out += fmt::format("extent {} of {} is {}\n", extent.dimension, quoted_parameter(extent.value),
                       quoted_parameter(extent.count));
  }
  for (const Control& control : program.controls) out += control_line(control);
  out += schedule_line(program.items);
  if (!program.bounded.empty()) {
    std::vector<std::string> layers;
    for (const std::string& layer : program.bounded) layers.push_back(quoted(layer));
    out += fmt::format("bounded {}\n", fmt::join(layers, ", "));
  }
  for (const auto& [value, domain] : program.domains) {
    if (find_type(program, value) != nullptr)
      out += fmt::format("domain {} from {} to {}\n", quoted_parameter(value), attribute_text(domain.low),
                         attribute_text(domain.high));
  }
  return out;
}

}  // namespace hoist
