#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "runtime/runtime.h"

namespace {

using Body = std::function<int32_t(tw_ctx*, int64_t, int64_t)>;

int32_t parallel(tw_ctx* ctx, int64_t extent, int64_t grain, Body body) {
  ctx->error_code = TW_OK;
  auto call = [](tw_ctx* inner, int64_t begin, int64_t end, void* closure) -> int32_t {
    return (*static_cast<Body*>(closure))(inner, begin, end);
  };
  return ctx->parallel_for(ctx, call, &body, extent, grain);
}

// Threads that are too many leave when they next wake up.
void wait_for_pool_of_at_most(int32_t size) {
  for (int i = 0; i < 20000 && tw_pool_size() > size; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Each test sees a pool of four threads, whatever the machine has.
class Parallel : public testing::Test {
 protected:
  void SetUp() override {
    tw_set_num_threads(4);
    wait_for_pool_of_at_most(3);
  }
  void TearDown() override { tw_set_num_threads(0); }
  tw_ctx* ctx = tw_default_ctx();
};

TEST_F(Parallel, CoversEveryIterationOnce) {
  for (int64_t extent : {1, 2, 3, 7, 16, 100, 1000}) {
    for (int64_t grain : {-1, 0, 1, 3, 50, 5000}) {
      std::vector<std::atomic<int>> seen(extent);
      int32_t code = parallel(ctx, extent, grain, [&](tw_ctx*, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) seen[i].fetch_add(1, std::memory_order_relaxed);
        return TW_OK;
      });
      EXPECT_EQ(code, TW_OK);
      for (auto& count : seen) ASSERT_EQ(count.load(), 1) << extent << " by " << grain;
    }
  }
}

TEST_F(Parallel, DoesNothingForAnEmptyRange) {
  for (int64_t extent : {0, -5}) {
    EXPECT_EQ(parallel(ctx, extent, 1, [](tw_ctx*, int64_t, int64_t) -> int32_t { return TW_ERROR_INTERNAL; }), TW_OK);
  }
}

TEST_F(Parallel, RangesAreAtLeastTheGrain) {
  std::atomic<int> ranges{0};
  parallel(ctx, 100, 30, [&](tw_ctx*, int64_t begin, int64_t end) {
    EXPECT_TRUE(end - begin == 30 || end == 100);
    ++ranges;
    return TW_OK;
  });
  EXPECT_EQ(ranges, 4);
}

// Threads get the same part in each loop, so that data of one loop are in their caches in the next one.
TEST_F(Parallel, ThreadsGetEqualParts) {
  // With five chunks of the grain for four threads, one would get two.
  for (auto [extent, grain, most] : {std::tuple{1000, 200, 250}, {1001, 200, 251}, {3000, 200, 250}, {400, 100, 100}}) {
    std::atomic<int64_t> largest = 0, calls = 0;
    parallel(ctx, extent, grain, [&](tw_ctx*, int64_t begin, int64_t end) {
      for (int64_t seen = largest; seen < end - begin && !largest.compare_exchange_weak(seen, end - begin);) {
      }
      ++calls;
      return TW_OK;
    });
    EXPECT_EQ(largest, most) << extent;
    EXPECT_EQ(calls % 4, 0) << extent;
  }
}

TEST_F(Parallel, ThreadsBeginWhereTheyBeganBefore) {
  tw_set_num_threads(2);
  constexpr int kExtent = 16;
  std::array<std::thread::id, kExtent> before{}, now{};
  for (int loop = 0; loop < 20; ++loop) {
    std::atomic<int> begun{0};
    parallel(ctx, kExtent, 1, [&](tw_ctx*, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) now[i] = std::this_thread::get_id();
      // Nobody goes on before both have begun.
      const bool is_first = begin == 0 || begin == kExtent / 2;
      if (is_first) ++begun;
      while (is_first && begun < 2) std::this_thread::yield();
      return TW_OK;
    });
    EXPECT_EQ(now[0], std::this_thread::get_id());
    EXPECT_NE(now[kExtent / 2], now[0]);
    if (loop > 0) {
      EXPECT_EQ(now[kExtent / 2], before[kExtent / 2]);
    }
    before = now;
  }
}

// Iterations that wait for one another need a thread each.
TEST_F(Parallel, UsesAsManyThreadsAsWanted) {
  std::atomic<int> present{0};
  int32_t code = parallel(ctx, 4, 1, [&](tw_ctx*, int64_t, int64_t) -> int32_t {
    ++present;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (present < 4) {
      if (std::chrono::steady_clock::now() > deadline) return TW_ERROR_INTERNAL;
      std::this_thread::yield();
    }
    return TW_OK;
  });
  EXPECT_EQ(code, TW_OK);
  EXPECT_EQ(tw_pool_size(), 3);
  EXPECT_EQ(tw_get_num_threads(), 4);
}

TEST_F(Parallel, ContextLimitsThreads) {
  ctx->max_threads = 1;
  std::thread::id caller = std::this_thread::get_id();
  int ranges = 0;
  parallel(ctx, 1000, 1, [&](tw_ctx*, int64_t, int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++ranges;
    return TW_OK;
  });
  EXPECT_EQ(ranges, 1);

  ctx->max_threads = 2;
  std::atomic<int> now{0}, most{0};
  parallel(ctx, 64, 1, [&](tw_ctx*, int64_t, int64_t) {
    int value = ++now;
    int before = most;
    while (before < value && !most.compare_exchange_weak(before, value)) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    --now;
    return TW_OK;
  });
  EXPECT_LE(most, 2);
  ctx->max_threads = 0;
}

TEST_F(Parallel, NestedLoopsRunInline) {
  std::atomic<int64_t> total{0};
  int32_t code = parallel(ctx, 8, 1, [&](tw_ctx* outer, int64_t begin, int64_t end) -> int32_t {
    std::thread::id thread = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      int32_t inner = parallel(outer, 10, 1, [&](tw_ctx*, int64_t first, int64_t last) {
        EXPECT_EQ(std::this_thread::get_id(), thread);
        total += last - first;
        return TW_OK;
      });
      if (inner) return inner;
    }
    return TW_OK;
  });
  EXPECT_EQ(code, TW_OK);
  EXPECT_EQ(total, 80);
}

