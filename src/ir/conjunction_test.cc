#include "ir/conjunction.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace tilewright {
namespace {

TEST(Conjunction, HasTheTermsInOrderWithoutHintsAndWhatAlwaysHolds) {
  const Ref<Var> i = var("i"), j = var("j");
  const Expr a = lt(i, i32(4)), b = ge(j, i32(0)), c = logical_or(a, b);
  const Expr hint = call(Intrinsic::k_likely, {logical_and(b, c)});
  EXPECT_EQ(conjuncts(logical_and(a, hint)), (std::vector<Expr>{a, b, c}));
  EXPECT_EQ(conjuncts(make<And>({logical_and(a, b), bool_imm(true)})), (std::vector<Expr>{a, b}));
  EXPECT_EQ(conjuncts(c), std::vector<Expr>{c});
  EXPECT_TRUE(conjuncts(bool_imm(true)).empty());
}

}  // namespace
}  // namespace tilewright
