#include "tools/records/tuning_database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <system_error>

namespace hoist::tuning {
namespace {

constexpr int schema_version = 2;
constexpr int application = 0x686f6973;  // "hois", in SQLite's header

constexpr char schema[] = R"(
  CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    profile TEXT NOT NULL, target TEXT NOT NULL, structure TEXT NOT NULL, numbers TEXT NOT NULL,
    UNIQUE (profile, target, structure, numbers));
  CREATE TABLE measurements (
    task INTEGER NOT NULL REFERENCES tasks (id), knobs TEXT NOT NULL, ratio REAL,
    PRIMARY KEY (task, knobs)) WITHOUT ROWID;
  CREATE TABLE choices (task INTEGER PRIMARY KEY REFERENCES tasks (id), knobs TEXT NOT NULL, ratio REAL NOT NULL);
)";
// Added by version 2.
constexpr char times_schema[] = R"(
  CREATE TABLE times (task INTEGER PRIMARY KEY REFERENCES tasks (id), seconds REAL NOT NULL);
)";

const Diagnostic no_database = {"", "is not a database of measured kernels", "hoist tune makes one"};

Diagnostic failure(sqlite3* database) {
  return sqlite3_errcode(database) == SQLITE_NOTADB ? no_database : Diagnostic{"", sqlite3_errmsg(database), ""};
}

Result<Nothing> execute(sqlite3* database, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return failure(database);
  return Nothing{};
}

// A statement with bound parameters, read row by row.
class Query {
 public:
  static Result<Query> make(sqlite3* database, const std::string& sql) {
    Query out;
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &made, nullptr) != SQLITE_OK) return failure(database);
    out.statement_.reset(made);
    return out;
  }

  Query& bind(const std::string& text) {
    sqlite3_bind_text(statement_.get(), ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Query& bind(int64_t number) {
    sqlite3_bind_int64(statement_.get(), ++bound_, number);
    return *this;
  }
  /// SQLite has no portable infinity, so failures are stored as NULL.
  Query& bind(double number) {
    if (std::isfinite(number))
      sqlite3_bind_double(statement_.get(), ++bound_, number);
    else
      sqlite3_bind_null(statement_.get(), ++bound_);
    return *this;
  }

  /// Steps to the next row; false if there is none.
  Result<bool> next() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return failure(sqlite3_db_handle(statement_.get()));
  }

  std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    const int size = sqlite3_column_bytes(statement_.get(), column);
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<size_t>(size));
  }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  double real(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL
               ? std::numeric_limits<double>::infinity()
               : sqlite3_column_double(statement_.get(), column);
  }

 private:
  struct Finalise {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalise> statement_;
  int bound_ = 0;
};

std::string numbers_text(const std::vector<int64_t>& numbers) { return fmt::format("{}", fmt::join(numbers, " ")); }

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t out = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  return code == std::errc() && end == text.data() + text.size() ? std::optional<int64_t>(out) : std::nullopt;
}

Result<int64_t> task_number(sqlite3* database, const TunedDevice& device, const TuningTask& task) {
  const auto bound = [&](Query& query) -> Query& {
    return query.bind(device.profile).bind(device.target).bind(task.structure).bind(numbers_text(task.numbers));
  };
  HOIST_TRY(
      Query insert,
      Query::make(database, "INSERT OR IGNORE INTO tasks (profile, target, structure, numbers) VALUES (?, ?, ?, ?)"));
  HOIST_TRY_VOID(bound(insert).next());
  HOIST_TRY(Query select, Query::make(database,
                                      "SELECT id FROM tasks WHERE profile = ? AND target = ? AND structure = ? "
                                      "AND numbers = ?"));
  HOIST_TRY(const bool found, bound(select).next());
  if (!found) return Diagnostic{"", "a task that was just written is missing", ""};
  return select.integer(0);
}

