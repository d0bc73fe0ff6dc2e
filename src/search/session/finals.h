// Which of the kernels that took turns is delivered.
//
// Some of them are what everybody has without this search: the candidate that came first, which rules or the space
// alone choose, and the winner of earlier finals. They stand until another one is clearly faster: by the ratios of
// times of the same rounds, those without a disturbance where there are enough of them. A search on a busy machine
// finds nothing then rather than something slower.
//
//   rounds          1     2     3     4     5     6      standing / A: 1.00 to 1.02  -> stays
//   standing (ms)   1.00  1.02  1.00  1.01  1.00  1.02   standing / B: 1.24 to 1.26  -> B is delivered
//   A               0.99  1.02  1.00  1.00  0.99  1.00
//   B               0.80  0.82  0.80  0.81  0.80  0.82
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "search/measure/pipeline.h"

namespace tilewright::search {

/// One kernel of the finals.
struct FinalTime {
  std::string kind;    ///< "trial", "written" (the program as the user wrote it) or "heuristic"
  int64_t record = 0;  ///< id of its record; 0: it has none
  double seconds = 0;  ///< per call: median of the rounds that nothing disturbed
  /// Time in units of the winner's time in the same rounds.
  PairedRatio ratio;
};

/// Returns the ratio of the times of `first` and `second`, by the undisturbed rounds, or by all rounds if few are
/// undisturbed. An interval from few rounds is too small.
PairedRatio ratio_in_finals(const FinalsResult& finals, size_t first, size_t second);

/// The kernel to deliver: of `standing`, in the order of their precedence, and of all others that are clearly faster
/// than each of those the fastest. Kernels from `count` on take no part.
size_t winner_of(const FinalsResult& finals, const std::vector<size_t>& standing, size_t count);

/// Seconds per call of a kernel: of its undisturbed rounds, or of all where there is none.
std::vector<double> seconds_in_finals(const FinalsResult& finals, size_t kernel);

FinalTime time_in_finals(const FinalsResult& finals, std::string kind, int64_t record, size_t kernel, size_t winner);

}  // namespace tilewright::search
