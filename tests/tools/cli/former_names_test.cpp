// Tests that commands accept former names of passes and rules, with a note.
#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "ir/base/temporary_folder.h"
#include "tests/tools/program.h"

namespace hoist::former_names_test {

using testing::HasSubstr;
using testing::Not;

TEST(FormerNamesOfCommands, WorkWithANote) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string program = (folder->path() / "net.lift").string();
  std::ofstream(program)
      << "program version 28\ninput %x : [4]f32\ndefine %y : [4]f32 = Relu(%x) from \"y\"\noutput %y\n";
  const Ran before = run_hoist({"rewrite", program, "--pass", "unfold"});
  const Ran now = run_hoist({"rewrite", program, "--pass", "inline-definitions"});
  ASSERT_EQ(before.code, 0) << before.err;
  EXPECT_EQ(before.out, now.out);
  EXPECT_THAT(before.err, HasSubstr("note: unfold is an old name: write inline-definitions"));
  EXPECT_THAT(now.err, Not(HasSubstr("old name")));
  const Ran shown = run_hoist({"rules", "softmax-kept"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(shown.out, run_hoist({"rules", "softmax-materialised"}).out);
  EXPECT_THAT(shown.err, HasSubstr("note: softmax-kept is an old name: write softmax-materialised"));
}

}  // namespace hoist::former_names_test
