#include "search/measure/incumbent_times.h"

#include <gtest/gtest.h>

namespace tilewright::search {
namespace {

TEST(IncumbentTimes, SlicesAreABoundedShareOfTheTime) {
  for (const double slice : {1e-3, 1e-2}) {
    IncumbentTimes times;
    double now = 5, spent = 0;
    for (const double begin = now; now < begin + 1000 * slice; now += slice / 2) {  // slices of a candidate
      if (!times.is_due(now)) continue;
      times.add(now, now + slice, 2 * slice, true);
      now += slice;
      spent += slice;
      EXPECT_EQ(times.median(now), 2 * slice);
    }
    EXPECT_LT(spent, 1.05 * 1000 * slice / 40);
    EXPECT_GT(spent, 1000 * slice / 50);
  }
}

TEST(IncumbentTimes, CandidatesThatFollowOneAnotherShareSlices) {
  IncumbentTimes times;
  EXPECT_TRUE(times.is_due(1.000));
  times.add(1.000, 1.001, 3e-3, true);
  EXPECT_FALSE(times.is_due(1.005));
  EXPECT_TRUE(times.is_known(1.005));
  EXPECT_TRUE(times.is_due(1.5)) << "after a pause, the time of then says little";
  EXPECT_EQ(times.median(1.5), 0);
  times.add(1.500, 1.501, 4e-3, true);
  EXPECT_EQ(times.median(1.501), 4e-3) << "the slice before the pause does not count";
}

TEST(IncumbentTimes, TheMedianFollowsAHostThatDrifts) {
  IncumbentTimes times;
  double now = 1;
  for (int i = 0; i < 40; ++i, now += 0.05) times.add(now, now + 1e-3, i < 20 ? 1e-3 : 2e-3, true);
  EXPECT_EQ(times.median(now), 2e-3);
  EXPECT_EQ(times.fastest(now), 2e-3);
  times.add(now, now + 1e-3, 1.5e-3, true);
  EXPECT_EQ(times.median(now), 2e-3);
  EXPECT_EQ(times.fastest(now), 1.5e-3);
}

TEST(IncumbentTimes, DisturbedSlicesCountWhereThereIsNoOther) {
  IncumbentTimes times;
  times.add(1.000, 1.005, 5e-3, false);
  EXPECT_FALSE(times.is_known(1.005));
  EXPECT_EQ(times.median(1.005), 5e-3);
  times.add(1.005, 1.006, 1e-3, true);
  EXPECT_EQ(times.median(1.006), 1e-3);
  times.add(1.020, 1.029, 9e-3, false);
  EXPECT_EQ(times.median(1.03), 1e-3);
  EXPECT_FALSE(times.is_due(1.2)) << "a disturbed slice has taken its share of the time, too";
  times.clear();
  EXPECT_TRUE(times.is_due(1.2));
  EXPECT_EQ(times.median(1.1), 0);
}

TEST(FastestBeside, FollowsTheIncumbent) {
  FastestBeside fastest;
  EXPECT_EQ(fastest.now(2e-3), 2e-3) << "before there is one, the incumbent";
  fastest.add(3e-3, 2e-3);
  EXPECT_EQ(fastest.now(2e-3), 2e-3) << "slower than the incumbent";
  fastest.add(1e-3, 2e-3);
  EXPECT_EQ(fastest.now(2e-3), 1e-3);
  EXPECT_EQ(fastest.now(4e-3), 2e-3) << "the host became slower";
  EXPECT_EQ(fastest.now(1.5e-3), 1e-3) << "its ratio says 0.75 ms, which it never took";
  EXPECT_EQ(fastest.now(0.5e-3), 0.5e-3);
}

TEST(FastestBeside, ARatioToADisturbedIncumbentDoesNotCountForLong) {
  FastestBeside fastest;
  fastest.add(1e-3, 9e-3);
  EXPECT_EQ(fastest.now(1.1e-3), 1e-3);
}

}  // namespace
}  // namespace tilewright::search
