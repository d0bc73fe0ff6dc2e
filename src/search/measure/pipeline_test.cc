#include "search/measure/pipeline.h"

#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "search/database/folder_for_test.h"
#include "search/measure/pipeline_for_test.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

TEST_F(PipelineTest, MeasuresACorrectKernel) {
  const Measured result = run("build:add_in:1000");
  ASSERT_TRUE(result.is_ok()) << result.error.render();
  EXPECT_EQ(result.id, 7u);
  EXPECT_EQ(result.entry, "main");
  EXPECT_TRUE(result.contender);
  EXPECT_GE(result.median(), 1e-3);
  EXPECT_LT(result.median(), 5e-3);
  EXPECT_EQ(*result.object, "add_in:1000");
  EXPECT_GE(result.build_seconds, 0);
  EXPECT_EQ(result.check.total, 64 * 32);
  EXPECT_LE(result.check.largest, 1);
  EXPECT_EQ(pipeline->incumbent(), result.median());
  const Counters counters = pipeline->counters();
  EXPECT_EQ(counters.of(Outcome::kOk), 1);
  EXPECT_EQ(counters.submitted, 1);
  EXPECT_EQ(counters.done(), 1);
  EXPECT_EQ(counters.helpers_lost, 0);
}

TEST_F(PipelineTest, EachMomentGoesToOneActivity) {
  const auto start = Clock::now();
  run("build:add_in:1000");
  const Activities activities = pipeline->activities();
  const double passed = seconds_since(start);
  const double all = std::accumulate(activities.seconds.begin(), activities.seconds.end(), 0.0);
  EXPECT_LE(all, passed);
  EXPECT_GE(all, 0.8 * passed - 0.02);
  const auto of = [&](Activity activity) { return activities.seconds[static_cast<size_t>(activity)]; };
  EXPECT_GE(of(Activity::kMeasuring), 6e-3);  // so many slices of a millisecond
  EXPECT_GT(of(Activity::kChecking), 0);
  EXPECT_GT(of(Activity::kStarting), 0);
  EXPECT_EQ(of(Activity::kReference) + of(Activity::kFinals), 0);
  EXPECT_GT(activities.building, 0);
  EXPECT_EQ(activities.beside().at("measuring"), of(Activity::kMeasuring));
  const double later = pipeline->activities().seconds[static_cast<size_t>(Activity::kNothing)];
  EXPECT_GE(later, of(Activity::kNothing));
}

TEST_F(PipelineTest, ManyCandidatesComeBackOnce) {
  options.builders = 3;
  start();
  const int count = 120;
  for (int i = 0; i < count; ++i) submit(i % 3 ? "build:add" : "build:last_row_missing", i);
  const auto results = drain();
  ASSERT_EQ(results.size(), static_cast<size_t>(count));
  for (const auto& [id, result] : results) {
    EXPECT_EQ(result.outcome, id % 3 ? Outcome::kOk : Outcome::kWrongResult) << result.error.message;
  }
  EXPECT_EQ(pipeline->counters().helpers_started, 4);
}

TEST_F(PipelineTest, InOutArgumentsStartAfreshInEveryCall) {
  arguments = add_arguments(64, 32, true);
  for (int i = 0; i < 2; ++i) {
    const Measured result = run("build:accumulate");
    EXPECT_TRUE(result.is_ok()) << result.error.render();
  }
}

TEST_F(PipelineTest, PassesOptionsAndLargeObjects) {
  const Measured options_back = run("options");
  EXPECT_EQ(*options_back.object, "options");
  const Measured padded = run("build_padded:add");
  EXPECT_TRUE(padded.is_ok()) << padded.error.render();
  EXPECT_EQ(padded.object->size(), 3u + (8u << 20));
  // A module larger than any pipe's buffer.
  const Measured large = run("build:add" + std::string(20 << 20, ' '));
  EXPECT_TRUE(large.is_ok()) << large.error.render();
}

