#include "lowering/export/export_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "lowering/export/export_operators.h"
#include "lowering/pipeline/passes.h"

namespace hoist {
namespace {

using Shape = std::vector<int64_t>;

// A value inside `depth` maps. The first `depth` dimensions of the array are those maps (extent 1 if the value does not
// depend on the map's element), the others are the value's own. A tuple or an array of tuples has parts instead.
struct Value {
  NamedArray array;
  size_t depth = 0;
  std::vector<Value> parts;

  bool is_tuple() const { return !parts.empty(); }
};

// A variable bound by a function. The serial identifies the frame and is never 0.
struct Frame {
  const Frame* outer = nullptr;
  Value value;
  int serial = 0;
};

size_t depth_of(const Value& value) {
  size_t out = value.depth;
  for (const Value& part : value.parts) out = std::max(out, depth_of(part));
  return out;
}

// The function f of the table if the term is `\a b. f(a, b)`.
std::optional<Function> table_function(Expr function) {
  const Expr body = function->children[0];
  if (function->parameters.size() != 2 || body->pattern != Pattern::call || body->children.size() != 2) return {};
  std::set<int64_t> bound;
  for (Expr child : body->children) {
    if (child->pattern == Pattern::bound) bound.insert(child->integers[0]);
  }
  if (bound != std::set<int64_t>{0, 1}) return {};
  return body->function;
}

class TermExporter {
 public:
  explicit TermExporter(const std::string& prefix) : build_(prefix) {}

  Result<ExportedLayers> export_term(Expr e, const std::string& name) {
    HOIST_TRY(Value result, value_of(e, nullptr));
    if (result.is_tuple()) return Diagnostic{"", "gives a tuple, which is not an ONNX value", ""};
    return build_.finish(result.array, name);
  }

 private:
  // A shared term is exported once: a closed term in the whole program, any other within its frame.
  Result<Value> value_of(Expr e, const Frame* frame) {
    const std::pair<Expr, int> key(e, e->free == 0 || frame == nullptr ? 0 : frame->serial);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    HOIST_TRY(Value value, compute(e, frame));
    known_[key] = value;
    return value;
  }

  Result<std::vector<Value>> values_of(const std::vector<Expr>& terms, const Frame* frame) {
    std::vector<Value> out;
    for (Expr term : terms) {
      HOIST_TRY(Value value, value_of(term, frame));
      out.push_back(std::move(value));
    }
    return out;
  }

  Result<Value> compute(Expr e, const Frame* frame) {
    switch (e->pattern) {
      case Pattern::bound: {
        for (int64_t outwards = e->integers[0]; outwards > 0; --outwards) frame = frame->outer;
        return frame->value;
      }
      case Pattern::let: {
        HOIST_TRY(Value value, value_of(e->children[0], frame));
        return value_of(e->children[1]->children[0], bind(std::move(value), frame));
      }
      case Pattern::map:
        return compute_map(e, frame);
      case Pattern::reduce:
        return compute_reduce(e, frame);
      case Pattern::tuple:
      case Pattern::zip: {
        Value out;
        HOIST_TRY(out.parts, values_of(e->children, frame));
        return out;
      }
      case Pattern::get: {
        HOIST_TRY(Value value, value_of(e->children[0], frame));
        return value.parts[static_cast<size_t>(e->integers[0])];
      }
      case Pattern::identity:
      case Pattern::materialise:
        return value_of(e->children[0], frame);
      case Pattern::parameter:
      case Pattern::literal:
      case Pattern::constant:
      case Pattern::iota:
        return compute_leaf(e);
      case Pattern::call:
      case Pattern::select:
      case Pattern::cast:
      case Pattern::reinterpret:
        return compute_scalar(e, frame);
      case Pattern::host:
        return Diagnostic{"", e->name + " is a host op, which no operator of ONNX expresses",
                          "export the model as it was imported"};
      default:
        return compute_view(e, frame);
    }
  }

