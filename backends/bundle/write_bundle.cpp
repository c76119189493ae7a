#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <unordered_map>

#include "backends/bundle/bundle.h"
#include "backends/bundle/bundle_text.h"
#include "backends/bundle/folder_writer.h"
#include "backends/bundle/runtime_plan.h"
#include "backends/bundle/runtime_sources.h"

namespace hoist {
namespace {

/// Makes a write beyond the file-size limit fail with an error instead of a signal that ends the program.
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

std::string_view view_of(const PlanArray& array) {
  const std::span<const std::byte> bytes = array.constant.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

int64_t up_to_64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t weights_bytes(const std::vector<ListedPlan>& plans) {
  int64_t bytes = 0;
  for (const ListedPlan& one : plans) bytes = std::max(bytes, weights_bytes(*one.plan));
  return bytes;
}

/// Stores equal weights once: weights of the first plan keep their offsets, others follow them.
void share_weights(const std::vector<SizedPlan>& plans) {
  std::unordered_map<std::string_view, int64_t> places;
  int64_t end = weights_bytes(*plans.front().plan);
  for (const SizedPlan& one : plans) {
    const bool is_first = &one == &plans.front();
    for (PlanArray& array : one.plan->arrays) {
      if (array.place != Place::weights) continue;
      const std::string_view bytes = view_of(array);
      const auto [place, is_new] = places.emplace(bytes, is_first ? array.offset : end);
      if (is_first) continue;
      array.offset = place->second;
      if (is_new) end = up_to_64(end + static_cast<int64_t>(bytes.size()));
    }
  }
}

/// Called with the offset of weights that are written.
using WeightsWritten = std::function<void(int64_t offset)>;

/// The packed arrays of all plans in the order of their offsets, with zeros between them. Arrays at the same offset are
/// equal and share their bytes.
Result<HashedFile> write_weights(const std::vector<ListedPlan>& plans, FolderWriter& writer,
                                 const WeightsWritten& written) {
  std::map<int64_t, std::string_view> arrays;
  for (const ListedPlan& one : plans) {
    for (const PlanArray& array : one.plan->arrays) {
      if (array.place != Place::weights) continue;
      const std::string_view view = view_of(array);
      HOIST_CHECK(static_cast<int64_t>(view.size()) == byte_size(array.scalar, array.shape),
                  "weights " + array.name + ": wrong number of bytes");
      std::string_view& there = arrays[array.offset];
      const size_t common = std::min(there.size(), view.size());
      HOIST_CHECK(there.substr(0, common) == view.substr(0, common),
                  "weights " + array.name + ": two contents at one offset");
      if (view.size() > there.size()) there = view;
    }
  }
  static const std::string zeros(4096, '\0');
  std::vector<std::string_view> pieces;
  std::map<size_t, int64_t> offsets;  // of the pieces that are arrays
  int64_t at = 0;
  const auto fill_to = [&](int64_t offset) {
    for (; at < offset; at += static_cast<int64_t>(pieces.back().size())) {
      pieces.push_back(std::string_view(zeros).substr(0, static_cast<size_t>(std::min<int64_t>(offset - at, 4096))));
    }
  };
  for (const auto& [offset, bytes] : arrays) {
    HOIST_CHECK(offset >= at, "weights at offset " + std::to_string(offset) + " overlap those before");
    fill_to(offset);
    offsets.emplace(pieces.size(), offset);
    pieces.push_back(bytes);
    at += static_cast<int64_t>(bytes.size());
  }
  fill_to(weights_bytes(plans));
  return writer.write_pieces("weights.bin", pieces, [&](size_t piece) {
    if (const auto array = offsets.find(piece); written && array != offsets.end()) written(array->second);
  });
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

namespace {

/// The files that each specialisation has, except its native libraries; `prefix` is its folder with a slash.
Result<std::vector<HashedFile>> write_parts(const Plan& plan, const std::string& prefix,
                                            const std::vector<ListedPlan>& listed, FolderWriter& writer) {
  const SectionedText kernels = kernels_text(plan);
  const SectionedText expressions = expressions_text(plan);
  const std::pair<const char*, std::string> texts[] = {
      {kernels_file(plan), kernels.text},
      {"expressions.lift", expressions.text},
      {"derivation.lift", plan.derivation},
      {"check.bin", encode_checks(plan)},
      {"manifest.json", manifest_text(plan, kernels, expressions, listed)},
  };
  std::vector<HashedFile> files;
  for (const auto& [path, text] : texts) {
    HOIST_TRY(HashedFile file, writer.write(prefix + path, text));
    files.push_back(std::move(file));
  }
  return files;
}

Result<Nothing> write_native(const Plan& plan, const std::string& prefix, FolderWriter& writer,
                             std::vector<HashedFile>& files) {
  for (const PlanFile& native : plan.native_files) {
    HOIST_TRY(HashedFile file, writer.write(prefix + native.path, native.bytes));
    files.push_back(std::move(file));
  }
  return Nothing{};
}

/// The paths relative to the folder.
std::vector<HashedFile> seen_from(const std::string& prefix, std::vector<HashedFile> files) {
  for (HashedFile& file : files) file.path = file.path.substr(prefix.size());
  return files;
}

ListedSpecialisations listed_in_plan(const std::vector<ListedPlan>& plans) {
  ListedSpecialisations out;
  if (plans.size() < 2) return out;
  for (const auto& [name, size] : plans.front().sizes) out.names.push_back(name);
  for (size_t i = 0; i < plans.size(); ++i) {
    ListedSpecialisation& one = out.specialisations.emplace_back();
    one.folder = specialisation_folder(i);
    for (const auto& [name, size] : plans[i].sizes) one.sizes.push_back(size);
    for (int input : plans[i].plan->inputs)
      one.shapes.push_back(plans[i].plan->arrays[static_cast<size_t>(input)].shape);
  }
  return out;
}

void check_specialisations(const std::vector<ListedPlan>& plans) {
  HOIST_CHECK(!plans.empty() && plans.size() <= most_specialisations(), "number of specialisations");
  for (const ListedPlan& one : plans) {
    HOIST_CHECK(one.sizes.size() == plans.front().sizes.size() &&
                    one.plan->inputs.size() == plans.front().plan->inputs.size() &&
                    one.plan->targets == plans.front().plan->targets,
                "specialisations of different models");
  }
}

/// The runtime reads the folder before it becomes a bundle, so its checks of untrusted plans also cover hoist's own.
Result<Nothing> read_back(const std::filesystem::path& folder) {
  hoist_error error = {};
  const auto outcome = [&](hoist_status status) -> Result<Nothing> {
    if (status != HOIST_OK) return Diagnostic{folder.string(), error.message, "the runtime refuses the written bundle"};
    return Nothing{};
  };
  RuntimePlan root;
  HOIST_TRY_VOID(outcome(hoist_plan_read(folder.c_str(), &root.plan, &error)));
  HOIST_TRY_VOID(outcome(hoist_checks_read(&root.plan, &root.checks, &error)));
  for (size_t i = 1; i < root.plan.specialisation_count; ++i) {
    RuntimePlan other;
    HOIST_TRY_VOID(outcome(hoist_plan_read_specialisation(&root.plan, i, &other.plan, &error)));
    HOIST_TRY_VOID(outcome(hoist_checks_read(&other.plan, &other.checks, &error)));
  }
  return Nothing{};
}

Result<Nothing> write_plans(const std::vector<ListedPlan>& plans, const std::filesystem::path& folder,
                            const BundleOptions& options, const WeightsWritten& written = {}) {
  check_specialisations(plans);
  std::filesystem::path name = folder;
  if (!name.has_filename()) name = name.parent_path();
  HOIST_TRY(const bool replace, may_replace(name, options));
  const IgnoreFileSizeSignal ignore;
  HOIST_TRY(FolderWriter writer, FolderWriter::begin(name));
  const bool several = plans.size() > 1;
  const Plan& plan = *plans.front().plan;
  std::vector<HashedFile> files;
  HOIST_TRY(HashedFile weights, write_weights(plans, writer, written));
  files.push_back(std::move(weights));
  HOIST_TRY(const std::vector<HashedFile> parts,
            write_parts(plan, "", several ? plans : std::vector<ListedPlan>{}, writer));
  files.insert(files.end(), parts.begin(), parts.end());
  if (!plan.preprocessing.empty()) {
    HOIST_TRY(HashedFile file, writer.write(HOIST_PREPROCESSING_FILE, encode_preprocessing(plan)));
    files.push_back(std::move(file));
  }
  const std::pair<const char*, std::string_view> runtime[] = {
      {"runtime/hoist_runtime.h", runtime_header},
      {"runtime/hoist_runtime.hpp", runtime_wrapper},
      {"runtime/hoist_runtime.c", runtime_source},
  };
  for (const auto& [path, text] : runtime) {
    HOIST_TRY(HashedFile file, writer.write(path, text));
    files.push_back(std::move(file));
  }
  HOIST_TRY_VOID(write_native(plan, "", writer, files));
  for (size_t i = 1; i < plans.size(); ++i) {
    const std::string prefix = specialisation_folder(i) + "/";
    const Plan& other = *plans[i].plan;
    HOIST_TRY(std::vector<HashedFile> own, write_parts(other, prefix, {}, writer));
    HOIST_TRY_VOID(write_native(other, prefix, writer, own));
    const std::string bytes = encode_plan(other, seen_from(prefix, own), weights_bytes(plans));
    HOIST_TRY(HashedFile file, writer.write(prefix + "plan.bin", bytes));
    files.insert(files.end(), own.begin(), own.end());
    files.push_back(std::move(file));
  }
  HOIST_TRY_VOID(writer.write("example.c", example_text(plan)));
  HOIST_TRY_VOID(writer.write("Makefile", makefile_text(plan, several)));
  HOIST_TRY_VOID(writer.write("CMakeLists.txt", cmake_text(plan, several)));
  HOIST_TRY_VOID(writer.write("plan.bin", encode_plan(plan, files, weights_bytes(plans), listed_in_plan(plans))));
  HOIST_TRY_VOID(read_back(writer.path()));
  if (options.check) HOIST_TRY_VOID(options.check(writer.path()));
  return writer.commit(replace);
}

}  // namespace

size_t most_specialisations() { return HOIST_MOST_SPECIALISATIONS; }

Result<Nothing> write_bundle(const Plan& plan, const std::filesystem::path& folder, const BundleOptions& options) {
  return write_plans({{{}, &plan}}, folder, options);
}

Result<Nothing> write_bundle(const std::vector<SizedPlan>& plans, const std::filesystem::path& folder,
                             const BundleOptions& options) {
  if (plans.size() > 1) share_weights(plans);
  std::vector<ListedPlan> listed;
  std::multimap<int64_t, PlanArray*> weights;
  for (const SizedPlan& one : plans) {
    listed.push_back({one.sizes, one.plan});
    for (PlanArray& array : one.plan->arrays) {
      if (array.place == Place::weights) weights.emplace(array.offset, &array);
    }
  }
  return write_plans(listed, folder, options, [&](int64_t offset) {
    const auto [first, last] = weights.equal_range(offset);
    for (auto at = first; at != last; ++at) {
      at->second->constant.release_pages();
      at->second->constant = Tensor();
    }
  });
}

}  // namespace hoist
