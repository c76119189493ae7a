#include "ir/gradient/training/attention.h"

#include <map>
#include <set>

#include "ir/gradient/calls.h"

namespace hoist {
namespace {

Expr called(const char* name, Attributes attributes, const std::vector<Expr>& operands) {
  return gradients::build_call({"", name, 13, 1, {}, std::move(attributes)}, operands);
}

// The root of the sum of the squares times that of their number. A row of zeros has a length too, so that gradients are
// finite.
Expr length_of(Expr row) {
  const auto number = [&](double value) { return literal(row->type->element->scalar, value); };
  const auto square = [](Expr e) { return call(Function::multiply, {e, e}); };
  const Expr sum = reduce(Function::add, number(0), map(square, row));
  const Expr all = call(Function::multiply, {sum, number(static_cast<double>(row->type->size.value()))});
  return call(Function::sqrt, {call(Function::add, {all, number(1e-30)})});
}

bool is_image(const Type& type, int64_t samples) {
  if (!leaf_of(type)->is_scalar() || !is_float(leaf_of(type)->scalar)) return false;
  const std::vector<Nat> sizes = sizes_of(type);
  for (const Nat& size : sizes) {
    if (!size.is_constant()) return false;
  }
  return sizes.size() == 4 && sizes[0].value() == samples && sizes[2].value() * sizes[3].value() > 1;
}

// The last value of each size of images, in the program's order.
std::vector<std::string> last_images(const Program& program, const std::string& value, int64_t samples) {
  std::set<std::string> needed = {value};
  std::map<std::vector<int64_t>, std::string> last;
  std::vector<std::string> out;
  for (size_t i = program.definitions.size(); i-- > 0;) {
    const Definition& d = program.definitions[i];
    if (!needed.contains(d.value)) continue;
    for (const std::string& name : values_read(d)) needed.insert(name);
    if (!is_image(d.expression->type, samples)) continue;
    const std::vector<int64_t> shape = shape_of(d.expression->type);
    if (last.emplace(std::vector<int64_t>{shape[2], shape[3]}, d.value).second) out.insert(out.begin(), d.value);
  }
  return out;
}

}  // namespace

Result<std::string> add_attention(Program& program, const std::string& value) {
  const std::map<std::string, Type> types = value_types(program);
  const auto logits = types.find(value);
  if (logits == types.end() || sizes_of(logits->second).size() != 2)
    return Diagnostic{value, "is no array of [samples][classes], and attention-transfer needs one", "name one: --of"};
  const int64_t samples = shape_of(logits->second)[0];
  const std::vector<std::string> images = last_images(program, value, samples);
  if (images.empty())
    return Diagnostic{value, "depends on no images of [samples][channels][rows][columns]",
                      "--loss attention-transfer is for convolutional networks"};
  ValueNames names(program);
  const auto define = [&](const std::string& wanted, Expr term) {
    return gradients::append_definition(program, names, wanted, term);
  };
  std::vector<Expr> columns = {parameter(value, logits->second)};
  for (const std::string& image : images) {
    const Expr x = parameter(image, types.at(image));
    const Expr squares = define(image + ".squares", called("Mul", {}, {x, x}));
    const Expr means =
        define(image + ".means", called("ReduceMean", {{"axes", std::vector<int64_t>{1}}, {"keepdims", 0}}, {squares}));
    const Expr flat = define(image + ".flat_means", called("Flatten", {{"axis", 1}}, {means}));
    const Expr lengths = define(image + ".lengths", map(length_of, flat));
    const auto divided = [](Expr row, Expr length) {
      return map([&](Expr e) { return call(Function::divide, {e, length}); }, row);
    };
    columns.push_back(define(image + ".attention", map([&](Expr pair) { return divided(get(0, pair), get(1, pair)); },
                                                       zip({flat, lengths}))));
  }
  return define(value + ".with_attention", called("Concat", {{"axis", 1}}, columns))->name;
}

}  // namespace hoist
