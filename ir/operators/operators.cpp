#include "ir/operators/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ir/base/hash.h"
#include "ir/operators/definitions/host_forms.h"
#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/program/onnx_type.h"
#include "ir/program/program.h"

namespace hoist {
namespace {

bool by_name(const OperatorRow& a, const OperatorRow& b) {
  return std::tie(a.domain, a.name) < std::tie(b.domain, b.name);
}

// The rows of the files and the rows in C++. A row in C++ without a function belongs to an operator with a text.
std::vector<OperatorRow> joined() {
  const auto files = own_row_files(operator_files);
  HOIST_CHECK(files.ok(), files.errors()[0].text());
  auto read = operators::read_operators(*files);
  HOIST_CHECK(read.ok(), "hoist's operators are wrong: " + read.errors()[0].text());
  std::vector<OperatorRow> rows = std::move(*read);
  std::sort(rows.begin(), rows.end(), by_name);
  const auto texts = static_cast<ptrdiff_t>(rows.size());
  for (auto family :
       {operators::product_operators,        operators::normalisation_operators, operators::shape_operators,
        operators::movement_operators,       operators::gather_operators,        operators::selection_operators,
        operators::resize_operators,         operators::control_operators,       operators::recurrent_operators,
        operators::sampling_operators,       operators::region_operators,        operators::signal_operators,
        operators::training_operators,       operators::learning_operators,      operators::sequence_operators,
        operators::text_operators,           operators::encoder_operators,       operators::image_operators,
        operators::support_vector_operators, operators::suppression_operators,   operators::tree_operators,
        operators::variadic_operators}) {
    for (const OperatorRow& r : family()) {
      if (r.lower != nullptr) {
        rows.push_back(r);
        continue;
      }
      const auto text = std::lower_bound(rows.begin(), rows.begin() + texts, r, by_name);
      HOIST_CHECK(text != rows.begin() + texts && text->domain == r.domain && text->name == r.name,
                  std::string(r.name) + " has no text");
      text->composition = r.composition;
    }
  }
  std::sort(rows.begin(), rows.end(), by_name);
  return rows;
}

// Rows from files are incomplete until they are found.
std::vector<OperatorRow>& all_rows() {
  static std::vector<OperatorRow> rows = joined();
  return rows;
}

const OperatorRow& completed(OperatorRow& row) {
  if (row.source == nullptr) return row;
  const auto done = row.source->complete(row);
  HOIST_CHECK(done.ok(), "hoist's operators are wrong: " + done.errors()[0].text());
  return row;
}

std::vector<OperatorRow>* added_rows = nullptr;  // rows added by a ScopedOperators

std::string_view plain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

// The guarantees for every operator: its inputs are arrays of scalars with constant extents, as many as the row states.
Result<Nothing> check_inputs(const OperatorContext& c, const OperatorRow& row) {
  HOIST_CHECK(c.constants.size() == c.inputs.size(), "one constant for each input of the call");
  // An input that has become an attribute counts as present.
  auto given = [&](int i) {
    if (static_cast<size_t>(i) < c.inputs.size() && c.inputs[static_cast<size_t>(i)] != nullptr) return true;
    const std::vector<ShapeInput> inputs = shape_inputs(row);
    return std::any_of(inputs.begin(), inputs.end(), [&](const ShapeInput& input) {
      return input.place == static_cast<size_t>(i) && operators::has_attribute(c, std::string(input.name));
    });
  };
  auto count = static_cast<int>(c.inputs.size());
  while (count < row.least_inputs && given(count)) ++count;
  if (count < row.least_inputs || (row.most_inputs >= 0 && count > row.most_inputs)) {
    return operators::fault(fmt::format("{} takes {} to {} inputs, found {}", row.name, row.least_inputs,
                                        row.most_inputs < 0 ? "any number of" : std::to_string(row.most_inputs),
                                        count));
  }
  for (int i = 0; i < count; ++i) {
    Expr x = operators::input(c, static_cast<size_t>(i));
    if (x == nullptr) {
      if (i < row.least_inputs && !given(i))
        return operators::fault(fmt::format("input {} of {} is missing", i, row.name));
      continue;
    }
    if (!leaf_of(x->type)->is_scalar())
      return operators::fault(fmt::format("input {} is {}, not a tensor", i, text(x->type)));
  }
  if (operators::input(c, 0) != nullptr && !takes(row.takes, operators::element_of(c.inputs[0]))) {
    return operators::fault(fmt::format("{} takes {}, found {}", row.name, name_of(row.takes),
                                        hoist::row(operators::element_of(c.inputs[0])).name));
  }
  return Nothing{};
}

using Definer = Result<std::vector<Expr>> (*)(const OperatorContext&);

// The results of the call by `definer`, a tuple if there are several.
Result<Expr> defined_by(Definer definer, const Spec& call, const std::vector<Expr>& operands,
                        const KnownValues& known) {
  const OperatorCall& operation = *call.operation;
  OperatorContext context{operation, {}, {}};
  if (!operation.operands.empty()) context.inputs.resize(static_cast<size_t>(operation.operands.back()) + 1, nullptr);
  context.constants.resize(context.inputs.size(), nullptr);
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto place = static_cast<size_t>(operation.operands[i]);
    Expr x = operands[i];
    context.inputs[place] = x;
    if (x->pattern == Pattern::constant) context.constants[place] = &x->constant;
    if (x->pattern != Pattern::parameter) continue;
    if (auto value = known.find(x->name); value != known.end()) context.constants[place] = &value->second;
  }
  HOIST_TRY(std::vector<Expr> results, definer(context));
  if (results.empty()) return Expr(nullptr);
  results.resize(std::min(results.size(), static_cast<size_t>(operation.results)));
  if (results.size() == 1) return results[0];
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] == nullptr)
      return operators::fault(fmt::format("{} gives no result {} here", full_name(operation), i));
  }
  Spec all;
  all.pattern = Pattern::tuple;
  all.children = std::move(results);
  return make(std::move(all));
}

