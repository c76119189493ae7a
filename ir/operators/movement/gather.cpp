// Operators whose positions are data: gathers, scatters, one-hot. Positions from data are clamped or dropped, so that
// no kernel reads or writes beyond an array; positions known at compile time are checked and become part of the view.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/properties/properties.h"

namespace hoist::operators {
namespace {

Result<Nothing> check_positions(const OperatorContext& c, size_t i) {
  Scalar s = element_of(c.inputs[i]);
  if (s == Scalar::i32 || s == Scalar::i64) return Nothing{};
  return fault(fmt::format("indices have to be i32 or i64, found {}", row(s).name));
}

Lowered lower_gather(const OperatorContext& c) {
  Expr data = c.inputs[0], indices = c.inputs[1];
  HOIST_TRY_VOID(check_positions(c, 1));
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 0));
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(data)));
  Sizes shape = sizes_of(data->type);
  const Sizes picked = sizes_of(indices->type);
  int64_t n = shape[static_cast<size_t>(axis)].value();
  int rank = static_cast<int>(rank_of(indices));
  if (n == 0 && product(picked) != Nat(0)) return fault(fmt::format("axis {} has no elements to gather from", axis));
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, picked.begin(), picked.end());
  HOIST_TRY_VOID(check_sizes(shape));
  bool known = c.constants[1] != nullptr;
  Shape places;
  if (known) {
    places = c.constants[1]->as_integers();
    for (int64_t& p : places) {
      if (p < -n || p >= n) return fault(fmt::format("index {} lies outside -{}..{} of axis {}", p, n, n - 1, axis));
      if (p < 0) p += n;
    }
    if (rank > 0) indices = constant(Tensor::of(Scalar::i64, extents(indices), places));
  }
  return one(map_at(
      static_cast<int>(axis),
      [&](Expr block) {
        if (known && rank == 0) return at_position(places[0], block);
        return map_at(
            rank, [&](Expr i) { return index(known ? i : clamped_position(i, n), block); }, indices);
      },
      data));
}

// Slices the first `depth` dimensions of x to the extents of `like`.
Expr cut_to(Expr x, Expr like, int64_t depth) {
  for (int64_t i = 0; i < depth; ++i) {
    int64_t n = extents(like)[static_cast<size_t>(i)];
    x = map_at(
        static_cast<int>(i), [&](Expr row) { return slice(0, n, row); }, x);
  }
  return x;
}

// For *Elements: indices have the rank of the data and no larger extents, except along the axis.
Result<Nothing> check_elements(Expr data, Expr indices, int64_t axis) {
  Shape d = extents(data), i = extents(indices);
  bool fits = d.size() == i.size();
  for (size_t k = 0; fits && k < d.size(); ++k) fits = static_cast<int64_t>(k) == axis || i[k] <= d[k];
  if (!fits) return fault(fmt::format("indices {} reach beyond the data {}", text(i), text(d)));
  return Nothing{};
}

Lowered lower_gather_elements(const OperatorContext& c) {
  Expr data = c.inputs[0], indices = c.inputs[1];
  HOIST_TRY_VOID(check_positions(c, 1));
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 0));
  int64_t rank = rank_of(data);
  HOIST_TRY(int64_t axis, normalise_axis(named, rank));
  HOIST_TRY_VOID(check_elements(data, indices, axis));
  int64_t n = extents(data)[static_cast<size_t>(axis)];
  if (n == 0 && product(extents(indices)) > 0)
    return fault(fmt::format("axis {} has no elements to gather from", axis));
  Shape permutation = with_last({axis}, rank);
  indices = permute(permutation, indices);
  data = cut_to(permute(permutation, data), indices, rank - 1);
  Expr result = map_zip_at(rank - 1, {data, indices}, [&](const std::vector<Expr>& p) {
    return map([&](Expr i) { return index(clamped_position(i, n), p[0]); }, p[1]);
  });
  return one(permute(inverse(permutation), result));
}

