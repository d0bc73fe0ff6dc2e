#include "support/ranges.h"

#include <gtest/gtest.h>

#include <array>
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

TEST(Ranges, PredicatesMayChangeItems) {
  std::vector<int> numbers{1, 2};
  EXPECT_TRUE(all_of(numbers, [](int& n) { return ++n > 0; }));
  EXPECT_EQ(numbers, (std::vector<int>{2, 3}));
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