Result<Expr> definition_of(const Spec& call, const std::vector<Expr>& operands, const KnownValues& known) {
  return defined_by(define, call, operands, known);
}

// Definitions of calls, found once: typing a call needs its definition, and so does inlining it.
class Definitions {
 public:
  Expr find(const Spec& call, const std::vector<Expr>& operands) {
    const std::lock_guard lock(mutex_);
    auto [first, last] = known_.equal_range(hash(call, operands));
    for (auto place = first; place != last; ++place) {
      const Known& known = place->second;
      if (known.operands == operands && *known.operation == *call.operation) return known.definition;
    }
    return nullptr;
  }
  void add(const Spec& call, const std::vector<Expr>& operands, Expr definition) {
    const std::lock_guard lock(mutex_);
    known_.emplace(hash(call, operands), Known{call.operation, operands, definition});
  }

 private:
  struct Known {
    std::shared_ptr<const OperatorCall> operation;
    std::vector<Expr> operands;
    Expr definition;
  };
  static uint64_t hash(const Spec& call, const std::vector<Expr>& operands) {
    uint64_t h = call.operation->hash();
    for (Expr e : operands) h = mixed(h, e->serial);
    return h;
  }

  std::mutex mutex_;
  std::unordered_multimap<uint64_t, Known> known_;
};

Result<Expr> inline_call_with(const Spec& call, const std::vector<Expr>& operands, const KnownValues& known) {
  if (!known.empty()) return definition_of(call, operands, known);
  static auto* definitions = new Definitions;  // never destroyed: terms live as long as the program
  if (Expr definition = definitions->find(call, operands)) return definition;
  HOIST_TRY(Expr definition, definition_of(call, operands, known));
  definitions->add(call, operands, definition);
  return definition;
}

}  // namespace

bool takes(Takes what, Scalar s) {
  switch (what) {
    case Takes::anything:
      return true;
    case Takes::numbers:
      return s != Scalar::boolean && s != Scalar::string;
    case Takes::floats:
      return is_float(s);
    case Takes::integers:
      return is_integer(s);
    case Takes::booleans:
      return s == Scalar::boolean;
  }
  return false;
}

