// Builds a kernel's result: one Func with a dimension per loop of the term. It is stored through a marker, which
// passes/store_at_index.cpp turns into a store at the term's own index. Also places the computation of each
// materialised array.
#include <fmt/format.h>

#include <algorithm>

#include "backends/halide/emitter.h"
#include "ir/language/growth.h"

namespace hoist::emission {
namespace {

// Group loops outermost, the highest dimension first; then the others in the term's order; a vector innermost.
std::vector<Loop> loop_order(const std::vector<Loop>& loops) {
  std::vector<Loop> order = loops;
  auto rank = [](const Loop& l) { return l.mode == Mode::group ? -1 - l.dimension : l.mode == Mode::vec ? 1 : 0; };
  std::stable_sort(order.begin(), order.end(), [&](const Loop& a, const Loop& b) { return rank(a) < rank(b); });
  return order;
}

std::string describe(const Loop& l) {
  std::string mode = l.is_reduction ? "fold" : std::string(name_of(l.mode));
  if (l.is_launched()) mode += fmt::format(" {}", l.dimension);
  if (l.is_reduction && (l.mode == Mode::unroll || l.mode == Mode::matrix)) mode += fmt::format(" {}", name_of(l.mode));
  return fmt::format("{} {}", mode, l.extent.text());
}

// Lanes of the longest vector times the bytes of the largest materialised element.
int64_t longest_vector_bytes(const std::vector<Loop>& order, const std::vector<Stored>& all) {
  int64_t lanes = 1, bytes = 1;
  const auto look = [&](const std::vector<Loop>& loops) {
    for (const Loop& l : loops) {
      if (l.mode == Mode::vec) lanes = std::max(lanes, l.most());
    }
  };
  look(order);
  for (const Stored& stored : all) {
    look(stored.loops);
    look(stored.spread);
    for (const H::Type& type : stored.func.types()) bytes = std::max<int64_t>(bytes, type.bytes());
  }
  return lanes * bytes;
}

// Halide places the arrays of local memory one after the other, and stores a vector to an array as if the array began
// at a multiple of the vector's length. So the length of each is a multiple of the longest vector.
void end_at_a_vector(Stored& stored, int64_t vector_bytes) {
  std::vector<std::pair<H::Var, Nat>> dimensions = stored.own;
  for (const Loop& l : stored.spread) dimensions.emplace_back(l.variable, l.extent);
  // The enclosing loops have one value at a time.
  if (!stored.enclosing.empty()) dimensions.emplace_back(stored.func.args().back(), 1);
  if (dimensions.empty()) return;
  int64_t bytes = vector_bytes;
  for (const H::Type& type : stored.func.types()) bytes = std::min<int64_t>(bytes, type.bytes());
  std::vector<int64_t> shape;
  for (const auto& [variable, extent] : dimensions) shape.push_back(upper_bound(extent));
  const Growth growth = least_growth(shape, vector_bytes / bytes);
  if (growth.multiple > 1) stored.func.align_storage(dimensions[growth.dimension].first, number(growth.multiple));
}

// The elements of a column of a local array are in different banks if the length of its rows is odd. Local memory of
// NVIDIA's GPUs has 32 banks of four bytes (CUDA C programming guide, shared memory).
void keep_columns_in_banks(Stored& stored) {
  constexpr int64_t banks = 32;
  const auto& [row, extent] = stored.own.front();
  const int64_t elements = upper_bound(extent);
  if (elements % banks == 0) stored.func.align_storage(row, number(elements + 1));
}

}  // namespace

Emitter::Emitter(Expr root, EmitOptions options) : root_(root), options_(std::move(options)), scalars_{options_.half} {}

H::Func Emitter::build() {
  Expr e = root_;
  while (e->pattern == Pattern::materialise && e->memory == Memory::global) e = e->children[0];
  Layout layout = layout_of(e->type);
  if (layout.scalars.size() != 1)
    unsupported(fmt::format("a kernel's result of type {}", text(e->type)), "results are arrays of scalars");
  if (row(layout.scalars[0]).bits < 8)
    unsupported(fmt::format("a kernel's result of type {}", text(e->type)), "sub-byte types can be read only");
  const Nat elements = elements_of(layout.shape);
  if (upper_bound(elements) >= int64_t{1} << 31)
    unsupported(fmt::format("a result of {} elements", upper_bound(elements)), "at most 2147483647 are supported");
  if (elements == Nat(0)) unsupported("an empty result");

  Nest nest;
  nest.func = H::Func("hoist_result");
  nest.is_result = true;
  H::Func result = nest.func;
  walk(e, place_of_element(layout.shape.size()), nullptr, nest);

  std::vector<Loop> order = loop_order(nest.loops);
  if (nest.updates != nullptr) {
    order = loop_order({nest.loops.begin(), nest.loops.begin() + static_cast<std::ptrdiff_t>(nest.around)});
    std::erase_if(order, [](const Loop& l) { return !l.is_launched(); });
  }
  if (order.empty() || order[0].mode != Mode::group) {
    Loop launch = open(1, Mode::group, 0, nest);
    launch.owner = result.name();
    order.insert(order.begin(), launch);
  }
  std::vector<H::Var> args;
  std::vector<Loop> groups;
  std::vector<H::Var> items;
  std::vector<const Loop*> locals;
  for (size_t i = order.size(); i-- > 0;) args.push_back(order[i].variable);
  if (nest.updates != nullptr)
    write_scatter(nest, layout, order, result);
  else
    result(args) = marked_store(nest, layout, {});
  Nat stride = 1;
  for (const Loop& l : order) {
    if (l.mode == Mode::group) groups.push_back(l);
  }
  for (size_t i = order.size(); i-- > 0;) {
    const Loop& l = order[i];
    result.bound(l.variable, 0, number(l.extent));
    auto dim = result.output_buffer().dim(static_cast<int>(order.size() - 1 - i));
    dim.set_bounds(0, number(l.extent)).set_stride(number(stride));
    stride = stride * l.extent;
    if (upper_bound(stride) >= int64_t{1} << 31)
      unsupported("a nest of more than 2147483647 iterations around one result");
    if (l.mode == Mode::local) locals.push_back(&l);
    if (l.mode == Mode::vec) result.vectorize(l.variable);
    if (l.mode == Mode::unroll) result.unroll(l.variable);
  }
  if (groups.size() > 3) unsupported("more than three nested group maps", "collapse some of them");
  for (size_t i = groups.size(); i-- > 0;) {
    group_loops_.push_back(result.name() + ".s0." + groups[i].variable.name());
    group_extents_.push_back(groups[i].extent);
  }
  const size_t divided = divided_loop(result, nest.index, groups);
  divided_dimension_ = groups.size() - 1 - divided;
  for (size_t i = 0; i < divided; ++i) outside_divided_ = outside_divided_ * groups[i].extent;
  if (options_.native.empty()) {
    if (groups.size() == 1) result.gpu_blocks(groups[0].variable);
    if (groups.size() == 2) result.gpu_blocks(groups[1].variable, groups[0].variable);
    if (groups.size() == 3) result.gpu_blocks(groups[2].variable, groups[1].variable, groups[0].variable);
  } else if (!locals.empty()) {
    unsupported("work-items of a group in native code", "map local dimensions in sequence, or compile for OpenCL");
  }
  std::stable_sort(locals.begin(), locals.end(),
                   [](const Loop* a, const Loop* b) { return a->dimension < b->dimension; });
  for (const Loop* l : locals) items.push_back(l->variable);
  if (items.size() > 3) unsupported("more than three nested local maps");
  if (items.size() == 1) result.gpu_threads(items[0]);
  if (items.size() == 2) result.gpu_threads(items[0], items[1]);
  if (items.size() == 3) result.gpu_threads(items[0], items[1], items[2]);
  result.never_partition_all();
  result.output_buffer().set_host_alignment(64);
  place_all(result, order);
  return result;
}

H::Expr Emitter::flat_index(const std::vector<H::Expr>& index) const {
  const std::vector<Nat> shape = layout_of(root_->type).shape;
  H::Expr flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * number(shape[i]) + index[i];
  return H::Internal::simplify(flat);
}

// A load that Halide treats as memory that changes.
H::Expr Emitter::held(const H::Expr& flat) const {
  const Scalar kind = layout_of(root_->type).scalars[0];
  return H::Internal::Call::make(stored_type(kind), old_marker, {flat}, H::Internal::Call::Extern);
}

// The target of the value of a nest, as the marker call of passes/store_at_index.cpp. `after`: the writes before it.
H::Expr Emitter::marked_store(const Nest& nest, const Layout& layout, const H::Expr& after) const {
  const H::Expr flat = flat_index(nest.index);
  H::Expr condition = nest.condition.defined() ? nest.condition : H::Internal::const_true();
  for (const Limit& limit : nest.limits) {
    if (limit.low != Nat(0)) condition = condition && limit.expression >= number(limit.low);
    condition = condition && limit.expression < number(limit.high);
  }
  const Scalar kind = layout.scalars[0];
  H::Expr value = nest.values[0];
  if (nest.combine) {
    // The index stays inside the array even if nothing will be written.
    const H::Expr old = held(H::select(condition, flat, 0));
    value = scalars_.call_value(*nest.combine, kind, {scalars_.from_stored(kind, old), value});
  }
  value = scalars_.to_stored(kind, value);
  std::vector<H::Expr> arguments = {flat, H::Internal::simplify(condition), value};
  if (after.defined()) arguments.push_back(after);
  return H::Internal::Call::make(value.type(), store_marker, arguments, H::Internal::Call::PureExtern);
}

// A scatter is two Funcs: the initial elements, and the updates. They are computed in sequence in each work-item of the
// result, which reads the second one to force that order. Only their marked stores matter, so passes/store_at_index.cpp
// removes their own arrays.
void Emitter::write_scatter(const Nest& nest, const Layout& layout, const std::vector<Loop>& order, H::Func& result) {
  std::vector<H::Expr> outer;
  std::vector<H::Var> outer_variables;
  for (size_t i = order.size(); i-- > 0;) {
    outer.emplace_back(order[i].variable);
    outer_variables.push_back(order[i].variable);
  }
  std::vector<Loop> both(nest.loops.begin(), nest.loops.begin() + static_cast<std::ptrdiff_t>(nest.around));
  std::erase_if(both, [](const Loop& l) { return l.is_launched(); });
  const auto own_loops = [&](const Nest& part, size_t first) {
    std::vector<Loop> loops = both;
    loops.insert(loops.end(), part.loops.begin() + static_cast<std::ptrdiff_t>(first), part.loops.end());
    for (Loop& l : loops) l.owner = part.func.name();
    return loop_order(loops);
  };
  // The first element stands for all: all elements are computed, as far as the loops reach.
  const auto first_of = [&](const H::Func& func, const std::vector<Loop>& loops) {
    std::vector<H::Expr> place;
    for (const Loop& l : loops) {
      if (!l.is_reduction) place.emplace_back(0);
    }
    place.insert(place.end(), outer.begin(), outer.end());
    return H::Expr(func(place));
  };
  const auto finish_part = [&](H::Func func, const std::vector<Loop>& loops, const H::Expr& value) {
    std::vector<H::Var> variables;
    std::vector<H::VarOrRVar> running;
    bool updates = false;
    for (size_t i = loops.size(); i-- > 0;) {
      updates |= loops[i].is_reduction;
      if (!loops[i].is_reduction) variables.push_back(loops[i].variable);
      if (loops[i].is_reduction)
        running.emplace_back(loops[i].reduction);
      else
        running.emplace_back(loops[i].variable);
    }
    variables.insert(variables.end(), outer_variables.begin(), outer_variables.end());
    func(variables) = updates ? H::Internal::make_zero(value.type()) : value;
    if (updates) func(variables) = value;
    for (const Loop& l : loops) {
      if (l.is_reduction) continue;
      if (l.is_launched()) unsupported("a group map inside a scatter");
      func.bound(l.variable, 0, number(l.extent));
    }
    const auto schedule = [&](auto stage) {
      if (updates && running.size() > 1) stage.reorder(running);
      for (const Loop& l : loops) {
        if (l.is_reduction) continue;
        if (l.mode == Mode::vec) stage.vectorize(l.variable);
        if (l.mode == Mode::unroll) stage.unroll(l.variable);
      }
    };
    if (updates)
      schedule(func.update());
    else
      schedule(func);
    func.never_partition_all();
    stored_.push_back({func, order, false, false, loops, {}});
  };
  const std::vector<Loop> base = own_loops(nest, nest.around), updates = own_loops(*nest.updates, 0);
  finish_part(nest.func, base, marked_store(nest, layout, {}));
  finish_part(nest.updates->func, updates, marked_store(*nest.updates, layout, first_of(nest.func, base)));
  result(outer_variables) = first_of(nest.updates->func, updates);
}

// Each materialised array is computed inside the innermost loop around its place; between loops that become groups, or
// between loops that become work-items, no such place exists, so the place is inside the innermost of these loops.
void Emitter::place_all(H::Func& result, const std::vector<Loop>& order) {
  std::map<std::string, H::Func> funcs = {{result.name(), result}};
  std::map<std::string, std::vector<Loop>> nests = {{result.name(), order}};
  bool any_local = std::any_of(order.begin(), order.end(), [](const Loop& l) { return l.mode == Mode::local; });
  for (const Stored& s : stored_) {
    funcs.emplace(s.func.name(), s.func);
    std::vector<Loop>& nest = nests[s.func.name()] = s.spread;
    nest.insert(nest.end(), s.loops.begin(), s.loops.end());
    any_local |= s.has_local_loops;
  }
  const int64_t vector_bytes = longest_vector_bytes(order, stored_);
  std::vector<std::string> where;
  std::map<std::string, std::string> shown = {{result.name(), "result"}};  // Halide's names are not reproducible
  for (const Stored& s : stored_) {
    std::string base = s.func.name().substr(0, s.func.name().find("__"));
    shown[s.func.name()] = fmt::format("{}_{}", base, shown.size());
  }
  for (Stored& s : stored_) {
    const Loop* level = nullptr;
    for (const Loop& l : s.enclosing) {
      if (l.mode != Mode::group) level = &l;
    }
    bool in_item =
        std::any_of(s.enclosing.begin(), s.enclosing.end(), [](const Loop& l) { return l.mode == Mode::local; });
    if (level == nullptr) {
      for (const Loop& l : order) {
        if (l.mode == Mode::group) level = &l;
      }
    } else if (level->mode == Mode::local) {
      for (const Loop& l : nests[level->owner]) {
        if (l.mode == Mode::local) level = &l;
      }
    }
    std::string owner = level->owner;
    H::LoopLevel at = level->is_reduction ? H::LoopLevel(funcs[owner], level->reduction)
                                          : H::LoopLevel(funcs[owner], level->variable);
    s.func.compute_at(at);
    std::string memory = "private";
    if (!options_.native.empty() && s.has_local_loops)
      unsupported("work-items of a group in native code", "map local dimensions in sequence, or compile for OpenCL");
    if (!options_.native.empty()) {
      s.func.store_in(H::MemoryType::Stack);
    } else if (s.is_local || (any_local && !in_item && !s.has_local_loops)) {
      s.func.store_in(H::MemoryType::GPUShared);
      if (s.has_rows && vector_bytes <= 4)
        keep_columns_in_banks(s);
      else
        end_at_a_vector(s, vector_bytes);
      memory = "local";
    } else if (s.has_local_loops) {
      s.func.store_in(H::MemoryType::Register);
    } else {
      s.func.store_in(H::MemoryType::Stack);
    }
    std::string nest;
    for (const Loop& l : s.spread) nest += (nest.empty() ? "" : " > ") + describe(l) + " (around)";
    for (const Loop& l : s.loops) nest += (nest.empty() ? "" : " > ") + describe(l);
    where.push_back(fmt::format("{} in {} memory, computed inside [{}] of {}: {}", shown[s.func.name()], memory,
                                describe(*level), shown[owner], nest));
  }
  std::string nest;
  for (const Loop& l : order) nest += (nest.empty() ? "" : " > ") + describe(l);
  note(0, fmt::format("result: {}", nest));
  for (const std::string& line : where) note(1, line);
}

void Emitter::note(int depth, const std::string& line) {
  lines_.push_back(std::string(static_cast<size_t>(depth) * 2, ' ') + line);
}

InputArrays Emitter::input_arrays() const {
  InputArrays out;
  for (const auto& [array, parameter] : argument_names_) {
    out.all.insert(array);
    if (std::find(options_.cold.begin(), options_.cold.end(), parameter) != options_.cold.end()) out.cold.insert(array);
  }
  return out;
}

std::string Emitter::schedule() const {
  std::string out;
  for (const std::string& line : lines_) out += line + "\n";
  return out;
}

}  // namespace hoist::emission
