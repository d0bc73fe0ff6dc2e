// Schedules the measurements of the incumbent between those of candidates, and keeps the recent ones (decision 0045).
//
// They take a bounded fraction of the time, whether candidates are measured briefly or for long: consecutive candidates
// share them. The class only decides and stores; its caller measures.
#pragma once

#include <deque>
#include <limits>
#include <vector>

namespace tilewright::search {

class IncumbentTimes {
 public:
  /// Whether the incumbent should be timed now. `now`: seconds of any steady clock.
  bool is_due(double now) const;

  /// Adds a slice from `begin` to `end`, whose calls took `seconds` each. A disturbed slice is kept only until there is
  /// an undisturbed one.
  void add(double begin, double end, double seconds, bool is_undisturbed);

  /// The median time of a call in recent slices; 0 without any. For an even number, the lower one of the two medians,
  /// since disturbances only make slices longer.
  double median(double now) const;

  /// The least time of a call in recent slices, to compare with the fastest slice of a candidate; 0 without any.
  double fastest(double now) const;

  /// Whether there is a recent undisturbed slice.
  bool is_known(double now) const;

  /// Discards all slices, when the incumbent changes.
  void clear() { *this = {}; }

 private:
  struct Timed {
    double begin, end, seconds;
    bool is_undisturbed;
  };
  bool is_recent(const Timed& slice, double now) const;
  std::vector<double> recent(double now) const;

  std::deque<Timed> slices_;    ///< in order of time
  double begin_ = 0, end_ = 0;  ///< times of the latest slice, even if it was not kept
};

/// The fastest correct candidate that was measured beside an incumbent. Tasks that were queued before the session got
/// its result still name the old incumbent; their candidates race against this one.
struct FastestBeside {
  double share = 1;  ///< its seconds divided by those of the incumbent at that time
  double seconds = std::numeric_limits<double>::infinity();  ///< its seconds

  void add(double candidate_seconds, double incumbent_seconds);
  /// Returns its expected seconds now, given those of the incumbent now. The result is at most the incumbent's seconds,
  /// and at least its measured ones: the ratio is too low if other work slowed down the incumbent.
  double now(double incumbent_seconds) const;

  template <class A>
  void fields(A& a) {
    a(share, seconds);
  }
};

}  // namespace tilewright::search
