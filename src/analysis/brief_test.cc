// Messages write expressions as scripts do.
#include "analysis/brief.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "script/printer.h"

namespace tilewright::analysis {
namespace {

class BriefTest : public testing::Test {
 protected:
  Ref<Var> i = var("i"), n = var("n");
  Ref<Var> x = var("x", DataType::float_(32));
  Ref<Buffer> a = decl_buffer({n}, DataType::float_(32), "A");
};

TEST_F(BriefTest, ConditionsAreThoseOfScripts) {
  const std::vector<std::pair<Expr, std::string>> cases = {
      {ne(i, n), "i != n"},
      {logical_not(lt(i, n)), "not i < n"},
      {logical_or(lt(i, n), logical_and(ge(i, i32(4)), ne(i, n))), "i < n or i >= 4 and i != n"},
      {logical_and(logical_or(lt(i, n), eq(i, i32(0))), gt(n, i32(2))), "(i < n or i == 0) and n > 2"},
      {logical_not(logical_and(lt(i, n), gt(n, i32(2)))), "not (i < n and n > 2)"},
      {make<EQ>({lt(i, n), gt(n, i32(2))}), "(i < n) == (n > 2)"},
      {lt(floordiv(i + n, i32(4)) * 3, n - (i - 1)), "(i + n) // 4 * 3 < n - (i - 1)"},
      {if_then_else(lt(i, n), i, n), "T.if_then_else(i < n, i, n)"},
      {select(lt(i, n), i, n), "T.Select(i < n, i, n)"},
      {max(i, n) - min(i, n), "T.max(i, n) - T.min(i, n)"},
      {make<Mod>({i, n}), "T.truncmod(i, n)"},
      {call(Intrinsic::k_shift_left, {i, n}), "T.shift_left(i, n)"},
      {call(Intrinsic::k_exp, {x}), "T.exp(x)"},
  };
  for (const auto& [expr, text] : cases) {
    EXPECT_EQ(brief(expr), text);
    EXPECT_EQ(script::print(expr), text);
  }
}

TEST_F(BriefTest, TypesAreLeftToTheProgram) {
  EXPECT_EQ(brief(cast(DataType::int_(64), i) + i64(3)), "i + 3");
  EXPECT_EQ(brief(i * i32(-2)), "i * (-2)");
  EXPECT_EQ(brief(bool_imm(false)), "False");
  EXPECT_EQ(brief(float_imm(DataType::float_(64), 2)), "2.0");
  EXPECT_EQ(brief(gt(load(a, {i}), float_imm(DataType::float_(32), 0.5))), "A[i] > 0.5");
}

TEST_F(BriefTest, EndsOfRegionsAreSimplified) {
  const arith::Box box = {arith::IntSet::interval(i32(0), n - 1)};
  EXPECT_EQ(brief(a, box), "A[0:n]");
  EXPECT_EQ(brief(a, {arith::IntSet::interval(i * 4, i * 4 + 3)}), "A[i * 4:i * 4 + 4]");
  EXPECT_EQ(brief(a, {arith::IntSet::point(i)}), "A[i]");
  EXPECT_EQ(brief(a, {arith::IntSet::interval(i32(0), Expr())}), "A[0:?]");
  EXPECT_EQ(brief(make<BufferRegion>({a, {range(i + 1, i32(3))}})), "A[i + 1:i + 4]");
}

}  // namespace
}  // namespace tilewright::analysis
