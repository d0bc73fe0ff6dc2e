// When the incumbent is timed between the slices of candidates, and what it takes now (decision 0045).
//
// Its slices are a bounded share of the time, however short or long the measurement of a candidate is: candidates that
// follow one another closely share them. The class decides and keeps the samples; it measures nothing.
#pragma once

#include <deque>
#include <vector>

namespace tilewright::search {

class IncumbentTimes {
 public:
  /// Whether a slice should come now, at `now` seconds of any steady clock.
  bool is_due(double now) const;

  /// A slice that began at `begin` and ended at `end`; `seconds` are those of one call. Of disturbed ones the latest
  /// counts as long as there is no other.
  void add(double begin, double end, double seconds, bool is_undisturbed);

  /// The median of the slices that are not too old; of two in the middle the smaller one, since what disturbs them only
  /// makes them longer. 0: there is none.
  double median(double now) const;

  /// The fastest of them: what the fastest slice of a candidate compares with. 0: there is none.
  double fastest(double now) const;

  /// Whether an undisturbed slice is not too old.
  bool is_known(double now) const;

  /// Forgets all of them, for another incumbent.
  void clear() { *this = {}; }

 private:
  struct Timed {
    double begin, end, seconds;
    bool is_undisturbed;
  };
  bool is_recent(const Timed& slice, double now) const;
  std::vector<double> recent(double now) const;

  std::deque<Timed> slices_;    ///< the latest last
  double begin_ = 0, end_ = 0;  ///< of the latest one, whether or not it counts; 0: there was none
};

}  // namespace tilewright::search
