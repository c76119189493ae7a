#include "lowering/loops/batch_samples.h"

#include <algorithm>
#include <cstring>
#include <variant>

#include "ir/operators/operators.h"
#include "lowering/terms/element_reads.h"

namespace hoist {
namespace {

// Forms of a call over fewer samples that are tried: the batch may be any of several extents of a shape.
constexpr size_t most_forms = 8;

// The array over fewer samples: one extent is smaller.
Type divided(Type type, const BatchAxis& axis, int64_t in_part) {
  std::vector<int64_t> shape = shape_of(type);
  shape[axis.dimension] = axis.each * in_part;
  return array_type(std::vector<Nat>(shape.begin(), shape.end()), leaf_of(type));
}

// The axis along which `part` has that share of the samples of `whole`, if that is their only difference.
std::optional<BatchAxis> axis_between(Type whole, Type part, int64_t samples, int64_t in_part) {
  if (whole->is_tuple() || part->is_tuple() || leaf_of(whole) != leaf_of(part)) return std::nullopt;
  const std::vector<int64_t> a = shape_of(whole), b = shape_of(part);
  std::optional<BatchAxis> out;
  for (size_t d = 0; d < a.size() && a.size() == b.size(); ++d) {
    if (a[d] == b[d]) continue;
    if (out || a[d] % samples != 0 || b[d] != a[d] / samples * in_part) return std::nullopt;
    out = BatchAxis{d, a[d] / samples};
  }
  return out;
}

std::vector<BatchAxis> axes_between(Type whole, Type part, int64_t samples, int64_t in_part) {
  std::vector<BatchAxis> out;
  const bool tuples = whole->is_tuple() && part->is_tuple() && whole->parts.size() == part->parts.size();
  for (size_t i = 0; i < (tuples ? whole->parts.size() : 1); ++i) {
    const auto axis = tuples ? axis_between(whole->parts[i], part->parts[i], samples, in_part)
                             : axis_between(whole, part, samples, in_part);
    if (!axis) return {};
    out.push_back(*axis);
  }
  return out;
}

// The call, and the calls with one number less in an attribute such as the shape of a Reshape.
std::vector<OperatorCall> forms_of(const OperatorCall& call, int64_t samples, int64_t in_part) {
  std::vector<OperatorCall> out = {call};
  for (const auto& [name, attribute] : call.attributes) {
    const auto* numbers = std::get_if<std::vector<int64_t>>(&attribute);
    for (size_t i = 0; numbers != nullptr && i < numbers->size() && out.size() < most_forms; ++i) {
      if ((*numbers)[i] <= 0 || (*numbers)[i] % samples != 0) continue;
      std::vector<int64_t> fewer = *numbers;
      fewer[i] = fewer[i] / samples * in_part;
      out.push_back(call);
      out.back().attributes[name] = fewer;
    }
  }
  return out;
}

std::vector<Expr> components(Expr e) {
  if (!e->type->is_tuple()) return {e};
  std::vector<Expr> out;
  for (size_t i = 0; i < e->type->parts.size(); ++i) out.push_back(get(static_cast<int64_t>(i), e));
  return out;
}

}  // namespace

int64_t samples_of(const Program& program) {
  int64_t out = 0;
  const size_t count = model_input_count(program);
  for (size_t i = 0; i < count; ++i) {
    const Type type = program.inputs[i].second;
    if (type->is_tuple()) return 0;
    const std::vector<int64_t> shape = shape_of(type);
    if (shape.size() < 2) continue;
    if (out != 0 && shape[0] != out) return 0;
    out = shape[0];
  }
  return out > 1 ? out : 0;
}

// The terms of parts, by the terms of whole batches. A term that reads no samples stays.
struct BatchSamples::Terms {
  const BatchSamples& of;
  int64_t in_part;
  std::map<Expr, std::vector<Expr>> known = {};
  std::map<std::string, BatchAxis> operands = {};
  std::vector<std::string> constants = {};

  std::vector<Expr> parts(Expr e) {
    if (auto found = known.find(e); found != known.end()) return found->second;
    std::vector<Expr> out = make(e);
    if (out.size() > most_forms) out.resize(most_forms);
    return known[e] = std::move(out);
  }

  std::vector<Expr> make(Expr e) {
    if (e->pattern == Pattern::parameter) return {read(e)};
    std::vector<std::vector<Expr>> lists = {{}};
    for (Expr child : e->children) {
      std::vector<std::vector<Expr>> longer;
      for (Expr part : parts(child)) {
        for (const std::vector<Expr>& list : lists) {
          longer.push_back(list);
          longer.back().push_back(part);
        }
      }
      if (longer.size() > most_forms) longer.resize(most_forms);
      lists = std::move(longer);
    }
    std::vector<Expr> out;
    for (const std::vector<Expr>& children : lists) {
      if (children == e->children) {
        out.push_back(e);
      } else if (e->pattern != Pattern::operator_call) {
        if (auto part = with_children(e, children)) out.push_back(*part);
      } else {
        for (const OperatorCall& form : forms_of(*e->operation, of.samples_, in_part)) {
          std::vector<Expr> operands_by_place;
          for (size_t i = 0; i < children.size(); ++i) {
            operands_by_place.resize(static_cast<size_t>(form.operands[i]) + 1, nullptr);
            operands_by_place.back() = children[i];
          }
          auto part = operator_call(form, operands_by_place);
          if (part && !axes_between(e->type, (*part)->type, of.samples_, in_part).empty()) out.push_back(*part);
        }
      }
    }
    return out;
  }

