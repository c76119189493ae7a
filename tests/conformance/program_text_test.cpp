// Tests models as programs of operator calls: the text of each, with its constants in a folder, reads back as the same
// program.
#include "ir/text/program_text.h"

#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "ir/operators/operators.h"
#include "tests/conformance/archive.h"
#include "tests/conformance/runner.h"

namespace hoist::conformance {
namespace {

// Empty if the program's text reads back as the same program; else the difference.
std::string fault_of(const Program& program) {
  const std::string text = print_program(program);
  std::map<std::string, const Tensor*> by_hash;
  for (const auto& [name, tensor] : program.constants) by_hash[constant_hash(tensor)] = &tensor;
  auto read = parse_program(text, [&](const std::string&, const std::string& hash) -> std::optional<Tensor> {
    auto found = by_hash.find(hash);
    return found == by_hash.end() ? std::nullopt : std::optional(*found->second);
  });
  if (!read.ok()) return read.errors()[0].text() + "\n" + text.substr(0, 4000);
  return same_program(*read, program) ? "" : "another program\n" + text.substr(0, 4000);
}

TEST(ProgramText, OfModelsReadsBack) {
  const char* shared = std::getenv("HOIST_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
  ReadOptions options;
  options.has_operator = [](const std::string& domain, const std::string& name) {
    return find_operator(domain, name, INT64_MAX) != nullptr;
  };
  int models = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(shared) / "models")) {
    if (entry.path().extension() != ".onnx") continue;
    auto program = read_model(entry.path(), options);
    if (!program.ok()) continue;  // an operator that hoist does not cover
    EXPECT_EQ(fault_of(*program), "") << entry.path();
    ++models;
  }
  EXPECT_GT(models, 15);
}

TEST_F(OnnxCases, ProgramTextReadsBack) {
  int cases = 0, number = 0;
  for (const char* group : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    for (const fs::path& path : cases_in(folder_ / "data" / group)) {
      if (number++ % 4 != 0) continue;
      auto read = read_case(path);
      if (!read.ok()) continue;
      EXPECT_EQ(fault_of(read->program), "") << path.filename();
      ++cases;
    }
  }
  EXPECT_GT(cases, 250);
}

}  // namespace
}  // namespace hoist::conformance