TEST_F(Parallel, FirstErrorWinsAndStopsTheRest) {
  std::atomic<int64_t> executed{0};
  int32_t code = parallel(ctx, 100000, 1, [&](tw_ctx* inner, int64_t begin, int64_t end) -> int32_t {
    if (begin == 0) return tw_report(inner, TW_ERROR_ASSERTION, "the first range failed");
    executed += end - begin;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return TW_OK;
  });
  EXPECT_EQ(code, TW_ERROR_ASSERTION);
  EXPECT_STREQ(tw_last_error(), "the first range failed");
  EXPECT_LT(executed, 100000);

  // The next loop starts afresh.
  EXPECT_EQ(parallel(ctx, 100, 1, [](tw_ctx*, int64_t, int64_t) -> int32_t { return TW_OK; }), TW_OK);
}

TEST_F(Parallel, OnlyOneOfManyErrorsIsKept) {
  for (int round = 0; round < 50; ++round) {
    int32_t code = parallel(ctx, 64, 1, [&](tw_ctx* inner, int64_t begin, int64_t) {
      std::string message = "range " + std::to_string(begin);
      return tw_report(inner, static_cast<int32_t>(100 + begin), message.c_str());
    });
    ASSERT_GE(code, 100);
    EXPECT_EQ(std::string(tw_last_error()).substr(0, 6), "range ");
  }
}

TEST_F(Parallel, SeveralCallersAtOnce) {
  constexpr int kCallers = 12;  // more than the pool has slots
  std::vector<std::thread> callers;
  std::atomic<int> failures{0};
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      tw_ctx* own = tw_default_ctx();
      for (int round = 0; round < 300; ++round) {
        std::atomic<int64_t> sum{0};
        int32_t wanted = round % 10 == 9 ? 1000 + c : TW_OK;
        int32_t code = parallel(own, 50 + c, 1, [&](tw_ctx* inner, int64_t begin, int64_t end) -> int32_t {
          if (inner != own) ++failures;
          for (int64_t i = begin; i < end; ++i) sum += i;
          return end == 50 + c ? wanted : TW_OK;
        });
        int64_t n = 50 + c;
        if (code != wanted || (code == TW_OK && sum != n * (n - 1) / 2)) ++failures;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(Parallel, ThreadsComeAndGoWhileLoopsRun) {
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int i = 0; i < 100; ++i) {
      tw_set_num_threads(1 + i % 5);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    stop = true;
  });
  int64_t rounds = 0;
  while (!stop) {
    std::atomic<int64_t> count{0};
    parallel(ctx, 37, 1, [&](tw_ctx*, int64_t begin, int64_t end) {
      count += end - begin;
      return TW_OK;
    });
    ASSERT_EQ(count, 37);
    ++rounds;
  }
  changer.join();
  EXPECT_GT(rounds, 0);
}

