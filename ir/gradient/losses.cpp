#include "ir/gradient/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>

#include "ir/gradient/calls.h"
#include "ir/gradient/linear_terms.h"
#include "ir/operators/operators.h"
#include "ir/rules/match.h"
#include "ir/text/parse/near_miss.h"
#include "ir/text/parse/parse_term.h"

namespace hoist {
namespace {

using namespace gradients;

struct LossSettings {
  std::optional<int64_t> axis;
  double temperature = 1;
  Expr smoothing = nullptr;
};

// The maps count as in the experiments of Zagoruyko and Komodakis.
constexpr double attention_weight = 1000;

// Adds the definitions of one loss to the program.
class LossBuilder {
 public:
  LossBuilder(Program& program, const std::string& value, Type type, const LossSettings& settings)
      : program_(program),
        names_(program),
        value_(value),
        type_(type),
        axis_(settings.axis),
        temperature_(settings.temperature),
        smoothing_(settings.smoothing) {}

  Result<std::string> squares() {
    if (axis_) return fault("mse has no axis", "");
    const Expr y = flat(parameter(value_, type_)), target = flat(input("target", type_));
    return define(mean(sum_of_squares(y, target), literal(scalar(), static_cast<double>(y->type->size.value()))));
  }

  Result<std::string> of_term(const std::string& text_of_term) {
    Declarations declared;
    for (const char* name : {"output", "target"}) declared.metas[name] = {{}, type_};
    const auto parsed = parse_term(text_of_term, declared, scalar_type(scalar()));
    if (!parsed.ok()) {
      Diagnostics problems = parsed.errors();
      for (Diagnostic& problem : problems) problem.where = "term of the loss, " + problem.where;
      return problems;
    }
    const Expr term = *parsed;
    if (term->type != scalar_type(scalar()))
      return fault("has a loss of type " + text(term->type) + ", expected " + text(scalar_type(scalar())), "");
    Match match;
    match.metas["output"] = parameter(value_, type_);
    match.metas["target"] = input("target", type_);
    HOIST_TRY(const Expr loss, instantiate(term, match));
    return define(loss);
  }

  Result<std::string> cross_entropy() {
    HOIST_TRY(const int64_t axis, class_axis());
    std::vector<int64_t> positions = shape_of(type_);
    const int64_t classes = positions[static_cast<size_t>(axis)];
    positions.erase(positions.begin() + axis);

    Expr rows = classes_last(axis, parameter(logarithms(axis, logits(axis)), type_));
    const Type one = scalar_type(Scalar::i64);
    Expr labels = input("labels", positions.empty() ? one : array_type({positions.begin(), positions.end()}, one));
    program_.domains[labels->name] = {0, static_cast<double>(classes - 1)};
    rows = positions.empty() ? repeat(1, rows) : joined(rows, 2);
    labels = positions.empty() ? repeat(1, labels) : flat(labels);
    const Nat& n = rows->type->size;
    const Expr row = fresh_variable(rows->type->element), label = fresh_variable(scalar_type(Scalar::i64));
    const Expr counted = select(call(Function::less, {label, integer(0)}), literal(scalar(), 0), literal(scalar(), 1));
    const Expr count = call(Function::maximum, {sum_over({{label, labels}}, n, counted), literal(scalar(), 1)});
    return define(mean(sum_over({{row, rows}, {label, labels}}, n, of_row(row, label, classes)), count));
  }

  Result<std::string> distillation() {
    HOIST_TRY(const int64_t axis, class_axis());
    return divergence_from(input("teacher", type_), axis);
  }

