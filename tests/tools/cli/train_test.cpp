// Tests hoist train with the command line: accuracy, the written file, checkpoints to the same bits, and errors.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/frontend.h"
#include "frontend/replace_weights.h"
#include "ir/base/seeded.h"
#include "tests/tools/data/npz_file.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"

namespace hoist::train_test {

using testing::HasSubstr;
using testing::Not;

const std::string models = HOIST_SOURCE_DIR "/models/";
const std::string model = models + "digits_fully_connected.onnx", data = models + "digits_fully_connected_test.npz";

class TrainCommand : public InTemporaryFolder {
 protected:
  Ran train(std::vector<std::string> more, const std::string& of = model, const std::string& from = data) const {
    std::vector<std::string> all = {"train", of, "--data", from, "--force"};
    all.insert(all.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "-o") == more.end()) all.insert(all.end(), {"-o", in("out.onnx")});
    return run_hoist(all);
  }
  nlohmann::json answer(std::vector<std::string> more, const std::string& of = model) const {
    more.insert(more.end(), {"--json", in("answer.json")});
    const Ran ran = train(std::move(more), of);
    EXPECT_EQ(ran.code, 0) << ran.err;
    const auto text = read_file(in("answer.json"));
    return text.ok() ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  }
};

TEST_F(TrainCommand, LearnsFromTheBeginning) {
  const nlohmann::json found = answer({"--initialise", "he", "--epochs", "30", "--learning-rate", "0.005", "--schedule",
                                       "cosine", "--validation", "0.2"});
  EXPECT_EQ(found["epochs"].size(), 30);
  EXPECT_EQ(found["steps"], 30 * 12);
  EXPECT_GT(found["best"]["right"], 0.9);
  // The file is the model with other values of the same size.
  const auto before = read_file(model), after = read_file(in("out.onnx"));
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(before->size(), after->size());
  EXPECT_NE(*before, *after);
  EXPECT_EQ(*float_initialisers(model), *float_initialisers(in("out.onnx")));
  // The compiled file has that accuracy on the data.
  ASSERT_EQ(run_hoist({"compile", in("out.onnx"), "--target", "native", "-o", in("out.hoist")}).code, 0);
  const Ran judged = run_hoist({"evaluate", in("out.hoist"), "--data", data});
  EXPECT_THAT(judged.out, HasSubstr("top1: 4"));
}

TEST_F(TrainCommand, TrainsNormalisationAndAttention) {
  for (const std::string name : {"digits_residual", "digits_attention"}) {
    const std::string samples = models + name + "_test.npz";
    const Ran ran = run_hoist({"train", models + name + ".onnx", "--data", samples, "--initialise", "glorot",
                               "--epochs", "6", "--batch", "25", "--learning-rate", "0.01", "--validation", "0.2", "-o",
                               in(name + ".onnx"), "--json", in("answer.json")});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("agree with the interpreter"));
    const auto found = nlohmann::json::parse(*read_file(in("answer.json")));
    EXPECT_GT(found["best"]["right"], 0.8) << name;
  }
}

TEST_F(TrainCommand, LearnsFromTheModelItself) {
  const nlohmann::json found =
      answer({"--distill", "--initialise", "he", "--epochs", "30", "--learning-rate", "0.005", "--validation", "0.2"});
  EXPECT_GT(found["best"]["right"], 0.9);
}

TEST_F(TrainCommand, LearnsTheAttentionOfTheModel) {
  const nlohmann::json found = answer({"--distill", "--loss", "attention-transfer", "--initialise", "he", "--epochs",
                                       "12", "--batch", "25", "--learning-rate", "0.005", "--validation", "0.2"},
                                      models + "digits_residual.onnx");
  EXPECT_GT(found["best"]["right"], 0.8);
  EXPECT_LT(found["epochs"].back()["loss"], found["epochs"].front()["loss"]);
}

TEST_F(TrainCommand, LearnsFromGradientsOfFewBits) {
  for (const std::string format : {"i8", "i4", "i4-feedback"}) {
    const nlohmann::json found =
        answer({"--initialise", "he", "--epochs", "30", "--learning-rate", "0.005", "--schedule", "cosine",
                "--accumulate", "2", "--gradients", format, "--validation", "0.2"});
    EXPECT_GT(found["best"]["right"], 0.9) << format;
  }
  EXPECT_EQ(train({"--gradients", "i3"}).code, 2);
}

