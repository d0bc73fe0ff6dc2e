#include "target/memory_scope.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tilewright {
namespace {

ThreadAxis axis(std::string_view tag) { return ThreadAxis::parse(tag).value(); }

TEST(ThreadAxis, Parse) {
  EXPECT_EQ(axis("threadIdx.z"), (ThreadAxis{ThreadAxis::Level::kThread, 2}));
  EXPECT_EQ(axis("vthread").dimension, -1);
  EXPECT_FALSE(axis("vthread").is_unique());
  EXPECT_TRUE(axis("vthread.x").is_unique());
  EXPECT_TRUE(axis("vthread.y").in_team());
  EXPECT_FALSE(axis("blockIdx.x").in_team());
  for (const char* bad :
       {"", "threadIdx", "threadIdx.", "threadIdx.w", "threadIdx.xy", "blockIdx.", "thread.x", ".x"}) {
    EXPECT_FALSE(ThreadAxis::parse(bad)) << bad;
  }
}

TEST(MemoryScope, NamesAreKnownByHowTheyBegin) {
  for (const char* scope : {"", "global", "global.texture", "shared", "shared.dyn", "warp", "local", "wmma.matrix_a",
                            "wmma.matrix_b", "wmma.accumulator", "texture", "texture:weight", "amx.tmm",
                            "m16n8k8.matrixA", "m16n8k8.matrixB", "m16n8k8.matrixC", "metal.simdgroup"}) {
    EXPECT_NE(find_memory_scope(scope), nullptr) << scope;
  }
  for (const char* bad : {"glob", "wmma", "m16n8k8.matrix", "nonsense", "Shared"}) {
    EXPECT_EQ(find_memory_scope(bad), nullptr) << bad;
  }
  EXPECT_EQ(&memory_scope("nonsense"), &memory_scope("global"));
}

TEST(MemoryScope, ScheduleAsksForScopesByTheirWholeName) {
  for (const char* scope : {"", "global", "global.vtcm", "global.texture-weight", "shared", "shared.dyn", "local",
                            "texture:weight", "m16n8k8.matrixA", "global2", "global.ddr1"}) {
    EXPECT_TRUE(is_memory_scope(scope)) << scope;
  }
  for (const char* bad : {"glob", "sharedd", "shared.", "shared.dynamic", "shared.dyn ", "local.foo", "local.1",
                          "global.texture-", "global.dyn", "wmma.matrix_a.b"}) {
    EXPECT_FALSE(is_memory_scope(bad)) << bad;
  }
}

TEST(MemoryScope, RowsAreInOrderOfRankAndNoPrefixHidesAnother) {
  std::set<std::string> seen;
  int rank = -1;
  for (const MemoryScope& row : memory_scopes()) {
    EXPECT_TRUE(row.rank == rank || row.rank == rank + 1) << row.prefix;
    rank = row.rank;
    for (const std::string& earlier : seen) EXPECT_FALSE(row.prefix.starts_with(earlier)) << row.prefix;
    seen.emplace(row.prefix);
  }
}

TEST(MemoryScope, WhoSharesACopy) {
  struct Case {
    const char *scope, *tag;
    bool shared, joined;  // bool shared, joined;  // for the 32 threads of a warp
  };
  for (const Case& c : {Case{"global", "blockIdx.x", true, false},
                        {"global", "threadIdx.x", true, false},
                        {"shared", "blockIdx.x", false, false},
                        {"shared.dyn", "threadIdx.x", true, true},
                        {"shared", "vthread.y", true, true},
                        {"shared", "vthread", true, true},
                        {"warp", "threadIdx.x", true, true},
                        {"warp", "threadIdx.y", false, false},
                        {"warp", "vthread.x", false, false},
                        {"warp", "blockIdx.x", false, false},
                        {"local", "threadIdx.x", false, false},
                        {"local", "vthread.x", false, false},
                        {"wmma.accumulator", "threadIdx.x", false, false}}) {
    EXPECT_EQ(memory_scope(c.scope).is_shared_by(axis(c.tag)), c.shared) << c.scope << ' ' << c.tag;
    EXPECT_EQ(memory_scope(c.scope).joins_threads(axis(c.tag), 32), c.joined) << c.scope << ' ' << c.tag;
  }
  EXPECT_FALSE(memory_scope("warp").joins_threads(axis("threadIdx.x"), 64));
  EXPECT_FALSE(memory_scope("warp").joins_threads(axis("threadIdx.x"), -1));
  EXPECT_TRUE(memory_scope("shared").joins_threads(axis("threadIdx.x"), -1));
}

}  // namespace
}  // namespace tilewright
