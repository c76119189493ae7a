// Storage, kernels over stored arrays, and the schedule of a program. Views and plans index by these numbers without
// further checks, so they are validated here.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/text/parse/syntax.h"

namespace hoist {
namespace {

constexpr int64_t most_surrounding = int64_t{1} << 31;

std::string wrong_storage(const Storage& s) {
  const std::vector<int64_t> shape = shape_of(s.logical);
  std::vector<int64_t> sorted = s.permutation, all(shape.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all || s.before.size() != all.size() || s.after.size() != all.size())
    return "order, before and after have a number for each dimension";
  int64_t elements = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    for (const int64_t n : {s.before[i], s.after[i]}) {
      if (n < 0 || n > most_surrounding) return "negative or too large surroundings";
    }
    const int64_t extent = shape[static_cast<size_t>(s.permutation[i])] + s.before[i] + s.after[i];
    if (extent > 0 && elements > (int64_t{1} << 50) / extent) return "an array that is too large";
    elements *= extent;
  }
  const size_t rank = shape.size();
  const auto whole = [&](size_t from_end) {
    return shape[static_cast<size_t>(s.permutation[rank - from_end])] + s.before[rank - from_end] +
           s.after[rank - from_end];
  };
  if (s.vector_padding < 0 || (s.vector_padding > 0 && (rank == 0 || s.vector_padding > s.after.back())))
    return "the array has too few elements after the value for the padding to vectors";
  if (s.panel < 0 || (s.panel > 0 && (rank == 0 || whole(1) % s.panel != 0))) return "panels do not divide the columns";
  if (s.interleave < 0 || (s.interleave > 0 && (rank < 2 || whole(2) % s.interleave != 0)))
    return "the number of rows is not a multiple of the interleaved rows";
  if (s.joined < 0 || s.joined >= std::max<int64_t>(std::ssize(shape), 1))
    return "more dimensions are collapsed than the array has";
  return {};
}

}  // namespace

// store %VALUE : TYPE in %ARRAY order [..] before [..] after [..] border N computed N panel N interleave N joined N
Result<Nothing> SyntaxParser::program_storage(Program& program) {
  const Token name = next();
  if (name.kind != Token::parameter || name.text.empty()) return fault_at(name, "expected a value such as %x");
  HOIST_TRY_VOID(expect(":"));
  HOIST_TRY(const Type logical, type());
  if (!leaf_of(logical)->is_scalar()) return fault_at(name, "only arrays of scalars are stored");
  Storage s = plain_storage(name.text, logical);
  if (take("in")) s.array = next().text;
  for (const auto& [word, list] : {std::pair{"order", &s.permutation}, {"before", &s.before}, {"after", &s.after}}) {
    if (!take(word)) continue;
    HOIST_TRY(*list, integer_list());
  }
  if (take("border")) {
    HOIST_TRY(const int64_t byte, integer());
    if (byte < 0 || byte > 255) return fault_at(name, "a border is filled with a byte");
    s.border = static_cast<uint8_t>(byte);
  }
  for (const auto& [word, number] : {std::pair{"computed", &s.vector_padding},
                                     {"panel", &s.panel},
                                     {"interleave", &s.interleave},
                                     {"joined", &s.joined}}) {
    if (!take(word)) continue;
    HOIST_TRY(*number, integer());
  }
  if (const std::string wrong = wrong_storage(s); !wrong.empty()) return fault_at(name, wrong);
  const auto [array, fresh] = arrays_.emplace(s.array, s.array_type());
  if (!fresh && array->second != s.array_type()) return fault_at(name, "another value gives its array another type");
  const auto [stored, is_new] = program.storage.emplace(name.text, std::move(s));
  if (!is_new) return fault_at(name, "stored twice");
  unwritten_[stored->second.array].push_back({name.text, stored->second.written_region().size()});
  return Nothing{};
}

// A program that stores one value has to store every value, with its type.
Result<Nothing> SyntaxParser::check_storage(const Program& program) {
  if (program.storage.empty()) return Nothing{};
  for (const auto& [value, type] : parameters_) {
    const auto found = program.storage.find(value);
    if (found == program.storage.end() || found->second.logical != type)
      return fault_at(peek(), fmt::format("no line `store` gives %{} of type {} an array", value, text(type)));
  }
  return Nothing{};
}

// A value without a definition consists of other values in its array; it is known after the last of them.
void SyntaxParser::define_whole(const Program& program, const std::string& part) {
  const auto own = program.storage.find(part);
  if (own == program.storage.end() || own->second.array == part) return;
  const Region inner = own->second.written_region();
  for (Unwritten& value : unwritten_[own->second.array]) {
    const Storage& storage = program.storage.at(value.name);
    if (!storage.written_region().contains(inner)) continue;
    value.elements -= inner.size();
    if (value.elements <= 0) parameters_.emplace(value.name, storage.logical);
  }
}

// Checks a kernel's term: its type is the type of the stored array, and it reads only arrays of earlier values.
Result<Nothing> SyntaxParser::check_kernel(const Program& program, const Definition& definition, const Token& name) {
  const auto own = program.storage.find(definition.value);
  if (own == program.storage.end()) return fault_at(name, "a kernel needs the storage of its value before it");
  std::set<std::string> arrays;
  for (const std::string& value : *definition.reads) {
    const auto found = program.storage.find(value);
    if (parameters_.count(value) == 0 || found == program.storage.end())
      return fault_at(name, "nothing before it stores %" + value);
    arrays.insert(found->second.array);
  }
  for (Expr p : parameters_of(definition.expression)) {
    if (arrays.count(p->name) == 0) return fault_at(name, "it reads the array %" + p->name + " without a value in it");
  }
  const Storage& s = own->second;
  const std::vector<int64_t> shape = s.written_region().array;
  Type written = scalar_type(s.is_packed() ? Scalar::u8 : leaf_of(s.logical)->scalar);
  for (size_t i = shape.size(); i-- > 0;) written = array_type(shape[i], written);
  if (definition.expression->type != written)
    return fault_at(
        name, fmt::format("its array is {}, its term has type {}", text(written), text(definition.expression->type)));
  return Nothing{};
}

// schedule step, enter, step, otherwise, leave
Result<Nothing> SyntaxParser::program_schedule(Program& program) {
  std::vector<int> open;
  int steps = 0, controls = 0;
  do {
    const Token word = next();
    if (word.text == "step") {
      program.items.push_back({PlanItem::Kind::step, steps++});
      continue;
    }
    if (word.text == "enter") {
      open.push_back(controls);
      program.items.push_back({PlanItem::Kind::enter, controls++});
      continue;
    }
    if (open.empty() || (word.text != "otherwise" && word.text != "leave"))
      return fault_at(word, "expected step or enter, or otherwise or leave within a control");
    const bool leaves = word.text == "leave";
    program.items.push_back({leaves ? PlanItem::Kind::leave : PlanItem::Kind::otherwise, open.back()});
    if (leaves) open.pop_back();
  } while (take(","));
  if (!open.empty() || steps != std::ssize(program.definitions))
    return fault_at(peek(), "a schedule has every definition and end");
  return Nothing{};
}

}  // namespace hoist