Expr at_positions(Expr data, Expr tuple_of_positions, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    int64_t n = data->type->size.value();
    data = index(clamped_position(at_position(k, tuple_of_positions), n), data);
  }
  return data;
}

Lowered lower_gather_nd(const OperatorContext& c) {
  Expr data = c.inputs[0], indices = c.inputs[1];
  HOIST_TRY_VOID(check_positions(c, 1));
  HOIST_TRY(int64_t batch, integer_attribute(c, "batch_dims", 0));
  const Sizes d = sizes_of(data->type), i = sizes_of(indices->type);
  if (i.empty() || d.empty()) return fault("data and indices have to be arrays");
  if (batch < 0 || batch >= static_cast<int64_t>(std::min(d.size(), i.size())))
    return fault(fmt::format("batch_dims is {}", batch));
  for (int64_t k = 0; k < batch; ++k) {
    if (d[static_cast<size_t>(k)] != i[static_cast<size_t>(k)])
      return fault(fmt::format("batch dimension {} is {} in the data and {} in the indices", k,
                               d[static_cast<size_t>(k)].text(), i[static_cast<size_t>(k)].text()));
  }
  int64_t count = i.back().value();
  if (count < 1 || batch + count > static_cast<int64_t>(d.size())) {
    return fault(fmt::format("indices of {} positions do not fit into {}", count, text(d)));
  }
  for (int64_t k = batch; k < batch + count; ++k) {
    if (d[static_cast<size_t>(k)] == Nat(0) && product(i) != Nat(0))
      return fault(fmt::format("dimension {} has no elements to gather from", k));
  }
  int depth = static_cast<int>(static_cast<int64_t>(i.size()) - batch) - 1;
  return one(map_zip_at(batch, {data, indices}, [&](const std::vector<Expr>& p) {
    return map_at(
        depth, [&](Expr positions) { return at_positions(p[0], positions, count); }, p[1]);
  }));
}

// ---- Scatters ------------------------------------------------------------------------------------------------------

// The effect of an update on the old element: it replaces it, or the two are combined.
Result<std::optional<Function>> combination(const OperatorContext& c) {
  HOIST_TRY(std::string name, choice_attribute(c, "reduction", "none", {"none", "add", "mul", "max", "min"}));
  std::optional<Function> out;
  if (name == "add") out = Function::add;
  if (name == "mul") out = Function::multiply;
  if (name == "max") out = Function::maximum;
  if (name == "min") out = Function::minimum;
  if (out && element_of(c.inputs[0]) == Scalar::boolean) return fault("reductions of bools are not supported");
  return out;
}

// row : [n]T, positions : [m]I from 0, updates : [m]T, where T may be an array. Scatters are materialised, so that a
// kernel writes at the positions instead of testing all updates for each element. Combining works on one scalar after
// the other, in adjacent columns of rows.
Expr scattered(Expr row, Expr positions, Expr updates, const std::optional<Function>& combine) {
  if (!combine) return scatter(positions, updates, row);
  if (rank_of(row) == 1) return combined_at(*combine, positions, updates, row);
  const Shape shape = extents(row);
  const int64_t inner = product(Shape(shape.begin() + 1, shape.end()));
  const auto columns = [&](Expr rows) { return transpose({1, 0}, reshape(rows, {extents(rows)[0], inner})); };
  const Expr all = map_zip({columns(row), columns(updates)},
                           [&](const std::vector<Expr>& p) { return combined_at(*combine, positions, p[1], p[0]); });
  return reshape(transpose({1, 0}, all), shape);
}

// Negative positions count from the end; scatter drops positions that remain out of range.
Expr from_start(Expr i, int64_t n) { return choose(Number(i) < 0.0, Number(i) + static_cast<double>(n), i).e; }

