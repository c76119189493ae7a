#include "tools/driver/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "frontend/frontend.h"
#include "ir/operators/operators.h"
#include "ir/text/counted.h"

namespace hoist {
namespace {

// The ONNX backend tests, by the operator that they test.
struct OperatorCases {
  const char *domain, *name;
  int cases, passing;
};
constexpr OperatorCases operator_cases[] = {
#include "tools/driver/operator_cases.inc"
};

// The types that a row accepts, in hoist's terms.
std::string types_of(const StandardOperator& operation) {
  const auto any = [&](const char* part) {
    return std::any_of(operation.types.begin(), operation.types.end(),
                       [&](const std::string& type) { return type.find(part) != std::string::npos; });
  };
  const bool floats = any("float)"), integers = any("tensor(int"), booleans = any("bool"), texts = any("string");
  std::string out = floats && integers && booleans ? "anything"
                    : floats && integers           ? "numbers"
                    : floats                       ? "floats"
                    : integers                     ? "integers"
                    : booleans                     ? "booleans"
                                                   : "";
  if (texts && !floats) out += out.empty() ? "strings" : ", strings";
  if (any("seq(")) out += out.empty() ? "sequences" : ", sequences";
  return out;
}

std::string versions_text(const std::vector<int>& versions) {
  std::string out;
  for (int version : versions) out += (out.empty() ? "" : " ") + std::to_string(version);
  return out;
}

std::string cases_text(const CoveredOperator& operation) {
  if (operation.cases == 0) return "";
  return operation.passing == operation.cases ? std::to_string(operation.cases)
                                              : fmt::format("{} of {}", operation.passing, operation.cases);
}

std::string domain_title(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

}  // namespace

std::string_view name_of(Covered how) {
  switch (how) {
    case Covered::text:
      return "text";
    case Covered::function:
      return "function";
    case Covered::composition:
      return "composition";
    case Covered::constant:
      return "constant";
    case Covered::replaced:
      return "replaced";
    case Covered::none:
      return "none";
  }
  return "";
}

std::vector<CoveredOperator> operator_coverage() {
  std::map<std::pair<std::string, std::string>, CoveredOperator> found;
  for (const StandardOperator& operation : standard_operators()) {
    CoveredOperator& out = found[{operation.domain, operation.name}];
    out.versions = operation.versions;
    out.types = types_of(operation);
    out.how = operation.becomes_another ? Covered::replaced
              : operation.is_constant   ? Covered::constant
              : operation.has_body      ? Covered::composition
                                        : Covered::none;
  }
  for (const OperatorRow& row : operator_table()) {
    CoveredOperator& out = found[{std::string(row.domain), std::string(row.name)}];
    out.types = name_of(row.takes);
    out.how = row.source != nullptr        ? Covered::text
              : row.composition != nullptr ? Covered::composition
                                           : Covered::function;
  }
  for (const OperatorCases& row : operator_cases) {
    const auto one = found.find({row.domain, row.name});
    if (one == found.end()) continue;
    one->second.cases = row.cases;
    one->second.passing = row.passing;
  }
  std::vector<CoveredOperator> out;
  for (auto& [key, operation] : found) {
    operation.domain = key.first;
    operation.name = key.second;
    out.push_back(std::move(operation));
  }
  return out;
}

std::string coverage_page(const std::vector<CoveredOperator>& operators) {
  std::string out =
      "# Operators that hoist covers\n"
      "Written by `hoist operators --page`; a test compares it with the tables of operators.\n\n"
      "*Versions* list the versions of the standard that changed the operator's definition; models of older versions "
      "are\n"
      "converted as they are read. *Types* are the types of the first input. *How* is the form of the definition: a "
      "text in the\n"
      "language, a C++ function, a composition of other operators, a constant, or the operator that has replaced it. "
      "*Cases* is\n"
      "the number of the ONNX project's backend tests with a layer of the operator that pass as bundles on PoCL.\n";
  std::string domain = "?";
  for (const CoveredOperator& operation : operators) {
    if (operation.domain != domain) {
      domain = operation.domain;
      size_t all = 0, covered = 0;
      for (const CoveredOperator& other : operators) {
        if (other.domain != domain) continue;
        ++all;
        covered += other.how != Covered::none ? 1 : 0;
      }
      out += fmt::format("\n## {}\n{} of {}\n\n| operator | versions | types | how | cases |\n|---|---|---|---|---|\n",
                         domain_title(domain), covered, counted(all, "operator"));
    }
    out +=
        fmt::format("| {} | {} | {} | {} | {} |\n", operation.name, versions_text(operation.versions), operation.types,
                    operation.how == Covered::none ? "**none**" : name_of(operation.how), cases_text(operation));
  }
  return out;
}

}  // namespace hoist