TEST_F(Parallel, FewerThreadsLeaveThePool) {
  parallel(ctx, 100, 1, [](tw_ctx*, int64_t, int64_t) -> int32_t { return TW_OK; });
  ASSERT_EQ(tw_pool_size(), 3);
  tw_set_num_threads(2);
  wait_for_pool_of_at_most(1);
  EXPECT_EQ(tw_pool_size(), 1);
}

TEST_F(Parallel, DefaultFollowsTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  tw_set_num_threads(0);
  EXPECT_EQ(tw_get_num_threads(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(Parallel, HelpersTakeTheCallersFloatingPointMode) {
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush denormals to zero, on input and output
  std::atomic<int> differ{0};
  for (int round = 0; round < 20; ++round) {
    parallel(ctx, 32, 1, [&](tw_ctx*, int64_t, int64_t) {
      if ((_mm_getcsr() & 0x8040) != 0x8040) ++differ;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      return TW_OK;
    });
  }
  _mm_setcsr(before);
  EXPECT_EQ(differ, 0);
  parallel(ctx, 32, 1, [&](tw_ctx*, int64_t, int64_t) {
    if (_mm_getcsr() & 0x8040) ++differ;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return TW_OK;
  });
  EXPECT_EQ(differ, 0);
}

#if defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_THREAD_SANITIZER() GTEST_SKIP() << "the sanitizer cannot start threads after a fork"
#else
#define SKIP_UNDER_THREAD_SANITIZER() (void)0
#endif

// The parent's threads do not exist in the child, which must neither wait for them nor crash.
TEST_F(Parallel, SurvivesFork) {
  SKIP_UNDER_THREAD_SANITIZER();
  auto sum = [&] {
    std::atomic<int64_t> total{0};
    parallel(ctx, 1000, 1, [&](tw_ctx*, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) total += i;
      return TW_OK;
    });
    return total.load();
  };
  ASSERT_EQ(sum(), 499500);
  for (int round = 0; round < 5; ++round) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      bool fine = true;
      for (int i = 0; i < 100; ++i) fine = fine && sum() == 499500;
      _exit(fine && tw_pool_size() == 3 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    ASSERT_EQ(sum(), 499500);
  }
}

// Forks while other threads are in the middle of starting threads and running loops.
TEST_F(Parallel, SurvivesForkInTheMiddleOfLoops) {
  SKIP_UNDER_THREAD_SANITIZER();
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      while (!stop) parallel(tw_default_ctx(), 64, 1, [](tw_ctx*, int64_t, int64_t) -> int32_t { return TW_OK; });
    });
  }
  for (int round = 0; round < 20; ++round) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      std::atomic<int> count{0};
      int32_t code = parallel(tw_default_ctx(), 64, 1, [&](tw_ctx*, int64_t begin, int64_t end) {
        count += static_cast<int>(end - begin);
        return TW_OK;
      });
      _exit(code == TW_OK && count == 64 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  for (auto& caller : callers) caller.join();
}

TEST_F(Parallel, ContextMayBringItsOwnLoop) {
  tw_ctx own;
  tw_ctx_init(&own);
  EXPECT_EQ(own.parallel_for, &tw_parallel_for);
  own.parallel_for = [](tw_ctx* inner, tw_parallel_body body, void* closure, int64_t extent, int64_t) -> int32_t {
    for (int64_t i = extent; i-- > 0;) {
      if (int32_t code = body(inner, i, i + 1, closure)) return code;
    }
    return TW_OK;
  };
  std::vector<int64_t> order;
  parallel(&own, 3, 1, [&](tw_ctx*, int64_t begin, int64_t) {
    order.push_back(begin);
    return TW_OK;
  });
  EXPECT_EQ(order, (std::vector<int64_t>{2, 1, 0}));
}

}  // namespace
