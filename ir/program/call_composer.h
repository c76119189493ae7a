// The interface through which compositions of operators access a call and the program under construction
// (composition.h, dynamic_extents.h). Only for ir/program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/operators/operators.h"
#include "ir/program/program_builder.h"

namespace hoist {

class ProgramBuilder::CallComposer : public ExtentComposer {
 public:
  CallComposer(ProgramBuilder& builder, const NamedCall& named) : builder_(builder), named_(named) {}

  const NamedCall& call() const override { return named_; }
  int64_t version() const override { return builder_.program_.version; }
  bool has(size_t input) const override { return input < named_.inputs.size() && !named_.inputs[input].empty(); }
  const TensorList* list(size_t input) const override {
    const auto found = has(input) ? builder_.lists_.find(named_.inputs[input]) : builder_.lists_.end();
    return found == builder_.lists_.end() ? nullptr : &found->second;
  }
  Type type(const std::string& value) const override {
    const auto found = builder_.types_.find(value);
    return found == builder_.types_.end() ? scalar_type(Scalar::f32)
                                          : found->second;  // a placeholder for a result of a failed call
  }
  Result<const Tensor*> known(const std::string& value) override {
    const Tensor* none = nullptr;
    if (builder_.types_.count(value) == 0) return none;
    return builder_.known_value(value);
  }
  std::vector<std::string> add(const std::string& operation, Attributes attributes, std::vector<std::string> inputs,
                               size_t results) override {
    NamedCall call{next_name(operation), operation, "", std::move(attributes), std::move(inputs), {}};
    if (builder_.bounded_) call.absorbed = {named_.name};  // a part of the layer's computation
    for (size_t i = 0; i < results; ++i) call.outputs.push_back(builder_.names_.make(call.name));
    builder_.add_call(call);
    return call.outputs;
  }
  std::string constant(Tensor value) override {
    std::string name = builder_.names_.make(named_.name + "/number");
    builder_.add_constant(name, std::move(value));
    return name;
  }
  Result<std::vector<std::string>> gradients(const std::string& of, const std::vector<std::string>& values) override {
    return builder_.add_gradients(of, values);
  }
  void give(size_t result, const std::string& value) override {
    if (!wanted(result)) return;
    builder_.add_call({next_name("Identity"), "Identity", "", {}, {value}, {named_.outputs[result]}});
    if (const auto found = builder_.numbers_.find(value); found != builder_.numbers_.end())
      builder_.numbers_.emplace(named_.outputs[result], ShapeValues(found->second));
  }
  void give(size_t result, TensorList list) override {
    if (wanted(result)) builder_.lists_[named_.outputs[result]] = std::move(list);
  }

  std::map<int64_t, std::string> counts(const std::string& value) const override { return builder_.counts_of(value); }
  Result<std::optional<ShapeValues>> numbers(const std::string& value) override {
    constexpr int64_t most_numbers = 64;
    std::optional<ShapeValues> bounded;
    if (const auto found = builder_.numbers_.find(value); found != builder_.numbers_.end()) {
      bounded =
          found->second;  // used unless it is a constant: with a known iteration number, further values may be known
      if (std::all_of(bounded->begin(), bounded->end(), [](const ShapeValue& n) { return n.is_known(); }))
        return bounded;
    }
    const Type of = type(value);
    const Scalar scalar = leaf_of(of)->scalar;
    const std::vector<int64_t> shape = shape_of(of);
    if ((!is_integer(scalar) && scalar != Scalar::boolean) || shape.size() > 1 || element_count(shape) > most_numbers ||
        !counts(value).empty())
      return bounded;
    HOIST_TRY(const Tensor* tensor, known(value));
    if (tensor == nullptr) return bounded;
    ShapeValues out;
    for (const int64_t number : tensor->as_integers()) out.push_back({number, number});
    return std::optional(out);
  }
  void say_numbers(const std::string& value, const ShapeValues& numbers) override {
    builder_.numbers_[value] = numbers;
  }
  NumberRange range(const std::string& value) override { return builder_.range_of_value(value); }
  std::optional<NamedCall> maker(const std::string& value) const override { return builder_.maker_of(value); }
  std::vector<std::string> add_bounded(const std::string& operation, Attributes attributes,
                                       std::vector<std::string> inputs, size_t results) override {
    const bool before = std::exchange(builder_.bounded_, true);
    std::vector<std::string> out = add(operation, std::move(attributes), std::move(inputs), results);
    builder_.bounded_ = before;
    return out;
  }
  std::string once(const std::string& key, const std::function<std::string()>& make) override {
    if (const auto found = builder_.made_once_.find(key); found != builder_.made_once_.end()) return found->second;
    std::string made = make();
    return builder_.made_once_[key] = made;
  }
  void give(size_t result, const std::string& value, const ShapeValues& extents) override {
    if (!wanted(result) || builder_.failed_.count(value) != 0) return;
    std::string given = value;
    std::map<int64_t, std::string> counts;
    for (size_t d = 0; d < extents.size(); ++d) {
      if (!extents[d].is_known()) {
        counts[static_cast<int64_t>(d)] = extents[d].value;
      } else if (extents[d].low < shape_of(type(given))[d]) {
        given = slice_capacity(*this, given, d, 0, extents[d].low);
      }
    }
    const bool before = std::exchange(builder_.bounded_, true);
    give(result, given);
    builder_.bounded_ = before;
    if (counts.empty() || builder_.failed_.count(named_.outputs[result]) != 0) return;
    builder_.counts_[named_.outputs[result]] = std::move(counts);
    if (auto cut = builder_.cut_known(named_.outputs[result]); !cut.ok())
      builder_.problems_.insert(builder_.problems_.end(), cut.errors().begin(), cut.errors().end());
  }

 private:
  bool wanted(size_t result) const { return result < named_.outputs.size() && !named_.outputs[result].empty(); }
  std::string next_name(const std::string& operation) {
    return fmt::format("{}/{}_{}", named_.name, operation, added_++);
  }

  ProgramBuilder& builder_;
  const NamedCall& named_;
  int added_ = 0;
};

}  // namespace hoist
