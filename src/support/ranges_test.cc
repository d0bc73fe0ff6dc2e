#include "support/ranges.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace tilewright {
namespace {

TEST(Ranges, Predicates) {
  const std::vector<int> numbers{1, 2, 3};
  auto above = [](int limit) { return [limit](int n) { return n > limit; }; };
  EXPECT_TRUE(any_of(numbers, above(2)));
  EXPECT_FALSE(any_of(numbers, above(3)));
  EXPECT_TRUE(all_of(numbers, above(0)));
  EXPECT_FALSE(all_of(numbers, above(1)));
  EXPECT_TRUE(none_of(numbers, above(3)));
  EXPECT_FALSE(none_of(numbers, above(2)));
  EXPECT_EQ(*find_if(numbers, above(1)), 2);
  EXPECT_EQ(find_if(numbers, above(3)), numbers.end());
}

TEST(Ranges, ContainersOfOtherKinds) {
  const int plain[] = {4, 5};
  EXPECT_TRUE(is_contained(plain, 5));
  EXPECT_FALSE(is_contained(std::array<std::string, 1>{"a"}, "b"));
  std::vector<int> all{3};
  append_range(all, plain);
  EXPECT_EQ(all, (std::vector<int>{3, 4, 5}));
}

TEST(Ranges, ItemsByPosition) {
  std::vector<std::string> words{"a", "b", "c"};
  erase_at(words, 1);
  insert_at(words, 0, "z");
  insert_at(words, 3, std::string("end"));
  EXPECT_EQ(words, (std::vector<std::string>{"z", "a", "c", "end"}));
}

TEST(Ranges, PredicatesMayChangeItems) {
  std::vector<int> numbers{1, 2};
  EXPECT_TRUE(all_of(numbers, [](int& n) { return ++n > 0; }));
  EXPECT_EQ(numbers, (std::vector<int>{2, 3}));
}

TEST(Ranges, ValuesOfMaps) {
  std::map<std::string, int> map{{"a", 1}};
  ASSERT_NE(find_value(map, "a"), nullptr);
  *find_value(map, "a") = 2;
  EXPECT_EQ(map, (std::map<std::string, int>{{"a", 2}}));
  EXPECT_EQ(find_value(map, "b"), nullptr);
  EXPECT_EQ(find_value_or(map, "a", 5), 2);
  EXPECT_EQ(find_value_or(map, "b", 5), 5);
}

TEST(Ranges, ReversedItemsAreThoseOfTheContainer) {
  std::vector<int> numbers{1, 2, 3};
  std::vector<int> seen;
  for (int& n : reversed(numbers)) seen.push_back(n++);
  EXPECT_EQ(seen, (std::vector<int>{3, 2, 1}));
  EXPECT_EQ(numbers, (std::vector<int>{2, 3, 4}));
  EXPECT_EQ(*find_if(reversed(std::as_const(numbers)), [](int n) { return n < 4; }), 3);
}

TEST(Ranges, IndicesFollowAContainerThatGrows) {
  std::vector<size_t> items{2};
  std::vector<size_t> seen;
  for (size_t i : indices_of(items)) {
    seen.push_back(i);
    if (items[i] > 0) items.push_back(items[i] - 1);
  }
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2}));
  for (size_t i : indices_of(std::as_const(seen))) seen[i] = 0;
  EXPECT_EQ(seen, (std::vector<size_t>{0, 0, 0}));
  items.clear();
  for (size_t i : indices_of(items)) FAIL() << i;
}

}  // namespace
}  // namespace tilewright
