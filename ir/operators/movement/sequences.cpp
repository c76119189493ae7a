// Sequences and optional values: compositions of calls over lists of tensors. A data-dependent position is a selection
// among members, which then have to be of one type.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/operators/definitions/composition.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/program/program_builder.h"
#include "ir/text/counted.h"

namespace hoist {

std::string text(const TensorList& list) {
  if (!list.rows.empty()) return "a sequence with a data-dependent number of tensors";
  return list.absent ? "an optional value that is absent" : "a sequence of " + counted(list.members.size(), "tensor");
}

namespace operators {
namespace {

using Composed = Result<Nothing>;

OperatorContext attributes_of(const Composer& c, const OperatorCall& call) {
  return {call, std::vector<Expr>(c.call().inputs.size()), {}};
}

Result<int64_t> integer_of(const Composer& c, const std::string& name, int64_t otherwise) {
  const OperatorCall call = call_of(c.call(), c.version());
  return integer_attribute(attributes_of(c, call), name, otherwise);
}

Result<TensorList> sequence_input(const Composer& c, size_t input) {
  const TensorList* list = c.list(input);
  if (list == nullptr)
    return fault(fmt::format("input {} has to be a sequence, and is {}", input,
                             c.has(input) ? hoist::text(c.type(c.call().inputs[input])) : "left out"));
  if (list->absent) return fault(fmt::format("input {} has to be a sequence, and is {}", input, text(*list)));
  return *list;
}

// An input that is a sequence with known members.
Result<TensorList> known_sequence_input(const Composer& c, size_t input) {
  HOIST_TRY(TensorList list, sequence_input(c, input));
  if (!list.rows.empty())
    return fault(fmt::format("input {} is {}, and its number of tensors must be known", input, text(list)),
                 "only appending, counting, joining and taking a member apply to such a sequence");
  return list;
}

Result<std::string> tensor_input(const Composer& c, size_t input) {
  if (!c.has(input)) return fault(fmt::format("input {} is missing", input));
  if (const TensorList* list = c.list(input))
    return fault(fmt::format("input {} has to be a tensor, and is {}", input, text(*list)),
                 "sequences hold tensors, no sequences");
  return c.call().inputs[input];
}

Scalar scalar_of(const Composer& c, const std::string& value) { return leaf_of(c.type(value))->scalar; }

// Checks that a tensor may be a member of the list, which has its element type from then on.
Composed check_member(const Composer& c, TensorList& list, const std::string& value) {
  const Scalar scalar = scalar_of(c, value);
  if (list.scalar && *list.scalar != scalar)
    return fault(fmt::format("a sequence of {} cannot contain {}", row(*list.scalar).name, row(scalar).name));
  if (list.members.size() >= most_members)
    return fault(fmt::format("the sequence has more than {} members", most_members),
                 "most_members is the limit: each member is a value of the program");
  list.scalar = scalar;
  return Nothing{};
}

// ---- Positions -----------------------------------------------------------------------------------------------------
/// One of `range` positions: a known number, counted from the start, or a data-dependent value.
struct Position {
  std::optional<size_t> known;
  std::string value;
};

// A scalar input, known or data-dependent.
Result<std::string> number_input(Composer& c, size_t input) {
  HOIST_TRY(const std::string name, tensor_input(c, input));
  const Type type = c.type(name);
  const Scalar scalar = leaf_of(type)->scalar;
  if ((scalar != Scalar::i32 && scalar != Scalar::i64) || product(sizes_of(type)) != Nat(1))
    return fault(fmt::format("the position has to be one i32 or i64, and is {}", hoist::text(type)));
  const size_t rank = sizes_of(type).size();
  if (rank == 0) return name;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return c.add("Squeeze", {{"axes", axes}}, {name})[0];
}

Result<Position> position_input(Composer& c, size_t input, size_t range, const TensorList& list) {
  HOIST_TRY(const std::string name, number_input(c, input));
  if (range == 0) return fault(fmt::format("an empty sequence has no position: {}", text(list)));
  HOIST_TRY(const Tensor* value, c.known(name));
  if (value == nullptr) return Position{{}, name};
  const int64_t position = value->integer_at(0), n = static_cast<int64_t>(range);
  if (position < -n || position >= n)
    return fault(fmt::format("position {} is outside {}", position, text(list)),
                 fmt::format("positions run from {} to {}", -n, n - 1));
  return Position{static_cast<size_t>(position < 0 ? position + n : position), ""};
}

// Checks that a position may depend on data: all members have the same type.
Composed check_alike(const Composer& c, const std::vector<std::string>& members) {
  for (const std::string& member : members) {
    if (c.type(member) == c.type(members[0])) continue;
    return fault(fmt::format("the position depends on data, and members differ: {} and {}",
                             hoist::text(c.type(members[0])), hoist::text(c.type(member))),
                 "--value fixes the position");
  }
  return Nothing{};
}

// A data-dependent position among `range`, counted from the start.
std::string from_start(Composer& c, const std::string& position, size_t range) {
  const Scalar scalar = scalar_of(c, position);
  const auto number = [&](int64_t n) { return c.constant(Tensor::of(scalar, {}, std::vector<int64_t>{n})); };
  const std::string behind = c.add("Less", {}, {position, number(0)})[0];
  const std::string moved = c.add("Add", {}, {position, number(static_cast<int64_t>(range))})[0];
  return c.add("Where", {}, {behind, moved, position})[0];
}

// True if a position from the start comes after `place`.
std::string comes_after(Composer& c, const std::string& position, size_t place) {
  const Tensor number = Tensor::of(scalar_of(c, position), {}, std::vector<int64_t>{static_cast<int64_t>(place)});
  return c.add("Less", {}, {c.constant(number), position})[0];
}

// ---- Sequences -----------------------------------------------------------------------------------------------------
Composed sequence_empty(Composer& c) {
  HOIST_TRY(const int64_t type, integer_of(c, "dtype", 1));
  HOIST_TRY(const Scalar scalar, scalar_of_onnx(type));
  c.give(0, TensorList{false, {}, scalar});
  return Nothing{};
}

Composed sequence_construct(Composer& c) {
  TensorList list;
  for (size_t i = 0; i < c.call().inputs.size(); ++i) {
    HOIST_TRY(const std::string member, tensor_input(c, i));
    HOIST_TRY_VOID(check_member(c, list, member));
    list.members.push_back(member);
  }
  c.give(0, std::move(list));
  return Nothing{};
}

Composed sequence_insert(Composer& c) {
  HOIST_TRY(TensorList list, c.has(2) ? known_sequence_input(c, 0) : sequence_input(c, 0));
  HOIST_TRY(const std::string added, tensor_input(c, 1));
  if (!list.rows.empty()) {
    const std::string row = c.add("Unsqueeze", {{"axes", std::vector<int64_t>{0}}}, {added})[0];
    list.rows = c.add("Concat", {{"axis", int64_t{0}}}, {list.rows, row})[0];
    c.give(0, std::move(list));
    return Nothing{};
  }
  HOIST_TRY_VOID(check_member(c, list, added));
  Position position{list.members.size(), ""};
  if (c.has(2)) {
    // A position after the last member is valid, too; counted from the end, -1 is the last member.
    HOIST_TRY(const std::string name, tensor_input(c, 2));
    HOIST_TRY(const Tensor* value, c.known(name));
    const bool at_end = value != nullptr && value->size() == 1 && !is_float(value->scalar()) &&
                        value->integer_at(0) == static_cast<int64_t>(list.members.size());
    if (!at_end) {
      HOIST_TRY(position, position_input(c, 2, std::max<size_t>(list.members.size(), value == nullptr), list));
    }
  }
  if (position.known) {
    list.members.insert(list.members.begin() + static_cast<std::ptrdiff_t>(*position.known), added);
    c.give(0, std::move(list));
    return Nothing{};
  }
  std::vector<std::string> all = list.members;
  all.push_back(added);
  HOIST_TRY_VOID(check_alike(c, all));
  const size_t n = list.members.size();
  const std::string place = from_start(c, position.value, n);
  TensorList out{false, {}, list.scalar};
  for (size_t k = 0; k <= n; ++k) {
    // Members before the position stay; later members move up by one.
    std::string member = added;
    if (k > 0) member = c.add("Where", {}, {comes_after(c, place, k - 1), member, list.members[k - 1]})[0];
    if (k < n) member = c.add("Where", {}, {comes_after(c, place, k), list.members[k], member})[0];
    out.members.push_back(member);
  }
  c.give(0, std::move(out));
  return Nothing{};
}

Composed sequence_erase(Composer& c) {
  HOIST_TRY(TensorList list, known_sequence_input(c, 0));
  if (list.members.empty()) return fault("nothing can be erased from an empty sequence");
  Position position{list.members.size() - 1, ""};
  if (c.has(1)) {
    HOIST_TRY(position, position_input(c, 1, list.members.size(), list));
  }
  if (position.known) {
    list.members.erase(list.members.begin() + static_cast<std::ptrdiff_t>(*position.known));
    c.give(0, std::move(list));
    return Nothing{};
  }
  HOIST_TRY_VOID(check_alike(c, list.members));
  const std::string place = from_start(c, position.value, list.members.size());
  TensorList out{false, {}, list.scalar};
  for (size_t k = 0; k + 1 < list.members.size(); ++k)
    out.members.push_back(c.add("Where", {}, {comes_after(c, place, k), list.members[k], list.members[k + 1]})[0]);
  c.give(0, std::move(out));
  return Nothing{};
}

// The members as the elements of one tensor along a new axis.
std::string stacked(Composer& c, const std::vector<std::string>& members, int64_t axis) {
  std::vector<std::string> rows;
  for (const std::string& member : members)
    rows.push_back(c.add("Unsqueeze", {{"axes", std::vector<int64_t>{axis}}}, {member})[0]);
  return c.add("Concat", {{"axis", axis}}, rows)[0];
}

Composed sequence_at(Composer& c) {
  HOIST_TRY(const TensorList list, sequence_input(c, 0));
  if (!list.rows.empty()) {
    HOIST_TRY(const std::string place, number_input(c, 1));
    c.give(0, c.add("Gather", {{"axis", int64_t{0}}}, {list.rows, place})[0]);
    return Nothing{};
  }
  HOIST_TRY(const Position position, position_input(c, 1, list.members.size(), list));
  if (position.known) {
    c.give(0, list.members[*position.known]);
    return Nothing{};
  }
  HOIST_TRY_VOID(check_alike(c, list.members));
  c.give(0, c.add("Gather", {{"axis", int64_t{0}}}, {stacked(c, list.members, 0), position.value})[0]);
  return Nothing{};
}

Composed sequence_length(Composer& c) {
  HOIST_TRY(const TensorList list, sequence_input(c, 0));
  if (!list.rows.empty()) {
    const std::string extents = c.add("Shape", {{"start", int64_t{0}}, {"end", int64_t{1}}}, {list.rows})[0];
    c.give(0, c.add("Squeeze", {{"axes", std::vector<int64_t>{0}}}, {extents})[0]);
    return Nothing{};
  }
  const auto count = static_cast<int64_t>(list.members.size());
  c.give(0, c.constant(Tensor::of(Scalar::i64, {}, std::vector<int64_t>{count})));
  return Nothing{};
}

Result<std::vector<int64_t>> split_counts(Composer& c, int64_t extent) {
  std::vector<int64_t> counts;
  if (!c.has(1)) {
    if (extent > static_cast<int64_t>(most_members))
      return fault(
          fmt::format("a sequence of {} members, one an element, is past the limit of {}", extent, most_members));
    counts.assign(static_cast<size_t>(extent), 1);
    return counts;
  }
  HOIST_TRY(const std::string name, tensor_input(c, 1));
  HOIST_TRY(const Tensor* split, c.known(name));
  if (split == nullptr)
    return fault("split has to be known at compile time: it decides how many members there are and their shapes",
                 "--value fixes it");
  if ((split->scalar() != Scalar::i32 && split->scalar() != Scalar::i64) || split->shape().size() > 1)
    return fault("split has to be one i32 or i64, or a list of them");
  if (!split->shape().empty()) {
    for (int64_t i = 0; i < split->size(); ++i) counts.push_back(split->integer_at(i));
  } else {
    const int64_t each = split->integer_at(0);
    if (each < 1) return fault(fmt::format("split is {}, and has to be 1 or more", each));
    if (extent / each >= static_cast<int64_t>(most_members))
      return fault(
          fmt::format("{} elements in parts of {} are past the limit of {} members", extent, each, most_members));
    for (int64_t at = 0; at < extent; at += std::min(each, extent - at)) counts.push_back(std::min(each, extent - at));
  }
  if (counts.size() > most_members)
    return fault(fmt::format("{} parts are past the limit of {} members", counts.size(), most_members));
  return counts;
}

// Moves the axis to the front, or back.
std::string moved(Composer& c, const std::string& value, int64_t axis, bool to_front) {
  if (axis == 0) return value;
  std::vector<int64_t> order;
  const auto rank = static_cast<int64_t>(sizes_of(c.type(value)).size());
  for (int64_t d = 0; d < rank; ++d) {
    if (!to_front) order.push_back(d < axis ? d + 1 : d == axis ? 0 : d);
    if (to_front && d != axis) order.push_back(d);
  }
  if (to_front) order.insert(order.begin(), axis);
  return c.add("Transpose", {{"perm", order}}, {value})[0];
}

// Makes one member per element; the number of elements depends on data.
Composed split_dynamic(Composer& c, const std::string& value, int64_t axis, bool keeps) {
  const Tensor* each = nullptr;
  if (c.has(1)) {
    HOIST_TRY(const std::string name, tensor_input(c, 1));
    HOIST_TRY(each, c.known(name));
    keeps = true;
  }
  if (c.has(1) && (each == nullptr || !each->shape().empty() || each->integer_at(0) != 1))
    return fault("the length of the axis depends on data, so it can only be split into single elements");
  TensorList list{false, {}, scalar_of(c, value), moved(c, value, axis, true)};
  if (keeps) list.rows = c.add("Unsqueeze", {{"axes", std::vector<int64_t>{axis + 1}}}, {list.rows})[0];
  c.give(0, std::move(list));
  return Nothing{};
}

Composed split_to_sequence(Composer& c) {
  HOIST_TRY(const std::string value, tensor_input(c, 0));
  HOIST_TRY(int64_t axis, integer_of(c, "axis", 0));
  HOIST_TRY(const int64_t keeps, integer_of(c, "keepdims", 1));
  const std::vector<Nat> sizes = sizes_of(c.type(value));
  if (sizes.empty()) return fault("a number has no axis to split");
  HOIST_TRY(axis, normalise_axis(axis, static_cast<int64_t>(sizes.size())));
  if (c.counts(value).count(axis) != 0) return split_dynamic(c, value, axis, keeps != 0);
  const int64_t extent = sizes[static_cast<size_t>(axis)].value();
  HOIST_TRY(const std::vector<int64_t> counts, split_counts(c, extent));
  TensorList list{false, {}, scalar_of(c, value)};
  if (!counts.empty()) list.members = c.add("Split", {{"axis", axis}, {"split", counts}}, {value}, counts.size());
  if (keeps == 0 && !c.has(1)) {
    for (std::string& member : list.members)
      member = c.add("Squeeze", {{"axes", std::vector<int64_t>{axis}}}, {member})[0];
  }
  c.give(0, std::move(list));
  return Nothing{};
}

// Joins an axis and the next one.
std::string joined_axes(Composer& c, const std::string& value, int64_t axis) {
  std::vector<int64_t> shape = shape_of(c.type(value));
  shape.erase(shape.begin() + axis);
  shape[static_cast<size_t>(axis)] = -1;
  return c.add("Reshape", {{"shape", shape}}, {value})[0];
}

Composed concat_from_sequence(Composer& c) {
  HOIST_TRY(const TensorList list, sequence_input(c, 0));
  if (list.members.empty() && list.rows.empty()) return fault("an empty sequence has nothing to join");
  if (c.call().attributes.count("axis") == 0) return fault("attribute axis is missing");
  HOIST_TRY(int64_t axis, integer_of(c, "axis", 0));
  HOIST_TRY(const int64_t stacks, integer_of(c, "new_axis", 0));
  if (!list.rows.empty()) {
    const auto rank = static_cast<int64_t>(sizes_of(c.type(list.rows)).size());
    HOIST_TRY(axis, normalise_axis(axis, stacks == 0 ? rank - 1 : rank));
    const std::string side_by_side = moved(c, list.rows, axis, false);
    c.give(0, stacks == 0 ? joined_axes(c, side_by_side, axis) : side_by_side);
    return Nothing{};
  }
  if (stacks == 0) {
    c.give(0, c.add("Concat", {{"axis", axis}}, list.members)[0]);
    return Nothing{};
  }
  HOIST_TRY(axis, normalise_axis(axis, static_cast<int64_t>(sizes_of(c.type(list.members[0])).size()) + 1));
  c.give(0, stacked(c, list.members, axis));
  return Nothing{};
}

// ---- Optional values, and what passes either on --------------------------------------------------------------------
Composed same(Composer& c) {
  if (const TensorList* list = c.list(0))
    c.give(0, *list);
  else
    c.give(0, c.call().inputs.at(0));
  return Nothing{};
}

Composed optional(Composer& c) {
  if (c.has(0)) return same(c);
  c.give(0, TensorList{true});
  return Nothing{};
}

Composed optional_has_element(Composer& c) {
  const TensorList* list = c.has(0) ? c.list(0) : nullptr;
  const bool has = c.has(0) && (list == nullptr || !list->absent);
  c.give(0, c.constant(Tensor::of(Scalar::boolean, {}, std::vector<int>{has ? 1 : 0})));
  return Nothing{};
}

Composed optional_get_element(Composer& c) {
  const TensorList* list = c.has(0) ? c.list(0) : nullptr;
  if (!c.has(0) || (list != nullptr && list->absent)) return fault("the optional value is absent: it has no element");
  return same(c);
}

Lowered refuse_call(const OperatorContext& c) {
  return fault(fmt::format("{} has operands or results that are not tensors", full_name(c.call)),
               "the import of a model replaces such calls");
}

constexpr CompositionRow empty_row = {sequence_empty}, construct_row = {sequence_construct},
                         insert_row = {sequence_insert}, erase_row = {sequence_erase}, at_row = {sequence_at},
                         length_row = {sequence_length}, split_row = {split_to_sequence},
                         concat_row = {concat_from_sequence}, optional_row = {optional},
                         has_element_row = {optional_has_element}, get_element_row = {optional_get_element},
                         identity_row = {same, false};

constexpr OperatorRow with_lists(OperatorRow row, const CompositionRow& composition) {
  row.composition = &composition;
  return row;
}

constexpr OperatorRow composed(std::string_view name, int since, int least_inputs, int most_inputs,
                               const CompositionRow& composition, std::string_view meaning,
                               std::string_view shape_inputs = {}) {
  return with_lists(
      {"", name, since, least_inputs, most_inputs, Takes::anything, refuse_call, meaning, -2, 2, shape_inputs},
      composition);
}

// clang-format off
constexpr auto sequence_rows = std::to_array<OperatorRow>({
  composed("SequenceEmpty", 11, 0, 0, empty_row, "a sequence without members; a composition: a list while a program is built"),
  composed("SequenceConstruct", 11, 1, -1, construct_row, "the sequence of the inputs; a composition: a list while a program is built"),
  composed("SequenceInsert", 11, 2, 3, insert_row,
           "a sequence with one more member; a composition: another list, or selections of members of one type if the position depends on data", "2 position"),
  composed("SequenceErase", 11, 1, 2, erase_row,
           "a sequence without one member; a composition: another list, or selections of members of one type if the position depends on data", "1 position"),
  composed("SequenceAt", 11, 2, 2, at_row,
           "a member; a composition: the member itself, or Gather of members of one type if the position depends on data", "1 position"),
  composed("SequenceLength", 11, 1, 1, length_row, "the number of members; a composition: a constant"),
  composed("SplitToSequence", 11, 1, 2, split_row, "the sequence of the parts along an axis; a composition of Split and Squeeze", "1 split"),
  composed("ConcatFromSequence", 11, 1, 1, concat_row, "the members along an axis, or a new one; a composition of Unsqueeze and Concat"),
  composed("Optional", 15, 0, 1, optional_row, "the input as a value that may be absent; a composition: the input itself, or nothing"),
  composed("OptionalHasElement", 15, 0, 1, has_element_row, "true if an optional value is present; a composition: a constant"),
  composed("OptionalGetElement", 15, 1, 1, get_element_row, "the content of an optional value; a composition: the value itself"),
  // Lists stay unchanged; for tensors, movement.op has the definition.
  with_lists({"", "Identity", 1, 1, 1, Takes::anything, nullptr, {}}, identity_row),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> sequence_operators() { return sequence_rows; }

}  // namespace operators
}  // namespace hoist
