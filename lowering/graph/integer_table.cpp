#include "lowering/graph/integer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ir/evaluate/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/program/onnx_type.h"
#include "ir/properties/properties.h"
#include "lowering/graph/steps.h"

namespace hoist {
namespace {

constexpr int64_t table_size = 256;
constexpr int64_t worth_a_table = 4;  // instructions of a definition; a shorter one is as fast as a look-up

bool is_bytes(Type type) {
  const Type leaf = leaf_of(type);
  return type->is_array() && leaf->is_scalar() && (leaf->scalar == Scalar::i8 || leaf->scalar == Scalar::u8);
}

// The definitions that one table replaces, as positions in the program.
struct Part {
  Expr source = nullptr;       ///< the 8-bit operand
  std::set<size_t> widening;   ///< definitions that use the source directly
  std::set<size_t> functions;  ///< definitions that use those results
  size_t last = 0;             ///< the definition of the 8-bit result
  Expr body = nullptr;         ///< an element of the result as a term of an element of the source
};

class Finder {
 public:
  Finder(const Program& program, const TableOptions& options)
      : program_(program), options_(options), uses_(use_counts(program)) {
    for (size_t i = 0; i < program.definitions.size(); ++i) place_[program.definitions[i].value] = i;
  }

  /// The part that computes the 8-bit value from another 8-bit value, if a table can replace it.
  std::optional<Part> before(size_t last) {
    const Definition& definition = program_.definitions[last];
    if (!is_bytes(definition.expression->type) || !is_call(definition)) return std::nullopt;
    Part part;
    part.last = last;
    sizes_ = sizes_of(definition.expression->type);
    for (Expr p : parameters_of(definition.expression)) {
      if (!add(p, part)) return std::nullopt;
    }
    if (part.source == nullptr || part.functions.empty() || part.widening.empty()) return std::nullopt;
    if (!has_body(part) || !is_closed(part)) return std::nullopt;
    if (options_.use == TableUse::automatic && is_cheap(part)) return std::nullopt;
    return part;
  }

 private:
  static bool is_call(const Definition& definition) { return definition.expression->pattern == Pattern::operator_call; }

  bool is_constant(Expr p) const { return program_.constants.count(p->name) != 0; }

  // Adds the definitions that compute the value, back to the 8-bit source.
  bool add(Expr p, Part& part) const {
    if (is_constant(p)) return true;
    auto found = place_.find(p->name);
    if (found == place_.end() || sizes_of(p->type) != sizes_) return false;
    const Definition& definition = program_.definitions[found->second];
    if (!is_call(definition) || !leaf_of(p->type)->is_scalar()) return false;
    for (const std::string& layer : definition.layers) {
      if (options_.except.count(layer) != 0) return false;
    }
    std::vector<Expr> reads = parameters_of(definition.expression);
    std::erase_if(reads, [&](Expr read) { return is_constant(read); });
    if (reads.size() == 1 && is_bytes(reads[0]->type)) {
      if (part.source != nullptr && part.source != reads[0]) return false;
      part.source = reads[0];
      part.widening.insert(found->second);
      return true;
    }
    if (is_bytes(p->type)) return false;                            // such a value gets a table of its own
    if (!part.functions.insert(found->second).second) return true;  // reached by another path before
    return std::all_of(reads.begin(), reads.end(), [&](Expr read) { return add(read, part); });
  }

  // Inlines the part into one elementwise term of the source. True if that succeeds.
  bool has_body(Part& part) const {
    std::set<size_t> places = part.functions;
    places.insert(part.widening.begin(), part.widening.end());
    std::map<std::string, Expr> terms;
    auto inlined = [&](const Definition& definition) -> Expr {
      auto expanded = inline_call(*definition.expression, program_.constants);
      if (!expanded.ok()) return nullptr;
      return substitute_parameters(*expanded, terms);
    };
    for (size_t i : places) {
      Expr term = inlined(program_.definitions[i]);
      if (term == nullptr || !elementwise_in(term, part.source->name)) return false;
      terms[program_.definitions[i].value] = term;
    }
    Expr whole = inlined(program_.definitions[part.last]);
    if (whole == nullptr) return false;
    const auto elementwise = elementwise_in(whole, part.source->name);
    if (elementwise) part.body = elementwise->body;
    return elementwise.has_value();
  }

  // True if no function takes `worth_a_table` instructions.
  bool is_cheap(const Part& part) const {
    return std::all_of(part.functions.begin(), part.functions.end(), [&](size_t i) {
      const Definition& definition = program_.definitions[i];
      auto term = inline_call(*definition.expression, program_.constants);
      if (!term.ok()) return true;
      int64_t most = 0;
      for (Expr p : parameters_of(*term)) {
        if (is_constant(p)) continue;
        if (const auto elementwise = elementwise_in(*term, p->name))
          most = std::max(most, instruction_estimate(elementwise->body));
      }
      return most < worth_a_table;
    });
  }

