// From a model file to its kernels and to a plan, as every command that takes a model does it: the options that they
// share, reading with the operators that hoist has, choosing the profile. Not for bundles: bundle.h.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "lowering/loops/unroll.h"
#include "tools/cli/attempt.h"
#include "tools/driver/compile.h"

namespace CLI {
class App;
}

namespace hoist {

/// As the command line has them.
struct ModelOptions {
  std::vector<std::string> dimensions;  ///< NAME=N
  std::vector<std::string> values;      ///< NAME=FILE or NAME=LITERAL
  DataBounds bounds = {};
  int64_t unrolled_steps = most_unrolled_steps;
  std::string device;                ///< an index, a name or a part of one; "" is the first device
  std::string profile;               ///< a file; excludes `device`
  std::vector<std::string> targets;  ///< named targets of native code; empty: OpenCL
  std::string convolution = "auto";  ///< auto | stencil | im2col | winograd
  std::string fusion = "auto";       ///< auto | none | launch
  std::string tables = "auto";       ///< auto | on | off
  std::string constants = "auto";    ///< auto | computed | stored
  FoldingBudget folding;
  bool strict = false;
  std::string rules;                            ///< a file of the user's own rules
  std::vector<std::string> steps;               ///< LAYER=FILE
  std::shared_ptr<const UserRules> user_rules;  ///< what the files hold, once read
  std::vector<Steering> steering;
  std::string tuning;          ///< a database of hoist tune
  TuningRecords records = {};  ///< what it says of the device, once read
  std::string kernel_suffix;   ///< as CompileOptions has it
  bool with_notes = true;      ///< of the frontend and of lowering
};

/// --dim and --value: what decides the program that a model file is read as.
void add_reading_options(CLI::App& command, std::vector<std::string>& dimensions, std::vector<std::string>& values);
/// --value alone.
void add_value_option(CLI::App& command, std::vector<std::string>& values);
/// --loop-iterations and --string-pieces, which decide the program that a model is read as, too.
void add_bound_options(CLI::App& command, DataBounds& bounds);
/// The first of them that is given, null where none is.
const char* given_bound(const DataBounds& bounds);
/// --rules, --steps and --tuning, for commands that show or make kernels.
void add_steering_options(CLI::App& command, ModelOptions& options);
/// --dim, --value, --loop-iterations, --string-pieces, --unrolled-steps, --conv, --fuse, --tables, --constants,
/// --strict, --profile; with_device: --device too.
void add_model_options(CLI::App& command, ModelOptions& options, bool with_device = true);

/// --target, for commands that make bundles.
void add_target_option(CLI::App& command, ModelOptions& options);

/// What the frontend has to know: the operators of the table, --dim, --value, whose files are read, and what bounds
/// data.
Result<ReadOptions> read_options(const std::vector<std::string>& dimensions,
                                 const std::vector<std::string>& values = {}, const DataBounds& bounds = {});

/// The model with inputs of these shapes, in its order, where it leaves extents open.
Result<Program> read_model_of_shapes(const std::filesystem::path& path, ReadOptions reading,
                                     const std::vector<std::vector<int64_t>>& shapes);

/// A bundle where a model belongs is a mistake that has a message of its own, and so is a program as text.
Attempt<> refuse_bundle(const std::filesystem::path& model);

/// For bundles, whose compilation is over: wrong use where any of the options is given but --dim, which chooses one of
/// the sizes that a bundle has (sizes.h).
Attempt<> refuse_model_options(const ModelOptions& options);

/// The profile file, or what the device says of itself. Without either the first device.
Attempt<Profile> choose_profile(const ModelOptions& options);

/// Reads the files of --rules, --steps and --tuning, once. Errors are those of the files: nothing of them is applied
/// then.
Attempt<> read_steering(ModelOptions& options);

/// What the options say of lowering.
CompileOptions compile_options(const ModelOptions& options);

/// The model as the frontend gives it.
Attempt<Program> read_program(const std::filesystem::path& path, const ModelOptions& options);

/// A model as kernels of the language: enough to look at any layer.
struct OpenedModel {
  Program program;  ///< as the frontend gives it
  Profile profile;
  LoweredModel lowered;
};
/// As read_program(), and beside it what opening the model will ask for is made ready: until the driver has said which
/// devices there are takes some 50 ms, and until the rules are parsed nearly as much.
Attempt<Program> read_program_and_prepare(const std::filesystem::path& path, const ModelOptions& options);
/// Notes of the frontend, which lowering passes on, and of lowering go to standard error.
Attempt<OpenedModel> open_model(const std::filesystem::path& path, const ModelOptions& options);
Attempt<OpenedModel> open_model(Program program, ModelOptions options);

struct CompiledModel {
  Program program;  ///< operator calls, before lowering
  Profile profile;
  Plan plan;
  std::vector<LoweredGroup> groups;                  ///< one a step: how its kernel followed
  std::shared_ptr<const UserRules> rules = nullptr;  ///< the user's, which groups may name
};
Attempt<CompiledModel> compile_model(const std::filesystem::path& path, const ModelOptions& options);
Attempt<CompiledModel> compile_model(Program program, const ModelOptions& options);
/// The rest of a compilation, of a model that was opened with these options; what they name has been read.
Attempt<CompiledModel> compile_model(OpenedModel model, const ModelOptions& options);

}  // namespace hoist
