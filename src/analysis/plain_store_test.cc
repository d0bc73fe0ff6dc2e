// The quick reading of a plain store agrees with the general analyses.
#include "analysis/plain_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/free_vars.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "schedule/test_programs.h"

namespace tilewright::analysis {
namespace {

using schedule::test::axis;
using schedule::test::point;

class PlainStoreTest : public testing::Test {
 protected:
  DataType f32 = DataType::float_(32);
  Ref<Buffer> a = decl_buffer({i32(8), i32(8)}, f32, "A"), b = decl_buffer({i32(8), i32(8)}, f32, "B"),
              c = decl_buffer({i32(8), i32(8)}, f32, "C");
  Ref<Buffer> index = decl_buffer({i32(8)}, DataType::int_(32), "I");
  Ref<Var> vi = var("vi"), vj = var("vj"), vk = var("vk"), outer = var("outer");

  Ref<Block> block(Stmt body, Stmt init, std::vector<Ref<BufferRegion>> reads, std::vector<Ref<BufferRegion>> writes) {
    Block made;
    made.iter_vars = {axis(vi, 8, IterType::kDataPar), axis(vj, 8, IterType::kDataPar),
                      axis(vk, 4, IterType::kCommReduce)};
    made.name_hint = "block";
    made.body = std::move(body);
    made.init = std::move(init);
    made.reads = std::move(reads);
    made.writes = std::move(writes);
    return make(std::move(made));
  }

  /// Returns the block with the regions that the analysis finds.
  Ref<Block> declared(Stmt body, Stmt init = {}) {
    BlockAccess access = found_access_region(block(body, init, {}, {}));
    return block(body, init, access.reads, access.writes);
  }

  static void expect_same(const Ref<Block>& block) {
    SCOPED_TRACE(structural_hash(block).hex());
    BlockFacts general = BlockFacts::examined(block);
    const BlockFacts& known = BlockFacts::of(block);
    EXPECT_EQ(known.role, general.role);
    EXPECT_EQ(known.commutative, general.commutative);
    EXPECT_EQ(known.compound, general.compound);
    EXPECT_EQ(known.why, general.why);
    EXPECT_EQ(known.undeclared, general.undeclared);
    EXPECT_EQ(known.writes_all, general.writes_all);
    EXPECT_EQ(known.live_in, general.live_in);
    BlockAccess touched = block_access_region(block), found = found_access_region(block);
    auto same = [](const Ref<BufferRegion>& x, const Ref<BufferRegion>& y) { return structural_equal(x, y); };
    EXPECT_TRUE(std::equal(touched.reads.begin(), touched.reads.end(), found.reads.begin(), found.reads.end(), same));
    EXPECT_TRUE(
        std::equal(touched.writes.begin(), touched.writes.end(), found.writes.begin(), found.writes.end(), same));
    EXPECT_EQ(touched.opaque, found.opaque);
    std::set<NodeRef, bool (*)(const NodeRef&, const NodeRef&)> free(
        [](const NodeRef& x, const NodeRef& y) { return std::less<>()(x.get(), y.get()); });
    for_each_free_var(block, [&](const Ref<Var>& v) { free.insert(v); });
    for (const NodeRef& v : free) EXPECT_TRUE(FreeVars::of(block).contains(v)) << v.as<Var>()->name_hint;
    for (const Ref<IterVar>& own : block->iter_vars) EXPECT_FALSE(FreeVars::of(block).contains(own->var));
  }
};

TEST_F(PlainStoreTest, UsualBlocksAreSeen) {
  Stmt product = store(c, load(c, {vi, vj}) + load(a, {vi, vk}) * load(b, {vk, vj}), {vi, vj});
  Stmt zero = store(c, float_imm(f32, 0), {vi, vj});
  EXPECT_TRUE(PlainBlock::of(*declared(product, zero)));
  EXPECT_EQ(BlockFacts::of(declared(product, zero)).role, BlockRole::kReduction);
  EXPECT_EQ(BlockFacts::of(declared(product)).role, BlockRole::kUpdate);
  for (const Ref<Block>& each : {declared(product, zero), declared(product)}) expect_same(each);
  EXPECT_FALSE(PlainStore::of(store(c, load(a, {load(index, {vi}), vj}), {vi, vj}))) << "data selects";
  EXPECT_FALSE(PlainStore::of(nop()));
}

TEST_F(PlainStoreTest, ShapesOfBuffersThatAreOnlyDeclaredCount) {
  Ref<Var> n = var("n");
  Ref<Buffer> sized = decl_buffer({Expr(n), i32(8)}, f32, "S");
  Stmt body = store(c, load(a, {vi, vj}), {vi, vj});
  Ref<Block> whole = block(body, {}, {point(a, {vi, vj}), point(sized, {vi, vj})}, {point(c, {vi, vj})});
  expect_same(whole);
  EXPECT_TRUE(FreeVars::of(whole).contains(n));
}

TEST_F(PlainStoreTest, AgreesWithTheGeneralAnalyses) {
  std::mt19937 random(7);
  auto below = [&](int bound) { return static_cast<int>(random() % bound); };
  const Ref<Buffer> buffers[] = {a, b, c};
  auto at = [&]() -> Expr {
    const Expr choices[] = {vi,
                            vj,
                            vk,
                            Expr(vi) + vk,
                            i32(3),
                            floormod(Expr(vj) + 1, i32(8)),
                            outer,
                            load(index, {vi}),
                            cast(DataType::int_(32), cast(f32, vj) * float_imm(f32, 0.5))};
    return choices[below(below(3) ? 4 : 9)];
  };
  auto value = [&](auto&& self, int depth) -> Expr {
    if (depth == 0) return below(3) ? load(buffers[below(3)], {at(), at()}) : Expr(float_imm(f32, below(5)));
    Expr x = self(self, depth - 1), y = self(self, depth - 1);
    switch (below(6)) {
      case 0:
        return max(x, y);
      case 1:
        return x * y;
      case 2:
        return if_then_else(lt(vi, i32(4)), x, y);
      case 3:
        return call(Intrinsic::k_exp, {x});
      default:
        return x + y;
    }
  };
  int plain = 0, good = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Expr> where = below(3) ? std::vector<Expr>{vi, vj} : std::vector<Expr>{at(), at()};
    Expr stored = value(value, below(3));
    if (below(2)) stored = below(4) ? load(c, where) + stored : max(load(c, where), stored);
    Stmt init;
    if (below(2))
      init = store(c, below(6) ? Expr(float_imm(f32, 0)) : value(value, 0),
                   below(6) ? where : std::vector<Expr>{at(), at()});
    Stmt body = store(c, stored, where);
    Ref<Block> whole = declared(body, init);
    if (below(4) == 0) {  // declares less, or something else
      std::vector<Ref<BufferRegion>> reads = whole->reads;
      if (!reads.empty() && below(2)) reads.erase(reads.begin() + below(static_cast<int>(reads.size())));
      if (below(2)) reads.push_back(point(buffers[below(3)], {at(), at()}));
      whole = block(body, init, reads, whole->writes);
    }
    plain += PlainBlock::of(*whole).has_value();
    good += BlockFacts::of(whole).role != BlockRole::kOther;
    expect_same(whole);
    if (HasFailure()) return;
  }
  EXPECT_GT(plain, 500);
  EXPECT_GT(good, 300);
}

TEST_F(PlainStoreTest, ABlockOfOtherRegionsHasTheSameBody) {
  Ref<Block> known = declared(store(c, load(a, {vi, vj}) + load(b, {vj, vi}), {vi, vj}));
  Block copy = *known;
  copy.reads.clear();
  Ref<Block> other = make(std::move(copy));
  PlainBlock::carry_over(*known, *other);
  const std::optional<PlainBlock>& plain = PlainBlock::of(*other);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->block, &*other);
  EXPECT_EQ(plain->body.loads, PlainBlock::of(*known)->body.loads);
  EXPECT_EQ(plain->body.vars, PlainBlock::of(*known)->body.vars);
}

