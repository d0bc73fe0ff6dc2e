#include "search/measure/race.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace tilewright::search {
namespace {

/// Runs a race against made-up times: `seconds(i)` per call in slice i. Returns the number of slices.
int run(Race& race, const std::function<double(int)>& seconds, const std::function<bool(int)>& disturbed = {},
        double probe = 1.0) {
  int slices = 0;
  while (int64_t calls = race.next_calls()) {
    const double wall = seconds(slices) * static_cast<double>(calls);
    race.observe({calls, wall, wall, disturbed && disturbed(slices) ? 1 : 0});
    ++slices;
    if (race.wants_probe()) race.observe_probe(probe);
    if (slices > 10000) ADD_FAILURE() << "the race does not end";
    if (slices > 10000) break;
  }
  return slices;
}

RaceRules against(double incumbent) {
  RaceRules rules;
  rules.incumbent = incumbent;
  return rules;
}

TEST(Race, AClearlySlowCandidateIsCalledOnce) {
  Race race(against(2e-3), 1);
  EXPECT_EQ(run(race, [](int) { return 4.6e-3; }), 1);
  EXPECT_EQ(race.verdict(), Race::Verdict::kSlow);
  EXPECT_EQ(race.seconds(), std::vector<double>{4.6e-3});
}

TEST(Race, ASlowFirstCallAloneIsForgiven) {
  // Cold caches: 1.9 x on the first call, then as fast as the best.
  Race race(against(2e-3), 1);
  EXPECT_GT(run(race, [](int i) { return i == 0 ? 3.8e-3 : 2e-3; }), 20);
  EXPECT_EQ(race.verdict(), Race::Verdict::kContender);
  for (double seconds : race.seconds()) EXPECT_DOUBLE_EQ(seconds, 2e-3);  // neither first call nor warm-up counts
}

TEST(Race, AShortKernelsColdFirstCallIsNoProof) {
  Race race(against(3e-6), 1);
  run(race, [](int i) { return i == 0 ? 60e-6 : 3e-6; });
  EXPECT_EQ(race.verdict(), Race::Verdict::kContender);
}

TEST(Race, BetweenTheRatiosTwoCallsSuffice) {
  Race race(against(2e-3), 1);
  EXPECT_EQ(run(race, [](int) { return 3.2e-3; }), 2);
  EXPECT_EQ(race.verdict(), Race::Verdict::kSlow);
}

TEST(Race, AShortKernelIsInDoubtForAWhile) {
  // Beside a busy neighbor at first, as fast as the best after that.
  Race race(against(3e-6), 1);
  run(race, [](int i) { return i < 4 ? 5.7e-6 : 3e-6; });
  EXPECT_EQ(race.verdict(), Race::Verdict::kContender);
  Race slow(against(3e-6), 1);
  EXPECT_LE(run(slow, [](int) { return 5.7e-6; }), 7);
  EXPECT_EQ(slow.verdict(), Race::Verdict::kSlow);
}

TEST(Race, AMediocreCandidateIsScreenedOnly) {
  Race race(against(2e-3), 1);
  EXPECT_EQ(run(race, [](int) { return 2.5e-3; }), 2 + 5);
  EXPECT_EQ(race.verdict(), Race::Verdict::kScreened);
  EXPECT_EQ(race.seconds().size(), 5u);
}

TEST(Race, TheCloserToTheBestTheLongerItContends) {
  // 10 % slower than the best may be chance in five slices, 5 % in ten.
  for (auto [slower, slices] : {std::pair(1.09, 6), {1.06, 9}, {1.04, 13}, {1.027, 19}}) {
    Race race(against(2e-3), 1);
    EXPECT_EQ(run(race, [&](int) { return slower * 2e-3; }), 2 + slices) << slower;
    EXPECT_EQ(race.verdict(), Race::Verdict::kScreened);
  }
}

TEST(Race, AContenderGetsAllSlices) {
  Race race(against(2e-3), 1);
  EXPECT_EQ(run(race, [](int) { return 1.9e-3; }), 2 + 20);
  EXPECT_EQ(race.verdict(), Race::Verdict::kContender);
  EXPECT_EQ(race.seconds().size(), 20u);
  EXPECT_FALSE(race.is_noisy());
}

TEST(Race, WithoutAnIncumbentEveryoneContends) {
  Race race(RaceRules{}, 1);
  run(race, [](int) { return 1e-3; });
  EXPECT_EQ(race.verdict(), Race::Verdict::kContender);
}

TEST(Race, ShortKernelsFillTheirSlices) {
  Race race(RaceRules{}, 1);
  EXPECT_EQ(race.next_calls(), 1);
  race.observe({1, 50e-6, 50e-6, 0});  // first call
  EXPECT_EQ(race.next_calls(), 20);    // 1 ms of warm-up
  race.observe({20, 20 * 10e-6, 20 * 10e-6, 0});
  EXPECT_EQ(race.next_calls(), 80);  // the rest of the warm-up, now that the kernel is known to be faster
  race.observe({80, 80 * 10e-6, 80 * 10e-6, 0});
  EXPECT_EQ(race.next_calls(), 100);
}

TEST(Race, DisturbedSlicesDoNotCount) {
  RaceRules rules;
  rules.budget_seconds = 1;
  Race race(rules, 1);
  run(race, [](int i) { return i % 2 ? 9e-3 : 1e-3; }, [](int i) { return i % 2 == 1; });
  EXPECT_EQ(race.seconds().size(), 20u);
  for (double seconds : race.seconds()) EXPECT_DOUBLE_EQ(seconds, 1e-3);
  EXPECT_GT(race.rejected(), 15);
}

TEST(Race, AMachineThatIsAlwaysBusyDoesNotHoldItUp) {
  Race race(RaceRules{}, 1);
  EXPECT_LT(run(race, [](int i) { return 1e-3 + i * 1e-6; }, [](int) { return true; }), 60);
  EXPECT_TRUE(race.is_noisy());
  EXPECT_EQ(race.seconds(), std::vector<double>{1e-3});
}

TEST(Race, SlicesUnderABadProbeAreDropped) {
  Race race(RaceRules{}, 1);
  for (int i = 0; i < 2; ++i) race.observe({1, 1e-3, 1e-3, 0});
  for (int i = 0; i < 10; ++i) race.observe({1, 5e-3, 5e-3, 0});
  ASSERT_TRUE(race.wants_probe());
  race.observe_probe(0.5);
  EXPECT_FALSE(race.wants_probe());
  EXPECT_EQ(race.rejected(), 10);
  for (int i = 0; i < 10; ++i) race.observe({1, 1e-3, 1e-3, 0});
  race.observe_probe(0.99);
  EXPECT_EQ(race.seconds(), std::vector<double>(10, 1e-3));
}

TEST(Race, ALongKernelStopsAtItsBudget) {
  Race race(RaceRules{}, 1);
  EXPECT_EQ(run(race, [](int i) { return i ? 0.2 : 0.22; }), 2);
  EXPECT_EQ(race.seconds(), std::vector<double>{0.2});
}

TEST(Race, AKernelTheClockCannotSeeEnds) {
  Race race(RaceRules{}, 1);
  EXPECT_LT(run(race, [](int) { return 0.0; }), 100);
  EXPECT_EQ(race.seconds().front(), 0.0);
}

TEST(Race, SteadyRulesTimeEveryCandidateAlike) {
  RaceRules rules = RaceRules::steady(3, 4, 1e-2, 10.0);
  rules.incumbent = 1e-6;
  std::vector<int64_t> calls;
  Race race(rules, 1);
  const auto always = [](int) { return true; };
  run(race, [](int) { return 5e-3; }, always, 0.5);
  EXPECT_EQ(race.verdict(), Race::Verdict::kContender);
  EXPECT_EQ(race.seconds(), std::vector<double>(3, 5e-3));  // disturbed, and beside bad probes
  Race counted(rules, 1);
  while (const int64_t next = counted.next_calls()) {
    calls.push_back(next);
    counted.observe({next, 5e-3 * static_cast<double>(next), 0, 0});
  }
  // The first call, warming up, then as many calls as were asked for where these take longer than a slice.
  EXPECT_EQ(calls, (std::vector<int64_t>{1, 1, 4, 4, 4}));
}

TEST(Slice, ProcessorTimeMattersForOneThreadOnly) {
  EXPECT_TRUE(is_undisturbed({1, 1e-3, 0.99e-3, 0}, 1));
  EXPECT_FALSE(is_undisturbed({1, 1e-3, 0.97e-3, 0}, 1));
  EXPECT_TRUE(is_undisturbed({1, 1e-3, 0.5e-3, 0}, 2));
  EXPECT_FALSE(is_undisturbed({1, 1e-3, 1e-3, 1}, 2));
  EXPECT_TRUE(is_undisturbed({1, 1e-6, 0.7e-6, 0}, 1));  // the two clocks are not read at the same moment
}

}  // namespace
}  // namespace tilewright::search