// Runs `write` in a transaction: all of its changes, or none.
Result<Nothing> in_transaction(sqlite3* database, const std::function<Result<Nothing>()>& write) {
  HOIST_TRY_VOID(execute(database, "BEGIN IMMEDIATE"));
  auto written = write();
  if (written) written = execute(database, "COMMIT");
  if (!written) HOIST_TRY_VOID(execute(database, "ROLLBACK"));
  return written;
}

Result<int64_t> pragma(sqlite3* database, const std::string& name) {
  HOIST_TRY(Query query, Query::make(database, "PRAGMA " + name));
  HOIST_TRY(const bool any, query.next());
  return any ? query.integer(0) : 0;
}

// The statements that made the tables, and anything else in the file: views and triggers of an untrusted file could run
// forever.
Result<std::vector<std::string>> schema_of(sqlite3* database) {
  HOIST_TRY(Query query, Query::make(database, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY sql"));
  std::vector<std::string> out;
  for (;;) {
    HOIST_TRY(const bool any, query.next());
    if (!any) return out;
    out.push_back(query.text(0));
  }
}

Result<Nothing> expect_schema(sqlite3* database, int64_t version) {
  sqlite3* made = nullptr;
  const int code = sqlite3_open_v2(":memory:", &made, SQLITE_OPEN_READWRITE, nullptr);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> empty(made, sqlite3_close);
  if (code != SQLITE_OK) return Diagnostic{"", "there is no memory for it", ""};
  HOIST_TRY_VOID(execute(empty.get(), schema));
  if (version >= 2) HOIST_TRY_VOID(execute(empty.get(), times_schema));
  HOIST_TRY(const std::vector<std::string> expected, schema_of(empty.get()));
  HOIST_TRY(const std::vector<std::string> found, schema_of(database));
  if (found == expected) return Nothing{};
  return Diagnostic{"", "has other tables than a database of measured kernels", "tune again, into another file"};
}

// Makes the tables in a file without them. A file of an earlier version gets its missing table if it may be written.
Result<Nothing> prepare(sqlite3* database, bool may_make) {
  HOIST_TRY(const int64_t kind, pragma(database, "application_id"));
  HOIST_TRY(const int64_t version, pragma(database, "user_version"));
  HOIST_TRY(const int64_t pages, pragma(database, "page_count"));
  const bool is_earlier = kind == application && version == 1;
  if (is_earlier || (kind == application && version == schema_version))
    HOIST_TRY_VOID(expect_schema(database, version));
  const auto complete = [&](const std::string& tables) {
    return in_transaction(database, [&]() -> Result<Nothing> {
      HOIST_TRY_VOID(execute(database, tables + times_schema));
      return execute(database,
                     fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application, schema_version));
    });
  };
  if (is_earlier) return may_make ? complete("") : Result<Nothing>(Nothing{});
  if (kind == application && version == schema_version) return Nothing{};
  if (kind == application)
    return Diagnostic{"", fmt::format("has version {}, and this hoist reads version {}", version, schema_version),
                      "tune again, into another file"};
  if (pages != 0 || !may_make) return no_database;
  return complete(schema);
}

// The distance of two size vectors; a factor of two in one size counts 1.
double distance(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (a[i] <= 0 || b[i] <= 0) return std::numeric_limits<double>::infinity();
    out = std::max(out, std::abs(std::log2(static_cast<double>(a[i]) / static_cast<double>(b[i]))));
  }
  return out;
}

}  // namespace

