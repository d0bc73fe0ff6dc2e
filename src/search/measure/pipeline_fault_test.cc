// Candidates and helpers that misbehave in every way at every stage: each is counted, said in words, and does no harm
// to the candidates around it.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "search/database/folder_for_test.h"
#include "search/measure/helper_process.h"
#include "search/measure/messages.h"
#include "search/measure/pipeline_for_test.h"

namespace tilewright::search {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Expectation {
  std::string module;
  Outcome outcome;
  std::string code;
  std::string message;  ///< a part of it
};

class FaultTest : public PipelineTest {
 protected:
  void SetUp() override {
    PipelineTest::SetUp();
    options.build_timeout = 0.5;
    options.run_timeout = 0.5;
    options.build_memory = options.run_memory = uint64_t{128} << 20;
    options.builders = 1;
  }

  void expect(const std::vector<Expectation>& expectations) {
    start();
    for (const Expectation& expected : expectations) {
      const Measured result = run(expected.module);
      EXPECT_EQ(outcome_name(result.outcome), outcome_name(expected.outcome)) << expected.module;
      EXPECT_EQ(result.error.code, expected.code) << expected.module;
      EXPECT_NE(result.error.message.find(expected.message), std::string::npos)
          << expected.module << ": " << result.error.message;
      EXPECT_TRUE(result.seconds.empty()) << expected.module;
      EXPECT_EQ(pipeline->counters().first_message[static_cast<size_t>(result.outcome)].empty(), false);
      // The next one is none the worse for it.
      const Measured next = run("build:add");
      EXPECT_TRUE(next.is_ok()) << "after " << expected.module << ": " << next.error.render();
    }
    EXPECT_FALSE(pipeline->failure());
  }
};

TEST_F(FaultTest, Builds) {
  expect({
      {"refuse", Outcome::kBuildError, "split/P1", "the loop is not serial"},
      {"throw", Outcome::kBuildError, "measure/exception", "thrown by a library"},
      {"no such thing", Outcome::kBuildError, "test/unknown", "no such behavior"},
      {"hang", Outcome::kBuildTimeout, "measure/build-timeout", "killed after 0.5 s"},
      {"segfault", Outcome::kBuildCrash, "measure/build-crash", "killed by signal 11 (SIGSEGV: Segmentation fault)"},
      {"die", Outcome::kBuildCrash, "measure/build-crash", "killed by signal 9 (SIGKILL: Killed)"},
      {"exit", Outcome::kBuildCrash, "measure/build-crash", "the build's process ended with status 3"},
      {"abort:LLVM ERROR: cannot select", Outcome::kBuildCrash, "measure/build-crash",
       "signal 6 (SIGABRT: Aborted): LLVM ERROR: cannot select"},
      {"allocate", Outcome::kOutOfMemory, "measure/memory", "more than the 128 MiB that a build may use"},
      {"abort:LLVM ERROR: out of memory", Outcome::kOutOfMemory, "measure/memory", "more than the 128 MiB"},
      {"garbage", Outcome::kBuildCrash, "measure/garbage", "bytes that are not a message"},
      {"unasked", Outcome::kBuildCrash, "measure/garbage", "answers nothing"},
      {"half", Outcome::kBuildCrash, "measure/build-crash", "ended with status 0"},
  });
}

TEST_F(FaultTest, AHelperThatGetsNoProcessorIsWaitedFor) {
  EXPECT_EQ(run("build:add").outcome, Outcome::kOk);
  const int helper = pipeline->helper_pids().front();
  // 0.3 s of work within a limit of 0.5 s, and 0.7 s in which others have the processor.
  submit("build:add_in:300000", 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  ASSERT_EQ(::kill(helper, SIGSTOP), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  ASSERT_EQ(::kill(helper, SIGCONT), 0);
  EXPECT_EQ(drain()[1].outcome, Outcome::kOk);
  EXPECT_EQ(pipeline->helper_pids().front(), helper);
}

TEST_F(FaultTest, AHelperThatWasStoppedGoesOn) {
  EXPECT_EQ(run("build:add").outcome, Outcome::kOk);
  const std::vector<int> helpers = pipeline->helper_pids();
  for (const int helper : helpers) ASSERT_EQ(::kill(helper, SIGSTOP), 0);
  EXPECT_EQ(run("build:add").outcome, Outcome::kOk);
  EXPECT_EQ(pipeline->helper_pids(), helpers);
}

TEST_F(FaultTest, Loading) {
  expect({
      {"build:load_error", Outcome::kBuildError, "test/load", "relocation out of range"},
      {"build:load_hang", Outcome::kRunTimeout, "measure/run-timeout", "did not come back in time"},
      {"build:load_die", Outcome::kRunCrash, "measure/run-crash", "killed by signal 9"},
  });
  const Measured unnamed = run("build:add", "another");
  EXPECT_EQ(unnamed.outcome, Outcome::kBuildError);
  EXPECT_EQ(unnamed.error.code, "test/entry");
}

TEST_F(FaultTest, WrongResults) {
  expect({
      {"build:last_row_missing", Outcome::kWrongResult, "measure/wrong-result", "C[63, 0] was never written"},
      {"build:last_row_twice", Outcome::kWrongResult, "measure/wrong-result", "C[63, 0]: expected "},
      {"build:last_element_off", Outcome::kWrongResult, "measure/wrong-result", "C[63, 31]: expected "},
      {"build:uninitialized", Outcome::kWrongResult, "measure/wrong-result", "C[0, 0]: expected "},
      {"build:later_wrong", Outcome::kWrongResult, "measure/wrong-result",
       "right in the first call, wrong in a later one: C[63, 31]: expected "},
      {"build:one_beyond", Outcome::kRunCrash, "measure/run-crash", "wrote 0 bytes behind the end of C"},
      {"build:one_before", Outcome::kRunCrash, "measure/run-crash", "wrote 4 bytes before the start of C"},
      {"build:row_beyond", Outcome::kRunCrash, "measure/run-crash", "0 bytes behind the end of "},
      {"build:far_beyond", Outcome::kRunCrash, "measure/run-crash", "wrote 8000 bytes behind the end of C"},
      {"build:write_input", Outcome::kRunCrash, "measure/run-crash", "wrote to A, which is only read by the program"},
  });
}

TEST_F(FaultTest, WritesIntoTheMarginAreFound) {
  // 3 x 333 floats do not end at a multiple of 64 bytes, so there is room before the guard on both sides.
  arguments = add_arguments(3, 333);
  expect({
      {"build:one_beyond", Outcome::kWrongResult, "measure/wrong-result",
       "it wrote behind the end of C, at byte 0 from there"},
      {"build:one_before", Outcome::kWrongResult, "measure/wrong-result",
       "it wrote before the start of C, at byte -4 from there"},
      {"build:far_beyond", Outcome::kRunCrash, "measure/run-crash", "wrote 8000 bytes behind the end of C"},
  });
}

TEST_F(FaultTest, Runs) {
  expect({
      {"build:returns_error", Outcome::kRunError, "measure/run-error", "the assertion n > 0 failed"},
      {"build:null", Outcome::kRunCrash, "measure/run-crash", "killed by signal 11 (SIGSEGV: Segmentation fault)"},
      {"build:overflow_stack", Outcome::kRunCrash, "measure/run-crash", "the stack overflowed"},
      {"build:divide", Outcome::kRunCrash, "measure/run-crash", "signal 8 (SIGFPE: "},
      {"build:illegal", Outcome::kRunCrash, "measure/run-crash", "signal 4 (SIGILL: Illegal instruction)"},
      {"build:die", Outcome::kRunCrash, "measure/run-crash", "killed by signal 9 (SIGKILL: Killed)"},
      {"build:exit", Outcome::kRunCrash, "measure/run-crash", "the kernel's process ended with status 0"},
      {"build:loop", Outcome::kRunTimeout, "measure/run-timeout", "did not come back in time"},
      {"build:block", Outcome::kRunTimeout, "measure/run-timeout", "did not come back in time"},
      {"build:allocate", Outcome::kOutOfMemory, "measure/memory", "more than the 128 MiB that a kernel may use"},
      {"build:workspace:1000000000", Outcome::kOutOfMemory, "measure/memory", ""},
      {"build:garbage", Outcome::kRunCrash, "measure/garbage", "bytes that are not a message"},
  });
}

TEST_F(FaultTest, TimedCalls) {
  options.race.budget_seconds = 0.05;
  expect({
      {"build:later_null", Outcome::kRunCrash, "measure/run-crash", "killed by signal 11"},
      {"build:later_die", Outcome::kRunCrash, "measure/run-crash", "killed by signal 9"},
      {"build:later_error", Outcome::kRunError, "measure/run-error", "changed its mind"},
      {"build:later_beyond", Outcome::kRunCrash, "measure/run-crash", "wrote 8000 bytes behind the end of C"},
      {"build:later_block", Outcome::kRunTimeout, "measure/run-timeout", "did not come back in time"},
  });
}

TEST_F(FaultTest, TimeOfOtherProgramsIsNotTheKernels) {
  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  const int many = 5 * usable_processor_count();
  for (int i = 0; i < many; ++i) {
    others.emplace_back([&] {
      while (!done) {
      }
    });
  }
  options.run_timeout = 0.15;
  options.race.budget_seconds = 0.05;
  options.race.full_slices = 2;
  const Measured slow = run("build:add_after_work:100000");
  const auto before = Clock::now();
  const Measured asleep = run("build:block");
  const double waited = seconds_since(before);
  done = true;
  for (std::thread& other : others) other.join();
  EXPECT_TRUE(slow.is_ok()) << outcome_name(slow.outcome) << ": " << slow.error.message;
  EXPECT_EQ(asleep.outcome, Outcome::kRunTimeout);
  EXPECT_LT(waited, 10);
}

TEST_F(FaultTest, AReferenceThatFailsIsToldAndTheOthersWait) {
  const DataType f32 = DataType::float_(32);
  options.reference_timeout = 0.6;
  for (const Expectation& expected : std::vector<Expectation>{
           {"build:null", Outcome::kRunCrash, "measure/run-crash", "killed by signal 11"},
           {"build:loop", Outcome::kRunTimeout, "measure/run-timeout", "in time (0.6 s for a call)"},
           {"build:one_beyond", Outcome::kWrongResult, "measure/reference", "wrote behind the end of C"},
           {"refuse", Outcome::kBuildError, "split/P1", "not serial"}}) {
    arguments = add_arguments(3, 333);
    ASSERT_TRUE(arguments->set_tolerance(2, tolerance_for(f32, f32, 1)).ok());
    start();
    submit("build:add", 1);
    pipeline->submit({.id = 0, .module = expected.module, .options = {}, .entry = "main", .reference = true});
    std::vector<Measured> results;
    while (results.empty()) results = pipeline->poll(std::chrono::milliseconds(50));
    ASSERT_EQ(results.size(), 1u) << expected.module;
    EXPECT_EQ(results[0].id, 0u);
    EXPECT_EQ(outcome_name(results[0].outcome), outcome_name(expected.outcome)) << results[0].error.message;
    EXPECT_EQ(results[0].error.code, expected.code);
    EXPECT_NE(results[0].error.message.find(expected.message), std::string::npos) << results[0].error.message;
    pipeline->cancel();
    EXPECT_EQ(drain(5).at(1).outcome, Outcome::kCanceled);
    pipeline.reset();
  }
}

TEST_F(FaultTest, AnEndlessLogHoldsNobodyUp) {
  options.build_timeout = 10;
  const Measured result = run("build_noisily:add");
  EXPECT_TRUE(result.is_ok()) << result.error.render();
}

TEST_F(FaultTest, ASmallWorkspaceIsFine) {
  options.run_timeout = 5;
  const Measured result = run("build:workspace:100000000");
  EXPECT_TRUE(result.is_ok()) << result.error.render();
}

TEST_F(FaultTest, HelpersKilledFromOutsideAtAnyTime) {
  options.build_timeout = options.run_timeout = 10;
  options.builders = 2;
  options.race.budget_seconds = 0.01;
  start();
  const int count = 150;
  for (int i = 0; i < count; ++i) submit(i % 2 ? "build:add" : "build_slowly:add_in:500", i);
  std::atomic<bool> done{false};
  std::thread killer([&] {
    std::mt19937 random(3);
    while (!done) {
      const std::vector<int> pids = pipeline->helper_pids();
      if (!pids.empty()) ::kill(pids[random() % pids.size()], SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
    }
  });
  const auto results = drain(60);
  done = true;
  killer.join();
  EXPECT_EQ(results.size(), static_cast<size_t>(count));
  for (const auto& [id, result] : results) {
    const bool possible = result.is_ok() || result.outcome == Outcome::kBuildCrash ||
                          result.outcome == Outcome::kRunCrash || pipeline->failure();
    EXPECT_TRUE(possible) << outcome_name(result.outcome) << ": " << result.error.message;
  }
}

TEST_F(FaultTest, CancelIsQuickWhateverRuns) {
  options.build_timeout = options.run_timeout = 100;
  options.builders = 2;
  for (const std::vector<std::string>& modules :
       std::vector<std::vector<std::string>>{{},
                                             {"hang", "hang"},
                                             {"build:loop"},
                                             {"build:block", "hang"},
                                             {"build:load_hang"},
                                             {"build:add_in:1000", "build_slowly:add"}}) {
    start();
    for (size_t i = 0; i < modules.size(); ++i) submit(modules[i], i);
    for (int i = 0; i < 5; ++i) submit("build:add", 100 + i);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    const auto before = Clock::now();
    pipeline->cancel();
    EXPECT_LT(seconds_since(before), 0.2);
    const auto results = drain(5);
    EXPECT_EQ(results.size(), modules.size() + 5);
    for (const auto& [id, result] : results) {
      EXPECT_TRUE(result.outcome != Outcome::kCanceled || result.error.code == "measure/canceled");
    }
    // A request that comes too late is answered as well.
    EXPECT_EQ(run("build:add").outcome, Outcome::kCanceled);
    pipeline->begin_finals({});
    EXPECT_EQ(pipeline->poll_finals(std::chrono::seconds(1))->error->code, "measure/canceled");
    pipeline.reset();
  }
}

TEST_F(FaultTest, DestroyedInTheMiddleOfEverything) {
  options.builders = 2;
  for (int milliseconds : {0, 1, 3, 10, 30, 60}) {
    start();
    for (int i = 0; i < 10; ++i) submit(i % 2 ? "build_slowly:add" : "build:add_in:1000", i);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    pipeline.reset();
  }
}

/// A program that stands for a helper which is broken in some way.
std::string script(const TestFolder& folder, const std::string& text) {
  const std::string path = folder / "helper";
  write_file(path, "#!/bin/sh\n" + text + "\n");
  ::chmod(path.c_str(), 0755);
  return path;
}

TEST_F(FaultTest, AHelperThatDoesNotStart) {
  TestFolder folder;
  write_file(folder / "hello", encode_message(Hello{kProtocolVersion + 1, "build"}));
  for (const auto& [helper, code] : std::vector<std::pair<std::string, std::string>>{
           {folder / "missing", "measure/helper-start"},
           {script(folder, "echo broken installation; exit 5"), "measure/helper-start"},
           {"/bin/false", "measure/helper-start"},
           {folder.path(), "measure/helper-start"}}) {
    options.helper = helper;
    start();
    submit("build:add");
    const auto results = drain(10);
    ASSERT_EQ(results.size(), 1u) << helper;
    EXPECT_EQ(results.begin()->second.outcome, Outcome::kCanceled);
    EXPECT_EQ(results.begin()->second.error.code, code);
    ASSERT_TRUE(pipeline->failure()) << helper;
    EXPECT_EQ(pipeline->failure()->code, code);
    EXPECT_NE(pipeline->failure()->message.find(helper), std::string::npos) << pipeline->failure()->message;
    pipeline->begin_finals({});
    EXPECT_EQ(pipeline->poll_finals(std::chrono::seconds(1))->error->code, code);
    pipeline.reset();
  }
  options.helper = script(folder, "echo broken installation; exit 5");
  start();
  submit("build:add");
  drain(10);
  EXPECT_NE(pipeline->failure()->message.find("broken installation"), std::string::npos)
      << pipeline->failure()->message;
}

TEST_F(FaultTest, AHelperOfAnotherVersion) {
  TestFolder folder;
  write_file(folder / "hello", encode_message(Hello{kProtocolVersion + 1, "build"}));
  options.helper = script(folder, "cat " + (folder / "hello") + " >&3; sleep 60");
  start();
  submit("build:add");
  drain(10);
  ASSERT_TRUE(pipeline->failure());
  EXPECT_EQ(pipeline->failure()->code, "measure/helper-version");
}

TEST_F(FaultTest, TheHelperIsFoundBesideTheLibrary) {
  ::setenv("TILEWRIGHT_HELPER", "/no/such/program", 1);
  EXPECT_EQ(find_helper().value_or_throw(), "/no/such/program");
  ::unsetenv("TILEWRIGHT_HELPER");
  EXPECT_EQ(find_helper("tilewright_faulty_helper").value_or_throw(), faulty_helper());
  auto missing = find_helper("no-such-helper");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, "measure/helper-missing");
}

TEST_F(FaultTest, HelpersDieWithTheirParent) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    options.builders = 1;
    options.run_timeout = options.build_timeout = 100;
    start();
    submit("build:loop", 0);
    submit("hang", 1);
    std::vector<int> pids;
    while (pids.size() < 2) pids = pipeline->helper_pids();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ssize_t ignored = ::write(fds[1], pids.data(), 2 * sizeof(int));
    (void)ignored;
    ::pause();
  }
  int pids[2] = {};
  ASSERT_EQ(::read(fds[0], pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  // Gone, or waiting to be reaped by whoever inherited them.
  const auto is_gone = [](int pid) {
    std::ifstream stream("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    return !(stream >> number >> name >> state) || state == "Z" || state == "X";
  };
  const auto before = Clock::now();
  while (!(is_gone(pids[0]) && is_gone(pids[1])) && seconds_since(before) < 5)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(is_gone(pids[0]));
  EXPECT_TRUE(is_gone(pids[1]));
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST_F(FaultTest, AForkOfTheHostProgramDoesNotDisturb) {
  start();
  submit("build_slowly:add", 1);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    pipeline.reset();  // neither hangs nor ends the parent's helpers
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(drain()[1].is_ok());
  EXPECT_EQ(pipeline->counters().helpers_lost, 0);
}

TEST_F(FaultTest, AHostThatIgnoresItsChildren) {
  const auto old = ::signal(SIGCHLD, SIG_IGN);  // children are reaped by the system
  start();
  EXPECT_TRUE(run("build:add").is_ok());
  const Measured crash = run("build:null");
  EXPECT_EQ(crash.outcome, Outcome::kRunCrash);
  EXPECT_TRUE(run("build:add").is_ok());
  pipeline.reset();
  ::signal(SIGCHLD, old);
}

}  // namespace
}  // namespace tilewright::search
