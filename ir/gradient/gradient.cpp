#include "ir/gradient/gradient.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/gradient/adjoints.h"
#include "ir/gradient/batch_statistics.h"
#include "ir/gradient/call_adjoints.h"
#include "ir/operators/operators.h"
#include "ir/properties/properties.h"
#include "ir/text/parse/near_miss.h"

namespace hoist {
namespace gradients {
namespace {

Expr ones(Type type) { return type->is_array() ? repeat(type->size, ones(type->element)) : literal(type->scalar, 1); }

bool is_one_element(Type type) {
  for (const Nat& n : sizes_of(type)) {
    if (n != Nat(1)) return false;
  }
  return leaf_of(type)->is_scalar() && is_float(leaf_of(type)->scalar);
}

// True for terms that are cheaper to compute again than to store.
bool is_immediate(Expr e) {
  if (e->pattern == Pattern::parameter || e->pattern == Pattern::literal) return true;
  if (e->pattern != Pattern::repeat && e->pattern != Pattern::tuple) return false;
  return std::all_of(e->children.begin(), e->children.end(), is_immediate);
}

class ProgramGradient {
 public:
  ProgramGradient(const Program& program, const GradientRequest& request)
      : program_(program), request_(request), out_(program), names_(program), types_(value_types(program)) {}

  Result<Program> run() {
    HOIST_TRY_VOID(check());
    find_active();
    add_loss();
    out_.outputs = {loss_};
    const std::vector<Definition> forward = out_.definitions;
    const std::map<size_t, std::vector<std::string>> complete_at = first_reads(forward);
    for (size_t i = forward.size(); i-- > 0;) {
      if (active_.count(forward[i].value) != 0) differentiate(forward[i]);
      // A gradient that is complete is computed at once: what it reads is in the cache, and need not be kept.
      if (auto found = complete_at.find(i); found != complete_at.end()) add_outputs(found->second);
    }
    if (!problems_.empty()) return problems_;
    add_outputs(request_.with_respect_to);
    out_.outputs = {loss_};
    for (const std::string& value : request_.with_respect_to) out_.outputs.push_back(outputs_.at(value));
    out_.extents.clear();
    remove_unused(out_);
    return std::move(out_);
  }

 private:
  Result<Nothing> check() {
    if (!program_.sizes.empty() || !program_.extents.empty() || !program_.controls.empty())
      return Diagnostic{program_.name, "has sizes that are known only at run time; gradients need constant sizes",
                        "set sizes with --dim"};
    std::vector<std::string> names;
    for (const auto& [name, type] : types_) names.push_back(name);
    const auto problem = [&](const std::string& value) -> std::optional<Diagnostic> {
      auto found = types_.find(value);
      if (found == types_.end()) return Diagnostic{value, "is no value of the model", did_you_mean(value, names, "")};
      if (!has_floats(found->second) || found->second->is_tuple())
        return Diagnostic{value, "is " + text(found->second) + ", and only arrays of floats have gradients"};
      return std::nullopt;
    };
    if (auto wrong = problem(request_.loss)) return *wrong;
    if (request_.with_respect_to.empty())
      return Diagnostic{request_.loss, "depends on no value of the requested kind", "name values: --wrt NAME"};
    for (const std::string& value : request_.with_respect_to) {
      if (auto wrong = problem(value)) problems_.push_back(*wrong);
    }
    for (const auto& [value, term] : request_.straight_through) {
      HOIST_CHECK(types_.count(value) != 0 && types_.at(value) == term->type, "a gradient's term has another type");
    }
    if (!problems_.empty()) return problems_;
    if (!request_.is_summed && !is_one_element(types_.at(request_.loss)))
      return Diagnostic{request_.loss, "is " + text(types_.at(request_.loss)) + ", and a loss is one number",
                        fmt::format("sum({}) is the sum of its elements", request_.loss)};
    return Nothing{};
  }

