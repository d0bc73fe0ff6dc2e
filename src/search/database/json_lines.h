// Exchange of tuning records as JSON lines, in the shape of TVM's JSON database, one value a line:
//
//   database_workload.json        ["<hash>", {"tvmscript": "<script>", "name": "<name>"}]
//   database_tuning_record.json   [workload index, [trace, run_secs | null, target | null, null, {...}]]
//
// The workload is its script, since TVM's own object graph changes with every release of TVM; a record's fifth entry
// holds what TVM's records do not have (outcome, error, seed, ...) and may be missing. A failed record has run_secs
// [1e10], as in TVM. Sessions are not exchanged.
#pragma once

#include <functional>
#include <string>

#include "search/database/database.h"

namespace tilewright::search {

struct ExchangeCount {
  int64_t workloads = 0;
  int64_t records = 0;
};

/// Writes both files into `folder`, which has to exist; each is replaced in one step.
Result<ExchangeCount> export_json_lines(Database& database, const std::string& folder);

/// Computes the structural hash of a script.
using HashScript = std::function<Result<Hash128>(const std::string& script)>;

/// Adds what is not there yet and counts that. All lines are read before the first is stored, so a bad line (named by
/// file and number) stores nothing. With `hash_script` the hashes are computed anew; without it those in the file are
/// trusted.
Result<ExchangeCount> import_json_lines(Database& database, const std::string& folder,
                                        const HashScript& hash_script = {});

}  // namespace tilewright::search