TEST_F(PipelineTest, ArgumentsOfAwkwardSizes) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 333}, {0, 5}, {1024, 1025}}) {
    pipeline.reset();
    arguments = add_arguments(rows, columns);
    const Measured result = run("build:add");
    EXPECT_TRUE(result.is_ok()) << rows << "x" << columns << ": " << result.error.render();
    EXPECT_EQ(result.check.total, rows * columns);
  }
}

TEST_F(PipelineTest, SlowCandidatesAreStopped) {
  options.race.first_stop_ratio = options.race.stop_ratio = 4;
  options.race.incumbent = 2e-3;
  options.kill_grace = 0.05;
  start();
  const auto before = Clock::now();
  submit("build:add_in:12000", 1);    // 6 x: stopped after its call
  submit("build:add_in:3000000", 2);  // killed in its call
  auto results = drain();
  EXPECT_LT(seconds_since(before), 2);
  EXPECT_EQ(results[1].outcome, Outcome::kSlowStopped);
  EXPECT_EQ(results[1].error.code, "measure/slow");
  ASSERT_EQ(results[1].seconds.size(), 1u);
  EXPECT_GE(results[1].seconds[0], 12e-3);
  EXPECT_EQ(results[2].outcome, Outcome::kSlowStopped);
  EXPECT_TRUE(results[2].error.message.starts_with("stopped after ")) << results[2].error.message;
  EXPECT_TRUE(results[2].seconds.empty());
  EXPECT_EQ(pipeline->incumbent(), 2e-3);
}

TEST_F(PipelineTest, CandidatesRaceAgainstTheFastestBesideTheirIncumbent) {
  options.race.first_stop_ratio = options.race.stop_ratio = 4;
  options.kill_grace = 10;  // first calls come to their end on a busy machine
  start();
  const auto object = [](const char* text) { return std::make_shared<const std::string>(text); };
  const auto measured = [&](const char* kernel, const char* incumbent) {
    Candidate candidate{.id = 1, .module = {}, .options = {}, .entry = "main"};
    candidate.object = object(kernel);
    candidate.incumbent = object(incumbent);
    pipeline->submit(std::move(candidate));
    return drain()[1];
  };
  EXPECT_TRUE(measured("add_after_work:12000", "add_after_work:50000").is_ok());
  EXPECT_TRUE(measured("add_after_work:1000", "add_after_work:50000").is_ok());
  // The session has not seen that result yet.
  EXPECT_EQ(measured("add_after_work:12000", "add_after_work:50000").outcome, Outcome::kSlowStopped);
}

TEST_F(PipelineTest, SlicesOfACandidateCountWhenItBecomesTheIncumbent) {
  TestFolder folder;
  const std::string counted = folder / "calls";
  start();
  submit("build:add_and_count:" + counted, 1);
  EXPECT_TRUE(drain()[1].contender);
  const auto calls = std::filesystem::file_size(counted);
  Candidate candidate{.id = 2, .module = {}, .options = {}, .entry = "main"};
  candidate.object = std::make_shared<const std::string>("add");
  candidate.incumbent = std::make_shared<const std::string>("add_and_count:" + counted);
  pipeline->submit(std::move(candidate));
  EXPECT_GT(drain()[2].incumbent_seconds, 0);
  EXPECT_EQ(std::filesystem::file_size(counted), calls);
}

TEST_F(PipelineTest, OnlyContendersGetAllSlices) {
  options.race.screen_slices = 2;
  // Far enough from one another for a machine that is busy with other things.
  options.race.incumbent = 20e-3;
  start();
  submit("build:add_in:30000", 1);
  submit("build:add_in:5000", 2);
  auto results = drain();
  EXPECT_TRUE(results[1].is_ok() && !results[1].contender) << results[1].error.render();
  EXPECT_TRUE(results[2].is_ok() && results[2].contender) << results[2].error.render();
  EXPECT_EQ(pipeline->incumbent(), results[2].median());
}

