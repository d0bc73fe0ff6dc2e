// Coordinate descent over decisions: around the best points, one decision at a time is changed.
//
// A center is a measured point. Its neighbors are all points that differ in one decision. Those that the models like
// are measured first; what is faster than the center becomes the next one. A center is closed when no neighbor is left,
// or when what its neighbors took so far says that another one is hardly faster: their times against its own, taken as
// normally distributed logarithms, make fewer than a twentieth of an improvement by a percent likely among all the
// rest.
#pragma once

#include <map>
#include <vector>

#include "search/strategy/points.h"

namespace tilewright::search {

class Descent {
 public:
  /// A point that was measured, or known from a database; infinity where it failed.
  void measured(const Point& point, double seconds);
  /// The next center that is to be gone around, the fastest open one among the best; null: all are closed.
  const Point* center();
  /// Whether its neighbors were requested before.
  bool is_expanded(const Hash128& center) const { return centers_.at(center).expanded; }
  /// Where a center is gone around. `neighbors` have no time yet; those that have one are found among what was
  /// measured.
  void expanded(const Hash128& center, const std::vector<Hash128>& neighbors);
  /// Every decision of a point changed to each near alternative, at most so many.
  static std::vector<Variation> around(const Point& center, size_t limit);

 private:
  struct Center {
    Point point;
    double seconds;
    bool expanded = false, closed = false;
    size_t left = 0;               ///< neighbors without a time
    std::vector<double> ratios{};  ///< logarithms of the times of its neighbors over its own
  };
  static bool is_hopeless(const Center& center);
  static double ratio_of(const Center& center, double seconds);

  std::map<Hash128, Center> centers_;     ///< all that has a time
  std::vector<Center*> best_;             ///< the fastest centers, in order of time
  std::map<Hash128, Hash128> neighbors_;  ///< center of each neighbor
};

}  // namespace tilewright::search
