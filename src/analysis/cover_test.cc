// Every element reported as covered is written before it is read: checked on all iterations of random pairs of blocks.
#include "analysis/cover.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "arith/test_evaluator.h"
#include "ir/build.h"
#include "schedule/test_programs.h"

namespace tilewright::analysis {
namespace {

using schedule::test::axis;
using schedule::test::point;

/// for o in range(4): { for a, b: writer of B; for c, d: reader of B }
class CoverTest : public testing::Test {
 protected:
  struct Nest {
    Ref<Var> outer_loop, inner_loop;
    int64_t outer, inner;
    std::vector<Expr> values;  ///< values of the block's axes
    Expr predicate = bool_imm(true);
  };

  std::mt19937 random{5};
  Ref<Var> o = var("o");
  Ref<Buffer> a = decl_buffer({i32(64), i32(64)}, DataType::float_(32), "A"),
              b = decl_buffer({i32(64), i32(64)}, DataType::float_(32), "B"),
              c = decl_buffer({i32(64), i32(64)}, DataType::float_(32), "C");

  int below(int bound) { return static_cast<int>(random() % bound); }

  Nest nest() {
    Nest result{var("x"), var("y"), 1 + below(4), 1 + below(4), {}};
    for (int i = 0; i < 2; ++i) {
      const Expr x = result.outer_loop, y = result.inner_loop, loops[] = {x, y};
      const int64_t extents[] = {result.outer, result.inner};
      Expr choices[] = {loops[i],
                        Expr(o) * extents[i] + loops[i],
                        x * result.inner + y,
                        y * result.outer + x,
                        floordiv(loops[i], i32(2)),
                        floormod(loops[i], i32(2)) * 2 + 1,
                        loops[i] * -1 + 3,
                        i32(below(3)),
                        Expr(o) + loops[i],
                        floormod(Expr(o) * Expr(o), i32(3)) * extents[i] + loops[i]};
      result.values.push_back(choices[below(3) ? below(2) : below(10)]);
    }
    if (below(6) == 0) result.predicate = lt(result.values[below(2)], i32(1 + below(6)));
    return result;
  }

  Stmt statement(const Nest& nest, const Ref<Buffer>& from, const Ref<Buffer>& to, int shift) {
    Ref<Var> v = var("v"), w = var("w");
    Block block;
    block.iter_vars = {axis(v, 32, IterType::kDataPar), axis(w, 32, IterType::kDataPar)};
    std::vector<Expr> source = {Expr(v) + shift, w}, target = {v, w};
    block.reads = {point(from, source)};
    block.writes = {point(to, target)};
    block.name_hint = to->name;
    block.body = store(to, load(from, source), target);
    Stmt result =
        make<BlockRealize>({.iter_values = nest.values, .predicate = nest.predicate, .block = make(std::move(block))});
    result = loop(nest.inner_loop, i32(nest.inner), std::move(result));
    return loop(nest.outer_loop, i32(nest.outer), std::move(result));
  }

  static std::set<std::pair<int64_t, int64_t>> elements(const Nest& nest, const Ref<Var>& o, int64_t at, int shift) {
    std::set<std::pair<int64_t, int64_t>> found;
    for (int64_t x = 0; x < nest.outer; ++x) {
      for (int64_t y = 0; y < nest.inner; ++y) {
        arith::Env env{{o, at}, {nest.outer_loop, x}, {nest.inner_loop, y}};
        if (!*arith::evaluate(nest.predicate, env)) continue;
        found.emplace(*arith::evaluate(nest.values[0], env) + shift, *arith::evaluate(nest.values[1], env));
      }
    }
    return found;
  }
};

TEST_F(CoverTest, WhatIsCoveredIsWritten) {
  int yes = 0, missed = 0;
  for (int round = 0; round < 3000; ++round) {
    Nest writer = nest(), reader = nest();
    if (below(3) == 0) {
      reader.values = {writer.values[0], writer.values[1]};
      if (below(2)) reader.predicate = writer.predicate;
      if (below(2)) reader.outer = writer.outer, reader.inner = writer.inner;
    }
    auto renamed = [&](const Expr& e) {
      return substitute(e, {{writer.outer_loop, reader.outer_loop}, {writer.inner_loop, reader.inner_loop}});
    };
    for (Expr& value : reader.values) value = renamed(value);
    reader.predicate = renamed(reader.predicate);
    int shift = below(4) == 0 ? below(3) : 0;
    Stmt both = seq({statement(writer, a, b, 0), statement(reader, b, c, shift)});
    Ref<PrimFunc> func = schedule::test::function({a, b, c}, loop(o, i32(4), both));
    const Tree& tree = Tree::of(func->body.as<BlockRealize>()->block);
    bool covered = !why_not_covered(tree, tree.blocks()[1], tree.blocks()[2], b);
    bool written = true;
    for (int64_t at = 0; at < 4; ++at) {
      auto has = elements(writer, o, at, 0), needs = elements(reader, o, at, shift);
      written &= std::includes(has.begin(), has.end(), needs.begin(), needs.end());
    }
    EXPECT_TRUE(written || !covered) << round;
    yes += covered;
    missed += written && !covered;
  }
  EXPECT_GT(yes, 150);
  EXPECT_LT(missed, yes) << "it says no far too often";
}

/// for o: { for x: B[o * o % n + x, 0] = ...; for y: ... = B[o * o % n + y, 0] }, both where o * o % n + x < m
TEST_F(CoverTest, BlocksThatAreTiledAlikeNeedNoArithmetic) {
  Ref<Var> n = var("n"), m = var("m");
  auto of = [&](const char* name, int64_t extent, int64_t factor) {
    Nest result{var(name), var("unit"), extent, 1, {}};
    result.values = {floormod(Expr(o) * Expr(o), n) * factor + result.outer_loop, result.inner_loop};
    result.predicate = lt(result.values[0], m);
    return result;
  };
  auto covered = [&](const Nest& writer, const Nest& reader) {
    Stmt both = seq({statement(writer, a, b, 0), statement(reader, b, c, 0)});
    Ref<PrimFunc> func = schedule::test::function({a, b, c}, loop(o, i32(4), both));
    const Tree& tree = Tree::of(func->body.as<BlockRealize>()->block);
    return !why_not_covered(tree, tree.blocks()[1], tree.blocks()[2], b);
  };
  EXPECT_TRUE(covered(of("x", 3, 4), of("y", 3, 4)));
  EXPECT_FALSE(covered(of("x", 3, 4), of("y", 4, 4)));
  EXPECT_FALSE(covered(of("x", 3, 4), of("y", 3, 5)));
  Nest always = of("y", 3, 4);
  always.predicate = bool_imm(true);
  EXPECT_FALSE(covered(of("x", 3, 4), always));
}

}  // namespace
}  // namespace tilewright::analysis