TEST_F(PipelineTest, BuildingAndMeasuringOverlap) {
  if (usable_processor_count() < 2) GTEST_SKIP() << "with one processor they take turns";
  // The first kernel waits for a file that the build of the second candidate makes.
  TestFolder folder;
  options.builders = 1;
  start();
  submit("build:add_when:" + (folder / "built"), 1);
  submit("build_and_touch:" + (folder / "built"), 2);
  auto results = drain();
  EXPECT_TRUE(results[1].is_ok()) << results[1].error.render();
}

TEST_F(PipelineTest, TheProcessorOfTheKernelBuildsWhileNothingIsMeasured) {
  const int processors = usable_processor_count();
  if (processors < 2 || processors > 5) GTEST_SKIP() << "builders of all processors are what is looked at";
  // Each build waits for the last one: as many builders as processors are needed.
  TestFolder folder;
  start();
  for (int i = 1; i < processors; ++i) submit("build_when:" + (folder / "built"), i);
  submit("build_and_touch:" + (folder / "built"), processors);
  for (const auto& [id, result] : drain()) EXPECT_TRUE(result.is_ok()) << result.error.render();
  EXPECT_EQ(pipeline->counters().helpers_started, processors + 1);
}

TEST_F(PipelineTest, LongBuildsDoNotKeepMeasurementsWaiting) {
  if (usable_processor_count() < 2) GTEST_SKIP() << "with one processor they take turns";
  start();
  submit("build_for:150", 1);
  drain();
  const int64_t started = pipeline->counters().helpers_started;
  for (int i = 0; i < 4; ++i) submit("build_for:150", i);
  for (const auto& [id, result] : drain()) EXPECT_TRUE(result.is_ok()) << result.error.render();
  EXPECT_LE(pipeline->counters().helpers_started, std::max<int64_t>(started, usable_processor_count()));
}

TEST_F(PipelineTest, TakesTurnsWhenTheKernelNeedsAllProcessors) {
  options.threads = usable_processor_count();
  options.builders = 2;
  start();
  for (int i = 0; i < 30; ++i) submit("build:add", i);
  for (const auto& [id, result] : drain()) EXPECT_TRUE(result.is_ok()) << result.error.render();
}

TEST_F(PipelineTest, ColdCallsComeAfterAFlush) {
  // The kernel refuses calls that follow one another within 100 us; to flush a cache takes longer.
  EXPECT_EQ(run("build:add_after_pause").outcome, Outcome::kRunError);
  pipeline.reset();
  options.cold = true;
  const Measured cold = run("build:add_after_pause");
  EXPECT_TRUE(cold.is_ok()) << cold.error.render();
}

TEST_F(PipelineTest, FinalsTimeKernelsInTurn) {
  start();
  submit("build:add_in:1000", 1);
  submit("build:add_in:4000", 2);
  auto results = drain();
  ASSERT_TRUE(results[1].object && results[2].object);
  FinalsRequest request;
  request.kernels = {{results[1].object, "main"}, {results[2].object, "main"}};
  request.rounds = 15;
  submit("build:add", 3);  // waits for the finals, or they for it
  pipeline->begin_finals(request);
  std::optional<FinalsResult> finals;
  for (int i = 0; i < 400 && !finals; ++i) finals = pipeline->poll_finals(std::chrono::milliseconds(50));
  ASSERT_TRUE(finals);
  EXPECT_FALSE(finals->error) << finals->error->render();
  ASSERT_EQ(finals->seconds.size(), 2u);
  EXPECT_EQ(finals->seconds[0].size(), finals->seconds[1].size());
  EXPECT_EQ(finals->seconds[0].size(), finals->disturbed[0].size());
  EXPECT_GE(finals->seconds[0].size(), 15u);
  const double ratio = paired_ratio(finals->seconds[1], finals->seconds[0]).median;
  EXPECT_TRUE(ratio > 1.5 && ratio < 10) << ratio << " where a quiet machine has 4";
  EXPECT_TRUE(drain()[3].is_ok());
}