  Result<std::string> attention_transfer() {
    const std::vector<int64_t> shape = shape_of(type_);
    const int64_t classes = axis_.value_or(0);
    if (shape.size() != 2 || classes < 1 || classes >= shape[1])
      return fault("holds no logits before attention maps", "hoist train --distill makes them");
    const Expr teacher = input("teacher", type_);
    const auto columns = [&](int64_t first, int64_t end, Expr rows, const std::string& wanted) {
      const Expr part = map([&](Expr row) { return slice(first, end - first, row); }, rows);
      return parameter(define(part, wanted), part->type);
    };
    const Expr value = parameter(value_, type_), logits = columns(0, classes, value, "loss.logits");
    const Expr taught = columns(0, classes, teacher, "loss.taught");
    LossBuilder of_logits(program_, logits->name, logits->type, {1, temperature_, nullptr});
    const Expr divergence = parameter(of_logits.divergence_from(taught, 1), scalar_type(scalar()));
    names_ = ValueNames(program_);
    const Expr maps = flat(columns(classes, shape[1], value, "loss.maps"));
    const Expr target = flat(columns(classes, shape[1], teacher, "loss.taught_maps"));
    const Expr squares = mean(sum_of_squares(maps, target), literal(scalar(), static_cast<double>(shape[0])));
    return define(call(Function::add, {divergence, times(literal(scalar(), attention_weight), squares)}));
  }

 private:
  // The loss of the value against a teacher's.
  std::string divergence_from(Expr teacher, int64_t axis) {
    // The teacher gives the value itself; logarithms of probabilities are logits.
    if (operand_of("Softmax", axis) != nullptr)
      teacher = parameter(define(over_elements(teacher,
                                               [&](Expr e) {
                                                 const Expr least = literal(scalar(), 1e-30);
                                                 return call(Function::log, {call(Function::maximum, {e, least})});
                                               }),
                                 "loss.teacher"),
                          type_);
    const std::string of_value = logarithms(axis, tempered(parameter(logits(axis), type_)));
    const std::string of_teacher = logarithms(axis, tempered(teacher));
    const Expr student = flat(classes_last(axis, parameter(of_value, type_)));
    const Expr target = flat(classes_last(axis, parameter(of_teacher, type_)));
    const auto positions = static_cast<double>(element_count(shape_of(type_))) /
                           static_cast<double>(shape_of(type_)[static_cast<size_t>(axis)]);
    const Expr q = fresh_variable(student->type->element), p = fresh_variable(student->type->element);
    const Expr share = call(Function::exp, {p});
    const Expr sum = sum_over({{q, student}, {p, target}}, student->type->size,
                              call(Function::multiply, {share, call(Function::subtract, {p, q})}));
    return define(mean(sum, literal(scalar(), positions / (temperature_ * temperature_))));
  }

  static Expr sum_of_squares(Expr y, Expr target) {
    const Expr a = fresh_variable(y->type->element), b = fresh_variable(y->type->element);
    const Expr difference = call(Function::subtract, {a, b});
    return sum_over({{a, y}, {b, target}}, y->type->size, times(difference, difference));
  }

  Result<int64_t> class_axis() const {
    const auto rank = std::ssize(shape_of(type_));
    const int64_t wanted = axis_.value_or(1), axis = wanted < 0 ? wanted + rank : wanted;
    if (axis >= 0 && axis < rank) return axis;
    return fault(fmt::format("is {}, and has no axis {} for the classes", text(type_), wanted), "LOSS:AXIS names it");
  }

