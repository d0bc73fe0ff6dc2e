// Exchange of tuning records as JSON lines, in the layout of TVM's JSON database, one value a line:
//
//   database_workload.json        ["<hash>", "<base64 of the program>"], and what else is known of it (Workloads)
//   database_tuning_record.json   [workload index, [trace, run_secs | null, target | null, args_info | null, {...}]]
//
// A record's fifth entry holds what TVM's records do not have (outcome, error, seed, ...) and may be missing. A failed
// record has run_secs [1e10], as in TVM; one that was not measured null. Sessions are not exchanged.
#pragma once

#include <functional>
#include <string>

#include "search/database/database.h"

namespace tilewright::search {

struct ExchangeCount {
  int64_t workloads = 0;
  int64_t records = 0;
};

/// Lines of programs, whose text somebody else knows.
struct WorkloadLines {
  std::function<Result<std::string>(const Workload& workload)> write;
  /// All but when it was made.
  std::function<Result<Workload>(const std::string& line)> read;
};

/// Writes both files into `folder`, which has to exist; each is replaced in one step.
Result<ExchangeCount> export_json_lines(Database& database, const std::string& folder, const WorkloadLines& lines);

/// Adds what is not there yet and counts that. All lines are read before the first is stored, so a bad line (named by
/// file and number) stores nothing.
Result<ExchangeCount> import_json_lines(Database& database, const std::string& folder, const WorkloadLines& lines);

}  // namespace tilewright::search
