// What an operator call says beside its operands: the operator of ONNX, which meaning of it, how many results, and
// attributes. A call is a node of the language (Pattern::operator_call) whose children are the operands that are there;
// its type is that of its definition (operators/operators.h), its value that of the definition too. Immutable and
// shared by the nodes that have it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/language/tensor.h"

namespace hoist {

struct Program;

/// An attribute that is a program: the body of If, Loop or Scan. Equal bodies are equal programs.
struct Body {
  std::shared_ptr<const Program> program;
  bool operator==(const Body& other) const;
};

/// An attribute, as ONNX has them.
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, Tensor, Body>;
using Attributes = std::map<std::string, Attribute>;

struct OperatorCall {
  std::string domain;             ///< "" is ai.onnx
  std::string name;               ///< ONNX op_type
  int64_t version = 0;            ///< the version of the domain whose meaning counts
  int64_t results = 1;            ///< a call of several has a tuple as its value
  std::vector<int64_t> operands;  ///< for each child the place that it takes; places that are missing are left out
  Attributes attributes;

  bool operator==(const OperatorCall& other) const = default;
  uint64_t hash() const;
};

/// The version of ai.onnx that a call has unless it says otherwise.
inline constexpr int64_t newest_version = 28;

/// Whether an attribute is a program.
bool has_body(const OperatorCall& call);

/// "Conv", "com.microsoft.Gelu"
std::string full_name(const std::string& domain, const std::string& name);
std::string full_name(const OperatorCall& call);

}  // namespace hoist
