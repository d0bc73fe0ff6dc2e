// The blocks of a scope and how they depend on one another: against all pairs of what random blocks declare.
#include "analysis/scope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "ir/build.h"
#include "schedule/test_programs.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

using schedule::test::point;

Ref<Buffer> cell(const char* name) { return decl_buffer({i32(4)}, DataType::float_(32), name); }

struct Plan {
  std::vector<Ref<Buffer>> reads, writes;
};

Stmt block_of(const Plan& plan, int number) {
  Block block;
  block.name_hint = "b" + std::to_string(number);
  for (const Ref<Buffer>& b : plan.reads) block.reads.push_back(point(b, {i32(0)}));
  for (const Ref<Buffer>& b : plan.writes) block.writes.push_back(point(b, {i32(0)}));
  block.body = store(plan.writes[0], float_imm(DataType::float_(32), number), {i32(0)});
  return realized(make(std::move(block)));
}

TEST(Scope, DependencesAreThoseOfAllPairs) {
  std::mt19937 random{3};
  auto below = [&](int bound) { return static_cast<int>(random() % bound); };
  size_t total = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Ref<Buffer>> buffers = {cell("A"), cell("B"), cell("C"), cell("D")};
    Ref<Buffer> own = cell("own");
    buffers.push_back(own);
    std::vector<Plan> plans(2 + below(5));
    std::vector<Stmt> body;
    for (Plan& plan : plans) {
      for (int n = below(3); n > 0; --n) plan.reads.push_back(buffers[below(5)]);
      for (int n = 1 + below(2); n > 0; --n) plan.writes.push_back(buffers[below(5)]);
      body.push_back(block_of(plan, static_cast<int>(body.size())));
    }
    Block root;
    root.name_hint = "root";
    root.alloc_buffers = {own};
    root.body = seq(body);
    Ref<Block> block = make(std::move(root));
    const Scope& scope = Scope::of(*block);
    ASSERT_EQ(scope.children().size(), plans.size());
    EXPECT_EQ(scope.bare_statement(), nullptr);

    auto meets = [](const auto& a, const auto& b) {
      return any_of(a, [&](const auto& x) { return std::find(b.begin(), b.end(), x) != b.end(); });
    };
    std::set<std::tuple<int, int, DependenceKind>> expected, found;
    for (int dst = 0; dst < static_cast<int>(plans.size()); ++dst) {
      for (int src = 0; src < dst; ++src) {
        if (meets(plans[src].writes, plans[dst].reads)) expected.insert({src, dst, DependenceKind::kFlow});
        if (meets(plans[src].writes, plans[dst].writes)) expected.insert({src, dst, DependenceKind::kOutput});
        if (meets(plans[src].reads, plans[dst].writes)) expected.insert({src, dst, DependenceKind::kAnti});
      }
    }
    for (const Dependence& d : scope.dependences()) found.insert({d.src, d.dst, d.kind});
    EXPECT_EQ(found, expected) << round;
    total += found.size();
    for (int at = 0; at < static_cast<int>(plans.size()); ++at) {
      std::vector<int> to, from;
      for (const auto& [src, dst, kind] : expected) {
        if (kind != DependenceKind::kFlow) continue;
        if (src == at) to.push_back(dst);
        if (dst == at) from.push_back(src);
      }
      EXPECT_EQ(scope.consumers(at), to) << round;
      EXPECT_EQ(scope.producers(at), from) << round;
      EXPECT_EQ(scope.child(scope.children()[at]->block->id.value), at);
      const auto& writes = plans[at].writes;
      EXPECT_EQ(scope.is_output(at), any_of(writes, [&](const auto& b) { return b != own; }));
    }
    for (const Ref<Buffer>& b : buffers) {
      std::vector<int> readers, writers;
      for (int at = 0; at < static_cast<int>(plans.size()); ++at) {
        if (meets(plans[at].reads, std::vector{b})) readers.push_back(at);
        if (meets(plans[at].writes, std::vector{b})) writers.push_back(at);
      }
      EXPECT_EQ(scope.readers(b), readers);
      EXPECT_EQ(scope.writers(b), writers);
    }
  }
  EXPECT_GT(total, 1000u);
}