Lowered lower_scatter_elements(const OperatorContext& c) {
  Expr data = c.inputs[0], indices = c.inputs[1], updates = c.inputs[2];
  HOIST_TRY_VOID(check_positions(c, 1));
  if (element_of(updates) != element_of(data)) return fault("data and updates have different element types");
  HOIST_TRY(auto combine, combination(c));
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 0));
  int64_t rank = rank_of(data);
  HOIST_TRY(int64_t axis, normalise_axis(named, rank));
  HOIST_TRY_VOID(check_elements(data, indices, axis));
  if (extents(indices) != extents(updates)) {
    return fault(fmt::format("indices {} and updates {} differ", text(extents(indices)), text(extents(updates))));
  }
  int64_t n = extents(data)[static_cast<size_t>(axis)];
  Shape permutation = with_last({axis}, rank);
  data = permute(permutation, data), updates = permute(permutation, updates);
  indices = map_at(
      static_cast<int>(rank), [&](Expr i) { return from_start(i, n); }, permute(permutation, indices));
  // Rows that the indices do not reach get positions outside, which have no effect.
  for (int64_t k = 0; k < rank - 1; ++k) {
    int64_t more = extents(data)[static_cast<size_t>(k)] - extents(indices)[static_cast<size_t>(k)];
    if (more == 0) continue;
    indices = map_at(
        static_cast<int>(k), [&](Expr r) { return pad_with(0, more, literal_integer(element_of(indices), -1), r); },
        indices);
    updates = map_at(
        static_cast<int>(k), [&](Expr r) { return pad_with(0, more, zero(element_of(updates)), r); }, updates);
  }
  Expr result = map_zip_at(rank - 1, {data, indices, updates},
                           [&](const std::vector<Expr>& p) { return scattered(p[0], p[1], p[2], combine); });
  return one(in_memory(permute(inverse(permutation), result)));
}

Lowered lower_scatter_nd(const OperatorContext& c) {
  Expr data = c.inputs[0], indices = c.inputs[1], updates = c.inputs[2];
  HOIST_TRY_VOID(check_positions(c, 1));
  if (element_of(updates) != element_of(data)) return fault("data and updates have different element types");
  HOIST_TRY(auto combine, combination(c));
  Shape d = extents(data), i = extents(indices), u = extents(updates);
  int64_t count = i.empty() ? 0 : i.back();
  if (count < 1 || count > static_cast<int64_t>(d.size()))
    return fault(fmt::format("indices {} do not fit into {}", text(i), text(d)));
  Shape lead(i.begin(), i.end() - 1), inner(d.begin() + count, d.end()), outer(d.begin(), d.begin() + count);
  Shape wanted = lead;
  wanted.insert(wanted.end(), inner.begin(), inner.end());
  if (u != wanted) return fault(fmt::format("updates are {}, expected {}", text(u), text(wanted)));
  if (product(d) == 0) return one(data);
  Shape flat_data = inner, flat_updates = inner;
  flat_data.insert(flat_data.begin(), product(outer));
  flat_updates.insert(flat_updates.begin(), product(lead));
  Scalar at = element_of(indices);
  // A row of positions becomes one position in the flattened outer dimensions, or -1 if any lies outside.
  Expr positions = map(
      [&](Expr p) {
        Number place = literal_integer(at, 0);
        Number inside = literal_integer(Scalar::boolean, 1);
        for (int64_t k = 0; k < count; ++k) {
          auto n = static_cast<double>(outer[static_cast<size_t>(k)]);
          Number own = from_start(at_position(k, p), outer[static_cast<size_t>(k)]);
          inside = inside & (own >= 0.0) & (own < n);
          place = place * n + own;
        }
        return choose(inside, place, -1.0).e;
      },
      reshape(indices, {product(lead), count}));
  Expr result = scattered(reshape(data, flat_data), positions, reshape(updates, flat_updates), combine);
  return one(in_memory(reshape(result, d)));
}

// ---- Others --------------------------------------------------------------------------------------------------------

