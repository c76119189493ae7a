#include "lowering/fusion/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "ir/properties/properties.h"
#include "lowering/graph/program.h"
#include "lowering/graph/steps.h"
#include "lowering/layout/storage.h"
#include "lowering/terms/materialised.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// A materialised term and the parameter that replaces it. Functions are processed with parameters in place of their
// variables.
struct Outlined {
  Expr array;
  Expr term;
};

bool depends(Expr e, const std::vector<Expr>& on) {
  return std::any_of(on.begin(), on.end(), [&](Expr p) { return mentions(e, p->name); });
}

Expr with_parameter(Expr e, Expr p, Expr value) { return substitute_parameters(e, {{p->name, value}}); }

class Outliner {
 public:
  /// The definition stores the value of `whole`, so it needs no further array.
  explicit Outliner(Expr whole) : whole_(whole) {}
  /// The term with parameters in place of its materialised parts, which are appended to `outlined` in topological
  /// order.
  Result<Expr> outside(Expr e, std::vector<Outlined>& outlined) {
    if (!materialises_any_(e)) return e;
    if (auto known = done_.find(e); known != done_.end()) return known->second;
    HOIST_TRY(Expr result, parted(e, outlined));
    return done_[e] = result;
  }

 private:
  Expr fresh(Type type) { return parameter(fmt::format("\2{}", ++count_), type); }  // no value of a model is named so

  Result<Expr> parted(Expr e, std::vector<Outlined>& outlined) {
    if (is_materialised_in_global(e)) {
      HOIST_TRY(Expr term, outside(e->children[0], outlined));
      if (!leaf_of(term->type)->is_scalar())
        return Diagnostic{"", "materialise global has a tuple, and arrays of kernels hold scalars",
                          "keep each component separately"};
      outlined.push_back({fresh(term->type), term});
      return outlined.back().array;
    }
    if (e->pattern == Pattern::host) return host_outside(e, outlined);
    if (e->pattern == Pattern::map && e->mode == Mode::view && materialises_any_(e->children[0]))
      return map_outside(e, outlined);
    if (e->pattern == Pattern::let && materialises_any_(e->children[1])) return let_outside(e, outlined);
    std::vector<Expr> children;
    for (Expr child : e->children) {
      HOIST_TRY(Expr part,
                child->pattern == Pattern::function ? function_outside(e, child, outlined) : outside(child, outlined));
      children.push_back(part);
    }
    return with_children(e, std::move(children));
  }

  static Diagnostic inside_loop(Expr call) {
    return {"", call->name + " runs on the host, and appears inside a loop that a kernel runs",
            "take the layer out of the loop's body"};
  }

  // A host function uses stored arrays and writes one.
  Result<Expr> host_outside(Expr e, std::vector<Outlined>& outlined) {
    std::vector<Expr> arrays;
    for (Expr child : e->children) {
      HOIST_TRY(Expr array, outside(child, outlined));
      if (array->pattern != Pattern::parameter) {
        outlined.push_back({fresh(array->type), array});
        array = outlined.back().array;
      }
      arrays.push_back(array);
    }
    HOIST_TRY(const Expr call, host(e->name, std::move(arrays), e->type));
    if (e == whole_) return call;
    outlined.push_back({fresh(e->type), call});
    return outlined.back().array;
  }

  // map (\v. .. array v ..) x: the arrays for all v become a map over x, and the rest becomes a map over both.
  Result<Expr> map_outside(Expr e, std::vector<Outlined>& outlined) {
    HOIST_TRY(Expr over, outside(e->children[1], outlined));
    const Expr element = fresh(over->type->element);
    std::vector<Outlined> inner;
    HOIST_TRY(Expr body, outside(hoist::apply(e->children[0], {element}), inner));
    std::vector<Expr> elements = {element}, arrays = {over};  // elements[i] is an element of arrays[i]
    // A map over the arrays whose elements the term uses.
    const auto lifted = [&](Expr term) {
      std::vector<Expr> read, over_all;
      for (size_t i = 0; i < elements.size(); ++i) {
        if (!mentions(term, elements[i]->name)) continue;
        read.push_back(elements[i]);
        over_all.push_back(arrays[i]);
      }
      if (read.empty()) return map([&](Expr) { return term; }, over);
      if (read.size() == 1) return map([&](Expr v) { return with_parameter(term, read[0], v); }, over_all[0]);
      return map(
          [&](Expr v) {
            std::map<std::string, Expr> values;
            for (size_t i = 0; i < read.size(); ++i) values[read[i]->name] = get(static_cast<int64_t>(i), v);
            return substitute_parameters(term, values);
          },
          zip(over_all));
    };
    for (const Outlined& one : inner) {
      if (!depends(one.term, elements)) {
        outlined.push_back(one);
        continue;
      }
      if (one.term->pattern == Pattern::host) return inside_loop(one.term);
      const Expr all = lifted(one.term);
      outlined.push_back({fresh(all->type), all});
      elements.push_back(one.array);
      arrays.push_back(outlined.back().array);
    }
    return lifted(body);
  }