TEST_F(PlainStoreTest, TheValueOfAnotherStoreIsNotLookedThroughAgain) {
  Expr inner = load(a, {vi, Expr(vj) + vk}) * load(b, {vj, vi});
  Stmt held = store(a, inner, {vi, outer});
  auto part = PlainStore::of(held);
  ASSERT_TRUE(part.has_value());
  const Expr values[] = {inner, inner + load(b, {vk, vj}), max(load(c, {vj, vk}), inner) + inner,
                         if_then_else(lt(vi, i32(4)), inner, float_imm(f32, 0)), load(b, {vi, vj})};
  for (const Expr& value : values) {
    Ref<Block> known = declared(store(c, value, {vi, vj})), looked = declared(store(c, value, {vi, vj}));
    PlainBlock::analyze_inlined(*looked, *part);
    const std::optional<PlainBlock>&found = PlainBlock::of(*known), &with_part = PlainBlock::of(*looked);
    ASSERT_TRUE(found.has_value() && with_part.has_value());
    EXPECT_EQ(with_part->body.loads, found->body.loads);
    EXPECT_EQ(with_part->body.vars, found->body.vars);
    // A known store serves as part of another one.
    Stmt outer_store = store(c, value + load(a, {vk, vk}), {vj, vi});
    EXPECT_EQ(PlainStore::of(outer_store, &with_part->body)->vars, PlainStore::of(outer_store)->vars);
    EXPECT_EQ(PlainStore::of(outer_store, &with_part->body)->loads, PlainStore::of(outer_store)->loads);
  }
  Expr selected = load(a, {load(index, {vi}), vj});
  EXPECT_FALSE(PlainStore::of(store(c, inner + selected, {vi, vj}), &*part)) << "data selects";
}

}  // namespace
}  // namespace tilewright::analysis
