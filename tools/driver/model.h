// From a model file to its kernels and to a plan, for every command that takes a model: the shared options, reading the
// model with hoist's operators, choosing the target description. For bundles use bundle.h.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/base/result.h"
#include "lowering/loops/unroll.h"
#include "tools/base/terminal.h"
#include "tools/driver/compile.h"
#include "tools/records/tuning_database.h"

namespace hoist {

/// The options in the form of the command line.
struct ModelOptions {
  std::vector<std::string> dimensions;  ///< NAME=N
  std::vector<std::string> values;      ///< NAME=FILE or NAME=LITERAL
  std::vector<std::string> states;      ///< INPUT=OUTPUT, or "auto"
  std::vector<std::string> initial;     ///< NAME=FILE or NAME=LITERAL
  DataBounds bounds = {};
  int64_t training_step = 0;  ///< as in ReadOptions
  bool inference_form = false;
  int64_t unrolled_steps = most_unrolled_steps;
  std::string device;   ///< an index, a name or a part of a name; "" is the first device
  std::string profile;  ///< a file; excludes `device`; with `targets`, the description of the first of them
  std::vector<std::string> targets;  ///< named targets of native code; empty means OpenCL
  std::string convolution = "auto";  ///< auto | stencil | im2col | winograd
  std::string fusion = "auto";       ///< auto | none | launch
  std::string layouts = "cost";      ///< rule | cost
  std::string batches = "auto";      ///< auto | whole
  std::string tables = "auto";       ///< auto | on | off
  std::string constants = "auto";    ///< auto | computed | stored
  FoldingBudget folding;
  double memory = 0;  ///< limit of MiB between layers; 0: none
  bool strict = false;
  std::string rules;                            ///< a file of the user's own rules
  std::vector<std::string> steps;               ///< LAYER=FILE
  std::shared_ptr<const UserRules> user_rules;  ///< the contents of `rules` and `steps`, once read
  std::vector<ScheduleScript> schedule_scripts;
  std::string tuning;          ///< a database of hoist tune
  TuningRecords records = {};  ///< the records of `tuning` for the device, once read
  tuning::KernelTimes times;   ///< the times of kernels in `tuning`, once read
  std::string kernel_suffix;   ///< as in CompileOptions
  bool with_notes = true;      ///< print the notes of the frontend and of lowering
};

/// The name of the target of a word of --target: "native" selects the best that this machine runs, so that the bundle
/// records its name.
Result<std::string> resolved_target(const std::string& word);

/// The frontend's options: the operators of the table, --dim, --value (its files are read here), and the bounds.
Result<ReadOptions> read_options(const std::vector<std::string>& dimensions,
                                 const std::vector<std::string>& values = {}, const DataBounds& bounds = {});

/// The same with all of these options.
Result<ReadOptions> read_options(const ModelOptions& options);

/// Reads the model with inputs of these shapes, in model order, for its open extents.
Result<Program> read_model_of_shapes(const std::filesystem::path& path, ReadOptions reading,
                                     const std::vector<std::vector<int64_t>>& shapes);

/// Reports a bundle or a program as text that is given in place of a model.
Result<Nothing> refuse_bundle(const std::filesystem::path& model);

/// Reads the description in a file; an empty file is an error.
Result<Profile> read_profile(const std::string& file);
/// The target description from the file, or as the device reports it. Without either, the first device.
Result<Profile> choose_profile(const ModelOptions& options);

/// Reads the files of --rules, --steps and --tuning, once. After an error in any file none is applied.
Result<Nothing> read_schedule_scripts(ModelOptions& options);

/// The compile options that these model options select.
CompileOptions compile_options(const ModelOptions& options);
/// Shows the compiled kernels of a model, for CompileOptions.
std::function<void(size_t done, size_t all)> kernel_progress(Progress& progress, const std::string& model);

/// Reads the model through the frontend.
Result<Program> read_program(const std::filesystem::path& path, const ModelOptions& options);

/// A model as kernels of the language: enough to inspect any layer.
struct OpenedModel {
  Program program;  ///< as read by the frontend
  Profile profile;
  LoweredModel lowered;
  std::vector<std::string> targets = {};  ///< targets of native code, as in ModelOptions
  tuning::KernelTimes times = {};         ///< measured times, as in ModelOptions
};
/// As read_program(), while two preparations of open_model run on another thread: listing the devices (some 50 ms in
/// the driver) and parsing the rules (nearly as long).
Result<Program> read_program_and_prepare(const std::filesystem::path& path, const ModelOptions& options);
/// Prints the notes of the frontend and of lowering on standard error.
Result<OpenedModel> open_model(const std::filesystem::path& path, const ModelOptions& options);
Result<OpenedModel> open_model(Program program, ModelOptions options);

struct CompiledModel {
  Program program;  ///< operator calls, before lowering
  Profile profile;
  Plan plan;
  std::vector<LoweredGroup> groups;                  ///< one per step: the derivation of its kernel
  std::shared_ptr<const UserRules> rules = nullptr;  ///< the user's rules, which groups may name
  tuning::KernelTimes times = {};                    ///< measured times, as in ModelOptions
  /// With an open size: operator calls for a value of it.
  std::function<Result<Program>(int64_t size)> program_of_size = {};
};
Result<CompiledModel> compile_model(const std::filesystem::path& path, const ModelOptions& options);
Result<CompiledModel> compile_model(Program program, const ModelOptions& options);
/// The model for all values of an open size, as native code. `options.dimensions` has the other sizes.
Result<CompiledModel> compile_model(const std::filesystem::path& path, const ModelOptions& options,
                                    const PlanSize& size);
/// Completes the compilation of a model that was opened with these options and whose files have been read.
Result<CompiledModel> compile_model(OpenedModel model, const ModelOptions& options);

}  // namespace hoist
