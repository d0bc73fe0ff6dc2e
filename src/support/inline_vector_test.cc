#include "support/inline_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace tilewright {
namespace {

using Texts = InlineVector<std::string, 3>;

std::vector<std::string> items(const Texts& texts) { return {texts.begin(), texts.end()}; }

/// Long enough to have memory of its own.
std::string text(int number) { return "an element with the number " + std::to_string(number); }

TEST(InlineVector, HoldsWhatAVectorHolds) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> expected;
    Texts found;
    for (int step = 0; step < 12; ++step) {
      switch (random() % 6) {
        case 0: {  // through a copy, which stays as it was
          Texts copy = found;
          found.push_back(text(-1));
          EXPECT_EQ(items(copy), expected);
          found = copy;
          break;
        }
        case 1: {
          Texts moved = std::move(found);
          EXPECT_TRUE(found.empty());
          found.push_back(text(-2));
          found = std::move(moved);
          break;
        }
        case 2:
          if (random() % 4 == 0) {
            found.clear();
            expected.clear();
          }
          break;
        case 3:
          if (!expected.empty()) {  // an element of itself, also where it has to grow
            found.push_back(found.front());
            expected.push_back(std::string(expected.front()));
          }
          break;
        default:
          found.push_back(text(step));
          expected.push_back(text(step));
      }
      ASSERT_EQ(items(found), expected);
      ASSERT_EQ(found.size(), expected.size());
    }
  }
}

TEST(InlineVector, TakesListsAndRanges) {
  std::vector<int> many(20);
  std::iota(many.begin(), many.end(), 0);
  InlineVector<int, 4> found{3, 1};
  found.append(many.begin(), many.end());
  EXPECT_EQ(found.size(), 22U);
  EXPECT_EQ(found.front(), 3);
  EXPECT_EQ(found.back(), 19);
  EXPECT_EQ(found[2], 0);
}

TEST(InlineVector, DropsEachElementOnce) {
  auto counted = std::make_shared<int>(0);
  {
    InlineVector<std::shared_ptr<int>, 2> few{counted}, more;
    for (int i = 0; i < 9; ++i) more.push_back(counted);
    EXPECT_EQ(counted.use_count(), 11);
    few = more;
    EXPECT_EQ(counted.use_count(), 19);
    more = InlineVector<std::shared_ptr<int>, 2>{counted};
    EXPECT_EQ(counted.use_count(), 11);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

}  // namespace
}  // namespace tilewright