  Result<Value> compute_leaf(Expr e) {
    switch (e->pattern) {
      case Pattern::parameter:
        if (!leaf_of(e->type)->is_scalar()) return Diagnostic{"", "parameter " + e->name + " is a tuple", ""};
        return Value{{e->name, leaf_of(e->type)->scalar, shape_of(e->type)}, 0, {}};
      case Pattern::literal: {
        std::vector<std::byte> own(static_cast<size_t>(byte_size(e->type->scalar, {})));
        for (size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::byte>(e->bits >> (8 * i));
        return Value{build_.constant(Tensor(e->type->scalar, {}, std::move(own))), 0, {}};
      }
      case Pattern::iota: {
        std::vector<int64_t> counting(static_cast<size_t>(e->type->size.value()));
        for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<int64_t>(i);
        return Value{build_.constant(Tensor::of(leaf_of(e->type)->scalar, shape_of(e->type), counting)), 0, {}};
      }
      default:
        return Value{build_.constant(e->constant), 0, {}};
    }
  }

  Result<Value> compute_scalar(Expr e, const Frame* frame) {
    HOIST_TRY(std::vector<Value> values, values_of(e->children, frame));
    size_t depth = 0;
    for (const Value& value : values) depth = std::max(depth, depth_of(value));
    if (e->pattern == Pattern::select && values[1].is_tuple())
      return Diagnostic{"", "select between tuples has no ONNX operator", ""};
    std::vector<NamedArray> arrays;
    for (const Value& value : values) arrays.push_back(under(depth, value).array);
    if (e->pattern == Pattern::select && !arrays[0].shape.empty()) {
      Shape shape = arrays[0].shape;  // one condition selects between whole arrays
      shape.resize(std::max({shape.size(), arrays[1].shape.size(), arrays[2].shape.size()}), 1);
      arrays[0] = build_.reshape(arrays[0], shape);
    }
    if (e->pattern == Pattern::select) return Value{build_.select(arrays[0], arrays[1], arrays[2]), depth, {}};
    if (e->pattern == Pattern::cast) return Value{build_.cast(e->type->scalar, arrays[0]), depth, {}};
    if (e->pattern == Pattern::reinterpret) return Value{build_.reinterpret(e->type->scalar, arrays[0]), depth, {}};
    HOIST_TRY(NamedArray out, build_.call(e->function, arrays));
    return Value{std::move(out), depth, {}};
  }

  Result<Value> compute_map(Expr e, const Frame* frame) {
    const Expr function = e->children[0];
    HOIST_TRY(Value array, value_of(e->children[1], frame));
    size_t depth = depth_of(array);
    const Frame* at = frame;
    for (int i = 0; i < function->free && at != nullptr; ++i, at = at->outer)
      depth = std::max(depth, depth_of(at->value));
    Value element = under(depth, array);
    deepen(element, 1);
    HOIST_TRY(Value result, value_of(function->children[0], bind(std::move(element), frame)));
    return closed(result, depth, e->type->size.value());
  }

  Result<Value> compute_reduce(Expr e, const Frame* frame) {
    const std::optional<Function> function = table_function(e->children[0]);
    if (!function) return Diagnostic{"", "reduction by a formula has no ONNX operator", ""};
    HOIST_TRY(Value array, value_of(e->children[2], frame));
    if (array.is_tuple()) return Diagnostic{"", "reduction of tuples has no ONNX operator", ""};
    HOIST_TRY(NamedArray out, build_.reduce(*function, array.array, array.depth));
    return Value{std::move(out), array.depth, {}};
  }

  Result<Value> compute_view(Expr e, const Frame* frame) {
    if (e->pattern == Pattern::index) return compute_index(e, frame);
    if (e->pattern == Pattern::concat) return compute_concat(e, frame);
    const std::set<Pattern> views = {Pattern::split, Pattern::join, Pattern::transpose, Pattern::repeat,
                                     Pattern::slice};
    if (!views.count(e->pattern))
      return Diagnostic{"", fmt::format("{} has no ONNX operator", row(e->pattern).name),
                        "only maps, reductions and simple views have"};
    HOIST_TRY(Value array, value_of(e->children[0], frame));
    return each(array, [&](const Value& part) { return Value{viewed(e, part), part.depth, {}}; });
  }

  NamedArray viewed(Expr e, const Value& value) {
    const NamedArray& x = value.array;
    const auto own = static_cast<std::ptrdiff_t>(value.depth);
    Shape shape = x.shape;
    switch (e->pattern) {
      case Pattern::split: {
        const int64_t k = e->sizes[0].value();
        shape[value.depth] /= k;
        shape.insert(shape.begin() + own + 1, k);
        return build_.reshape(x, shape);
      }
      case Pattern::join:
        shape[value.depth] *= shape[value.depth + 1];
        shape.erase(shape.begin() + own + 1);
        return build_.reshape(x, shape);
      case Pattern::repeat:
        shape.insert(shape.begin() + own, 1);
        {
          Shape wide = shape;
          wide[value.depth] = e->sizes[0].value();
          return build_.expand(build_.reshape(x, shape), wide);
        }
      case Pattern::slice:
        return build_.slice(x, value.depth, e->sizes[0].value(), e->sizes[1].value(), e->integers[0]);
      default: {
        Shape permutation(x.shape.size());
        for (size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<int64_t>(i);
        for (size_t i = 0; i < e->integers.size(); ++i)
          permutation[value.depth + i] = static_cast<int64_t>(value.depth) + e->integers[i];
        return build_.transpose(x, permutation);
      }
    }
  }

  Result<Value> compute_concat(Expr e, const Frame* frame) {
    HOIST_TRY(std::vector<Value> values, values_of(e->children, frame));
    size_t depth = 0;
    for (const Value& value : values) depth = std::max(depth, depth_of(value));
    std::vector<NamedArray> parts;
    Shape outer(depth, 1);
    for (Value& value : values) {
      if (value.is_tuple()) return Diagnostic{"", "concatenation of tuples has no ONNX operator", ""};
      value = under(depth, value);
      for (size_t i = 0; i < depth; ++i) outer[i] = std::max(outer[i], value.array.shape[i]);
    }
    for (const Value& value : values) {
      Shape shape = value.array.shape;
      std::copy(outer.begin(), outer.end(), shape.begin());
      parts.push_back(build_.expand(value.array, shape));
    }
    return Value{build_.concat(parts, depth), depth, {}};
  }

  // Either the position or the table may depend on the enclosing maps, not both.
  Result<Value> compute_index(Expr e, const Frame* frame) {
    HOIST_TRY(Value position, value_of(e->children[0], frame));
    HOIST_TRY(Value array, value_of(e->children[1], frame));
    if (position.depth > 0 && depth_of(array) > 0)
      return Diagnostic{"", "a look-up whose position and table both change has no ONNX operator", ""};
    return each(array, [&](const Value& part) {
      return Value{build_.gather(part.array, position.array, part.depth), std::max(position.depth, part.depth), {}};
    });
  }

  template <class F>
  Value each(const Value& value, F f) {
    if (!value.is_tuple()) return f(value);
    Value out;
    for (const Value& part : value.parts) out.parts.push_back(each(part, f));
    return out;
  }

  // The value inside `depth` maps. A scalar needs no new dimensions to broadcast.
  Value under(size_t depth, const Value& value) {
    return each(value, [&](const Value& part) {
      if (part.depth == depth || part.array.shape.empty()) return part;
      Shape shape = part.array.shape;
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(part.depth), depth - part.depth, 1);
      return Value{build_.reshape(part.array, shape), depth, {}};
    });
  }

  // Reinterprets the array's first own dimension as one more map.
  static void deepen(Value& value, size_t by) {
    value.depth += value.is_tuple() ? 0 : by;
    for (Value& part : value.parts) deepen(part, by);
  }

  // Turns the result of a map's function into an array of n elements.
  Value closed(const Value& result, size_t depth, int64_t n) {
    return each(result, [&](const Value& part) {
      Value out = part;
      if (out.array.shape.empty()) {
        out = Value{build_.reshape(part.array, Shape(depth + 1, 1)), depth + 1, {}};
      } else {
        out = under(depth + 1, part);
      }
      Shape shape = out.array.shape;
      shape[depth] = n;
      return Value{build_.expand(out.array, shape), depth, {}};
    });
  }

  const Frame* bind(Value value, const Frame* outer) {
    frames_.push_back({outer, std::move(value), static_cast<int>(frames_.size()) + 1});
    return &frames_.back();
  }

  OperatorBuilder build_;
  std::deque<Frame> frames_;  // a deque, because frames point to each other
  std::map<std::pair<Expr, int>, Value> known_;
};

// Appends "_" to the prefix until no name of the program begins with it.
std::string free_prefix(const Program& program, const std::vector<NamedCall>& calls, std::string prefix) {
  const auto taken = [&](const std::string& name) { return name.starts_with(prefix + "/"); };
  const auto names_it = [&](const NamedCall& call) {
    return taken(call.name) || std::any_of(call.outputs.begin(), call.outputs.end(), taken);
  };
  const auto used = [&] {
    return std::any_of(program.constants.begin(), program.constants.end(),
                       [&](const auto& constant) { return taken(constant.first); }) ||
           std::any_of(calls.begin(), calls.end(), names_it);
  };
  while (used()) prefix += "_";
  return prefix;
}

}  // namespace

Result<ExportedLayers> export_term(Expr e, const std::string& value, const std::string& prefix) {
  return TermExporter(prefix).export_term(e, value);
}

Result<Program> replace_by_expressions(
    const Program& program, const std::vector<std::string>& layers,
    const std::function<Result<Expr>(const std::string& layer, Expr expression)>& rewritten) {
  if (layers.empty()) return program;
  Program out = program, lowered = program;
  std::vector<NamedCall> calls = named_calls(program);
  PassOptions exact;
  exact.strict = true;
  exact.share_equal = false;
  exact.profile.half = true;  // contractions of halves keep the model's type
  HOIST_TRY_VOID(run_passes(lowered, Pass::calls, exact));
  Diagnostics problems;
  for (const std::string& name : layers) {
    const auto fail = [&](Diagnostics errors) {
      for (Diagnostic& error : errors) {
        error.where = "layer " + name + (error.where.empty() ? "" : ", " + error.where);
        problems.push_back(std::move(error));
      }
    };
    const auto layer = std::find_if(calls.begin(), calls.end(), [&](const NamedCall& c) { return c.name == name; });
    if (layer == calls.end()) {
      fail({{"", "there is no such layer", ""}});
      continue;
    }
    const std::string prefix = free_prefix(out, calls, name);
    ExportedLayers all;
    bool whole = true;
    for (const std::string& value : layer->outputs) {
      const Definition* definition = find_definition(lowered, value);
      whole = whole && (value.empty() || definition != nullptr);
      if (value.empty() || definition == nullptr) continue;
      auto changed = rewritten(name, definition->expression);
      auto exported = changed ? export_term(*changed, value, layer->outputs.size() == 1 ? prefix : prefix + "/" + value)
                              : Result<ExportedLayers>(changed.errors());
      if (!exported) {
        fail(exported.errors());
        whole = false;
        continue;
      }
      all.layers.insert(all.layers.end(), exported->layers.begin(), exported->layers.end());
      all.constants.merge(exported->constants);
    }
    if (!whole) continue;
    all.layers.back().name = name;
    all.layers.back().absorbed = layer->absorbed;
    const auto found = calls.erase(layer);
    calls.insert(found, all.layers.begin(), all.layers.end());
    out.constants.merge(all.constants);
  }
  if (!problems.empty()) return problems;
  return with_calls(out, calls);
}

}  // namespace hoist
