#include "search/database/sql.h"

#include <gtest/gtest.h>

namespace tilewright::search::sql {
namespace {

template <class T>
void check_null_leaves(T value) {
  T read_into = value;
  EXPECT_TRUE(read(Value(), read_into));
  EXPECT_EQ(read_into, value);
}

TEST(Sql, NullLeavesANumberOrATextAsItIs) {
  check_null_leaves(3.5);
  check_null_leaves(int64_t{3});
  check_null_leaves(uint64_t{3});
  check_null_leaves(std::string("text"));
  check_null_leaves(Hash128{1, 2});
}

TEST(Sql, AnOptionalIsNullWhereItIsEmpty) {
  for (const std::optional<double>& value : {std::optional<double>(), std::optional(0.0), std::optional(0.1)}) {
    std::optional<double> found = 7;
    EXPECT_TRUE(read(to_value(value), found));
    EXPECT_EQ(found, value);
  }
  std::optional<std::string> text = "before";
  EXPECT_TRUE(read(to_value(std::optional<std::string>()), text));
  EXPECT_EQ(text, std::nullopt);
  EXPECT_TRUE(read(to_value(std::optional<std::string>("")), text));
  EXPECT_EQ(text, "");
}

TEST(Sql, ATextIsNoNumber) {
  double number = 2.5;
  int64_t integer = 2;
  std::optional<double> perhaps = 2.5;
  EXPECT_FALSE(read("1", number));
  EXPECT_FALSE(read("1", integer));
  EXPECT_FALSE(read(Blob{"1"}, integer));
  EXPECT_FALSE(read("1", perhaps));
  EXPECT_EQ(number, 2.5);
  EXPECT_EQ(integer, 2);
  EXPECT_EQ(perhaps, std::nullopt);
}

TEST(Sql, NumbersBecomeNumbersOfTheOtherType) {
  double number = 0;
  int64_t integer = 0;
  uint64_t seed = 0;
  EXPECT_TRUE(read(int64_t{3}, number));
  EXPECT_EQ(number, 3);
  EXPECT_TRUE(read(3.9, integer));
  EXPECT_EQ(integer, 3);
  EXPECT_TRUE(read(to_value(~uint64_t{0}), seed));
  EXPECT_EQ(seed, ~uint64_t{0});
}

}  // namespace
}  // namespace tilewright::search::sql