void TuningDatabase::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Result<TuningDatabase> TuningDatabase::open_as(const std::filesystem::path& path, int flags) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Diagnostic{path.string(), "is a folder", "a database of measured kernels is a file"};
  TuningDatabase out;
  sqlite3* made = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &made, flags, nullptr);
  out.database_.reset(made);
  const auto located = [&](Diagnostic problem) {
    problem.where = path.string();
    return problem;
  };
  if (code != SQLITE_OK)
    return located(made == nullptr ? Diagnostic{"", "there is no memory for it", ""} : failure(made));
  sqlite3_busy_timeout(made, 5000);
  // With these settings, the schema of an untrusted file runs nothing but queries.
  sqlite3_db_config(made, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(made, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  const bool may_make = (flags & SQLITE_OPEN_CREATE) != 0;
  if (auto ready = prepare(made, may_make); !ready) return located(ready.errors().front());
  return out;
}

Result<TuningDatabase> TuningDatabase::open(const std::filesystem::path& path) {
  return open_as(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

Result<TuningDatabase> TuningDatabase::open_to_read(const std::filesystem::path& path) {
  // Opens for writing if possible, since the unfinished transaction of a killed writer must be rolled back first.
  HOIST_TRY(TuningDatabase out, open_as(path, SQLITE_OPEN_READWRITE));
  if (auto set = execute(out.database_.get(), "PRAGMA query_only = 1"); !set)
    return Diagnostic{path.string(), set.errors().front().what, ""};
  return out;
}

Result<std::vector<Measurement>> TuningDatabase::measurements(const TunedDevice& device, const TuningTask& task) const {
  HOIST_TRY(Query query,
            Query::make(database_.get(),
                        "SELECT knobs, ratio FROM measurements JOIN tasks ON task = id WHERE profile = ? AND target "
                        "= ? AND structure = ? AND numbers = ?"));
  query.bind(device.profile).bind(device.target).bind(task.structure).bind(numbers_text(task.numbers));
  std::vector<Measurement> out;
  for (;;) {
    HOIST_TRY(const bool any, query.next());
    if (!any) return out;
    const double ratio = query.real(1);
    if (auto knobs = parse_knobs(query.text(0)); knobs && ratio > 0) out.push_back({std::move(*knobs), ratio});
  }
}

Result<Nothing> TuningDatabase::add(const TunedDevice& device, const TuningTask& task,
                                    const std::vector<Measurement>& measurements) {
  return in_transaction(database_.get(), [&]() -> Result<Nothing> {
    HOIST_TRY(const int64_t number, task_number(database_.get(), device, task));
    for (const Measurement& measurement : measurements) {
      HOIST_TRY(Query insert, Query::make(database_.get(),
                                          "INSERT OR REPLACE INTO measurements (task, knobs, ratio) VALUES (?, ?, ?)"));
      HOIST_TRY_VOID(insert.bind(number).bind(knobs_text(measurement.knobs)).bind(measurement.ratio).next());
    }
    return Nothing{};
  });
}

Result<std::vector<RecordedChoice>> TuningDatabase::choices(const TunedDevice& device) const {
  HOIST_TRY(Query query,
            Query::make(database_.get(),
                        "SELECT structure, numbers, knobs, ratio FROM choices JOIN tasks ON task = id WHERE profile "
                        "= ? AND target = ? ORDER BY structure, numbers"));
  query.bind(device.profile).bind(device.target);
  std::vector<RecordedChoice> out;
  for (;;) {
    HOIST_TRY(const bool any, query.next());
    if (!any) return out;
    auto numbers = parse_numbers(query.text(1));
    auto knobs = parse_knobs(query.text(2));
    if (numbers && knobs) out.push_back({{query.text(0), std::move(*numbers)}, std::move(*knobs), query.real(3)});
  }
}

Result<std::vector<TunedDevice>> TuningDatabase::devices() const {
  HOIST_TRY(Query query,
            Query::make(database_.get(), "SELECT DISTINCT profile, target FROM tasks ORDER BY profile, target"));
  std::vector<TunedDevice> out;
  for (;;) {
    HOIST_TRY(const bool any, query.next());
    if (!any) return out;
    out.push_back({query.text(0), query.text(1)});
  }
}

Result<Nothing> TuningDatabase::choose(const TunedDevice& device, const std::vector<RecordedChoice>& choices) {
  return in_transaction(database_.get(), [&]() -> Result<Nothing> {
    for (const RecordedChoice& choice : choices) {
      HOIST_TRY(const int64_t number, task_number(database_.get(), device, choice.task));
      HOIST_TRY(Query insert,
                Query::make(database_.get(), "INSERT OR REPLACE INTO choices (task, knobs, ratio) VALUES (?, ?, ?)"));
      HOIST_TRY_VOID(insert.bind(number).bind(knobs_text(choice.knobs)).bind(choice.ratio).next());
    }
    return Nothing{};
  });
}

Result<KernelTimes> TuningDatabase::times(const TunedDevice& device) const {
  KernelTimes out;
  HOIST_TRY(const int64_t version, pragma(database_.get(), "user_version"));
  if (version < 2) return out;
  HOIST_TRY(Query query, Query::make(database_.get(),
                                     "SELECT structure, numbers, seconds FROM times JOIN tasks ON task = id WHERE "
                                     "profile = ? AND target = ?"));
  query.bind(device.profile).bind(device.target);
  for (;;) {
    HOIST_TRY(const bool any, query.next());
    if (!any) return out;
    auto numbers = parse_numbers(query.text(1));
    const double seconds = query.real(2);
    if (numbers && seconds > 0 && std::isfinite(seconds)) out[{query.text(0), std::move(*numbers)}] = seconds;
  }
}

Result<Nothing> TuningDatabase::add_times(const TunedDevice& device, const KernelTimes& times) {
  return in_transaction(database_.get(), [&]() -> Result<Nothing> {
    for (const auto& [task, seconds] : times) {
      HOIST_TRY(const int64_t number, task_number(database_.get(), device, task));
      HOIST_TRY(Query insert,
                Query::make(database_.get(), "INSERT OR REPLACE INTO times (task, seconds) VALUES (?, ?)"));
      HOIST_TRY_VOID(insert.bind(number).bind(seconds).next());
    }
    return Nothing{};
  });
}

TunedDevice tuned_device(const Profile& profile, const std::vector<std::string>& targets) {
  return {print_without_rates(profile), targets.empty() ? "" : targets.front()};
}

std::string knobs_text(const KnobValues& knobs) {
  std::string out;
  for (const auto& [name, value] : knobs) out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, value);
  return out;
}

std::optional<KnobValues> parse_knobs(const std::string& text) {
  KnobValues out;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) return std::nullopt;
    const auto value = parse_number(std::string_view(word).substr(equals + 1));
    if (!value) return std::nullopt;
    out[present_knob_name(word.substr(0, equals))] = *value;
  }
  return out;
}