TEST_F(PipelineTest, ASlowBaselineTakesPartInFewRounds) {
  start();
  submit("build:add_in:1000", 1);
  submit("build:add_in:100000", 2);  // about 100 times as slow
  auto results = drain();
  ASSERT_TRUE(results[1].object && results[2].object);
  FinalsRequest request;
  request.kernels = {{results[1].object, "main"}, {results[1].object, "main"}, {results[2].object, "main"}};
  request.baselines = 1;
  request.rounds = 15;
  request.slice_seconds = 1e-6;  // one call of the slow one
  request.budget_seconds = 1e-4;
  pipeline->begin_finals(request);
  std::optional<FinalsResult> finals;
  for (int i = 0; i < 400 && !finals; ++i) finals = pipeline->poll_finals(std::chrono::milliseconds(50));
  ASSERT_TRUE(finals);
  EXPECT_FALSE(finals->error) << finals->error->render();
  ASSERT_EQ(finals->seconds.size(), 3u);
  EXPECT_EQ(finals->seconds[0].size(), finals->seconds[1].size());
  EXPECT_EQ(finals->seconds[2].size(), finals->disturbed[2].size());
  ASSERT_GE(finals->seconds[2].size(), 1u);
  EXPECT_LE(finals->seconds[2].size(), finals->seconds[0].size());
  for (const std::vector<double>& each : finals->seconds) {
    EXPECT_TRUE(all_of(each, [](double seconds) { return seconds > 0; }));
  }
}

TEST_F(PipelineTest, WhatOthersAreComparedWithIsTimedToTheEnd) {
  options.race = RaceRules();
  options.race.incumbent = 1e-6;
  options.kill_grace = 1e-3;
  start();
  submit("build:add_in:20000", 1);
  pipeline->submit({.id = 2, .module = "build:add_in:20000", .options = {}, .entry = "main", .is_baseline = true});
  auto results = drain();
  EXPECT_EQ(results[1].outcome, Outcome::kSlowStopped);
  EXPECT_TRUE(results[2].is_ok()) << results[2].error.render();
  EXPECT_TRUE(results[2].contender);
}

TEST_F(PipelineTest, FinalsWithABadKernelSayWhy) {
  start();
  const auto object = [](const char* text) { return std::make_shared<const std::string>(text); };
  for (const auto& [kernel, code] : std::map<std::string, std::string>{{"returns_error", "measure/run-error"},
                                                                       {"null", "measure/run-crash"},
                                                                       {"load_error", "measure/run-error"}}) {
    FinalsRequest request;
    request.kernels = {{object("add"), "main"}, {object(kernel.c_str()), "main"}};
    pipeline->begin_finals(request);
    std::optional<FinalsResult> finals;
    for (int i = 0; i < 200 && !finals; ++i) finals = pipeline->poll_finals(std::chrono::milliseconds(50));
    ASSERT_TRUE(finals && finals->error) << kernel;
    EXPECT_EQ(finals->error->code, code) << finals->error->message;
  }
  EXPECT_TRUE(run("build:add").is_ok());
}

TEST_F(PipelineTest, TheReferenceComesFirst) {
  arguments = add_arguments(3, 333);
  const DataType f32 = DataType::float_(32);
  ASSERT_TRUE(arguments->set_tolerance(2, tolerance_for(f32, f32, 1)).ok());
  EXPECT_TRUE(arguments->expects_reference());
  options.builders = 2;
  start();
  submit("build:add", 1);
  submit("build:last_element_off", 2);
  // Built last, and yet what the others are compared with.
  pipeline->submit({.id = 0, .module = "build_slowly:add_in:1000", .options = {}, .entry = "main", .reference = true});
  const auto results = drain();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results.at(0).is_ok()) << results.at(0).error.render();
  EXPECT_GE(results.at(0).median(), 1e-3);
  EXPECT_TRUE(results.at(1).is_ok()) << results.at(1).error.render();
  EXPECT_EQ(results.at(2).outcome, Outcome::kWrongResult);
  EXPECT_FALSE(arguments->expects_reference());
}

