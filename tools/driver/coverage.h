// The operators that hoist covers: the rows of its table and the operators of the standard, with the number of the ONNX
// project's own test cases that pass. `hoist operators` prints them; ir/operators/COVERAGE.md is the same table as a
// page.
#pragma once

#include <string>
#include <vector>

namespace hoist {

enum class Covered : uint8_t {
  text,         ///< a definition in the language
  function,     ///< a definition that a C++ function builds
  composition,  ///< a function of other operators, the standard's own or hoist's
  constant,     ///< a value at compile time
  replaced,     ///< read as the operator that replaced it in the standard
  none,
};
std::string_view name_of(Covered how);

struct CoveredOperator {
  std::string domain, name;  ///< the domain "ai.onnx" is ""
  /// Versions of the standard with different definitions; empty if the operator is not in the standard.
  std::vector<int> versions;
  std::string types;  ///< of the first input: "floats", "numbers", ...
  Covered how = Covered::none;
  int cases = 0, passing = 0;  ///< the ONNX backend tests with a layer of it; the passing ones run as bundles on PoCL
};

/// The operators of the standard and hoist's own, by domain and name.
std::vector<CoveredOperator> operator_coverage();

/// The page, in Markdown.
std::string coverage_page(const std::vector<CoveredOperator>& operators);

}  // namespace hoist