  // True if every use of an intermediate value lies inside the part.
  bool is_closed(const Part& part) const {
    std::map<std::string, int> inside;
    std::set<size_t> consumers = part.functions;
    consumers.insert(part.last);
    for (size_t i : consumers) {
      for (Expr p : parameters_of(program_.definitions[i].expression)) ++inside[p->name];
    }
    return std::all_of(part.functions.begin(), part.functions.end(), [&](size_t i) {
      const std::string& value = program_.definitions[i].value;
      return inside[value] == uses_.at(value);
    });
  }

  const Program& program_;
  const TableOptions& options_;
  std::map<std::string, int> uses_;
  std::map<std::string, size_t> place_;
  std::vector<Nat> sizes_;  // sizes of the current result
};

// The results for all inputs in the order of their bits as unsigned integers: -1 is the last.
Result<Tensor> table_of(const Program& program, const Part& part, bool& withheld) {
  const Scalar scalar = leaf_of(part.source->type)->scalar;
  const std::vector<Expr> reads = parameters_of(part.body);
  withheld = std::any_of(reads.begin(), reads.end(), [&](Expr p) { return program.withheld.count(p->name) != 0; });
  if (withheld) return Tensor(leaf_of(part.body->type)->scalar, {table_size});
  Tensor every_input(scalar, {table_size});
  for (int64_t i = 0; i < table_size; ++i) every_input.set_integer(i, i);
  Bindings values = {{element_name, every_input}};
  for (Expr p : parameters_of(part.body)) {
    if (p->name != element_name) values[p->name] = program.constants.at(p->name);
  }
  Expr inputs = parameter(element_name, array_type(table_size, scalar_type(scalar)));
  Expr results = map([&](Expr x) { return substitute_parameters(part.body, {{element_name, x}}); }, inputs);
  return evaluate(results, values);
}

// Replaces the last function by positions and the result by a look-up; both keep their layers. A definition that widens
// the source is absorbed if it has no other consumer.
Result<Nothing> look_up(Program& program, const Part& part) {
  bool withheld = false;
  HOIST_TRY(Tensor values, table_of(program, part, withheld));
  const Definition& function = program.definitions[*part.functions.rbegin()];
  Definition& result = program.definitions[part.last];
  ValueNames names(program);
  const std::string name = layer_name(function);
  const std::string positions_name = names.make(name + ".positions"), table = names.make(name + ".table");
  HOIST_TRY(Expr positions,
            operator_call({"", "Cast", program.version, 1, {}, {{"to", onnx_type(Scalar::i32)}}}, {part.source}));
  HOIST_TRY(Expr looked_up,
            operator_call({"", "Gather", program.version, 1, {}, {{"axis", int64_t{0}}}},
                          {parameter(table, type_of(values)), parameter(positions_name, positions->type)}));

  ProgramStep step = replayed_step("integer-tables", result);
  step.layer = name;
  step.note = fmt::format("{} layers between 8-bit values become one look-up table",
                          part.widening.size() + part.functions.size() + 1);
  std::vector<std::string> layers = function.layers;
  for (size_t i : part.functions) {
    if (i == *part.functions.rbegin()) continue;
    const Definition& other = program.definitions[i];
    layers.insert(layers.end(), other.layers.begin(), other.layers.end());
  }
  std::vector<Definition> widening;
  for (size_t i : part.widening) widening.push_back(program.definitions[i]);

  result.expression = looked_up;
  program.constants[table] = std::move(values);
  if (withheld) program.withheld[table];
  program.definitions.insert(program.definitions.begin() + static_cast<std::ptrdiff_t>(part.last),
                             {positions_name, {}, positions});
  remove_unused(program);
  for (const Definition& definition : widening) {
    if (find_definition(program, definition.value) == nullptr)
      layers.insert(layers.end(), definition.layers.begin(), definition.layers.end());
  }
  for (const std::string& layer : layers) {
    if (layer != name) step.absorbed.push_back(layer);
  }
  step.constants.push_back(step_constant(program, table));
  program.steps.push_back(std::move(step));
  find_definition(program, positions_name)->layers = layers;
  return Nothing{};
}

// The current position of the value's definition.
size_t place_of(const Program& program, const std::string& value) {
  return static_cast<size_t>(find_definition(program, value) - program.definitions.data());
}

}  // namespace

bool use_integer_table(Program& program, const std::string& value) {
  if (find_definition(program, value) == nullptr) return false;
  const TableOptions options{TableUse::on, {}};
  const auto part = Finder(program, options).before(place_of(program, value));
  return part && look_up(program, *part).ok();
}

int use_integer_tables(Program& program, const TableOptions& options) {
  if (options.use == TableUse::off) return 0;
  int count = 0;
  auto finder = std::make_unique<Finder>(program, options);
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    const auto part = finder->before(i);
    if (!part) continue;
    const std::string value = program.definitions[i].value;
    if (!look_up(program, *part).ok()) continue;
    ++count;
    i = place_of(program, value);  // definitions before it were inserted and removed
    finder = std::make_unique<Finder>(program, options);
  }
  return count;
}

}  // namespace hoist
