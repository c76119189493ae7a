#include "lowering/storage.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/properties.h"
#include "lowering/arrangement.h"
#include "lowering/cut.h"
#include "lowering/grouping.h"
#include "lowering/kept_tiles.h"
#include "lowering/planes.h"
#include "lowering/statements.h"
#include "lowering/steps.h"
#include "lowering/terms.h"

namespace hoist {
namespace {

Expr zero_of(Type type) {
  HOIST_CHECK(type->is_scalar(), "only arrays of scalars are stored");
  return literal_integer(type->scalar, 0);
}

std::vector<int64_t> inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> out(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) out[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return out;
}

// The panels' dimension goes outermost: [k...][panels][width] -> [panels][k...][width], where what is interleaved stays
// innermost.
std::vector<int64_t> panels_first(size_t rank, bool interleaved) {
  std::vector<int64_t> permutation = {static_cast<int64_t>(rank) - 1};
  for (size_t i = 0; i + 1 < rank; ++i) permutation.push_back(static_cast<int64_t>(i));
  permutation.push_back(static_cast<int64_t>(rank));
  if (interleaved) permutation.push_back(static_cast<int64_t>(rank) + 1);
  return permutation;
}

Expr permute(const Storage& s, Expr logical) {
  return s.permutation.empty() ? logical : transpose(s.permutation, logical);
}

// The bits of a packed value as a u8.
Expr code_of(Expr x) {
  const Scalar scalar = x->type->scalar;
  const auto whole = [](Scalar type, int64_t n) { return literal_integer(type, n); };
  if (!is_float(scalar))
    return call(Function::logical_and, {cast(Scalar::u8, x), whole(Scalar::u8, (int64_t{1} << row(scalar).bits) - 1)});
  HOIST_CHECK(scalar == Scalar::f4e2m1, "no float but f4e2m1 is packed");
  // Halves count on by one up to 2, then by two up to 4, then by four; the sign is that of the wide number.
  const Expr wide = cast(Scalar::f32, x);
  const Expr halves =
      cast(Scalar::u8, call(Function::multiply, {call(Function::absolute, {wide}), literal(Scalar::f32, 2)}));
  const auto beyond = [&](int64_t least, int64_t shift, int64_t first) {
    const Expr steps = call(Function::shift_right, {halves, whole(Scalar::u8, shift)});
    return std::pair{call(Function::less, {halves, whole(Scalar::u8, least)}),
                     call(Function::add, {steps, whole(Scalar::u8, first)})};
  };
  const auto [below_two, from_two] = beyond(4, 1, 2);
  const auto [below_four, from_four] = beyond(8, 2, 4);
  const Expr magnitude = select(below_two, halves, select(below_four, from_two, from_four));
  const Expr sign = call(Function::shift_right, {reinterpret(Scalar::u32, wide), whole(Scalar::u32, 31)});
  return call(Function::logical_or,
              {magnitude, call(Function::shift_left, {cast(Scalar::u8, sign), whole(Scalar::u8, 3)})});
}

}  // namespace

std::vector<int64_t> Storage::stored_shape() const {
  std::vector<int64_t> shape = shape_of(logical), out;
  for (int64_t p : permutation) out.push_back(shape[static_cast<size_t>(p)]);
  return out;
}

std::vector<int64_t> Storage::array_shape() const {
  std::vector<int64_t> shape = stored_shape();
  for (size_t i = 0; i < shape.size(); ++i) shape[i] += before[i] + after[i];
  const int64_t rows = interleave == 0 ? 0 : shape[shape.size() - 2];
  if (interleave > 0) shape[shape.size() - 2] /= interleave;
  if (panel > 0) {
    int64_t columns = shape.back();
    shape.back() = panel;
    shape.insert(shape.begin(), columns / panel);
  }
  HOIST_CHECK(interleave == 0 || rows % interleave == 0, "rows are no multiple of what is interleaved");
  if (interleave > 0) shape.push_back(interleave);
  for (int64_t i = 0; i < joined; ++i) {
    shape[1] *= shape[0];
    shape.erase(shape.begin());
  }
  return shape;
}

Type Storage::array_type() const {
  Type t = leaf_of(logical);
  std::vector<int64_t> shape = array_shape();
  for (size_t i = shape.size(); i-- > 0;) t = hoist::array_type(shape[i], t);
  return t;
}

Region Storage::written_region() const {
  if (!is_packed()) return {array_shape(), before, stored_shape()};
  const int64_t bytes = byte_size(leaf_of(logical)->scalar, array_shape());
  return {{bytes}, {0}, {bytes}};
}

Storage plain_storage(const std::string& array, Type logical) {
  Storage s;
  s.array = array;
  s.logical = logical;
  size_t rank = sizes_of(logical).size();
  s.permutation.resize(rank);
  std::iota(s.permutation.begin(), s.permutation.end(), 0);
  s.before.assign(rank, 0);
  s.after.assign(rank, 0);
  return s;
}

Expr read_storage(const Storage& s, Expr stored) {
  std::vector<int64_t> none(s.permutation.size(), 0);
  return read_with_border(s, stored, {none, none, 0});
}

Expr read_with_border(const Storage& s, Expr stored, const Padding& padding) {
  size_t rank = s.permutation.size();
  if (rank == 0) return stored;
  if (s.joined > 0) {
    Storage apart = s;
    apart.joined = 0;
    const std::vector<int64_t> extents = apart.array_shape();
    for (int64_t i = s.joined; i > 0; --i) stored = split(extents[static_cast<size_t>(i)], stored);
  }
  if (s.panel > 0) {
    stored = transpose(inverse(panels_first(rank, s.interleave > 0)), stored);
    stored = map_at(
        static_cast<int>(rank) - 1, [](Expr x) { return join(x); }, stored);
  }
  if (s.interleave > 0) {
    stored = map_at(
        static_cast<int>(rank) - 2, [](Expr rows) { return join(map([](Expr row) { return transpose(row); }, rows)); },
        stored);
  }
  std::vector<int64_t> shape = s.stored_shape();
  for (size_t i = 0; i < rank; ++i) {
    int64_t before = padding.before[static_cast<size_t>(s.permutation[i])];
    int64_t after = padding.after[static_cast<size_t>(s.permutation[i])];
    if (s.before[i] == before && s.after[i] == after) continue;
    stored = map_at(
        static_cast<int>(i), [&](Expr x) { return slice(s.before[i] - before, before + shape[i] + after, x); }, stored);
  }
  return transpose(inverse(s.permutation), stored);
}

Expr interior(const Storage& s, Expr logical) {
  Expr e = permute(s, logical);
  if (s.vector_padding != 0) {
    int last = static_cast<int>(s.permutation.size()) - 1;
    e = map_at(
        last, [&](Expr x) { return pad(0, s.vector_padding, Border::undefined, x); }, e);
  }
  for (int64_t i = 0; i < s.joined; ++i) e = join(e);
  return e;
}

Expr surround(const Storage& s, Expr inside) {
  for (size_t i = s.permutation.size(); i-- > 0;) {
    int64_t after = s.after[i] - (i + 1 == s.permutation.size() ? s.vector_padding : 0);
    if (s.before[i] == 0 && after == 0) continue;
    inside = map_at(
        static_cast<int>(i), [&](Expr x) { return pad(s.before[i], after, Border::undefined, x); }, inside);
  }
  return inside;
}

Expr written(const Storage& s, Expr stored) {
  if (!s.is_packed()) return stored;
  const Scalar scalar = leaf_of(s.logical)->scalar;
  const int bits = row(scalar).bits, each_byte = 8 / bits;
  Expr flat = sizes_of(stored->type).empty() ? repeat(1, stored) : stored;
  while (flat->type->element->is_array()) flat = join(flat);
  const int64_t count = flat->type->size.value(), spare = (each_byte - count % each_byte) % each_byte;
  if (spare != 0) flat = pad(0, spare, zero_of(leaf_of(s.logical)), flat);
  const auto together = [&](Expr values) {
    Expr byte = nullptr;
    for (int i = 0; i < each_byte; ++i) {
      Expr code = code_of(index(literal_integer(Scalar::i32, i), values));
      if (i > 0) code = call(Function::shift_left, {code, literal_integer(Scalar::u8, i * bits)});
      byte = byte == nullptr ? code : call(Function::logical_or, {byte, code});
    }
    return byte;
  };
  return map(together, split(each_byte, flat));
}

Expr pack(const Storage& s, Expr logical) {
  Expr e = permute(s, logical);
  size_t rank = s.permutation.size();
  // Whole rows of zeros around inner dimensions need the value inside: innermost dimension first.
  for (size_t i = rank; i-- > 0;) {
    if (s.before[i] == 0 && s.after[i] == 0) continue;
    e = map_at(
        static_cast<int>(i),
        [&](Expr x) {
          Type element = x->type->element;
          std::vector<Nat> sizes = sizes_of(element);
          return pad(s.before[i], s.after[i], repeat(sizes, zero_of(leaf_of(element))), x);
        },
        e);
  }
  if (s.interleave > 0) {
    e = map_at(
        static_cast<int>(rank) - 2,
        [&](Expr rows) { return map([](Expr four) { return transpose(four); }, split(s.interleave, rows)); }, e);
  }
  if (s.panel > 0) {
    e = map_at(
        static_cast<int>(rank) - 1, [&](Expr x) { return split(s.panel, x); }, e);
    e = transpose(panels_first(rank, s.interleave > 0), e);
  }
  return e;
}

namespace {

// Batch, then the spatial dimensions, then channels.
std::vector<int64_t> channels_last(size_t rank) {
  std::vector<int64_t> permutation = {0};
  for (size_t i = 2; i < rank; ++i) permutation.push_back(static_cast<int64_t>(i));
  permutation.push_back(1);
  return permutation;
}

// How many products of a sum lie side by side: those over input channels, or over the rows of a matrix.
int64_t neighbouring_terms(const Definition& d, const std::vector<int64_t>& extents) {
  return extents[d.channels_first ? 1 : extents.size() - 2];
}

// Products of numbers that lie side by side in words of four bytes, which one instruction adds to a sum.
struct WordProducts {
  int64_t together = 0;      ///< in a word; 0 where no instruction forms the sums
  bool of_vectors = false;   ///< dot instructions form sums of vectors
  bool of_matrices = false;  ///< and matrix instructions those of tiles
};

// Four of unsigned bytes and signed ones, two of 16 bits (the right ones may be stored in 8), two of bf16.
WordProducts products_in_word(const Definition& d, const std::map<std::string, Type>& types, const Weights& w,
                              const Profile& profile) {
  auto type = types.find(w.value);
  if (profile.gpu || w.groups != 1 || type == types.end()) return {};
  const std::vector<int64_t> extents = shape_of(type->second);
  if (extents.size() < 2) return {};
  const auto multiplies = [&](Scalar left, Scalar right, int64_t together) {
    return neighbouring_terms(d, extents) % together == 0 && any_node(d.expression, [&](Expr n) {
             if (n->pattern != Pattern::zip || n->children.size() != 2) return false;
             auto holds = [&](size_t i, Scalar scalar) { return n->children[i]->type->element == scalar_type(scalar); };
             return holds(0, left) && holds(1, right);
           });
  };
  const bool matrices = profile.matrix_tile > 0;
  if (profile.dot_instructions && multiplies(Scalar::u8, Scalar::i8, 4)) return {4, true, matrices};
  if (matrices && multiplies(Scalar::bf16, Scalar::bf16, 2)) return {2, false, true};
  const bool in_pairs = multiplies(Scalar::i16, Scalar::i16, 2) || multiplies(Scalar::i16, Scalar::i8, 2);
  if (profile.pair_products > 0 && in_pairs) return {2, true, false};
  return {};
}

// The numbers that dot instructions read in words: their channels have to lie side by side.
std::set<std::string> read_interleaved(const Program& program, const std::map<std::string, Type>& types,
                                       const Profile& profile) {
  std::set<std::string> values;
  for (const Definition& d : program.definitions) {
    if (std::none_of(d.weights.begin(), d.weights.end(),
                     [&](const Weights& w) { return products_in_word(d, types, w, profile).together > 0; }))
      continue;
    for (Expr p : parameters_of(d.expression)) {
      const Type leaf = leaf_of(p->type);
      if (d.channels_first && is_picture_rank(p->type) &&
          (leaf == scalar_type(Scalar::u8) || leaf == scalar_type(Scalar::i16) || leaf == scalar_type(Scalar::bf16)))
        values.insert(p->name);
    }
  }
  return values;
}

bool is_definition(const Program& program, const std::string& value) {
  return find_definition(program, value) != nullptr;
}

// Does it compute with windows that are cut from pictures, as Winograd's transformation of tiles does? It takes all of
// a window, and a vector of channels at a time.
bool transforms_windows(const Definition& d) {
  return !folds(d.expression) && has_windows(d.expression) && !moves_only(d.expression);
}

// Pictures, and what is computed element by element from pictures of the same shape.
std::set<std::string> pictures_of(const Program& program, const Profile& profile) {
  std::map<std::string, Type> types = value_types(program);
  std::set<std::string> pictures = read_interleaved(program, types, profile);
  for (const Definition& d : program.definitions) {
    if (!transforms_windows(d)) continue;
    for (Expr p : parameters_of(d.expression)) {
      if (is_definition(program, p->name) && is_picture_rank(p->type)) pictures.insert(p->name);
    }
  }
  for (const Definition& d : program.definitions) {
    if (!is_picture_rank(d.expression->type)) continue;
    bool picture = d.channels_first || pictures.count(d.value) != 0;
    for (Expr p : parameters_of(d.expression)) {
      if (pictures.count(p->name) == 0) continue;
      std::vector<Nat> read = sizes_of(p->type), made = sizes_of(d.expression->type);
      // A fold's result of another shape may be transposed as well: a convolution with a transposition behind it.
      picture |= folds(d.expression) ? read == made : read.size() == made.size();
    }
    if (picture) pictures.insert(d.value);
  }
  return pictures;
}

void round_last(Storage& s, const Profile& profile) {
  std::vector<int64_t> shape = s.stored_shape();
  if (shape.empty()) return;
  int64_t more = padded_row(shape.back(), profile) - shape.back();
  s.after.back() = more;
  s.vector_padding = more;
}

// `panels`: a work-item reads one tile's columns and nothing else. `interleave`: it reads so many rows of them at once.
Storage weights_storage(const std::string& name, Type type, int64_t output_dimension, const Tile& tile, bool panels,
                        int64_t interleave) {
  Storage s = plain_storage(name, type);
  size_t rank = s.permutation.size();
  // [O][I][k...] -> [k...][I][O]: the order in which a picture with channels last is read.
  s.permutation.clear();
  std::vector<int64_t> rest;
  for (size_t i = 0; i < rank; ++i) {
    if (static_cast<int64_t>(i) != output_dimension) rest.push_back(static_cast<int64_t>(i));
  }
  if (output_dimension == 0 && rest.size() > 1) std::rotate(rest.begin(), rest.begin() + 1, rest.end());
  s.permutation = rest;
  s.permutation.push_back(output_dimension);
  int64_t columns = shape_of(type)[static_cast<size_t>(output_dimension)];
  s.interleave = interleave;
  if (panels) {
    s.after.back() = round_up(columns, tile.columns) - columns;
    s.panel = tile.columns;
  }
  return s;
}

}  // namespace

namespace {

// What the host reads or writes: arrays in the order of their dimensions, without borders or padding.
std::set<std::string> values_on_host(const Program& program) {
  std::set<std::string> values;
  for (const Definition& d : program.definitions) {
    if (!is_host_step(d.expression)) continue;
    values.insert(d.value);
    for (Expr array : d.expression->children) values.insert(array->name);
  }
  return values;
}

// Do all results of a row share one operand, and all of a column the other?
bool is_product(const Definition& d) {
  return !d.weights.empty() &&
         std::all_of(d.weights.begin(), d.weights.end(), [](const Weights& w) { return w.groups == 1 && w.in_place; });
}

// Of planes of so many bytes a line each that stay in the cache next to the core: a way of it is as large as a page,
// since it is found by addresses before they are translated, so planes of whole pages, or of a half or a quarter of
// one, share a few lines.
int64_t lines_of_planes(int64_t plane, const Profile& profile) {
  constexpr int64_t line = 64, page = 4096;
  const int64_t apart = page / std::clamp<int64_t>(std::gcd(plane, page), line, page);
  return apart * std::max<int64_t>(profile.first_cache / page, 1);
}

// Arrays of three dimensions of which one work-item writes, or reads, a vector in every plane, as it does of
// transformed tiles and their products.
std::set<std::string> crossed_planes(const Program& program) {
  std::set<std::string> values;
  for (const Definition& d : program.definitions) {
    const auto tile = kept_tile(d.expression);
    if (!tile) continue;
    if (tile->size() == 3 && tile->front() > 1) values.insert(d.value);
    for (Expr p : parameters_of(d.expression)) {
      if (sizes_of(p->type).size() == 3 && is_definition(program, p->name)) values.insert(p->name);
    }
  }
  return values;
}

// A row behind each plane that nobody reads, where otherwise the lines of all planes, beside as many others, would not
// stay in the cache next to the core: an odd number of rows leaves planes no more in common than rows have.
void move_planes_apart(Storage& s, const Profile& profile) {
  const std::vector<int64_t> shape = s.array_shape();
  const int64_t bits = row(leaf_of(s.logical)->scalar).bits, row_bytes = shape[2] * bits / 8;
  const bool stay = 2 * shape[0] <= lines_of_planes(shape[1] * row_bytes, profile);
  if (!stay && shape[1] % 2 == 0) ++s.after[1];
}

// A convolution reads single elements of a row's channels, one after the other. Where channels are stored second, each
// stands in a line of memory of its own, which the rows side by side share: do all lines stay in the cache next to the
// core, beside the weights of two vectors of columns?
bool lines_stay_in_cache(int64_t channels, int64_t plane, const Profile& profile) {
  constexpr int64_t line = 64, f32 = 4;
  return channels * (line + 2 * profile.vector_width * f32) < profile.first_cache &&
         channels <= lines_of_planes(plane * f32, profile);
}

// Does it reduce windows of channels that are vectors, as pools do, and read each element several times?
bool pools_overlap(const Definition& d, const std::string& value, const Profile& profile) {
  const std::vector<int64_t> shape = shape_of(d.expression->type);
  return !is_product(d) && folds(d.expression) && has_windows(d.expression) && shape.size() > 2 &&
         2 * shape[1] >= profile.vector_width && rereads(d.expression, value) && !keeps_planes(d, profile);
}

// May a model input have a copy with channels innermost for this definition?
bool may_read_turned_copy(const Definition& d, const std::string& value, const Profile& profile) {
  return !profile.gpu && d.channels_first && count_statements(d.expression) == 0 &&
         (is_product(d) || pools_overlap(d, value, profile));
}

// Is one worth it, where the input's shape with its border is this? It is where the lines that its products read do not
// stay, and many columns are computed from them.
bool is_worth_turned_copy(const Definition& d, const std::vector<int64_t>& shape, const Profile& profile) {
  const int64_t plane = element_count(shape) / shape[0] / shape[1];
  return std::all_of(d.weights.begin(), d.weights.end(), [&](const Weights& w) {
    return w.extents[0] >= 16 * profile.vector_width && !lines_stay_in_cache(w.extents[1], plane, profile);
  });
}

// Is a copy with a border worth its launch? Who reads each element once, or computes several things in one launch, asks
// of each whether it lies outside.
bool wants_border(const Definition& d) {
  return (folds(d.expression) || transforms_windows(d)) && count_statements(d.expression) == 0;
}

// What a knob says of a layout, or an estimate. The plan tells that there was a choice.
bool chosen_layout(const Definition& d, const char* knob, bool estimate, StoragePlan& plan) {
  const auto found = d.knobs.find(knob);
  const bool chosen = found == d.knobs.end() ? estimate : found->second != 0;
  plan.layouts[d.value][knob] = chosen ? 1 : 0;
  return chosen;
}

// Model inputs that are read with a border get a copy that has one, and so do those that are read across lines.
void copy_inputs(Program& program, StoragePlan& plan, const Profile& profile) {
  std::map<std::string, Type> types = value_types(program);
  const std::set<std::string> interleaved = read_interleaved(program, types, profile);
  const std::set<std::string> on_host = values_on_host(program);
  std::set<std::string> wanted;
  const auto turned = [&](const Definition& d, const std::string& value) {
    if (types.count(value) == 0) return false;
    const Type type = types.at(value);
    const bool is_input = !is_definition(program, value) && program.constants.count(value) == 0;
    if (!is_input || !is_picture_rank(type) || has_no_elements(type) || on_host.count(value) != 0) return false;
    const auto holds = [&](const Weights& w) { return w.value == value; };
    if (!may_read_turned_copy(d, value, profile) || std::any_of(d.weights.begin(), d.weights.end(), holds))
      return false;
    std::vector<int64_t> shape = shape_of(type);
    const auto paddings = constant_paddings(d.expression);
    if (const auto padding = paddings.find(value); padding != paddings.end()) {
      for (size_t i = 0; i < shape.size(); ++i) shape[i] += padding->second.before[i] + padding->second.after[i];
    }
    return chosen_layout(d, input_layout_knob, is_worth_turned_copy(d, shape, profile), plan);
  };
  for (const Definition& d : program.definitions) {
    for (Expr p : parameters_of(d.expression)) {
      if (turned(d, p->name)) wanted.insert(p->name);
    }
    if (!wants_border(d)) continue;
    for (const auto& [value, padding] : constant_paddings(d.expression)) {
      if (!is_definition(program, value) && program.constants.count(value) == 0) wanted.insert(value);
      const bool is_plain = is_output(program, value) || on_host.count(value) != 0;
      if (is_definition(program, value) && is_plain) wanted.insert(value);
    }
  }
  ValueNames names(program);
  for (const std::string& value : wanted) {
    Definition copy;
    copy.value = names.make(copy_name(value));
    copy.layers = {copy.value};
    copy.expression = parameter(value, types.at(value));
    copy.channels_first = true;
    Expr renamed = parameter(copy.value, types.at(value));
    auto found = program.definitions.begin();
    bool plain = true;
    for (auto d = program.definitions.begin(); d != program.definitions.end(); ++d) {
      if (d->value == value) found = d + 1;
      const bool with_border = wants_border(*d) && constant_paddings(d->expression).count(value) != 0;
      const bool turns = mentions(d->expression, value) && turned(*d, value);
      if (!with_border && !turns) continue;
      d->expression = substitute_parameters(d->expression, {{value, renamed}});
      plain &= (is_product(*d) && !turns) || (is_output(program, d->value) && keeps_planes(*d, profile));
    }
    // Products read single elements of a picture, in any order, and what keeps planes reads rows: then the copy need
    // not turn it.
    if (plain && interleaved.count(value) == 0)
      copy.order = plain_storage(copy.value, copy.expression->type).permutation;
    program.definitions.insert(found, copy);
  }
}

// Every part of a concatenation is computed where it belongs, or copied there; nothing is left of the layer itself.
void place_concatenations(Program& program, StoragePlan& plan) {
  const std::set<std::string> on_host = values_on_host(program);
  std::map<std::string, Type> types = value_types(program);
  std::set<std::string> placed;
  std::vector<Definition> kept;
  ValueNames names(program);
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    Definition whole = program.definitions[i];
    if (plan.values.at(whole.value).is_packed()) whole.parts.clear();  // parts would share bytes
    if (whole.parts.empty()) {
      kept.push_back(whole);
      continue;
    }
    Storage& around = plan.values.at(whole.value);
    size_t axis =
        static_cast<size_t>(std::find(around.permutation.begin(), around.permutation.end(), whole.parts_dimension) -
                            around.permutation.begin());
    bool last = axis + 1 == around.permutation.size();
    if (last) {
      // A part that rounds up would write over its neighbour.
      around.after.back() -= around.vector_padding;
      around.vector_padding = 0;
    }
    std::vector<int64_t> whole_shape = around.stored_shape();
    int64_t offset = 0;
    for (size_t k = 0; k < whole.parts.size(); ++k) {
      const std::string& part = whole.parts[k];
      Storage s = around;
      s.logical = types.at(part);
      int64_t extent = s.stored_shape()[axis];
      s.before[axis] += offset;
      s.after[axis] += whole_shape[axis] - offset - extent;
      offset += extent;
      if (extent == 0) continue;
      bool free = is_definition(program, part) && !is_output(program, part) && placed.count(part) == 0 &&
                  on_host.count(part) == 0 && !plan.values.at(part).border;
      auto producer = std::find_if(kept.begin(), kept.end(), [&](const Definition& d) { return d.value == part; });
      if (free && producer != kept.end()) {
        plan.values[part] = s;
        placed.insert(part);
        producer->layers.insert(producer->layers.end(), whole.layers.begin(), whole.layers.end());
        continue;
      }
      Definition copy;
      copy.value = names.make(whole.value + ".part" + std::to_string(k));
      copy.layers = whole.layers;
      copy.expression = parameter(part, types.at(part));
      plan.values[copy.value] = s;
      kept.push_back(copy);
    }
  }
  program.definitions = kept;
}

// The border that the readers of a value want, by value: the largest of each side.
std::map<std::string, Padding> wanted_borders(const Program& program) {
  const std::set<std::string> on_host = values_on_host(program);
  std::map<std::string, Padding> borders;
  for (const Definition& d : program.definitions) {
    for (const auto& [value, padding] : constant_paddings(d.expression)) {
      if (!is_definition(program, value) || is_output(program, value) || is_statement(value)) continue;
      if (on_host.count(value) != 0) continue;
      auto [place, fresh] = borders.emplace(value, padding);
      for (size_t i = 0; !fresh && i < padding.before.size(); ++i) {
        place->second.before[i] = std::max(place->second.before[i], padding.before[i]);
        place->second.after[i] = std::max(place->second.after[i], padding.after[i]);
      }
    }
  }
  return borders;
}

Storage constant_storage(const std::string& name, const Tensor& tensor, Type type, int64_t width) {
  Storage s = plain_storage(name, type);
  // A vector along one dimension (a bias, a scale per channel): whole vectors of it can be loaded.
  int wide = 0;
  size_t which = 0;
  for (size_t i = 0; i < tensor.shape().size(); ++i) {
    if (tensor.shape()[i] <= 1) continue;
    ++wide;
    which = i;
  }
  if (wide != 1) return s;
  int64_t n = tensor.shape()[which];
  s.after[which] = round_up(n, n < width ? width : 8 * width) - n;
  return s;
}

// The stored extents with what is computed along; at least two dimensions.
std::vector<int64_t> computed_shape(const Storage& s) {
  std::vector<int64_t> shape = s.stored_shape();
  if (!shape.empty()) shape.back() += s.vector_padding;
  while (shape.size() < 2) shape.insert(shape.begin(), 1);
  return shape;
}

// The step of windows of so many elements that the term folds; nothing where it has none, or some with gaps.
std::optional<int64_t> step_of_windows(Expr e, int64_t size) {
  std::optional<int64_t> step;
  any_node(e, [&](Expr n) {
    if (n->pattern == Pattern::slide && n->sizes[0].value() == size) step = n->sizes[1].value();
    return step.has_value();
  });
  return step;
}

// `transposed`: a picture that has to keep its channels second.
TiledResults tiled_on_cpu(const Program& program, const Definition& d, const std::map<std::string, Type>& types,
                          const Storage& s, bool transposed, const Profile& profile) {
  const std::vector<int64_t> shape = computed_shape(s);
  TiledResults out;
  out.rows = transposed ? shape.back() : shape[shape.size() - 2];
  out.columns = transposed ? shape[1] : shape.back();
  if (!transposed) out.count = element_count(shape) / out.rows / out.columns;
  const bool by_channels = d.channels_first && (transposed || (s.permutation.size() > 1 && s.permutation.back() == 1));
  const size_t rank = shape.size();
  if (by_channels && is_product(d) && (rank == 4 || rank == 5)) {
    out.lines = transposed ? shape[rank - 2] : shape[rank - 3];
    if (rank == 5) out.lines *= transposed ? shape[2] : shape[1];
  }
  // One matrix on the right for all on the left: their rows are those of one product.
  const bool one_matrix =
      !d.channels_first && !transposed && (rank == 3 || rank == 4) && is_product(d) &&
      std::all_of(d.weights.begin(), d.weights.end(), [](const Weights& w) { return w.extents.size() == 2; });
  if (one_matrix) out.lines = out.count;
  out.planes = !by_channels && rank == 4 && d.channels_first && is_product(d);
  if (by_channels && d.weights.size() == 1 && d.weights[0].groups > 1 && d.weights[0].extents[1] > 1) {
    const int64_t group = d.weights[0].extents[0] / d.weights[0].groups;
    out.group = group > 1 ? group : 0;
  }
  if (by_channels && !transposed && rank == 4 && d.weights.size() == 1 && d.weights[0].groups > 1 &&
      d.weights[0].groups == d.weights[0].extents[0] && d.weights[0].extents[1] == 1) {
    const int64_t window = d.weights[0].extents.back();
    const auto step = window > 1 ? step_of_windows(d.expression, window) : std::nullopt;
    if (step) {
      // Up to half as much again as the cache holds, going along the lines takes less time all the same.
      const int64_t f32 = 4, line = out.rows * *step * out.columns * f32;
      out.window = window;
      out.window_step = *step;
      out.crosses_lines = profile.launch > 0 && 2 * d.weights[0].extents[2] * line > 3 * profile.first_cache;
    }
  }
  out.packed = (transposed || !d.channels_first) &&
               std::any_of(d.weights.begin(), d.weights.end(),
                           [&](const Weights& w) { return program.constants.count(w.value) != 0; });
  if (d.weights.size() == 1) {
    const int64_t small = profile.first_cache / 2;
    const int64_t right = element_count(d.weights[0].extents), columns = std::max<int64_t>(1, out.columns);
    out.small_right = d.weights[0].groups > 1 || (4 * right <= small && right / columns >= columns);
    // A tile's columns of bytes are a part of a line, which each pass over the results would write again.
    const Type leaf = leaf_of(d.expression->type);
    const WordProducts products = products_in_word(d, types, d.weights[0], profile);
    if (leaf->is_scalar() && row(leaf->scalar).bits < 32 && products.of_vectors && products.together == 2)
      out.small_right |= right <= small;
    // Vectors of a result that lies across the product's rows are of other elements than the weights' columns.
    const bool by_columns = d.channels_first || !rows_lie_across(d.expression);
    if (products.of_matrices && s.permutation.size() >= 2 && by_columns) {
      const std::vector<int64_t> extents = shape_of(types.at(d.weights[0].value));
      out.word = products.together;
      out.in_words = products.of_vectors;
      out.terms = element_count(extents) / extents[static_cast<size_t>(d.weights[0].output_dimension)];
      out.inner = neighbouring_terms(d, extents);
    }
  }
  return out;
}

// How many dimensions before the last two of a picture count as its rows: rules join up to three.
int64_t joined_rows(const std::vector<int64_t>& shape) { return std::clamp<int64_t>(std::ssize(shape) - 3, 0, 2); }

// On a GPU all positions of a picture are one dimension, so that small pictures fill work-groups too. Nothing where the
// definition is no product.
std::optional<TiledResults> tiled_on_gpu(const Definition& d, const Storage& s, bool transposed) {
  const std::vector<int64_t> shape = computed_shape(s);
  if (!is_product(d)) return std::nullopt;
  TiledResults out;
  for (const Weights& w : d.weights) {
    if (w.extents.size() < 2) return std::nullopt;
    // The innermost fold runs over input channels, or over what a matrix has beside its columns.
    out.steps = d.channels_first ? w.extents[1] : w.extents[w.output_dimension == 0 ? 1 : w.extents.size() - 2];
    if (d.channels_first) out.folds = element_count(w.extents) / w.extents[0] / w.extents[1];
  }
  if (out.steps == 0) return std::nullopt;
  out.rows = shape[shape.size() - 2];
  out.columns = shape.back();
  if (d.channels_first && transposed) {
    out.columns = shape[1];
    out.rows = element_count(shape) / shape[0] / out.columns;
  } else if (d.channels_first) {
    for (int64_t i = 0; i < joined_rows(shape); ++i) out.rows *= shape[shape.size() - 3 - static_cast<size_t>(i)];
  }
  out.count = element_count(shape) / out.rows / out.columns;
  return out;
}

// What the definition's knobs say, and what an estimate says where they say nothing that there is.
Tile tile_of(const Definition& d, const TiledResults& results, const Profile& profile) {
  if (!d.knobs.empty()) {
    if (const auto tile = tile_with(results, d.knobs, profile)) return *tile;
  }
  return choose_tile(results, profile);
}

// Of a definition that folds, or that has to be turned.
void choose_tile(const Program& program, const Definition& d, const std::map<std::string, Type>& types, bool transposed,
                 StoragePlan& plan, const Profile& profile) {
  const Storage& s = plan.values.at(d.value);
  const std::optional<TiledResults> results =
      profile.gpu ? tiled_on_gpu(d, s, transposed) : tiled_on_cpu(program, d, types, s, transposed, profile);
  Tile& tile = plan.tiles[d.value];
  if (!results) return;
  tile = tile_of(d, *results, profile);
  tile.channels_last = transposed;
  // Of pictures, the positions of one; of matrices, the rows of all.
  const std::vector<int64_t> shape = computed_shape(s);
  if (d.channels_first && (profile.gpu || tile.loop_order == Tile::through_lines))
    tile.rows_joined = joined_rows(shape);
  else if (tile.loop_order == Tile::through_lines)
    tile.rows_joined = std::ssize(shape) - 2;
  plan.tiled[d.value] = *results;
}

bool reads_channels_last(const Definition& d, const StoragePlan& plan) {
  const std::vector<Expr> reads = parameters_of(d.expression);
  return std::any_of(reads.begin(), reads.end(), [&](Expr p) {
    auto found = plan.values.find(p->name);
    if (found == plan.values.end() || !any_usual_node(d.expression, [&](Expr e) { return e == p; })) return false;
    const std::vector<int64_t>& order = found->second.permutation;
    return order.size() > 2 && order == channels_last(order.size());
  });
}

// Of a statement, whose tiles the work-items of one group share out: all its rows are alike. Work-items of GPUs compute
// one element at a time.
Tile tile_of_statement(const Definition& d, const Storage& s, const Profile& profile) {
  if (profile.gpu) return {};
  std::vector<int64_t> shape = computed_shape(s);
  int64_t rows = 1, columns = shape.back();
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  if (folds(d.expression)) return choose_tile({.rows = rows, .columns = columns, .packed = true}, profile);
  int64_t width = profile.vector_width;
  while (columns % width != 0) width /= 2;
  return {1, width, width};
}

// The definitions that are several statements.
std::set<std::string> launches_of(const Program& program) {
  std::set<std::string> values;
  for (const Definition& d : program.definitions) {
    if (count_statements(d.expression) > 0) values.insert(d.value);
  }
  return values;
}

}  // namespace