  void find_active() {
    active_.insert(request_.with_respect_to.begin(), request_.with_respect_to.end());
    for (const Definition& d : program_.definitions) {
      const std::vector<Expr> read = parameters_of(differentiated(d));
      const bool is_known = !read.empty() && std::all_of(read.begin(), read.end(), [&](Expr p) {
        return find_constant(program_, p->name) != nullptr || known_.count(p->name) != 0;
      });
      if (is_known && differentiated(d) == d.expression) known_.emplace(d.value, d.expression);
      const bool reads_active =
          std::any_of(read.begin(), read.end(), [&](Expr p) { return active_.count(p->name) != 0; });
      if (reads_active && has_floats(d.expression->type)) active_.insert(d.value);
    }
  }

  // The requested values by the number of the first definition that reads them.
  std::map<size_t, std::vector<std::string>> first_reads(const std::vector<Definition>& forward) const {
    std::set<std::string> left(request_.with_respect_to.begin(), request_.with_respect_to.end());
    std::map<size_t, std::vector<std::string>> out;
    for (size_t i = 0; i < forward.size(); ++i) {
      for (Expr p : parameters_of(differentiated(forward[i]))) {
        if (left.erase(p->name) != 0) out[i].push_back(p->name);
      }
    }
    return out;
  }

  void add_outputs(const std::vector<std::string>& values) {
    if (!problems_.empty()) return;
    for (const std::string& value : values) {
      if (outputs_.count(value) != 0) continue;
      outputs_.emplace(value, output_for(value));
      out_.outputs.push_back(outputs_.at(value));
    }
  }

  void add_loss() {
    loss_ = request_.loss;
    const Type type = types_.at(loss_);
    contributions_[loss_] = {ones(type)};
    if (!request_.is_summed) return;
    Expr total = parameter(loss_, type);
    while (total->type->is_array() && total->type->element->is_array()) total = join(total);
    if (total->type->is_array()) total = reduce(Function::add, zeros(total->type->element), total);
    loss_ = define(loss_ + ".sum", total);
  }

  std::string define(const std::string& wanted, Expr term) {
    Definition d;
    d.value = names_.make(wanted);
    d.layers = {d.value};
    d.expression = with_own_constants(term);
    out_.definitions.push_back(d);
    return d.value;
  }
  // The backward pass reads copies of weights, and of values that are computed from them alone: a contraction stores
  // its weights in the order in which it reads them, and the two passes read them in different orders.
  Expr with_own_constants(Expr term) {
    std::map<std::string, Expr> copies;
    for (Expr p : parameters_of(term)) {
      if (sizes_of(p->type).size() < 2) continue;
      const Tensor* constant = find_constant(program_, p->name);
      const auto computed = known_.find(p->name);
      if (constant == nullptr && computed == known_.end()) continue;
      std::string& name = copies_[p->name];
      if (name.empty() && constant != nullptr) {
        name = names_.make(p->name + ".backward");
        out_.constants.emplace(name, *constant);
      } else if (name.empty()) {
        name = define(p->name + ".backward", computed->second);
      }
      copies.emplace(p->name, parameter(name, p->type));
    }
    return substitute_parameters(term, copies);
  }
  // The term if it is immediate; otherwise it becomes a definition, or one for each component. Values of a program are
  // no arrays of tuples, and the components of a tuple are stored where they are made.
  Expr stored(const std::string& wanted, Expr term) {
    if (is_immediate(term) || term->type->is_tuple()) return term;
    if (leaf_of(term->type)->is_scalar()) return parameter(define(wanted, term), term->type);
    if (!term->type->element->is_tuple()) return term;
    std::vector<Expr> parts;
    for (size_t i = 0; i < term->type->element->parts.size(); ++i)
      parts.push_back(stored(wanted, component(static_cast<int64_t>(i), term)));
    return zip(parts);
  }

