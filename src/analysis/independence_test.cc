// Iterations reported as independent compute the same in other orders: random programs are executed.
#include "analysis/independence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "arith/test_evaluator.h"
#include "ir/build.h"
#include "schedule/test_programs.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

using schedule::test::axis;
using schedule::test::point;

using Element = std::tuple<const NodeBase*, int64_t, int64_t>;

/// for x, y: { B[..] = A[..]; ... }, where blocks may read what others write.
class IndependenceTest : public testing::Test {
 protected:
  struct Step {
    std::vector<Expr> values;  ///< values of the axes
    Expr predicate;
    Ref<Buffer> from, to;
    int shift;
  };
  static constexpr int64_t kX = 4, kY = 3;

  std::mt19937 random{7};
  Ref<Var> x = var("x"), y = var("y");
  std::vector<Ref<Buffer>> buffers = {decl_buffer({i32(64), i32(64)}, DataType::float_(32), "A"),
                                      decl_buffer({i32(64), i32(64)}, DataType::float_(32), "B"),
                                      decl_buffer({i32(64), i32(64)}, DataType::float_(32), "C")};

  int below(int bound) { return static_cast<int>(random() % bound); }

  Step step() {
    const Expr both[] = {x, y};
    Step result{{both[below(2)], both[below(2)]}, bool_imm(true), buffers[below(3)], buffers[1 + below(2)], 0};
    for (Expr& value : result.values) {
      Expr choices[] = {Expr(x) * kY + y, floordiv(x, i32(2)), floormod(x, i32(2)),
                        Expr(x) + y,      i32(below(3)),       Expr(x) * -1 + 3};
      if (below(3) == 0) value = choices[below(6)];
    }
    if (below(5) == 0) result.predicate = lt(Expr(x) + y, i32(1 + below(5)));
    if (below(4) == 0) result.shift = below(3);
    return result;
  }

  static Stmt statement(const Step& step) {
    Ref<Var> v = var("v"), w = var("w");
    Block block;
    block.iter_vars = {axis(v, 32, IterType::kDataPar), axis(w, 32, IterType::kDataPar)};
    std::vector<Expr> source = {Expr(v) + step.shift, w}, target = {v, w};
    block.reads = {point(step.from, source)};
    block.writes = {point(step.to, target)};
    block.name_hint = "block";
    block.body = store(step.to, load(step.from, source), target);
    return make<BlockRealize>(
        {.iter_values = step.values, .predicate = step.predicate, .block = make(std::move(block))});
  }

  Ref<PrimFunc> program(const std::vector<Step>& steps) const {
    std::vector<Stmt> body;
    for (const Step& s : steps) body.push_back(statement(s));
    return schedule::test::function(buffers, loop(x, i32(kX), loop(y, i32(kY), seq(body))));
  }

  /// Returns the element read and the element written by a step in one iteration; nothing if it does not run.
  std::optional<std::pair<Element, Element>> accesses(const Step& s, int64_t at_x, int64_t at_y) const {
    arith::Env env{{x, at_x}, {y, at_y}};
    if (!*arith::evaluate(s.predicate, env)) return std::nullopt;
    int64_t v = *arith::evaluate(s.values[0], env), w = *arith::evaluate(s.values[1], env);
    return std::pair{Element{s.from.get(), v + s.shift, w}, Element{s.to.get(), v, w}};
  }

  /// Whether an iteration of x touches what another one writes.
  bool collides(const std::vector<Step>& steps) const {
    std::map<Element, std::set<int64_t>> writers, users;
    for (int64_t i = 0; i < kX; ++i) {
      for (int64_t j = 0; j < kY; ++j) {
        for (const Step& s : steps) {
          auto found = accesses(s, i, j);
          if (!found) continue;
          users[found->first].insert(i);
          users[found->second].insert(i);
          writers[found->second].insert(i);
        }
      }
    }
    return any_of(writers, [&](const auto& w) { return users[w.first].size() > 1; });
  }

  /// The memory afterwards: each element holds the number that its first value had.
  std::map<Element, Element> run(const std::vector<Step>& steps, bool swapped) const {
    std::map<Element, Element> memory;
    for (int64_t a = 0; a < (swapped ? kY : kX); ++a) {
      for (int64_t b = 0; b < (swapped ? kX : kY); ++b) {
        for (const Step& s : steps) {
          auto found = swapped ? accesses(s, b, a) : accesses(s, a, b);
          if (!found) continue;
          auto it = memory.find(found->first);
          memory.insert_or_assign(found->second, it == memory.end() ? found->first : it->second);
        }
      }
    }
    return memory;
  }
};

TEST_F(IndependenceTest, IterationsThatMayRunTogetherShareNothing) {
  int yes = 0, missed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Step> steps(1 + below(2));
    for (Step& s : steps) s = step();
    Ref<PrimFunc> func = program(steps);
    const Tree& tree = Tree::of(func->body.as<BlockRealize>()->block);
    bool independent = !why_dependent(tree, tree.loop(x), {ForKind::kParallel});
    bool apart = !collides(steps);
    EXPECT_TRUE(apart || !independent) << round;
    yes += independent;
    missed += apart && !independent;
  }
  EXPECT_GT(yes, 300);
  EXPECT_LT(missed, 2 * yes) << "it says no far too often";
}

TEST_F(IndependenceTest, BlocksThatTakeAnyOrderComputeTheSame) {
  int yes = 0, missed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Step> steps = {step()};
    Ref<PrimFunc> func = program(steps);
    const Tree& tree = Tree::of(func->body.as<BlockRealize>()->block);
    bool free = !why_order_matters(tree, {tree.loop(x), tree.loop(y)});
    bool same = run(steps, false) == run(steps, true);
    EXPECT_TRUE(same || !free) << round;
    yes += free;
    missed += same && !free;
  }
  EXPECT_GT(yes, 300);
  EXPECT_LT(missed, 2 * yes) << "it says no far too often";
}

TEST_F(IndependenceTest, WhyNot) {
  auto why = [&](const std::vector<Step>& steps, ForKind kind) {
    Ref<PrimFunc> func = program(steps);
    const Tree& tree = Tree::of(func->body.as<BlockRealize>()->block);
    auto found = why_dependent(tree, tree.loop(x), {kind});
    return found ? std::optional(found->conflict) : std::nullopt;
  };
  Step own{{x, y}, bool_imm(true), buffers[0], buffers[1], 0};
  EXPECT_EQ(why({own}, ForKind::kParallel), std::nullopt);
  Step same = own;
  same.values = {y, y};
  EXPECT_EQ(why({same}, ForKind::kParallel), Conflict::kWrite);
  Step next{{x, y}, bool_imm(true), buffers[1], buffers[2], 1};
  EXPECT_EQ(why({own, next}, ForKind::kParallel), Conflict::kRead);
  EXPECT_EQ(why({own, next}, ForKind::kVectorized), Conflict::kRead);
  next.shift = 0;
  EXPECT_EQ(why({own, next}, ForKind::kParallel), std::nullopt);
  next.to = buffers[1];  // reads and writes the same elements
  next.shift = 1;
  EXPECT_EQ(why({next}, ForKind::kParallel), Conflict::kOtherBlock);
}

}  // namespace
}  // namespace tilewright::analysis
