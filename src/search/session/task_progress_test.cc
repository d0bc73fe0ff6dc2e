#include "search/session/task_progress.h"

#include <gtest/gtest.h>

namespace tilewright::search {
namespace {

constexpr double kFailed = std::numeric_limits<double>::infinity();

/// Has a batch sampled and measured; each candidate takes so many seconds.
void run(TaskProgress& task, std::initializer_list<double> seconds) {
  task.sampled(std::ssize(seconds));
  task.submitted(std::ssize(seconds));
  for (double each : seconds) task.measured(each);
}

TEST(TaskProgress, TrialsUnderWayCount) {
  TaskProgress task(3);
  task.sampled(2);
  task.submitted(2);
  EXPECT_TRUE(task.wants_more());
  task.sampled(1);
  task.submitted();
  EXPECT_FALSE(task.wants_more());
  EXPECT_EQ(task.trials(), 0);
  task.dropped();  // neither measured nor failed
  EXPECT_TRUE(task.wants_more());
  task.measured(1.0);
  task.measured(kFailed);
  EXPECT_EQ(task.trials(), 2);
  EXPECT_EQ(task.best_seconds(), 1.0);
  EXPECT_EQ(task.end_reason(), "trials");
}

TEST(TaskProgress, WhatIsDueDependsOnBatchesAlone) {
  TaskProgress task(100);
  EXPECT_EQ(task.due(1), 0);
  task.sampled(8);
  EXPECT_EQ(task.due(0), 0);
  EXPECT_EQ(task.due(0.75), 6);
  EXPECT_EQ(task.due(1), 8);
  task.reported(6);
  EXPECT_EQ(task.due(0.75), 0);
  task.sampled(4);  // all of the batch before, and that share of this one
  EXPECT_EQ(task.due(0), 2);
  EXPECT_EQ(task.due(0.75), 5);
  task.reported(2);
  EXPECT_EQ(task.due(0), 0);
  EXPECT_EQ(task.due(0.75), 3);
  task.reported(4);
  EXPECT_EQ(task.due(1), 0);
}

TEST(TaskProgress, EmptyBatchesEndAStrategyWhereNothingComesBetween) {
  TaskProgress task(100);
  for (int i = 0; i < 100; ++i) task.sampled(0);
  EXPECT_TRUE(task.wants_more());
  EXPECT_EQ(task.due(1), 0);
  run(task, {1.0});
  for (int i = 0; i < 100; ++i) task.sampled(0);
  EXPECT_TRUE(task.wants_more());
  task.sampled(0);
  EXPECT_FALSE(task.wants_more());
  EXPECT_EQ(task.end_reason(), "exhausted");
  TaskProgress other(100);
  other.sampled(std::nullopt);
  EXPECT_TRUE(other.is_exhausted());
}

TEST(TaskProgress, PatienceCountsTrialsSinceTheBest) {
  TaskProgress task(100, {.patience = 3});
  run(task, {5.0, kFailed, 6.0, 4.0, 4.0, kFailed});
  EXPECT_EQ(task.stop_reason(), "");
  run(task, {9.0});
  EXPECT_EQ(task.stop_reason(), "patience");
  EXPECT_EQ(task.end_reason(), "patience");
  TaskProgress failing(100, {.patience = 2});
  run(failing, {kFailed, kFailed});
  EXPECT_EQ(failing.stop_reason(), "patience");
}

TEST(TaskProgress, AnEarlierPartOfTheSessionEndsItAtOneLook) {
  TaskProgress task(100, {.patience = 2});
  for (double seconds : {5.0, 6.0, 7.0, 4.0}) task.known(seconds);  // trials of a session that was more patient
  task.look_whether_to_stop();
  EXPECT_EQ(task.stop_reason(), "");
  task.known(8.0);
  task.known(8.0);
  task.look_whether_to_stop();
  EXPECT_EQ(task.stop_reason(), "patience");
}

TEST(TaskProgress, WhatIsNoTrialMayBeTheBest) {
  TaskProgress task(100, {.target_seconds = 2.0});
  EXPECT_TRUE(task.beats(3.0));
  EXPECT_FALSE(task.beats(3.0));
  EXPECT_EQ(task.trials(), 0);
  run(task, {2.5});
  EXPECT_EQ(task.stop_reason(), "");
  run(task, {2.0});
  EXPECT_EQ(task.stop_reason(), "target");
}

TEST(TaskProgress, NoKernelIsFasterThanABoundThatHolds) {
  const StopRules rules{.bound_seconds = 1.0};
  for (auto [seconds, reason] : {std::pair(1.04, ""), {1.02, "roofline"}, {0.95, "roofline"}, {0.85, ""}}) {
    TaskProgress task(100, rules);
    run(task, {seconds});
    EXPECT_EQ(task.stop_reason(), reason) << seconds;
  }
}

TEST(TaskProgress, TheFirstReasonStays) {
  TaskProgress task(100, {.patience = 1, .target_seconds = 1.0});
  run(task, {1.0, 2.0, 2.0});
  EXPECT_EQ(task.stop_reason(), "target");
  task.stop("canceled");
  EXPECT_EQ(task.end_reason(), "canceled");
}

}  // namespace
}  // namespace tilewright::search