TEST_F(PipelineTest, IncompleteArgumentsAreRefused) {
  const DataType f32 = DataType::float_(32);
  const auto refusal = [&](const std::shared_ptr<Arguments>& incomplete) {
    auto started = MeasurePipeline::start(incomplete, options);
    return started.ok() ? "" : started.error().code + ": " + started.error().message;
  };
  auto no_input = Arguments::create({{"A", f32, {4}}}).value_or_throw();
  EXPECT_EQ(refusal(no_input), "measure/argument: A has no initial values");
  auto no_output = Arguments::create({{"C", f32, {4}, ArgumentRole::kOutput}}).value_or_throw();
  EXPECT_EQ(refusal(no_output), "measure/argument: C has no expected values");

  const std::vector<std::byte> few(3), right(16);
  EXPECT_EQ(no_input->set_initial(0, few).error().message, "A: 3 bytes of initial values, but it holds 16");
  EXPECT_EQ(no_input->set_expected(0, right, {}).error().message, "A takes no expected values");
  EXPECT_EQ(no_input->set_tolerance(0, {}).error().message, "A takes no expected values");
  EXPECT_EQ(no_output->set_tolerance(9, {}).error().message, "there is no argument 9");
  EXPECT_EQ(no_output->set_initial(0, right).error().message, "C takes no initial values");
  EXPECT_EQ(no_output->set_initial(9, right).error().message, "there is no argument 9");
  EXPECT_EQ(Arguments::create({{"h", DataType::void_(), {4}}}).error().code, "measure/argument");
  EXPECT_EQ(Arguments::create({{"A", f32, {-1}}}).error().code, "measure/argument");
  auto too_large = Arguments::create({{"A", f32, {int64_t{1} << 44}}});
  ASSERT_FALSE(too_large.ok());
  EXPECT_EQ(too_large.error().code, "measure/memory");
}

TEST(PairedRatio, IntervalHoldsTheMedian) {
  const std::vector<double> slow{1.2, 1.3, 1.1, 1.25, 1.2, 9.0}, fast{1, 1, 1, 1, 1, 1};
  const PairedRatio ratio = paired_ratio(slow, fast);
  EXPECT_NEAR(ratio.median, 1.225, 1e-9);
  EXPECT_GE(ratio.low, 1.1);
  EXPECT_LE(ratio.low, ratio.median);
  EXPECT_GE(ratio.high, ratio.median);
  EXPECT_EQ(paired_ratio({}, {}).median, 1);
  EXPECT_TRUE(std::isinf(paired_ratio({}, {}).high));
}

TEST(CpuPlan, ReservesCoresForMeasuring) {
  // Four cores with two threads each, numbered as Linux does.
  std::vector<Processor> smt;
  for (int cpu = 0; cpu < 8; ++cpu) smt.push_back({cpu, cpu % 4});
  CpuPlan one = plan_cpus(smt, 1);
  EXPECT_EQ(one.measure, std::vector<int32_t>{7});
  EXPECT_EQ(one.build, (std::vector<int32_t>{0, 1, 2, 4, 5, 6}));  // not 3, which shares the core
  EXPECT_FALSE(one.exclusive);
  CpuPlan four = plan_cpus(smt, 4);
  EXPECT_EQ(four.measure, (std::vector<int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(four.build, (std::vector<int32_t>{0, 1, 2, 3}));  // nothing better is left
  CpuPlan all = plan_cpus(smt, 8);
  EXPECT_TRUE(all.exclusive);
  EXPECT_EQ(all.build.size(), 8u);
  CpuPlan single = plan_cpus({{0, 0}}, 1);
  EXPECT_TRUE(single.exclusive);
  EXPECT_EQ(plan_cpus({{0, 0}, {1, 1}}, 99).measure.size(), 2u);
}

TEST(Outcome, NamesAreUnique) {
  std::set<std::string_view> names;
  for (int i = 0; i < kNumOutcomes; ++i) names.insert(outcome_name(static_cast<Outcome>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumOutcomes));
}

}  // namespace
}  // namespace tilewright::search
