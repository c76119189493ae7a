// The properties of an operator call apart from its operands: the ONNX operator, its version, the number of results,
// and attributes. A call is a node of the language (Pattern::operator_call) whose children are the operands that are
// present; the operator's definition (operators/operators.h) gives its type and its value. Immutable and shared by
// nodes.
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

/// An attribute that is a program: the body of If, Loop or Scan. Bodies are compared by their programs.
struct Body {
  std::shared_ptr<const Program> program;
  bool operator==(const Body& other) const;
};

/// The value of an attribute, as in ONNX.
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, Tensor, Body>;
using Attributes = std::map<std::string, Attribute>;

struct OperatorCall {
  std::string domain;             ///< "" is ai.onnx
  std::string name;               ///< ONNX op_type
  int64_t version = 0;            ///< the version of the domain that defines the meaning
  int64_t results = 1;            ///< a call with several results has a tuple as its value
  std::vector<int64_t> operands;  ///< the operand position of each child; omitted operands have no child
  Attributes attributes;

  bool operator==(const OperatorCall& other) const = default;
  uint64_t hash() const;
};

/// The default version of ai.onnx.
inline constexpr int64_t newest_version = 28;

/// True if an attribute is a program.
bool has_body(const OperatorCall& call);

/// "Conv", "com.microsoft.Gelu"
std::string full_name(const std::string& domain, const std::string& name);
std::string full_name(const OperatorCall& call);

}  // namespace hoist
