// Native code: the same Funcs compiled by Halide's LLVM for named targets, and static libraries of object files.
#include "backends/halide/native/native.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "backends/halide/native/native_target.h"
#include "backends/halide/native/object_code.h"
#include "backends/halide/passes/passes.h"
#include "ir/base/temporary_folder.h"

namespace hoist {
namespace emission {
namespace {

namespace fs = std::filesystem;

Result<std::string> content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  if (!file || out.str().empty()) return Diagnostic{path.string(), "was not written", "is the disk full?"};
  return out.str();
}

std::string function_name(const std::string& kernel_name, const std::string& target) {
  std::string out = "hoist_" + target + "_" + kernel_name;
  for (char& c : out) c = c == '-' ? '_' : c;
  return out;
}

H::Target halide_target(const NativeTarget& target) {
  H::Target out(target.features);
  for (const H::Target::Feature feature :
       {H::Target::NoAsserts, H::Target::NoBoundsQuery, H::Target::StrictFloat, H::Target::NoRuntime})
    out.set_feature(feature);
  return out;
}

}  // namespace

namespace {

Result<NativeCode> compiled(H::Func& result, const Emitter& emitter, const std::string& function,
                            const NativeTarget& target) {
  NativeCode out;
  HOIST_TRY(const TemporaryFolder scratch, TemporaryFolder::make());  // Halide only writes files
  auto passes = make_passes({.result = result.name(),
                             .loops = emitter.group_loops(),
                             .extents = emitter.group_extents(),
                             .inputs = emitter.input_arrays(),
                             .native = &target,
                             .prefetched = &out.prefetched});
  H::Pipeline pipeline(result);
  for (auto& pass : passes) pipeline.add_custom_lowering_pass(pass.get(), [] {});
  std::vector<H::Argument> arguments;
  for (const char* name : {first_group, group_count})
    arguments.emplace_back(name, H::Argument::InputScalar, H::Int(32), 0, H::ArgumentEstimates{});
  for (const std::string& name : emitter.sizes())
    arguments.emplace_back(size_argument(name), H::Argument::InputScalar, H::Int(32), 0, H::ArgumentEstimates{});
  arguments.insert(arguments.end(), emitter.arguments().begin(), emitter.arguments().end());
  const std::string path = (scratch.path() / "kernel.o").string();
  pipeline.compile_to_module(arguments, function, halide_target(target), H::LinkageType::ExternalPlusArgv)
      .compile({{H::OutputFileType::object, path}});
  HOIST_TRY(out.object, content(path));
  return out;
}

}  // namespace

Result<NativeCode> native_code(H::Func& result, const Emitter& emitter, const std::string& kernel_name,
                               const std::string& target) {
  HOIST_TRY(const NativeTarget* row, native_target(target));
  const std::string function = function_name(kernel_name, target);
  if (row->features_for_dots == nullptr) return compiled(result, emitter, function, *row);
  NativeTarget chosen = *row;
  if (emitter.has_dots()) {
    chosen.features = row->features_for_dots;
    HOIST_TRY(NativeCode out, compiled(result, emitter, function, chosen));
    if (!may_need_sse4a_or_bf16(out.object)) return out;
    chosen.features = row->features;
  }
  chosen.dot_in_instruction = false;
  return compiled(result, emitter, function, chosen);
}

}  // namespace emission

std::string native_symbol(const std::string& kernel_name, const std::string& target) {
  return emission::function_name(kernel_name, target) + "_argv";
}

Result<std::string> static_library(const std::vector<std::pair<std::string, std::string>>& objects,
                                   const std::string& target) {
  HOIST_TRY(const NativeTarget* row, native_target(target));
  HOIST_TRY(const TemporaryFolder scratch, TemporaryFolder::make());
  std::vector<std::string> files;
  for (const auto& [name, bytes] : objects) {
    files.push_back((scratch.path() / name).string());
    std::ofstream file(files.back(), std::ios::binary);
    file << bytes;
    file.close();
    if (!file) return Diagnostic{files.back(), "cannot be written", "is the disk full?"};
  }
  const std::string path = (scratch.path() / "library.a").string();
  try {
    Halide::create_static_library(files, emission::halide_target(*row), path);
  } catch (const Halide::Error& error) {
    return Diagnostic{path, error.what(), ""};
  }
  return emission::content(path);
}

}  // namespace hoist