  // let v = x in .. array v ..: the array's term gets a let of its own.
  Result<Expr> let_outside(Expr e, std::vector<Outlined>& outlined) {
    HOIST_TRY(Expr bound_value, outside(e->children[0], outlined));
    const Expr variable = fresh(bound_value->type);
    const auto around = [&](Expr term) {
      return mentions(term, variable->name)
                 ? let(bound_value, [&](Expr v) { return with_parameter(term, variable, v); })
                 : term;
    };
    std::vector<Outlined> inner;
    HOIST_TRY(Expr body, outside(hoist::apply(e->children[1], {variable}), inner));
    for (const Outlined& one : inner) {
      if (one.term->pattern == Pattern::host && mentions(one.term, variable->name)) return inside_loop(one.term);
      outlined.push_back({one.array, around(one.term)});
    }
    return around(body);
  }

  // The function of a fold or another loop: a materialised part must not depend on its variables.
  Result<Expr> function_outside(Expr loop, Expr function_term, std::vector<Outlined>& outlined) {
    if (!materialises_any_(function_term)) return function_term;
    std::vector<Expr> variables;
    for (Type type : function_term->parameters) variables.push_back(fresh(type));
    std::vector<Outlined> inner;
    HOIST_TRY(Expr body, outside(hoist::apply(function_term, variables), inner));
    for (const Outlined& one : inner) {
      if (one.term->pattern == Pattern::host && depends(one.term, variables)) return inside_loop(one.term);
      if (depends(one.term, variables))
        return Diagnostic{"",
                          fmt::format("materialise global is inside a {} and depends on its variables",
                                      std::string(row(loop->pattern).name)),
                          "only maps without a mode can be split"};
      outlined.push_back(one);
    }
    return function(function_term->parameters, [&](const std::vector<Expr>& bound_variables) {
      std::map<std::string, Expr> values;
      for (size_t i = 0; i < variables.size(); ++i) values[variables[i]->name] = bound_variables[i];
      return substitute_parameters(body, values);
    });
  }

  Expr whole_;
  MaterialisesAny materialises_any_;
  std::unordered_map<Expr, Expr> done_;
  int64_t count_ = 0;
};

void follow_copy(Weights& weights, const Definition& copy, const Program& program) {
  const Expr e = copy.expression;
  const bool is_copy = e->pattern == Pattern::transpose && e->children[0]->pattern == Pattern::parameter &&
                       e->children[0]->name == weights.value;
  const bool is_input = std::any_of(program.inputs.begin(), program.inputs.end(),
                                    [&](const auto& input) { return input.first == weights.value; });
  if (!is_copy || !is_input || weights.extents != shape_of(e->children[0]->type)) return;
  const auto place = std::find(e->integers.begin(), e->integers.end(), weights.output_dimension);
  weights.value = copy.value;
  weights.extents = shape_of(e->type);
  weights.output_dimension = place - e->integers.begin();
}

}  // namespace

Result<bool> outline_definition(ProgramIndex& index, const std::string& value) {
  Definition* definition = index.find(value);
  if (definition == nullptr || is_host_step(definition->expression) || !MaterialisesAny()(definition->expression))
    return false;
  Expr whole = definition->expression;
  while (is_materialised_in_global(whole))
    whole = whole->children[0];  // a definition's own value is in global memory anyway
  std::vector<Outlined> outlined;
  HOIST_TRY(Expr rest, Outliner(whole).outside(whole, outlined));
  NewNames names(index);
  std::vector<Definition> stages;
  std::map<std::string, Expr> named;
  for (const Outlined& one : outlined) {
    Definition stage;
    stage.value = names.make(fmt::format("{}.stage{}", value, stages.size() + 1));
    stage.layers.assign(definition->layers.begin(),
                        definition->layers.begin() + std::min<ptrdiff_t>(1, std::ssize(definition->layers)));
    stage.expression = substitute_parameters(one.term, named);
    describe_definition(stage);
    // A convolution is stored like any convolution, and a bordered image with the border that its consumers need. Any
    // other array keeps the dimension order of its term.
    stage.channels_first &= any_node(stage.expression, [](Expr e) { return e->pattern == Pattern::slide; });
    const bool is_bordered = computed_padding(stage.expression) == Path();
    for (size_t i = 0; !stage.channels_first && !is_bordered && i < sizes_of(one.array->type).size(); ++i)
      stage.order.push_back(static_cast<int64_t>(i));
    named[one.array->name] = parameter(stage.value, one.array->type);
    stages.push_back(std::move(stage));
  }
  rest = substitute_parameters(rest, named);
  // A matrix of weights that is an input of the model is read from its transposed copy.
  for (Weights& weights : definition->weights) {
    for (const Definition& stage : stages) follow_copy(weights, stage, index.program());
  }
  // Weights move with their contraction into the stage.
  std::erase_if(definition->weights, [&](const Weights& weights) {
    return !mentions(rest, weights.value) && std::any_of(stages.begin(), stages.end(), [&](const Definition& stage) {
      return mentions(stage.expression, weights.value);
    });
  });
  index.program().steps.push_back(replayed_step("outline-kernels", *definition));
  index.set_term(*definition, rest);
  index.insert(index.place_of(value), std::move(stages));
  return true;
}

}  // namespace hoist
