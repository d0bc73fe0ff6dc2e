#include "support/json_nesting.h"

#include <gtest/gtest.h>

#include <string>

namespace tilewright {
namespace {

std::string lists(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(JsonNesting, CountsListsAndObjectsInEachOther) {
  EXPECT_FALSE(nests_too_deep(""));
  EXPECT_FALSE(nests_too_deep(lists(kMostJsonNesting)));
  EXPECT_TRUE(nests_too_deep(lists(kMostJsonNesting + 1)));
  EXPECT_TRUE(nests_too_deep("{\"a\": " + lists(kMostJsonNesting) + "}"));
  std::string side_by_side = "[";
  for (int i = 0; i < 2 * kMostJsonNesting; ++i) side_by_side += "{}, ";
  EXPECT_FALSE(nests_too_deep(side_by_side + "0]"));
}

TEST(JsonNesting, BracketsInStringsDoNotCount) {
  const std::string brackets(2 * kMostJsonNesting, '[');
  EXPECT_FALSE(nests_too_deep("\"" + brackets + "\""));
  EXPECT_FALSE(nests_too_deep("\"\\\"" + brackets + "\""));
  EXPECT_TRUE(nests_too_deep("\"\\\\\"" + brackets));
}

}  // namespace
}  // namespace tilewright
