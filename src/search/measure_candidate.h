// Candidates that strategies propose, and the results that they get back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace tilewright::search {

/// One tensor that a kernel is called with.
struct ArgInfo {
  DataType dtype;
  std::vector<int64_t> shape;
  friend bool operator==(const ArgInfo&, const ArgInfo&) = default;
};

/// A point of a space, postprocessed: it can be built and measured.
struct MeasureCandidate {
  schedule::Schedule schedule;
  std::vector<ArgInfo> args_info;
};
using MeasureCandidates = std::vector<MeasureCandidate>;

/// Result of a measurement: seconds per call, one for each repeat, or an error message.
struct RunnerResult {
  std::vector<double> run_secs;
  std::optional<std::string> error_msg;
};
using RunnerResults = std::vector<RunnerResult>;

}  // namespace tilewright::search