  // The sum of all contributions to the adjoint of a value; null if there are none.
  Expr adjoint_of(const std::string& value) {
    auto found = contributions_.find(value);
    if (found == contributions_.end()) return nullptr;
    std::vector<Expr>& parts = found->second;
    if (parts.size() > 1) {
      Expr total = nullptr;
      for (Expr part : parts) {
        part = stored(value + ".gradient.part", part);
        total = total == nullptr ? part : sum_of(total, part);
      }
      parts = {total};
    }
    parts[0] = stored(value + ".gradient", parts[0]);
    return parts[0];
  }

  Expr differentiated(const Definition& d) const {
    const auto found = request_.straight_through.find(d.value);
    return found == request_.straight_through.end() ? d.expression : found->second;
  }

  // The term with its calls inlined. The values of constants without a gradient may select its form.
  Result<Expr> inlined(Expr e) {
    if (e->pattern != Pattern::operator_call) return without_operator_calls(e);
    KnownValues known;
    for (Expr p : parameters_of(e)) {
      const Tensor* constant = find_constant(program_, p->name);
      if (constant != nullptr && active_.count(p->name) == 0) known.emplace(p->name, *constant);
    }
    HOIST_TRY(const Expr term, inline_call(*e, known));
    return without_operator_calls(term);
  }

  // Adds the adjoints that are operator calls; returns the names of the operands that have one.
  std::set<std::string> differentiate_call(Expr e, Expr adjoint) {
    std::set<std::string> done;
    const auto store = [&](const std::string& wanted, Expr term) {
      return parameter(define(wanted, term), term->type);
    };
    if (e->pattern != Pattern::operator_call) return done;
    if (differentiate_by_batch(e, adjoint, store, done)) return done;
    for (size_t i = 0; i < e->children.size(); ++i) {
      const Expr x = e->children[i];
      const bool alone = std::count(e->children.begin(), e->children.end(), x) == 1;
      if (!alone || x->pattern != Pattern::parameter || active_.count(x->name) == 0) continue;
      if (Expr found = adjoint_as_call(*e, i, adjoint, store)) {
        contributions_[x->name].push_back(found);
        done.insert(x->name);
      }
    }
    return done;
  }

  // A BatchNormalization by the statistics of its image; false for other calls.
  bool differentiate_by_batch(Expr e, Expr adjoint, const StoreTerm& store, std::set<std::string>& done) {
    std::set<std::string> names;
    for (Expr x : e->children) {
      if (x->pattern != Pattern::parameter || !names.insert(x->name).second) return false;
    }
    const std::vector<std::string>& wanted = request_.with_respect_to;
    const auto is_wanted = [&](Expr x) { return std::find(wanted.begin(), wanted.end(), x->name) != wanted.end(); };
    if (std::any_of(e->children.begin() + std::min<ptrdiff_t>(3, std::ssize(e->children)), e->children.end(),
                    is_wanted))
      return false;
    const auto term_of = [&](const std::string& value) {
      const Definition* d = find_definition(program_, value);
      return d == nullptr ? nullptr : differentiated(*d);
    };
    const auto found = adjoints_by_batch(*e, adjoint, term_of, store);
    if (!found) return false;
    const Expr adjoints[] = {found->image, found->scale, found->bias};
    for (size_t i = 0; i < std::size(adjoints); ++i) {
      if (active_.count(e->children[i]->name) != 0) contributions_[e->children[i]->name].push_back(adjoints[i]);
    }
    done = names;
    return true;
  }

