// The JSON form of a record (neural_rules/choice/record.h): one value, site or conversion per line; numbers and names
// are restored exactly.
#pragma once

#include <filesystem>
#include <string>

#include "ir/base/result.h"
#include "neural_rules/choice/record.h"

namespace hoist {

std::string record_text(const Record& record);
/// Errors name `where` and the problem: not JSON (for example a truncated file), not a record, another format, a
/// missing key or one of the wrong type, and errors of check_record(). Times that are not positive were never measured:
/// they are NaN, and choices that used them are left out.
Result<Record> parse_record(const std::string& text, const std::string& where);

Result<Nothing> write_record(const std::filesystem::path& path, const Record& record);
Result<Record> read_record(const std::filesystem::path& path);

}  // namespace hoist
