#include "search/database/json_lines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "search/database/damage.h"
#include "search/database/upkeep.h"
#include "target/target.h"

namespace tilewright::search {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kWorkloadFile = "/database_workload.json";
constexpr const char* kRecordFile = "/database_tuning_record.json";
/// What TVM stores as the time of a candidate that failed.
constexpr double kFailedSeconds = 1e10;
/// The outcome of what nobody has measured.
constexpr const char* kNotMeasured = "not_measured";

/// Texts that hold JSON become JSON, unless that would not give back the same text.
Json embed(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  if (!value.is_discarded() && !value.is_string() && value.dump() == text) return value;
  return text;
}

std::string extract(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Invalid UTF-8 (a message cut in the middle of a character) is replaced, never thrown about.
std::string line_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Status write_file(const std::string& path, const std::string& text) {
  const std::string scratch = fmt::format("{}.new-{}", path, ::getpid());
  std::FILE* file = std::fopen(scratch.c_str(), "wbe");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int error = errno;
  if (file && std::fclose(file) != 0) {
    written = false;
    error = errno;
  }
  if (written && std::rename(scratch.c_str(), path.c_str()) == 0) return Ok{};
  if (written) error = errno;
  ::unlink(scratch.c_str());
  return resource_error("database/export", fmt::format("{}: cannot be written ({})", path, std::strerror(error)),
                        "check the folder, its permissions and its free space; the database is unchanged");
}

Json record_line(const Record& record, int64_t workload_index) {
  const Json extra = {{"outcome", record.outcome},
                      {"error", record.error},
                      {"decisions", embed(record.decisions)},
                      {"verification", embed(record.verification)},
                      {"seed", record.seed},
                      {"round", record.round},
                      {"index", record.index},
                      {"host", embed(record.host)},
                      {"versions", embed(record.versions)},
                      {"created", record.created}};
  Json seconds = record.is_ok() ? Json(record.seconds) : Json::array({kFailedSeconds});
  if (record.outcome == kNotMeasured) seconds = nullptr;
  Json target;
  if (!record.target.empty()) {
    const auto known = Target::parse(record.target);
    target = known.ok() ? Json::parse(known->json()) : embed(record.target);
  }
  Json trace = Json::parse(record.trace, nullptr, false);
  if (trace.is_discarded()) trace = record.trace;
  return Json::array({workload_index, Json::array({trace, seconds, target, nullptr, extra})});
}

/// As the tables have it, where this version knows the target.
std::string target_of(const Json& value) {
  const std::string text = extract(value);
  const auto target = Target::parse(text);
  return target.ok() && !text.empty() ? target->str() : text;
}

/// One line of an import, told apart from its meaning so that every message can name it.
struct Line {
  std::string file;
  int number = 0;
  Json value;

  Diagnostic bad(const std::string& what, const std::string& hint = "nothing was imported") const {
    return resource_error("database/bad-line", fmt::format("{}:{}: {}", file, number, what), hint);
  }
};

Result<std::vector<Line>> read_lines(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return resource_error("database/import", fmt::format("{}: cannot be read ({})", path, std::strerror(errno)),
                          "an import takes a folder with database_workload.json and database_tuning_record.json");
  }
  std::vector<Line> lines;
  std::string text;
  for (int number = 1; std::getline(stream, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    Line line{path, number, Json::parse(text, nullptr, false)};
    if (line.value.is_discarded()) return line.bad("is not JSON");
    lines.push_back(std::move(line));
  }
  return lines;
}

template <class T>
T get_or(const Json& object, const char* key, T fallback) {
  const auto found = object.find(key);
  if (found == object.end()) return fallback;
  if constexpr (std::is_same_v<T, std::string>) {
    return extract(*found);
  } else {
    return found->is_number_integer() ? found->get<T>() : fallback;
  }
}

Result<Record> parse_record(const Line& line, const std::vector<Workload>& workloads) {
  const Json& value = line.value;
  if (!value.is_array() || value.size() != 2 || !value[0].is_number_integer() || !value[1].is_array() ||
      value[1].size() < 4 || value[1].size() > 5)
    return line.bad("is not a record: expected [workload index, [trace, run_secs, target, args_info]]");
  const int64_t index = value[0].get<int64_t>();
  if (index < 0 || index >= static_cast<int64_t>(workloads.size()))
    return line.bad(fmt::format("names workload {}, but there are {}", index, workloads.size()));
  const Json& entry = value[1];
  Record record;
  record.workload = workloads[index].hash;
  record.trace = extract(entry[0]);
  record.target = target_of(entry[2]);
  if (!entry[1].is_null() && !entry[1].is_array()) return line.bad("run_secs is not a list");
  for (const Json& second : entry[1]) {
    if (!second.is_number()) return line.bad("run_secs is not a list of numbers");
    if (second.get<double>() < kFailedSeconds) record.seconds.push_back(second.get<double>());
  }
  record.outcome = entry[1].is_null() ? kNotMeasured : record.seconds.empty() ? "run_error" : "ok";
  if (entry.size() == 5 && !entry[4].is_object()) return line.bad("the fifth entry is not an object");
  if (entry.size() == 5) {
    const Json& extra = entry[4];
    record.outcome = get_or(extra, "outcome", record.outcome);
    record.error = get_or(extra, "error", std::string());
    record.decisions = get_or(extra, "decisions", std::string());
    record.verification = get_or(extra, "verification", std::string());
    record.seed = get_or<uint64_t>(extra, "seed", 0);
    record.round = get_or<int64_t>(extra, "round", 0);
    record.index = get_or<int64_t>(extra, "index", 0);
    record.host = get_or(extra, "host", std::string());
    record.versions = get_or(extra, "versions", std::string());
    record.created = get_or(extra, "created", std::string());
  }
  return record;
}

}  // namespace

Result<ExchangeCount> export_json_lines(Database& database, const std::string& folder, const WorkloadLines& lines) {
  TW_TRY(workloads, database.workloads());
  ExchangeCount count;
  std::string workload_text, record_text;
  for (const Workload& workload : workloads) {
    TW_TRY(line, lines.write(workload));
    workload_text += line + "\n";
    TW_TRY(records, database.records(workload.hash, ""));
    std::erase_if(records, [](const Record& record) { return record.outcome == kDamaged; });
    for (const Record& record : records) record_text += line_of(record_line(record, count.workloads));
    ++count.workloads;
    count.records += static_cast<int64_t>(records.size());
  }
  TW_RETURN_IF_ERROR(write_file(folder + kWorkloadFile, workload_text));
  TW_RETURN_IF_ERROR(write_file(folder + kRecordFile, record_text));
  return count;
}

Result<ExchangeCount> import_json_lines(Database& database, const std::string& folder, const WorkloadLines& lines) {
  TW_TRY(workload_lines, read_lines(folder + kWorkloadFile));
  TW_TRY(record_lines, read_lines(folder + kRecordFile));
  std::vector<Workload> workloads;
  for (const Line& line : workload_lines) {
    auto workload = lines.read(line.value.dump());
    if (!workload.ok()) {
      const Diagnostic& why = workload.error();
      return line.bad(why.message, why.hint.empty() ? "nothing was imported" : why.hint);
    }
    workloads.push_back(std::move(*workload));
  }
  std::vector<Record> records;
  for (const Line& line : record_lines) {
    TW_TRY(record, parse_record(line, workloads));
    records.push_back(std::move(record));
  }

  ExchangeCount count;
  std::map<Hash128, std::set<std::string>> stored;
  for (const Workload& workload : workloads) {
    TW_TRY(known, database.workload(workload.hash));
    if (!known) {
      TW_RETURN_IF_ERROR(database.commit_workload(workload.hash, workload.name, workload.script, workload.sizes));
      ++count.workloads;
    }
    TW_TRY(present, database.records(workload.hash, ""));
    for (const Record& record : present) stored[workload.hash].insert(identity(record));
  }
  for (const Record& record : records) {
    if (!stored[record.workload].insert(identity(record)).second) continue;
    TW_TRY(id, database.commit(record));
    (void)id;
    ++count.records;
  }
  return count;
}

}  // namespace tilewright::search
