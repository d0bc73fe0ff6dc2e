// A tree that is made from the one before a change is the one that a walk over the program makes.
#include "analysis/tree.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/build.h"
#include "schedule/edit.h"
#include "schedule/test_programs.h"

namespace tilewright::analysis {
namespace {

using schedule::TreeEdit;
using schedule::test::axis;

class TreeTest : public testing::Test {
 protected:
  std::mt19937 random{11};
  Ref<Buffer> a = decl_buffer({i32(8)}, DataType::float_(32), "A");
  int blocks = 0;

  int below(int bound) { return static_cast<int>(random() % bound); }

  Stmt leaf() { return store(a, float_imm(DataType::float_(32), below(9)), {i32(below(8))}); }

  Stmt statement(int depth) {
    switch (depth == 0 ? 0 : below(4)) {
      case 0: {
        Ref<Var> v = var("v");
        Block block;
        block.iter_vars = {axis(v, 8, IterType::kDataPar)};
        block.name_hint = "block" + std::to_string(blocks++);
        block.body = depth > 1 && below(2) ? statement(depth - 1) : leaf();
        if (below(2)) block.init = below(2) ? loop(var("t"), i32(2), leaf()) : leaf();
        if (below(4) == 0) {
          Ref<Buffer> view = decl_buffer({i32(4)}, DataType::float_(32), "view");
          block.match_buffers = {make<MatchBufferRegion>({view, make<BufferRegion>({a, {range(i32(0), i32(4))}})})};
        }
        return make<BlockRealize>(
            {.iter_values = {i32(below(8))}, .predicate = bool_imm(true), .block = make(std::move(block))});
      }
      case 1:
        return make<IfThenElse>({lt(i32(1), i32(2)), statement(depth - 1), below(2) ? statement(depth - 1) : Stmt()});
      case 2: {
        const ForKind kinds[] = {ForKind::kSerial, ForKind::kParallel, ForKind::kVectorized, ForKind::kUnrolled};
        return loop(var("i"), i32(8), statement(depth - 1), kinds[below(4)]);
      }
      default: {
        std::vector<Stmt> stmts;
        for (int i = 0; i < 2 + below(4); ++i) stmts.push_back(statement(depth - 1));
        return seq(std::move(stmts));
      }
    }
  }

  static void expect_same(const Tree& made, const Tree& walked) {
    ASSERT_EQ(made.size(), walked.size());
    for (int at = 0; at < made.size(); ++at) {
      const Tree::Entry &x = made[at], &y = walked[at];
      if (at > 0) {
        EXPECT_EQ(x.node, y.node);
      }
      EXPECT_EQ(std::tie(x.parent, x.end, x.scope), std::tie(y.parent, y.end, y.scope)) << at;
      EXPECT_EQ(std::tie(x.in_init, x.is_block, x.is_loop), std::tie(y.in_init, y.is_block, y.is_loop)) << at;
      if (x.is_loop) {
        EXPECT_EQ(made.loop(made.for_at(at).loop_var), walked.loop(made.for_at(at).loop_var));
      }
      if (x.is_block) {
        EXPECT_EQ(made.block(made.block_at(at).id.value), walked.block(made.block_at(at).id.value));
      }
      if (x.is_block && at > 0) {
        for (const Ref<MatchBufferRegion>& match : made.block_at(at).match_buffers) {
          EXPECT_EQ(made.memory(match->buffer), walked.memory(match->buffer));
        }
      }
    }
    EXPECT_EQ(made.blocks(), walked.blocks());
    EXPECT_EQ(made.concurrent_loops(), walked.concurrent_loops());
  }
};

TEST_F(TreeTest, AfterChangesItIsThatOfAWalk) {
  int large = 0;
  for (int round = 0; round < 300; ++round) {
    Block outer;
    outer.name_hint = "root";
    outer.body = statement(4);
    Ref<Block> root = make(std::move(outer));
    std::vector<Ref<Block>> versions{root};  // trees borrow from them
    for (int step = 0; step < 6; ++step) {
      const Tree& tree = Tree::of(root);
      if (tree.size() < 3) break;
      large += tree.size() > 20;
      int at = 1 + below(tree.size() - 1);
      TreeEdit edit(tree);
      if (int what = below(5); what == 0) {
        edit.remove(at);
      } else if (what == 1) {
        edit.replace(at, statement(below(3)));
      } else if (what == 2 && tree[at].is_loop) {
        edit.replace(at, loop(var("outer"), i32(4), tree.stmt(at)));
      } else if (what == 3) {
        edit.insert_before(at, statement(below(3)));
      } else {
        edit.insert_after(at, statement(below(3)));
      }
      root = edit.finish();
      versions.push_back(root);
      expect_same(Tree::of(root), Tree::of(make<Block>(Block(*root))));
      if (HasFailure()) FAIL() << round << ", " << step;
    }
  }
  EXPECT_GT(large, 100);
}

}  // namespace
}  // namespace tilewright::analysis