  void differentiate(const Definition& d) {
    const Expr adjoint = adjoint_of(d.value);
    if (adjoint == nullptr || is_zero(adjoint)) return;
    const Expr of = differentiated(d);
    const auto term = inlined(of);
    if (!term.ok()) {
      problems_.insert(problems_.end(), term.errors().begin(), term.errors().end());
      return;
    }
    const std::set<std::string> done = differentiate_call(of, adjoint);
    std::vector<Expr> wanted;
    for (Expr p : parameters_of(*term)) {
      if (active_.count(p->name) != 0 && done.count(p->name) == 0) wanted.push_back(p);
    }
    std::set<std::string> faults;
    const Expr result = of == d.expression ? parameter(d.value, of->type) : nullptr;
    const Adjoints adjoints = adjoints_of(*term, adjoint, wanted, faults, result);
    if (!faults.empty()) {
      problems_.push_back({layer_name(d), fmt::format("has no derivative: {}", fmt::join(faults, ", ")),
                           "choose values that reach the loss without such layers"});
      return;
    }
    std::vector<Binding> inside;
    std::map<std::string, Expr> defined;
    const auto closed = [&](Expr e) { return substitute_parameters(with_bindings(inside, e), defined); };
    for (const Binding& b : adjoints.bindings) {
      if (!folds(b.value)) {
        inside.push_back(b);
        continue;
      }
      // A state of several arrays cannot be a value of a program: it stays in the terms that use it, which unroll the
      // loop.
      Expr value = closed(b.value);
      if (leaf_of(value->type)->is_scalar())
        value = parameter(define(layer_name(d) + ".gradient.part", value), value->type);
      defined.emplace(b.name->name, value);
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!is_zero(adjoints.of[i])) contributions_[wanted[i]->name].push_back(closed(adjoints.of[i]));
    }
  }

  // The output for the gradient of a value. A definition of the backward pass gets the output's name unless it already
  // is an output.
  std::string output_for(const std::string& value) {
    const Expr adjoint = adjoint_of(value);
    std::string wanted = value + ".gradient";
    if (adjoint == nullptr) return define(wanted, zeros(types_.at(value)));
    if (adjoint->pattern != Pattern::parameter) return define(wanted, adjoint);
    if (types_.count(adjoint->name) != 0 || is_output(out_, adjoint->name)) return define(wanted, identity(adjoint));
    if (adjoint->name == wanted) return wanted;
    std::string name = names_.make(wanted);
    for (Definition& d : out_.definitions) {
      if (d.value == adjoint->name) {
        d.value = name;
        d.layers = {name};
      }
      d.expression = substitute_parameters(d.expression, {{adjoint->name, parameter(name, adjoint->type)}});
    }
    for (auto& [other, parts] : contributions_) {
      for (Expr& part : parts) part = substitute_parameters(part, {{adjoint->name, parameter(name, adjoint->type)}});
    }
    return name;
  }

  const Program& program_;
  const GradientRequest& request_;
  Program out_;
  ValueNames names_;
  std::map<std::string, Type> types_;
  std::set<std::string> active_;  // values that depend on the requested ones
  std::map<std::string, std::vector<Expr>> contributions_;
  std::map<std::string, Expr> known_;           // definitions that are computed from constants alone
  std::map<std::string, std::string> copies_;   // of constants and such values, for the backward pass
  std::map<std::string, std::string> outputs_;  // by requested value
  std::string loss_;
  Diagnostics problems_;
};

}  // namespace
}  // namespace gradients

std::vector<std::string> weights_of(const Program& program, const std::string& value) {
  std::set<std::string> needed = {value};
  for (size_t i = program.definitions.size(); i-- > 0;) {
    const Definition& d = program.definitions[i];
    if (needed.count(d.value) == 0) continue;
    for (Expr p : parameters_of(d.expression)) needed.insert(p->name);
  }
  std::vector<std::string> out;
  for (const Definition& d : program.definitions) {
    if (needed.count(d.value) == 0) continue;
    for (Expr p : parameters_of(d.expression)) {
      const Tensor* constant = find_constant(program, p->name);
      if (constant == nullptr || !is_float(constant->scalar())) continue;
      if (std::find(out.begin(), out.end(), p->name) == out.end()) out.push_back(p->name);
    }
  }
  return out;
}

std::vector<std::string> float_inputs(const Program& program) {
  std::vector<std::string> out;
  for (const auto& [name, type] : program.inputs) {
    if (gradients::has_floats(type)) out.push_back(name);
  }
  return out;
}

Result<Program> gradient(const Program& program, const GradientRequest& request) {
  return gradients::ProgramGradient(program, request).run();
}

}  // namespace hoist