Lowered lower_one_hot(const OperatorContext& c) {
  Expr indices = c.inputs[0], values = c.inputs[2];
  HOIST_TRY(const Tensor depth_value, constant_input(c, 1, "depth"));
  if (depth_value.size() != 1) return fault("depth has to be one number");
  int64_t depth =
      is_float(depth_value.scalar()) ? static_cast<int64_t>(depth_value.float_at(0)) : depth_value.integer_at(0);
  if (depth < 1) return fault(fmt::format("depth is {}, expected at least 1", depth));
  if (extents(values) != Shape{2}) return fault(fmt::format("values is {}, expected [2]", text(extents(values))));
  int64_t rank = rank_of(indices);
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", -1));
  HOIST_TRY(int64_t axis, normalise_axis(named, rank + 1));
  Shape shape = extents(indices);
  shape.push_back(depth);
  HOIST_TRY_VOID(check_extents(shape));
  Expr off = at_position(0, values), on = at_position(1, values);
  Expr hot = map_at(
      static_cast<int>(rank),
      [&](Expr i) {
        Number place = from_start(convert(Scalar::i64, i), depth);
        return map([&](Expr k) { return select((place == k).e, on, off); }, iota(depth, Scalar::i64));
      },
      indices);
  Shape permutation;  // the new dimension moves from the end to the axis
  for (int64_t k = 0; k < rank; ++k) permutation.push_back(k);
  permutation.insert(permutation.begin() + axis, rank);
  return one(permute(permutation, hot));
}

Lowered lower_reverse_sequence(const OperatorContext& c) {
  Expr x = c.inputs[0], lengths = c.inputs[1];
  HOIST_TRY(int64_t batch, integer_attribute(c, "batch_axis", 1));
  HOIST_TRY(int64_t time, integer_attribute(c, "time_axis", 0));
  Shape shape = extents(x);
  if (shape.size() < 2 || batch + time != 1 || batch < 0 || batch > 1)
    return fault("batch_axis and time_axis have to be 0 and 1");
  if (extents(lengths) != Shape{shape[static_cast<size_t>(batch)]} || element_of(lengths) != Scalar::i64) {
    return fault(fmt::format("sequence_lens has to be [{}]i64, found {}", shape[static_cast<size_t>(batch)],
                             text(extents(lengths))));
  }
  int64_t n = shape[static_cast<size_t>(time)];
  Expr rows = batch == 0 ? x : transpose(x);
  Expr reversed = map_zip({rows, lengths}, [&](const std::vector<Expr>& p) {
    return map(
        [&](Expr t) {
          Number place = choose(Number(t) < p[1], Number(p[1]) - 1.0 - t, t);
          return index(clamped_position(place.e, n), p[0]);
        },
        iota(n, Scalar::i64));
  });
  return one(batch == 0 ? reversed : transpose(reversed));
}

// ---- Caches and unpooling ------------------------------------------------------------------------------------------

Lowered lower_tensor_scatter(const OperatorContext& c) {
  Expr cache = c.inputs[0], update = c.inputs[1], starts = input(c, 2);
  const Shape shape = extents(cache), part = extents(update);
  if (element_of(update) != element_of(cache)) return fault("the cache and the update have different element types");
  HOIST_TRY(std::string mode, choice_attribute(c, "mode", "linear", {"linear", "circular"}));
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", -2));
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(cache)));
  if (axis == 0) return fault("axis 0 is the batch");
  Shape wanted = shape;
  if (part.size() == shape.size()) wanted[static_cast<size_t>(axis)] = part[static_cast<size_t>(axis)];
  if (part != wanted || part[static_cast<size_t>(axis)] > shape[static_cast<size_t>(axis)])
    return fault(
        fmt::format("the update {} does not fit into the cache {} along axis {}", text(part), text(shape), axis));
  const int64_t n = shape[static_cast<size_t>(axis)], m = part[static_cast<size_t>(axis)];
  if (m == 0) return one(cache);
  if (starts == nullptr) starts = repeat(shape[0], literal_integer(Scalar::i64, 0));
  if (extents(starts) != Shape{shape[0]} || element_of(starts) != Scalar::i64)
    return fault(fmt::format("write_indices has to be [{}]i64, found {}", shape[0], text(extents(starts))));
  const auto whole = static_cast<double>(n);
  return one(map_zip({cache, update, starts}, [&](const std::vector<Expr>& b) {
    return map_zip_at(axis - 1, {b[0], b[1]}, [&](const std::vector<Expr>& rows) {
      return map_zip({rows[0], iota(n, Scalar::i64)}, [&](const std::vector<Expr>& p) {
        Number from = Number(p[1]) - b[2];
        if (mode == "circular") from = apply(Function::modulo, from, whole);
        const Number written = (from >= 0.0) & (from < static_cast<double>(m));
        return map_zip_at(rank_of(p[0]), {p[0], index(clamped_position(max(from, 0.0).e, m), rows[1])},
                          [&](const std::vector<Expr>& q) { return choose(written, q[1], q[0]).e; });
      });
    });
  }));
}