TEST_F(TrainCommand, ResumesToTheSameBits) {
  const std::vector<std::string> shared = {"--initialise", "he", "--validation", "0.2", "--optimiser", "adamw",
                                           "--clip",       "1",  "--accumulate", "2",   "--schedule",  "cosine",
                                           "--seed",       "3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), shared.begin(), shared.end());
    return more;
  };
  ASSERT_EQ(train(with({"--epochs", "6", "-o", in("whole.onnx")})).code, 0);
  std::ofstream(in("rates")) << "0 0.001\n";
  ASSERT_EQ(train(with({"--epochs", "6", "--checkpoint", in("kept"), "-o", in("kept.onnx")})).code, 0);
  EXPECT_EQ(*read_file(in("whole.onnx")), *read_file(in("kept.onnx")));
  // A break after three epochs, with a schedule that does not depend on their number.
  const auto constant = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--initialise", "he", "--validation", "0.2", "--schedule", in("rates")});
    return more;
  };
  ASSERT_EQ(train(constant({"--epochs", "6", "-o", in("a.onnx")})).code, 0);
  ASSERT_EQ(train(constant({"--epochs", "3", "--checkpoint", in("c"), "-o", in("b.onnx")})).code, 0);
  EXPECT_NE(*read_file(in("a.onnx")), *read_file(in("b.onnx")));
  Ran ran = train(constant({"--epochs", "6", "--checkpoint", in("c")}));
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("holds a checkpoint (--resume goes on after it)"));
  ASSERT_EQ(train(constant({"--epochs", "6", "--checkpoint", in("c"), "--resume", "-o", in("b.onnx")})).code, 0);
  EXPECT_EQ(*read_file(in("a.onnx")), *read_file(in("b.onnx")));
  EXPECT_EQ(files_below(in("c")).size(), 3);

  ran = train(constant({"--epochs", "7", "--checkpoint", in("c"), "--resume", "--seed", "2"}));
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("is of another training: seed was 1, and is 2"));
  std::ofstream(in("c/training.json")) << "{}";
  ran = train(constant({"--epochs", "7", "--checkpoint", in("c"), "--resume"}));
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("is damaged"));
  EXPECT_THAT(train({"--checkpoint", in("none"), "--resume"}).err, HasSubstr("holds no checkpoint"));
}

TEST_F(TrainCommand, PreconditionsGradients) {
  const nlohmann::json found = answer({"--initialise", "he", "--optimiser", "shampoo", "--learning-rate", "0.01",
                                       "--epochs", "10", "--validation", "0.2"});
  EXPECT_GT(found["best"]["right"], 0.9);
  // Roots are not in a checkpoint, and a break changes nothing: 12 steps of an epoch are no multiple of 10.
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--initialise", "he", "--validation", "0.2", "--optimiser", "shampoo:block=24,every=5",
                             "--learning-rate", "0.01"});
    return train(more).code;
  };
  ASSERT_EQ(with({"--epochs", "4", "-o", in("a.onnx")}), 0);
  ASSERT_EQ(with({"--epochs", "2", "--checkpoint", in("c"), "-o", in("b.onnx")}), 0);
  ASSERT_EQ(with({"--epochs", "4", "--checkpoint", in("c"), "--resume", "-o", in("b.onnx")}), 0);
  EXPECT_EQ(*read_file(in("a.onnx")), *read_file(in("b.onnx")));
  const Ran ran = train({"--optimiser", "shampoo:every=0.5"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("every is 0.5, and has to be an integer"));
}

// A learning rate that is far too small becomes a good one.
TEST_F(TrainCommand, FindsHyperParameters) {
  const std::vector<std::string> shared = {"--initialise", "he",      "--epochs", "12",           "--learning-rate",
                                           "0.00002",      "--batch", "8",        "--validation", "0.2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), shared.begin(), shared.end());
    return answer(more);
  };
  const nlohmann::json fixed = with({});
  const nlohmann::json found = with({"--auto", "lr,weight-decay,clip,label-smoothing"});
  const nlohmann::json last = found["epochs"].back()["found"];
  EXPECT_EQ(last.size(), 4);
  EXPECT_GT(last["lr"], 0.0001);
  EXPECT_LT(found["best"]["loss"], 0.8 * fixed["best"]["loss"].get<double>());
  // The same bits, also after a break.
  const std::vector<std::string> two = {"--auto", "lr,clip", "--validation", "0.2"};
  const auto again = [&](std::vector<std::string> more) {
    more.insert(more.end(), two.begin(), two.end());
    return train(more).code;
  };
  ASSERT_EQ(again({"--epochs", "4", "--weight-decay", "0.001", "-o", in("a.onnx")}), 0);
  ASSERT_EQ(again({"--epochs", "4", "-o", in("a.onnx")}), 0);
  ASSERT_EQ(again({"--epochs", "2", "--checkpoint", in("c"), "-o", in("b.onnx")}), 0);
  ASSERT_EQ(again({"--epochs", "4", "--checkpoint", in("c"), "--resume", "-o", in("b.onnx")}), 0);
  EXPECT_EQ(*read_file(in("a.onnx")), *read_file(in("b.onnx")));
}

