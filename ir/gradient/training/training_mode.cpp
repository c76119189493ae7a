#include "ir/gradient/training/training_mode.h"

#include <algorithm>
#include <variant>

#include "ir/gradient/batch_statistics.h"
#include "ir/gradient/calls.h"
#include "ir/operators/elementwise/random.h"
#include "ir/operators/operators.h"

namespace hoist {
namespace {

const OperatorCall* call_of(const Definition& d, std::string_view name) {
  if (d.expression->pattern != Pattern::operator_call) return nullptr;
  const OperatorCall& call = *d.expression->operation;
  return call.domain.empty() && call.name == name ? &call : nullptr;
}

// The operand at this place; null if it is left out.
Expr operand(Expr call, int64_t place) {
  const std::vector<int64_t>& places = call->operation->operands;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] == place) return call->children[i];
  }
  return nullptr;
}

double number_of(const OperatorCall& call, const std::string& attribute, double otherwise) {
  const auto found = call.attributes.find(attribute);
  if (found == call.attributes.end()) return otherwise;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&found->second);
  return number == nullptr ? otherwise : *number;
}

class TrainingMode {
 public:
  TrainingMode(Program& program, const TrainingModeRequest& request)
      : program_(program), request_(request), names_(program) {}

  std::vector<RunningAverage> run() {
    std::vector<Definition> before = std::move(program_.definitions);
    program_.definitions.clear();
    for (Definition& d : before) {
      if (call_of(d, "BatchNormalization") != nullptr) normalise_by_batch(d);
      if (call_of(d, "Dropout") != nullptr) drop(d);
      program_.definitions.push_back(std::move(d));
    }
    return std::move(averages_);
  }

 private:
  Expr define(const Definition& by, const std::string& part, Expr term) {
    return gradients::append_definition(program_, names_, by.value + part, term);
  }

  bool is_constant(Expr e) const {
    return e != nullptr && e->pattern == Pattern::parameter && find_constant(program_, e->name) != nullptr;
  }

  bool may_change(Expr e) const {
    const std::vector<std::string>& all = request_.averages;
    return is_constant(e) && std::find(all.begin(), all.end(), e->name) != all.end();
  }

  void normalise_by_batch(Definition& d) {
    const OperatorCall& call = *d.expression->operation;
    const Expr x = operand(d.expression, 0), mean = operand(d.expression, 3), variance = operand(d.expression, 4);
    const std::vector<int64_t> shape = shape_of(x->type);
    if (call.results != 1 || shape.size() < 2 || !may_change(mean) || !may_change(variance)) return;
    const Scalar scalar = leaf_of(mean->type)->scalar;
    const Expr of_batch = define(d, ".mean", gradients::batch_mean(x, scalar));
    const Expr spread = define(d, ".variance", gradients::batch_variance(x, of_batch, scalar));
    const double momentum = number_of(call, "momentum", 0.9);
    averages_.push_back({mean->name, of_batch->name, momentum});
    averages_.push_back({variance->name, spread->name, momentum});
    const auto made = operator_call(call, {x, operand(d.expression, 1), operand(d.expression, 2), of_batch, spread});
    HOIST_CHECK(made.ok(), made.errors()[0].text());
    d.expression = *made;
  }

  void drop(Definition& d) {
    const Expr x = operand(d.expression, 0), ratio = operand(d.expression, 1);
    if (d.expression->operation->results != 1) return;
    double share = 0.5;
    if (ratio != nullptr) {
      const Tensor* known = is_constant(ratio) ? find_constant(program_, ratio->name) : nullptr;
      if (known == nullptr) return;
      share = known->float_at(0);
    }
    const Scalar scalar = leaf_of(x->type)->scalar;
    const std::vector<Nat> sizes = sizes_of(x->type);
    const int64_t count = element_count(shape_of(x->type));
    const Expr run = cast(Scalar::u64, parameter(request_.step, scalar_type(Scalar::i64)));
    Expr words = operators::random_words(count, request_.seed + 0x9E37 * ++drops_, run);
    for (size_t i = sizes.size(); i-- > 1;) words = split(sizes[i], words);
    const auto factor = [&](Expr word) {
      const Expr unit = hoist::call(
          Function::multiply,
          {cast(Scalar::f32,
                cast(Scalar::i32, hoist::call(Function::shift_right, {word, literal_integer(Scalar::u64, 40)}))),
           literal(Scalar::f32, 0x1p-24)});
      return select(hoist::call(Function::less, {unit, literal(Scalar::f32, share)}), literal(scalar, 0),
                    literal(scalar, 1 / (1 - share)));
    };
    const int depth = static_cast<int>(sizes.size());
    const Expr factors = define(d, ".factors", map_at(depth, factor, words));
    const auto made = operator_call({"", "Mul", 14, 1, {}, {}}, {x, factors});
    HOIST_CHECK(made.ok(), made.errors()[0].text());
    d.expression = *made;
  }

  Program& program_;
  const TrainingModeRequest& request_;
  ValueNames names_;
  std::vector<RunningAverage> averages_;
  uint64_t drops_ = 0;
};

}  // namespace

void separate_copies(Program& program) {
  std::erase_if(program.definitions, [&](const Definition& d) {
    if (call_of(d, "Identity") == nullptr || is_output(program, d.value)) return false;
    const Expr from = operand(d.expression, 0);
    const Tensor* value = from->pattern == Pattern::parameter ? find_constant(program, from->name) : nullptr;
    return value != nullptr && program.constants.emplace(d.value, *value).second;
  });
}

std::vector<std::string> running_averages(const Program& program) {
  std::vector<std::string> out;
  for (const Definition& d : program.definitions) {
    if (call_of(d, "BatchNormalization") == nullptr) continue;
    for (const int64_t place : {3, 4}) {
      const Expr e = operand(d.expression, place);
      if (e != nullptr && e->pattern == Pattern::parameter && find_constant(program, e->name) != nullptr)
        out.push_back(e->name);
    }
  }
  return out;
}

std::vector<RunningAverage> use_training_mode(Program& program, const TrainingModeRequest& request) {
  return TrainingMode(program, request).run();
}

}  // namespace hoist