std::string_view name_of(Takes takes) {
  constexpr std::string_view names[] = {"anything", "numbers", "floats", "integers", "booleans"};
  return names[static_cast<size_t>(takes)];
}

std::span<const OperatorRow> operator_table() {
  for (OperatorRow& row : all_rows()) completed(row);
  return all_rows();
}

Result<Nothing> check_own_operators() {
  HOIST_TRY(const std::vector<RowFile> files, own_row_files(operator_files));
  HOIST_TRY(std::vector<OperatorRow> rows, operators::read_operators(files));
  Diagnostics faults;
  for (OperatorRow& row : rows) {
    if (const auto done = row.source->complete(row); !done.ok())
      faults.insert(faults.end(), done.errors().begin(), done.errors().end());
  }
  if (!faults.empty()) return faults;
  return Nothing{};
}

const OperatorRow* find_operator(std::string_view domain, std::string_view name, int64_t opset) {
  domain = plain(domain);
  std::vector<OperatorRow>& rows = all_rows();
  auto found = std::lower_bound(rows.begin(), rows.end(), std::tie(domain, name),
                                [](const OperatorRow& r, const auto& key) { return std::tie(r.domain, r.name) < key; });
  if (found == rows.end() || found->domain != domain || found->name != name || opset < found->since) {
    if (added_rows == nullptr) return nullptr;
    for (const OperatorRow& r : *added_rows) {
      if (r.domain == domain && r.name == name && r.since <= opset) return &r;
    }
    return nullptr;
  }
  return &completed(*found);
}

operators::ScopedOperators::ScopedOperators(const std::string& text) {
  const RowFile file{"added.op", text};
  auto read = read_operators(std::span(&file, 1));
  HOIST_CHECK(read.ok(), read.errors()[0].text());
  rows_ = std::move(*read);
  for (OperatorRow& row : rows_) completed(row);
  outer_ = std::exchange(added_rows, &rows_);
}
operators::ScopedOperators::~ScopedOperators() { added_rows = outer_; }

std::vector<ShapeInput> shape_inputs(const OperatorRow& row) {
  std::vector<ShapeInput> inputs;
  for (std::string_view rest = row.shape_inputs; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    inputs.push_back({static_cast<size_t>(one[0] - '0'), one.substr(2)});
    rest.remove_prefix(std::min(one.size() + 2, rest.size()));
  }
  return inputs;
}

namespace {

std::set<std::string> symbolic_sizes(const OperatorContext& c) {
  std::set<std::string> names;
  for (Expr x : c.inputs) {
    if (x == nullptr) continue;
    for (const Nat& n : sizes_of(x->type)) names.merge(names_of(n));
  }
  return names;
}

Result<std::vector<Expr>> defined(const OperatorContext& c, const OperatorRow& row) {
  return row.source == nullptr ? row.lower(c) : operators::define_by_text(row, c);
}

// True if strings occur among the operands or in an attribute, as a type or in a tensor.
bool names_strings(const OperatorContext& c) {
  const bool reads = std::any_of(c.inputs.begin(), c.inputs.end(),
                                 [](Expr x) { return x != nullptr && leaf_of(x->type)->scalar == Scalar::string; });
  return reads || std::any_of(c.call.attributes.begin(), c.call.attributes.end(), [](const auto& entry) {
           const auto* number = std::get_if<int64_t>(&entry.second);
           const auto* tensor = std::get_if<Tensor>(&entry.second);
           return (number != nullptr && *number == onnx_type(Scalar::string)) ||
                  (tensor != nullptr && tensor->scalar() == Scalar::string);
         });
}

// A definition accepts symbolic sizes if it only passes them on, and strings if it moves and compares them. If it needs
// the value of a size (Nat::value), or builds a term that has no type for every size or for strings, the call is an
// error.
Result<std::vector<Expr>> defined_for_all(const OperatorContext& c, const OperatorRow& row,
                                          const std::set<std::string>& sizes) {
  const FaultsAreErrors guard;
  try {
    auto results = defined(c, row);
    if (results.ok()) return results;
    Diagnostics problems = results.errors();
    for (Diagnostic& d : problems) d.what = fmt::format("{}: {}", row.name, d.what);
    return problems;
  } catch (const InternalFault& fault) {
    if (sizes.empty()) return operators::fault(fmt::format("{} has no meaning for strings: {}", row.name, fault.text));
    return operators::fault(
        fmt::format("{} has no type that holds for every {}: {}", row.name, fmt::join(sizes, ", "), fault.text),
        "write a number instead of the size");
  }
}

}  // namespace

