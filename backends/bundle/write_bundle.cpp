#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>

#include "backends/bundle/bundle.h"
#include "backends/bundle/bundle_text.h"
#include "backends/bundle/folder_writer.h"
#include "backends/bundle/runtime_sources.h"
#include "backends/runtime/plan_file.h"

namespace hoist {
namespace {

/// A write beyond the file-size limit should fail like any other, not end the program.
class IgnoreFileSizeSignal {
 public:
  IgnoreFileSizeSignal() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGXFSZ, &ignore, &before_);
  }
  ~IgnoreFileSizeSignal() { ::sigaction(SIGXFSZ, &before_, nullptr); }
  IgnoreFileSizeSignal(const IgnoreFileSizeSignal&) = delete;
  IgnoreFileSizeSignal& operator=(const IgnoreFileSizeSignal&) = delete;

 private:
  struct sigaction before_ = {};
};

/// The packed arrays in the order of their offsets, with zeros between them. Arrays at one offset are equal ones that
/// share their bytes.
Result<HashedFile> write_weights(const Plan& plan, FolderWriter& writer) {
  std::map<int64_t, std::string_view> arrays;
  for (const PlanArray& array : plan.arrays) {
    if (array.place != Place::weights) continue;
    const std::vector<std::byte>& bytes = array.constant.bytes();
    const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string_view& there = arrays[array.offset];
    const size_t common = std::min(there.size(), view.size());
    HOIST_CHECK(there.substr(0, common) == view.substr(0, common),
                "weights " + array.name + ": two contents at one offset");
    if (view.size() > there.size()) there = view;
  }
  static const std::string zeros(4096, '\0');
  std::vector<std::string_view> pieces;
  int64_t at = 0;
  const auto fill_to = [&](int64_t offset) {
    for (; at < offset; at += static_cast<int64_t>(pieces.back().size())) {
      pieces.push_back(std::string_view(zeros).substr(0, static_cast<size_t>(std::min<int64_t>(offset - at, 4096))));
    }
  };
  for (const auto& [offset, bytes] : arrays) {
    HOIST_CHECK(offset >= at, "weights at offset " + std::to_string(offset) + " overlap those before");
    fill_to(offset);
    pieces.push_back(bytes);
    at += static_cast<int64_t>(bytes.size());
  }
  fill_to(weights_bytes(plan));
  return writer.write_pieces("weights.bin", pieces);
}

Result<bool> may_replace(const std::filesystem::path& folder, const BundleOptions& options) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(folder, error);
  if (status.type() == std::filesystem::file_type::not_found) return false;
  if (!std::filesystem::is_directory(status)) {
    return Diagnostic{folder.string(), "exists and is not a folder", "name another"};
  }
  if (!is_bundle(folder)) {
    return Diagnostic{folder.string(), "exists and is not a bundle", "name another, or remove it yourself"};
  }
  if (!options.force) return Diagnostic{folder.string(), "this bundle exists", "give --force to replace it"};
  return true;
}

}  // namespace

bool is_bundle(const std::filesystem::path& folder) {
  std::ifstream file(folder / "plan.bin", std::ios::binary);
  std::string magic(std::string_view(HOIST_PLAN_MAGIC).size(), '\0');
  file.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  return file.good() && magic == HOIST_PLAN_MAGIC;
}

Result<Nothing> write_bundle(const Plan& plan, const std::filesystem::path& folder, const BundleOptions& options) {
  check_plan(plan);
  std::filesystem::path name = folder;
  if (!name.has_filename()) name = name.parent_path();
  HOIST_TRY(const bool replace, may_replace(name, options));
  const IgnoreFileSizeSignal ignore;
  HOIST_TRY(FolderWriter writer, FolderWriter::begin(name));
  const SectionedText kernels = kernels_text(plan);
  const SectionedText expressions = expressions_text(plan);
  std::vector<HashedFile> files;
  HOIST_TRY(HashedFile weights, write_weights(plan, writer));
  files.push_back(std::move(weights));
  const std::pair<const char*, std::string> texts[] = {
      {kernels_file(plan), kernels.text},
      {"expressions.lift", expressions.text},
      {"derivation.lift", plan.derivation},
      {"check.bin", encode_checks(plan)},
      {"manifest.json", manifest_text(plan, kernels, expressions)},
      {"runtime/hoist_runtime.h", std::string(runtime_header)},
      {"runtime/hoist_runtime.hpp", std::string(runtime_wrapper)},
      {"runtime/hoist_runtime.c", std::string(runtime_source)},
  };
  for (const auto& [path, text] : texts) {
    HOIST_TRY(HashedFile file, writer.write(path, text));
    files.push_back(std::move(file));
  }
  for (const PlanFile& native : plan.native_files) {
    HOIST_TRY(HashedFile file, writer.write(native.path, native.bytes));
    files.push_back(std::move(file));
  }
  HOIST_TRY_VOID(writer.write("example.c", example_text(plan)));
  HOIST_TRY_VOID(writer.write("Makefile", makefile_text(plan)));
  HOIST_TRY_VOID(writer.write("CMakeLists.txt", cmake_text(plan)));
  HOIST_TRY_VOID(writer.write("plan.bin", encode_plan(plan, files)));
  if (options.check) HOIST_TRY_VOID(options.check(writer.path()));
  return writer.commit(replace);
}

}  // namespace hoist
