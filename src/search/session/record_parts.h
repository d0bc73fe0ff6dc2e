// Between records and what the search works with: results of runs, decisions of traces, tolerances of outputs.
#pragma once

#include <string>

#include "search/database/database.h"
#include "search/measure/arguments.h"
#include "search/measure_candidate.h"

namespace tilewright::search {

/// Converts a record to a result for a strategy. The times of candidates that were stopped as slow count, too.
RunnerResult result_of(const Record& record);

/// The sampling decisions of a trace (JSON), as JSON; "[]" where it has none.
std::string decisions_json(const std::string& trace);

/// The tolerance of each output, by its name, as the inside of a JSON object.
std::string tolerances_json(const Arguments& arguments);

}  // namespace tilewright::search