TEST(Scope, ABufferAndAViewOfItAreOneMemory) {
  Ref<Buffer> a = cell("A");
  Buffer copy = *cell("V");
  copy.data = a->data;
  Ref<Buffer> view = make(std::move(copy));
  Block root;
  root.name_hint = "root";
  root.body = seq({block_of({{}, {a}}, 0), block_of({{view}, {cell("B")}}, 1)});
  Ref<Block> block = make(std::move(root));
  EXPECT_EQ(Scope::of(*block).consumers(0), std::vector{1});
}

TEST(Scope, WhatStandsOutsideOfBlocksIsNamed) {
  Ref<Buffer> a = cell("A");
  Stmt bare = store(a, float_imm(DataType::float_(32), 1), {i32(0)});
  Block root;
  root.name_hint = "root";
  root.body = seq({block_of({{}, {a}}, 0), bare});
  Ref<Block> block = make(std::move(root));
  EXPECT_EQ(Scope::of(*block).bare_statement(), bare.get());
  EXPECT_EQ(Scope::of(*block).child(0), -1);
}

TEST(Scope, AChangedBodyHasTheScopeOfOneThatIsNew) {
  std::mt19937 random{5};
  auto below = [&](size_t bound) { return random() % bound; };
  std::vector<Ref<Buffer>> buffers;
  for (const char* name : {"A", "B", "C", "D", "E"}) buffers.push_back(cell(name));
  int number = 0;
  auto part = [&]() -> Stmt {
    Plan plan;
    for (size_t n = below(3); n > 0; --n) plan.reads.push_back(buffers[below(5)]);
    for (size_t n = 1 + below(2); n > 0; --n) plan.writes.push_back(buffers[below(5)]);
    Stmt stmt = block_of(plan, number++);
    if (below(4) == 0) stmt = loop(var("i"), i32(4), seq({stmt, block_of(plan, number++)}));
    if (below(60) == 0) stmt = store(buffers[0], float_imm(DataType::float_(32), 0), {i32(0)});  // no block
    return stmt;
  };
  auto scope_of = [](const std::vector<Stmt>& body) {
    Block root;
    root.name_hint = "root";
    root.body = body.size() == 1 ? body[0] : seq(body);
    return make(std::move(root));
  };
  auto rows = [](const Scope& scope) {
    std::vector<std::tuple<int, int, DependenceKind, const NodeBase*>> result;
    for (const Dependence& d : scope.dependences()) result.emplace_back(d.src, d.dst, d.kind, d.data);
    return result;
  };
  size_t bare = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Stmt> body(1 + below(12));
    std::generate(body.begin(), body.end(), part);
    Ref<Block> before = scope_of(body);
    for (int step = 0; step < 6; ++step) {
      size_t at = below(body.size());
      if (below(3) == 0 && body.size() > 1) {
        body.erase(body.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (below(2) == 0) {
        body.insert(body.begin() + static_cast<std::ptrdiff_t>(at), part());
      } else {
        body[at] = part();
      }
      if (below(5) == 0) std::swap(body[0], body[body.size() / 2]);
      Ref<Block> changed = scope_of(body), anew = scope_of(body);
      const Scope& found = Scope::of(*changed, *before);
      const Scope& expected = Scope::of(*anew);
      EXPECT_EQ(found.children(), expected.children()) << round;
      EXPECT_EQ(found.bare_statement(), expected.bare_statement()) << round;
      EXPECT_EQ(rows(found), rows(expected)) << round;
      for (const Ref<Buffer>& buffer : buffers) {
        EXPECT_EQ(found.writers(buffer), expected.writers(buffer)) << round;
        EXPECT_EQ(found.readers(buffer), expected.readers(buffer)) << round;
      }
      bare += found.bare_statement() != nullptr;
      before = changed;
    }
  }
  EXPECT_GT(bare, 20U);
}

}  // namespace
}  // namespace tilewright::analysis