  static Expr classes_last(int64_t axis, Expr array) {
    std::vector<int64_t> order(sizes_of(array->type).size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::rotate(order.begin() + axis, order.begin() + axis + 1, order.end());
    return transpose(order, array);
  }

  std::string tempered(Expr logits) {
    if (temperature_ == 1) return logits->name;
    const auto divided = [&](Expr e) { return call(Function::divide, {e, literal(scalar(), temperature_)}); };
    return define(over_elements(logits, divided), "loss.tempered");
  }

  static Expr over_elements(Expr array, const std::function<Expr(Expr)>& f) {
    return map_at(static_cast<int>(sizes_of(array->type).size()), f, array);
  }

  Diagnostic fault(const std::string& what, const std::string& hint) const { return {value_, what, hint}; }
  Scalar scalar() const { return leaf_of(type_)->scalar; }
  static Expr integer(int64_t n) { return literal_integer(Scalar::i64, n); }
  static Expr joined(Expr array, size_t rank) {
    while (sizes_of(array->type).size() > rank) array = join(array);
    return array;
  }
  static Expr flat(Expr e) { return e->type->is_array() ? joined(e, 1) : repeat(1, e); }
  static Expr mean(Expr sum, Expr count) { return call(Function::divide, {sum, count}); }

  static Expr times(Expr a, Expr b) { return call(Function::multiply, {a, b}); }

  Expr input(const std::string& wanted, Type type) {
    program_.inputs.emplace_back(names_.make(wanted), type);
    return parameter(program_.inputs.back().first, type);
  }

  std::string define(Expr term, const std::string& wanted = "loss") {
    return gradients::append_definition(program_, names_, wanted, term)->name;
  }

  // The negative logarithm at the label, smoothed: a sum over all classes, which reads no element outside the row.
  Expr of_row(Expr row, Expr label, int64_t classes) const {
    const Expr v = fresh_variable(row->type->element), place = fresh_variable(scalar_type(Scalar::i64));
    const Expr loss = call(Function::negate, {v});
    Expr at_label = loss, elsewhere = zeros(v->type);
    if (smoothing_ != nullptr) {
      const Expr s = cast(scalar(), smoothing_);
      const Expr share = call(Function::divide, {s, literal(scalar(), static_cast<double>(classes))});
      const Expr rest = call(Function::subtract, {literal(scalar(), 1), s});
      elsewhere = select(call(Function::less, {label, integer(0)}), zeros(v->type), times(share, loss));
      at_label = times(call(Function::add, {rest, share}), loss);
    }
    const Expr chosen = select(call(Function::equal, {place, label}), at_label, elsewhere);
    const Expr sum = sum_over({{v, row}, {place, iota(classes, Scalar::i64)}}, classes, chosen);
    return select(call(Function::less, {label, integer(classes)}), sum,
                  literal(scalar(), std::numeric_limits<double>::quiet_NaN()));
  }

  // The definition of the value, or of its original if it is a copy.
  const Definition* definition_of_value() const {
    const Definition* made = find_definition(program_, value_);
    while (made != nullptr) {
      Expr e = without_operator_calls(made->expression);
      if (e->pattern == Pattern::identity) e = e->children[0];
      if (e->pattern != Pattern::parameter) break;
      made = find_definition(program_, e->name);
    }
    return made;
  }

  // The operand if the value is the result of this operator over the classes; otherwise null.
  Expr operand_of(const char* name, int64_t axis) const {
    const Definition* made = definition_of_value();
    const bool is_call = made != nullptr && made->expression->pattern == Pattern::operator_call &&
                         made->expression->children.size() == 1;
    if (!is_call || made->expression->children[0]->pattern != Pattern::parameter) return nullptr;
    const Expr operand = made->expression->children[0];
    const auto same = call_of(name, operand, axis);
    const bool is_same = same.ok() && without_operator_calls(*same) == without_operator_calls(made->expression);
    return is_same ? operand : nullptr;
  }

  // The value, or the operand if it is the result of a softmax.
  std::string logits(int64_t axis) const {
    for (const char* name : {"Softmax", "LogSoftmax"}) {
      if (const Expr operand = operand_of(name, axis)) return operand->name;
    }
    return value_;
  }

  // The name of the logarithms of the softmax.
  std::string logarithms(int64_t axis, const std::string& logits) {
    const auto made = call_of("LogSoftmax", parameter(logits, type_), axis);
    HOIST_CHECK(made.ok(), made.errors()[0].text());
    return define(*made, "loss.logarithms");
  }

  static Result<Expr> call_of(const char* name, Expr operand, int64_t axis) {
    return operator_call({"", name, 13, 1, {}, {{"axis", axis}}}, {operand});
  }

  Program& program_;
  ValueNames names_;
  std::string value_;
  Type type_;
  std::optional<int64_t> axis_;
  double temperature_;
  Expr smoothing_;
};

struct BuiltLoss {
  LossRow row;
  Result<std::string> (LossBuilder::*build)();
};

constexpr auto built_losses = std::to_array<BuiltLoss>({
    {{"cross-entropy", "negative logarithms of the softmax at the classes that the input labels gives"},
     &LossBuilder::cross_entropy},
    {{"attention-transfer", "distillation, and squares of the differences of attention maps (with --distill)"},
     &LossBuilder::attention_transfer},
    {{"distillation", "divergence of the softmax from that of the input teacher"}, &LossBuilder::distillation},
    {{"mse", "squares of the differences from the input target"}, &LossBuilder::squares},
});

// AXIS or AXIS,TEMPERATURE after the colon, if there is one.
Result<LossSettings> settings_in(const std::string& loss, size_t colon) {
  LossSettings out;
  if (colon == std::string::npos) return out;
  int64_t axis = 0;
  const char *begin = loss.data() + colon + 1, *end = loss.data() + loss.size();
  const auto [at, error] = std::from_chars(begin, end, axis);
  out.axis = axis;
  const bool has_more = error == std::errc() && at != end && *at == ',';
  const bool is_good = !has_more || std::from_chars(at + 1, end, out.temperature).ptr == end;
  if (error == std::errc() && is_good && (has_more || at == end) && out.temperature > 0) return out;
  return Diagnostic{loss, "names no axis", "an integer, such as cross-entropy:-1"};
}

}  // namespace

std::span<const LossRow> loss_rows() {
  static const auto rows = [] {
    std::array<LossRow, built_losses.size()> out;
    for (size_t i = 0; i < out.size(); ++i) out[i] = built_losses[i].row;
    return out;
  }();
  return rows;
}

Result<std::string> add_loss(Program& program, const std::string& value, const std::string& loss, Expr smoothing) {
  const size_t colon = loss.find(':');
  const std::string name = loss.substr(0, colon);
  const bool is_term = loss.starts_with(term_loss);
  HOIST_TRY(LossSettings settings, is_term ? LossSettings{} : settings_in(loss, colon));
  settings.smoothing = smoothing;
  const auto found =
      std::find_if(built_losses.begin(), built_losses.end(), [&](const BuiltLoss& l) { return l.row.name == name; });
  if (found == built_losses.end() && !is_term) {
    std::vector<std::string> names;
    for (const LossRow& row : loss_rows()) names.emplace_back(row.name);
    return Diagnostic{loss, "is no loss", fmt::format("{}", fmt::join(names, ", "))};
  }
  if (smoothing != nullptr && name != "cross-entropy")
    return Diagnostic{loss, "has no labels that could be smoothed", "cross-entropy has", ErrorKind::usage};
  const std::map<std::string, Type> types = value_types(program);
  const auto type = types.find(value);
  if (type == types.end()) {
    std::vector<std::string> names;
    for (const auto& [other, of_other] : types) names.push_back(other);
    return Diagnostic{value, "is no value of the model", did_you_mean(value, names, "")};
  }
  const std::vector<Nat> sizes = sizes_of(type->second);
  if (!std::all_of(sizes.begin(), sizes.end(), [](const Nat& n) { return n.is_constant(); }))
    return Diagnostic{value, "has sizes that are known only at run time", "set sizes with --dim"};
  if (!leaf_of(type->second)->is_scalar() || !is_float(leaf_of(type->second)->scalar))
    return Diagnostic{value, "is " + text(type->second) + ", and a loss needs floats"};
  LossBuilder builder(program, value, type->second, settings);
  return is_term ? builder.of_term(loss.substr(colon + 1)) : (builder.*found->build)();
}

}  // namespace hoist