// Writes elements to the positions at which a pooling found them; all other elements are 0. Positions are flat indices
// into the pooled array.
Lowered lower_max_unpool(const OperatorContext& c) {
  Expr x = c.inputs[0], positions = c.inputs[1];
  const Shape shape = extents(x);
  if (shape.size() < 3 || extents(positions) != shape)
    return fault(fmt::format("the input {} and the positions {} have to be [N][C] and spatial dimensions", text(shape),
                             text(extents(positions))));
  HOIST_TRY_VOID(check_positions(c, 1));
  const size_t dimensions = shape.size() - 2;
  HOIST_TRY(Shape kernel, integers_attribute(c, "kernel_shape", {}));
  HOIST_TRY(Shape strides, integers_attribute(c, "strides", Shape(dimensions, 1)));
  HOIST_TRY(Shape pads, integers_attribute(c, "pads", Shape(2 * dimensions, 0)));
  if (kernel.size() != dimensions || strides.size() != dimensions || pads.size() != 2 * dimensions)
    return fault(fmt::format("kernel_shape, strides and pads have to be for {} spatial dimensions", dimensions));
  Shape inner(shape.begin(), shape.begin() + 2);
  for (size_t i = 0; i < dimensions; ++i) {
    for (int64_t v : {kernel[i], strides[i], pads[i], pads[i + dimensions]}) {
      if (v < 0 || v > INT32_MAX) return fault(fmt::format("kernel_shape, strides or pads hold {}", v));
    }
    inner.push_back((shape[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + dimensions]);
  }
  HOIST_TRY_VOID(check_extents(inner));
  HOIST_TRY(auto wanted, integers_of(c, "output_shape", 2));
  Expr flat = scatter(flatten(positions), flatten(x), constant_like(element_of(x), {product(inner)}, 0));
  Expr result = in_memory(reshape(flat, inner));
  if (!wanted || wanted->empty()) return one(result);
  HOIST_TRY_VOID(check_extents(*wanted));
  bool fits = wanted->size() == inner.size();
  for (size_t i = 0; fits && i < inner.size(); ++i) fits = (*wanted)[i] >= inner[i];
  if (!fits) return fault(fmt::format("output_shape is {}, at least {} are needed", text(*wanted), text(inner)));
  for (size_t i = 0; i < inner.size(); ++i) {
    result = map_at(
        static_cast<int>(i), [&](Expr row) { return pad_with(0, (*wanted)[i] - inner[i], zero(element_of(x)), row); },
        result);
  }
  return one(result);
}

// The number of arrays whose sum fits in one kernel.
constexpr int64_t most_shifted = 32;

// windows : [k0][k1]...[w0][w1]... in a grid. The elements at one position of all windows form a shifted image.
Expr sum_of_shifted(Expr windows, const Shape& image, const Shape& block, const Shape& dilations, const Shape& pads) {
  const size_t dimensions = image.size();
  const Scalar scalar = element_of(windows), wide = is_float(scalar) ? wide_float(scalar) : scalar;
  std::vector<Expr> images;
  const std::function<void(Expr, size_t)> collect = [&](Expr left, size_t i) {
    if (i == dimensions) {
      images.push_back(left);
      return;
    }
    for (int64_t k = 0; k < block[i]; ++k) {
      const int64_t start = pads[i] - k * dilations[i];
      collect(map_at(
                  static_cast<int>(dimensions - 1),
                  [&](Expr lines) {
                    const int64_t n = extents(lines)[0], before = std::max<int64_t>(0, -start),
                                  after = std::max<int64_t>(0, start + image[i] - n);
                    return slice(std::max<int64_t>(0, start), image[i], pad_with(before, after, zero(scalar), lines));
                  },
                  at_position(k, left)),
              i + 1);
    }
  };
  collect(windows, 0);
  const std::function<Expr(const std::vector<Expr>&, size_t)> added = [&](const std::vector<Expr>& all, size_t depth) {
    if (depth < dimensions)
      return map_zip(all, [&](const std::vector<Expr>& inner) { return added(inner, depth + 1); });
    Number sum = convert(wide, all[0]);
    for (size_t i = 1; i < all.size(); ++i) sum = sum + convert(wide, all[i]);
    return convert(scalar, sum.e);
  };
  return added(images, 0);
}

// The sum, at each element of the image, of all windows that contain it. Along each spatial dimension a table states,
// for each position of the kernel, the window that contains the element, or none, which is a zero after the last.
Lowered lower_col2im(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(Shape image, constant_integers(c, 1, "image_shape"));
  HOIST_TRY(Shape block, constant_integers(c, 2, "block_shape"));
  const size_t dimensions = image.size();
  HOIST_TRY(Shape strides, integers_attribute(c, "strides", Shape(dimensions, 1)));
  HOIST_TRY(Shape dilations, integers_attribute(c, "dilations", Shape(dimensions, 1)));
  HOIST_TRY(Shape pads, integers_attribute(c, "pads", Shape(2 * dimensions, 0)));
  const Shape shape = extents(x);
  if (dimensions < 1 || dimensions > 4 || block.size() != dimensions || strides.size() != dimensions ||
      dilations.size() != dimensions || pads.size() != 2 * dimensions)
    return fault(
        fmt::format("image_shape {}, block_shape {}, strides, dilations and pads have to be for 1 to 4 dimensions",
                    text(image), text(block)));
  if (shape.size() != 3) return fault(fmt::format("the input is {}, expected [N][C and window][windows]", text(shape)));
  Shape windows;
  for (size_t i = 0; i < dimensions; ++i) {
    for (int64_t v : {image[i], block[i], strides[i], dilations[i]}) {
      if (v < 1 || v > INT32_MAX) return fault(fmt::format("an extent or a stride is {}", v));
    }
    if (pads[i] < 0 || pads[i + dimensions] < 0 || pads[i] > INT32_MAX || pads[i + dimensions] > INT32_MAX)
      return fault(fmt::format("pads are {}", text(pads)));
    const int64_t room = image[i] + pads[i] + pads[i + dimensions] - (block[i] - 1) * dilations[i] - 1;
    if (room < 0) return fault(fmt::format("the window {} does not fit into the image {}", text(block), text(image)));
    windows.push_back(room / strides[i] + 1);
    if (image[i] > most_table_entries / block[i])
      return fault(
          fmt::format("an image of {} with windows of {} needs a table that is too large", text(image), text(block)));
  }
  HOIST_TRY_VOID(check_extents(image));
  HOIST_TRY_VOID(check_extents(block));
  if (shape[1] % product(block) != 0 || shape[2] != product(windows))
    return fault(fmt::format("the input is {}, expected a multiple of {} numbers in {} windows", text(shape),
                             product(block), product(windows)));
  // [N][C][k0][k1]...[w0][w1]... to [N][C][k0][w0][k1][w1]..., with a zero after the windows.
  Shape full = {shape[0], shape[1] / product(block)}, permutation = {0, 1};
  full.insert(full.end(), block.begin(), block.end());
  full.insert(full.end(), windows.begin(), windows.end());
  if (product(strides) == 1 && product(block) <= most_shifted) {
    return one(map_at(
        2, [&](Expr channel) { return sum_of_shifted(channel, image, block, dilations, pads); }, reshape(x, full)));
  }
  for (size_t i = 0; i < dimensions; ++i) {
    permutation.push_back(static_cast<int64_t>(2 + i));
    permutation.push_back(static_cast<int64_t>(2 + dimensions + i));
  }
  Expr taps = permute(permutation, reshape(x, full));
  std::vector<Expr> tables;
  for (size_t i = 0; i < dimensions; ++i) {
    taps = map_at(
        static_cast<int>(3 + 2 * i), [&](Expr row) { return pad_with(0, 1, zero(element_of(x)), row); }, taps);
    Shape from;
    for (int64_t p = 0; p < image[i]; ++p) {
      for (int64_t k = 0; k < block[i]; ++k) {
        const int64_t start = p + pads[i] - k * dilations[i];
        const bool there = start >= 0 && start % strides[i] == 0 && start / strides[i] < windows[i];
        from.push_back(there ? start / strides[i] : windows[i]);
      }
    }
    tables.push_back(constant(Tensor::of(Scalar::i64, {image[i], block[i]}, from)));
  }
  // The remaining dimensions of [k0][w0][k1][w1]... after an index along each pair.
  const std::function<Expr(Expr, size_t)> image_of = [&](Expr left, size_t i) -> Expr {
    if (i == dimensions) return sum(flatten(left));
    return map(
        [&](Expr starts) {
          Expr met = map_at(
              static_cast<int>(i),
              [&](Expr kernel) {
                return map_zip({kernel, starts}, [&](const std::vector<Expr>& p) { return index(p[1], p[0]); });
              },
              left);
          return image_of(met, i + 1);
        },
        tables[i]);
  };
  return one(map_at(
      2, [&](Expr channel) { return image_of(channel, 0); }, taps));
}

// clang-format off
constexpr auto gather_rows = std::to_array<OperatorRow>({
  {"", "Gather", 1, 2, 2, Takes::anything, lower_gather,
   "the elements at positions along an axis; in C++, since positions come from data, known or not"},
  {"", "GatherElements", 11, 2, 2, Takes::anything, lower_gather_elements,
   "the element at the given position along an axis, for each place; in C++, since positions come from data, known or not"},
  {"", "GatherND", 11, 2, 2, Takes::anything, lower_gather_nd,
   "the elements at tuples of positions; in C++, since positions come from data, known or not"},
  {"", "ScatterElements", 11, 3, 3, Takes::anything, lower_scatter_elements,
   "updates written at, or combined into, positions along an axis; in C++, since positions come from data, known or not"},
  {"", "ScatterND", 11, 3, 3, Takes::anything, lower_scatter_nd,
   "updates written at, or combined into, tuples of positions; in C++, since positions come from data, known or not"},
  {"", "OneHot", 9, 3, 3, Takes::numbers, lower_one_hot,
   "on if the position is the index, off elsewhere; in C++, since the value of an input decides the shape", -2, 2, "1 depth"},
  {"", "TensorScatter", 24, 2, 3, Takes::anything, lower_tensor_scatter,
   "a cache with an update from a position on; in C++, since positions come from data"},
  {"", "MaxUnpool", 9, 2, 3, Takes::floats, lower_max_unpool,
   "elements written to the positions at which a pooling found them; in C++, since positions come from data", -2, 2, "2 output_shape"},
  {"", "Col2Im", 18, 3, 3, Takes::numbers, lower_col2im,
   "sums of windows at their places in an image; in C++, since any number of dimensions have a table each",
   -2, 2, "1 image_shape, 2 block_shape"},
  {"", "ReverseSequence", 10, 2, 2, Takes::anything, lower_reverse_sequence,
   "the first elements of each sequence reversed; in C++, since positions come from data"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> gather_operators() { return gather_rows; }

}  // namespace hoist::operators
