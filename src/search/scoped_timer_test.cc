#include "search/scoped_timer.h"

#include <gtest/gtest.h>

#include <thread>

namespace tilewright::search {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(ScopedTimer, PartsAddUp) {
  std::map<std::string, double> seconds;
  const auto start = steady_clock::now();
  {
    const ScopedTimer outer(seconds, "outer");
    std::this_thread::sleep_for(milliseconds(20));
    for (int i = 0; i < 2; ++i) {
      const ScopedTimer inner(seconds, "inner");
      std::this_thread::sleep_for(milliseconds(20));
      const ScopedTimer innermost(seconds, "outer");
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
  const double all = duration<double>(steady_clock::now() - start).count();
  EXPECT_NEAR(seconds["outer"] + seconds["inner"], all, 1e-3);
  EXPECT_GE(seconds["inner"], 0.04);
  EXPECT_GE(seconds["outer"], 0.03);
  EXPECT_LT(seconds["outer"], all - 0.04);
}

TEST(ScopedTimer, AnotherAccountTakesNothing) {
  std::map<std::string, double> mine, others;
  {
    const ScopedTimer outer(mine, "outer");
    const ScopedTimer inner(others, "inner");
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_GE(mine["outer"], 0.01);
  EXPECT_GE(others["inner"], 0.01);
}

}  // namespace
}  // namespace tilewright::search