int64_t padded_row(int64_t columns, const Profile& profile) {
  // The smallest multiple worth rounding to: whole vectors, and less where the array is narrow.
  int64_t multiple = 1;
  while (multiple < profile.vector_width && multiple < columns) multiple *= 2;
  return round_up(columns, multiple);
}

std::string copy_name(const std::string& input) { return input + ".bordered"; }

StoragePlan choose_storage(Program& program, const Profile& profile) {
  StoragePlan plan;
  copy_inputs(program, plan, profile);
  const std::set<std::string> launches = launches_of(program);
  Program apart = with_statements_apart(program);
  std::map<std::string, Type> types = value_types(apart);
  std::set<std::string> pictures = pictures_of(apart, profile);
  std::map<std::string, Padding> borders = wanted_borders(apart);
  const std::set<std::string> crossed = profile.gpu ? std::set<std::string>() : crossed_planes(apart);
  const std::set<std::string> on_host = values_on_host(apart);
  for (const auto& [name, type] : program.inputs) plan.values[name] = plain_storage(name, type);
  for (const Definition& d : apart.definitions) {
    Storage s = plain_storage(d.value, d.expression->type);
    const bool is_free = !is_output(program, d.value) && on_host.count(d.value) == 0 && !s.is_packed();
    if (is_free) {
      if (pictures.count(d.value) != 0) s.permutation = channels_last(s.permutation.size());
      if (!d.order.empty()) s.permutation = d.order;
      std::vector<int64_t> shape = s.stored_shape();
      // A vector that sticks out of what it reads in steps is read lane by lane.
      if (!moves_in_steps(d.expression)) round_last(s, profile);
      if (auto border = borders.find(d.value); border != borders.end()) {
        s.border = border->second.byte;
        for (size_t i = 0; i < s.permutation.size(); ++i) {
          s.before[i] += border->second.before[static_cast<size_t>(s.permutation[i])];
          s.after[i] += border->second.after[static_cast<size_t>(s.permutation[i])];
        }
        // Borders right behind a row leave no room for padding, which computes anything there.
        if (!shape.empty() && s.after.back() > s.vector_padding) {
          s.after.back() -= s.vector_padding;
          s.vector_padding = 0;
        }
      }
    }
    if (crossed.count(d.value) != 0 && is_free && !s.border) move_planes_apart(s, profile);
    // Loops over tiles can run through all rows of a kept array, or through all its elements, where those are one
    // dimension. Rows that share a fold stay rows.
    if (is_statement(d.value)) {
      const bool elements = profile.gpu && !shares_folds(d.expression);
      s.joined = std::max<int64_t>(static_cast<int64_t>(s.permutation.size()) - (elements ? 1 : 2), 0);
    }
    plan.values[d.value] = s;
  }
  place_concatenations(program, plan);
  if (launches.empty()) apart.definitions = program.definitions;
  for (const Definition& d : apart.definitions) {
    if (is_host_step(d.expression)) continue;
    if (is_statement(d.value) || launches.count(d.value) != 0) {
      plan.tiles[d.value] = tile_of_statement(d, plan.values.at(d.value), profile);
      continue;
    }
    const bool reads_turned = reads_channels_last(d, plan), turns = reads_turned || !keeps_planes(d, profile);
    const bool is_edge = is_output(program, d.value) && pictures.count(d.value) != 0 && !shares_folds(d.expression);
    const bool transposed =
        is_edge && (folds(d.expression) ? chosen_layout(d, output_layout_knob, turns, plan) : turns);
    // What is left of a convolution that was cut reads channels innermost, as the convolution itself did.
    if (!folds(d.expression) && !(transposed && d.channels_first && reads_turned)) continue;
    choose_tile(program, d, types, transposed, plan, profile);
  }
  for (const auto& [name, tensor] : program.constants) {
    plan.values[name] = is_output(program, name) || on_host.count(name) != 0
                            ? plain_storage(name, types.at(name))
                            : constant_storage(name, tensor, types.at(name), profile.vector_width);
  }
  for (const Definition& d : apart.definitions) {
    for (const Weights& w : d.weights) {
      auto tile = plan.tiles.find(d.value);
      if (program.constants.count(w.value) == 0 || tile == plan.tiles.end() || is_output(program, w.value)) continue;
      if (on_host.count(w.value) != 0) continue;
      if (sizes_of(types.at(w.value)).size() < 2) continue;
      const WordProducts products = products_in_word(d, types, w, profile);
      const bool in_words = products.of_vectors || tile->second.matrix_words > 0;
      plan.values[w.value] = weights_storage(w.value, types.at(w.value), w.output_dimension, tile->second, !profile.gpu,
                                             in_words ? products.together : 0);
    }
  }
  return plan;
}

}  // namespace hoist
