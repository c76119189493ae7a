// How many lanes the vectors of elementwise kernels have on CPUs.
#include <gmock/gmock.h>

#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/lower.h"
#include "tests/lowering/stored_run.h"

namespace hoist {
namespace {

using testing::HasSubstr;

LoweredModel lowered(const std::string& from, const std::string& to, const std::string& call, int64_t vector_width) {
  auto program = parse_program("program version 21\ninput %x : [6][48]" + from + "\ndefine %y : [6][48]" + to + " = " +
                               call + " from \"layer\"\noutput %y\n");
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  Profile profile;
  profile.vector_width = vector_width;
  auto model = lower_model(std::move(*program), {}, profile);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return std::move(*model);
}

TEST(CpuVectors, NarrowIntegersFillARegister) {
  struct Case {
    std::string from, to, call;
    int64_t vector_width, lanes;
  };
  for (const Case& c : {Case{"u8", "u8", "Add(%x, %x)", 8, 16}, Case{"i16", "i16", "Add(%x, %x)", 8, 16},
                        Case{"bool", "bool", "Not(%x)", 4, 16}, Case{"i16", "i16", "Add(%x, %x)", 4, 8},
                        Case{"u8", "u8", "Add(%x, %x)", 16, 16}, Case{"i32", "i32", "Add(%x, %x)", 8, 8},
                        // Computed as f32, and vectors of the wider of two types.
                        Case{"f16", "f16", "Add(%x, %x)", 8, 8}, Case{"u8", "f32", "Cast(%x; to = 1)", 8, 8}}) {
    const LoweredModel model = lowered(c.from, c.to, c.call, c.vector_width);
    EXPECT_THAT(print(model.groups[0].low), HasSubstr("split " + std::to_string(c.lanes) + " >> map seq (map vec"))
        << c.from << " " << c.call;
    Tensor x(*scalar_named(c.from), {6, 48});
    for (int64_t i = 0; i < x.size(); ++i) {
      if (is_float(x.scalar()))
        x.set_float(i, static_cast<double>(i % 7));
      else
        x.set_integer(i, i % (c.from == "bool" ? 2 : 100));
    }
    const Tensor y = outputs_of(model, {{"x", x}}).at("y");
    for (int64_t i = 0; i < x.size(); ++i) {
      const double given = is_float(x.scalar()) ? x.float_at(i) : static_cast<double>(x.integer_at(i));
      const double found = is_float(y.scalar()) ? y.float_at(i) : static_cast<double>(y.integer_at(i));
      const double wanted = c.call.starts_with("Add") ? 2 * given : c.call.starts_with("Not") ? 1 - given : given;
      ASSERT_EQ(found, wanted) << c.from << " " << c.call << " at " << i;
    }
  }
}

}  // namespace
}  // namespace hoist