std::optional<std::vector<int64_t>> parse_numbers(const std::string& text) {
  std::vector<int64_t> out;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto number = parse_number(word);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

TuningRecords records_of(std::vector<RecordedChoice> choices, double farthest) {
  auto by_structure = std::make_shared<std::map<std::string, std::vector<RecordedChoice>>>();
  for (RecordedChoice& choice : choices) (*by_structure)[choice.task.structure].push_back(std::move(choice));
  return [by_structure, farthest](const TuningTask& task) -> KnobValues {
    const auto found = by_structure->find(task.structure);
    if (found == by_structure->end()) return {};
    const RecordedChoice* nearest = nullptr;
    double least = farthest;
    for (const RecordedChoice& choice : found->second) {
      const double far = distance(choice.task.numbers, task.numbers);
      if (far > farthest || (nearest != nullptr && far >= least)) continue;
      nearest = &choice;
      least = far;
    }
    return nearest == nullptr ? KnobValues() : nearest->knobs;
  };
}

TuningRecords records_in(const std::map<TuningTask, RecordedChoice>& choices) {
  return [&choices](const TuningTask& task) -> KnobValues {
    const auto found = choices.find(task);
    return found == choices.end() ? KnobValues() : found->second.knobs;
  };
}

}  // namespace hoist::tuning
