#include "search/session/finals.h"

#include <gtest/gtest.h>

#include <random>

namespace tilewright::search {
namespace {

/// Rounds in which each kernel takes its time, and where other work disturbs it, up to `load` times as long.
FinalsResult rounds_of(const std::vector<double>& times, size_t rounds, double share_disturbed, double load,
                       unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  FinalsResult result;
  result.seconds.resize(times.size());
  result.disturbed.resize(times.size());
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t kernel = 0; kernel < times.size(); ++kernel) {
      const bool disturbed = uniform(random) < share_disturbed;
      const double noise = 1 + 0.01 * uniform(random);
      result.seconds[kernel].push_back(times[kernel] * noise * (disturbed ? 1 + (load - 1) * uniform(random) : 1));
      result.disturbed[kernel].push_back(disturbed);
    }
  }
  return result;
}

TEST(Finals, TheClearlyFastestWins) {
  EXPECT_EQ(winner_of(rounds_of({1.0, 0.9, 0.8, 0.85}, 20, 0, 1, 1), {0}, 4), 2u);
  // Kernels beyond the count take no part.
  EXPECT_EQ(winner_of(rounds_of({1.0, 0.9, 0.8}, 20, 0, 1, 1), {0}, 2), 1u);
}

TEST(Finals, WhatStandsStaysWhereNothingIsClearlyFaster) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(winner_of(rounds_of({1.0, 1.02, 1.1}, 20, 0, 1, seed), {0}, 3), 0u) << seed;
    // Every round is disturbed, each kernel for itself: up to 20 times as long.
    EXPECT_NE(winner_of(rounds_of({1.0, 1.6, 1.4}, 60, 1, 20, seed), {0}, 3), 1u) << seed;
  }
}

TEST(Finals, SlowerOnesAreNotDeliveredByChance) {
  int wrong = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    wrong += winner_of(rounds_of({1.0, 1.1, 1.1, 1.1, 1.1}, 60, 1, 10, seed), {0}, 5) != 0;
    wrong += winner_of(rounds_of({1.0, 1.1, 1.1, 1.1, 1.1}, 3, 0, 1, seed), {0}, 5) != 0;
    wrong += winner_of(rounds_of({1.0, 1.05, 1.05}, 60, 0.5, 10, seed), {0}, 3) != 0;
  }
  EXPECT_LE(wrong, 6);  // of 600: a 95 % interval is wrong on one side one time in 40, for equal kernels
}

TEST(Finals, DisturbedRoundsStillShowLargeGains) {
  int found = 0;
  for (unsigned seed = 0; seed < 50; ++seed) found += winner_of(rounds_of({1.0, 0.3}, 60, 1, 3, seed), {0}, 2) == 1;
  EXPECT_GE(found, 48);
}

TEST(Finals, FewRoundsHaveToShowMore) {
  EXPECT_EQ(winner_of(rounds_of({1.0, 0.95}, 2, 0, 1, 1), {0}, 2), 0u);
  EXPECT_EQ(winner_of(rounds_of({1.0, 0.7}, 1, 0, 1, 1), {0}, 2), 1u);
}

TEST(Finals, TheWinnerOfEarlierFinalsStandsToo) {
  // 0: the winner of earlier finals; 1: what came first; 2: new.
  EXPECT_EQ(winner_of(rounds_of({0.8, 1.0, 0.9}, 20, 0, 1, 1), {0, 1}, 3), 0u);
  EXPECT_EQ(winner_of(rounds_of({1.2, 1.0, 1.1}, 20, 0, 1, 1), {0, 1}, 3), 1u);
  EXPECT_EQ(winner_of(rounds_of({0.8, 1.0, 0.6}, 20, 0, 1, 1), {0, 1}, 3), 2u);
}

TEST(Finals, OneKernelIsComparedWithTheWinnerInTheRoundsThatItHad) {
  FinalsResult result;
  result.seconds = {{1, 2, 1, 1, 1, 1}, {3, 6, 3, 3, 3, 9}, {10}};
  result.disturbed = {{false, false, false, false, false, false}, {false, false, false, false, false, true}, {false}};
  const FinalTime second = time_in_finals(result, "trial", 7, 1, 0);
  EXPECT_EQ(second.kind, "trial");
  EXPECT_EQ(second.record, 7);
  EXPECT_EQ(second.seconds, 3);  // the disturbed round does not count
  EXPECT_EQ(second.ratio.median, 3);
  const FinalTime slow = time_in_finals(result, "written", 0, 2, 0);
  EXPECT_EQ(slow.seconds, 10);
  EXPECT_EQ(slow.ratio.median, 10);
  EXPECT_LT(slow.ratio.low, 10);                                        // one round says less than it shows
  EXPECT_EQ(time_in_finals(result, "trial", 5, 0, 0).ratio.median, 1);  // the winner itself
}

TEST(Finals, TimesAreThoseOfUndisturbedRounds) {
  FinalsResult result;
  result.seconds = {{3, 1, 5}, {2, 2, 2}};
  result.disturbed = {{true, false, true}, {true, true, true}};
  EXPECT_EQ(seconds_in_finals(result, 0), std::vector<double>{1});
  EXPECT_EQ(seconds_in_finals(result, 1), (std::vector<double>{2, 2, 2}));
}

}  // namespace
}  // namespace tilewright::search
