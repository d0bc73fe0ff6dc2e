#include "ir/node_memory.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "ir/build.h"

namespace tilewright {
namespace {

constexpr size_t kBytes = 48;

std::vector<void*> allocate(size_t count) {
  std::vector<void*> nodes;
  for (size_t i = 0; i < count; ++i) nodes.push_back(allocate_node(kBytes));
  return nodes;
}
void free_all(const std::vector<void*>& nodes) {
  for (void* node : nodes) free_node(node, kBytes);
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(NodeMemory, NodesLieInTheOrderInWhichTheyAreMade) {
  std::vector<void*> nodes = allocate(1000);
  size_t neighbors = 0;
  for (size_t i = 1; i < nodes.size(); ++i) {
    neighbors += static_cast<char*>(nodes[i]) - static_cast<char*>(nodes[i - 1]) == kBytes;
  }
  EXPECT_GE(neighbors, nodes.size() - 10);  // all but where a chunk ends
  free_all(nodes);
}

TEST(NodeMemory, TemporaryNodesLeaveNoHole) {
  void* first = allocate_node(kBytes);
  free_node(first, kBytes);
  void* second = allocate_node(kBytes);
  EXPECT_EQ(first, second);
  free_node(second, kBytes);
}

TEST(NodeMemory, MemoryOfFreedProgramsServesTheNext) {
  std::set<void*> seen;
  for (int round = 0; round < 50; ++round) {
    std::vector<void*> nodes = allocate(2000);
    seen.insert(nodes.begin(), nodes.end());
    free_all(nodes);
  }
  EXPECT_LT(seen.size(), 3U * 2000);
}
#endif

TEST(NodeMemory, OneLiveNodeKeepsItsContents) {
  auto* kept = static_cast<uint64_t*>(allocate_node(kBytes));
  *kept = 0x0123456789abcdef;
  for (int round = 0; round < 10; ++round) {
    std::vector<void*> nodes = allocate(1000);
    for (void* node : nodes) *static_cast<uint64_t*>(node) = 0;
    free_all(nodes);
  }
  EXPECT_EQ(*kept, 0x0123456789abcdef);
  free_node(kept, kBytes);
}

TEST(NodeMemory, NodesAreFreedByOtherThreadsAndAfterTheirThreadHasEnded) {
  std::vector<std::vector<Expr>> made(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < made.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) made[t].push_back(var("x", DataType::int_(32)) + (i + 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  for (size_t t = 0; t < made.size(); ++t) {
    threads.emplace_back([&, t] {
      // Each thread frees the odd nodes of its neighbor while it makes nodes of its own.
      std::vector<Expr>& theirs = made[(t + 1) % made.size()];
      for (size_t i = 1; i < theirs.size(); i += 2) {
        theirs[i] = Expr();
        Expr own = var("y", DataType::int_(32)) * 2;
        ASSERT_TRUE(own.is<Mul>());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& theirs : made) {
    for (size_t i = 0; i < theirs.size(); i += 2) {
      ASSERT_EQ(theirs[i].as<Add>()->b.as<IntImm>()->value, static_cast<int64_t>(i) + 1);
    }
  }
}

}  // namespace
}  // namespace tilewright