TEST_F(TrainCommand, MinimisesATerm) {
  const Tensor images = seeded_tensor(Scalar::f32, {64, 1, 8, 8}, 1, 0, -1, 1);
  const auto file =
      data_file(folder_->path(), {{"image", images}, {"target", seeded_tensor(Scalar::f32, {64, 10}, 2, 0, -1, 1)}});
  const auto with = [&](const std::string& loss) {
    EXPECT_EQ(train({"--loss", loss, "--epochs", "3", "--initialise", "he", "--json", in("answer.json")}, model,
                    file.string())
                  .code,
              0);
    return *read_file(in("out.onnx"));
  };
  // The squares as a term have the gradients of mse.
  std::ofstream(in("squares.lift"))
      << "(zip(join output, join target)\n |> map (\\(p, q). (p - q) * (p - q)) |> reduce (+) 0) "
         "/ 320\n";
  EXPECT_EQ(with(in("squares.lift")), with("mse"));
  std::ofstream(in("array.lift")) << "join output";
  const Ran ran = train({"--loss", in("array.lift")}, model, file.string());
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("has a loss of type [320]f32, expected f32"));
}

TEST_F(TrainCommand, SmoothsLabels) {
  const nlohmann::json plain = answer({"--epochs", "5"}),
                       smoothed = answer({"--epochs", "5", "--label-smoothing", "0.2"});
  EXPECT_GT(smoothed["epochs"].back()["loss"], plain["epochs"].back()["loss"]);
  const Ran ran = train({"--loss", "mse", "--label-smoothing", "0.2"});
  EXPECT_NE(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("mse: has no labels that could be smoothed"));
}