  Expr read(Expr e) {
    if (of.has_samples(e->name)) {
      if (!e->type->is_tuple()) operands[e->name] = of.axes_of(e->name)[0];
      return parameter(e->name, of.part_type(e->name, in_part));
    }
    if (std::find(constants.begin(), constants.end(), e->name) == constants.end()) return e;
    operands[e->name] = {0, 1};
    return parameter(e->name, divided(e->type, {0, 1}, in_part));
  }
};

BatchSamples::BatchSamples(const Program& program, int64_t samples) : program_(program), samples_(samples) {
  const size_t count = model_input_count(program);
  for (size_t i = 0; i < count; ++i) {
    const auto& [name, type] = program.inputs[i];
    if (shape_of(type).size() < 2) continue;
    axes_[name] = {{0, 1}};
    types_[name] = type;
  }
}

Type BatchSamples::part_type(const std::string& value, int64_t in_part) const {
  const Type type = types_.at(value);
  const std::vector<BatchAxis>& axes = axes_.at(value);
  if (!type->is_tuple()) return divided(type, axes[0], in_part);
  std::vector<Type> parts;
  for (size_t i = 0; i < axes.size(); ++i) parts.push_back(divided(type->parts[i], axes[i], in_part));
  return tuple_type(parts);
}

bool BatchSamples::repeats(const std::string& constant) const {
  const Tensor* value = find_constant(program_, constant);
  if (value == nullptr || program_.withheld.count(constant) != 0 || value->shape().empty() ||
      value->shape()[0] != samples_)
    return false;
  const size_t bytes = value->bytes().size() / static_cast<size_t>(samples_);
  for (int64_t n = 1; n < samples_; ++n) {
    if (std::memcmp(value->data(), value->data() + static_cast<size_t>(n) * bytes, bytes) != 0) return false;
  }
  return true;
}

Tensor BatchSamples::first_samples(const std::string& constant, int64_t in_part) const {
  const Tensor& value = *find_constant(program_, constant);
  const size_t bytes = value.bytes().size() / static_cast<size_t>(samples_) * static_cast<size_t>(in_part);
  std::vector<int64_t> shape = value.shape();
  shape[0] = in_part;
  return {value.scalar(), shape,
          std::vector<std::byte>(value.bytes().begin(), value.bytes().begin() + static_cast<std::ptrdiff_t>(bytes))};
}

std::optional<BatchSamples::Part> BatchSamples::part_of(const Definition& definition, int64_t in_part) {
  const Expr whole = definition.expression;
  const std::vector<Expr> reads = parameters_of(whole);
  if (std::none_of(reads.begin(), reads.end(), [&](Expr p) { return has_samples(p->name); })) return std::nullopt;
  std::vector<std::string> constants;
  for (Expr p : reads) {
    if (repeats(p->name)) constants.push_back(p->name);
  }
  Expr inlined = nullptr;
  for (bool with_constants : {false, true}) {
    if (with_constants && constants.empty()) break;
    Terms terms{*this, in_part};
    if (with_constants) terms.constants = constants;
    for (Expr part : terms.parts(whole)) {
      std::vector<BatchAxis> axes = axes_between(whole->type, part->type, samples_, in_part);
      if (axes.empty()) continue;
      if (inlined == nullptr) inlined = without_operator_calls(whole);
      Part out{part, std::move(axes), terms.constants};
      if (!is_proved(whole, inlined, terms.operands, in_part, out)) continue;
      axes_[definition.value] = out.axes;
      types_[definition.value] = whole->type;
      return out;
    }
  }
  return std::nullopt;
}

bool BatchSamples::is_proved(Expr whole, Expr inlined, const std::map<std::string, BatchAxis>& operands,
                             int64_t in_part, Part& part) const {
  // A component of a tuple that has samples.
  if (whole->pattern == Pattern::get && whole->children[0]->pattern == Pattern::parameter)
    return axes_of(whole->children[0]->name)[static_cast<size_t>(whole->integers[0])] == part.axes[0];
  const std::vector<Expr> a = components(inlined), b = components(without_operator_calls(part.term));
  for (size_t i = 0; i < a.size(); ++i) {
    if (!computes_samples(a[i], b[i], operands, part.axes[i], samples_, in_part)) return false;
    const auto reads = ElementReads::of(b[i]);
    double most_steps = 0;
    for (const ElementRead& read : reads == nullptr ? std::vector<ElementRead>() : reads->reads()) {
      double steps = read.loops.empty() ? 0 : 1;
      for (size_t loop : read.loops) steps *= static_cast<double>(reads->loop_counts()[loop]);
      most_steps = std::max(most_steps, steps);
    }
    part.products += most_steps * static_cast<double>(element_count(shape_of(b[i]->type)));
  }
  return true;
}

}  // namespace hoist
