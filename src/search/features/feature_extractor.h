// Numbers that describe candidates, for cost models.
#pragma once

#include <vector>

#include "search/measure_candidate.h"
#include "search/tune_context.h"

namespace tilewright::search {

/// Row-major.
struct FeatureMatrix {
  size_t rows = 0, columns = 0;
  std::vector<double> values;
};

class FeatureExtractor {
 public:
  using Kind = FeatureExtractor;
  virtual ~FeatureExtractor() = default;
  /// One matrix for each candidate, of as many rows as there are things to describe in it.
  virtual Result<std::vector<FeatureMatrix>> extract_from(const TuneContext& context,
                                                          const MeasureCandidates& candidates) = 0;
};

}  // namespace tilewright::search
