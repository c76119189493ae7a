// Which operators hoist covers, and how: the rows of its table beside the operators of the standard, with the ONNX
// project's own cases that pass. `hoist operators` prints it, and ir/operators/COVERAGE.md is the same as a page.
#pragma once

#include <string>
#include <vector>

namespace hoist {

enum class Covered : uint8_t {
  text,         ///< a definition in the language
  function,     ///< a definition that a C++ function builds
  composition,  ///< a function of other operators, the standard's own or hoist's
  constant,     ///< a value at compile time
  replaced,     ///< read as the operator that took its place in the standard
  none,
};
std::string_view name_of(Covered how);

struct CoveredOperator {
  std::string domain, name;   ///< the domain "ai.onnx" is ""
  std::vector<int> versions;  ///< of the standard, each with a definition of its own; empty where it is none of its
  std::string types;          ///< of the first input: "floats", "numbers", ...
  Covered how = Covered::none;
  int cases = 0, passing = 0;  ///< of the ONNX backend tests, those with a layer of it; passing as bundles on PoCL
};

/// By domain and name: what the standard has, and what hoist has besides.
std::vector<CoveredOperator> operator_coverage();

/// The page, in Markdown.
std::string coverage_page(const std::vector<CoveredOperator>& operators);

}  // namespace hoist
