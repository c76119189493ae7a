#include "tools/queue/packed_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ir/base/process_folder.h"
#include "tools/base/files.h"

namespace hoist::queue {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view heading = "hoist folder 1\n";
constexpr size_t most_files = 4096, longest_name = 256;

// True if the name consists of parts between slashes, each of letters, digits, _ . and -, and none begins with a dot.
bool is_plain_name(std::string_view name) {
  if (name.empty() || name.size() > longest_name || name.back() == '/') return false;
  bool at_start = true;
  for (const char c : name) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (at_start ? !letter : !letter && c != '.' && c != '-' && c != '/') return false;
    at_start = c == '/';
  }
  return true;
}

// Packs files under the names of the map.
Result<std::string> pack(const std::map<std::string, fs::path>& files) {
  std::string out(heading), content;
  for (const auto& [name, path] : files) {
    HOIST_CHECK(is_plain_name(name), "a file of another name is not packed: " + name);
    HOIST_TRY(const std::string bytes, read_file(path));
    out += fmt::format("{} {}\n", bytes.size(), name);
    content += bytes;
  }
  return out + "\n" + content;
}

// The files of a bundle except files that its user may change and compiled programs of a driver.
Result<std::vector<std::string>> files_of_bundle(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().lexically_relative(folder).generic_string();
    if (name == "programs" || name == "example.c" || name == "Makefile" || name == "CMakeLists.txt") {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_regular_file(failed) && is_plain_name(name)) files.push_back(name);
  }
  if (failed) return Diagnostic{folder.string(), "cannot be read: " + failed.message(), ""};
  return files;
}

}  // namespace

Result<std::string> pack_folder(const fs::path& folder, const std::vector<std::string>& files) {
  std::map<std::string, fs::path> all;
  for (const std::string& name : files) all[name] = folder / name;
  return pack(all);
}

Result<Nothing> unpack_folder(const std::string& packed, const fs::path& folder) {
  const Diagnostic damaged{"packed folder", "is damaged", ""};
  if (!packed.starts_with(heading)) return damaged;
  struct File {
    std::string name;
    size_t bytes = 0;
  };
  std::vector<File> files;
  size_t at = heading.size();
  for (; at < packed.size() && packed[at] != '\n'; ++at) {
    const size_t end = packed.find('\n', at), space = packed.find(' ', at);
    File file;
    if (end == std::string::npos || space == std::string::npos || space >= end || files.size() >= most_files ||
        std::from_chars(packed.data() + at, packed.data() + space, file.bytes).ptr != packed.data() + space)
      return damaged;
    file.name = packed.substr(space + 1, end - space - 1);
    if (!is_plain_name(file.name)) return damaged;
    files.push_back(file);
    at = end;
  }
  if (at++ >= packed.size()) return damaged;
  size_t left = packed.size() - at;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].bytes > left) return damaged;
    left -= files[i].bytes;
    for (size_t k = 0; k < i; ++k) {
      if (files[k].name == files[i].name) return damaged;
    }
  }
  if (left != 0) return damaged;
  for (const File& file : files) {
    const fs::path path = folder / file.name;
    const std::error_code failed =
        make_folders_below(folder.parent_path(), folder.filename() / fs::path(file.name).parent_path());
    if (failed) return Diagnostic{path.string(), "cannot be made: " + failed.message(), ""};
    HOIST_TRY_VOID(write_file(path, std::string_view(packed).substr(at, file.bytes)));
    at += file.bytes;
  }
  return Nothing{};
}

Result<std::string> pack_bundle(const fs::path& folder) {
  HOIST_TRY(const std::vector<std::string> files, files_of_bundle(folder));
  return pack_folder(folder, files);
}

Result<std::string> pack_bundles(const std::map<std::string, fs::path>& folders) {
  std::map<std::string, fs::path> all;
  for (const auto& [name, folder] : folders) {
    HOIST_TRY(const std::vector<std::string> files, files_of_bundle(folder));
    for (const std::string& file : files) all[name + "/" + file] = folder / file;
  }
  return pack(all);
}

}  // namespace hoist::queue
