// Predicts which candidates are fast without measuring them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "search/measure_candidate.h"
#include "search/tune_context.h"

namespace tilewright::search {

class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual Status load(const std::string& path) = 0;
  virtual Status save(const std::string& path) = 0;
  /// Learns from measurements; `results` has one for each candidate.
  virtual Status update(const TuneContext& context, const MeasureCandidates& candidates,
                        const RunnerResults& results) = 0;
  /// A score for each candidate: the greater, the faster.
  virtual Result<std::vector<double>> predict(const TuneContext& context, const MeasureCandidates& candidates) = 0;
};

}  // namespace tilewright::search
