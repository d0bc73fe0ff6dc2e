#include "ir/node_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
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

TEST(NodeMemory, FewThatOutliveTheirNeighborsLeaveTheRestToOthers) {
  std::vector<void*> kept;
  std::set<uintptr_t> chunks;
  auto chunk_of = [](void* node) { return reinterpret_cast<uintptr_t>(node) >> 14; };
  for (int round = 0; round < 40; ++round) {
    std::vector<void*> temporary;
    for (int i = 0; i < 2000; ++i) {
      void* node = allocate_node(kBytes);
      chunks.insert(chunk_of(node));
      (i % 10 == 0 ? kept : temporary).push_back(node);
    }
    free_all(temporary);
  }
  // All have gone through 3,750 KiB; 375 are alive.
  EXPECT_LT(chunks.size() * 16, 4 * kept.size() * kBytes / 1024);
  free_all(kept);
}

TEST(NodeMemory, MuchThatIsFreedGoesBackToTheSystem) {
  auto resident_mib = [] {
    std::ifstream file("/proc/self/statm");
    size_t all = 0, resident = 0;
    file >> all >> resident;
    return resident * 4096 >> 20;
  };
  const size_t before = resident_mib();
  std::vector<void*> nodes;
  nodes.reserve(size_t{2} << 20);
  for (size_t i = 0; i < nodes.capacity(); ++i) {  // 96 MiB
    nodes.push_back(allocate_node(kBytes));
    *static_cast<uint64_t*>(nodes.back()) = i;
  }
  EXPECT_GT(resident_mib(), before + 90);
  free_all(nodes);
  std::vector<void*>().swap(nodes);
  EXPECT_LT(resident_mib(), before + 50);
}

TEST(NodeMemory, WhatWasFreedIsGivenOutOnceWhateverItsSize) {
  // Nodes of many sizes live for a while; each is filled with its number, which must be there when it goes.
  struct Node {
    unsigned char* at;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Node> live;
  uint32_t random = 1;
  auto sample = [&](uint32_t below) { return (random = random * 1664525 + 1013904223) / 65536 % below; };
  for (int step = 0; step < 100000; ++step) {
    if (live.size() < 3000 || sample(2)) {
      size_t bytes = 8 * (1 + sample(63));
      auto* at = static_cast<unsigned char*>(allocate_node(bytes));
      live.push_back({at, bytes, static_cast<unsigned char>(step)});
      std::fill_n(at, bytes, live.back().mark);
    }
    if (live.size() < 2000 && step % 10000 > 1000) continue;
    size_t which = sample(static_cast<uint32_t>(live.size()));
    Node node = live[which];
    ASSERT_EQ(std::count(node.at, node.at + node.bytes, node.mark), static_cast<long>(node.bytes));
    free_node(node.at, node.bytes);
    live[which] = live.back();
    live.pop_back();
  }
  for (const Node& node : live) free_node(node.at, node.bytes);
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
