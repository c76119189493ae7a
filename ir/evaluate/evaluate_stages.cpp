// The inputs and stages of compiled terms: buffers, folds as loops, and stages, which compute in advance the values
// that would be recomputed at many positions or that mix an accumulator's elements.
#include <algorithm>

#include "ir/evaluate/evaluate_compiler.h"
#include "ir/evaluate/interpreter/interpret_check.h"

namespace hoist::evaluation {

// ---- Buffers -----------------------------------------------------------------------------------------------------

int Compiler::add_buffer(Scalar scalar, int64_t count) {
  out_.buffers.push_back({scalar, count, nullptr, {}});
  return static_cast<int>(out_.buffers.size()) - 1;
}

int Compiler::tensor_buffer(const Tensor& tensor) {
  const int id = add_buffer(tensor.scalar(), tensor.size());
  Buffer& buffer = out_.buffers.back();
  if (is_packed(tensor.scalar()) || tensor.scalar() == Scalar::boolean) {
    read_column(tensor, 0, buffer.count, buffer.allocate());
  } else {
    buffer.data = tensor.data();
  }
  return id;
}

int Compiler::parameter_buffer(Expr e) {
  auto [place, is_new] = tensors_.emplace(e, -1);
  if (!is_new) return place->second;
  place->second = reads_ != nullptr ? add_buffer(leaf_of(e->type)->scalar, element_count(shape_of(e->type)))
                                    : tensor_buffer(bindings_.at(e->name));
  return place->second;
}

int Compiler::constant_buffer(Expr e) {
  auto [place, is_new] = tensors_.emplace(e, -1);
  if (is_new) place->second = tensor_buffer(e->constant);
  return place->second;
}

IndexId Compiler::offset(Type type, const Path& path) {
  std::vector<std::pair<IndexId, int64_t>> parts;
  for (IndexId i : path) {
    if (type->is_array()) {
      for (auto& part : parts) part.second *= type->size.value();
      parts.emplace_back(i, 1);
      type = type->element;
    } else {
      type = type->parts[static_cast<size_t>(component(i))];
    }
  }
  return indices_.sum(parts);
}

std::vector<Compiler::Leaf> Compiler::leaves(Type type) {
  std::vector<Leaf> out;
  if (type->is_scalar()) return {{{}, {}, type->scalar}};
  if (type->is_array()) {
    out = leaves(type->element);
    for (Leaf& leaf : out) {
      leaf.components.insert(leaf.components.begin(), -1);
      leaf.extents.insert(leaf.extents.begin(), type->size.value());
    }
    return out;
  }
  for (size_t i = 0; i < type->parts.size(); ++i) {
    for (Leaf& leaf : leaves(type->parts[i])) {
      leaf.components.insert(leaf.components.begin(), static_cast<IndexId>(i));
      out.push_back(std::move(leaf));
    }
  }
  return out;
}

size_t Compiler::leaf_count(Type type) {
  if (type->is_scalar()) return 1;
  if (type->is_array()) return leaf_count(type->element);
  size_t n = 0;
  for (Type part : type->parts) n += leaf_count(part);
  return n;
}

std::pair<size_t, Scalar> Compiler::leaf_of_path(Type type, const Path& path) const {
  size_t leaf = 0;
  for (IndexId i : path) {
    if (type->is_array()) {
      type = type->element;
    } else {
      const auto c = static_cast<size_t>(component(i));
      for (size_t k = 0; k < c; ++k) leaf += leaf_count(type->parts[k]);
      type = type->parts[c];
    }
  }
  return {leaf, type->scalar};
}

Path Compiler::fresh_path(const Leaf& leaf, std::vector<IndexId>& variables) {
  Path path;
  size_t dimension = 0;
  for (IndexId c : leaf.components) {
    if (c < 0) {
      path.push_back(indices_.variable(leaf.extents[dimension++], 0));
      variables.push_back(path.back());
    } else {
      path.push_back(indices_.constant(c));
    }
  }
  return path;
}

// ---- Folds as loops ----------------------------------------------------------------------------------------------

int Compiler::folded(Expr e, int env, const Path& path) {
  if (steps_of(e) == 0) return value(e->children[1], env, path);
  if (is_clean(env)) {
    if (auto v = staged(e, env, path)) return *v;
    if (failed_) return fail();
  }
  return looped(e, env, path);
}

int Compiler::looped(Expr e, int env, const Path& path) {
  const Scalar scalar = leaf_of_path(e->type, path).second;
  auto result = [&](int id, size_t slot) {
    Value v{Value::result};
    v.scalar = scalar;
    v.a = id;
    v.b = static_cast<int>(slot);
    v.scope = scope_;
    return intern(v);
  };
  std::vector<int>& earlier = loop_ids_[std::tuple(e, env, scope_)];
  for (int id : earlier) {
    const auto& paths = open_[static_cast<size_t>(id)].paths;
    const auto found = std::find(paths.begin(), paths.end(), path);
    if (found != paths.end()) return result(id, static_cast<size_t>(found - paths.begin()));
  }
  const auto id = static_cast<int>(out_.loops.size());
  const int scope = indices_.new_scope(scope_), outer_scope = scope_;
  const double outer_evaluations = evaluations_;
  const IndexId variable = indices_.variable(steps_of(e), scope);
  out_.loops.push_back({scope, steps_of(e), variable, {}});
  open_.emplace_back();
  slot_of(id, path, scalar);
  int f = bind({Frame::accumulators, env, env, nullptr, -1, id});
  if (has_elements(e)) f = bind({Frame::element, f, env, e->children[2], variable, -1});
  // The body may use further scalars of the accumulator; they are appended as slots.
  for (size_t i = 0; i < open_[static_cast<size_t>(id)].paths.size() && !failed_; ++i) {
    const Path wanted = open_[static_cast<size_t>(id)].paths[i];
    const int initial = value(e->children[1], env, wanted);
    scope_ = scope;
    evaluations_ *= static_cast<double>(steps_of(e));
    const int body = value(e->children[0]->children[0], f, wanted);
    scope_ = outer_scope;
    evaluations_ = outer_evaluations;
    Loop::Slot& slot = out_.loops[static_cast<size_t>(id)].slots[i];
    slot.initial = initial;
    slot.body = body;
  }
  if (failed_) return fail();
  loop_ids_[std::tuple(e, env, scope_)].push_back(id);
  return result(id, 0);
}

size_t Compiler::slot_of(int loop, const Path& path, Scalar scalar) {
  auto& paths = open_[static_cast<size_t>(loop)].paths;
  const auto found = std::find(paths.begin(), paths.end(), path);
  const auto slot = static_cast<size_t>(found - paths.begin());
  if (found == paths.end()) {
    paths.push_back(path);
    out_.loops[static_cast<size_t>(loop)].slots.push_back({-1, -1, scalar});
  }
  return slot;
}

int Compiler::accumulator(int loop, Scalar scalar, const Path& path) {
  OpenLoop& open = open_[static_cast<size_t>(loop)];
  const int scope = out_.loops[static_cast<size_t>(loop)].scope;
  // The elements mix if the position changes inside the loop, or if there are too many positions.
  bool mixes = open.paths.size() >= most_slots;
  for (IndexId i : path) {
    mixes = mixes || indices_.scope(indices_[i].scope).depth >= indices_.scope(scope).depth;
  }
  if (mixes) return fail();
  Value v{Value::accumulator};
  v.scalar = scalar;
  v.a = loop;
  v.b = static_cast<int>(slot_of(loop, path, scalar));
  v.scope = scope;
  return intern(v);
}

// ---- Stages ------------------------------------------------------------------------------------------------------

int Compiler::widened(int f, std::vector<Domain>& domains, std::map<int, int>& done) {
  if (f < 0) return -1;
  if (auto found = done.find(f); found != done.end()) return found->second;
  const Frame old = frame(f);
  Frame fresh = old;
  fresh.outer = widened(old.outer, domains, done);
  fresh.env = widened(old.env, domains, done);
  if (old.kind == Frame::element) {
    auto [place, is_new] = domain_variables_.emplace(std::tuple(fresh.outer, fresh.env, old.value), -1);
    if (is_new) place->second = indices_.variable(extent(old.value), 0);
    fresh.index = place->second;
    domains.push_back({fresh.index, old.index, extent(old.value)});
  }
  return done[f] = bind(fresh);
}

std::optional<int> Compiler::staged(Expr e, int env, const Path& path) {
  if (e->free == 0) env = -1;
  if (!is_clean(env) || reads_ != nullptr) return std::nullopt;
  std::vector<Domain> domains;
  std::map<int, int> done;
  const int wide = widened(env, domains, done);
  const size_t leaf = leaf_of_path(e->type, path).first;
  const auto key = std::tuple(e, wide, leaf);
  auto found = kept_.find(key);
  if (found == kept_.end()) {
    make_stage(e, wide, domains, leaf);
    if (failed_) return std::nullopt;
    found = kept_.find(key);
  }
  const Kept& kept = found->second;
  if (!kept.usable) return std::nullopt;
  std::vector<std::pair<IndexId, int64_t>> parts;
  auto append = [&](IndexId i, int64_t n) {
    for (auto& part : parts) part.second *= n;
    parts.emplace_back(i, 1);
  };
  for (size_t i = 0; i < kept.variables.size(); ++i) {
    for (const Domain& d : domains) {
      if (d.variable == kept.variables[i]) {
        append(d.index, d.extent);
        break;
      }
    }
  }
  Type type = e->type;
  for (IndexId i : path) {
    if (type->is_array()) {
      append(i, type->size.value());
      type = type->element;
    } else {
      type = type->parts[static_cast<size_t>(component(i))];
    }
  }
  return load(kept.buffer, indices_.sum(parts));
}

int Compiler::staged_or_fail(Expr e, int env, const Path& path) {
  if (e->pattern == Pattern::scatter && extent(e->children[0]) == 0) return value(e->children[2], env, path);
  auto v = staged(e, env, path);
  return v ? *v : fail();
}

void Compiler::make_stage(Expr e, int env, const std::vector<Domain>& domains, size_t leaf) {
  const int outer_scope = scope_;
  const double outer_evaluations = evaluations_, outer_plain = plain_;
  scope_ = 0;
  double all = static_cast<double>(scalar_count_of(e->type).value());
  for (const Domain& d : domains) all *= static_cast<double>(d.extent);
  evaluations_ = plain_ = all;
  const bool is_loop = e->pattern == Pattern::fold || e->pattern == Pattern::reduce || e->pattern == Pattern::iterate;
  if (e->pattern == Pattern::scan)
    make_serial_stage(e, env, domains);
  else if (e->pattern == Pattern::scatter)
    make_scatter_stage(e, env, domains);
  else if (e->pattern == Pattern::host)
    make_host_stage(e, env, domains);
  else if (!make_plain_stage(e, env, domains, leaf, is_loop, outer_plain, outer_evaluations) && is_loop) {
    failed_ = false;
    make_serial_stage(e, env, domains);
  }
  scope_ = outer_scope;
  evaluations_ = outer_evaluations;
  plain_ = outer_plain;
}

bool Compiler::make_plain_stage(Expr e, int env, const std::vector<Domain>& domains, size_t leaf_number, bool is_loop,
                                double plain, double evaluations) {
  const Leaf leaf = leaves(e->type)[leaf_number];
  std::vector<IndexId> variables;
  const Path path = fresh_path(leaf, variables);
  const int root = is_loop ? looped(e, env, path) : value(e, env, path);
  if (failed_) return false;
  const std::vector<Domain> used = used_domains(domains, {root});
  std::vector<int64_t> extents;
  std::vector<IndexId> all_variables;
  Kept kept;
  for (const Domain& d : used) {
    extents.push_back(d.extent);
    all_variables.push_back(d.variable);
  }
  kept.variables = all_variables;
  extents.insert(extents.end(), leaf.extents.begin(), leaf.extents.end());
  all_variables.insert(all_variables.end(), variables.begin(), variables.end());
  double count = 1;
  for (int64_t extent : extents) count *= static_cast<double>(extent);
  kept.usable = count <= static_cast<double>(most_stage_elements) && (count <= plain || count <= evaluations / 2);
  if (kept.usable) kept.buffer = add_plain_stage(root, extents, all_variables);
  kept_.emplace(std::tuple(e, env, leaf_number), kept);
  return true;
}

int Compiler::add_plain_stage(int root, const std::vector<int64_t>& extents, const std::vector<IndexId>& variables) {
  Stage stage;
  stage.programs.push_back(emit(out_, root, extents, variables));
  stage.buffers.push_back(add_buffer(at(root).scalar, stage.programs[0].count));
  out_.stages.push_back(std::move(stage));
  return out_.stages.back().buffers[0];
}

void Compiler::make_serial_stage(Expr e, int env, const std::vector<Domain>& domains) {
  const Type type = e->children[1]->type;
  const std::vector<Leaf> all = leaves(type);
  Stage stage;
  stage.kind = Stage::serial;
  stage.keeps_all = e->pattern == Pattern::scan;
  stage.steps = steps_of(e);
  stage.step = indices_.variable(stage.steps, 0);
  for (const Leaf& leaf : all) stage.states.push_back(add_buffer(leaf.scalar, product(leaf.extents)));
  const auto id = static_cast<int>(serial_.size());
  serial_.push_back(stage);
  int f = bind({Frame::state, env, env, nullptr, -1, id});
  if (has_elements(e)) f = bind({Frame::element, f, env, e->children[2], stage.step, -1});
  std::vector<int> roots;
  std::vector<std::vector<IndexId>> variables;
  for (bool first : {true, false}) {
    for (const Leaf& leaf : all) {
      variables.emplace_back();
      const Path path = fresh_path(leaf, variables.back());
      roots.push_back(first ? value(e->children[1], env, path) : value(e->children[0]->children[0], f, path));
      if (failed_) return;
    }
  }
  std::vector<const Leaf*> shapes;
  for (size_t i = 0; i < roots.size(); ++i) shapes.push_back(&all[i % all.size()]);
  finish(std::move(stage), e, env, domains, all, roots, variables, shapes);
}

void Compiler::make_scatter_stage(Expr e, int env, const std::vector<Domain>& domains) {
  Expr positions = e->children[0];
  const std::vector<Leaf> updates = leaves(e->children[1]->type), bases = leaves(e->type);
  const std::vector<Leaf> places = leaves(positions->type);
  Stage stage;
  stage.kind = Stage::scatter;
  stage.steps = extent(positions);
  stage.base_count = extent(e);
  std::vector<int> roots;
  std::vector<std::vector<IndexId>> variables;
  std::vector<const Leaf*> shapes;
  auto add = [&](Expr part, const Leaf& leaf) {
    variables.emplace_back();
    const Path path = fresh_path(leaf, variables.back());
    roots.push_back(value(part, env, path));
    shapes.push_back(&leaf);
  };
  add(positions, places[0]);
  for (const Leaf& leaf : updates) add(e->children[1], leaf);
  for (const Leaf& leaf : bases) add(e->children[2], leaf);
  if (failed_) return;
  finish(std::move(stage), e, env, domains, bases, roots, variables, shapes);
}

void Compiler::make_host_stage(Expr e, int env, const std::vector<Domain>& domains) {
  Stage stage;
  stage.kind = Stage::host;
  stage.called = e;
  const std::vector<Leaf> result = leaves(e->type);
  std::vector<std::vector<Leaf>> arrays;
  std::vector<int> roots;
  std::vector<std::vector<IndexId>> variables;
  std::vector<const Leaf*> shapes;
  for (Expr child : e->children) arrays.push_back(leaves(child->type));
  for (size_t i = 0; i < arrays.size(); ++i) {
    variables.emplace_back();
    const Path path = fresh_path(arrays[i][0], variables.back());
    roots.push_back(value(e->children[i], env, path));
    shapes.push_back(&arrays[i][0]);
  }
  if (failed_) return;
  finish(std::move(stage), e, env, domains, result, roots, variables, shapes);
}

void Compiler::finish(Stage stage, Expr e, int env, const std::vector<Domain>& domains, const std::vector<Leaf>& all,
                      const std::vector<int>& roots, const std::vector<std::vector<IndexId>>& variables,
                      const std::vector<const Leaf*>& shapes) {
  const std::vector<Domain> used = used_domains(domains, roots);
  double count = stage.keeps_all ? static_cast<double>(stage.steps) : 1;
  for (const Domain& d : used) {
    stage.outer.push_back(d.extent);
    stage.outer_variables.push_back(d.variable);
    count *= static_cast<double>(d.extent);
  }
  for (size_t i = 0; i < roots.size(); ++i)
    stage.programs.push_back(emit(out_, roots[i], shapes[i]->extents, variables[i]));
  for (const Leaf& leaf : all) {
    const int64_t size = product(leaf.extents);
    if (count * static_cast<double>(size) > static_cast<double>(most_stage_elements)) {
      fail();
      return;
    }
    stage.buffers.push_back(add_buffer(leaf.scalar, static_cast<int64_t>(count) * size));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    kept_[std::tuple(e, env, i)] = {true, stage.buffers[i], stage.outer_variables};
  }
  out_.stages.push_back(std::move(stage));
}

int64_t Compiler::product(const std::vector<int64_t>& extents) {
  int64_t n = 1;
  for (int64_t extent : extents) n *= extent;
  return n;
}

std::vector<Compiler::Domain> Compiler::used_domains(const std::vector<Domain>& domains,
                                                     const std::vector<int>& roots) const {
  const Reach reach = reach_of(out_, roots);
  std::vector<Domain> used;
  for (const Domain& d : domains) {
    const Index& i = indices_[d.variable];
    if (!i.terms.empty() && reach.variables.count(i.terms[0].first) > 0) used.push_back(d);
  }
  return used;
}

}  // namespace hoist::evaluation
