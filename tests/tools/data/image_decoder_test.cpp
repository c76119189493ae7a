// Tests a model that decodes images, as a user compiles, runs and checks it: on devices, as native code and from C.
#include <gmock/gmock.h>

#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"

namespace hoist::image_decoder_test {

using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

const std::string corpus = std::string(HOIST_SOURCE_DIR) + "/tests/fuzz/corpus/";
const std::string model = corpus + "onnx_model/image.onnx";

class ImagesOfUsers : public InTemporaryFolder {
 protected:
  void compile(const std::string& name, const Texts& more = {}) {
    Texts words = {"compile", model, "-o", in(name)};
    words.insert(words.end(), more.begin(), more.end());
    const Ran compiled = run_hoist(words);
    ASSERT_EQ(compiled.code, 0) << compiled.err;
    EXPECT_THAT(compiled.out, HasSubstr("agree with the interpreter (every element)"));
  }
};

// Channel planes of blue, green and red: pixel (x, y) of the image is (32 x, 40 y, 18 (x + y)).
TEST_F(ImagesOfUsers, AreDecodedOnDevicesAndAsNativeCode) {
  for (const Texts& more : {Texts{}, Texts{"--target", "native"}}) {
    const std::string name = more.empty() ? "a.hoist" : "native.hoist", out = in(name + ".out");
    ASSERT_NO_FATAL_FAILURE(compile(name, more));
    for (const char* file : {"colours.png", "colours.webp", "colours.jp2", "packed.tif", "colours.bmp", "plain.ppm"}) {
      const Ran ran = run_hoist({"run", in(name), "--input", "data=" + corpus + "image/" + file, "--output-dir", out});
      ASSERT_EQ(ran.code, 0) << ran.err;
      const auto planes = read_npy(out + "/planes.npy");
      ASSERT_TRUE(planes.ok()) << planes.errors().front().text();
      EXPECT_EQ(planes->float_at(5 * 8 + 7), 18 * 12) << file;
      EXPECT_EQ(planes->float_at(48 + 5 * 8), 40 * 5) << file;
      EXPECT_EQ(planes->float_at(96 + 7), 32 * 7) << file;
    }
    const Ran refused = run_hoist({"run", in(name), "--input", "data=" + corpus + "image/bad_cut.jpg"});
    EXPECT_NE(refused.code, 0);
    EXPECT_THAT(refused.err, HasSubstr("decode, picture_decode: the stream of 1000 bytes ends before its JPEG image"));
    const Ran large = run_hoist({"run", in(name), "--input", "data=" + corpus + "image/bad_size.png"});
    EXPECT_THAT(large.err, HasSubstr("an image of 60000x60000 (width x height), and the model states 8x6"));
    const Ran verified = run_hoist({"verify", in(name)});
    EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
    const Ran derived = run_hoist({"verify", in(name), "--derivation", "--model", model});
    EXPECT_EQ(derived.code, 0) << derived.out << derived.err;
    EXPECT_EQ(run_hoist({"bench", in(name), "--seconds", "0.05"}).code, 0);
  }
}

TEST_F(ImagesOfUsers, AreDecodedByABundleAlone) {
  ASSERT_NO_FATAL_FAILURE(compile("a.hoist"));
  const auto makefile = read_file(in("a.hoist/Makefile"));
  ASSERT_TRUE(makefile.ok());
  EXPECT_THAT(*makefile, HasSubstr("-DHOIST_WITH_PICTURES $(shell pkg-config --cflags libjpeg libpng libtiff-4"));
  const Ran made = run_shell("make -s -C '" + in("a.hoist") + "' CFLAGS='-O1 -Wall -Wextra -Werror' example");
  ASSERT_EQ(made.code, 0) << made.err;
  const Ran ran = run_shell("'" + in("a.hoist/example") + "' --runs 2");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  const Ran verified = run_shell("'" + in("a.hoist/example") + "' --verify");
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("computed on the host"));
}

TEST_F(ImagesOfUsers, OfAStreamThatIsTooLongAreRefused) {
  ASSERT_NO_FATAL_FAILURE(compile("a.hoist"));
  ASSERT_TRUE(write_file(in("long.png"), std::string(1001, 'x')).ok());
  const Ran ran = run_hoist({"run", in("a.hoist"), "--input", "data=" + in("long.png")});
  EXPECT_NE(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("has 1001 bytes, and input data takes 1000"));
}

}  // namespace hoist::image_decoder_test