TEST_F(TrainCommand, ChoosesTheBatch) {
  const Ran ran = train({"--batch", "auto", "--epochs", "1", "--json", in("answer.json")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(": the gradient's noise scale is "));
  const auto found = nlohmann::json::parse(*read_file(in("answer.json")));
  EXPECT_THAT(found["batch"].get<int64_t>(), testing::AnyOf(8, 32, 128));
  EXPECT_EQ(train({"--batch", "0"}).code, 2);
  EXPECT_THAT(train({"--batch", "many"}).err, HasSubstr("many is neither auto nor an integer from 1 to"));
}

// Two tasks on the same images: the trunk stays in one training, and moves in the other.
TEST_F(TrainCommand, TrainsHeads) {
  const std::string trunk = "relu2";
  std::ofstream(in("heads")) << "# tasks\none " << data << "\ntwo " << data << "\n";
  for (const bool is_frozen : {true, false}) {
    std::vector<std::string> words = {"train",        model,    "--heads",        in("heads"), "--trunk", trunk,
                                      "--epochs",     "3",      "--validation",   "0.2",       "--force", "-o",
                                      in("out.onnx"), "--json", in("answer.json")};
    if (is_frozen) words.push_back("--freeze-trunk");
    const Ran ran = run_hoist(words);
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto found = nlohmann::json::parse(*read_file(in("answer.json")));
    ASSERT_EQ(found["heads"].size(), 2);
    EXPECT_GT(found["heads"][1]["best"]["right"], 0.9);
    EXPECT_EQ(found["heads"][0]["weights"].size(), is_frozen ? 2 : 6);
    // Equal tasks have equal heads if they do not share a moving trunk.
    const auto one = read_file(in("out.one.onnx")), two = read_file(in("out.two.onnx"));
    EXPECT_EQ(*one == *two, is_frozen);
  }
  // A head on a frozen trunk is the training in which the other weights are frozen.
  ASSERT_EQ(train({"--epochs", "2", "--trunk", trunk, "--freeze-trunk", "-o", in("head.onnx")}).code, 0);
  ASSERT_EQ(train({"--epochs", "2", "--freeze", "dense*", "-o", in("frozen.onnx")}).code, 0);
  EXPECT_EQ(*read_file(in("head.onnx")), *read_file(in("frozen.onnx")));
  const auto refused = [&](std::vector<std::string> more, const std::string& text) {
    const Ran ran = train(std::move(more));
    EXPECT_NE(ran.code, 0);
    EXPECT_THAT(ran.err, HasSubstr(text));
  };
  refused({"--trunk", "nothing"}, "nothing: is no value of the model");
  refused({"--trunk", "image"}, "image: is computed by no layer");
  refused({"--freeze-trunk"}, "--trunk");
  EXPECT_THAT(run_hoist({"train", model}).err, HasSubstr("--data: is missing (--data DATA, or --heads FILE)"));
  std::ofstream(in("bad")) << "one\n";
  EXPECT_THAT(run_hoist({"train", model, "--heads", in("bad"), "--trunk", trunk}).err,
              HasSubstr("has the line one (write NAME DATA, or NAME DATA LABELS)"));
}

// Combination locks: a class is the signs of two of four sums of the inputs, and each task reads other sums. A trunk
// that learned eight tasks knows all sums, so that a head needs few samples for another task.
TEST_F(TrainCommand, AdaptsATrunkToFewSamples) {
  const Tensor sums = seeded_tensor(Scalar::f32, {4, 64}, 1, 0, -1, 1);
  const auto lock = [&](const std::string& name, int64_t count, uint64_t seed, int64_t a, int64_t b) {
    const Tensor images = seeded_tensor(Scalar::f32, {count, 1, 8, 8}, seed, 0, -2, 2);
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < count; ++i) {
      const auto is_positive = [&](int64_t sum) {
        double value = 0;
        for (int64_t k = 0; k < 64; ++k) value += sums.float_at(64 * sum + k) * images.float_at(64 * i + k);
        return value > 0;
      };
      labels.push_back(2 * (is_positive(a) ? 1 : 0) + (is_positive(b) ? 1 : 0));
    }
    const std::string file = in(name + ".npz");
    EXPECT_TRUE(
        write_npz(file, {{"image", images}, {"labels", Tensor::of<int64_t>(Scalar::i64, {count}, labels)}}).ok());
    return file;
  };
  std::ofstream heads(in("heads"));
  for (int64_t task = 0; task < 8; ++task) {
    const int64_t a = task % 4, b = (a + 1 + task / 4) % 4;
    heads << "task" << task << " " << lock(fmt::format("task{}", task), 400, 10 + static_cast<uint64_t>(task), a, b)
          << "\n";
  }
  heads.close();
  const std::string few = lock("few", 40, 30, 0, 3), others = lock("others", 400, 31, 0, 3);
  const Ran ran =
      run_hoist({"train", model, "--initialise", "he", "--trunk", "relu2", "--heads", in("heads"), "--epochs", "30",
                 "--batch", "20", "--optimiser", "adamw", "--validation", "0.2", "-o", in("lock.onnx")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto right = [&](const std::string& from, std::vector<std::string> more) {
    more.insert(more.end(), {"--initialise", "he", "--validation", others, "--batch", "10", "--epochs", "100",
                             "--learning-rate", "0.01", "--json", in("answer.json")});
    EXPECT_EQ(train(more, from, few).code, 0);
    return nlohmann::json::parse(*read_file(in("answer.json")))["best"]["right"].get<double>();
  };
  const double adapted = right(in("lock.task0.onnx"), {"--trunk", "relu2", "--freeze-trunk"}),
               scratch = right(model, {});
  EXPECT_GT(adapted, 0.6);
  EXPECT_GT(adapted, scratch + 0.2);
}

TEST_F(TrainCommand, KeepsFrozenWeights) {
  ASSERT_EQ(train({"--epochs", "1", "--freeze", "dense*"}).code, 0);
  const nlohmann::json found = answer({"--epochs", "1", "--freeze", "dense*"});
  EXPECT_EQ(found["weights"], nlohmann::json({"classifier/weight", "classifier/bias"}));
  const Ran ran = train({"--freeze", "dens"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--freeze dens: fits no weight"));
}

Tensor weight_in(const std::string& file, const std::string& name) { return read_model(file)->constants.at(name); }

TEST_F(TrainCommand, KeepsMaskedWeightsAtZero) {
  const std::string name = "dense2/weight";
  Tensor mask(Scalar::u8, weight_in(model, name).shape());
  for (int64_t i = 0; i < mask.size(); i += 2) mask.set_integer(i, 1);
  const std::string file = data_file(folder_->path(), {{name, mask}}).string();
  for (const std::string optimiser : {"adam", "shampoo"}) {
    ASSERT_EQ(train({"--masks", file, "--initialise", "he", "--epochs", "2", "--optimiser", optimiser}).code, 0);
    const Tensor after = weight_in(in("out.onnx"), name);
    for (int64_t i = 0; i < after.size(); ++i) EXPECT_EQ(after.float_at(i) == 0, i % 2 == 1) << i;
  }
  const Ran ran =
      train({"--masks", data_file(folder_->path(), {{"nothing", mask}, {name, Tensor(Scalar::u8, {3})}}).string()});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("nothing: is no weight that is trained"));
  EXPECT_THAT(ran.err, HasSubstr("is [3], and the weight ["));
}

TEST_F(TrainCommand, EndsEarlyAndAugments) {
  const nlohmann::json found = answer({"--epochs", "500", "--validation", "0.2", "--patience", "2", "--augment",
                                       "crop=1", "--learning-rate", "0.1", "--batch", "64"});
  EXPECT_LT(found["epochs"].size(), 500);
  EXPECT_EQ(found["ended"], "no better for 2 epochs");
}

TEST_F(TrainCommand, WritesTheStepAsABundle) {
  ASSERT_EQ(train({"--epochs", "1", "--step", in("step")}).code, 0);
  const Ran ran = run_hoist({"verify", in("step"), "--derivation"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

TEST_F(TrainCommand, NamesTheStepOfALossThatIsNotFinite) {
  const std::string attention = models + "digits_attention";
  const Ran ran = train({"--epochs", "2", "--optimiser", "sgd", "--learning-rate", "1e6", "-o", in("nan.onnx")},
                        attention + ".onnx", attention + "_test.npz");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("of epoch 1: the loss is not a finite number; the first such layer is "));
  EXPECT_FALSE(std::filesystem::exists(in("nan.onnx")));
}

TEST_F(TrainCommand, RefusesBadInput) {
  const auto refused = [&](const std::vector<std::string>& more, int code, const std::string& text,
                           const std::string& from = data) {
    const Ran ran = train(more, model, from);
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(text));
    EXPECT_FALSE(std::filesystem::exists(in("out.onnx")));
  };
  refused({"--optimiser", "adan"}, 2, "adan: is no optimiser (did you mean adam?)");
  refused({"--schedule", "cosin"}, 2, "is no schedule and no file (did you mean cosine?)");
  refused({"--schedule", "rewind:5,step", "--epochs", "10"}, 2, "rewind:EPOCHS,SCHEDULE");
  refused({"--augment", "turn"}, 2, "is neither flip nor crop=N");
  refused({"--batch", "501"}, 3, "500 samples do not fill a batch of 501");
  refused({"--validation", "0.0001"}, 3, "keeps 0 of 500 samples apart");
  refused({"--validation", "none.npz"}, 3, "none.npz");
  refused({"--loss", "hinge"}, 3, "hinge: is no loss");
  refused({"--loss", "attention-transfer"}, 2, "learns from the model itself (add --distill)");
  refused({"--loss", "attention-transfer", "--distill"}, 3, "depends on no images");
  refused({"--labels", in("none.npy")}, 3, "none.npy");
  const Tensor images(Scalar::f32, {40, 1, 8, 8});
  Tensor some = images;
  some.set_float(3, 1);
  std::vector<int64_t> labels(40, 1);
  labels[7] = 10;
  refused({}, 3, "sample 7 has label 10, and there are 10 classes",
          data_file(folder_->path(), {{"image", some}, {"labels", Tensor::of(Scalar::i64, {40}, labels)}}).string());
  refused({}, 3, "is not there (--labels FILE gives it, --distill needs none)",
          data_file(folder_->path(), {{"image", some}}).string());
  refused({"--loss", "mse"}, 3, "expected floats, [40][10]",
          data_file(folder_->path(), {{"image", some}, {"target", Tensor(Scalar::f32, {40, 9})}}).string());
  EXPECT_EQ(run_hoist({"train", model}).code, 2);
  const Ran same = train({"-o", model});
  EXPECT_EQ(same.code, 2);
  EXPECT_THAT(same.err, HasSubstr("is the model itself"));
}

}  // namespace hoist::train_test
