#include "arith/join_digits.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/structural.h"

namespace tilewright::arith {
namespace {

const Expr x = var("x"), y = var("y");

void expect_joined(std::vector<Expr> values, const std::vector<Expr>& expected, const std::vector<size_t>& left) {
  EXPECT_EQ(join_digits(values), left);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(structural_equal(values[i], expected[i]));
}

TEST(JoinDigits, QuotientAndRestAreTheNumber) {
  Expr sum = x * 16 + y;
  expect_joined({y, floordiv(sum, 5), floormod(sum, 5)}, {y, sum}, {0, 1});
  expect_joined({floormod(sum, 5), floordiv(sum, 5)}, {sum}, {1});
}

TEST(JoinDigits, DigitsInBetween) {
  expect_joined({floordiv(x, 12), floordiv(floormod(x, 12), 4), floormod(x, 4)}, {x}, {0});
}

TEST(JoinDigits, OtherNumbersStay) {
  for (auto [a, b] :
       {std::pair{floordiv(x, 5), floormod(y, 5)}, std::pair{floordiv(x, 5), floormod(x, 4)},
        std::pair{floordiv(floormod(x, 10), 4), floormod(x, 4)}, std::pair{floordiv(x, y), floormod(x, y)}}) {
    expect_joined({a, b}, {a, b}, {0, 1});
  }
}

}  // namespace
}  // namespace tilewright::arith