Result<std::vector<Expr>> define(const OperatorContext& c) {
  const OperatorRow* row = find_operator(c.call.domain, c.call.name, c.call.version);
  if (row == nullptr) {
    const OperatorRow* newer = find_operator(c.call.domain, c.call.name, std::numeric_limits<int64_t>::max());
    return operators::fault(
        fmt::format("operator {} of version {} is not supported", full_name(c.call), c.call.version),
        newer == nullptr ? "hoist operators lists the supported ones"
                         : fmt::format("write it as version {} defines it; only models are upgraded", newer->since));
  }
  HOIST_TRY_VOID(check_inputs(c, *row));
  const std::set<std::string> sizes = symbolic_sizes(c);
  HOIST_TRY(auto results, sizes.empty() && !names_strings(c) ? defined(c, *row) : defined_for_all(c, *row, sizes));
  const auto wanted = static_cast<size_t>(c.call.results);
  if (results.size() < wanted) {
    return operators::fault(
        fmt::format("{} gives {} outputs here, the layer names {}", row->name, results.size(), wanted));
  }
  results.resize(wanted);
  return results;
}

int64_t place_of_count(const OperatorRow& row, int64_t body_outputs) {
  return row.extents->count >= 0 ? row.extents->count : body_outputs - (row.bodies->iterates ? 1 : 0);
}

int64_t place_of_count(const OperatorCall& call) {
  int64_t body_outputs = 0;
  for (const auto& [name, attribute] : call.attributes) {
    if (const auto* body = std::get_if<Body>(&attribute)) body_outputs = std::ssize(body->program->outputs);
  }
  return place_of_count(*find_operator(call.domain, call.name, call.version), body_outputs);
}

Result<std::vector<std::pair<int64_t, int64_t>>> dynamic_dimensions(const OperatorCall& call,
                                                                    const std::vector<Expr>& operands) {
  const OperatorRow* row = find_operator(call.domain, call.name, call.version);
  if (row == nullptr || row->extents == nullptr) return std::vector<std::pair<int64_t, int64_t>>();
  const OperatorContext context{call, operands, std::vector<const Tensor*>(operands.size(), nullptr)};
  HOIST_TRY_VOID(check_inputs(context, *row));
  return row->extents->dimensions(context);
}

Result<Expr> inline_call(const Spec& call, const KnownValues& known) {
  return inline_call_with(call, call.children, known);
}

Result<Expr> host_form(const Spec& call, const KnownValues& known) {
  const OperatorCall& operation = *call.operation;
  for (const auto family : {operators::selection_on_host, operators::suppression_on_host}) {
    for (const operators::HostFormRow& row : family()) {
      if (operation.domain.empty() && operation.name == row.operation)
        return defined_by(row.define, call, call.children, known);
    }
  }
  return Expr(nullptr);
}

Expr without_operator_calls(Expr e) {
  if (!e->has_operator_call) return e;
  std::unordered_map<Expr, Expr> memo;
  std::function<Expr(Expr)> walk = [&](Expr n) -> Expr {
    if (!n->has_operator_call) return n;
    auto found = memo.find(n);
    if (found != memo.end()) return found->second;
    std::vector<Expr> children;
    for (Expr c : n->children) children.push_back(walk(c));
    auto made = n->pattern == Pattern::operator_call ? inline_call_with(*n, children, {})
                                                     : with_children(n, std::move(children));
    HOIST_CHECK(made.ok(), made.errors()[0].text());
    return memo[n] = *made;
  };
  return walk(e);
}

}  // namespace hoist
